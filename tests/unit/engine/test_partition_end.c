/* SPDX-License-Identifier: MIT */
/* A partition that goes, by an order or by a crash, and comes back. */
#include "engine/partition.h"

#include <criterion/criterion.h>
#include <string.h>

#include "support/partition_rig.h"
#include "support/world.h"

static struct world world;
static struct part a, b;

static void setup(void)
{
    world_init(&world);
    world.streams = rig_streams;
    world.n_streams = 1;
}

static void teardown(void)
{
    cr_expect_eq(rig_loose(&world), 0);
    world_crash(&world);
    world_fini(&world);
}

TestSuite(partition_end, .init = setup, .fini = teardown);

static struct record record_of(const char *id)
{
    return world_record(&world, 0, id);
}

enum { PARKED = RECORD_PINS | RECORD_PARKED, LEFT = PARKED | RECORD_LEFT };

static void crash(void)
{
    world_crash(&world);
    world_open(&world);
}

static void expect_moved(const char *id)
{
    cr_expect_eq(record_of(id).state, RECORD_FAILED, "%s", id);
    cr_expect_eq(record_of(id).reason, REASON_MOVED, "%s", id);
    cr_expect_eq(record_of(id).flags & RECORD_RELEASED, 0);
}

/* e0 runs, e1 waits for its retry, e2 for a slot. */
static void begin_three(struct part *part)
{
    world.routes[0].concurrency = 2;
    world_open(&world);
    part_open(&world, part, 0, 0);
    part_bring(&world, part, 0, "e0");
    part_bring(&world, part, 1, "e1");
    part_bring(&world, part, 2, "e2");
    part_bring(&world, part, 3, "e3");
    world_end(&world, "e1", END_STATUS, 429);
    world_end(&world, "e2", END_STATUS, 429);
    cr_assert_not_null(world_attempt(&world, "e3"));
    world_end(&world, "e3", END_STATUS, 200);
    part_bring(&world, part, 4, "e4");
    part_bring(&world, part, 5, "e5");
    cr_assert_null(world_attempt(&world, "e5"));
    world_end(&world, "e4", END_STATUS, 200);
    world_end(&world, "e5", END_STATUS, 200);
    cr_assert_eq(world.n_running, 1);
}

Test(partition_end, a_drain_parks_what_waits_and_is_done_when_nothing_runs)
{
    size_t started;

    begin_three(&a);
    started = world.started;
    cr_expect_not(part_order(&world, &a, ASSIGNMENT_DRAIN), "e0 runs");
    cr_expect_eq(a.orders[ASSIGNMENT_DRAIN].parked, 2);
    cr_expect_eq(record_of("e1").flags, PARKED);
    cr_expect_eq(record_of("e1").due_ms, RECORD_NEVER);
    cr_expect_eq(record_of("e2").flags, PARKED);
    cr_expect_eq(part_bring(&world, &a, 6, "e6"), DELIVERY_FENCED);
    cr_expect_eq(record_of("e6").state, RECORD_NONE);
    world_pass(&world, 5000);
    cr_expect_eq(a.done[ASSIGNMENT_DRAIN], 0);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(a.done[ASSIGNMENT_DRAIN], 1);
    cr_expect_eq(a.orders[ASSIGNMENT_DRAIN].low_water, 1);
    cr_expect_eq(a.assignment.low_water, 1);
    cr_expect(part_order(&world, &a, ASSIGNMENT_FENCE));
    cr_expect_eq(a.orders[ASSIGNMENT_FENCE].low_water, 1);
    cr_expect_null(a.assignment.partition);
    cr_expect_eq(part_bring(&world, &a, 6, "e6"), DELIVERY_FENCED);
    world_pass(&world, 3600000);
    cr_expect_eq(world.started, started);
    cr_expect_eq(rig_stored(&world, 0).offset, 1);
}

Test(partition_end, a_retry_ends_a_drain_and_is_parked)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    cr_expect_not(part_order(&world, &a, ASSIGNMENT_DRAIN));
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(a.done[ASSIGNMENT_DRAIN], 1);
    cr_expect_eq(a.orders[ASSIGNMENT_DRAIN].low_water, 0);
    cr_expect_eq(record_of("e0").state, RECORD_PENDING);
    cr_expect_eq(record_of("e0").flags, PARKED);
    cr_expect(part_order(&world, &a, ASSIGNMENT_FENCE));
    part_open(&world, &b, 0, 0);
    cr_expect_eq(b.orders[ASSIGNMENT_OPEN].parked, 1);
    cr_assert_not_null(world_attempt(&world, "e0"), "due at once");
    cr_expect_eq(world_attempt(&world, "e0")->envelope.body.len, 1);
    cr_expect_eq(part_bring(&world, &b, 0, "e0"), DELIVERY_DUPLICATE);
    cr_expect_eq(b.assignment.low_water, 0);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(b.assignment.low_water, 1);
    cr_expect_eq(world.started, 2);
}

