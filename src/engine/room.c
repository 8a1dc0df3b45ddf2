/* SPDX-License-Identifier: MIT */
/*
 * How many more events a route has use for: what a partition may still bring.
 * Those that wait behind others of their key, and retries, are no load: a
 * slow one among them does not keep others out.
 */
#include "base/check.h"
#include "engine/internal.h"
#include "engine/partition.h"

static bool is_load(const struct record *record)
{
    return record->state == RECORD_RUNNING ||
           (record->state == RECORD_PENDING && record->attempt == 0 &&
            record->due_ms != RECORD_NEVER);
}

void room_reset(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        engine->routes[i].load = 0;
        engine->routes[i].new_load = 0;
    }
}

void room_count(struct route *route, const struct record *record)
{
    route->load += is_load(record) ? 1 : 0;
}

void room_follow(struct route *route, const struct record *before,
                 const struct record *after)
{
    route->new_load += (is_load(after) ? 1 : 0) - (is_load(before) ? 1 : 0);
}

/* A handler that could not be reached is tried with one event, where none that
 * is here is ready to be. */
static bool wants_probe(const struct engine *engine, const struct route *route)
{
    return route->load <= 0 &&
           store_first_due(engine->store, route->number) > engine->batch.now_ms;
}

static size_t room_of(const struct engine *engine, const struct route *route)
{
    int64_t most = 2 * (int64_t)route->conf.concurrency;

    if (engine->stopping || route->conf.retired || engine->batch.full ||
        store_is_paused(engine->store, route->number)) {
        return 0;
    }
    if (route->unreachable) {
        return wants_probe(engine, route) ? 1 : 0;
    }
    return route->load < most ? (size_t)(most - route->load) : 0;
}

bool room_fold(struct engine *engine)
{
    bool grew = false;

    for (size_t i = 0; i < engine->n_routes; i++) {
        struct route *route = &engine->routes[i];
        size_t before = atomic_load(&route->room);
        size_t after;

        route->load += route->new_load;
        route->new_load = 0;
        after = room_of(engine, route);
        if (after != before) {
            atomic_store(&route->room, after);
        }
        grew = grew || after > before;
    }
    return grew;
}

void room_aborted(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        engine->routes[i].new_load = 0;
    }
}

size_t engine_room(const struct engine *engine, size_t route)
{
    CHECK(route < engine->n_routes);
    return atomic_load(&engine->routes[route].room);
}
