/* SPDX-License-Identifier: MIT */
/*
 * What may come over the wire: requests that others read differently, slow
 * and large ones, too many at once.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <zlib.h>

#include "source/http.h"
#include "support/http_fixture.h"

#define HEAD "POST /hook HTTP/1.1\r\nHost: a\r\nId: 1\r\n"
#define SIMPLE HEAD "Content-Length: 2\r\n\r\nhi"

static struct fixture fixture;
static struct client client;
static struct reply reply;

static void setup(void)
{
    fixture_init(&fixture);
    fixture_route(&fixture, "/hook");
}

static void start(void)
{
    fixture_start(&fixture);
    client_open(&client, &fixture);
}

static void teardown(void)
{
    client_close(&client);
    reply_free(&reply);
    fixture_end(&fixture);
}

TestSuite(http_wire, .init = setup, .fini = teardown, .timeout = 120);

static int64_t now_ms(void)
{
    return clock_boot_ms(clock_system());
}

/* --- two readings --------------------------------------------------------- */

#define GET "GET /hook HTTP/1.1\r\nHost: a\r\n\r\n"
#define LINE "POST /hook HTTP/1.1\r\n"
#define CHUNKS "0\r\n\r\n"

/* Every one hides a second request from one of two readers. Taken as a
 * delivery, or followed by a second answer, it would be smuggled. */
static const char *const smuggled[] = {
    HEAD "Content-Length: 0\r\nContent-Length: 40\r\n\r\n" GET,
    HEAD "Content-Length: 40\r\nContent-Length: 0\r\n\r\n" GET,
    HEAD "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi" GET,
    HEAD "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" CHUNKS GET,
    HEAD "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" CHUNKS GET,
    HEAD "Content-Length: +2\r\n\r\nhi" GET,
    HEAD "Content-Length: -2\r\n\r\nhi" GET,
    HEAD "Content-Length: 0x2\r\n\r\nhi" GET,
    HEAD "Content-Length: 2 2\r\n\r\nhi" GET,
    HEAD "Content-Length: 2,2\r\n\r\nhi" GET,
    HEAD "Content-Length: 2a\r\n\r\nhi" GET,
    HEAD "Content-Length:\r\n\r\n" GET,
    HEAD "Content-Length: 18446744073709551616\r\n\r\n" GET,
    HEAD "Content-Length : 2\r\n\r\nhi" GET,
    HEAD "Content-Length\t: 2\r\n\r\nhi" GET,
    HEAD "Transfer-Encoding : chunked\r\n\r\n" CHUNKS GET,
    HEAD "Transfer-Encoding: identity\r\n\r\n" GET,
    HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n" CHUNKS GET,
    HEAD "Transfer-Encoding: chunked, identity\r\n\r\n" CHUNKS GET,
    HEAD "Transfer-Encoding: xchunked\r\n\r\n" CHUNKS GET,
    HEAD "Transfer-Encoding: chunked;q=1\r\n\r\n" CHUNKS GET,
    HEAD "Transfer-Encoding: \"chunked\"\r\n\r\n" CHUNKS GET,
    HEAD "Transfer-Encoding: chunked \r\n\r\n" CHUNKS GET,
    HEAD "Transfer-Encoding: \x0b"
         "chunked\r\n\r\n" CHUNKS GET,
    HEAD "Transfer-Encoding:\r\n\r\n" CHUNKS GET,
    HEAD
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n" CHUNKS GET,
    HEAD "Transfer-Encoding: chunked\r\n"
         "transfer-encoding: chunked\r\n\r\n" CHUNKS GET,
    HEAD "Transfer_Encoding: chunked\r\nTransfer-Encoding\xa0: x\r\n\r\n" GET,
    "POST /hook HTTP/1.0\r\nId: 1\r\nTransfer-Encoding: chunked\r\n\r\n" CHUNKS
        GET,
    HEAD "Host: b\r\n\r\n" GET,
    LINE "Id: 1\r\n\r\n" GET,
    LINE " Host: a\r\nHost: a\r\nId: 1\r\n\r\n" GET,
    HEAD "X: a\rb\r\n\r\n" GET,
    HEAD "X: a\x01"
         "b\r\n\r\n" GET,
    HEAD "X: a\x7f\r\n\r\n" GET,
    HEAD "X Y: a\r\n\r\n" GET,
    HEAD "X\x80: a\r\n\r\n" GET,
    HEAD ": a\r\n\r\n" GET,
    HEAD "X[]: a\r\n\r\n" GET,
    HEAD "no colon\r\n\r\n" GET,
    HEAD "Transfer-Encoding: chunked\r\n\r\ng\r\n" GET,
    HEAD "Transfer-Encoding: chunked\r\n\r\n-1\r\n" GET,
    HEAD "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n" GET,
    HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n" GET,
    HEAD "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" GET,
    HEAD "Content-Type: a\r\nContent-Type: b\r\n\r\n" GET,
    HEAD "Expect: 100-continue\r\nExpect: x\r\n\r\n" GET,
    HEAD "Id: 2\r\n\r\n" GET,
    ("POST  /hook HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n" GET),
    ("POST /hook  HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n" GET),
    ("POST /hook HTTP/1.1 \r\nHost: a\r\nId: 1\r\n\r\n" GET),
    HEAD ": a\r\nContent-Length: 40\r\n\r\n" GET,
    HEAD ":\r\nContent-Length: 40\r\n\r\n" GET,
    HEAD "X: 1\n:\nContent-Length: 40\r\n\r\n" GET,
    HEAD "X: 1\nY: 2\r\n\r\n" GET,
    HEAD "X: 1\n\r\n" GET,
    HEAD "X: 1\r\n\n" GET,
    HEAD "X: 1\r\n folded\r\n\r\n" GET,
    HEAD "X: 1\r\n\tY: 2\r\n\r\n" GET,
    HEAD "X:\r\n 1\r\n\r\n" GET,
    ("POST /hook HTTP/1.1\nHost: a\r\nId: 1\r\n\r\n" GET),
};

