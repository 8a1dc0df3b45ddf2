/* SPDX-License-Identifier: MIT */
/* What the store knows of partitions: streams, positions of messages,
 * low-waters; and dead letters that are to be published. */
#include "tamper.h"

static const char orders[] = "default/orders/onced";
static const char refunds[] = "eu/refunds/onced";

static uint16_t name_stream(struct fixture *f, const char *name)
{
    uint16_t number = 0;

    OK(f, store_stream_number(f->store, name, &number, &f->err));
    return number;
}

static void verify(struct fixture *f, const char *finding)
{
    struct store_report report;

    OK(f, store_verify(f->dir, &report, &f->err));
    cr_assert_eq(report.bad > 0, finding != NULL, "%s, not %s",
                 report.first_bad, finding);
    cr_assert(finding == NULL || strstr(report.first_bad, finding) != NULL,
              "%s, not %s", report.first_bad, finding);
}

/* The format that its row says. */
static uint32_t read_format(struct fixture *f)
{
    struct tamper t;
    MDB_val key = {1, (void *)(uintptr_t) "F"}, value;
    uint32_t format;

    tamper_begin(&t, f->dir, "meta");
    cr_assert_eq(mdb_get(t.txn, t.dbi, &key, &value), 0);
    cr_assert_eq(value.mv_size, 4 + 4 + 16 + 16 + 8);
    format = bytes_get_be32((const char *)value.mv_data + 4);
    tamper_end(&t);
    return format;
}

/* --- streams ---------------------------------------------------------------*/

Test(store_partition, a_stream_keeps_its_number)
{
    struct fixture f;
    uint16_t number;

    fixture_begin(&f);
    cr_expect_null(store_stream_name(f.store, 0));
    cr_expect_null(store_stream_name(f.store, 1));
    cr_expect_eq(name_stream(&f, orders), 1);
    cr_expect_eq(name_stream(&f, refunds), 2);
    cr_expect_eq(name_stream(&f, orders), 1);
    fixture_reopen(&f);
    cr_expect_null(store_stream_name(f.store, 0));
    cr_expect_str_eq(store_stream_name(f.store, 1), orders);
    cr_expect_str_eq(store_stream_name(f.store, 2), refunds);
    cr_expect_null(store_stream_name(f.store, 3));
    cr_expect_eq(name_stream(&f, refunds), 2);
    cr_expect_eq(name_stream(&f, "eu/x/onced"), 3);

    f.options.read_only = true;
    fixture_reopen(&f);
    cr_expect_eq(name_stream(&f, refunds), 2);
    cr_assert_not(store_stream_number(f.store, "eu/y/onced", &number, &f.err));
    cr_expect_eq(f.err.kind, ERR_NOT_FOUND);
    fixture_end(&f);
}

Test(store_partition, names_come_to_an_end)
{
    struct fixture f;
    uint16_t number;
    char name[32];

    fixture_begin(&f);
    for (int i = 1; i < STORE_ROUTES_MAX; i++) {
        (void)snprintf(name, sizeof name, "default/%d/onced", i);
        cr_assert_eq(name_stream(&f, name), i);
    }
    cr_assert_not(
        store_stream_number(f.store, "one/too/many", &number, &f.err));
    cr_expect_eq(f.err.kind, ERR_CONFIG);
    fixture_reopen(&f);
    cr_expect_eq(name_stream(&f, name), STORE_ROUTES_MAX - 1);
    cr_assert_not(
        store_stream_number(f.store, "one/too/many", &number, &f.err));
    fixture_end(&f);
}

/* Who does not know what a position is must not write over it. */
Test(store_partition, the_first_stream_raises_the_format)
{
    struct fixture f;
    char uuid[16];

    fixture_begin(&f);
    fixture_add_done(&f, "e1");
    memcpy(uuid, store_uuid(f.store).data, sizeof uuid);
    store_close(&f.store);
    cr_expect_eq(read_format(&f), 1, "as long as it can");
    fixture_open(&f);
    (void)name_stream(&f, orders);
    store_close(&f.store);
    cr_expect_eq(read_format(&f), 2);
    fixture_open(&f);
    cr_expect_arr_eq(store_uuid(f.store).data, uuid, sizeof uuid);
    (void)name_stream(&f, refunds);
    cr_expect_eq(store_incarnation(f.store), 1);
    store_close(&f.store);
    cr_expect_eq(read_format(&f), 2);
    verify(&f, NULL);
    fixture_end(&f);
}

