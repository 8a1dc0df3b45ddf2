/* SPDX-License-Identifier: MIT */
/*
 * The request target, as it stood on the request line. libmicrohttpd decodes
 * its own copy in place, so that only the raw one can be signed, matched and
 * handed on. Pure.
 */
#ifndef ONCED_SOURCE_HTTP_TARGET_H
#define ONCED_SOURCE_HTTP_TARGET_H

#include <stdbool.h>

#include "base/bytes.h"

enum { HTTP_TARGET_MAX = 8192 };

struct http_target {
    struct slice path, query; /* borrow from the raw target */
    bool has_query;
};

/* Takes the origin form ("/path?query") and the absolute form of http and
 * https. Returns NULL, or what is wrong: bytes that no target has, another
 * form, or a path with "." or ".." segments, also percent-encoded: below a
 * prefix route they would walk out of the handler's folder. */
const char *http_target_split(struct slice raw, struct http_target *out);

#endif
