/* SPDX-License-Identifier: MIT */
/*
 * A small world around a real engine on a real store: a clock that only moves
 * when told, senders, and a handler whose answers the test decides. One
 * thread; nothing waits.
 */
#ifndef ONCED_TESTS_WORLD_H
#define ONCED_TESTS_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "store/store.h"

enum { WORLD_ROUTES = 2, WORLD_ATTEMPTS_MAX = 256, WORLD_START_MS = 1000000 };

/* A delivery of one event, and what came of it. */
struct sent {
    struct delivery delivery; /* first */
    struct arrival arrivals[WORLD_ROUTES];
    struct buf text; /* id and envelope */
    bool answered;
};

struct world {
    char dir[64];
    struct clock clock;
    int64_t ms; /* both clocks */
    uint64_t max_bytes;
    bool sync;                   /* false: the store is not synced */
    uint32_t ids_per_generation; /* 0: the store's own rule */
    int64_t retention_ms;
    struct store *store;
    struct engine *engine;
    struct engine_route routes[WORLD_ROUTES];
    /* attempts that started and did not end, oldest first */
    struct attempt *running[WORLD_ATTEMPTS_MAX];
    size_t n_running;
    size_t started; /* ever */
    bool alive;     /* what the handler says of older attempts */
    unsigned kills;
    uint64_t random;
};

/* Routes "a" and "b", accepted, retry, 1 s backoff without jitter, one hour
 * to give up, 4 attempts at one time: change world->routes, then world_open. */
void world_init(struct world *world);
void world_open(struct world *world);
bool world_try_open(struct world *world, struct err *err);
/* Ends what runs (as broken), closes; the store stays for the next open. */
void world_close(struct world *world);
void world_fini(struct world *world); /* removes the store, too */

/* Turns until nothing happens. */
void world_turn(struct world *world);
void world_pass(struct world *world, int64_t ms); /* time, then world_turn */

/* Sends; the answer is there after world_turn. */
struct sent *world_send(struct world *world, size_t route, const char *id,
                        const char *body);
struct sent *world_send_keyed(struct world *world, size_t route, const char *id,
                              uint64_t order_key);
void sent_free(struct sent *sent);
/* Sends, turns, and gives the answer. */
enum delivery_answer world_deliver(struct world *world, size_t route,
                                   const char *id, const char *body);

/* Ids of tests that count: "e7", until the next call; and back again. */
const char *world_id(int n);
int world_number(const struct attempt *attempt);

/* The attempt in flight for the id, or NULL. */
struct attempt *world_attempt(struct world *world, const char *id);
/* Ends it and turns. */
void world_end(struct world *world, const char *id, enum attempt_end end,
               int status);

/* Gives an order and turns. */
enum command_status world_order(struct world *world, enum command_kind kind,
                                size_t route, const char *id);
/* The record as operators see it; state NONE where there is none. */
struct record world_record(struct world *world, size_t route, const char *id);
/* How many rows of history say `move`. */
unsigned world_history(struct world *world, size_t route, const char *id,
                       enum move move);

#endif
