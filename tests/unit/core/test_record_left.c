/* SPDX-License-Identifier: MIT */
/* What is left with the broker: an event that a partition brings and that
 * starts at once; and what the next delivery of it changes. */
#include "core/record.h"

#include <criterion/criterion.h>

#include "unit/core/record_world.h"

/* From elsewhere than a partition, which answers its sender. */
static struct decision arrive_by_sender(struct world *world)
{
    world->input.pins = false;
    return arrive(world);
}

static void drift(struct world *world)
{
    world->input.fingerprint.digest[0] = 2;
}

/* --- what is left with the broker ----------------------------------------- */

Test(left, what_starts_at_once_stays_with_the_broker)
{
    struct world world = partition_world(ON_UNCERTAIN_RETRY);
    struct decision decision = arrive(&world);

    cr_expect(decision.start);
    cr_expect_not(decision.take_envelope);
    cr_expect_not(decision.keep_envelope);
    cr_expect_eq(world.record.flags, LEFT);
    decision = end(&world, OUTCOME_SUCCESS);
    cr_expect_not(decision.keep_envelope);
    cr_expect_eq(world.record.state, RECORD_SUCCEEDED);
    cr_expect_eq(world.record.flags, RECORD_LEFT);
}

Test(left, what_has_to_wait_is_stored)
{
    struct world world = partition_world(ON_UNCERTAIN_RETRY);

    cr_expect(arrive_and_wait(&world).take_envelope);
    cr_expect_eq(world.record.flags, PINS);
    (void)come_due(&world);
    cr_expect_eq(world.record.flags, PINS);

    world = partition_world(ON_UNCERTAIN_RETRY);
    world.input.order_key = 7;
    world.input.order_blocked = true;
    cr_expect(arrive(&world).take_envelope);
    cr_expect_eq(world.record.flags, PINS | RECORD_ORDERED | RECORD_ORDER_WAIT);
}

Test(left, what_can_never_run_pins_nothing_and_is_stored)
{
    struct world world = partition_world(ON_UNCERTAIN_RETRY);

    world.input.reason = REASON_UNDECODABLE;
    cr_expect(feed(&world, INPUT_UNUSABLE).take_envelope);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.flags, 0);
}

Test(left, an_end_that_is_no_success_stores_what_arrived)
{
    static const struct {
        enum respond_mode respond;
        enum on_uncertain on_uncertain;
        enum outcome outcome;
        enum record_state next;
        uint32_t flags;
    } cases[] = {
        {RESPOND_ACCEPTED, ON_UNCERTAIN_RETRY, OUTCOME_TRANSIENT,
         RECORD_PENDING, PINS},
        {RESPOND_ACCEPTED, ON_UNCERTAIN_RETRY, OUTCOME_UNREACHED,
         RECORD_PENDING, PINS},
        {RESPOND_ACCEPTED, ON_UNCERTAIN_RETRY, OUTCOME_UNKNOWN,
         RECORD_UNCERTAIN, PINS},
        {RESPOND_ACCEPTED, ON_UNCERTAIN_PROBE, OUTCOME_UNKNOWN,
         RECORD_UNCERTAIN, PINS},
        {RESPOND_ACCEPTED, ON_UNCERTAIN_HOLD, OUTCOME_UNKNOWN, RECORD_DEAD, 0},
        {RESPOND_ACCEPTED, ON_UNCERTAIN_RETRY, OUTCOME_REFUSED, RECORD_DEAD, 0},
        {RESPOND_ACCEPTED, ON_UNCERTAIN_RETRY, OUTCOME_REJECTED, RECORD_DEAD,
         0},
        {RESPOND_RESULT, ON_UNCERTAIN_RETRY, OUTCOME_REJECTED, RECORD_FAILED,
         0},
        {RESPOND_RESULT, ON_UNCERTAIN_RETRY, OUTCOME_TRANSIENT, RECORD_FAILED,
         RECORD_RELEASED},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world world = left_world(cases[i].on_uncertain);
        struct decision decision;

        world.policy.respond = cases[i].respond;
        decision = end(&world, cases[i].outcome);
        cr_expect(decision.keep_envelope, "%zu", i);
        cr_expect_not(decision.take_envelope, "%zu", i);
        cr_expect_eq(world.record.state, cases[i].next, "%zu", i);
        cr_expect_eq(world.record.flags, cases[i].flags, "%zu", i);
    }
}