/* Refused, and nothing behind it is read as a request: the library's own
 * refusals print their head twice, so what counts is how many connections
 * live on. */
Test(http_wire, nothing_that_has_two_readings_is_served)
{
    start();
    for (size_t i = 0; i < sizeof(smuggled) / sizeof(smuggled[0]); i++) {
        struct client sender;
        client_open(&sender, &fixture);
        cr_assert(client_say(&sender, smuggled[i]));
        client_read(&sender, &reply);
        cr_assert(reply.status == 400 || reply.status == 413 ||
                      reply.status == 417,
                  "row %zu: %d", i, reply.status);
        while (client_fill(&sender))
            continue;
        cr_assert_null(strstr(buf_cstr(&sender.in), "405"), "row %zu", i);
        client_close(&sender);
    }
    cr_assert_eq(engine_taken(fixture.engine), 0);
}

Test(http_wire, a_nul_in_a_header_is_400)
{
    static const char rows[][64] = {
        HEAD "X: a\0b\r\n\r\n",
        "POST /hook HTTP/1.1\r\nHost: a\0\r\nId: 1\r\n\r\n\r\n",
        HEAD "X\0: a\r\n\r\n",
        "POST /hook\0a HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n",
        "POST\0 /hook HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n",
    };
    start();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        client_close(&client);
        client_open(&client, &fixture);
        cr_assert(client_send(&client, rows[i], sizeof(rows[i])));
        client_read(&client, &reply);
        cr_assert_eq(reply.status, 400, "row %zu", i);
    }
}

Test(http_wire, targets_that_are_none_are_400_or_closed)
{
    static const char *const targets[] = {
        "hook",          "*",
        "/hook#x",       "/ho\x01ok",
        "/hook\x7f",     "/a b",
        "/hook\xc3\xa4", "ftp://a/hook",
        "http:/hook",    "http:///hook",
        "//../hook",     "/x/../hook",
        "/%2e%2E/hook",  "/./hook",
        "/hook/.",       "example.com:443",
    };
    start();
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        char request[256];
        (void)snprintf(request, sizeof(request),
                       "POST %s HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n",
                       targets[i]);
        cr_assert_eq(client_status(&fixture, request), 400, "%s", targets[i]);
    }
    cr_assert_eq(engine_taken(fixture.engine), 0);
}

/* --- sizes ---------------------------------------------------------------- */

static void add_repeated(struct buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_add_str(out, text);
}

