/* SPDX-License-Identifier: MIT */
#include "handler/http.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "support/attempts.h"
#include "support/http_rig.h"
#include "support/http_script.h"

/* A server, a handler for it, and one attempt. */
struct run {
    struct script script;
    struct handler handler;
    struct test_attempt *t;
    struct attempt *a;
    struct result result;
};

static void run_start(struct run *run, const struct script_step *steps,
                      size_t n)
{
    struct http_handler_options options;

    script_start(&run->script, steps, n);
    options = default_options(url_of(run->script.port, "/in"));
    run->handler = new_handler(&options);
    run->t = attempt_new("{}");
    run->a = &run->t->attempt;
}

static void run_go(struct run *run)
{
    cr_assert(attempt_run(&run->handler, run->t));
    if (run->a->end == END_STATUS) {
        cr_assert(result_open(buf_slice(&run->a->result), &run->result));
        cr_assert_eq(run->result.status, run->a->status);
    } else {
        cr_assert_eq(run->a->result.len, 0);
    }
}

static void run_stop(struct run *run)
{
    free_handler(&run->handler);
    script_stop(&run->script);
    attempt_free(run->t);
}

static void assert_slice(struct slice got, const char *expected)
{
    cr_assert(slice_eq(got, slice_of(expected)),
              "got \"%.*s\", expected \"%s\"", (int)got.len, got.data,
              expected);
}

Test(http_handler, answer_is_status_headers_in_order_and_body)
{
    const struct script_step steps[] = {
        {.answer = "HTTP/1.1 201 Created\r\nX-B: 2\r\nDate: now\r\n"
                   "x-a:  one \r\nX-B: 1\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
                   "Keep-Alive: 5\r\nSet-Cookie: s=1\r\nOnced-Code: made-it\r\n"
                   "X-Empty:\r\nContent-Length: 5\r\n\r\nhello"}};
    static const char *const expected[][2] = {
        {"X-B", "2"}, {"x-a", "one"}, {"X-B", "1"}, {"X-Empty", ""}};
    struct run run;
    struct header header;
    size_t at = 0;

    run_start(&run, steps, 1);
    run_go(&run);
    cr_assert_eq(run.a->end, END_STATUS);
    cr_assert_eq(run.a->status, 201);
    cr_assert_str_eq(run.a->code, "made-it");
    cr_assert_str_eq(run.a->text, "status 201");
    cr_assert_eq(run.a->retry_after_ms, -1);
    assert_slice(run.result.body, "hello");
    cr_assert_not(run.result.body_omitted);

    cr_assert_eq(run.result.headers.count, 4);
    for (size_t i = 0; i < 4; i++) {
        cr_assert(headers_next(&run.result.headers, &at, &header));
        assert_slice(header.name, expected[i][0]);
        assert_slice(header.value, expected[i][1]);
    }
    run_stop(&run);
}

