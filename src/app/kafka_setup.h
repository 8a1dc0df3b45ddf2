/* SPDX-License-Identifier: MIT */
/*
 * All of Kafka in one worker, made from its configuration: a producer for
 * each cluster that is written to, a source for each group of a cluster that
 * is read. Nothing of it waits for a broker.
 *
 * Life: new, the handlers, start (once the engine turns), stop_intake, end
 * (while it still turns), free (when the engine and the handlers are gone).
 * One thread.
 */
#ifndef ONCED_APP_KAFKA_SETUP_H
#define ONCED_APP_KAFKA_SETUP_H

#include <stdbool.h>
#include <stddef.h>

#include "app/config.h"
#include "base/err.h"
#include "engine/port.h"
#include "source/kafka.h"
#include "store/store.h"

struct kafka_setup;

/* Warns of a library with known errors. The configuration is the caller's to
 * keep. */
bool kafka_setup_new(struct kafka_setup **out, const struct config *config,
                     struct err *err) MUST_CHECK;

/* The handler of a route that has handler.kafka; the caller's. `route` is its
 * place in the configuration. */
bool kafka_setup_handler(struct kafka_setup *setup, size_t route,
                         struct handler *out, struct err *err) MUST_CHECK;

/* The publisher of a route's dead letters, for the engine; ops NULL: it has
 * none. */
const struct publisher *kafka_setup_publisher(const struct kafka_setup *setup,
                                              size_t route);

struct kafka_setup_start {
    struct engine *engine;
    const struct store *store;
    /* As in struct kafka_source_options. */
    void (*fatal)(void *ctx, const char *why);
    void *fatal_ctx;
};

/* Starts the sources. Where one fails those that run go on: end them. */
bool kafka_setup_start(struct kafka_setup *setup,
                       const struct kafka_setup_start *start,
                       struct err *err) MUST_CHECK;

/* NULL is fine, for each of these. */
void kafka_setup_stop_intake(struct kafka_setup *setup);
/* The sources commit what is settled and go, so that nobody may look at them
 * any more; dead letters that are under way stay in the store. */
void kafka_setup_end(struct kafka_setup *setup);
void kafka_setup_free(struct kafka_setup *setup);

/* Calls `visit` with each source that was started, and the name of its
 * cluster. Any thread, until kafka_setup_end; NULL has none. */
void kafka_setup_each_source(struct kafka_setup *setup,
                             void (*visit)(void *ctx, const char *cluster,
                                           struct kafka_source *source),
                             void *ctx);

#endif
