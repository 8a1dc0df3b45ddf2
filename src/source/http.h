/* SPDX-License-Identifier: MIT */
/*
 * The HTTP source: receives deliveries, checks them cheapest first, hands
 * them to the engine and answers when the engine has made them durable.
 *
 * Threads: each runs its own loop around one libmicrohttpd daemon on a shared
 * port (SO_REUSEPORT), and is the only one that touches its connections.
 * While a delivery is with the engine its connection is suspended; the
 * engine's answer comes back through the thread's eventfd.
 *
 * Order of checks: limits, header vetting, route, method, size, signature
 * over the raw bytes, timestamp window; only then is anything parsed or
 * looked up.
 */
#ifndef ONCED_SOURCE_HTTP_H
#define ONCED_SOURCE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "source/value.h"
#include "source/verify.h"

struct engine;

enum { HTTP_METHODS_MAX = 8 };

/* One path and one engine route. Several entries may name one path: then
 * one delivery is one event on each of them. All kept by the caller. */
struct http_route {
    size_t engine_route; /* index, also the metrics label */
    const char *name;
    const char *path; /* exact, or with a final slash-star: all below it */
    const char *methods[HTTP_METHODS_MAX];
    size_t n_methods;
    uint64_t max_body_bytes;
    const struct verifier *verifier; /* NULL: none */
    struct value id;
    struct value tenant;
    struct value order_by;
    const char *const *single_headers; /* more headers that may not repeat */
    /* The answer in place of 202 and 200; status 0: the default. */
    uint16_t answer_status;
    const char *answer_body;
    const char *answer_content_type;
    const char *(*answer_headers)[2]; /* name and value */
    size_t n_answer_headers;
    const char *const *allow; /* networks; empty: everybody */
    size_t n_allow;
};

struct http_source_options {
    const char *const *addresses; /* "127.0.0.1:8080" "[::1]:80" "unix:/p" */
    size_t n_addresses;
    const struct http_route *routes;
    size_t n_routes;
    uint32_t threads; /* per TCP address; 0: one per processor, at most 4 */
    uint32_t max_connections;
    int64_t request_timeout_ms;   /* first byte of a request to last of body */
    uint64_t max_in_flight_bytes; /* bodies held at one time, all threads */
    const char *tls_certificate, *tls_key, *tls_client_ca; /* paths or NULL */
    const char *const *trusted_proxies;                    /* networks */
    size_t n_trusted_proxies;
    struct engine *engine;
    const struct clock *clock;
};

struct http_source;

/* The values of the label "outcome" of METRIC_DELIVERIES that this source
 * counts, in the order of their index; NULL-ended. Those of "reason" of
 * METRIC_VERIFY_FAILURES are the names of enum verify_status. */
extern const char *const http_source_outcomes[];

/* Binds every address and starts to serve. ERR_AGAIN: a port is in use. */
bool http_source_start(struct http_source **out,
                       const struct http_source_options *options,
                       struct err *err) MUST_CHECK;

/* New requests get 503 and `Connection: close` from here on. */
void http_source_stop_intake(struct http_source *source);

/* Closes everything; deliveries that the engine still holds must have been
 * answered before. */
void http_source_free(struct http_source **taken);

/* The port of the n-th address, for addresses with port 0. */
uint16_t http_source_port(const struct http_source *source, size_t n);

#endif
