/* SPDX-License-Identifier: MIT */
#include "store/store_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "store/store_idx.h"

typedef void see_row(struct check *check, struct slice key, struct slice value);

void store_check_bad(struct check *check, const char *format, ...)
{
    struct store_report *report = check->report;
    va_list args;

    if (report->bad++ > 0) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(report->first_bad, sizeof report->first_bad, format, args);
    va_end(args);
}

static void each_row(struct check *check, MDB_dbi dbi, const char *what,
                     see_row *see)
{
    struct slice key = {NULL, 0}, value;
    struct err err = {ERR_NONE, ""};
    enum store_found found;
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(check->store->txn, dbi, &cursor);

    *check->stage = what;
    if (rc != 0) {
        store_check_bad(check, "%s: %s", what, mdb_strerror(rc));
        return;
    }
    found = store_db_step(cursor, MDB_FIRST, &key, &value, &err);
    while (found == STORE_FOUND) {
        see(check, key, value);
        found = store_db_step(cursor, MDB_NEXT, &key, &value, &err);
    }
    if (found == STORE_FAILED) {
        store_check_bad(check, "%s: %s", what, err.text);
    }
    mdb_cursor_close(cursor);
}

static unsigned long long show(uint64_t number)
{
    return number;
}

/* --- records ------------------------------------------------------------ */

static enum store_found get(struct check *check, MDB_dbi dbi,
                            struct store_key key, struct slice *payload)
{
    return store_db_get_sealed(check->store->txn, dbi, key_slice(&key), payload,
                               NULL);
}

static void check_indexes(struct check *check, const struct record_row *row,
                          uint64_t seq)
{
    const struct store_dbis *db = &check->store->db;
    const struct record *record = &row->record;
    struct slice payload;

    if (!record_is_settled(record)) {
        check->n_open++;
        if (get(check, db->due,
                store_index_key(record->route, record->state, record->due_ms,
                                seq),
                &payload) != STORE_FOUND ||
            payload.len != 0) {
            store_check_bad(check, "due index lacks record %llu", show(seq));
        }
    }
    if ((record->flags & RECORD_ORDERED) != 0) {
        check->n_ordered++;
        if (get(check, db->order, key_u64_u64(record->order_key, row->origin),
                &payload) != STORE_FOUND ||
            payload.len != 8 || bytes_get_be64(payload.data) != seq) {
            store_check_bad(check, "order index lacks record %llu", show(seq));
        }
    }
    if (record->state == RECORD_DEAD && (record->flags & RECORD_ORDERED) != 0) {
        check->dead_holders[record->route]++;
    }
    if (record->state == RECORD_DEAD &&
        get(check, db->dlq, key_u16_u64(record->route, seq), &payload) !=
            STORE_FOUND) {
        store_check_bad(check, "dead-letter table lacks record %llu",
                        show(seq));
    }
}

static void check_identity(struct check *check, const struct record_row *row,
                           uint64_t seq)
{
    struct identity identity =
        store_identity(check->store, row->namespace, row->tenant, row->id);
    uint64_t found_seq = 0;

    if (memcmp(&identity, &row->identity, sizeof identity) != 0) {
        store_check_bad(check, "record %llu has another identity than its id",
                        show(seq));
    }
    if (store_ids_find(check->store, &row->identity, &found_seq, NULL) !=
            STORE_FOUND ||
        found_seq != seq) {
        store_check_bad(check, "record %llu is not found by its id", show(seq));
    }
}

static void see_record(struct check *check, struct slice key,
                       struct slice value)
{
    uint64_t seq = key.len == 8 ? bytes_get_be64(key.data) : 0;
    struct record_row row;

    check->report->records++;
    if (!record_codec_decode(value, seq, &row)) {
        store_check_bad(check, "record %llu is damaged", show(seq));
        return;
    }
    if (seq == 0 || seq >= check->store->state.next_seq ||
        store_gen_of(check->store, seq) != check->generation) {
        store_check_bad(check, "record %llu is in the wrong place", show(seq));
        return;
    }
    if (row.record.route >= check->store->n_routes ||
        row.namespace >= check->store->n_namespaces ||
        row.position.stream >= check->store->n_streams) {
        store_check_bad(check,
                        "record %llu names an unknown route, namespace or "
                        "stream",
                        show(seq));
        return;
    }
    check->counts[slot_of(check->generation)][row.record.route]
                 [row.record.state]++;
    check_identity(check, &row, seq);
    check_indexes(check, &row, seq);
}

bool store_check_load(struct check *check, uint64_t seq, struct record_row *row)
{
    struct store *store = check->store;
    struct store_key key = key_u64(seq);
    struct slice value;

    return store_db_get(store->txn,
                        store->db.rec[slot_of(store_gen_of(store, seq))],
                        key_slice(&key), &value, NULL) == STORE_FOUND &&
           record_codec_decode(value, seq, row);
}

