/* SPDX-License-Identifier: MIT */
/* How attempts end, what that proves, and how many there are. */
#include "core/record.h"

#include <criterion/criterion.h>

#include "unit/core/record_world.h"

struct end_case {
    enum respond_mode respond;
    enum outcome outcome;
    enum on_error on_error;
    enum record_state state;
    enum reason reason;
    uint32_t flags;
    enum move move;
    bool keep_result;
};

/* The first attempt, nothing in doubt, nothing spent. */
static const struct end_case first_ends[] = {
    {RESPOND_ACCEPTED, OUTCOME_SUCCESS, ON_ERROR_CACHE, RECORD_SUCCEEDED,
     REASON_NONE, 0, MOVE_SUCCEEDED, true},
    {RESPOND_RESULT, OUTCOME_SUCCESS, ON_ERROR_CACHE, RECORD_SUCCEEDED,
     REASON_NONE, 0, MOVE_SUCCEEDED, true},
    {RESPOND_ACCEPTED, OUTCOME_REFUSED, ON_ERROR_CACHE, RECORD_DEAD,
     REASON_REFUSED, 0, MOVE_DEAD, false},
    {RESPOND_HANDLED, OUTCOME_REFUSED, ON_ERROR_CACHE, RECORD_DEAD,
     REASON_REFUSED, 0, MOVE_DEAD, false},
    {RESPOND_RESULT, OUTCOME_REFUSED, ON_ERROR_CACHE, RECORD_FAILED,
     REASON_NONE, RECORD_RELEASED, MOVE_RELEASED, false},
    {RESPOND_ACCEPTED, OUTCOME_TRANSIENT, ON_ERROR_CACHE, RECORD_PENDING,
     REASON_NONE, 0, MOVE_RETRY, false},
    {RESPOND_HANDLED, OUTCOME_TRANSIENT, ON_ERROR_DEAD, RECORD_PENDING,
     REASON_NONE, 0, MOVE_RETRY, false},
    {RESPOND_RESULT, OUTCOME_TRANSIENT, ON_ERROR_CACHE, RECORD_FAILED,
     REASON_NONE, RECORD_RELEASED, MOVE_RELEASED, false},
    {RESPOND_ACCEPTED, OUTCOME_REJECTED, ON_ERROR_CACHE, RECORD_DEAD,
     REASON_REFUSED, 0, MOVE_DEAD, false},
    {RESPOND_ACCEPTED, OUTCOME_REJECTED, ON_ERROR_RETRY, RECORD_PENDING,
     REASON_NONE, 0, MOVE_RETRY, false},
    {RESPOND_ACCEPTED, OUTCOME_REJECTED, ON_ERROR_DEAD, RECORD_DEAD,
     REASON_REFUSED, 0, MOVE_DEAD, false},
    {RESPOND_RESULT, OUTCOME_REJECTED, ON_ERROR_CACHE, RECORD_FAILED,
     REASON_NONE, 0, MOVE_FAILED, true},
    {RESPOND_RESULT, OUTCOME_REJECTED, ON_ERROR_RETRY, RECORD_FAILED,
     REASON_NONE, RECORD_RELEASED, MOVE_RELEASED, false},
    {RESPOND_RESULT, OUTCOME_REJECTED, ON_ERROR_DEAD, RECORD_DEAD,
     REASON_REFUSED, 0, MOVE_DEAD, false},
    {RESPOND_ACCEPTED, OUTCOME_UNREACHED, ON_ERROR_CACHE, RECORD_PENDING,
     REASON_NONE, 0, MOVE_RETRY, false},
    {RESPOND_RESULT, OUTCOME_UNREACHED, ON_ERROR_CACHE, RECORD_FAILED,
     REASON_NONE, RECORD_RELEASED, MOVE_RELEASED, false},
    {RESPOND_ACCEPTED, OUTCOME_UNKNOWN, ON_ERROR_DEAD, RECORD_UNCERTAIN,
     REASON_NONE, 0, MOVE_UNCERTAIN, false},
    {RESPOND_RESULT, OUTCOME_UNKNOWN, ON_ERROR_CACHE, RECORD_UNCERTAIN,
     REASON_NONE, 0, MOVE_UNCERTAIN, false},
};

