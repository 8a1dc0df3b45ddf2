/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"

enum { IDS = 3000, PER_GENERATION = 700 };

static void accept_many(struct fixture *f, int from, int to)
{
    struct store_entry entry;
    char id[32];

    OK(f, store_begin(f->store, &f->err));
    for (int i = from; i < to; i++) {
        (void)snprintf(id, sizeof id, "evt_%d", i);
        fixture_accept(f, id, &entry);
        entry.record.attempt = (uint32_t)i;
        fixture_settle(f, &entry, RECORD_SUCCEEDED);
    }
    OK(f, store_commit(f->store, &f->err));
}

static void expect_all(struct fixture *f, int n)
{
    struct store_entry entry;
    char id[32];

    OK(f, store_begin(f->store, &f->err));
    for (int i = 0; i < n; i++) {
        (void)snprintf(id, sizeof id, "evt_%d", i);
        FOUND(f, fixture_find(f, id, &entry));
        cr_assert_eq(entry.record.attempt, (uint32_t)i);
        (void)snprintf(id, sizeof id, "no_%d", i);
        ABSENT(f, fixture_find(f, id, &entry));
    }
    store_abort(f->store);
}

static void begin_small(struct fixture *f)
{
    fixture_prepare(f);
    f->options.ids_per_generation = PER_GENERATION;
    fixture_open(f);
}

Test(store_gen, ids_are_found_before_while_and_after_sealing)
{
    struct fixture f;
    bool more = true;
    int n = 0, steps = 0;

    begin_small(&f);
    accept_many(&f, 0, PER_GENERATION);
    expect_all(&f, PER_GENERATION);
    while (more) {
        OK(&f, store_begin(f.store, &f.err));
        OK(&f, store_maintain(f.store, &more, &f.err));
        OK(&f, store_commit(f.store, &f.err));
        expect_all(&f, PER_GENERATION);
        steps++;
    }
    cr_assert_geq(steps, PER_GENERATION / 256, "in slices");
    for (n = PER_GENERATION; n < IDS; n += 100) {
        accept_many(&f, n, n + 100);
        OK(&f, store_begin(f.store, &f.err));
        OK(&f, store_maintain(f.store, &more, &f.err));
        OK(&f, store_commit(f.store, &f.err));
    }
    expect_all(&f, n);
    fixture_maintain(&f);
    expect_all(&f, n);
    fixture_reopen(&f);
    expect_all(&f, n);
    fixture_end(&f);
}

Test(store_gen, sealing_goes_on_after_a_crash_in_its_middle)
{
    struct fixture f;
    struct store_entry entry;
    bool more;

    begin_small(&f);
    accept_many(&f, 0, PER_GENERATION);
    for (int stop = 1; stop < 14; stop++) {
        for (int i = 0; i < stop; i++) {
            OK(&f, store_begin(f.store, &f.err));
            OK(&f, store_maintain(f.store, &more, &f.err));
            OK(&f, store_commit(f.store, &f.err));
        }
        fixture_reopen(&f);
        expect_all(&f, PER_GENERATION);
    }
    /* One of the sealing generation moves: its old entry must not win. */
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "evt_5", &entry));
    fixture_settle(&f, &entry, RECORD_FAILED);
    OK(&f, store_commit(f.store, &f.err));
    fixture_maintain(&f);
    fixture_reopen(&f);
    expect_all(&f, PER_GENERATION);
    FOUND(&f, fixture_look(&f, "evt_5", &entry));
    cr_assert_eq(entry.record.state, RECORD_FAILED);
    fixture_end(&f);
}

/* What moves on while its generation is half sealed has a row there that the
 * second sealing does not write. */
