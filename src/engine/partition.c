/* SPDX-License-Identifier: MIT */
#include "engine/partition.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mark.h"

/* --- life ----------------------------------------------------------------- */

bool partitions_build(struct engine *engine,
                      const struct engine_options *options, struct err *err)
{
    struct partitions *partitions = mem_new(1, sizeof *partitions);

    engine->partitions = partitions;
    partitions->waits = waits_new();
    partitions->left_since_ms = RECORD_NEVER;
    partitions->n_streams = options->n_streams;
    if (options->n_streams == 0) {
        return true;
    }
    partitions->streams =
        mem_new(options->n_streams, sizeof *partitions->streams);
    for (size_t i = 0; i < options->n_streams; i++) {
        if (!store_stream_number(engine->store, options->streams[i],
                                 &partitions->streams[i], err)) {
            return false;
        }
    }
    return true;
}

static void free_state(struct partition_state *partition)
{
    partition->assignment->partition = NULL;
    tracker_free(partition->tracker);
    free(partition->awaited);
    free(partition);
}

void partitions_free(struct engine *engine)
{
    struct partitions *partitions = engine->partitions;

    if (partitions == NULL) {
        return;
    }
    CHECK(partitions->list == NULL); /* every assignment was fenced */
    waits_free(partitions->waits);
    free(partitions->streams);
    free(partitions);
    engine->partitions = NULL;
}

void engine_assign(struct engine *engine, struct assignment_order *order)
{
    bool pushed;

    CHECK(order->done != NULL);
    order->item.kind = INBOX_ASSIGNMENT;
    order->item.cost_bytes = sizeof *order;
    pushed = queue_push(engine->inbox, &order->item, QUEUE_RESERVED);
    CHECK(pushed);
}

/* --- offsets and events --------------------------------------------------- */

void partition_wait(struct engine *engine, struct partition_state *partition,
                    const struct identity *identity, int64_t offset)
{
    waits_add(engine->partitions->waits, identity, partition, &partition->waits,
              offset);
}

void partition_settle(struct engine *engine, const struct identity *identity)
{
    struct waits *waits = engine->partitions->waits;

    for (struct wait *wait = waits_of(waits, identity); wait != NULL;
         wait = wait->next) {
        if (wait->is_released) {
            continue;
        }
        waits_release(waits, wait);
        if (wait->offset >= 0) {
            tracker_settle(wait->partition->tracker, wait->offset);
        }
    }
}

bool partition_is_gone(const struct store_entry *entry)
{
    return (entry->record.flags & RECORD_PINS) != 0 &&
           entry->position.stream == 0;
}

static bool is_open_wait(const struct wait *wait)
{
    return !wait->is_released && !wait->partition->is_closing;
}

/* Its partition drains, and the event still closes a hole. */
static bool closes_hole(const struct wait *wait, const struct record *record)
{
    return !wait->is_released && wait->partition->is_closing &&
           wait->offset >= 0 && wait->offset < wait->partition->drain_below &&
           record->state == RECORD_PENDING && record->attempt == 0;
}

bool partition_holds(const struct engine *engine,
                     const struct store_entry *entry)
{
    for (const struct wait *wait =
             waits_of(engine->partitions->waits, &entry->identity);
         wait != NULL; wait = wait->next) {
        if (is_open_wait(wait) || closes_hole(wait, &entry->record)) {
            return true;
        }
    }
    return false;
}

void partition_drop_closing(struct engine *engine,
                            const struct store_entry *entry)
{
    struct waits *waits = engine->partitions->waits;

    for (struct wait *wait = waits_of(waits, &entry->identity); wait != NULL;
         wait = wait->next) {
        if (!wait->is_released && wait->partition->is_closing &&
            !closes_hole(wait, &entry->record)) {
            waits_release(waits, wait);
        }
    }
}

static bool is_at(const struct wait *wait,
                  const struct store_position *position)
{
    return wait->partition->stream == position->stream &&
           wait->partition->assignment->number == position->partition;
}

