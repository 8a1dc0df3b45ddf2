/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mark.h"
#include "base/text.h"

/* Rows of `meta` that hold one time. */
enum { ROW_COPY = 'C', ROW_LAST_BACKUP = 'B' };

/* Room in the map of a copy for the pages that its mark takes. */
enum { MARK_ROOM = 1 << 24 };

/* Until it is whole and marked, the data file has a name that no store has:
 * nothing can take it for one. */
static const char unfinished[] = "copy.mdb";

static bool fail(struct err *err, const char *what, const char *path)
{
    int error = errno;

    return err_set(err, ERR_IO, "%s %s: %s", what, path, strerror(error));
}

/* --- the rows ------------------------------------------------------------ */

static struct store_key key_of(int row)
{
    return (struct store_key){.bytes = {(uint8_t)row}, .len = 1};
}

static bool load_time(struct store *store, int row, int64_t *out_ms,
                      struct err *err)
{
    struct store_key key = key_of(row);
    struct slice payload = {NULL, 0};

    *out_ms = 0;
    switch (store_db_get_sealed(store->txn, store->db.meta, key_slice(&key),
                                &payload, err)) {
    case STORE_FAILED:
        return err_wrap(err, "meta row '%c'", row);
    case STORE_ABSENT:
        return true;
    case STORE_FOUND:
        break;
    }
    if (payload.len != sizeof(uint64_t)) {
        return err_set(err, ERR_DATA, "meta row '%c' has a wrong size", row);
    }
    *out_ms = (int64_t)bytes_get_be64(payload.data);
    return true;
}

static bool save_time(struct store *store, int row, int64_t ms, struct err *err)
{
    struct store_key key = key_of(row);
    struct slice payload;
    char bytes[sizeof(uint64_t)];

    bytes_put_be64(bytes, (uint64_t)ms);
    payload = (struct slice){bytes, sizeof bytes};
    return store_db_put_sealed(store, store->db.meta, key_slice(&key), payload,
                               err);
}

bool store_backup_load(struct store *store, struct err *err)
{
    return load_time(store, ROW_COPY, &store->state.copied_wall_ms, err) &&
           load_time(store, ROW_LAST_BACKUP, &store->state.last_backup_wall_ms,
                     err);
}

int64_t store_copied_wall_ms(const struct store *store)
{
    return store->state.copied_wall_ms;
}

int64_t store_last_backup_wall_ms(const struct store *store)
{
    return store->state.last_backup_wall_ms;
}

bool store_set_last_backup(struct store *store, int64_t wall_ms,
                           struct err *err)
{
    CHECK(store->txn != NULL);
    store->state.last_backup_wall_ms = wall_ms;
    return save_time(store, ROW_LAST_BACKUP, wall_ms, err);
}

/* --- opening a copy ------------------------------------------------------ */

bool store_backup_may_open(const struct store *store, struct err *err)
{
    const struct slice uuid = {(const char *)store->uuid, sizeof store->uuid};
    int64_t copied_ms = store->state.copied_wall_ms;
    struct buf id = BUF_INIT;
    char made[TEXT_TIME_SIZE];

    if (store->options.read_only ||
        (copied_ms != 0) == store->options.restore) {
        return true;
    }
    if (copied_ms == 0) {
        return err_set(err, ERR_DATA,
                       "it is no backup: the original, or restored already");
    }
    text_hex(uuid, &id);
    text_time(copied_ms, made);
    err_set_text(err, ERR_DATA,
                 "it is a backup of store %s, made at %s; to make it the "
                 "store, use `onced restore`",
                 buf_cstr(&id), made);
    buf_free(&id);
    return false;
}

bool store_end_restore(struct store *store, struct err *err)
{
    struct store_key key = key_of(ROW_COPY);

    CHECK(store->txn != NULL);
    CHECK(store->options.restore);
    CHECK(store->state.copied_wall_ms != 0);
    if (!store_set_last_backup(store, store->state.copied_wall_ms, err) ||
        !store_db_remove(store, store->db.meta, key_slice(&key), "meta", err)) {
        return false;
    }
    store->state.copied_wall_ms = 0;
    store->state.incarnation++;
    return true;
}

/* --- the target ---------------------------------------------------------- */

static bool is_in_the_way(struct err *err)
{
    return err_set(err, ERR_USAGE, "it is there already, and not empty");
}

