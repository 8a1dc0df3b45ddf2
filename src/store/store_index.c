/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <string.h>

#include "base/check.h"

/* A signed time so that it sorts as bytes. */
#define SIGN_BIT (UINT64_C(1) << 63)

/* The states of which the index has entries. */
static const enum record_state open_states[] = {RECORD_PENDING, RECORD_RUNNING,
                                                RECORD_UNCERTAIN};
enum { OPEN_STATES = sizeof open_states / sizeof open_states[0] };

struct store_key store_index_key(uint16_t route, enum record_state state,
                                 int64_t due_ms, uint64_t seq)
{
    struct store_key key = {.len = STORE_DUE_KEY_SIZE};

    bytes_put_be16(key.bytes, route);
    key.bytes[2] = (uint8_t)state;
    bytes_put_be64(key.bytes + 3, (uint64_t)due_ms ^ SIGN_BIT);
    bytes_put_be64(key.bytes + 11, seq);
    return key;
}

enum record_state store_index_state_of(struct slice key)
{
    return (enum record_state)key.data[2];
}

int64_t store_index_due_of(struct slice key)
{
    return (int64_t)(bytes_get_be64(key.data + 3) ^ SIGN_BIT);
}

uint64_t store_index_seq_of(struct slice key)
{
    return bytes_get_be64(key.data + 11);
}

/* --- due ---------------------------------------------------------------- */

static bool remove_due(struct store *store, const struct record *record,
                       uint64_t seq, struct err *err)
{
    struct route_values *route = store_journal_route(store, record->route);
    struct first_due *first = &route->first_due[record->state];
    struct store_key key =
        store_index_key(record->route, record->state, record->due_ms, seq);

    CHECK(!record_is_settled(record));
    if (record->due_ms <= first->ms) {
        first->stale = true;
    }
    return store_db_remove(store, store->db.due, key_slice(&key),
                           "the due index", err);
}

static bool add_due(struct store *store, const struct record *record,
                    uint64_t seq, struct err *err)
{
    struct route_values *route = store_journal_route(store, record->route);
    struct first_due *first = &route->first_due[record->state];
    struct store_key key =
        store_index_key(record->route, record->state, record->due_ms, seq);

    CHECK(!record_is_settled(record));
    if (record->due_ms < first->ms) {
        first->ms = record->due_ms;
    }
    return store_db_put_sealed(store, store->db.due, key_slice(&key),
                               (struct slice){"", 0}, err);
}

static bool update_due(struct store *store, const struct store_entry *entry,
                       uint64_t old_seq, struct err *err)
{
    const struct record *old = &entry->stored, *new = &entry->record;
    bool had = old_seq != 0 && !record_is_settled(old);
    bool has = !record_is_settled(new);

    if (had && has && old->route == new->route &&old_seq == entry->seq &&
        old->due_ms == new->due_ms && old->state == new->state) {
        return true;
    }
    return (!had || remove_due(store, old, old_seq, err)) &&
           (!has || add_due(store, new, entry->seq, err));
}

/* A place in the index of one route and state; the next one behind it. */
struct due_place {
    uint16_t route;
    enum record_state state;
    int64_t due_ms;
    uint64_t seq;
};

static enum store_found next_place(struct store *store, struct due_place *place,
                                   struct err *err)
{
    struct store_key from = store_index_key(place->route, place->state,
                                            place->due_ms, place->seq + 1);
    struct slice key = key_slice(&from), value;
    enum store_found found;

    CHECK(place->seq < UINT64_MAX);
    found = store_db_seek(store->txn, store->db.due, &key, &value, err);
    if (found != STORE_FOUND) {
        return found;
    }
    if (key.len != STORE_DUE_KEY_SIZE ||
        bytes_get_be16(key.data) != place->route ||
        store_index_state_of(key) != place->state) {
        return STORE_ABSENT;
    }
    place->due_ms = store_index_due_of(key);
    place->seq = store_index_seq_of(key);
    return STORE_FOUND;
}

void store_index_start_route(struct route_values *route)
{
    for (size_t i = 0; i < OPEN_STATES; i++) {
        route->first_due[open_states[i]] =
            (struct first_due){RECORD_NEVER, false};
    }
}

