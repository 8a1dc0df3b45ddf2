/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <stdlib.h>

#include "base/check.h"

/* Rows looked at in one read transaction: an old one pins pages. */
enum { ROUND = 1000 };

/* A listing goes in rounds, each in a transaction of its own, from the
 * newest sequence number down. */
struct list {
    struct store *store;
    const struct store_filter *filter;
    bool (*visit)(void *ctx, const struct store_entry *entry);
    void *ctx;
    MDB_txn *txn;
    struct gen_range gens;
    uint64_t before; /* all from here on up has been looked at */
    bool done;
    /* The highest numbers below `before` that an index gave; a heap with the
     * lowest of them on top. */
    uint64_t seqs[ROUND];
    size_t n_seqs;
};

static bool matches(const struct list *list, const struct store_entry *entry)
{
    const struct store_filter *filter = list->filter;
    const struct record *record = &entry->record;

    return (filter->route < 0 || record->route == filter->route) &&
           (!filter->has_state || record->state == filter->state) &&
           (filter->reason == REASON_NONE ||
            record->reason == filter->reason) &&
           record->first_seen_ms >= filter->since_ms &&
           !store_record_is_hidden(list->store, record);
}

static void show(struct list *list, const struct store_entry *entry)
{
    if (matches(list, entry) && !list->visit(list->ctx, entry)) {
        list->done = true;
    }
}

/* --- by the records themselves ------------------------------------------ */

static bool scan_table(struct list *list, MDB_cursor *cursor, int *left,
                       struct err *err)
{
    struct store_key from = key_u64(list->before);
    struct slice key = key_slice(&from), value;
    struct record_place place = {list->txn, mdb_cursor_dbi(cursor), 0};
    struct store_entry entry;
    enum store_found found =
        store_db_step(cursor, MDB_SET_RANGE, &key, &value, err);

    if (found != STORE_FAILED) {
        found =
            store_db_step(cursor, found == STORE_FOUND ? MDB_PREV : MDB_LAST,
                          &key, &value, err);
    }
    while (found == STORE_FOUND && *left > 0 && !list->done) {
        list->before = bytes_get_be64(key.data);
        (*left)--;
        place.seq = list->before;
        if (!store_record_read(list->store, &place, value, &entry, err)) {
            return false;
        }
        show(list, &entry);
        found = store_db_step(cursor, MDB_PREV, &key, &value, err);
    }
    return found != STORE_FAILED;
}

static bool scan_gen(struct list *list, uint32_t number, int *left,
                     struct err *err)
{
    MDB_dbi dbi = list->store->db.rec[slot_of(number)];
    MDB_cursor *cursor;
    bool ok;
    int rc = mdb_cursor_open(list->txn, dbi, &cursor);

    if (rc != 0) {
        return err_set(err, ERR_IO, "list: %s", mdb_strerror(rc));
    }
    ok = scan_table(list, cursor, left, err);
    mdb_cursor_close(cursor);
    return ok;
}

static bool scan(struct list *list, struct err *err)
{
    int left = ROUND;

    for (uint32_t n = list->gens.last;
         n >= list->gens.first && left > 0 && !list->done; n--) {
        if (list->gens.first_seq[slot_of(n)] < list->before &&
            !scan_gen(list, n, &left, err)) {
            return false;
        }
    }
    list->done = list->done || left > 0;
    return true;
}

/* --- by an index -------------------------------------------------------- */

static void sift_down(struct list *list)
{
    size_t at = 0, child;

    while ((child = 2 * at + 1) < list->n_seqs) {
        uint64_t moved = list->seqs[at];

        if (child + 1 < list->n_seqs &&
            list->seqs[child + 1] < list->seqs[child]) {
            child++;
        }
        if (moved <= list->seqs[child]) {
            return;
        }
        list->seqs[at] = list->seqs[child];
        list->seqs[child] = moved;
        at = child;
    }
}

static void sift_up(struct list *list, size_t at)
{
    while (at > 0 && list->seqs[at] < list->seqs[(at - 1) / 2]) {
        uint64_t moved = list->seqs[at];

        list->seqs[at] = list->seqs[(at - 1) / 2];
        list->seqs[(at - 1) / 2] = moved;
        at = (at - 1) / 2;
    }
}

/* False when this and all lower ones are of no use. */
static bool offer(struct list *list, uint64_t seq)
{
    CHECK(seq < list->before);
    CHECK(list->n_seqs <= ROUND);
    if (list->n_seqs < ROUND) {
        list->seqs[list->n_seqs] = seq;
        sift_up(list, list->n_seqs++);
        return true;
    }
    if (seq <= list->seqs[0]) {
        return false;
    }
    list->seqs[0] = seq;
    sift_down(list);
    return true;
}

/* The dead letters of one route, newest first. */
static bool collect_dead(struct list *list, MDB_cursor *cursor, uint16_t route,
                         struct err *err)
{
    struct store_key from = key_u16_u64(route, list->before);
    struct slice key = key_slice(&from), value;
    enum store_found found =
        store_db_step(cursor, MDB_SET_RANGE, &key, &value, err);