static bool is_empty(DIR *dir)
{
    const struct dirent *entry;

    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0) {
            return false;
        }
    }
    return true;
}

/* "…/monday/" gives "…/monday", for the caller to free. */
static char *trim_slashes(const char *path)
{
    struct slice name = slice_of(path);

    while (name.len > 1 && name.data[name.len - 1] == '/') {
        name.len--;
    }
    return mem_dup(name);
}

/* The link itself would be in the way, wherever it points to. */
static bool check_no_link(const char *name, struct err *err)
{
    struct stat info;

    return lstat(name, &info) != 0 || !S_ISLNK(info.st_mode) ||
           err_set(err, ERR_USAGE,
                   "it is a symbolic link: name the folder that it means");
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* From `above` up to the root, whatever names lead there. */
static bool check_outside(const struct store *store, const char *above,
                          struct err *err)
{
    struct stat own, here, last = {.st_ino = 0};
    struct buf path = BUF_INIT;
    bool ok = fstat(store->dir_fd, &own) == 0 || fail(err, "stat", store->path);

    buf_add_str(&path, above);
    while (ok) {
        ok = stat(buf_cstr(&path), &here) == 0 ||
             fail(err, "stat", buf_cstr(&path));
        if (ok && is_same(&here, &own)) {
            ok = err_set(err, ERR_USAGE, "it is inside of the store %s",
                         store->path);
        }
        if (!ok || is_same(&here, &last)) {
            break; /* the root is above itself */
        }
        last = here;
        buf_add_str(&path, "/..");
    }
    buf_free(&path);
    return ok;
}

static bool check_above(const struct store *store, const char *above,
                        struct err *err)
{
    struct stat info;

    if (stat(above, &info) == 0 && S_ISDIR(info.st_mode)) {
        return check_outside(store, above, err);
    }
    return err_set(err, ERR_USAGE, "the folder %s is not there: make it first",
                   above);
}

static bool check_place(const struct store *store, const char *target,
                        struct err *err)
{
    char *name = trim_slashes(target), *slash = strrchr(name, '/');
    bool ok = check_no_link(name, err);

    if (ok && slash == NULL) {
        ok = check_above(store, ".", err);
    } else if (ok) {
        slash[slash == name ? 1 : 0] = '\0';
        ok = check_above(store, name, err);
    }
    free(name);
    return ok;
}

static bool check_target(const struct store *store, const char *target,
                         struct err *err)
{
    DIR *dir;
    bool empty;

    if (!check_place(store, target, err)) {
        return false;
    }
    dir = opendir(target);
    if (dir == NULL && errno == ENOTDIR) {
        return err_set(err, ERR_USAGE, "it is there already, and no folder");
    }
    if (dir == NULL) {
        return errno == ENOENT || fail(err, "open", target);
    }
    empty = is_empty(dir);
    (void)closedir(dir); /* it was only read */
    return empty || is_in_the_way(err);
}

/* --- making it ----------------------------------------------------------- */

/* `to` is a store of which no more is known than a copy needs: it has a
 * folder, LMDB and its tables, and no lock. */
struct copy {
    struct store *from, *to;
    const struct store_backup_order *order;
    bool is_placed; /* the folder has the target's name */
    bool given_up;
};

/* "…/monday/" gives "…/monday.new-XXXXXX". */
static char *make_template(const char *target)
{
    struct buf path = BUF_INIT;
    char *name = trim_slashes(target), *made;

    buf_printf(&path, "%s.new-XXXXXX", name);
    made = mem_dup(buf_slice(&path));
    buf_free(&path);
    free(name);
    return made;
}

static bool make_folder(struct copy *copy, struct err *err)
{
    char *path = make_template(copy->order->target);
    struct store *to;

    if (mkdtemp(path) == NULL) {
        (void)fail(err, "create", path);
        free(path);
        return false;
    }
    to = mem_new(1, sizeof *to);
    to->path = path;
    to->options = copy->from->options;
    to->options.path = path;
    to->options.read_only = false;
    to->lock_fd = -1;
    to->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    copy->to = to;
    return to->dir_fd >= 0 || fail(err, "open", path);
}

/* What cannot be removed is told by nothing but its name. */
static void remove_folder(const struct copy *copy)
{
    (void)unlinkat(copy->to->dir_fd, unfinished, 0); /* whichever is there */
    (void)unlinkat(copy->to->dir_fd, "data.mdb", 0);
    (void)rmdir(copy->is_placed ? copy->order->target : copy->to->path);
}

/* Where the file system can, past the page cache, which is the worker's. */
static void bypass_cache(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0) {
        (void)fcntl(fd, F_SETFL, flags | O_DIRECT);
    }
}

