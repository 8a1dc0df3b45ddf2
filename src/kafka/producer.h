/* SPDX-License-Identifier: MIT */
/*
 * The idempotent producer of one cluster (acks=all), shared by everything
 * that writes to that cluster. One thread of its own builds the messages,
 * hands them to librdkafka and takes the delivery reports; nobody else
 * touches the library. When the library ends a producer for good (a fatal
 * error), the thread makes another one, and what was under way is reported
 * by what is known of it.
 *
 * Whoever opens it frees it, when those who write to it are gone.
 */
#ifndef ONCED_KAFKA_PRODUCER_H
#define ONCED_KAFKA_PRODUCER_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/bytes.h"
#include "base/err.h"
#include "core/envelope.h"
#include "kafka/client.h"

struct kafka_producer;
struct kafka_topic;

/* What a delivery report proves. */
enum kafka_sent {
    KAFKA_SENT,      /* in the log of the partition, on all replicas */
    KAFKA_NOT_SENT,  /* never reached the log; may do so another time */
    KAFKA_REFUSED,   /* never reached the log, and will not as things are */
    KAFKA_MAYBE_SENT /* handed to a broker, no answer */
};

/* One message on its way. */
struct kafka_send {
    struct kafka_topic *topic;
    /* Producer's thread, once: fills `message` (of which key, body, headers
     * and timestamp_ms count; the timestamp is now where that is <= 0) from
     * what it keeps until `done`. */
    void (*build)(struct kafka_send *send);
    /* Producer's thread (or that of kafka_producer_send and _stop, once it is
     * stopped): takes back. Must not block. */
    void (*done)(struct kafka_send *send);
    struct envelope message;
    /* out */
    enum kafka_sent sent;
    rd_kafka_resp_err_t error; /* NO_ERROR where it is SENT */
    int32_t partition;
    int64_t offset; /* < 0: not told (the broker had it from an earlier try) */
    /* the producer's own */
    struct kafka_send *next;
};

/* Starts it; needs no broker. The settings of the cluster are copied. */
bool kafka_producer_new(struct kafka_producer **out,
                        const struct kafka_cluster *cluster,
                        struct err *err) MUST_CHECK;

/* The topic of that name, kept by the producer; ERR_CONFIG where Kafka allows
 * no such name. After `timeout_ms` a message
 * that has no report is given up. The library keeps one such time per topic:
 * where several write to one, the longest counts. Before the first message is
 * sent to it; not thread-safe. */
bool kafka_producer_topic(struct kafka_producer *producer, const char *name,
                          int64_t timeout_ms, struct kafka_topic **out,
                          struct err *err) MUST_CHECK;

/* Messages and their overhead larger than this are refused by the library
 * (message.max.bytes). */
size_t kafka_producer_max_bytes(const struct kafka_producer *producer);

/* Any thread; takes the message, never blocks. After kafka_producer_stop it
 * is done at once, NOT_SENT. */
void kafka_producer_send(struct kafka_producer *producer,
                         struct kafka_send *send);

/* Gives up all that has no report yet; each is done before it returns. For
 * all who share the producer. Again is fine. Not on its thread. */
void kafka_producer_stop(struct kafka_producer *producer);

/* Stops it first; NULL is fine. */
void kafka_producer_free(struct kafka_producer *producer);

/* Which of the four it is, by the library's error and what it says of the
 * message (rd_kafka_message_status). Pure. */
enum kafka_sent kafka_sent_of(rd_kafka_resp_err_t error,
                              rd_kafka_msg_status_t status);

#endif
