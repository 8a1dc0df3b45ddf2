/* SPDX-License-Identifier: MIT */
/* Deliveries: the first of an event, and all later ones. */
#include "core/step.h"

#include "base/check.h"

static void count_delivery(struct step *step)
{
    struct record *record = step->record;

    record->deliveries++;
    if (record->last_seen_ms < step->now_ms) {
        record->last_seen_ms = step->now_ms;
    }
}

/* What the delivery says of the event becomes the record's. */
static void take_delivery(struct step *step)
{
    struct record *record = step->record;
    const struct input *input = step->input;

    record->route = input->route;
    record->order_key = input->order_key;
    record->fingerprint = input->fingerprint;
    record->status = 0;
    count_delivery(step);
    step_restart(step);
}

void step_accept(struct step *step)
{
    CHECK(step->record->doubt_since_ms == 0);
    take_delivery(step);
    step_line_up(step);
    step->decision.answer = ANSWER_ACCEPTED;
    step_to(step, RECORD_PENDING, MOVE_RECEIVED, "new");
    if (step->input->may_start && step->record->due_ms != RECORD_NEVER) {
        step_claim(step, "new, and started at once");
    }
}

/* M3: kept for people to look at, never run, so it holds no place in the
 * order of its key. */
static void bury(struct step *step)
{
    take_delivery(step);
    step->record->reason = step->input->reason;
    step->decision.answer = ANSWER_DEAD;
    step_to(step, RECORD_DEAD, MOVE_DEAD_ON_ARRIVAL, "it can never run");
}

static void begin(struct step *step)
{
    *step->record = (struct record){
        .state = step->record->state,
        .run = 1,
        .first_seen_ms = step->now_ms,
    };
}

void step_none(struct step *step)
{
    switch (step->input->kind) {
    case INPUT_ARRIVE:
        begin(step);
        step_accept(step);
        return;
    case INPUT_UNUSABLE:
        begin(step);
        bury(step);
        return;
    case INPUT_REPLAY:
    case INPUT_RERUN:
    case INPUT_RESOLVE_APPLIED:
    case INPUT_RESOLVE_NOT_APPLIED:
    case INPUT_DISCARD:
        step_refuse(step, VERDICT_REFUSED, "no such event is known");
        return;
    case INPUT_DUE:
    case INPUT_HEARTBEAT:
    case INPUT_OUTCOME:
    case INPUT_CRASHED:
    case INPUT_PROBED:
    case INPUT_ORDER_FREE:
    case INPUT_WAKE:
    case INPUT_RESTORED:
    case INPUT_PARK:
    case INPUT_UNPARK:
    case INPUT_MOVED:
    case INPUT_SUPERSEDED:
    case INPUT_EVIDENCE:
        step_ignore(step, "no such event is known");
        return;
    }
    UNREACHABLE("every kind of input returns");
}

static enum answer_kind repeat_answer(const struct step *step)
{
    if (step->policy->respond != RESPOND_RESULT) {
        return ANSWER_DUPLICATE;
    }
    switch (step->record->state) {
    case RECORD_PENDING:
    case RECORD_RUNNING:
        return ANSWER_IN_PROGRESS;
    case RECORD_UNCERTAIN:
        return ANSWER_UNCERTAIN;
    case RECORD_SUCCEEDED:
    case RECORD_FAILED:
        return ANSWER_REPLAY;
    case RECORD_DEAD:
        return ANSWER_PARKED;
    case RECORD_NONE:
        break;
    }
    UNREACHABLE("a repeat is of a known event");
}

static bool is_drift(const struct step *step)
{
    const struct fingerprint *first = &step->record->fingerprint;
    const struct fingerprint *this = &step->input->fingerprint;

    return first->mode != FINGERPRINT_NONE && this->mode != FINGERPRINT_NONE &&
           !fingerprint_eq(first, this);
}

static void repeat_drifted(struct step *step)
{
    bool refused = step->policy->respond == RESPOND_RESULT ||
                   step->policy->on_drift == ON_DRIFT_REJECT;

    step->record->drifts++;
    step->decision.move = MOVE_DRIFTED;
    step->decision.answer = refused ? ANSWER_MISMATCH : ANSWER_DUPLICATE;
    step->decision.why = "a repeat with other content; the first one stays";
}

void step_repeat(struct step *step)
{
    CHECK(step->record->state != RECORD_NONE);
    count_delivery(step);
    step->decision.counted = true;
    if (step->input->kind == INPUT_ARRIVE && is_drift(step)) {
        repeat_drifted(step);
        return;
    }
    step->decision.move = MOVE_REPEATED;
    step->decision.answer = repeat_answer(step);
    step->decision.why = "a repeat";
}
