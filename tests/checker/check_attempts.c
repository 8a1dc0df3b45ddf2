/* SPDX-License-Identifier: MIT */
/* C2 and C3: what was invoked, and why more than once. */
#include <inttypes.h>

#include "checker/checker_internal.h"

/* --- C2 --------------------------------------------------------------------
 */

enum origin { ORIGIN_NONE, ORIGIN_INVALID, ORIGIN_OTHER, ORIGIN_FOUND };

/* The best that can be said of where the invocation came from. */
static enum origin origin_of(const struct event_track *event,
                             const struct inv_track *inv)
{
    enum origin best = ORIGIN_NONE;

    for (const struct try_track *try = event->tries;
         try != NULL && best != ORIGIN_FOUND; try = try->next) {
        enum origin this = ORIGIN_FOUND;

        if (try->sent_at > inv->at) {
            continue;
        }
        if (!try->valid) {
            this = ORIGIN_INVALID;
        } else if (!slice_eq(try->hash, inv->hash)) {
            this = ORIGIN_OTHER;
        }
        best = this > best ? this : best;
    }
    return best;
}

static void check_origin(struct checker *checker,
                         const struct event_track *event,
                         const struct inv_track *inv)
{
    static const char *const why[] = {
        [ORIGIN_NONE] = "nobody had sent the event",
        [ORIGIN_INVALID] = "all requests had to be refused",
        [ORIGIN_OTHER] = "no valid request had its content",
        [ORIGIN_FOUND] = NULL,
    };
    enum origin origin = origin_of(event, inv);

    if (origin != ORIGIN_FOUND) {
        report(checker, CHECKER_C2, event,
               "invocation %" PRIu64 " is a phantom: %s", inv->n, why[origin]);
    }
}

void check_content(struct checker *checker, const struct event_track *event)
{
    bool may_change = event->route->conf.respond == LEDGER_RESULT;

    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        check_origin(checker, event, inv);
        if (!may_change && !slice_eq(inv->hash, event->invs->hash)) {
            report(checker, CHECKER_C2, event,
                   "invocation %" PRIu64
                   " has other content than the first one",
                   inv->n);
        }
    }
}

/* --- C3: one at a time ------------------------------------------------------
 */

static void check_overlap(struct checker *checker,
                          const struct inv_track *before,
                          const struct inv_track *inv)
{
    if (before->process == inv->process && before->done_at > inv->at &&
        before->end != LEDGER_END_LOST) {
        report(checker, CHECKER_C3, inv->event,
               "invocation %" PRIu64 " began while %" PRIu64
               " of the same process was under way",
               inv->n, before->n);
    }
}

/* --- C3: by what was seen outside -------------------------------------------
 */

static bool is_held(const struct event_track *event)
{
    return event->route->conf.on_uncertain == LEDGER_HOLD;
}

static bool crashed_before(const struct inv_track *inv, uint64_t at)
{
    return inv->process->crashed_at < at;
}

/* Whether `next` may follow without an operator. */
static bool may_follow(const struct inv_track *inv,
                       const struct inv_track *next)
{
    switch (inv_told(inv)) {
    case TOLD_NOT_APPLIED:
        return true;
    case TOLD_DOUBT:
    case TOLD_NOTHING:
        return !is_held(inv->event);
    case TOLD_SUCCESS:
        break;
    }
    return crashed_before(inv, next->at) && !is_held(inv->event);
}

/* Each order lets one more invocation go. */
static uint64_t orders_to_run(const struct event_track *event)
{
    return count_orders(event, LEDGER_REPLAY) +
           count_orders(event, LEDGER_RERUN) +
           count_orders(event, LEDGER_RESOLVE_NOT_APPLIED);
}

static const char *told_text(const struct inv_track *inv)
{
    switch (inv_told(inv)) {
    case TOLD_NOTHING:
        return "has no known end";
    case TOLD_SUCCESS:
        return "had told success";
    case TOLD_NOT_APPLIED:
        return "had told that nothing was applied";
    case TOLD_DOUBT:
        return "had left a doubt";
    }
    return "";
}

static void check_pairs(struct checker *checker,
                        const struct event_track *event)
{
    uint64_t orders = orders_to_run(event);
    const struct inv_track *before = NULL;

    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        if (before != NULL) {
            check_overlap(checker, before, inv);
        }
        if (before == NULL || may_follow(before, inv)) {
            before = inv;
            continue;
        }
        if (orders > 0) {
            orders--;
        } else {
            report(checker, CHECKER_C3, event,
                   "invocation %" PRIu64 " is unexplained: %" PRIu64
                   " (attempt %" PRIu64 ") %s, %s, and nobody ordered it",
                   inv->n, before->n, before->attempt, told_text(before),
                   is_held(event) ? "the route holds what is uncertain"
                                  : "its process had not crashed");
        }
        before = inv;
    }
}

/* --- C3: by the history ------------------------------------------------------
 */

