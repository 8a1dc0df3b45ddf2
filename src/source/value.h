/* SPDX-License-Identifier: MIT */
/*
 * Value expressions: where in a delivery an id, a tenant or an ordering key
 * stands. `json:/pointer`, `header:Name`, `query:name`, `kafka:key`,
 * `kafka:header:name`, `kafka:position`, `body:sha256`, `const:text`. A list
 * is tried in order, the first value that is not empty wins; an element that
 * is itself a list needs all its parts, which are percent-encoded and joined
 * by '/'. Compiled once; evaluation is pure and works on the envelope.
 */
#ifndef ONCED_SOURCE_VALUE_H
#define ONCED_SOURCE_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"
#include "core/envelope.h"

enum value_kind {
    VALUE_JSON,
    VALUE_HEADER,
    VALUE_QUERY,
    VALUE_KAFKA_KEY,
    VALUE_KAFKA_HEADER,
    VALUE_KAFKA_POSITION,
    VALUE_BODY_SHA256,
    VALUE_CONST,
};

/* One term. */
struct value_term {
    enum value_kind kind;
    char *argument; /* pointer, name or text; owned */
};

/* One alternative: one term, or several that are all needed. */
struct value_choice {
    struct value_term *terms;
    size_t n_terms;
};

/* A whole expression; zeroed: none is configured. */
struct value {
    struct value_choice *choices;
    size_t n_choices;
};

/* Appends one alternative made of `n` texts. ERR_CONFIG says what is wrong
 * with which text. */
bool value_add_choice(struct value *value, const struct slice *texts, size_t n,
                      struct err *err) MUST_CHECK;
void value_free(struct value *value);

/* True when a term of `kind` stands anywhere in it. */
bool value_uses(const struct value *value, enum value_kind kind);

enum value_status {
    VALUE_OK,
    VALUE_ABSENT,    /* no alternative gave a value */
    VALUE_BAD_BODY,  /* a json: term, and the body is not (usable) JSON */
    VALUE_AMBIGUOUS, /* a member or header stands there twice */
};

/* Appends the value to `out`. `why` gets a static text for people. JSON
 * strings give their decoded bytes, numbers and booleans their text; null,
 * objects and arrays count as absent. */
enum value_status value_eval(const struct value *value,
                             const struct envelope *envelope, struct buf *out,
                             const char **why);

/* 1–255 bytes of UTF-8 without control characters. Returns NULL, or what is
 * wrong: "is empty", "is longer than 255 bytes", … */
const char *value_check_id(struct slice id);

#endif
