/* SPDX-License-Identifier: MIT */
/*
 * A partition that goes. What is settled above a hole is handled again by the
 * next owner, who gets all from the hole on: so while it drains, what closes
 * holes may still begin, as far as nothing keeps a hole open for longer.
 */
#include "base/check.h"
#include "base/mark.h"
#include "engine/partition.h"

static bool find(struct engine *engine, const struct wait *wait,
                 struct store_entry *entry, struct err *err)
{
    switch (store_find_identity(engine->store, wait->identity, entry, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return err_set(err, ERR_DATA,
                       "an event that an offset waits for is gone");
    case STORE_FOUND:
        return true;
    }
    UNREACHABLE("every result of a look-up is handled");
}

static bool is_ready(struct engine *engine, const struct store_entry *entry)
{
    const struct route *route = event_route(engine, entry);

    return entry->record.state == RECORD_PENDING &&
           (entry->record.flags & RECORD_PARKED) == 0 &&
           entry->record.attempt == 0 && !engine->stopping && route != NULL &&
           !route->unreachable && !route->conf.retired &&
           !store_is_paused(engine->store, route->number);
}

/* Nothing keeps its first attempt from beginning soon; also not what holds its
 * ordering key. */
static bool may_begin(struct engine *engine, const struct store_entry *entry,
                      bool *may, struct err *err)
{
    struct store_entry holder;

    *may = is_ready(engine, entry);
    if (!*may || (entry->record.flags & RECORD_ORDER_WAIT) == 0) {
        return true;
    }
    switch (store_order_first(engine->store, entry->record.order_key, &holder,
                              err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return true;
    case STORE_FOUND:
        *may =
            holder.record.state == RECORD_RUNNING || is_ready(engine, &holder);
        return true;
    }
    UNREACHABLE("every result of a look-up is handled");
}

/* Up to what runs or is settled, and not past what will take longer. */
static bool find_limit(struct engine *engine,
                       const struct partition_state *partition, int64_t *limit,
                       struct err *err)
{
    int64_t top = tracker_highest_settled(partition->tracker);
    int64_t stuck = INT64_MAX;
    struct store_entry entry;
    bool may;

    for (const struct wait *wait = partition->waits.first; wait != NULL;
         wait = wait->partition_next) {
        if (wait->is_released || wait->offset < 0) {
            continue;
        }
        if (!find(engine, wait, &entry, err) ||
            !may_begin(engine, &entry, &may, err)) {
            return false;
        }
        if (entry.record.state == RECORD_RUNNING) {
            top = wait->offset > top ? wait->offset : top;
        } else if (!may) {
            stuck = wait->offset < stuck ? wait->offset : stuck;
        }
    }
    *limit = top < stuck ? top : stuck;
    return true;
}

/* Another partition holds it: it goes on there. */
static bool hand_over(struct engine *engine, struct wait *wait,
                      struct store_entry *entry, struct err *err)
{
    waits_release(engine->partitions->waits, wait);
    return (entry->record.flags & RECORD_PINS) == 0 ||
           partition_keep_place(engine, entry, err);
}

/* What runs goes on: it is recorded wherever the partition is by then. */
static bool let_go(struct engine *engine, struct wait *wait, size_t *parked,
                   struct err *err)
{
    struct store_entry entry;
    struct event_step step = {
        .entry = &entry,
        .input = event_input(engine, INPUT_PARK),
    };

    if (!find(engine, wait, &entry, err)) {
        return false;
    }
    if (entry.record.state == RECORD_RUNNING ||
        (wait->offset >= 0 && wait->offset < wait->partition->drain_below)) {
        return true;
    }
    if (partition_holds(engine, &entry)) {
        return hand_over(engine, wait, &entry, err);
    }
    step.route = event_route(engine, &entry);
    CHECK(step.route != NULL);
    if (!event_step(engine, &step, err)) {
        return false;
    }
    *parked += (entry.record.flags & RECORD_PARKED) != 0 ? 1 : 0;
    if (!wait->is_released) {
        waits_release(engine->partitions->waits, wait);
    }
    return true;
}

static bool let_all_go(struct engine *engine, struct partition_state *partition,
                       size_t *parked, struct err *err)
{
    for (struct wait *wait = partition->waits.first; wait != NULL;
         wait = wait->partition_next) {
        if (!wait->is_released && !let_go(engine, wait, parked, err)) {
            return false;
        }
    }
    return true;
}

static void close_partition(struct partition_state *partition,
                            int64_t drain_below)
{
    if (!partition->is_closing) {
        partition->is_closing = true;
        partition->was_open = true;
    }
    partition->drain_below = drain_below;
}

static bool drain(struct engine *engine, struct assignment_order *order,
                  struct err *err)
{
    struct partition_state *partition = order->assignment->partition;
    int64_t limit;

    CHECK(partition != NULL && !partition->is_over && !partition->is_closing);
    if (!find_limit(engine, partition, &limit, err)) {
        return false;
    }
    close_partition(partition, limit);
    return let_all_go(engine, partition, &order->parked, err);
}

static void drop_waits(struct engine *engine, struct partition_state *partition)
{
    for (struct wait *wait = partition->waits.first; wait != NULL;
         wait = wait->partition_next) {
        if (!wait->is_released) {
            waits_release(engine->partitions->waits, wait);
        }
    }
}

/* Writes its low-water at once: the next assignment of the partition may begin
 * in this batch, and finds it. */
static bool fence(struct engine *engine, struct assignment_order *order,
                  struct err *err)
{
    struct partition_state *partition = order->assignment->partition;

    CHECK(partition != NULL && !partition->is_over);
    close_partition(partition, 0);
    if (!let_all_go(engine, partition, &order->parked, err)) {
        return false;
    }
    drop_waits(engine, partition);
    partition->is_over = true;
    return partition_write(engine, partition, err);
}

bool partition_end(struct engine *engine, struct assignment_order *order,
                   struct err *err)
{
    order->parked = 0;
    switch (order->kind) {
    case ASSIGNMENT_DRAIN:
        return drain(engine, order, err);
    case ASSIGNMENT_FENCE:
        return fence(engine, order, err);
    case ASSIGNMENT_OPEN:
        break;
    }
    UNREACHABLE("OPEN is taken elsewhere");
}
