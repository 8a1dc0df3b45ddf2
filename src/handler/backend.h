/* SPDX-License-Identifier: MIT */
/*
 * Where the http handler sends to: the configured URL, taken apart once, and
 * the configured headers. Read-only after its start; any thread. Whatever
 * path an envelope has, the URL made of it stays below the configured one.
 */
#ifndef ONCED_HANDLER_BACKEND_H
#define ONCED_HANDLER_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"
#include "core/envelope.h"
#include "handler/http.h"

struct backend {
    char *base;  /* without query */
    char *query; /* of the configured URL, or NULL */
    size_t path_prefix_len;
    struct header *headers; /* names and values are owned, too */
    size_t n_headers;
};

/* Copies what it needs. Fails (ERR_CONFIG) for a URL that is not http or
 * https or has credentials in it, and for headers that nobody may set. */
bool backend_init(struct backend *backend,
                  const struct http_handler_options *options,
                  struct err *err) MUST_CHECK;
void backend_fini(struct backend *backend);

/* Whether a configured header has this name. */
bool backend_has(const struct backend *backend, struct slice name);

/* Appends the URL for an envelope, with a NUL behind it: the configured one,
 * the path behind the prefix, and both queries. */
void backend_url(const struct backend *backend, const struct envelope *envelope,
                 struct buf *url);

#endif
