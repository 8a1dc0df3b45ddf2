/* SPDX-License-Identifier: MIT */
/*
 * The message that the kafka handler makes of an attempt. Pure but for
 * memory.
 */
#ifndef ONCED_HANDLER_KAFKA_REQUEST_H
#define ONCED_HANDLER_KAFKA_REQUEST_H

#include "base/bytes.h"
#include "engine/port.h"
#include "handler/kafka.h"

/* Fills key, body, headers and timestamp_ms of `out`, which borrows from the
 * attempt, and from `headers`, which is cleared and filled. */
void kafka_request_build(const struct attempt *attempt, enum kafka_key key,
                         struct buf *headers, struct envelope *out);

/* Whether a header of a webhook may go to a topic, where others read it than
 * those that it was sent to: not what describes the connection, is onced's
 * own, or a credential. */
bool kafka_request_is_passed_on(const struct headers *all, struct slice name);

#endif
