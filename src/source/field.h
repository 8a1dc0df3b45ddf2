/* SPDX-License-Identifier: MIT */
/*
 * The small fields of a request: header names, and the pairs of a query or
 * of a form (application/x-www-form-urlencoded). Pure.
 */
#ifndef ONCED_SOURCE_FIELD_H
#define ONCED_SOURCE_FIELD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

/* True for a token of RFC 9110, which is what a header may be called. */
bool field_name_ok(struct slice name);

/* A pair as it stands in the text, still encoded. */
struct field_pair {
    struct slice name, value;
};

/* Takes the next pair off `rest`; false at the end. Empty pairs ("a&&b") are
 * skipped. */
bool field_next_pair(struct slice *rest, struct field_pair *out);

/* Appends what an encoded name or value stands for: '+' is a blank, %XX a
 * byte. False, with nothing appended, for a broken %XX. */
bool field_decode(struct slice encoded, struct buf *out);

/* How many pairs of `text` are called `name` once decoded; `value` gets the
 * first one's value, still encoded. */
size_t field_find_pair(struct slice text, struct slice name,
                       struct slice *value);

#endif
