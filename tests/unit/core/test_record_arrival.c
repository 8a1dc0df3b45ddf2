/* SPDX-License-Identifier: MIT */
/* Deliveries: the first, repeats, drift, and what a caller is told. */
#include "core/record.h"

#include <criterion/criterion.h>

#include "unit/core/record_world.h"

Test(arrival, a_new_event_with_a_free_slot_is_claimed_at_once)
{
    struct world world = world_new();
    struct decision decision = arrive(&world);

    cr_expect_eq(decision.answer, ANSWER_ACCEPTED);
    cr_expect(decision.start);
    cr_expect(decision.take_envelope);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.state, RECORD_RUNNING);
    cr_expect_eq(world.record.route, 4);
    cr_expect_eq(world.record.run, 1);
    cr_expect_eq(world.record.attempt, 1);
    cr_expect_eq(world.record.tries, 1);
    cr_expect_eq(world.record.epoch, 9);
    cr_expect_eq(world.record.deliveries, 1);
    cr_expect_eq(world.record.first_seen_ms, START);
    cr_expect_eq(world.record.last_seen_ms, START);
    cr_expect_eq(world.record.clock_ms, START);
    cr_expect_eq(world.record.changed_ms, START);
    cr_expect_eq(world.record.due_ms, START + LEASE);
}

Test(arrival, a_new_event_without_a_slot_is_due_at_once)
{
    struct world world = world_new();
    struct decision decision = arrive_and_wait(&world);

    cr_expect_eq(decision.answer, ANSWER_ACCEPTED);
    cr_expect_not(decision.start);
    cr_expect_eq(decision.also, MOVE_NONE);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.attempt, 0);
    cr_expect_eq(world.record.due_ms, START);
}

Test(arrival, what_can_never_run_is_dead_at_once_and_blocks_no_key)
{
    struct world world = world_new();
    struct decision decision;

    world.policy.after_dead = AFTER_DEAD_HOLD;
    world.input.order_key = 5;
    world.input.reason = REASON_TOO_OLD;
    decision = feed(&world, INPUT_UNUSABLE);
    cr_expect_eq(decision.answer, ANSWER_DEAD);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.reason, REASON_TOO_OLD);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.attempt, 0);
    cr_expect_eq(world.record.due_ms, RECORD_NEVER);
}

Test(arrival, a_repeat_is_counted_and_moves_nothing)
{
    struct world world = world_new();
    struct decision decision;

    live_until(&world, RECORD_SUCCEEDED);
    world.now_ms = START + HOUR;
    decision = arrive(&world);
    cr_expect(decision.counted);
    cr_expect_not(decision.changed);
    cr_expect_eq(world.record.deliveries, 2);
    cr_expect_eq(world.record.drifts, 0);
    cr_expect_eq(world.record.last_seen_ms, START + HOUR);
    cr_expect_eq(world.record.changed_ms, START + SECOND);
    world.now_ms = START + MINUTE;
    (void)arrive(&world);
    cr_expect_eq(world.record.last_seen_ms, START + HOUR);
}

Test(arrival, an_accepted_repeat_is_a_duplicate_in_every_state)
{
    static const enum respond_mode modes[] = {RESPOND_ACCEPTED,
                                              RESPOND_HANDLED};

    for (size_t i = 0; i < 2; i++) {
        for (enum record_state state = RECORD_PENDING; state <= RECORD_DEAD;
             state++) {
            struct world world = world_of(modes[i], ON_UNCERTAIN_RETRY);

            live_until(&world, state);
            cr_expect_eq(world.record.state, state);
            cr_expect_eq(arrive(&world).answer, ANSWER_DUPLICATE);
        }
    }
}

Test(arrival, a_result_route_answers_a_repeat_by_its_state)
{
    static const enum answer_kind answers[RECORD_STATES] = {
        [RECORD_PENDING] = ANSWER_IN_PROGRESS,
        [RECORD_RUNNING] = ANSWER_IN_PROGRESS,
        [RECORD_UNCERTAIN] = ANSWER_UNCERTAIN,
        [RECORD_SUCCEEDED] = ANSWER_REPLAY,
        [RECORD_FAILED] = ANSWER_REPLAY,
        [RECORD_DEAD] = ANSWER_PARKED,
    };

    for (enum record_state state = RECORD_PENDING; state <= RECORD_DEAD;
         state++) {
        struct world world = world_of(RESPOND_RESULT, ON_UNCERTAIN_RETRY);

        live_until(&world, state);
        cr_expect_eq(world.record.state, state);
        cr_expect_eq(arrive(&world).answer, answers[state], "%s",
                     record_state_name(state));
    }
}

