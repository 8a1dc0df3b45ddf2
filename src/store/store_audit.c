/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { VERSION = 1, KEY_SIZE = 16 };

static void encode(const struct store_audit *audit, struct buf *row)
{
    size_t actor_len = strlen(audit->actor), why_len = strlen(audit->why);

    CHECK(actor_len <= STORE_ACTOR_MAX);
    CHECK(why_len <= STORE_TEXT_MAX);
    buf_add_byte(row, VERSION);
    buf_add_byte(row, (char)audit->move);
    buf_add_be64(row, (uint64_t)audit->at_ms);
    buf_add_be32(row, audit->attempt);
    buf_add_be32(row, audit->run);
    buf_add_byte(row, (char)actor_len);
    buf_add(row, audit->actor, actor_len);
    buf_add_byte(row, (char)why_len);
    buf_add(row, audit->why, why_len);
}

static bool copy_text(struct reader *reader, char *out, size_t max)
{
    struct slice text = reader_take(reader, reader_byte(reader));

    if (reader->bad || text.len > max) {
        return false;
    }
    if (text.len > 0) {
        memcpy(out, text.data, text.len);
    }
    out[text.len] = '\0';
    return true;
}

bool store_audit_decode(struct slice key, struct slice value,
                        struct store_audit *out)
{
    struct reader reader = {{NULL, 0}, false};
    uint8_t move;

    if (key.len != KEY_SIZE || !store_db_unseal(key, value, &reader.rest) ||
        reader_byte(&reader) != VERSION) {
        return false;
    }
    move = reader_byte(&reader);
    out->move = (enum move)move;
    out->at_ms = (int64_t)reader_be64(&reader);
    out->attempt = reader_be32(&reader);
    out->run = reader_be32(&reader);
    return move < MOVES && copy_text(&reader, out->actor, STORE_ACTOR_MAX) &&
           copy_text(&reader, out->why, STORE_TEXT_MAX) && reader.rest.len == 0;
}

bool store_add_audit(struct store *store, const struct store_entry *entry,
                     const struct store_audit *audit, struct err *err)
{
    struct store_key key =
        key_u64_u64(entry->origin, store->state.next_audit++);
    struct buf row = BUF_INIT;
    bool ok;

    CHECK(store->txn != NULL && entry->seq != 0);
    encode(audit, &row);
    ok = store_db_put_sealed(store,
                             store->db.audit[slot_of(store->state.last_gen)],
                             key_slice(&key), buf_slice(&row), err);
    buf_free(&row);
    return ok || err_wrap(err, "audit");
}

static bool is_of(struct slice key, uint64_t origin)
{
    return key.len == KEY_SIZE && bytes_get_be64(key.data) == origin;
}

struct story {
    uint64_t origin;
    struct store_audit *rows;
    size_t n, cap;
};

/* In order of time: a row may be written when more has happened since, as that
 * of a first success is. Nearly all come in order. */
static void add_row(struct story *story, const struct store_audit *audit)
{
    size_t at = story->n;

    if (story->n == story->cap) {
        story->cap = story->cap == 0 ? 16 : story->cap * 2;
        story->rows = mem_grow(story->rows, story->cap, sizeof *story->rows);
    }
    while (at > 0 && story->rows[at - 1].at_ms > audit->at_ms) {
        at--;
    }
    memmove(&story->rows[at + 1], &story->rows[at],
            (story->n - at) * sizeof *story->rows);
    story->rows[at] = *audit;
    story->n++;
}

static bool read_rows(struct story *story, MDB_cursor *cursor, struct err *err)
{
    struct store_key from = key_u64_u64(story->origin, 0);
    struct slice key = key_slice(&from), value;
    struct store_audit audit;
    enum store_found found =
        store_db_step(cursor, MDB_SET_RANGE, &key, &value, err);

    while (found == STORE_FOUND && is_of(key, story->origin)) {
        if (!store_audit_decode(key, value, &audit)) {
            return err_set(err, ERR_DATA, "a damaged audit row of event %llu",
                           (unsigned long long)story->origin);
        }
        add_row(story, &audit);
        found = store_db_step(cursor, MDB_NEXT, &key, &value, err);
    }
    return found != STORE_FAILED;
}

/* All rows of an event stand in the generation of its record or in later
 * ones: store_audit_carry sees to that. */
static bool read_story(struct store *store, const struct store_entry *entry,
                       struct story *story, struct err *err)
{
    for (uint32_t n = store_gen_of(store, entry->seq);
         n <= store->state.last_gen; n++) {
        MDB_cursor *cursor;
        bool ok;
        int rc =
            mdb_cursor_open(store->txn, store->db.audit[slot_of(n)], &cursor);

        if (rc != 0) {
            return store_db_fail(store, rc, "read audit", err);
        }
        ok = read_rows(story, cursor, err);
        mdb_cursor_close(cursor);
        if (!ok) {
            return false;
        }
    }
    return true;
}

bool store_each_audit(struct store *store, const struct store_entry *entry,
                      bool (*visit)(void *ctx, const struct store_audit *),
                      void *ctx, struct err *err)
{
    struct story story = {.origin = entry->origin};
    bool ok;

    CHECK(store->txn != NULL && entry->seq != 0);
    ok = read_story(store, entry, &story, err);
    for (size_t i = 0; ok && i < story.n; i++) {
        if (!visit(ctx, &story.rows[i])) {
            break;
        }
    }
    free(story.rows);
    return ok;
}

/* Moves the first row of the event; ABSENT when none is left. */
static enum store_found carry_row(struct store *store, MDB_dbi from,
                                  uint64_t origin, struct err *err)
{
    MDB_dbi to = store->db.audit[slot_of(store->state.last_gen)];
    struct store_key start = key_u64_u64(origin, 0), row_key;
    struct slice key = key_slice(&start), value;
    struct buf copy = BUF_INIT;
    bool ok;
    enum store_found found = store_db_seek(store->txn, from, &key, &value, err);

    if (found != STORE_FOUND) {
        return found;
    }
    if (!is_of(key, origin)) {
        return STORE_ABSENT;
    }
    row_key = key_u64_u64(origin, bytes_get_be64(key.data + 8));
    buf_add_slice(&copy, value);
    ok = store_db_append(store, to, key_slice(&row_key), buf_slice(&copy),
                         err) &&
         store_db_remove(store, from, key_slice(&row_key), "the audit table",
                         err);
    buf_free(&copy);
    return ok ? STORE_FOUND : STORE_FAILED;
}

bool store_audit_carry(struct store *store, const struct store_entry *entry,
                       uint64_t old_seq, struct err *err)
{
    enum store_found found = STORE_ABSENT;

    CHECK(entry->origin <= old_seq);
    CHECK(old_seq < entry->seq);
    for (uint32_t n = store_gen_of(store, old_seq);
         n < store->state.last_gen && found != STORE_FAILED; n++) {
        do {
            found = carry_row(store, store->db.audit[slot_of(n)], entry->origin,
                              err);
        } while (found == STORE_FOUND);
    }
    return found != STORE_FAILED;
}
