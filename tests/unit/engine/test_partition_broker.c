/* SPDX-License-Identifier: MIT */
/* What was left with the broker: a crash, and what the broker brings then. */
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

TestSuite(partition_broker, .init = setup, .fini = teardown);

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

static void expect_gone(const char *id)
{
    cr_expect_eq(record_of(id).state, RECORD_DEAD, "%s", id);
    cr_expect_eq(record_of(id).reason, REASON_UNCERTAIN, "%s", id);
    cr_expect_eq(record_of(id).flags, RECORD_ERASED, "%s", id);
}

/* e0 ran in a process that was killed: its message was left with the broker,
 * at offset 0. */
static void leave_e0(void)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    crash();
    cr_assert_eq(record_of("e0").state, RECORD_UNCERTAIN);
    cr_assert_eq(record_of("e0").flags, LEFT);
    cr_assert_eq(record_of("e0").crashes, 1);
}

Test(partition_broker, what_a_crash_left_waits_to_be_brought_again)
{
    leave_e0();
    world_pass(&world, 3600000);
    part_open(&world, &a, 0, 0);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].parked, 1);
    world_pass(&world, 600000);
    cr_expect_eq(world.n_running, 0);
    cr_expect_eq(record_of("e0").flags, LEFT);
    cr_expect_eq(part_bring(&world, &a, 0, "e0"), DELIVERY_DUPLICATE);
    cr_assert_not_null(world_attempt(&world, "e0"));
    cr_expect_eq(world_attempt(&world, "e0")->number, 2);
    cr_expect_eq(world_attempt(&world, "e0")->envelope.kind, ENVELOPE_KAFKA);
    cr_expect_eq(record_of("e0").flags, RECORD_PINS);
    cr_expect_eq(a.assignment.low_water, 0);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 1);
}

Test(partition_broker, what_is_held_is_dead_when_it_is_brought_again)
{
    world.routes[0].policy.on_uncertain = ON_UNCERTAIN_HOLD;
    leave_e0();
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    cr_expect_eq(record_of("e0").state, RECORD_DEAD);
    cr_expect_eq(record_of("e0").flags, 0, "its message is kept now");
    cr_expect_eq(a.assignment.low_water, 1);
    cr_expect_eq(world_order(&world, COMMAND_RESOLVE_NOT_APPLIED, 0, "e0"),
                 COMMAND_DONE);
    cr_expect_not_null(world_attempt(&world, "e0"));
}

Test(partition_broker, a_later_offset_says_that_it_is_gone)
{
    leave_e0();
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 1, "e1");
    expect_gone("e0");
    cr_expect_eq(a.assignment.low_water, 1, "e1 runs");
    cr_expect_eq(part_bring(&world, &a, 2, "e0"), DELIVERY_DUPLICATE);
    expect_gone("e0");
    cr_expect_eq(world_order(&world, COMMAND_REPLAY, 0, "e0"), COMMAND_REFUSED);
}

Test(partition_broker, the_start_of_the_log_says_that_it_is_gone)
{
    leave_e0();
    part_init(&a, 0, 0);
    a.orders[ASSIGNMENT_OPEN].log_start = 1;
    a.orders[ASSIGNMENT_OPEN].log_end = 9;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    expect_gone("e0");
    crash();
    part_init(&a, 0, 0);
    a.orders[ASSIGNMENT_OPEN].log_start = 0;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
}

Test(partition_broker, the_start_of_the_log_at_it_says_nothing)
{
    leave_e0();
    part_init(&a, 0, 0);
    a.orders[ASSIGNMENT_OPEN].log_start = 0;
    a.orders[ASSIGNMENT_OPEN].log_end = 1;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    cr_expect_eq(record_of("e0").flags, LEFT);
}

Test(partition_broker, another_worker_had_it)
{
    leave_e0();
    part_open(&world, &a, 0, 1);
    cr_expect_eq(record_of("e0").state, RECORD_FAILED);
    cr_expect_eq(record_of("e0").reason, REASON_MOVED);
    cr_expect_eq(a.assignment.low_water, 1);
}

/* By another rule, say, the message at its offset has another id. */
Test(partition_broker, another_event_at_its_offset_says_that_it_is_gone)
{
    leave_e0();
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "other");
    expect_gone("e0");
}

/* The one whose message is here is behind the others, and stands first. */
Test(partition_broker, they_are_passed_in_order_of_their_offsets)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 3, "e3");
    part_bring(&world, &a, 5, "e5");
    part_bring(&world, &a, 8, "e8");
    world_end(&world, "e8", END_STATUS, 429);
    crash();
    part_open(&world, &a, 0, 0);
    cr_assert_not_null(world_attempt(&world, "e8"));
    part_bring(&world, &a, 4, "e4");
    expect_gone("e3");
    cr_expect_eq(record_of("e5").flags, LEFT);
    cr_expect_eq(record_of("e8").flags, RECORD_PINS);
}

