/* SPDX-License-Identifier: MIT */
#include "source/http_request.h"

#include <assert.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "source/http_delivery.h"
#include "source/http_loop.h"

/* Many senders read no answer before their body is sent, so that a refused
 * body is read to its end; up to here. */
enum { DROP_BYTES_MAX = 8 * 1024 * 1024, FIRST_ROOM_MAX = 64 * 1024 };

struct http_request *http_request_new(struct http_connection *connection,
                                      struct MHD_Connection *handle,
                                      const char *target)
{
    struct http_request *request = mem_new(1, sizeof(*request));
    request->connection = connection;
    request->handle = handle;
    request->shared = http_loop_shared(connection->loop);
    struct slice raw = slice_of(target);
    request->raw_target_len = raw.len;
    if (raw.len <= HTTP_TARGET_MAX) {
        request->raw_target = mem_dup(raw);
    }
    return request;
}

static void unclaim(struct http_request *request)
{
    atomic_fetch_sub(&request->shared->bodies_bytes, request->bytes_claimed);
    request->bytes_claimed = 0;
}

void http_request_free(struct http_request *request)
{
    CHECK(request->phase != HTTP_PHASE_HELD);
    http_delivery_release(request);
    buf_free(&request->body);
    buf_free(&request->headers);
    unclaim(request);
    free(request->raw_target);
    free(request->method);
    free(request);
}

bool http_request_claim(struct http_request *request, uint64_t n)
{
    struct http_shared *shared = request->shared;
    uint64_t before = atomic_fetch_add(&shared->bodies_bytes, n);
    if (before + n > shared->options.max_in_flight_bytes) {
        atomic_fetch_sub(&shared->bodies_bytes, n);
        return false;
    }
    request->bytes_claimed += n;
    return true;
}

/* --- refusing ------------------------------------------------------------ */

bool http_request_refuse(struct http_request *request, unsigned status,
                         enum http_outcome outcome, const char *detail)
{
    request->refusal = (struct http_answer){
        .status = status, .outcome = outcome, .detail = detail};
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        request->refusal.retry_after_s =
            1 + http_loop_random(request->connection->loop) % 3;
    }
    return false;
}

const struct http_ready_pair *
http_request_ready(const struct http_request *request)
{
    CHECK(request->group != NULL);
    return &request->shared
                ->ready[request->group - request->shared->table.groups];
}

static bool answer(struct http_request *request)
{
    bool closes = atomic_load(&request->shared->is_stopping);
    if (request->phase != HTTP_PHASE_DECIDED) {
        http_delivery_tell(request);
    }
    request->phase = HTTP_PHASE_ANSWERED;
    http_loop_answered(request->connection);
    if (!request->is_accepted) {
        request->refusal.closes |= closes;
        return http_answer_refuse(request->handle, &request->refusal);
    }
    const struct http_ready_pair *ready = http_request_ready(request);
    bool is_new = request->delivery.result == DELIVERY_ACCEPTED;
    return http_answer_accept(
        request->handle, is_new ? &ready->accepted : &ready->duplicate, closes);
}

/* In the first call: the answer goes out at once, and the connection ends
 * with it, where the length of the body cannot be trusted or the sender
 * waits for a word before it sends one. Else the body is read first. */
static bool refuse_head(struct http_request *request, bool at_once)
{
    const struct http_framing *framing = &request->framing;
    request->refusal.closes = true;
    if (at_once || framing->expects_continue ||
        (framing->has_length && framing->length > DROP_BYTES_MAX)) {
        return answer(request);
    }
    request->phase = HTTP_PHASE_DROP;
    return true;
}

/* In mid-body: what was kept goes, the rest is read and dropped. */
static void refuse_body(struct http_request *request, unsigned status,
                        enum http_outcome outcome, const char *detail)
{
    (void)http_request_refuse(request, status, outcome, detail);
    request->refusal.closes = true;
    request->phase = HTTP_PHASE_DROP;
    buf_free(&request->body);
    unclaim(request);
}

/* --- the head ------------------------------------------------------------ */

struct header_list {
    struct header items[HTTP_HEADERS_MAX];
    size_t n;
    bool is_too_long;
};

static enum MHD_Result collect(void *cls, enum MHD_ValueKind kind,
                               const char *name, size_t name_len,
                               const char *value, size_t value_len)
{
    struct header_list *list = cls;
    (void)kind; /* only headers were asked for */
    if (list->n == HTTP_HEADERS_MAX) {
        list->is_too_long = true;
        return MHD_NO;
    }
    list->items[list->n++] = (struct header){
        .name = {name, name_len},
        .value = {value, value_len},
    };
    return MHD_YES;
}

