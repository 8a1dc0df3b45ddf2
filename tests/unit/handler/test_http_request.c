/* SPDX-License-Identifier: MIT */
#include "handler/http_request.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "support/attempts.h"
#include "support/http_rig.h"
#include "support/http_script.h"

/* What one attempt looks like on the wire, byte by byte. */
static void assert_request(const struct http_handler_options *given,
                           struct test_attempt *t, const char *path,
                           const char *line, const char *rest)
{
    const struct script_step step = {.answer = OK_EMPTY};
    struct script script;
    struct http_handler_options options = *given;
    struct handler handler;
    char whole[4096];

    script_start(&script, &step, 1);
    options.url = url_of(script.port, path);
    handler = new_handler(&options);
    cr_assert(attempt_run(&handler, t));
    cr_assert_eq(t->attempt.end, END_STATUS, "%s", t->attempt.text);
    snprintf(whole, sizeof whole, "%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s",
             line, script.port, rest);
    cr_assert_str_eq(buf_cstr(&script.arrivals[0]), whole);
    free_handler(&handler);
    script_stop(&script);
    attempt_free(t);
}

#define OURS                                                                   \
    "Idempotency-Key: ABCDEFGHIJKLMNOPQRSTUVWXYZ234567\r\n"                    \
    "Onced-Route: r\r\nOnced-Event-Id: evt-1\r\n"

Test(http_request, request_is_the_senders_and_ours)
{
    static const char *headers[][2] = {{"Authorization", "Bearer ours"},
                                       {"X-Empty-One", ""}};
    struct http_handler_options options = default_options(NULL);
    struct test_attempt *t = attempt_new("{\"a\":1}");

    options.headers = headers;
    options.n_headers = 2;
    t->attempt.number = 3;
    t->attempt.tenant = SLICE("acct");
    t->attempt.envelope.method = SLICE("PUT");
    t->attempt.envelope.query = SLICE("a=1&b=%20x");
    t->attempt.envelope.has_query = true;
    attempt_header(t, "Host", "sender.example");
    attempt_header(t, "X-Two", "2");
    attempt_header(t, "Content-Type", "application/json");
    attempt_header(t, "connection", "keep-alive, X-Gone");
    attempt_header(t, "X-Gone", "1");
    attempt_header(t, "Content-Length", "99");
    attempt_header(t, "Transfer-Encoding", "chunked");
    attempt_header(t, "TE", "trailers");
    attempt_header(t, "Expect", "100-continue");
    attempt_header(t, "Accept-Encoding", "gzip");
    attempt_header(t, "Idempotency-Key", "theirs");
    attempt_header(t, "onced-attempt", "77");
    attempt_header(t, "Onced-Kafka-Topic", "forged");
    attempt_header(t, "authorization", "Bearer theirs");
    attempt_header(t, "traceparent", "00-1-2-01");
    attempt_header(t, "X-Two", "1");
    attempt_header(t, "X-Empty", "");
    attempt_header(t, "X-Evil", "a\r\nX-Injected: 1");
    assert_request(
        &options, t, "/in?t=1", "PUT /in?t=1&a=1&b=%20x",
        "X-Two: 2\r\nContent-Type: application/json\r\n"
        "traceparent: 00-1-2-01\r\nX-Two: 1\r\nX-Empty:\r\n"
        "Authorization: Bearer ours\r\nX-Empty-One:\r\n" OURS
        "Onced-Tenant: acct\r\nOnced-Attempt: 3\r\n"
        "Accept-Encoding: identity\r\nContent-Length: 7\r\n\r\n{\"a\":1}");
}

Test(http_request, requests_without_a_body_have_none)
{
    static const struct {
        const char *method, *length;
    } rows[] = {{"GET", ""},
                {"DELETE", ""},
                {"HEAD", ""},
                {"POST", "Content-Length: 0\r\n"}};
    struct http_handler_options options = default_options(NULL);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct test_attempt *t = attempt_new("");
        char line[32];
        char rest[512];

        t->attempt.envelope.method = slice_of(rows[i].method);
        snprintf(line, sizeof line, "%s /", rows[i].method);
        snprintf(rest, sizeof rest,
                 OURS "Onced-Attempt: 1\r\nAccept-Encoding: identity\r\n%s\r\n",
                 rows[i].length);
        assert_request(&options, t, "", line, rest);
    }
}

