/* SPDX-License-Identifier: MIT */
/* Random transactions, some of them aborted, against a model that fits on a
 * page. Time passes, generations close, are sealed and forgotten, slices of
 * envelopes go, the store is opened again and verified. */
#include "fixture.h"

enum { IDS = 150, TURNS = 2500, KEYS = 5 };
enum { STREAMS = 2, PARTITIONS = 3, OUTBOX_MAX = 4096 };

#define IDS_MS (100 * HOUR_MS)
#define ENVELOPE_MS (30 * HOUR_MS)

struct known {
    enum record_state state;
    int64_t changed_ms, due_ms;
    uint64_t origin, order_key; /* 0: holds no place */
    int envelope;               /* what was put last; 0: none */
    struct store_position position;
};

struct model {
    struct known ids[IDS];
    int envelopes;
    int64_t low_waters[STREAMS][PARTITIONS]; /* 0: none */
    uint64_t outbox[OUTBOX_MAX];             /* origins, lowest first */
    size_t n_outbox;
    int64_t since_ms; /* what was settled from then on stays */
};

static uint32_t random_state;

static uint32_t pick(uint32_t n)
{
    random_state = random_state * 1664525U + 1013904223U;
    return (random_state >> 8) % n;
}

static bool is_open(const struct known *known)
{
    return known->state != RECORD_NONE && known->state < RECORD_SUCCEEDED;
}

static bool is_older(const struct known *known, int64_t now_ms, int64_t ms)
{
    return !is_open(known) && known->state != RECORD_DEAD &&
           now_ms - known->changed_ms >= ms;
}

static bool is_hidden(const struct model *model, const struct known *known,
                      int64_t now_ms)
{
    return known->state == RECORD_NONE || (is_older(known, now_ms, IDS_MS) &&
                                           known->changed_ms < model->since_ms);
}

static void expect_envelope(struct fixture *f, const struct known *known,
                            const struct store_entry *entry, int64_t now_ms)
{
    struct buf out = BUF_INIT;

    if (known->envelope == 0 || is_older(known, now_ms, ENVELOPE_MS)) {
        ABSENT(f, store_get_envelope(f->store, entry, &out, &f->err));
    } else {
        FOUND(f, store_get_envelope(f->store, entry, &out, &f->err));
        cr_assert_eq(atoi(buf_cstr(&out)), known->envelope);
    }
    buf_free(&out);
}

static void put_envelope(struct fixture *f, struct model *model,
                         struct known *known, const struct store_entry *entry)
{
    struct buf flat = BUF_INIT;

    known->envelope = ++model->envelopes;
    buf_printf(&flat, "%d %0*d", known->envelope, (int)pick(6000), 0);
    OK(f, store_put_envelope(f->store, entry, buf_slice(&flat), &f->err));
    buf_free(&flat);
}

static void set_state(struct store_entry *entry, enum record_state state,
                      int64_t now_ms)
{
    struct record *record = &entry->record;

    record->state = state;
    record->reason = state == RECORD_DEAD ? REASON_REFUSED : REASON_NONE;
    record->doubt_since_ms = state == RECORD_UNCERTAIN ? now_ms : 0;
    record->due_ms = state >= RECORD_SUCCEEDED
                         ? RECORD_NEVER
                         : now_ms + (int64_t)pick(5) * HOUR_MS;
    record->attempt += state == RECORD_RUNNING;
    record->changed_ms = now_ms;
    if (state == RECORD_SUCCEEDED || state == RECORD_FAILED) {
        record->flags = 0;
    }
}

static void set_position(struct store_entry *entry)
{
    entry->position = (struct store_position){0, 0, 0};
    if (pick(3) > 0) {
        entry->position = (struct store_position){
            .stream = (uint16_t)(1 + pick(STREAMS)),
            .partition = (int32_t)pick(PARTITIONS),
            .offset = pick(1U << 24),
        };
    }
}

static void expect_position(const struct store_position *there,
                            const struct store_position *wanted)
{
    cr_assert_eq(there->stream, wanted->stream);
    cr_assert_eq(there->partition, wanted->partition);
    cr_assert_eq(there->offset, wanted->offset);
}

static void note(struct known *known, const struct store_entry *entry)
{
    const struct record *record = &entry->record;

    known->position = entry->position;
    known->state = record->state;
    known->changed_ms = record->changed_ms;
    known->due_ms = record->due_ms;
    known->origin = entry->origin;
    known->order_key =
        (record->flags & RECORD_ORDERED) != 0 ? record->order_key : 0;
}

static void accept(struct fixture *f, struct model *model, struct known *known,
                   struct store_entry *entry)
{
    fixture_fill_pending(f, entry);
    set_position(entry);
    if (pick(2) == 0) {
        entry->record.order_key = 1 + pick(KEYS);
        entry->record.flags = RECORD_ORDERED;
    }
    OK(f, store_put(f->store, entry, &f->err));
    note(known, entry);
    known->envelope = 0;
    if (pick(3) > 0) {
        put_envelope(f, model, known, entry);
    }
}

