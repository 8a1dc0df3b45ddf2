/* SPDX-License-Identifier: MIT */
#include "core/envelope.h"

#include "base/check.h"

enum { VERSION = 1 };

enum {
    HAS_BODY = 1U << 0,
    HAS_QUERY = 1U << 1, /* HTTP */
    HAS_KEY = 1U << 2,   /* Kafka */
};

enum { BODY_OMITTED = 1U << 0 };

/* Stands for the length of a header's value where that is null. */
#define NULL_VALUE UINT32_MAX

/* About what an envelope takes beside its long texts. */
enum { FIXED_BYTES = 64 };

/* A text is its length and its bytes. */
static void add_text(struct buf *out, struct slice text)
{
    CHECK(text.len < NULL_VALUE);
    buf_add_be32(out, (uint32_t)text.len);
    buf_add_slice(out, text);
}

static struct slice take_text(struct reader *reader)
{
    return reader_take(reader, reader_be32(reader));
}

static bool take_header(struct reader *reader, struct header *out)
{
    uint32_t len;

    out->name = take_text(reader);
    len = reader_be32(reader);
    out->is_null = len == NULL_VALUE;
    out->value = reader_take(reader, out->is_null ? 0 : len);
    return !reader->bad;
}

bool headers_next(const struct headers *headers, size_t *at, struct header *out)
{
    struct reader reader = {slice_from(headers->flat, *at), false};
    bool whole;

    if (reader.rest.len == 0) {
        return false;
    }
    whole = take_header(&reader, out);
    CHECK(whole);
    *at = headers->flat.len - reader.rest.len;
    return true;
}

bool headers_find(const struct headers *headers, struct slice name,
                  struct slice *value)
{
    struct header header;

    for (size_t at = 0; headers_next(headers, &at, &header);) {
        if (slice_eq_nocase(header.name, name)) {
            *value = header.value;
            return true;
        }
    }
    return false;
}

size_t headers_count(const struct headers *headers, struct slice name)
{
    struct header header;
    size_t n = 0;

    for (size_t at = 0; headers_next(headers, &at, &header);) {
        n += slice_eq_nocase(header.name, name) ? 1 : 0;
    }
    return n;
}

static bool has_part(struct slice text, struct slice part)
{
    for (size_t at = 0; at + part.len <= text.len; at++) {
        if (slice_eq_nocase((struct slice){text.data + at, part.len}, part)) {
            return true;
        }
    }
    return false;
}

bool header_is_credential(struct slice name)
{
    static const char *const parts[] = {
        "authorization", "cookie",   "signature", "token",  "secret",
        "hmac",          "password", "api-key",   "apikey", "-sig",
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (has_part(name, slice_of(parts[i]))) {
            return true;
        }
    }
    return false;
}

size_t headers_add_size(struct slice name, struct slice value)
{
    return 2 * sizeof(uint32_t) + name.len + value.len;
}

void headers_add(struct buf *flat, struct slice name, struct slice value)
{
    add_text(flat, name);
    add_text(flat, value);
}

void headers_add_null(struct buf *flat, struct slice name)
{
    add_text(flat, name);
    buf_add_be32(flat, NULL_VALUE);
}

/* Walks the whole list, so that headers_next need not doubt it. */
static void take_headers(struct reader *reader, struct headers *out)
{
    struct reader list;
    struct header header;

    out->flat = take_text(reader);
    out->count = 0;
    list = (struct reader){out->flat, false};
    while (list.rest.len > 0) {
        if (!take_header(&list, &header)) {
            reader->bad = true;
            return;
        }
        out->count++;
    }
}

static uint8_t flags_of(const struct envelope *envelope)
{
    return (uint8_t)((envelope->has_body ? HAS_BODY : 0U) |
                     (envelope->has_query ? HAS_QUERY : 0U) |
                     (envelope->has_key ? HAS_KEY : 0U));
}

/* What a flag or the kind says is not there has no bytes. */
static void check_parts(const struct envelope *envelope)
{
    CHECK(envelope->has_body || envelope->body.len == 0);
    CHECK(envelope->has_query || envelope->query.len == 0);
    CHECK(envelope->has_key || envelope->key.len == 0);
    CHECK(envelope->kind == ENVELOPE_HTTP || !envelope->has_query);
    CHECK(envelope->kind == ENVELOPE_KAFKA || !envelope->has_key);
}

