/* SPDX-License-Identifier: MIT */
#include "source/http_answer.h"

#include <assert.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

const char *const http_source_outcomes[] = {
    "accepted",       "duplicate",    "conflict",
    "bad-request",    "unauthorized", "forbidden",
    "wrong-method",   "too-slow",     "too-large",
    "wrong-encoding", "no-room",      "stopping",
    "stopped-route",  NULL,
};
static_assert(sizeof(http_source_outcomes) / sizeof(char *) ==
                  HTTP_OUTCOMES + 1,
              "one name per outcome");

#define RAW_HEADERS                                                            \
    "Idempotency-Status: refused\r\n"                                          \
    "Cache-Control: no-store\r\n"                                              \
    "Connection: close\r\n"                                                    \
    "Content-Length: 0\r\n\r\n"

const char http_answer_too_slow[] =
    "HTTP/1.1 408 Request Timeout\r\n" RAW_HEADERS;
const char http_answer_too_large[] =
    "HTTP/1.1 413 Content Too Large\r\n" RAW_HEADERS;
const char http_answer_too_many[] =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n" RAW_HEADERS;

static const char *idempotency_status(enum http_outcome outcome)
{
    switch (outcome) {
    case HTTP_ACCEPTED:
        return "accepted";
    case HTTP_DUPLICATE:
        return "duplicate";
    case HTTP_CONFLICT:
        return "conflict";
    case HTTP_BAD_REQUEST:
    case HTTP_UNAUTHORIZED:
    case HTTP_FORBIDDEN:
    case HTTP_WRONG_METHOD:
    case HTTP_TOO_SLOW:
    case HTTP_TOO_LARGE:
    case HTTP_WRONG_ENCODING:
    case HTTP_NO_ROOM:
    case HTTP_STOPPING:
    case HTTP_STOPPED_ROUTE:
        return "refused";
    }
    UNREACHABLE("every outcome has a word");
}

static struct MHD_Response *response_of(struct slice body,
                                        enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        body.len, body.len > 0 ? (void *)body.data : (void *)"", mode);
    CHECK(response != NULL);
    return response;
}

/* For names and values of our own, which are never refused. */
static void add(struct MHD_Response *response, const char *name,
                const char *value)
{
    CHECK(MHD_add_response_header(response, name, value) == MHD_YES);
}

static void add_usual(struct MHD_Response *response, enum http_outcome outcome)
{
    add(response, "Idempotency-Status", idempotency_status(outcome));
    add(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
}

/* --- ready answers ------------------------------------------------------- */

static bool add_configured(struct MHD_Response *response,
                           const struct http_route *route, struct err *err)
{
    for (size_t i = 0; i < route->n_answer_headers; i++) {
        const char *name = route->answer_headers[i][0];
        if (MHD_add_response_header(response, name,
                                    route->answer_headers[i][1]) != MHD_YES) {
            return err_set(err, ERR_CONFIG,
                           "route %s: the answer's header %s cannot be sent",
                           route->name, name);
        }
    }
    if (route->answer_content_type != NULL &&
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                route->answer_content_type) != MHD_YES) {
        return err_set(err, ERR_CONFIG,
                       "route %s: the answer's content type cannot be sent",
                       route->name);
    }
    return true;
}

static struct MHD_Response *make_response(const struct http_route *route,
                                          enum http_outcome outcome,
                                          struct err *err)
{
    struct MHD_Response *response =
        response_of(slice_of(route->answer_body), MHD_RESPMEM_PERSISTENT);
    add_usual(response, outcome);
    if (add_configured(response, route, err)) {
        return response;
    }
    MHD_destroy_response(response);
    return NULL;
}

static bool make_ready(struct http_ready *ready, const struct http_route *route,
                       enum http_outcome outcome, struct err *err)
{
    unsigned usual = outcome == HTTP_ACCEPTED ? MHD_HTTP_ACCEPTED : MHD_HTTP_OK;
    ready->status = route->answer_status != 0 ? route->answer_status : usual;
    ready->keeps = make_response(route, outcome, err);
    if (ready->keeps == NULL) {
        return false;
    }
    ready->closes = make_response(route, outcome, err);
    if (ready->closes == NULL) {
        return false;
    }
    add(ready->closes, MHD_HTTP_HEADER_CONNECTION, "close");
    return true;
}

bool http_answer_prepare(struct http_shared *shared, struct err *err)
{
    size_t n = shared->table.n_groups;
    shared->ready = mem_new(n, sizeof(*shared->ready));
    for (size_t i = 0; i < n; i++) {
        struct http_ready_pair *pair = &shared->ready[i];
        const struct http_route *route =
            shared->table.groups[i].members[0].route;
        if (!make_ready(&pair->accepted, route, HTTP_ACCEPTED, err) ||
            !make_ready(&pair->duplicate, route, HTTP_DUPLICATE, err)) {
            return false;
        }
    }
    return true;
}

static void free_ready(struct http_ready *ready)
{
    if (ready->keeps != NULL) {
        MHD_destroy_response(ready->keeps);
    }
    if (ready->closes != NULL) {
        MHD_destroy_response(ready->closes);
    }
}

void http_answer_free(struct http_shared *shared)
{
    if (shared->ready == NULL) {
        return;
    }
    for (size_t i = 0; i < shared->table.n_groups; i++) {
        free_ready(&shared->ready[i].accepted);
        free_ready(&shared->ready[i].duplicate);
    }
    free(shared->ready);
    shared->ready = NULL;
}

/* --- sending ------------------------------------------------------------- */

/* The texts are our own and have no control bytes. */
static void add_escaped(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            buf_add_byte(out, '\\');
        }
        buf_add_byte(out, *text);
    }
}

static void write_problem(struct buf *out, const struct http_answer *answer)
{
    const char *title = MHD_get_reason_phrase_for(answer->status);
    buf_add_str(out, "{\"type\":\"about:blank\",\"title\":\"");
    add_escaped(out, title != NULL ? title : "Refused");
    buf_printf(out, "\",\"status\":%u,\"detail\":\"", answer->status);
    if (answer->subject != NULL) {
        add_escaped(out, answer->subject);
        buf_add_str(out, ": ");
    }
    add_escaped(out, answer->detail);
    buf_add_str(out, "\"}\n");
}

bool http_answer_refuse(struct MHD_Connection *connection,
                        const struct http_answer *answer)
{
    CHECK(answer->status >= 400);
    CHECK(answer->detail != NULL);
    struct buf body = BUF_INIT;
    write_problem(&body, answer);
    struct MHD_Response *response =
        response_of(buf_slice(&body), MHD_RESPMEM_MUST_COPY);
    buf_free(&body);

    add_usual(response, answer->outcome);
    add(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/problem+json");
    if (answer->retry_after_s > 0) {
        char seconds[16];
        (void)snprintf(seconds, sizeof(seconds), "%u", answer->retry_after_s);
        add(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    if (answer->allow != NULL) {
        add(response, MHD_HTTP_HEADER_ALLOW, answer->allow);
    }
    if (answer->closes) {
        add(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    bool ok =
        MHD_queue_response(connection, answer->status, response) == MHD_YES;
    MHD_destroy_response(response);
    return ok;
}

bool http_answer_accept(struct MHD_Connection *connection,
                        const struct http_ready *ready, bool closes)
{
    return MHD_queue_response(connection, ready->status,
                              closes ? ready->closes : ready->keeps) == MHD_YES;
}
