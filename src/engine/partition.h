/* SPDX-License-Identifier: MIT */
/*
 * Partitions that are assigned to this process: which events their offsets
 * wait for, and how far each is settled.
 *
 * An event that only a partition brought is run here while one of its offsets
 * waits in an open assignment, and is parked otherwise. The low-water of a
 * partition is written in the transaction that settles what moves it; memory
 * follows after the commit. Engine's thread.
 */
#ifndef ONCED_ENGINE_PARTITION_H
#define ONCED_ENGINE_PARTITION_H

#include "engine/internal.h"
#include "engine/tracker.h"
#include "engine/waits.h"

/* An event of the store that is at or behind the group's offset: the broker
 * brings it again, or has it no more. */
struct awaited {
    int64_t offset;
    struct identity identity;
};

struct partition_state {
    struct assignment *assignment;
    struct tracker *tracker;
    struct wait_list waits;
    uint16_t stream;       /* number in the store */
    int64_t settled_below; /* of the group, when it began; < 0: nothing */
    struct store_low_water low_water; /* as stored; offset < 0: not yet */
    int64_t new_low_water;            /* of the batch; < 0: it did not move */
    struct awaited *awaited;          /* by offset */
    size_t n_awaited, room_awaited;
    size_t awaited_at, new_awaited_at; /* those before it are done */
    struct assignment_order *drain;    /* to be done when nothing waits */
    bool is_closing;     /* nothing of it starts any more, but what */
    int64_t drain_below; /* closes holes: first attempts below that offset */
    bool is_over;
    /* in this batch */
    bool is_new;
    bool was_open; /* it is closing since then */
    int64_t old_drain_below;
    struct partition_state *next;
};

struct partitions {
    struct partition_state *list;
    struct waits *waits;
    uint16_t *streams; /* their numbers in the store */
    size_t n_streams;
    /* The oldest event that an earlier process left pinning, and until when
     * its partition may be on the way back. */
    int64_t left_since_ms, left_until_ms;
};

/* --- partition.c --------------------------------------------------------- */

/* Names the streams in the store. */
bool partitions_build(struct engine *engine,
                      const struct engine_options *options,
                      struct err *err) MUST_CHECK;
void partitions_free(struct engine *engine);

/* The orders of the batch, and what the batch settled, inside the
 * transaction. */
bool partitions_apply_orders(struct engine *engine, struct err *err) MUST_CHECK;
bool partitions_write(struct engine *engine, struct err *err) MUST_CHECK;
/* After the commit; the orders are given back by the second, when all that
 * the batch did is known to others. */
void partitions_committed(struct engine *engine);
void partitions_release_orders(struct engine *engine);
void partitions_aborted(struct engine *engine);
/* There is more room on a route. */
void partitions_wake(struct engine *engine);

/* An offset waits for the event, before it is stepped. */
void partition_wait(struct engine *engine, struct partition_state *partition,
                    const struct identity *identity, int64_t offset);

/* The event is settled: so is each offset that waits for it. */
void partition_settle(struct engine *engine, const struct identity *identity);

/* The event waits to be run: what goes does not wait for it. */
void partition_drop_closing(struct engine *engine,
                            const struct store_entry *entry);

/* Whether no partition brings it any more, although it pins: its message was
 * passed over while it ran, and its position taken from it. */
bool partition_is_gone(const struct store_entry *entry);

/* Whether an offset of an open assignment waits for the event. */
bool partition_holds(const struct engine *engine,
                     const struct store_entry *entry);

/* The wait of a delivery that brought the event, the first of its partition.
 * NULL: none did. */
const struct wait *partition_brought(const struct engine *engine,
                                     const struct identity *identity);

/* Its position is where `wait` is; NULL: nowhere. */
bool partition_move(struct engine *engine, struct store_entry *entry,
                    const struct wait *wait, struct err *err) MUST_CHECK;

/* The position of an event is one that waits for it: another, where its own
 * does no more. */
bool partition_keep_place(struct engine *engine, struct store_entry *entry,
                          struct err *err) MUST_CHECK;

/* What has become of an event that is not settled and that nothing holds:
 * its partition went on without this store, INPUT_MOVED; else INPUT_PARK. */
enum input_kind partition_fate(const struct engine *engine,
                               const struct store_entry *entry);

/* The low-water, where it moved. */
bool partition_write(struct engine *engine, struct partition_state *partition,
                     struct err *err) MUST_CHECK;

/* --- partition_end.c ----------------------------------------------------- */

/* ASSIGNMENT_DRAIN and ASSIGNMENT_FENCE. */
bool partition_end(struct engine *engine, struct assignment_order *order,
                   struct err *err) MUST_CHECK;

/* --- partition_open.c ---------------------------------------------------- */

/* ASSIGNMENT_OPEN of `order` and of those that follow it, in one scan;
 * returns the first that is another. NULL: none, or `err` where *ok is
 * false. */
struct queue_item *partition_open_some(struct engine *engine,
                                       struct queue_item *order, bool *ok,
                                       struct err *err);

/* A message at `offset` was received: what the broker was to bring up to it,
 * and did not, it has no more. */
bool partition_pass_awaited(struct engine *engine,
                            struct partition_state *partition, int64_t offset,
                            struct err *err) MUST_CHECK;

/* Parks what an earlier process left unsettled, and counts the load of the
 * routes; in transactions of its own. */
bool partitions_recover(struct engine *engine, struct err *err) MUST_CHECK;

#endif
