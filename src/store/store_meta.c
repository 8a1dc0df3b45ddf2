/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"

/* Keys of the `meta` table: a letter, then numbers, big-endian. */
static struct store_key key_plain(char letter)
{
    return (struct store_key){.bytes = {(uint8_t)letter}, .len = 1};
}

static struct store_key key_u16(char letter, uint16_t number)
{
    struct store_key key = {.bytes = {(uint8_t)letter}, .len = 3};

    bytes_put_be16(key.bytes + 1, number);
    return key;
}

static struct store_key key_u32(char letter, uint32_t number)
{
    struct store_key key = {.bytes = {(uint8_t)letter}, .len = 5};

    bytes_put_be32(key.bytes + 1, number);
    return key;
}

static struct store_key key_counts(uint32_t gen, uint16_t route)
{
    struct store_key key = key_u32('c', gen);

    bytes_put_be16(key.bytes + 5, route);
    key.len = 7;
    return key;
}

static bool put(struct store *store, struct store_key key, struct buf *payload,
                struct err *err)
{
    bool ok = store_db_put_sealed(store, store->db.meta, key_slice(&key),
                                  buf_slice(payload), err);

    buf_free(payload);
    return ok;
}

static enum store_found get(struct store *store, MDB_txn *txn,
                            struct store_key key, struct slice *payload,
                            struct err *err)
{
    enum store_found found =
        store_db_get_sealed(txn, store->db.meta, key_slice(&key), payload, err);

    if (found == STORE_FAILED) {
        (void)err_wrap(err, "meta row '%c'", key.bytes[0]);
    }
    return found;
}

static bool must_get(struct store *store, MDB_txn *txn, struct store_key key,
                     struct reader *out, struct err *err)
{
    struct slice payload = {NULL, 0};
    enum store_found found = get(store, txn, key, &payload, err);

    *out = (struct reader){payload, false};
    if (found == STORE_ABSENT) {
        return err_set(err, ERR_DATA, "meta row '%c' is missing", key.bytes[0]);
    }
    return found == STORE_FOUND;
}

static bool finish(const struct reader *reader, char letter, struct err *err)
{
    if (reader->bad || reader->rest.len != 0) {
        return err_set(err, ERR_DATA, "meta row '%c' has a wrong size", letter);
    }
    return true;
}

/* --- format ------------------------------------------------------------- */

static void begin_state(struct store *store)
{
    struct store_state *state = &store->state;
    int64_t now_ms = clock_wall_ms(store->options.clock);

    *state = (struct store_state){
        .next_seq = 1,
        .next_audit = 1,
        .incarnation = 1,
        .clock_mark_ms = now_ms,
        .expiry_mark_ms = now_ms,
        .forgotten_until_ms = INT64_MIN,
        .first_gen = 1,
        .last_gen = 1,
        .first_slice = 1,
        .last_slice = 1,
    };
    *gen_current(store) = (struct generation){
        .number = 1, .state = GEN_OPEN, .first_seq = 1, .opened_ms = now_ms};
    *slice_at(store, 1) =
        (struct pay_slice){.number = 1, .first_seq = 1, .opened_ms = now_ms};
}

static bool save_format(struct store *store, uint32_t format, struct err *err)
{
    struct buf row = BUF_INIT;

    buf_add_be32(&row, format);
    buf_add(&row, store->uuid, sizeof store->uuid);
    buf_add(&row, store->hash_key, sizeof store->hash_key);
    buf_add_be64(&row, (uint64_t)store->created_ms);
    return put(store, key_plain('F'), &row, err);
}

bool store_meta_raise_format(struct store *store, struct err *err)
{
    return save_format(store, STORE_FORMAT, err);
}

bool store_meta_write_format(struct store *store, struct err *err)
{
    begin_state(store);
    hash_random(store->uuid, sizeof store->uuid);
    hash_random(store->hash_key, sizeof store->hash_key);
    store->created_ms = store->state.clock_mark_ms;
    return save_format(store, STORE_FORMAT_FIRST, err) &&
           store_meta_save_gen(store, 1, err) &&
           store_meta_save_slice(store, 1, err) &&
           store_meta_save_state(store, err);
}

