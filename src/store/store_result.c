/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include "base/check.h"
#include "core/envelope.h"

static MDB_dbi table_of(const struct store *store, uint64_t seq)
{
    return store->db.rsp[slot_of(store_gen_of(store, seq))];
}

bool store_result_erase(struct store *store, uint64_t seq, struct err *err)
{
    struct store_key key = key_u64(seq);

    return store_db_delete(store, table_of(store, seq), key_slice(&key), err) !=
           STORE_FAILED;
}

/* A result that is nothing but its status is told from the record. */
static bool is_told_by(const struct record *record, struct slice flat)
{
    struct result result;

    return result_open(flat, &result) && !result.body_omitted &&
           result.headers.count == 0 && result.body.len == 0 &&
           result.status != 0 && result.status == record->status;
}

bool store_put_result(struct store *store, const struct store_entry *entry,
                      struct slice flat, struct err *err)
{
    struct store_key key = key_u64(entry->seq);

    CHECK(store->txn != NULL && entry->seq != 0);
    if (is_told_by(&entry->record, flat)) {
        return store_result_erase(store, entry->seq, err);
    }
    return store_db_put_sealed(store, table_of(store, entry->seq),
                               key_slice(&key), flat, err) ||
           err_wrap(err, "result");
}

static bool has_own_result(const struct record *record)
{
    return record->status != 0 && (record->flags & RECORD_RELEASED) == 0 &&
           (record->state == RECORD_SUCCEEDED ||
            record->state == RECORD_FAILED);
}

enum store_found store_get_result(struct store *store,
                                  const struct store_entry *entry,
                                  struct buf *out, struct err *err)
{
    struct store_key key = key_u64(entry->seq);
    struct slice flat;
    enum store_found found;

    CHECK(store->txn != NULL && entry->seq != 0);
    if (store_record_is_older(
            store, &entry->stored,
            store->routes[entry->stored.route].retention.result_ms)) {
        return STORE_ABSENT;
    }
    found = store_db_get_sealed(store->txn, table_of(store, entry->seq),
                                key_slice(&key), &flat, err);
    if (found == STORE_FOUND) {
        buf_add_slice(out, flat);
        return found;
    }
    if (found == STORE_ABSENT && has_own_result(&entry->stored)) {
        struct result result = {.status = entry->stored.status};

        result_encode(&result, out);
        return STORE_FOUND;
    }
    return found;
}

bool store_result_move(struct store *store, uint64_t from, uint64_t to,
                       struct err *err)
{
    struct store_key old = key_u64(from), new = key_u64(to);
    struct buf copy = BUF_INIT;
    struct slice flat;
    bool ok;

    CHECK(from < to);
    switch (store_db_get_sealed(store->txn, table_of(store, from),
                                key_slice(&old), &flat, err)) {
    case STORE_ABSENT:
        return true;
    case STORE_FAILED:
        return err_wrap(err, "result of record %llu", (unsigned long long)from);
    case STORE_FOUND:
        break;
    }
    buf_add_slice(&copy, flat);
    ok = store_db_put_sealed(store, table_of(store, to), key_slice(&new),
                             buf_slice(&copy), err) &&
         store_db_remove(store, table_of(store, from), key_slice(&old),
                         "the result table", err);
    buf_free(&copy);
    return ok;
}
