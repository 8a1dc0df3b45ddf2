/* SPDX-License-Identifier: MIT */
/* Messages of a partition that stays: what moves its low-water, and what does
 * not. */
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

TestSuite(partition, .init = setup, .fini = teardown);

static struct record record_of(const char *id)
{
    return world_record(&world, 0, id);
}

static void expect(struct part *part, int64_t low_water, size_t unsettled)
{
    cr_expect_eq(part->assignment.low_water, low_water, "low-water %lld",
                 (long long)part->assignment.low_water);
    cr_expect_eq(part->assignment.unsettled, unsettled, "unsettled %zu",
                 part->assignment.unsettled);
    cr_expect_eq(rig_stored(&world, part->assignment.number).offset, low_water,
                 "stored %lld",
                 (long long)rig_stored(&world, part->assignment.number).offset);
}

Test(partition, an_assignment_begins_where_the_group_is)
{
    world_open(&world);
    cr_expect_eq(rig_stored(&world, 3).offset, -1);
    part_open(&world, &a, 3, 12);
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].low_water, -1, "none stored yet");
    cr_expect_eq(a.orders[ASSIGNMENT_OPEN].incarnation, 0);
    cr_expect_not(a.orders[ASSIGNMENT_OPEN].recreated);
    cr_expect_gt(a.wakes, 0);
    expect(&a, 12, 0);
    part_open(&world, &b, 4, -1);
    cr_expect_eq(b.assignment.low_water, -1, "nothing to commit");
    cr_expect_eq(rig_stored(&world, 4).offset, 0);
    cr_expect_eq(part_bring(&world, &b, 7, "e7"), DELIVERY_ACCEPTED);
    expect(&b, 7, 1);
}

Test(partition, events_settle_in_any_order_and_the_oldest_holds)
{
    const struct message messages[] = {
        {.assignment = &a.assignment, .offset = 0, .id = "e0"},
        {.assignment = &a.assignment, .offset = 1, .id = "e1"},
        {.assignment = &a.assignment, .offset = 2, .id = "e2"},
    };
    struct sent *sent;
    unsigned wakes;

    world_open(&world);
    part_open(&world, &a, 0, 0);
    world.ms += 5000;
    sent = world_bring(&world, messages, 3);
    world_turn(&world);
    cr_expect_eq(sent->delivery.result, DELIVERY_ACCEPTED);
    sent_free(sent);
    cr_expect_eq(world.started, 3);
    expect(&a, 0, 3);
    cr_expect_eq(a.assignment.head_since_ms, record_of("e0").first_seen_ms);
    cr_expect_eq(record_of("e1").flags, RECORD_PINS | RECORD_LEFT);
    wakes = a.wakes;
    world_end(&world, "e1", END_STATUS, 200);
    expect(&a, 0, 3);
    cr_expect_eq(record_of("e1").state, RECORD_SUCCEEDED);
    cr_expect_eq(record_of("e1").flags, RECORD_LEFT);
    world_end(&world, "e0", END_STATUS, 200);
    expect(&a, 2, 1);
    cr_expect_gt(a.wakes, wakes);
    world_end(&world, "e2", END_STATUS, 200);
    expect(&a, 3, 0);
    cr_expect_eq(a.assignment.head_since_ms, 0);
}

Test(partition, a_gap_holds_nothing)
{
    world_open(&world);
    part_open(&world, &a, 0, 5);
    part_bring(&world, &a, 7, "e7");
    part_bring(&world, &a, 20, "e20");
    expect(&a, 7, 2);
    world_end(&world, "e7", END_STATUS, 200);
    expect(&a, 20, 1);
    world_end(&world, "e20", END_STATUS, 200);
    expect(&a, 21, 0);
}

Test(partition, a_repeat_of_what_is_settled_is_done_at_once)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "good");
    world_end(&world, "good", END_STATUS, 200);
    part_bring(&world, &a, 1, "dead");
    world_end(&world, "dead", END_STATUS, 404);
    cr_expect_eq(record_of("dead").state, RECORD_DEAD);
    expect(&a, 2, 0);
    cr_expect_eq(part_bring(&world, &a, 2, "good"), DELIVERY_DUPLICATE);
    cr_expect_eq(part_bring(&world, &a, 3, "dead"), DELIVERY_DUPLICATE);
    expect(&a, 4, 0);
    cr_expect_eq(world.started, 2);
    cr_expect_eq(record_of("good").deliveries, 2);
}