Test(left, only_once)
{
    struct world world = waiting_world();

    (void)come_due(&world);
    cr_expect_eq(world.record.flags, PINS);
    cr_expect_not(end(&world, OUTCOME_TRANSIENT).keep_envelope);
}

Test(left, the_end_of_another_attempt_stores_nothing)
{
    struct world world = left_world(ON_UNCERTAIN_RETRY);
    struct decision decision = end_attempt(&world, 2, OUTCOME_TRANSIENT);

    cr_expect_not(decision.changed);
    cr_expect_not(decision.keep_envelope);
    cr_expect_eq(world.record.flags, LEFT);
}

Test(left, after_a_crash_it_waits_for_the_broker_whatever_the_rule)
{
    for (size_t i = 0; i < RULES; i++) {
        struct world world = left_world(all_rules[i]);
        struct decision decision;

        world.policy.max_attempts = 1; /* spent, and not judged yet */
        world.now_ms = START + MINUTE;
        decision = crash(&world);
        cr_expect_eq(decision.move, MOVE_CRASHED);
        cr_expect_eq(decision.also, MOVE_NONE);
        cr_expect_not(decision.keep_envelope);
        cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
        cr_expect_eq(world.record.flags, AWAITED);
        cr_expect_eq(world.record.due_ms, RECORD_NEVER);
        cr_expect_eq(world.record.doubt_since_ms, START);
        cr_expect_eq(world.record.crashes, 1);
        cr_expect_eq(world.record.clock_ms, START + MINUTE);
    }
}

Test(left, after_the_last_crash_it_is_poison)
{
    struct world world = left_world(ON_UNCERTAIN_RETRY);

    world.policy.max_crashes = 0;
    (void)crash(&world);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.reason, REASON_POISON);
    cr_expect_eq(world.record.flags, RECORD_LEFT);
}

Test(left, what_is_stored_crashes_like_any_other)
{
    struct world world = waiting_world();

    (void)come_due(&world);
    (void)crash(&world);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
    cr_expect_eq(world.record.flags, PINS);
    cr_expect_eq(world.record.due_ms, world.now_ms);
}

Test(left, a_backup_that_was_restored_waits_for_the_broker)
{
    for (size_t i = 0; i < RULES; i++) {
        struct world world = left_world(all_rules[i]);

        world.now_ms = START + HOUR;
        cr_expect_eq(feed(&world, INPUT_RESTORED).move, MOVE_RESTORED);
        cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
        cr_expect_eq(world.record.flags, AWAITED | RECORD_RESTORED);
        cr_expect_eq(world.record.due_ms, RECORD_NEVER);
        cr_expect_eq(world.record.doubt_since_ms, START);

        world = awaited_world(all_rules[i]);
        (void)feed(&world, INPUT_RESTORED);
        cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
        cr_expect_eq(world.record.flags, AWAITED | RECORD_RESTORED);
    }
}

Test(left, what_is_stored_is_restored_like_any_other)
{
    struct world world = waiting_world();

    (void)feed(&world, INPUT_RESTORED);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
    cr_expect_eq(world.record.flags, PINS | RECORD_RESTORED);
    cr_expect_eq(world.record.due_ms, world.now_ms);
}

/* --- the broker delivers again -------------------------------------------- */

Test(again, what_was_left_goes_on_by_the_rule_of_its_route)
{
    static const struct {
        enum record_state state;
        uint32_t flags;
        int64_t due_ms;
        enum move also;
    } wants[] = {
        {RECORD_UNCERTAIN, PINS, START + HOUR, MOVE_WOKEN},
        {RECORD_DEAD, 0, RECORD_NEVER, MOVE_DEAD},
        {RECORD_UNCERTAIN, PINS, START + HOUR + 30 * SECOND, MOVE_WOKEN},
    };

    for (size_t i = 0; i < RULES; i++) {
        struct world world = awaited_world(all_rules[i]);
        struct decision decision = arrive(&world);

        cr_expect(decision.changed);
        cr_expect_not(decision.counted);
        cr_expect_not(decision.start);
        cr_expect(decision.take_envelope);
        cr_expect_eq(decision.move, MOVE_REPEATED);
        cr_expect_eq(decision.also, wants[i].also);
        cr_expect_eq(decision.answer, ANSWER_DUPLICATE);
        cr_expect_eq(world.record.state, wants[i].state);
        cr_expect_eq(world.record.flags, wants[i].flags);
        cr_expect_eq(world.record.due_ms, wants[i].due_ms);
        cr_expect_eq(world.record.doubt_since_ms, START);
        cr_expect_eq(world.record.deliveries, 2);
        cr_expect_eq(world.record.last_seen_ms, START + HOUR);
        cr_expect_eq(world.record.changed_ms, START + HOUR);
    }
}

