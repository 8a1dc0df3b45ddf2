/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static void bury(struct fixture *f, const char *id, const char *body,
                 uint16_t route)
{
    struct store_entry entry;

    ABSENT(f, fixture_find(f, id, &entry));
    fixture_fill_pending(f, &entry);
    entry.record.route = route;
    OK(f, store_put(f->store, &entry, &f->err));
    OK(f, store_put_envelope(f->store, &entry, slice_of(body), &f->err));
    strcpy(entry.code, "E42");
    strcpy(entry.text, "status 404");
    fixture_settle(f, &entry, RECORD_DEAD);
}

static void expect_envelope(struct fixture *f, const struct store_entry *entry,
                            const char *body)
{
    struct buf out = BUF_INIT;

    FOUND(f, store_get_envelope(f->store, entry, &out, &f->err));
    cr_assert(slice_eq(buf_slice(&out), slice_of(body)));
    buf_free(&out);
}

Test(store_dlq, keeps_envelope_code_and_text_and_gives_them_back)
{
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    bury(&f, "a", "body", f.route);
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "a", &entry));
    cr_assert_str_eq(entry.code, "E42");
    cr_assert_str_eq(entry.text, "status 404");
    expect_envelope(&f, &entry, "body");
    cr_assert_gt(store_dead_bytes(f.store, f.route), strlen("body"));

    /* Replayed: the envelope is an open event's again. */
    entry.record.state = RECORD_PENDING;
    entry.record.reason = REASON_NONE;
    entry.record.due_ms = START_MS;
    OK(&f, store_put(f.store, &entry, &f.err));
    cr_assert_eq(store_dead_bytes(f.store, f.route), 0);
    expect_envelope(&f, &entry, "body");
    cr_assert_str_eq(entry.text, "");
    OK(&f, store_commit(f.store, &f.err));
    FOUND(&f, fixture_look(&f, "a", &entry));
    cr_assert_eq(entry.record.state, RECORD_PENDING);
    fixture_end(&f);
}

Test(store_dlq, takes_an_envelope_that_comes_after_the_record)
{
    struct fixture f;
    struct store_entry entry;
    uint64_t before;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    ABSENT(&f, fixture_find(&f, "a", &entry));
    fixture_fill_pending(&f, &entry);
    fixture_settle(&f, &entry, RECORD_DEAD);
    before = store_dead_bytes(f.store, f.route);
    OK(&f, store_put_envelope(f.store, &entry, SLICE("late body"), &f.err));
    cr_assert_eq(store_dead_bytes(f.store, f.route), before + 9);
    expect_envelope(&f, &entry, "late body");
    entry.record.drifts++;
    OK(&f, store_put(f.store, &entry, &f.err));
    cr_assert_eq(store_dead_bytes(f.store, f.route), before + 9);
    expect_envelope(&f, &entry, "late body");
    store_abort(f.store);
    cr_assert_eq(store_dead_bytes(f.store, f.route), 0);
    fixture_end(&f);
}

static bool note_discarded(void *ctx, const struct store_audit *audit)
{
    cr_assert_eq(audit->move, MOVE_DISCARDED);
    ++*(int *)ctx;
    return true;
}

Test(store_dlq, leaves_a_dead_letter_that_holds_an_ordering_key)
{
    struct fixture f;
    struct store_entry entry;
    int discarded = 0;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    bury(&f, "held", "first", f.route);
    FOUND(&f, fixture_find(&f, "held", &entry));
    entry.record.order_key = 3;
    entry.record.flags |= RECORD_ORDERED;
    OK(&f, store_put(f.store, &entry, &f.err));
    bury(&f, "free", "second", f.route);
    FOUND(&f, store_drop_oldest_dead(f.store, f.route, 0, &f.err));
    ABSENT(&f, store_drop_oldest_dead(f.store, f.route, 0, &f.err));
    FOUND(&f, store_order_first(f.store, 3, &entry, &f.err));
    cr_assert_eq(entry.record.state, RECORD_DEAD);
    FOUND(&f, fixture_find(&f, "free", &entry));
    cr_assert_eq(entry.record.state, RECORD_FAILED);
    OK(&f,
       store_each_audit(f.store, &entry, note_discarded, &discarded, &f.err));
    cr_assert_eq(discarded, 1);
    store_abort(f.store);
    fixture_end(&f);
}

Test(store_dlq, drops_the_oldest_of_a_route)
{
    struct fixture f;
    struct store_entry entry;
    struct buf out = BUF_INIT;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    bury(&f, "x", "other", f.other);
    bury(&f, "a", "first", f.route);
    bury(&f, "b", "second", f.route);
    FOUND(&f, store_drop_oldest_dead(f.store, f.route, 0, &f.err));
    FOUND(&f, fixture_find(&f, "a", &entry));
    cr_assert_eq(entry.record.state, RECORD_FAILED);
    cr_assert_eq(entry.record.reason, REASON_DISCARDED);
    ABSENT(&f, store_get_envelope(f.store, &entry, &out, &f.err));
    FOUND(&f, fixture_find(&f, "b", &entry));
    cr_assert_eq(entry.record.state, RECORD_DEAD);
    FOUND(&f, store_drop_oldest_dead(f.store, f.route, 0, &f.err));
    ABSENT(&f, store_drop_oldest_dead(f.store, f.route, 0, &f.err));
    cr_assert_eq(store_dead_bytes(f.store, f.route), 0);
    FOUND(&f, fixture_find(&f, "x", &entry));
    cr_assert_eq(entry.record.state, RECORD_DEAD);
    store_abort(f.store);
    fixture_end(&f);
}