/* A full store cannot take the name: neither it nor the format is there. */
Test(store_partition, the_format_is_raised_with_the_name_or_not_at_all)
{
    static char long_name[64 << 20];
    struct fixture f;
    uint16_t number = 7;

    memset(long_name, 'x', sizeof long_name - 1);
    fixture_prepare(&f);
    f.options.max_bytes = 16 << 20;
    fixture_open(&f);
    cr_assert_not(store_stream_number(f.store, long_name, &number, &f.err));
    cr_expect_eq(f.err.kind, ERR_AGAIN, "%s", f.err.text);
    cr_expect_null(store_stream_name(f.store, 1));
    fixture_reopen(&f);
    cr_expect_null(store_stream_name(f.store, 1));
    store_close(&f.store);
    cr_expect_eq(read_format(&f), 1);
    fixture_end(&f);
}

/* --- positions -------------------------------------------------------------*/

static void accept_at(struct fixture *f, const char *id,
                      struct store_position position, struct store_entry *entry)
{
    ABSENT(f, fixture_find(f, id, entry));
    fixture_fill_pending(f, entry);
    entry->record.flags = RECORD_PINS;
    entry->position = position;
    OK(f, store_put(f->store, entry, &f->err));
}

static void expect_position(struct fixture *f, const char *id,
                            struct store_position wanted)
{
    struct store_entry entry;

    FOUND(f, fixture_look(f, id, &entry));
    cr_expect_eq(entry.position.stream, wanted.stream);
    cr_expect_eq(entry.position.partition, wanted.partition);
    cr_expect_eq(entry.position.offset, wanted.offset);
}

Test(store_partition, a_position_goes_with_its_record)
{
    const struct store_position position = {1, 7, INT64_C(1) << 40};
    struct fixture f;
    struct store_entry entry;

    fixture_prepare(&f);
    f.options.ids_per_generation = 1;
    fixture_open(&f);
    (void)name_stream(&f, orders);
    OK(&f, store_begin(f.store, &f.err));
    accept_at(&f, "m", position, &entry);
    fixture_accept(&f, "h", &entry);
    cr_expect_eq(entry.position.stream, 0);
    OK(&f, store_commit(f.store, &f.err));
    fixture_maintain(&f);
    expect_position(&f, "m", position);

    /* written anew by its move, and then by being carried */
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "m", &entry));
    entry.record.state = RECORD_RUNNING;
    entry.record.attempt = 1;
    OK(&f, store_put(f.store, &entry, &f.err));
    cr_assert_neq(entry.seq, entry.origin);
    OK(&f, store_commit(f.store, &f.err));
    expect_position(&f, "m", position);
    fixture_maintain(&f);
    fixture_run_for(&f, 36 * DAY_MS);
    for (int i = 0; i < 3; i++) {
        fixture_maintain(&f);
    }
    cr_assert_neq(store_forgotten_until_ms(f.store), INT64_MIN);
    fixture_reopen(&f);
    expect_position(&f, "m", position);
    expect_position(&f, "h", (struct store_position){0, 0, 0});
    FOUND(&f, fixture_look(&f, "m", &entry));
    cr_expect_eq(entry.record.flags, RECORD_PINS);
    store_close(&f.store);
    verify(&f, NULL);
    fixture_end(&f);
}