static int status_of(struct buf *request)
{
    int status = client_status(&fixture, buf_cstr(request));
    buf_free(request);
    return status;
}

Test(http_wire, long_targets_are_414_and_many_headers_431)
{
    struct buf request = BUF_INIT;
    start();
    buf_add_str(&request, "POST /hook?");
    add_repeated(&request, "q", 8192 - strlen("/hook?"));
    buf_add_str(&request, " HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n");
    cr_assert_eq(status_of(&request), 202);

    buf_add_str(&request, "POST /hook?");
    add_repeated(&request, "q", 8193 - strlen("/hook?"));
    buf_add_str(&request, " HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n");
    cr_assert_eq(status_of(&request), 414);

    buf_add_str(&request, HEAD);
    add_repeated(&request, "X: 1\r\n", 98);
    buf_add_str(&request, "\r\n");
    cr_assert_eq(status_of(&request), 202);

    buf_add_str(&request, HEAD);
    add_repeated(&request, "X: 1\r\n", 99);
    buf_add_str(&request, "\r\n");
    cr_assert_eq(status_of(&request), 431);

    buf_add_str(&request, HEAD "X: ");
    add_repeated(&request, "x", 40 * 1024);
    buf_add_str(&request, "\r\n\r\n");
    cr_assert_eq(status_of(&request), 431);
}

/* libmicrohttpd makes a record of its own of each, in little memory. */
Test(http_wire, thousands_of_parameters_or_cookies_do_no_harm)
{
    struct buf request = BUF_INIT;
    struct envelope envelope;
    start();
    buf_add_str(&request, "POST /hook?");
    add_repeated(&request, "a&", 4000);
    buf_add_str(&request, " HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n");
    cr_assert_eq(status_of(&request), 202);
    cr_assert(envelope_open(buf_slice(&fixture.engine->envelope), &envelope));
    cr_assert_eq(envelope.query.len, 8000);

    buf_add_str(&request, HEAD "Cookie: ");
    add_repeated(&request, "a=b;", 3000);
    buf_add_str(&request, "\r\n\r\n");
    int status = status_of(&request);
    cr_assert(status == 431 || status == 202, "%d", status);
    cr_assert_eq(client_status(&fixture, SIMPLE), 202);
}

static bool send_filler(struct client *to, size_t n)
{
    char piece[16 * 1024];
    memset(piece, 'x', sizeof(piece));
    while (n > 0) {
        size_t len = n < sizeof(piece) ? n : sizeof(piece);
        if (!client_send(to, piece, len))
            return false;
        n -= len;
    }
    return true;
}

Test(http_wire, a_body_of_the_limit_is_taken_and_one_byte_more_is_413)
{
    start();
    cr_assert(client_say(&client, HEAD "Content-Length: 65536\r\n\r\n"));
    cr_assert(send_filler(&client, 65536));
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 202);
    struct envelope envelope;
    cr_assert(envelope_open(buf_slice(&fixture.engine->envelope), &envelope));
    cr_assert_eq(envelope.body.len, 65536);

    cr_assert(client_say(&client, HEAD "Content-Length: 65537\r\n\r\n"));
    cr_assert(send_filler(&client, 65537));
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 413);
    cr_assert(client_is_at_end(&client));
}

Test(http_wire, a_blocking_sender_of_a_large_body_gets_to_read_its_413)
{
    start();
    cr_assert(client_say(&client, HEAD "Content-Length: 8000000\r\n\r\n"));
    cr_assert(send_filler(&client, 8000000));
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 413);
    cr_assert_str_eq(reply_header(&reply, "Idempotency-Status"), "refused");
}

Test(http_wire, a_chunked_body_is_counted_as_it_comes)
{
    start();
    cr_assert(client_say(&client, HEAD "Transfer-Encoding: chunked\r\n\r\n"
                                       "20000\r\n"));
    cr_assert(send_filler(&client, 0x20000));
    cr_assert(client_say(&client, "\r\n0\r\n\r\n"));
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 413);
}

