/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"
#include "store/record_codec.h"

struct identity store_identity(const struct store *store, uint16_t namespace,
                               struct slice tenant, struct slice id)
{
    struct identity identity;
    uint8_t number[2];
    struct slice parts[3];

    bytes_put_be16(number, namespace);
    parts[0] = (struct slice){(const char *)number, sizeof number};
    parts[1] = tenant;
    parts[2] = id;
    hash_keyed128(store->hash_key, parts, 3, identity.hash);
    return identity;
}

bool store_ids_decode(struct slice key, struct slice value, uint64_t *seq)
{
    struct slice payload;

    if (!store_db_unseal(key, value, &payload) || payload.len != 6) {
        return false;
    }
    *seq = (uint64_t)bytes_get_be16(payload.data) << 32 |
           bytes_get_be32(payload.data + 2);
    return true;
}

static enum store_found find_sealed(struct store *store, uint32_t number,
                                    const struct identity *identity,
                                    uint64_t *seq, struct err *err)
{
    struct slice key = {(const char *)identity->hash, sizeof identity->hash};
    struct slice value;
    enum store_found found;

    if (!store_bloom_may_have(store->memory[slot_of(number)].bloom, identity)) {
        return STORE_ABSENT;
    }
    found = store_db_get(store->txn, store->db.idx[slot_of(number)], key,
                         &value, err);
    if (found == STORE_FOUND && !store_ids_decode(key, value, seq)) {
        (void)err_set(err, ERR_DATA,
                      "a damaged id in the index of generation %u", number);
        return STORE_FAILED;
    }
    return found;
}

/* The newest generation that knows it wins: older ones may have an entry
 * from before the record was written anew. */
enum store_found store_ids_find(struct store *store,
                                const struct identity *identity, uint64_t *seq,
                                struct err *err)
{
    enum store_found found = STORE_ABSENT;

    for (uint32_t n = store->state.last_gen;
         n >= store->state.first_gen && found == STORE_ABSENT; n--) {
        const struct id_table *table = store->memory[slot_of(n)].table;

        if (table == NULL) {
            found = find_sealed(store, n, identity, seq, err);
            continue;
        }
        *seq = store_table_get(table, identity);
        found = *seq != 0 ? STORE_FOUND : STORE_ABSENT;
    }
    return found;
}

void store_ids_set(struct store *store, const struct identity *identity,
                   uint64_t seq)
{
    uint32_t slot = slot_of(store->state.last_gen);
    uint64_t before = store_table_set(store->memory[slot].table, identity, seq);

    CHECK(seq != 0 && before != seq);
    CHECK(store_gen_of(store, seq) == store->state.last_gen);
    store_journal_id(store, slot, identity, before);
    store->journal.new_ids++;
}

/* --- filling memory at start -------------------------------------------- */

static bool fill(struct store *store, uint32_t number, MDB_cursor *cursor,
                 struct err *err)
{
    struct id_table *table = store->memory[slot_of(number)].table;
    struct slice key = {NULL, 0}, value;
    struct record_row row;
    enum store_found found =
        store_db_step(cursor, MDB_FIRST, &key, &value, err);

    while (found == STORE_FOUND) {
        uint64_t seq = key.len == 8 ? bytes_get_be64(key.data) : 0;

        if (seq == 0 || seq >= store->state.next_seq ||
            !record_codec_decode(value, seq, &row)) {
            return err_set(err, ERR_DATA, "record %llu is damaged",
                           (unsigned long long)seq);
        }
        if (store_table_set(table, &row.identity, seq) != 0) {
            return err_set(err, ERR_DATA, "record %llu stands there twice",
                           (unsigned long long)seq);
        }
        found = store_db_step(cursor, MDB_NEXT, &key, &value, err);
    }
    return found == STORE_ABSENT;
}

bool store_ids_fill(struct store *store, uint32_t number, struct err *err)
{
    MDB_dbi dbi = store->db.rec[slot_of(number)];
    MDB_cursor *cursor;
    MDB_stat stat;
    bool ok;
    int rc = mdb_stat(store->txn, dbi, &stat);

    if (rc == 0) {
        rc = mdb_cursor_open(store->txn, dbi, &cursor);
    }
    if (rc != 0) {
        return store_db_fail(store, rc, "read records", err);
    }
    store_table_reserve(store->memory[slot_of(number)].table, stat.ms_entries);
    ok = fill(store, number, cursor, err);
    mdb_cursor_close(cursor);
    return ok || err_wrap(err, "generation %u", number);
}

static bool load_chunks(struct store *store, uint32_t number)
{
    struct bloom *bloom = store->memory[slot_of(number)].bloom;
    size_t size = (size_t)bloom->n_blocks * BLOOM_BLOCK_SIZE, used = 0;
    struct slice chunk;

    for (uint32_t i = 0; used < size; i++) {
        struct store_key key = key_u32_u32(number, i);

        if (store_db_get_sealed(store->txn, store->db.bloom, key_slice(&key),
                                &chunk, NULL) != STORE_FOUND ||
            chunk.len == 0 || chunk.len > size - used) {
            return false;
        }
        memcpy(bloom->blocks + used, chunk.data, chunk.len);
        used += chunk.len;
    }
    return true;
}

static bool rebuild(struct store *store, uint32_t number, MDB_cursor *cursor,
                    struct err *err)
{
    struct bloom *bloom = store->memory[slot_of(number)].bloom;
    struct slice key = {NULL, 0}, value;
    struct identity identity;
    enum store_found found =
        store_db_step(cursor, MDB_FIRST, &key, &value, err);

    while (found == STORE_FOUND) {
        uint64_t seq;

        if (key.len != sizeof identity.hash ||
            !store_ids_decode(key, value, &seq)) {
            return err_set(err, ERR_DATA,
                           "a damaged id in the index of generation %u",
                           number);
        }
        memcpy(identity.hash, key.data, key.len);
        store_bloom_add(bloom, &identity);
        found = store_db_step(cursor, MDB_NEXT, &key, &value, err);
    }
    return found == STORE_ABSENT;
}

/* A damaged filter must not read as "not seen": it is made anew. */
bool store_ids_load_bloom(struct store *store, uint32_t number, struct err *err)
{
    struct bloom *bloom = store->memory[slot_of(number)].bloom;
    struct log_line line;
    MDB_cursor *cursor;
    bool ok;
    int rc;

    if (load_chunks(store, number)) {
        return true;
    }
    if (log_begin(&line, LOG_WARN, "store",
                  "filter of a generation is damaged, rebuilt")) {
        log_int(&line, "generation", number);
        log_end(&line);
    }
    memset(bloom->blocks, 0, (size_t)bloom->n_blocks * BLOOM_BLOCK_SIZE);
    rc = mdb_cursor_open(store->txn, store->db.idx[slot_of(number)], &cursor);
    if (rc != 0) {
        return store_db_fail(store, rc, "read ids", err);
    }
    ok = rebuild(store, number, cursor, err);
    mdb_cursor_close(cursor);
    return ok;
}