/* The second attempt, when the first may have taken effect; `retry`. */
static const struct end_case ends_in_doubt[] = {
    {RESPOND_ACCEPTED, OUTCOME_SUCCESS, ON_ERROR_CACHE, RECORD_SUCCEEDED,
     REASON_NONE, 0, MOVE_SUCCEEDED, true},
    {RESPOND_ACCEPTED, OUTCOME_REFUSED, ON_ERROR_CACHE, RECORD_DEAD,
     REASON_REFUSED, 0, MOVE_DEAD, false},
    {RESPOND_RESULT, OUTCOME_REFUSED, ON_ERROR_CACHE, RECORD_UNCERTAIN,
     REASON_NONE, 0, MOVE_UNCERTAIN, false},
    {RESPOND_ACCEPTED, OUTCOME_TRANSIENT, ON_ERROR_CACHE, RECORD_UNCERTAIN,
     REASON_NONE, 0, MOVE_UNCERTAIN, false},
    {RESPOND_RESULT, OUTCOME_TRANSIENT, ON_ERROR_CACHE, RECORD_UNCERTAIN,
     REASON_NONE, 0, MOVE_UNCERTAIN, false},
    {RESPOND_ACCEPTED, OUTCOME_REJECTED, ON_ERROR_CACHE, RECORD_DEAD,
     REASON_REFUSED, 0, MOVE_DEAD, false},
    {RESPOND_RESULT, OUTCOME_REJECTED, ON_ERROR_CACHE, RECORD_FAILED,
     REASON_NONE, 0, MOVE_FAILED, true},
    {RESPOND_ACCEPTED, OUTCOME_UNREACHED, ON_ERROR_CACHE, RECORD_UNCERTAIN,
     REASON_NONE, 0, MOVE_UNCERTAIN, false},
    {RESPOND_RESULT, OUTCOME_UNREACHED, ON_ERROR_CACHE, RECORD_UNCERTAIN,
     REASON_NONE, 0, MOVE_UNCERTAIN, false},
    {RESPOND_ACCEPTED, OUTCOME_UNKNOWN, ON_ERROR_CACHE, RECORD_UNCERTAIN,
     REASON_NONE, 0, MOVE_UNCERTAIN, false},
};

static void expect_end(const struct world *world,
                       const struct decision *decision,
                       const struct end_case *expected)
{
    const char *name = outcome_name(expected->outcome);

    cr_expect_eq(world->record.state, expected->state, "%s, mode %d: %s", name,
                 expected->respond, record_state_name(world->record.state));
    cr_expect_eq(world->record.reason, expected->reason, "%s", name);
    cr_expect_eq(world->record.flags, expected->flags, "%s", name);
    cr_expect_eq(world->record.status, 200, "%s", name);
    cr_expect_eq(decision->move, expected->move, "%s", name);
    cr_expect_eq(decision->keep_result, expected->keep_result, "%s", name);
    cr_expect_not(decision->start, "%s", name);
}

Test(outcome, the_first_end_means_what_the_table_says)
{
    for (size_t i = 0; i < sizeof first_ends / sizeof first_ends[0]; i++) {
        struct world world =
            world_of(first_ends[i].respond, ON_UNCERTAIN_RETRY);
        struct decision decision;

        world.policy.on_error = first_ends[i].on_error;
        (void)arrive(&world);
        decision = end(&world, first_ends[i].outcome);
        expect_end(&world, &decision, &first_ends[i]);
        cr_expect_eq(world.record.doubt_since_ms,
                     first_ends[i].outcome == OUTCOME_UNKNOWN ? START : 0);
    }
}

