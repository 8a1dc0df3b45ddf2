/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"
#include "engine/internal.h"

enum { RECOVERED_PER_COMMIT = 1024 };

static bool handler_says_alive(const struct route *route,
                               const struct identity *identity,
                               uint32_t attempt)
{
    const struct handler *handler = &route->conf.handler;

    return handler->ops != NULL && handler->ops->is_alive != NULL &&
           handler->ops->is_alive(handler->self, identity->hash, attempt);
}

static bool is_adopted(const struct engine *engine,
                       const struct store_entry *entry)
{
    for (const struct orphan *orphan = engine->orphans; orphan != NULL;
         orphan = orphan->next) {
        if (orphan->attempt == entry->record.attempt &&
            slice_eq((struct slice){(const char *)orphan->identity.hash, 16},
                     (struct slice){(const char *)entry->identity.hash, 16})) {
            return true;
        }
    }
    return false;
}

static void adopt(struct engine *engine, struct route *route,
                  const struct store_entry *entry)
{
    struct orphan *orphan = mem_new(1, sizeof *orphan);

    orphan->identity = entry->identity;
    orphan->attempt = entry->record.attempt;
    orphan->route = route;
    orphan->kill_at_ms = entry->record.due_ms;
    orphan->next = engine->orphans;
    engine->orphans = orphan;
    MARK(orphan_alive);
    route->orphans++;
    engine->orphans_look_ms = engine->batch.now_ms + ORPHAN_LOOK_MS;
}

static void tell(const struct store_entry *entry, const struct route *route,
                 const char *message)
{
    struct log_line line;

    if (log_begin(&line, LOG_WARN, "engine", message)) {
        log_str(&line, "route", slice_of(route->conf.name));
        log_str(&line, "id", store_entry_id(entry));
        log_int(&line, "attempt", entry->record.attempt);
        log_end(&line);
    }
}

static bool crash(struct engine *engine, struct route *route,
                  struct store_entry *entry, struct err *err)
{
    struct event_step step = {
        .route = route,
        .entry = entry,
        .input = event_input(engine, INPUT_CRASHED),
    };

    tell(entry, route, "attempt cut short by a crash");
    step.input.attempt = entry->record.attempt;
    return event_step(engine, &step, err);
}

/* One transaction's worth of one route's attempts. */
static bool recover_some(struct engine *engine, struct route *route,
                         int64_t *due_ms, uint64_t *seq, bool *more,
                         struct err *err)
{
    struct store_entry entry;

    *more = true;
    for (int i = 0; i < RECOVERED_PER_COMMIT; i++) {
        switch (store_next_running(engine->store, route->number, due_ms, seq,
                                   &entry, err)) {
        case STORE_FAILED:
            return false;
        case STORE_ABSENT:
            *more = false;
            return true;
        case STORE_FOUND:
            break;
        }
        if (entry.record.epoch == engine->epoch || is_adopted(engine, &entry)) {
            continue;
        }
        if (handler_says_alive(route, &entry.identity, entry.record.attempt)) {
            tell(&entry, route, "attempt of an earlier process still runs");
            adopt(engine, route, &entry);
        } else if (!crash(engine, route, &entry, err)) {
            return false;
        }
    }
    return true;
}

static bool recover_route(struct engine *engine, struct route *route,
                          struct err *err)
{
    int64_t due_ms = INT64_MIN;
    uint64_t seq = 0;
    bool more = true;

    while (more) {
        engine->batch.now_ms = store_now_ms(engine->store);
        engine->batch.dirty = false;
        if (!store_begin(engine->store, err)) {
            return false;
        }
        if (!recover_some(engine, route, &due_ms, &seq, &more, err)) {
            store_abort(engine->store);
            return false;
        }
        if (!engine->batch.dirty) {
            store_abort(engine->store);
            continue;
        }
        MARK(recovery_before_commit);
        if (!store_commit(engine->store, err)) {
            return false;
        }
        MARK(recovery_after_commit);
    }
    engine->batch.n_notes = 0;
    return true;
}

/* --- keys that a dead event held ---------------------------------------- */

struct holders {
    struct identity *list;
    size_t n, cap;
};

static bool add_holder(void *ctx, const struct store_entry *entry)
{
    struct holders *holders = ctx;

    if ((entry->record.flags & RECORD_ORDERED) == 0) {
        return true;
    }
    if (holders->n == holders->cap) {
        holders->cap = holders->cap == 0 ? 64 : holders->cap * 2;
        holders->list =
            mem_grow(holders->list, holders->cap, sizeof *holders->list);
    }
    holders->list[holders->n++] = entry->identity;
    return true;
}

