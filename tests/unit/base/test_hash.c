/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "base/text.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void expect_hex(const uint8_t *digest, size_t len, const char *want)
{
    struct buf hex = BUF_INIT;

    text_hex((struct slice){(const char *)digest, len}, &hex);
    cr_expect_str_eq(buf_cstr(&hex), want);
    buf_free(&hex);
}

/* FIPS 180-4 examples. */
Test(hash, sha256_is_the_standards)
{
    uint8_t digest[SHA256_SIZE];
    struct buf million = BUF_INIT;

    hash_sha256(slice_of(NULL), digest);
    expect_hex(digest, sizeof digest,
               "e3b0c44298fc1c149afbf4c8996fb924"
               "27ae41e4649b934ca495991b7852b855");
    hash_sha256(SLICE("abc"), digest);
    expect_hex(digest, sizeof digest,
               "ba7816bf8f01cfea414140de5dae2223"
               "b00361a396177a9cb410ff61f20015ad");
    while (million.len < 1000000) {
        buf_add_byte(&million, 'a');
    }
    hash_sha256(buf_slice(&million), digest);
    expect_hex(digest, sizeof digest,
               "cdc76e5c9914fb9281a1c7e284d73e67"
               "f1809a48a497200e046d39ccc7112cd0");
    buf_free(&million);
}

/* Computed with another program over 8-byte lengths and parts. */
Test(hash, parts_stand_behind_their_lengths)
{
    static const struct slice one[] = {SLICE_INIT("orders"), SLICE_INIT("acme"),
                                       SLICE_INIT("evt_1")};
    static const struct slice moved[] = {
        SLICE_INIT("ordersa"), SLICE_INIT("cme"), SLICE_INIT("evt_1")};
    static const struct slice empty[] = {{NULL, 0}};
    uint8_t digest[SHA256_SIZE];

    hash_sha256_parts(one, COUNT(one), digest);
    expect_hex(digest, sizeof digest,
               "10bd24ac40fb502f1fa490c33d6060a2"
               "198cf1d9ef454667bb1dbbe59dc6e55e");
    hash_sha256_parts(moved, COUNT(moved), digest);
    expect_hex(digest, sizeof digest,
               "2c9723ecb98f206faa3770202ecce775"
               "0a7221e137a3265c9928e2a87b414400");
    hash_sha256_parts(empty, 1, digest);
    expect_hex(digest, sizeof digest,
               "af5570f5a1810b7af78caf4bc70a660f"
               "0df51e42baf91d4de5b2328de0e83dfc");
    hash_sha256_parts(NULL, 0, digest);
    expect_hex(digest, sizeof digest,
               "e3b0c44298fc1c149afbf4c8996fb924"
               "27ae41e4649b934ca495991b7852b855");
}

static const uint8_t counting_key[HASH_KEY_SIZE] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* The first is the authors' own vector, the others were computed with
 * another implementation that gives it too. */
Test(hash, keyed128_is_siphash_2_4_over_lengths_and_parts)
{
    static const struct slice one[] = {SLICE_INIT("orders"), SLICE_INIT("acme"),
                                       SLICE_INIT("evt_1")};
    static const struct slice moved[] = {
        SLICE_INIT("ordersa"), SLICE_INIT("cme"), SLICE_INIT("evt_1")};
    static const struct slice empty[] = {{NULL, 0}};
    struct buf many = BUF_INIT;
    struct slice long_one;
    uint8_t digest[HASH128_SIZE];

    hash_keyed128(counting_key, NULL, 0, digest);
    expect_hex(digest, sizeof digest, "a3817f04ba25a8e66df67214c7550293");
    hash_keyed128(counting_key, empty, 1, digest);
    expect_hex(digest, sizeof digest, "c293ab68efe6f296bd92a49d6257801d");
    hash_keyed128(counting_key, one, COUNT(one), digest);
    expect_hex(digest, sizeof digest, "b937a4cb73cbf3cae2d454c737407311");
    hash_keyed128(counting_key, moved, COUNT(moved), digest);
    expect_hex(digest, sizeof digest, "abad5271312b92f8c6184339138093e7");
    while (many.len < 300) {
        buf_add_byte(&many, 'x');
    }
    long_one = buf_slice(&many);
    hash_keyed128(counting_key, &long_one, 1, digest);
    expect_hex(digest, sizeof digest, "f6bde35461d6be96125eba62c9b7eb3a");
    buf_free(&many);
}

