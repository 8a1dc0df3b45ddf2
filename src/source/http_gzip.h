/* SPDX-License-Identifier: MIT */
/*
 * Inflates a gzip body within limits. Pure.
 */
#ifndef ONCED_SOURCE_HTTP_GZIP_H
#define ONCED_SOURCE_HTTP_GZIP_H

#include <stdint.h>

#include "base/bytes.h"

enum { HTTP_GZIP_RATIO_MAX = 100 };

enum http_gzip_status {
    HTTP_GZIP_OK,
    HTTP_GZIP_BAD,       /* not gzip, cut short, or bytes behind the end */
    HTTP_GZIP_TOO_LARGE, /* more than `max_bytes`, or than 100 times itself */
};

/* Appends the inflated body; all members where there are several. On failure
 * `out` holds some part of it. */
enum http_gzip_status http_gzip_inflate(struct slice body, uint64_t max_bytes,
                                        struct buf *out);

#endif