Test(outcome, an_end_in_doubt_proves_less)
{
    for (size_t i = 0; i < sizeof ends_in_doubt / sizeof ends_in_doubt[0];
         i++) {
        const struct end_case *expected = &ends_in_doubt[i];
        struct world world = world_of(expected->respond, ON_UNCERTAIN_RETRY);
        struct decision decision;
        bool settles_doubt = expected->outcome == OUTCOME_SUCCESS ||
                             expected->outcome == OUTCOME_REJECTED;

        (void)arrive(&world);
        (void)end(&world, OUTCOME_UNKNOWN);
        (void)come_due(&world);
        decision = end(&world, expected->outcome);
        expect_end(&world, &decision, expected);
        cr_expect_eq(world.record.doubt_since_ms, settles_doubt ? 0 : START);
    }
}

/* Doubt under a rule that does not trust the key: only where the rule was
 * changed meanwhile. */
Test(outcome, a_definite_answer_settles_no_doubt_where_the_key_is_not_trusted)
{
    static const enum outcome outcomes[] = {OUTCOME_REFUSED, OUTCOME_TRANSIENT,
                                            OUTCOME_REJECTED, OUTCOME_UNREACHED,
                                            OUTCOME_UNKNOWN};

    for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++) {
        struct world world = world_new();
        struct decision decision;

        (void)arrive(&world);
        (void)end(&world, OUTCOME_UNKNOWN);
        (void)come_due(&world);
        world.policy.on_uncertain = ON_UNCERTAIN_HOLD;
        decision = end(&world, outcomes[i]);
        cr_expect_eq(world.record.state, RECORD_DEAD);
        cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
        cr_expect_eq(decision.move, MOVE_UNCERTAIN);
        cr_expect_eq(decision.also, MOVE_DEAD);
        cr_expect_eq(world.record.doubt_since_ms, START);
    }
}

Test(outcome, hold_makes_a_dead_letter_in_the_same_step)
{
    struct world world = world_of(RESPOND_RESULT, ON_UNCERTAIN_HOLD);
    struct decision decision;

    (void)arrive(&world);
    decision = end(&world, OUTCOME_UNKNOWN);
    cr_expect_eq(decision.move, MOVE_UNCERTAIN);
    cr_expect_eq(decision.also, MOVE_DEAD);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
    cr_expect_eq(world.record.doubt_since_ms, START);
    cr_expect_eq(world.record.due_ms, RECORD_NEVER);
}