/* The library's pointers go into its buffer, where the request starts with
 * its method: what it skipped or cut short shows as a gap. */
static bool has_plain_lines(const struct http_request *request,
                            const struct http_call *call,
                            const struct header_list *list)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        call->handle, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    CHECK(info != NULL);
    size_t before_version =
        strlen(call->method) + 1 + request->raw_target_len + 1;
    return call->version == call->method + before_version &&
           http_vet_lines(list->items, list->n,
                          call->version + strlen(call->version),
                          call->method + info->header_size);
}

static bool vet_headers(struct http_request *request,
                        const struct http_call *call, struct header_list *list,
                        bool is_http11)
{
    const char *why;
    (void)MHD_get_connection_values_n(call->handle, MHD_HEADER_KIND, collect,
                                      list);
    if (list->is_too_long) {
        return http_request_refuse(request, 431, HTTP_BAD_REQUEST,
                                   "more than 100 headers");
    }
    if (!has_plain_lines(request, call, list)) {
        return http_request_refuse(request, 400, HTTP_BAD_REQUEST,
                                   "the request has lines of a doubtful form");
    }
    unsigned status =
        http_vet(list->items, list->n, is_http11, &request->framing, &why);
    return status == 0 ||
           http_request_refuse(request, status, HTTP_BAD_REQUEST, why);
}

/* What makes the request unreadable; true when there is nothing. */
static bool vet(struct http_request *request, const struct http_call *call,
                struct header_list *list)
{
    bool is_http11 = strcmp(call->version, "HTTP/1.1") == 0;
    if (!is_http11 && strcmp(call->version, "HTTP/1.0") != 0) {
        return http_request_refuse(
            request, 505, HTTP_BAD_REQUEST,
            "only HTTP/1.0 and HTTP/1.1 are spoken here");
    }
    if (!vet_headers(request, call, list, is_http11)) {
        return false;
    }
    if (request->raw_target == NULL) {
        return http_request_refuse(request, 414, HTTP_BAD_REQUEST,
                                   "the request target is longer than 8 KiB");
    }
    const char *why =
        http_target_split(slice_of(request->raw_target), &request->target);
    return why == NULL ||
           http_request_refuse(request, 400, HTTP_BAD_REQUEST, why);
}

static bool is_admitted(const struct http_request *request,
                        const struct header_list *list)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        request->handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct http_shared *shared = request->shared;
    struct net_address client =
        net_client(shared->trusted, shared->options.n_trusted_proxies,
                   net_address_of(info != NULL ? info->client_addr : NULL),
                   list->items, list->n);
    return http_table_admits(request->group, &client);
}

static bool may_come_in(struct http_request *request)
{
    if (atomic_load(&request->shared->is_stopping)) {
        return http_request_refuse(request, 503, HTTP_STOPPING,
                                   "shutting down");
    }
    if (request->connection->is_shed) {
        return http_request_refuse(request, 503, HTTP_NO_ROOM,
                                   "too many connections");
    }
    return true;
}

static bool find_route(struct http_request *request,
                       const struct header_list *list)
{
    struct slice method = slice_of(request->method);
    request->group =
        http_table_find(&request->shared->table, request->target.path);
    if (request->group == NULL) {
        return http_request_refuse(request, 404, HTTP_BAD_REQUEST,
                                   "no route has this path");
    }
    if (!http_table_takes(request->group, method)) {
        (void)http_request_refuse(request, 405, HTTP_WRONG_METHOD,
                                  "the route does not take this method");
        request->refusal.allow = request->group->allowed;
        return false;
    }
    if (!is_admitted(request, list)) {
        return http_request_refuse(request, 403, HTTP_FORBIDDEN,
                                   "the client's address is not allowed");
    }
    return true;
}

static bool fits_route(struct http_request *request,
                       const struct header_list *list)
{
    const struct http_group *group = request->group;
    for (size_t i = 0; i < group->n_members; i++) {
        if (http_vet_singles(list->items, list->n,
                             group->members[i].single_headers)) {
            continue;
        }
        return http_request_refuse(
            request, 400, HTTP_BAD_REQUEST,
            "a header stands there twice that may not repeat");
    }
    if (request->framing.coding == HTTP_CODING_OTHER) {
        return http_request_refuse(request, 415, HTTP_WRONG_ENCODING,
                                   "the only content encoding is gzip");
    }
    if (request->framing.length > group->max_body_bytes) {
        return http_request_refuse(request, 413, HTTP_TOO_LARGE,
                                   "the body is larger than the route takes");
    }
    return true;
}

