/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <string.h>

#include "base/check.h"

enum {
    LOOK_EVERY_MS = 1000,
    REFUSED_MS = 3000, /* for so long a write that found no room counts */
};

uint64_t store_space_of(MDB_txn *txn, MDB_dbi dbi)
{
    MDB_stat stat;
    int rc = mdb_stat(txn, dbi, &stat);

    if (rc != 0) {
        return 0;
    }
    return (uint64_t)stat.ms_psize *
           (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages);
}

static uint64_t measure(const struct store *store, MDB_txn *txn)
{
    const struct store_dbis *db = &store->db;
    const MDB_dbi single[] = {db->meta, db->due,    db->order,
                              db->dlq,  db->dlqpay, db->bloom};
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        sum += store_space_of(txn, single[i]);
    }
    for (size_t i = 0; i < STORE_SLOTS; i++) {
        sum += store_space_of(txn, db->rec[i]);
        sum += store_space_of(txn, db->idx[i]);
        sum += store_space_of(txn, db->rsp[i]);
        sum += store_space_of(txn, db->audit[i]);
        sum += store_space_of(txn, db->pay[i]);
    }
    return sum;
}

static uint64_t look(struct store *store)
{
    MDB_txn *txn = NULL;
    uint64_t bytes;

    if (store->txn != NULL) {
        return measure(store, store->txn);
    }
    if (mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn) != 0) {
        return store->space.bytes;
    }
    bytes = measure(store, txn);
    mdb_txn_abort(txn);
    return bytes;
}

static uint64_t file_bytes_used(const struct store *store)
{
    MDB_envinfo info;
    MDB_stat stat;
    int rc = mdb_env_info(store->env, &info);

    CHECK(rc == 0);
    rc = mdb_env_stat(store->env, &stat);
    CHECK(rc == 0);
    return ((uint64_t)info.me_last_pgno + 1) * stat.ms_psize;
}

/* Once a second, and sooner when the file has grown by as much as may be
 * overshot. */
static void look_at_quota(struct store *store)
{
    struct store_space *space = &store->space;
    int64_t now_ms = clock_boot_ms(store->options.clock);
    uint64_t used = file_bytes_used(store);

    if (space->looked && now_ms - space->looked_boot_ms < LOOK_EVERY_MS &&
        used < space->looked_used_bytes + store_files_reserve_bytes(store)) {
        return;
    }
    space->looked = true;
    space->looked_boot_ms = now_ms;
    space->looked_used_bytes = used;
    space->bytes = look(store);
    space->quota_spent = space->bytes >= store->options.max_bytes;
}

static bool extend(struct store *store, uint64_t bytes)
{
    if (!store_files_allocate(store, bytes)) {
        return false;
    }
    store->space.allocated = bytes;
    return true;
}

/* What settles known events must find room on a disk that somebody else has
 * filled, so blocks for it are allocated ahead, behind the end of the file.
 * LMDB leaves holes, too: pages that were given back before they were written.
 * Where no more can be had, new events may use what is free inside the file,
 * and must leave the reserve. */
static void keep_headroom(struct store *store)
{
    struct store_space *space = &store->space;
    uint64_t reserve = store_files_reserve_bytes(store);
    uint64_t used = file_bytes_used(store);

    if (used + reserve <= space->allocated ||
        extend(store, used + 2 * reserve) || extend(store, used + reserve)) {
        space->disk_full = false;
        return;
    }
    if (space->allocated < used) {
        space->allocated = used;
    }
    space->disk_full = look(store) + reserve > space->allocated;
}

static void look_again(struct store *store)
{
    look_at_quota(store);
    if (!store->options.read_only) {
        keep_headroom(store);
    }
}

void store_space_refused(struct store *store)
{
    store->space.refused_boot_ms = clock_boot_ms(store->options.clock);
    store->space.refused = true;
}

bool store_space_is_short(struct store *store)
{
    struct store_space *space = &store->space;
    int64_t now_ms = clock_boot_ms(store->options.clock);

    if (space->refused && now_ms - space->refused_boot_ms >= REFUSED_MS) {
        space->refused = false;
    }
    return space->quota_spent || space->disk_full || space->refused;
}

bool store_is_full(struct store *store)
{
    look_again(store);
    return store_space_is_short(store);
}

/* How far back ids are really remembered: less than configured for a while
 * after the retention was raised. */
static int64_t effective_retention_ms(struct store *store)
{
    int64_t retention_ms = store->options.retention_ms;
    int64_t until_ms = store->state.forgotten_until_ms, back_ms;

    if (until_ms == INT64_MIN) {
        return retention_ms;
    }
    back_ms = store_now_ms(store) - until_ms;
    return back_ms < retention_ms ? back_ms : retention_ms;
}

static void add_counts(const struct store *store, uint32_t gen,
                       struct store_stats *out)
{
    const struct gen_memory *memory = &store->memory[slot_of(gen)];

    for (uint16_t i = 0; i < store->n_routes; i++) {
        for (int state = 0; state < RECORD_STATES; state++) {
            out->counts[i][state] += memory->counts[i][state];
            out->remembered += memory->counts[i][state];
        }
    }
}

void store_stats(struct store *store, struct store_stats *out)
{
    memset(out, 0, sizeof *out);
    look_again(store);
    out->bytes = store->space.bytes;
    out->max_bytes = store->options.max_bytes;
    out->full = store_space_is_short(store);
    out->effective_retention_ms = effective_retention_ms(store);
    for (uint32_t n = store->state.first_gen; n <= store->state.last_gen; n++) {
        add_counts(store, n, out);
    }
}