static bool refresh(struct store *store, uint16_t route,
                    enum record_state state, struct err *err)
{
    struct due_place place = {route, state, INT64_MIN, 0};
    enum store_found found = next_place(store, &place, err);

    if (found == STORE_FAILED) {
        return err_wrap(err, "due index");
    }
    store->routes[route].now.first_due[state] = (struct first_due){
        found == STORE_FOUND ? place.due_ms : RECORD_NEVER, false};
    return true;
}

bool store_index_refresh_due(struct store *store, uint16_t route, bool all,
                             struct err *err)
{
    for (size_t i = 0; i < OPEN_STATES; i++) {
        enum record_state state = open_states[i];

        if ((all || store->routes[route].now.first_due[state].stale) &&
            !refresh(store, route, state, err)) {
            return false;
        }
    }
    return true;
}

/* Inside a transaction that removed the first one it is looked up again;
 * one that fails to read says so at the next call that can. */
int64_t store_first_due(struct store *store, uint16_t route)
{
    int64_t ms = RECORD_NEVER;

    CHECK(route < store->n_routes);
    if (!store_index_refresh_due(store, route, false, NULL)) {
        return INT64_MIN;
    }
    for (size_t i = 0; i < OPEN_STATES; i++) {
        int64_t first_ms =
            store->routes[route].now.first_due[open_states[i]].ms;

        ms = first_ms < ms ? first_ms : ms;
    }
    return ms;
}

static enum store_found load_due(struct store *store,
                                 const struct due_place *place,
                                 struct store_entry *entry, struct err *err)
{
    if (!store_record_must_load(store, place->seq, entry, err)) {
        return STORE_FAILED;
    }
    if (entry->record.state != place->state ||
        entry->record.due_ms != place->due_ms ||
        entry->record.route != place->route) {
        (void)err_set(err, ERR_DATA, "due index and record %llu disagree",
                      (unsigned long long)entry->seq);
        return STORE_FAILED;
    }
    return STORE_FOUND;
}

static bool is_earlier(const struct due_place *a, const struct due_place *b)
{
    return a->due_ms < b->due_ms || (a->due_ms == b->due_ms && a->seq < b->seq);
}

/* The earliest of the states that has one at or before `until_ms`. Most have
 * none, and memory knows it. */
static enum store_found
first_of_states(struct store *store, const struct due_place *from,
                int64_t until_ms, struct due_place *first, struct err *err)
{
    bool any = false;

    if (!store_index_refresh_due(store, from->route, false, err)) {
        return STORE_FAILED;
    }
    for (size_t i = 0; i < OPEN_STATES; i++) {
        struct due_place place = *from;
        enum store_found found;

        place.state = open_states[i];
        if (store->routes[from->route].now.first_due[place.state].ms >
            until_ms) {
            continue;
        }
        found = next_place(store, &place, err);
        if (found == STORE_FAILED) {
            return found;
        }
        if (found == STORE_FOUND && place.due_ms <= until_ms &&
            (!any || is_earlier(&place, first))) {
            *first = place;
            any = true;
        }
    }
    return any ? STORE_FOUND : STORE_ABSENT;
}

enum store_found store_next_due(struct store *store, uint16_t route,
                                int64_t until_ms, int64_t *due_ms,
                                uint64_t *seq, struct store_entry *entry,
                                struct err *err)
{
    const struct due_place from = {route, RECORD_NONE, *due_ms, *seq};
    struct due_place first = from;
    enum store_found found;

    CHECK(store->txn != NULL);
    CHECK(route < store->n_routes);
    found = first_of_states(store, &from, until_ms, &first, err);
    if (found != STORE_FOUND) {
        return found;
    }
    *due_ms = first.due_ms;
    *seq = first.seq;
    return load_due(store, &first, entry, err);
}

enum store_found store_next_running(struct store *store, uint16_t route,
                                    int64_t *due_ms, uint64_t *seq,
                                    struct store_entry *entry, struct err *err)
{
    struct due_place place = {route, RECORD_RUNNING, *due_ms, *seq};
    enum store_found found;

    CHECK(store->txn != NULL);
    found = next_place(store, &place, err);
    if (found != STORE_FOUND) {
        return found;
    }
    *due_ms = place.due_ms;
    *seq = place.seq;
    return load_due(store, &place, entry, err);
}

