/* SPDX-License-Identifier: MIT */
/* What operators may do to an event, and what they may not. */
#include "core/record.h"

#include <criterion/criterion.h>

#include "unit/core/record_world.h"

Test(replay, a_dead_letter_starts_anew_under_the_same_run)
{
    struct world world = world_new();

    world.policy.max_attempts = 2;
    (void)arrive(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    (void)come_due(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    cr_assert_eq(world.record.state, RECORD_DEAD);
    world.now_ms = START + 48 * HOUR;
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_DONE);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.reason, REASON_NONE);
    cr_expect_eq(world.record.run, 1);
    cr_expect_eq(world.record.attempt, 2);
    cr_expect_eq(world.record.tries, 0);
    cr_expect_eq(world.record.backoffs, 0);
    cr_expect_eq(world.record.clock_ms, START + 48 * HOUR);
    cr_expect_eq(world.record.due_ms, START + 48 * HOUR);
    cr_expect(come_due(&world).start);
    cr_expect_eq(world.record.attempt, 3);
}

Test(replay, poison_gets_all_its_crashes_again)
{
    struct world world = world_new();

    world.policy.max_crashes = 0;
    (void)arrive(&world);
    (void)crash(&world);
    cr_assert_eq(world.record.reason, REASON_POISON);
    cr_expect_eq(world.record.doubt_since_ms, START);
    world.policy.max_crashes = 1;
    (void)order(&world, INPUT_REPLAY);
    (void)come_due(&world);
    (void)crash(&world);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
}

static struct world dead_in_doubt(enum on_uncertain on_uncertain)
{
    struct world world = world_of(RESPOND_ACCEPTED, ON_UNCERTAIN_HOLD);

    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    cr_assert_eq(world.record.reason, REASON_UNCERTAIN);
    world.policy.on_uncertain = on_uncertain;
    world.policy.downstream_ttl_ms = HOUR;
    return world;
}

Test(replay, doubt_is_skipped_unless_the_key_protects_or_a_person_answers)
{
    struct world world = dead_in_doubt(ON_UNCERTAIN_HOLD);

    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_IN_DOUBT);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    world = dead_in_doubt(ON_UNCERTAIN_PROBE);
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_IN_DOUBT);

    world = dead_in_doubt(ON_UNCERTAIN_RETRY);
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_DONE);
    cr_expect_eq(world.record.doubt_since_ms, START);

    world = dead_in_doubt(ON_UNCERTAIN_RETRY);
    world.now_ms = START + HOUR;
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_IN_DOUBT);
    world.input.assume_not_applied = true;
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_DONE);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.doubt_since_ms, 0);
}

Test(replay, a_kept_doubt_is_judged_again_when_it_starts)
{
    struct world world = dead_in_doubt(ON_UNCERTAIN_RETRY);

    (void)order(&world, INPUT_REPLAY);
    world.policy.on_uncertain = ON_UNCERTAIN_HOLD;
    cr_expect_eq(come_due(&world).move, MOVE_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);

    world = dead_in_doubt(ON_UNCERTAIN_RETRY);
    (void)order(&world, INPUT_REPLAY);
    world.policy.on_uncertain = ON_UNCERTAIN_PROBE;
    cr_expect(come_due(&world).probe);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
}

Test(replay, what_never_ran_and_never_may_stays_dead)
{
    static const enum reason reasons[] = {REASON_TOO_OLD, REASON_UNDECODABLE};

    for (size_t i = 0; i < 2; i++) {
        struct world world = world_new();

        world.input.reason = reasons[i];
        (void)feed(&world, INPUT_UNUSABLE);
        world.input.assume_not_applied = true;
        cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_REFUSED);
        cr_expect_eq(order(&world, INPUT_RESOLVE_NOT_APPLIED).verdict,
                     VERDICT_REFUSED);
        world.policy.respond = RESPOND_RESULT;
        cr_expect_eq(order(&world, INPUT_RESOLVE_NOT_APPLIED).verdict,
                     VERDICT_REFUSED);
        cr_expect_eq(world.record.state, RECORD_DEAD);
        cr_expect_eq(order(&world, INPUT_DISCARD).verdict, VERDICT_DONE);
    }
}

Test(replay, what_drifted_may_run)
{
    struct world world = world_new();

    world.input.reason = REASON_DRIFT;
    (void)feed(&world, INPUT_UNUSABLE);
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_DONE);
}

Test(replay, a_waiting_event_is_due_at_once_with_fresh_limits)
{
    struct world world = world_new();

    (void)arrive(&world);
    (void)end(&world, OUTCOME_TRANSIENT);
    cr_expect_eq(order(&world, INPUT_REPLAY).move, MOVE_REPLAYED);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.due_ms, world.now_ms);
    cr_expect_eq(world.record.tries, 0);
    cr_expect_eq(world.record.clock_ms, world.now_ms);
}

