/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static void accept_due(struct fixture *f, const char *id, uint16_t route,
                       int64_t due_ms)
{
    struct store_entry entry;

    ABSENT(f, fixture_find(f, id, &entry));
    fixture_fill_pending(f, &entry);
    entry.record.route = route;
    entry.record.due_ms = due_ms;
    if (due_ms == RECORD_NEVER) {
        entry.record.flags = RECORD_ORDERED | RECORD_ORDER_WAIT;
        entry.record.order_key = 5;
    }
    OK(f, store_put(f->store, &entry, &f->err));
}

/* The ids that are due, in order, as one text. */
static const char *due_text(struct fixture *f, uint16_t route, int64_t until_ms)
{
    static char text[256];
    struct store_entry entry;
    int64_t due_ms = INT64_MIN;
    uint64_t seq = 0;

    text[0] = '\0';
    while (store_next_due(f->store, route, until_ms, &due_ms, &seq, &entry,
                          &f->err) == STORE_FOUND) {
        strncat(text, entry.id, entry.id_len);
        cr_assert_eq(entry.record.due_ms, due_ms);
    }
    return text;
}

Test(store_index, due_entries_come_by_time_and_route)
{
    struct fixture f;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    accept_due(&f, "c", f.route, 300);
    accept_due(&f, "a", f.route, 100);
    accept_due(&f, "b", f.route, 100);
    accept_due(&f, "x", f.other, 50);
    accept_due(&f, "n", f.route, RECORD_NEVER);
    cr_assert_str_eq(due_text(&f, f.route, 99), "");
    cr_assert_str_eq(due_text(&f, f.route, 100), "ab");
    cr_assert_str_eq(due_text(&f, f.route, INT64_MAX), "abcn");
    cr_assert_str_eq(due_text(&f, f.other, INT64_MAX), "x");
    OK(&f, store_commit(f.store, &f.err));
    cr_assert_eq(store_first_due(f.store, f.route), 100);
    cr_assert_eq(store_first_due(f.store, f.other), 50);
    fixture_reopen(&f);
    cr_assert_eq(store_first_due(f.store, f.route), 100);
    fixture_end(&f);
}

Test(store_index, the_first_due_time_is_exact_through_every_change)
{
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    cr_assert_eq(store_first_due(f.store, f.route), RECORD_NEVER);
    OK(&f, store_begin(f.store, &f.err));
    accept_due(&f, "a", f.route, 100);
    accept_due(&f, "b", f.route, 200);
    OK(&f, store_commit(f.store, &f.err));

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "a", &entry));
    fixture_settle(&f, &entry, RECORD_SUCCEEDED);
    cr_assert_eq(store_first_due(f.store, f.route), 200);
    store_abort(f.store);
    cr_assert_eq(store_first_due(f.store, f.route), 100);

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "a", &entry));
    entry.record.due_ms = 300;
    OK(&f, store_put(f.store, &entry, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    cr_assert_eq(store_first_due(f.store, f.route), 200);

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "b", &entry));
    entry.record.route = f.other;
    OK(&f, store_put(f.store, &entry, &f.err));
    FOUND(&f, fixture_find(&f, "a", &entry));
    fixture_settle(&f, &entry, RECORD_SUCCEEDED);
    OK(&f, store_commit(f.store, &f.err));
    cr_assert_eq(store_first_due(f.store, f.route), RECORD_NEVER);
    cr_assert_eq(store_first_due(f.store, f.other), 200);
    fixture_end(&f);
}

Test(store_index, what_runs_is_found_among_what_waits)
{
    struct fixture f;
    struct store_entry entry;
    int64_t due_ms = INT64_MIN;
    uint64_t seq = 0;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    accept_due(&f, "a", f.route, 100);
    accept_due(&f, "b", f.route, 200);
    accept_due(&f, "c", f.route, 300);
    accept_due(&f, "d", f.other, 400);
    FOUND(&f, fixture_find(&f, "b", &entry));
    entry.record.state = RECORD_RUNNING;
    entry.record.attempt = 1;
    OK(&f, store_put(f.store, &entry, &f.err));
    cr_assert_str_eq(due_text(&f, f.route, INT64_MAX), "abc");
    cr_assert_str_eq(due_text(&f, f.route, 250), "ab");
    FOUND(&f,
          store_next_running(f.store, f.route, &due_ms, &seq, &entry, &f.err));
    cr_assert_eq(entry.id[0], 'b');
    cr_assert_eq(due_ms, 200);
    ABSENT(&f,
           store_next_running(f.store, f.route, &due_ms, &seq, &entry, &f.err));
    due_ms = INT64_MIN;
    seq = 0;
    ABSENT(&f,
           store_next_running(f.store, f.other, &due_ms, &seq, &entry, &f.err));
    store_abort(f.store);
    fixture_end(&f);
}