Test(partition_end, a_drain_without_events_is_done_at_once)
{
    world_open(&world);
    part_open(&world, &a, 0, 9);
    cr_expect(part_order(&world, &a, ASSIGNMENT_DRAIN));
    cr_expect_eq(a.orders[ASSIGNMENT_DRAIN].low_water, 9);
    cr_expect_eq(a.orders[ASSIGNMENT_DRAIN].parked, 0);
    cr_expect(part_order(&world, &a, ASSIGNMENT_FENCE));
    part_open(&world, &b, 1, -1);
    cr_expect(part_order(&world, &b, ASSIGNMENT_FENCE));
    cr_expect_eq(b.orders[ASSIGNMENT_FENCE].low_water, -1);
}

Test(partition_end, a_fence_waits_for_nothing)
{
    unsigned wakes;

    begin_three(&a);
    part_order(&world, &a, ASSIGNMENT_DRAIN);
    cr_expect(part_order(&world, &a, ASSIGNMENT_FENCE));
    cr_expect_eq(a.done[ASSIGNMENT_DRAIN], 1, "the fence ends it");
    cr_expect_eq(a.last_done, ASSIGNMENT_FENCE);
    cr_expect_eq(a.orders[ASSIGNMENT_FENCE].low_water, 0);
    wakes = a.wakes;
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(record_of("e0").state, RECORD_SUCCEEDED, "recorded");
    cr_expect_eq(a.wakes, wakes);
    cr_expect_eq(rig_stored(&world, 0).offset, 0, "not for the partition");
}

Test(partition_end, a_lost_partition_parks_the_retry_of_what_ran)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    part_bring(&world, &a, 1, "e1");
    world_end(&world, "e1", END_STATUS, 429);
    cr_expect(part_order(&world, &a, ASSIGNMENT_FENCE));
    cr_expect_eq(a.orders[ASSIGNMENT_FENCE].parked, 1);
    cr_expect_eq(record_of("e0").flags, RECORD_PINS | RECORD_LEFT);
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(record_of("e0").flags, PARKED);
    cr_expect_eq(record_of("e1").flags, PARKED);
    world_pass(&world, 10000);
    cr_expect_eq(world.n_running, 0);
}

Test(partition_end, orders_of_one_batch_are_carried_out_in_turn)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    engine_assign(world.engine, &a.orders[ASSIGNMENT_DRAIN]);
    engine_assign(world.engine, &a.orders[ASSIGNMENT_FENCE]);
    part_init(&b, 0, 0);
    engine_assign(world.engine, &b.orders[ASSIGNMENT_OPEN]);
    world_turn(&world);
    cr_expect_eq(a.n_done, 3);
    cr_expect_eq(a.last_done, ASSIGNMENT_FENCE);
    cr_expect_eq(b.n_done, 1);
    part_bring(&world, &b, 0, "e0");
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(b.assignment.low_water, 1);
    engine_assign(world.engine, &b.orders[ASSIGNMENT_FENCE]);
    part_init(&a, 0, 1);
    engine_assign(world.engine, &a.orders[ASSIGNMENT_OPEN]);
    engine_assign(world.engine, &a.orders[ASSIGNMENT_FENCE]);
    world_turn(&world);
    cr_expect_eq(a.n_done, 2);
    cr_expect_null(a.assignment.partition);
}

/* What the old assignment settles last does not go over what the new one
 * finds: its topic is another by now. */
Test(partition_end, a_new_assignment_begins_behind_the_end_of_the_old)
{
    static const uint8_t first[16] = {1}, second[16] = {2};

    world_open(&world);
    part_init(&a, 0, 0);
    a.orders[ASSIGNMENT_OPEN].topic_id = first;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    part_bring(&world, &a, 0, "e0");
    part_bring(&world, &a, 1, "e1");
    engine_assign(world.engine, &a.orders[ASSIGNMENT_FENCE]);
    part_init(&b, 0, -1);
    b.orders[ASSIGNMENT_OPEN].topic_id = second;
    engine_assign(world.engine, &b.orders[ASSIGNMENT_OPEN]);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(a.orders[ASSIGNMENT_FENCE].low_water, 1);
    cr_expect(b.orders[ASSIGNMENT_OPEN].recreated);
    cr_expect_eq(b.orders[ASSIGNMENT_OPEN].low_water, 1);
    cr_expect_eq(rig_stored(&world, 0).offset, 0);
    cr_expect_eq(rig_stored(&world, 0).incarnation, 1);
    cr_expect_eq(rig_stored(&world, 0).topic_id[0], 2);
}

