/* SPDX-License-Identifier: MIT */
#include "fixture.h"

Test(store, keeps_a_record_over_a_restart)
{
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    ABSENT(&f, store_find(f.store, f.space, SLICE("acct"), SLICE("evt_1"),
                          &entry, &f.err));
    fixture_fill_pending(&f, &entry);
    entry.record.order_key = 77;
    entry.record.flags = RECORD_ORDERED;
    entry.record.fingerprint.mode = FINGERPRINT_RAW;
    entry.record.fingerprint.digest[15] = 9;
    OK(&f, store_put(f.store, &entry, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);

    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, store_find(f.store, f.space, SLICE("acct"), SLICE("evt_1"),
                         &entry, &f.err));
    cr_assert_eq(entry.seq, 1);
    cr_assert_eq(entry.origin, 1);
    cr_assert_eq(entry.record.state, RECORD_PENDING);
    cr_assert_eq(entry.stored.state, RECORD_PENDING);
    cr_assert_eq(entry.record.order_key, 77);
    cr_assert_eq(entry.record.first_seen_ms, START_MS);
    cr_assert_eq(entry.record.fingerprint.digest[15], 9);
    cr_assert(slice_eq(store_entry_id(&entry), SLICE("evt_1")));
    cr_assert(slice_eq(store_entry_tenant(&entry), SLICE("acct")));
    /* The parts of an id are not glued together. */
    ABSENT(&f, store_find(f.store, f.space, SLICE("acc"), SLICE("tevt_1"),
                          &entry, &f.err));
    store_abort(f.store);
    fixture_end(&f);
}

Test(store, sees_earlier_items_of_the_same_batch)
{
    struct fixture f;
    struct store_entry first, second;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "a", &first);
    FOUND(&f, fixture_find(&f, "a", &second));
    cr_assert_eq(second.seq, first.seq);
    second.record.deliveries++;
    OK(&f, store_put(f.store, &second, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    FOUND(&f, fixture_look(&f, "a", &first));
    cr_assert_eq(first.record.deliveries, 2);
    fixture_end(&f);
}

Test(store, an_aborted_batch_leaves_no_trace)
{
    struct fixture f;
    struct store_entry entry;
    struct store_stats *stats = mem_new(1, sizeof *stats);

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "kept", &entry);
    OK(&f, store_commit(f.store, &f.err));

    fixture_pass(&f, 500);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "lost", &entry);
    FOUND(&f, fixture_find(&f, "kept", &entry));
    fixture_settle(&f, &entry, RECORD_DEAD);
    cr_assert_gt(store_dead_bytes(f.store, f.route), 0);
    cr_assert_eq(store_first_due(f.store, f.route), START_MS + 500);
    OK(&f, store_set_paused(f.store, f.route, true, &f.err));
    store_abort(f.store);

    cr_assert_eq(store_first_due(f.store, f.route), START_MS);
    cr_assert_not(store_is_paused(f.store, f.route));
    cr_assert_eq(store_dead_bytes(f.store, f.route), 0);
    store_stats(f.store, stats);
    cr_assert_eq(stats->remembered, 1);
    cr_assert_eq(stats->counts[f.route][RECORD_PENDING], 1);
    cr_assert_eq(stats->counts[f.route][RECORD_DEAD], 0);
    ABSENT(&f, fixture_look(&f, "lost", &entry));
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "next", &entry);
    cr_assert_eq(entry.seq, 2, "the number of a lost record is used again");
    store_abort(f.store);
    free(stats);
    fixture_end(&f);
}

Test(store, counts_by_route_and_state)
{
    struct fixture f;
    struct store_entry entry;
    struct store_stats *stats = mem_new(1, sizeof *stats);

    fixture_begin(&f);
    fixture_add_done(&f, "a");
    fixture_add_done(&f, "b");
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "c", &entry);
    fixture_settle(&f, &entry, RECORD_DEAD);
    fixture_accept(&f, "d", &entry);
    OK(&f, store_commit(f.store, &f.err));
    for (int i = 0; i < 2; i++) {
        store_stats(f.store, stats);
        cr_assert_eq(stats->remembered, 4);
        cr_assert_eq(stats->counts[f.route][RECORD_SUCCEEDED], 2);
        cr_assert_eq(stats->counts[f.route][RECORD_DEAD], 1);
        cr_assert_eq(stats->counts[f.route][RECORD_PENDING], 1);
        cr_assert_eq(stats->counts[f.other][RECORD_SUCCEEDED], 0);
        fixture_reopen(&f);
    }
    free(stats);
    fixture_end(&f);
}

Test(store, gives_names_lasting_numbers)
{
    struct fixture f;
    uint16_t number, again;

    fixture_begin(&f);
    OK(&f, store_route_number(f.store, "third", &number, &f.err));
    cr_assert_eq(number, 2);
    fixture_reopen(&f);
    OK(&f, store_route_number(f.store, "third", &again, &f.err));
    cr_assert_eq(again, 2);
    cr_assert_str_eq(store_route_name(f.store, 0), "stripe");
    cr_assert_str_eq(store_route_name(f.store, 2), "third");
    cr_assert_null(store_route_name(f.store, 3));
    fixture_end(&f);
}

