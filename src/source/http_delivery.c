/* SPDX-License-Identifier: MIT */
#include "source/http_delivery.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mark.h"
#include "base/metrics.h"
#include "source/event.h"
#include "source/http_gzip.h"

enum { WARN_EVERY_MS = 1000 };

/* --- what arrived -------------------------------------------------------- */

static struct envelope view(const struct http_request *request,
                            int64_t received_wall_ms)
{
    return (struct envelope){
        .kind = ENVELOPE_HTTP,
        .received_wall_ms = received_wall_ms,
        .headers = {buf_slice(&request->headers), request->n_headers},
        .body = buf_slice(&request->body),
        .has_body = true,
        .method = slice_of(request->method),
        .path = request->target.path,
        .query = request->target.query,
        .has_query = request->target.has_query,
    };
}

/* With every verifier of the group: what one of them does not vouch for must
 * not become an event of its route. */
static bool verify(struct http_request *request,
                   const struct envelope *envelope)
{
    for (size_t i = 0; i < request->group->n_members; i++) {
        const struct http_route *route = request->group->members[i].route;
        if (route->verifier == NULL) {
            continue;
        }
        enum verify_status status = verifier_check(route->verifier, envelope,
                                                   envelope->received_wall_ms);
        if (status == VERIFY_OK) {
            continue;
        }
        metric_add(METRIC_VERIFY_FAILURES, route->engine_route, status, 1);
        request->log_why = verify_status_name(status);
        return http_request_refuse(request, 401, HTTP_UNAUTHORIZED,
                                   "the signature is missing or not valid");
    }
    return true;
}

/* --- inflating ----------------------------------------------------------- */

/* The headers without those that told of the encoded form. */
static void drop_coding_headers(struct http_request *request)
{
    struct buf flat = BUF_INIT;
    uint32_t kept = 0;
    struct headers all = {buf_slice(&request->headers), request->n_headers};
    struct header header;
    for (size_t at = 0; headers_next(&all, &at, &header);) {
        if (slice_eq_nocase(header.name, SLICE("Content-Encoding")) ||
            slice_eq_nocase(header.name, SLICE("Content-Length"))) {
            continue;
        }
        headers_add(&flat, header.name, header.value);
        kept++;
    }
    buf_free(&request->headers);
    request->headers = flat;
    request->n_headers = kept;
}

static bool inflate_body(struct http_request *request)
{
    struct buf inflated = BUF_INIT;
    enum http_gzip_status status = http_gzip_inflate(
        buf_slice(&request->body), request->group->max_body_bytes, &inflated);
    switch (status) {
    case HTTP_GZIP_OK:
        break;
    case HTTP_GZIP_BAD:
        (void)http_request_refuse(
            request, 400, HTTP_BAD_REQUEST,
            "the body is not the gzip that it says it is");
        goto fail;
    case HTTP_GZIP_TOO_LARGE:
        (void)http_request_refuse(request, 413, HTTP_TOO_LARGE,
                                  "the inflated body is larger than the route "
                                  "takes, or than 100 times what was sent");
        goto fail;
    }
    if (!http_request_claim(request, inflated.len)) {
        (void)http_request_refuse(request, 503, HTTP_NO_ROOM,
                                  "too many bodies are being received");
        goto fail;
    }
    buf_free(&request->body);
    request->body = inflated;
    drop_coding_headers(request);
    return true;
fail:
    buf_free(&inflated);
    return false;
}

/* --- events -------------------------------------------------------------- */

/* Where a value stands in request->values, which moves while it grows. */
struct span {
    size_t start, len;
};

static struct slice slice_at(const struct http_request *request,
                             struct span span)
{
    return (struct slice){request->values.data + span.start, span.len};
}

static bool refuse_value(struct http_request *request, const char *subject,
                         const char *why)
{
    (void)http_request_refuse(request, 400, HTTP_BAD_REQUEST, why);
    request->refusal.subject = subject;
    return false;
}