    if (found != STORE_FAILED) {
        found =
            store_db_step(cursor, found == STORE_FOUND ? MDB_PREV : MDB_LAST,
                          &key, &value, err);
    }
    while (found == STORE_FOUND && key.len == from.len &&
           bytes_get_be16(key.data) == route &&
           offer(list, bytes_get_be64(key.data + 2))) {
        found = store_db_step(cursor, MDB_PREV, &key, &value, err);
    }
    return found != STORE_FAILED;
}

/* The due entries of one route and state. They stand by time, so that all are
 * read; the highest numbers stay in the heap. */
static bool collect_open(struct list *list, MDB_cursor *cursor, uint16_t route,
                         struct err *err)
{
    enum record_state state = list->filter->state;
    struct store_key from = store_index_key(route, state, INT64_MIN, 0);
    struct slice key = key_slice(&from), value, nothing;
    enum store_found found =
        store_db_step(cursor, MDB_SET_RANGE, &key, &value, err);

    while (found == STORE_FOUND && key.len == from.len &&
           bytes_get_be16(key.data) == route &&
           store_index_state_of(key) == state) {
        if (!store_db_unseal(key, value, &nothing) || nothing.len != 0) {
            return err_set(err, ERR_DATA, "a damaged entry in the due index");
        }
        if (store_index_seq_of(key) < list->before) {
            (void)offer(list, store_index_seq_of(key));
        }
        found = store_db_step(cursor, MDB_NEXT, &key, &value, err);
    }
    return found != STORE_FAILED;
}

static bool collect_routes(struct list *list, MDB_cursor *cursor,
                           struct err *err)
{
    bool dead = list->filter->state == RECORD_DEAD;

    for (uint16_t i = 0; i < list->store->n_routes; i++) {
        if (list->filter->route >= 0 && list->filter->route != i) {
            continue;
        }
        if (!(dead ? collect_dead(list, cursor, i, err)
                   : collect_open(list, cursor, i, err))) {
            return false;
        }
    }
    return true;
}

static bool collect(struct list *list, struct err *err)
{
    const struct store_dbis *db = &list->store->db;
    MDB_cursor *cursor;
    bool ok;
    int rc = mdb_cursor_open(
        list->txn, list->filter->state == RECORD_DEAD ? db->dlq : db->due,
        &cursor);

    if (rc != 0) {
        return err_set(err, ERR_IO, "list: %s", mdb_strerror(rc));
    }
    ok = collect_routes(list, cursor, err);
    mdb_cursor_close(cursor);
    return ok;
}

static int compare_down(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

static MDB_dbi table_of(const struct list *list, uint64_t seq)
{
    uint32_t number = list->gens.last;

    while (number > list->gens.first &&
           seq < list->gens.first_seq[slot_of(number)]) {
        number--;
    }
    return list->store->db.rec[slot_of(number)];
}

static bool walk_index(struct list *list, struct err *err)
{
    struct store_entry entry;

    list->n_seqs = 0;
    if (!collect(list, err)) {
        return false;
    }
    qsort(list->seqs, list->n_seqs, sizeof *list->seqs, compare_down);
    for (size_t i = 0; i < list->n_seqs && !list->done; i++) {
        struct record_place place = {list->txn, table_of(list, list->seqs[i]),
                                     list->seqs[i]};

        list->before = list->seqs[i];
        if (!store_record_load(list->store, &place, &entry, err)) {
            return false;
        }
        show(list, &entry);
    }
    list->done = list->done || list->n_seqs < ROUND;
    return true;
}

/* --- rounds ------------------------------------------------------------- */

static bool is_indexed(const struct store_filter *filter)
{
    return filter->has_state && filter->state != RECORD_SUCCEEDED &&
           filter->state != RECORD_FAILED;
}

static bool go_round(struct list *list, struct err *err)
{
    int rc = mdb_txn_begin(list->store->env, NULL, MDB_RDONLY, &list->txn);
    bool ok;

    if (rc != 0) {
        return err_set(err, ERR_IO, "list: %s", mdb_strerror(rc));
    }
    ok = store_meta_read_ranges(list->store, list->txn, &list->gens, err) &&
         (is_indexed(list->filter) ? walk_index(list, err) : scan(list, err));
    mdb_txn_abort(list->txn);
    return ok;
}

bool store_list(struct store *store, const struct store_filter *filter,
                bool (*visit)(void *ctx, const struct store_entry *entry),
                void *ctx, struct err *err)
{
    struct list list = {
        .store = store,
        .filter = filter,
        .visit = visit,
        .ctx = ctx,
        .before = filter->before == 0 ? UINT64_MAX : filter->before,
    };

    CHECK(visit != NULL);
    while (!list.done) {
        if (!go_round(&list, err)) {
            return err_wrap(err, "list");
        }
    }
    return true;
}
