/* SPDX-License-Identifier: MIT */
#include "store_direct.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "store_rig.h"

/* As docs/format.md has them, with an id of 30 bytes. */
enum { RECORD_SIZE = 119, DUE_SIZE = 4, STATE_SIZE = 80, ENVELOPE_SIZE = 330 };
enum { PRELOAD_BATCH = 10000, PRELOAD_ROUND = 1 << 20 };

struct direct {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi meta, rec, idx, due, pay;
    uint64_t next_seq;
    uint8_t key[HASH_KEY_SIZE];
};

static void must(int rc)
{
    if (rc != 0) {
        (void)fprintf(stderr, "bench_store: direct: %s\n", mdb_strerror(rc));
        exit(1);
    }
}

static void begin(struct direct *direct)
{
    must(mdb_txn_begin(direct->env, NULL, 0, &direct->txn));
}

static void put(struct direct *direct, MDB_dbi dbi, struct slice key,
                struct slice value, unsigned flags)
{
    MDB_val k = {key.len, (void *)(uintptr_t)key.data};
    MDB_val v = {value.len, (void *)(uintptr_t)value.data};

    must(mdb_put(direct->txn, dbi, &k, &v, flags));
}

static void commit(struct direct *direct)
{
    char state[STATE_SIZE] = {0};

    bytes_put_be64(state, direct->next_seq);
    put(direct, direct->meta, SLICE("S"), (struct slice){state, sizeof state},
        0);
    must(mdb_txn_commit(direct->txn));
}

struct direct *direct_open(const char *path, bool no_sync)
{
    struct direct *direct = mem_new(1, sizeof *direct);

    CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    must(mdb_env_create(&direct->env));
    must(mdb_env_set_mapsize(direct->env, (size_t)128 << 30));
    must(mdb_env_set_maxdbs(direct->env, 8));
    must(mdb_env_open(direct->env, path, no_sync ? MDB_NOSYNC : 0, 0600));
    must(mdb_env_sync(direct->env, 1));
    begin(direct);
    must(mdb_dbi_open(direct->txn, "meta", MDB_CREATE, &direct->meta));
    must(mdb_dbi_open(direct->txn, "rec", MDB_CREATE, &direct->rec));
    must(mdb_dbi_open(direct->txn, "idx", MDB_CREATE, &direct->idx));
    must(mdb_dbi_open(direct->txn, "due", MDB_CREATE, &direct->due));
    must(mdb_dbi_open(direct->txn, "pay", MDB_CREATE, &direct->pay));
    must(mdb_txn_commit(direct->txn));
    direct->next_seq = direct_count(direct) + 1;
    return direct;
}

void direct_close(struct direct *direct)
{
    mdb_env_close(direct->env);
    free(direct);
}

uint64_t direct_count(struct direct *direct)
{
    MDB_stat stat;

    must(mdb_txn_begin(direct->env, NULL, MDB_RDONLY, &direct->txn));
    must(mdb_stat(direct->txn, direct->idx, &stat));
    mdb_txn_abort(direct->txn);
    return stat.ms_entries;
}

static struct slice key_of_seq(uint64_t seq, uint8_t key[8])
{
    bytes_put_be64(key, seq);
    return (struct slice){(const char *)key, 8};
}

static struct slice key_of_due(uint64_t seq, uint8_t key[19])
{
    bytes_put_be16(key, 0);
    key[2] = 0;
    bytes_put_be64(key + 3, seq / 1000); /* as good as a time */
    bytes_put_be64(key + 11, seq);
    return (struct slice){(const char *)key, 19};
}

static void put_record(struct direct *direct, uint64_t seq, unsigned flags)
{
    static const char record[RECORD_SIZE] = {0};
    uint8_t key[8];

    put(direct, direct->rec, key_of_seq(seq, key),
        (struct slice){record, sizeof record}, flags);
}

struct hashed_id {
    uint8_t hash[HASH128_SIZE];
    uint64_t seq;
};

static struct hashed_id hash_id(const struct direct *direct, uint64_t seq)
{
    struct hashed_id id = {.seq = seq};
    char text[RIG_ID_SIZE];
    const struct slice part = rig_id(seq - 1, text);

    hash_keyed128(direct->key, &part, 1, id.hash);
    return id;
}

static void put_id(struct direct *direct, struct hashed_id *id)
{
    char value[10] = {0};
    MDB_val key = {sizeof id->hash, id->hash}, found;

    CHECK(mdb_get(direct->txn, direct->idx, &key, &found) == MDB_NOTFOUND);
    bytes_put_be64(value, id->seq);
    put(direct, direct->idx,
        (struct slice){(const char *)id->hash, sizeof id->hash},
        (struct slice){value, sizeof value}, 0);
}

static void accept_one(struct direct *direct)
{
    static const char zeroes[ENVELOPE_SIZE] = {0};
    uint64_t seq = direct->next_seq++;
    struct hashed_id id = hash_id(direct, seq);
    uint8_t key[8], due[19];

    put_id(direct, &id);
    put_record(direct, seq, MDB_APPEND);
    put(direct, direct->due, key_of_due(seq, due),
        (struct slice){zeroes, DUE_SIZE}, 0);
    put(direct, direct->pay, key_of_seq(seq, key),
        (struct slice){zeroes, ENVELOPE_SIZE}, MDB_APPEND);
}

static void settle_one(struct direct *direct, uint64_t seq)
{
    uint8_t due[19];
    struct slice text = key_of_due(seq, due);
    MDB_val key = {text.len, (void *)(uintptr_t)text.data};

    put_record(direct, seq, 0);
    must(mdb_del(direct->txn, direct->due, &key, NULL));
}

void direct_run(struct direct *direct, uint64_t n, size_t batch)
{
    uint64_t settled = direct->next_seq, end = settled + n;

    while (settled < end) {
        uint64_t accepted = direct->next_seq;

        begin(direct);
        while (settled < accepted) {
            settle_one(direct, settled++);
        }
        for (size_t i = 0; i < batch && direct->next_seq < end; i++) {
            accept_one(direct);
        }
        commit(direct);
    }
}

static int compare_hashes(const void *a, const void *b)
{
    return memcmp(((const struct hashed_id *)a)->hash,
                  ((const struct hashed_id *)b)->hash, HASH128_SIZE);
}

/* The ids of a round spread over the whole tree, as they would one by one,
 * so that its pages are as full; sorted they dirty each page once. */
static void preload_round(struct direct *direct, struct hashed_id *ids,
                          uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        ids[i] = hash_id(direct, direct->next_seq + i);
    }
    qsort(ids, n, sizeof *ids, compare_hashes);
    for (uint64_t at = 0; at < n; at += PRELOAD_BATCH) {
        begin(direct);
        for (uint64_t i = at; i < n && i < at + PRELOAD_BATCH; i++) {
            put_id(direct, &ids[i]);
            put_record(direct, direct->next_seq++, MDB_APPEND);
        }
        commit(direct);
    }
}

void direct_preload(const char *path, uint64_t ids)
{
    struct direct *direct = direct_open(path, true);
    struct hashed_id *round = mem_new(PRELOAD_ROUND, sizeof *round);

    while (direct->next_seq <= ids) {
        uint64_t left = ids - direct->next_seq + 1;

        preload_round(direct, round,
                      left < PRELOAD_ROUND ? left : PRELOAD_ROUND);
    }
    must(mdb_env_sync(direct->env, 1));
    free(round);
    direct_close(direct);
}
