/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <string.h>

#include "base/check.h"

/* What a dead letter counts beside its envelope and texts. */
enum { ROW_COST = 256 };

uint64_t store_dlq_cost(const struct store_dead *row)
{
    return ROW_COST + row->envelope_bytes + row->code.len + row->text.len;
}

bool store_dlq_decode(struct slice key, struct slice value,
                      struct store_dead *out)
{
    struct reader reader = {{NULL, 0}, false};

    if (!store_db_unseal(key, value, &reader.rest)) {
        return false;
    }
    out->origin = reader_be64(&reader);
    out->envelope_bytes = reader_be64(&reader);
    out->code = reader_take(&reader, reader_byte(&reader));
    out->text = reader_take(&reader, reader_byte(&reader));
    return !reader.bad && reader.rest.len == 0 &&
           out->code.len <= STORE_CODE_MAX;
}

static enum store_found get_row(struct store *store, MDB_txn *txn,
                                struct store_key key, struct store_dead *out,
                                struct err *err)
{
    struct slice value;
    enum store_found found =
        store_db_get(txn, store->db.dlq, key_slice(&key), &value, err);

    if (found == STORE_FOUND &&
        !store_dlq_decode(key_slice(&key), value, out)) {
        (void)err_set(err, ERR_DATA, "a damaged dead letter");
        return STORE_FAILED;
    }
    return found;
}

static bool must_get_row(struct store *store, MDB_txn *txn,
                         struct store_key key, struct store_dead *out,
                         struct err *err)
{
    switch (get_row(store, txn, key, out, err)) {
    case STORE_FOUND:
        return true;
    case STORE_ABSENT:
        return err_set(err, ERR_DATA, "a dead letter lacks its row");
    case STORE_FAILED:
        return false;
    }
    UNREACHABLE("a value outside of the enum");
}

static bool put_row(struct store *store, const struct store_entry *entry,
                    uint64_t envelope_bytes, struct err *err)
{
    struct store_dead row = {entry->origin, envelope_bytes,
                             slice_of(entry->code), slice_of(entry->text)};
    struct store_key key = key_u16_u64(entry->record.route, entry->seq);
    struct buf bytes = BUF_INIT;
    bool ok;

    CHECK(entry->record.state == RECORD_DEAD);
    CHECK(row.code.len <= STORE_CODE_MAX);
    CHECK(row.text.len <= STORE_TEXT_MAX);
    buf_add_be64(&bytes, row.origin);
    buf_add_be64(&bytes, row.envelope_bytes);
    buf_add_byte(&bytes, (char)row.code.len);
    buf_add_slice(&bytes, row.code);
    buf_add_byte(&bytes, (char)row.text.len);
    buf_add_slice(&bytes, row.text);
    ok = store_db_put_sealed(store, store->db.dlq, key_slice(&key),
                             buf_slice(&bytes), err);
    buf_free(&bytes);
    store_journal_route(store, entry->record.route)->dead_bytes +=
        store_dlq_cost(&row);
    return ok;
}

/* Also takes its cost off the route; *bytes is the size of its envelope. */
static bool take_row(struct store *store, uint16_t route, uint64_t seq,
                     uint64_t *bytes, struct err *err)
{
    struct store_key key = key_u16_u64(route, seq);
    struct route_values *values = store_journal_route(store, route);
    struct store_dead row;

    if (!must_get_row(store, store->txn, key, &row, err)) {
        return false;
    }
    if (values->dead_bytes < store_dlq_cost(&row)) {
        return err_set(err, ERR_DATA, "dead letters of route %u miscounted",
                       route);
    }
    values->dead_bytes -= store_dlq_cost(&row);
    *bytes = row.envelope_bytes;
    return store_db_remove(store, store->db.dlq, key_slice(&key),
                           "the dead-letter table", err);
}

/* --- envelopes, in and out ---------------------------------------------- */

static bool bury_envelope(struct store *store, const struct store_entry *entry,
                          uint64_t *bytes, struct err *err)
{
    struct store_key key = key_u64(entry->origin);
    struct buf copy = BUF_INIT;
    struct slice flat;
    bool ok;

    *bytes = 0;
    switch (store_pay_find(store, entry->origin, &flat, err)) {
    case STORE_ABSENT:
        return true;
    case STORE_FAILED:
        return false;
    case STORE_FOUND:
        break;
    }
    *bytes = flat.len;
    buf_add_slice(&copy, flat);
    ok = store_db_put_sealed(store, store->db.dlqpay, key_slice(&key),
                             buf_slice(&copy), err) &&
         store_pay_erase(store, entry->origin, err);
    buf_free(&copy);
    return ok;
}

static bool unbury_envelope(struct store *store,
                            const struct store_entry *entry, struct err *err)
{
    struct store_key key = key_u64(entry->origin);
    struct buf copy = BUF_INIT;
    struct slice flat;
    bool ok;

    switch (store_db_get_sealed(store->txn, store->db.dlqpay, key_slice(&key),
                                &flat, err)) {
    case STORE_ABSENT:
        return true;
    case STORE_FAILED:
        return err_wrap(err, "envelope of a dead letter");
    case STORE_FOUND:
        break;
    }
    buf_add_slice(&copy, flat);
    ok = ((entry->record.flags & RECORD_ERASED) != 0 ||
          store_pay_put(store, entry->origin, buf_slice(&copy), err)) &&
         store_db_remove(store, store->db.dlqpay, key_slice(&key),
                         "the dead-letter table", err);
    buf_free(&copy);
    return ok;
}

