/* SPDX-License-Identifier: MIT */
#include "store/record_codec.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/hash.h"

static struct record_row example(void)
{
    struct record_row row = {
        .origin = 41,
        .namespace = 3,
        .tenant = SLICE("acct"),
        .id = SLICE("evt_1"),
        .record =
            {
                .state = RECORD_UNCERTAIN,
                .flags = RECORD_ORDERED | RECORD_PROBING,
                .route = 2,
                .status = 502,
                .run = 1,
                .attempt = 4,
                .tries = 3,
                .crashes = 1,
                .probes = 2,
                .backoffs = 5,
                .deliveries = 6,
                .drifts = 7,
                .epoch = 0x01020304,
                .first_seen_ms = 1800000000000,
                .last_seen_ms = 1800000000001,
                .changed_ms = 1800000000002,
                .clock_ms = 1800000000003,
                .due_ms = 1800000000004,
                .doubt_since_ms = 1800000000005,
                .order_key = UINT64_MAX,
                .fingerprint = {1, FINGERPRINT_JSON, {1, 2, 3}},
            },
    };

    memset(row.identity.hash, 0xab, sizeof row.identity.hash);
    return row;
}

static void expect_same(const struct record_row *row, uint64_t seq)
{
    uint8_t bytes[RECORD_CODEC_MAX];
    size_t len = record_codec_encode(row, seq, bytes);
    struct slice whole = {(char *)bytes, len};
    struct record_row back;
    struct identity identity;

    cr_assert(record_codec_identity(whole, seq, &identity));
    cr_assert_arr_eq(identity.hash, row->identity.hash, 16);
    cr_assert(record_codec_decode(whole, seq, &back));
    cr_assert_eq(back.origin, row->origin);
    cr_assert_eq(back.namespace, row->namespace);
    cr_assert(slice_eq(back.tenant, row->tenant));
    cr_assert(slice_eq(back.id, row->id));
    cr_assert_arr_eq(back.identity.hash, row->identity.hash, 16);
    cr_assert_eq(back.record.state, row->record.state);
    cr_assert_eq(back.record.reason, row->record.reason);
    cr_assert_eq(back.record.flags, row->record.flags);
    cr_assert_eq(back.record.route, row->record.route);
    cr_assert_eq(back.record.status, row->record.status);
    cr_assert_eq(back.record.run, row->record.run);
    cr_assert_eq(back.record.attempt, row->record.attempt);
    cr_assert_eq(back.record.tries, row->record.tries);
    cr_assert_eq(back.record.crashes, row->record.crashes);
    cr_assert_eq(back.record.probes, row->record.probes);
    cr_assert_eq(back.record.backoffs, row->record.backoffs);
    cr_assert_eq(back.record.deliveries, row->record.deliveries);
    cr_assert_eq(back.record.drifts, row->record.drifts);
    cr_assert_eq(back.record.epoch, row->record.epoch);
    cr_assert_eq(back.record.first_seen_ms, row->record.first_seen_ms);
    cr_assert_eq(back.record.last_seen_ms, row->record.last_seen_ms);
    cr_assert_eq(back.record.changed_ms, row->record.changed_ms);
    cr_assert_eq(back.record.clock_ms, row->record.clock_ms);
    cr_assert_eq(back.record.due_ms, row->record.due_ms);
    cr_assert_eq(back.record.doubt_since_ms, row->record.doubt_since_ms);
    cr_assert_eq(back.record.order_key, row->record.order_key);
    cr_assert(
        fingerprint_eq(&back.record.fingerprint, &row->record.fingerprint));
    cr_assert_eq(back.position.stream, row->position.stream);
    cr_assert_eq(back.position.partition, row->position.partition);
    cr_assert_eq(back.position.offset, row->position.offset);
}

Test(record_codec, gives_back_what_it_was_given)
{
    struct record_row row = example();

    expect_same(&row, 42);
    expect_same(&row, 41);
    row.record.order_key = 0;
    row.record.due_ms = RECORD_NEVER;
    expect_same(&row, 41);
    row.record.attempt = UINT32_MAX;
    row.record.tries = 256;
    expect_same(&row, 41);
    row.tenant = (struct slice){NULL, 0};
    row.id.len = 0;
    expect_same(&row, UINT64_C(0xffffffffffff));
}

