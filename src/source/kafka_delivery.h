/* SPDX-License-Identifier: MIT */
/*
 * Messages as deliveries: what an event of a message is, and what became of
 * it. Poll thread.
 */
#ifndef ONCED_SOURCE_KAFKA_DELIVERY_H
#define ONCED_SOURCE_KAFKA_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>

#include "source/kafka_shared.h"

/* Builds partition->delivery of the messages that were taken, of at most
 * `max_messages`, and destroys those. False when no message was left that is
 * an event. */
bool kafka_delivery_build(struct kafka_partition *partition,
                          size_t max_messages);

/* Counts the answer of the engine. False when the delivery is to be offered
 * again. */
bool kafka_delivery_settle(struct kafka_partition *partition);

void kafka_delivery_free(struct kafka_delivery **taken);

#endif