Test(http_wire, a_body_without_an_end_is_cut_off)
{
    start();
    cr_assert(client_say(&client, HEAD "Transfer-Encoding: chunked\r\n\r\n"
                                       "7fffffff\r\n"));
    size_t sent = 0;
    while (sent < (64 << 20) && send_filler(&client, 1 << 20))
        sent += 1 << 20;
    cr_assert_lt(sent, 64 << 20);
    cr_assert_eq(client_status(&fixture, HEAD "Content-Length: 9000000\r\n"
                                              "\r\n"),
                 413);
}

Test(http_wire, whoever_waits_for_100_continue_gets_it_or_the_refusal)
{
    start();
    cr_assert(client_say(&client, HEAD "Content-Length: 65537\r\n"
                                       "Expect: 100-continue\r\n\r\n"));
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 413);
    client_close(&client);

    client_open(&client, &fixture);
    cr_assert(client_say(&client, HEAD "Content-Length: 2\r\n"
                                       "Expect: 100-continue\r\n\r\n"));
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 100);
    cr_assert(client_say(&client, "hi"));
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 202);
}

static void send_body(struct client *to, size_t n)
{
    char head[128];
    (void)snprintf(head, sizeof(head), HEAD "Content-Length: %zu\r\n\r\n", n);
    cr_assert(client_say(to, head));
    cr_assert(send_filler(to, n));
}

Test(http_wire, bodies_in_flight_have_one_budget)
{
    struct client other;
    fixture.options.max_in_flight_bytes = 50000;
    start();
    engine_set(fixture.engine, true, false, DELIVERY_ACCEPTED);
    client_open(&other, &fixture);
    send_body(&other, 40000);
    engine_wait_taken(fixture.engine, 1);
    send_body(&client, 20000);
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 503);
    cr_assert_not_null(reply_header(&reply, "Retry-After"));

    engine_set(fixture.engine, false, false, DELIVERY_ACCEPTED);
    client_read(&other, &reply);
    cr_assert_eq(reply.status, 202);
    client_close(&client);
    client_open(&client, &fixture);
    send_body(&client, 20000);
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 202);
    client_close(&other);
}

/* --- gzip ----------------------------------------------------------------- */

static void gzip(struct slice body, struct buf *out)
{
    z_stream stream = {.next_in = (Bytef *)body.data,
                       .avail_in = (uInt)body.len};
    cr_assert_eq(
        deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY),
        Z_OK);
    buf_reserve(out, deflateBound(&stream, body.len));
    stream.next_out = (Bytef *)out->data + out->len;
    stream.avail_out = (uInt)(out->cap - out->len);
    cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out->len = out->cap - stream.avail_out;
    cr_assert_eq(deflateEnd(&stream), Z_OK);
}

static int post_gzip(struct slice body)
{
    struct buf packed = BUF_INIT, request = BUF_INIT;
    gzip(body, &packed);
    buf_printf(&request,
               HEAD "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
               packed.len);
    buf_add_slice(&request, buf_slice(&packed));
    cr_assert(client_send(&client, request.data, request.len));
    client_read(&client, &reply);
    buf_free(&packed);
    buf_free(&request);
    return reply.status;
}

Test(http_wire, a_gzip_body_is_handed_on_inflated)
{
    struct envelope envelope;
    start();
    cr_assert_eq(post_gzip(SLICE("{\"a\":1}")), 202);
    cr_assert(envelope_open(buf_slice(&fixture.engine->envelope), &envelope));
    cr_assert(slice_eq(envelope.body, SLICE("{\"a\":1}")));
    cr_assert_eq(headers_count(&envelope.headers, SLICE("Content-Encoding")),
                 0);
    cr_assert_eq(headers_count(&envelope.headers, SLICE("Content-Length")), 0);
    cr_assert_eq(headers_count(&envelope.headers, SLICE("Id")), 1);
}

Test(http_wire, a_gzip_bomb_is_413)
{
    struct slice zeros = {mem_new(10 << 20, 1), 10 << 20};
    start();
    cr_assert_eq(post_gzip(zeros), 413);
    zeros.len = 60000; /* within the size, far over the ratio */
    cr_assert_eq(post_gzip(zeros), 413);
    cr_assert_eq(engine_taken(fixture.engine), 0);
    free((void *)zeros.data);
}

/* --- time and number ------------------------------------------------------ */

