/* SPDX-License-Identifier: MIT */
#include "fixture.h"

struct page {
    char text[4096];
    size_t max, n;
    uint64_t last_seq;
};

static bool note(void *ctx, const struct store_entry *entry)
{
    struct page *page = ctx;

    strncat(page->text, entry->id, entry->id_len);
    page->last_seq = entry->seq;
    return ++page->n != page->max;
}

static const char *list(struct fixture *f, const struct store_filter *filter,
                        struct page *page, size_t max)
{
    *page = (struct page){.max = max};
    OK(f, store_list(f->store, filter, note, page, &f->err));
    return page->text;
}

static void add(struct fixture *f, const char *id, uint16_t route,
                enum record_state state)
{
    struct store_entry entry;

    ABSENT(f, fixture_find(f, id, &entry));
    fixture_fill_pending(f, &entry);
    entry.record.route = route;
    OK(f, store_put(f->store, &entry, &f->err));
    if (state >= RECORD_SUCCEEDED) {
        fixture_settle(f, &entry, state);
    }
}

Test(store_list, newest_first_by_route_state_reason_and_time)
{
    struct fixture f;
    struct page page;
    struct store_filter filter = {.route = -1};

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    add(&f, "a", f.route, RECORD_SUCCEEDED);
    add(&f, "b", f.other, RECORD_DEAD);
    add(&f, "c", f.route, RECORD_DEAD);
    add(&f, "d", f.other, RECORD_PENDING);
    OK(&f, store_commit(f.store, &f.err));
    fixture_pass(&f, 1000);
    OK(&f, store_begin(f.store, &f.err));
    add(&f, "e", f.other, RECORD_DEAD);
    add(&f, "f", f.route, RECORD_PENDING);
    OK(&f, store_commit(f.store, &f.err));

    cr_assert_str_eq(list(&f, &filter, &page, 0), "fedcba");
    cr_assert_str_eq(list(&f, &filter, &page, 2), "fe");
    filter.before = page.last_seq;
    cr_assert_str_eq(list(&f, &filter, &page, 0), "dcba");
    filter.has_state = true;
    filter.state = RECORD_DEAD;
    cr_assert_str_eq(list(&f, &filter, &page, 0), "cb");
    filter.before = 0;
    cr_assert_str_eq(list(&f, &filter, &page, 0), "ecb");
    filter.route = f.other;
    cr_assert_str_eq(list(&f, &filter, &page, 0), "eb");
    filter.since_ms = START_MS + 1;
    cr_assert_str_eq(list(&f, &filter, &page, 0), "e");
    filter.reason = REASON_EXHAUSTED;
    cr_assert_str_eq(list(&f, &filter, &page, 0), "");
    filter = (struct store_filter){
        .route = -1, .has_state = true, .state = RECORD_PENDING};
    cr_assert_str_eq(list(&f, &filter, &page, 0), "fd");
    filter.state = RECORD_SUCCEEDED;
    cr_assert_str_eq(list(&f, &filter, &page, 0), "a");
    filter = (struct store_filter){.route = f.route};
    cr_assert_str_eq(list(&f, &filter, &page, 0), "fca");
    fixture_end(&f);
}

struct count {
    uint64_t n, last;
};

static bool count(void *ctx, const struct store_entry *entry)
{
    struct count *count = ctx;

    cr_assert(count->n == 0 || entry->seq < count->last);
    count->last = entry->seq;
    count->n++;
    return true;
}

Test(store_list, goes_on_over_rounds_and_generations)
{
    static const enum record_state states[] = {RECORD_SUCCEEDED, RECORD_DEAD,
                                               RECORD_PENDING};
    struct fixture f;
    char id[32];

    fixture_prepare(&f);
    f.options.ids_per_generation = 900;
    fixture_open(&f);
    for (int i = 0; i < 7500; i++) {
        if (i % 500 == 0) {
            fixture_maintain(&f);
            OK(&f, store_begin(f.store, &f.err));
        }
        (void)snprintf(id, sizeof id, "%d", i);
        add(&f, id, i % 7 == 0 ? f.route : f.other, states[i % 3]);
        if (i % 500 == 499) {
            OK(&f, store_commit(f.store, &f.err));
        }
    }
    for (int i = 0; i < 4; i++) {
        struct count counted = {0, 0};
        struct store_filter filter = {.route = -1, .has_state = i < 3};

        filter.state = i < 3 ? states[i] : RECORD_NONE;
        OK(&f, store_list(f.store, &filter, count, &counted, &f.err));
        cr_assert_eq(counted.n, i < 3 ? 2500 : 7500);
    }
    fixture_end(&f);
}
