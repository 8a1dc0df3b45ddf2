/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "base/mark.h"
#include "base/text.h"
#include "engine/internal.h"

enum { RESTORED_PER_COMMIT = 1024 };

struct restore {
    struct engine *engine;
    const char *actor;
    char from[TEXT_TIME_SIZE + 16]; /* which backup, for the history */
};

/* What was unsettled before the first of them changed: a step moves an event
 * in the index that they are found by. */
struct unsettled {
    struct identity *list;
    size_t n, cap;
};

static void add(struct unsettled *unsettled, const struct identity *identity)
{
    if (unsettled->n == unsettled->cap) {
        unsettled->cap = unsettled->cap == 0 ? 256 : unsettled->cap * 2;
        unsettled->list =
            mem_grow(unsettled->list, unsettled->cap, sizeof *unsettled->list);
    }
    unsettled->list[unsettled->n++] = *identity;
}

static bool collect(struct engine *engine, const struct route *route,
                    struct unsettled *unsettled, struct err *err)
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
                         const struct unsettled *some,
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

static bool restore_route(struct restore *restore, struct route *route,
                          struct engine_restored *counts, struct err *err)
{
    struct unsettled all = {NULL, 0, 0};
    bool ok = collect(restore->engine, route, &all, err);

    for (size_t at = 0; ok && at < all.n; at += RESTORED_PER_COMMIT) {
        size_t left = all.n - at;
        struct unsettled some = {
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
