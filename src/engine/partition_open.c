/* SPDX-License-Identifier: MIT */
/*
 * What a partition left in the store when it was here before, and what it
 * finds when it comes back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"
#include "engine/partition.h"

enum { PARKED_PER_COMMIT = 1024, COMES_BACK_MS = 10 * 60 * 1000 };

/* --- one assignment ------------------------------------------------------- */

static bool is_other_topic(const struct assignment_order *order,
                           const struct store_low_water *known)
{
    static const uint8_t none[sizeof known->topic_id];

    return order->topic_id != NULL &&
           memcmp(known->topic_id, none, sizeof none) != 0 &&
           memcmp(known->topic_id, order->topic_id, sizeof none) != 0;
}

static bool is_behind_end(const struct assignment_order *order, int64_t offset)
{
    return order->log_end >= 0 && offset > order->log_end;
}

/* The broker says that it is another topic, or an offset that was read lies
 * behind the end of the log: what is known of offsets is of a log that is no
 * more. */
static bool is_recreated(const struct assignment_order *order,
                         const struct store_low_water *known)
{
    return is_other_topic(order, known) ||
           is_behind_end(order, known->offset) ||
           is_behind_end(order, order->committed);
}

/* Writes where it begins; false: the store failed. */
static bool begin_low_water(struct engine *engine,
                            struct partition_state *partition,
                            const struct assignment_order *order,
                            struct err *err)
{
    struct store_low_water now = partition->low_water;

    if (order->recreated) {
        now.incarnation++;
        now.offset = -1;
    }
    if (order->topic_id != NULL) {
        memcpy(now.topic_id, order->topic_id, sizeof now.topic_id);
    }
    if (now.offset < 0) {
        now.offset = 0;
    }
    partition->low_water = now;
    engine->batch.dirty = true;
    return store_put_low_water(engine->store, partition->stream,
                               partition->assignment->number, &now, err);
}

static bool begin(struct engine *engine, struct assignment_order *order,
                  struct err *err)
{
    struct partitions *partitions = engine->partitions;
    struct assignment *assignment = order->assignment;
    struct partition_state *partition = mem_new(1, sizeof *partition);
    enum store_found found;

    CHECK(assignment->stream < partitions->n_streams);
    CHECK(assignment->partition == NULL);
    partition->assignment = assignment;
    partition->stream = partitions->streams[assignment->stream];
    partition->is_new = true;
    partition->new_low_water = -1;
    partition->low_water.offset = -1;
    partition->next = partitions->list;
    partitions->list = partition;
    assignment->partition = partition;
    found = store_get_low_water(engine->store, partition->stream,
                                assignment->number, &partition->low_water, err);
    order->low_water = found == STORE_FOUND ? partition->low_water.offset : -1;
    order->recreated =
        found == STORE_FOUND && is_recreated(order, &partition->low_water);
    order->moved = order->parked = 0;
    partition->settled_below =
        order->recreated || is_behind_end(order, order->committed)
            ? -1
            : order->committed;
    partition->tracker = tracker_new(partition->settled_below);
    if (found == STORE_FAILED ||
        !begin_low_water(engine, partition, order, err)) {
        return false;
    }
    order->incarnation = partition->low_water.incarnation;
    return true;
}

/* --- what waited for it --------------------------------------------------- */

static void await(struct partition_state *partition,
                  const struct store_entry *entry)
{
    if (partition->n_awaited == partition->room_awaited) {
        partition->room_awaited =
            partition->room_awaited == 0 ? 16 : partition->room_awaited * 2;
        partition->awaited =
            mem_grow(partition->awaited, partition->room_awaited,
                     sizeof *partition->awaited);
    }
    partition->awaited[partition->n_awaited++] = (struct awaited){
        .offset = entry->position.offset,
        .identity = entry->identity,
    };
}

