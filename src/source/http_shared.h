/* SPDX-License-Identifier: MIT */
/*
 * What the loops of one HTTP source share. Set up before the first loop
 * starts; from then on only the atomics change.
 */
#ifndef ONCED_SOURCE_HTTP_SHARED_H
#define ONCED_SOURCE_HTTP_SHARED_H

#include <stdatomic.h>
#include <stdint.h>

#include "source/http.h"
#include "source/http_table.h"
#include "source/http_tls.h"
#include "source/net.h"

struct MHD_Response;

/* One of the usual answers of a group, made once: with its connection kept,
 * and with its end. */
struct http_ready {
    unsigned status;
    struct MHD_Response *keeps, *closes;
};

struct http_ready_pair {
    struct http_ready accepted, duplicate;
};

struct http_shared {
    struct http_source_options options;
    struct http_table table;
    struct http_ready_pair *ready; /* one per group of the table */
    struct network *trusted;       /* options.n_trusted_proxies of them */
    struct http_tls tls;
    atomic_bool is_stopping;
    atomic_uint connections;            /* over all loops */
    atomic_uint_least64_t bodies_bytes; /* held by requests at this time */
    _Atomic int64_t warned_boot_ms;     /* the last refusal that was told */
};

#endif
