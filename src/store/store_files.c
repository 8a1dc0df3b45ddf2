/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mark.h"

enum { READERS_MAX = 126 };
enum { MIB = 1 << 20 };

static bool fail(struct err *err, const char *what, const char *path)
{
    int error = errno;

    return err_set(err, ERR_IO, "%s %s: %s", what, path, strerror(error));
}

/* --- the directory ------------------------------------------------------ */

/* 0, or the error number. */
static int sync_parent(const char *path)
{
    char *copy = mem_strdup(path);
    char *end = copy + strlen(copy);
    int fd, rc;

    while (end > copy + 1 && end[-1] == '/') {
        *--end = '\0';
    }
    end = strrchr(copy, '/');
    if (end != NULL) {
        end[end == copy ? 1 : 0] = '\0';
    }
    fd = open(end == NULL ? "." : copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rc = fd >= 0 && fsync(fd) == 0 ? 0 : errno;
    free(copy);
    if (fd >= 0) {
        (void)close(fd); /* nothing was written through it */
    }
    return rc;
}

static bool fail_sync(const char *path, int error, struct err *err)
{
    return err_set(err, ERR_IO, "sync the folder of %s: %s", path,
                   strerror(error));
}

bool store_files_sync_parent(const char *path, struct err *err)
{
    int error = sync_parent(path);

    return error == 0 || fail_sync(path, error, err);
}

/* One that is there may have been made by a process that was killed before it
 * synced. Where that is not for us to sync, it was not ours to make. */
static bool make_directory(const char *path, struct err *err)
{
    int error;

    if (mkdir(path, 0700) == 0) {
        return store_files_sync_parent(path, err);
    }
    if (errno != EEXIST) {
        return fail(err, "create", path);
    }
    error = sync_parent(path);
    return error == 0 || error == EACCES || error == EROFS || error == EINVAL ||
           fail_sync(path, error, err);
}

/* The folder, and those above it. */
static bool make_directories(const char *path, struct err *err)
{
    char *copy = mem_strdup(path);
    bool ok = true;

    for (char *at = copy + 1; ok && *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            ok = make_directory(copy, err);
            *at = '/';
        }
    }
    ok = ok && make_directory(copy, err);
    free(copy);
    return ok;
}

static bool open_directory(struct store *store, struct err *err)
{
    if (store->options.create && !make_directories(store->path, err)) {
        return false;
    }
    store->dir_fd = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->dir_fd >= 0) {
        return true;
    }
    return errno == ENOENT ? err_set(err, ERR_DATA, "there is no store here")
                           : fail(err, "open", store->path);
}

/* No lock file is left in a folder that holds no store. */
static bool may_lock(const struct store *store, struct err *err)
{
    return store_files_exist(store) ||
           (store->options.create && !store->options.read_only) ||
           err_set(err, ERR_DATA, "there is no store here");
}

/* A reader makes none: it leaves nothing behind, and reads where it may not
 * write. The folder is locked, too. */
static bool open_lock(struct store *store, struct err *err)
{
    const int flags = O_CLOEXEC | O_NOFOLLOW;

    if (store->options.read_only) {
        store->lock_fd = openat(store->dir_fd, "LOCK", O_RDONLY | flags);
        return store->lock_fd >= 0 || errno == ENOENT || errno == EACCES ||
               fail(err, "open the LOCK of", store->path);
    }
    store->lock_fd =
        openat(store->dir_fd, "LOCK", O_RDWR | O_CREAT | flags, 0600);
    return store->lock_fd >= 0 || fail(err, "open the LOCK of", store->path);
}

static bool lock(const struct store *store, int fd, struct err *err)
{
    int how = store->options.read_only ? LOCK_SH : LOCK_EX;

    if (fd < 0 || flock(fd, how | LOCK_NB) == 0) {
        return true;
    }
    if (errno == EWOULDBLOCK) {
        return err_set(err, ERR_AGAIN, "it is in use by another process");
    }
    /* A file system that locks no folders: LOCK must do. */
    return fd == store->dir_fd || fail(err, "lock", store->path);
}

bool store_files_lock(struct store *store, struct err *err)
{
    return open_directory(store, err) && may_lock(store, err) &&
           open_lock(store, err) && lock(store, store->lock_fd, err) &&
           lock(store, store->dir_fd, err);
}

/* Memory-mapped files and locks do not work, or not reliably, on these. */
static const struct {
    uint64_t magic;
    const char *name;
} refused[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},      {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB2"},   {0x01021997, "9p"},   {0x65735546, "FUSE"},
    {0x0BD00BD0, "Lustre"}, {0x00C36400, "Ceph"}, {0x5346414F, "AFS"},
};

