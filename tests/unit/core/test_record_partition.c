/* SPDX-License-Identifier: MIT */
/* A partition goes to another worker, and comes back. */
#include "core/record.h"

#include <criterion/criterion.h>

#include "unit/core/record_world.h"

Test(partition, a_parked_event_waits_for_its_partition_and_its_key)
{
    struct world world = partition_world(ON_UNCERTAIN_RETRY);

    world.input.order_key = 77;
    world.input.order_blocked = true;
    (void)arrive(&world);
    (void)feed(&world, INPUT_PARK);
    cr_expect_eq(world.record.due_ms, RECORD_NEVER);
    (void)feed(&world, INPUT_ORDER_FREE);
    cr_expect_eq(world.record.flags, RECORD_ORDERED | PARKED);
    cr_expect_eq(world.record.due_ms, RECORD_NEVER);
    (void)feed(&world, INPUT_UNPARK);
    cr_expect_eq(world.record.flags, RECORD_ORDERED | PINS);
    cr_expect_eq(world.record.due_ms, START);
}

Test(partition, what_comes_back_still_waits_for_its_key)
{
    struct world world = partition_world(ON_UNCERTAIN_RETRY);

    world.input.order_key = 77;
    world.input.order_blocked = true;
    (void)arrive(&world);
    (void)feed(&world, INPUT_PARK);
    (void)arrive(&world);
    cr_expect_eq(world.record.flags, RECORD_ORDERED | RECORD_ORDER_WAIT | PINS);
    cr_expect_eq(world.record.due_ms, RECORD_NEVER);
}

Test(partition, what_came_from_elsewhere_is_not_parked)
{
    struct world world = world_new();

    (void)arrive_and_wait(&world);
    cr_expect_not(feed(&world, INPUT_PARK).changed);
    world.input.pins = true;
    cr_expect_not(arrive(&world).changed, "a partition's repeat");
    cr_expect_eq(world.record.flags, 0);
}

Test(partition, a_doubtful_event_comes_back_by_the_rule_of_its_route)
{
    for (size_t i = 0; i < RULES; i++) {
        struct world world = left_world(ON_UNCERTAIN_RETRY);

        (void)end(&world, OUTCOME_UNKNOWN);
        (void)feed(&world, INPUT_PARK);
        cr_expect_eq(world.record.flags, PARKED);
        world.now_ms = START + HOUR;
        world.policy.on_uncertain = all_rules[i];
        (void)feed(&world, INPUT_UNPARK);
        switch (all_rules[i]) {
        case ON_UNCERTAIN_RETRY:
            cr_expect_eq(world.record.due_ms, START + HOUR);
            break;
        case ON_UNCERTAIN_HOLD:
            cr_expect_eq(world.record.state, RECORD_DEAD);
            cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
            break;
        case ON_UNCERTAIN_PROBE:
            cr_expect_eq(world.record.due_ms, START + HOUR + 30 * SECOND);
            break;
        }
    }
}

Test(partition, what_another_worker_settled_has_moved)
{
    struct world world = partition_world(ON_UNCERTAIN_RETRY);

    live_until(&world, RECORD_UNCERTAIN);
    (void)feed(&world, INPUT_PARK);
    (void)feed(&world, INPUT_MOVED);
    cr_expect_eq(world.record.state, RECORD_FAILED);
    cr_expect_eq(world.record.reason, REASON_MOVED);
    cr_expect_eq(world.record.flags, 0);

    world = awaited_world(ON_UNCERTAIN_RETRY);
    (void)feed(&world, INPUT_MOVED);
    cr_expect_eq(world.record.reason, REASON_MOVED);
    cr_expect_eq(world.record.flags, RECORD_LEFT);
}

Test(partition, what_the_broker_has_no_more_is_dead)
{
    struct world world = awaited_world(ON_UNCERTAIN_RETRY);

    cr_expect_not(feed(&world, INPUT_UNPARK).changed);
    cr_expect_eq(feed(&world, INPUT_GONE).move, MOVE_DEAD);
    cr_expect_eq(world.record.state, RECORD_DEAD);
    cr_expect_eq(world.record.reason, REASON_UNCERTAIN);
    cr_expect_eq(world.record.flags, RECORD_ERASED);
    cr_expect_eq(world.record.doubt_since_ms, START);
    world.input.assume_not_applied = true;
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_REFUSED);
}

Test(partition, what_is_kept_here_does_not_need_the_broker)
{
    struct world world = waiting_world();
    int64_t due_ms = world.record.due_ms;

    cr_expect(feed(&world, INPUT_GONE).changed);
    cr_expect_eq(world.record.flags, 0, "nothing pins any more");
    cr_expect_eq(world.record.due_ms, due_ms);
    cr_expect_not(feed(&world, INPUT_GONE).changed);
    cr_expect_not(feed(&world, INPUT_PARK).changed);

    world = waiting_world();
    (void)feed(&world, INPUT_PARK);
    cr_expect_eq(feed(&world, INPUT_GONE).move, MOVE_WOKEN);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_eq(world.record.due_ms, world.now_ms);

    world = left_world(ON_UNCERTAIN_RETRY);
    cr_expect_not(feed(&world, INPUT_GONE).changed, "nor what runs");
}

Test(partition, what_was_not_applied_waits_on)
{
    struct world world = awaited_world(ON_UNCERTAIN_HOLD);

    world.policy.max_attempts = 1;
    cr_expect_eq(order(&world, INPUT_RESOLVE_NOT_APPLIED).verdict,
                 VERDICT_DONE);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.flags, AWAITED);
    cr_expect_eq(world.record.due_ms, RECORD_NEVER);
    cr_expect_eq(order(&world, INPUT_REPLAY).verdict, VERDICT_NOTHING_TO_DO);
    world.policy.max_attempts = 0;
    cr_expect(arrive(&world).take_envelope);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.due_ms, world.now_ms);
    cr_expect(come_due(&world).start);
}

Test(partition, what_is_settled_pins_nothing)
{
    struct world world = awaited_world(ON_UNCERTAIN_HOLD);

    (void)order(&world, INPUT_RESOLVE_APPLIED);
    cr_expect_eq(world.record.state, RECORD_SUCCEEDED);
    cr_expect_eq(world.record.flags, RECORD_LEFT);
    world = awaited_world(ON_UNCERTAIN_HOLD);
    (void)order(&world, INPUT_DISCARD);
    cr_expect_eq(world.record.state, RECORD_FAILED);
    cr_expect_eq(world.record.flags, RECORD_LEFT);
}

Test(partition, a_replayed_dead_letter_depends_on_no_partition)
{
    struct world world = left_world(ON_UNCERTAIN_RETRY);

    (void)end(&world, OUTCOME_REFUSED);
    (void)order(&world, INPUT_REPLAY);
    cr_expect_eq(world.record.state, RECORD_PENDING);
    cr_expect_eq(world.record.flags, 0);
    cr_expect_not(feed(&world, INPUT_PARK).changed);
}
