/* SPDX-License-Identifier: MIT */
#include "store/store_idx.h"

#include "base/hash.h"
#include "fixture.h"

static struct slice row_of(uint8_t bytes[4 + IDX_ID_SIZE * 100],
                           const struct identity *key, size_t len)
{
    uint32_t crc = hash_crc32c(0, key->hash, sizeof key->hash);

    bytes_put_be32(bytes, hash_crc32c(crc, bytes + 4, len));
    return (struct slice){(const char *)bytes, 4 + len};
}

/* Ids 1 to n, each with its number as identity; key: that of the last. */
static struct slice block_of(uint8_t bytes[4 + IDX_ID_SIZE * 100], size_t n,
                             struct identity *key)
{
    memset(bytes, 0, 4 + IDX_ID_SIZE * 100);
    for (size_t i = 0; i < n; i++) {
        bytes[4 + i * IDX_ID_SIZE + 15] = (uint8_t)(i + 1);
        bytes[4 + i * IDX_ID_SIZE + 21] = (uint8_t)(i + 1);
    }
    *key = (struct identity){{0}};
    key->hash[15] = (uint8_t)n;
    return row_of(bytes, key, n * IDX_ID_SIZE);
}

static bool opens(const struct identity *key, struct slice row)
{
    struct idx_block block;

    return idx_block_open(
        (struct slice){(const char *)key->hash, sizeof key->hash}, row, &block);
}

Test(store_idx, a_block_gives_back_its_ids)
{
    uint8_t bytes[4 + IDX_ID_SIZE * 100];
    struct identity key, identity;
    struct idx_block block;
    struct slice row = block_of(bytes, IDX_BLOCK_IDS, &key);
    uint64_t seq;

    cr_assert(idx_block_open(
        (struct slice){(const char *)key.hash, sizeof key.hash}, row, &block));
    cr_assert_eq(block.n, IDX_BLOCK_IDS);
    idx_block_get(&block, 6, &identity, &seq);
    cr_assert_eq(identity.hash[15], 7);
    cr_assert_eq(seq, 7);
}

Test(store_idx, a_block_is_read_strictly)
{
    uint8_t bytes[4 + IDX_ID_SIZE * 100];
    struct identity key;
    struct slice row = block_of(bytes, 3, &key);

    cr_assert(opens(&key, row));
    for (size_t bit = 0; bit < row.len * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_assert_not(opens(&key, row), "bit %zu", bit);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t len = 0; len < row.len; len++) {
        cr_assert_not(opens(&key, (struct slice){row.data, len}));
    }
    cr_assert_not(opens(&key, row_of(bytes, &key, 3 * IDX_ID_SIZE - 1)));
    cr_assert_not(opens(&key, row_of(bytes, &key, 2 * IDX_ID_SIZE)),
                  "its last id is not its key");
    cr_assert_not(opens(&key, row_of(bytes, &key, 0)));
    row = block_of(bytes, IDX_BLOCK_IDS + 1, &key);
    cr_assert_not(opens(&key, row), "more ids than a block takes");
}

static void seal(struct fixture *f, size_t n)
{
    char id[32];

    fixture_prepare(f);
    f->options.ids_per_generation = (uint32_t)n;
    fixture_open(f);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(id, sizeof id, "known-%zu", i);
        fixture_add_done(f, id);
    }
    fixture_maintain(f);
}

Test(store_idx, a_sealed_generation_finds_its_ids_and_no_other)
{
    static const size_t sizes[] = {1, 90, 91, 92, 182, 183};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct fixture f;
        struct store_entry entry;
        char id[32];

        seal(&f, sizes[i]);
        OK(&f, store_begin(f.store, &f.err));
        for (size_t n = 0; n < sizes[i] + 500; n++) {
            uint64_t seq;

            (void)snprintf(id, sizeof id, "known-%zu", n);
            entry.identity =
                store_identity(f.store, f.space, SLICE(""), slice_of(id));
            cr_assert_eq(
                store_idx_find(f.store, 1, &entry.identity, &seq, &f.err),
                n < sizes[i] ? STORE_FOUND : STORE_ABSENT, "%zu of %zu: %s", n,
                sizes[i], f.err.text);
            cr_assert(n >= sizes[i] || seq == n + 1);
        }
        store_abort(f.store);
        fixture_end(&f);
    }
}