bool store_files_check_system(struct store *store, struct err *err)
{
    struct statfs info;

    if (fstatfs(store->dir_fd, &info) != 0) {
        return fail(err, "statfs", store->path);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (((uint64_t)info.f_type & UINT32_MAX) == refused[i].magic) {
            return err_set(err, ERR_CONFIG,
                           "store %s lies on %s, which cannot keep it safe; "
                           "use a local file system",
                           store->path, refused[i].name);
        }
    }
    return true;
}

bool store_files_sync_directory(const struct store *store, struct err *err)
{
    return fsync(store->dir_fd) == 0 || fail(err, "sync", store->path);
}

uint64_t store_files_free_bytes(const struct store *store)
{
    struct statvfs info;

    if (fstatvfs(store->dir_fd, &info) != 0) {
        return UINT64_MAX;
    }
    return (uint64_t)info.f_bavail * info.f_frsize;
}

uint64_t store_files_reserve_bytes(const struct store *store)
{
    uint64_t part = store->options.max_bytes / 64;

    part = part < 2 * (uint64_t)MIB ? 2 * (uint64_t)MIB : part;
    return part > 64 * (uint64_t)MIB ? 64 * (uint64_t)MIB : part;
}

bool store_files_allocate(const struct store *store, uint64_t bytes)
{
    int fd, rc = mdb_env_get_fd(store->env, &fd);

    CHECK(rc == 0);
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0) {
        return true;
    }
    /* A file system that cannot allocate ahead: what is free must do. */
    return errno == EOPNOTSUPP &&
           store_files_free_bytes(store) >= store_files_reserve_bytes(store);
}

bool store_files_exist(const struct store *store)
{
    return faccessat(store->dir_fd, "data.mdb", F_OK, 0) == 0;
}

/* --- LMDB --------------------------------------------------------------- */

static int open_env(struct store *store, MDB_env *env, const char *path)
{
    unsigned flags = MDB_NOTLS;
    uint64_t map = store->options.max_bytes * 2;
    int rc;

    flags |= store->options.no_sync ? MDB_NOSYNC : 0;
    /* Nobody writes while we hold the lock, and then readers need no table,
     * whose file they would leave behind. */
    flags |= store->options.read_only ? MDB_RDONLY | MDB_NOLOCK : 0;
    map = map < 4 * (uint64_t)MIB ? 4 * (uint64_t)MIB : map;
    rc = mdb_env_set_mapsize(env, map);
    if (rc == 0) {
        rc = mdb_env_set_maxdbs(env, STORE_TABLES_MAX);
    }
    if (rc == 0) {
        rc = mdb_env_set_maxreaders(env, READERS_MAX);
    }
    return rc != 0 ? rc : mdb_env_open(env, path, flags, 0600);
}

bool store_files_close_on_exec(MDB_env *env, struct err *err)
{
    int fd, rc = mdb_env_get_fd(env, &fd);

    CHECK(rc == 0);
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ||
           fail(err, "set close-on-exec of", "data.mdb");
}

/* LMDB takes an empty file for a new one, and would begin a store in it. */
static bool is_not_empty(const char *path, struct err *err)
{
    struct buf name = BUF_INIT;
    struct stat file;
    int rc;

    buf_printf(&name, "%s/data.mdb", path);
    rc = stat(buf_cstr(&name), &file);
    buf_free(&name);
    if (rc != 0) {
        return errno == ENOENT || fail(err, "stat", "data.mdb");
    }
    return file.st_size > 0 || err_set(err, ERR_DATA, "data.mdb is empty");
}

bool store_files_open_env(struct store *store, const char *path, MDB_env **env,
                          struct err *err)
{
    int rc;

    *env = NULL;
    if (!is_not_empty(path, err)) {
        return false;
    }
    rc = mdb_env_create(env);
    if (rc == 0) {
        rc = open_env(store, *env, path);
    }
    if (rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH) {
        return err_set(err, ERR_DATA,
                       "data.mdb is damaged, or was written by LMDB 1.0 or "
                       "later (this is %s)",
                       mdb_version(NULL, NULL, NULL));
    }
    if (rc != 0) {
        return store_db_fail(store, rc, "open data.mdb", err);
    }
    return store_files_close_on_exec(*env, err);
}

/* Named so that the tables of one generation share a page of the main
 * table, which every commit writes. */
static int open_slots(MDB_txn *txn, unsigned flags, const char *kind,
                      MDB_dbi out[STORE_SLOTS])
{
    char name[16];
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < STORE_SLOTS; i++) {
        (void)snprintf(name, sizeof name, "%02u.%s", i, kind);
        rc = mdb_dbi_open(txn, name, flags, &out[i]);
    }
    return rc;
}

