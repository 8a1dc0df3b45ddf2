/* SPDX-License-Identifier: MIT */
#include "source/http.h"

#include <criterion/criterion.h>

#include "base/text.h"
#include "support/http_fixture.h"

#define HEAD "POST /hook HTTP/1.1\r\nHost: a\r\n"
#define SIGNATURE                                                              \
    "1c9dc82e5f8e5ed5a0180aad33b8204dea12fde2fb62ffb5e963035bf324a7a4"
#define SIMPLE HEAD "Id: evt_1\r\nContent-Length: 2\r\n\r\nhi"

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

TestSuite(http, .init = setup, .fini = teardown, .timeout = 60);

static int ask(const char *request)
{
    cr_assert(client_say(&client, request));
    client_read(&client, &reply);
    return reply.status;
}

static bool head_has(const char *name, const char *value)
{
    const char *got = reply_header(&reply, name);
    return got != NULL && strcmp(got, value) == 0;
}

static struct envelope last_envelope(void)
{
    struct envelope envelope;
    cr_assert(envelope_open(buf_slice(&fixture.engine->envelope), &envelope));
    return envelope;
}

static bool is(struct slice got, const char *expected)
{
    return slice_eq(got, slice_of(expected));
}

Test(http, a_post_becomes_a_delivery_and_its_answer)
{
    start();
    cr_assert_eq(ask(SIMPLE), 202);
    cr_assert(head_has("Idempotency-Status", "accepted"));
    cr_assert(head_has("Cache-Control", "no-store"));
    cr_assert(is(buf_slice(&fixture.engine->id), "evt_1"));
    cr_assert_eq(fixture.engine->tenant.len, 0);
    cr_assert_eq(fixture.engine->order_key, 0);
    cr_assert_eq(fixture.engine->n_arrivals, 1);
    cr_assert_geq(fixture.engine->cost_bytes, fixture.engine->envelope.len);
}

Test(http, the_envelope_is_what_came)
{
    static const char request[] =
        "POST /hook?a=%2F+b&a=%zz HTTP/1.1\r\nHost: a\r\nX-B: 1\r\n"
        "id: evt_1\r\nx-b:  two words \r\nX-Empty:\r\n"
        "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTE: gzip\r\n"
        "Content-Length: 3\r\n\r\n\0\xff\n";
    static const char *const kept[][2] = {
        {"Host", "a"},        {"X-B", "1"},    {"id", "evt_1"},
        {"x-b", "two words"}, {"X-Empty", ""}, {"Content-Length", "3"},
    };
    start();
    cr_assert(client_send(&client, request, sizeof(request) - 1));
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 202);

    struct envelope envelope = last_envelope();
    struct header header;
    size_t at = 0;
    cr_assert_eq(envelope.kind, ENVELOPE_HTTP);
    cr_assert(is(envelope.method, "POST"));
    cr_assert(is(envelope.path, "/hook"));
    cr_assert(envelope.has_query);
    cr_assert(is(envelope.query, "a=%2F+b&a=%zz"));
    cr_assert(envelope.has_body);
    cr_assert(slice_eq(envelope.body, (struct slice){"\0\xff\n", 3}));
    cr_assert_gt(envelope.received_wall_ms, 1500000000000);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        cr_assert(headers_next(&envelope.headers, &at, &header));
        cr_assert(is(header.name, kept[i][0]), "header %zu", i);
        cr_assert(is(header.value, kept[i][1]), "header %zu", i);
    }
    cr_assert_not(headers_next(&envelope.headers, &at, &header));
}

Test(http, the_fingerprint_is_the_first_half_of_sha256_of_the_body)
{
    struct buf hex = BUF_INIT;
    start();
    cr_assert_eq(ask(SIMPLE), 202);
    const struct fingerprint *got = &fixture.engine->fingerprint;
    cr_assert_eq(got->version, 1);
    cr_assert_eq(got->mode, FINGERPRINT_RAW);
    text_hex((struct slice){(const char *)got->digest, sizeof(got->digest)},
             &hex);
    cr_assert_str_eq(buf_cstr(&hex), "8f434346648f6b96df89dda901c5176b");
    buf_free(&hex);
}

