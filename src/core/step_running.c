/* SPDX-License-Identifier: MIT */
/* RUNNING: one attempt is under way; what its end, or its loss, means. */
#include "core/step.h"

#include <stddef.h>

#include "base/check.h"

static bool is_result_route(const struct step *step)
{
    return step->policy->respond == RESPOND_RESULT;
}

static bool in_doubt(const struct step *step)
{
    return step->record->doubt_since_ms != 0;
}

static bool retries_doubt(const struct step *step)
{
    return step->policy->on_uncertain == ON_UNCERTAIN_RETRY;
}

static int64_t next_try_ms(struct step *step)
{
    struct record *record = step->record;
    int64_t delay_ms =
        backoff_ms(step->policy, record->backoffs, step->input->random);
    int64_t asked_ms = step->input->retry_after_ms;

    if (asked_ms > STEP_RETRY_AFTER_MAX_MS) {
        asked_ms = STEP_RETRY_AFTER_MAX_MS;
    }
    if (record->backoffs < UINT32_MAX) {
        record->backoffs++;
    }
    return step_in(step, delay_ms > asked_ms ? delay_ms : asked_ms);
}

/* M9, and M15 where the limits leave no other try. */
static void doubt_on(struct step *step, enum move move, int64_t due_ms,
                     const char *why)
{
    const char *spent = step_spent(step, due_ms);

    step_doubt(step, move, due_ms, why);
    if (spent != NULL && retries_doubt(step)) {
        step_die(step, REASON_UNCERTAIN, spent);
    }
}

/* M8, or M9: nothing came of this attempt, but of an earlier one it may. */
static void try_again(struct step *step, const char *why)
{
    int64_t due_ms = next_try_ms(step);
    const char *spent = step_spent(step, due_ms);

    if (in_doubt(step)) {
        doubt_on(step, MOVE_UNCERTAIN, due_ms,
                 "not applied, but an earlier attempt may have been");
    } else if (spent != NULL) {
        step_die(step, REASON_EXHAUSTED, spent);
    } else {
        step_set_due(step, due_ms);
        step_to(step, RECORD_PENDING, MOVE_RETRY, why);
    }
}

/* It says something of the handler and nothing of the event: the try is given
 * back, its time does not count, and the event is due at once. The route's
 * breaker paces the tries. */
static void unreached(struct step *step)
{
    struct record *record = step->record;
    int64_t due_ms = step_in(step, 0);

    if (is_result_route(step) && !in_doubt(step)) {
        step_release(step, MOVE_RELEASED, "the handler could not be reached");
        return;
    }
    CHECK(record->tries > 0);
    record->tries--;
    record->clock_ms += due_ms - record->changed_ms;
    if (in_doubt(step)) {
        step_doubt(step, MOVE_UNCERTAIN, due_ms,
                   "not reached, but an earlier attempt may have been applied");
    } else {
        step_set_due(step, due_ms);
        step_to(step, RECORD_PENDING, MOVE_RETRY,
                "the handler could not be reached");
    }
}

static void transient(struct step *step)
{
    if (is_result_route(step) && !in_doubt(step)) {
        step_release(step, MOVE_RELEASED, "not applied: the key is free again");
    } else {
        try_again(step, "not applied: tried again later");
    }
}

/* The refusal of a set-up says nothing of what an earlier attempt did, so a
 * doubt stays; under `retry` the dead letter may be replayed in spite of it. */
static void refused(struct step *step)
{
    if (is_result_route(step)) {
        transient(step);
    } else if (in_doubt(step) && !retries_doubt(step)) {
        try_again(step, "refused");
    } else {
        step_die(step, REASON_REFUSED, "the handler refused it");
    }
}

static void reject_finally(struct step *step)
{
    if (is_result_route(step)) {
        step->decision.keep_result = true;
        step_to(step, RECORD_FAILED, MOVE_FAILED, "the handler said no");
    } else {
        step_die(step, REASON_REFUSED, "the handler said no");
    }
}

/* A receiver that honours the key gives it one answer: under `retry` this one
 * speaks for the earlier attempts too. */
static void rejected(struct step *step)
{
    if (in_doubt(step) && !retries_doubt(step)) {
        try_again(step, "the handler said no");
        return;
    }
    step->record->doubt_since_ms = 0;
    switch (step->policy->on_error) {
    case ON_ERROR_CACHE:
        reject_finally(step);
        return;
    case ON_ERROR_RETRY:
        transient(step);
        return;
    case ON_ERROR_DEAD:
        step_die(step, REASON_REFUSED, "the handler said no");
        return;
    }
    UNREACHABLE("on_error is one of three");
}