/* Two that wait for the broker, one whose message is here between them. */
Test(partition_broker, each_is_gone_when_the_broker_has_passed_it)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 3, "e3");
    part_bring(&world, &a, 4, "e4");
    part_bring(&world, &a, 5, "e5");
    world_end(&world, "e4", END_STATUS, 429);
    crash();
    part_open(&world, &a, 0, 0);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].parked, 3);
    world_turn(&world);
    cr_assert_not_null(world_attempt(&world, "e4"));
    part_bring(&world, &a, 2, "e2");
    world_end(&world, "e2", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 3);
    cr_expect_eq(record_of("e3").flags, LEFT);
    part_bring(&world, &a, 5, "e5");
    expect_gone("e3");
    cr_expect_eq(record_of("e5").state, RECORD_RUNNING);
    cr_expect_eq(a.assignment.low_water, 5);
    cr_expect_eq(a.assignment.unsettled, 1);
    world_end(&world, "e5", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 6);
    world_end(&world, "e4", END_STATUS, 429);
    cr_expect_eq(record_of("e4").flags, 0, "it is ours: none brings it");
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_open(&world, &a, 0, 6);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].moved, 0);
    world_pass(&world, 10000);
    cr_expect_not_null(world_attempt(&world, "e4"));
}

Test(partition_broker, both_events_of_a_message_that_is_gone_are_ours)
{
    const struct message both = {
        .assignment = &a.assignment, .offset = 3, .id = "e3", .n_routes = 2};
    struct sent *sent;

    world_open(&world);
    part_open(&world, &a, 0, 0);
    sent = world_bring(&world, &both, 1);
    world_turn(&world);
    sent_free(sent);
    world_end(&world, "e3", END_STATUS, 429);
    world_end(&world, "e3", END_STATUS, 429);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_open(&world, &a, 0, 0);
    cr_assert_eq(world.n_running, 2);
    world_end(&world, "e3", END_STATUS, 429);
    world_end(&world, "e3", END_STATUS, 429);
    part_bring(&world, &a, 4, "e4");
    for (size_t route = 0; route < WORLD_ROUTES; route++) {
        cr_expect_eq(world_record(&world, route, "e3").flags, 0);
        cr_expect_eq(world_record(&world, route, "e3").state, RECORD_PENDING);
    }
    world_end(&world, "e4", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 5);
}

/* The message at 0 was compacted away; the store has it, and runs it. */
Test(partition_broker, what_is_kept_here_needs_no_broker)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world_end(&world, "e0", END_STATUS, 429);
    crash();
    cr_expect_eq(record_of("e0").flags, PARKED);
    part_open(&world, &a, 0, 0);
    cr_assert_not_null(world_attempt(&world, "e0"));
    world_end(&world, "e0", END_STATUS, 429);
    part_bring(&world, &a, 5, "e5");
    world_end(&world, "e5", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 6);
    cr_expect_eq(record_of("e0").flags, 0);
    crash();
    world_pass(&world, 10000);
    cr_assert_not_null(world_attempt(&world, "e0"));
    part_open(&world, &a, 0, 6);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].moved, 0);
}

Test(partition_broker, an_attempt_that_outlived_its_process_takes_its_message)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world.alive = true;
    crash();
    cr_expect_eq(record_of("e0").state, RECORD_RUNNING);
    cr_expect_eq(record_of("e0").flags, RECORD_PINS | RECORD_LEFT);
    part_open(&world, &a, 0, 0);
    cr_expect_eq(part_bring(&world, &a, 0, "e0"), DELIVERY_DUPLICATE);
    cr_expect_eq(record_of("e0").flags, RECORD_PINS);
    cr_expect_eq(a.assignment.low_water, 0);
    world.alive = false;
    world_pass(&world, 1000);
    cr_assert_not_null(world_attempt(&world, "e0"));
    cr_expect_eq(world_attempt(&world, "e0")->number, 2);
    cr_expect_eq(world_attempt(&world, "e0")->envelope.body.len, 1);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 1);
}

Test(partition_broker, it_keeps_its_place_whoever_brings_its_message)
{
    world_open(&world);
    part_open(&world, &a, 0, 3);
    part_bring(&world, &a, 3, "e0");
    world.alive = true;
    crash();
    part_open(&world, &a, 0, 3);
    part_open(&world, &b, 1, 0);
    part_bring(&world, &b, 7, "e0");
    cr_expect_eq(record_of("e0").flags, RECORD_PINS, "left no more");
    cr_expect_eq(rig_entry(&world, 0, "e0").position.partition, 0);
    cr_expect_eq(rig_entry(&world, 0, "e0").position.offset, 3);
}

