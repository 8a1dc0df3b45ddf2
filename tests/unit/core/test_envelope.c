/* SPDX-License-Identifier: MIT */
#include "core/envelope.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ASSERT_TEXT(slice, literal) cr_assert(slice_eq(slice, SLICE(literal)))

static struct buf three_headers(void)
{
    struct buf flat = BUF_INIT;

    headers_add(&flat, SLICE("Set-Thing"), SLICE("a"));
    headers_add(&flat, SLICE("Empty"), SLICE(""));
    headers_add(&flat, SLICE("set-thing"), SLICE("b"));
    return flat;
}

Test(headers, they_come_back_in_order_with_repeats)
{
    struct buf flat = three_headers();
    struct headers headers = {buf_slice(&flat), 3};
    struct header header;
    size_t at = 0;

    cr_assert(headers_next(&headers, &at, &header));
    ASSERT_TEXT(header.name, "Set-Thing");
    ASSERT_TEXT(header.value, "a");
    cr_assert(headers_next(&headers, &at, &header));
    ASSERT_TEXT(header.name, "Empty");
    ASSERT_TEXT(header.value, "");
    cr_assert(headers_next(&headers, &at, &header));
    ASSERT_TEXT(header.name, "set-thing");
    ASSERT_TEXT(header.value, "b");
    cr_assert_not(headers_next(&headers, &at, &header));
    buf_free(&flat);
}

Test(headers, the_first_of_a_name_is_found_in_any_case)
{
    struct buf flat = three_headers();
    struct headers headers = {buf_slice(&flat), 3};
    struct slice value;

    cr_assert(headers_find(&headers, SLICE("SET-THING"), &value));
    ASSERT_TEXT(value, "a");
    cr_assert_eq(headers_count(&headers, SLICE("Set-thing")), 2);
    cr_assert_not(headers_find(&headers, SLICE("Set"), &value));
    cr_assert_eq(headers_count(&headers, SLICE("Set")), 0);
    buf_free(&flat);
}

Test(headers, an_empty_list_has_none)
{
    struct headers headers = {{NULL, 0}, 0};
    struct header header;
    size_t at = 0;

    cr_assert_not(headers_next(&headers, &at, &header));
}

Test(headers, a_null_value_is_not_an_empty_one)
{
    struct buf flat = BUF_INIT;
    struct headers headers;
    struct header header;
    struct slice value = SLICE("old");
    size_t at = 0;

    headers_add_null(&flat, SLICE("n"));
    headers_add(&flat, SLICE("e"), SLICE(""));
    cr_assert(
        slice_eq(buf_slice(&flat), (struct slice){"\0\0\0\1n\xff\xff\xff\xff"
                                                  "\0\0\0\1e\0\0\0\0",
                                                  18}));
    headers = (struct headers){buf_slice(&flat), 2};
    cr_assert(headers_next(&headers, &at, &header));
    ASSERT_TEXT(header.name, "n");
    cr_assert(header.is_null);
    ASSERT_TEXT(header.value, "");
    cr_assert(headers_next(&headers, &at, &header));
    ASSERT_TEXT(header.name, "e");
    cr_assert_not(header.is_null);
    cr_assert(headers_find(&headers, SLICE("n"), &value));
    ASSERT_TEXT(value, "");
    buf_free(&flat);
}

static struct envelope http_envelope(struct slice headers)
{
    return (struct envelope){
        .kind = ENVELOPE_HTTP,
        .received_wall_ms = 1700000000123,
        .headers = {headers, 3},
        .body = {"{\"a\":\0}", 7},
        .has_body = true,
        .method = SLICE("POST"),
        .path = SLICE("/hooks/a%20b"),
        .query = SLICE("x=1"),
        .has_query = true,
    };
}

static struct envelope kafka_envelope(struct slice headers)
{
    return (struct envelope){
        .kind = ENVELOPE_KAFKA,
        .received_wall_ms = -5,
        .headers = {headers, 3},
        .body = SLICE("value"),
        .has_body = true,
        .topic = SLICE("orders"),
        .key = SLICE("k"),
        .has_key = true,
        .partition = INT32_MAX,
        .offset = INT64_MAX,
        .timestamp_ms = -1,
    };
}

