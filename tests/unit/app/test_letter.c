/* SPDX-License-Identifier: MIT */
#include "app/letter.h"

#include <criterion/criterion.h>
#include <string.h>

#include "app/dump_read.h"

enum { DIED_MS = 2000000, WRITTEN_MS = 1000000 };

static struct kafka_dead_letter ours(void)
{
    return (struct kafka_dead_letter){
        .writer = KAFKA_DEAD_LETTER_ONCED,
        .route = SLICE("orders"),
        .tenant = SLICE("acme"),
        .id = SLICE("evt/1"),
        .reason = SLICE("exhausted"),
        .code = SLICE("503"),
        .died_ms = DIED_MS,
        .replays = 1,
        .has_original = true,
        .original = {.kind = ENVELOPE_KAFKA,
                     .received_wall_ms = WRITTEN_MS,
                     .topic = SLICE("t"),
                     .partition = 2,
                     .offset = 9,
                     .timestamp_ms = 5,
                     .body = SLICE("\xff"),
                     .has_body = true},
    };
}

static struct kafka_dead_letter connects(void)
{
    struct kafka_dead_letter letter = ours();

    letter.writer = KAFKA_DEAD_LETTER_CONNECT;
    letter.route = letter.tenant = letter.id = letter.reason = SLICE("");
    letter.code = SLICE("org.apache.kafka.connect.errors.DataException");
    letter.died_ms = 0;
    letter.replays = 0;
    return letter;
}

Test(letter, a_filter_takes_what_it_names)
{
    static const struct {
        struct letter_filter filter;
        bool ours, connects;
    } rows[] = {
        {{NULL, NULL, NULL, 0, 0}, true, true},
        {{"orders", NULL, NULL, 0, 0}, true, true},
        {{"order", NULL, NULL, 0, 0}, false, true},
        {{NULL, "exhausted", NULL, 0, 0}, true, false},
        {{NULL, "503", NULL, 0, 0}, false, false},
        {{NULL, "DataException", NULL, 0, 0}, false, true},
        {{NULL, "Exception", NULL, 0, 0}, false, false},
        {{NULL, "org.apache.kafka.connect.errors.DataException", NULL, 0, 0},
         false,
         true},
        {{NULL, NULL, "evt/1", 0, 0}, true, true},
        {{NULL, NULL, "evt", 0, 0}, false, true},
        {{NULL, NULL, NULL, WRITTEN_MS, 0}, true, true},
        {{NULL, NULL, NULL, WRITTEN_MS + 1, 0}, true, false},
        {{NULL, NULL, NULL, DIED_MS + 1, 0}, false, false},
        {{NULL, NULL, NULL, 0, WRITTEN_MS}, false, false},
        {{NULL, NULL, NULL, 0, WRITTEN_MS + 1}, false, true},
        {{NULL, NULL, NULL, 0, DIED_MS + 1}, true, true},
        {{"orders", "exhausted", "evt/1", DIED_MS, DIED_MS + 1}, true, false},
    };
    const struct envelope message = {.kind = ENVELOPE_KAFKA,
                                     .timestamp_ms = WRITTEN_MS};
    const struct kafka_dead_letter a = ours(), b = connects();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect_eq(letter_matches(&rows[i].filter, &a, &message),
                     rows[i].ours, "row %zu", i);
        cr_expect_eq(letter_matches(&rows[i].filter, &b, &message),
                     rows[i].connects, "row %zu", i);
    }
}

Test(letter, what_no_worker_can_be_asked_about_has_a_problem)
{
    struct kafka_dead_letter letter = connects();

    cr_expect_null(letter_problem(&letter, "orders"));
    cr_expect(strstr(letter_problem(&letter, NULL), "--route") != NULL);
    letter = ours();
    cr_expect_null(letter_problem(&letter, NULL));
    letter.tenant = SLICE("");
    cr_expect_null(letter_problem(&letter, NULL));
    letter.tenant = SLICE("a\xff");
    cr_expect_str_eq(letter_problem(&letter, NULL), "its tenant cannot be one");
    letter.id = SLICE("\x1b[2J");
    cr_expect_str_eq(letter_problem(&letter, NULL), "its id cannot be one");
    letter.route = SLICE("");
    cr_expect_str_eq(letter_problem(&letter, NULL), "its route cannot be one");
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));

    return value == NULL ? "(none)" : value;
}