enum store_found store_next_unsettled(struct store *store, uint16_t route,
                                      enum record_state *state, int64_t *due_ms,
                                      uint64_t *seq, struct store_entry *entry,
                                      struct err *err)
{
    struct due_place place = {route, *state, *due_ms, *seq};

    CHECK(store->txn != NULL);
    CHECK(route < store->n_routes);
    for (size_t i = 0; i < OPEN_STATES; i++) {
        enum store_found found;

        if (open_states[i] < *state) {
            continue;
        }
        if (open_states[i] > *state) {
            place = (struct due_place){route, open_states[i], INT64_MIN, 0};
        }
        found = next_place(store, &place, err);
        if (found == STORE_FAILED) {
            return found;
        }
        if (found == STORE_FOUND) {
            *state = place.state;
            *due_ms = place.due_ms;
            *seq = place.seq;
            return load_due(store, &place, entry, err);
        }
    }
    return STORE_ABSENT;
}

/* --- order -------------------------------------------------------------- */

static bool update_order(struct store *store, const struct store_entry *entry,
                         uint64_t old_seq, struct err *err)
{
    const struct record *old = &entry->stored, *new = &entry->record;
    bool had = old_seq != 0 && (old->flags & RECORD_ORDERED) != 0;
    bool has = (new->flags &RECORD_ORDERED) != 0;
    bool same_key = had && has && old->order_key == new->order_key;
    struct store_key key = key_u64_u64(old->order_key, entry->origin);
    struct store_key seq = key_u64(entry->seq);

    if (same_key && old_seq == entry->seq) {
        return true;
    }
    if (had && !same_key &&
        !store_db_remove(store, store->db.order, key_slice(&key),
                         "the order index", err)) {
        return false;
    }
    key = key_u64_u64(new->order_key, entry->origin);
    return !has || store_db_put_sealed(store, store->db.order, key_slice(&key),
                                       key_slice(&seq), err);
}

enum store_found store_order_first(struct store *store, uint64_t order_key,
                                   struct store_entry *entry, struct err *err)
{
    struct store_key from = key_u64_u64(order_key, 0);
    struct slice key = key_slice(&from), value, payload;
    enum store_found found;

    CHECK(store->txn != NULL);
    found = store_db_seek(store->txn, store->db.order, &key, &value, err);
    if (found != STORE_FOUND) {
        return found;
    }
    if (key.len != 16 || bytes_get_be64(key.data) != order_key) {
        return STORE_ABSENT;
    }
    if (!store_db_unseal(key, value, &payload) || payload.len != 8) {
        (void)err_set(err, ERR_DATA, "a damaged entry in the order index");
        return STORE_FAILED;
    }
    if (!store_record_must_load(store, bytes_get_be64(payload.data), entry,
                                err)) {
        return STORE_FAILED;
    }
    if ((entry->record.flags & RECORD_ORDERED) == 0 ||
        entry->record.order_key != order_key) {
        (void)err_set(err, ERR_DATA, "order index and record %llu disagree",
                      (unsigned long long)entry->seq);
        return STORE_FAILED;
    }
    return STORE_FOUND;
}

static bool is_dead_holder(const struct record *record)
{
    return record->state == RECORD_DEAD &&
           (record->flags & RECORD_ORDERED) != 0;
}

static void count_dead_holders(struct store *store,
                               const struct store_entry *entry,
                               uint64_t old_seq)
{
    const struct record *old = &entry->stored, *new = &entry->record;

    if (old_seq != 0 && is_dead_holder(old)) {
        struct route_values *route = store_journal_route(store, old->route);

        CHECK(route->dead_holders > 0);
        route->dead_holders--;
    }
    if (is_dead_holder(new)) {
        store_journal_route(store, new->route)->dead_holders++;
    }
}

bool store_index_update(struct store *store, const struct store_entry *entry,
                        uint64_t old_seq, struct err *err)
{
    CHECK(old_seq <= entry->seq);
    CHECK(old_seq == 0 || entry->stored.state != RECORD_NONE);
    count_dead_holders(store, entry, old_seq);
    return update_due(store, entry, old_seq, err) &&
           update_order(store, entry, old_seq, err);
}
