/* SPDX-License-Identifier: MIT */
/*
 * The kafka handler: writes the event to a topic, and is done when the
 * brokers have it (acks=all). Its messages and what each end of them means
 * are in docs/kafka.md.
 */
#ifndef ONCED_HANDLER_KAFKA_H
#define ONCED_HANDLER_KAFKA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/port.h"
#include "kafka/producer.h"

/* What is the message's key. */
enum kafka_key {
    KAFKA_KEY_ID,    /* the event's id */
    KAFKA_KEY_EVENT, /* that of the message that arrived; null for an event
                        from HTTP, or without a key */
    KAFKA_KEY_NONE,  /* null */
};

struct kafka_handler_options {
    struct kafka_producer *producer; /* outlives the handler */
    const char *topic;
    enum kafka_key key;
    /* As the attempts have it. The library keeps one time-out per topic and
     * producer: where several handlers write to one, the longest counts. */
    int64_t timeout_ms;
};

/* Before the engine starts; copies the options. ERR_CONFIG for the name of the
 * topic. The handler's stop stops the producer, for all
 * that share it. */
bool kafka_handler_new(struct handler *out,
                       const struct kafka_handler_options *options,
                       struct err *err) MUST_CHECK;

/* What the report of a message means for its attempt: how it ended and, for
 * END_STATUS, the status that stands for it. Pure. */
enum attempt_end kafka_attempt_end(enum kafka_sent sent,
                                   rd_kafka_resp_err_t error, int *status);

#endif
