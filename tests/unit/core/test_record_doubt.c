/* SPDX-License-Identifier: MIT */
/* What may have taken effect: kept, tried again, or asked for. */
#include "core/record.h"

#include <criterion/criterion.h>

#include "unit/core/record_world.h"

Test(doubt, it_begins_with_the_earliest_attempt_that_may_count)
{
    struct world world = world_new();

    (void)arrive(&world);
    (void)end(&world, OUTCOME_TRANSIENT); /* at 1 s; due at 2 s */
    (void)come_due(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    cr_expect_eq(world.record.doubt_since_ms, START + 2 * SECOND);
    (void)come_due(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    cr_expect_eq(world.record.doubt_since_ms, START + 2 * SECOND);
}

Test(doubt, the_key_protects_only_as_long_as_the_receiver_remembers)
{
    struct world world = world_new();
    struct world late;

    world.policy.downstream_ttl_ms = HOUR;
    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    late = world;
    /* the attempt, with its lease, must end before that */
    world.now_ms = START + HOUR - LEASE - 1;
    cr_expect(feed(&world, INPUT_DUE).start);
    late.now_ms = START + HOUR - LEASE;
    cr_expect_eq(feed(&late, INPUT_DUE).move, MOVE_DEAD);
    cr_expect_eq(late.record.reason, REASON_UNCERTAIN);
}

Test(doubt, a_changed_rule_counts_when_it_comes_due)
{
    struct world world = world_new();

    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    world.policy.on_uncertain = ON_UNCERTAIN_HOLD;
    cr_expect_eq(come_due(&world).move, MOVE_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
}

static struct world probing_world(void)
{
    struct world world = world_of(RESPOND_ACCEPTED, ON_UNCERTAIN_PROBE);

    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    cr_assert_eq(world.record.due_ms, START + SECOND + 30 * SECOND);
    (void)come_due(&world);
    return world;
}

Test(probe, it_takes_a_number_and_a_lease_but_no_try)
{
    struct world world = world_of(RESPOND_ACCEPTED, ON_UNCERTAIN_PROBE);
    struct decision decision;

    (void)arrive(&world);
    (void)end(&world, OUTCOME_UNKNOWN);
    decision = come_due(&world);
    cr_expect(decision.probe);
    cr_expect_not(decision.start);
    cr_expect_eq(decision.move, MOVE_PROBE);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
    cr_expect_eq(world.record.flags, RECORD_PROBING);
    cr_expect_eq(world.record.attempt, 2);
    cr_expect_eq(world.record.tries, 1);
    cr_expect_eq(world.record.due_ms, world.now_ms + LEASE);
    cr_expect_eq(world.record.doubt_since_ms, START);
}

Test(probe, applied_is_a_success)
{
    struct world world = probing_world();

    cr_expect_eq(probe_says(&world, PROBE_APPLIED).move, MOVE_APPLIED);
    cr_expect_eq(world.record.state, RECORD_SUCCEEDED);
    cr_expect_eq(world.record.doubt_since_ms, 0);
}

Test(probe, not_applied_runs_again_or_frees_the_key)
{
    struct world world = probing_world();

    cr_expect_eq(probe_says(&world, PROBE_NOT_APPLIED).move, MOVE_NOT_APPLIED);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.doubt_since_ms, 0);
    cr_expect_eq(world.record.due_ms, world.now_ms);

    world = probing_world();
    world.policy.respond = RESPOND_RESULT;
    (void)probe_says(&world, PROBE_NOT_APPLIED);
    cr_expect_eq(world.record.state, RECORD_FAILED);
    cr_expect_eq(world.record.flags, RECORD_RELEASED);
}

Test(probe, not_applied_after_the_last_try_is_exhausted)
{
    struct world world = probing_world();
    struct decision decision;

    world.policy.max_attempts = 1;
    decision = probe_says(&world, PROBE_NOT_APPLIED);
    cr_expect_eq(decision.also, MOVE_DEAD);
    cr_expect_eq(world.record.reason, REASON_EXHAUSTED);
    cr_expect_eq(world.record.doubt_since_ms, 0);
}

Test(probe, one_that_cannot_tell_is_followed_by_another_until_the_limit)
{
    struct world world = probing_world();

    world.policy.max_probes = 2;
    (void)probe_says(&world, PROBE_UNKNOWN);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.due_ms, world.now_ms + 30 * SECOND);
    cr_expect(come_due(&world).probe);
    cr_expect_eq(probe_says(&world, PROBE_UNKNOWN).also, MOVE_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
    cr_expect_neq(world.record.doubt_since_ms, 0);
}

Test(probe, they_come_more_slowly_and_end_with_give_up_after)
{
    struct world world = probing_world();

    world.policy.max_probes = 0;
    world.policy.backoff_ms = 20 * SECOND;
    (void)probe_says(&world, PROBE_UNKNOWN);
    cr_expect_eq(world.record.due_ms, world.now_ms + 30 * SECOND);
    (void)come_due(&world);
    (void)probe_says(&world, PROBE_UNKNOWN);
    cr_expect_eq(world.record.due_ms, world.now_ms + 40 * SECOND);
    (void)come_due(&world);
    world.now_ms = START + 24 * HOUR - 80 * SECOND + 1;
    cr_expect_eq(probe_says(&world, PROBE_UNKNOWN).also, MOVE_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
}

Test(probe, a_lost_one_is_followed_by_another)
{
    struct world world = probing_world();

    cr_expect_not(feed(&world, INPUT_DUE).changed);
    (void)come_due(&world);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.due_ms, world.now_ms + 30 * SECOND);

    world = probing_world();
    (void)crash(&world);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.crashes, 0);
}

Test(probe, an_answer_of_a_lost_one_changes_nothing)
{
    struct world world = probing_world();

    (void)come_due(&world);
    cr_expect_not(probe_says(&world, PROBE_APPLIED).changed);
    (void)come_due(&world);
    cr_assert_eq(world.record.flags, RECORD_PROBING);
    world.input.attempt = 2;
    world.input.probe = PROBE_APPLIED;
    cr_expect_not(feed(&world, INPUT_PROBED).changed);
    cr_expect_not(feed(&world, INPUT_CRASHED).changed);
}

Test(probe, a_route_that_asks_no_more_goes_by_its_new_rule)
{
    struct world world = probing_world();

    world.policy.on_uncertain = ON_UNCERTAIN_RETRY;
    cr_expect(come_due(&world).start);
    cr_expect_eq(world.record.state, RECORD_RUNNING);
    cr_expect_eq(world.record.flags, 0);
}

Test(probe, one_under_way_is_given_up_when_the_event_is_parked_or_restored)
{
    struct world world = probing_world();

    world.record.flags |= RECORD_PINS;
    (void)feed(&world, INPUT_PARK);
    cr_expect_eq(world.record.flags, RECORD_PINS | RECORD_PARKED);
    cr_expect_not(probe_says(&world, PROBE_APPLIED).changed);

    world = probing_world();
    (void)feed(&world, INPUT_RESTORED);
    cr_expect_eq(world.record.flags, RECORD_RESTORED);
    cr_expect_eq(world.record.probes, 0);
    cr_expect_not(probe_says(&world, PROBE_APPLIED).changed);
}

Test(probe, one_under_way_is_given_up_for_a_replay)
{
    struct world world = probing_world();

    world.policy.on_uncertain = ON_UNCERTAIN_RETRY;
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_DONE);
    cr_expect_eq(world.record.state, RECORD_UNCERTAIN);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.probes, 0);
    cr_expect_eq(world.record.due_ms, world.now_ms);
}
