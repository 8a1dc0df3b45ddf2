/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <string.h>

#include "base/check.h"

enum { DUE_KEY_SIZE = 18 };

/* A signed time so that it sorts as bytes. */
#define SIGN_BIT (UINT64_C(1) << 63)

struct store_key store_index_key(uint16_t route, int64_t due_ms, uint64_t seq)
{
    struct store_key key = {.len = DUE_KEY_SIZE};

    bytes_put_be16(key.bytes, route);
    bytes_put_be64(key.bytes + 2, (uint64_t)due_ms ^ SIGN_BIT);
    bytes_put_be64(key.bytes + 10, seq);
    return key;
}

int64_t store_index_due_of(struct slice key)
{
    return (int64_t)(bytes_get_be64(key.data + 2) ^ SIGN_BIT);
}

uint64_t store_index_seq_of(struct slice key)
{
    return bytes_get_be64(key.data + 10);
}

static bool is_due_of(struct slice key, uint16_t route)
{
    return key.len == DUE_KEY_SIZE && bytes_get_be16(key.data) == route;
}

/* --- due ---------------------------------------------------------------- */

static bool remove_due(struct store *store, const struct record *record,
                       uint64_t seq, struct err *err)
{
    struct route_values *route = store_journal_route(store, record->route);
    struct store_key key = store_index_key(record->route, record->due_ms, seq);

    CHECK(!record_is_settled(record));
    if (record->due_ms <= route->first_due_ms) {
        route->first_due_stale = true;
    }
    return store_db_remove(store, store->db.due, key_slice(&key),
                           "the due index", err);
}

static bool add_due(struct store *store, const struct record *record,
                    uint64_t seq, struct err *err)
{
    struct route_values *route = store_journal_route(store, record->route);
    struct store_key key = store_index_key(record->route, record->due_ms, seq);
    char state = (char)record->state;

    CHECK(!record_is_settled(record));
    if (record->due_ms < route->first_due_ms) {
        route->first_due_ms = record->due_ms;
    }
    return store_db_put_sealed(store, store->db.due, key_slice(&key),
                               (struct slice){&state, 1}, err);
}

static bool update_due(struct store *store, const struct store_entry *entry,
                       uint64_t old_seq, struct err *err)
{
    const struct record *old = &entry->stored, *new = &entry->record;
    bool had = old_seq != 0 && !record_is_settled(old);
    bool has = !record_is_settled(new);

    if (had && has && old->route == new->route &&old_seq == entry->seq &&
        old->due_ms == new->due_ms && old->state == new->state) {
        return true;
    }
    return (!had || remove_due(store, old, old_seq, err)) &&
           (!has || add_due(store, new, entry->seq, err));
}

bool store_index_refresh_due(struct store *store, uint16_t route,
                             struct err *err)
{
    struct route_values *values = &store->routes[route].now;
    struct store_key from = store_index_key(route, INT64_MIN, 0);
    struct slice key = key_slice(&from), value;
    enum store_found found =
        store_db_seek(store->txn, store->db.due, &key, &value, err);

    if (found == STORE_FAILED) {
        return err_wrap(err, "due index");
    }
    values->first_due_ms = found == STORE_FOUND && is_due_of(key, route)
                               ? store_index_due_of(key)
                               : RECORD_NEVER;
    values->first_due_stale = false;
    return true;
}

/* Inside a transaction that removed the first one it is looked up again;
 * one that fails to read says so at the next call that can. */
int64_t store_first_due(struct store *store, uint16_t route)
{
    CHECK(route < store->n_routes);
    if (store->routes[route].now.first_due_stale &&
        !store_index_refresh_due(store, route, NULL)) {
        return INT64_MIN;
    }
    return store->routes[route].now.first_due_ms;
}

static enum store_found load_due(struct store *store, struct slice key,
                                 struct store_entry *entry, struct err *err)
{
    int64_t due_ms = store_index_due_of(key);
    uint16_t route = bytes_get_be16(key.data);

