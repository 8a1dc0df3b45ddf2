/* SPDX-License-Identifier: MIT */
/* How many more events a route has use for: twice its concurrency, less what
 * runs and what waits for its first attempt. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/engine.h"
#include "support/partition_rig.h"
#include "support/world.h"

static struct world world;
static struct part a;

static void setup(void)
{
    world_init(&world);
    world.streams = rig_streams;
    world.n_streams = 1;
}

static void teardown(void)
{
    world_crash(&world);
    world_fini(&world);
}

TestSuite(room, .init = setup, .fini = teardown);

static size_t room(void)
{
    return engine_room(world.engine, 0);
}

static void open_it(void)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
}

Test(room, it_is_twice_the_concurrency_less_what_runs_and_waits)
{
    open_it();
    cr_expect_eq(room(), 8);
    for (int i = 0; i < 9; i++) {
        part_bring(&world, &a, i, world_id(i));
        cr_expect_eq(room(), i < 8 ? (size_t)(7 - i) : 0, "after %d", i);
    }
    cr_expect_eq(engine_room(world.engine, 1), 8, "of this route alone");
    world_end(&world, "e0", END_STATUS, 200);
    cr_expect_eq(room(), 0, "there is one more than it wants");
    world_end(&world, "e1", END_STATUS, 200);
    cr_expect_eq(room(), 1);
    world_order(&world, COMMAND_DISCARD, 0, "e8");
    cr_expect_eq(room(), 2);
}

Test(room, a_retry_takes_none_before_it_runs)
{
    open_it();
    part_bring(&world, &a, 0, "e0");
    cr_expect_eq(room(), 7);
    world_end(&world, "e0", END_STATUS, 429);
    cr_expect_eq(room(), 8);
    world_pass(&world, 1000);
    cr_expect_eq(room(), 7);
    world_end(&world, "e0", END_STATUS, 500);
    cr_expect_eq(room(), 8);
}

Test(room, what_waits_behind_its_key_takes_none)
{
    open_it();
    for (int i = 0; i < 3; i++) {
        const struct message message = {.assignment = &a.assignment,
                                        .offset = i,
                                        .id = world_id(i),
                                        .order_key = 7};
        struct sent *sent = world_bring(&world, &message, 1);

        world_turn(&world);
        sent_free(sent);
        cr_expect_eq(room(), 7);
    }
    world_end(&world, "e0", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&world, "e1"));
    cr_expect_eq(room(), 7, "the next one runs");
    world_end(&world, "e1", END_STATUS, 200);
    world_end(&world, "e2", END_STATUS, 200);
    cr_expect_eq(room(), 8);
}

Test(room, there_is_none_while_the_route_is_paused)
{
    unsigned wakes;

    open_it();
    world_order(&world, COMMAND_PAUSE, 0, "");
    cr_expect_eq(room(), 0);
    cr_expect_eq(engine_room(world.engine, 1), 8);
    wakes = a.wakes;
    world_order(&world, COMMAND_RESUME, 0, "");
    cr_expect_eq(room(), 8);
    cr_expect_gt(a.wakes, wakes, "the source is told");
}

Test(room, an_unreachable_handler_is_tried_with_one)
{
    open_it();
    part_bring(&world, &a, 0, "e0");
    world_end(&world, "e0", END_UNREACHED, 0);
    cr_expect_eq(room(), 0, "e0 is to be tried");
    world_order(&world, COMMAND_DISCARD, 0, "e0");
    cr_expect_eq(room(), 1);
    part_bring(&world, &a, 1, "e1");
    cr_expect_eq(room(), 0, "e1 is");
    cr_expect_eq(world.n_running, 0, "not before its time");
    world_pass(&world, 1000);
    cr_assert_not_null(world_attempt(&world, "e1"));
    cr_expect_eq(room(), 0, "it runs");
    world_end(&world, "e1", END_STATUS, 200);
    cr_expect_eq(room(), 8);
}

/* The one that found it so is gone, and the other is due in an hour. */
Test(room, a_retry_of_later_does_not_keep_the_probe_out)
{
    world.routes[0].policy.backoff_ms = 3600000;
    world.routes[0].policy.max_backoff_ms = 3600000;
    world.routes[0].policy.give_up_after_ms = 36000000;
    open_it();
    part_bring(&world, &a, 0, "e0");
    part_bring(&world, &a, 1, "e1");
    world_end(&world, "e0", END_STATUS, 429);
    world_end(&world, "e1", END_UNREACHED, 0);
    cr_expect_eq(room(), 0);
    world_order(&world, COMMAND_DISCARD, 0, "e1");
    cr_expect_eq(room(), 1);
}