Test(partition, a_repeat_of_what_runs_waits_for_it)
{
    const struct message twice[] = {
        {.assignment = &a.assignment, .offset = 2, .id = "e1"},
        {.assignment = &a.assignment, .offset = 3, .id = "e1"},
    };
    struct sent *sent;

    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    cr_expect_eq(part_bring(&world, &a, 1, "e0"), DELIVERY_DUPLICATE);
    sent = world_bring(&world, twice, 2);
    world_turn(&world);
    sent_free(sent);
    expect(&a, 0, 4);
    cr_expect_eq(world.started, 2);
    world_end(&world, "e1", END_STATUS, 200);
    expect(&a, 0, 4);
    world_end(&world, "e0", END_STATUS, 200);
    expect(&a, 4, 0);
}

Test(partition, an_offset_that_comes_again_changes_nothing)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    part_bring(&world, &a, 1, "e1");
    cr_expect_eq(part_bring(&world, &a, 0, "e0"), DELIVERY_DUPLICATE);
    cr_expect_eq(record_of("e0").deliveries, 1);
    cr_expect_eq(part_bring(&world, &a, 1, "other"), DELIVERY_DUPLICATE);
    cr_expect_eq(record_of("other").state, RECORD_NONE);
    world_end(&world, "e0", END_STATUS, 200);
    world_end(&world, "e1", END_STATUS, 200);
    expect(&a, 2, 0);
}

Test(partition, a_retry_holds_its_offset_and_has_its_message)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(record_of("e0").state, RECORD_PENDING);
    cr_expect_eq(record_of("e0").flags, RECORD_PINS, "left no more");
    expect(&a, 0, 1);
    world_pass(&world, 1000);
    cr_assert_eq(world_attempt(&world, "e0")->number, 2);
    cr_expect_eq(world_attempt(&world, "e0")->envelope.kind, ENVELOPE_KAFKA);
    cr_expect_eq(world_attempt(&world, "e0")->envelope.body.len, 1);
    world_end(&world, "e0", END_STATUS, 500);
    cr_expect_eq(record_of("e0").state, RECORD_UNCERTAIN);
    expect(&a, 0, 1);
    cr_expect_eq(world_order(&world, COMMAND_RESOLVE_APPLIED, 0, "e0"),
                 COMMAND_DONE);
    expect(&a, 1, 0);
}

Test(partition, what_settles_without_an_attempt_moves_it_too)
{
    struct sent *sent;
    const struct message unusable = {
        .assignment = &a.assignment, .offset = 1, .id = "u1"};

    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world_end(&world, "e0", END_STATUS, 429);
    sent = world_bring(&world, &unusable, 1);
    sent->arrivals[0].unusable = REASON_UNDECODABLE;
    world_turn(&world);
    cr_expect_eq(sent->delivery.result, DELIVERY_ACCEPTED);
    sent_free(sent);
    cr_expect_eq(record_of("u1").state, RECORD_DEAD);
    expect(&a, 0, 2);
    cr_expect_eq(world_order(&world, COMMAND_DISCARD, 0, "e0"), COMMAND_DONE);
    expect(&a, 2, 0);
}

Test(partition, a_message_of_two_routes_waits_for_both)
{
    struct message message = {
        .assignment = &a.assignment, .id = "e0", .n_routes = 2};
    struct sent *sent;

    world_open(&world);
    part_open(&world, &a, 0, 0);
    sent = world_bring(&world, &message, 1);
    world_turn(&world);
    sent_free(sent);
    cr_assert_eq(world.started, 2);
    expect(&a, 0, 1);
    world_end(&world, "e0", END_STATUS, 200);
    expect(&a, 0, 1);
    message.offset = 1;
    sent = world_bring(&world, &message, 1);
    world_turn(&world);
    sent_free(sent);
    expect(&a, 0, 2);
    world_end(&world, "e0", END_STATUS, 200);
    expect(&a, 2, 0);
    cr_expect_eq(world.started, 2);
}

