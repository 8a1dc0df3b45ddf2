/* SPDX-License-Identifier: MIT */
#include "store/store_bloom.h"

#include <stdlib.h>

#include "base/check.h"

enum { BITS_PER_ID = 16, HASHES = 7, BLOCK_BITS = BLOOM_BLOCK_SIZE * 8 };

uint32_t store_bloom_blocks_for(uint64_t ids)
{
    uint64_t n = (ids * BITS_PER_ID + BLOCK_BITS - 1) / BLOCK_BITS;

    CHECK(n <= UINT32_MAX);
    return n > 0 ? (uint32_t)n : 1;
}

struct bloom *store_bloom_new(uint32_t n_blocks)
{
    struct bloom *bloom = mem_new(1, sizeof *bloom);

    CHECK(n_blocks > 0);
    bloom->n_blocks = n_blocks;
    bloom->blocks = mem_new(n_blocks, BLOOM_BLOCK_SIZE);
    return bloom;
}

void store_bloom_free(struct bloom *bloom)
{
    if (bloom == NULL) {
        return;
    }
    free(bloom->blocks);
    free(bloom);
}

/* The identity is a good hash already: its upper half names the block, nine
 * bits each of its lower half the bits in it. */
static uint8_t *block_of(const struct bloom *bloom,
                         const struct identity *identity)
{
    uint64_t spread = bytes_get_be32(identity->hash);
    uint32_t block = (uint32_t)(spread * bloom->n_blocks >> 32);

    return bloom->blocks + (size_t)block * BLOOM_BLOCK_SIZE;
}

void store_bloom_add(struct bloom *bloom, const struct identity *identity)
{
    uint8_t *block = block_of(bloom, identity);
    uint64_t bits = bytes_get_be64(identity->hash + 8);

    for (unsigned i = 0; i < HASHES; i++, bits >>= 9) {
        unsigned bit = bits & (BLOCK_BITS - 1);

        block[bit >> 3] = (uint8_t)(block[bit >> 3] | 1U << (bit & 7));
    }
}

void store_bloom_prefetch(const struct bloom *bloom,
                          const struct identity *identity)
{
    __builtin_prefetch(block_of(bloom, identity));
}

bool store_bloom_may_have(const struct bloom *bloom,
                          const struct identity *identity)
{
    const uint8_t *block = block_of(bloom, identity);
    uint64_t bits = bytes_get_be64(identity->hash + 8);

    for (unsigned i = 0; i < HASHES; i++, bits >>= 9) {
        unsigned bit = bits & (BLOCK_BITS - 1);

        if ((block[bit >> 3] >> (bit & 7) & 1) == 0) {
            return false;
        }
    }
    return true;
}
