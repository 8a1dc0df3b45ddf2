/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mark.h"
#include "base/text.h"
#include "engine/internal.h"

enum { RESTORED_PER_COMMIT = 1024 };

struct restore {
    struct engine *engine;
    const char *actor;
    char from[TEXT_TIME_SIZE + 16]; /* which backup, for the history */
};

/* Of one route, before the first of them changes: a step moves an event in
 * the index that they are found by. */
struct events {
    struct identity *list;
    size_t n, cap;
};

static void add(struct events *events, const struct identity *identity)
{
    if (events->n == events->cap) {
        events->cap = events->cap == 0 ? 256 : events->cap * 2;
        events->list =
            mem_grow(events->list, events->cap, sizeof *events->list);
    }
    events->list[events->n++] = *identity;
}

static bool collect(struct engine *engine, const struct route *route,
                    struct events *unsettled, struct err *err)
{
    int64_t due_ms = INT64_MIN;
    uint64_t seq = 0;
    struct store_entry entry;
    enum store_found found;

    if (!store_begin(engine->store, err)) {
        return false;
    }
    while ((found = store_next_due(engine->store, route->number, RECORD_NEVER,
                                   &due_ms, &seq, &entry, err)) ==
           STORE_FOUND) {
        add(unsettled, &entry.identity);
    }
    store_abort(engine->store);
    return found == STORE_ABSENT;
}

static bool keep_move(void *ctx, const struct store_audit *audit)
{
    *(enum move *)ctx = audit->move;
    return true;
}

/* By a restore that a crash cut short, or one before: nothing has happened
 * to it since. */
static bool see_restored(struct engine *engine, const struct store_entry *entry,
                         bool *is_restored, struct err *err)
{
    enum move last = MOVE_NONE;

    *is_restored = false;
    if (entry->record.state != RECORD_UNCERTAIN ||
        (entry->record.flags & RECORD_RESTORED) == 0) {
        return true;
    }
    if (!store_each_audit(engine->store, entry, keep_move, &last, err)) {
        return false;
    }
    *is_restored = last == MOVE_RESTORED;
    return true;
}

static bool restore_event(struct restore *restore, struct route *route,
                          const struct identity *identity,
                          struct engine_restored *counts, struct err *err)
{
    struct engine *engine = restore->engine;
    struct store_entry entry;
    struct event_step step = {
        .route = route,
        .entry = &entry,
        .input = event_input(engine, INPUT_RESTORED),
        .detail = restore->from,
        .actor = restore->actor,
    };
    bool is_restored;

    switch (store_find_identity(engine->store, identity, &entry, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return err_set(err, ERR_DATA, "an unsettled event has no record");
    case STORE_FOUND:
        break;
    }
    if (!see_restored(engine, &entry, &is_restored, err) ||
        (!is_restored && !event_step(engine, &step, err))) {
        return false;
    }
    counts->uncertain++;
    if (entry.record.state == RECORD_DEAD) {
        counts->held++;
    } else {
        counts->due++;
    }
    return true;
}

/* One transaction's worth of them. */
static bool restore_some(struct restore *restore, struct route *route,
                         const struct events *some,
                         struct engine_restored *counts, struct err *err)
{
    struct engine *engine = restore->engine;

