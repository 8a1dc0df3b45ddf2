/* SPDX-License-Identifier: MIT */
#include "tamper.h"

enum { IDS = 300 };

/* Something in every table: open, settled, ordered, dead; sealed and open
 * generations; records that were written anew. */
static void build(struct fixture *f)
{
    struct store_entry entry;
    struct store_audit audit = {.at_ms = 1, .move = MOVE_DRIFTED};
    char id[32], body[32], answer[32];

    fixture_prepare(f);
    f->options.ids_per_generation = 100;
    fixture_open(f);
    for (int i = 0; i < IDS; i++) {
        (void)snprintf(id, sizeof id, "evt_number_%d", i);
        (void)snprintf(body, sizeof body, "body_of_%d", i);
        (void)snprintf(answer, sizeof answer, "answer_of_%d", i);
        (void)snprintf(audit.why, sizeof audit.why, "why_of_%d", i);
        OK(f, store_begin(f->store, &f->err));
        fixture_accept(f, id, &entry);
        (void)snprintf(entry.text, sizeof entry.text, "text_of_%d", i);
        OK(f, store_put_envelope(f->store, &entry, slice_of(body), &f->err));
        if (i % 10 == 1) {
            entry.record.order_key = 5;
            entry.record.flags |= RECORD_ORDERED;
            OK(f, store_put(f->store, &entry, &f->err));
        } else {
            fixture_settle(f, &entry,
                           i % 10 == 2 ? RECORD_DEAD : RECORD_SUCCEEDED);
            OK(f,
               store_put_result(f->store, &entry, slice_of(answer), &f->err));
        }
        OK(f, store_add_audit(f->store, &entry, &audit, &f->err));
        OK(f, store_commit(f->store, &f->err));
        fixture_maintain(f);
    }
    OK(f, store_begin(f->store, &f->err));
    FOUND(f, fixture_find(f, "evt_number_1", &entry));
    fixture_settle(f, &entry, RECORD_FAILED);
    OK(f, store_commit(f->store, &f->err));
}

static void verify(struct fixture *f, struct store_report *report)
{
    store_close(&f->store);
    OK(f, store_verify(f->dir, report, &f->err));
}

Test(store_verify, finds_nothing_wrong_with_a_good_store)
{
    struct fixture f;
    struct store_report report;

    build(&f);
    verify(&f, &report);
    cr_assert_eq(report.bad, 0, "%s", report.first_bad);
    cr_assert_eq(report.records, IDS);
    cr_assert_eq(report.envelopes, IDS);
    cr_assert_eq(report.dead_letters, IDS / 10);
    cr_assert_eq(report.audits, IDS);
    fixture_end(&f);
}

Test(store_verify, needs_the_lock_and_a_store)
{
    struct fixture f;
    struct store_report report;

    fixture_begin(&f);
    cr_assert_not(store_verify(f.dir, &report, &f.err));
    cr_assert_eq(f.err.kind, ERR_AGAIN);
    cr_assert_not(store_verify("/nonexistent", &report, &f.err));
    cr_assert_eq(f.err.kind, ERR_DATA);
    fixture_end(&f);
}

Test(store_verify, finds_a_row_that_is_missing_from_any_table)
{
    static const char *const tables[] = {"due",    "order",  "dlq",   "dlqpay",
                                         "01.rec", "01.idx", "03.rec"};
    struct fixture f;
    struct store_report report;

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        build(&f);
        store_close(&f.store);
        tamper_delete(f.dir, tables[i], 1);
        verify(&f, &report);
        cr_assert_gt(report.bad, 0, "nothing found in %s", tables[i]);
        cr_assert_neq(report.first_bad[0], '\0');
        fixture_end(&f);
    }
}

Test(store_verify, finds_a_wrong_counter)
{
    struct fixture f;
    struct store_report report;
    const char key[] = {'c', 0, 0, 0, 1, 0, 0};

    build(&f);
    store_close(&f.store);
    tamper_set_byte(f.dir, "meta", (struct slice){key, sizeof key}, 3, 99);
    verify(&f, &report);
    cr_assert_gt(report.bad, 0);
    cr_assert_not_null(strstr(report.first_bad, "counters"));
    fixture_end(&f);
}

Test(store_verify, recounts_dead_letters_that_hold_a_key)
{
    struct fixture f;
    struct store_report report;
    const char key[] = {'v', 0, 0};

    build(&f);
    store_close(&f.store);
    tamper_set_byte(f.dir, "meta", (struct slice){key, sizeof key}, 12, 1);
    verify(&f, &report);
    cr_assert_gt(report.bad, 0);
    cr_assert_not_null(strstr(report.first_bad, "hold a key"));
    fixture_end(&f);
}