/* The record stays where it is. */
Test(store_partition, a_position_can_be_changed_and_taken)
{
    const struct store_position moved = {2, 0, 5};
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    (void)name_stream(&f, orders);
    (void)name_stream(&f, refunds);
    OK(&f, store_begin(f.store, &f.err));
    accept_at(&f, "m", (struct store_position){1, 7, 9}, &entry);
    fixture_accept(&f, "h", &entry);
    OK(&f, store_commit(f.store, &f.err));
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "m", &entry));
    entry.position = moved;
    OK(&f, store_put(f.store, &entry, &f.err));
    store_abort(f.store);
    expect_position(&f, "m", (struct store_position){1, 7, 9});

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "m", &entry));
    entry.position = moved;
    OK(&f, store_put(f.store, &entry, &f.err));
    cr_expect_eq(entry.seq, 1);
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);
    expect_position(&f, "m", moved);

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "m", &entry));
    entry.position = (struct store_position){0, 0, 0};
    OK(&f, store_put(f.store, &entry, &f.err));
    FOUND(&f, fixture_find(&f, "h", &entry));
    entry.position = moved;
    OK(&f, store_put(f.store, &entry, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);
    expect_position(&f, "m", (struct store_position){0, 0, 0});
    expect_position(&f, "h", moved);
    store_close(&f.store);
    verify(&f, NULL);
    fixture_end(&f);
}

static bool see_position(void *ctx, const struct store_entry *entry)
{
    *(struct store_position *)ctx = entry->position;
    return true;
}

Test(store_partition, what_comes_anew_has_no_old_position)
{
    struct fixture f;
    struct store_entry entry;
    struct store_filter all = {.route = -1};
    struct store_position seen;

    fixture_begin(&f);
    (void)name_stream(&f, orders);
    OK(&f, store_begin(f.store, &f.err));
    accept_at(&f, "m", (struct store_position){1, 7, 9}, &entry);
    fixture_settle(&f, &entry, RECORD_SUCCEEDED);
    OK(&f, store_commit(f.store, &f.err));
    expect_position(&f, "m", (struct store_position){1, 7, 9});
    OK(&f, store_list(f.store, &all, see_position, &seen, &f.err));
    cr_expect_eq(seen.offset, 9);

    fixture_run_for(&f, 36 * DAY_MS);
    ABSENT(&f, fixture_look(&f, "m", &entry));
    cr_expect_eq(entry.position.stream, 0);
    cr_expect_eq(entry.position.offset, 0);
    cr_expect_neq(entry.expired_seq, 0);
    cr_expect_eq(entry.expired_ms, START_MS, "when it was settled");
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "m", &entry);
    cr_expect_eq(entry.expired_ms, 0);
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);
    expect_position(&f, "m", (struct store_position){0, 0, 0});
    ABSENT(&f, fixture_look(&f, "new", &entry));
    cr_expect_eq(entry.expired_ms, 0);
    fixture_end(&f);
}

/* --- low-waters ------------------------------------------------------------*/

static const struct store_low_water first_low_water = {
    .offset = INT64_C(0x0102030405060708),
    .incarnation = 0x090a0b0c,
    .topic_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
};

static void put_low_water(struct fixture *f, uint16_t stream, int32_t partition,
                          const struct store_low_water *low_water)
{
    OK(f, store_begin(f->store, &f->err));
    OK(f, store_put_low_water(f->store, stream, partition, low_water, &f->err));
    OK(f, store_commit(f->store, &f->err));
}

/* -1: there is none. */
static void expect_low_water(struct fixture *f, uint16_t stream,
                             int32_t partition, int64_t offset)
{
    struct store_low_water low_water = {.offset = -1};

    OK(f, store_begin(f->store, &f->err));
    cr_expect_eq(
        store_get_low_water(f->store, stream, partition, &low_water, &f->err),
        offset < 0 ? STORE_ABSENT : STORE_FOUND, "%s", f->err.text);
    cr_expect_eq(low_water.offset, offset);
    store_abort(f->store);
}

Test(store_partition, a_low_water_is_of_one_partition_of_one_stream)
{
    const struct store_low_water zero = {.offset = 0};
    const struct store_low_water last = {.offset = INT64_MAX};
    struct fixture f;
    struct store_low_water back;

    fixture_begin(&f);
    (void)name_stream(&f, orders);
    (void)name_stream(&f, refunds);
    expect_low_water(&f, 1, 0, -1);
    put_low_water(&f, 1, 3, &first_low_water);
    put_low_water(&f, 1, INT32_MAX, &zero);
    put_low_water(&f, 2, 3, &last);
    for (int round = 0; round < 2; round++) {
        expect_low_water(&f, 1, 3, first_low_water.offset);
        expect_low_water(&f, 1, INT32_MAX, 0);
        expect_low_water(&f, 2, 3, INT64_MAX);
        expect_low_water(&f, 1, 2, -1);
        expect_low_water(&f, 1, 4, -1);
        expect_low_water(&f, 2, INT32_MAX, -1);
        fixture_reopen(&f);
    }
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, store_get_low_water(f.store, 1, 3, &back, &f.err));
    cr_expect_eq(back.incarnation, first_low_water.incarnation);
    cr_expect_arr_eq(back.topic_id, first_low_water.topic_id,
                     sizeof back.topic_id);
    store_abort(f.store);
    store_close(&f.store);
    verify(&f, NULL);
    fixture_end(&f);
}