/* e0 runs, was fenced off, and its partition is back without its message. */
static void run_e0_without_message(void)
{
    world_open(&world);
    world_deliver(&world, 0, "h0", "x");
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 5, "e5");
    world_end(&world, "e5", END_STATUS, 200);
    cr_assert_eq(a.assignment.low_water, 6);
    cr_assert_eq(record_of("e0").state, RECORD_RUNNING);
}

static void expect_ours(const char *id)
{
    part_open(&world, &a, 0, 6);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].moved, 0);
    world_pass(&world, 10000);
    cr_expect_not_null(world_attempt(&world, id), "it goes on here");
    cr_expect_eq(record_of(id).flags, 0);
}

Test(partition_broker, what_runs_is_ours_when_its_message_is_gone)
{
    run_e0_without_message();
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(record_of("e0").flags, 0);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    expect_ours("e0");
}

Test(partition_broker, it_is_ours_when_its_partition_goes_meanwhile)
{
    run_e0_without_message();
    cr_expect_not(part_order(&world, &a, ASSIGNMENT_DRAIN));
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(a.done[ASSIGNMENT_DRAIN], 1);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    expect_ours("e0");
}

Test(partition_broker, it_is_ours_when_its_partition_is_lost_meanwhile)
{
    run_e0_without_message();
    part_order(&world, &a, ASSIGNMENT_FENCE);
    world_end(&world, "e0", END_STATUS, 429);
    expect_ours("e0");
}

Test(partition_broker, it_is_gone_when_a_crash_ends_it)
{
    run_e0_without_message();
    crash();
    part_open(&world, &a, 0, 6);
    expect_gone("e0");
}

/* Offset 0 was compacted away, as 7 has the same key. */
Test(partition_broker, a_later_message_of_the_same_id_brings_it)
{
    leave_e0();
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 7, "e0");
    cr_assert_not_null(world_attempt(&world, "e0"));
    cr_expect_eq(a.assignment.low_water, 7);
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(record_of("e0").flags, RECORD_PINS);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_open(&world, &a, 0, 7);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].moved, 0, "nobody else had 7");
    cr_expect_eq(record_of("e0").state, RECORD_RUNNING);
    part_bring(&world, &a, 7, "e0");
    cr_expect_eq(a.assignment.low_water, 7);
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 8);
}

/* It is gone from a, but b has brought it: b's it is. */
Test(partition_broker, what_another_partition_brought_goes_with_that)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world_end(&world, "e0", END_STATUS, 429);
    crash();
    part_open(&world, &a, 0, 0);
    part_open(&world, &b, 1, 0);
    part_bring(&world, &b, 4, "e0");
    world_end(&world, "e0", END_STATUS, 429);
    part_bring(&world, &a, 5, "e5");
    cr_expect_eq(rig_entry(&world, 0, "e0").position.partition, 1);
    cr_expect_eq(rig_entry(&world, 0, "e0").position.offset, 4);
    cr_expect_eq(record_of("e0").flags, RECORD_PINS);
    part_order(&world, &b, ASSIGNMENT_FENCE);
    cr_expect_eq(record_of("e0").flags, PARKED);
    part_open(&world, &b, 1, 4);
    cr_expect_not_null(world_attempt(&world, "e0"));
}

Test(partition_broker, nothing_of_a_partition_starts_before_it_is_back)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    part_bring(&world, &a, 1, "e1");
    world_deliver(&world, 0, "h0", "x");
    world_end(&world, "e1", END_STATUS, 429);
    world_end(&world, "h0", END_STATUS, 429);
    crash();
    cr_expect_eq(record_of("e1").flags, PARKED);
    cr_expect_eq(record_of("h0").flags, 0);
    world.started = 0;
    world_pass(&world, 100000);
    cr_expect_eq(world.started, 1, "h0");
}

/* --- a topic that is made anew ---------------------------------------------
 */

static const uint8_t one[16] = {1}, two[16] = {2};

/* e100 was left, e101 is kept; the store's low-water is 100. */
static void live_before(const uint8_t *topic_id)
{
    world_open(&world);
    part_init(&a, 0, 100);
    a.orders[ASSIGNMENT_OPEN].topic_id = topic_id;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    part_bring(&world, &a, 100, "e100");
    part_bring(&world, &a, 101, "e101");
    world_end(&world, "e101", END_STATUS, 429);
    crash();
    part_init(&a, 0, -1);
}

static void expect_made_anew(void)
{
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    cr_expect(a.orders[ASSIGNMENT_OPEN].recreated);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].incarnation, 1);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].low_water, 100);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].moved, 0);
    cr_expect_eq(rig_stored(&world, 0).offset, 0);
    cr_expect_eq(rig_stored(&world, 0).incarnation, 1);
    expect_gone("e100");
    cr_assert_not_null(world_attempt(&world, "e101"), "it is kept here");
}

