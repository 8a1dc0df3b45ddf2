/* SPDX-License-Identifier: MIT */
/*
 * The ids of a generation in memory: identity -> sequence number.
 *
 * Open addressing by the leading bits of the identity, each run of slots
 * kept in order (Robin Hood), with spare slots behind the end in place of
 * wrapping round. So the whole table is sorted at any time: sealing walks it
 * from slot 0 and appends, in slices of any size, without a sort. Identities
 * are a keyed hash: outsiders cannot make runs grow.
 */
#ifndef ONCED_STORE_STORE_TABLE_H
#define ONCED_STORE_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct id_table;

struct id_table *store_table_new(void);
void store_table_free(struct id_table *table); /* NULL is fine */
size_t store_table_count(const struct id_table *table);

/* Makes room for `more`, so that setting those moves no memory. */
void store_table_reserve(struct id_table *table, size_t more);

/* Asks for the memory that a get or set of it will look at. */
void store_table_prefetch(const struct id_table *table,
                          const struct identity *identity);

/* 0 where it is not known. */
uint64_t store_table_get(const struct id_table *table,
                         const struct identity *identity);
/* Sets (seq > 0) or removes (seq 0); returns what it was, 0: not there. */
uint64_t store_table_set(struct id_table *table,
                         const struct identity *identity, uint64_t seq);

/* The first entry at or behind slot *at, in order; moves *at behind it. */
bool store_table_next(const struct id_table *table, size_t *at,
                      struct identity *identity, uint64_t *seq);

#endif
