/* SPDX-License-Identifier: MIT */
/* C4: one effect, one key. */
#include <inttypes.h>

#include "checker/checker_internal.h"

/* NOLINTNEXTLINE(readability-function-size): macros of uthash */
static void claim_key(struct checker *checker, struct event_track *event,
                      const struct inv_track *inv)
{
    struct key_track *key;

    HASH_FIND(hh, checker->keys, inv->key.data, inv->key.len, key);
    if (key == NULL) {
        key = arena_new(checker, sizeof *key);
        key->key = inv->key;
        key->event = event;
        HASH_ADD_KEYPTR(hh, checker->keys, key->key.data, key->key.len, key);
        return;
    }
    /* An event that was forgotten comes back under its name, and its key. */
    if (!slice_eq(key->event->identity, event->identity)) {
        report(checker, CHECKER_C4, event,
               "invocation %" PRIu64 " has the key of another event, %.*s",
               inv->n, (int)key->event->id.len, key->event->id.data);
    }
}

/* --- with a history: run by run ----------------------------------------------
 */

struct run {
    uint64_t number;
    const struct inv_track *first;
    uint64_t effects;
    bool was_watched; /* of every invocation it is known */
    bool was_resolved;
};

static void check_run(struct checker *checker, const struct event_track *event,
                      const struct run *run)
{
    const struct ledger_event *export = event->export;
    bool succeeded =
        run->number < export->run || export->state == LEDGER_SUCCEEDED;

    if (run->effects > 1) {
        report(checker, CHECKER_C4, event,
               "%" PRIu64 " effects in run %" PRIu64, run->effects,
               run->number);
        /* The receiver may know the key of one that was forgotten. */
    } else if (run->effects == 0 && succeeded && run->was_watched &&
               !run->was_resolved && run->first != NULL &&
               event->before == NULL) {
        report(checker, CHECKER_C4, event,
               "run %" PRIu64 " succeeded without an effect", run->number);
    }
}

static void check_keys(struct checker *checker, const struct event_track *event,
                       const struct run *run, const struct inv_track *inv)
{
    if (inv->route == run->first->route &&
        !slice_eq(inv->key, run->first->key)) {
        report(checker, CHECKER_C4, event,
               "invocations %" PRIu64 " and %" PRIu64 " of run %" PRIu64
               " have different keys",
               run->first->n, inv->n, run->number);
    }
}

static void add_attempt(struct checker *checker,
                        const struct event_track *event, struct run *run,
                        const struct attempt_facts *facts)
{
    const struct inv_track *inv = facts->inv;

    run->was_resolved |= (facts->rows & ROW_APPLIED) != 0;
    if (inv == NULL) {
        return;
    }
    if (run->first == NULL) {
        run->first = inv;
    }
    check_keys(checker, event, run, inv);
    run->effects += inv->effect == LEDGER_EFFECT_APPLIED;
    run->was_watched &=
        inv->done_at != NOT_YET && inv->effect != LEDGER_EFFECT_UNSEEN;
}

static void check_runs(struct checker *checker, const struct event_track *event)
{
    const struct inv_track *before = NULL;
    struct run run = {.number = 1, .was_watched = true};

    for (uint64_t i = 0; i <= event->export->attempts; i++) {
        const struct attempt_facts *facts = &checker->facts[i];

        if (facts->run != run.number) {
            check_run(checker, event, &run);
            before = run.first != NULL ? run.first : before;
            run = (struct run){.number = facts->run, .was_watched = true};
        }
        add_attempt(checker, event, &run, facts);
        if (run.first != NULL && before != NULL && facts->inv == run.first &&
            slice_eq(before->key, run.first->key)) {
            report(checker, CHECKER_C4, event,
                   "run %" PRIu64 " has the key of the run before it",
                   run.number);
        }
    }
    check_run(checker, event, &run);
}

/* --- without: all in all
 * ------------------------------------------------------ */

/* So many keys and effects as there may have been runs; each key is used by
 * invocations that stand together. */
static void check_all(struct checker *checker, const struct event_track *event)
{
    uint64_t runs = 1 + count_orders(event, LEDGER_RERUN);
    uint64_t keys = 0, effects = 0;
    const struct inv_track *before = NULL;

    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        keys += before == NULL || (before->route == inv->route &&
                                   !slice_eq(before->key, inv->key));
        effects += inv->effect == LEDGER_EFFECT_APPLIED;
        before = inv;
    }
    if (keys > runs || effects > runs) {
        report(checker, CHECKER_C4, event,
               "%" PRIu64 " keys and %" PRIu64 " effects in %" PRIu64
               " runs at most",
               keys, effects, runs);
    }
}

void check_effects(struct checker *checker, struct event_track *event)
{
    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        if (inv == event->invs || !slice_eq(inv->key, event->invs->key)) {
            claim_key(checker, event, inv);
        }
    }
    if (!event_is_shared(event) && has_history(event) &&
        lay_out_attempts(checker, event)) {
        check_runs(checker, event);
    } else {
        check_all(checker, event);
    }
}