static bool copy_pages(struct copy *copy, struct err *err)
{
    struct store_pump pump = {
        .env = copy->from->env,
        .fd = openat(copy->to->dir_fd, unfinished,
                     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600),
        .is_wanted = copy->order->is_wanted,
        .ctx = copy->order->ctx,
    };
    int rc;

    if (pump.fd < 0) {
        return fail(err, "create copy.mdb in", copy->to->path);
    }
    bypass_cache(pump.fd);
    rc = store_pump_run(&pump);
    if (close(pump.fd) != 0 && rc == 0) {
        rc = errno;
    }
    copy->given_up = pump.given_up;
    return rc == 0 || store_db_fail(copy->to, rc, "copy", err);
}

static bool open_copy(struct store *to, struct err *err)
{
    unsigned flags = MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOTLS;
    struct buf path = BUF_INIT;
    struct stat file;
    int rc;

    if (fstatat(to->dir_fd, unfinished, &file, 0) != 0) {
        return fail(err, "stat copy.mdb in", to->path);
    }
    flags |= to->options.no_sync ? MDB_NOSYNC : 0;
    buf_printf(&path, "%s/%s", to->path, unfinished);
    rc = mdb_env_create(&to->env);
    if (rc == 0) {
        rc = mdb_env_set_mapsize(to->env, (size_t)file.st_size + MARK_ROOM);
    }
    if (rc == 0) {
        rc = mdb_env_set_maxdbs(to->env, STORE_TABLES_MAX);
    }
    if (rc == 0) {
        rc = mdb_env_open(to->env, buf_cstr(&path), flags, 0600);
    }
    buf_free(&path);
    return rc == 0 ? store_files_close_on_exec(to->env, err)
                   : store_db_fail(to, rc, "open the copy", err);
}

/* The records of every generation, settled ones too. */
static bool count_events(struct store *to, uint64_t *out, struct err *err)
{
    enum { COUNTS_KEY = 7, COUNTS_ROW = 6 * sizeof(uint32_t) };
    struct store_key from = key_of('c');
    struct slice key = key_slice(&from), value, counts;
    MDB_cursor *cursor;
    enum store_found found;
    int rc = mdb_cursor_open(to->txn, to->db.meta, &cursor);

    *out = 0;
    if (rc != 0) {
        return store_db_fail(to, rc, "read the copy", err);
    }
    found = store_db_step(cursor, MDB_SET_RANGE, &key, &value, err);
    while (found == STORE_FOUND && key.len == COUNTS_KEY &&
           key.data[0] == 'c') {
        if (!store_db_unseal(key, value, &counts) || counts.len != COUNTS_ROW) {
            (void)err_set(err, ERR_DATA, "meta row 'c' is damaged");
            found = STORE_FAILED;
            break;
        }
        for (size_t i = 0; i < COUNTS_ROW; i += sizeof(uint32_t)) {
            *out += bytes_get_be32(counts.data + i);
        }
        found = store_db_step(cursor, MDB_NEXT, &key, &value, err);
    }
    mdb_cursor_close(cursor);
    return found != STORE_FAILED;
}

/* What was copied is a store, and this one. */
static bool check_copy(struct copy *copy, struct store_backup *out,
                       struct err *err)
{
    const struct store *from = copy->from;
    struct store *to = copy->to;
    struct gen_range ranges;

    if (!store_meta_read_format(to, err) || !store_backup_load(to, err) ||
        !store_meta_read_ranges(to, to->txn, &ranges, err) ||
        !count_events(to, &out->events, err)) {
        return false;
    }
    return (memcmp(to->uuid, from->uuid, sizeof to->uuid) == 0 &&
            memcmp(to->hash_key, from->hash_key, sizeof to->hash_key) == 0) ||
           err_set(err, ERR_DATA, "it is of another store");
}

static bool mark_copy(struct copy *copy, struct store_backup *out,
                      struct err *err)
{
    struct store *to = copy->to;