Test(fence, an_answer_of_another_attempt_changes_nothing)
{
    struct world world = world_new();

    (void)arrive(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    (void)come_due(&world);
    cr_expect_not(end_attempt(&world, 1, OUTCOME_SUCCESS).changed);
    cr_expect_not(end_attempt(&world, 3, OUTCOME_SUCCESS).changed);
    world.input.attempt = 1;
    cr_expect_not(feed(&world, INPUT_CRASHED).changed);
    cr_expect_not(feed(&world, INPUT_HEARTBEAT).changed);
    cr_expect_eq(world.record.state, RECORD_RUNNING);
    cr_expect_eq(world.record.attempt, 2);
    (void)end_attempt(&world, 2, OUTCOME_SUCCESS);
    cr_expect_eq(world.record.state, RECORD_SUCCEEDED);
}

Test(fence, a_late_success_is_evidence_and_settles_nothing)
{
    struct world world = world_new();

    (void)arrive(&world);
    (void)crash(&world);
    cr_expect_not(end_attempt(&world, 1, OUTCOME_SUCCESS).changed);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
}

Test(lease, a_heartbeat_makes_it_longer_and_never_shorter)
{
    struct world world = world_new();

    (void)arrive(&world);
    world.input.attempt = 1;
    world.now_ms = START + LEASE - SECOND;
    cr_expect_not(feed(&world, INPUT_HEARTBEAT).changed);
    cr_expect_eq(world.record.due_ms, START + LEASE);
    world.now_ms = START + MINUTE;
    cr_expect(feed(&world, INPUT_HEARTBEAT).changed);
    cr_expect_eq(world.record.due_ms, START + MINUTE + SECOND);
    /* the doubt still begins with the attempt */
    (void)end_attempt(&world, 1, OUTCOME_UNKNOWN);
    cr_expect_eq(world.record.doubt_since_ms, START);
}

Test(backoff, it_doubles_up_to_its_maximum)
{
    struct world world = world_new();
    int64_t delay_ms = SECOND;

    (void)arrive(&world);
    for (int i = 0; i < 14; i++) {
        (void)end(&world, OUTCOME_TRANSIENT);
        cr_expect_eq(world.record.due_ms - world.now_ms, delay_ms);
        delay_ms = delay_ms * 2 < 10 * MINUTE ? delay_ms * 2 : 10 * MINUTE;
        (void)come_due(&world);
    }
}

Test(backoff, a_handler_may_ask_for_more_time_but_a_day_at_most)
{
    static const struct {
        int64_t asked_ms, delay_ms;
    } cases[] = {{-1, SECOND},
                 {0, SECOND},
                 {SECOND - 1, SECOND},
                 {MINUTE, MINUTE},
                 {25 * HOUR, 24 * HOUR}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world world = world_new();

        world.policy.give_up_after_ms = 72 * HOUR;
        (void)arrive(&world);
        world.input.retry_after_ms = cases[i].asked_ms;
        (void)end(&world, OUTCOME_TRANSIENT);
        cr_expect_eq(world.record.due_ms - world.now_ms, cases[i].delay_ms);
    }
}

Test(limits, max_attempts_makes_it_exhausted)
{
    struct world world = world_new();

    world.policy.max_attempts = 3;
    (void)arrive(&world);
    for (int i = 0; i < 2; i++) {
        (void)end(&world, OUTCOME_TRANSIENT);
        cr_assert_eq(world.record.state, RECORD_PENDING);
        (void)come_due(&world);
    }
    cr_expect_eq(end(&world, OUTCOME_TRANSIENT).move, MOVE_DEAD);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.reason, REASON_EXHAUSTED);
    cr_expect_eq(world.record.attempt, 3);
}

