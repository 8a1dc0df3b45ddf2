/* SPDX-License-Identifier: MIT */
/* What still begins while a partition drains: what closes holes, and no more.
 */
#include "engine/partition.h"

#include <criterion/criterion.h>
#include <string.h>

#include "support/partition_rig.h"
#include "support/world.h"

static struct world world;
static struct part part;

enum { PARKED = RECORD_PINS | RECORD_PARKED };

static void setup(void)
{
    world_init(&world);
    world.streams = rig_streams;
    world.n_streams = 1;
    world_open(&world);
    part_open(&world, &part, 0, 0);
}

static void teardown(void)
{
    cr_expect_eq(rig_loose(&world), 0);
    world_crash(&world);
    world_fini(&world);
}

TestSuite(partition_drain, .init = setup, .fini = teardown);

static struct record record_of(const char *id)
{
    return world_record(&world, 0, id);
}

static void bring(int64_t offset, const char *id, uint64_t order_key)
{
    const struct message message = {.assignment = &part.assignment,
                                    .offset = offset,
                                    .id = id,
                                    .order_key = order_key};
    struct sent *sent = world_bring(&world, &message, 1);

    world_turn(&world);
    cr_assert_eq(sent->delivery.result, DELIVERY_ACCEPTED);
    sent_free(sent);
}

/* e0 runs at 0, e1 waits for it at 1, e2 is settled at 2, e3 waits for both at
 * 3: e1 is a hole. */
static void make_hole(void)
{
    bring(0, "e0", 7);
    bring(1, "e1", 7);
    bring(2, "e2", 0);
    world_end(&world, "e2", END_STATUS, 200);
    bring(3, "e3", 7);
    cr_assert_eq(world.n_running, 1);
    cr_assert_eq(part.assignment.low_water, 0);
}

Test(partition_drain, a_hole_is_closed_before_the_partition_goes)
{
    make_hole();
    cr_expect_not(part_order(&world, &part, ASSIGNMENT_DRAIN));
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].parked, 1);
    cr_expect_eq(record_of("e3").flags & PARKED, PARKED, "above all others");
    cr_expect_eq(record_of("e1").flags & RECORD_PARKED, 0);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(part.assignment.low_water, 1);
    cr_assert_not_null(world_attempt(&world, "e1"));
    cr_expect_eq(part.done[ASSIGNMENT_DRAIN], 0);
    world_end(&world, "e1", END_STATUS, 200);
    cr_expect_eq(part.done[ASSIGNMENT_DRAIN], 1);
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].low_water, 3);
    cr_expect_null(world_attempt(&world, "e3"));
    cr_expect(part_order(&world, &part, ASSIGNMENT_FENCE));
    cr_expect_eq(part.orders[ASSIGNMENT_FENCE].low_water, 3);
    cr_expect_eq(rig_stored(&world, 0).offset, 3);
}

Test(partition_drain, what_runs_makes_a_hole_of_what_lies_below_it)
{
    bring(0, "e0", 7);
    bring(1, "e1", 7);
    bring(2, "e2", 0);
    cr_expect_not(part_order(&world, &part, ASSIGNMENT_DRAIN));
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].parked, 0);
    world_end(&world, "e0", END_STATUS, 200);
    world_end(&world, "e1", END_STATUS, 200);
    world_end(&world, "e2", END_STATUS, 200);
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].low_water, 3);
}

Test(partition_drain, nothing_begins_above_all_that_is_settled_or_runs)
{
    bring(0, "e0", 7);
    bring(1, "e1", 7);
    cr_expect_not(part_order(&world, &part, ASSIGNMENT_DRAIN));
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].parked, 1);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(part.done[ASSIGNMENT_DRAIN], 1);
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].low_water, 1);
    cr_expect_eq(record_of("e1").attempt, 0);
}

Test(partition_drain, a_hole_above_one_that_stays_is_left)
{
    bring(0, "retry", 0);
    world_end(&world, "retry", END_STATUS, 429);
    bring(1, "e0", 7);
    bring(2, "e1", 7);
    bring(3, "e2", 0);
    world_end(&world, "e2", END_STATUS, 200);
    cr_expect_not(part_order(&world, &part, ASSIGNMENT_DRAIN));
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].parked, 2);
    cr_expect_eq(record_of("e1").flags & PARKED, PARKED);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(part.done[ASSIGNMENT_DRAIN], 1);
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].low_water, 0);
}

Test(partition_drain, a_hole_behind_a_dead_letter_is_left)
{
    world.routes[0].policy.after_dead = AFTER_DEAD_HOLD;
    world_crash(&world);
    world_open(&world);
    part_open(&world, &part, 0, 0);
    bring(0, "dead", 7);
    world_end(&world, "dead", END_STATUS, 400);
    cr_assert_eq(record_of("dead").state, RECORD_DEAD);
    bring(1, "e1", 7);
    bring(2, "e2", 0);
    world_end(&world, "e2", END_STATUS, 200);
    cr_expect(part_order(&world, &part, ASSIGNMENT_DRAIN));
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].parked, 1);
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].low_water, 1);
    cr_expect_eq(record_of("e1").flags & PARKED, PARKED);
}

Test(partition_drain, a_hole_that_opens_anew_is_parked_with_the_fence)
{
    make_hole();
    cr_expect_not(part_order(&world, &part, ASSIGNMENT_DRAIN));
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(record_of("e0").flags, PARKED | RECORD_ORDERED);
    cr_expect_eq(part.done[ASSIGNMENT_DRAIN], 0, "e1 waits behind it");
    cr_expect_eq(record_of("e1").flags & RECORD_PARKED, 0);
    cr_expect(part_order(&world, &part, ASSIGNMENT_FENCE));
    cr_expect_eq(record_of("e1").flags & PARKED, PARKED);
    cr_expect_eq(part.orders[ASSIGNMENT_FENCE].parked, 1);
    cr_expect_eq(part.orders[ASSIGNMENT_FENCE].low_water, 0);
    world_pass(&world, 3600000);
    cr_expect_eq(world.n_running, 0);
}

Test(partition_drain, a_second_attempt_does_not_begin)
{
    make_hole();
    cr_expect_not(part_order(&world, &part, ASSIGNMENT_DRAIN));
    world_end(&world, "e0", END_STATUS, 200);
    world_end(&world, "e1", END_STATUS, 429);
    cr_expect_eq(record_of("e1").flags & PARKED, PARKED);
    cr_expect_eq(part.done[ASSIGNMENT_DRAIN], 1);
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].low_water, 1);
}

static void expect_parked_at_once(void)
{
    cr_expect_not(part_order(&world, &part, ASSIGNMENT_DRAIN));
    cr_expect_eq(part.orders[ASSIGNMENT_DRAIN].parked, 2);
    cr_expect_eq(record_of("e1").flags & PARKED, PARKED);
}

Test(partition_drain, a_paused_route_closes_no_hole)
{
    make_hole();
    (void)world_order(&world, COMMAND_PAUSE, 0, "");
    expect_parked_at_once();
}

Test(partition_drain, a_worker_that_ends_closes_no_hole)
{
    make_hole();
    engine_stop_intake(world.engine);
    expect_parked_at_once();
}

Test(partition_drain, a_handler_that_is_not_reached_closes_no_hole)
{
    make_hole();
    bring(4, "e4", 0);
    world_end(&world, "e4", END_UNREACHED, 0);
    cr_expect_not(part_order(&world, &part, ASSIGNMENT_DRAIN));
    cr_expect_eq(record_of("e1").flags & PARKED, PARKED);
}
