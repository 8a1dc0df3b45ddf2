/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <string.h>

#include "base/check.h"
#include "base/mark.h"

/* Cutting rule: docs/format.md, "Envelopes". */
enum { SLICES_PER_KEEP = 8, SLICES_PER_STORE = 32, SLICES_MAX = 60 };
enum { SLICE_MIN_BYTES = 1 << 20 };

static MDB_dbi current_table(const struct store *store)
{
    return store->db.pay[slot_of(store->state.last_slice)];
}

/* The slice that was the newest when the event came. Its envelope stands
 * there or, put or carried later, in a newer one. */
static uint32_t home_of(const struct store *store, uint64_t origin)
{
    const struct store_state *state = &store->state;
    uint32_t number = state->last_slice;

    while (number > state->first_slice &&
           origin < state->slices[slot_of(number)].first_seq) {
        number--;
    }
    return number;
}

enum store_found store_pay_find(struct store *store, uint64_t origin,
                                struct slice *flat, struct err *err)
{
    struct store_key key = key_u64(origin);
    uint32_t home = home_of(store, origin);
    enum store_found found = STORE_ABSENT;

    for (uint32_t n = store->state.last_slice;
         n >= home && found == STORE_ABSENT; n--) {
        found = store_db_get_sealed(store->txn, store->db.pay[slot_of(n)],
                                    key_slice(&key), flat, err);
    }
    if (found == STORE_FAILED) {
        (void)err_wrap(err, "envelope of event %llu",
                       (unsigned long long)origin);
    }
    return found;
}

bool store_pay_erase(struct store *store, uint64_t origin, struct err *err)
{
    struct store_key key = key_u64(origin);

    for (uint32_t n = home_of(store, origin); n <= store->state.last_slice;
         n++) {
        if (store_db_delete(store, store->db.pay[slot_of(n)], key_slice(&key),
                            err) == STORE_FAILED) {
            return false;
        }
    }
    return true;
}

/* One slice has it at most: an older copy goes. */
bool store_pay_put(struct store *store, uint64_t origin, struct slice flat,
                   struct err *err)
{
    struct store_key key = key_u64(origin);

    if (home_of(store, origin) != store->state.last_slice &&
        !store_pay_erase(store, origin, err)) {
        return false;
    }
    return store_db_put_sealed(store, current_table(store), key_slice(&key),
                               flat, err) ||
           err_wrap(err, "envelope");
}

bool store_put_envelope(struct store *store, const struct store_entry *entry,
                        struct slice flat, struct err *err)
{
    CHECK(store->txn != NULL && entry->seq != 0);
    return entry->stored.state == RECORD_DEAD
               ? store_dlq_put_envelope(store, entry, flat, err)
               : store_pay_put(store, entry->origin, flat, err);
}

enum store_found store_get_envelope(struct store *store,
                                    const struct store_entry *entry,
                                    struct buf *out, struct err *err)
{
    struct store_key key = key_u64(entry->origin);
    struct slice flat;
    enum store_found found;

    CHECK(store->txn != NULL && entry->seq != 0);
    if (store_record_is_older(
            store, &entry->stored,
            store->routes[entry->stored.route].retention.envelope_ms)) {
        return STORE_ABSENT;
    }
    found = entry->stored.state == RECORD_DEAD
                ? store_db_get_sealed(store->txn, store->db.dlqpay,
                                      key_slice(&key), &flat, err)
                : store_pay_find(store, entry->origin, &flat, err);
    if (found == STORE_FOUND) {
        buf_add_slice(out, flat);
    }
    return found;
}

/* --- dropping slices ---------------------------------------------------- */

/* Takes an envelope out of an older slice into the newest one. */
static bool bring_along(struct store *store, MDB_dbi from, uint64_t origin,
                        struct err *err)
{
    struct store_key key = key_u64(origin);
    struct buf copy = BUF_INIT;
    struct slice flat;
    bool ok;

    CHECK(from != current_table(store));
    switch (
        store_db_get_sealed(store->txn, from, key_slice(&key), &flat, err)) {
    case STORE_ABSENT:
        return true;
    case STORE_FAILED:
        return err_wrap(err, "envelope of event %llu",
                        (unsigned long long)origin);
    case STORE_FOUND:
        break;
    }
    MARK(envelope_moved);
    buf_add_slice(&copy, flat);
    ok = store_pay_put(store, origin, buf_slice(&copy), err);
    buf_free(&copy);
    return ok;
}

static bool rescue(struct store *store, uint64_t origin, struct err *err)
{
    return bring_along(store, store->db.pay[slot_of(store->state.first_slice)],
                       origin, err);
}

/* An event that settles late keeps its envelope for as long as any other;
 * but where room is short, settling must not ask for more of it. */
static bool renew(struct store *store, uint64_t origin, struct err *err)
{
    if (store_space_is_short(store)) {
        return true;
    }
    for (uint32_t n = home_of(store, origin); n < store->state.last_slice;
         n++) {
        if (!bring_along(store, store->db.pay[slot_of(n)], origin, err)) {
            return false;
        }
    }
    return true;
}

