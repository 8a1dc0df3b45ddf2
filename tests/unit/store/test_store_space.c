/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static bool add_big(struct fixture *f, int i)
{
    static char body[40000];
    struct store_entry entry;
    char id[32];

    (void)snprintf(id, sizeof id, "%d", i);
    OK(f, store_begin(f->store, &f->err));
    ABSENT(f, fixture_find(f, id, &entry));
    fixture_fill_pending(f, &entry);
    entry.record.state = RECORD_SUCCEEDED;
    entry.record.due_ms = RECORD_NEVER;
    if (store_put(f->store, &entry, &f->err) &&
        store_put_envelope(f->store, &entry, (struct slice){body, sizeof body},
                           &f->err)) {
        return store_commit(f->store, &f->err);
    }
    store_abort(f->store);
    return false;
}

Test(store_space, a_full_store_says_so_and_has_room_again_later)
{
    struct fixture f;
    struct store_entry entry;
    struct store_retention keep = {35 * DAY_MS, DAY_MS, DAY_MS};
    bool full = false;
    int n = 0;

    fixture_prepare(&f);
    f.options.max_bytes = 2 << 20;
    fixture_open(&f);
    store_set_retention(f.store, f.route, &keep);
    store_set_retention(f.store, f.other, &keep);
    cr_assert_not(store_is_full(f.store));
    while (add_big(&f, n)) {
        n++;
        fixture_pass(&f, 1000);
        full = store_is_full(f.store);
        cr_assert(full || n * 40960 < 2 << 20);
    }
    cr_assert(full, "the quota comes before the end of the map");
    cr_assert_eq(f.err.kind, ERR_AGAIN, "%s", f.err.text);
    cr_assert_geq(n, 60);
    FOUND(&f, fixture_look(&f, "0", &entry));
    cr_assert_eq(fixture_look(&f, "9999", &entry), STORE_ABSENT);

    /* Envelopes go after a day; so does the want of room. */
    for (int i = 0; i < 40; i++) {
        fixture_run_for(&f, HOUR_MS);
        fixture_maintain(&f);
    }
    cr_assert_not(store_is_full(f.store));
    /* LMDB gives pages out again one commit after they became free. */
    fixture_add_done(&f, "small");
    cr_assert(add_big(&f, n), "%s", f.err.text);
    fixture_reopen(&f);
    FOUND(&f, fixture_look(&f, "0", &entry));
    fixture_end(&f);
}

Test(store_space, settling_goes_on_when_the_quota_is_spent)
{
    struct fixture f;
    struct store_entry entry;
    int n = 0;

    fixture_prepare(&f);
    f.options.max_bytes = 2 << 20;
    fixture_open(&f);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "open", &entry);
    OK(&f, store_commit(f.store, &f.err));
    while (!store_is_full(f.store)) {
        cr_assert(add_big(&f, n++), "%s", f.err.text);
        fixture_pass(&f, 1000);
    }
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "open", &entry));
    fixture_settle(&f, &entry, RECORD_SUCCEEDED);
    OK(&f, store_commit(f.store, &f.err));
    fixture_end(&f);
}

/* Whatever call meets the end of the map says so, and so does the commit of
 * a caller that does not look. */
Test(store_space, a_full_map_is_the_same_answer_to_the_end_of_the_batch)
{
    static char body[100000];
    struct fixture f;
    struct store_entry entry;
    struct slice flat = {body, sizeof body};

    fixture_prepare(&f);
    f.options.max_bytes = 2 << 20;
    fixture_open(&f);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "a", &entry);
    OK(&f, store_put_envelope(f.store, &entry, SLICE("small"), &f.err));
    OK(&f, store_commit(f.store, &f.err));
    OK(&f, store_begin(f.store, &f.err));
    for (int i = 0; i < 60; i++) {
        char id[32];

        (void)snprintf(id, sizeof id, "big_%d", i);
        if (fixture_find(&f, id, &entry) != STORE_ABSENT) {
            break;
        }
        fixture_fill_pending(&f, &entry);
        if (!store_put(f.store, &entry, &f.err) ||
            !store_put_envelope(f.store, &entry, flat, &f.err)) {
            break;
        }
    }
    cr_assert_eq(f.err.kind, ERR_AGAIN, "%s", f.err.text);
    f.err.kind = ERR_NONE;
    cr_assert_not(store_commit(f.store, &f.err));
    cr_assert_eq(f.err.kind, ERR_AGAIN, "%s", f.err.text);
    FOUND(&f, fixture_look(&f, "a", &entry));
    ABSENT(&f, fixture_look(&f, "big_0", &entry));
    cr_assert_eq(store_first_due(f.store, f.route), START_MS);
    fixture_add_done(&f, "b");
    fixture_end(&f);
}