/* A record of content 1 in `state`, and a delivery of content 2. */
static struct decision drift(struct world *world, enum record_state state)
{
    world->input.fingerprint = (struct fingerprint){1, FINGERPRINT_RAW, {1}};
    live_until(world, state);
    world->input.fingerprint.digest[0] = 2;
    return arrive(world);
}

Test(arrival, other_content_is_told_by_the_rule_of_the_route)
{
    static const struct {
        enum respond_mode respond;
        enum on_drift on_drift;
        enum answer_kind answer;
    } cases[] = {
        {RESPOND_ACCEPTED, ON_DRIFT_ACK, ANSWER_DUPLICATE},
        {RESPOND_ACCEPTED, ON_DRIFT_DEAD, ANSWER_DUPLICATE},
        {RESPOND_ACCEPTED, ON_DRIFT_REJECT, ANSWER_MISMATCH},
        {RESPOND_HANDLED, ON_DRIFT_ACK, ANSWER_DUPLICATE},
        {RESPOND_HANDLED, ON_DRIFT_REJECT, ANSWER_MISMATCH},
        {RESPOND_RESULT, ON_DRIFT_ACK, ANSWER_MISMATCH},
        {RESPOND_RESULT, ON_DRIFT_DEAD, ANSWER_MISMATCH},
        {RESPOND_RESULT, ON_DRIFT_REJECT, ANSWER_MISMATCH},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (enum record_state state = RECORD_PENDING; state <= RECORD_DEAD;
             state++) {
            struct world world = world_of(cases[i].respond, ON_UNCERTAIN_RETRY);
            struct decision decision;

            world.policy.on_drift = cases[i].on_drift;
            decision = drift(&world, state);
            cr_expect_eq(decision.answer, cases[i].answer);
            cr_expect_eq(decision.move, MOVE_DRIFTED);
            cr_expect(decision.counted);
            cr_expect_not(decision.changed);
            cr_expect_eq(world.record.drifts, 1);
            cr_expect_eq(world.record.state, state);
            cr_expect_eq(world.record.fingerprint.digest[0], 1);
        }
    }
}

Test(arrival, content_is_not_compared_where_one_side_has_none)
{
    struct world world = world_of(RESPOND_RESULT, ON_UNCERTAIN_RETRY);

    live_until(&world, RECORD_SUCCEEDED);
    world.input.fingerprint = (struct fingerprint){1, FINGERPRINT_RAW, {2}};
    cr_expect_eq(arrive(&world).answer, ANSWER_REPLAY);
    world.record.fingerprint = world.input.fingerprint;
    world.input.fingerprint = (struct fingerprint){0};
    cr_expect_eq(arrive(&world).answer, ANSWER_REPLAY);
    cr_expect_eq(world.record.drifts, 0);
}

Test(arrival, a_fingerprint_of_another_algorithm_does_not_match)
{
    struct world world = world_of(RESPOND_RESULT, ON_UNCERTAIN_RETRY);

    world.input.fingerprint = (struct fingerprint){1, FINGERPRINT_JSON, {1}};
    live_until(&world, RECORD_SUCCEEDED);
    world.input.fingerprint.mode = FINGERPRINT_RAW;
    cr_expect_eq(arrive(&world).answer, ANSWER_MISMATCH);
}

static struct world released_world(void)
{
    struct world world = world_of(RESPOND_RESULT, ON_UNCERTAIN_HOLD);

    world.input.fingerprint = (struct fingerprint){1, FINGERPRINT_RAW, {1}};
    (void)arrive(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    cr_assert_eq(world.record.flags, RECORD_RELEASED);
    world.now_ms = START + HOUR;
    world.input.route = 6;
    world.input.fingerprint.digest[0] = 2;
    return world;
}

Test(arrival, the_next_delivery_of_a_released_key_runs_as_it_came)
{
    struct world world = released_world();
    struct decision decision;

    world.record.flags |= RECORD_ERASED;
    decision = arrive(&world);
    cr_expect_eq(decision.answer, ANSWER_ACCEPTED);
    cr_expect(decision.take_envelope);
    cr_expect(decision.start);
    cr_expect_eq(world.record.state, RECORD_RUNNING);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.attempt, 2);
    cr_expect_eq(world.record.tries, 1);
    cr_expect_eq(world.record.backoffs, 0);
    cr_expect_eq(world.record.run, 1);
    cr_expect_eq(world.record.route, 6);
    cr_expect_eq(world.record.deliveries, 2);
    cr_expect_eq(world.record.drifts, 0);
    cr_expect_eq(world.record.clock_ms, START + HOUR);
    cr_expect_eq(world.record.first_seen_ms, START);
    cr_expect_eq(world.record.fingerprint.digest[0], 2);
    cr_expect_eq(world.record.status, 0);
}

