/* SPDX-License-Identifier: MIT */
#include "store/store_check.h"
#include "store/store_partition.h"

/* Names are read by number until one is missing: what stands behind a gap is
 * not known. */
static void check_name(struct check *check, struct slice key)
{
    const struct store *store = check->store;
    uint16_t first = 0, end = store->n_routes;

    if (key.data[0] == 'n') {
        end = store->n_namespaces;
    } else if (key.data[0] == 't') {
        first = 1;
        end = store->n_streams;
    }
    if (key.len != 3 || bytes_get_be16(key.data + 1) < first ||
        bytes_get_be16(key.data + 1) >= end) {
        store_check_bad(check, "meta: a name '%c' is out of sequence",
                        key.data[0]);
    }
}

static void check_low_water(struct check *check, struct slice key,
                            struct slice payload)
{
    struct store_low_water low_water;

    if (key.len != STORE_LOW_WATER_KEY_SIZE ||
        bytes_get_be32(key.data + 3) > INT32_MAX ||
        !store_low_water_decode(payload, &low_water)) {
        store_check_bad(check, "a damaged low-water");
    } else if (store_stream_name(check->store, bytes_get_be16(key.data + 1)) ==
               NULL) {
        store_check_bad(check, "a low-water of an unknown stream");
    }
}

/* The event may be dead no more, be forgotten, or live again under a new
 * number: its row goes when it is looked at, which nobody may do for a route
 * that tells nobody any more. */
static void check_outbox(struct check *check, struct slice key,
                         struct slice value)
{
    struct store *store = check->store;
    struct store_outbox_row letter;
    struct record_row row;
    uint64_t seq;

    if (!store_outbox_decode(key, value, &letter) ||
        letter.route >= store->n_routes || letter.origin == 0 ||
        letter.origin >= store->state.next_seq) {
        store_check_bad(check, "a damaged entry in the outbox");
        return;
    }
    if (store_ids_find(store, &letter.identity, &seq, NULL) == STORE_FOUND &&
        store_check_load(check, seq, &row) && row.origin < letter.origin) {
        store_check_bad(check, "outbox and record %llu disagree",
                        (unsigned long long)seq);
    }
}

void store_check_meta(struct check *check, struct slice key, struct slice value)
{
    struct slice payload;

    if (!store_db_unseal(key, value, &payload)) {
        store_check_bad(check, "meta: a damaged row");
        return;
    }
    switch (key.data[0]) {
    case 'r':
    case 'n':
    case 't':
        check_name(check, key);
        return;
    case 'k':
        check_low_water(check, key, payload);
        return;
    case 'o':
        check_outbox(check, key, value);
        return;
    default: /* what it says was read when the store was opened */
        return;
    }
}

void store_check_format(struct check *check)
{
    const struct store *store = check->store;

    if (store->n_streams > 1 && store->format < STORE_FORMAT) {
        store_check_bad(check, "it knows streams, and says format %u",
                        store->format);
    }
}