/* What the worker reads of the request. */
static struct envelope request_of(const json_t *body, struct buf *flat)
{
    struct envelope envelope;
    struct err err;

    cr_assert(dump_read_request(json_object_get(body, "request"), flat, &err),
              "%s", err.text);
    cr_assert(envelope_open(buf_slice(flat), &envelope));
    return envelope;
}

Test(letter, the_order_names_the_event_and_has_what_arrived)
{
    const struct letter_order order = {
        .max_replays = 3, .assume_not_applied = true, .why = "mended"};
    struct kafka_dead_letter letter = ours();
    json_t *body = letter_body(&letter, &order);
    struct buf flat = BUF_INIT;
    struct envelope sent = request_of(body, &flat);
    struct slice replays;

    cr_expect_str_eq(text(body, "route"), "orders");
    cr_expect_str_eq(text(body, "tenant"), "acme");
    cr_expect_str_eq(text(body, "id"), "evt/1");
    cr_expect_str_eq(text(body, "why"), "mended");
    cr_expect(json_is_true(json_object_get(body, "assume_not_applied")));
    cr_expect_null(json_object_get(body, "dry_run"));
    cr_expect_eq(json_integer_value(json_object_get(body, "replays")), 1);
    cr_expect_eq(json_integer_value(json_object_get(body, "max_replays")), 3);
    cr_expect_eq(sent.offset, 9);
    cr_expect(slice_eq(sent.body, SLICE("\xff")));
    cr_expect(headers_find(&sent.headers, SLICE("onced-replays"), &replays));
    cr_expect(slice_eq(replays, SLICE("2")));
    json_decref(body);
    buf_free(&flat);
    kafka_dead_letter_free(&letter);
}

Test(letter, an_order_for_anothers_letter_names_the_route_alone)
{
    const struct letter_order order = {.route = "orders", .dry_run = true};
    struct kafka_dead_letter letter = connects();
    json_t *body = letter_body(&letter, &order);

    cr_expect_str_eq(text(body, "route"), "orders");
    cr_expect_null(json_object_get(body, "id"));
    cr_expect_null(json_object_get(body, "tenant"));
    cr_expect_null(json_object_get(body, "max_replays"));
    cr_expect(json_is_true(json_object_get(body, "dry_run")));
    json_decref(body);
    kafka_dead_letter_free(&letter);
}

Test(letter, nothing_is_sent_that_could_not_be_run)
{
    const struct letter_order order = {.dry_run = false};
    struct kafka_dead_letter letter = ours();
    json_t *body;

    letter.reason = SLICE("undecodable");
    body = letter_body(&letter, &order);
    cr_expect_null(json_object_get(body, "request"));
    cr_expect_str_eq(text(body, "id"), "evt/1");
    json_decref(body);
    letter = ours();
    letter.has_original = false;
    body = letter_body(&letter, &order);
    cr_expect_null(json_object_get(body, "request"));
    json_decref(body);
}

Test(letter, letters_of_one_event_have_one_name)
{
    struct kafka_dead_letter letter = ours();
    struct buf a = BUF_INIT, b = BUF_INIT;

    letter_put_name(&letter, &a);
    cr_expect_str_eq(buf_cstr(&a), "/orders/acme/evt%2F1");
    letter.tenant = SLICE("");
    letter.original.offset++;
    letter_put_name(&letter, &b);
    cr_expect_str_eq(buf_cstr(&b), "/orders//evt%2F1");
    letter = connects();
    buf_clear(&a);
    letter_put_name(&letter, &a);
    cr_expect_str_eq(buf_cstr(&a), "t/2/9");
    buf_free(&a);
    buf_free(&b);
    cr_expect_str_eq(letter_writer_name(KAFKA_DEAD_LETTER_ONCED), "onced");
    cr_expect_str_eq(letter_writer_name(KAFKA_DEAD_LETTER_CONNECT), "connect");
    cr_expect_str_eq(letter_writer_name(KAFKA_DEAD_LETTER_SPRING), "spring");
}