Test(store_partition, an_aborted_low_water_is_none)
{
    const struct store_low_water lower = {.offset = 4};
    struct fixture f;

    fixture_begin(&f);
    (void)name_stream(&f, orders);
    for (int round = 0; round < 2; round++) {
        OK(&f, store_begin(f.store, &f.err));
        OK(&f, store_put_low_water(f.store, 1, 0, &first_low_water, &f.err));
        store_abort(f.store);
        expect_low_water(&f, 1, 0, round == 0 ? -1 : 4);
        put_low_water(&f, 1, 0, &lower);
        expect_low_water(&f, 1, 0, 4);
    }
    fixture_end(&f);
}

/* --- rows by hand ----------------------------------------------------------*/

/* What LMDB has under the key, with the CRC before it; a payload of NULL
 * deletes the row. */
static void write_row(struct fixture *f, struct slice key, const void *payload,
                      size_t len)
{
    struct tamper t;
    MDB_val k = {key.len, (void *)(uintptr_t)key.data}, v;
    uint8_t row[64];

    tamper_begin(&t, f->dir, "meta");
    if (payload == NULL) {
        cr_assert_eq(mdb_del(t.txn, t.dbi, &k, NULL), 0);
        tamper_end(&t);
        return;
    }
    memcpy(row + 4, payload, len);
    bytes_put_be32(
        row, hash_crc32c(hash_crc32c(0, key.data, key.len), row + 4, len));
    v = (MDB_val){len + 4, row};
    cr_assert_eq(mdb_put(t.txn, t.dbi, &k, &v, 0), 0);
    tamper_end(&t);
}

static void expect_row(struct fixture *f, struct slice key, const void *payload,
                       size_t len)
{
    struct tamper t;
    MDB_val k = {key.len, (void *)(uintptr_t)key.data}, v;

    tamper_begin(&t, f->dir, "meta");
    cr_assert_eq(mdb_get(t.txn, t.dbi, &k, &v), 0);
    cr_assert_eq(v.mv_size, len + 4);
    cr_assert_arr_eq((const char *)v.mv_data + 4, (const char *)payload, len);
    tamper_end(&t);
}

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__})
#define KEY(...)                                                               \
    ((struct slice){(const char *)BYTES(__VA_ARGS__),                          \
                    sizeof(BYTES(__VA_ARGS__))})

static const uint8_t low_water_row[28] = {1,  2,  3,  4,  5,  6,  7,  8, 9, 10,
                                          11, 12, 1,  2,  3,  4,  5,  6, 7, 8,
                                          9,  10, 11, 12, 13, 14, 15, 16};

