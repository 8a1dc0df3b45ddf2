/* SPDX-License-Identifier: MIT */
/*
 * What the end of an attempt proves. A handler reports the fact (an answer
 * with a status, an exit status, a signal, a time-out …); the route's rules
 * say what follows from it. The table is in docs/config.md, "Handlers". Pure.
 */
#ifndef ONCED_CORE_OUTCOME_H
#define ONCED_CORE_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an attempt ended, as the handler saw it. */
enum attempt_end {
    END_STATUS,    /* a complete HTTP answer; status is set */
    END_EXIT,      /* the process exited; status is its exit status */
    END_SIGNAL,    /* the process died by a signal; status is its number */
    END_TIMEOUT,   /* no end within the time limit; the effect is unknown */
    END_BROKEN,    /* the connection broke, or garbage came, after sending */
    END_UNREACHED, /* never carried a byte: spawn, DNS, connect, TLS failed */
};

enum outcome {
    OUTCOME_SUCCESS,
    OUTCOME_REFUSED,   /* 401, 404 …: a matter of set-up, nothing applied */
    OUTCOME_TRANSIENT, /* proof of no effect; counts as a try */
    OUTCOME_REJECTED,  /* the handler's final no to this event */
    OUTCOME_UNREACHED, /* transient, counts for no limit */
    OUTCOME_UNKNOWN,   /* may have taken effect */
};

/* Which kind of caller the route serves: the same status may mean different
 * things (a 302 is an answer to a client, but no success to a webhook). */
enum respond_mode {
    RESPOND_ACCEPTED, /* also Kafka routes */
    RESPOND_RESULT,
    RESPOND_HANDLED,
};

enum { OUTCOME_STATUSES_MAX = 32 };

struct outcome_rules {
    enum respond_mode respond;
    /* Statuses that the route declares, in place of the defaults. A list of
     * one's own is looked at before anything else, not_applied first, and may
     * name any status: in not_applied it is TRANSIENT, in final REJECTED. What
     * the default list had (408 409 421 425 429; the 4xx that are neither
     * those nor a matter of set-up) and this one has not proves nothing any
     * more: UNKNOWN. */
    uint16_t not_applied[OUTCOME_STATUSES_MAX];
    size_t n_not_applied;
    bool has_not_applied;
    uint16_t final[OUTCOME_STATUSES_MAX];
    size_t n_final;
    bool has_final;
};

/* `status` counts for END_STATUS (where the lists apply) and END_EXIT. */
enum outcome outcome_of(const struct outcome_rules *rules, enum attempt_end end,
                        int status);

/* Stable lower-case names for logs, metrics and history. */
const char *outcome_name(enum outcome outcome);
const char *attempt_end_name(enum attempt_end end);

#endif
