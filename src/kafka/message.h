/* SPDX-License-Identifier: MIT */
/*
 * Messages of librdkafka as envelopes, both ways. Nothing is lost between
 * the two but what the library itself does not carry: a header's name ends
 * at its first NUL byte. Any thread.
 */
#ifndef ONCED_KAFKA_MESSAGE_H
#define ONCED_KAFKA_MESSAGE_H

#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/bytes.h"
#include "core/envelope.h"

/* A view of a consumed message, as an envelope of a Kafka event: it borrows
 * from the message, and from `headers`, which is cleared and filled (give the
 * same buffer again and again: it keeps its room). timestamp_ms is -1 where
 * the message has none. Ready for envelope_encode. */
void kafka_message_open(const rd_kafka_message_t *message,
                        int64_t received_wall_ms, struct buf *headers,
                        struct envelope *out);

/* The headers as the library wants them, copied; NULL where there are none.
 * The caller's: to be given to a message, or destroyed. */
rd_kafka_headers_t *kafka_message_headers(const struct headers *headers);

#endif
