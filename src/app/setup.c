/* SPDX-License-Identifier: MIT */
#include "app/setup.h"

#include "base/hash.h"

/* xorshift64*: spreads backoff, decides nothing. */
static uint64_t next_random(void *self)
{
    uint64_t *state = self;

    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * 0x2545f4914f6cdd1dULL) >> 32;
}

struct store_options setup_store(const struct config *config)
{
    return (struct store_options){
        .path = config->store.path,
        .max_bytes = config->store.max_bytes,
        .retention_ms = config->store.retention_ms,
        .clock = clock_system(),
    };
}

struct store_options setup_reading(const char *path)
{
    return (struct store_options){
        .path = path,
        .max_bytes = 1,
        .retention_ms = INT64_MAX,
        .read_only = true,
        .clock = clock_system(),
    };
}

static struct engine_route make_route(const struct config_route *route)
{
    return (struct engine_route){
        .name = route->name,
        .namespace = route->namespace,
        .policy = route->policy,
        .rules = route->rules,
        .concurrency = route->concurrency,
        .retired = route->retired,
        .retention = route->retention,
        .max_dead_bytes = route->max_dead_bytes,
        .on_dead_full = route->on_dead_full,
        .tells_dead = route->has_dead_kafka,
    };
}

struct engine_route *setup_engine(const struct config *config,
                                  const struct handler *handlers,
                                  struct engine_options *out)
{
    static uint64_t random_state;
    struct engine_route *routes = mem_new(config->n_routes, sizeof *routes);

    hash_random(&random_state, sizeof random_state);
    random_state |= 1; /* xorshift must not start from 0 */
    for (size_t i = 0; i < config->n_routes; i++) {
        routes[i] = make_route(&config->routes[i]);
        if (handlers != NULL) {
            routes[i].handler = handlers[i];
        }
    }
    *out = (struct engine_options){
        .routes = routes,
        .n_routes = config->n_routes,
        .streams = (const char *const *)config->streams.items,
        .n_streams = config->streams.n,
        .clock = clock_system(),
        .random = next_random,
        .random_self = &random_state,
        .inbox_items = config->inbox.max_items,
        .inbox_bytes = config->inbox.max_bytes,
    };
    return routes;
}