Test(http_request, method_is_forgotten_with_its_attempt)
{
    static const char *const methods[] = {"HEAD", "POST", "GET",
                                          "PUT",  "HEAD", "GET"};
    const struct script_step step = {.answer = OK_EMPTY};
    struct http_handler_options options;
    struct script script;
    struct handler handler;

    script_start(&script, &step, 1);
    options = default_options(url_of(script.port, "/"));
    options.concurrency = 1; /* one easy handle for all */
    handler = new_handler(&options);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        bool has_body = methods[i][0] == 'P';
        struct test_attempt *t = attempt_new(has_body ? "body" : "");
        const char *got;

        t->attempt.envelope.method = slice_of(methods[i]);
        cr_assert(attempt_run(&handler, t));
        cr_assert_eq(t->attempt.end, END_STATUS, "%s", t->attempt.text);
        got = buf_cstr(&script.arrivals[i]);
        cr_assert_eq(strncmp(got, methods[i], strlen(methods[i])), 0, "%s",
                     got);
        cr_assert_eq(strstr(got, "body") != NULL, has_body);
        attempt_free(t);
    }
    free_handler(&handler);
    script_stop(&script);
}

Test(http_request, wildcard_suffix_stays_below_the_url)
{
    static const struct {
        const char *url, *path, *expected;
    } rows[] = {
        {"/in", "/hooks/a/b", "/in/a/b"},
        {"/in/", "/hooks/a//b/", "/in/a//b/"},
        {"/in", "/hooks/", "/in"},
        {"/in", "/hooks", "/in"},
        {"/in", "/hooks/a%2Fb", "/in/a%2Fb"},
        {"/in", "/hooks/../../etc", "/in/etc"},
        {"/in", "/hooks/a/../b", "/in/b"},
        {"/in", "/hooks/a/./b/..", "/in/a/"},
        {"/in", "/hooks/%2e%2E/%2e./x", "/in/x"},
        {"/in", "/hooks/...", "/in/..."},
        {"/in", "/hooks/a b#c\x80", "/in/a%20b%23c%80"},
        {"/in?k=1", "/hooks/a", "/in/a?k=1"},
    };
    const struct script_step step = {.answer = OK_EMPTY};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script script;
        struct http_handler_options options;
        struct handler handler;
        struct test_attempt *t = attempt_new("x");
        char line[256];

        script_start(&script, &step, 1);
        options = default_options(url_of(script.port, rows[i].url));
        options.path_prefix_len = strlen("/hooks/");
        handler = new_handler(&options);
        t->attempt.envelope.path = slice_of(rows[i].path);
        cr_assert(attempt_run(&handler, t));
        snprintf(line, sizeof line, "POST %s HTTP/1.1\r\n", rows[i].expected);
        cr_assert(slice_starts(buf_slice(&script.arrivals[0]), slice_of(line)),
                  "row %zu: %s", i, buf_cstr(&script.arrivals[0]));
        free_handler(&handler);
        script_stop(&script);
        attempt_free(t);
    }
}

Test(http_request, kafka_event_is_a_post_that_says_where_it_is_from)
{
    struct http_handler_options options = default_options(NULL);
    struct test_attempt *t = attempt_new("");
    struct envelope *envelope = &t->attempt.envelope;

    *envelope = (struct envelope){.kind = ENVELOPE_KAFKA,
                                  .topic = SLICE("orders"),
                                  .partition = 3,
                                  .offset = 41,
                                  .timestamp_ms = 1700000000000,
                                  .key = {"k\0y", 3},
                                  .has_key = true};
    attempt_header(t, "event id", "e\n1");
    attempt_header(t, "Content-Type", "text/csv");
    attempt_header(t, "traceparent", "00-1-2-01");
    assert_request(
        &options, t, "/", "POST /",
        "Onced-Kafka-Topic: orders\r\nOnced-Kafka-Partition: 3\r\n"
        "Onced-Kafka-Offset: 41\r\nOnced-Kafka-Timestamp: 1700000000000\r\n"
        "Onced-Kafka-Key: awB5\r\nOnced-Kafka-Null: 1\r\n"
        "Content-Type: text/csv\r\ntraceparent: 00-1-2-01\r\n"
        "Kafka-Header-event%20id: ZQox\r\n"
        "Kafka-Header-Content-Type: text/csv\r\n"
        "Kafka-Header-traceparent: 00-1-2-01\r\n"
        "Onced-Kafka-Base64: Onced-Kafka-Key, Kafka-Header-event%20id\r\n" OURS
        "Onced-Attempt: 1\r\nAccept-Encoding: identity\r\n"
        "Content-Length: 0\r\n\r\n");
}
