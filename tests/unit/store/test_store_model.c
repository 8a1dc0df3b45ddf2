/* SPDX-License-Identifier: MIT */
/* Random transactions, some of them aborted, against a model that fits on a
 * page. Time passes, generations close, are sealed and forgotten, slices of
 * envelopes go, the store is opened again and verified. */
#include "fixture.h"

enum { IDS = 150, TURNS = 2500, KEYS = 5 };

#define IDS_MS (100 * HOUR_MS)
#define ENVELOPE_MS (30 * HOUR_MS)

struct known {
    enum record_state state;
    int64_t changed_ms, due_ms;
    uint64_t origin, order_key; /* 0: holds no place */
    int envelope;               /* what was put last; 0: none */
};

struct model {
    struct known ids[IDS];
    int envelopes;
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

static void note(struct known *known, const struct store_entry *entry)
{
    const struct record *record = &entry->record;

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

static void change(struct fixture *f, struct model *model, struct known *known,
                   struct store_entry *entry, int64_t now_ms)
{
    bool was_settled = !is_open(known);

    if (pick(4) == 0) {
        entry->record.deliveries++;
        OK(f, store_put(f->store, entry, &f->err));
        return;
    }
    set_state(entry, (enum record_state)(RECORD_PENDING + pick(6)), now_ms);
    OK(f, store_put(f->store, entry, &f->err));
    note(known, entry);
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
    if (known->state == RECORD_NONE || is_older(known, now_ms, IDS_MS)) {
        ABSENT(f, fixture_find(f, id, &entry));
        accept(f, model, known, &entry);
        return;
    }
    FOUND(f, fixture_find(f, id, &entry));
    cr_assert_eq(entry.record.state, known->state);
    cr_assert_eq(entry.record.changed_ms, known->changed_ms);
    cr_assert_eq(entry.origin, known->origin);
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

static void turn(struct fixture *f, struct model *model)
{
    struct model before = *model;
    int64_t now_ms = store_now_ms(f->store);
    bool more, maintain_first = pick(2) == 0;

    OK(f, store_begin(f->store, &f->err));
    if (maintain_first) {
        OK(f, store_maintain(f->store, &more, &f->err));
    }
    for (uint32_t n = pick(8); n > 0; n--) {
        act(f, model, now_ms);
    }
    expect_order(f, model);
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

static void run(uint32_t seed)
{
    struct fixture f;
    struct store_report report;
    struct model *model = mem_new(1, sizeof *model);

    random_state = seed;
    fixture_prepare(&f);
    f.options.ids_per_generation = 60;
    f.options.retention_ms = IDS_MS;
    fixture_open(&f);
    set_retention(&f);
    for (int i = 0; i < TURNS; i++) {
        turn(&f, model);
        fixture_run_for(&f, (int64_t)pick(120) * 60000);
        if (pick(100) == 0) {
            close_well(&f);
            OK(&f, store_verify(f.dir, &report, &f.err));
            cr_assert_eq(report.bad, 0, "seed %u turn %d: %s", seed, i,
                         report.first_bad);
            fixture_open(&f);
            set_retention(&f);
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
