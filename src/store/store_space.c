/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <string.h>

#include "base/check.h"

enum { LOOK_EVERY_MS = 1000 };

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

static void look_again(struct store *store)
{
    struct store_space *space = &store->space;
    int64_t now_ms = clock_boot_ms(store->options.clock);

    if (space->looked && now_ms - space->looked_boot_ms < LOOK_EVERY_MS) {
        return;
    }
    space->looked = true;
    space->looked_boot_ms = now_ms;
    space->bytes = look(store);
    space->full =
        space->bytes >= store->options.max_bytes ||
        store_files_free_bytes(store) < store_files_reserve_bytes(store);
}

bool store_is_full(struct store *store)
{
    look_again(store);
    return store->space.full;
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
    out->full = store->space.full;
    out->effective_retention_ms = effective_retention_ms(store);
    for (uint32_t n = store->state.first_gen; n <= store->state.last_gen; n++) {
        add_counts(store, n, out);
    }
}