void envelope_encode(const struct envelope *envelope, struct buf *out)
{
    check_parts(envelope);
    /* Once, for what is large. */
    buf_reserve(out, FIXED_BYTES + envelope->headers.flat.len +
                         envelope->path.len + envelope->query.len +
                         envelope->body.len);
    buf_add_byte(out, VERSION);
    buf_add_byte(out, (char)envelope->kind);
    buf_add_byte(out, (char)flags_of(envelope));
    buf_add_be64(out, (uint64_t)envelope->received_wall_ms);
    add_text(out, envelope->headers.flat);
    switch (envelope->kind) {
    case ENVELOPE_HTTP:
        add_text(out, envelope->method);
        add_text(out, envelope->path);
        add_text(out, envelope->query);
        break;
    case ENVELOPE_KAFKA:
        add_text(out, envelope->topic);
        add_text(out, envelope->key);
        buf_add_be32(out, (uint32_t)envelope->partition);
        buf_add_be64(out, (uint64_t)envelope->offset);
        buf_add_be64(out, (uint64_t)envelope->timestamp_ms);
        break;
    }
    buf_add_slice(out, envelope->body);
}

static bool open_http(struct reader *reader, unsigned flags,
                      struct envelope *out)
{
    out->method = take_text(reader);
    out->path = take_text(reader);
    out->query = take_text(reader);
    out->has_query = (flags & HAS_QUERY) != 0;
    return (flags & ~(unsigned)(HAS_BODY | HAS_QUERY)) == 0 &&
           (out->has_query || out->query.len == 0);
}

static bool open_kafka(struct reader *reader, unsigned flags,
                       struct envelope *out)
{
    out->topic = take_text(reader);
    out->key = take_text(reader);
    out->has_key = (flags & HAS_KEY) != 0;
    out->partition = (int32_t)reader_be32(reader);
    out->offset = (int64_t)reader_be64(reader);
    out->timestamp_ms = (int64_t)reader_be64(reader);
    return (flags & ~(unsigned)(HAS_BODY | HAS_KEY)) == 0 &&
           (out->has_key || out->key.len == 0);
}

static bool open_kind(struct reader *reader, uint8_t kind, unsigned flags,
                      struct envelope *out)
{
    if (kind == ENVELOPE_HTTP) {
        out->kind = ENVELOPE_HTTP;
        return open_http(reader, flags, out);
    }
    if (kind == ENVELOPE_KAFKA) {
        out->kind = ENVELOPE_KAFKA;
        return open_kafka(reader, flags, out);
    }
    return false;
}

bool envelope_open(struct slice flat, struct envelope *out)
{
    struct reader reader = {flat, false};
    uint8_t version = reader_byte(&reader);
    uint8_t kind = reader_byte(&reader);
    unsigned flags = reader_byte(&reader);

    *out = (struct envelope){0};
    out->received_wall_ms = (int64_t)reader_be64(&reader);
    take_headers(&reader, &out->headers);
    if (version != VERSION || !open_kind(&reader, kind, flags, out)) {
        return false;
    }
    out->has_body = (flags & HAS_BODY) != 0;
    out->body = reader.rest;
    return !reader.bad && (out->has_body || out->body.len == 0);
}

void result_encode(const struct result *result, struct buf *out)
{
    CHECK(!result->body_omitted || result->body.len == 0);
    buf_add_byte(out, VERSION);
    buf_add_byte(out, result->body_omitted ? BODY_OMITTED : 0);
    buf_add_be16(out, result->status);
    add_text(out, result->headers.flat);
    buf_add_slice(out, result->body);
}

bool result_open(struct slice flat, struct result *out)
{
    struct reader reader = {flat, false};
    uint8_t version = reader_byte(&reader);
    uint8_t flags = reader_byte(&reader);

    *out = (struct result){0};
    out->status = reader_be16(&reader);
    take_headers(&reader, &out->headers);
    out->body = reader.rest;
    out->body_omitted = flags == BODY_OMITTED;
    return !reader.bad && version == VERSION && flags <= BODY_OMITTED &&
           (!out->body_omitted || out->body.len == 0);
}
