/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/record_codec.h"

/* Records that were written anew stand behind their place in the order of
 * arrival. So many of them are held at one time; where there are more, the
 * records are looked through once more for each such portion. */
enum { MOVED_MAX = 1 << 14 };

struct moved {
    uint64_t origin, seq;
};

struct walk {
    struct store *store;
    bool (*visit)(void *ctx, const struct store_entry *entry);
    void *ctx;
    bool ended;
    struct moved *moved; /* by origin, lowest first, once they are sorted */
    size_t n, cap, next;
    uint64_t after; /* all with a lower or that origin were held before */
    uint64_t below; /* those from here on do not fit in */
};

static int compare_origin(const void *a, const void *b)
{
    uint64_t x = ((const struct moved *)a)->origin;
    uint64_t y = ((const struct moved *)b)->origin;

    return x < y ? -1 : x > y ? 1 : 0;
}

static void sort(struct walk *walk)
{
    if (walk->n > 1) {
        qsort(walk->moved, walk->n, sizeof *walk->moved, compare_origin);
    }
}

/* Room for more: the upper half has to wait. */
static void cut(struct walk *walk)
{
    sort(walk);
    walk->n = MOVED_MAX;
    walk->below = walk->moved[walk->n].origin;
}

static void hold(struct walk *walk, uint64_t origin, uint64_t seq)
{
    if (origin <= walk->after || origin >= walk->below) {
        return;
    }
    if (walk->n == (size_t)2 * MOVED_MAX) {
        cut(walk);
        hold(walk, origin, seq);
        return;
    }
    if (walk->n == walk->cap) {
        walk->cap = walk->cap == 0 ? 256 : walk->cap * 2;
        walk->moved = mem_grow(walk->moved, walk->cap, sizeof *walk->moved);
    }
    walk->moved[walk->n++] = (struct moved){origin, seq};
}

/* --- every row of every generation --------------------------------------- */

typedef bool see_row(struct walk *walk, const struct record_place *place,
                     struct slice row, struct err *err);

static bool each_row(struct walk *walk, MDB_cursor *cursor, see_row *see,
                     struct err *err)
{
    struct record_place place = {walk->store->txn, mdb_cursor_dbi(cursor), 0};
    struct slice key = {NULL, 0}, row;
    enum store_found found = store_db_step(cursor, MDB_FIRST, &key, &row, err);

    while (found == STORE_FOUND && !walk->ended) {
        place.seq = key.len == 8 ? bytes_get_be64(key.data) : 0;
        if (!see(walk, &place, row, err)) {
            return false;
        }
        found = store_db_step(cursor, MDB_NEXT, &key, &row, err);
    }
    return found != STORE_FAILED;
}

