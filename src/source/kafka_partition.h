/* SPDX-License-Identifier: MIT */
/*
 * One assignment of one partition, from its OPEN to its FENCE. Poll thread.
 */
#ifndef ONCED_SOURCE_KAFKA_PARTITION_H
#define ONCED_SOURCE_KAFKA_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/kafka_shared.h"

/* Adds an assignment that begins, and cuts the partition's queue off from the
 * consumer's: before the library is told of the assignment. */
struct kafka_partition *kafka_partition_add(struct kafka_source *source,
                                            const struct kafka_feed *feed,
                                            int32_t number);

/* The one that is not fenced; NULL where there is none. */
struct kafka_partition *kafka_partition_find(struct kafka_source *source,
                                             const char *topic, int32_t number);

/* Orders to the engine. What was not delivered is dropped by DRAIN and FENCE;
 * those that came before are not repeated. */
void kafka_partition_open(struct kafka_partition *partition);
void kafka_partition_drain(struct kafka_partition *partition);
void kafka_partition_fence(struct kafka_partition *partition);

/* The engine is done with an order. */
void kafka_partition_done(struct kafka_partition *partition,
                          const struct assignment_order *order);

/* Takes messages and offers them, as far as there is room. True when there
 * may be more of both. */
bool kafka_partition_serve(struct kafka_partition *partition);

/* The engine answered its delivery. */
void kafka_partition_answered(struct kafka_partition *partition);

/* The offset that the library is to be told, and was not; < 0: none. */
int64_t kafka_partition_unstored(const struct kafka_partition *partition);

/* Removes what is over and with nobody any more. */
void kafka_partition_sweep(struct kafka_source *source);

/* Removes what is left at the very end. What the engine still has, because it
 * did not turn, stays in memory. */
void kafka_partition_clear(struct kafka_source *source);

#endif