/* --- what points at records --------------------------------------------- */

/* An id of a record that was written anew later is shadowed by the newer
 * one, which the look-up finds first. */
static void check_id(struct check *check, const struct identity *identity)
{
    struct record_row row;
    uint64_t seq;

    if (store_ids_find(check->store, identity, &seq, NULL) != STORE_FOUND ||
        !store_check_load(check, seq, &row) ||
        memcmp(&row.identity, identity, sizeof *identity) != 0) {
        store_check_bad(check, "an id in generation %u has no record",
                        check->generation);
    }
}

static void see_ids(struct check *check, struct slice key, struct slice value)
{
    struct identity identity, before = {{0}};
    struct idx_block block;
    uint64_t seq;

    if (!idx_block_open(key, value, &block)) {
        store_check_bad(check, "damaged ids in generation %u",
                        check->generation);
        return;
    }
    check->n_ids += block.n;
    for (size_t i = 0; i < block.n; i++) {
        idx_block_get(&block, i, &identity, &seq);
        if (i > 0 && memcmp(&before, &identity, sizeof before) >= 0) {
            store_check_bad(check, "ids out of order in generation %u",
                            check->generation);
        }
        check_id(check, &identity);
        before = identity;
    }
}

static void see_result(struct check *check, struct slice key,
                       struct slice value)
{
    struct record_row row;
    struct slice flat;

    if (key.len != 8 || !store_db_unseal(key, value, &flat)) {
        store_check_bad(check, "a damaged result in generation %u",
                        check->generation);
    } else if (!store_check_load(check, bytes_get_be64(key.data), &row)) {
        store_check_bad(check, "result %llu has no record",
                        show(bytes_get_be64(key.data)));
    }
}

static void see_audit(struct check *check, struct slice key, struct slice value)
{
    struct store_audit audit;

    check->report->audits++;
    if (!store_audit_decode(key, value, &audit) ||
        bytes_get_be64(key.data + 8) >= check->store->state.next_audit) {
        store_check_bad(check, "a damaged audit row in generation %u",
                        check->generation);
    }
}

static void see_envelope(struct check *check, struct slice key,
                         struct slice value)
{
    struct slice flat;

    check->report->envelopes++;
    if (key.len != 8 || !store_db_unseal(key, value, &flat)) {
        store_check_bad(check, "a damaged envelope");
    }
}

static void see_sealed(struct check *check, struct slice key,
                       struct slice value)
{
    struct slice payload;

    if (!store_db_unseal(key, value, &payload)) {
        store_check_bad(check, "%s: a damaged row", *check->stage);
    }
}

static void see_due(struct check *check, struct slice key, struct slice value)
{
    struct record_row row;
    struct slice nothing;

    check->n_due++;
    if (key.len != STORE_DUE_KEY_SIZE ||
        !store_db_unseal(key, value, &nothing)) {
        store_check_bad(check, "a damaged entry in the due index");
        return;
    }
    if (!store_check_load(check, store_index_seq_of(key), &row) ||
        record_is_settled(&row.record) ||
        row.record.state != store_index_state_of(key) ||
        row.record.due_ms != store_index_due_of(key) ||
        row.record.route != bytes_get_be16(key.data)) {
        store_check_bad(check, "due index and record %llu disagree",
                        show(store_index_seq_of(key)));
    }
}

static void see_order(struct check *check, struct slice key, struct slice value)
{
    struct record_row row;
    struct slice payload;

    check->n_order++;
    if (key.len != 16 || !store_db_unseal(key, value, &payload) ||
        payload.len != 8) {
        store_check_bad(check, "a damaged entry in the order index");
        return;
    }
    if (!store_check_load(check, bytes_get_be64(payload.data), &row) ||
        (row.record.flags & RECORD_ORDERED) == 0 ||
        row.record.order_key != bytes_get_be64(key.data) ||
        row.origin != bytes_get_be64(key.data + 8)) {
        store_check_bad(check, "order index and record %llu disagree",
                        show(bytes_get_be64(payload.data)));
    }
}

static void see_dead(struct check *check, struct slice key, struct slice value)
{
    struct store_dead dead;
    struct record_row row;
    struct slice flat = {NULL, 0};
    enum store_found found;

    check->report->dead_letters++;
    if (key.len != 10 || !store_dlq_decode(key, value, &dead) ||
        !store_check_load(check, bytes_get_be64(key.data + 2), &row) ||
        row.record.state != RECORD_DEAD || row.origin != dead.origin ||
        row.record.route != bytes_get_be16(key.data)) {
        store_check_bad(check, "a damaged dead letter");
        return;
    }
    check->dead_bytes[row.record.route] += store_dlq_cost(&dead);
    found = get(check, check->store->db.dlqpay, key_u64(dead.origin), &flat);
    check->n_buried += found == STORE_FOUND;
    if (flat.len != dead.envelope_bytes) {
        store_check_bad(check, "dead letter %llu and its envelope disagree",
                        show(dead.origin));
    }
}

