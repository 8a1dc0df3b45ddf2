/* SPDX-License-Identifier: MIT */
/*
 * Taking events over from elsewhere: from the dump of a store, or as ids that
 * something else has handled. Offline: no engine may use the store meanwhile.
 *
 * What is settled is taken as it is. What is not becomes uncertain under its
 * route's policy, as after a restore: where the dump came from it may have
 * run since. What the store knows already is never overwritten.
 *
 * From the first commit to the end, and from the first where the load made
 * it, the store carries a mark, by which it is refused to a worker and to
 * every other load (see store_set_loading). Commits come in between: after an
 * error or a crash the same events are simply given again.
 */
#ifndef ONCED_ENGINE_LOAD_H
#define ONCED_ENGINE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"

/* An event as it was elsewhere; all is the caller's. */
struct load_event {
    const char *route, *namespace; /* by name */
    struct slice tenant, id;       /* 1 to STORE_ID_MAX bytes; tenant 0 to */
    struct record record;          /* its route number counts for nothing */
    const char *stream; /* of its message's partition, by name; NULL: of none */
    struct store_position position; /* its stream number counts for nothing */
    const char *code, *text;        /* of a dead letter */
    bool has_envelope, has_result;
    struct slice envelope, result; /* flat forms */
    const struct store_audit *history;
    size_t n_history;
};

/* An id that something else has handled. */
struct load_seen {
    size_t route; /* index into the engine's routes */
    struct slice tenant, id;
    int64_t at_ms; /* when; 0: not told */
};

enum load_verdict {
    LOAD_TAKEN,    /* it is in the store now */
    LOAD_KNOWN,    /* it was there already, the same one */
    LOAD_CONFLICT, /* another one was there under its id, and is left */
};

struct load_counts {
    uint64_t taken, known, conflicts;
    uint64_t uncertain; /* of those taken: were not settled */
};

/* All that an engine relies on, and the route: what load_event would refuse,
 * whatever the store has, is refused here, before anything is stored. `route`
 * is that of the event; NULL: it is not configured. ERR_DATA; ERR_CONFIG: it
 * is not settled, and its route is not configured. */
bool load_check_event(const struct load_event *event,
                      const struct engine_route *route,
                      struct err *err) MUST_CHECK;

struct load;

/* The store was opened for it (options.load). `actor` is for the audit, kept
 * by the caller. Refuses like engine_new. */
bool load_begin(struct load **out, const struct engine_options *options,
                const char *actor, struct err *err) MUST_CHECK;

/* What lies before, and not in time to come, is too old here as well; and the
 * route starts no attempt, as it did not there. */
bool load_forget_until(struct load *load, int64_t until_ms,
                       struct err *err) MUST_CHECK;
bool load_pause(struct load *load, const char *route,
                struct err *err) MUST_CHECK;

/* Events come in order of arrival. Refuses like load_check_event. ERR_AGAIN:
 * no room. After any error only load_keep and load_free are left to call. */
bool load_event(struct load *load, const struct load_event *event,
                enum load_verdict *verdict, struct err *err) MUST_CHECK;

/* A success of run 1 without an attempt and without an envelope: a delivery
 * of it is a repeat, and there is nothing to run again. */
bool load_seen(struct load *load, const struct load_seen *seen,
               enum load_verdict *verdict, struct err *err) MUST_CHECK;

/* All is durable, and the mark is gone. */
bool load_end(struct load *load, struct err *err) MUST_CHECK;

/* Makes durable what came, as far as that goes, for a caller whose source has
 * failed; the mark stays. */
void load_keep(struct load *load);

/* Of what is durable. */
const struct load_counts *load_counts(const struct load *load);

/* What is not durable yet is dropped; fine on NULL. */
void load_free(struct load **at);

#endif
