/* SPDX-License-Identifier: MIT */
/* What must not cost more the more events wait. Those that nobody has reason
 * to look at are damaged: a look would end in an error. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../store/tamper.h"
#include "support/world.h"

enum { WAITING = 40, FILLERS = 12, KEY = 7 };

static struct world world;

static void begin(void)
{
    world_init(&world);
    world.ids_per_generation = 4;
}

static void end(void)
{
    world_fini(&world);
}

TestSuite(engine_scale, .init = begin, .fini = end);

static void send(size_t route, const char *id, uint64_t order_key)
{
    struct sent *sent = world_send_keyed(&world, route, id, order_key);

    world_turn(&world);
    cr_assert_eq(sent->delivery.result, DELIVERY_ACCEPTED);
    sent_free(sent);
}

static void send_waiting(uint64_t order_key)
{
    char id[32];

    for (int i = 0; i < WAITING; i++) {
        (void)snprintf(id, sizeof id, "waiting-%d", i);
        send(0, id, order_key);
    }
}

/* The open generation, whose ids every start reads, has none that waits. */
static void seal_what_waits(void)
{
    char id[32];

    for (int i = 0; i < FILLERS; i++) {
        (void)snprintf(id, sizeof id, "filler-%d", i);
        send(1, id, 0);
        world_end(&world, id, END_STATUS, 200);
        world_pass(&world, 60000);
    }
}

static void damage_what_waits(void)
{
    char path[80];

    (void)snprintf(path, sizeof path, "%s/store", world.dir);
    cr_assert_geq(tamper_flip(path, "waiting-"), WAITING);
}

/* Leaves the store as a crash does. */
static void crash_after(void (*work)(void))
{
    pid_t child = fork();
    int status;

    cr_assert_geq(child, 0);
    if (child == 0) {
        work();
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}

static void leave_a_paused_backlog(void)
{
    world_open(&world);
    (void)world_order(&world, COMMAND_PAUSE, 0, "");
    send_waiting(0);
    seal_what_waits();
    send(1, "cut", 0);
    cr_assert_not_null(world_attempt(&world, "cut"));
}

Test(engine_scale, a_start_looks_at_no_event_that_waits)
{
    crash_after(leave_a_paused_backlog);
    damage_what_waits();
    world_open(&world);
    cr_assert_eq(world_record(&world, 1, "cut").crashes, 1);
    /* It would have seen them, had it looked. */
    cr_assert_eq(world_order(&world, COMMAND_READ, 0, "waiting-0"),
                 COMMAND_BUSY);
}

static void leave_a_held_key(void)
{
    world_open(&world);
    send(0, "first", KEY);
    send(0, "second", KEY);
    send(0, "third", KEY);
    send_waiting(KEY);
    seal_what_waits();
    cr_assert_not_null(world_attempt(&world, "first"));
}

Test(engine_scale, an_event_of_a_key_looks_at_no_other_that_waits_for_it)
{
    crash_after(leave_a_held_key);
    damage_what_waits();
    world_open(&world);
    send(0, "late", KEY);
    cr_assert_eq(world_record(&world, 0, "late").flags,
                 RECORD_ORDERED | RECORD_ORDER_WAIT);
    world_pass(&world, 2000);
    world_end(&world, "first", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&world, "second"));
    world_end(&world, "second", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&world, "third"));
    cr_assert_eq(world.started, 3);
}