static bool let_go(struct engine *engine, struct route *route,
                   const struct identity *identity, struct err *err)
{
    struct store_entry entry;
    struct event_step step = {
        .route = route,
        .entry = &entry,
        .input = event_input(engine, INPUT_ORDER_FREE),
    };

    switch (store_find_identity(engine->store, identity, &entry, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return true;
    case STORE_FOUND:
        break;
    }
    return entry.record.state != RECORD_DEAD || event_step(engine, &step, err);
}

static bool let_all_go(struct engine *engine, struct route *route,
                       const struct holders *holders, struct err *err)
{
    engine->batch.now_ms = store_now_ms(engine->store);
    if (!store_begin(engine->store, err)) {
        return false;
    }
    for (size_t i = 0; i < holders->n; i++) {
        if (!let_go(engine, route, &holders->list[i], err)) {
            store_abort(engine->store);
            return false;
        }
    }
    return store_commit(engine->store, err);
}

/* A route whose dead events held their keys once, and do so no more. */
static bool free_keys(struct engine *engine, struct route *route,
                      struct err *err)
{
    const struct store_filter dead = {
        .route = route->number,
        .has_state = true,
        .state = RECORD_DEAD,
    };
    struct holders holders = {NULL, 0, 0};
    bool ok = true;

    if (route->conf.policy.after_dead != AFTER_DEAD_CONTINUE ||
        store_dead_holders(engine->store, route->number) == 0) {
        return true;
    }
    ok = store_list(engine->store, &dead, add_holder, &holders, err) &&
         (holders.n == 0 || let_all_go(engine, route, &holders, err));
    free(holders.list);
    return ok;
}

bool recover_attempts(struct engine *engine, struct err *err)
{
    MARK(recovery_begun);
    for (size_t i = 0; i < engine->n_routes; i++) {
        if (!recover_route(engine, &engine->routes[i], err) ||
            !free_keys(engine, &engine->routes[i], err)) {
            return err_wrap(err, "recover route \"%s\"",
                            engine->routes[i].conf.name);
        }
        MARK(recovery_of_route);
    }
    return true;
}

/* --- orphans
 * ------------------------------------------------------------------ */

static bool orphan_ended(struct engine *engine, const struct orphan *orphan,
                         struct err *err)
{
    struct store_entry entry;

    switch (
        store_find_identity(engine->store, &orphan->identity, &entry, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return true;
    case STORE_FOUND:
        break;
    }
    return crash(engine, orphan->route, &entry, err);
}

static bool is_gone(const struct engine *engine, const struct orphan *orphan)
{
    const struct handler *handler = &orphan->route->conf.handler;

    if (!handler_says_alive(orphan->route, &orphan->identity,
                            orphan->attempt)) {
        return true;
    }
    if (engine->batch.now_ms >= orphan->kill_at_ms) {
        MARK(orphan_killed);
        handler->ops->kill(handler->self, orphan->identity.hash,
                           orphan->attempt);
    }
    return false;
}

bool recover_orphans(struct engine *engine, struct err *err)
{
    if (engine->batch.now_ms < engine->orphans_look_ms) {
        return true;
    }
    for (struct orphan *orphan = engine->orphans; orphan != NULL;
         orphan = orphan->next) {
        orphan->ended = is_gone(engine, orphan);
        if (orphan->ended && !orphan_ended(engine, orphan, err)) {
            return false;
        }
    }
    return true;
}

void recover_orphans_seen(struct engine *engine, bool committed)
{
    struct orphan **at = &engine->orphans;

    while (*at != NULL) {
        struct orphan *orphan = *at;

        if (!orphan->ended || !committed) {
            orphan->ended = false;
            at = &orphan->next;
            continue;
        }
        *at = orphan->next;
        orphan->route->orphans--;
        free(orphan);
    }
    if (engine->orphans == NULL) {
        engine->orphans_look_ms = RECORD_NEVER;
    } else if (engine->batch.now_ms >= engine->orphans_look_ms) {
        engine->orphans_look_ms = engine->batch.now_ms + ORPHAN_LOOK_MS;
    }
}

/* A passed lease only says "look". Ours: the handler is late, and its
 * time-out will come. An earlier process's: crashed, unless it is watched. */
bool recover_lapsed(struct engine *engine, struct route *route,
                    struct store_entry *entry, struct err *err)
{
    struct event_step step = {
        .route = route,
        .entry = entry,
        .input = event_input(engine, INPUT_HEARTBEAT),
    };

    if (entry->record.epoch != engine->epoch && !is_adopted(engine, entry)) {
        return crash(engine, route, entry, err);
    }
    step.input.attempt = entry->record.attempt;
    return event_step(engine, &step, err);
}
