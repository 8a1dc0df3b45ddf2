/* SPDX-License-Identifier: MIT */
/*
 * The Kafka source: a member of one consumer group of one cluster. It hands
 * messages to the engine and commits an offset when the engine has told that
 * every message received below it is settled.
 *
 * One thread (the poll thread) owns the consumer: it takes messages, stores
 * offsets and serves rebalances. It runs no handler, and waits for nobody but
 * inside a rebalance, for a bounded time. Each assigned partition has its own
 * queue inside librdkafka, from which only as many messages are taken as the
 * engine has room for; nothing is ever paused or resumed. Of one partition
 * one delivery at a time is with the engine, so that a delivery that finds no
 * room is offered again before anything that came behind it.
 *
 * An assignment (engine/port.h) is the epoch of its deliveries. A partition
 * that is revoked drains first, then is fenced, then its last low-water is
 * stored. One that was lost is fenced at once and nothing is stored: also
 * where this process finds that it did not run for longer than the group
 * waits for a member, whatever the library says.
 */
#ifndef ONCED_SOURCE_KAFKA_H
#define ONCED_SOURCE_KAFKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "kafka/client.h"
#include "source/value.h"

struct engine;

/* One engine route. Several may name one topic: then one message is one event
 * on each of them. All kept by the caller. */
struct kafka_route {
    size_t engine_route; /* index, also the metrics label */
    const char *name;
    const char *const *topics; /* exact names */
    size_t n_topics;
    struct value id;
    struct value tenant;
    struct value order_by;
};

/* A topic, and its stream of the engine ("cluster/topic/group"). */
struct kafka_stream {
    const char *topic;
    size_t stream;
};

struct kafka_source_options {
    const struct kafka_cluster *cluster;
    const char *group;
    const struct kafka_route *routes; /* all that read in this group there */
    size_t n_routes;
    const struct kafka_stream *streams; /* one for each topic of the routes */
    size_t n_streams;
    /* For each of kafka_source_outcomes its index among the values of the
     * label "outcome" of METRIC_DELIVERIES. */
    const size_t *outcomes;
    /* For group.instance.id, where the cluster does not set it. The cluster
     * may set it to "": the membership is dynamic then. */
    const char *store_id;
    int64_t drain_ms; /* how long a revoked partition may finish its work */
    struct engine *engine;
    const struct clock *clock;
    /* Poll thread, once at most: the consumer cannot go on (another one has
     * its group.instance.id). The process should end. */
    void (*fatal)(void *ctx, const char *why);
    void *fatal_ctx;
};

struct kafka_source;

/* The values of the label "outcome" of METRIC_DELIVERIES that this source
 * counts, one for each event; NULL-ended. */
extern const char *const kafka_source_outcomes[];

/* Starts the thread; waits for no broker. ERR_CONFIG for a configuration that
 * librdkafka does not take. */
bool kafka_source_start(struct kafka_source **out,
                        const struct kafka_source_options *options,
                        struct err *err) MUST_CHECK;

/* No message is taken from here on; what settles is still committed. */
void kafka_source_stop_intake(struct kafka_source *source);

/* Stores and commits the final low-water marks, leaves the group, frees all;
 * the engine has to turn meanwhile. A broker that does not answer is given
 * up after a while: then the offsets of the last second may not be committed,
 * which is harmless. Does nothing to NULL. */
void kafka_source_free(struct kafka_source **taken);

/* --- for /metrics; any thread ----------------------------------------------
 */

struct kafka_partition_view {
    const char *group, *topic;
    int32_t partition;
    int64_t low_water;     /* the next offset to commit; < 0: not known yet */
    int64_t log_end;       /* < 0: not known yet */
    int64_t lag;           /* log_end - low_water; 0 where not known */
    size_t unsettled;      /* received and not below low_water */
    int64_t head_since_ms; /* store time at which the event that holds the
                              low-water was received; 0: none does */
};

/* Calls `visit` for each partition that is assigned now. */
void kafka_source_each_partition(
    struct kafka_source *source,
    void (*visit)(void *ctx, const struct kafka_partition_view *view),
    void *ctx);

/* What happened since the start. */
struct kafka_source_counts {
    uint64_t assigned, revoked, lost; /* rebalances of each kind */
    uint64_t refused;  /* offsets that the library did not store, as their
                          partition had gone */
    uint64_t repeated; /* messages that came twice within an assignment */
    uint64_t rewound;  /* assignments that began below the store's low-water */
    uint64_t gaps;     /* assignments that began with messages deleted */
};

struct kafka_source_counts
kafka_source_count(const struct kafka_source *source);

/* The group of the source; the caller's text of the options. */
const char *kafka_source_group(const struct kafka_source *source);

#endif