/* While the oldest slice is going, the walk over `due` may miss an event
 * that changes its place there: it is rescued here. */
bool store_pay_follow(struct store *store, const struct store_entry *entry,
                      struct err *err)
{
    const struct record *record = &entry->record;

    if ((record->flags & RECORD_ERASED) != 0) {
        return (entry->stored.flags & RECORD_ERASED) != 0 ||
               store_pay_erase(store, entry->origin, err);
    }
    if (record_is_settled(record)) {
        return record_is_settled(&entry->stored) ||
               renew(store, entry->origin, err);
    }
    return !store->state.work.slice_going || rescue(store, entry->origin, err);
}

/* The longest that any configured route keeps envelopes. */
static int64_t longest_keep_ms(const struct store *store)
{
    int64_t limit_ms = store->options.retention_ms, longest_ms = -1;

    for (uint16_t i = 0; i < store->n_routes; i++) {
        int64_t keep_ms = store->routes[i].retention.envelope_ms;

        if (store->routes[i].configured && keep_ms > longest_ms) {
            longest_ms = keep_ms;
        }
    }
    return longest_ms < 0 || longest_ms > limit_ms ? limit_ms : longest_ms;
}

static bool should_cut(struct store *store)
{
    const struct pay_slice *slice = slice_at(store, store->state.last_slice);
    uint64_t bytes = store_space_of(store->txn, current_table(store));
    uint64_t limit = store->options.max_bytes / SLICES_PER_STORE;
    int64_t age_ms = store_clock_expiry_ms(store) - slice->opened_ms;

    if (bytes == 0 ||
        store->state.last_slice - store->state.first_slice >= SLICES_MAX) {
        return false;
    }
    limit = limit < SLICE_MIN_BYTES ? SLICE_MIN_BYTES : limit;
    return bytes >= limit || age_ms >= longest_keep_ms(store) / SLICES_PER_KEEP;
}

static bool cut(struct store *store, struct err *err)
{
    uint32_t number = ++store->state.last_slice;
    int64_t now_ms = store_now_ms(store);

    CHECK(number - store->state.first_slice < STORE_SLOTS);
    slice_at(store, number - 1)->closed_ms = now_ms;
    *slice_at(store, number) = (struct pay_slice){
        .number = number,
        .first_seq = store->state.next_seq,
        .opened_ms = now_ms,
    };
    return store_meta_save_slice(store, number - 1, err) &&
           store_meta_save_slice(store, number, err);
}

static bool should_drop(struct store *store)
{
    const struct pay_slice *oldest = slice_at(store, store->state.first_slice);

    return store->state.first_slice < store->state.last_slice &&
           store_clock_expiry_ms(store) - oldest->closed_ms >=
               longest_keep_ms(store);
}

static bool drop(struct store *store, struct err *err)
{
    uint32_t number = store->state.first_slice++;

    CHECK(number < store->state.last_slice);
    store->state.work.slice_going = false;
    if (!store_db_empty(store, store->db.pay[slot_of(number)], err)) {
        return false;
    }
    MARK(slice_dropped);
    return store_meta_drop_slice(store, number, err);
}

/* Rescues the event of the due entry at or behind the mark, moves the mark
 * behind it. ABSENT at the end of the index. */
static enum store_found rescue_next(struct store *store, struct err *err)
{
    uint8_t *mark = store->state.work.slice_due;
    struct slice key = {(const char *)mark, sizeof store->state.work.slice_due};
    struct slice value;
    struct store_entry entry;
    struct store_key next;
    enum store_found found =
        store_db_seek(store->txn, store->db.due, &key, &value, err);

    if (found != STORE_FOUND) {
        return found;
    }
    next =
        store_index_key(bytes_get_be16(key.data), store_index_state_of(key),
                        store_index_due_of(key), store_index_seq_of(key) + 1);
    memcpy(mark, next.bytes, sizeof store->state.work.slice_due);
    return store_record_must_load(store, store_index_seq_of(key), &entry,
                                  err) &&
                   rescue(store, entry.origin, err)
               ? STORE_FOUND
               : STORE_FAILED;
}

static bool go_on_dropping(struct store *store, struct err *err)
{
    enum store_found found = STORE_FOUND;

    for (uint32_t i = store_gen_step_items(store);
         i > 0 && found == STORE_FOUND; i--) {
        found = rescue_next(store, err);
    }
    if (found == STORE_ABSENT) {
        return drop(store, err);
    }
    return found == STORE_FOUND;
}

bool store_pay_step(struct store *store, bool *more, struct err *err)
{
    struct store_work *work = &store->state.work;

    if (work->slice_going) {
        *more = true;
        return go_on_dropping(store, err) || err_wrap(err, "drop envelopes");
    }
    if (should_cut(store)) {
        return cut(store, err);
    }
    if (should_drop(store)) {
        work->slice_going = true;
        memset(work->slice_due, 0, sizeof work->slice_due);
        *more = true;
    }
    return true;
}