Test(store_gen, sealing_begins_anew_after_a_crash)
{
    struct fixture f;
    struct store_entry entry;
    struct store_report report;
    bool more;

    begin_small(&f);
    accept_many(&f, 0, PER_GENERATION);
    for (int i = 0; i < 3; i++) {
        OK(&f, store_begin(f.store, &f.err));
        OK(&f, store_maintain(f.store, &more, &f.err));
        OK(&f, store_commit(f.store, &f.err));
    }
    cr_assert(more, "half sealed");
    OK(&f, store_begin(f.store, &f.err));
    for (int n = 0; n < PER_GENERATION; n += 2) {
        char id[16];

        (void)snprintf(id, sizeof id, "evt_%d", n);
        FOUND(&f, fixture_find(&f, id, &entry));
        fixture_settle(&f, &entry, RECORD_FAILED);
    }
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);
    fixture_maintain(&f);
    store_close(&f.store);
    OK(&f, store_verify(f.options.path, &report, &f.err));
    cr_assert_eq(report.bad, 0, "%s", report.first_bad);
    fixture_end(&f);
}

Test(store_gen, an_aborted_step_of_sealing_is_done_again)
{
    struct fixture f;
    bool more = true;

    begin_small(&f);
    accept_many(&f, 0, PER_GENERATION);
    for (int i = 0; more; i++) {
        OK(&f, store_begin(f.store, &f.err));
        OK(&f, store_maintain(f.store, &more, &f.err));
        store_abort(f.store);
        OK(&f, store_begin(f.store, &f.err));
        OK(&f, store_maintain(f.store, &more, &f.err));
        OK(&f, store_commit(f.store, &f.err));
    }
    expect_all(&f, PER_GENERATION);
    fixture_reopen(&f);
    expect_all(&f, PER_GENERATION);
    fixture_end(&f);
}

Test(store_gen, a_closed_event_moves_with_all_that_belongs_to_it)
{
    struct fixture f;
    struct store_entry entry;
    struct store_audit audit = {.at_ms = 1, .move = MOVE_DRIFTED};
    struct buf out = BUF_INIT;
    struct store_stats *stats = mem_new(1, sizeof *stats);

    begin_small(&f);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "old", &entry);
    OK(&f, store_put_envelope(f.store, &entry, SLICE("body"), &f.err));
    OK(&f, store_put_result(f.store, &entry, SLICE("answer"), &f.err));
    OK(&f, store_add_audit(f.store, &entry, &audit, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    accept_many(&f, 0, PER_GENERATION);
    fixture_maintain(&f);

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "old", &entry));
    fixture_settle(&f, &entry, RECORD_SUCCEEDED);
    cr_assert_gt(entry.seq, PER_GENERATION);
    cr_assert_eq(entry.origin, 1);
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "old", &entry));
    cr_assert_eq(entry.record.state, RECORD_SUCCEEDED);
    cr_assert_eq(entry.origin, 1);
    FOUND(&f, store_get_envelope(f.store, &entry, &out, &f.err));
    cr_assert(slice_eq(buf_slice(&out), SLICE("body")));
    buf_clear(&out);
    FOUND(&f, store_get_result(f.store, &entry, &out, &f.err));
    cr_assert(slice_eq(buf_slice(&out), SLICE("answer")));
    store_abort(f.store);
    store_stats(f.store, stats);
    cr_assert_eq(stats->remembered, PER_GENERATION + 1);
    cr_assert_eq(stats->counts[f.route][RECORD_PENDING], 0);
    buf_free(&out);
    free(stats);
    fixture_end(&f);
}

static bool count_audit(void *ctx, const struct store_audit *audit)
{
    cr_assert_eq(audit->move, MOVE_DRIFTED);
    ++*(int *)ctx;
    return true;
}