const struct wait *partition_brought(const struct engine *engine,
                                     const struct identity *identity)
{
    const struct wait *best = NULL;

    for (const struct wait *wait =
             waits_of(engine->partitions->waits, identity);
         wait != NULL; wait = wait->next) {
        if (is_open_wait(wait) && wait->offset >= 0 &&
            (best == NULL || (wait->partition == best->partition &&
                              wait->offset < best->offset))) {
            best = wait;
        }
    }
    return best;
}

bool partition_move(struct engine *engine, struct store_entry *entry,
                    const struct wait *wait, struct err *err)
{
    entry->position = (struct store_position){0, 0, 0};
    if (wait != NULL) {
        entry->position.stream = wait->partition->stream;
        entry->position.partition = wait->partition->assignment->number;
        entry->position.offset = wait->offset;
    }
    engine->batch.dirty = true;
    return store_put(engine->store, entry, err);
}

bool partition_keep_place(struct engine *engine, struct store_entry *entry,
                          struct err *err)
{
    const struct wait *wait =
        waits_of(engine->partitions->waits, &entry->identity);

    while (wait != NULL &&
           !(is_open_wait(wait) && is_at(wait, &entry->position))) {
        wait = wait->next;
    }
    if (wait == NULL) {
        wait = partition_brought(engine, &entry->identity);
        return wait == NULL || partition_move(engine, entry, wait, err);
    }
    return true;
}

enum input_kind partition_fate(const struct engine *engine,
                               const struct store_entry *entry)
{
    for (const struct partition_state *partition = engine->partitions->list;
         partition != NULL; partition = partition->next) {
        if (!partition->is_closing &&
            partition->stream == entry->position.stream &&
            partition->assignment->number == entry->position.partition &&
            entry->position.offset < partition->settled_below) {
            return INPUT_MOVED;
        }
    }
    return INPUT_PARK;
}

/* --- the low-water -------------------------------------------------------- */

bool partition_write(struct engine *engine, struct partition_state *partition,
                     struct err *err)
{
    int64_t low_water = tracker_low_water(partition->tracker);
    struct store_low_water stored = partition->low_water;

    if (low_water <= stored.offset) {
        return true;
    }
    stored.offset = low_water;
    partition->new_low_water = low_water;
    engine->batch.dirty = true;
    MARK(low_water_before_commit);
    return store_put_low_water(engine->store, partition->stream,
                               partition->assignment->number, &stored, err);
}

bool partitions_write(struct engine *engine, struct err *err)
{
    for (struct partition_state *partition = engine->partitions->list;
         partition != NULL; partition = partition->next) {
        if (!partition->is_over && !partition_write(engine, partition, err)) {
            return false;
        }
    }
    return true;
}

/* --- orders --------------------------------------------------------------- */

