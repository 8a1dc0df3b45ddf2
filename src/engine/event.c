/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mark.h"
#include "base/text.h"
#include "engine/internal.h"
#include "engine/partition.h"

enum { DEAD_DROPS_MAX = 64 };

struct input event_input(struct engine *engine, enum input_kind kind)
{
    return (struct input){
        .kind = kind,
        .random = (uint32_t)engine->random(engine->random_self),
        .epoch = engine->epoch,
        .retry_after_ms = -1,
    };
}

struct route *event_route(struct engine *engine,
                          const struct store_entry *entry)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        if (engine->routes[i].number == entry->record.route) {
            return &engine->routes[i];
        }
    }
    return NULL;
}

/* One event of a key holds it, whatever the order of the others: a rerun or
 * a replay may wait in front of it. */
static bool holds_key(const struct record *record)
{
    return (record->flags & RECORD_ORDERED) != 0 &&
           (record->flags & RECORD_ORDER_WAIT) == 0;
}

bool event_order_blocked(struct engine *engine, uint64_t order_key,
                         const struct store_entry *entry, bool *blocked,
                         struct err *err)
{
    struct store_entry first;

    *blocked = false;
    if (order_key == 0 || holds_key(&entry->record)) {
        return true;
    }
    switch (store_order_first(engine->store, order_key, &first, err)) {
    case STORE_FOUND:
        *blocked = first.origin != entry->origin;
        return true;
    case STORE_ABSENT:
        return true;
    case STORE_FAILED:
        return false;
    }
    UNREACHABLE("every result of a look-up is handled");
}

/* Whether a move is worth a row. An event that succeeds at once writes none:
 * the times in its record tell it all. */
static bool is_history(enum move move, const struct record *record)
{
    switch (move) {
    case MOVE_NONE:
    case MOVE_RECEIVED:
    case MOVE_HEARTBEAT:
    case MOVE_REPEATED:
    case MOVE_ORDER_FREE:
    case MOVE_WOKEN:
        return false;
    case MOVE_STARTED:
    case MOVE_SUCCEEDED:
        return record->attempt > 1;
    case MOVE_DEAD_ON_ARRIVAL:
    case MOVE_FAILED:
    case MOVE_RETRY:
    case MOVE_UNCERTAIN:
    case MOVE_CRASHED:
    case MOVE_PROBE:
    case MOVE_APPLIED:
    case MOVE_NOT_APPLIED:
    case MOVE_DEAD:
    case MOVE_REPLAYED:
    case MOVE_DISCARDED:
    case MOVE_DISPUTED:
    case MOVE_RERUN:
    case MOVE_RESTORED:
    case MOVE_PARKED:
    case MOVE_MOVED:
    case MOVE_SUPERSEDED:
    case MOVE_DRIFTED:
    case MOVE_RELEASED:
    case MOVE_SEEN:
        return true;
    }
    UNREACHABLE("every move is listed");
}

/* "status 503: transient, next try in 1.2s" */
static void explain(const struct event_step *step, int64_t now_ms, char *out,
                    size_t size)
{
    const struct record *record = &step->entry->record;
    struct buf text = BUF_INIT;

    if (step->detail != NULL && step->detail[0] != '\0') {
        buf_printf(&text, "%s: ", step->detail);
    }
    buf_add_str(&text, step->decision.why);
    if ((record->state == RECORD_PENDING ||
         record->state == RECORD_UNCERTAIN) &&
        record->due_ms != RECORD_NEVER && record->due_ms > now_ms) {
        buf_add_str(&text, ", next try in ");
        text_put_duration(&text, record->due_ms - now_ms);
    }
    (void)snprintf(out, size, "%s", buf_cstr(&text));
    buf_free(&text);
}

static bool add_history(struct engine *engine, const struct event_step *step,
                        enum move move, struct err *err)
{
    const struct record *record = &step->entry->record;
    struct store_audit audit = {
        .at_ms = engine->batch.now_ms,
        .move = move,
        .attempt = record->attempt,
        .run = record->run,
    };

    if (!is_history(move, record)) {
        return true;
    }
    if (step->actor != NULL) {
        (void)snprintf(audit.actor, sizeof audit.actor, "%s", step->actor);
    }
    if (move != MOVE_STARTED) {
        explain(step, audit.at_ms, audit.why, sizeof audit.why);
    }
    return store_add_audit(engine->store, step->entry, &audit, err);
}

/* The next event of the key may go, now that the one before it let go. */
static bool advance_order(struct engine *engine, uint64_t order_key,
                          struct err *err)
{
    struct store_entry next;
    struct event_step step;
    struct record before;

