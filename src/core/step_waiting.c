/* SPDX-License-Identifier: MIT */
/* PENDING and UNCERTAIN: durable, and waiting for something. */
#include "core/step.h"

#include "base/check.h"

static bool is_waiting(const struct step *step)
{
    return step_has(step, RECORD_ORDER_WAIT) || step_has(step, RECORD_PARKED);
}

/* M30. Without doubt nothing is left to be uncertain about. */
static void replay(struct step *step)
{
    if (step_has(step, RECORD_PARKED)) {
        step_refuse(step, VERDICT_NOTHING_TO_DO,
                    step_has(step, RECORD_LEFT)
                        ? "it waits for the broker to deliver it again"
                        : "its partition is with another worker");
        return;
    }
    if (step_has(step, RECORD_ORDER_WAIT)) {
        step_refuse(step, VERDICT_NOTHING_TO_DO,
                    "it waits for an earlier event of its key");
        return;
    }
    if (!step_may_replay(step)) {
        return;
    }
    step_restart(step);
    step_clear(step, RECORD_PROBING);
    step_set_due(step, step->now_ms);
    step_to(step,
            step->record->doubt_since_ms == 0 ? RECORD_PENDING
                                              : step->record->state,
            MOVE_REPLAYED, "replayed: due now");
}

static void order_free(struct step *step)
{
    if (!step_has(step, RECORD_ORDER_WAIT)) {
        step_ignore(step, "it does not wait for its key");
        return;
    }
    step_clear(step, RECORD_ORDER_WAIT);
    step_set_due(step, step->now_ms);
    step_to(step, step->record->state, MOVE_ORDER_FREE, "first of its key now");
}

static void wake(struct step *step)
{
    if (is_waiting(step) || step_has(step, RECORD_PROBING) ||
        step->record->due_ms <= step->now_ms) {
        step_ignore(step, "it does not wait for a time");
        return;
    }
    step_set_due(step, step->now_ms);
    step_to(step, step->record->state, MOVE_WOKEN, "due now");
}

/* M26 */
static void restore(struct step *step)
{
    step_set(step, RECORD_RESTORED);
    if (step_has(step, RECORD_LEFT)) {
        step_await_broker(step, MOVE_RESTORED,
                          "from a backup: it may have run since, and waits for "
                          "the broker to deliver it again");
    } else {
        step_doubt(step, MOVE_RESTORED, step->now_ms,
                   "from a backup: it may have run since");
    }
}

/* M27 */
static void park(struct step *step)
{
    if (step_has(step, RECORD_PARKED)) {
        step_ignore(step, "it is parked already");
        return;
    }
    if (!step_has(step, RECORD_PINS)) {
        step_ignore(step, "it does not depend on a partition");
        return;
    }
    step_clear(step, RECORD_PROBING);
    step_set(step, RECORD_PARKED);
    step_set_due(step, step->now_ms);
    step_to(step, step->record->state, MOVE_PARKED,
            "its partition went to another worker");
}

/* M28 */
static void unpark(struct step *step)
{
    if (!step_has(step, RECORD_PARKED)) {
        step_ignore(step, "it is not parked");
    } else if (step_has(step, RECORD_LEFT)) {
        step_ignore(step, "the broker has to deliver it again");
    } else {
        step_unpark(step, "its partition came back");
    }
}

/* M28 */
static void moved(struct step *step)
{
    if (!step_has(step, RECORD_PARKED)) {
        step_ignore(step, "it is not parked");
        return;
    }
    step_drop(step, MOVE_MOVED, REASON_MOVED,
              "another worker settled it: its partition came back above it");
}

/* M31. What is kept here is ours from then on: no partition brings it. */
static void gone(struct step *step)
{
    if (!step_has(step, RECORD_PINS)) {
        step_ignore(step, "it does not depend on a partition");
        return;
    }
    if (step_has(step, RECORD_LEFT)) {
        step_clear(step, RECORD_LEFT);
        step_set(step, RECORD_ERASED);
        step_die(step, REASON_UNCERTAIN,
                 "its message is no longer on the broker");
        return;
    }
    step_clear(step, RECORD_PINS);
    step->decision.changed = true;
    step->decision.why =
        "its message is no longer on the broker, and is kept here";
    if (step_has(step, RECORD_PARKED)) {
        step_unpark(step, step->decision.why);
    }
}

static void by_partition(struct step *step)
{
    enum input_kind kind = step->input->kind;

    if (kind == INPUT_PARK) {
        park(step);
    } else if (kind == INPUT_UNPARK) {
        unpark(step);
    } else if (kind == INPUT_MOVED) {
        moved(step);
    } else {
        CHECK(kind == INPUT_GONE);
        gone(step);
    }
}

static void discard(struct step *step)
{
    step_drop(step, MOVE_DISCARDED, REASON_DISCARDED, "discarded");
}