/* docs/format.md, "meta", written out by hand. */
Test(store_partition, rows_are_these_bytes)
{
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    (void)name_stream(&f, orders);
    put_low_water(&f, 1, 0x01020304, &first_low_water);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "e", &entry);
    fixture_settle(&f, &entry, RECORD_DEAD);
    OK(&f, store_outbox_add(f.store, &entry, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    store_close(&f.store);
    expect_row(&f, KEY('t', 0, 1), orders, strlen(orders));
    expect_row(&f, KEY('k', 0, 1, 1, 2, 3, 4), low_water_row,
               sizeof low_water_row);
    expect_row(&f, KEY('o', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), entry.identity.hash,
               16);
    fixture_end(&f);
}

static void expect_damaged(struct fixture *f, const char *finding)
{
    struct store_low_water back;

    verify(f, finding);
    fixture_open(f);
    OK(f, store_begin(f->store, &f->err));
    cr_expect_eq(store_get_low_water(f->store, 1, 0, &back, &f->err),
                 STORE_FAILED);
    cr_expect_eq(f->err.kind, ERR_DATA);
    cr_expect_not_null(strstr(f->err.text, "default/orders/onced/0"), "%s",
                       f->err.text);
    store_abort(f->store);
    store_close(&f->store);
}

Test(store_partition, a_damaged_low_water_never_reads_as_absent)
{
    static const struct {
        size_t len;
        uint8_t first; /* byte of the offset */
    } cases[] = {{27, 1}, {29, 1}, {28, 0x80}, {0, 1}};
    struct fixture f;
    uint8_t row[29] = {0};

    fixture_begin(&f);
    (void)name_stream(&f, orders);
    store_close(&f.store);
    memcpy(row, low_water_row, sizeof low_water_row);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        row[0] = cases[i].first;
        write_row(&f, KEY('k', 0, 1, 0, 0, 0, 0), row, cases[i].len);
        expect_damaged(&f, "a damaged low-water");
    }
    write_row(&f, KEY('k', 0, 1, 0, 0, 0, 0), low_water_row,
              sizeof low_water_row);
    verify(&f, NULL);
    cr_assert_gt(tamper_flip(f.dir, "\x05\x06\x07\x08\x09\x0a\x0b"), 0);
    expect_damaged(&f, "meta: a damaged row");
    fixture_end(&f);
}

/* A dead letter in its outbox, a success, and a low-water. */
static void build(struct fixture *f)
{
    struct store_entry entry;

    fixture_begin(f);
    (void)name_stream(f, orders);
    put_low_water(f, 1, 0, &first_low_water);
    OK(f, store_begin(f->store, &f->err));
    accept_at(f, "done", (struct store_position){1, 0, 4}, &entry);
    fixture_settle(f, &entry, RECORD_SUCCEEDED);
    accept_at(f, "dead", (struct store_position){1, 0, 5}, &entry);
    fixture_settle(f, &entry, RECORD_DEAD);
    OK(f, store_outbox_add(f->store, &entry, &f->err));
    OK(f, store_commit(f->store, &f->err));
    store_close(&f->store);
}

Test(store_partition, verify_finds_what_does_not_belong_together)
{
    static const uint8_t nothing[64];
    struct fixture f;
    struct identity done = {{0}};
    const struct {
        const char *finding;
        struct slice key;
        const void *payload;
        size_t len;
    } cases[] = {
        {NULL, KEY('k', 0, 1, 0x7f, 255, 255, 255), nothing, 28},
        {"unknown stream", KEY('k', 0, 2, 0, 0, 0, 0), nothing, 28},
        {"unknown stream", KEY('k', 0, 0, 0, 0, 0, 0), nothing, 28},
        {"damaged low-water", KEY('k', 0, 1, 0x80, 0, 0, 0), nothing, 28},
        {"damaged low-water", KEY('k', 0, 1, 0, 0, 0), nothing, 28},
        {"damaged low-water", KEY('k'), nothing, 28},
        {"damaged low-water", KEY('k', 0, 1, 0, 0, 0, 0), nothing, 29},
        {"'t' is out of", KEY('t', 0, 3), "x", 1},
        {"'t' is out of", KEY('t', 0, 0), "x", 1},
        {"'t' is out of", KEY('t', 0), "x", 1},
        {"'r' is out of", KEY('r', 0, 3), "x", 1},
        {"'n' is out of", KEY('n', 1, 0), "x", 1},
        {NULL, KEY('t', 0, 2), "x", 1},
        /* of one that was forgotten, and of one that lives anew */
        {NULL, KEY('o', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), nothing, 16},
        {NULL, KEY('o', 0, 1, 0, 0, 0, 0, 0, 0, 0, 1), done.hash, 16},
        {"outbox and record 1", KEY('o', 0, 0, 0, 0, 0, 0, 0, 0, 0, 2),
         done.hash, 16},
        {"the outbox", KEY('o', 0, 2, 0, 0, 0, 0, 0, 0, 0, 1), done.hash, 16},
        {"the outbox", KEY('o', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), done.hash, 16},
        {"the outbox", KEY('o', 0, 0, 0, 0, 0, 0, 0, 0, 0, 3), nothing, 16},
        {"the outbox", KEY('o', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), nothing, 17},
        {"the outbox", KEY('o', 0, 0, 0, 0, 0, 0, 0, 0, 1), nothing, 16},
        {"unknown route, namespace or stream", KEY('t', 0, 1), NULL, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct store_entry entry;

        build(&f);
        verify(&f, NULL);
        fixture_open(&f);
        FOUND(&f, fixture_look(&f, "done", &entry));
        done = entry.identity;
        store_close(&f.store);
        write_row(&f, cases[i].key, cases[i].payload, cases[i].len);
        verify(&f, cases[i].finding);
        fixture_end(&f);
    }
}

Test(store_partition, verify_wants_the_format_that_keeps_old_programs_out)
{
    struct fixture f;

    build(&f);
    tamper_set_byte(f.dir, "meta", SLICE("F"), 3, 1);
    verify(&f, "says format 1");
    fixture_open(&f);
    (void)name_stream(&f, refunds);
    store_close(&f.store);
    verify(&f, NULL);
    fixture_end(&f);
}

Test(store_partition, an_outbox_row_may_outlive_its_death)
{
    struct fixture f;
    struct store_entry entry;

    build(&f);
    fixture_open(&f);
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "dead", &entry));
    entry.record.reason = REASON_NONE;
    fixture_settle(&f, &entry, RECORD_FAILED);
    OK(&f, store_commit(f.store, &f.err));
    store_close(&f.store);
    verify(&f, NULL);

    fixture_open(&f);
    fixture_run_for(&f, 36 * DAY_MS);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "dead", &entry);
    cr_expect_neq(entry.origin, 2, "another one");
    OK(&f, store_commit(f.store, &f.err));
    store_close(&f.store);
    verify(&f, NULL);
    fixture_end(&f);
}

