/* SPDX-License-Identifier: MIT */
/*
 * Worlds from seeds: deliveries, answers, orders, time and restarts at random,
 * on a store whose generations close after eight ids. At no time runs an
 * event, or a key, twice; in the end everything settles, and the store
 * verifies.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/world.h"

enum { SEEDS = 40, STEPS = 400, IDS = 24, KEYS = 4, HOUR_MS = 3600000 };

static struct world world;
static uint64_t random_state;

static unsigned draw(unsigned below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407;
    return (unsigned)((random_state >> 33) % below);
}

static uint64_t key_of(int n)
{
    return n % 3 == 0 ? 0 : (uint64_t)(n % KEYS + 1);
}

static void check_running(void)
{
    for (size_t i = 0; i < world.n_running; i++) {
        for (size_t j = i + 1; j < world.n_running; j++) {
            int a = world_number(world.running[i]);
            int b = world_number(world.running[j]);

            if (strcmp(world.running[i]->route, world.running[j]->route) != 0) {
                continue;
            }
            cr_assert_neq(a, b, "one event twice at a time");
            cr_assert(key_of(a) == 0 || key_of(a) != key_of(b),
                      "one key twice at a time: e%d e%d", a, b);
        }
    }
}

static void verify_store(uint64_t seed)
{
    char path[80];
    struct store_report report;
    struct err err;

    (void)snprintf(path, sizeof path, "%s/store", world.dir);
    cr_assert(store_verify(path, &report, &err), "%s", err.text);
    cr_assert_eq(report.bad, 0, "seed %llu: %s", (unsigned long long)seed,
                 report.first_bad);
}

static void end_one(size_t at, enum attempt_end end, int status)
{
    world_end(&world, world_id(world_number(world.running[at])), end, status);
}

static void answer_one(void)
{
    static const int statuses[] = {200, 200, 200, 503, 404, 429, 400};
    size_t at;

    if (world.n_running == 0) {
        return;
    }
    at = draw((unsigned)world.n_running);
    switch (draw(10)) {
    case 0:
        end_one(at, END_UNREACHED, 0);
        return;
    case 1:
        end_one(at, END_TIMEOUT, 0);
        return;
    default:
        end_one(at, END_STATUS, statuses[draw(7)]);
        return;
    }
}

static void order_one(size_t route, const char *id)
{
    static const enum command_kind kinds[] = {
        COMMAND_REPLAY,          COMMAND_RERUN,
        COMMAND_RESOLVE_APPLIED, COMMAND_RESOLVE_NOT_APPLIED,
        COMMAND_DISCARD,         COMMAND_PAUSE,
        COMMAND_RESUME,
    };

    (void)world_order(&world, kinds[draw(7)], route, id);
}

static void restart(uint64_t seed)
{
    world_close(&world);
    verify_store(seed);
    if (draw(3) == 0) {
        struct policy *policy = &world.routes[0].policy;

        policy->after_dead = policy->after_dead == AFTER_DEAD_HOLD
                                 ? AFTER_DEAD_CONTINUE
                                 : AFTER_DEAD_HOLD;
    }
    world_open(&world);
}

static void send_one(size_t route, int n)
{
    struct sent *sent = world_send_keyed(&world, route, world_id(n), key_of(n));

    world_turn(&world);
    sent_free(sent);
}

static void take_step(uint64_t seed)
{
    int n = (int)draw(IDS);
    size_t route = draw(WORLD_ROUTES);
    unsigned what = draw(12);

    if (what < 4) {
        send_one(route, n);
    } else if (what < 7) {
        answer_one();
    } else if (what < 9) {
        order_one(route, world_id(n));
    } else if (what < 11) {
        static const int64_t spans_ms[] = {5000, 120000, 600000, 3000000};

        world_pass(&world, spans_ms[draw(4)]);
    } else if (draw(4) == 0) {
        restart(seed);
    }
    check_running();
}

/* Every route goes on, the dead are discarded, every answer is 200. */
static void heal(void)
{
    for (size_t route = 0; route < WORLD_ROUTES; route++) {
        (void)world_order(&world, COMMAND_RESUME, route, "");
        for (int n = 0; n < IDS; n++) {
            if (world_record(&world, route, world_id(n)).state == RECORD_DEAD) {
                (void)world_order(&world, COMMAND_DISCARD, route, world_id(n));
            }
        }
    }
    for (int minute = 0; minute < 240; minute++) {
        while (world.n_running > 0) {
            end_one(0, END_STATUS, 200);
            check_running();
        }
        world_pass(&world, 60000);
    }
}

static void expect_settled(uint64_t seed)
{
    for (size_t route = 0; route < WORLD_ROUTES; route++) {
        for (int n = 0; n < IDS; n++) {
            struct record record = world_record(&world, route, world_id(n));

            cr_assert(record.state == RECORD_NONE ||
                          record.state >= RECORD_SUCCEEDED,
                      "seed %llu: %s of route %zu is stuck in %s, flags %x",
                      (unsigned long long)seed, world_id(n), route,
                      record_state_name(record.state), record.flags);
        }
    }
}

static void begin(uint64_t seed)
{
    random_state = seed * 7919 + 1;
    world_init(&world);
    world.ids_per_generation = 8;
    world.retention_ms = 2 * HOUR_MS;
    for (size_t i = 0; i < WORLD_ROUTES; i++) {
        struct engine_route *route = &world.routes[i];

        route->policy.after_dead =
            draw(2) == 0 ? AFTER_DEAD_CONTINUE : AFTER_DEAD_HOLD;
        route->policy.on_uncertain =
            draw(3) == 0 ? ON_UNCERTAIN_HOLD : ON_UNCERTAIN_RETRY;
        route->retention.ids_ms = (1 + draw(2)) * HOUR_MS;
        route->retention.envelope_ms = HOUR_MS;
        route->retention.result_ms = HOUR_MS;
        if (draw(3) == 0) {
            route->on_dead_full = DEAD_FULL_DROP_OLDEST;
            route->max_dead_bytes = 1500;
        }
    }
    world_open(&world);
}

Test(engine_random, every_world_settles_and_verifies)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(seed);
        for (int i = 0; i < STEPS; i++) {
            take_step(seed);
        }
        heal();
        expect_settled(seed);
        world_close(&world);
        verify_store(seed);
        world_fini(&world);
    }
}