static void judge(struct step *step)
{
    switch (step->input->outcome) {
    case OUTCOME_SUCCESS:
        step_succeed(step, MOVE_SUCCEEDED, "handled");
        return;
    case OUTCOME_REFUSED:
        refused(step);
        return;
    case OUTCOME_TRANSIENT:
        transient(step);
        return;
    case OUTCOME_REJECTED:
        rejected(step);
        return;
    case OUTCOME_UNREACHED:
        unreached(step);
        return;
    case OUTCOME_UNKNOWN:
        doubt_on(step, MOVE_UNCERTAIN, next_try_ms(step),
                 "it may have taken effect");
        return;
    }
    UNREACHABLE("every outcome returns");
}

static void ended(struct step *step)
{
    step->record->status = step->input->status;
    judge(step);
    if (step_has(step, RECORD_LEFT) && step->next != RECORD_SUCCEEDED) {
        step_clear(step, RECORD_LEFT);
        step->decision.keep_envelope = true;
    }
}

/* M26 */
static void restore(struct step *step)
{
    step_set(step, RECORD_RESTORED);
    if (step_has(step, RECORD_LEFT)) {
        step_await_broker(step, MOVE_RESTORED,
                          "from a backup: it may have run to its end, and "
                          "waits for the broker to deliver it again");
    } else {
        step_doubt(step, MOVE_RESTORED, step->now_ms,
                   "from a backup: it may have run to its end");
    }
}

/* M10. The first crash is most likely not the event's fault. The time that
 * was lost by it does not count against the event. */
static void crashed(struct step *step)
{
    struct record *record = step->record;
    int64_t delay_ms = 0;

    record->crashes++;
    record->clock_ms += step->now_ms - record->changed_ms;
    if (record->crashes > step->policy->max_crashes) {
        step_begin_doubt(step);
        step_to(step, RECORD_UNCERTAIN, MOVE_CRASHED, "cut short by a crash");
        step_die(step, REASON_POISON, "more than max_crashes crashes");
        return;
    }
    if (step_has(step, RECORD_LEFT)) {
        step_await_broker(step, MOVE_CRASHED,
                          "cut short by a crash: it may have taken effect, and "
                          "waits for the broker to deliver it again");
        return;
    }
    if (record->crashes > 1) {
        delay_ms =
            backoff_ms(step->policy, record->crashes - 2, step->input->random);
    }
    doubt_on(step, MOVE_CRASHED, step_in(step, delay_ms),
             "cut short by a crash: it may have taken effect");
}

/* M5. Never shortens the lease. */
static void heartbeat(struct step *step)
{
    int64_t due_ms = step_in(step, STEP_LOOK_MS);

    if (due_ms <= step->record->due_ms) {
        step_ignore(step, "alive, well within its lease");
        return;
    }
    step->record->due_ms = due_ms;
    step_to(step, RECORD_RUNNING, MOVE_HEARTBEAT, "alive");
}

static void from_attempt(struct step *step)
{
    if (step->input->attempt != step->record->attempt) {
        step_ignore(step, "another attempt has taken over");
        return;
    }
    if (step->input->kind == INPUT_OUTCOME) {
        ended(step);
    } else if (step->input->kind == INPUT_CRASHED) {
        crashed(step);
    } else {
        heartbeat(step);
    }
}

void step_running(struct step *step)
{
    switch (step->input->kind) {
    case INPUT_ARRIVE:
    case INPUT_UNUSABLE:
        step_repeat(step);
        return;
    case INPUT_HEARTBEAT:
    case INPUT_OUTCOME:
    case INPUT_CRASHED:
        from_attempt(step);
        return;
    case INPUT_RESTORED:
        restore(step);
        return;
    case INPUT_REPLAY:
    case INPUT_RERUN:
    case INPUT_RESOLVE_APPLIED:
    case INPUT_RESOLVE_NOT_APPLIED:
    case INPUT_DISCARD:
        step_refuse(step, VERDICT_REFUSED, "an attempt is under way");
        return;
    case INPUT_DUE:
        step_ignore(step, "a lease that is over only says: look");
        return;
    case INPUT_PROBED:
    case INPUT_ORDER_FREE:
    case INPUT_WAKE:
    case INPUT_PARK:
    case INPUT_UNPARK:
    case INPUT_MOVED:
    case INPUT_SUPERSEDED:
    case INPUT_GONE:
    case INPUT_EVIDENCE:
        step_ignore(step, "an attempt is under way");
        return;
    }
    UNREACHABLE("every kind of input returns");
}
