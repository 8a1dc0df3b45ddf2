/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"
#include "store/record_codec.h"

/* Records carried in one step: each may bring a result and an audit. */
enum { CARRY_MAX = 64 };

static bool is_kept(const struct record *record)
{
    return !record_is_settled(record) || record->state == RECORD_DEAD;
}

/* How many of a generation must not be forgotten, by its counters. */
static uint64_t count_kept(const struct store *store, uint32_t number)
{
    const struct gen_memory *memory = &store->memory[slot_of(number)];
    uint64_t sum = 0;

    for (uint16_t i = 0; i < store->n_routes; i++) {
        const uint32_t *counts = memory->counts[i];

        sum += counts[RECORD_PENDING] + counts[RECORD_RUNNING];
        sum += counts[RECORD_UNCERTAIN] + counts[RECORD_DEAD];
    }
    return sum;
}

struct finding {
    uint64_t seqs[CARRY_MAX];
    size_t n;
    bool at_end;
};

/* Reads on behind work.carry_seq. */
static bool look(struct store *store, MDB_cursor *cursor,
                 struct finding *finding, struct err *err)
{
    struct store_key from = key_u64(store->state.work.carry_seq);
    struct slice key = key_slice(&from), value;
    struct record_row row;
    enum store_found found =
        store_db_step(cursor, MDB_SET_RANGE, &key, &value, err);

    for (uint32_t i = store_gen_step_items(store);
         i > 0 && finding->n < CARRY_MAX && found == STORE_FOUND; i--) {
        uint64_t seq = bytes_get_be64(key.data);

        if (!record_codec_decode(value, seq, &row)) {
            return err_set(err, ERR_DATA, "record %llu is damaged",
                           (unsigned long long)seq);
        }
        if (is_kept(&row.record)) {
            finding->seqs[finding->n++] = seq;
        }
        store->state.work.carry_seq = seq + 1;
        found = store_db_step(cursor, MDB_NEXT, &key, &value, err);
    }
    finding->at_end = found == STORE_ABSENT;
    return found != STORE_FAILED;
}

static bool find_kept(struct store *store, uint32_t number,
                      struct finding *finding, struct err *err)
{
    MDB_cursor *cursor;
    bool ok;
    int rc =
        mdb_cursor_open(store->txn, store->db.rec[slot_of(number)], &cursor);

    if (rc != 0) {
        return store_db_fail(store, rc, "read records", err);
    }
    ok = look(store, cursor, finding, err);
    mdb_cursor_close(cursor);
    return ok;
}

static bool carry(struct store *store, uint32_t number, struct err *err)
{
    struct finding finding = {.n = 0};
    struct store_entry entry;

    if (!find_kept(store, number, &finding, err)) {
        return false;
    }
    for (size_t i = 0; i < finding.n; i++) {
        if (!store_record_must_load(store, finding.seqs[i], &entry, err) ||
            !store_record_carry(store, &entry, err)) {
            return false;
        }
        MARK(record_carried);
        if (entry.record.state == RECORD_DEAD) {
            MARK(dead_letter_carried);
        } else {
            MARK(unsettled_carried);
        }
    }
    if (finding.at_end && count_kept(store, number) > 0) {
        return err_set(err, ERR_DATA, "its counters and records disagree");
    }
    return true;
}

static bool drop_bloom(struct store *store, uint32_t number, struct err *err)
{
    enum store_found found;

    for (;;) {
        struct store_key from = key_u32_u32(number, 0), row;
        struct slice key = key_slice(&from), value;

        found = store_db_seek(store->txn, store->db.bloom, &key, &value, err);
        if (found != STORE_FOUND || key.len != from.len ||
            bytes_get_be32(key.data) != number) {
            return found != STORE_FAILED;
        }
        row = key_u32_u32(number, bytes_get_be32(key.data + 4));
        if (store_db_delete(store, store->db.bloom, key_slice(&row), err) ==
            STORE_FAILED) {
            return false;
        }
    }
}

static void tell(const struct generation *gen)
{
    struct log_line line;

    if (log_begin(&line, LOG_INFO, "store", "generation forgotten")) {
        log_int(&line, "generation", gen->number);
        log_int(&line, "ids", (int64_t)gen->ids);
        log_int(&line, "closed_ms", gen->closed_ms);
        log_end(&line);
    }
}

static bool drop(struct store *store, uint32_t number, struct err *err)
{
    const struct generation *gen = gen_at(store, number);
    uint32_t slot = slot_of(number);

    CHECK(gen->state == GEN_SEALED);
    CHECK(number < store->state.last_gen);
    CHECK(count_kept(store, number) == 0);
    tell(gen);
    if (gen->closed_ms > store->state.forgotten_until_ms) {
        store->state.forgotten_until_ms = gen->closed_ms;
    }
    store->state.first_gen = number + 1;
    store->state.work.carry_seq = 0;
    store->journal.gens_changed = true;
    return store_db_empty(store, store->db.rec[slot], err) &&
           store_db_empty(store, store->db.idx[slot], err) &&
           store_db_empty(store, store->db.rsp[slot], err) &&
           store_db_empty(store, store->db.audit[slot], err) &&
           drop_bloom(store, number, err) &&
           store_meta_drop_gen(store, number, err);
}

static void tell_kept(struct store *store, const struct generation *gen,
                      int64_t since_ms, bool kept)
{
    struct log_line line;

    if (kept && !store->told_kept &&
        log_begin(&line, LOG_WARN, "store",
                  "ids are kept past their time: a partition may bring them "
                  "again")) {
        log_int(&line, "generation", gen->number);
        log_int(&line, "closed_ms", gen->closed_ms);
        log_int(&line, "since_ms", since_ms);
        log_end(&line);
    }
    store->told_kept = kept;
}

static bool is_over(struct store *store, const struct generation *gen)
{
    int64_t since_ms = atomic_load(&store->keep_since_ms);
    bool kept = gen->closed_ms >= since_ms;

    if (gen->state != GEN_SEALED ||
        store_clock_expiry_ms(store) - gen->closed_ms <
            store->options.retention_ms) {
        return false;
    }
    tell_kept(store, gen, since_ms, kept);
    return !kept;
}

void store_keep_since(struct store *store, int64_t since_ms)
{
    CHECK(store->txn == NULL);
    atomic_store(&store->keep_since_ms, since_ms);
}

bool store_forget_step(struct store *store, bool *more, struct err *err)
{
    uint32_t number = store->state.first_gen;

    if (!is_over(store, gen_at(store, number))) {
        return true;
    }
    *more = true;
    if (count_kept(store, number) > 0) {
        return carry(store, number, err) ||
               err_wrap(err, "carry from generation %u", number);
    }
    if (!drop(store, number, err)) {
        return err_wrap(err, "forget generation %u", number);
    }
    MARK(generation_dropped);
    return true;
}

int64_t store_forgotten_until_ms(const struct store *store)
{
    return store->state.forgotten_until_ms;
}