Test(limits, in_doubt_the_end_of_the_tries_is_uncertain)
{
    struct world world = world_new();
    struct decision decision;

    world.policy.max_attempts = 2;
    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    (void)come_due(&world);
    decision = end(&world, OUTCOME_TRANSIENT);
    cr_expect_eq(decision.move, MOVE_UNCERTAIN);
    cr_expect_eq(decision.also, MOVE_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
    cr_expect_eq(world.record.doubt_since_ms, START);
}

Test(limits, a_try_after_give_up_after_is_not_made)
{
    struct world world = world_new();

    /* ends at 1 s, due at 2 s: just within, and just not */
    world.policy.give_up_after_ms = 2 * SECOND;
    (void)arrive(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    cr_expect_eq(world.record.state, RECORD_PENDING);

    world = world_new();
    world.policy.give_up_after_ms = 2 * SECOND - 1;
    (void)arrive(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.reason, REASON_EXHAUSTED);

    world = world_new();
    world.policy.give_up_after_ms = 0;
    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
}

Test(limits, however_late_there_is_one_attempt)
{
    struct world world = world_new();

    world.policy.give_up_after_ms = HOUR;
    (void)arrive_and_wait(&world);
    world.now_ms = START + 48 * HOUR;
    cr_expect(come_due(&world).start);
}

Test(limits, no_limit_is_never_reached)
{
    struct world world = world_new();

    world.policy.give_up_after_ms = INT64_MAX;
    (void)arrive(&world);
    for (int i = 0; i < 1000; i++) {
        (void)end(&world, OUTCOME_TRANSIENT);
        cr_assert_eq(world.record.state, RECORD_PENDING);
        (void)come_due(&world);
    }
}

Test(limits, a_lowered_limit_counts_when_it_comes_due)
{
    struct world world = world_new();

    (void)arrive(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    world.policy.max_attempts = 1;
    cr_expect_eq(come_due(&world).move, MOVE_DEAD);
    cr_expect_eq(world.record.reason, REASON_EXHAUSTED);

    world = world_new();
    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    world.policy.max_attempts = 1;
    cr_expect_eq(come_due(&world).move, MOVE_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
}

Test(limits, an_unreachable_handler_spends_neither_tries_nor_time)
{
    struct world world = world_new();

    world.policy.max_attempts = 2;
    world.policy.give_up_after_ms = 5 * SECOND;
    (void)arrive(&world);
    for (int i = 0; i < 50; i++) {
        (void)end(&world, OUTCOME_UNREACHED);
        cr_assert_eq(world.record.state, RECORD_PENDING);
        cr_assert_eq(world.record.tries, 0);
        world.now_ms += 2 * MINUTE;
        (void)come_due(&world);
    }
    cr_expect_eq(world.record.attempt, 51);
    cr_expect_gt(world.now_ms, START + HOUR);
    /* the clock stood still, so there is time for another try */
    (void)end(&world, OUTCOME_TRANSIENT);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.tries, 1);
}

Test(limits, an_event_that_did_not_reach_its_handler_stays_due)
{
    struct world world = world_new();

    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNREACHED);
    cr_expect_eq(world.record.due_ms, world.now_ms);
    cr_expect_eq(world.record.backoffs, 0);
    (void)come_due(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    cr_expect_eq(world.record.due_ms - world.now_ms, SECOND);
}

Test(limits, the_count_of_backoffs_does_not_wrap)
{
    struct world world = world_new();

    (void)arrive(&world);
    world.record.backoffs = UINT32_MAX;
    (void)end(&world, OUTCOME_TRANSIENT);
    cr_expect_eq(world.record.backoffs, UINT32_MAX);
    cr_expect_eq(world.record.due_ms - world.now_ms, 10 * MINUTE);
}

Test(crash, the_first_is_tried_again_at_once_the_next_later)
{
    struct world world = world_new();

    (void)arrive(&world);
    world.now_ms += HOUR;
    cr_expect_eq(crash(&world).move, MOVE_CRASHED);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
    cr_expect_eq(world.record.doubt_since_ms, START);
    cr_expect_eq(world.record.due_ms, world.now_ms);
    (void)come_due(&world);
    (void)crash(&world);
    cr_expect_eq(world.record.due_ms, world.now_ms + SECOND);
    (void)come_due(&world);
    (void)crash(&world);
    cr_expect_eq(world.record.due_ms, world.now_ms + 2 * SECOND);
    cr_expect_eq(world.record.crashes, 3);
}

Test(crash, one_more_than_max_crashes_is_poison)
{
    struct world world = world_new();
    struct decision decision;

    world.policy.max_crashes = 1;
    (void)arrive(&world);
    (void)crash(&world);
    (void)come_due(&world);
    decision = crash(&world);
    cr_expect_eq(decision.move, MOVE_CRASHED);
    cr_expect_eq(decision.also, MOVE_DEAD);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.reason, REASON_POISON);
    cr_expect_eq(world.record.doubt_since_ms, START);
}

Test(crash, the_time_lost_by_it_does_not_count_but_the_attempt_does)
{
    struct world world = world_new();

    world.policy.give_up_after_ms = HOUR;
    (void)arrive(&world);
    world.now_ms += 48 * HOUR;
    (void)crash(&world);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
    cr_expect_eq(world.record.tries, 1);

    world = world_new();
    world.policy.max_attempts = 1;
    (void)arrive(&world);
    (void)crash(&world);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
}

Test(crash, hold_and_probe_have_their_way)
{
    struct world world = world_of(RESPOND_RESULT, ON_UNCERTAIN_HOLD);

    (void)arrive(&world);
    cr_expect_eq(crash(&world).also, MOVE_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);

    world = world_of(RESPOND_ACCEPTED, ON_UNCERTAIN_PROBE);
    (void)arrive(&world);
    (void)crash(&world);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
    cr_expect_eq(world.record.due_ms, START + 30 * SECOND);
}