    if (to->state.copied_wall_ms != 0) {
        out->made_wall_ms = to->state.copied_wall_ms;
        return true;
    }
    return save_time(to, ROW_COPY, out->made_wall_ms, err);
}

static bool commit_copy(struct store *to, struct err *err)
{
    int rc = mdb_txn_commit(to->txn);

    to->txn = NULL;
    if (rc == 0 && !to->options.no_sync) {
        rc = mdb_env_sync(to->env, 1);
    }
    return rc == 0 || store_db_fail(to, rc, "sync the copy", err);
}

static bool finish_pages(struct copy *copy, struct store_backup *out,
                         struct err *err)
{
    struct store *to = copy->to;
    int rc;

    if (!open_copy(to, err) || !store_size_check(to, err) ||
        !store_files_open_tables(to->env, 0, &to->db, err)) {
        return err_wrap(err, "the copy");
    }
    rc = mdb_txn_begin(to->env, NULL, 0, &to->txn);
    if (rc != 0) {
        to->txn = NULL;
        return store_db_fail(to, rc, "begin in the copy", err);
    }
    if (!check_copy(copy, out, err) || !mark_copy(copy, out, err)) {
        mdb_txn_abort(to->txn);
        to->txn = NULL;
        return err_wrap(err, "the copy");
    }
    return commit_copy(to, err);
}

static bool measure(struct store *to, uint64_t *bytes, struct err *err)
{
    struct stat file;

    if (fstatat(to->dir_fd, "data.mdb", &file, 0) != 0) {
        return fail(err, "stat data.mdb in", to->path);
    }
    *bytes = (uint64_t)file.st_size;
    return true;
}

/* Both the data file and the folder get their names only when all that is in
 * them is on the disk. */
static bool publish(struct copy *copy, struct store_backup *out,
                    struct err *err)
{
    struct store *to = copy->to;

    mdb_env_close(to->env);
    to->env = NULL;
    MARK(backup_before_rename);
    if (renameat(to->dir_fd, unfinished, to->dir_fd, "data.mdb") != 0 ||
        fsync(to->dir_fd) != 0) {
        return fail(err, "put data.mdb in place in", to->path);
    }
    if (!measure(to, &out->bytes, err)) {
        return false;
    }
    if (rename(to->path, copy->order->target) != 0) {
        if (errno == ENOTEMPTY || errno == EEXIST) {
            return is_in_the_way(err);
        }
        return errno == EBUSY
                   ? err_set(err, ERR_USAGE,
                             "it is a mount point: name a folder below it")
                   : fail(err, "rename the copy to", copy->order->target);
    }
    copy->is_placed = true;
    MARK(backup_after_rename);
    return store_files_sync_parent(copy->order->target, err);
}

static bool make_copy(struct copy *copy, struct store_backup *out,
                      struct err *err)
{
    if (!copy_pages(copy, err)) {
        return false;
    }
    MARK(backup_copied);
    return finish_pages(copy, out, err) && publish(copy, out, err);
}

/* The caller gives a full disk up, while a batch waits for room. */
static void set_kind(const struct copy *copy, struct err *err)
{
    if (copy->given_up) {
        (void)err_set(err, ERR_AGAIN, "it was given up");
    } else if (err != NULL && err->kind == ERR_AGAIN) {
        err->kind = ERR_IO;
    }
}

bool store_backup(struct store *store, const struct store_backup_order *order,
                  struct store_backup *out, struct err *err)
{
    const struct clock *clock = store->options.clock;
    struct copy copy = {.from = store, .order = order};
    int64_t wall_ms = clock_wall_ms(clock), boot_ms = clock_boot_ms(clock);
    bool ok;

    *out = (struct store_backup){.made_wall_ms = wall_ms > 0 ? wall_ms : 1};
    ok = store_load_may_copy(store, err) &&
         check_target(store, order->target, err) && make_folder(&copy, err) &&
         make_copy(&copy, out, err);
    if (!ok && copy.to != NULL) {
        remove_folder(&copy);
    }
    store_close(&copy.to);
    if (!ok) {
        set_kind(&copy, err);
        return err_wrap(err, "copy the store to %s", order->target);
    }
    out->took_ms = clock_boot_ms(clock) - boot_ms;
    return true;
}