static int compare_offsets(const void *a, const void *b)
{
    const struct awaited *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool step_parked(struct engine *engine, struct store_entry *entry,
                        enum input_kind kind, struct err *err)
{
    struct event_step step = {
        .route = event_route(engine, entry),
        .entry = entry,
        .input = event_input(engine, kind),
    };

    CHECK(step.route != NULL);
    return event_step(engine, &step, err);
}

/* Whether the log can still bring the message. */
static bool is_on_broker(const struct assignment_order *order, int64_t offset)
{
    return !order->recreated &&
           (order->log_start < 0 || offset >= order->log_start) &&
           (order->log_end < 0 || offset < order->log_end);
}

/* Its message is no longer on the broker: no partition has it. What that means
 * is decided when the attempt has ended, by this process or another. */
static bool mark_gone(struct engine *engine, struct store_entry *entry,
                      struct err *err)
{
    MARK(message_gone);
    return partition_move(engine, entry, NULL, err);
}

/* An attempt that outlived an earlier assignment: it is recorded here. */
static bool take_running(struct engine *engine, struct assignment_order *order,
                         struct store_entry *entry, struct err *err)
{
    struct partition_state *partition = order->assignment->partition;
    int64_t offset = entry->position.offset;

    if (offset < partition->settled_below) {
        return true;
    }
    if (!is_on_broker(order, offset)) {
        return mark_gone(engine, entry, err);
    }
    partition_wait(engine, partition, &entry->identity, -1);
    await(partition, entry);
    return true;
}

/* An event whose partition came back. Below the group's offset another worker
 * has settled it. Else it goes on at once where its message is here; where it
 * was left with the broker, it waits for that to bring it. */
static bool take_back(struct engine *engine, struct assignment_order *order,
                      struct store_entry *entry, struct err *err)
{
    struct partition_state *partition = order->assignment->partition;
    int64_t offset = entry->position.offset;

    if (entry->record.state == RECORD_RUNNING) {
        return take_running(engine, order, entry, err);
    }
    if (offset < partition->settled_below) {
        order->moved++;
        MARK(event_moved);
        return step_parked(engine, entry, INPUT_MOVED, err);
    }
    order->parked++;
    if (!is_on_broker(order, offset)) {
        MARK(message_gone);
        return step_parked(engine, entry, INPUT_GONE, err);
    }
    await(partition, entry);
    if ((entry->record.flags & RECORD_LEFT) != 0) {
        return true;
    }
    MARK(event_unparked);
    partition_wait(engine, partition, &entry->identity, -1);
    return step_parked(engine, entry, INPUT_UNPARK, err);
}

/* Of the orders up to `end`. */
static struct assignment_order *order_for(struct engine *engine,
                                          struct queue_item *first,
                                          const struct queue_item *end,
                                          const struct store_position *position)
{
    const struct partitions *partitions = engine->partitions;

    for (struct queue_item *item = first; item != end; item = item->next) {
        struct assignment_order *order = (struct assignment_order *)item;
        const struct assignment *assignment = order->assignment;

        if (partitions->streams[assignment->stream] == position->stream &&
            assignment->number == position->partition) {
            return order;
        }
    }
    return NULL;
}

struct unsettled_cursor {
    enum record_state state;
    int64_t due_ms;
    uint64_t seq;
};

/* Those that run, and those that are parked; these are never due, and stand
 * at the end of their state. */
static enum store_found next_left_here(struct engine *engine, uint16_t route,
                                       struct unsettled_cursor *at,
                                       struct store_entry *entry,
                                       struct err *err)
{
    enum store_found found;

    while ((found = store_next_unsettled(engine->store, route, &at->state,
                                         &at->due_ms, &at->seq, entry, err)) ==
           STORE_FOUND) {
        uint32_t flags = entry->record.flags;

        if ((flags & RECORD_PARKED) != 0 ||
            ((flags & RECORD_PINS) != 0 && at->state == RECORD_RUNNING)) {
            return found;
        }
        if (at->due_ms != RECORD_NEVER && at->state != RECORD_RUNNING) {
            at->due_ms = RECORD_NEVER;
            at->seq = 0;
        }
    }
    return found;
}

static bool take_back_of(struct engine *engine, uint16_t route,
                         struct queue_item *first, const struct queue_item *end,
                         struct err *err)
{
    struct unsettled_cursor at = {RECORD_PENDING, RECORD_NEVER, 0};
    struct store_entry entry;
    enum store_found found;

    while ((found = next_left_here(engine, route, &at, &entry, err)) ==
           STORE_FOUND) {
        struct assignment_order *order =
            order_for(engine, first, end, &entry.position);

        if (order != NULL && !take_back(engine, order, &entry, err)) {
            return false;
        }
    }
    return found == STORE_ABSENT;
}

static bool take_all_back(struct engine *engine, struct queue_item *first,
                          const struct queue_item *end, struct err *err)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        if (!take_back_of(engine, engine->routes[i].number, first, end, err)) {
            return false;
        }
    }
    for (struct queue_item *item = first; item != end; item = item->next) {
        struct partition_state *partition =
            ((struct assignment_order *)item)->assignment->partition;

        if (partition->n_awaited > 1) {
            qsort(partition->awaited, partition->n_awaited,
                  sizeof *partition->awaited, compare_offsets);
        }
    }
    return true;
}

struct queue_item *partition_open_some(struct engine *engine,
                                       struct queue_item *order, bool *ok,
                                       struct err *err)
{
    struct queue_item *end = order;