    if (!store_record_must_load(store, store_index_seq_of(key), entry, err)) {
        return STORE_FAILED;
    }
    if (record_is_settled(&entry->record) || entry->record.due_ms != due_ms ||
        entry->record.route != route) {
        (void)err_set(err, ERR_DATA, "due index and record %llu disagree",
                      (unsigned long long)entry->seq);
        return STORE_FAILED;
    }
    return STORE_FOUND;
}

enum store_found store_next_due(struct store *store, uint16_t route,
                                int64_t until_ms, int64_t *due_ms,
                                uint64_t *seq, struct store_entry *entry,
                                struct err *err)
{
    struct store_key from = store_index_key(route, *due_ms, *seq + 1);
    struct slice key = key_slice(&from), value;
    enum store_found found;

    CHECK(store->txn != NULL);
    CHECK(*seq < UINT64_MAX);
    found = store_db_seek(store->txn, store->db.due, &key, &value, err);
    if (found != STORE_FOUND) {
        return found;
    }
    if (!is_due_of(key, route) || store_index_due_of(key) > until_ms) {
        return STORE_ABSENT;
    }
    *due_ms = store_index_due_of(key);
    *seq = store_index_seq_of(key);
    return load_due(store, key, entry, err);
}

/* --- order -------------------------------------------------------------- */

static bool update_order(struct store *store, const struct store_entry *entry,
                         uint64_t old_seq, struct err *err)
{
    const struct record *old = &entry->stored, *new = &entry->record;
    bool had = old_seq != 0 && (old->flags & RECORD_ORDERED) != 0;
    bool has = (new->flags &RECORD_ORDERED) != 0;
    bool same_key = had && has && old->order_key == new->order_key;
    struct store_key key = key_u64_u64(old->order_key, entry->origin);
    struct store_key seq = key_u64(entry->seq);

    if (same_key && old_seq == entry->seq) {
        return true;
    }
    if (had && !same_key &&
        !store_db_remove(store, store->db.order, key_slice(&key),
                         "the order index", err)) {
        return false;
    }
    key = key_u64_u64(new->order_key, entry->origin);
    return !has || store_db_put_sealed(store, store->db.order, key_slice(&key),
                                       key_slice(&seq), err);
}

enum store_found store_order_first(struct store *store, uint64_t order_key,
                                   struct store_entry *entry, struct err *err)
{
    struct store_key from = key_u64_u64(order_key, 0);
    struct slice key = key_slice(&from), value, payload;
    enum store_found found;

    CHECK(store->txn != NULL);
    found = store_db_seek(store->txn, store->db.order, &key, &value, err);
    if (found != STORE_FOUND) {
        return found;
    }
    if (key.len != 16 || bytes_get_be64(key.data) != order_key) {
        return STORE_ABSENT;
    }
    if (!store_db_unseal(key, value, &payload) || payload.len != 8) {
        (void)err_set(err, ERR_DATA, "a damaged entry in the order index");
        return STORE_FAILED;
    }
    if (!store_record_must_load(store, bytes_get_be64(payload.data), entry,
                                err)) {
        return STORE_FAILED;
    }
    if ((entry->record.flags & RECORD_ORDERED) == 0 ||
        entry->record.order_key != order_key) {
        (void)err_set(err, ERR_DATA, "order index and record %llu disagree",
                      (unsigned long long)entry->seq);
        return STORE_FAILED;
    }
    return STORE_FOUND;
}

bool store_index_update(struct store *store, const struct store_entry *entry,
                        uint64_t old_seq, struct err *err)
{
    CHECK(old_seq <= entry->seq);
    CHECK(old_seq == 0 || entry->stored.state != RECORD_NONE);
    return update_due(store, entry, old_seq, err) &&
           update_order(store, entry, old_seq, err);
}