Test(record_codec, gives_back_times_near_and_far)
{
    const int64_t first_ms = 1800000000000;
    const int64_t near_ms = first_ms + 0xfffffffd, last_ms = 0xfffffffffffe;
    const struct {
        int64_t first_ms, ms;
        bool near;
    } cases[] = {
        {first_ms, first_ms, true},
        {first_ms, near_ms, true},
        {first_ms, near_ms + 1, false},
        {first_ms, near_ms + 2, false},
        {first_ms, near_ms + 3, false},
        {first_ms, first_ms - 1, false},
        {first_ms, 0, true},
        {first_ms, RECORD_NEVER, true},
        {first_ms, 1, false},
        {first_ms, last_ms, false},
        {last_ms, last_ms, true},
        {last_ms, RECORD_NEVER, true},
        {0, 0, true},
        {0, 1, true},
        {0, 0xfffffffe, false},
        {RECORD_NEVER, 0, false},
        {RECORD_NEVER, RECORD_NEVER, false},
    };
    uint8_t bytes[RECORD_CODEC_MAX];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct record_row row = example();
        struct record *record = &row.record;
        size_t len;

        record->first_seen_ms = cases[i].first_ms;
        record->last_seen_ms = cases[i].ms;
        record->changed_ms = cases[i].ms;
        record->clock_ms = cases[i].ms;
        record->due_ms = cases[i].ms;
        record->doubt_since_ms = cases[i].ms;
        expect_same(&row, 42);
        len = record_codec_encode(&row, 42, bytes);
        record->first_seen_ms = record->last_seen_ms = 5;
        record->changed_ms = record->clock_ms = 5;
        record->due_ms = record->doubt_since_ms = 5;
        cr_assert_eq(len,
                     record_codec_encode(&row, 42, bytes) +
                         (cases[i].near ? 0 : 10),
                     "case %zu", i);
    }
}

/* Makes the CRC of a changed row fit again. */
static bool still_decodes(uint8_t *bytes, size_t len)
{
    struct record_row back;
    uint8_t key[8];

    bytes_put_be64(key, 42);
    bytes_put_be32(bytes, hash_crc32c(hash_crc32c(0, key, sizeof key),
                                      bytes + 4, len - 4));
    return record_codec_decode((struct slice){(char *)bytes, len}, 42, &back);
}

Test(record_codec, a_time_has_one_form)
{
    enum { LAYOUT_AT = 5, FIRST_AT = 17, LAST_SEEN_AT = 23 };
    struct record_row row = example();
    uint8_t bytes[RECORD_CODEC_MAX];
    size_t len;

    row.record.first_seen_ms = 0;
    row.record.last_seen_ms = 0;
    row.record.changed_ms = row.record.clock_ms = 1;
    row.record.due_ms = row.record.doubt_since_ms = 1;
    len = record_codec_encode(&row, 42, bytes);
    cr_assert(still_decodes(bytes, len));
    cr_assert_eq(bytes_get_be32(bytes + LAST_SEEN_AT), 0xfffffffe);
    bytes_put_be32(bytes + LAST_SEEN_AT, 0);
    cr_assert_not(still_decodes(bytes, len), "zero, told as a distance");
    bytes_put_be32(bytes + LAST_SEEN_AT, 7);
    cr_assert(still_decodes(bytes, len));
    memset(bytes + FIRST_AT, 0xff, 6);
    cr_assert_not(still_decodes(bytes, len), "a distance from never");

    row.record.due_ms = RECORD_NEVER - 1 - 0x7fff000000000000;
    len = record_codec_encode(&row, 42, bytes);
    cr_assert_neq(bytes[LAYOUT_AT] & 8, 0);
    memset(bytes + LAST_SEEN_AT + 18, 0, 6);
    cr_assert_not(still_decodes(bytes, len), "far, and none is");
}

Test(record_codec, a_row_keeps_its_size_through_the_life_of_an_event)
{
    struct record_row row = example();
    uint8_t bytes[RECORD_CODEC_MAX];
    size_t len = record_codec_encode(&row, 41, bytes);

    row.record.state = RECORD_SUCCEEDED;
    row.record.flags = 0;
    row.record.attempt = 255;
    row.record.due_ms = RECORD_NEVER;
    row.record.doubt_since_ms = 0;
    cr_assert_eq(record_codec_encode(&row, 41, bytes), len);
}

Test(record_codec, a_settled_record_with_an_id_of_30_bytes_is_small)
{
    struct record_row row = example();
    uint8_t bytes[RECORD_CODEC_MAX];

    row.record.order_key = 0;
    row.tenant.len = 0;
    row.id = SLICE("evt_0123456789abcdefghijklmnop");
    cr_assert_eq(row.id.len, 30);
    cr_assert_eq(record_codec_encode(&row, 41, bytes), 119);
}

