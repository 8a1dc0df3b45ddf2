/* SPDX-License-Identifier: MIT */
/*
 * The envelope: what arrived, kept and handed to the handler unchanged on
 * every attempt. The result: what the handler answered.
 *
 * Both have one flat byte form, which is built once and then stored, passed
 * between threads and read in place: a view borrows from the bytes that it
 * was opened on. docs/format.md describes the forms byte by byte; the first
 * byte is their version. Pure.
 */
#ifndef ONCED_CORE_ENVELOPE_H
#define ONCED_CORE_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct header {
    struct slice name, value;
    bool is_null; /* Kafka: no value, which is not an empty one; it reads as
                     empty for who does not care */
};

/* An ordered list of headers in its flat form; repeats are kept. The open
 * functions check the whole list and fill the count, which is not stored. */
struct headers {
    struct slice flat;
    uint32_t count;
};

/* Starts with *at = 0; false at the end. */
bool headers_next(const struct headers *headers, size_t *at,
                  struct header *out);

/* The first value under `name` (case-insensitive); false where none is. */
bool headers_find(const struct headers *headers, struct slice name,
                  struct slice *value);

/* How many headers of that name (case-insensitive) there are. */
size_t headers_count(const struct headers *headers, struct slice name);

/* Whether a header of that name carries a credential (Authorization, a cookie,
 * a signature, a token): such are not shown, and do not go to others. */
bool header_is_credential(struct slice name);

/* How many bytes headers_add appends. */
size_t headers_add_size(struct slice name, struct slice value);

/* Appends one header to a flat list. */
void headers_add(struct buf *flat, struct slice name, struct slice value);
void headers_add_null(struct buf *flat, struct slice name);

enum envelope_kind {
    ENVELOPE_HTTP = 1,
    ENVELOPE_KAFKA = 2,
};

struct envelope {
    enum envelope_kind kind;
    int64_t received_wall_ms;
    struct headers headers;
    struct slice body;
    bool has_body; /* a Kafka null value is not an empty one */
    /* HTTP; path and query as they came, query without '?' */
    struct slice method, path, query;
    bool has_query;
    /* Kafka */
    struct slice topic, key;
    bool has_key;
    int32_t partition;
    int64_t offset, timestamp_ms;
    uint32_t incarnation; /* how often the topic was seen re-created; part of
                             the position, not of the flat form */
};

/* Appends the flat form. Each part is shorter than 4 GiB, and empty where its
 * has_ flag is not set. */
void envelope_encode(const struct envelope *envelope, struct buf *out);

/* Opens a view; false when the bytes are not an envelope of a known version
 * (every length is checked: fuzzed). */
bool envelope_open(struct slice flat, struct envelope *out);

struct result {
    uint16_t status;   /* HTTP status, or what stands for an exit status */
    bool body_omitted; /* it was over the cap: done, but not replayable */
    struct headers headers;
    struct slice body;
};

/* Appends the flat form; an omitted body is empty. */
void result_encode(const struct result *result, struct buf *out);
/* As envelope_open. */
bool result_open(struct slice flat, struct result *out);

#endif