Test(again, the_second_attempt_has_its_cause_and_its_envelope)
{
    struct world world = awaited_world(ON_UNCERTAIN_RETRY);

    (void)arrive(&world);
    cr_expect(come_due(&world).start);
    cr_expect_eq(world.record.attempt, 2);
    cr_expect_eq(world.record.crashes, 1);
    cr_expect_eq(world.record.flags, PINS);
}

Test(again, spent_tries_are_judged_when_it_comes_due)
{
    struct world world = awaited_world(ON_UNCERTAIN_RETRY);

    world.policy.max_attempts = 1;
    (void)arrive(&world);
    (void)come_due(&world);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
    cr_expect_eq(world.record.flags, 0);
}

Test(again, a_result_route_answers_by_what_became_of_it)
{
    struct world world = awaited_world(ON_UNCERTAIN_RETRY);

    world.policy.respond = RESPOND_RESULT;
    cr_expect_eq(arrive(&world).answer, ANSWER_UNCERTAIN);
    world = awaited_world(ON_UNCERTAIN_HOLD);
    world.policy.respond = RESPOND_RESULT;
    cr_expect_eq(arrive(&world).answer, ANSWER_PARKED);
}

Test(again, a_sender_that_is_answered_makes_it_ours)
{
    struct world world = awaited_world(ON_UNCERTAIN_RETRY);

    cr_expect(arrive_by_sender(&world).take_envelope);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.due_ms, world.now_ms);

    world = waiting_world();
    (void)feed(&world, INPUT_PARK);
    cr_expect_not(arrive_by_sender(&world).take_envelope);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.due_ms, world.now_ms);

    world = waiting_world();
    cr_expect(arrive_by_sender(&world).changed);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_neq(world.record.due_ms, world.now_ms, "it goes on waiting");
    cr_expect_not(feed(&world, INPUT_PARK).changed);
    cr_expect_not(arrive_by_sender(&world).changed);
}

Test(again, a_running_event_becomes_ours_with_its_envelope)
{
    struct world world = left_world(ON_UNCERTAIN_RETRY);
    struct decision decision;

    world.now_ms += SECOND;
    decision = arrive_by_sender(&world);
    cr_expect(decision.changed);
    cr_expect(decision.take_envelope);
    cr_expect_eq(decision.move, MOVE_REPEATED);
    cr_expect_eq(world.record.state, RECORD_RUNNING);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.changed_ms, START, "when the attempt began");
    cr_expect_eq(world.record.due_ms, START + LEASE);
    cr_expect_not(end(&world, OUTCOME_TRANSIENT).keep_envelope);
}

Test(again, an_attempt_of_this_process_has_the_message_at_hand)
{
    struct world world = left_world(ON_UNCERTAIN_RETRY);
    struct decision decision = arrive(&world);

    cr_expect(decision.counted);
    cr_expect_not(decision.changed);
    cr_expect_not(decision.take_envelope);
    cr_expect_eq(world.record.flags, LEFT);
}

Test(again, an_attempt_of_an_earlier_process_is_given_what_it_may_need)
{
    struct world world = left_world(ON_UNCERTAIN_HOLD);

    world.now_ms += SECOND;
    world.input.epoch = 10;
    cr_expect(arrive(&world).take_envelope);
    cr_expect_eq(world.record.state, RECORD_RUNNING);
    cr_expect_eq(world.record.flags, PINS);
    cr_expect_eq(world.record.changed_ms, START);
    cr_expect_eq(world.record.epoch, 9);
    (void)crash(&world);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.flags, 0);
}