Test(replay, an_uncertain_event_is_guarded_like_a_dead_one)
{
    struct world world = world_of(RESPOND_ACCEPTED, ON_UNCERTAIN_PROBE);

    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    (void)come_due(&world);
    cr_assert_eq(world.record.flags, RECORD_PROBING);
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_IN_DOUBT);
    cr_expect_eq(world.record.flags, RECORD_PROBING);
    world.input.assume_not_applied = true;
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_DONE);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.due_ms, world.now_ms);
}

Test(rerun, a_success_runs_again_as_the_next_run)
{
    struct world world = world_new();

    world.input.order_key = 5;
    live_until(&world, RECORD_SUCCEEDED);
    world.record.flags |= RECORD_DISPUTED;
    world.now_ms = START + HOUR;
    world.input.order_blocked = true;
    cr_expect_eq(order(&world, INPUT_RERUN).verdict, VERDICT_DONE);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.run, 2);
    cr_expect_eq(world.record.attempt, 1);
    cr_expect_eq(world.record.tries, 0);
    cr_expect_eq(world.record.clock_ms, START + HOUR);
    cr_expect_eq(world.record.flags, RECORD_ORDERED | RECORD_ORDER_WAIT);
    (void)feed(&world, INPUT_ORDER_FREE);
    (void)come_due(&world);
    cr_expect_eq(world.record.attempt, 2);
}

Test(resolve, a_dead_letter_was_applied)
{
    struct world world = dead_in_doubt(ON_UNCERTAIN_HOLD);
    struct decision decision = order(&world, INPUT_RESOLVE_APPLIED);

    cr_expect_eq(decision.move, MOVE_APPLIED);
    cr_expect(decision.keep_result);
    cr_expect_eq(world.record.state, RECORD_SUCCEEDED);
    cr_expect_eq(world.record.reason, REASON_NONE);
    cr_expect_eq(world.record.doubt_since_ms, 0);
}

Test(resolve, a_dead_letter_was_not_applied)
{
    struct world world = dead_in_doubt(ON_UNCERTAIN_HOLD);

    (void)order(&world, INPUT_RESOLVE_NOT_APPLIED);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.doubt_since_ms, 0);
    cr_expect_eq(world.record.tries, 0);

    world = dead_in_doubt(ON_UNCERTAIN_HOLD);
    world.policy.respond = RESPOND_RESULT;
    (void)order(&world, INPUT_RESOLVE_NOT_APPLIED);
    cr_expect_eq(world.record.state, RECORD_FAILED);
    cr_expect_eq(world.record.reason, REASON_NONE);
    cr_expect_eq(world.record.flags, RECORD_RELEASED);
    cr_expect_eq(world.record.doubt_since_ms, 0);
    cr_expect(arrive(&world).start);
    cr_expect_eq(world.record.attempt, 2);
}

Test(resolve, an_uncertain_event_of_a_result_route_frees_its_key)
{
    struct world world = world_of(RESPOND_RESULT, ON_UNCERTAIN_RETRY);

    live_until(&world, RECORD_UNCERTAIN);
    (void)order(&world, INPUT_RESOLVE_NOT_APPLIED);
    cr_expect_eq(world.record.state, RECORD_FAILED);
    cr_expect_eq(world.record.flags, RECORD_RELEASED);
}

Test(discard, it_fails_for_good_and_keeps_the_doubt)
{
    struct world world = dead_in_doubt(ON_UNCERTAIN_HOLD);

    (void)order(&world, INPUT_DISCARD);
    cr_expect_eq(world.record.state, RECORD_FAILED);
    cr_expect_eq(world.record.reason, REASON_DISCARDED);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.doubt_since_ms, START);
    cr_expect_eq(arrive(&world).answer, ANSWER_DUPLICATE);
    cr_expect_eq(world.record.state, RECORD_FAILED);
}

Test(orders, an_order_about_an_older_attempt_is_refused)
{
    for (enum record_state state = RECORD_PENDING; state <= RECORD_DEAD;
         state++) {
        for (enum input_kind kind = INPUT_REPLAY; kind <= INPUT_DISCARD;
             kind++) {
            struct world world = world_new();
            struct decision decision;

            live_until(&world, state);
            world.input.attempt = world.record.attempt + 1;
            decision = feed(&world, kind);
            cr_expect_eq(decision.verdict, VERDICT_REFUSED);
            cr_expect_not(decision.changed);
        }
    }
}

static struct decision evidence(struct world *world, uint32_t attempt,
                                enum outcome outcome)
{
    world->input.attempt = attempt;
    world->input.outcome = outcome;
    return feed(world, INPUT_EVIDENCE);
}

