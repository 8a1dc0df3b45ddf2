/* SPDX-License-Identifier: MIT */
/*
 * The poll thread: its turns, what wakes it, and what it is handed back.
 */
#ifndef ONCED_SOURCE_KAFKA_LOOP_H
#define ONCED_SOURCE_KAFKA_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "source/kafka_shared.h"

/* Takes source->client, subscribed, to its end. */
bool kafka_loop_start(struct kafka_source *source, struct err *err) MUST_CHECK;

/* Closes the consumer, within a limit of time, and ends the thread. */
void kafka_loop_stop(struct kafka_source *source);

/* Any thread: there is something to do. Many calls are one wake-up. */
void kafka_loop_wake(struct kafka_source *source);

/* Engine's thread: the `answer` of deliveries and the `done` of orders. */
void kafka_loop_answered(struct delivery *delivery);
void kafka_loop_done(struct assignment_order *order);

/* --- poll thread ---------------------------------------------------------- */

/* What arrives on the queue wakes the loop. */
void kafka_loop_watch(struct kafka_source *source, rd_kafka_queue_t *queue);

/* A turn is due by then, whatever happens. */
void kafka_loop_at(struct kafka_source *source, int64_t boot_ms);

/* The thread runs. When it did not for so long that its partitions may be
 * another's by now, they are all fenced before anything else is done; false
 * then. */
bool kafka_loop_alive(struct kafka_source *source);

/* Serves what comes back from the engine until `is_met`, for at most `for_ms`;
 * true when it is. For rebalances, which have to wait. */
bool kafka_loop_await(struct kafka_source *source,
                      bool (*is_met)(const struct kafka_source *source),
                      int64_t for_ms);

/* The library ended the consumer for good: tells the owner, once. */
void kafka_loop_fail(struct kafka_source *source);

/* Tells the library the offsets that may be committed. */
void kafka_loop_store(struct kafka_source *source);

#endif
