/* SPDX-License-Identifier: MIT */
/*
 * Holds a ledger (ledger.h) against what onced promises.
 *
 *   C1  nothing is lost: what was acknowledged is in the export, and a dead
 *       letter has a reason
 *   C2  no phantoms: an invocation has a valid request of the same content,
 *       sent before it, and an event keeps its content
 *   C3  duplicates are explained: an invocation after the first one of an
 *       event follows a recorded outcome that allows it, an operator's order,
 *       or the crash of the process that held the claim, and each excuse
 *       serves once; on `hold` routes a doubt ends in DEAD(uncertain) and only
 *       an operator goes on; two never overlap in one process
 *   C4  one effect for each run that succeeded; a key belongs to one event and
 *       to one run of it
 *   C5  answers: one 202, then 200; no 2xx to what had to be refused; equal
 *       bodies
 *   C6  offsets: what a group committed never goes back but by a reset, is
 *       committed by the owner of the partition, and lies behind settled
 *       events alone
 *   C7  order: of an ordering key, an event begins after those that were
 *       accepted before it are settled, and never two at a time; those of a
 *       partition were accepted in order of their offsets
 *   C8  the export agrees with the ledger: no event twice or unasked for,
 *       every attempt number accounted for, a success was told by the handler,
 *       runs are as ordered
 *   C9  liveness: after `heal` or `quiet` nothing is unsettled but what waits
 *       behind a dead letter that holds its key, rest came in time, and no
 *       message is left that was not committed
 *
 * C1, C6, C7, C8 and C9 need the export, which a ledger with `quiet` has. What
 * is unsettled at the end is C9's alone. An event is named by (namespace,
 * tenant, id).
 *
 * Every line is looked at a constant number of times, and lists are sorted:
 * 10^6 events take seconds. One thread at a time.
 */
#ifndef CHECKER_CHECKER_H
#define CHECKER_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

enum checker_check {
    CHECKER_C1,
    CHECKER_C2,
    CHECKER_C3,
    CHECKER_C4,
    CHECKER_C5,
    CHECKER_C6,
    CHECKER_C7,
    CHECKER_C8,
    CHECKER_C9,
};
enum { CHECKER_CHECKS = CHECKER_C9 + 1 };

/* The exit codes of onced_checker; a ledger that cannot be read is
 * ERR_DATA (65). */
enum checker_verdict {
    CHECKER_OK = 0,
    CHECKER_UNSAFE = 1, /* any but C9 */
    CHECKER_STUCK = 2,  /* C9 alone */
};

struct event_track;

/* One broken promise. Lives as long as the checker. */
struct checker_finding {
    enum checker_check check;
    const char *why;
    const struct event_track *event; /* NULL: of the run as a whole */
};

/* What was looked at. */
struct checker_summary {
    uint64_t events;       /* that were sent validly */
    uint64_t acknowledged; /* of them */
    uint64_t invocations;
    uint64_t further; /* invocations after the first of an event */
    uint64_t crashes;
    uint64_t orders;
    uint64_t exported;
    uint64_t messages;
    uint64_t committed; /* of them */
    uint64_t moved;     /* events that another worker had, which may have run
                           there, too */
    uint64_t again; /* invocations in a further store: the partition moved */
};

struct checker;

struct checker *checker_new(void);
void checker_free(struct checker **taken);

/* Takes lines in their order, each ended by a newline (the last may lack
 * it), as often as one likes. ERR_DATA, with the number of the line, where one
 * is malformed or contradicts an earlier one (`n` twice, an unknown route,
 * time that goes back): the checker can then only be freed. */
bool checker_feed(struct checker *checker, struct slice lines,
                  struct err *err) MUST_CHECK;

/* Judges what was fed; once. ERR_DATA where a dump has no end. */
bool checker_finish(struct checker *checker, enum checker_verdict *verdict,
                    struct err *err) MUST_CHECK;

/* --- after checker_finish --------------------------------------------------
 */

/* The first findings (at most CHECKER_FINDINGS_MAX are kept; `total` of one
 * check counts all). */
enum { CHECKER_FINDINGS_MAX = 1000 };
const struct checker_finding *checker_findings(const struct checker *checker,
                                               size_t *n);
uint64_t checker_total(const struct checker *checker, enum checker_check check);

struct checker_summary checker_summary(const struct checker *checker);

const char *checker_check_name(enum checker_check check); /* "C1" */

/* "route/id", or "route/tenant/id"; "the run" where there is no event. */
void checker_put_name(const struct event_track *event, struct buf *out);

/* All that the ledger knows of the event, a line each, indented: state, due
 * and reason, tries with their answers, invocations, orders, history. For a
 * stuck event this tells where it is stuck. */
void checker_put_story(const struct event_track *event, struct buf *out);

#endif