static bool erase_envelope(struct store *store, const struct store_entry *entry,
                           uint64_t *bytes, struct err *err)
{
    struct store_key key = key_u64(entry->origin);

    *bytes = 0;
    return store_db_delete(store, store->db.dlqpay, key_slice(&key), err) !=
           STORE_FAILED;
}

bool store_dlq_put_envelope(struct store *store,
                            const struct store_entry *entry, struct slice flat,
                            struct err *err)
{
    struct store_key key = key_u64(entry->origin);
    uint64_t bytes;

    return take_row(store, entry->stored.route, entry->seq, &bytes, err) &&
           store_db_put_sealed(store, store->db.dlqpay, key_slice(&key), flat,
                               err) &&
           put_row(store, entry, flat.len, err);
}

/* --- following the record ----------------------------------------------- */

bool store_dlq_update(struct store *store, struct store_entry *entry,
                      uint64_t old_seq, struct err *err)
{
    bool was = old_seq != 0 && entry->stored.state == RECORD_DEAD;
    bool is = entry->record.state == RECORD_DEAD;
    uint64_t bytes = 0;

    if (was && !take_row(store, entry->stored.route, old_seq, &bytes, err)) {
        return false;
    }
    if (was && !is && !unbury_envelope(store, entry, err)) {
        return false;
    }
    if (!is) {
        entry->code[0] = '\0';
        entry->text[0] = '\0';
        return true;
    }
    if (!was && !bury_envelope(store, entry, &bytes, err)) {
        return false;
    }
    if ((entry->record.flags & RECORD_ERASED) != 0 &&
        !erase_envelope(store, entry, &bytes, err)) {
        return false;
    }
    return put_row(store, entry, bytes, err);
}

bool store_dlq_load(struct store *store, MDB_txn *txn,
                    struct store_entry *entry, struct err *err)
{
    struct store_key key = key_u16_u64(entry->record.route, entry->seq);
    struct store_dead row;

    if (!must_get_row(store, txn, key, &row, err)) {
        return err_wrap(err, "record %llu", (unsigned long long)entry->seq);
    }
    if (row.origin != entry->origin) {
        return err_set(err, ERR_DATA, "dead letter and record %llu disagree",
                       (unsigned long long)entry->seq);
    }
    memcpy(entry->code, row.code.data, row.code.len);
    entry->code[row.code.len] = '\0';
    memcpy(entry->text, row.text.data, row.text.len);
    entry->text[row.text.len] = '\0';
    return true;
}

uint64_t store_dead_bytes(const struct store *store, uint16_t route)
{
    CHECK(route < store->n_routes);
    return store->routes[route].now.dead_bytes;
}

uint32_t store_dead_holders(const struct store *store, uint16_t route)
{
    CHECK(route < store->n_routes);
    return store->routes[route].now.dead_holders;
}

/* The oldest dead letter of the route that blocks no ordering key. */
static enum store_found find_droppable(struct store *store, uint16_t route,
                                       uint64_t keep_seq,
                                       struct store_entry *entry,
                                       struct err *err)
{
    uint64_t seq = 0;

    for (;;) {
        struct store_key from = key_u16_u64(route, seq + 1);
        struct slice key = key_slice(&from), value;
        enum store_found found =
            store_db_seek(store->txn, store->db.dlq, &key, &value, err);

        if (found != STORE_FOUND) {
            return found;
        }
        if (key.len != from.len || bytes_get_be16(key.data) != route) {
            return STORE_ABSENT;
        }
        seq = bytes_get_be64(key.data + 2);
        if (!store_record_must_load(store, seq, entry, err)) {
            return STORE_FAILED;
        }
        if (seq != keep_seq && (entry->record.flags & RECORD_ORDERED) == 0) {
            return STORE_FOUND;
        }
    }
}

static bool discard(struct store *store, struct store_entry *entry,
                    struct err *err)
{
    static const struct policy no_policy;
    struct input input = {.kind = INPUT_DISCARD, .route = entry->record.route};
    struct store_audit audit = {
        .at_ms = store_now_ms(store),
        .move = MOVE_DISCARDED,
        .attempt = entry->record.attempt,
        .run = entry->record.run,
        .why = "no room for more dead letters, this was the oldest",
    };

    (void)record_step(&entry->record, &input, &no_policy, audit.at_ms);
    CHECK(entry->record.state != RECORD_DEAD);
    entry->record.flags |= RECORD_ERASED;
    return store_put(store, entry, err) &&
           store_add_audit(store, entry, &audit, err);
}

enum store_found store_drop_oldest_dead(struct store *store, uint16_t route,
                                        uint64_t keep_seq, struct err *err)
{
    struct store_entry entry;
    enum store_found found;

    CHECK(store->txn != NULL && !store->options.read_only);
    found = find_droppable(store, route, keep_seq, &entry, err);
    if (found != STORE_FOUND) {
        return found;
    }
    return discard(store, &entry, err) ? STORE_FOUND : STORE_FAILED;
}
