/* SPDX-License-Identifier: MIT */
/*
 * Low-waters of partitions, and dead letters that are to be told: rows of the
 * meta table, whose page every commit writes anyhow.
 */
#include "store/store_partition.h"

#include <string.h>

#include "base/check.h"

enum { TOPIC_ID_SIZE = 16 };

/* --- low-waters ----------------------------------------------------------- */

static struct store_key low_water_key(uint16_t stream, int32_t partition)
{
    struct store_key key = {.bytes = {'k'}, .len = STORE_LOW_WATER_KEY_SIZE};

    CHECK(partition >= 0);
    bytes_put_be16(key.bytes + 1, stream);
    bytes_put_be32(key.bytes + 3, (uint32_t)partition);
    return key;
}

bool store_low_water_decode(struct slice payload, struct store_low_water *out)
{
    struct reader row = {payload, false};
    uint64_t offset = reader_be64(&row);
    struct slice topic_id;

    out->incarnation = reader_be32(&row);
    topic_id = reader_take(&row, TOPIC_ID_SIZE);
    if (row.bad || row.rest.len != 0 || offset > INT64_MAX) {
        return false;
    }
    out->offset = (int64_t)offset;
    memcpy(out->topic_id, topic_id.data, TOPIC_ID_SIZE);
    return true;
}

enum store_found store_get_low_water(struct store *store, uint16_t stream,
                                     int32_t partition,
                                     struct store_low_water *out,
                                     struct err *err)
{
    struct store_key key = low_water_key(stream, partition);
    struct slice payload;
    enum store_found found;

    CHECK(store->txn != NULL);
    CHECK(store_stream_name(store, stream) != NULL);
    found = store_db_get_sealed(store->txn, store->db.meta, key_slice(&key),
                                &payload, err);
    if (found == STORE_FOUND && !store_low_water_decode(payload, out)) {
        (void)err_set(err, ERR_DATA, "it makes no sense");
        found = STORE_FAILED;
    }
    if (found == STORE_FAILED) {
        (void)err_wrap(err, "the low-water of %s/%d",
                       store_stream_name(store, stream), partition);
    }
    return found;
}

bool store_put_low_water(struct store *store, uint16_t stream,
                         int32_t partition,
                         const struct store_low_water *low_water,
                         struct err *err)
{
    struct store_key key = low_water_key(stream, partition);
    struct buf row = BUF_INIT;
    bool ok;

    CHECK(store->txn != NULL && !store->options.read_only);
    CHECK(store_stream_name(store, stream) != NULL);
    CHECK(low_water->offset >= 0);
    buf_add_be64(&row, (uint64_t)low_water->offset);
    buf_add_be32(&row, low_water->incarnation);
    buf_add(&row, low_water->topic_id, TOPIC_ID_SIZE);
    ok = store_db_put_sealed(store, store->db.meta, key_slice(&key),
                             buf_slice(&row), err);
    buf_free(&row);
    return ok;
}

/* --- the outbox ----------------------------------------------------------- */

/* The letter, the route, the origin. */
enum { OUTBOX_ROUTE_SIZE = 1 + 2, OUTBOX_KEY_SIZE = OUTBOX_ROUTE_SIZE + 8 };

static struct store_key outbox_key(uint16_t route, uint64_t origin)
{
    struct store_key key = {.bytes = {'o'}, .len = OUTBOX_KEY_SIZE};

    bytes_put_be16(key.bytes + 1, route);
    bytes_put_be64(key.bytes + 3, origin);
    return key;
}

bool store_outbox_decode(struct slice key, struct slice value,
                         struct store_outbox_row *out)
{
    struct slice payload;

    if (key.len != OUTBOX_KEY_SIZE || !store_db_unseal(key, value, &payload) ||
        payload.len != sizeof out->identity.hash) {
        return false;
    }
    out->route = bytes_get_be16(key.data + 1);
    out->origin = bytes_get_be64(key.data + OUTBOX_ROUTE_SIZE);
    memcpy(out->identity.hash, payload.data, payload.len);
    return true;
}

bool store_outbox_add(struct store *store, const struct store_entry *entry,
                      struct err *err)
{
    struct store_key key = outbox_key(entry->record.route, entry->origin);

    CHECK(store->txn != NULL && !store->options.read_only);
    CHECK(entry->origin != 0);
    return store_db_put_sealed(store, store->db.meta, key_slice(&key),
                               (struct slice){
                                   (const char *)entry->identity.hash,
                                   sizeof entry->identity.hash,
                               },
                               err);
}

enum store_found store_outbox_next(struct store *store, uint16_t route,
                                   uint64_t *origin, struct identity *identity,
                                   struct err *err)
{
    struct store_key from = outbox_key(route, *origin + 1);
    struct slice key = key_slice(&from), value;
    struct store_outbox_row row;
    enum store_found found;

    CHECK(store->txn != NULL);
    CHECK(*origin < UINT64_MAX);
    found = store_db_seek(store->txn, store->db.meta, &key, &value, err);
    if (found != STORE_FOUND) {
        return found;
    }
    if (key.len < OUTBOX_ROUTE_SIZE ||
        memcmp(key.data, from.bytes, OUTBOX_ROUTE_SIZE) != 0) {
        return STORE_ABSENT;
    }
    if (!store_outbox_decode(key, value, &row)) {
        (void)err_set(err, ERR_DATA, "a damaged entry in the outbox");
        return STORE_FAILED;
    }
    *origin = row.origin;
    *identity = row.identity;
    return STORE_FOUND;
}

bool store_outbox_remove(struct store *store, uint16_t route, uint64_t origin,
                         struct err *err)
{
    struct store_key key = outbox_key(route, origin);

    CHECK(store->txn != NULL && !store->options.read_only);
    return store_db_delete(store, store->db.meta, key_slice(&key), err) !=
           STORE_FAILED;
}
