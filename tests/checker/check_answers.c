/* SPDX-License-Identifier: MIT */
/* C1 and C5: what the senders were told. */
#include <inttypes.h>

#include "checker/checker_internal.h"

/* --- C1 --------------------------------------------------------------------
 */

static const struct try_track *
first_acknowledged(const struct event_track *event)
{
    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        if (try->valid && is_acknowledged(try)) {
            return try;
        }
    }
    return NULL;
}

static void check_kept(struct checker *checker, const struct event_track *event)
{
    const struct try_track *try = first_acknowledged(event);
    const struct ledger_event *export = event->export;

    if (!checker->has_export || event->forgotten) {
        return;
    }
    if (try != NULL && export == NULL) {
        report(checker, CHECKER_C1, event,
               "lost: try %" PRIu64 " was answered %" PRId64
               ", and the event is not in the export",
               try->number, try->status);
    }
    if (export != NULL && export->state == LEDGER_DEAD &&
        export->reason.len == 0) {
        report(checker, CHECKER_C1, event, "dead without a reason");
    }
}

/* --- C5 --------------------------------------------------------------------
 */

static void check_invalid(struct checker *checker,
                          const struct event_track *event)
{
    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        if (!try->valid && is_acknowledged(try)) {
            report(checker, CHECKER_C5, event,
                   "try %" PRIu64 " was invalid, and was answered %" PRId64,
                   try->number, try->status);
        }
    }
}

/* The try that was told that it is the first; a second one is reported. */
static const struct try_track *find_first(struct checker *checker,
                                          const struct event_track *event)
{
    const struct try_track *first = NULL;

    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        if (!try->valid || try->shared || try->resp_at == NOT_YET ||
            try->status != 202) {
            continue;
        }
        if (first != NULL) {
            report(checker, CHECKER_C5, event,
                   "tries %" PRIu64 " and %" PRIu64
                   " were both told that they are the first (202)",
                   first->number, try->number);
            return first;
        }
        first = try;
    }
    return first;
}

/* When the earliest try left that may have been the first. */
static uint64_t first_sent_at(const struct event_track *event,
                              const struct try_track *first)
{
    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        bool is_unheard = first == NULL && try->resp_at == NOT_YET;

        if (try->valid && (try == first || try->shared || is_unheard)) {
            return try->sent_at;
        }
    }
    return NOT_YET;
}

/* A repeat's answer needs a first one that was sent before it came. */
static void check_repeats(struct checker *checker,
                          const struct event_track *event,
                          const struct try_track *first)
{
    uint64_t sent_at = first_sent_at(event, first);

    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        if (try->valid && try->resp_at != NOT_YET && try->status == 200 &&
            try->resp_at < sent_at) {
            report(checker, CHECKER_C5, event,
                   "try %" PRIu64
                   " was told that it is a repeat (200) before any other "
                   "could have been the first",
                   try->number);
            return;
        }
    }
}

/* What came first stays; other content is refused where the route says so. */
static void check_drift(struct checker *checker,
                        const struct event_track *event,
                        const struct try_track *first)
{
    struct slice content = first != NULL         ? first->hash
                           : event->invs != NULL ? event->invs->hash
                                                 : (struct slice){NULL, 0};

    if (first != NULL && event->invs != NULL &&
        !slice_eq(event->invs->hash, content)) {
        report(checker, CHECKER_C5, event,
               "try %" PRIu64 " was the first (202), and the content of "
               "another one was handled",
               first->number);
    }
    if (event->route->conf.drift != LEDGER_DRIFT_REJECT ||
        content.data == NULL) {
        return;
    }
    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        if (try->valid && is_acknowledged(try) &&
            !slice_eq(try->hash, content)) {
            report(checker, CHECKER_C5, event,
                   "try %" PRIu64
                   " had other content than the first one, and was answered "
                   "%" PRId64,
                   try->number, try->status);
        }
    }
}

/* Results are told again byte by byte; elsewhere a first and a repeat may
 * differ, two repeats may not. */
static bool must_be_equal(const struct event_track *event,
                          const struct try_track *a, const struct try_track *b)
{
    return event->route->conf.respond == LEDGER_RESULT ||
           a->status == b->status;
}

static void check_bodies(struct checker *checker,
                         const struct event_track *event)
{
    const struct try_track *seen = NULL;

    if (count_orders(event, LEDGER_RERUN) > 0) {
        return;
    }
    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        if (!try->valid || !is_acknowledged(try) || try->body.data == NULL) {
            continue;
        }
        if (seen != NULL && must_be_equal(event, seen, try) &&
            !slice_eq(seen->body, try->body)) {
            report(checker, CHECKER_C5, event,
                   "tries %" PRIu64 " and %" PRIu64 " got different bodies",
                   seen->number, try->number);
            return;
        }
        if (seen == NULL || try->status == 200) {
            seen = try;
        }
    }
}

void check_answers(struct checker *checker, const struct event_track *event)
{
    check_kept(checker, event);
    check_invalid(checker, event);
    check_bodies(checker, event);
    if (event->route->conf.respond == LEDGER_ACCEPTED) {
        const struct try_track *first = find_first(checker, event);

        check_repeats(checker, event, first);
        check_drift(checker, event, first);
    }
}
