/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <stdlib.h>
#include <unistd.h>

/* More than one portion of records that were moved. */
enum { MANY = 40000, PER_GENERATION = 10000, COMMIT = 4000 };

struct walked {
    uint64_t *origins;
    size_t n, cap, stop_at;
    struct store *store;
};

static bool note(void *ctx, const struct store_entry *entry)
{
    struct walked *walked = ctx;

    if (walked->n == walked->cap) {
        walked->cap = walked->cap == 0 ? 64 : walked->cap * 2;
        walked->origins =
            mem_grow(walked->origins, walked->cap, sizeof *walked->origins);
    }
    walked->origins[walked->n++] = entry->origin;
    return walked->n != walked->stop_at;
}

static struct walked walk(struct fixture *f, size_t stop_at)
{
    struct walked walked = {.stop_at = stop_at, .store = f->store};

    OK(f, store_begin(f->store, &f->err));
    OK(f, store_walk(f->store, note, &walked, &f->err));
    store_abort(f->store);
    return walked;
}

static void expect_all_in_order(struct fixture *f, size_t n)
{
    struct walked walked = walk(f, 0);

    cr_assert_eq(walked.n, n);
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(walked.origins[i], i + 1, "record %zu", i);
    }
    free(walked.origins);
}

static void accept_many(struct fixture *f, int from, int to)
{
    struct store_entry entry;
    bool more;
    char id[32];

    OK(f, store_begin(f->store, &f->err));
    for (int i = from; i < to; i++) {
        (void)snprintf(id, sizeof id, "evt_%d", i);
        fixture_accept(f, id, &entry);
    }
    OK(f, store_maintain(f->store, &more, &f->err));
    OK(f, store_commit(f->store, &f->err));
}

/* Settles every `step`th one, from the newest down: those of older
 * generations move to the end, against their order of arrival. */
static void settle_down(struct fixture *f, int n, int step)
{
    struct store_entry entry;
    char id[32];

    for (int i = n - 1; i >= 0;) {
        OK(f, store_begin(f->store, &f->err));
        for (int left = COMMIT / step; left > 0 && i >= 0; left--, i -= step) {
            (void)snprintf(id, sizeof id, "evt_%d", i);
            FOUND(f, fixture_find(f, id, &entry));
            fixture_settle(f, &entry, RECORD_SUCCEEDED);
        }
        OK(f, store_commit(f->store, &f->err));
    }
}

static void begin_small(struct fixture *f, uint32_t ids_per_generation)
{
    fixture_prepare(f);
    f->options.ids_per_generation = ids_per_generation;
    fixture_open(f);
}

Test(store_dump, an_empty_store_has_no_records)
{
    struct fixture f;

    fixture_begin(&f);
    expect_all_in_order(&f, 0);
    fixture_end(&f);
}

Test(store_dump, records_come_in_order_of_arrival_wherever_they_stand)
{
    struct fixture f;

    begin_small(&f, 100);
    for (int i = 0; i < 1000; i += 50) {
        accept_many(&f, i, i + 50);
        fixture_maintain(&f);
    }
    expect_all_in_order(&f, 1000);
    settle_down(&f, 1000, 3);
    expect_all_in_order(&f, 1000);
    settle_down(&f, 1000, 1);
    expect_all_in_order(&f, 1000);
    fixture_reopen(&f);
    expect_all_in_order(&f, 1000);
    fixture_end(&f);
}

Test(store_dump, moved_records_come_in_portions)
{
    struct fixture f;

    begin_small(&f, PER_GENERATION);
    for (int i = 0; i < MANY; i += COMMIT) {
        accept_many(&f, i, i + COMMIT);
        fixture_maintain(&f);
    }
    accept_many(&f, MANY, MANY + 10);
    settle_down(&f, MANY, 1);
    expect_all_in_order(&f, MANY + 10);
    fixture_end(&f);
}

Test(store_dump, a_visitor_ends_it)
{
    struct fixture f;
    struct walked walked;

    begin_small(&f, 100);
    for (int i = 0; i < 300; i += 50) {
        accept_many(&f, i, i + 50);
        fixture_maintain(&f);
    }
    settle_down(&f, 300, 2);
    for (size_t n = 1; n <= 300; n += 23) {
        walked = walk(&f, n);
        cr_assert_eq(walked.n, n);
        free(walked.origins);
    }
    fixture_end(&f);
}

/* What its route has forgotten is in a dump all the same. */
Test(store_dump, what_is_not_remembered_any_more_is_visited)
{
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    fixture_add_done(&f, "old");
    fixture_run_for(&f, 36 * DAY_MS);
    ABSENT(&f, fixture_look(&f, "old", &entry));
    expect_all_in_order(&f, 1);
    fixture_end(&f);
}

