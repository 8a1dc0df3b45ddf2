/* SPDX-License-Identifier: MIT */
/*
 * The length of data.mdb against the pages that LMDB counts. A page past the
 * end of the file is a SIGBUS when it is read: a file that was cut is refused
 * at once.
 *
 * LMDB does not write a page that one transaction took and gave back: where it
 * was the last one, the file is shorter than LMDB counts, and whole all the
 * same. It is made longer after the commit; a process that died in between
 * leaves that to the next start, which looks whether what is missing is free.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "store/store_internal.h"

struct size {
    int fd;
    uint64_t page_bytes;
    uint64_t pages; /* that LMDB counts */
    uint64_t bytes; /* of the file */
};

static bool measure(struct store *store, struct size *size)
{
    MDB_envinfo info;
    MDB_stat stat;
    struct stat file;

    CHECK(mdb_env_info(store->env, &info) == 0);
    CHECK(mdb_env_stat(store->env, &stat) == 0);
    CHECK(mdb_env_get_fd(store->env, &size->fd) == 0);
    if (fstat(size->fd, &file) != 0) {
        return false;
    }
    size->page_bytes = stat.ms_psize;
    size->pages = (uint64_t)info.me_last_pgno + 1;
    size->bytes = (uint64_t)file.st_size;
    return true;
}

static bool is_short(const struct size *size)
{
    return size->bytes < size->pages * size->page_bytes;
}

void store_size_keep(struct store *store)
{
    struct size size;

    /* Where it fails the next start looks. */
    if (measure(store, &size) && is_short(&size)) {
        (void)ftruncate(size.fd, (off_t)(size.pages * size.page_bytes));
    }
}

/* A row of LMDB's list of free pages: how many, and their numbers. */
static uint64_t count_from(const MDB_val *row, uint64_t first)
{
    const size_t *ids = row->mv_data;
    size_t room = row->mv_size / sizeof *ids;
    uint64_t n = 0;

    for (size_t i = 1; room > 0 && i <= ids[0] && i < room; i++) {
        n += ids[i] >= first ? 1 : 0;
    }
    return n;
}

/* Pages from `first` on that LMDB says are free. */
static bool count_free(struct store *store, uint64_t first, uint64_t *n)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, row;
    int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn);

    *n = 0;
    if (rc != 0) {
        return false;
    }
    rc = mdb_cursor_open(txn, 0, &cursor);
    if (rc == 0) {
        while ((rc = mdb_cursor_get(cursor, &key, &row, MDB_NEXT)) == 0) {
            *n += count_from(&row, first);
        }
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return rc == MDB_NOTFOUND;
}

/* The list itself may be in what is missing: so that it can be read, the file
 * is made longer first; what was missing reads as damage then. */
static bool is_whole(struct store *store, const struct size *size)
{
    uint64_t first = size->bytes / size->page_bytes;
    uint64_t n;

    if (store->options.read_only ||
        ftruncate(size->fd, (off_t)(size->pages * size->page_bytes)) != 0) {
        return false;
    }
    if (count_free(store, first, &n) && n == size->pages - first) {
        return true;
    }
    (void)ftruncate(size->fd, (off_t)size->bytes);
    return false;
}

bool store_size_check(struct store *store, struct err *err)
{
    struct size size;

    if (!measure(store, &size)) {
        return err_set(err, ERR_IO, "stat data.mdb: %s", strerror(errno));
    }
    if (is_short(&size) && !is_whole(store, &size)) {
        return err_set(err, ERR_DATA,
                       "data.mdb was cut short: %llu bytes, %llu pages in use",
                       (unsigned long long)size.bytes,
                       (unsigned long long)size.pages);
    }
    return true;
}