static bool is_same_text(const struct envelope *a, const struct envelope *b)
{
    return slice_eq(a->headers.flat, b->headers.flat) &&
           slice_eq(a->body, b->body) && slice_eq(a->method, b->method) &&
           slice_eq(a->path, b->path) && slice_eq(a->query, b->query) &&
           slice_eq(a->topic, b->topic) && slice_eq(a->key, b->key);
}

static bool is_same(const struct envelope *a, const struct envelope *b)
{
    return is_same_text(a, b) && a->kind == b->kind &&
           a->received_wall_ms == b->received_wall_ms &&
           a->has_body == b->has_body && a->has_query == b->has_query &&
           a->has_key == b->has_key && a->partition == b->partition &&
           a->offset == b->offset && a->timestamp_ms == b->timestamp_ms;
}

/* A copy on the heap of exactly that size, so that a sanitizer sees a byte
 * that is read behind it. */
static void assert_opens(const struct envelope *envelope)
{
    struct buf flat = BUF_INIT;
    struct envelope opened;
    char *exact;

    envelope_encode(envelope, &flat);
    exact = malloc(flat.len);
    cr_assert_not_null(exact);
    memcpy(exact, flat.data, flat.len);
    cr_assert(envelope_open((struct slice){exact, flat.len}, &opened));
    cr_assert(is_same(envelope, &opened));
    cr_assert_eq(opened.headers.count, envelope->headers.count);
    free(exact);
    buf_free(&flat);
}

Test(envelope, what_arrived_comes_back)
{
    struct buf headers = three_headers();
    struct envelope http = http_envelope(buf_slice(&headers));
    struct envelope kafka = kafka_envelope(buf_slice(&headers));

    assert_opens(&http);
    assert_opens(&kafka);
    buf_free(&headers);
}

Test(envelope, absent_is_not_empty)
{
    struct envelope http = {.kind = ENVELOPE_HTTP};
    struct envelope kafka = {.kind = ENVELOPE_KAFKA};

    assert_opens(&http);
    assert_opens(&kafka);
    http.has_query = http.has_body = true;
    kafka.has_key = kafka.has_body = true;
    assert_opens(&http);
    assert_opens(&kafka);
}

Test(envelope, the_form_is_the_documented_one)
{
    static const char expected[] = "\x01\x01\x03"
                                   "\0\0\0\0\0\0\0\x07"
                                   "\0\0\0\x0a\0\0\0\x01N\0\0\0\x01V"
                                   "\0\0\0\x03PUT"
                                   "\0\0\0\x01/"
                                   "\0\0\0\x01q"
                                   "body";
    struct buf headers = BUF_INIT, flat = BUF_INIT;
    struct envelope envelope = {
        .kind = ENVELOPE_HTTP,
        .received_wall_ms = 7,
        .body = SLICE("body"),
        .has_body = true,
        .method = SLICE("PUT"),
        .path = SLICE("/"),
        .query = SLICE("q"),
        .has_query = true,
    };

    headers_add(&headers, SLICE("N"), SLICE("V"));
    envelope.headers.flat = buf_slice(&headers);
    envelope_encode(&envelope, &flat);
    cr_assert(slice_eq(buf_slice(&flat), SLICE(expected)));
    buf_free(&flat);
    buf_free(&headers);
}

/* Everything before the body is needed: with one byte less it does not open. */
Test(envelope, a_truncated_one_does_not_open)
{
    struct buf headers = three_headers();
    struct envelope envelopes[] = {http_envelope(buf_slice(&headers)),
                                   kafka_envelope(buf_slice(&headers))};

    for (size_t i = 0; i < 2; i++) {
        struct buf flat = BUF_INIT;
        struct envelope opened;

        envelopes[i].body.len = 0;
        envelope_encode(&envelopes[i], &flat);
        for (size_t len = 0; len < flat.len; len++) {
            cr_assert_not(
                envelope_open((struct slice){flat.data, len}, &opened), "%zu",
                len);
        }
        buf_free(&flat);
    }
    buf_free(&headers);
}

