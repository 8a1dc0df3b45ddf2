/* SPDX-License-Identifier: MIT */
/*
 * The http handler: sends the envelope to a URL with libcurl, on one thread
 * for all its attempts (multi interface, keep-alive). One attempt is at most
 * one arrival: libcurl's own resend on a dead connection is cut off.
 */
#ifndef ONCED_HANDLER_HTTP_H
#define ONCED_HANDLER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/port.h"

struct http_handler_options {
    const char *url;           /* http or https */
    const char *(*headers)[2]; /* name and value, put over the envelope's */
    size_t n_headers;
    uint32_t concurrency; /* attempts and connections at one time */
    int64_t connect_timeout_ms;
    uint64_t max_result_bytes; /* of the answer's body */
    uint32_t follow_redirects; /* how many; 0: none (default) */
    const char *ca_file;       /* or NULL: the system's */
    /* The part of the path behind a wildcard route's prefix is appended to
     * the URL: length of that prefix, 0: no wildcard. */
    size_t path_prefix_len;
};

/* Copies the options. */
bool http_handler_new(struct handler *out,
                      const struct http_handler_options *options,
                      struct err *err) MUST_CHECK;

#endif
