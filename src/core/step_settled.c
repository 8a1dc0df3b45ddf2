/* SPDX-License-Identifier: MIT */
/* SUCCEEDED, FAILED and DEAD: only people, and the next delivery of a
 * released key, move what is settled. */
#include "core/step.h"

#include "base/check.h"

/* A success of any attempt speaks against an event that is said to have had
 * none; that nothing was applied, only if the counted attempt says so. */
static bool contradicts(const struct step *step)
{
    const struct record *record = step->record;

    switch (step->input->outcome) {
    case OUTCOME_SUCCESS:
        return record->state != RECORD_SUCCEEDED;
    case OUTCOME_REFUSED:
    case OUTCOME_TRANSIENT:
    case OUTCOME_REJECTED:
    case OUTCOME_UNREACHED:
        return record->state == RECORD_SUCCEEDED &&
               step->input->attempt == record->attempt;
    case OUTCOME_UNKNOWN:
        return false;
    }
    UNREACHABLE("every outcome returns");
}

/* M23. What had an effect after all is neither free to run again nor without
 * doubt; when that attempt began is not known here. */
static void evidence(struct step *step)
{
    struct record *record = step->record;

    if (!contradicts(step) || step_has(step, RECORD_DISPUTED)) {
        step_ignore(step, "a late answer that changes nothing");
        return;
    }
    step_set(step, RECORD_DISPUTED);
    step_clear(step, RECORD_RELEASED);
    if (record->state == RECORD_DEAD && record->doubt_since_ms == 0) {
        record->doubt_since_ms = record->first_seen_ms;
    }
    step_to(step, record->state, MOVE_DISPUTED,
            "a late answer contradicts the result");
}

/* M24 */
static void rerun(struct step *step)
{
    if (step_has(step, RECORD_LEFT)) {
        step_refuse(step, VERDICT_REFUSED,
                    "nothing to run: what arrived was left with the broker");
        return;
    }
    if (step_has(step, RECORD_ERASED)) {
        step_refuse(step, VERDICT_REFUSED,
                    "nothing to run: what arrived is not kept");
        return;
    }
    step->record->run++;
    step_restart(step);
    step_line_up(step);
    step_to(step, RECORD_PENDING, MOVE_RERUN, "run again under a new key");
}

void step_succeeded(struct step *step)
{
    switch (step->input->kind) {
    case INPUT_ARRIVE:
    case INPUT_UNUSABLE:
        step_repeat(step);
        return;
    case INPUT_OUTCOME:
    case INPUT_EVIDENCE:
        evidence(step);
        return;
    case INPUT_RERUN:
        rerun(step);
        return;
    case INPUT_REPLAY:
    case INPUT_RESOLVE_APPLIED:
    case INPUT_DISCARD:
        step_refuse(step, VERDICT_NOTHING_TO_DO, "it has succeeded");
        return;
    case INPUT_RESOLVE_NOT_APPLIED:
        step_refuse(step, VERDICT_REFUSED,
                    "it has succeeded; a rerun would run it again");
        return;
    case INPUT_DUE:
    case INPUT_HEARTBEAT:
    case INPUT_CRASHED:
    case INPUT_PROBED:
    case INPUT_ORDER_FREE:
    case INPUT_WAKE:
    case INPUT_RESTORED:
    case INPUT_PARK:
    case INPUT_UNPARK:
    case INPUT_MOVED:
    case INPUT_SUPERSEDED:
    case INPUT_GONE:
        step_ignore(step, "it is settled");
        return;
    }
    UNREACHABLE("every kind of input returns");
}

/* M25: the answer proved that nothing was applied, so this delivery runs, as
 * it came. */
static void arrive_on_failed(struct step *step)
{
    if (!step_has(step, RECORD_RELEASED)) {
        step_repeat(step);
        return;
    }
    step_clear(step, RECORD_ERASED);
    step_clear(step, RECORD_LEFT);
    step_accept(step);
}