static bool begin(struct http_request *request, const struct http_call *call)
{
    struct header_list list; /* 3 KiB: not zeroed for each request */
    list.n = 0;
    list.is_too_long = false;
    request->method = mem_strdup(call->method);
    if (!vet(request, call, &list)) {
        return refuse_head(request, true);
    }
    http_vet_end_to_end(list.items, list.n, &request->headers,
                        &request->n_headers);
    if (!may_come_in(request) || !find_route(request, &list) ||
        !fits_route(request, &list)) {
        return refuse_head(request, false);
    }
    request->phase = HTTP_PHASE_BODY;
    return true;
}

/* --- the body ------------------------------------------------------------ */

static void keep(struct http_request *request, struct slice data)
{
    request->body_seen += data.len;
    if (request->body_seen > request->group->max_body_bytes) {
        refuse_body(request, 413, HTTP_TOO_LARGE,
                    "the body is larger than the route takes");
        return;
    }
    if (!http_request_claim(request, data.len)) {
        refuse_body(request, 503, HTTP_NO_ROOM,
                    "too many bodies are being received");
        return;
    }
    uint64_t length = request->framing.length;
    if (request->body.cap == 0 && length <= FIRST_ROOM_MAX) {
        buf_reserve(&request->body, (size_t)length);
    }
    buf_add_slice(&request->body, data);
}

static bool drop(struct http_request *request, struct slice data)
{
    request->body_seen += data.len;
    if (request->body_seen <= DROP_BYTES_MAX) {
        return true;
    }
    /* Too late to queue an answer: libmicrohttpd takes none in mid-body. */
    request->phase = HTTP_PHASE_ANSWERED;
    http_delivery_tell(request);
    http_connection_end(request->connection, request->refusal.status == 413
                                                 ? http_answer_too_large
                                                 : NULL);
    return false;
}

/* --- the engine ---------------------------------------------------------- */

static_assert(offsetof(struct http_request, delivery) == 0,
              "a delivery is the start of its request");

static void take_back(struct delivery *delivery)
{
    http_loop_hand_back((struct http_request *)delivery);
}

static bool finish(struct http_request *request)
{
    struct delivery *delivery = &request->delivery;
    if (!http_delivery_make(request)) {
        return answer(request);
    }
    delivery->answer = take_back;
    if (!engine_deliver(request->shared->options.engine, delivery)) {
        (void)http_request_refuse(request, 503, HTTP_NO_ROOM,
                                  "too many deliveries are waiting");
        return answer(request);
    }
    /* The answer cannot overtake this: it comes through this thread. */
    request->phase = HTTP_PHASE_HELD;
    http_loop_hold(request);
    return true;
}

void http_request_decided(struct http_request *request)
{
    CHECK(request->phase == HTTP_PHASE_HELD);
    request->phase = HTTP_PHASE_DECIDED;
    http_delivery_decide(request);
    http_delivery_tell(request); /* the peer may be gone before it is told */
    buf_free(&request->envelope);
    unclaim(request);
}

const char *http_request_expire(struct http_request *request)
{
    bool has_head =
        request->phase == HTTP_PHASE_BODY || request->phase == HTTP_PHASE_DROP;
    if (!has_head && request->phase != HTTP_PHASE_HEAD) {
        return NULL;
    }
    (void)http_request_refuse(request, 408, HTTP_TOO_SLOW,
                              "the request did not arrive in time");
    request->phase = HTTP_PHASE_ANSWERED;
    http_delivery_tell(request);
    return has_head ? http_answer_too_slow : NULL;
}

bool http_request_step(struct http_request *request,
                       const struct http_call *call)
{
    switch (request->phase) {
    case HTTP_PHASE_HEAD:
        return begin(request, call);
    case HTTP_PHASE_BODY:
        if (call->data.len == 0) {
            return finish(request);
        }
        keep(request, call->data);
        return true;
    case HTTP_PHASE_DROP:
        return call->data.len > 0 ? drop(request, call->data) : answer(request);
    case HTTP_PHASE_DECIDED:
        return answer(request);
    case HTTP_PHASE_HELD:
    case HTTP_PHASE_ANSWERED:
        return false;
    }
    UNREACHABLE("every phase is handled");
}