/* Two routes with one memory: the message is one event, named twice. */
Test(partition, a_message_that_is_one_event_twice_is_settled_once)
{
    const struct message message = {
        .assignment = &a.assignment, .id = "e0", .n_routes = 2};
    struct sent *sent;

    world.routes[1].namespace = "a";
    world_open(&world);
    part_open(&world, &a, 0, 0);
    sent = world_bring(&world, &message, 1);
    world_turn(&world);
    sent_free(sent);
    cr_assert_eq(world.started, 1);
    expect(&a, 0, 1);
    world_end(&world, "e0", END_STATUS, 200);
    expect(&a, 1, 0);
}

Test(partition, a_released_event_takes_the_place_of_its_next_delivery)
{
    world.routes[0].policy.respond = RESPOND_RESULT;
    world.routes[0].rules.respond = RESPOND_RESULT;
    world_open(&world);
    part_open(&world, &a, 2, 0);
    part_bring(&world, &a, 3, "e3");
    world_end(&world, "e3", END_STATUS, 429);
    cr_expect_eq(record_of("e3").flags & RECORD_RELEASED, RECORD_RELEASED);
    expect(&a, 4, 0);
    cr_expect_eq(rig_entry(&world, 0, "e3").position.offset, 3);
    cr_expect_eq(part_bring(&world, &a, 9, "e3"), DELIVERY_ACCEPTED);
    cr_expect_eq(rig_entry(&world, 0, "e3").position.stream, RIG_STREAM);
    cr_expect_eq(rig_entry(&world, 0, "e3").position.partition, 2);
    cr_expect_eq(rig_entry(&world, 0, "e3").position.offset, 9);
    cr_expect_eq(part_bring(&world, &a, 11, "e3"), DELIVERY_DUPLICATE);
    cr_expect_eq(rig_entry(&world, 0, "e3").position.offset, 9, "its first");
    expect(&a, 9, 2);
    world_end(&world, "e3", END_STATUS, 200);
    expect(&a, 12, 0);
}

static void forget_until(int64_t until_ms)
{
    struct err err;

    cr_assert(store_begin(world.store, &err));
    store_forget_until(world.store, until_ms);
    cr_assert(store_commit(world.store, &err));
}

Test(partition, what_is_older_than_the_memory_is_not_run)
{
    struct message message = {.assignment = &a.assignment};
    static const struct {
        const char *id;
        int64_t wall_ms;
        enum record_state state;
    } cases[] = {
        {"known", 899999, RECORD_SUCCEEDED}, {"older", 899999, RECORD_DEAD},
        {"at", 900000, RECORD_RUNNING},      {"untold", 0, RECORD_RUNNING},
        {"first", 1, RECORD_DEAD},
    };

    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "known");
    world_end(&world, "known", END_STATUS, 200);
    forget_until(900000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sent *sent;

        message.offset = 1 + (int64_t)i;
        message.id = cases[i].id;
        message.event_wall_ms = cases[i].wall_ms;
        sent = world_bring(&world, &message, 1);
        world_turn(&world);
        sent_free(sent);
        cr_expect_eq(record_of(cases[i].id).state, cases[i].state, "%s",
                     cases[i].id);
    }
    cr_expect_eq(record_of("older").reason, REASON_TOO_OLD);
    expect(&a, 3, 3);
    cr_expect_eq(world_order(&world, COMMAND_REPLAY, 0, "older"),
                 COMMAND_REFUSED);
}

Test(partition, what_is_known_goes_on_however_old_it_is)
{
    const struct message message = {
        .assignment = &a.assignment, .id = "e0", .event_wall_ms = 100};
    struct sent *sent;

    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world_crash(&world);
    world_open(&world);
    forget_until(900000);
    part_open(&world, &a, 0, 0);
    sent = world_bring(&world, &message, 1);
    world_turn(&world);
    sent_free(sent);
    cr_expect_eq(record_of("e0").state, RECORD_RUNNING);
    cr_expect_eq(record_of("e0").attempt, 2);
}

