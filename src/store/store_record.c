/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <string.h>

#include "base/check.h"
#include "store/record_codec.h"

struct slice store_entry_id(const struct store_entry *entry)
{
    return (struct slice){entry->id, entry->id_len};
}

struct slice store_entry_tenant(const struct store_entry *entry)
{
    return (struct slice){entry->tenant, entry->tenant_len};
}

/* --- reading ------------------------------------------------------------ */

static void set_names(struct store_entry *entry, uint16_t namespace,
                      struct slice tenant, struct slice id)
{
    CHECK(tenant.len <= STORE_TENANT_MAX);
    CHECK(id.len <= STORE_ID_MAX);
    entry->namespace = namespace;
    entry->tenant_len = (uint8_t)tenant.len;
    entry->id_len = (uint8_t)id.len;
    if (tenant.len > 0) {
        memcpy(entry->tenant, tenant.data, tenant.len);
    }
    if (id.len > 0) {
        memcpy(entry->id, id.data, id.len);
    }
}

static void fill(struct store_entry *entry, const struct record_row *row,
                 uint64_t seq)
{
    entry->identity = row->identity;
    entry->seq = seq;
    entry->origin = row->origin;
    entry->expired_seq = 0;
    entry->expired_ms = 0;
    entry->position = row->position;
    entry->record = row->record;
    entry->stored = row->record;
    entry->code[0] = '\0';
    entry->text[0] = '\0';
    set_names(entry, row->namespace, row->tenant, row->id);
}

bool store_record_read(struct store *store, const struct record_place *place,
                       struct slice value, struct store_entry *entry,
                       struct err *err)
{
    struct record_row row;

    if (!record_codec_decode(value, place->seq, &row)) {
        return err_set(err, ERR_DATA, "record %llu is damaged",
                       (unsigned long long)place->seq);
    }
    record_check(&row.record);
    fill(entry, &row, place->seq);
    return entry->record.state != RECORD_DEAD ||
           store_dlq_load(store, place->txn, entry, err);
}

/* Whoever has a sequence number has it from an index: the record is there,
 * or the store is damaged. It never reads as absent. */
bool store_record_load(struct store *store, const struct record_place *place,
                       struct store_entry *entry, struct err *err)
{
    struct store_key key = key_u64(place->seq);
    struct slice value;

    switch (
        store_db_get(place->txn, place->dbi, key_slice(&key), &value, err)) {
    case STORE_FOUND:
        return store_record_read(store, place, value, entry, err);
    case STORE_ABSENT:
        return err_set(err, ERR_DATA, "record %llu is missing",
                       (unsigned long long)place->seq);
    case STORE_FAILED:
        return false;
    }
    UNREACHABLE("a value outside of the enum");
}

bool store_record_must_load(struct store *store, uint64_t seq,
                            struct store_entry *entry, struct err *err)
{
    struct record_place place = {
        store->txn, store->db.rec[slot_of(store_gen_of(store, seq))], seq};

    return store_record_load(store, &place, entry, err);
}

bool store_record_is_older(const struct store *store,
                           const struct record *record, int64_t keep_ms)
{
    return record_is_settled(record) && record->state != RECORD_DEAD &&
           store_clock_expiry_ms(store) - record->changed_ms >= keep_ms;
}

bool store_record_is_hidden(const struct store *store,
                            const struct record *record)
{
    int64_t keep_ms = store->routes[record->route].retention.ids_ms;
    int64_t limit_ms = store->options.retention_ms;
    int64_t since_ms = atomic_load(&store->keep_since_ms);

    return record->last_seen_ms < since_ms && record->changed_ms < since_ms &&
           store_record_is_older(store, record,
                                 keep_ms < limit_ms ? keep_ms : limit_ms);
}

static void make_absent(struct store_entry *entry, uint64_t expired_seq,
                        int64_t expired_ms)
{
    struct record none = {.state = RECORD_NONE};

    entry->seq = 0;
    entry->origin = 0;
    entry->expired_seq = expired_seq;
    entry->expired_ms = expired_ms;
    entry->position = (struct store_position){0, 0, 0};
    entry->record = none;
    entry->stored = none;
    entry->code[0] = '\0';
    entry->text[0] = '\0';
}

/* The record under entry->identity; `entry` is made absent, its names kept,
 * when there is none to be seen. */
static enum store_found find(struct store *store, struct store_entry *entry,
                             struct err *err)
{
    struct identity identity = entry->identity;
    uint64_t seq = 0;
    enum store_found found = store_ids_find(store, &identity, &seq, err);

    if (found != STORE_FOUND) {
        make_absent(entry, 0, 0);
        return found;
    }
    if (!store_record_must_load(store, seq, entry, err)) {
        return STORE_FAILED;
    }
    if (memcmp(&entry->identity, &identity, sizeof identity) != 0) {
        (void)err_set(err, ERR_DATA, "the ids and record %llu disagree",
                      (unsigned long long)seq);
        return STORE_FAILED;
    }
    if (store_record_is_hidden(store, &entry->record)) {
        make_absent(entry, seq, entry->record.changed_ms);
        return STORE_ABSENT;
    }
    return STORE_FOUND;
}

enum store_found store_find(struct store *store, uint16_t namespace,
                            struct slice tenant, struct slice id,
                            struct store_entry *entry, struct err *err)
{
    enum store_found found;

