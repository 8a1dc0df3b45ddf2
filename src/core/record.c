/* SPDX-License-Identifier: MIT */
#include "core/record.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "core/step.h"

enum {
    FLAGS_OF_ALL = RECORD_ERASED | RECORD_RESTORED,
    FLAGS_OF_OPEN = FLAGS_OF_ALL | RECORD_ORDERED,
    FLAGS_OF_WAITING = FLAGS_OF_OPEN | RECORD_ORDER_WAIT | RECORD_PARKED,
    FLAGS_OF_SETTLED = FLAGS_OF_ALL | RECORD_DISPUTED,
};

/* The flags that mean something in a state; the others go on the way in. */
static const uint32_t flags_of[RECORD_STATES] = {
    [RECORD_NONE] = 0,
    [RECORD_PENDING] = FLAGS_OF_WAITING,
    [RECORD_RUNNING] = FLAGS_OF_OPEN,
    [RECORD_UNCERTAIN] = FLAGS_OF_WAITING | RECORD_PROBING,
    [RECORD_SUCCEEDED] = FLAGS_OF_SETTLED,
    [RECORD_FAILED] = FLAGS_OF_SETTLED | RECORD_RELEASED,
    [RECORD_DEAD] = FLAGS_OF_SETTLED | RECORD_ORDERED,
};

bool fingerprint_eq(const struct fingerprint *a, const struct fingerprint *b)
{
    return a->version == b->version && a->mode == b->mode &&
           memcmp(a->digest, b->digest, FINGERPRINT_SIZE) == 0;
}

static bool has(const struct record *record, enum record_flag flag)
{
    return (record->flags & (uint32_t)flag) != 0;
}

static void check_due(const struct record *record)
{
    bool waits = has(record, RECORD_ORDER_WAIT) || has(record, RECORD_PARKED);
    bool never = record_is_settled(record) || waits;

    CHECK((record->due_ms == RECORD_NEVER) == never);
}

static void check_reason(const struct record *record)
{
    enum reason reason = record->reason;

    switch (record->state) {
    case RECORD_NONE:
    case RECORD_PENDING:
    case RECORD_RUNNING:
    case RECORD_UNCERTAIN:
    case RECORD_SUCCEEDED:
        CHECK(reason == REASON_NONE);
        return;
    case RECORD_FAILED:
        CHECK(reason == REASON_NONE || reason >= REASON_BUSINESS);
        CHECK(reason <= REASON_DISCARDED);
        return;
    case RECORD_DEAD:
        CHECK(reason >= REASON_EXHAUSTED);
        CHECK(reason <= REASON_BUSINESS);
        return;
    }
    UNREACHABLE("every state returns");
}

static void check_doubt(const struct record *record)
{
    bool doubt = record->doubt_since_ms != 0;

    CHECK(record->state != RECORD_UNCERTAIN || doubt);
    CHECK(record->state != RECORD_SUCCEEDED || !doubt);
    CHECK(!has(record, RECORD_RELEASED) || !doubt);
}

void record_check(const struct record *record)
{
    CHECK(record->state <= RECORD_DEAD);
    CHECK((record->flags & ~flags_of[record->state]) == 0);
    CHECK(record->tries <= record->attempt);
    check_reason(record);
    if (record->state == RECORD_NONE) {
        CHECK(record->attempt == 0);
        return;
    }
    CHECK(record->run > 0);
    CHECK(record->state != RECORD_RUNNING || record->attempt > 0);
    CHECK(record->first_seen_ms <= record->last_seen_ms);
    CHECK(!has(record, RECORD_ORDERED) || record->order_key != 0);
    CHECK(!has(record, RECORD_ORDER_WAIT) || has(record, RECORD_ORDERED));
    check_due(record);
    check_doubt(record);
}

_Static_assert(INPUT_DISCARD - INPUT_REPLAY == 4, "the orders stand together");

/* An operator decides on what was shown; it may have moved since. */
static bool is_outdated_order(const struct record *record,
                              const struct input *input)
{
    return input->kind >= INPUT_REPLAY && input->kind <= INPUT_DISCARD &&
           input->attempt != 0 && input->attempt != record->attempt;
}

static void dispatch(struct step *step)
{
    if (is_outdated_order(step->record, step->input)) {
        step_refuse(step, VERDICT_REFUSED, "it has moved on since it was seen");
        return;
    }
    switch (step->record->state) {
    case RECORD_NONE:
        step_none(step);
        return;
    case RECORD_PENDING:
        step_pending(step);
        return;
    case RECORD_RUNNING:
        step_running(step);
        return;
    case RECORD_UNCERTAIN:
        step_uncertain(step);
        return;
    case RECORD_SUCCEEDED:
        step_succeeded(step);
        return;
    case RECORD_FAILED:
        step_failed(step);
        return;
    case RECORD_DEAD:
        step_dead(step);
        return;
    }
    UNREACHABLE("every state returns");
}

/* What holds of every record in the state that it goes to. */
static void arrange(const struct step *step)
{
    struct record *record = step->record;

    record->flags &= flags_of[step->next];
    if (step->next == RECORD_DEAD && record->state != RECORD_DEAD &&
        step->policy->after_dead == AFTER_DEAD_CONTINUE) {
        record->flags &= ~(uint32_t)RECORD_ORDERED;
    }
    if (step->next >= RECORD_SUCCEEDED) {
        record->due_ms = RECORD_NEVER;
    }
    if (step->next <= RECORD_SUCCEEDED) {
        record->reason = REASON_NONE;
    }
    if (step->decision.move != MOVE_HEARTBEAT) {
        record->changed_ms = step->now_ms;
    }
}

static void check_step(const struct record *before, const struct record *after,
                       const struct decision *decision)
{
    CHECK(decision->why != NULL);
    CHECK(decision->changed || before->state == after->state);
    CHECK(!(decision->changed && decision->counted));
    CHECK(!decision->start || after->state == RECORD_RUNNING);
    CHECK(!decision->probe || has(after, RECORD_PROBING));
    /* The fence moves with a claim, and only then. */
    CHECK(after->attempt ==
          before->attempt + (decision->start || decision->probe ? 1 : 0));
    CHECK(after->run >= before->run);
    record_check(after);
}

struct decision record_step(struct record *record, const struct input *input,
                            const struct policy *policy, int64_t now_ms)
{
    const struct record before = *record;
    struct step step = {
        .record = record,
        .input = input,
        .policy = policy,
        .now_ms = now_ms,
        .next = record->state,
    };

    CHECK(now_ms > 0);
    record_check(record);
    dispatch(&step);
    if (step.decision.changed) {
        arrange(&step);
        record->state = step.next;
    }
    check_step(&before, record, &step.decision);
    return step.decision;
}