    while (end != NULL && *ok &&
           ((struct assignment_order *)end)->kind == ASSIGNMENT_OPEN) {
        *ok = begin(engine, (struct assignment_order *)end, err);
        end = end->next;
    }
    *ok = *ok && take_all_back(engine, order, end, err);
    return end;
}

/* --- what the broker does not bring ----------------------------------------
 */

/* What it was taken back with, without an offset. */
static void release_old(struct engine *engine,
                        const struct partition_state *partition,
                        const struct identity *identity)
{
    struct waits *waits = engine->partitions->waits;

    for (struct wait *wait = waits_of(waits, identity); wait != NULL;
         wait = wait->next) {
        if (wait->partition == partition && wait->offset < 0 &&
            !wait->is_released) {
            waits_release(waits, wait);
        }
    }
}

static bool pass(struct engine *engine, struct partition_state *partition,
                 const struct awaited *awaited, struct err *err)
{
    const struct wait *wait;
    struct store_entry entry;

    switch (
        store_find_identity(engine->store, &awaited->identity, &entry, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return true;
    case STORE_FOUND:
        break;
    }
    if ((entry.record.flags & RECORD_PINS) == 0) {
        return true;
    }
    wait = partition_brought(engine, &awaited->identity);
    if (wait != NULL) {
        release_old(engine, partition, &awaited->identity);
        return partition_move(engine, &entry, wait, err);
    }
    if (entry.record.state == RECORD_RUNNING) {
        return mark_gone(engine, &entry, err);
    }
    MARK(message_gone);
    return step_parked(engine, &entry, INPUT_GONE, err);
}

bool partition_pass_awaited(struct engine *engine,
                            struct partition_state *partition, int64_t offset,
                            struct err *err)
{
    while (partition->new_awaited_at < partition->n_awaited) {
        const struct awaited *awaited =
            &partition->awaited[partition->new_awaited_at];

        if (awaited->offset > offset) {
            return true;
        }
        partition->new_awaited_at++;
        if (!pass(engine, partition, awaited, err)) {
            return false;
        }
    }
    return true;
}

/* --- at the start --------------------------------------------------------- */

/* What an earlier process left: nothing holds it before its partition comes
 * back. */
static bool park_some(struct engine *engine, struct route *route,
                      struct unsettled_cursor *at, bool *more, struct err *err)
{
    struct partitions *partitions = engine->partitions;
    struct store_entry entry;

    for (int i = 0; i < PARKED_PER_COMMIT; i++) {
        switch (store_next_unsettled(engine->store, route->number, &at->state,
                                     &at->due_ms, &at->seq, &entry, err)) {
        case STORE_FAILED:
            return false;
        case STORE_ABSENT:
            *more = false;
            return true;
        case STORE_FOUND:
            break;
        }
        if ((entry.record.flags & RECORD_PINS) != 0 &&
            entry.record.first_seen_ms < partitions->left_since_ms) {
            partitions->left_since_ms = entry.record.first_seen_ms;
        }
        if ((entry.record.flags & RECORD_PARKED) != 0) {
            continue;
        }
        room_count(route, &entry.record);
        if ((entry.record.flags & RECORD_PINS) != 0 &&
            entry.record.state != RECORD_RUNNING &&
            !step_parked(engine, &entry, INPUT_PARK, err)) {
            return false;
        }
    }
    return true;
}

static bool recover_route(struct engine *engine, struct route *route,
                          struct err *err)
{
    struct unsettled_cursor at = {RECORD_PENDING, INT64_MIN, 0};
    bool more = true;

    while (more) {
        engine->batch.now_ms = store_now_ms(engine->store);
        engine->batch.dirty = false;
        if (!store_begin(engine->store, err)) {
            return false;
        }
        if (!park_some(engine, route, &at, &more, err)) {
            store_abort(engine->store);
            return false;
        }
        if (!engine->batch.dirty) {
            store_abort(engine->store);
        } else if (!store_commit(engine->store, err)) {
            return false;
        }
        room_fold(engine);
    }
    return true;
}

/* A store that never knew a partition is not read for it. */
bool partitions_recover(struct engine *engine, struct err *err)
{
    if (store_stream_name(engine->store, 1) == NULL) {
        return true;
    }
    room_reset(engine);
    for (size_t i = 0; i < engine->n_routes; i++) {
        if (!recover_route(engine, &engine->routes[i], err)) {
            return err_wrap(err, "recover the partitions of route \"%s\"",
                            engine->routes[i].conf.name);
        }
    }
    engine->partitions->left_until_ms =
        store_now_ms(engine->store) + COMES_BACK_MS;
    store_keep_since(engine->store, engine->partitions->left_since_ms);
    return true;
}