    switch (store_order_first(engine->store, order_key, &next, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return true;
    case STORE_FOUND:
        break;
    }
    step = (struct event_step){
        .route = event_route(engine, &next),
        .entry = &next,
        .input = event_input(engine, INPUT_ORDER_FREE),
    };
    if (step.route == NULL) {
        return true;
    }
    before = next.record;
    step.decision = record_step(&next.record, &step.input,
                                &step.route->conf.policy, engine->batch.now_ms);
    room_follow(step.route, &before, &next.record);
    return !step.decision.changed || store_put(engine->store, &next, err);
}

/* A route that prefers to lose its oldest dead letters to stopping. */
static bool keep_dead_quota(struct engine *engine, const struct route *route,
                            const struct store_entry *newest, struct err *err)
{
    enum store_found found = STORE_FOUND;

    if (route->conf.on_dead_full != DEAD_FULL_DROP_OLDEST) {
        return true;
    }
    for (int i = 0; i < DEAD_DROPS_MAX && found == STORE_FOUND &&
                    store_dead_bytes(engine->store, route->number) >
                        route->conf.max_dead_bytes;
         i++) {
        found = store_drop_oldest_dead(engine->store, route->number,
                                       newest->seq, err);
        MARK(dead_letter_dropped);
    }
    return found != STORE_FAILED;
}

/* A delivery may come by another route than the one that owns the event. */
static struct route *owner(struct engine *engine, const struct event_step *step)
{
    return step->entry->record.route == step->route->number
               ? step->route
               : event_route(engine, step->entry);
}

static bool follow_death(struct engine *engine, struct event_step *step,
                         struct err *err)
{
    struct route *route = owner(engine, step);

    MARK(dead_before_commit);
    return route == NULL || outbox_add(engine, route, step->entry, err);
}

static bool step_once(struct engine *engine, struct event_step *step,
                      struct err *err)
{
    struct store_entry *entry = step->entry;
    const struct record before = entry->record;
    const struct record *after = &entry->record;
    struct route *route;

    step->decision =
        record_step(&entry->record, &step->input, &step->route->conf.policy,
                    engine->batch.now_ms);
    CHECK(after->attempt >= before.attempt);
    if (!step->decision.changed) {
        return true;
    }
    engine->batch.dirty = true;
    if (after->state == RECORD_DEAD && before.state != RECORD_DEAD) {
        explain(step, engine->batch.now_ms, entry->text, sizeof entry->text);
    }
    if (!store_put(engine->store, entry, err) ||
        !add_history(engine, step, step->decision.move, err) ||
        !add_history(engine, step, step->decision.also, err)) {
        return false;
    }
    route = owner(engine, step);
    if (route != NULL) {
        room_follow(route, &before, after);
    }
    if (after->state == RECORD_DEAD && before.state != RECORD_DEAD &&
        !follow_death(engine, step, err)) {
        return false;
    }
    if (holds_key(&before) && (after->flags & RECORD_ORDERED) == 0 &&
        !advance_order(engine, before.order_key, err)) {
        return false;
    }
    if (!record_is_settled(after) || after->state == before.state) {
        return true;
    }
    batch_note_settled(engine, step->route, entry);
    return after->state != RECORD_DEAD ||
           keep_dead_quota(engine, step->route, entry, err);
}

static bool step_again(struct engine *engine, const struct event_step *step,
                       enum input_kind kind, struct err *err)
{
    struct event_step again = {
        .route = owner(engine, step),
        .entry = step->entry,
        .input = event_input(engine, kind),
    };

    CHECK(again.route != NULL);
    return step_once(engine, &again, err);
}

/* Nothing here holds the event any more: it waits for its partition, or has
 * gone on with it. */
static bool leave(struct engine *engine, const struct event_step *step,
                  struct err *err)
{
    bool is_parked = (step->entry->record.flags & RECORD_PARKED) != 0;

    return (is_parked || step_again(engine, step, INPUT_PARK, err)) &&
           (partition_fate(engine, step->entry) == INPUT_PARK ||
            step_again(engine, step, INPUT_MOVED, err));
}

/* It waits to be run, and may not be run here. */
static bool follow_waiting(struct engine *engine, const struct event_step *step,
                           struct err *err)
{
    const struct record *record = &step->entry->record;

    if (partition_is_gone(step->entry)) {
        return step_again(engine, step, INPUT_GONE, err);
    }
    if ((record->flags & RECORD_PINS) == 0) {
        return true;
    }
    return partition_holds(engine, step->entry)
               ? partition_keep_place(engine, step->entry, err)
               : leave(engine, step, err);
}

bool event_step(struct engine *engine, struct event_step *step, struct err *err)
{
    const struct record *record = &step->entry->record;
    bool was_settled = record_is_settled(record);

    if (!step_once(engine, step, err)) {
        return false;
    }
    if (!step->decision.changed || record->state == RECORD_RUNNING) {
        return true;
    }
    if (!record_is_settled(record) && !follow_waiting(engine, step, err)) {
        return false;
    }
    if (!record_is_settled(record)) {
        partition_drop_closing(engine, step->entry);
    } else if (!was_settled) {
        partition_settle(engine, &step->entry->identity);
    }
    return true;
}
