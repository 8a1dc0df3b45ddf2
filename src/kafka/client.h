/* SPDX-License-Identifier: MIT */
/*
 * What all parts that talk to Kafka share of librdkafka: how a client is
 * configured. Our defaults come first, then the properties as the user wrote
 * them, then what the promises of onced need; a property that would break one
 * of them is refused by name. What librdkafka has to say goes to our log.
 *
 * Works with librdkafka from 2.0.2 on; defaults differ with the version that
 * it is compiled against, where a version has a trap. Any thread.
 */
#ifndef ONCED_KAFKA_CLIENT_H
#define ONCED_KAFKA_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include <librdkafka/rdkafka.h>

#include "base/err.h"

/* One cluster as configured: librdkafka's properties, name and value. Kept by
 * the caller. */
struct kafka_cluster {
    const char *name; /* "default" where it has none of its own */
    const char *const (*settings)[2];
    size_t n_settings;
};

enum kafka_use {
    KAFKA_USE_CONSUMER, /* member of a group: the source */
    KAFKA_USE_PRODUCER, /* idempotent, acks=all */
    KAFKA_USE_READER,   /* reads a topic once, in no group; told of its end */
};

/* Why the property may not be set like that for that use, in words; NULL: it
 * may, as far as onced is concerned. */
const char *kafka_refused(enum kafka_use use, const char *name,
                          const char *value);

/* Whether the value of a property is never shown: passwords, keys, tokens. */
bool kafka_is_secret(const char *name);

/* A configuration for rd_kafka_new, which takes it where it succeeds; else
 * the caller destroys it. ERR_CONFIG names the property that is refused, not
 * known, or has a bad value; no secret is in the text. */
bool kafka_conf_new(rd_kafka_conf_t **out, enum kafka_use use,
                    const struct kafka_cluster *cluster,
                    struct err *err) MUST_CHECK;

/* One more property, of our own making (group.id, a time-out): for after
 * kafka_conf_new. */
void kafka_conf_force(rd_kafka_conf_t *conf, const char *name,
                      const char *value);

/* The cluster's setting of the property; NULL where it has none. */
const char *kafka_cluster_setting(const struct kafka_cluster *cluster,
                                  const char *name);

/* What is known to be wrong with the librdkafka that runs, as the text of a
 * warning; NULL where nothing is. */
const char *kafka_version_problem(void);

#endif
