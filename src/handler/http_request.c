/* SPDX-License-Identifier: MIT */
#include "handler/http_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "handler/wire.h"
#include "onced/handler.h"

/* A list under construction. */
struct list {
    struct curl_slist *first, *last;
    struct buf line;
    struct buf base64; /* names of the headers that are in base64 */
};

static void add_line(struct list *list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(list->last, line);

    CHECK(longer != NULL);
    if (list->first == NULL) {
        list->first = longer;
        list->last = longer;
    } else {
        list->last = list->last->next;
    }
}

static void add(struct list *list, struct slice name, struct slice value)
{
    buf_clear(&list->line);
    buf_add_slice(&list->line, name);
    if (slice_trim(value).len == 0) {
        buf_add_str(&list->line, ";"); /* libcurl's form of "no value" */
    } else {
        buf_add_str(&list->line, ": ");
        buf_add_slice(&list->line, value);
    }
    add_line(list, buf_cstr(&list->line));
}

static void add_int(struct list *list, const char *name, int64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, value);

    CHECK(len > 0);
    add(list, slice_of(name), (struct slice){text, (size_t)len});
}

/* A value of any bytes: where it is not text, in base64 and listed so. */
static void add_bytes(struct list *list, struct slice name, struct slice value)
{
    struct buf coded = BUF_INIT;

    if (wire_is_text(value)) {
        add(list, name, value);
        return;
    }
    text_base64(value, &coded);
    add(list, name, buf_slice(&coded));
    buf_free(&coded);
    buf_add_str(&list->base64, list->base64.len == 0 ? "" : ", ");
    buf_add_slice(&list->base64, name);
}

static bool is_passed_on(const struct backend *backend,
                         const struct headers *all, const struct header *header)
{
    static const char *const ours[] = {"host", "accept-encoding"};

    return wire_is_token(header->name) && wire_is_value(header->value) &&
           !wire_is_framing(header->name) && !wire_is_reserved(header->name) &&
           !wire_is_one_of(header->name, ours, sizeof ours / sizeof ours[0]) &&
           !wire_is_hop_by_hop(all, header->name) &&
           !backend_has(backend, header->name);
}

static void add_passed_on(struct list *list, const struct backend *backend,
                          const struct headers *headers)
{
    struct header header;

    for (size_t at = 0; headers_next(headers, &at, &header);) {
        if (is_passed_on(backend, headers, &header)) {
            add(list, header.name, header.value);
        }
    }
}

/* Message headers that mean the same in HTTP. */
static void add_common(struct list *list, const struct backend *backend,
                       const struct headers *headers)
{
    static const char *const names[] = {"Content-Type", "traceparent",
                                        "tracestate"};
    struct slice value;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct slice name = slice_of(names[i]);

        if (headers_find(headers, name, &value) && wire_is_text(value) &&
            !backend_has(backend, name)) {
            add(list, name, value);
        }
    }
}

static void add_kafka_headers(struct list *list, const struct headers *headers)
{
    struct buf name = BUF_INIT;
    struct header header;

    for (size_t at = 0; headers_next(headers, &at, &header);) {
        buf_clear(&name);
        buf_add_str(&name, ONCED_HEADER_KAFKA_PREFIX);
        text_percent(header.name, &name);
        add_bytes(list, buf_slice(&name), header.value);
    }
    buf_free(&name);
}

static void add_kafka(struct list *list, const struct backend *backend,
                      const struct envelope *envelope)
{
    add_bytes(list, SLICE(ONCED_HEADER_KAFKA_TOPIC), envelope->topic);
    add_int(list, ONCED_HEADER_KAFKA_PARTITION, envelope->partition);
    add_int(list, ONCED_HEADER_KAFKA_OFFSET, envelope->offset);
    if (envelope->timestamp_ms >= 0) {
        add_int(list, ONCED_HEADER_KAFKA_TIMESTAMP, envelope->timestamp_ms);
    }
    if (envelope->has_key) {
        add_bytes(list, SLICE(ONCED_HEADER_KAFKA_KEY), envelope->key);
    }
    if (!envelope->has_body) {
        add(list, SLICE(ONCED_HEADER_KAFKA_NULL), SLICE("1"));
    }
    add_common(list, backend, &envelope->headers);
    add_kafka_headers(list, &envelope->headers);
    if (list->base64.len > 0) {
        add(list, SLICE(ONCED_HEADER_KAFKA_BASE64), buf_slice(&list->base64));
    }
}

static void add_ours(struct list *list, const struct attempt *attempt)
{
    add(list, SLICE(ONCED_HEADER_IDEMPOTENCY_KEY),
        slice_of(attempt->idempotency_key));
    add(list, SLICE(ONCED_HEADER_ROUTE), slice_of(attempt->route));
    add(list, SLICE(ONCED_HEADER_EVENT_ID), attempt->id);
    if (attempt->tenant.len > 0) {
        add(list, SLICE(ONCED_HEADER_TENANT), attempt->tenant);
    }
    add_int(list, ONCED_HEADER_ATTEMPT, attempt->number);
}

/* Whether a header of this name is on the list. */
static bool has(const struct list *list, struct slice name)
{
    for (const struct curl_slist *at = list->first; at; at = at->next) {
        struct slice line = slice_of(at->data);
        size_t end = strcspn(at->data, ":;");

        if (slice_eq_nocase((struct slice){line.data, end}, name)) {
            return true;
        }
    }
    return false;
}

/* Turns off what libcurl adds by itself where nobody sets it. */
static void add_silence(struct list *list)
{
    if (!has(list, SLICE("Accept"))) {
        add_line(list, "Accept:");
    }
    if (!has(list, SLICE("Content-Type"))) {
        add_line(list, "Content-Type:");
    }
    /* The answer may be replayed to callers who accept other codings. */
    if (!has(list, SLICE("Accept-Encoding"))) {
        add_line(list, "Accept-Encoding: identity");
    }
    add_line(list, "Expect:");
}

struct curl_slist *http_request_headers(const struct backend *backend,
                                        const struct attempt *attempt)
{
    const struct envelope *envelope = &attempt->envelope;
    struct list list = {NULL, NULL, BUF_INIT, BUF_INIT};

    switch (envelope->kind) {
    case ENVELOPE_HTTP:
        add_passed_on(&list, backend, &envelope->headers);
        break;
    case ENVELOPE_KAFKA:
        add_kafka(&list, backend, envelope);
        break;
    }
    for (size_t i = 0; i < backend->n_headers; i++) {
        add(&list, backend->headers[i].name, backend->headers[i].value);
    }
    add_ours(&list, attempt);
    add_silence(&list);
    buf_free(&list.line);
    buf_free(&list.base64);
    return list.first;
}
