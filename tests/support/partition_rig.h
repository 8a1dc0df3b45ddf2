/* SPDX-License-Identifier: MIT */
/*
 * A source with partitions, in a world: it gives the engine orders and looks
 * at what comes back. One source file of a test includes it.
 */
#ifndef ONCED_TEST_PARTITION_RIG_H
#define ONCED_TEST_PARTITION_RIG_H

#include <stdbool.h>
#include <string.h>

#include "base/check.h"
#include "engine/partition.h"
#include "support/world.h"

enum { ORDER_KINDS = ASSIGNMENT_FENCE + 1, RIG_STREAM = 1 };

/* The world's only stream; it is number 1 in the store. */
static const char *const rig_streams[] = {"default/t/g"};

struct part {
    struct assignment assignment; /* first */
    struct assignment_order orders[ORDER_KINDS];
    unsigned done[ORDER_KINDS];
    unsigned n_done;
    unsigned last_done; /* kind of the last one */
    unsigned wakes;
};

static inline void part_wake(struct assignment *assignment)
{
    struct part *part = (struct part *)assignment;

    CHECK(part->done[ASSIGNMENT_FENCE] == 0);
    part->wakes++;
}

static inline void part_done(struct assignment_order *order)
{
    struct part *part = (struct part *)order->assignment;

    CHECK(order == &part->orders[order->kind]);
    CHECK(part->done[ASSIGNMENT_FENCE] == 0);
    part->done[order->kind]++;
    part->last_done = order->kind;
    part->n_done++;
}

/* A new assignment of the partition; OPEN says nothing but `committed`. */
static inline void part_init(struct part *part, int32_t number,
                             int64_t committed)
{
    memset(part, 0, sizeof *part);
    part->assignment.number = number;
    part->assignment.wake = part_wake;
    part->assignment.low_water = -1;
    for (unsigned kind = 0; kind < ORDER_KINDS; kind++) {
        part->orders[kind] = (struct assignment_order){
            .kind = (enum assignment_order_kind)kind,
            .assignment = &part->assignment,
            .committed = committed,
            .log_start = -1,
            .log_end = -1,
            .done = part_done,
        };
    }
}

/* Gives the order and turns; whether it is done. */
static inline bool part_order(struct world *world, struct part *part,
                              enum assignment_order_kind kind)
{
    engine_assign(world->engine, &part->orders[kind]);
    world_turn(world);
    return part->done[kind] == 1;
}

static inline void part_open(struct world *world, struct part *part,
                             int32_t number, int64_t committed)
{
    part_init(part, number, committed);
    CHECK(part_order(world, part, ASSIGNMENT_OPEN));
}

/* Brings one message and turns. */
static inline enum delivery_answer part_bring(struct world *world,
                                              struct part *part, int64_t offset,
                                              const char *id)
{
    const struct message message = {
        .assignment = &part->assignment, .offset = offset, .id = id};
    struct sent *sent = world_bring(world, &message, 1);
    enum delivery_answer result;

    world_turn(world);
    result = sent->delivery.result;
    sent_free(sent);
    return result;
}

/* --- what is in the store ------------------------------------------------- */

struct rig_look {
    struct world *world;
    int32_t partition;
    struct store_low_water low_water;
    bool found;
    struct store_entry entry;
    unsigned loose; /* unsettled events that nothing moves on */
};

static inline void rig_looked(struct command *command)
{
    (void)command;
}

static inline void rig_read(struct rig_look *look, size_t route, const char *id,
                            void (*read)(void *ctx, struct store *store,
                                         struct store_entry *entry))
{
    struct command command = {
        .kind = COMMAND_READ,
        .actor = "",
        .route = route,
        .id = slice_of(id),
        .read = read,
        .ctx = look,
        .done = rig_looked,
    };

    CHECK(engine_command(look->world->engine, &command));
    world_turn(look->world);
}

static inline void rig_read_low_water(void *ctx, struct store *store,
                                      struct store_entry *entry)
{
    struct rig_look *look = ctx;
    struct err err;

    (void)entry;
    look->found = store_get_low_water(store, RIG_STREAM, look->partition,
                                      &look->low_water, &err) == STORE_FOUND;
}

/* Offset -1 where there is none. */
static inline struct store_low_water rig_stored(struct world *world,
                                                int32_t partition)
{
    struct rig_look look = {.world = world, .partition = partition};

    rig_read(&look, SIZE_MAX, "", rig_read_low_water);
    if (!look.found) {
        look.low_water = (struct store_low_water){.offset = -1};
    }
    return look.low_water;
}

static inline void rig_read_entry(void *ctx, struct store *store,
                                  struct store_entry *entry)
{
    (void)store;
    ((struct rig_look *)ctx)->entry = *entry;
}

static inline struct store_entry rig_entry(struct world *world, size_t route,
                                           const char *id)
{
    struct rig_look look = {.world = world};

    rig_read(&look, route, id, rig_read_entry);
    return look.entry;
}

static inline void rig_count_loose(void *ctx, struct store *store,
                                   struct store_entry *entry)
{
    struct rig_look *look = ctx;
    struct store_entry at;
    struct err err;

    (void)entry;
    for (size_t i = 0; i < WORLD_ROUTES; i++) {
        uint16_t route = engine_route_number(look->world->engine, i);
        enum record_state state = RECORD_PENDING;
        int64_t due_ms = INT64_MIN;
        uint64_t seq = 0;

        while (store_next_unsettled(store, route, &state, &due_ms, &seq, &at,
                                    &err) == STORE_FOUND) {
            bool pins = (at.record.flags & RECORD_PINS) != 0;
            bool parked = (at.record.flags & RECORD_PARKED) != 0;

            look->loose += pins && !parked &&
                                   at.record.state != RECORD_RUNNING &&
                                   !partition_holds(look->world->engine, &at)
                               ? 1
                               : 0;
        }
    }
}

/* Events that pin, are neither running nor parked, and that no open
 * assignment holds: there are none at any time. */
static inline unsigned rig_loose(struct world *world)
{
    struct rig_look look = {.world = world};

    rig_read(&look, SIZE_MAX, "", rig_count_loose);
    return look.loose;
}

#endif
