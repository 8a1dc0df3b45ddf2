/* SPDX-License-Identifier: MIT */
/*
 * Writes dead letters to a topic (kafka/dead_letter.h says how they look).
 * A letter that may have been written counts as not: it stands there twice
 * rather than not at all.
 */
#ifndef ONCED_HANDLER_KAFKA_PUBLISHER_H
#define ONCED_HANDLER_KAFKA_PUBLISHER_H

#include <stdbool.h>

#include "engine/port.h"
#include "kafka/producer.h"

struct kafka_publisher_options {
    struct kafka_producer *producer; /* outlives the publisher */
    const char *topic;
    bool want_connect, want_spring; /* their headers, too */
    const char *group; /* of the route's source; NULL: it has none */
};

/* Before the engine starts; copies the options. ERR_CONFIG for the name of the
 * topic. Its stop stops the producer,
 * for all that share it. */
bool kafka_publisher_new(struct publisher *out,
                         const struct kafka_publisher_options *options,
                         struct err *err) MUST_CHECK;

#endif