Test(store_dump, a_store_has_a_lasting_name)
{
    struct fixture f;
    char uuid[16];

    fixture_begin(&f);
    cr_assert_eq(store_uuid(f.store).len, sizeof uuid);
    memcpy(uuid, store_uuid(f.store).data, sizeof uuid);
    cr_expect_eq(store_incarnation(f.store), 1);
    fixture_reopen(&f);
    cr_expect_arr_eq(store_uuid(f.store).data, uuid, sizeof uuid);
    fixture_end(&f);
}

Test(store_dump, what_another_store_forgot_stays_forgotten)
{
    struct fixture f;

    fixture_begin(&f);
    cr_expect_eq(store_forgotten_until_ms(f.store), INT64_MIN);
    OK(&f, store_begin(f.store, &f.err));
    store_forget_until(f.store, 500);
    store_abort(f.store);
    cr_expect_eq(store_forgotten_until_ms(f.store), INT64_MIN);
    OK(&f, store_begin(f.store, &f.err));
    store_forget_until(f.store, 500);
    store_forget_until(f.store, 400);
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);
    cr_expect_eq(store_forgotten_until_ms(f.store), 500);
    fixture_end(&f);
}

/* --- the mark of a load ----------------------------------------------------
 */

static const char dump[] = "the dump of A";

static void set_loading(struct fixture *f, bool loading)
{
    OK(f, store_begin(f->store, &f->err));
    OK(f, store_set_loading(f->store, loading, &f->err));
    OK(f, store_commit(f->store, &f->err));
}

static void expect_refused(struct fixture *f, const char *load)
{
    f->options.load = load;
    cr_assert_not(store_open(&f->store, &f->options, &f->err));
    cr_expect_eq(f->err.kind, ERR_DATA);
    cr_expect_not_null(strstr(f->err.text, "onced load"), "%s", f->err.text);
    cr_expect_not_null(strstr(f->err.text, dump), "%s", f->err.text);
}

static void open_for(struct fixture *f, const char *load)
{
    f->options.load = load;
    fixture_open(f);
}

Test(store_dump, half_a_load_is_refused_to_all_but_the_same_one)
{
    struct fixture f;
    struct store_report report;

    fixture_prepare(&f);
    open_for(&f, NULL);
    store_close(&f.store);
    open_for(&f, dump);
    cr_expect_not(store_is_loading(f.store), "it was there before");
    set_loading(&f, true);
    cr_expect(store_is_loading(f.store));
    store_close(&f.store);
    expect_refused(&f, NULL);
    expect_refused(&f, "the dump of B");
    expect_refused(&f, "");

    f.options.read_only = true;
    OK(&f, store_open(&f.store, &f.options, &f.err));
    store_close(&f.store);
    OK(&f, store_verify(f.dir, &report, &f.err));
    cr_expect_eq(report.bad, 0, "%s", report.first_bad);

    f.options.read_only = false;
    open_for(&f, dump);
    set_loading(&f, false);
    set_loading(&f, false);
    store_close(&f.store);
    open_for(&f, NULL);
    fixture_end(&f);
}

/* A power cut right after it is made must not leave an empty memory. */
Test(store_dump, a_store_that_a_load_makes_has_its_mark_from_the_first)
{
    struct fixture f;

    fixture_prepare(&f);
    open_for(&f, dump);
    cr_expect(store_is_loading(f.store));
    store_close(&f.store);
    expect_refused(&f, NULL);
    open_for(&f, dump);
    fixture_end(&f);
}

/* What is restored of it would be taken for a whole one. */
Test(store_dump, half_a_load_is_not_backed_up)
{
    struct fixture f;
    char target[sizeof f.dir + 8];
    const struct store_backup_order order = {.target = target};
    struct store_backup made;

    fixture_prepare(&f);
    (void)snprintf(target, sizeof target, "%s.copy", f.dir);
    open_for(&f, dump);
    cr_assert_not(store_backup(f.store, &order, &made, &f.err));
    cr_expect_eq(f.err.kind, ERR_DATA);
    cr_expect_not_null(strstr(f.err.text, "did not end"), "%s", f.err.text);
    cr_expect_neq(access(target, F_OK), 0);
    fixture_end(&f);
}

Test(store_dump, an_aborted_mark_is_none)
{
    struct fixture f;

    fixture_begin(&f);
    store_close(&f.store);
    open_for(&f, dump);
    OK(&f, store_begin(f.store, &f.err));
    OK(&f, store_set_loading(f.store, true, &f.err));
    store_abort(f.store);
    cr_expect_not(store_is_loading(f.store));
    store_close(&f.store);
    open_for(&f, NULL);
    fixture_end(&f);
}
