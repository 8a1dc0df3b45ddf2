/* SPDX-License-Identifier: MIT */
/*
 * A real engine on a real store, fed in batches of a fixed size by one
 * thread, with a handler that succeeds at once: what bench_store measures.
 * Whatever fails ends the program.
 */
#ifndef ONCED_BENCH_STORE_RIG_H
#define ONCED_BENCH_STORE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/engine.h"
#include "store/store.h"

enum { RIG_ID_SIZE = 31, RIG_BATCH_MAX = 1000 };

struct rig_shot;

struct rig {
    char path[512];
    bool no_sync;
    struct store *store;
    struct engine *engine;
    struct rig_shot *shots;
    struct buf envelope;
    uint64_t next_id; /* of the event that is sent next */
    uint64_t random;
    uint64_t turns; /* commits, but for the last ones of a run */
    size_t answered;
    struct attempt *held; /* the one that does not end */
    bool hold_next;
    int64_t retry_after_ms; /* > 0: the handler says "later" */
};

/* Wall and processor time, in seconds, of this process. */
struct lap {
    double wall_s, cpu_s;
};
struct lap lap_now(void);
struct lap lap_since(struct lap begin);

void rig_must(bool ok, const struct err *err);

/* The nth id: 30 characters, as a provider's are. */
struct slice rig_id(uint64_t n, char text[RIG_ID_SIZE]);

/* Opens the store, which is made where there is none, and the engine on it.
 * Ids go on behind what is remembered. */
void rig_open(struct rig *rig, const char *path, bool no_sync);
void rig_close(struct rig *rig);

/* Sends `n` new events, `batch` at a time, and runs until all are answered.
 * With order_keys > 0 each has one of that many keys, from `first_key` on. */
struct rig_load {
    uint64_t n;
    size_t batch;
    uint64_t first_key, order_keys;
};
void rig_send(struct rig *rig, const struct rig_load *load);
/* The same, and until all are settled. */
void rig_run(struct rig *rig, const struct rig_load *load);
/* Turns until no attempt is in flight, but for one that is held. */
void rig_settle(struct rig *rig);
void rig_turns(struct rig *rig, uint64_t n);
/* The held attempt succeeds. */
void rig_let_go(struct rig *rig);

uint64_t rig_remembered(struct rig *rig);

/* Fills a new store with `ids` settled events through store_put, without
 * sync, until all but the newest generation are sealed, then syncs it. */
void rig_preload(const char *path, uint64_t ids);

#endif
