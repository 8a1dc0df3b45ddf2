/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"

enum { CRC_SIZE = 4 };

static MDB_val val_of(struct slice text)
{
    return (MDB_val){text.len, (void *)(uintptr_t)text.data};
}

static struct slice slice_from_val(const MDB_val *val)
{
    return (struct slice){val->mv_data, val->mv_size};
}

/* A short write on a full disk comes back as EIO: the free space tells it
 * from a bad disk. */
static bool is_disk_full(struct store *store, int rc)
{
    return rc == ENOSPC || rc == EDQUOT ||
           (rc == EIO &&
            store_files_free_bytes(store) < store_files_reserve_bytes(store));
}

static enum err_kind kind_of(int rc)
{
    switch (rc) {
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
    case MDB_NOTFOUND:
        return ERR_DATA;
    default:
        return ERR_IO;
    }
}

bool store_db_fail(struct store *store, int rc, const char *what,
                   struct err *err)
{
    CHECK(rc != 0);
    /* After a full map LMDB refuses the rest of the transaction. */
    if (rc == MDB_BAD_TXN && store->journal.no_room) {
        return err_set(err, ERR_AGAIN, "%s: no room in the store", what);
    }
    if (rc == MDB_MAP_FULL || rc == MDB_TXN_FULL || is_disk_full(store, rc)) {
        store->journal.no_room = true;
        store_space_refused(store);
        return err_set(err, ERR_AGAIN, "%s: %s", what, mdb_strerror(rc));
    }
    return err_set(err, kind_of(rc), "%s: %s", what, mdb_strerror(rc));
}

static enum store_found read_failed(int rc, struct err *err)
{
    (void)err_set(err, kind_of(rc), "read: %s", mdb_strerror(rc));
    return STORE_FAILED;
}

enum store_found store_db_get(MDB_txn *txn, MDB_dbi dbi, struct slice key,
                              struct slice *value, struct err *err)
{
    MDB_val k = val_of(key), v;
    int rc;

    CHECK(txn != NULL);
    rc = mdb_get(txn, dbi, &k, &v);
    if (rc == MDB_NOTFOUND) {
        return STORE_ABSENT;
    }
    if (rc != 0) {
        return read_failed(rc, err);
    }
    *value = slice_from_val(&v);
    return STORE_FOUND;
}

static uint32_t seal(struct slice key, struct slice payload)
{
    return hash_crc32c(hash_crc32c(0, key.data, key.len), payload.data,
                       payload.len);
}

bool store_db_unseal(struct slice key, struct slice value,
                     struct slice *payload)
{
    if (value.len < CRC_SIZE) {
        return false;
    }
    *payload = slice_from(value, CRC_SIZE);
    return bytes_get_be32(value.data) == seal(key, *payload);
}

enum store_found store_db_get_sealed(MDB_txn *txn, MDB_dbi dbi,
                                     struct slice key, struct slice *payload,
                                     struct err *err)
{
    struct slice value;
    enum store_found found = store_db_get(txn, dbi, key, &value, err);

    if (found != STORE_FOUND) {
        return found;
    }
    if (!store_db_unseal(key, value, payload)) {
        (void)err_set(err, ERR_DATA, "a damaged row (CRC)");
        return STORE_FAILED;
    }
    return STORE_FOUND;
}

/* The tables in slots get new rows mostly in the order of their keys:
 * appended, rows fill their pages. They were opened after all others. */
static bool is_appended(const struct store *store, MDB_dbi dbi)
{
    return dbi >= store->db.rec[0];
}

/* Makes room->mv_size bytes of room under the key, which the caller fills at
 * once; a row that most likely comes last is tried there first. */
static int make_room(struct store *store, MDB_dbi dbi, struct slice key,
                     MDB_val *room, bool is_last)
{
    MDB_val k = val_of(key);
    int rc = MDB_KEYEXIST;

    CHECK(store->txn != NULL && !store->options.read_only);
    store->journal.wrote = true;
    if (is_last) {
        rc = mdb_put(store->txn, dbi, &k, room, MDB_RESERVE | MDB_APPEND);
    }
    return rc == MDB_KEYEXIST ? mdb_put(store->txn, dbi, &k, room, MDB_RESERVE)
                              : rc;
}

