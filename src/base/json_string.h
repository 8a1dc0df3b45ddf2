/* SPDX-License-Identifier: MIT */
/*
 * Strings of JSON texts: the part of the scanner (json.h) that knows escapes.
 * For json.c alone. Pure; any thread.
 */
#ifndef ONCED_BASE_JSON_STRING_H
#define ONCED_BASE_JSON_STRING_H

#include <stdbool.h>

#include "base/bytes.h"

/* Takes one string whose opening quote is at `*at`. `*text` is then what
 * stands between the quotes, and `*at` behind the closing one; where the
 * string is not valid, `*at` is the place and the answer false. */
bool json_string_take(const char **at, const char *end, struct slice *text);

/* True where `name`, taken from a valid text and still escaped, is the
 * member that the RFC 6901 token names, still escaped in its own way. A name
 * that is no text (json_string_is_text) is none. */
bool json_string_is(struct slice name, struct slice token);

#endif
