/* SPDX-License-Identifier: MIT */
#include "core/record.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "core/step.h"

enum {
    FLAGS_OF_ALL = RECORD_ERASED | RECORD_RESTORED | RECORD_LEFT,
    FLAGS_OF_OPEN = FLAGS_OF_ALL | RECORD_ORDERED | RECORD_PINS,
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

static const char *due_problem(const struct record *record)
{
    bool waits = has(record, RECORD_ORDER_WAIT) || has(record, RECORD_PARKED);
    bool never = record_is_settled(record) || waits;

    return (record->due_ms == RECORD_NEVER) == never
               ? NULL
               : "it is due, or not due, against its state";
}

static const char *reason_problem(const struct record *record)
{
    enum reason reason = record->reason;
    bool fits = false;

    switch (record->state) {
    case RECORD_NONE:
    case RECORD_PENDING:
    case RECORD_RUNNING:
    case RECORD_UNCERTAIN:
    case RECORD_SUCCEEDED:
        fits = reason == REASON_NONE;
        break;
    case RECORD_FAILED:
        fits = reason == REASON_NONE ||
               (reason >= REASON_BUSINESS && reason <= REASON_DISCARDED);
        break;
    case RECORD_DEAD:
        fits = reason >= REASON_EXHAUSTED && reason <= REASON_BUSINESS;
        break;
    }
    return fits ? NULL : "its reason does not go with its state";
}

static const char *doubt_problem(const struct record *record)
{
    bool doubt = record->doubt_since_ms != 0;

    if (record->state == RECORD_UNCERTAIN && !doubt) {
        return "it is uncertain without doubt";
    }
    if (doubt &&
        (record->state == RECORD_SUCCEEDED || has(record, RECORD_RELEASED))) {
        return "it is in doubt, and settled without";
    }
    return NULL;
}

static const char *order_problem(const struct record *record)
{
    if (has(record, RECORD_ORDERED) && record->order_key == 0) {
        return "it is in order and has no ordering key";
    }
    if (has(record, RECORD_ORDER_WAIT) && !has(record, RECORD_ORDERED)) {
        return "it waits for a key that it does not stand in line for";
    }
    return NULL;
}

static const char *partition_problem(const struct record *record)
{
    bool pins = has(record, RECORD_PINS);
    bool parked = has(record, RECORD_PARKED);

    if (parked && !pins) {
        return "it waits for a partition that it does not depend on";
    }
    if (!has(record, RECORD_LEFT) || record_is_settled(record)) {
        return NULL;
    }
    if (!pins) {
        return "nobody keeps it: neither this store nor a partition";
    }
    return parked || record->state == RECORD_RUNNING
               ? NULL
               : "it may run, and what arrived is not kept here";
}

static const char *known_problem(const struct record *record)
{
    const char *problem = order_problem(record);

    if (record->run == 0) {
        return "its run is 0";
    }
    if (record->state == RECORD_RUNNING && record->attempt == 0) {
        return "it runs and has had no attempt";
    }
    if (record->first_seen_ms > record->last_seen_ms) {
        return "it was last seen before it was first seen";
    }
    problem = problem == NULL ? partition_problem(record) : problem;
    problem = problem == NULL ? due_problem(record) : problem;
    return problem == NULL ? doubt_problem(record) : problem;
}

const char *record_problem(const struct record *record)
{
    const char *problem;

    if (record->state > RECORD_DEAD) {
        return "its state is none";
    }
    if ((record->flags & ~flags_of[record->state]) != 0) {
        return "it has a flag that does not go with its state";
    }
    if (record->tries > record->attempt) {
        return "it has more tries than attempts";
    }
    problem = reason_problem(record);
    if (problem == NULL && record->state != RECORD_NONE) {
        return known_problem(record);
    }
    return problem == NULL && record->attempt > 0 ? "it is not known and ran"
                                                  : problem;
}

void record_check(const struct record *record)
{
    const char *problem = record_problem(record);

    if (problem != NULL) {
        UNREACHABLE(problem);
    }
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

/* What only counts, or lengthens a lease, is no move of its own: the time of
 * the last one stays. */
static bool is_move(const struct decision *decision)
{
    bool repeat =
        decision->move == MOVE_REPEATED || decision->move == MOVE_DRIFTED;

    return decision->move != MOVE_HEARTBEAT &&
           (!repeat || decision->also != MOVE_NONE);
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
    if (is_move(&step->decision)) {
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
    /* Only the first attempt runs with what is not kept. */
    CHECK(!(decision->start || decision->probe) || !has(after, RECORD_LEFT) ||
          before->state == RECORD_NONE);
    CHECK(decision->changed ||
          !(decision->take_envelope || decision->keep_envelope));
    CHECK(!decision->take_envelope || !has(after, RECORD_LEFT));
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