/* It ran, and was forgotten with the time of its route. */
Test(partition, what_was_forgotten_after_it_ran_is_not_run_again)
{
    struct message message = {.assignment = &a.assignment};
    int64_t settled_ms;

    world.routes[0].retention.ids_ms = 3600000;
    world_open(&world);
    part_open(&world, &a, 0, 0);
    for (int i = 0; i < 2; i++) {
        part_bring(&world, &a, i, world_id(i));
        world_end(&world, world_id(i), END_STATUS, 200);
    }
    settled_ms = world.ms;
    world_pass(&world, 2 * 3600000);
    cr_assert_eq(record_of("e0").state, RECORD_NONE);
    for (int i = 0; i < 2; i++) {
        struct sent *sent;

        message.offset = 2 + i;
        message.id = world_id(i);
        message.event_wall_ms = settled_ms + i;
        sent = world_bring(&world, &message, 1);
        world_turn(&world);
        sent_free(sent);
    }
    cr_expect_eq(record_of("e0").state, RECORD_DEAD);
    cr_expect_eq(record_of("e0").reason, REASON_TOO_OLD);
    cr_expect_eq(record_of("e1").state, RECORD_RUNNING, "it happened later");
    expect(&a, 3, 1);
}

/* --- a sender that is answered -------------------------------------------- */

Test(partition, a_sender_that_is_answered_takes_an_event_over)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    cr_expect_eq(world_deliver(&world, 0, "e0", "x"), DELIVERY_DUPLICATE);
    cr_expect_eq(record_of("e0").flags, 0);
    expect(&a, 0, 1);
    world_end(&world, "e0", END_STATUS, 429);
    part_bring(&world, &a, 1, "e1");
    world_end(&world, "e1", END_STATUS, 429);
    cr_expect(part_order(&world, &a, ASSIGNMENT_DRAIN));
    cr_expect_eq(a.orders[ASSIGNMENT_DRAIN].parked, 1, "only e1");
    cr_expect_eq(record_of("e0").flags, 0);
    world_pass(&world, 1000);
    cr_assert_not_null(world_attempt(&world, "e0"), "it goes on here");
    cr_expect_null(world_attempt(&world, "e1"));
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(a.assignment.low_water, 0, "nothing of it counts any more");
    cr_expect(part_order(&world, &a, ASSIGNMENT_FENCE));
}

Test(partition, what_was_taken_over_outlives_a_crash_without_the_broker)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world_deliver(&world, 0, "e0", "x");
    world_crash(&world);
    world_open(&world);
    world_turn(&world);
    cr_assert_not_null(world_attempt(&world, "e0"));
    cr_expect_eq(world_attempt(&world, "e0")->number, 2);
    cr_expect_eq(world_attempt(&world, "e0")->envelope.kind, ENVELOPE_HTTP);
}

Test(partition, an_event_of_a_sender_is_not_pinned_by_a_partition)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    world_deliver(&world, 0, "e0", "x");
    cr_expect_eq(part_bring(&world, &a, 0, "e0"), DELIVERY_DUPLICATE);
    cr_expect_eq(record_of("e0").flags, 0);
    expect(&a, 0, 1);
    world_end(&world, "e0", END_STATUS, 200);
    expect(&a, 1, 0);
}

Test(partition, a_sender_frees_what_waits_for_the_broker)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world_crash(&world);
    world_open(&world);
    cr_expect_eq(record_of("e0").flags,
                 RECORD_PINS | RECORD_PARKED | RECORD_LEFT);
    cr_expect_eq(world_deliver(&world, 0, "e0", "x"), DELIVERY_DUPLICATE);
    cr_assert_not_null(world_attempt(&world, "e0"));
    cr_expect_eq(record_of("e0").flags, 0);
    world_end(&world, "e0", END_STATUS, 200);
    part_open(&world, &a, 0, 0);
    cr_expect_eq(part_bring(&world, &a, 0, "e0"), DELIVERY_DUPLICATE);
    expect(&a, 1, 0);
}

/* --- a store without room --------------------------------------------------
 */