/* --- it comes back ---------------------------------------------------------
 */

Test(partition_end, what_lies_below_the_group_moved_and_the_rest_goes_on)
{
    begin_three(&a);
    part_order(&world, &a, ASSIGNMENT_DRAIN);
    world_end(&world, "e0", END_STATUS, 200);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_open(&world, &b, 0, 2);
    cr_expect_eq(b.orders[ASSIGNMENT_OPEN].moved, 1);
    cr_expect_eq(b.orders[ASSIGNMENT_OPEN].parked, 1);
    cr_expect_eq(b.orders[ASSIGNMENT_OPEN].low_water, 1);
    expect_moved("e1");
    cr_assert_not_null(world_attempt(&world, "e2"));
    cr_expect_eq(record_of("e2").flags, RECORD_PINS);
    cr_expect_eq(rig_stored(&world, 0).offset, 2);
    part_bring(&world, &b, 2, "e2");
    cr_expect_eq(b.assignment.low_water, 2);
    world_end(&world, "e2", END_STATUS, 200);
    cr_expect_eq(b.assignment.low_water, 3);
    part_bring(&world, &b, 3, "e3");
    part_bring(&world, &b, 4, "e4");
    cr_expect_eq(b.assignment.low_water, 5, "known to be settled");
    world_pass(&world, 100000);
    cr_expect_eq(world.started, 7, "e2 once more, nothing else");
}

Test(partition_end, the_group_may_be_behind_the_store)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    part_bring(&world, &a, 1, "e1");
    world_end(&world, "e0", END_STATUS, 200);
    world_end(&world, "e1", END_STATUS, 200);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_open(&world, &b, 0, 0);
    cr_expect_eq(b.orders[ASSIGNMENT_OPEN].low_water, 2);
    cr_expect_eq(b.assignment.low_water, 0, "what it may commit");
    cr_expect_eq(rig_stored(&world, 0).offset, 2);
    part_bring(&world, &b, 0, "e0");
    cr_expect_eq(b.assignment.low_water, 1);
    cr_expect_eq(rig_stored(&world, 0).offset, 2, "never back");
    cr_expect_not(world.engine->batch.dirty, "nothing to write");
    part_bring(&world, &b, 1, "e1");
    part_bring(&world, &b, 2, "e2");
    world_end(&world, "e2", END_STATUS, 200);
    cr_expect_eq(rig_stored(&world, 0).offset, 3);
    cr_expect_not(world.engine->batch.dirty, "it is written");
    cr_expect_eq(world.started, 3);
}

/* Parked events of other partitions, and of nobody, stay as they are. */
Test(partition_end, only_its_own_events_come_back_with_a_partition)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_open(&world, &b, 1, 0);
    part_bring(&world, &a, 0, "a0");
    part_bring(&world, &b, 0, "b0");
    world_end(&world, "a0", END_STATUS, 429);
    world_end(&world, "b0", END_STATUS, 429);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_order(&world, &b, ASSIGNMENT_FENCE);
    part_open(&world, &b, 1, 5);
    expect_moved("b0");
    cr_expect_eq(record_of("a0").flags, PARKED);
    part_open(&world, &a, 0, 0);
    cr_expect_eq(record_of("a0").state, RECORD_RUNNING);
}

Test(partition_end, partitions_that_come_in_one_batch_share_a_look)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_open(&world, &b, 1, 0);
    part_bring(&world, &a, 0, "a0");
    part_bring(&world, &b, 0, "b0");
    world_end(&world, "a0", END_STATUS, 429);
    world_end(&world, "b0", END_STATUS, 429);
    crash();
    part_init(&a, 0, 0);
    part_init(&b, 1, 1);
    engine_assign(world.engine, &a.orders[ASSIGNMENT_OPEN]);
    engine_assign(world.engine, &b.orders[ASSIGNMENT_OPEN]);
    world_turn(&world);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].parked, 1);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].moved, 0);
    cr_expect_eq(b.orders[ASSIGNMENT_OPEN].moved, 1);
    cr_expect_eq(record_of("a0").state, RECORD_RUNNING);
    expect_moved("b0");
}

/* --- two partitions have one event ---------------------------------------- */