    engine->batch.now_ms = store_now_ms(engine->store);
    if (!store_begin(engine->store, err)) {
        return false;
    }
    for (size_t i = 0; i < some->n; i++) {
        if (!restore_event(restore, route, &some->list[i], counts, err)) {
            store_abort(engine->store);
            return false;
        }
    }
    engine->batch.n_notes = 0;
    MARK(restore_before_commit);
    if (!store_commit(engine->store, err)) {
        return false;
    }
    MARK(restore_after_commit);
    return true;
}

/* --- what an earlier call already held ----------------------------------- */

static bool add_held(void *ctx, const struct store_entry *entry)
{
    if ((entry->record.flags & RECORD_RESTORED) != 0) {
        add(ctx, &entry->identity);
    }
    return true;
}

/* Its last move is a restore of this backup, and no other's: one step, which
 * writes two rows. */
struct last_move {
    const char *from;
    bool is_ours;
};

static bool keep_last(void *ctx, const struct store_audit *audit)
{
    struct last_move *last = ctx;

    last->is_ours =
        (audit->move == MOVE_RESTORED || audit->move == MOVE_DEAD) &&
        strncmp(audit->why, last->from, strlen(last->from)) == 0;
    return true;
}

static bool count_held_event(struct restore *restore,
                             const struct identity *identity,
                             struct engine_restored *counts, struct err *err)
{
    struct last_move last = {.from = restore->from};
    struct store *store = restore->engine->store;
    struct store_entry entry;
    enum store_found found = store_find_identity(store, identity, &entry, err);

    if (found == STORE_FOUND &&
        !store_each_audit(store, &entry, keep_last, &last, err)) {
        return false;
    }
    counts->uncertain += last.is_ours ? 1 : 0;
    counts->held += last.is_ours ? 1 : 0;
    return found != STORE_FAILED;
}

/* Dead letters that a call made which a crash cut short: they are settled,
 * and would be missing in what this one reports. */
static bool count_held(struct restore *restore, const struct route *route,
                       struct engine_restored *counts, struct err *err)
{
    const struct store_filter dead = {
        .route = route->number,
        .has_state = true,
        .state = RECORD_DEAD,
    };
    struct store *store = restore->engine->store;
    struct events held = {NULL, 0, 0};
    bool ok = store_list(store, &dead, add_held, &held, err) &&
              store_begin(store, err);

    if (ok) {
        for (size_t i = 0; ok && i < held.n; i++) {
            ok = count_held_event(restore, &held.list[i], counts, err);
        }
        store_abort(store);
    }
    free(held.list);
    return ok;
}

/* --- one route ----------------------------------------------------------- */

static bool restore_route(struct restore *restore, struct route *route,
                          struct engine_restored *counts, struct err *err)
{
    struct events all = {NULL, 0, 0};
    bool ok = count_held(restore, route, counts, err) &&
              collect(restore->engine, route, &all, err);

    if (route->conf.retired) { /* nothing tries it again: a person decides */
        route->conf.policy.on_uncertain = ON_UNCERTAIN_HOLD;
    }
    for (size_t at = 0; ok && at < all.n; at += RESTORED_PER_COMMIT) {
        size_t left = all.n - at;
        struct events some = {
            .list = all.list + at,
            .n = left < RESTORED_PER_COMMIT ? left : RESTORED_PER_COMMIT,
        };

        ok = restore_some(restore, route, &some, counts, err);
    }
    free(all.list);
    return ok || err_wrap(err, "restore route \"%s\"", route->conf.name);
}

static bool end(struct engine *engine, struct err *err)
{
    MARK(restore_before_end);
    if (!store_begin(engine->store, err)) {
        return false;
    }
    if (!store_end_restore(engine->store, err)) {
        store_abort(engine->store);
        return false;
    }
    return store_commit(engine->store, err);
}

static void name_backup(struct restore *restore)
{
    char made[TEXT_TIME_SIZE];

    text_time(store_copied_wall_ms(restore->engine->store), made);
    (void)snprintf(restore->from, sizeof restore->from, "backup of %s", made);
}

bool engine_restore(const struct engine_options *options, const char *actor,
                    struct engine_restored *counts, struct err *err)
{
    struct restore restore = {.actor = actor};
    bool ok = true;

    if (!engine_build(&restore.engine, options, err)) {
        return false;
    }
    name_backup(&restore);
    for (size_t i = 0; ok && i < options->n_routes; i++) {
        counts[i] = (struct engine_restored){0, 0, 0};
        ok = restore_route(&restore, &restore.engine->routes[i], &counts[i],
                           err);
    }
    ok = ok && end(restore.engine, err);
    engine_free(&restore.engine);
    return ok;
}