Test(store_verify, names_a_record_with_a_flipped_bit)
{
    struct fixture f;
    struct store_report report;

    build(&f);
    store_close(&f.store);
    cr_assert_gt(tamper_flip(f.dir, "evt_number_77"), 0);
    verify(&f, &report);
    cr_assert_gt(report.bad, 0);
    cr_assert_not_null(strstr(report.first_bad, "record 78"), "%s",
                       report.first_bad);
    fixture_end(&f);
}

Test(store_verify, finds_a_flipped_bit_in_every_kind_of_row)
{
    static const char *const texts[] = {"body_of_77",   "body_of_72",
                                        "answer_of_77", "why_of_77",
                                        "text_of_72",   "stripe"};
    struct fixture f;
    struct store_report report;

    build(&f);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        store_close(&f.store);
        cr_assert_gt(tamper_flip(f.dir, texts[i]), 0, "%s", texts[i]);
        verify(&f, &report);
        cr_assert_gt(report.bad, 0, "%s", texts[i]);
        /* And back again. */
        cr_assert_gt(tamper_flip_back(f.dir, texts[i]), 0);
        verify(&f, &report);
        cr_assert_eq(report.bad, 0, "%s", report.first_bad);
    }
    fixture_end(&f);
}

Test(store_verify, a_damaged_envelope_or_result_never_reads_as_absent)
{
    struct fixture f;
    struct store_entry entry;
    struct buf out = BUF_INIT;

    build(&f);
    store_close(&f.store);
    cr_assert_gt(tamper_flip(f.dir, "body_of_77"), 0);
    cr_assert_gt(tamper_flip(f.dir, "body_of_72"), 0);
    cr_assert_gt(tamper_flip(f.dir, "answer_of_77"), 0);
    fixture_open(&f);
    OK(&f, store_begin(f.store, &f.err));
    FOUND(&f, fixture_find(&f, "evt_number_77", &entry));
    cr_assert_eq(store_get_envelope(f.store, &entry, &out, &f.err),
                 STORE_FAILED);
    cr_assert_eq(f.err.kind, ERR_DATA);
    cr_assert_eq(store_get_result(f.store, &entry, &out, &f.err), STORE_FAILED);
    cr_assert_eq(f.err.kind, ERR_DATA);
    FOUND(&f, fixture_find(&f, "evt_number_72", &entry));
    cr_assert_eq(store_get_envelope(f.store, &entry, &out, &f.err),
                 STORE_FAILED);
    cr_assert_eq(out.len, 0);
    store_abort(f.store);
    buf_free(&out);
    fixture_end(&f);
}

static uint32_t random_state = 1;

static uint32_t next_random(void)
{
    random_state = random_state * 1664525U + 1013904223U;
    return random_state >> 8;
}

/* Pages of zeros and noise make LMDB itself stumble: never a raw signal,
 * never silence while a record is lost. */
Test(store_verify, survives_pages_of_noise)
{
    struct fixture f;
    struct store_report report;
    char *good, *bytes;
    size_t len;
    int fd, found = 0;

    build(&f);
    store_close(&f.store);
    good = tamper_map(f.dir, &fd, &len);
    bytes = malloc(len);
    for (int round = 0; round < 60; round++) {
        size_t page = 2 + next_random() % (len / 4096 - 2);

        memcpy(bytes, good, len);
        for (size_t i = 0; i < 4096; i++) {
            bytes[page * 4096 + i] =
                round % 2 == 0 ? 0 : (char)(next_random() & 255);
        }
        cr_assert_eq(pwrite(fd, bytes, len, 0), (ssize_t)len);
        if (!store_verify(f.dir, &report, &f.err)) {
            cr_assert_eq(f.err.kind, ERR_DATA, "%s", f.err.text);
            found++;
        } else {
            found += report.bad > 0;
            cr_assert(report.bad > 0 || report.records == IDS);
        }
    }
    cr_assert_gt(found, 5);
    close(fd);
    free(good);
    free(bytes);
    fixture_end(&f);
}

Test(store_verify, a_damaged_record_never_reads_as_absent)
{
    struct fixture f;
    struct store_entry entry;

    build(&f);
    store_close(&f.store);
    cr_assert_gt(tamper_flip(f.dir, "evt_number_77"), 0);
    fixture_open(&f);
    OK(&f, store_begin(f.store, &f.err));
    cr_assert_eq(fixture_find(&f, "evt_number_77", &entry), STORE_FAILED);
    cr_assert_eq(f.err.kind, ERR_DATA);
    FOUND(&f, fixture_find(&f, "evt_number_76", &entry));
    store_abort(f.store);
    fixture_end(&f);
}

Test(store_verify, a_damaged_filter_is_made_anew)
{
    struct fixture f;
    struct store_report report;
    struct store_entry entry;

    build(&f);
    store_close(&f.store);
    tamper_delete(f.dir, "bloom", 0);
    fixture_open(&f);
    FOUND(&f, fixture_look(&f, "evt_number_5", &entry));
    store_close(&f.store);
    verify(&f, &report);
    cr_assert_eq(report.bad, 0, "%s", report.first_bad);
    fixture_end(&f);
}