/* Appends a value that the delivery must have. */
static bool eval_needed(struct http_request *request, const char *subject,
                        const struct value *value,
                        const struct envelope *envelope, struct span *span)
{
    const char *why = NULL;
    span->start = request->values.len;
    enum value_status status =
        value_eval(value, envelope, &request->values, &why);
    if (status != VALUE_OK) {
        return refuse_value(request, subject, why);
    }
    span->len = request->values.len - span->start;
    why = value_check_id(slice_at(request, *span));
    return why == NULL || refuse_value(request, subject, why);
}

/* An event without the value is in no order; one whose value cannot be read
 * is refused, since its order was promised. */
static bool eval_order(struct http_request *request, const struct value *value,
                       const struct envelope *envelope, uint64_t *key)
{
    struct buf text = BUF_INIT;
    const char *why = NULL;
    enum value_status status = value_eval(value, envelope, &text, &why);
    *key = 0;
    if (status == VALUE_OK) {
        *key = event_order_key(buf_slice(&text));
    }
    buf_free(&text);
    return status == VALUE_OK || status == VALUE_ABSENT ||
           refuse_value(request, "the ordering key", why);
}

static bool eval_event(struct http_request *request,
                       const struct http_route *route,
                       const struct envelope *envelope, struct arrival *arrival,
                       struct span spans[2])
{
    arrival->route = route->engine_route;
    if (!eval_needed(request, "the id", &route->id, envelope, &spans[0])) {
        return false;
    }
    if (route->tenant.n_choices > 0 &&
        !eval_needed(request, "the tenant", &route->tenant, envelope,
                     &spans[1])) {
        return false;
    }
    return route->order_by.n_choices == 0 ||
           eval_order(request, &route->order_by, envelope, &arrival->order_key);
}

/* One event per route of the group. */
static bool make_events(struct http_request *request,
                        const struct envelope *envelope)
{
    const struct http_group *group = request->group;
    struct delivery *delivery = &request->delivery;
    struct span(*spans)[2] = mem_new(group->n_members, sizeof(*spans));
    bool ok = true;

    delivery->n_arrivals = group->n_members;
    delivery->arrivals = mem_new(group->n_members, sizeof(*delivery->arrivals));
    for (size_t i = 0; ok && i < group->n_members; i++) {
        ok = eval_event(request, group->members[i].route, envelope,
                        &delivery->arrivals[i], spans[i]);
    }
    for (size_t i = 0; ok && i < group->n_members; i++) {
        delivery->arrivals[i].id = slice_at(request, spans[i][0]);
        delivery->arrivals[i].tenant = slice_at(request, spans[i][1]);
    }
    free(spans);
    return ok;
}

static void share(struct http_request *request,
                  const struct fingerprint *fingerprint)
{
    struct delivery *delivery = &request->delivery;
    for (size_t i = 0; i < delivery->n_arrivals; i++) {
        delivery->arrivals[i].fingerprint = *fingerprint;
        delivery->arrivals[i].envelope = buf_slice(&request->envelope);
    }
    delivery->item.cost_bytes =
        sizeof(*request) + request->envelope.len + request->values.len +
        delivery->n_arrivals * sizeof(*delivery->arrivals);
}

bool http_delivery_make(struct http_request *request)
{
    int64_t now_wall_ms = clock_wall_ms(request->shared->options.clock);
    struct envelope envelope = view(request, now_wall_ms);
    struct fingerprint fingerprint;

    MARK(delivery_received);
    if (!verify(request, &envelope)) {
        return false;
    }
    MARK(delivery_verified);
    event_fingerprint(envelope.body, &fingerprint);
    if (request->framing.coding == HTTP_GZIP) {
        if (!inflate_body(request)) {
            return false;
        }
        envelope = view(request, now_wall_ms);
    }
    if (!make_events(request, &envelope)) {
        return false;
    }
    envelope_encode(&envelope, &request->envelope);
    buf_free(&request->body);
    buf_free(&request->headers);
    share(request, &fingerprint);
    return true;
}

