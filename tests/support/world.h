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
enum { WORLD_ARRIVALS_MAX = 8 };

/* A delivery, and what came of it. */
struct sent {
    struct delivery delivery; /* first */
    struct arrival arrivals[WORLD_ARRIVALS_MAX];
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
    const char *const *streams; /* of partitions; kept by the test */
    size_t n_streams;
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
/* Ends what runs (as broken), closes; the store stays for the next open. No
 * partition may be assigned. */
void world_close(struct world *world);
/* The process is killed: what ran has no end, assignments are gone with it.
 * Dead letters that were handed out are finished before by who has them. */
void world_crash(struct world *world);
void world_fini(struct world *world); /* removes the store, too */

/* Turns until nothing happens. */
void world_turn(struct world *world);
void world_pass(struct world *world, int64_t ms); /* time, then world_turn */

/* Sends; the answer is there after world_turn. */
struct sent *world_send(struct world *world, size_t route, const char *id,
                        const char *body);
struct sent *world_send_keyed(struct world *world, size_t route, const char *id,
                              uint64_t order_key);
/* A message of a partition: one event, or with `n_routes` one on each route
 * from `route` on. Body and ordering key may be left out. */
struct message {
    struct assignment *assignment;
    int64_t offset;
    size_t route, n_routes;
    const char *id, *body;
    uint64_t order_key;
    int64_t event_wall_ms;
};
/* In one delivery, of the first one's assignment. */
struct sent *world_bring(struct world *world, const struct message *messages,
                         size_t n_messages);
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
