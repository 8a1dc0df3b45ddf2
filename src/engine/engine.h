/* SPDX-License-Identifier: MIT */
/*
 * The loop that makes decisions durable.
 *
 * One thread (or a simulator) calls engine_turn over and over: it takes what
 * has arrived, opens one write transaction, lets the core decide every item,
 * commits once, and only then lets effects out: answers to senders, attempts
 * to handlers, verdicts to operators. No effect leaves before its cause is
 * on disk.
 *
 * Busy slots, waiting callers and breakers are kept in memory and change
 * only after the commit has returned; an aborted batch leaves no trace.
 */
#ifndef ONCED_ENGINE_ENGINE_H
#define ONCED_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/outcome.h"
#include "core/record.h"
#include "engine/port.h"
#include "store/store.h"

enum on_dead_full { DEAD_FULL_STOP_ROUTE, DEAD_FULL_DROP_OLDEST };

/* A route as the engine sees it. Strings are kept by the caller. */
struct engine_route {
    const char *name;
    const char *namespace; /* where ids are compared */
    struct policy policy;
    struct outcome_rules rules;
    struct handler handler; /* ops NULL on a retired route */
    uint32_t concurrency;   /* attempts at one time */
    bool retired;
    struct store_retention retention;
    uint64_t max_dead_bytes;
    enum on_dead_full on_dead_full;
    bool tells_dead; /* its dead letters are published: here where there is a
                        publisher, else by the next process that has one */
    struct publisher publisher; /* ops NULL: none */
};

struct engine_options {
    const struct engine_route *routes; /* copied */
    size_t n_routes;
    /* What partitions belong to: "cluster/topic/group", copied. */
    const char *const *streams;
    size_t n_streams;
    struct store *store; /* the engine is its only user from here on */
    const struct clock *clock;
    uint64_t (*random)(void *self); /* spreads backoff; never decides */
    void *random_self;
    size_t inbox_items; /* ordinary room of the inbox */
    size_t inbox_bytes;
};

/* Refuses (ERR_CONFIG) when the store has unsettled events of a route that
 * is not configured. Recovers: attempts of an earlier process become
 * uncertain, or stay running while their lease is busy. */
bool engine_new(struct engine **out, const struct engine_options *options,
                struct err *err) MUST_CHECK;
void engine_free(struct engine **engine);

/* What a restore did to one route. */
struct engine_restored {
    uint64_t uncertain; /* unsettled events that it made uncertain, */
    uint64_t due;       /* of these: to be attempted or probed, and */
    uint64_t held;      /* of these: dead letters, for a person to resolve */
};

/* Makes a store of a backup, which was opened for it: every unsettled event
 * becomes uncertain under its route's policy, since the original may have run
 * it meanwhile, and the mark that says "backup" goes. `actor` ordered it, as
 * the history says; `counts` has one for each route. Refuses like engine_new.
 * No engine may use the store meanwhile. After a crash, or an error, it is
 * simply called again: the mark goes last. It then counts what was left to
 * do, and what was made due. */
bool engine_restore(const struct engine_options *options, const char *actor,
                    struct engine_restored *counts, struct err *err) MUST_CHECK;

/* One turn. Waits at most `wait_ms` for something to do (< 0: until the next
 * due time; 0: not at all). False only when the store failed: nothing of the
 * batch was acknowledged and the process must end. */
bool engine_turn(struct engine *engine, int64_t wait_ms,
                 struct err *err) MUST_CHECK;

/* Any thread. Ordinary items are refused from here on, no attempt starts. */
void engine_stop_intake(struct engine *engine);

/* Attempts in flight; engine's thread. */
size_t engine_running(const struct engine *engine);

/* Any thread, for /healthz: the engine waits for work, or its last turn ended
 * less than 30 s ago. */
bool engine_is_turning(const struct engine *engine);

/* Any thread: the engine takes new deliveries (it is not stopping). */
bool engine_is_accepting(const struct engine *engine);

/* Any thread; the index of a configured route, or SIZE_MAX. */
size_t engine_route_index(const struct engine *engine, struct slice name);
/* The store's number of a configured route. */
uint16_t engine_route_number(const struct engine *engine, size_t route);

/* Sets the gauges that are taken from the store and the routes; engine's
 * thread, so from the `read` of a command. */
void engine_set_gauges(struct engine *engine);

/* The key that a handler gets: the same for every attempt of a run, also
 * after a restart, and another for every route that handles the event. Pure.
 */
struct downstream_key {
    const char *namespace, *route; /* by name */
    struct slice tenant, id;
    uint32_t run;
};
void engine_downstream_key(const struct downstream_key *of,
                           char out[ATTEMPT_KEY_SIZE]);

/* The values of the second label of the metrics that the engine counts, for
 * metrics_start; each array is NULL-ended. */
extern const char *const engine_attempt_results[];

#endif
