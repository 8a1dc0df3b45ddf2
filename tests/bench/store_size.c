/* SPDX-License-Identifier: MIT */
#include "store_size.h"

#include <inttypes.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { TABLES_MAX = 512, NAME_SIZE = 16, SLOTS = 64 };

static const char *const kinds[] = {"rec",   "idx",   "rsp",   "audit",
                                    "pay",   "bloom", "meta",  "due",
                                    "order", "dlq",   "dlqpay"};
enum { KINDS = sizeof kinds / sizeof kinds[0], REC = 0, IDX = 1 };

struct size {
    MDB_txn *txn;
    uint64_t bytes[KINDS];
    uint64_t rec[SLOTS], idx[SLOTS], records[SLOTS];
    uint64_t all_records;
};

static void must(int rc)
{
    if (rc != 0) {
        (void)fprintf(stderr, "bench_store: size: %s\n", mdb_strerror(rc));
        exit(1);
    }
}

static void add_table(struct size *size, const char *name)
{
    const char *dot = strchr(name, '.');
    const char *kind = dot == NULL ? name : dot + 1;
    size_t slot = strtoul(name, NULL, 10) % SLOTS;
    uint64_t bytes;
    MDB_stat stat;
    MDB_dbi dbi;

    must(mdb_dbi_open(size->txn, name, 0, &dbi));
    must(mdb_stat(size->txn, dbi, &stat));
    bytes =
        (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) *
        (uint64_t)stat.ms_psize;
    for (size_t i = 0; i < KINDS; i++) {
        size->bytes[i] += strcmp(kind, kinds[i]) == 0 ? bytes : 0;
    }
    if (strcmp(kind, kinds[REC]) == 0) {
        size->rec[slot] = bytes;
        size->records[slot] = stat.ms_entries;
        size->all_records += stat.ms_entries;
    } else if (strcmp(kind, kinds[IDX]) == 0) {
        size->idx[slot] = bytes;
    }
}

static void add_all(struct size *size)
{
    char names[TABLES_MAX][NAME_SIZE];
    size_t n = 0;
    MDB_cursor *cursor;
    MDB_val key, value;
    MDB_dbi main;

    must(mdb_dbi_open(size->txn, NULL, 0, &main));
    must(mdb_cursor_open(size->txn, main, &cursor));
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
        CHECK(n < TABLES_MAX && key.mv_size < NAME_SIZE);
        memcpy(names[n], key.mv_data, key.mv_size);
        names[n++][key.mv_size] = '\0';
    }
    mdb_cursor_close(cursor);
    for (size_t i = 0; i < n; i++) {
        add_table(size, names[i]);
    }
}

/* The open generation has no index yet: it is left out. */
static double bytes_per_id(const struct size *size)
{
    uint64_t bytes = 0, ids = 0;

    for (size_t i = 0; i < SLOTS; i++) {
        if (size->idx[i] > 0) {
            bytes += size->rec[i] + size->idx[i];
            ids += size->records[i];
        }
    }
    if (ids == 0) {
        return 0;
    }
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i], "bloom") == 0 || strcmp(kinds[i], "meta") == 0) {
            bytes += size->bytes[i];
        }
    }
    return (double)bytes / (double)ids;
}

void size_print(const char *path, uint64_t ids)
{
    struct size *size = calloc(1, sizeof *size);
    MDB_env *env;

    CHECK(size != NULL);
    must(mdb_env_create(&env));
    must(mdb_env_set_maxdbs(env, TABLES_MAX));
    must(mdb_env_open(env, path, MDB_RDONLY, 0600));
    must(mdb_txn_begin(env, NULL, MDB_RDONLY, &size->txn));
    add_all(size);
    (void)printf("{\"measure\":\"size\",\"ids\":%" PRIu64
                 ",\"records\":%" PRIu64 ",\"bytes_per_sealed_id\":%.1f",
                 ids, size->all_records, bytes_per_id(size));
    for (size_t i = 0; i < KINDS; i++) {
        (void)printf(",\"%s_bytes\":%" PRIu64, kinds[i], size->bytes[i]);
    }
    (void)printf("}\n");
    (void)fflush(stdout);
    mdb_txn_abort(size->txn);
    mdb_env_close(env);
    free(size);
}