static int open_tables(MDB_txn *txn, unsigned flags, struct store_dbis *out)
{
    const struct {
        const char *name;
        MDB_dbi *dbi;
    } single[] = {
        {"meta", &out->meta}, {"due", &out->due},       {"order", &out->order},
        {"dlq", &out->dlq},   {"dlqpay", &out->dlqpay}, {"bloom", &out->bloom},
    };
    const struct {
        const char *kind;
        MDB_dbi *dbis;
    } slots[] = {
        {"rec", out->rec},     {"idx", out->idx}, {"rsp", out->rsp},
        {"audit", out->audit}, {"pay", out->pay},
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof single / sizeof *single; i++) {
        rc = mdb_dbi_open(txn, single[i].name, flags, single[i].dbi);
    }
    for (size_t i = 0; rc == 0 && i < sizeof slots / sizeof *slots; i++) {
        rc = open_slots(txn, flags, slots[i].kind, slots[i].dbis);
    }
    /* store_db.c tells the tables in slots by their handles. */
    CHECK(rc != 0 || out->rec[0] > out->bloom);
    return rc;
}

static bool begin_tables(MDB_env *env, MDB_txn **txn, struct err *err)
{
    unsigned flags;
    int rc = mdb_env_get_flags(env, &flags);

    CHECK(rc == 0);
    rc = mdb_txn_begin(env, NULL, flags & MDB_RDONLY, txn);
    return rc == 0 || err_set(err, ERR_IO, "open tables: %s", mdb_strerror(rc));
}

/* Handles last only when the transaction that opened them commits. */
static bool end_tables(MDB_txn *txn, int rc, struct err *err)
{
    if (rc != 0) {
        mdb_txn_abort(txn);
        return err_set(err, ERR_DATA, "not a store of onced: %s",
                       rc == MDB_NOTFOUND ? "a table is missing"
                                          : mdb_strerror(rc));
    }
    rc = mdb_txn_commit(txn);
    return rc == 0 || err_set(err, ERR_IO, "open tables: %s", mdb_strerror(rc));
}

bool store_files_open_meta(MDB_env *env, MDB_dbi *out, struct err *err)
{
    MDB_txn *txn;

    return begin_tables(env, &txn, err) &&
           end_tables(txn, mdb_dbi_open(txn, "meta", 0, out), err);
}

bool store_files_open_tables(MDB_env *env, unsigned flags,
                             struct store_dbis *out, struct err *err)
{
    MDB_txn *txn;

    return begin_tables(env, &txn, err) &&
           end_tables(txn, open_tables(txn, flags, out), err);
}

/* --- creation ----------------------------------------------------------- */

static bool remove_new(struct store *store, struct err *err)
{
    static const char *const names[] = {"new/data.mdb", "new/lock.mdb"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (unlinkat(store->dir_fd, names[i], 0) != 0 && errno != ENOENT) {
            return fail(err, "remove", names[i]);
        }
    }
    return unlinkat(store->dir_fd, "new", AT_REMOVEDIR) == 0 ||
           errno == ENOENT || fail(err, "remove", "new");
}

static bool write_empty(struct store *store, struct err *err)
{
    int rc = mdb_txn_begin(store->env, NULL, 0, &store->txn);

    if (rc != 0) {
        return store_db_fail(store, rc, "create", err);
    }
    if (!store_meta_write_format(store, err) ||
        (store->options.load != NULL && !store_set_loading(store, true, err))) {
        mdb_txn_abort(store->txn);
        store->txn = NULL;
        return false;
    }
    rc = mdb_txn_commit(store->txn);
    store->txn = NULL;
    if (rc == 0) {
        rc = mdb_env_sync(store->env, 1);
    }
    return rc == 0 || store_db_fail(store, rc, "create", err);
}

static bool fill_new(struct store *store, const char *path, struct err *err)
{
    bool ok =
        store_files_open_env(store, path, &store->env, err) &&
        store_files_open_tables(store->env, MDB_CREATE, &store->db, err) &&
        write_empty(store, err);

    mdb_env_close(store->env);
    store->env = NULL;
    memset(&store->journal, 0, sizeof store->journal);
    return ok;
}

bool store_files_create(struct store *store, struct err *err)
{
    struct buf path = BUF_INIT;
    bool ok;

    if (!remove_new(store, err)) {
        return false;
    }
    if (mkdirat(store->dir_fd, "new", 0700) != 0) {
        return fail(err, "create new/ in", store->path);
    }
    buf_printf(&path, "%s/new", store->path);
    ok = fill_new(store, buf_cstr(&path), err);
    buf_free(&path);
    if (!ok) {
        return false;
    }
    MARK(store_before_rename);
    if (renameat(store->dir_fd, "new/data.mdb", store->dir_fd, "data.mdb") !=
        0) {
        return fail(err, "put data.mdb in place in", store->path);
    }
    MARK(store_after_rename);
    return store_files_sync_directory(store, err) && remove_new(store, err);
}