/* An uncertain first attempt that a person resolved. */
static struct world resolved_world(enum input_kind kind)
{
    struct world world = world_of(RESPOND_RESULT, ON_UNCERTAIN_RETRY);

    live_until(&world, RECORD_UNCERTAIN);
    (void)order(&world, kind);
    return world;
}

Test(evidence, a_success_is_disputed_by_proof_of_no_effect)
{
    static const enum outcome outcomes[] = {OUTCOME_REFUSED, OUTCOME_TRANSIENT,
                                            OUTCOME_REJECTED,
                                            OUTCOME_UNREACHED};

    for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++) {
        struct world world = resolved_world(INPUT_RESOLVE_APPLIED);

        cr_expect_eq(evidence(&world, 1, outcomes[i]).move, MOVE_DISPUTED);
        cr_expect_eq(world.record.state, RECORD_SUCCEEDED);
        cr_expect_eq(world.record.flags, RECORD_DISPUTED);
        cr_expect_not(evidence(&world, 1, outcomes[i]).changed);
    }
}

Test(evidence, an_earlier_attempt_does_not_speak_against_a_success)
{
    struct world world = world_new();

    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    (void)come_due(&world);
    (void)end(&world, OUTCOME_SUCCESS);
    cr_expect_not(evidence(&world, 1, OUTCOME_TRANSIENT).changed);
    cr_expect_not(evidence(&world, 2, OUTCOME_UNKNOWN).changed);
    cr_expect_not(evidence(&world, 1, OUTCOME_SUCCESS).changed);
}

Test(evidence, a_late_success_closes_a_released_key)
{
    struct world world = resolved_world(INPUT_RESOLVE_NOT_APPLIED);

    cr_assert_eq(world.record.flags, RECORD_RELEASED);
    cr_expect_eq(evidence(&world, 1, OUTCOME_SUCCESS).move, MOVE_DISPUTED);
    cr_expect_eq(world.record.flags, RECORD_DISPUTED);
    cr_expect_eq(arrive(&world).answer, ANSWER_REPLAY);
}

Test(evidence, a_late_failure_of_a_failure_says_nothing_new)
{
    struct world world = resolved_world(INPUT_RESOLVE_NOT_APPLIED);

    cr_expect_not(evidence(&world, 1, OUTCOME_TRANSIENT).changed);
}

Test(evidence, a_late_success_puts_a_dead_letter_in_doubt)
{
    struct world world = world_new();

    live_until(&world, RECORD_DEAD);
    cr_assert_eq(world.record.doubt_since_ms, 0);
    world.policy.on_uncertain = ON_UNCERTAIN_HOLD;
    (void)evidence(&world, 1, OUTCOME_SUCCESS);
    cr_expect_eq(world.record.flags, RECORD_DISPUTED);
    cr_expect_eq(world.record.doubt_since_ms, START);
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_IN_DOUBT);
}

Test(restore, everything_unsettled_becomes_uncertain_under_its_rule)
{
    static const enum record_state states[] = {RECORD_PENDING, RECORD_RUNNING,
                                               RECORD_UNCERTAIN};

    for (size_t i = 0; i < 3; i++) {
        struct world world = world_of(RESPOND_ACCEPTED, ON_UNCERTAIN_RETRY);

        live_until(&world, states[i]);
        world.now_ms = START + 48 * HOUR;
        cr_expect_eq(feed(&world, INPUT_RESTORED).move, MOVE_RESTORED);
        cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
        cr_expect_eq(world.record.flags, RECORD_RESTORED);
        cr_expect_eq(world.record.doubt_since_ms, START);
        cr_expect_eq(world.record.due_ms, START + 48 * HOUR);

        world = world_of(RESPOND_RESULT, ON_UNCERTAIN_RETRY);
        live_until(&world, states[i]);
        world.policy.on_uncertain = ON_UNCERTAIN_HOLD;
        cr_expect_eq(feed(&world, INPUT_RESTORED).also, MOVE_DEAD);
        cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
        cr_expect_eq(world.record.flags, RECORD_RESTORED);
    }
}

Test(restore, an_event_behind_its_key_stays_there)
{
    struct world world = world_of(RESPOND_ACCEPTED, ON_UNCERTAIN_PROBE);

    world.input.order_key = 5;
    world.input.order_blocked = true;
    (void)arrive(&world);
    (void)feed(&world, INPUT_RESTORED);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
    cr_expect_eq(world.record.due_ms, RECORD_NEVER);
    (void)order(&world, INPUT_RESOLVE_NOT_APPLIED);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.due_ms, RECORD_NEVER);
}