bool store_meta_read_format(struct store *store, struct err *err)
{
    struct reader row;
    uint32_t version;
    struct slice uuid, hash_key;

    if (!must_get(store, store->txn, key_plain('F'), &row, err)) {
        return false;
    }
    version = reader_be32(&row);
    if (!row.bad && version > STORE_FORMAT) {
        return err_set(err, ERR_DATA,
                       "the store has format %u, newer than the %u that this "
                       "version of onced reads",
                       version, (unsigned)STORE_FORMAT);
    }
    uuid = reader_take(&row, sizeof store->uuid);
    hash_key = reader_take(&row, sizeof store->hash_key);
    store->created_ms = (int64_t)reader_be64(&row);
    if (!finish(&row, 'F', err)) {
        return false;
    }
    store->format = version;
    memcpy(store->uuid, uuid.data, uuid.len);
    memcpy(store->hash_key, hash_key.data, hash_key.len);
    return true;
}

/* --- state, generations, slices ----------------------------------------- */

bool store_meta_save_state(struct store *store, struct err *err)
{
    const struct store_state *state = &store->state;
    struct buf row = BUF_INIT;

    CHECK(state->next_seq > 0 && state->first_gen <= state->last_gen);
    buf_add_be64(&row, state->next_seq);
    buf_add_be64(&row, state->next_audit);
    buf_add_be64(&row, state->commit);
    buf_add_be32(&row, state->incarnation);
    buf_add_be32(&row, state->epoch);
    buf_add_be64(&row, (uint64_t)state->clock_mark_ms);
    buf_add_be64(&row, (uint64_t)state->expiry_mark_ms);
    buf_add_be64(&row, (uint64_t)state->forgotten_until_ms);
    buf_add_be32(&row, state->first_gen);
    buf_add_be32(&row, state->last_gen);
    buf_add_be32(&row, state->first_slice);
    buf_add_be32(&row, state->last_slice);
    return put(store, key_plain('S'), &row, err);
}

static bool is_range(uint32_t first, uint32_t last)
{
    return first > 0 && first <= last && last - first < STORE_SLOTS;
}

static bool load_state(struct store *store, MDB_txn *txn,
                       struct store_state *state, struct err *err)
{
    struct reader row;

    if (!must_get(store, txn, key_plain('S'), &row, err)) {
        return false;
    }
    state->next_seq = reader_be64(&row);
    state->next_audit = reader_be64(&row);
    state->commit = reader_be64(&row);
    state->incarnation = reader_be32(&row);
    state->epoch = reader_be32(&row);
    state->clock_mark_ms = (int64_t)reader_be64(&row);
    state->expiry_mark_ms = (int64_t)reader_be64(&row);
    state->forgotten_until_ms = (int64_t)reader_be64(&row);
    state->first_gen = reader_be32(&row);
    state->last_gen = reader_be32(&row);
    state->first_slice = reader_be32(&row);
    state->last_slice = reader_be32(&row);
    if (!finish(&row, 'S', err)) {
        return false;
    }
    if (!is_range(state->first_gen, state->last_gen) ||
        !is_range(state->first_slice, state->last_slice) ||
        state->next_seq == 0) {
        return err_set(err, ERR_DATA, "the state row makes no sense");
    }
    return true;
}

bool store_meta_save_gen(struct store *store, uint32_t number, struct err *err)
{
    const struct generation *gen = gen_at(store, number);
    struct buf row = BUF_INIT;

    CHECK(gen->number == number);
    buf_add_byte(&row, (char)gen->state);
    buf_add_be64(&row, gen->first_seq);
    buf_add_be64(&row, gen->ids);
    buf_add_be64(&row, (uint64_t)gen->opened_ms);
    buf_add_be64(&row, (uint64_t)gen->closed_ms);
    buf_add_be32(&row, gen->bloom_blocks);
    return put(store, key_u32('g', number), &row, err);
}