static bool fill_room(struct store *store, int rc, const MDB_val *room,
                      struct slice value, struct err *err)
{
    if (rc != 0) {
        return store_db_fail(store, rc, "write", err);
    }
    CHECK(room->mv_size == value.len);
    memcpy(room->mv_data, value.data, value.len);
    return true;
}

bool store_db_put(struct store *store, MDB_dbi dbi, struct slice key,
                  struct slice value, struct err *err)
{
    MDB_val room = {value.len, NULL};
    int rc = make_room(store, dbi, key, &room, false);

    return fill_room(store, rc, &room, value, err);
}

bool store_db_append(struct store *store, MDB_dbi dbi, struct slice key,
                     struct slice value, struct err *err)
{
    MDB_val room = {value.len, NULL};
    int rc = make_room(store, dbi, key, &room, true);

    return fill_room(store, rc, &room, value, err);
}

bool store_db_put_sealed(struct store *store, MDB_dbi dbi, struct slice key,
                         struct slice payload, struct err *err)
{
    MDB_val room = {CRC_SIZE + payload.len, NULL};
    int rc = make_room(store, dbi, key, &room, is_appended(store, dbi));

    if (rc != 0) {
        return store_db_fail(store, rc, "write", err);
    }
    bytes_put_be32(room.mv_data, seal(key, payload));
    if (payload.len > 0) {
        memcpy((char *)room.mv_data + CRC_SIZE, payload.data, payload.len);
    }
    return true;
}

enum store_found store_db_delete(struct store *store, MDB_dbi dbi,
                                 struct slice key, struct err *err)
{
    MDB_val k = val_of(key);
    int rc;

    CHECK(store->txn != NULL && !store->options.read_only);
    rc = mdb_del(store->txn, dbi, &k, NULL);
    if (rc == MDB_NOTFOUND) {
        return STORE_ABSENT;
    }
    store->journal.wrote = true;
    if (rc != 0) {
        (void)store_db_fail(store, rc, "delete", err);
        return STORE_FAILED;
    }
    return STORE_FOUND;
}

bool store_db_remove(struct store *store, MDB_dbi dbi, struct slice key,
                     const char *what, struct err *err)
{
    switch (store_db_delete(store, dbi, key, err)) {
    case STORE_FOUND:
        return true;
    case STORE_ABSENT:
        return err_set(err, ERR_DATA, "%s lacks the entry of a record", what);
    case STORE_FAILED:
        return false;
    }
    UNREACHABLE("a value outside of the enum");
}

bool store_db_empty(struct store *store, MDB_dbi dbi, struct err *err)
{
    int rc;

    CHECK(store->txn != NULL && !store->options.read_only);
    store->journal.wrote = true;
    rc = mdb_drop(store->txn, dbi, 0);
    return rc == 0 || store_db_fail(store, rc, "empty a table", err);
}

enum store_found store_db_step(MDB_cursor *cursor, MDB_cursor_op op,
                               struct slice *key, struct slice *value,
                               struct err *err)
{
    MDB_val k = val_of(*key), v = {0, NULL};
    int rc = mdb_cursor_get(cursor, &k, &v, op);

    if (rc == MDB_NOTFOUND) {
        return STORE_ABSENT;
    }
    if (rc != 0) {
        return read_failed(rc, err);
    }
    *key = slice_from_val(&k);
    *value = slice_from_val(&v);
    return STORE_FOUND;
}

enum store_found store_db_seek(MDB_txn *txn, MDB_dbi dbi, struct slice *key,
                               struct slice *value, struct err *err)
{
    MDB_cursor *cursor;
    enum store_found found;
    int rc = mdb_cursor_open(txn, dbi, &cursor);

    if (rc != 0) {
        return read_failed(rc, err);
    }
    found = store_db_step(cursor, MDB_SET_RANGE, key, value, err);
    mdb_cursor_close(cursor);
    return found;
}