Test(arrival, a_released_key_without_a_slot_waits_for_one)
{
    struct world world = released_world();
    struct decision decision = arrive_and_wait(&world);

    cr_expect(decision.take_envelope);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.due_ms, START + HOUR);
    cr_expect_eq(world.record.fingerprint.digest[0], 2);
}

Test(order, a_later_event_of_a_key_waits_until_it_is_first)
{
    struct world world = world_new();
    struct decision decision;

    world.input.order_key = 77;
    world.input.order_blocked = true;
    decision = arrive(&world);
    cr_expect_not(decision.start);
    cr_expect_eq(world.record.flags, RECORD_ORDERED | RECORD_ORDER_WAIT);
    cr_expect_eq(world.record.due_ms, RECORD_NEVER);
    world.now_ms += HOUR;
    decision = feed(&world, INPUT_ORDER_FREE);
    cr_expect(decision.changed);
    cr_expect_eq(world.record.flags, RECORD_ORDERED);
    cr_expect_eq(world.record.due_ms, START + HOUR);
}

Test(order, the_first_event_of_a_key_starts_and_holds_its_place)
{
    struct world world = world_new();

    world.input.order_key = 77;
    cr_expect(arrive(&world).start);
    cr_expect_eq(world.record.order_key, 77);
    cr_expect_eq(world.record.flags, RECORD_ORDERED);
    (void)end(&world, OUTCOME_TRANSIENT);
    cr_expect_eq(world.record.flags, RECORD_ORDERED);
    (void)come_due(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    cr_expect_eq(world.record.flags, RECORD_ORDERED);
    (void)come_due(&world);
    (void)end(&world, OUTCOME_SUCCESS);
    cr_expect_eq(world.record.state, RECORD_SUCCEEDED);
    cr_expect_eq(world.record.flags, 0);
}

Test(order, without_a_key_nothing_is_blocked)
{
    struct world world = world_new();

    world.input.order_blocked = true;
    cr_expect(arrive(&world).start);
    cr_expect_eq(world.record.flags, 0);
}

static struct world dead_first_of_key(enum after_dead after_dead)
{
    struct world world = world_new();

    world.policy.after_dead = after_dead;
    world.input.order_key = 77;
    (void)arrive(&world);
    (void)end(&world, OUTCOME_REFUSED);
    cr_assert_eq(world.record.state, RECORD_DEAD);
    return world;
}

Test(order, a_dead_letter_gives_its_place_up_or_holds_it)
{
    struct world world = dead_first_of_key(AFTER_DEAD_CONTINUE);

    cr_expect_eq(world.record.flags, 0);
    world = dead_first_of_key(AFTER_DEAD_HOLD);
    cr_expect_eq(world.record.flags, RECORD_ORDERED);
    /* evidence does not take the place from it */
    world.policy.after_dead = AFTER_DEAD_CONTINUE;
    (void)end_attempt(&world, 1, OUTCOME_SUCCESS);
    cr_expect_eq(world.record.flags, RECORD_ORDERED | RECORD_DISPUTED);
    (void)order(&world, INPUT_DISCARD);
    cr_expect_eq(world.record.state, RECORD_FAILED);
    cr_expect_eq(world.record.flags, RECORD_DISPUTED);
}

Test(order, a_replayed_event_stands_behind_an_earlier_one)
{
    struct world world = dead_first_of_key(AFTER_DEAD_CONTINUE);

    world.input.order_blocked = true;
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_DONE);
    cr_expect_eq(world.record.flags, RECORD_ORDERED | RECORD_ORDER_WAIT);
    cr_expect_eq(world.record.due_ms, RECORD_NEVER);
    world = dead_first_of_key(AFTER_DEAD_HOLD);
    (void)order(&world, INPUT_REPLAY);
    cr_expect_eq(world.record.flags, RECORD_ORDERED);
    cr_expect_eq(world.record.due_ms, world.now_ms);
}

Test(waiting, a_wait_for_a_time_can_be_cut_short)
{
    struct world world = world_new();

    (void)arrive(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    cr_assert_gt(world.record.due_ms, world.now_ms);
    cr_expect_eq(feed(&world, INPUT_WAKE).move, MOVE_WOKEN);
    cr_expect_eq(world.record.due_ms, world.now_ms);
}

Test(waiting, nothing_starts_before_it_is_due)
{
    struct world world = world_new();

    (void)arrive(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    world.now_ms = world.record.due_ms - 1;
    cr_expect_not(feed(&world, INPUT_DUE).changed);
    world.now_ms++;
    cr_expect(feed(&world, INPUT_DUE).start);
}
