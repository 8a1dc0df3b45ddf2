/* SPDX-License-Identifier: MIT */
#include "handler/kafka_request.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "handler/wire.h"

#define HTTP_PREFIX "http-header-"

struct list {
    struct buf *flat;
    uint32_t count;
};

static void add(struct list *list, struct slice name, struct slice value)
{
    headers_add(list->flat, name, value);
    list->count++;
}

/* --- an event from HTTP --------------------------------------------------- */

bool kafka_request_is_passed_on(const struct headers *all, struct slice name)
{
    return wire_is_token(name) && !wire_is_framing(name) &&
           !wire_is_reserved(name) && !wire_is_hop_by_hop(all, name) &&
           !header_is_credential(name);
}

/* What means the same on a message stands under its own name. */
static void add_common(struct list *list, const struct headers *headers)
{
    static const char *const names[] = {"content-type", "traceparent",
                                        "tracestate"};
    struct slice value;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (headers_find(headers, slice_of(names[i]), &value)) {
            add(list, slice_of(names[i]), value);
        }
    }
}

static void add_prefixed(struct list *list, const struct header *header)
{
    struct buf name = BUF_INIT;

    buf_add_str(&name, HTTP_PREFIX);
    for (size_t i = 0; i < header->name.len; i++) {
        char byte = header->name.data[i];

        if (byte >= 'A' && byte <= 'Z') {
            buf_add_byte(&name, (char)(byte - 'A' + 'a'));
        } else {
            buf_add_byte(&name, byte);
        }
    }
    add(list, buf_slice(&name), header->value);
    buf_free(&name);
}

static void add_http(struct list *list, const struct headers *headers)
{
    static const char *const others[] = {
        "content-type", "traceparent", "tracestate", "host", "accept-encoding"};
    struct header header;

    add_common(list, headers);
    for (size_t at = 0; headers_next(headers, &at, &header);) {
        if (kafka_request_is_passed_on(headers, header.name) &&
            !wire_is_one_of(header.name, others,
                            sizeof others / sizeof others[0])) {
            add_prefixed(list, &header);
        }
    }
}

/* --- an event from Kafka -------------------------------------------------- */

static bool is_ours(struct slice name)
{
    static const char *const names[] = {"onced-route", "onced-event-id",
                                        "onced-tenant", "onced-attempt",
                                        "idempotency-key"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (slice_eq(name, slice_of(names[i]))) {
            return true;
        }
    }
    return false;
}

static void add_kafka(struct list *list, const struct headers *headers)
{
    struct header header;

    for (size_t at = 0; headers_next(headers, &at, &header);) {
        if (is_ours(header.name)) {
            continue;
        }
        if (header.is_null) {
            headers_add_null(list->flat, header.name);
            list->count++;
        } else {
            add(list, header.name, header.value);
        }
    }
}

/* --- any ------------------------------------------------------------------ */

static void add_ours(struct list *list, const struct attempt *attempt)
{
    char number[12];
    int len = snprintf(number, sizeof number, "%" PRIu32, attempt->number);

    CHECK(len > 0);
    add(list, SLICE("onced-route"), slice_of(attempt->route));
    add(list, SLICE("onced-event-id"), attempt->id);
    if (attempt->tenant.len > 0) {
        add(list, SLICE("onced-tenant"), attempt->tenant);
    }
    add(list, SLICE("onced-attempt"), (struct slice){number, (size_t)len});
    add(list, SLICE("idempotency-key"), slice_of(attempt->idempotency_key));
}

static void set_key(const struct attempt *attempt, enum kafka_key key,
                    struct envelope *out)
{
    switch (key) {
    case KAFKA_KEY_ID:
        out->key = attempt->id;
        out->has_key = true;
        break;
    case KAFKA_KEY_EVENT:
        out->key = attempt->envelope.key;
        out->has_key = attempt->envelope.has_key;
        break;
    case KAFKA_KEY_NONE:
        break;
    }
}

void kafka_request_build(const struct attempt *attempt, enum kafka_key key,
                         struct buf *headers, struct envelope *out)
{
    const struct envelope *event = &attempt->envelope;
    struct list list = {headers, 0};

    buf_clear(headers);
    *out = (struct envelope){
        .kind = ENVELOPE_KAFKA,
        .body = event->body,
        .has_body = event->has_body,
        .partition = -1,
    };
    set_key(attempt, key, out);
    switch (event->kind) {
    case ENVELOPE_HTTP:
        out->timestamp_ms = event->received_wall_ms;
        add_http(&list, &event->headers);
        break;
    case ENVELOPE_KAFKA:
        out->timestamp_ms = event->timestamp_ms;
        add_kafka(&list, &event->headers);
        break;
    }
    add_ours(&list, attempt);
    out->headers = (struct headers){buf_slice(headers), list.count};
}