/* docs/format.md, "Record", written out by hand. */
Test(record_codec, a_row_with_a_position_is_these_bytes)
{
    static const uint8_t wanted[] = {0x3f, 0xc1,
                                     0x54, 0xc3, /* CRC */
                                     1,    4 + 16,
                                     0x40, 0x02,
                                     0x00, 0x00,
                                     2,    0x00,
                                     204,  1,
                                     2,    3,
                                     4,    0x01,
                                     0xa3, 0x18,
                                     0x5c, 0x50,
                                     0x00, /* first seen, then the others */
                                     0,    0,
                                     0,    1,
                                     0,    0,
                                     0,    2,
                                     0,    0,
                                     0,    3,
                                     0xff, 0xff,
                                     0xff, 0xff,
                                     0xff, 0xff,
                                     0xff, 0xfe, /* no doubt */
                                     1,    FINGERPRINT_JSON,
                                     1,    2,
                                     3,    0,
                                     0,    0,
                                     0,    0,
                                     0,    0,
                                     0,    0,
                                     0,    0,
                                     0,    0,
                                     1,    4,
                                     3,    1,
                                     2,    5,
                                     6,    7, /* counters */
                                     0,    0,
                                     0,    0,
                                     0,    41, /* origin */
                                     0x01, 0x02,
                                     0x03, 0x04,
                                     0x05, 0x06,
                                     0x07, 0x08,
                                     0x09, 0x0a,
                                     0x0b, 0x0c,
                                     0x0d, 0x0e, /* position */
                                     0,    3,    /* namespace */
                                     0xab, 0xab,
                                     0xab, 0xab,
                                     0xab, 0xab,
                                     0xab, 0xab,
                                     0xab, 0xab,
                                     0xab, 0xab,
                                     0xab, 0xab,
                                     0xab, 0xab, /* identity */
                                     4,    5,
                                     'a',  'c',
                                     'c',  't',
                                     'e',  'v',
                                     't',  '_',
                                     '1'};
    struct record_row row = example();
    uint8_t bytes[RECORD_CODEC_MAX];

    row.record.state = RECORD_SUCCEEDED;
    row.record.flags = RECORD_LEFT;
    row.record.status = 204;
    row.record.due_ms = RECORD_NEVER;
    row.record.doubt_since_ms = 0;
    row.record.order_key = 0;
    row.position =
        (struct store_position){0x0102, 0x03040506, 0x0708090a0b0c0d0e};
    cr_assert_eq(record_codec_encode(&row, 42, bytes), sizeof wanted);
    cr_assert_arr_eq(bytes, wanted, sizeof wanted);
    expect_same(&row, 42);
}

Test(record_codec, gives_back_every_position)
{
    static const struct store_position positions[] = {
        {0, 0, 0},
        {1, 0, 0},
        {UINT16_MAX, INT32_MAX, INT64_MAX},
    };
    struct record_row row = example();
    uint8_t bytes[RECORD_CODEC_MAX];
    size_t without = record_codec_encode(&row, 42, bytes);

    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        row = example();
        row.position = positions[i];
        expect_same(&row, 42);
        expect_same(&row, 41);
        cr_assert_eq(record_codec_encode(&row, 42, bytes),
                     without + (i == 0 ? 0 : 14));
        row.record.order_key = 0;
        row.record.flags = 0;
        row.record.tries = 256;
        row.record.attempt = 256;
        row.record.first_seen_ms = 1;
        expect_same(&row, 42);
    }
}

Test(record_codec, a_position_has_one_form)
{
    enum { POSITION_AT = 4 + 13 + 6 + 20 + 18 + 8 + 8 + 6 };
    struct record_row row = example();
    uint8_t bytes[RECORD_CODEC_MAX];
    size_t len;

    row.position = (struct store_position){0x0102, 3, 4};
    len = record_codec_encode(&row, 42, bytes);
    cr_assert(still_decodes(bytes, len));
    cr_assert_eq(bytes_get_be16(bytes + POSITION_AT), 0x0102);
    bytes[POSITION_AT + 2] = 0x80;
    cr_assert_not(still_decodes(bytes, len), "a partition below 0");
    bytes[POSITION_AT + 2] = 0;
    bytes[POSITION_AT + 6] = 0x80;
    cr_assert_not(still_decodes(bytes, len), "an offset below 0");
    bytes[POSITION_AT + 6] = 0;
    cr_assert(still_decodes(bytes, len));
    memset(bytes + POSITION_AT, 0, 2);
    cr_assert_not(still_decodes(bytes, len), "of no stream");
}

static void expect_refused(const struct record_row *row)
{
    struct record_row back;
    struct identity identity;
    uint8_t bytes[RECORD_CODEC_MAX];
    size_t len = record_codec_encode(row, 42, bytes);
    struct slice whole = {(char *)bytes, len};

    for (size_t bit = 0; bit < len * 8; bit++) {
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1U << bit % 8);
        cr_assert_not(record_codec_decode(whole, 42, &back), "bit %zu", bit);
        cr_assert_not(record_codec_identity(whole, 42, &identity));
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1U << bit % 8);
    }
    for (size_t cut = 0; cut < len; cut++) {
        struct slice part = {(char *)bytes, cut};

        cr_assert_not(record_codec_decode(part, 42, &back));
        cr_assert_not(record_codec_identity(part, 42, &identity));
    }
    cr_assert_not(record_codec_decode(whole, 43, &back));
    cr_assert_not(record_codec_identity(whole, 43, &identity));
    cr_assert(record_codec_decode(whole, 42, &back));
}

Test(record_codec, refuses_every_changed_bit_cut_and_other_key)
{
    struct record_row row = example();

    expect_refused(&row);
    row.position = (struct store_position){1, 2, 3};
    expect_refused(&row);
}