Test(store, every_open_raises_the_epoch)
{
    struct fixture f;
    uint32_t first;

    fixture_begin(&f);
    first = store_epoch(f.store);
    fixture_reopen(&f);
    cr_assert_eq(store_epoch(f.store), first + 1);
    fixture_end(&f);
}

Test(store, a_paused_route_stays_paused)
{
    struct fixture f;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    OK(&f, store_set_paused(f.store, f.other, true, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);
    cr_assert(store_is_paused(f.store, f.other));
    cr_assert_not(store_is_paused(f.store, f.route));
    fixture_end(&f);
}

struct seen {
    char text[512];
    size_t stop_after, n;
};

static bool note_audit(void *ctx, const struct store_audit *audit)
{
    struct seen *seen = ctx;
    size_t len = strlen(seen->text);

    (void)snprintf(seen->text + len, sizeof seen->text - len, "%s:%u:%s:%s ",
                   move_name(audit->move), audit->attempt, audit->actor,
                   audit->why);
    return ++seen->n != seen->stop_after;
}

Test(store, tells_the_history_oldest_first)
{
    struct fixture f;
    struct store_entry a, b;
    struct store_audit audit = {.at_ms = 5, .attempt = 1, .run = 1};
    struct seen seen = {"", 0, 0};

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "a", &a);
    fixture_accept(&f, "b", &b);
    audit.move = MOVE_UNCERTAIN;
    strcpy(audit.why, "timeout");
    OK(&f, store_add_audit(f.store, &a, &audit, &f.err));
    OK(&f, store_add_audit(f.store, &b, &audit, &f.err));
    audit.move = MOVE_REPLAYED;
    strcpy(audit.actor, "ops");
    strcpy(audit.why, "");
    OK(&f, store_add_audit(f.store, &a, &audit, &f.err));
    audit = (struct store_audit){.at_ms = 4, .move = MOVE_CRASHED};
    OK(&f, store_add_audit(f.store, &a, &audit, &f.err));
    OK(&f, store_commit(f.store, &f.err));
    fixture_reopen(&f);
    OK(&f, store_begin(f.store, &f.err));
    OK(&f, store_each_audit(f.store, &a, note_audit, &seen, &f.err));
    cr_assert_str_eq(seen.text,
                     "crashed:0:: uncertain:1::timeout replayed:1:ops: ");
    seen = (struct seen){"", 1, 0};
    OK(&f, store_each_audit(f.store, &a, note_audit, &seen, &f.err));
    cr_assert_eq(seen.n, 1, "false from visit ends it");
    store_abort(f.store);
    fixture_end(&f);
}

Test(store, a_result_that_is_only_its_status_needs_no_row)
{
    struct fixture f;
    struct store_entry entry;
    struct buf flat = BUF_INIT, out = BUF_INIT;
    struct result result = {.status = 204}, back;

    fixture_begin(&f);
    result_encode(&result, &flat);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "a", &entry);
    entry.record.status = 204;
    fixture_settle(&f, &entry, RECORD_SUCCEEDED);
    OK(&f, store_put_result(f.store, &entry, buf_slice(&flat), &f.err));
    FOUND(&f, store_get_result(f.store, &entry, &out, &f.err));
    cr_assert(result_open(buf_slice(&out), &back));
    cr_assert_eq(back.status, 204);
    cr_assert_eq(back.body.len, 0);

    result.body = SLICE("receipt");
    buf_clear(&flat);
    buf_clear(&out);
    result_encode(&result, &flat);
    OK(&f, store_put_result(f.store, &entry, buf_slice(&flat), &f.err));
    FOUND(&f, store_get_result(f.store, &entry, &out, &f.err));
    cr_assert(slice_eq(buf_slice(&out), buf_slice(&flat)));
    store_abort(f.store);
    buf_free(&flat);
    buf_free(&out);
    fixture_end(&f);
}

Test(store, a_read_only_store_reads_and_changes_nothing)
{
    struct fixture f;
    struct store_entry entry;
    uint32_t epoch;

    fixture_begin(&f);
    fixture_add_done(&f, "a");
    epoch = store_epoch(f.store);
    store_close(&f.store);
    f.options.read_only = true;
    f.options.create = false;
    fixture_open(&f);
    cr_assert_eq(store_epoch(f.store), epoch);
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "a", &entry));
    cr_assert_eq(entry.record.state, RECORD_SUCCEEDED);
    OK(&f, store_commit(f.store, &f.err));
    cr_assert_not(store_route_number(f.store, "new", &f.route, &f.err));
    cr_assert_eq(f.err.kind, ERR_NOT_FOUND);
    fixture_end(&f);
}

Test(store, an_erased_envelope_is_gone)
{
    struct fixture f;
    struct store_entry entry;
    struct buf out = BUF_INIT;

    fixture_begin(&f);
    OK(&f, store_begin(f.store, &f.err));
    fixture_accept(&f, "a", &entry);
    OK(&f, store_put_envelope(f.store, &entry, SLICE("body"), &f.err));
    FOUND(&f, store_get_envelope(f.store, &entry, &out, &f.err));
    cr_assert(slice_eq(buf_slice(&out), SLICE("body")));
    entry.record.flags |= RECORD_ERASED;
    OK(&f, store_put(f.store, &entry, &f.err));
    ABSENT(&f, store_get_envelope(f.store, &entry, &out, &f.err));
    store_abort(f.store);
    buf_free(&out);
    fixture_end(&f);
}