bool partitions_apply_orders(struct engine *engine, struct err *err)
{
    struct queue_item *item = engine->batch.assignments.head;

    while (item != NULL) {
        struct assignment_order *order = (struct assignment_order *)item;
        bool ok = true;

        if (order->kind == ASSIGNMENT_OPEN) {
            item = partition_open_some(engine, item, &ok, err);
        } else {
            ok = partition_end(engine, order, err);
            item = item->next;
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* --- after the batch ------------------------------------------------------ */

static void tell(struct partition_state *partition)
{
    struct assignment *assignment = partition->assignment;
    int64_t low_water = tracker_low_water(partition->tracker);
    bool moved = atomic_load(&assignment->low_water) != low_water;

    atomic_store(&assignment->unsettled, tracker_length(partition->tracker));
    atomic_store(&assignment->head_since_ms,
                 tracker_head_since_ms(partition->tracker));
    atomic_store(&assignment->low_water, low_water);
    if (moved) {
        assignment->wake(assignment);
    }
}

/* Ids that were seen since the oldest low-water stands may come again. */
static void keep_ids(struct engine *engine)
{
    const struct partitions *partitions = engine->partitions;
    int64_t since_ms = engine->batch.now_ms < partitions->left_until_ms
                           ? partitions->left_since_ms
                           : RECORD_NEVER;

    for (const struct partition_state *partition = partitions->list;
         partition != NULL; partition = partition->next) {
        int64_t head_ms = tracker_head_since_ms(partition->tracker);

        if (head_ms > 0 && head_ms < since_ms) {
            since_ms = head_ms;
        }
    }
    store_keep_since(engine->store, since_ms);
}

void partitions_committed(struct engine *engine)
{
    waits_commit(engine->partitions->waits);
    for (struct partition_state *partition = engine->partitions->list;
         partition != NULL; partition = partition->next) {
        tracker_commit(partition->tracker);
        if (partition->new_low_water >= 0) {
            partition->low_water.offset = partition->new_low_water;
            partition->new_low_water = -1;
        }
        partition->awaited_at = partition->new_awaited_at;
        partition->is_new = false;
        partition->was_open = false;
        partition->old_drain_below = partition->drain_below;
        tell(partition);
    }
    keep_ids(engine);
}

void partitions_wake(struct engine *engine)
{
    for (struct partition_state *partition = engine->partitions->list;
         partition != NULL; partition = partition->next) {
        partition->assignment->wake(partition->assignment);
    }
}

static void finish_drains(struct engine *engine)
{
    for (struct partition_state *partition = engine->partitions->list;
         partition != NULL; partition = partition->next) {
        struct assignment_order *drain = partition->drain;

        if (drain != NULL && partition->waits.first == NULL) {
            partition->drain = NULL;
            drain->low_water = tracker_low_water(partition->tracker);
            drain->done(drain);
        }
    }
}

static void end_order(struct assignment_order *order)
{
    struct partition_state *partition = order->assignment->partition;

    switch (order->kind) {
    case ASSIGNMENT_OPEN:
        order->done(order);
        return;
    case ASSIGNMENT_DRAIN:
        MARK(partition_drained);
        partition->drain = order;
        return;
    case ASSIGNMENT_FENCE:
        order->low_water = tracker_low_water(partition->tracker);
        return; /* is done last: the assignment goes with it */
    }
    UNREACHABLE("every order has returned");
}

static void remove_if(struct engine *engine,
                      bool (*goes)(const struct partition_state *partition))
{
    struct partition_state **at = &engine->partitions->list;

    while (*at != NULL) {
        struct partition_state *partition = *at;

        if (goes(partition)) {
            *at = partition->next;
            free_state(partition);
        } else {
            at = &partition->next;
        }
    }
}

static bool is_over(const struct partition_state *partition)
{
    return partition->is_over;
}

static bool is_new(const struct partition_state *partition)
{
    return partition->is_new;
}

void partitions_release_orders(struct engine *engine)
{
    struct item_list *list = &engine->batch.assignments;
    struct queue_item *item = list->head;
    struct queue_item *fences = NULL;

    list->head = NULL;
    list->tail = &list->head;
    while (item != NULL) {
        struct queue_item *next = item->next;
        struct assignment_order *order = (struct assignment_order *)item;
        bool is_fence = order->kind == ASSIGNMENT_FENCE;

        end_order(order);
        if (is_fence) {
            item->next = fences;
            fences = item;
        }
        item = next;
    }
    finish_drains(engine);
    remove_if(engine, is_over);
    while (fences != NULL) {
        struct assignment_order *order = (struct assignment_order *)fences;

        fences = fences->next;
        order->done(order);
    }
}

void partitions_aborted(struct engine *engine)
{
    waits_abort(engine->partitions->waits);
    remove_if(engine, is_new);
    for (struct partition_state *partition = engine->partitions->list;
         partition != NULL; partition = partition->next) {
        tracker_abort(partition->tracker);
        partition->new_low_water = -1;
        partition->new_awaited_at = partition->awaited_at;
        partition->is_over = false;
        partition->drain_below = partition->old_drain_below;
        if (partition->was_open) {
            partition->is_closing = false;
            partition->was_open = false;
        }
    }
}
