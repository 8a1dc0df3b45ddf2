/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mark.h"
#include "store/record_codec.h"
#include "store/store_idx.h"

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

static enum store_found find_sealed(struct store *store, uint32_t number,
                                    const struct identity *identity,
                                    uint64_t *seq, struct err *err)
{
    return store_bloom_may_have(store->memory[slot_of(number)].bloom, identity)
               ? store_idx_find(store, number, identity, seq, err)
               : STORE_ABSENT;
}

static enum store_found find_in(struct store *store, uint32_t number,
                                const struct identity *identity, uint64_t *seq,
                                struct err *err)
{
    const struct id_table *table = store->memory[slot_of(number)].table;

    if (table == NULL) {
        enum store_found found = find_sealed(store, number, identity, seq, err);

        if (found == STORE_FOUND) {
            MARK(found_in_sealed);
        }
        return found;
    }
    *seq = store_table_get(table, identity);
    return *seq != 0 ? STORE_FOUND : STORE_ABSENT;
}

/* A new id is looked for in every filter, each of them a miss of the cache:
 * they overlap. */
static void prefetch_filters(const struct store *store,
                             const struct identity *identity)
{
    for (uint32_t n = store->state.first_gen; n < store->state.last_gen; n++) {
        const struct bloom *bloom = store->memory[slot_of(n)].bloom;

        CHECK(bloom != NULL);
        store_bloom_prefetch(bloom, identity);
    }
}

/* The newest generation that knows it wins: older ones may have an entry
 * from before the record was written anew. */
enum store_found store_ids_find(struct store *store,
                                const struct identity *identity, uint64_t *seq,
                                struct err *err)
{
    uint32_t number = store->state.last_gen;
    enum store_found found = find_in(store, number, identity, seq, err);

    if (found == STORE_ABSENT) {
        prefetch_filters(store, identity);
    }
    while (found == STORE_ABSENT && number > store->state.first_gen) {
        found = find_in(store, --number, identity, seq, err);
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

/* A table is much larger than the processor's caches: the places of a group
 * are asked for together, so that their misses overlap. */
enum { GROUP = 32 };

struct group {
    struct identity identities[GROUP];
    uint64_t seqs[GROUP];
    size_t n;
};

static bool set_group(struct id_table *table, struct group *group,
                      struct err *err)
{
    for (size_t i = 0; i < group->n; i++) {
        if (store_table_set(table, &group->identities[i], group->seqs[i]) !=
            0) {
            return err_set(err, ERR_DATA, "record %llu stands there twice",
                           (unsigned long long)group->seqs[i]);
        }
    }
    group->n = 0;
    return true;
}

static bool add_to_group(struct store *store, struct group *group,
                         struct slice key, struct slice row, struct err *err)
{
    uint64_t seq = key.len == 8 ? bytes_get_be64(key.data) : 0;

    CHECK(group->n < GROUP);
    if (seq == 0 || seq >= store->state.next_seq ||
        !record_codec_identity(row, seq, &group->identities[group->n])) {
        return err_set(err, ERR_DATA, "record %llu is damaged",
                       (unsigned long long)seq);
    }
    group->seqs[group->n++] = seq;
    return true;
}

static bool fill(struct store *store, uint32_t number, MDB_cursor *cursor,
                 struct err *err)
{
    struct id_table *table = store->memory[slot_of(number)].table;
    struct slice key = {NULL, 0}, row;
    struct group group = {.n = 0};
    enum store_found found = store_db_step(cursor, MDB_FIRST, &key, &row, err);

    while (found == STORE_FOUND) {
        if (!add_to_group(store, &group, key, row, err)) {
            return false;
        }
        store_table_prefetch(table, &group.identities[group.n - 1]);
        if (group.n == GROUP && !set_group(table, &group, err)) {
            return false;
        }
        found = store_db_step(cursor, MDB_NEXT, &key, &row, err);
    }
    return found == STORE_ABSENT && set_group(table, &group, err);
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

static void add_block(struct bloom *bloom, const struct idx_block *block)
{
    struct identity identity;
    uint64_t seq;

    for (size_t i = 0; i < block->n; i++) {
        idx_block_get(block, i, &identity, &seq);
        store_bloom_add(bloom, &identity);
    }
}

static bool rebuild(struct store *store, uint32_t number, MDB_cursor *cursor,
                    struct err *err)
{
    struct bloom *bloom = store->memory[slot_of(number)].bloom;
    struct slice key = {NULL, 0}, value;
    struct idx_block block;
    enum store_found found =
        store_db_step(cursor, MDB_FIRST, &key, &value, err);

    while (found == STORE_FOUND) {
        if (!idx_block_open(key, value, &block)) {
            return err_set(err, ERR_DATA,
                           "a damaged row in the index of generation %u",
                           number);
        }
        add_block(bloom, &block);
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