enum {
    ROWS_ORDERED = ROW_REPLAYED | ROW_RERUN | ROW_NOT_APPLIED,
    ROWS_FREE = ROW_RETRY | ROW_RELEASED,
    ROWS_DOUBT = ROW_UNCERTAIN | ROW_RESTORED,
};

/* Whether the history tells why there was an attempt after this one, and the
 * ledger does not say otherwise. */
static void check_excuse(struct checker *checker,
                         const struct event_track *event, uint64_t attempt)
{
    const struct attempt_facts *facts = &checker->facts[attempt];
    bool crashed = (facts->rows & ROW_CRASHED) != 0 && !is_held(event);
    bool recorded = (facts->rows & ROWS_FREE) != 0 ||
                    ((facts->rows & ROWS_DOUBT) != 0 && !is_held(event));

    if ((facts->rows & ROWS_ORDERED) != 0) {
        return;
    }
    if (crashed && facts->inv != NULL &&
        facts->inv->process->crashed_at == NOT_YET) {
        report(checker, CHECKER_C3, event,
               "attempt %" PRIu64 " is said to have crashed, and process "
               "%" PRIu64 " did not",
               attempt, facts->inv->process->number);
    } else if (!crashed && recorded && facts->inv != NULL &&
               inv_told(facts->inv) == TOLD_SUCCESS) {
        report(checker, CHECKER_C3, event,
               "attempt %" PRIu64 " was tried again, and invocation "
               "%" PRIu64 " had told success",
               attempt, facts->inv->n);
    } else if (!crashed && !recorded) {
        report(checker, CHECKER_C3, event,
               "attempt %" PRIu64 " is unexplained: nothing in the history "
               "lets it follow attempt %" PRIu64,
               attempt + 1, attempt);
    }
}

/* Each such row has a cause outside. */
static void check_caused(struct checker *checker,
                         const struct event_track *event, enum row bit,
                         uint64_t causes)
{
    uint64_t rows = count_rows(event, bit);

    if (rows > causes) {
        report(checker, CHECKER_C3, event,
               "the history tells %" PRIu64 " times of what happened %" PRIu64
               " times at most: \"%s\"",
               rows, causes, row_name(bit));
    }
}

/* A process dies once, so it cuts one attempt of an event short. */
static void check_crashes(struct checker *checker,
                          const struct event_track *event)
{
    const struct process_track *last = NULL;

    check_caused(checker, event, ROW_CRASHED, checker->crashes);
    for (uint64_t i = 1; i <= event->export->attempts; i++) {
        const struct inv_track *inv = checker->facts[i].inv;

        if (inv == NULL || (checker->facts[i].rows & ROW_CRASHED) == 0) {
            continue;
        }
        if (inv->process == last) {
            report(checker, CHECKER_C3, event,
                   "two attempts are said to have crashed with process "
                   "%" PRIu64,
                   inv->process->number);
            return;
        }
        last = inv->process;
    }
}

/* What holds a doubt is dead of it, until an operator says otherwise, or
 * another worker has settled the event. */
static void check_held(struct checker *checker, const struct event_track *event)
{
    enum {
        ENDS = ROWS_ORDERED | ROW_APPLIED | ROW_DISCARDED | ROW_SUCCEEDED |
               ROW_RELEASED | ROW_SETTLED_OTHERWISE,
    };
    const struct ledger_event *export = event->export;
    bool in_doubt = false;

    for (size_t i = 0; i < export->n_rows; i++) {
        unsigned bit = row_bit(&export->rows[i]);

        if ((bit & (ROWS_DOUBT | ROW_CRASHED)) != 0) {
            in_doubt = true;
        } else if ((bit & ENDS) != 0) {
            in_doubt = false;
        }
    }
    if (in_doubt && (export->state != LEDGER_DEAD ||
                     (!slice_eq(export->reason, SLICE("uncertain")) &&
                      !slice_eq(export->reason, SLICE("poison"))))) {
        report(checker, CHECKER_C3, event,
               "in doubt on a route that holds, and not dead of it");
    }
}

static void check_history(struct checker *checker,
                          const struct event_track *event)
{
    for (uint64_t attempt = 1; attempt < event->export->attempts; attempt++) {
        check_excuse(checker, event, attempt);
    }
    check_crashes(checker, event);
    check_caused(checker, event, ROW_REPLAYED,
                 count_orders(event, LEDGER_REPLAY));
    check_caused(checker, event, ROW_RERUN, count_orders(event, LEDGER_RERUN));
    check_caused(checker, event, ROW_RESTORED, checker->restores);
    if (event->route->conf.on_uncertain != LEDGER_PROBE) {
        check_caused(checker, event, ROW_NOT_APPLIED,
                     count_orders(event, LEDGER_RESOLVE_NOT_APPLIED));
        check_caused(checker, event, ROW_APPLIED,
                     count_orders(event, LEDGER_RESOLVE_APPLIED));
    }
    if (is_held(event)) {
        check_held(checker, event);
    }
}

void check_attempts(struct checker *checker, const struct event_track *event)
{
    check_pairs(checker, event);
    if (has_history(event) && lay_out_attempts(checker, event)) {
        check_history(checker, event);
    }
}
