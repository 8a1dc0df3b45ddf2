/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include "base/check.h"

/* Room in the id table for a batch, so that none of it waits for a move. */
enum { BATCH_IDS = 4096 };

bool store_begin(struct store *store, struct err *err)
{
    unsigned flags = store->options.read_only ? MDB_RDONLY : 0;
    int rc;

    CHECK(store->txn == NULL);
    store->journal.no_room = false;
    rc = mdb_txn_begin(store->env, NULL, flags, &store->txn);
    if (rc != 0) {
        store->txn = NULL;
        return store_db_fail(store, rc, "begin", err);
    }
    store->saved = store->state;
    store_table_reserve(store->memory[slot_of(store->state.last_gen)].table,
                        BATCH_IDS);
    return true;
}

static bool flush(struct store *store, struct err *err)
{
    int64_t now_ms = store_now_ms(store);

    CHECK(store_gen_is_consistent(store));
    if (!store_journal_flush(store, err)) {
        return false;
    }
    if (!store->journal.wrote) {
        return true;
    }
    store->state.commit++;
    store->state.clock_mark_ms = now_ms;
    store->state.expiry_mark_ms = store_clock_expiry_ms(store);
    return store_meta_save_state(store, err);
}

/* The handle is gone after the commit, whatever it returned. */
static bool commit(struct store *store, struct err *err)
{
    int rc = mdb_txn_commit(store->txn);

    store->txn = NULL;
    if (rc != 0) {
        (void)store_db_fail(store, rc, "commit", err);
        store_journal_undo(store);
        return false;
    }
    store_journal_keep(store);
    store_size_keep(store);
    return true;
}

bool store_commit(struct store *store, struct err *err)
{
    CHECK(store->txn != NULL);
    if (store->options.read_only) {
        store_abort(store);
        return true;
    }
    if (store->journal.no_room) {
        store_abort(store);
        return err_set(err, ERR_AGAIN, "commit: no room in the store");
    }
    if (!flush(store, err)) {
        store_abort(store);
        return err_wrap(err, "commit");
    }
    return commit(store, err);
}

void store_abort(struct store *store)
{
    CHECK(store->txn != NULL);
    CHECK(store->state.next_seq >= store->saved.next_seq);
    mdb_txn_abort(store->txn);
    store->txn = NULL;
    store_journal_undo(store);
    CHECK(store_gen_is_consistent(store));
}

bool store_maintain(struct store *store, bool *more, struct err *err)
{
    CHECK(store->txn != NULL && !store->options.read_only);
    *more = false;
    (void)store_now_ms(store);
    return store_gen_seal_step(store, more, err) &&
           store_forget_step(store, more, err) &&
           store_pay_step(store, more, err);
}