static bool load_gen(struct store *store, MDB_txn *txn, uint32_t number,
                     struct generation *gen, struct err *err)
{
    struct reader row;
    uint8_t state;

    if (!must_get(store, txn, key_u32('g', number), &row, err)) {
        return false;
    }
    state = reader_byte(&row);
    gen->number = number;
    gen->first_seq = reader_be64(&row);
    gen->ids = reader_be64(&row);
    gen->opened_ms = (int64_t)reader_be64(&row);
    gen->closed_ms = (int64_t)reader_be64(&row);
    gen->bloom_blocks = reader_be32(&row);
    if (!finish(&row, 'g', err)) {
        return false;
    }
    if (state < GEN_OPEN || state > GEN_SEALED) {
        return err_set(err, ERR_DATA, "generation %u has no known state",
                       number);
    }
    gen->state = (enum gen_state)state;
    return true;
}

bool store_meta_save_slice(struct store *store, uint32_t number,
                           struct err *err)
{
    const struct pay_slice *slice = slice_at(store, number);
    struct buf row = BUF_INIT;

    CHECK(slice->number == number);
    buf_add_be64(&row, slice->first_seq);
    buf_add_be64(&row, (uint64_t)slice->opened_ms);
    buf_add_be64(&row, (uint64_t)slice->closed_ms);
    return put(store, key_u32('s', number), &row, err);
}

static bool load_slice(struct store *store, uint32_t number, struct err *err)
{
    struct pay_slice *slice = slice_at(store, number);
    struct reader row;

    if (!must_get(store, store->txn, key_u32('s', number), &row, err)) {
        return false;
    }
    slice->number = number;
    slice->first_seq = reader_be64(&row);
    slice->opened_ms = (int64_t)reader_be64(&row);
    slice->closed_ms = (int64_t)reader_be64(&row);
    return finish(&row, 's', err);
}

static bool drop(struct store *store, struct store_key key, struct err *err)
{
    return store_db_delete(store, store->db.meta, key_slice(&key), err) !=
           STORE_FAILED;
}

bool store_meta_drop_gen(struct store *store, uint32_t number, struct err *err)
{
    for (uint16_t i = 0; i < store->n_routes; i++) {
        if (!drop(store, key_counts(number, i), err)) {
            return false;
        }
    }
    return drop(store, key_u32('g', number), err);
}

bool store_meta_drop_slice(struct store *store, uint32_t number,
                           struct err *err)
{
    return drop(store, key_u32('s', number), err);
}

bool store_meta_read_ranges(struct store *store, MDB_txn *txn,
                            struct gen_range *out, struct err *err)
{
    struct store_state state = {0};
    struct generation gen;

    if (!load_state(store, txn, &state, err)) {
        return false;
    }
    out->first = state.first_gen;
    out->last = state.last_gen;
    for (uint32_t n = out->first; n <= out->last; n++) {
        if (!load_gen(store, txn, n, &gen, err)) {
            return false;
        }
        out->first_seq[slot_of(n)] = gen.first_seq;
    }
    return true;
}

/* --- counters ----------------------------------------------------------- */

bool store_meta_save_counts(struct store *store, uint32_t slot, uint16_t route,
                            struct err *err)
{
    const uint32_t *counts = store->memory[slot].counts[route];
    struct buf row = BUF_INIT;

    for (int i = RECORD_NONE + 1; i < RECORD_STATES; i++) {
        buf_add_be32(&row, counts[i]);
    }
    return put(store, key_counts(store->state.gens[slot].number, route), &row,
               err);
}

static bool load_counts(struct store *store, uint32_t gen, uint16_t route,
                        struct err *err)
{
    uint32_t *counts = store->memory[slot_of(gen)].counts[route];
    struct slice payload;
    struct reader row;

    switch (get(store, store->txn, key_counts(gen, route), &payload, err)) {
    case STORE_ABSENT:
        return true;
    case STORE_FAILED:
        return false;
    case STORE_FOUND:
        break;
    }
    row = (struct reader){payload, false};
    for (int i = RECORD_NONE + 1; i < RECORD_STATES; i++) {
        counts[i] = reader_be32(&row);
    }
    return finish(&row, 'c', err);
}