Test(store_gen, forgetting_keeps_open_events_and_dead_letters)
{
    struct fixture f;
    struct store_entry entry;
    struct store_audit audit = {.at_ms = 1, .move = MOVE_DRIFTED};
    struct buf out = BUF_INIT;
    int audits = 0;

    begin_small(&f);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "open", &entry);
    OK(&f, store_put_envelope(f.store, &entry, SLICE("open body"), &f.err));
    OK(&f, store_add_audit(f.store, &entry, &audit, &f.err));
    fixture_accept(&f, "dead", &entry);
    OK(&f, store_put_envelope(f.store, &entry, SLICE("dead body"), &f.err));
    strcpy(entry.code, "card_declined");
    fixture_settle(&f, &entry, RECORD_DEAD);
    OK(&f, store_commit(f.store, &f.err));
    accept_many(&f, 0, PER_GENERATION);
    cr_assert_eq(store_forgotten_until_ms(f.store), INT64_MIN);
    fixture_maintain(&f);
    fixture_run_for(&f, 36 * DAY_MS);
    for (int i = 0; i < 3; i++) {
        fixture_maintain(&f);
    }

    cr_assert_eq(store_forgotten_until_ms(f.store), START_MS);
    ABSENT(&f, fixture_look(&f, "evt_1", &entry));
    fixture_reopen(&f);
    cr_assert_eq(store_forgotten_until_ms(f.store), START_MS);
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "open", &entry));
    cr_assert_eq(entry.record.state, RECORD_PENDING);
    FOUND(&f, store_get_envelope(f.store, &entry, &out, &f.err));
    cr_assert(slice_eq(buf_slice(&out), SLICE("open body")));
    OK(&f, store_each_audit(f.store, &entry, count_audit, &audits, &f.err));
    cr_assert_eq(audits, 1);
    FOUND(&f, fixture_find(&f, "dead", &entry));
    cr_assert_eq(entry.record.state, RECORD_DEAD);
    cr_assert_str_eq(entry.code, "card_declined");
    buf_clear(&out);
    FOUND(&f, store_get_envelope(f.store, &entry, &out, &f.err));
    cr_assert(slice_eq(buf_slice(&out), SLICE("dead body")));
    store_abort(f.store);
    buf_free(&out);
    fixture_end(&f);
}

Test(store_gen, a_generation_closes_by_age)
{
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    fixture_add_done(&f, "a");
    fixture_run_for(&f, 3 * DAY_MS);
    fixture_maintain(&f);
    fixture_add_done(&f, "b");
    fixture_run_for(&f, 35 * DAY_MS - 1);
    fixture_maintain(&f);
    cr_assert_eq(store_forgotten_until_ms(f.store), INT64_MIN);
    fixture_run_for(&f, 1);
    fixture_maintain(&f);
    cr_assert_eq(store_forgotten_until_ms(f.store), START_MS + 3 * DAY_MS);
    ABSENT(&f, fixture_look(&f, "a", &entry));
    fixture_end(&f);
}

Test(store_gen, a_settled_id_reads_as_absent_after_its_routes_retention)
{
    struct fixture f;
    struct store_entry entry;
    struct store_retention day = {DAY_MS, DAY_MS, HOUR_MS};
    struct store_stats *stats = mem_new(1, sizeof *stats);
    struct buf out = BUF_INIT;

    fixture_begin(&f);
    store_set_retention(f.store, f.route, &day);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "a", &entry);
    fixture_settle(&f, &entry, RECORD_SUCCEEDED);
    OK(&f, store_put_result(f.store, &entry, SLICE("answer"), &f.err));
    fixture_accept(&f, "dead", &entry);
    fixture_settle(&f, &entry, RECORD_DEAD);
    fixture_accept(&f, "open", &entry);
    OK(&f, store_commit(f.store, &f.err));
    fixture_run_for(&f, DAY_MS - 1);
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "a", &entry));
    ABSENT(&f, store_get_result(f.store, &entry, &out, &f.err));
    store_abort(f.store);
    fixture_run_for(&f, 1);
    FOUND(&f, fixture_look(&f, "dead", &entry));
    FOUND(&f, fixture_look(&f, "open", &entry));
    ABSENT(&f, fixture_look(&f, "a", &entry));

    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "a", &entry);
    cr_assert_eq(entry.origin, 4, "a new life");
    ABSENT(&f, store_get_result(f.store, &entry, &out, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    store_stats(f.store, stats);
    cr_assert_eq(stats->remembered, 3);
    fixture_reopen(&f);
    FOUND(&f, fixture_look(&f, "a", &entry));
    cr_assert_eq(entry.record.state, RECORD_PENDING);
    free(stats);
    fixture_end(&f);
}

static void expect_known(struct fixture *f, const char *ids)
{
    static const char *const all[] = {"old", "seen", "new"};
    struct store_entry entry;

    for (size_t i = 0; i < 3; i++) {
        cr_expect_eq(fixture_look(f, all[i], &entry),
                     strstr(ids, all[i]) != NULL ? STORE_FOUND : STORE_ABSENT,
                     "%s of \"%s\"", all[i], ids);
    }
}

/* Retention has passed for all three. */
Test(store_gen, what_may_come_again_is_not_hidden)
{
    struct fixture f;
    struct store_entry entry;
    struct store_retention hour = {HOUR_MS, HOUR_MS, HOUR_MS};

    fixture_begin(&f);
    fixture_add_done(&f, "old");
    fixture_add_done(&f, "seen");
    fixture_run_for(&f, 10 * DAY_MS);
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "seen", &entry));
    entry.record.last_seen_ms = store_now_ms(f.store);
    entry.record.deliveries++;
    OK(&f, store_put(f.store, &entry, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    fixture_run_for(&f, 10 * DAY_MS);
    fixture_add_done(&f, "new");
    fixture_run_for(&f, 40 * DAY_MS);
    expect_known(&f, "");
    store_keep_since(f.store, START_MS);
    expect_known(&f, "old seen new");
    store_keep_since(f.store, START_MS + 1);
    expect_known(&f, "seen new");
    store_keep_since(f.store, START_MS + 10 * DAY_MS);
    expect_known(&f, "seen new");
    store_set_retention(f.store, f.route, &hour);
    expect_known(&f, "seen new");
    store_keep_since(f.store, START_MS + 10 * DAY_MS + 1);
    expect_known(&f, "new");
    store_keep_since(f.store, START_MS + 20 * DAY_MS + 1);
    expect_known(&f, "");
    store_keep_since(f.store, START_MS);
    fixture_add_done(&f, "other"); /* and the mark of the clock */
    fixture_reopen(&f);
    expect_known(&f, "");
    fixture_end(&f);
}

static int count_lines(const char *path, const char *part)
{
    FILE *file = fopen(path, "r");
    char line[4096];
    int n = 0;

    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        n += strstr(line, part) != NULL;
    }
    fclose(file);
    return n;
}

