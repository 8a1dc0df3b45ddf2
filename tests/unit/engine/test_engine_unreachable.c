/* SPDX-License-Identifier: MIT */
/*
 * A handler that refuses connections for twenty minutes, with a restart of
 * the worker, and a pause of the route, in between.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "support/world.h"

enum {
    EVENTS = 500,
    KEYS = 50,
    CONCURRENCY = 16,
    SECOND_MS = 1000,
    OUTAGE_S = 1200,
    RESTART_AT_S = 300,
    PAUSE_AT_S = 600,
    RESUME_AT_S = 800,
    PROBE_EVERY_S = 15,
    CURE_S = 60,
};

static struct world world;
static unsigned n_tries;      /* attempts that found nobody */
static int last_of_key[KEYS]; /* the event of each key that ran last */
static unsigned handled[EVENTS];

static void send_all(void)
{
    for (int n = 0; n < EVENTS; n++) {
        struct sent *sent =
            world_send_keyed(&world, 0, world_id(n), (uint64_t)(n % KEYS + 1));

        while (world.n_running > 0) {
            world_end(&world, world_id(world_number(world.running[0])),
                      END_UNREACHED, 0);
            n_tries++;
        }
        world_turn(&world);
        cr_assert_eq(sent->delivery.result, DELIVERY_ACCEPTED);
        sent_free(sent);
    }
}

/* A second of the outage; gives how many attempts it saw. */
static unsigned refuse_for_a_second(void)
{
    unsigned before = n_tries;

    world_pass(&world, SECOND_MS);
    cr_assert_leq(world.n_running, 1, "one probe at a time");
    while (world.n_running > 0) {
        n_tries++;
        world_end(&world, world_id(world_number(world.running[0])),
                  END_UNREACHED, 0);
        cr_assert_leq(world.n_running, 1, "one probe at a time");
        cr_assert_leq(n_tries - before, 1, "a probe follows a probe at once");
    }
    return n_tries - before;
}

static void outage(void)
{
    int silent_s = 0;
    bool paused = false;

    for (int s = 0; s < OUTAGE_S; s++) {
        unsigned tries;

        if (s == RESTART_AT_S) {
            world_close(&world);
            world_open(&world);
        } else if (s == PAUSE_AT_S || s == RESUME_AT_S) {
            paused = s == PAUSE_AT_S;
            (void)world_order(&world, paused ? COMMAND_PAUSE : COMMAND_RESUME,
                              0, "");
            silent_s = 0;
        }
        tries = refuse_for_a_second();
        cr_assert(!paused || tries == 0, "an attempt on a paused route");
        silent_s = tries > 0 ? 0 : silent_s + 1;
        cr_assert(paused || silent_s <= PROBE_EVERY_S,
                  "no probe for %d s, at second %d", silent_s, s);
    }
}

static void answer(void)
{
    int n = world_number(world.running[0]);

    cr_assert_lt(last_of_key[n % KEYS], n, "e%d ran before an older one", n);
    last_of_key[n % KEYS] = n;
    handled[n]++;
    world_end(&world, world_id(n), END_STATUS, 200);
    cr_assert_leq(world.n_running, CONCURRENCY);
}

/* Every event is handled once, and soon. */
static void cure(void)
{
    for (int s = 0; s < CURE_S; s++) {
        world_pass(&world, SECOND_MS);
        while (world.n_running > 0) {
            answer();
        }
    }
    for (int n = 0; n < EVENTS; n++) {
        struct record record = world_record(&world, 0, world_id(n));

        cr_assert_eq(handled[n], 1, "e%d ran %u times", n, handled[n]);
        cr_assert_eq(record.state, RECORD_SUCCEEDED, "e%d is %s", n,
                     record_state_name(record.state));
    }
}

Test(engine_unreachable, an_outage_costs_time_and_nothing_else)
{
    world_init(&world);
    world.routes[0].concurrency = CONCURRENCY;
    for (int key = 0; key < KEYS; key++) {
        last_of_key[key] = -1;
    }
    world_open(&world);
    send_all();
    outage();
    cure();
    world_fini(&world);
}

Test(engine_unreachable, a_restart_does_not_storm_the_handler)
{
    struct sent *sent[8];

    world_init(&world);
    world.routes[0].concurrency = 8;
    world_open(&world);
    for (int n = 0; n < 8; n++) {
        sent[n] = world_send(&world, 0, world_id(n), "x");
    }
    world_turn(&world);
    cr_assert_eq(world.n_running, 8);
    while (world.n_running > 0) {
        world_end(&world, world_id(world_number(world.running[0])),
                  END_UNREACHED, 0);
    }
    for (int n = 0; n < 8; n++) {
        sent_free(sent[n]);
    }
    world_close(&world);

    world_open(&world);
    world_turn(&world);
    cr_assert_eq(world.n_running, 1, "%zu attempts after a restart",
                 world.n_running);
    world_end(&world, world_id(world_number(world.running[0])), END_STATUS,
              200);
    cr_assert_eq(world.n_running, 7, "%zu attempts when it is back",
                 world.n_running);
    world_fini(&world);
}