/* --- routes and names --------------------------------------------------- */

static bool load_names(struct store *store, char letter, char **names,
                       uint16_t *n, struct err *err)
{
    enum store_found found = STORE_FOUND;
    struct slice name;

    while (*n < STORE_NAMES_MAX && found == STORE_FOUND) {
        found = get(store, store->txn, key_u16(letter, *n), &name, err);
        if (found == STORE_FOUND) {
            names[(*n)++] = mem_dup(name);
        }
    }
    return found != STORE_FAILED;
}

bool store_meta_save_name(struct store *store, char letter, uint16_t number,
                          struct slice name, struct err *err)
{
    struct store_key key = key_u16(letter, number);

    return store_db_put_sealed(store, store->db.meta, key_slice(&key), name,
                               err);
}

/* The first byte of a route's row. */
enum { ROUTE_PAUSED = 1, ROUTE_UNREACHABLE = 2 };

bool store_meta_save_route(struct store *store, uint16_t route, struct err *err)
{
    const struct route_values *now = &store->routes[route].now;
    struct buf row = BUF_INIT;

    buf_add_byte(&row, (char)((now->paused ? ROUTE_PAUSED : 0) |
                              (now->unreachable ? ROUTE_UNREACHABLE : 0)));
    buf_add_be64(&row, now->dead_bytes);
    buf_add_be32(&row, now->dead_holders);
    return put(store, key_u16('v', route), &row, err);
}

static bool load_route(struct store *store, uint16_t route, struct err *err)
{
    struct route_values *now = &store->routes[route].now;
    struct slice payload;
    struct reader row;
    uint8_t flags;

    switch (get(store, store->txn, key_u16('v', route), &payload, err)) {
    case STORE_ABSENT:
        return true;
    case STORE_FAILED:
        return false;
    case STORE_FOUND:
        break;
    }
    row = (struct reader){payload, false};
    flags = (uint8_t)reader_byte(&row);
    now->paused = (flags & ROUTE_PAUSED) != 0;
    now->unreachable = (flags & ROUTE_UNREACHABLE) != 0;
    now->dead_bytes = reader_be64(&row);
    now->dead_holders = reader_be32(&row);
    return finish(&row, 'v', err);
}

static bool load_routes(struct store *store, struct err *err)
{
    char *names[STORE_NAMES_MAX] = {NULL};
    bool ok = load_names(store, 'r', names, &store->n_routes, err);

    for (uint16_t i = 0; i < store->n_routes; i++) {
        store->routes[i].name = names[i];
    }
    for (uint16_t i = 0; ok && i < store->n_routes; i++) {
        ok = load_route(store, i, err) &&
             store_index_refresh_due(store, i, true, err);
    }
    return ok;
}

static bool load_gen_counts(struct store *store, uint32_t gen, struct err *err)
{
    for (uint16_t i = 0; i < store->n_routes; i++) {
        if (!load_counts(store, gen, i, err)) {
            return false;
        }
    }
    return true;
}

bool store_meta_load(struct store *store, struct err *err)
{
    struct store_state *state = &store->state;

    if (!load_state(store, store->txn, state, err) ||
        !load_names(store, 'n', store->namespaces, &store->n_namespaces, err) ||
        !load_names(store, 't', store->streams, &store->n_streams, err) ||
        !load_routes(store, err)) {
        return false;
    }
    for (uint32_t n = state->first_gen; n <= state->last_gen; n++) {
        if (!load_gen(store, store->txn, n, gen_at(store, n), err)) {
            return false;
        }
    }
    store_gen_follow(store);
    for (uint32_t n = state->first_gen; n <= state->last_gen; n++) {
        if (!load_gen_counts(store, n, err)) {
            return false;
        }
    }
    for (uint32_t n = state->first_slice; n <= state->last_slice; n++) {
        if (!load_slice(store, n, err)) {
            return false;
        }
    }
    return true;
}
