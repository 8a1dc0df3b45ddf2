/* SPDX-License-Identifier: MIT */
#include "store/store_table.h"

#include <criterion/criterion.h>
#include <string.h>

#include "store/store_bloom.h"

enum { IDS = 20000 };

static uint64_t state = 88172645463325252U;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static struct identity random_identity(void)
{
    struct identity identity;

    bytes_put_be64(identity.hash, next_random());
    bytes_put_be64(identity.hash + 8, next_random());
    return identity;
}

/* The last runs of the table, where a run could leave its end. */
static struct identity high_identity(uint64_t low)
{
    struct identity identity;

    bytes_put_be64(identity.hash, UINT64_MAX);
    bytes_put_be64(identity.hash + 8, low);
    return identity;
}

static void expect_sorted(const struct id_table *table, size_t n)
{
    struct identity before, now;
    size_t at = 0, count = 0;
    uint64_t seq;

    while (store_table_next(table, &at, &now, &seq)) {
        cr_assert(count == 0 ||
                  memcmp(before.hash, now.hash, sizeof now.hash) < 0);
        before = now;
        count++;
    }
    cr_assert_eq(count, n);
    cr_assert_eq(store_table_count(table), n);
}

Test(store_table, knows_what_was_set_and_is_sorted_all_the_time)
{
    struct id_table *table = store_table_new();
    struct identity *ids = mem_new(IDS, sizeof *ids);

    for (uint64_t i = 0; i < IDS; i++) {
        ids[i] = random_identity();
        cr_assert_eq(store_table_get(table, &ids[i]), 0);
        cr_assert_eq(store_table_set(table, &ids[i], i + 1), 0);
    }
    expect_sorted(table, IDS);
    for (uint64_t i = 0; i < IDS; i += 2) {
        cr_assert_eq(store_table_set(table, &ids[i], 0), i + 1);
    }
    expect_sorted(table, IDS / 2);
    for (uint64_t i = 0; i < IDS; i++) {
        cr_assert_eq(store_table_get(table, &ids[i]), i % 2 == 0 ? 0 : i + 1);
    }
    for (uint64_t i = 0; i < IDS; i += 2) {
        cr_assert_eq(store_table_set(table, &ids[i], i + 7), 0);
        cr_assert_eq(store_table_set(table, &ids[i], i + 9), i + 7);
    }
    expect_sorted(table, IDS);
    free(ids);
    store_table_free(table);
}

Test(store_table, a_run_at_the_end_of_the_table_has_room)
{
    struct id_table *table = store_table_new();

    for (uint64_t i = 400; i > 0; i--) {
        struct identity identity = high_identity(i);

        cr_assert_eq(store_table_set(table, &identity, i), 0);
    }
    expect_sorted(table, 400);
    for (uint64_t i = 1; i <= 400; i++) {
        struct identity identity = high_identity(i);

        cr_assert_eq(store_table_get(table, &identity), i);
    }
    store_table_free(table);
}

Test(store_bloom, never_denies_what_it_has_and_seldom_claims_what_it_has_not)
{
    struct bloom *bloom = store_bloom_new(store_bloom_blocks_for(IDS));
    struct identity *ids = mem_new(IDS, sizeof *ids);
    int wrong = 0;

    for (int i = 0; i < IDS; i++) {
        ids[i] = random_identity();
        store_bloom_add(bloom, &ids[i]);
    }
    for (int i = 0; i < IDS; i++) {
        struct identity other = random_identity();

        cr_assert(store_bloom_may_have(bloom, &ids[i]));
        wrong += store_bloom_may_have(bloom, &other);
    }
    cr_assert_lt(wrong, IDS / 60);
    free(ids);
    store_bloom_free(bloom);
}