Test(again, a_dead_letter_gets_what_it_would_be_replayed_with)
{
    for (size_t i = 0; i < 2; i++) {
        struct world world = left_world(ON_UNCERTAIN_RETRY);

        world.policy.max_crashes = 0;
        (void)crash(&world);
        cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_REFUSED);
        world.now_ms = START + HOUR;
        world.input.pins = i == 0;
        cr_expect(arrive(&world).take_envelope);
        cr_expect_eq(world.record.state, RECORD_DEAD);
        cr_expect_eq(world.record.reason, REASON_POISON);
        cr_expect_eq(world.record.flags, 0);
        cr_expect_eq(world.record.changed_ms, START, "when it died");
        cr_expect_not(arrive(&world).changed);
        cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_DONE);
    }
}

Test(again, a_success_needs_nothing)
{
    struct world world = left_world(ON_UNCERTAIN_RETRY);
    struct decision decision;

    (void)end(&world, OUTCOME_SUCCESS);
    decision = arrive_by_sender(&world);
    cr_expect_not(decision.changed);
    cr_expect_not(decision.take_envelope);
    cr_expect_eq(world.record.flags, RECORD_LEFT);
    cr_expect_eq(order(&world, INPUT_RERUN).verdict, VERDICT_REFUSED);
}

Test(again, a_released_key_takes_what_comes)
{
    struct world world = awaited_world(ON_UNCERTAIN_RETRY);
    struct decision decision;

    world.policy.respond = RESPOND_RESULT;
    (void)order(&world, INPUT_RESOLVE_NOT_APPLIED);
    cr_assert_eq(world.record.state, RECORD_FAILED);
    cr_assert_eq(world.record.flags, RECORD_RELEASED | RECORD_LEFT);
    decision = arrive(&world);
    cr_expect(decision.start);
    cr_expect(decision.take_envelope, "an older one may be stored");
    cr_expect_eq(world.record.flags, PINS);
}

Test(again, other_content_of_a_sender_leaves_it_to_the_partition)
{
    struct world world = awaited_world(ON_UNCERTAIN_RETRY);
    struct decision decision;

    drift(&world);
    decision = arrive_by_sender(&world);
    cr_expect_eq(decision.move, MOVE_DRIFTED);
    cr_expect(decision.counted);
    cr_expect_not(decision.take_envelope);
    cr_expect_eq(world.record.flags, AWAITED);
    cr_expect_eq(world.record.fingerprint.digest[0], 1);

    world = waiting_world();
    drift(&world);
    cr_expect_not(arrive_by_sender(&world).changed);
    cr_expect_eq(world.record.flags, PINS);
}

Test(again, other_content_holds_no_partition_up)
{
    struct world world = awaited_world(ON_UNCERTAIN_RETRY);
    struct decision decision;

    drift(&world);
    decision = arrive(&world);
    cr_expect_eq(decision.move, MOVE_DRIFTED);
    cr_expect_eq(decision.also, MOVE_WOKEN);
    cr_expect_eq(decision.answer, ANSWER_DUPLICATE);
    cr_expect(decision.take_envelope, "nothing else is there to run");
    cr_expect_eq(world.record.flags, PINS);
    cr_expect_eq(world.record.drifts, 1);
    cr_expect_eq(world.record.fingerprint.digest[0], 2);
    cr_expect_not(arrive(&world).changed);
    cr_expect_eq(world.record.drifts, 1, "it is what it is compared with");

    world = waiting_world();
    (void)feed(&world, INPUT_PARK);
    drift(&world);
    world.policy.on_drift = ON_DRIFT_REJECT;
    decision = arrive(&world);
    cr_expect_eq(decision.answer, ANSWER_MISMATCH);
    cr_expect_not(decision.take_envelope, "the first content is here");
    cr_expect_eq(world.record.flags, PINS);
    cr_expect_eq(world.record.due_ms, world.now_ms);
    cr_expect_eq(world.record.fingerprint.digest[0], 1);
}

Test(again, what_can_never_run_moves_nothing)
{
    struct world world = awaited_world(ON_UNCERTAIN_RETRY);
    struct decision decision;

    world.input.reason = REASON_UNDECODABLE;
    decision = feed(&world, INPUT_UNUSABLE);
    cr_expect(decision.counted);
    cr_expect_not(decision.changed);
    cr_expect_eq(world.record.flags, AWAITED);
}
