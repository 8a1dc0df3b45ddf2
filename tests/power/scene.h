/* SPDX-License-Identifier: MIT */
/*
 * The recorded run: an engine on a store with every sync, senders, a handler
 * and operators, small generations that are sealed, carried and dropped, and
 * what each of them was told, written down at the moment.
 *
 * Events are numbered over all runs; everything about an event but its story
 * follows from its number.
 */
#ifndef ONCED_TESTS_POWER_SCENE_H
#define ONCED_TESTS_POWER_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/world.h"

enum { SCENE_EVENTS_MAX = 4096, SCENE_ID_SIZE = 8, SCENE_BODY_MAX = 8192 };
enum { SCENE_RETENTION_MS = 60000 };

enum fact_kind {
    FACT_TIME,  /* the clock stands at `ms` */
    FACT_KNOWN, /* the event was accepted at `ms` */
    FACT_MOVED, /* an order on it was carried out at `ms` */
    FACT_BEGAN, /* attempt `attempt` went to the handler, at `ms` */
    FACT_SEEN,  /* `record` was shown to an operator */
};

struct fact {
    enum fact_kind kind;
    uint32_t event;
    uint32_t attempt;
    int64_t ms;
    struct record record;
};

/* What lasts from one run to the next, also when one is killed: shared
 * memory. */
struct scene_progress {
    int64_t ms;
    uint32_t events;
    uint64_t random;
    /* of the store, at the end of the last run that was not killed */
    uint64_t dead, remembered;
    bool forgot; /* a generation was sealed, its rest carried, and dropped */
};

/* Routes, sizes and retention; the store is synced only when `sync`. What
 * anybody is told goes to `tell` as well. One scene in a process. */
void scene_init(struct world *world, bool sync,
                void (*tell)(const struct fact *fact));

/* Opens, does `steps` steps, closes. `world` is from scene_init. */
void scene_run(struct world *world, struct scene_progress *progress,
               unsigned steps);

/* Gives a delivery of the event in; it is answered in a turn. */
struct sent *scene_send(struct world *world, uint32_t event);

void scene_id(uint32_t event, char out[SCENE_ID_SIZE]);
size_t scene_route(uint32_t event);
/* The body that was sent; static memory, until the next call. */
const char *scene_body(uint32_t event);

#endif