void http_delivery_release(struct http_request *request)
{
    free(request->delivery.arrivals);
    request->delivery.arrivals = NULL;
    request->delivery.n_arrivals = 0;
    buf_free(&request->values);
    buf_free(&request->envelope);
}

/* --- the answer ---------------------------------------------------------- */

static void refuse_for_now(struct http_request *request,
                           enum http_outcome outcome, const char *detail)
{
    int64_t asked_s = request->delivery.retry_after_s;
    (void)http_request_refuse(request, 503, outcome, detail);
    if (asked_s > 1 && asked_s < UINT32_MAX / 2) {
        request->refusal.retry_after_s += (unsigned)asked_s - 1;
    }
}

void http_delivery_decide(struct http_request *request)
{
    switch (request->delivery.result) {
    case DELIVERY_ACCEPTED:
    case DELIVERY_DUPLICATE:
        request->is_accepted = true;
        return;
    case DELIVERY_MISMATCH:
        (void)http_request_refuse(request, 422, HTTP_CONFLICT,
                                  "an event of this id came before, with other "
                                  "content");
        return;
    case DELIVERY_NO_ROOM:
        refuse_for_now(request, HTTP_NO_ROOM, "no room to store it");
        return;
    case DELIVERY_STOPPED_ROUTE:
        refuse_for_now(request, HTTP_STOPPED_ROUTE,
                       "the route is stopped: its dead letters take all room");
        return;
    case DELIVERY_FENCED:
        break; /* it has no assignment */
    }
    UNREACHABLE("every result has an answer");
}

static enum http_outcome outcome_for(const struct http_request *request,
                                     size_t n)
{
    const struct delivery *delivery = &request->delivery;
    if (!request->is_accepted) {
        return request->refusal.outcome;
    }
    if (delivery->result == DELIVERY_DUPLICATE ||
        delivery->arrivals[n].answer == ANSWER_DUPLICATE) {
        return HTTP_DUPLICATE;
    }
    return HTTP_ACCEPTED;
}

static unsigned status_of(const struct http_request *request)
{
    if (!request->is_accepted) {
        return request->refusal.status;
    }
    const struct http_ready_pair *ready = http_request_ready(request);
    return request->delivery.result == DELIVERY_ACCEPTED
               ? ready->accepted.status
               : ready->duplicate.status;
}

/* Refusals are worth a line that is seen, but no flood of them is. */
static bool may_warn(struct http_shared *shared)
{
    int64_t now_ms = clock_boot_ms(shared->options.clock);
    int64_t last_ms = atomic_load(&shared->warned_boot_ms);
    return now_ms - last_ms >= WARN_EVERY_MS &&
           atomic_compare_exchange_strong(&shared->warned_boot_ms, &last_ms,
                                          now_ms);
}

static void write_log(const struct http_request *request,
                      const struct http_route *route, size_t n)
{
    struct log_line line;
    const struct delivery *delivery = &request->delivery;
    enum http_outcome outcome = outcome_for(request, n);
    bool warns = !request->is_accepted && may_warn(request->shared);
    if (!log_begin(&line, warns ? LOG_WARN : LOG_DEBUG, "http",
                   "delivery answered")) {
        return;
    }
    log_str(&line, "route", slice_of(route->name));
    if (n < delivery->n_arrivals) {
        log_str(&line, "id", delivery->arrivals[n].id);
    }
    log_str(&line, "outcome", slice_of(http_source_outcomes[outcome]));
    log_int(&line, "status", status_of(request));
    if (!request->is_accepted) {
        log_str(&line, "why",
                slice_of(request->log_why != NULL ? request->log_why
                                                  : request->refusal.detail));
    }
    log_end(&line);
}

void http_delivery_tell(const struct http_request *request)
{
    const struct http_group *group = request->group;
    for (size_t i = 0; group != NULL && i < group->n_members; i++) {
        const struct http_route *route = group->members[i].route;
        metric_add(METRIC_DELIVERIES, route->engine_route,
                   outcome_for(request, i), 1);
        write_log(request, route, i);
    }
}
