/* SPDX-License-Identifier: MIT */
#include "store/store_idx.h"

#include <assert.h>
#include <string.h>

#include "base/check.h"

enum { HASH_SIZE = sizeof(struct identity) };

static_assert(HASH_SIZE + 6 == IDX_ID_SIZE, "an identity and a number");

bool idx_block_open(struct slice key, struct slice value, struct idx_block *out)
{
    struct slice ids;

    if (!store_db_unseal(key, value, &ids) || key.len != HASH_SIZE ||
        ids.len == 0 || ids.len % IDX_ID_SIZE != 0) {
        return false;
    }
    out->ids = ids.data;
    out->n = ids.len / IDX_ID_SIZE;
    return out->n <= IDX_BLOCK_IDS &&
           memcmp(ids.data + (out->n - 1) * IDX_ID_SIZE, key.data, HASH_SIZE) ==
               0;
}

void idx_block_get(const struct idx_block *block, size_t i,
                   struct identity *identity, uint64_t *seq)
{
    const char *at = block->ids + i * IDX_ID_SIZE;

    CHECK(i < block->n);
    memcpy(identity->hash, at, HASH_SIZE);
    *seq = (uint64_t)bytes_get_be16(at + HASH_SIZE) << 32 |
           bytes_get_be32(at + HASH_SIZE + 2);
}

bool store_idx_seal_block(struct store *store, uint32_t slot, size_t *at,
                          uint32_t *n, struct err *err)
{
    const struct gen_memory *memory = &store->memory[slot];
    uint8_t block[IDX_BLOCK_IDS * IDX_ID_SIZE], *to = block;
    struct identity identity;
    uint64_t seq;

    for (*n = 0; *n < IDX_BLOCK_IDS &&
                 store_table_next(memory->table, at, &identity, &seq);
         (*n)++, to += IDX_ID_SIZE) {
        CHECK(seq != 0 && seq >> 48 == 0);
        store_bloom_add(memory->bloom, &identity);
        memcpy(to, identity.hash, HASH_SIZE);
        bytes_put_be16(to + HASH_SIZE, (uint16_t)(seq >> 32));
        bytes_put_be32(to + HASH_SIZE + 2, (uint32_t)seq);
    }
    return *n == 0 ||
           store_db_put_sealed(
               store, store->db.idx[slot],
               (struct slice){(const char *)identity.hash, HASH_SIZE},
               (struct slice){(const char *)block, (size_t)(to - block)}, err);
}

/* Where the identity is in the block, or would be. */
static size_t search(const struct idx_block *block,
                     const struct identity *identity)
{
    size_t from = 0, to = block->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (memcmp(block->ids + middle * IDX_ID_SIZE, identity->hash,
                   HASH_SIZE) < 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

enum store_found store_idx_find(struct store *store, uint32_t number,
                                const struct identity *identity, uint64_t *seq,
                                struct err *err)
{
    struct slice key = {(const char *)identity->hash, HASH_SIZE}, value;
    struct idx_block block;
    struct identity there;
    enum store_found found = store_db_seek(
        store->txn, store->db.idx[slot_of(number)], &key, &value, err);

    if (found != STORE_FOUND) {
        return found;
    }
    if (!idx_block_open(key, value, &block)) {
        (void)err_set(err, ERR_DATA,
                      "a damaged row in the index of generation %u", number);
        return STORE_FAILED;
    }
    idx_block_get(&block, search(&block, identity), &there, seq);
    return memcmp(&there, identity, sizeof there) == 0 ? STORE_FOUND
                                                       : STORE_ABSENT;
}