Test(http, a_chunked_body_is_put_together)
{
    start();
    cr_assert_eq(ask(HEAD "Id: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
                          "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: r\r\n\r\n"),
                 202);
    struct envelope envelope = last_envelope();
    cr_assert(is(envelope.body, "hello world"));
    cr_assert_eq(headers_count(&envelope.headers, SLICE("T")), 0);
    cr_assert_eq(headers_count(&envelope.headers, SLICE("Transfer-Encoding")),
                 0);
}

Test(http, absolute_targets_are_taken_as_their_path)
{
    start();
    cr_assert_eq(ask("POST http://other:80/hook?x HTTP/1.1\r\nHost: a\r\n"
                     "Id: 1\r\nContent-Length: 0\r\n\r\n"),
                 202);
    cr_assert(is(last_envelope().path, "/hook"));
    cr_assert(is(last_envelope().query, "x"));
}

Test(http, a_connection_is_kept_and_pipelined_requests_keep_their_order)
{
    start();
    for (int i = 0; i < 20; i++)
        cr_assert_eq(ask(SIMPLE), 202);
    for (int i = 0; i < 10; i++)
        cr_assert(client_say(&client, i % 2 == 0 ? SIMPLE : HEAD "\r\n"));
    for (int i = 0; i < 10; i++) {
        client_read(&client, &reply);
        cr_assert_eq(reply.status, i % 2 == 0 ? 202 : 400, "request %d", i);
    }
    cr_assert_eq(engine_taken(fixture.engine), 25);
}

Test(http, a_post_is_answered_after_the_sender_closed_its_side)
{
    start();
    cr_assert(client_say(&client, SIMPLE));
    cr_assert_eq(shutdown(client.fd, SHUT_WR), 0);
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 202);
    cr_assert(client_is_at_end(&client));
}

Test(http, every_result_has_its_answer)
{
    static const struct {
        enum delivery_answer result;
        int status;
        const char *word;
        bool retries;
    } rows[] = {
        {DELIVERY_ACCEPTED, 202, "accepted", false},
        {DELIVERY_DUPLICATE, 200, "duplicate", false},
        {DELIVERY_MISMATCH, 422, "conflict", false},
        {DELIVERY_NO_ROOM, 503, "refused", true},
        {DELIVERY_STOPPED_ROUTE, 503, "refused", true},
    };
    start();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        engine_set(fixture.engine, false, false, rows[i].result);
        cr_assert_eq(ask(SIMPLE), rows[i].status, "row %zu", i);
        cr_assert(head_has("Idempotency-Status", rows[i].word), "row %zu", i);
        const char *after = reply_header(&reply, "Retry-After");
        cr_assert_eq(after != NULL, rows[i].retries, "row %zu", i);
        cr_assert(after == NULL || (atoi(after) >= 1 && atoi(after) <= 3));
    }
}

Test(http, refusals_are_problem_details)
{
    start();
    engine_set(fixture.engine, false, false, DELIVERY_MISMATCH);
    cr_assert_eq(ask(SIMPLE), 422);
    cr_assert(head_has("Content-Type", "application/problem+json"));
    cr_assert_str_eq(
        buf_cstr(&reply.body),
        "{\"type\":\"about:blank\",\"title\":\"Unprocessable Content\","
        "\"status\":422,\"detail\":\"an event of this id came "
        "before, with other content\"}\n");
}

Test(http, the_engines_retry_after_is_kept)
{
    start();
    fixture.engine->retry_after_s = 40;
    engine_set(fixture.engine, false, false, DELIVERY_NO_ROOM);
    cr_assert_eq(ask(SIMPLE), 503);
    int after = atoi(reply_header(&reply, "Retry-After"));
    cr_assert(after >= 40 && after <= 42, "%d", after);
}

Test(http, a_full_inbox_is_503_and_keeps_the_connection)
{
    start();
    engine_set(fixture.engine, false, true, DELIVERY_ACCEPTED);
    cr_assert_eq(ask(SIMPLE), 503);
    cr_assert_not_null(reply_header(&reply, "Retry-After"));
    engine_set(fixture.engine, false, false, DELIVERY_ACCEPTED);
    cr_assert_eq(ask(SIMPLE), 202);
}