static void maintain_often(struct fixture *f)
{
    for (int i = 0; i < 5; i++) {
        fixture_maintain(f);
    }
}

Test(store_gen, a_generation_that_may_come_again_is_not_dropped)
{
    const int64_t closed_ms = START_MS + 3 * DAY_MS;
    struct fixture f;
    struct log_options log = {.level = LOG_WARN, .format = LOG_LOGFMT};
    char path[PATH_MAX + 8];

    fixture_begin(&f);
    (void)snprintf(path, sizeof path, "%s/log", f.dir);
    log.fd = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert(log_start(&log, &f.err), "%s", f.err.text);
    fixture_add_done(&f, "a");
    fixture_run_for(&f, 3 * DAY_MS);
    fixture_maintain(&f);
    fixture_add_done(&f, "b");
    store_keep_since(f.store, closed_ms);
    fixture_run_for(&f, 35 * DAY_MS - 1);
    maintain_often(&f);
    log_stop();
    cr_expect_eq(count_lines(path, "past their time"), 0, "not yet");

    cr_assert(log_start(&log, &f.err), "%s", f.err.text);
    fixture_run_for(&f, 5 * DAY_MS);
    maintain_often(&f);
    cr_expect_eq(store_forgotten_until_ms(f.store), INT64_MIN);
    store_keep_since(f.store, START_MS);
    maintain_often(&f);
    cr_expect_eq(store_forgotten_until_ms(f.store), INT64_MIN);
    log_stop();
    cr_expect_eq(count_lines(path, "past their time"), 1, "once");
    cr_expect_eq(count_lines(path, "generation=1 "), 1);

    store_keep_since(f.store, closed_ms + 1);
    maintain_often(&f);
    cr_expect_eq(store_forgotten_until_ms(f.store), closed_ms);
    close(log.fd);
    fixture_end(&f);
}