Test(partition_broker, a_log_that_ends_below_us_is_another)
{
    live_before(NULL);
    a.orders[ASSIGNMENT_OPEN].log_start = 0;
    a.orders[ASSIGNMENT_OPEN].log_end = 99;
    expect_made_anew();
    cr_expect_eq(part_bring(&world, &a, 0, "n0"), DELIVERY_ACCEPTED);
    cr_expect_eq(a.assignment.low_water, 0);
    world_end(&world, "n0", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 1);
    cr_expect_eq(rig_stored(&world, 0).offset, 1);
    cr_expect_eq(rig_stored(&world, 0).incarnation, 1);
}

Test(partition_broker, a_group_behind_the_end_of_the_log_is_of_another)
{
    live_before(NULL);
    a.orders[ASSIGNMENT_OPEN].committed = 301;
    a.orders[ASSIGNMENT_OPEN].log_end = 300;
    expect_made_anew();
    cr_expect_eq(a.assignment.low_water, -1, "nothing of it is known");
}

/* A store that never knew the topic has nothing to forget of it. */
Test(partition_broker, a_group_behind_the_end_says_nothing_to_a_new_store)
{
    world_open(&world);
    part_init(&a, 0, 50);
    a.orders[ASSIGNMENT_OPEN].log_end = 10;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    cr_expect_not(a.orders[ASSIGNMENT_OPEN].recreated);
    cr_expect_eq(a.assignment.low_water, -1);
    part_bring(&world, &a, 0, "e0");
    cr_expect_eq(a.assignment.low_water, 0);
    cr_expect_eq(rig_stored(&world, 0).offset, 0);
}

/* What runs was of the old one. */
Test(partition_broker, an_attempt_of_another_topic_is_ours)
{
    world_open(&world);
    part_open(&world, &a, 0, 100);
    part_bring(&world, &a, 100, "e100");
    part_order(&world, &a, ASSIGNMENT_FENCE);
    part_init(&a, 0, -1);
    a.orders[ASSIGNMENT_OPEN].log_end = 99;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    world_end(&world, "e100", END_STATUS, 429);
    cr_expect_eq(record_of("e100").flags, 0);
    world_pass(&world, 1000);
    cr_expect_not_null(world_attempt(&world, "e100"));
}

Test(partition_broker, a_topic_of_another_id_is_another)
{
    live_before(one);
    a.orders[ASSIGNMENT_OPEN].committed = 150;
    a.orders[ASSIGNMENT_OPEN].log_start = 100;
    a.orders[ASSIGNMENT_OPEN].log_end = 1000;
    a.orders[ASSIGNMENT_OPEN].topic_id = two;
    expect_made_anew();
    cr_expect_eq(rig_stored(&world, 0).topic_id[0], 2);
    crash();
    part_init(&a, 0, 0);
    a.orders[ASSIGNMENT_OPEN].topic_id = one;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].incarnation, 2);
}

Test(partition_broker, a_log_that_was_read_to_its_end_is_not_another)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world_end(&world, "e0", END_STATUS, 200);
    crash();
    part_init(&a, 0, 1);
    a.orders[ASSIGNMENT_OPEN].log_end = 1;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    cr_expect_not(a.orders[ASSIGNMENT_OPEN].recreated);
}

/* The end of the log was lost: e0 was in it. */
Test(partition_broker, the_end_of_the_log_says_that_it_is_gone)
{
    leave_e0();
    part_init(&a, 0, 0);
    a.orders[ASSIGNMENT_OPEN].log_end = 0;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    cr_expect_not(a.orders[ASSIGNMENT_OPEN].recreated);
    expect_gone("e0");
}

Test(partition_broker, the_same_topic_is_not_another)
{
    live_before(NULL);
    a.orders[ASSIGNMENT_OPEN].committed = 100;
    a.orders[ASSIGNMENT_OPEN].log_end = 102;
    a.orders[ASSIGNMENT_OPEN].topic_id = two;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    cr_expect_not(a.orders[ASSIGNMENT_OPEN].recreated);
    cr_expect_eq(rig_stored(&world, 0).topic_id[0], 2, "told first");
    crash();
    part_init(&a, 0, 100);
    a.orders[ASSIGNMENT_OPEN].topic_id = two;
    cr_assert(part_order(&world, &a, ASSIGNMENT_OPEN));
    cr_expect_not(a.orders[ASSIGNMENT_OPEN].recreated);
    crash();
    part_open(&world, &a, 0, 100);
    cr_expect_not(a.orders[ASSIGNMENT_OPEN].recreated, "not told");
    cr_expect_eq(rig_stored(&world, 0).topic_id[0], 2, "and not forgotten");
    cr_expect_eq(record_of("e100").flags, LEFT);
}
