/* SPDX-License-Identifier: MIT */
/*
 * A Bloom filter over identities, in blocks of one cache line: a look-up
 * touches one block. 16 bits an id, 7 of them set: about 1 of 1,000 unknown
 * ids passes and costs a tree look-up.
 */
#ifndef ONCED_STORE_STORE_BLOOM_H
#define ONCED_STORE_STORE_BLOOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

enum { BLOOM_BLOCK_SIZE = 64 };

struct bloom {
    uint32_t n_blocks;
    uint8_t *blocks;
};

uint32_t store_bloom_blocks_for(uint64_t ids);
struct bloom *store_bloom_new(uint32_t n_blocks);
void store_bloom_free(struct bloom *bloom); /* NULL is fine */
void store_bloom_add(struct bloom *bloom, const struct identity *identity);
/* Asks for the memory that the next call with it will look at. */
void store_bloom_prefetch(const struct bloom *bloom,
                          const struct identity *identity);
/* False: it was never added. */
bool store_bloom_may_have(const struct bloom *bloom,
                          const struct identity *identity);

#endif