void step_pending(struct step *step)
{
    switch (step->input->kind) {
    case INPUT_ARRIVE:
    case INPUT_UNUSABLE:
        step_repeat(step);
        return;
    case INPUT_DUE:
        step_due(step);
        return;
    case INPUT_REPLAY:
        replay(step);
        return;
    case INPUT_RERUN:
        step_refuse(step, VERDICT_REFUSED, "only a success is run again");
        return;
    case INPUT_RESOLVE_APPLIED:
    case INPUT_RESOLVE_NOT_APPLIED:
        step_refuse(step, VERDICT_REFUSED,
                    "only what is uncertain or dead can be resolved");
        return;
    case INPUT_DISCARD:
        discard(step);
        return;
    case INPUT_ORDER_FREE:
        order_free(step);
        return;
    case INPUT_WAKE:
        wake(step);
        return;
    case INPUT_RESTORED:
        restore(step);
        return;
    case INPUT_PARK:
    case INPUT_UNPARK:
    case INPUT_MOVED:
    case INPUT_GONE:
        by_partition(step);
        return;
    case INPUT_SUPERSEDED: /* M29 */
        step_drop(step, MOVE_SUPERSEDED, REASON_SUPERSEDED,
                  "a newer version settled first");
        return;
    case INPUT_HEARTBEAT:
    case INPUT_OUTCOME:
    case INPUT_CRASHED:
    case INPUT_PROBED:
    case INPUT_EVIDENCE:
        step_ignore(step, "no attempt of it is under way");
        return;
    }
    UNREACHABLE("every kind of input returns");
}

static bool is_probe(const struct step *step)
{
    return step_has(step, RECORD_PROBING) &&
           step->input->attempt == step->record->attempt;
}

/* M14 */
static void not_applied(struct step *step, const char *why)
{
    if (step->policy->respond == RESPOND_RESULT) {
        step_release(step, MOVE_NOT_APPLIED, why);
        return;
    }
    step->record->doubt_since_ms = 0;
    step_set_due(step, step->now_ms);
    step_to(step, RECORD_PENDING, MOVE_NOT_APPLIED, why);
    if (!step_has(step, RECORD_PARKED) && step_tries_are_spent(step)) {
        step_die(step, REASON_EXHAUSTED,
                 "not applied, and max_attempts is "
                 "reached");
    }
}

static void probed(struct step *step)
{
    if (!is_probe(step)) {
        step_ignore(step, "the answer of a probe that was given up");
        return;
    }
    switch (step->input->probe) {
    case PROBE_APPLIED: /* M13 */
        step_succeed(step, MOVE_APPLIED, "the probe says: applied");
        return;
    case PROBE_NOT_APPLIED:
        not_applied(step, "the probe says: not applied");
        return;
    case PROBE_UNKNOWN:
        step_probe_again(step, "the probe could not tell");
        return;
    }
    UNREACHABLE("a probe has one of three answers");
}

static void probe_crashed(struct step *step)
{
    if (is_probe(step)) {
        step_probe_again(step, "the probe was lost");
    } else {
        step_ignore(step, "no probe of that number is under way");
    }
}

void step_uncertain(struct step *step)
{
    switch (step->input->kind) {
    case INPUT_ARRIVE:
    case INPUT_UNUSABLE:
        step_repeat(step);
        return;
    case INPUT_DUE:
        step_due(step);
        return;
    case INPUT_CRASHED:
        probe_crashed(step);
        return;
    case INPUT_PROBED:
        probed(step);
        return;
    case INPUT_REPLAY:
        replay(step);
        return;
    case INPUT_RERUN:
        step_refuse(step, VERDICT_REFUSED, "only a success is run again");
        return;
    case INPUT_RESOLVE_APPLIED: /* M13 */
        step_succeed(step, MOVE_APPLIED, "resolved as applied");
        return;
    case INPUT_RESOLVE_NOT_APPLIED:
        not_applied(step, "resolved as not applied");
        return;
    case INPUT_DISCARD:
        discard(step);
        return;
    case INPUT_ORDER_FREE:
        order_free(step);
        return;
    case INPUT_WAKE:
        wake(step);
        return;
    case INPUT_RESTORED:
        restore(step);
        return;
    case INPUT_PARK:
    case INPUT_UNPARK:
    case INPUT_MOVED:
    case INPUT_GONE:
        by_partition(step);
        return;
    case INPUT_SUPERSEDED:
        step_ignore(step, "it may have taken effect before the newer one");
        return;
    case INPUT_HEARTBEAT:
    case INPUT_OUTCOME:
    case INPUT_EVIDENCE:
        step_ignore(step, "a late answer settles nothing");
        return;
    }
    UNREACHABLE("every kind of input returns");
}
