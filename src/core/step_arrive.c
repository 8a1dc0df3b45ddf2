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
    if (step->input->pins) {
        step_set(step, RECORD_PINS);
    }
    step_line_up(step);
    step->decision.take_envelope = true;
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
    step->decision.take_envelope = true;
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

/* What a partition brings is left there while its first attempt runs: most
 * need no other. */
static void receive(struct step *step)
{
    begin(step);
    step_accept(step);
    if (step->decision.start && step->input->pins) {
        step_set(step, RECORD_LEFT);
        step->decision.take_envelope = false;
    }
}

void step_none(struct step *step)
{
    switch (step->input->kind) {
    case INPUT_ARRIVE:
        receive(step);
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
    case INPUT_GONE:
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
    switch (step->next) {
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

/* Whether the event takes its message from this delivery: it was left with
 * the broker, and is needed. An attempt of this process has it at hand, and
 * what was settled by an answer needs it no more. */
static bool takes_message(const struct step *step)
{
    if (!step_has(step, RECORD_LEFT)) {
        return false;
    }
    switch (step->record->state) {
    case RECORD_PENDING:
    case RECORD_UNCERTAIN:
    case RECORD_DEAD:
        return true;
    case RECORD_RUNNING:
        return !step->input->pins || step->record->epoch != step->input->epoch;
    case RECORD_SUCCEEDED:
    case RECORD_FAILED:
        return false;
    case RECORD_NONE:
        break;
    }
    UNREACHABLE("a repeat is of a known event");
}

/* What it runs with from now on is what it is compared with. */
static void take_message(struct step *step)
{
    step_clear(step, RECORD_LEFT);
    step_clear(step, RECORD_ERASED);
    step->record->fingerprint = step->input->fingerprint;
    step->decision.take_envelope = true;
    step->decision.changed = true;
}

/* What a repeat moves in an event that a partition brought. A sender that was
 * answered does not send again: the event is ours from then on, whatever
 * becomes of the partition. */
static void bring_again(struct step *step, const char *why)
{
    step->decision.why = why;
    if (takes_message(step)) {
        take_message(step);
    }
    if (step_has(step, RECORD_PINS) && !step->input->pins) {
        step_clear(step, RECORD_PINS);
        step->decision.changed = true;
    }
    if (step_has(step, RECORD_PARKED)) {
        step_unpark(step, why);
    }
}

/* Other content is not the event. That of a partition moves it on all the
 * same, or it would hold the partition up for ever; and runs in its place
 * where the first content is not here to run. */
static void repeat_drifted(struct step *step)
{
    bool refused = step->policy->respond == RESPOND_RESULT ||
                   step->policy->on_drift == ON_DRIFT_REJECT;

    step->record->drifts++;
    step->decision.move = MOVE_DRIFTED;
    step->decision.answer = refused ? ANSWER_MISMATCH : ANSWER_DUPLICATE;
    if (!step->input->pins) {
        step->decision.why = "a repeat with other content; the first one stays";
    } else if (takes_message(step)) {
        bring_again(step, "a repeat with other content, which is taken: the "
                          "first one is not kept here");
    } else {
        bring_again(step, "a repeat with other content; the first one stays");
    }
}

static void repeat_same(struct step *step)
{
    step->decision.move = MOVE_REPEATED;
    if (step->input->kind == INPUT_ARRIVE) {
        bring_again(step, "a repeat");
    } else {
        step->decision.why = "a repeat";
    }
    step->decision.answer = repeat_answer(step);
}

void step_repeat(struct step *step)
{
    CHECK(step->record->state != RECORD_NONE);
    count_delivery(step);
    if (step->input->kind == INPUT_ARRIVE && is_drift(step)) {
        repeat_drifted(step);
    } else {
        repeat_same(step);
    }
    step->decision.counted = !step->decision.changed;
}