Test(partition_end, an_event_that_waits_elsewhere_too_is_not_parked)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_open(&world, &b, 1, 0);
    part_bring(&world, &a, 0, "e0");
    part_bring(&world, &b, 0, "e0");
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect(part_order(&world, &a, ASSIGNMENT_DRAIN));
    cr_expect_eq(a.orders[ASSIGNMENT_DRAIN].parked, 0);
    cr_expect_eq(record_of("e0").flags, RECORD_PINS);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_open(&world, &a, 0, 1);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].moved, 0, "b still has it");
    world_pass(&world, 1000);
    cr_assert_not_null(world_attempt(&world, "e0"));
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(record_of("e0").flags, RECORD_PINS);
    cr_expect(part_order(&world, &b, ASSIGNMENT_DRAIN));
    cr_expect_eq(b.orders[ASSIGNMENT_DRAIN].parked, 1);
    cr_expect_eq(b.orders[ASSIGNMENT_DRAIN].low_water, 0);
    cr_expect_eq(record_of("e0").flags, PARKED);
    part_order(&world, &b, ASSIGNMENT_FENCE);
    part_open(&world, &b, 1, 1);
    expect_moved("e0");
}

/* It was at 3 of a, where nothing brings it again, and is at 0 of b. */
Test(partition_end, an_event_has_its_place_where_it_is_held)
{
    world_open(&world);
    part_open(&world, &a, 0, 3);
    part_open(&world, &b, 1, 0);
    part_bring(&world, &a, 3, "e0");
    part_bring(&world, &b, 0, "e0");
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(rig_entry(&world, 0, "e0").position.offset, 3);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    cr_expect_eq(rig_entry(&world, 0, "e0").position.partition, 1);
    cr_expect_eq(rig_entry(&world, 0, "e0").position.offset, 0);
    part_open(&world, &a, 0, 3);
    part_bring(&world, &a, 4, "e4");
    world_end(&world, "e4", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 5);
    crash();
    part_open(&world, &a, 0, 5);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].moved, 0);
    part_open(&world, &b, 1, 0);
    cr_expect_not_null(world_attempt(&world, "e0"));
    part_bring(&world, &b, 0, "e0");
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(b.assignment.low_water, 1);
}

Test(partition_end, it_moves_there_too_when_it_ran_meanwhile)
{
    world_open(&world);
    part_open(&world, &a, 0, 3);
    part_open(&world, &b, 1, 0);
    part_bring(&world, &a, 3, "e0");
    part_bring(&world, &b, 0, "e0");
    part_bring(&world, &b, 2, "e0");
    part_order(&world, &a, ASSIGNMENT_FENCE);
    cr_expect_eq(rig_entry(&world, 0, "e0").position.partition, 0);
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(rig_entry(&world, 0, "e0").position.partition, 1);
    cr_expect_eq(rig_entry(&world, 0, "e0").position.offset, 0);
}

/* The attempt outlived its assignment; the other worker was done first. */
Test(partition_end, what_ran_has_moved_when_its_partition_is_back_above)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    part_bring(&world, &a, 1, "e1");
    part_bring(&world, &a, 2, "e2");
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_open(&world, &a, 0, 2);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(record_of("e0").state, RECORD_SUCCEEDED, "what is true");
    world_end(&world, "e1", END_STATUS, 429);
    expect_moved("e1");
    world_end(&world, "e2", END_STATUS, 429);
    cr_expect_eq(record_of("e2").flags, RECORD_PINS, "it is here again");
    world_pass(&world, 1000);
    cr_expect_not_null(world_attempt(&world, "e2"));
}

Test(partition_end, an_event_that_ran_for_two_does_not_hold_up_a_drain)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_open(&world, &b, 1, 0);
    part_bring(&world, &a, 0, "e0");
    part_bring(&world, &b, 0, "e0");
    cr_expect_not(part_order(&world, &a, ASSIGNMENT_DRAIN), "it runs");
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(a.done[ASSIGNMENT_DRAIN], 1, "it runs no more");
    cr_expect_eq(record_of("e0").flags, RECORD_PINS, "b has it");
    world_pass(&world, 1000);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 0);
    cr_expect_eq(b.assignment.low_water, 1);
}

Test(partition_end, another_partition_brings_back_what_is_parked)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world_end(&world, "e0", END_STATUS, 429);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_open(&world, &b, 1, 0);
    cr_expect_eq(record_of("e0").flags, PARKED);
    part_bring(&world, &b, 7, "e0");
    cr_expect_eq(record_of("e0").state, RECORD_RUNNING);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(b.assignment.low_water, 8);
}