Test(hash, another_key_gives_another_hash)
{
    static const uint8_t other_key[HASH_KEY_SIZE] = {1};
    struct slice part = SLICE("evt_1");
    uint8_t a[HASH128_SIZE];
    uint8_t b[HASH128_SIZE];

    hash_keyed128(counting_key, &part, 1, a);
    hash_keyed128(other_key, &part, 1, b);
    cr_expect(memcmp(a, b, sizeof a) != 0);
    hash_keyed128(counting_key, &part, 1, b);
    cr_expect(memcmp(a, b, sizeof a) == 0, "nothing stays of the other key");
}

static void put_pattern(uint8_t out[32], int first, int step)
{
    for (int i = 0; i < 32; i++) {
        out[i] = (uint8_t)(first + i * step);
    }
}

/* RFC 3720, B.4, and the check value of the CRC catalogue. */
Test(hash, crc32c_is_the_standards)
{
    static const struct {
        int first;
        int step;
        uint32_t crc;
    } patterns[] = {
        {0x00, 0, 0x8a9136aa},
        {0xff, 0, 0x62a8ab43},
        {0, 1, 0x46dd794e},
        {31, -1, 0x113fdb5c},
    };
    uint8_t data[32];

    for (size_t i = 0; i < COUNT(patterns); i++) {
        put_pattern(data, patterns[i].first, patterns[i].step);
        cr_expect(hash_crc32c(0, data, sizeof data) == patterns[i].crc, "%zu",
                  i);
        cr_expect(hash_crc32c_portable(0, data, sizeof data) == patterns[i].crc,
                  "%zu", i);
    }
    cr_expect(hash_crc32c(0, "123456789", 9) == 0xe3069283);
    cr_expect(hash_crc32c_portable(0, "123456789", 9) == 0xe3069283);
    cr_expect(hash_crc32c(0, NULL, 0) == 0);
    cr_expect(hash_crc32c_portable(0, NULL, 0) == 0);
}

Test(hash, crc32c_goes_on_where_it_stopped_in_both_ways)
{
    uint8_t data[257];

    hash_random(data, sizeof data);
    for (size_t len = 0; len <= sizeof data; len++) {
        uint32_t whole = hash_crc32c(0, data, len);
        uint32_t head = hash_crc32c(0, data, len / 3);

        cr_expect(whole == hash_crc32c(head, data + len / 3, len - len / 3),
                  "%zu", len);
        cr_expect(whole == hash_crc32c_portable(0, data, len), "%zu", len);
        cr_expect(whole ==
                      hash_crc32c_portable(head, data + len / 3, len - len / 3),
                  "%zu", len);
    }
}

Test(hash, random_bytes_differ_and_fill_all)
{
    uint8_t a[1000] = {0};
    uint8_t b[1000] = {0};
    size_t zeros = 0;

    hash_random(a, sizeof a);
    hash_random(b, sizeof b);
    cr_expect(memcmp(a, b, sizeof a) != 0);
    for (size_t i = 0; i < sizeof a; i++) {
        zeros += a[i] == 0;
    }
    cr_expect(zeros < 60, "%zu", zeros); /* 4 are to be expected */
    hash_random(a, 0);
}

static void *hash_in_thread(void *arg)
{
    struct slice part = SLICE("evt_1");

    for (size_t i = 0; i < 1000; i++) {
        hash_keyed128(counting_key, &part, 1, arg);
    }
    return NULL;
}

Test(hash, threads_do_not_disturb_each_other)
{
    pthread_t threads[4];
    uint8_t digests[COUNT(threads)][HASH128_SIZE];

    for (size_t i = 0; i < COUNT(threads); i++) {
        cr_assert(
            pthread_create(&threads[i], NULL, hash_in_thread, digests[i]) == 0);
    }
    for (size_t i = 0; i < COUNT(threads); i++) {
        cr_assert(pthread_join(threads[i], NULL) == 0);
        cr_expect(memcmp(digests[i], digests[0], HASH128_SIZE) == 0);
    }
}
