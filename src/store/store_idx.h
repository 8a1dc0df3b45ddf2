/* SPDX-License-Identifier: MIT */
/*
 * The index of a sealed generation: its ids, sorted, in blocks.
 *
 * A row holds up to IDX_BLOCK_IDS ids with one CRC, under the highest of
 * them, so that the first row at or behind an identity is the only one that
 * can have it. Two rows fill a page of LMDB: an id takes 23 bytes, where a
 * row of its own would take 36. Written once, in order, by sealing.
 */
#ifndef ONCED_STORE_STORE_IDX_H
#define ONCED_STORE_STORE_IDX_H

#include "store/store_internal.h"

enum { IDX_BLOCK_IDS = 91, IDX_ID_SIZE = 22 };

/* Borrows from the row. */
struct idx_block {
    const char *ids;
    size_t n;
};

/* False when the row is damaged. */
bool idx_block_open(struct slice key, struct slice value,
                    struct idx_block *out);
/* The nth id, and where its record stands. */
void idx_block_get(const struct idx_block *block, size_t i,
                   struct identity *identity, uint64_t *seq);

/* Writes the next block of the table from *at on, which moves behind it, and
 * adds its ids to the filter. *n: how many it took; 0 at the end. */
bool store_idx_seal_block(struct store *store, uint32_t slot, size_t *at,
                          uint32_t *n, struct err *err) MUST_CHECK;

/* In a sealed generation, whose filter may have it. */
enum store_found store_idx_find(struct store *store, uint32_t number,
                                const struct identity *identity, uint64_t *seq,
                                struct err *err) MUST_CHECK;

#endif
