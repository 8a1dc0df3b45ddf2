/* SPDX-License-Identifier: MIT */
/*
 * What every source computes of an event in the same way, so that one that
 * comes by HTTP and by Kafka is the same event. Pure.
 */
#ifndef ONCED_SOURCE_EVENT_H
#define ONCED_SOURCE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/envelope.h"
#include "core/record.h"
#include "source/value.h"

/* Of the content as it came. */
void event_fingerprint(struct slice body, struct fingerprint *out);

/* Of the value that orders events; never 0, which means no order. */
uint64_t event_order_key(struct slice value);

/* Appends the value of the expression as the id, or the tenant. False where
 * there is none, or none that can be one: *why, static text, tells, and the
 * bytes are as before. */
bool event_read_name(const struct value *value, const struct envelope *envelope,
                     struct buf *bytes, const char **why);

/* The ordering key: 0 where the event has no such value, or the route no such
 * order. False where it cannot be read: *why tells. `scratch` is as before. */
bool event_read_order(const struct value *value,
                      const struct envelope *envelope, struct buf *scratch,
                      uint64_t *key, const char **why);

#endif