/* One byte at a time, until the other side has enough. */
static int64_t trickle(struct client *to, const char *text)
{
    int64_t start_ms = now_ms();
    struct timeval pause = {.tv_usec = 50 * 1000};
    cr_assert_eq(
        setsockopt(to->fd, SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof(pause)), 0);
    for (;;) {
        char byte;
        ssize_t n = recv(to->fd, &byte, 1, MSG_PEEK);
        if (n >= 0 || errno != EAGAIN)
            return now_ms() - start_ms;
        (void)client_send(to, *text != '\0' ? text : "x", 1);
        text += *text != '\0';
    }
}

Test(http_wire, a_slow_sender_is_cut_off_at_the_deadline)
{
    fixture.options.request_timeout_ms = 1000;
    start();
    int64_t took_ms = trickle(&client, HEAD "X: ");
    cr_assert(took_ms >= 900 && took_ms < 2500, "%ld", (long)took_ms);
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 0);
    client_close(&client);

    client_open(&client, &fixture);
    cr_assert(client_say(&client, HEAD "Content-Length: 1000\r\n\r\n"));
    took_ms = trickle(&client, "");
    cr_assert(took_ms >= 900 && took_ms < 2500, "%ld", (long)took_ms);
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 408);
    cr_assert(client_is_at_end(&client));
    cr_assert_eq(engine_taken(fixture.engine), 0);
}

Test(http_wire, the_deadline_of_a_later_request_runs_from_its_own_start)
{
    fixture.options.request_timeout_ms = 1000;
    start();
    for (int i = 0; i < 3; i++) {
        cr_assert(client_say(&client, SIMPLE));
        client_read(&client, &reply);
        cr_assert_eq(reply.status, 202);
    }
    cr_assert(client_say(&client, HEAD "Content-Length: 1000\r\n\r\n"));
    int64_t took_ms = trickle(&client, "");
    cr_assert(took_ms >= 900 && took_ms < 2500, "%ld", (long)took_ms);
}

Test(http_wire, the_engines_time_is_not_the_senders)
{
    fixture.options.request_timeout_ms = 200;
    start();
    engine_set(fixture.engine, true, false, DELIVERY_ACCEPTED);
    cr_assert(client_say(&client, SIMPLE));
    engine_wait_taken(fixture.engine, 1);
    /* Another connection runs into its deadline meanwhile. */
    struct client other;
    client_open(&other, &fixture);
    cr_assert(client_is_at_end(&other));
    client_close(&other);
    engine_set(fixture.engine, false, false, DELIVERY_ACCEPTED);
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 202);
}

Test(http_wire, connections_over_the_limit_are_told_so)
{
    enum { LIMIT = 20, OVER = 400 };
    static struct client many[LIMIT + OVER];
    fixture.options.max_connections = LIMIT;
    fixture_start(&fixture);
    for (int i = 0; i < LIMIT; i++) {
        client_open(&many[i], &fixture);
        cr_assert(client_say(&many[i], SIMPLE));
        client_read(&many[i], &reply);
        cr_assert_eq(reply.status, 202);
    }
    for (int i = LIMIT; i < LIMIT + OVER; i++)
        client_open(&many[i], &fixture);
    for (int i = LIMIT; i < LIMIT + OVER; i++)
        (void)client_say(&many[i], SIMPLE);
    for (int i = LIMIT; i < LIMIT + OVER; i++) {
        client_read(&many[i], &reply);
        cr_assert_eq(reply.status, 503, "connection %d", i);
        cr_assert_not_null(reply_header(&reply, "Retry-After"));
        client_close(&many[i]);
    }
    for (int i = 0; i < LIMIT; i++) {
        cr_assert(client_say(&many[i], SIMPLE));
        client_read(&many[i], &reply);
        cr_assert_eq(reply.status, 202);
        client_close(&many[i]);
    }
}

/* 128 at once make the library's own thread wait without an end. */
Test(http_wire, three_hundred_connections_in_step_never_stall)
{
    enum { STEPS = 20 };
    static const int sizes[] = {128, 256, 300};
    static struct client many[300];
    fixture.options.threads = 1;
    start();
    for (int i = 0; i < 300; i++)
        client_open(&many[i], &fixture);
    for (int step = 0; step < 3 * STEPS; step++) {
        int n = sizes[step % 3];
        size_t before = engine_taken(fixture.engine);
        engine_set(fixture.engine, true, false, DELIVERY_ACCEPTED);
        for (int i = 0; i < n; i++)
            cr_assert(client_say(&many[i], SIMPLE));
        engine_wait_taken(fixture.engine, before + (size_t)n);
        engine_set(fixture.engine, false, false, DELIVERY_ACCEPTED);
        for (int i = 0; i < n; i++) {
            client_read(&many[i], &reply);
            cr_assert_eq(reply.status, 202, "step %d, client %d", step, i);
        }
    }
    for (int i = 0; i < 300; i++)
        client_close(&many[i]);
}