/* --- what partitions and dead letters need ---------------------------------*/

static void add_to_outbox(struct fixture *f, struct model *model,
                          const struct store_entry *entry)
{
    size_t at = model->n_outbox;

    OK(f, store_outbox_add(f->store, entry, &f->err));
    for (size_t i = 0; i < model->n_outbox; i++) {
        if (model->outbox[i] == entry->origin) {
            return;
        }
    }
    cr_assert_lt(model->n_outbox, OUTBOX_MAX);
    for (; at > 0 && model->outbox[at - 1] > entry->origin; at--) {
        model->outbox[at] = model->outbox[at - 1];
    }
    model->outbox[at] = entry->origin;
    model->n_outbox++;
}

static void remove_from_outbox(struct fixture *f, struct model *model)
{
    size_t at;

    if (model->n_outbox == 0) {
        return;
    }
    at = pick((uint32_t)model->n_outbox);
    OK(f, store_outbox_remove(f->store, f->route, model->outbox[at], &f->err));
    model->n_outbox--;
    memmove(model->outbox + at, model->outbox + at + 1,
            (model->n_outbox - at) * sizeof model->outbox[0]);
}

static void expect_outbox(struct fixture *f, const struct model *model)
{
    struct identity identity;
    uint64_t origin = 0;

    for (size_t i = 0; i < model->n_outbox; i++) {
        FOUND(f, store_outbox_next(f->store, f->route, &origin, &identity,
                                   &f->err));
        cr_assert_eq(origin, model->outbox[i]);
    }
    ABSENT(f,
           store_outbox_next(f->store, f->route, &origin, &identity, &f->err));
}

static void put_low_water(struct fixture *f, struct model *model)
{
    uint32_t stream = pick(STREAMS), partition = pick(PARTITIONS);
    int64_t *offset = &model->low_waters[stream][partition];
    struct store_low_water low_water;

    *offset += 1 + pick(1000);
    low_water = (struct store_low_water){.offset = *offset, .topic_id = {1}};
    OK(f, store_put_low_water(f->store, (uint16_t)(1 + stream),
                              (int32_t)partition, &low_water, &f->err));
}

static void expect_low_waters(struct fixture *f, const struct model *model)
{
    for (uint16_t i = 0; i < STREAMS; i++) {
        for (int32_t k = 0; k < PARTITIONS; k++) {
            struct store_low_water low_water = {.offset = 0};

            cr_assert_neq(
                store_get_low_water(f->store, i + 1, k, &low_water, &f->err),
                STORE_FAILED, "%s", f->err.text);
            cr_assert_eq(low_water.offset, model->low_waters[i][k]);
        }
    }
}

/* --- events ----------------------------------------------------------------*/

static void change(struct fixture *f, struct model *model, struct known *known,
                   struct store_entry *entry, int64_t now_ms)
{
    bool was_settled = !is_open(known);

    if (pick(4) == 0) {
        entry->record.deliveries++;
        set_position(entry);
        OK(f, store_put(f->store, entry, &f->err));
        known->position = entry->position;
        return;
    }
    set_state(entry, (enum record_state)(RECORD_PENDING + pick(6)), now_ms);
    OK(f, store_put(f->store, entry, &f->err));
    note(known, entry);
    if (known->state == RECORD_DEAD && pick(4) > 0) {
        add_to_outbox(f, model, entry);
    }
    /* Run again, or settled again: what had been kept may be gone. */
    if (was_settled) {
        put_envelope(f, model, known, entry);
    }
}

static void act(struct fixture *f, struct model *model, int64_t now_ms)
{
    uint32_t i = pick(IDS);
    struct known *known = &model->ids[i];
    struct store_entry entry;
    char id[16];

    (void)snprintf(id, sizeof id, "id_%u", i);
    if (is_hidden(model, known, now_ms)) {
        ABSENT(f, fixture_find(f, id, &entry));
        cr_assert_eq(entry.expired_ms,
                     entry.expired_seq != 0 ? known->changed_ms : 0);
        accept(f, model, known, &entry);
        return;
    }
    FOUND(f, fixture_find(f, id, &entry));
    cr_assert_eq(entry.record.state, known->state);
    cr_assert_eq(entry.record.changed_ms, known->changed_ms);
    cr_assert_eq(entry.origin, known->origin);
    expect_position(&entry.position, &known->position);
    expect_envelope(f, known, &entry, now_ms);
    change(f, model, known, &entry, now_ms);
}

static const struct known *first_of_key(const struct model *model, uint64_t key)
{
    const struct known *first = NULL;

    for (int i = 0; i < IDS; i++) {
        const struct known *known = &model->ids[i];

        if (known->state != RECORD_NONE && known->order_key == key &&
            (first == NULL || known->origin < first->origin)) {
            first = known;
        }
    }
    return first;
}