static void accept_ordered(struct fixture *f, const char *id, uint64_t key)
{
    struct store_entry entry;

    ABSENT(f, fixture_find(f, id, &entry));
    fixture_fill_pending(f, &entry);
    entry.record.order_key = key;
    entry.record.flags = RECORD_ORDERED;
    OK(f, store_put(f->store, &entry, &f->err));
}

Test(store_index, the_oldest_of_a_key_comes_first)
{
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    accept_ordered(&f, "a", 7);
    accept_ordered(&f, "b", 7);
    accept_ordered(&f, "c", 8);
    FOUND(&f, store_order_first(f.store, 7, &entry, &f.err));
    cr_assert_eq(entry.id[0], 'a');
    FOUND(&f, store_order_first(f.store, 8, &entry, &f.err));
    cr_assert_eq(entry.id[0], 'c');
    ABSENT(&f, store_order_first(f.store, 6, &entry, &f.err));
    ABSENT(&f, store_order_first(f.store, 9, &entry, &f.err));
    FOUND(&f, fixture_find(&f, "a", &entry));
    fixture_settle(&f, &entry, RECORD_SUCCEEDED);
    FOUND(&f, store_order_first(f.store, 7, &entry, &f.err));
    cr_assert_eq(entry.id[0], 'b');
    fixture_settle(&f, &entry, RECORD_SUCCEEDED);
    ABSENT(&f, store_order_first(f.store, 7, &entry, &f.err));
    store_abort(f.store);
    fixture_end(&f);
}

Test(store_index, dead_letters_that_hold_a_key_are_counted)
{
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    accept_ordered(&f, "a", 7);
    accept_ordered(&f, "b", 8);
    FOUND(&f, fixture_find(&f, "a", &entry));
    fixture_settle(&f, &entry, RECORD_DEAD);
    cr_assert_eq(store_dead_holders(f.store, f.route), 0);
    FOUND(&f, fixture_find(&f, "b", &entry));
    entry.record.state = RECORD_DEAD;
    entry.record.reason = REASON_REFUSED;
    entry.record.due_ms = RECORD_NEVER;
    OK(&f, store_put(f.store, &entry, &f.err));
    cr_assert_eq(store_dead_holders(f.store, f.route), 1);
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);
    cr_assert_eq(store_dead_holders(f.store, f.route), 1);

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "b", &entry));
    entry.record.flags &= ~(uint32_t)RECORD_ORDERED;
    OK(&f, store_put(f.store, &entry, &f.err));
    cr_assert_eq(store_dead_holders(f.store, f.route), 0);
    store_abort(f.store);
    cr_assert_eq(store_dead_holders(f.store, f.route), 1);
    fixture_end(&f);
}

Test(store_index, a_record_that_is_written_anew_keeps_its_place)
{
    struct fixture f;
    struct store_entry entry;

    fixture_prepare(&f);
    f.options.ids_per_generation = 1;
    fixture_open(&f);
    OK(&f, store_begin(f.store, &f.err));
    accept_ordered(&f, "a", 7);
    accept_ordered(&f, "b", 7);
    OK(&f, store_commit(f.store, &f.err));
    fixture_maintain(&f);

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "a", &entry));
    cr_assert_eq(entry.seq, 1);
    entry.record.state = RECORD_RUNNING;
    entry.record.attempt = 1;
    OK(&f, store_put(f.store, &entry, &f.err));
    cr_assert_eq(entry.seq, 3);
    cr_assert_eq(entry.origin, 1);
    OK(&f, store_commit(f.store, &f.err));

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, store_order_first(f.store, 7, &entry, &f.err));
    cr_assert_eq(entry.id[0], 'a');
    cr_assert_eq(entry.seq, 3);
    cr_assert_str_eq(due_text(&f, f.route, INT64_MAX), "ba");
    store_abort(f.store);
    fixture_end(&f);
}
