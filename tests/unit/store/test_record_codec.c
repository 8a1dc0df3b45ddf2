/* SPDX-License-Identifier: MIT */
#include "store/record_codec.h"

#include <criterion/criterion.h>
#include <string.h>

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
    struct record_row back;

    cr_assert(
        record_codec_decode((struct slice){(char *)bytes, len}, seq, &back));
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
    cr_assert_leq(record_codec_encode(&row, 41, bytes), 130);
}

Test(record_codec, refuses_every_changed_bit_cut_and_other_key)
{
    struct record_row row = example(), back;
    uint8_t bytes[RECORD_CODEC_MAX];
    size_t len = record_codec_encode(&row, 42, bytes);
    struct slice whole = {(char *)bytes, len};

    for (size_t bit = 0; bit < len * 8; bit++) {
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1U << bit % 8);
        cr_assert_not(record_codec_decode(whole, 42, &back), "bit %zu", bit);
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1U << bit % 8);
    }
    for (size_t cut = 0; cut < len; cut++) {
        cr_assert_not(
            record_codec_decode((struct slice){(char *)bytes, cut}, 42, &back));
    }
    cr_assert_not(record_codec_decode(whole, 43, &back));
    cr_assert(record_codec_decode(whole, 42, &back));
}