static void see_dead_envelope(struct check *check, struct slice key,
                              struct slice value)
{
    check->n_buried_bodies++;
    see_envelope(check, key, value);
}

/* --- all ---------------------------------------------------------------- */

static void check_counts(struct check *check, uint32_t slot)
{
    const struct gen_memory *memory = &check->store->memory[slot];

    for (uint16_t i = 0; i < check->store->n_routes; i++) {
        if (memcmp(memory->counts[i], check->counts[slot][i],
                   sizeof memory->counts[i]) != 0) {
            store_check_bad(check,
                            "counters of generation %u, route %u are wrong",
                            memory->number, i);
        }
    }
}

static void check_sealed(struct check *check, const struct generation *gen)
{
    check->n_ids = 0;
    each_row(check, check->store->db.idx[slot_of(gen->number)], "ids", see_ids);
    if (check->n_ids != gen->ids) {
        store_check_bad(check,
                        "generation %u was sealed with %llu ids, not %llu",
                        gen->number, show(check->n_ids), show(gen->ids));
    }
}

static void check_generation(struct check *check, uint32_t number)
{
    const struct store_dbis *db = &check->store->db;
    uint32_t slot = slot_of(number);

    check->generation = number;
    each_row(check, db->rec[slot], "records", see_record);
    if (gen_at(check->store, number)->state == GEN_SEALED) {
        check_sealed(check, gen_at(check->store, number));
    }
    each_row(check, db->rsp[slot], "results", see_result);
    each_row(check, db->audit[slot], "audit", see_audit);
    check_counts(check, slot);
}

static void check_empty(struct check *check, MDB_dbi dbi)
{
    if (store_space_of(check->store->txn, dbi) != 0) {
        store_check_bad(check, "a slot that is not in use has rows");
    }
}

static void check_unused_slots(struct check *check)
{
    const struct store *store = check->store;
    const struct store_state *state = &store->state;

    for (uint32_t i = state->last_gen + 1; i < state->first_gen + STORE_SLOTS;
         i++) {
        check_empty(check, store->db.rec[slot_of(i)]);
        check_empty(check, store->db.idx[slot_of(i)]);
        check_empty(check, store->db.rsp[slot_of(i)]);
        check_empty(check, store->db.audit[slot_of(i)]);
    }
    for (uint32_t i = state->last_slice + 1;
         i < state->first_slice + STORE_SLOTS; i++) {
        check_empty(check, store->db.pay[slot_of(i)]);
    }
}

static void check_sums(struct check *check)
{
    if (check->n_due != check->n_open) {
        store_check_bad(check,
                        "%llu records are open, %llu are in the due "
                        "index",
                        show(check->n_open), show(check->n_due));
    }
    if (check->n_order != check->n_ordered) {
        store_check_bad(check, "the order index has entries too many");
    }
    if (check->n_buried != check->n_buried_bodies) {
        store_check_bad(check, "an envelope of no dead letter");
    }
    for (uint16_t i = 0; i < check->store->n_routes; i++) {
        if (check->dead_bytes[i] != store_dead_bytes(check->store, i)) {
            store_check_bad(check, "dead letters of route %u miscounted", i);
        }
        if (check->dead_holders[i] != store_dead_holders(check->store, i)) {
            store_check_bad(check,
                            "dead letters of route %u that hold a key "
                            "miscounted",
                            i);
        }
    }
}

void store_check_all(struct check *check)
{
    struct store *store = check->store;
    const struct store_state *state = &store->state;

    CHECK(store->txn != NULL);
    for (uint32_t n = state->first_gen; n <= state->last_gen; n++) {
        check_generation(check, n);
    }
    for (uint32_t n = state->first_slice; n <= state->last_slice; n++) {
        each_row(check, store->db.pay[slot_of(n)], "envelopes", see_envelope);
    }
    each_row(check, store->db.meta, "meta", store_check_meta);
    store_check_format(check);
    each_row(check, store->db.bloom, "filters", see_sealed);
    each_row(check, store->db.due, "due index", see_due);
    each_row(check, store->db.order, "order index", see_order);
    each_row(check, store->db.dlq, "dead letters", see_dead);
    each_row(check, store->db.dlqpay, "envelopes of dead letters",
             see_dead_envelope);
    check_unused_slots(check);
    check_sums(check);
}
