/* SPDX-License-Identifier: MIT */
#include "store/store_bloom.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/hash.h"

enum { IDS = 100000 };

static struct identity nth(uint32_t n)
{
    static const uint8_t key[HASH_KEY_SIZE] = {1};
    const struct slice part = {(const char *)&n, sizeof n};
    struct identity identity;

    hash_keyed128(key, &part, 1, identity.hash);
    return identity;
}

Test(store_bloom, knows_what_was_added_and_lets_little_else_pass)
{
    struct bloom *bloom = store_bloom_new(store_bloom_blocks_for(IDS));
    unsigned passed = 0;

    for (uint32_t n = 0; n < IDS; n++) {
        struct identity identity = nth(n);

        store_bloom_add(bloom, &identity);
    }
    for (uint32_t n = 0; n < IDS; n++) {
        struct identity known = nth(n), unknown = nth(IDS + n);

        cr_assert(store_bloom_may_have(bloom, &known));
        passed += store_bloom_may_have(bloom, &unknown) ? 1 : 0;
    }
    cr_assert_lt(passed, IDS / 500);
    store_bloom_free(bloom);
}

/* What is stored must read the same for good. */
Test(store_bloom, sets_the_bits_that_the_format_says)
{
    static const struct identity identity = {
        {0x80, 0, 0, 0, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0x02, 0x03}};
    struct bloom *bloom = store_bloom_new(4);
    uint8_t expected[4 * BLOOM_BLOCK_SIZE] = {0};

    /* Half of all blocks on: the third. 0x203 is bit 3, then 1, then 0s. */
    expected[2 * BLOOM_BLOCK_SIZE] = 1 << 3 | 1 << 1 | 1 << 0;
    store_bloom_add(bloom, &identity);
    cr_assert_arr_eq(bloom->blocks, expected, sizeof expected);
    store_bloom_free(bloom);
}