static bool each_gen(struct walk *walk, see_row *see, struct err *err)
{
    struct store *store = walk->store;

    for (uint32_t n = store->state.first_gen;
         n <= store->state.last_gen && !walk->ended; n++) {
        MDB_cursor *cursor;
        bool ok;
        int rc =
            mdb_cursor_open(store->txn, store->db.rec[slot_of(n)], &cursor);

        if (rc != 0) {
            return store_db_fail(store, rc, "read records", err);
        }
        ok = each_row(walk, cursor, see, err);
        mdb_cursor_close(cursor);
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* --- those that were moved ------------------------------------------------ */

static bool see_moved(struct walk *walk, const struct record_place *place,
                      struct slice bytes, struct err *err)
{
    struct record_row row;

    if (!record_codec_decode(bytes, place->seq, &row)) {
        return err_set(err, ERR_DATA, "record %llu is damaged",
                       (unsigned long long)place->seq);
    }
    if (row.origin != place->seq) {
        hold(walk, row.origin, place->seq);
    }
    return true;
}

/* The next portion. */
static bool find_moved(struct walk *walk, struct err *err)
{
    if (walk->n > 0) {
        walk->after = walk->moved[walk->n - 1].origin;
    }
    walk->n = 0;
    walk->next = 0;
    walk->below = UINT64_MAX;
    if (!each_gen(walk, see_moved, err)) {
        return false;
    }
    sort(walk);
    return true;
}

/* True while one with a lower number than `seq` is left. */
static bool has_moved(const struct walk *walk, uint64_t seq)
{
    return walk->next < walk->n && walk->moved[walk->next].origin < seq;
}

static bool visit_moved(struct walk *walk, uint64_t seq, struct err *err)
{
    struct store_entry entry;

    while (has_moved(walk, seq) && !walk->ended) {
        if (!store_record_must_load(walk->store, walk->moved[walk->next++].seq,
                                    &entry, err)) {
            return false;
        }
        walk->ended = !walk->visit(walk->ctx, &entry);
        if (walk->next == walk->n && walk->below != UINT64_MAX &&
            !find_moved(walk, err)) {
            return false;
        }
    }
    return true;
}

/* --- all ------------------------------------------------------------------ */

static bool see_in_place(struct walk *walk, const struct record_place *place,
                         struct slice row, struct err *err)
{
    struct store_entry entry;

    if (!visit_moved(walk, place->seq, err)) {
        return false;
    }
    if (walk->ended) {
        return true;
    }
    if (!store_record_read(walk->store, place, row, &entry, err)) {
        return false;
    }
    if (entry.origin == entry.seq) {
        walk->ended = !walk->visit(walk->ctx, &entry);
    }
    return true;
}

bool store_walk(struct store *store,
                bool (*visit)(void *ctx, const struct store_entry *entry),
                void *ctx, struct err *err)
{
    struct walk walk = {.store = store, .visit = visit, .ctx = ctx};
    bool ok;

    CHECK(store->txn != NULL);
    ok = find_moved(&walk, err) && each_gen(&walk, see_in_place, err) &&
         visit_moved(&walk, UINT64_MAX, err);
    free(walk.moved);
    return ok || err_wrap(err, "read the records");
}

uint32_t store_incarnation(const struct store *store)
{
    return store->state.incarnation;
}

struct slice store_uuid(const struct store *store)
{
    return (struct slice){(const char *)store->uuid, sizeof store->uuid};
}

void store_forget_until(struct store *store, int64_t until_ms)
{
    CHECK(store->txn != NULL && !store->options.read_only);
    if (until_ms > store->state.forgotten_until_ms) {
        store->state.forgotten_until_ms = until_ms;
        store->journal.wrote = true;
    }
}

/* --- the mark of a load --------------------------------------------------- */

static struct store_key key_loading(void)
{
    return (struct store_key){.bytes = {'L'}, .len = 1};
}

/* Its payload is the name of the load. */
bool store_load_read(struct store *store, struct err *err)
{
    struct store_key key = key_loading();
    struct slice name;

    switch (store_db_get_sealed(store->txn, store->db.meta, key_slice(&key),
                                &name, err)) {
    case STORE_FAILED:
        return err_wrap(err, "meta row 'L'");
    case STORE_ABSENT:
        return true;
    case STORE_FOUND:
        break;
    }
    store->state.loading = true;
    store->open_load = mem_dup(name);
    return true;
}

bool store_load_may_open(const struct store *store, struct err *err)
{
    const struct store_options *options = &store->options;

    if (store->open_load == NULL || options->read_only ||
        (options->load != NULL &&
         strcmp(options->load, store->open_load) == 0)) {
        return true;
    }
    return err_set(err, ERR_DATA,
                   "a load into it did not end, and it may lack events that "
                   "were handled: run `onced load` of the same to its end, or "
                   "remove the store and begin anew; it was the load of %s",
                   store->open_load);
}

bool store_load_may_copy(const struct store *store, struct err *err)
{
    return !store->state.loading ||
           err_set(err, ERR_DATA,
                   "a load into it did not end: it is no whole store");
}

bool store_is_loading(const struct store *store)
{
    return store->state.loading;
}

bool store_set_loading(struct store *store, bool loading, struct err *err)
{
    struct store_key key = key_loading();

    CHECK(store->txn != NULL && store->options.load != NULL);
    store->state.loading = loading;
    return loading ? store_db_put_sealed(store, store->db.meta, key_slice(&key),
                                         slice_of(store->options.load), err)
                   : store_db_delete(store, store->db.meta, key_slice(&key),
                                     err) != STORE_FAILED;
}
