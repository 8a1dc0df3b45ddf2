/* SPDX-License-Identifier: MIT */
#include "core/step.h"

#include <stddef.h>

#include "base/check.h"

void step_ignore(struct step *step, const char *why)
{
    CHECK(!step->decision.changed);
    step->decision.why = why;
}

void step_refuse(struct step *step, enum verdict verdict, const char *why)
{
    CHECK(verdict != VERDICT_DONE);
    CHECK(!step->decision.changed);
    step->decision.verdict = verdict;
    step->decision.why = why;
}

void step_to(struct step *step, enum record_state next, enum move move,
             const char *why)
{
    struct decision *decision = &step->decision;

    CHECK(decision->also == MOVE_NONE);
    if (decision->move == MOVE_NONE) {
        decision->move = move;
    } else {
        decision->also = move;
    }
    decision->changed = true;
    decision->why = why;
    step->next = next;
}

bool step_has(const struct step *step, enum record_flag flag)
{
    return (step->record->flags & (uint32_t)flag) != 0;
}

void step_set(struct step *step, enum record_flag flag)
{
    step->record->flags |= (uint32_t)flag;
}

void step_clear(struct step *step, enum record_flag flag)
{
    step->record->flags &= ~(uint32_t)flag;
}

static int64_t add_ms(int64_t at_ms, int64_t more_ms)
{
    CHECK(more_ms >= 0);
    return more_ms < RECORD_NEVER - at_ms ? at_ms + more_ms : RECORD_NEVER - 1;
}

int64_t step_in(const struct step *step, int64_t delay_ms)
{
    return add_ms(step->now_ms, delay_ms);
}

void step_set_due(struct step *step, int64_t due_ms)
{
    bool waits =
        step_has(step, RECORD_ORDER_WAIT) || step_has(step, RECORD_PARKED);

    CHECK(due_ms != RECORD_NEVER);
    step->record->due_ms = waits ? RECORD_NEVER : due_ms;
}

void step_line_up(struct step *step)
{
    if (step->record->order_key != 0) {
        step_set(step, RECORD_ORDERED);
        if (step->input->order_blocked) {
            step_set(step, RECORD_ORDER_WAIT);
        }
    }
    step_set_due(step, step->now_ms);
}

void step_restart(struct step *step)
{
    struct record *record = step->record;

    record->tries = 0;
    record->crashes = 0;
    record->probes = 0;
    record->backoffs = 0;
    record->clock_ms = step->now_ms;
}

bool step_tries_are_spent(const struct step *step)
{
    uint32_t max = step->policy->max_attempts;

    return max != 0 && step->record->tries >= max;
}

static bool ends_before(const struct step *step, int64_t due_ms)
{
    return due_ms >
           add_ms(step->record->clock_ms, step->policy->give_up_after_ms);
}

const char *step_spent(const struct step *step, int64_t due_ms)
{
    if (step_tries_are_spent(step)) {
        return "max_attempts is reached";
    }
    if (ends_before(step, due_ms)) {
        return "the next try would come after give_up_after";
    }
    return NULL;
}

void step_die(struct step *step, enum reason reason, const char *why)
{
    step->record->reason = reason;
    step_to(step, RECORD_DEAD, MOVE_DEAD, why);
}

void step_succeed(struct step *step, enum move move, const char *why)
{
    step->record->doubt_since_ms = 0;
    step->decision.keep_result = true;
    step_to(step, RECORD_SUCCEEDED, move, why);
}

void step_release(struct step *step, enum move move, const char *why)
{
    step->record->doubt_since_ms = 0;
    step->record->reason = REASON_NONE;
    step_set(step, RECORD_RELEASED);
    step_to(step, RECORD_FAILED, move, why);
}

void step_drop(struct step *step, enum move move, enum reason reason,
               const char *why)
{
    step->record->reason = reason;
    step_to(step, RECORD_FAILED, move, why);
}

/* The next number of the fence, and a lease: every claim has an end. */
static void take_fence(struct step *step)
{
    struct record *record = step->record;

    CHECK(record->attempt < UINT32_MAX);
    record->attempt++;
    record->epoch = step->input->epoch;
    record->due_ms =
        add_ms(step_in(step, step->policy->timeout_ms), STEP_GRACE_MS);
}

void step_claim(struct step *step, const char *why)
{
    struct record *record = step->record;

    if (record->tries == 0 && record->attempt > 0 &&
        !record_is_settled(record)) {
        /* No try has counted yet, so the wait for this one does not. */
        record->clock_ms += step->now_ms - record->changed_ms;
    }
    take_fence(step);
    record->tries++;
    step->decision.start = true;
    step_to(step, RECORD_RUNNING, MOVE_STARTED, why);
}

static void start_probe(struct step *step)
{
    take_fence(step);
    step->record->probes++;
    step_set(step, RECORD_PROBING);
    step->decision.probe = true;
    step_to(step, RECORD_UNCERTAIN, MOVE_PROBE, "asks whether it was applied");
}

void step_probe_again(struct step *step, const char *why)
{
    struct record *record = step->record;
    const struct policy *policy = step->policy;
    int64_t delay_ms =
        backoff_ms(policy, record->probes - 1, step->input->random);

    CHECK(step_has(step, RECORD_PROBING));
    if (delay_ms < policy->probe_interval_ms) {
        delay_ms = policy->probe_interval_ms;
    }
    step_clear(step, RECORD_PROBING);
    step_set_due(step, step_in(step, delay_ms));
    step_to(step, RECORD_UNCERTAIN, MOVE_UNCERTAIN, why);
    if (policy->max_probes != 0 && record->probes >= policy->max_probes) {
        step_die(step, REASON_UNCERTAIN, "max_probes is reached");
    } else if (ends_before(step, record->due_ms)) {
        step_die(step, REASON_UNCERTAIN,
                 "the next probe would come after give_up_after");
    }
}

