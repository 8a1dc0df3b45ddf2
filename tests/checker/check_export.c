/* SPDX-License-Identifier: MIT */
/* C8: the export agrees with the ledger. */
#include <inttypes.h>

#include "checker/checker_internal.h"

static uint64_t count_valid(const struct event_track *event, bool *has_drift)
{
    struct slice hash = {NULL, 0};
    uint64_t n = 0;

    *has_drift = false;
    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        if (!try->valid) {
            continue;
        }
        if (n++ == 0) {
            hash = try->hash;
        }
        *has_drift |= !slice_eq(hash, try->hash);
    }
    return n;
}

/* A message is delivered again as often as its partition is assigned. */
static bool has_message(const struct event_track *event)
{
    const struct try_track *try = event->tries;

    while (try != NULL && try->part == NULL) {
        try = try->next;
    }
    return try != NULL;
}

static void check_deliveries(struct checker *checker,
                             const struct event_track *event)
{
    const struct ledger_event *export = event->export;
    bool has_drift;
    uint64_t valid = count_valid(event, &has_drift);

    if (valid == 0) {
        report(checker, CHECKER_C8, event,
               "it is in the export, and nobody sent it validly");
    } else if (export->deliveries > valid && !has_message(event)) {
        report(checker, CHECKER_C8, event,
               "%" PRIu64 " deliveries were counted of %" PRIu64
               " valid requests",
               export->deliveries, valid);
    }
    if (export->drift > 0 && !has_drift && valid > 0) {
        report(checker, CHECKER_C8, event,
               "a drift was counted, and all requests had one content");
    }
}

static void check_run_count(struct checker *checker,
                            const struct event_track *event)
{
    uint64_t run = event->export->run;
    uint64_t least = 1 + count_orders_done(event, LEDGER_RERUN);
    uint64_t most = 1 + count_orders(event, LEDGER_RERUN);

    if (run < least || run > most) {
        report(checker, CHECKER_C8, event,
               "it is at run %" PRIu64 ", ordered were %" PRIu64 " to %" PRIu64,
               run, least, most);
    }
}

/* Each number is used once, and grows. */
static void check_numbers(struct checker *checker,
                          const struct event_track *event)
{
    uint64_t last = 0;

    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        if (inv->attempt <= last) {
            report(checker, CHECKER_C8, event,
                   "invocation %" PRIu64 " is attempt %" PRIu64
                   ", after attempt %" PRIu64,
                   inv->n, inv->attempt, last);
            return;
        }
        last = inv->attempt;
    }
    if (event->export != NULL && last > event->export->attempts) {
        report(checker, CHECKER_C8, event,
               "attempt %" PRIu64 " was invoked, and the export counts "
               "%" PRIu64,
               last, event->export->attempts);
    }
}

/* An attempt that no handler saw has left a row that tells why. */
static void check_unseen(struct checker *checker,
                         const struct event_track *event)
{
    enum {
        EXPLAINS = ROW_CRASHED | ROW_RETRY | ROW_UNCERTAIN | ROW_RELEASED |
                   ROW_RESTORED | ROW_PROBE | ROW_DEAD,
    };
    const struct ledger_event *export = event->export;

    for (uint64_t i = 1; i <= export->attempts; i++) {
        const struct attempt_facts *facts = &checker->facts[i];
        bool is_open = i == export->attempts && !event_is_settled(export);

        if (facts->inv == NULL && !is_open && (facts->rows & EXPLAINS) == 0) {
            report(checker, CHECKER_C8, event,
                   "attempt %" PRIu64 " was counted, no handler saw it, and "
                   "the history does not say why",
                   i);
            return;
        }
    }
}

/* A success is what the handler said of the last attempt, or an operator. */
static void check_success(struct checker *checker,
                          const struct event_track *event)
{
    const struct ledger_event *export = event->export;
    const struct attempt_facts *last = &checker->facts[export->attempts];

    if (export->state != LEDGER_SUCCEEDED || (last->rows & ROW_APPLIED) != 0) {
        return;
    }
    if (last->inv == NULL) {
        report(checker, CHECKER_C8, event,
               "it succeeded at attempt %" PRIu64 ", which no handler saw",
               export->attempts);
        return;
    }
    switch (inv_told(last->inv)) {
    case TOLD_SUCCESS:
    case TOLD_NOTHING:
        return;
    case TOLD_NOT_APPLIED:
    case TOLD_DOUBT:
        report(checker, CHECKER_C8, event,
               "it succeeded, and invocation %" PRIu64
               " of its last attempt told no success",
               last->inv->n);
        return;
    }
}

static void check_missing(struct checker *checker,
                          const struct event_track *event)
{
    bool is_acked = false;

    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        is_acked |= try->valid && is_acknowledged(try);
    }
    if (checker->has_export && !event->forgotten && !is_acked &&
        event->invs != NULL) {
        report(checker, CHECKER_C8, event,
               "it was invoked, and is not in the export");
    }
}

void check_export(struct checker *checker, const struct event_track *event)
{
    check_numbers(checker, event);
    if (event->export == NULL) {
        check_missing(checker, event);
        return;
    }
    if (event->exported_twice) {
        report(checker, CHECKER_C8, event, "it is in the export twice");
    }
    check_deliveries(checker, event);
    check_run_count(checker, event);
    if (!lay_out_attempts(checker, event)) {
        report(checker, CHECKER_C8, event,
               "%" PRIu64 " attempts were counted, most of which nothing "
               "tells of",
               event->export->attempts);
        return;
    }
    if (has_history(event)) {
        check_unseen(checker, event);
        check_success(checker, event);
    }
}