/* --- who, and where ------------------------------------------------------- */

Test(http_wire, networks_and_trusted_proxies_decide_who_comes_in)
{
    static const char *const inside[] = {"192.0.2.0/24"};
    static const char *const here[] = {"127.0.0.0/8"};
    static const char *const proxies[] = {"127.0.0.1"};
    struct http_route *route = fixture_route(&fixture, "/in");
    route->allow = inside;
    route->n_allow = 1;
    route = fixture_route(&fixture, "/here");
    route->allow = here;
    route->n_allow = 1;
    fixture.options.trusted_proxies = proxies;
    fixture.options.n_trusted_proxies = 1;
    start();
    static const struct {
        const char *path, *header;
        int status;
    } rows[] = {
        {"/here", "", 202},
        {"/in", "", 403},
        {"/in", "X-Forwarded-For: 192.0.2.7\r\n", 202},
        {"/in", "X-Forwarded-For: 192.0.2.7, 198.51.100.1\r\n", 403},
        {"/in", "X-Forwarded-For: 192.0.2.7, 127.0.0.1\r\n", 202},
        {"/here", "X-Forwarded-For: 192.0.2.7\r\n", 403},
        {"/in", "X-Forwarded-For: unknown\r\n", 403},
        {"/here",
         "X-Forwarded-For: 192.0.2.7\r\nConnection: X-Forwarded-For\r\n", 403},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char request[256];
        (void)snprintf(request, sizeof(request),
                       "POST %s HTTP/1.1\r\nHost: a\r\nId: 1\r\n%s\r\n",
                       rows[i].path, rows[i].header);
        cr_assert_eq(client_status(&fixture, request), rows[i].status,
                     "row %zu", i);
    }
}

Test(http_wire, an_address_in_use_is_told_and_can_be_tried_again)
{
    struct fixture second;
    struct err err = {0};
    char address[32];
    start();
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u",
                   http_source_port(fixture.source, 0));
    fixture_init(&second);
    second.addresses[0] = address;
    cr_assert_not(http_source_start(&second.source, &second.options, &err));
    cr_assert_eq(err.kind, ERR_AGAIN);
    cr_assert_not_null(strstr(err.text, "is in use"), "%s", err.text);
    fixture_end(&second);
}

static void connect_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    client = (struct client){.in = BUF_INIT};
    client.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_geq(client.fd, 0);
    cr_assert_eq(connect(client.fd, (struct sockaddr *)&to, sizeof(to)), 0);
}

Test(http_wire, a_unix_socket_is_served_and_its_remains_are_replaced)
{
    char folder[] = "/tmp/onced-http-XXXXXX";
    char address[64];
    struct stat status;
    struct err err = {0};
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(address, sizeof(address), "unix:%s/s", folder);
    const char *path = address + strlen("unix:");
    fixture.addresses[0] = address;

    /* what a killed process leaves behind */
    struct sockaddr_un left = {.sun_family = AF_UNIX};
    (void)snprintf(left.sun_path, sizeof(left.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&left, sizeof(left)), 0);
    cr_assert_eq(close(fd), 0);

    fixture_start(&fixture);
    cr_assert_eq(stat(path, &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0660);
    connect_unix(path);
    cr_assert(client_say(&client, SIMPLE));
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 202);

    struct http_source *second;
    cr_assert_not(http_source_start(&second, &fixture.options, &err));
    cr_assert_eq(err.kind, ERR_AGAIN);
    client_close(&client);
    connect_unix(path);
    cr_assert(client_say(&client, SIMPLE));
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 202);

    fixture_stop(&fixture);
    cr_assert_neq(stat(path, &status), 0);
    cr_assert_eq(rmdir(folder), 0);
}