/* Whether the receiver still remembers the key at the end of an attempt that
 * starts now, so that it applies the event once. */
static bool key_protects(const struct step *step)
{
    const struct policy *policy = step->policy;

    if (policy->downstream_ttl_ms == 0) {
        return true;
    }
    return add_ms(step_in(step, policy->timeout_ms), STEP_GRACE_MS) <
           add_ms(step->record->doubt_since_ms, policy->downstream_ttl_ms);
}

static void due_in_doubt(struct step *step)
{
    switch (step->policy->on_uncertain) {
    case ON_UNCERTAIN_RETRY:
        if (step_tries_are_spent(step)) {
            step_die(step, REASON_UNCERTAIN, "max_attempts is reached");
        } else if (!key_protects(step)) {
            step_die(step, REASON_UNCERTAIN,
                     "the receiver may have forgotten the key");
        } else {
            step_claim(step, "tried again under the same key");
        }
        return;
    case ON_UNCERTAIN_HOLD:
        step_die(step, REASON_UNCERTAIN, "the route holds what is uncertain");
        return;
    case ON_UNCERTAIN_PROBE:
        if (step_has(step, RECORD_PROBING)) {
            step_probe_again(step, "the probe was lost");
        } else {
            start_probe(step);
        }
        return;
    }
    UNREACHABLE("on_uncertain is one of three");
}

void step_due(struct step *step)
{
    if (step->now_ms < step->record->due_ms) {
        step_ignore(step, "it is not due yet");
    } else if (step->record->doubt_since_ms != 0) {
        due_in_doubt(step);
    } else if (step_tries_are_spent(step)) {
        step_die(step, REASON_EXHAUSTED, "max_attempts is reached");
    } else {
        step_claim(step, "it was due");
    }
}

void step_begin_doubt(struct step *step)
{
    struct record *record = step->record;

    if (record->doubt_since_ms == 0) {
        record->doubt_since_ms = record->changed_ms;
    }
}

void step_doubt(struct step *step, enum move move, int64_t due_ms,
                const char *why)
{
    step_begin_doubt(step);
    step_clear(step, RECORD_PROBING);
    step->record->probes = 0;
    step_to(step, RECORD_UNCERTAIN, move, why);
    switch (step->policy->on_uncertain) {
    case ON_UNCERTAIN_RETRY:
        step_set_due(step, due_ms);
        return;
    case ON_UNCERTAIN_HOLD:
        step_die(step, REASON_UNCERTAIN, "the route holds what is uncertain");
        return;
    case ON_UNCERTAIN_PROBE:
        step_set_due(step, step_in(step, step->policy->probe_interval_ms));
        return;
    }
    UNREACHABLE("on_uncertain is one of three");
}

void step_await_broker(struct step *step, enum move move, const char *why)
{
    CHECK(step_has(step, RECORD_LEFT));
    step_begin_doubt(step);
    step_set(step, RECORD_PARKED);
    step_set_due(step, step->now_ms);
    step_to(step, RECORD_UNCERTAIN, move, why);
}

void step_unpark(struct step *step, const char *why)
{
    bool uncertain = step->record->state == RECORD_UNCERTAIN;
    int64_t delay_ms = 0;

    step_clear(step, RECORD_PARKED);
    if (uncertain && step->policy->on_uncertain == ON_UNCERTAIN_HOLD) {
        step_die(step, REASON_UNCERTAIN, "the route holds what is uncertain");
        return;
    }
    if (uncertain && step->policy->on_uncertain == ON_UNCERTAIN_PROBE) {
        delay_ms = step->policy->probe_interval_ms;
    }
    step_set_due(step, step_in(step, delay_ms));
    step_to(step, step->record->state, MOVE_WOKEN, why);
}

bool step_may_run(struct step *step)
{
    enum reason reason = step->record->reason;

    if (reason == REASON_TOO_OLD) {
        step_refuse(step, VERDICT_REFUSED,
                    "too old to tell whether it was handled before");
        return false;
    }
    if (reason == REASON_UNDECODABLE) {
        step_refuse(step, VERDICT_REFUSED, "it cannot be decoded");
        return false;
    }
    return true;
}

bool step_may_replay(struct step *step)
{
    struct record *record = step->record;

    if (!step_may_run(step)) {
        return false;
    }
    if (step_has(step, RECORD_LEFT)) {
        step_refuse(step, VERDICT_REFUSED,
                    "nothing to run until the broker delivers it again");
        return false;
    }
    if (step_has(step, RECORD_ERASED)) {
        step_refuse(step, VERDICT_REFUSED, "what arrived is no longer kept");
        return false;
    }
    if (step->input->assume_not_applied ||
        step->input->kind == INPUT_RESOLVE_NOT_APPLIED) {
        record->doubt_since_ms = 0;
    }
    if (record->doubt_since_ms == 0) {
        return true;
    }
    if (step->policy->on_uncertain != ON_UNCERTAIN_RETRY) {
        step_refuse(step, VERDICT_IN_DOUBT, "it may have taken effect");
        return false;
    }
    if (!key_protects(step)) {
        step_refuse(step, VERDICT_IN_DOUBT,
                    "it may have taken effect, and the receiver may have "
                    "forgotten the key");
        return false;
    }
    return true;
}
