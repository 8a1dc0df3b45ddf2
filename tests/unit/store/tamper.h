/* SPDX-License-Identifier: MIT */
/* Changes a store behind its back: rows through LMDB, bytes in the file. */
#ifndef ONCED_TESTS_UNIT_STORE_TAMPER_H
#define ONCED_TESTS_UNIT_STORE_TAMPER_H

#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "fixture.h"

struct tamper {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
};

static inline void tamper_begin(struct tamper *t, const char *dir,
                                const char *table)
{
    cr_assert_eq(mdb_env_create(&t->env), 0);
    cr_assert_eq(mdb_env_set_maxdbs(t->env, 8), 0);
    cr_assert_eq(mdb_env_set_mapsize(t->env, 1 << 28), 0);
    cr_assert_eq(mdb_env_open(t->env, dir, MDB_NOSYNC, 0600), 0);
    cr_assert_eq(mdb_txn_begin(t->env, NULL, 0, &t->txn), 0);
    cr_assert_eq(mdb_dbi_open(t->txn, table, 0, &t->dbi), 0, "%s", table);
}

static inline void tamper_end(struct tamper *t)
{
    cr_assert_eq(mdb_txn_commit(t->txn), 0);
    mdb_env_close(t->env);
}

/* The nth row of a table is taken out. */
static inline void tamper_delete(const char *dir, const char *table, int n)
{
    struct tamper t;
    MDB_cursor *cursor;
    MDB_val key, value;

    tamper_begin(&t, dir, table);
    cr_assert_eq(mdb_cursor_open(t.txn, t.dbi, &cursor), 0);
    for (int i = 0; i <= n; i++) {
        cr_assert_eq(mdb_cursor_get(cursor, &key, &value, MDB_NEXT), 0,
                     "%s has no row %d", table, i);
    }
    cr_assert_eq(mdb_cursor_del(cursor, 0), 0);
    mdb_cursor_close(cursor);
    tamper_end(&t);
}

/* A byte of the payload of the row under `name` is changed and the CRC made
 * to fit again. */
static inline void tamper_set_byte(const char *dir, const char *table,
                                   struct slice name, size_t at, uint8_t byte)
{
    struct tamper t;
    MDB_val key = {name.len, (void *)(uintptr_t)name.data}, value;
    uint8_t copy[512];

    tamper_begin(&t, dir, table);
    cr_assert_eq(mdb_get(t.txn, t.dbi, &key, &value), 0);
    cr_assert_leq(value.mv_size, sizeof copy);
    memcpy(copy, value.mv_data, value.mv_size);
    copy[4 + at] = byte;
    bytes_put_be32(copy, hash_crc32c(hash_crc32c(0, name.data, name.len),
                                     copy + 4, value.mv_size - 4));
    value.mv_data = copy;
    cr_assert_eq(mdb_put(t.txn, t.dbi, &key, &value, 0), 0);
    tamper_end(&t);
}

static inline char *tamper_map(const char *dir, int *fd, size_t *len)
{
    char path[PATH_MAX + 16];
    struct stat info;
    char *bytes;

    (void)snprintf(path, sizeof path, "%s/data.mdb", dir);
    *fd = open(path, O_RDWR);
    cr_assert_geq(*fd, 0);
    cr_assert_eq(fstat(*fd, &info), 0);
    *len = (size_t)info.st_size;
    bytes = malloc(*len);
    cr_assert_eq(pread(*fd, bytes, *len, 0), info.st_size);
    return bytes;
}

/* One bit of the first byte is turned wherever `text` stands in the file. */
static inline int tamper_replace(const char *dir, const char *text, int turn)
{
    size_t len, text_len = strlen(text);
    int fd, hits = 0;
    char *bytes = tamper_map(dir, &fd, &len);
    char *found;

    for (size_t i = 0; i + text_len <= len; i++) {
        found = bytes + i;
        if ((found[0] ^ (1 - turn)) == text[0] &&
            memcmp(found + 1, text + 1, text_len - 1) == 0) {
            found[0] = (char)(found[0] ^ 1);
            hits++;
        }
    }
    cr_assert_eq(pwrite(fd, bytes, len, 0), (ssize_t)len);
    free(bytes);
    close(fd);
    return hits;
}

static inline int tamper_flip(const char *dir, const char *text)
{
    return tamper_replace(dir, text, 1);
}

static inline int tamper_flip_back(const char *dir, const char *text)
{
    return tamper_replace(dir, text, 0);
}

#endif
