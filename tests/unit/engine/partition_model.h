/* SPDX-License-Identifier: MIT */
/*
 * Two partitions as a broker has them, what the store says of their events,
 * and what each assignment may commit: every offset that was received and is
 * not settled holds it. For test_partition_random.c, which includes it.
 */
#ifndef ONCED_TEST_PARTITION_MODEL_H
#define ONCED_TEST_PARTITION_MODEL_H

#include <criterion/criterion.h>
#include <stdint.h>

#include "support/partition_rig.h"
#include "support/world.h"

enum { PARTS = 2, LOG = 30, IDS = 20 };
enum { LAST = LOG, MESSAGES = LOG + 1, NUMBERS = IDS + PARTS };

enum progress { NOT_RECEIVED, OPEN, DROPPED, SETTLED };

/* A partition on the broker, and as this worker has it. */
struct log {
    int64_t offset[MESSAGES];
    int number[MESSAGES]; /* of the id */
    bool is_removed[MESSAGES];
    size_t n;
    int64_t committed, stored;
    struct part part;
    bool is_assigned, is_draining;
    int64_t began;
    size_t next;
    enum progress progress[MESSAGES][WORLD_ROUTES];
    uint32_t attempt[MESSAGES][WORLD_ROUTES]; /* that a drain waits for */
};

static struct world world;
static struct log logs[PARTS];
static uint64_t seed;

/* Some messages are an event on both routes. */
static inline bool is_for(int number, size_t route)
{
    return number % 4 == 0 || (size_t)(number % 2) == route;
}

/* --- one look at the store -------------------------------------------------
 */

static struct store_entry seen[NUMBERS][WORLD_ROUTES];
static struct store_low_water seen_low_water[PARTS];

static inline void see_all(void *ctx, struct store *store,
                           struct store_entry *none)
{
    struct err err;

    (void)none;
    for (int number = 0; number < NUMBERS; number++) {
        for (size_t route = 0; route < WORLD_ROUTES; route++) {
            cr_assert_neq(store_find(store,
                                     world.engine->routes[route].namespace,
                                     SLICE(""), slice_of(world_id(number)),
                                     &seen[number][route], &err),
                          STORE_FAILED);
        }
    }
    for (int32_t part = 0; part < PARTS; part++) {
        seen_low_water[part].offset = -1;
        cr_assert_neq(store_get_low_water(store, RIG_STREAM, part,
                                          &seen_low_water[part], &err),
                      STORE_FAILED);
    }
    rig_count_loose(ctx, store, NULL);
}

/* Turns, too; the number of events that nothing moves on. */
static inline unsigned look(void)
{
    struct rig_look look = {.world = &world};

    rig_read(&look, SIZE_MAX, "", see_all);
    return look.loose;
}

static inline const struct record *record_of(int number, size_t route)
{
    return &seen[number][route].record;
}

/* --- what the model expects ------------------------------------------------
 */

/* Of what did not begin a drain keeps some, to close holes. */
static inline bool is_kept(const struct log *log, size_t i, size_t route)
{
    const struct wait *wait = waits_of(world.engine->partitions->waits,
                                       &seen[log->number[i]][route].identity);

    while (wait != NULL &&
           (wait->partition->assignment != &log->part.assignment ||
            wait->offset != log->offset[i])) {
        wait = wait->next;
    }
    return wait != NULL;
}

/* It lets go of what does not run, or did not for a moment. */
static inline bool is_dropped(struct log *log, size_t i, size_t route)
{
    const struct record *record = record_of(log->number[i], route);
    uint32_t *attempt = &log->attempt[i][route];

    if (!log->is_draining) {
        return false;
    }
    if (*attempt == 0) {
        *attempt = record->attempt;
    }
    if (record->attempt == 0 && is_kept(log, i, route)) {
        return false;
    }
    return record->state != RECORD_RUNNING || record->attempt != *attempt;
}

static inline void note_progress(struct log *log, size_t i, size_t route)
{
    enum progress *progress = &log->progress[i][route];

    if (*progress != OPEN) {
        return;
    }
    if (record_is_settled(record_of(log->number[i], route))) {
        *progress = SETTLED;
    } else if (is_dropped(log, i, route)) {
        *progress = DROPPED; /* it is parked, or waits elsewhere */
    }
}

static inline bool is_open(const struct log *log, size_t i)
{
    for (size_t route = 0; route < WORLD_ROUTES; route++) {
        if (log->progress[i][route] == OPEN ||
            log->progress[i][route] == DROPPED) {
            return true;
        }
    }
    return false;
}

static inline bool is_received(const struct log *log, size_t i)
{
    return log->progress[i][0] != NOT_RECEIVED ||
           log->progress[i][1] != NOT_RECEIVED;
}

/* Every received offset below it is settled. */
static inline int64_t low_water_of(struct log *log, size_t *unsettled)
{
    int64_t low_water = log->began;
    bool is_held = false;

    *unsettled = 0;
    for (size_t i = 0; i < log->n; i++) {
        note_progress(log, i, 0);
        note_progress(log, i, 1);
        if (!is_received(log, i)) {
            continue;
        }
        if (!is_held && is_open(log, i)) {
            is_held = true;
            low_water = log->offset[i];
        }
        if (!is_held) {
            low_water = log->offset[i] + 1;
        }
        *unsettled += is_held ? 1 : 0;
    }
    return low_water;
}

static inline void check_log(struct log *log)
{
    const struct assignment *assignment = &log->part.assignment;
    size_t unsettled;
    int64_t low_water;

    if (!log->is_assigned) {
        return;
    }
    low_water = low_water_of(log, &unsettled);
    cr_assert_eq(assignment->low_water, low_water, "seed %llu: %lld, not %lld",
                 (unsigned long long)seed, (long long)assignment->low_water,
                 (long long)low_water);
    cr_assert_eq(assignment->unsettled, unsettled, "seed %llu",
                 (unsigned long long)seed);
    cr_assert_eq(assignment->head_since_ms == 0, unsettled == 0);
    if (log->stored < low_water) {
        log->stored = low_water;
    }
    cr_assert_eq(seen_low_water[assignment->number].offset, log->stored,
                 "seed %llu", (unsigned long long)seed);
}

#endif