static void expect_order(struct fixture *f, const struct model *model)
{
    uint64_t key = 1 + pick(KEYS);
    const struct known *first = first_of_key(model, key);
    struct store_entry entry;

    if (first == NULL) {
        ABSENT(f, store_order_first(f->store, key, &entry, &f->err));
        return;
    }
    FOUND(f, store_order_first(f->store, key, &entry, &f->err));
    cr_assert_eq(entry.origin, first->origin);
}

static void expect_first_due(struct fixture *f, const struct model *model)
{
    int64_t first_ms = RECORD_NEVER;

    for (int i = 0; i < IDS; i++) {
        const struct known *known = &model->ids[i];

        if (is_open(known) && known->due_ms < first_ms) {
            first_ms = known->due_ms;
        }
    }
    cr_assert_eq(store_first_due(f->store, f->route), first_ms);
}

/* An offset that waits since `since_ms`, or none. One that waits after there
 * was none has come lately: what was forgotten meanwhile is not asked for. */
static void move_since(struct fixture *f, struct model *model, int64_t now_ms)
{
    if (pick(40) != 0) {
        return;
    }
    if (model->since_ms == RECORD_NEVER) {
        model->since_ms = now_ms - (int64_t)pick(90) * HOUR_MS;
    } else if (pick(2) == 0) {
        model->since_ms = RECORD_NEVER;
    } else {
        model->since_ms += (now_ms - model->since_ms) / 2;
    }
    store_keep_since(f->store, model->since_ms);
}

static void turn(struct fixture *f, struct model *model)
{
    static struct model before;
    int64_t now_ms = store_now_ms(f->store);
    bool more, maintain_first = pick(2) == 0;

    before = *model;
    OK(f, store_begin(f->store, &f->err));
    if (maintain_first) {
        OK(f, store_maintain(f->store, &more, &f->err));
    }
    for (uint32_t n = pick(8); n > 0; n--) {
        act(f, model, now_ms);
    }
    expect_order(f, model);
    if (pick(3) == 0) {
        put_low_water(f, model);
        remove_from_outbox(f, model);
    }
    if (!maintain_first) {
        OK(f, store_maintain(f->store, &more, &f->err));
    }
    if (pick(4) == 0) {
        store_abort(f->store);
        *model = before;
    } else {
        OK(f, store_commit(f->store, &f->err));
    }
    expect_first_due(f, model);
    move_since(f, model, now_ms);
    OK(f, store_begin(f->store, &f->err));
    expect_low_waters(f, model);
    expect_outbox(f, model);
    store_abort(f->store);
}

static void set_retention(struct fixture *f)
{
    struct store_retention keep = {IDS_MS, ENVELOPE_MS, IDS_MS};

    store_set_retention(f->store, f->route, &keep);
    store_set_retention(f->store, f->other, &keep);
}

/* The mark of the clock is written, so that the next start sees no gap. */
static void close_well(struct fixture *f)
{
    OK(f, store_begin(f->store, &f->err));
    OK(f, store_set_paused(f->store, f->other,
                           !store_is_paused(f->store, f->other), &f->err));
    OK(f, store_commit(f->store, &f->err));
    store_close(&f->store);
}

static void open_again(struct fixture *f, const struct model *model)
{
    uint16_t number;

    fixture_open(f);
    set_retention(f);
    store_keep_since(f->store, model->since_ms);
    OK(f, store_stream_number(f->store, "a/t/g", &number, &f->err));
    cr_assert_eq(number, 1);
    OK(f, store_stream_number(f->store, "b/t/g", &number, &f->err));
    cr_assert_eq(number, 2);
}

static void run(uint32_t seed)
{
    struct fixture f;
    struct store_report report;
    struct model *model = mem_new(1, sizeof *model);

    random_state = seed;
    fixture_prepare(&f);
    f.options.ids_per_generation = 60;
    f.options.retention_ms = IDS_MS;
    model->since_ms = RECORD_NEVER;
    open_again(&f, model);
    for (int i = 0; i < TURNS; i++) {
        turn(&f, model);
        fixture_run_for(&f, (int64_t)pick(120) * 60000);
        if (pick(100) == 0) {
            close_well(&f);
            OK(&f, store_verify(f.dir, &report, &f.err));
            cr_assert_eq(report.bad, 0, "seed %u turn %d: %s", seed, i,
                         report.first_bad);
            open_again(&f, model);
        }
    }
    cr_assert_neq(store_forgotten_until_ms(f.store), INT64_MIN);
    free(model);
    fixture_end(&f);
}

Test(store_model, agrees_with_the_model_1)
{
    run(1);
}

Test(store_model, agrees_with_the_model_2)
{
    run(2);
}

Test(store_model, agrees_with_the_model_3)
{
    run(3);
}