Test(room, it_outlives_a_restart_and_parked_events_take_none)
{
    open_it();
    for (int i = 0; i < 6; i++) {
        part_bring(&world, &a, i, world_id(i));
    }
    world_deliver(&world, 0, "h0", "x");
    world_deliver(&world, 0, "h1", "x");
    cr_expect_eq(room(), 0);
    world_crash(&world);
    world.routes[0].concurrency = 1;
    world_open(&world);
    cr_expect_eq(room(), 0, "h0 and h1");
    world_turn(&world);
    world_end(&world, "h0", END_STATUS, 200);
    cr_expect_eq(room(), 1, "e0 to e5 are parked");
    part_open(&world, &a, 0, 0);
    cr_expect_eq(room(), 0, "e4 and e5 are back");
    world_end(&world, "h1", END_STATUS, 200);
    cr_expect_eq(room(), 0);
    world_end(&world, "e4", END_STATUS, 200);
    cr_expect_eq(room(), 1);
    part_order(&world, &a, ASSIGNMENT_FENCE);
    world_end(&world, "e5", END_STATUS, 429);
    cr_expect_eq(room(), 2);
}

Test(room, a_full_store_has_none)
{
    static char body[100001];
    size_t i = 0;
    struct sent *sent[64];

    memset(body, 'x', sizeof body - 1);
    world.max_bytes = 4 << 20;
    open_it();
    cr_expect_eq(room(), 8);
    do {
        cr_assert_lt(i, 64);
        sent[i] = world_send(&world, 1, world_id((int)i), body);
        world_pass(&world, 1000);
    } while (sent[i++]->delivery.result == DELIVERY_ACCEPTED);
    cr_expect_eq(room(), 0);
    cr_expect_eq(part_bring(&world, &a, 0, "a0"), DELIVERY_NO_ROOM);
    cr_expect_eq(a.assignment.unsettled, 0);
    while (i > 0) {
        sent_free(sent[--i]);
    }
}

/* The store has room again three seconds after a write that found none; no
 * delivery is needed for the source to hear of it. */
Test(room, that_there_is_room_again_is_found_soon)
{
    static char body[900001];
    struct sent *sent[12];

    memset(body, 'x', sizeof body - 1);
    world.max_bytes = 4 << 20;
    open_it();
    for (int i = 0; i < 12; i++) {
        sent[i] = world_send(&world, 1, world_id(i), body);
        sent[i]->delivery.item.cost_bytes = 1000;
    }
    world_turn(&world);
    for (int i = 0; i < 12; i++) {
        sent_free(sent[i]);
    }
    cr_expect_eq(part_bring(&world, &a, 0, "a0"), DELIVERY_NO_ROOM);
    cr_expect_eq(room(), 0);
    for (int i = 0; i < 5; i++) {
        world_pass(&world, 1000);
    }
    cr_expect_eq(room(), 8);
}

/* What a batch that is put off would have taken is not counted. */
Test(room, a_batch_that_is_put_off_takes_none)
{
    static char body[900001];
    struct sent *sent[12];

    memset(body, 'x', sizeof body - 1);
    world.max_bytes = 2 << 20;
    open_it();
    for (int i = 0; i < 12; i++) {
        sent[i] = world_send(&world, 1, world_id(i), body);
        sent[i]->delivery.item.cost_bytes = 1000;
    }
    cr_expect_eq(part_bring(&world, &a, 0, "a0"), DELIVERY_NO_ROOM);
    for (int i = 0; i < 12; i++) {
        sent_free(sent[i]);
    }
    world_pass(&world, 1000);
    cr_expect_eq(room(), 8);
    cr_expect_eq(engine_room(world.engine, 1), 8);
}