Test(store_gen, envelopes_go_before_the_ids_and_open_ones_stay)
{
    struct fixture f;
    struct store_entry entry;
    struct store_retention keep = {35 * DAY_MS, DAY_MS, 35 * DAY_MS};
    struct buf out = BUF_INIT;

    fixture_begin(&f);
    store_set_retention(f.store, f.route, &keep);
    store_set_retention(f.store, f.other, &keep);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "done", &entry);
    OK(&f, store_put_envelope(f.store, &entry, SLICE("done body"), &f.err));
    fixture_settle(&f, &entry, RECORD_SUCCEEDED);
    fixture_accept(&f, "open", &entry);
    OK(&f, store_put_envelope(f.store, &entry, SLICE("open body"), &f.err));
    OK(&f, store_commit(f.store, &f.err));
    for (int i = 0; i < 40; i++) {
        fixture_run_for(&f, 2 * HOUR_MS);
        fixture_maintain(&f);
    }
    /* Even where it would not be hidden any more, it is gone. */
    keep.envelope_ms = 35 * DAY_MS;
    store_set_retention(f.store, f.route, &keep);
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "done", &entry));
    ABSENT(&f, store_get_envelope(f.store, &entry, &out, &f.err));
    FOUND(&f, fixture_find(&f, "open", &entry));
    FOUND(&f, store_get_envelope(f.store, &entry, &out, &f.err));
    cr_assert(slice_eq(buf_slice(&out), SLICE("open body")));
    store_abort(f.store);
    buf_free(&out);
    fixture_end(&f);
}

static void move_to_front(struct fixture *f, int i)
{
    struct store_entry entry;
    char id[32];

    (void)snprintf(id, sizeof id, "open_%d", i);
    OK(f, store_begin(f->store, &f->err));
    FOUND(f, fixture_find(f, id, &entry));
    entry.record.due_ms = START_MS - i;
    OK(f, store_put(f->store, &entry, &f->err));
    OK(f, store_commit(f->store, &f->err));
}

/* The walk over `due` that saves envelopes takes several steps. An event that
 * jumps from before it to behind it must not be missed. */
Test(store_gen, an_envelope_is_saved_when_its_event_passes_the_walk)
{
    enum { OPEN = 1500 };
    struct fixture f;
    struct store_entry entry;
    struct store_retention keep = {35 * DAY_MS, DAY_MS, DAY_MS};
    struct buf out = BUF_INIT;
    char id[32];
    int last = OPEN;
    bool more = true;

    fixture_begin(&f);
    store_set_retention(f.store, f.route, &keep);
    store_set_retention(f.store, f.other, &keep);
    OK(&f, store_begin(f.store, &f.err));
    for (int i = 0; i < OPEN; i++) {
        (void)snprintf(id, sizeof id, "open_%d", i);
        fixture_accept(&f, id, &entry);
        OK(&f, store_put_envelope(f.store, &entry, slice_of(id), &f.err));
        entry.record.due_ms = START_MS + i;
        OK(&f, store_put(f.store, &entry, &f.err));
    }
    OK(&f, store_commit(f.store, &f.err));
    fixture_run_for(&f, 4 * HOUR_MS);
    fixture_maintain(&f);
    fixture_run_for(&f, 30 * HOUR_MS);
    while (more) {
        OK(&f, store_begin(f.store, &f.err));
        OK(&f, store_maintain(f.store, &more, &f.err));
        OK(&f, store_commit(f.store, &f.err));
        move_to_front(&f, --last);
    }
    cr_assert_lt(last, OPEN - 4, "in several steps");
    OK(&f, store_begin(f.store, &f.err));
    for (int i = 0; i < OPEN; i++) {
        (void)snprintf(id, sizeof id, "open_%d", i);
        FOUND(&f, fixture_find(&f, id, &entry));
        buf_clear(&out);
        FOUND(&f, store_get_envelope(f.store, &entry, &out, &f.err));
        cr_assert(slice_eq(buf_slice(&out), slice_of(id)));
    }
    store_abort(f.store);
    buf_free(&out);
    fixture_end(&f);
}

Test(store_gen, a_store_with_no_free_slot_goes_on_in_the_last_generation)
{
    struct fixture f;
    int n = 0;

    fixture_prepare(&f);
    f.options.ids_per_generation = 1;
    fixture_open(&f);
    for (; n < 200; n++) {
        accept_many(&f, n, n + 1);
        fixture_maintain(&f);
    }
    expect_all(&f, n);
    fixture_reopen(&f);
    expect_all(&f, n);
    fixture_run_for(&f, 36 * DAY_MS);
    fixture_maintain(&f);
    accept_many(&f, n, n + 1);
    fixture_maintain(&f);
    fixture_end(&f);
}
