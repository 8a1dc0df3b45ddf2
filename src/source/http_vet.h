/* SPDX-License-Identifier: MIT */
/*
 * The vetting of a request's headers. libmicrohttpd is lenient: it takes
 * repeated and differing lengths, a length beside a transfer encoding,
 * blanks before colons, control bytes in values. Whoever stands before us
 * may read such a request differently, so none of them is served. Pure.
 */
#ifndef ONCED_SOURCE_HTTP_VET_H
#define ONCED_SOURCE_HTTP_VET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/envelope.h"

enum { HTTP_HEADERS_MAX = 100 };

enum http_coding { HTTP_IDENTITY, HTTP_GZIP, HTTP_CODING_OTHER };

/* What the headers say about the body. */
struct http_framing {
    bool has_length;
    uint64_t length;
    bool is_chunked;
    bool expects_continue;
    enum http_coding coding;
};

/* Whether the header lines stand where they must. libmicrohttpd parses them in
 * place and gives pointers into its buffer, so that what it does not tell
 * shows as a gap: a bare LF, a folded line, a NUL that ended a value early,
 * a line without a name, which it takes for the end of the headers. `start`
 * is the CR of the request line, `end` is behind the empty line. */
bool http_vet_lines(const struct header *headers, size_t n, const char *start,
                    const char *end);

/* Returns 0 and fills `framing`, or the status to refuse with and why. */
unsigned http_vet(const struct header *headers, size_t n, bool is_http11,
                  struct http_framing *framing, const char **why);

/* True when none of the NULL-ended `names` stands there twice. */
bool http_vet_singles(const struct header *headers, size_t n,
                      const char *const *names);

/* Appends, in order, what is meant for the far end: no hop-by-hop headers
 * (RFC 9110, 7.6.1), none that Connection names, and no Expect. */
void http_vet_end_to_end(const struct header *headers, size_t n,
                         struct buf *flat, uint32_t *kept);

#endif
