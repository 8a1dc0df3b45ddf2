/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mark.h"

/* LMDB 0.9 and 1.0 do not read each other's files, and a distribution may
 * put another library in place under the same program. */
static bool check_version(struct err *err)
{
    int major, minor, patch;
    const char *text = mdb_version(&major, &minor, &patch);

    if (major != 0 || minor != 9 || patch < 24) {
        return err_set(err, ERR_CONFIG,
                       "%s is loaded; onced needs LMDB 0.9.24 or a later "
                       "0.9, whose files 1.0 does not read",
                       text);
    }
    return true;
}

/* What an earlier process wrote last, and the name under which it put the
 * file, may be seen and not yet be on the disk: both must be before anything
 * is told on the strength of it. */
static bool make_durable(struct store *store, struct err *err)
{
    int dead, rc = mdb_reader_check(store->env, &dead);

    if (rc == 0 && !store->options.read_only) {
        rc = mdb_env_sync(store->env, 1);
        MARK(store_synced);
    }
    if (rc != 0) {
        return store_db_fail(store, rc, "sync at start", err);
    }
    return store->options.read_only || store_files_sync_directory(store, err);
}

static bool read_format(struct store *store, struct err *err)
{
    int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &store->txn);
    bool ok;

    if (rc != 0) {
        store->txn = NULL;
        return store_db_fail(store, rc, "begin", err);
    }
    ok = store_meta_read_format(store, err) && store_backup_load(store, err) &&
         store_load_read(store, err);
    mdb_txn_abort(store->txn);
    store->txn = NULL;
    return ok;
}

static bool open_files(struct store *store, struct err *err)
{
    if (!store_files_lock(store, err) ||
        !store_files_check_system(store, err) || !check_version(err)) {
        return false;
    }
    if (!store_files_exist(store) && !store_files_create(store, err)) {
        return err_wrap(err, "create");
    }
    return store_files_open_env(store, store->path, &store->env, err) &&
           store_size_check(store, err) && make_durable(store, err) &&
           store_files_open_meta(store->env, &store->db.meta, err) &&
           read_format(store, err) && store_backup_may_open(store, err) &&
           store_load_may_open(store, err) &&
           store_files_open_tables(store->env, 0, &store->db, err);
}

static struct store *new_store(const struct store_options *options)
{
    struct store *store = mem_new(1, sizeof *store);

    CHECK(options->clock != NULL);
    CHECK(options->max_bytes > 0);
    store->path = mem_strdup(options->path);
    store->options = *options;
    store->options.path = store->path;
    store->dir_fd = -1;
    store->lock_fd = -1;
    store->n_streams = 1;
    atomic_init(&store->keep_since_ms, RECORD_NEVER);
    for (size_t i = 0; i < STORE_ROUTES_MAX; i++) {
        store->routes[i].retention = (struct store_retention){
            options->retention_ms, options->retention_ms,
            options->retention_ms};
    }
    return store;
}

bool store_open_files(struct store **out, const struct store_options *options,
                      struct err *err)
{
    struct store *store = new_store(options);

    *out = NULL;
    if (!open_files(store, err)) {
        store_close(&store);
        return err_wrap(err, "store %s", options->path);
    }
    *out = store;
    return true;
}

static bool load_ids(struct store *store, uint32_t number, struct err *err)
{
    return gen_at(store, number)->state == GEN_SEALED
               ? store_ids_load_bloom(store, number, err)
               : store_ids_fill(store, number, err);
}

static bool load(struct store *store, struct err *err)
{
    if (!store_meta_load(store, err)) {
        return false;
    }
    for (uint32_t n = store->state.first_gen; n <= store->state.last_gen; n++) {
        if (!load_ids(store, n, err)) {
            return false;
        }
    }
    if (!store_gen_is_consistent(store)) {
        return err_set(err, ERR_DATA,
                       "the counters of generation %u and its records "
                       "disagree",
                       store->state.last_gen);
    }
    store_clock_start(store);
    store->saved = store->state;
    if (store->options.read_only) {
        return true;
    }
    store->state.epoch++;
    store->journal.wrote = true;
    return store_gen_restart_sealing(store, err);
}

/* The first transaction also raises the epoch. */
static bool begin(struct store *store, struct err *err)
{
    unsigned flags = store->options.read_only ? MDB_RDONLY : 0;
    int rc = mdb_txn_begin(store->env, NULL, flags, &store->txn);

    if (rc != 0) {
        store->txn = NULL;
        return store_db_fail(store, rc, "begin", err);
    }
    if (!load(store, err)) {
        mdb_txn_abort(store->txn);
        store->txn = NULL;
        return false;
    }
    return store_commit(store, err);
}

bool store_open(struct store **out, const struct store_options *options,
                struct err *err)
{
    struct store *store;

    *out = NULL;
    if (!store_open_files(&store, options, err)) {
        return false;
    }
    if (!begin(store, err)) {
        store_close(&store);
        return err_wrap(err, "store %s", options->path);
    }
    *out = store;
    return true;
}

static void free_memory(struct store *store)
{
    for (size_t i = 0; i < STORE_SLOTS; i++) {
        store_gen_free_memory(&store->memory[i]);
    }
    for (size_t i = 0; i < STORE_ROUTES_MAX; i++) {
        free(store->routes[i].name);
    }
    for (size_t i = 0; i < STORE_NAMES_MAX; i++) {
        free(store->namespaces[i]);
        free(store->streams[i]);
    }
    store_journal_free(store);
    free(store->path);
    free(store->open_load);
}

void store_close(struct store **at)
{
    struct store *store = *at;

    *at = NULL;
    if (store == NULL) {
        return;
    }
    CHECK(store->txn == NULL);
    mdb_env_close(store->env);
    if (store->lock_fd >= 0) {
        (void)close(store->lock_fd); /* gives the lock back */
    }
    if (store->dir_fd >= 0) {
        (void)close(store->dir_fd);
    }
    free_memory(store);
    free(store);
}

uint32_t store_epoch(const struct store *store)
{
    return store->state.epoch;
}

const char *store_path(const struct store *store)
{
    return store->path;
}