Test(http, what_is_no_delivery_is_refused_with_its_status)
{
    static const struct {
        const char *request;
        int status;
    } rows[] = {
        {"POST /none HTTP/1.1\r\nHost: a\r\n\r\n", 404},
        {"POST /hook/ HTTP/1.1\r\nHost: a\r\n\r\n", 404},
        {"POST /%68ook HTTP/1.1\r\nHost: a\r\n\r\n", 404},
        {"GET /hook HTTP/1.1\r\nHost: a\r\n\r\n", 405},
        {"HEAD /none HTTP/1.1\r\nHost: a\r\n\r\n", 404},
        {"OPTIONS /hook HTTP/1.1\r\nHost: a\r\n\r\n", 405},
        {"PUT /hook HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 405},
        {"post /hook HTTP/1.1\r\nHost: a\r\n\r\n", 405},
        {HEAD "\r\n", 400},
        {HEAD "Id:\r\n\r\n", 400},
        {HEAD "Id: a\r\nId: a\r\n\r\n", 400},
        {HEAD "Id: \xff\r\n\r\n", 400},
        {HEAD "Id: 1\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
         415},
        {HEAD "Id: 1\r\nContent-Encoding: gzip, gzip\r\n\r\n", 415},
        {HEAD "Id: 1\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
         400},
        {HEAD "Id: 1\r\nContent-Length: 65537\r\n"
              "Expect: 100-continue\r\n\r\n",
         413},
        {HEAD "Id: 1\r\nExpect: 200-ok\r\n\r\n", 417},
        {"POST /hook HTTP/1.2\r\nHost: a\r\nId: 1\r\n\r\n", 505},
        {"POST /hook HTTP/1.0\r\nId: 1\r\n\r\n", 202},
        {HEAD "Id: 1\r\nContent-Encoding: identity\r\n\r\n", 202},
    };
    start();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cr_assert_eq(client_status(&fixture, rows[i].request), rows[i].status,
                     "row %zu", i);
}

Test(http, a_wrong_method_is_told_the_right_ones)
{
    struct http_route *route = fixture_route(&fixture, "/two");
    route->methods[1] = "PUT";
    route->n_methods = 2;
    start();
    cr_assert_eq(ask("GET /two HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
    cr_assert(head_has("Allow", "POST, PUT"));
    cr_assert(head_has("Idempotency-Status", "refused"));
}

Test(http, the_cause_of_a_bad_id_is_told_without_its_content)
{
    start();
    cr_assert_eq(ask(HEAD "\r\n"), 400);
    cr_assert_not_null(
        strstr(buf_cstr(&reply.body), "the id: the header is missing"));
    cr_assert_eq(ask(HEAD "Id: secret\x80\r\n\r\n"), 400);
    cr_assert_not_null(strstr(buf_cstr(&reply.body), "the id: "));
    cr_assert_null(strstr(buf_cstr(&reply.body), "secret"));
}

Test(http, a_tenant_that_is_configured_is_needed)
{
    struct http_route *route = fixture_route(&fixture, "/tenant");
    value_set(&route->tenant, "header:Tenant");
    start();
    cr_assert_eq(ask("POST /tenant HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n"), 400);
    cr_assert_not_null(strstr(buf_cstr(&reply.body), "the tenant: "));
    cr_assert_eq(ask("POST /tenant HTTP/1.1\r\nHost: a\r\nId: 1\r\n"
                     "Tenant: acme\r\n\r\n"),
                 202);
    cr_assert(is(buf_slice(&fixture.engine->tenant), "acme"));
    cr_assert(is(buf_slice(&fixture.engine->id), "1"));
}

/* The first 8 bytes of SHA-256("k1"): by sha256sum. */
Test(http, the_order_key_is_a_hash_and_none_without_a_value)
{
    struct http_route *route = fixture_route(&fixture, "/order");
    value_set(&route->order_by, "json:/k");
    start();
    cr_assert_eq(ask("POST /order HTTP/1.1\r\nHost: a\r\nId: 1\r\n"
                     "Content-Length: 10\r\n\r\n{\"k\":\"k1\"}"),
                 202);
    cr_assert_eq(fixture.engine->order_key, UINT64_C(0x6ab9f1eb8f7d3388));
    cr_assert_eq(ask("POST /order HTTP/1.1\r\nHost: a\r\nId: 1\r\n"
                     "Content-Length: 2\r\n\r\n{}"),
                 202);
    cr_assert_eq(fixture.engine->order_key, 0);
    cr_assert_eq(ask("POST /order HTTP/1.1\r\nHost: a\r\nId: 1\r\n"
                     "Content-Length: 2\r\n\r\n{]"),
                 400);
}

Test(http, routes_on_one_path_get_one_event_each_from_one_delivery)
{
    fixture_route(&fixture, "/other");
    fixture_route(&fixture, "/hook");
    start();
    cr_assert_eq(ask(SIMPLE), 202);
    cr_assert_eq(fixture.engine->n_arrivals, 2);
    cr_assert_eq(fixture.engine->routes[0], 0);
    cr_assert_eq(fixture.engine->routes[1], 2);
    cr_assert_eq(engine_taken(fixture.engine), 1);
}

Test(http, the_longest_prefix_takes_what_no_exact_path_takes)
{
    static const struct {
        const char *path;
        size_t route;
    } rows[] = {{"/hook", 0}, {"/a/x", 1},   {"/a/b/x", 2},
                {"/a/b/", 2}, {"/a/b/c", 3}, {"/a/b", 1}};
    fixture_route(&fixture, "/a/*");
    fixture_route(&fixture, "/a/b/*");
    fixture_route(&fixture, "/a/b/c");
    start();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char request[128];
        (void)snprintf(request, sizeof(request),
                       "POST %s HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n",
                       rows[i].path);
        cr_assert_eq(ask(request), 202, "%s", rows[i].path);
        cr_assert_eq(fixture.engine->routes[0], rows[i].route, "%s",
                     rows[i].path);
    }
    cr_assert_eq(ask("POST /a HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n"), 404);
}

Test(http, a_configured_answer_replaces_200_and_202)
{
    static const char *headers[][2] = {{"X-Ours", "yes"}};
    struct http_route *route = fixture_route(&fixture, "/own");
    route->answer_status = 204;
    route->answer_headers = headers;
    route->n_answer_headers = 1;
    route = fixture_route(&fixture, "/text");
    route->answer_status = 200;
    route->answer_body = "[accepted]";
    route->answer_content_type = "text/plain";
    start();
    cr_assert_eq(ask("POST /own HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n"), 204);
    cr_assert(head_has("X-Ours", "yes"));
    cr_assert(head_has("Idempotency-Status", "accepted"));
    cr_assert_eq(ask("POST /text HTTP/1.1\r\nHost: a\r\nId: 1\r\n\r\n"), 200);
    cr_assert(head_has("Content-Type", "text/plain"));
    cr_assert_str_eq(buf_cstr(&reply.body), "[accepted]");
}

/* openssl dgst -sha256 -hmac key, over "hi". */
Test(http, only_what_is_signed_right_is_delivered)
{
    struct slice secret = SLICE("key");
    const char *piece = "body";
    struct verify_options options = {
        .scheme = "hmac",
        .algorithm = "sha256",
        .header = "Sig",
        .encoding = "hex",
        .signed_pieces = &piece,
        .n_signed = 1,
        .tolerance_ms = -1,
        .secrets = &secret,
        .n_secrets = 1,
    };
    struct verifier *verifier;
    struct err err = {0};
    cr_assert(verifier_new(&verifier, &options, &err), "%s", err.text);
    fixture.routes[0].verifier = verifier;
    start();
    cr_assert_eq(ask(SIMPLE), 401);
    struct buf first = BUF_INIT;
    buf_add_slice(&first, buf_slice(&reply.body));
    cr_assert_eq(ask(HEAD "Id: 1\r\nSig: 00\r\nContent-Length: 2\r\n\r\nhi"),
                 401);
    cr_assert(slice_eq(buf_slice(&first), buf_slice(&reply.body)));
    cr_assert_eq(
        ask(HEAD "Id: 1\r\nSig: " SIGNATURE "\r\nContent-Length: 2\r\n\r\nho"),
        401);
    cr_assert_eq(engine_taken(fixture.engine), 0);
    cr_assert_eq(
        ask(HEAD "Id: 1\r\nSig: " SIGNATURE "\r\nContent-Length: 2\r\n\r\nhi"),
        202);
    cr_assert_eq(client_status(&fixture, HEAD "Id: 1\r\nSig: " SIGNATURE
                                              "\r\nSig: 00\r\n\r\n"),
                 400);
    buf_free(&first);
    verifier_free(verifier);
}

Test(http, a_client_that_left_does_not_stop_its_delivery)
{
    start();
    engine_set(fixture.engine, true, false, DELIVERY_ACCEPTED);
    for (int i = 0; i < 50; i++) {
        struct client leaver;
        client_open(&leaver, &fixture);
        cr_assert(client_say(&leaver, SIMPLE));
        client_close(&leaver);
    }
    engine_wait_taken(fixture.engine, 50);
    engine_set(fixture.engine, false, false, DELIVERY_ACCEPTED);
    cr_assert_eq(ask(SIMPLE), 202);
}

Test(http, after_stop_intake_new_requests_get_503_and_held_ones_their_answer)
{
    struct client held;
    start();
    engine_set(fixture.engine, true, false, DELIVERY_ACCEPTED);
    client_open(&held, &fixture);
    cr_assert(client_say(&held, SIMPLE));
    engine_wait_taken(fixture.engine, 1);
    http_source_stop_intake(fixture.source);

    cr_assert_eq(ask(SIMPLE), 503);
    cr_assert(head_has("Connection", "close"));
    cr_assert(client_is_at_end(&client));

    engine_set(fixture.engine, false, false, DELIVERY_ACCEPTED);
    client_read(&held, &reply);
    cr_assert_eq(reply.status, 202);
    cr_assert(head_has("Connection", "close"));
    cr_assert(client_is_at_end(&held));
    client_close(&held);
}

Test(http, a_refusal_after_stop_intake_ends_its_connection_too)
{
    start();
    engine_set(fixture.engine, true, false, DELIVERY_MISMATCH);
    cr_assert(client_say(&client, SIMPLE));
    engine_wait_taken(fixture.engine, 1);
    http_source_stop_intake(fixture.source);
    engine_set(fixture.engine, false, false, DELIVERY_MISMATCH);
    client_read(&client, &reply);
    cr_assert_eq(reply.status, 422);
    cr_assert(head_has("Connection", "close"));
    cr_assert(client_is_at_end(&client));
}

Test(http, what_is_answered_just_before_the_end_is_still_sent)
{
    struct client held[20];
    start();
    engine_set(fixture.engine, true, false, DELIVERY_ACCEPTED);
    for (int i = 0; i < 20; i++) {
        client_open(&held[i], &fixture);
        cr_assert(client_say(&held[i], SIMPLE));
    }
    engine_wait_taken(fixture.engine, 20);
    fixture_stop(&fixture);
    for (int i = 0; i < 20; i++) {
        client_read(&held[i], &reply);
        cr_assert_eq(reply.status, 202, "client %d", i);
        client_close(&held[i]);
    }
}

Test(http, a_route_that_cannot_be_served_is_a_configuration_error)
{
    struct err err = {0};
    const char *network = "10.0.0.0/33";
    struct http_source *source;
    fixture.options.routes = fixture.routes;
    fixture.options.n_routes = 1;

    fixture.routes[0].path = "hook";
    cr_assert_not(http_source_start(&source, &fixture.options, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    fixture.routes[0].path = "/hook";
    fixture.routes[0].allow = &network;
    fixture.routes[0].n_allow = 1;
    cr_assert_not(http_source_start(&source, &fixture.options, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    fixture.routes[0].n_allow = 0;
    fixture.addresses[0] = "localhost:80";
    cr_assert_not(http_source_start(&source, &fixture.options, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
}