    CHECK(store->txn != NULL);
    entry->identity = store_identity(store, namespace, tenant, id);
    set_names(entry, namespace, tenant, id);
    found = find(store, entry, err);
    if (found != STORE_FOUND) {
        return found;
    }
    if (entry->namespace != namespace ||
        !slice_eq(store_entry_tenant(entry), tenant) ||
        !slice_eq(store_entry_id(entry), id)) {
        (void)err_set(err, ERR_DATA,
                      "two ids share the identity of record "
                      "%llu",
                      (unsigned long long)entry->seq);
        return STORE_FAILED;
    }
    return STORE_FOUND;
}

enum store_found store_find_identity(struct store *store,
                                     const struct identity *identity,
                                     struct store_entry *entry, struct err *err)
{
    CHECK(store->txn != NULL);
    entry->identity = *identity;
    set_names(entry, 0, (struct slice){NULL, 0}, (struct slice){NULL, 0});
    return find(store, entry, err);
}

/* --- writing ------------------------------------------------------------ */

static bool write_row(struct store *store, const struct store_entry *entry,
                      bool is_new, struct err *err)
{
    uint32_t slot = slot_of(store_gen_of(store, entry->seq));
    struct store_key key = key_u64(entry->seq);
    struct record_row row = {
        .identity = entry->identity,
        .origin = entry->origin,
        .namespace = entry->namespace,
        .tenant = store_entry_tenant(entry),
        .id = store_entry_id(entry),
        .record = entry->record,
        .position = entry->position,
    };
    uint8_t bytes[RECORD_CODEC_MAX];
    struct slice value = {(const char *)bytes, 0};

    CHECK(entry->origin <= entry->seq);
    CHECK(entry->seq < store->state.next_seq);
    value.len = record_codec_encode(&row, entry->seq, bytes);
    return is_new ? store_db_append(store, store->db.rec[slot], key_slice(&key),
                                    value, err)
                  : store_db_put(store, store->db.rec[slot], key_slice(&key),
                                 value, err);
}

static bool remove_row(struct store *store, uint64_t seq, struct err *err)
{
    uint32_t slot = slot_of(store_gen_of(store, seq));
    struct store_key key = key_u64(seq);

    return store_db_remove(store, store->db.rec[slot], key_slice(&key),
                           "the record table", err);
}

static uint64_t take_seq(struct store *store)
{
    uint64_t seq = store->state.next_seq++;

    CHECK(seq >> 48 == 0);
    return seq;
}

/* A new record under an id that was known and forgotten. */
static bool replace_expired(struct store *store, uint64_t seq, struct err *err)
{
    struct store_entry old;

    if (!store_record_must_load(store, seq, &old, err)) {
        return false;
    }
    CHECK(store_record_is_hidden(store, &old.record));
    store_gen_count(store, seq, &old.record, -1);
    return remove_row(store, seq, err) && store_result_erase(store, seq, err) &&
           store_pay_erase(store, old.origin, err);
}

static bool begin_new(struct store *store, struct store_entry *entry,
                      struct err *err)
{
    CHECK(entry->stored.state == RECORD_NONE);
    if (entry->expired_seq != 0 &&
        !replace_expired(store, entry->expired_seq, err)) {
        return false;
    }
    entry->expired_seq = 0;
    entry->expired_ms = 0;
    entry->seq = take_seq(store);
    entry->origin = entry->seq;
    store_ids_set(store, &entry->identity, entry->seq);
    return true;
}

/* Takes a new number at the end of the open generation; what is kept under
 * the old number comes along. */
static bool renumber(struct store *store, struct store_entry *entry,
                     struct err *err)
{
    uint64_t old_seq = entry->seq;

    entry->seq = take_seq(store);
    store_ids_set(store, &entry->identity, entry->seq);
    return remove_row(store, old_seq, err) &&
           store_result_move(store, old_seq, entry->seq, err) &&
           store_audit_carry(store, entry, old_seq, err);
}

/* The row at entry->seq and all that follows from it. */
static bool write(struct store *store, struct store_entry *entry,
                  uint64_t old_seq, struct err *err)
{
    if (old_seq != 0) {
        store_gen_count(store, old_seq, &entry->stored, -1);
    }
    store_gen_count(store, entry->seq, &entry->record, 1);
    if (!write_row(store, entry, entry->seq != old_seq, err) ||
        !store_index_update(store, entry, old_seq, err) ||
        !store_dlq_update(store, entry, old_seq, err) ||
        !store_pay_follow(store, entry, err)) {
        return err_wrap(err, "write record %llu",
                        (unsigned long long)entry->seq);
    }
    entry->stored = entry->record;
    return true;
}

/* A generation must not be forgotten sooner than `retention` after the last
 * move of its settled records. */
static bool is_moved(const struct store_entry *entry)
{
    const struct record *new = &entry->record, *old = &entry->stored;

    return new->state != old->state ||
           (record_is_settled(new) && new->changed_ms != old->changed_ms);
}

bool store_put(struct store *store, struct store_entry *entry, struct err *err)
{
    uint64_t old_seq = entry->seq;

    CHECK(store->txn != NULL && !store->options.read_only);
    CHECK(entry->record.route < store->n_routes);
    record_check(&entry->record);
    if (old_seq == 0) {
        return begin_new(store, entry, err) && write(store, entry, 0, err);
    }
    CHECK(entry->stored.state != RECORD_NONE);
    if (is_moved(entry) &&
        store_gen_of(store, old_seq) != store->state.last_gen &&
        !renumber(store, entry, err)) {
        return false;
    }
    return write(store, entry, old_seq, err);
}

bool store_record_carry(struct store *store, struct store_entry *entry,
                        struct err *err)
{
    uint64_t old_seq = entry->seq;

    CHECK(store_gen_of(store, old_seq) != store->state.last_gen);
    return renumber(store, entry, err) && write(store, entry, old_seq, err);
}