Test(http_handler, every_status_is_reported_as_it_is)
{
    static const struct {
        const char *answer;
        int status;
        const char *body;
    } rows[] = {
        {OK_EMPTY, 200, ""},
        {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
        {"HTTP/1.1 302 Found\r\nLocation: /else\r\nContent-Length: 1\r\n\r\nx",
         302, "x"},
        {"HTTP/1.1 304 Not Modified\r\n\r\n", 304, ""},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", 404, "no"},
        {"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\nabc\r\n0\r\n\r\n",
         500, "abc"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n",
         200, "abc"},
        {"HTTP/1.1 100 Continue\r\n\r\n"
         "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n" OK_EMPTY,
         200, ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_step step = {.answer = rows[i].answer};
        struct run run;
        struct slice early;

        run_start(&run, &step, 1);
        run_go(&run);
        cr_assert_eq(run.a->end, END_STATUS, "row %zu: %s", i, run.a->text);
        cr_assert_eq(run.a->status, rows[i].status);
        assert_slice(run.result.body, rows[i].body);
        cr_assert_not(
            headers_find(&run.result.headers, SLICE("X-Early"), &early));
        cr_assert_eq(script_arrivals(&run.script), 1, "row %zu", i);
        run_stop(&run);
    }
}

Test(http_handler, retry_after_is_taken_as_seconds_and_as_a_date)
{
    char date[256];
    char stamp[64];
    time_t in_a_minute = time(NULL) + 60;
    struct tm parts;
    const struct {
        const char *answer;
        int64_t min_ms, max_ms;
    } rows[] = {
        {"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
         7000, 7000},
        {date, 50 * 1000, 60 * 1000},
        {"HTTP/1.1 503 No\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n",
         -1, -1},
    };

    gmtime_r(&in_a_minute, &parts);
    strftime(stamp, sizeof stamp, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    snprintf(date, sizeof date,
             "HTTP/1.1 503 No\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n",
             stamp);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_step step = {.answer = rows[i].answer};
        struct run run;

        run_start(&run, &step, 1);
        run_go(&run);
        cr_assert_geq(run.a->retry_after_ms, rows[i].min_ms, "row %zu", i);
        cr_assert_leq(run.a->retry_after_ms, rows[i].max_ms, "row %zu", i);
        run_stop(&run);
    }
}

Test(http_handler, after_the_request_left_every_failure_is_doubt)
{
    static const struct {
        struct script_step step;
        enum attempt_end end;
    } rows[] = {
        {{.then_hang = true}, END_TIMEOUT},
        {{.answer = "HTTP/1.1 200 OK\r\n", .then_hang = true}, END_TIMEOUT},
        {{.then_close = true}, END_BROKEN},
        {{.answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
          .then_close = true},
         END_BROKEN},
        {{.answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "ff\r\nhalf",
          .then_close = true},
         END_BROKEN},
        {{.answer = "SSH-2.0-OpenSSH_9.2\r\n\r\n", .then_close = true},
         END_BROKEN},
        {{.answer = "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
          .then_close = true},
         END_BROKEN},
        {{.answer = "HTTP/1.1 100 Continue\r\n\r\n", .then_close = true},
         END_BROKEN},
        {{.answer = "HTTP/1.1 999 Much\r\nContent-Length: 0\r\n\r\n"},
         END_BROKEN},
        {{.answer = "HTTP/1.1 200 OK\r\nX-A: 1\r\n", .then_close = true},
         END_BROKEN},
        {{.answer = "HTTP/1.1 200 OK\r\nX: ", .zeros = 100, .then_close = true},
         END_BROKEN},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run run;

        run_start(&run, &rows[i].step, 1);
        run.a->timeout_ms = 200;
        run_go(&run);
        cr_assert_eq(run.a->end, rows[i].end, "row %zu: %d %s", i, run.a->end,
                     run.a->text);
        cr_assert_neq(run.a->text[0], '\0');
        cr_assert_eq(script_arrivals(&run.script), 1, "row %zu", i);
        run_stop(&run);
    }
}

Test(http_handler, headers_of_an_answer_are_bounded)
{
    struct buf answer = BUF_INIT;
    struct script_step step;
    struct run run;

    buf_add_str(&answer, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 3000; i++) {
        buf_printf(&answer, "X-Header-%d: some value of it\r\n", i);
    }
    buf_add_str(&answer, "Content-Length: 0\r\n\r\n");
    step =
        (struct script_step){.answer = buf_cstr(&answer), .then_close = true};
    run_start(&run, &step, 1);
    run_go(&run);
    cr_assert_eq(run.a->end, END_BROKEN);
    cr_assert_str_eq(run.a->text, "answer: its headers are too large");
    run_stop(&run);
    buf_free(&answer);
}

Test(http_handler, what_never_left_is_unreached)
{
    static const char *const urls[] = {"http://name.invalid/",
                                       "http://127.0.0.1:1/"};

    for (size_t i = 0; i < 2; i++) {
        struct http_handler_options options = default_options(urls[i]);
        struct handler handler = new_handler(&options);
        struct test_attempt *t = attempt_new("x");

        cr_assert(attempt_run(&handler, t));
        cr_assert_eq(t->attempt.end, END_UNREACHED, "%s", t->attempt.text);
        cr_assert_eq(
            strncmp(t->attempt.text, i == 0 ? "resolve: " : "connect: ", 9), 0,
            "%s", t->attempt.text);
        cr_assert_eq(t->attempt.result.len, 0);
        free_handler(&handler);
        attempt_free(t);
    }
}

/* A listening socket whose queue is full: the connection never comes up. */
Test(http_handler, time_out_before_the_connection_is_up_is_unreached)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int clients[8];
    struct http_handler_options options;
    struct handler handler;
    struct test_attempt *t = attempt_new("x");

    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    cr_assert_eq(listen(fd, 0), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    for (size_t i = 0; i < 8; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(clients[i], (struct sockaddr *)&address, sizeof address);
    }
    options = default_options(url_of(ntohs(address.sin_port), "/"));
    handler = new_handler(&options);
    t->attempt.timeout_ms = 200;
    cr_assert(attempt_run(&handler, t));
    cr_assert_eq(t->attempt.end, END_UNREACHED, "%d %s", t->attempt.end,
                 t->attempt.text);
    free_handler(&handler);
    attempt_free(t);
    for (size_t i = 0; i < 8; i++) {
        close(clients[i]);
    }
    close(fd);
}

Test(http_handler, plain_text_where_tls_is_due_is_unreached)
{
    const struct script_step step = {.answer = OK_EMPTY, .then_close = true};
    struct script script;
    struct http_handler_options options;
    struct handler handler;
    struct test_attempt *t = attempt_new("x");
    char url[64];

    script_start(&script, &step, 1);
    snprintf(url, sizeof url, "https://127.0.0.1:%u/", script.port);
    options = default_options(url);
    handler = new_handler(&options);
    t->attempt.timeout_ms = 300; /* the server waits for a request line */
    cr_assert(attempt_run(&handler, t));
    cr_assert_eq(t->attempt.end, END_UNREACHED, "%s", t->attempt.text);
    free_handler(&handler);
    script_stop(&script);
    attempt_free(t);
}

Test(http_handler, body_over_the_cap_is_read_dropped_and_marked)
{
    static const struct script_step steps[] = {
        {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n",
         .zeros = 100 * 1000 * 1000},
        {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n",
         .zeros = 1048576},
    };
    struct run run;

    run_start(&run, steps, 2);
    run_go(&run);
    cr_assert_eq(run.a->end, END_STATUS, "%s", run.a->text);
    cr_assert(run.result.body_omitted);
    cr_assert_eq(run.result.body.len, 0);
    attempt_free(run.t);
    run.t = attempt_new("second");
    run.a = &run.t->attempt;
    run_go(&run);
    cr_assert_not(run.result.body_omitted);
    cr_assert_eq(run.result.body.len, 1048576);
    run_stop(&run);
}

/* libcurl by itself sends a POST again when a connection that it uses once
 * more closes without a byte: two arrivals of one attempt. */
Test(http_handler, one_attempt_is_one_arrival_on_a_dying_connection)
{
    static const struct script_step steps[] = {
        {.answer = OK_EMPTY}, {.then_close = true}, {.answer = OK_EMPTY}};
    struct run run;

    run_start(&run, steps, 3);
    run_go(&run);
    cr_assert_eq(run.a->end, END_STATUS);
    attempt_free(run.t);
    run.t = attempt_new("second");
    run.a = &run.t->attempt;
    run_go(&run);
    cr_assert_eq(run.a->end, END_BROKEN, "%s", run.a->text);
    cr_assert_eq(script_arrivals(&run.script), 2);
    cr_assert_str_eq(run.a->text, "answer: the connection closed without one");
    attempt_free(run.t);
    run.t = attempt_new("third");
    run.a = &run.t->attempt;
    run_go(&run);
    cr_assert_eq(run.a->end, END_STATUS);
    cr_assert_eq(script_arrivals(&run.script), 3);
    run_stop(&run);
}

Test(http_handler, compressed_answers_are_not_touched)
{
    const struct script_step step = {
        .answer = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
                  "Content-Length: 7\r\n\r\n\x1f\x8b-gzip"};
    struct run run;
    struct slice value;

    run_start(&run, &step, 1);
    run_go(&run);
    assert_slice(run.result.body, "\x1f\x8b-gzip");
    cr_assert(
        headers_find(&run.result.headers, SLICE("Content-Encoding"), &value));
    assert_slice(value, "gzip");
    run_stop(&run);
}

Test(http_handler, bad_codes_are_left_out)
{
    static const char *const codes[] = {
        "caf\xc3\xa9",
        "0123456789012345678901234567890123456789012345678901234567890123"
        "4"};

    for (size_t i = 0; i < 2; i++) {
        char answer[256];
        const struct script_step step = {.answer = answer};
        struct run run;

        snprintf(answer, sizeof answer,
                 "HTTP/1.1 400 Bad\r\nOnced-Code: %s\r\n"
                 "Content-Length: 0\r\n\r\n",
                 codes[i]);
        run_start(&run, &step, 1);
        run_go(&run);
        cr_assert_str_eq(run.a->code, "");
        run_stop(&run);
    }
}

Test(http_handler,
     redirects_are_followed_only_where_configured_and_keep_the_body)
{
    static const struct script_step steps[] = {
        {.answer = "HTTP/1.1 302 Found\r\nLocation: /b\r\n"
                   "Content-Length: 0\r\n\r\n"},
        {.answer = "HTTP/1.1 302 Found\r\nLocation: /c\r\n"
                   "Content-Length: 0\r\n\r\n"},
        {.answer = OK_EMPTY}};
    static const struct {
        uint32_t follow;
        int status;
        size_t n_arrivals;
    } rows[] = {{0, 302, 1}, {1, 302, 2}, {2, 200, 3}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script script;
        struct http_handler_options options;
        struct handler handler;
        struct test_attempt *t = attempt_new("payload");

        script_start(&script, steps, 3);
        options = default_options(url_of(script.port, "/a"));
        options.follow_redirects = rows[i].follow;
        handler = new_handler(&options);
        cr_assert(attempt_run(&handler, t));
        cr_assert_eq(t->attempt.end, END_STATUS, "row %zu: %s", i,
                     t->attempt.text);
        cr_assert_eq(t->attempt.status, rows[i].status);
        cr_assert_eq(script_arrivals(&script), rows[i].n_arrivals);
        for (size_t k = 0; k < rows[i].n_arrivals; k++) {
            const char *got = buf_cstr(&script.arrivals[k]);

            cr_assert_eq(strncmp(got, "POST /", 6), 0);
            cr_assert_not_null(strstr(got, "\r\n\r\npayload"));
        }
        free_handler(&handler);
        script_stop(&script);
        attempt_free(t);
    }
}

Test(http_handler, stop_ends_running_attempts_and_refuses_new_ones)
{
    const struct script_step step = {.then_hang = true};
    struct run run;
    struct test_attempt *late = attempt_new("x");

    run_start(&run, &step, 1);
    run.handler.ops->start(run.handler.self, run.a);
    while (script_arrivals(&run.script) == 0) {
        sched_yield();
    }
    run.handler.ops->stop(run.handler.self);
    cr_assert(run.t->is_finished);
    cr_assert_eq(run.a->end, END_BROKEN);
    run.handler.ops->start(run.handler.self, &late->attempt);
    cr_assert(late->is_finished);
    cr_assert_eq(late->attempt.end, END_UNREACHED);
    run_stop(&run);
    attempt_free(late);
}

Test(http_handler, more_attempts_than_concurrency_wait_their_turn)
{
    const struct script_step step = {.answer = OK_EMPTY};
    struct test_attempt *all[20];
    struct http_handler_options options;
    struct script script;
    struct handler handler;

    script_start(&script, &step, 1);
    options = default_options(url_of(script.port, "/"));
    options.concurrency = 2;
    handler = new_handler(&options);
    for (size_t i = 0; i < 20; i++) {
        all[i] = attempt_new("x");
        handler.ops->start(handler.self, &all[i]->attempt);
    }
    for (size_t i = 0; i < 20; i++) {
        cr_assert(attempt_wait(all[i]));
        cr_assert_eq(all[i]->attempt.end, END_STATUS);
        attempt_free(all[i]);
    }
    cr_assert_eq(script_arrivals(&script), 20);
    cr_assert_leq(script.n_connections, 2);
    free_handler(&handler);
    script_stop(&script);
}

Test(http_handler, options_that_cannot_work_are_refused)
{
    static const char *framing[][2] = {{"Content-Length", "1"}};
    static const char *ours[][2] = {{"Onced-Route", "x"}};
    static const char *bad_name[][2] = {{"a b", "x"}};
    static const char *bad_value[][2] = {{"A", "x\r\nB: y"}};
    static const struct {
        const char *url;
        const char *(*headers)[2];
        const char *ca_file;
        const char *text;
    } rows[] = {
        {"ftp://h/", NULL, NULL, "http"},
        {"not a url", NULL, NULL, "url"},
        {"http://u:p@h/", NULL, NULL, "credentials"},
        {"http://h/", framing, NULL, "Content-Length"},
        {"http://h/", ours, NULL, "Onced-Route"},
        {"http://h/", bad_name, NULL, "token"},
        {"http://h/", bad_value, NULL, "control"},
        {"http://h/", NULL, "/nowhere/ca.pem", "ca_file"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct http_handler_options options = default_options(rows[i].url);
        struct handler handler;
        struct err err = {0};

        options.headers = rows[i].headers;
        options.n_headers = rows[i].headers == NULL ? 0 : 1;
        options.ca_file = rows[i].ca_file;
        cr_assert_not(http_handler_new(&handler, &options, &err), "row %zu", i);
        cr_assert_eq(err.kind, ERR_CONFIG);
        cr_assert_not_null(strstr(err.text, rows[i].text), "row %zu: %s", i,
                           err.text);
        cr_assert_null(strstr(err.text, "u:p"));
    }
}