/* --- the outbox ------------------------------------------------------------*/

static void add_dead(struct fixture *f, const char *id, uint16_t route,
                     struct store_entry *entry)
{
    ABSENT(f, fixture_find(f, id, entry));
    fixture_fill_pending(f, entry);
    entry->record.route = route;
    OK(f, store_put(f->store, entry, &f->err));
    fixture_settle(f, entry, RECORD_DEAD);
    OK(f, store_outbox_add(f->store, entry, &f->err));
}

/* The ids in the outbox of the route, in its order. */
static const char *outbox_text(struct fixture *f, uint16_t route)
{
    static char text[64];
    struct store_entry entry;
    struct identity identity;
    uint64_t origin = 0;
    enum store_found found;

    text[0] = '\0';
    while ((found = store_outbox_next(f->store, route, &origin, &identity,
                                      &f->err)) == STORE_FOUND) {
        FOUND(f, store_find_identity(f->store, &identity, &entry, &f->err));
        cr_expect_eq(entry.origin, origin);
        strncat(text, entry.id, entry.id_len);
    }
    cr_assert_eq(found, STORE_ABSENT, "%s", f->err.text);
    return text;
}

Test(store_partition, an_outbox_is_a_list_for_each_route)
{
    struct fixture f;
    struct store_entry entry, first;
    struct identity identity;
    uint64_t origin;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    cr_expect_str_eq(outbox_text(&f, f.route), "");
    add_dead(&f, "a", f.route, &first);
    add_dead(&f, "b", f.other, &entry);
    add_dead(&f, "c", f.route, &entry);
    add_dead(&f, "d", f.other, &entry);
    OK(&f, store_outbox_add(f.store, &first, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);

    OK(&f, store_begin(f.store, &f.err));
    cr_expect_str_eq(outbox_text(&f, f.route), "ac");
    cr_expect_str_eq(outbox_text(&f, f.other), "bd");
    origin = 1;
    FOUND(&f, store_outbox_next(f.store, f.route, &origin, &identity, &f.err));
    cr_expect_eq(origin, 3, "behind the one that is given");
    OK(&f, store_outbox_remove(f.store, f.route, 1, &f.err));
    OK(&f, store_outbox_remove(f.store, f.route, 2, &f.err)); /* is not there */
    cr_expect_str_eq(outbox_text(&f, f.route), "c");
    cr_expect_str_eq(outbox_text(&f, f.other), "bd");
    store_abort(f.store);

    OK(&f, store_begin(f.store, &f.err));
    cr_expect_str_eq(outbox_text(&f, f.route), "ac");
    OK(&f, store_outbox_remove(f.store, f.route, 3, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    OK(&f, store_begin(f.store, &f.err));
    add_dead(&f, "e", f.route, &entry);
    store_abort(f.store);
    fixture_reopen(&f);
    OK(&f, store_begin(f.store, &f.err));
    cr_expect_str_eq(outbox_text(&f, f.route), "a");
    cr_expect_str_eq(outbox_text(&f, f.other), "bd");
    store_abort(f.store);
    fixture_end(&f);
}

Test(store_partition, a_damaged_outbox_never_reads_as_empty)
{
    struct fixture f;
    struct identity identity;
    const struct slice keys[] = {
        KEY('o', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
        KEY('o', 0, 0, 0, 0, 0, 0, 0, 0, 1),
        KEY('o', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0),
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        uint64_t origin = 0;

        fixture_begin(&f);
        store_close(&f.store);
        write_row(&f, keys[i], low_water_row, i == 0 ? 15 : 16);
        fixture_open(&f);
        OK(&f, store_begin(f.store, &f.err));
        cr_expect_eq(
            store_outbox_next(f.store, f.route, &origin, &identity, &f.err),
            STORE_FAILED, "case %zu", i);
        cr_expect_eq(f.err.kind, ERR_DATA);
        store_abort(f.store);
        fixture_end(&f);
    }
}

/* --- what is not settled ---------------------------------------------------*/

enum { EVENTS = 40 };

struct place {
    enum record_state state;
    int64_t due_ms;
    uint64_t seq;
};

static bool is_behind(const struct place *a, const struct place *b)
{
    if (a->state != b->state) {
        return a->state > b->state;
    }
    return a->due_ms != b->due_ms ? a->due_ms > b->due_ms : a->seq > b->seq;
}

/* By a look at every event; NULL where none is left. */
static const char *scan(struct fixture *f, uint16_t route,
                        const struct place *behind, struct place *out)
{
    static char found[8];
    struct store_entry entry;
    char id[8];

    found[0] = '\0';
    for (int i = 0; i < EVENTS; i++) {
        struct place place;

        (void)snprintf(id, sizeof id, "e%d", i);
        FOUND(f, fixture_find(f, id, &entry));
        place =
            (struct place){entry.record.state, entry.record.due_ms, entry.seq};
        if (entry.record.route == route && !record_is_settled(&entry.record) &&
            is_behind(&place, behind) &&
            (found[0] == '\0' || is_behind(out, &place))) {
            *out = place;
            strcpy(found, id);
        }
    }
    return found[0] == '\0' ? NULL : found;
}

static uint32_t random_state = 1;

static uint32_t pick(uint32_t n)
{
    random_state = random_state * 1664525U + 1013904223U;
    return (random_state >> 8) % n;
}

static void put_anyhow(struct fixture *f, struct store_entry *entry)
{
    static const enum record_state states[] = {
        RECORD_PENDING,   RECORD_PENDING,   RECORD_RUNNING,  RECORD_RUNNING,
        RECORD_UNCERTAIN, RECORD_UNCERTAIN, RECORD_SUCCEEDED};
    struct record *record = &entry->record;
    bool is_parked;

    record->state = states[pick(sizeof states / sizeof states[0])];
    record->attempt += record->state == RECORD_RUNNING ? 1 : 0;
    record->doubt_since_ms = record->state == RECORD_UNCERTAIN ? START_MS : 0;
    is_parked = pick(3) == 0 && (record->state == RECORD_PENDING ||
                                 record->state == RECORD_UNCERTAIN);
    record->flags = is_parked ? RECORD_PINS | RECORD_PARKED : 0;
    record->due_ms = is_parked || record_is_settled(record)
                         ? RECORD_NEVER
                         : START_MS + pick(4);
    record->changed_ms = START_MS;
    OK(f, store_put(f->store, entry, &f->err));
}

static void change_one(struct fixture *f)
{
    struct store_entry entry;
    char id[8];

    (void)snprintf(id, sizeof id, "e%u", pick(EVENTS));
    FOUND(f, fixture_find(f, id, &entry));
    put_anyhow(f, &entry);
}

static int walk_unsettled(struct fixture *f, uint16_t route, bool with_changes)
{
    struct place at = {RECORD_PENDING, INT64_MIN, 0}, wanted;
    struct store_entry entry;
    int n = 0;

    OK(f, store_begin(f->store, &f->err));
    for (;;) {
        const char *id = scan(f, route, &at, &wanted);
        enum store_found found = store_next_unsettled(
            f->store, route, &at.state, &at.due_ms, &at.seq, &entry, &f->err);

        if (id == NULL) {
            cr_assert_eq(found, STORE_ABSENT, "%s", f->err.text);
            break;
        }
        cr_assert_eq(found, STORE_FOUND, "%s", f->err.text);
        cr_assert(slice_eq(store_entry_id(&entry), slice_of(id)));
        cr_assert_eq(at.state, wanted.state);
        cr_assert_eq(at.due_ms, wanted.due_ms);
        cr_assert_eq(at.seq, wanted.seq);
        cr_assert_eq(entry.record.state, wanted.state);
        n++;
        if (with_changes && n < 100) {
            change_one(f);
        }
    }
    OK(f, store_commit(f->store, &f->err));
    return n;
}

Test(store_partition, what_is_not_settled_is_found_as_by_a_look_at_all)
{
    struct fixture f;
    struct store_entry entry;
    bool more;
    char id[8];
    int n = 0;

    fixture_prepare(&f);
    f.options.ids_per_generation = 15;
    fixture_open(&f);
    cr_assert_eq(f.route + 1, f.other, "the other one stands behind it");
    OK(&f, store_begin(f.store, &f.err));
    for (int i = 0; i < EVENTS; i++) {
        (void)snprintf(id, sizeof id, "e%d", i);
        fixture_accept(&f, id, &entry);
        entry.record.route = i % 3 == 0 ? f.other : f.route;
        put_anyhow(&f, &entry);
    }
    OK(&f, store_commit(f.store, &f.err));
    for (int round = 0; round < 30; round++) {
        n += walk_unsettled(&f, f.route, round % 2 == 1);
        n += walk_unsettled(&f, f.other, round % 2 == 1);
        OK(&f, store_begin(f.store, &f.err));
        OK(&f, store_maintain(f.store, &more, &f.err));
        OK(&f, store_commit(f.store, &f.err));
    }
    cr_expect_gt(n, 30 * EVENTS / 2);
    fixture_end(&f);
}

/* --- backups ---------------------------------------------------------------*/

Test(store_partition, a_backup_has_low_waters_and_outbox)
{
    struct fixture f;
    char target[PATH_MAX + 8];
    const struct store_backup_order order = {.target = target};
    struct store_backup made;

    build(&f);
    fixture_open(&f);
    (void)snprintf(target, sizeof target, "%s/copy", f.dir);
    cr_assert_not(store_backup(f.store, &order, &made, &f.err));
    (void)snprintf(target, sizeof target, "%s.copy", f.dir);
    OK(&f, store_backup(f.store, &order, &made, &f.err));
    store_close(&f.store);
    tmpdir_remove(f.dir);
    (void)snprintf(f.dir, sizeof f.dir, "%.*s", (int)sizeof f.dir - 1, target);
    cr_expect_eq(read_format(&f), 2);
    verify(&f, NULL);
    f.options.read_only = true;
    OK(&f, store_open(&f.store, &f.options, &f.err));
    expect_low_water(&f, 1, 0, first_low_water.offset);
    store_close(&f.store);
    f.options.read_only = false;
    f.options.restore = true;
    OK(&f, store_open(&f.store, &f.options, &f.err));
    OK(&f, store_begin(f.store, &f.err));
    OK(&f, store_end_restore(f.store, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    f.options.restore = false;
    fixture_reopen(&f);
    cr_expect_str_eq(store_stream_name(f.store, 1), orders);
    expect_low_water(&f, 1, 0, first_low_water.offset);
    expect_position(&f, "dead", (struct store_position){1, 0, 5});
    OK(&f, store_begin(f.store, &f.err));
    cr_expect_str_eq(outbox_text(&f, f.route), "dead");
    store_abort(f.store);
    fixture_end(&f);
}
