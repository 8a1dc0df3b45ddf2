/* SPDX-License-Identifier: MIT */
/*
 * A scanner for JSON from outside (RFC 8259): it validates and finds, and
 * builds no tree. Memory is bounded by the caller's buffers, depth by
 * JSON_DEPTH_MAX, time is linear. Pure; any thread. Fuzzed against jansson.
 *
 * Every look-up validates the whole text first, so that an answer never
 * depends on where an error stands. Byte order marks, trailing commas, NaN,
 * invalid UTF-8, NUL bytes and trailing bytes are invalid. Numbers are kept
 * as text: exact, never a double.
 *
 * The grammar lets a string escape a NUL or half a surrogate pair ("\u0000",
 * "\ud800"), and senders write such. A text that holds one is valid; the
 * string is no text, cannot be decoded, and as a name equals no token.
 */
#ifndef ONCED_BASE_JSON_H
#define ONCED_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

enum { JSON_DEPTH_MAX = 128 };

enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

struct json_value {
    enum json_type type;
    struct slice raw; /* as it stands in the text, quotes included */
};

enum json_status {
    JSON_OK,
    JSON_INVALID,   /* the text is not JSON */
    JSON_TOO_DEEP,  /* more than JSON_DEPTH_MAX levels */
    JSON_ABSENT,    /* valid, but nothing stands at the pointer */
    JSON_AMBIGUOUS, /* a member on the way stands there twice */
};

/* Validates one whole text. On JSON_INVALID and JSON_TOO_DEEP, `*offset` (may
 * be NULL) is where. */
enum json_status json_check(struct slice text, size_t *offset);

/* Finds the value at an RFC 6901 pointer ("" is the whole text, "/a/0").
 * Readers differ in which of two equal members they take, so such a look-up
 * is JSON_AMBIGUOUS. `out` borrows from `text`. */
enum json_status json_find(struct slice text, struct slice pointer,
                           struct json_value *out);

/* True for a pointer that json_find takes: empty or starting with '/', and
 * '~' followed by 0 or 1 only. */
bool json_pointer_ok(struct slice pointer);

/* False where a JSON_STRING holds an escape for NUL or for half a surrogate
 * pair. The value must come from a valid text. */
bool json_string_is_text(struct json_value value);

/* Appends the decoded bytes of a JSON_STRING, which must be text as above.
 * The value must come from a valid text. */
void json_decode_string(struct json_value value, struct buf *out);

/* The items of an array, one by one: start with *at = 0; false at the end.
 * The value must come from a valid text. */
bool json_next_item(struct json_value array, size_t *at,
                    struct json_value *item);

/* A name for messages: "is not JSON", "is nested too deeply", … */
const char *json_status_text(enum json_status status);

#endif
