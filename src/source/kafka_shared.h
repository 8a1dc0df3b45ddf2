/* SPDX-License-Identifier: MIT */
/*
 * Inside the Kafka source: one consumer, its topics, its partitions. Poll
 * thread, where nothing else is said.
 */
#ifndef ONCED_SOURCE_KAFKA_SHARED_H
#define ONCED_SOURCE_KAFKA_SHARED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/port.h"
#include "source/kafka.h"

enum {
    KAFKA_TAKE_MAX = 256,          /* messages in one delivery */
    KAFKA_DELIVERY_BYTES = 524288, /* a delivery ends with what goes over */
    KAFKA_UNSETTLED_MAX = 65536,   /* offsets of one partition */
    KAFKA_TOPIC_ID_SIZE = 16,
};

/* In the order of kafka_source_outcomes. */
enum kafka_outcome {
    KAFKA_ACCEPTED,
    KAFKA_DUPLICATE,
    KAFKA_CONFLICT,
    KAFKA_UNDECODABLE,
    KAFKA_NO_ROOM,
    KAFKA_STOPPED_ROUTE,
    KAFKA_FENCED,
    KAFKA_REPEATED,
};
enum { KAFKA_OUTCOMES = KAFKA_REPEATED + 1 };

/* A topic and the routes that it feeds. */
struct kafka_feed {
    const char *topic;
    size_t stream;
    const struct kafka_route **routes;
    size_t n_routes;
};

enum kafka_phase {
    KAFKA_OPENING, /* OPEN is with the engine; nothing is delivered yet */
    KAFKA_OPEN,
    KAFKA_DRAINING, /* DRAIN is with the engine, or was */
    KAFKA_FENCING,  /* FENCE is with the engine */
    KAFKA_OVER,
};

struct kafka_delivery {
    struct delivery delivery; /* first */
    struct kafka_partition *partition;
    struct kafka_delivery *next_back;
    struct buf bytes; /* envelopes, ids and tenants */
    size_t n_messages;
    size_t room_arrivals; /* in delivery.arrivals */
};

/* One assignment of one partition. */
struct kafka_partition {
    struct assignment assignment; /* its context is this */
    struct kafka_source *source;
    const struct kafka_feed *feed;
    rd_kafka_queue_t *queue;
    enum kafka_phase phase;
    struct assignment_order open, drain, fence;
    bool drained;
    bool is_lost;          /* nothing of it is stored any more */
    atomic_bool is_fenced; /* for other threads */
    uint8_t topic_id[KAFKA_TOPIC_ID_SIZE];
    _Atomic int64_t
        committed;     /* of the group, when it was assigned; < 0: nothing */
    int64_t log_start; /* then; < 0: not known */
    _Atomic int64_t log_end; /* the same */
    int64_t highest;         /* offset taken; < 0: none yet */
    int64_t stored;          /* offset that the library was told */
    rd_kafka_message_t *taken[KAFKA_TAKE_MAX]; /* not delivered yet */
    size_t taken_at, n_taken;
    struct kafka_delivery *delivery; /* reused; NULL before the first */
    bool is_built;                   /* to be offered, or with the engine */
    bool is_with_engine;
    int64_t offer_boot_ms; /* not before */
};

/* How often something happened; any thread. */
struct kafka_tally {
    atomic_ullong assigned, revoked, lost, refused, repeated, rewound, gaps;
};

struct kafka_source {
    struct kafka_source_options options;
    struct kafka_feed *feeds;
    size_t n_feeds;
    rd_kafka_t *client;
    pthread_t thread;
    bool has_thread, was_started;
    int wake_fd;
    atomic_bool is_woken;    /* the descriptor was written since it was read */
    atomic_bool is_stopping; /* nothing is taken any more */
    atomic_bool is_ending;   /* the thread ends */
    bool is_closed;          /* the consumer has left its group */
    struct kafka_tally tally;

    /* What the engine gave back. */
    pthread_mutex_t back_lock;
    struct kafka_delivery *answered;
    struct queue_item *done_orders;

    /* Changed by the poll thread under the lock, read by others under it. */
    pthread_mutex_t lock;
    struct kafka_partition **partitions;
    size_t n_partitions;

    uint32_t epoch;     /* of the last assignment that began */
    size_t first;       /* partition that is served first, in turns */
    size_t *unanswered; /* events with the engine, by number of the route */
    size_t n_unanswered;
    int64_t now_ms;         /* boot time, read once a turn */
    int64_t alive_ms;       /* when the thread is known to have run */
    int64_t silence_ms;     /* without a sign of it, its partitions are lost */
    int64_t next_ms;        /* when something is to be offered again */
    bool has_more;          /* it need not wait for a cause */
    bool has_failed;        /* `fatal` was told */
    const char *rejoin_why; /* all is to be fenced and begun anew; or NULL */
    struct buf headers;     /* of the message that is being read */
};

#endif
