/* SPDX-License-Identifier: MIT */
/*
 * What bench_store measures against: LMDB alone, with the id of each event
 * put straight into its tree in the transaction that accepts it. The same
 * rows in size (record, due entry, envelope), the same two durable commits
 * per event; no states, no checks of what is read, no memory that follows.
 */
#ifndef ONCED_BENCH_STORE_DIRECT_H
#define ONCED_BENCH_STORE_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct direct;

struct direct *direct_open(const char *path, bool no_sync);
void direct_close(struct direct *direct);

/* Ids in the tree. */
uint64_t direct_count(struct direct *direct);
/* `n` events, `batch` in a commit, which also settles the batch before; the
 * last commit settles the last. */
void direct_run(struct direct *direct, uint64_t n, size_t batch);

/* The same ids, in the same order, as rig_preload leaves them, but for sync:
 * records, settled, and their ids. */
void direct_preload(const char *path, uint64_t ids);

#endif