void step_failed(struct step *step)
{
    switch (step->input->kind) {
    case INPUT_ARRIVE:
        arrive_on_failed(step);
        return;
    case INPUT_UNUSABLE:
        step_repeat(step);
        return;
    case INPUT_OUTCOME:
    case INPUT_EVIDENCE:
        evidence(step);
        return;
    case INPUT_REPLAY:
    case INPUT_RESOLVE_NOT_APPLIED:
    case INPUT_DISCARD:
        step_refuse(step, VERDICT_NOTHING_TO_DO, "it has failed for good");
        return;
    case INPUT_RERUN:
        step_refuse(step, VERDICT_REFUSED, "only a success is run again");
        return;
    case INPUT_RESOLVE_APPLIED:
        step_refuse(step, VERDICT_REFUSED, "it has failed for good");
        return;
    case INPUT_DUE:
    case INPUT_HEARTBEAT:
    case INPUT_CRASHED:
    case INPUT_PROBED:
    case INPUT_ORDER_FREE:
    case INPUT_WAKE:
    case INPUT_RESTORED:
    case INPUT_PARK:
    case INPUT_UNPARK:
    case INPUT_MOVED:
    case INPUT_SUPERSEDED:
    case INPUT_GONE:
        step_ignore(step, "it is settled");
        return;
    }
    UNREACHABLE("every kind of input returns");
}

/* The route holds keys no more since it died: what waits may go. */
static void let_go(struct step *step)
{
    if (!step_has(step, RECORD_ORDERED) ||
        step->policy->after_dead != AFTER_DEAD_CONTINUE) {
        step_ignore(step, "it is settled");
        return;
    }
    step_clear(step, RECORD_ORDERED);
    step_to(step, RECORD_DEAD, MOVE_ORDER_FREE, "it holds its key no more");
}

/* M17 */
static void revive(struct step *step, enum move move, const char *why)
{
    if (!step_may_replay(step)) {
        return;
    }
    step_restart(step);
    step_line_up(step);
    step_to(step, RECORD_PENDING, move, why);
}

/* A result route frees the key for the client to try again; elsewhere it is
 * for us to do so. */
static void not_applied(struct step *step)
{
    const char *why = "resolved as not applied";

    if (step->policy->respond != RESPOND_RESULT) {
        revive(step, MOVE_NOT_APPLIED, why);
    } else if (step_may_run(step)) {
        step_release(step, MOVE_NOT_APPLIED, why);
    }
}

void step_dead(struct step *step)
{
    switch (step->input->kind) {
    case INPUT_ARRIVE:
    case INPUT_UNUSABLE:
        step_repeat(step);
        return;
    case INPUT_OUTCOME:
    case INPUT_EVIDENCE:
        evidence(step);
        return;
    case INPUT_REPLAY:
        revive(step, MOVE_REPLAYED, "replayed");
        return;
    case INPUT_RERUN:
        step_refuse(step, VERDICT_REFUSED, "only a success is run again");
        return;
    case INPUT_RESOLVE_APPLIED: /* M18 */
        step_succeed(step, MOVE_APPLIED, "resolved as applied");
        return;
    case INPUT_RESOLVE_NOT_APPLIED:
        not_applied(step);
        return;
    case INPUT_DISCARD: /* M19 */
        step_drop(step, MOVE_DISCARDED, REASON_DISCARDED, "discarded");
        return;
    case INPUT_ORDER_FREE:
        let_go(step);
        return;
    case INPUT_DUE:
    case INPUT_HEARTBEAT:
    case INPUT_CRASHED:
    case INPUT_PROBED:
    case INPUT_WAKE:
    case INPUT_RESTORED:
    case INPUT_PARK:
    case INPUT_UNPARK:
    case INPUT_MOVED:
    case INPUT_SUPERSEDED:
    case INPUT_GONE:
        step_ignore(step, "it is settled");
        return;
    }
    UNREACHABLE("every kind of input returns");
}