static void assert_damage(const struct envelope *envelope, size_t at, char byte)
{
    struct buf flat = BUF_INIT;
    struct envelope opened;

    envelope_encode(envelope, &flat);
    flat.data[at] = byte;
    cr_assert_not(envelope_open(buf_slice(&flat), &opened), "%zu, %d", at,
                  byte);
    buf_free(&flat);
}

Test(envelope, what_no_version_wrote_does_not_open)
{
    struct buf headers = three_headers();
    struct envelope http = http_envelope(buf_slice(&headers));
    struct envelope kafka = kafka_envelope(buf_slice(&headers));

    assert_damage(&http, 0, 0); /* version */
    assert_damage(&http, 0, 2);
    assert_damage(&http, 1, 0); /* kind */
    assert_damage(&http, 1, 3);
    assert_damage(&http, 2, 0x02);  /* a body that is not there */
    assert_damage(&http, 2, 0x01);  /* a query that is not there */
    assert_damage(&http, 2, 0x07);  /* a key on HTTP */
    assert_damage(&http, 2, 0x0b);  /* a flag nobody knows */
    assert_damage(&kafka, 2, 0x01); /* a key that is not there */
    assert_damage(&kafka, 2, 0x07); /* a query on Kafka */
    assert_damage(&http, 14, 0x05); /* a list shorter than its headers */
    assert_damage(&http, 11, 0x7f); /* a list longer than all */
    assert_damage(&http, 15, 0x01); /* a name longer than the list */
    buf_free(&headers);
}

static void assert_result_opens(const struct result *result)
{
    struct buf flat = BUF_INIT;
    struct result opened;

    result_encode(result, &flat);
    cr_assert(result_open(buf_slice(&flat), &opened));
    cr_assert_eq(opened.status, result->status);
    cr_assert_eq(opened.body_omitted, result->body_omitted);
    cr_assert_eq(opened.headers.count, result->headers.count);
    cr_assert(slice_eq(opened.headers.flat, result->headers.flat));
    cr_assert(slice_eq(opened.body, result->body));
    buf_free(&flat);
}

Test(result, what_the_handler_answered_comes_back)
{
    struct buf headers = three_headers();
    struct result result = {
        .status = 599,
        .headers = {buf_slice(&headers), 3},
        .body = SLICE("done"),
    };
    struct result none = {0};

    assert_result_opens(&result);
    assert_result_opens(&none);
    result.body = SLICE("");
    result.body_omitted = true;
    assert_result_opens(&result);
    buf_free(&headers);
}

Test(result, the_form_is_the_documented_one)
{
    static const char expected[] = "\x01\0\0\xc9\0\0\0\0ok";
    struct result result = {.status = 201, .body = SLICE("ok")};
    struct buf flat = BUF_INIT;

    result_encode(&result, &flat);
    cr_assert(slice_eq(buf_slice(&flat), SLICE(expected)));
    buf_free(&flat);
}

Test(result, what_no_version_wrote_does_not_open)
{
    static const struct slice damaged[] = {
        {NULL, 0},
        {"\x01\0\0\xc9\0\0\0", 7},        /* truncated */
        {"\x02\0\0\xc9\0\0\0\0ok", 10},   /* version */
        {"\x01\x02\0\xc9\0\0\0\0ok", 10}, /* a flag nobody knows */
        {"\x01\x01\0\xc9\0\0\0\0ok", 10}, /* omitted, and there */
        {"\x01\0\0\xc9\0\0\0\x03ok", 10}, /* headers longer than all */
        {"\x01\0\0\xc9\0\0\0\x01ok", 10}, /* headers that are none */
    };
    struct result opened;

    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        cr_assert_not(result_open(damaged[i], &opened), "%zu", i);
    }
}

Test(envelope, a_body_that_is_said_not_to_be_there_is_a_bug, .signal = SIGABRT)
{
    struct envelope envelope = {.kind = ENVELOPE_KAFKA, .body = SLICE("x")};
    struct buf flat = BUF_INIT;

    envelope_encode(&envelope, &flat);
}