enum { BIG = 900001, N_BIG = 12 };

static struct sent *big[N_BIG];

/* Together they are more than the store has: their batch is put off. */
static void send_too_much(void)
{
    static char body[BIG];

    memset(body, 'x', sizeof body - 1);
    for (int i = 0; i < N_BIG; i++) {
        big[i] = world_send(&world, 1, world_id(100 + i), body);
        big[i]->delivery.item.cost_bytes = 1000;
    }
}

static void expect_put_off(void)
{
    for (int i = 0; i < N_BIG; i++) {
        cr_assert_eq(big[i]->delivery.result, DELIVERY_NO_ROOM);
        sent_free(big[i]);
    }
}

/* The store looks at its room once a second. */
static void pass_until_there_is_room(void)
{
    for (int i = 0; i < 10 && engine_room(world.engine, 1) == 0; i++) {
        world_pass(&world, 1000);
    }
    cr_assert_gt(engine_room(world.engine, 1), 0);
}

Test(partition, a_batch_that_is_put_off_changes_nothing_of_a_partition)
{
    const struct message messages[] = {
        {.assignment = &a.assignment, .offset = 2, .id = "e1"},
        {.assignment = &a.assignment, .offset = 3, .id = "e3"},
    };
    struct sent *sent;

    world.max_bytes = 4 << 20;
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    part_bring(&world, &a, 1, "e1");
    sent = world_bring(&world, messages, 2);
    send_too_much();
    world_end(&world, "e0", END_STATUS, 200);
    expect_put_off();
    cr_expect_eq(sent->delivery.result, DELIVERY_NO_ROOM);
    sent_free(sent);
    expect(&a, 0, 2);
    cr_expect_eq(record_of("e0").state, RECORD_RUNNING);
    world_pass(&world, 1000);
    expect(&a, 1, 1);
    cr_expect_eq(record_of("e0").state, RECORD_SUCCEEDED);
    pass_until_there_is_room();
    world_end(&world, "e1", END_STATUS, 429);
    sent = world_bring(&world, messages, 2);
    world_turn(&world);
    cr_expect_eq(sent->delivery.result, DELIVERY_ACCEPTED);
    sent_free(sent);
    cr_assert_not_null(world_attempt(&world, "e3"));
    expect(&a, 1, 3);
    world_end(&world, "e3", END_STATUS, 200);
    world_pass(&world, 1000);
    world_end(&world, "e1", END_STATUS, 200);
    expect(&a, 4, 0);
}

Test(partition, an_assignment_that_is_put_off_begins_and_ends_later)
{
    world.max_bytes = 4 << 20;
    world_open(&world);
    part_init(&a, 0, 4);
    send_too_much();
    cr_expect_not(part_order(&world, &a, ASSIGNMENT_OPEN));
    expect_put_off();
    cr_expect_eq(rig_stored(&world, 0).offset, -1);
    world_pass(&world, 1000);
    cr_expect_eq(a.done[ASSIGNMENT_OPEN], 1);
    expect(&a, 4, 0);
    pass_until_there_is_room();
    part_bring(&world, &a, 4, "e4");
    part_bring(&world, &a, 5, "e5");
    world_end(&world, "e5", END_STATUS, 429);
    send_too_much();
    cr_expect_not(part_order(&world, &a, ASSIGNMENT_DRAIN));
    expect_put_off();
    cr_expect_eq(record_of("e5").flags, RECORD_PINS, "not parked");
    world_pass(&world, 1000);
    cr_expect_eq(a.done[ASSIGNMENT_DRAIN], 0, "e4 runs");
    cr_expect_eq(record_of("e5").flags, RECORD_PINS | RECORD_PARKED);
    pass_until_there_is_room();
    send_too_much();
    cr_expect_not(part_order(&world, &a, ASSIGNMENT_FENCE));
    expect_put_off();
    world_pass(&world, 1000);
    cr_expect_eq(a.done[ASSIGNMENT_DRAIN], 1);
    cr_expect_eq(a.done[ASSIGNMENT_FENCE], 1);
    cr_expect_eq(a.orders[ASSIGNMENT_FENCE].low_water, 4);
}
