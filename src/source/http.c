/* SPDX-License-Identifier: MIT */
#include "source/http.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "source/http_answer.h"
#include "source/http_bind.h"
#include "source/http_loop.h"
#include "source/http_shared.h"

enum { THREADS_MAX = 64, THREADS_BY_ITSELF_MAX = 4 };

struct http_source {
    struct http_shared shared;
    struct http_address *addresses; /* shared.options.n_addresses of them */
    struct http_loop **loops;
    size_t n_loops;
};

static uint32_t count_threads(uint32_t wanted)
{
    if (wanted > 0) {
        return wanted < THREADS_MAX ? wanted : THREADS_MAX;
    }
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < 1) {
        return 1;
    }
    return processors < THREADS_BY_ITSELF_MAX ? (uint32_t)processors
                                              : THREADS_BY_ITSELF_MAX;
}

static bool start_loops(struct http_source *source,
                        struct http_address *address, struct err *err)
{
    uint32_t n = http_bind_is_unix(address)
                     ? 1
                     : count_threads(source->shared.options.threads);
    if (!http_bind_probe(address, err)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        int fd;
        if (!http_bind_listen(address, &fd, err)) {
            return false;
        }
        source->loops = mem_grow(source->loops, source->n_loops + 1,
                                 sizeof(struct http_loop *));
        if (!http_loop_start(&source->loops[source->n_loops], &source->shared,
                             fd, err)) {
            return err_wrap(err, "address %s", address->text);
        }
        source->n_loops++;
    }
    return true;
}

static bool parse_trusted(struct http_shared *shared, struct err *err)
{
    size_t n = shared->options.n_trusted_proxies;
    shared->trusted = mem_new(n, sizeof(*shared->trusted));
    for (size_t i = 0; i < n; i++) {
        const char *text = shared->options.trusted_proxies[i];
        if (!net_parse(slice_of(text), &shared->trusted[i])) {
            return err_set(err, ERR_CONFIG,
                           "trusted_proxies: %s is not a network", text);
        }
    }
    return true;
}

static bool prepare(struct http_source *source, struct err *err)
{
    struct http_shared *shared = &source->shared;
    const struct http_source_options *options = &shared->options;
    return http_tls_load(&shared->tls, options->tls_certificate,
                         options->tls_key, options->tls_client_ca, err) &&
           parse_trusted(shared, err) &&
           http_table_build(&shared->table, options->routes, options->n_routes,
                            err) &&
           http_answer_prepare(shared, err);
}

bool http_source_start(struct http_source **out,
                       const struct http_source_options *options,
                       struct err *err)
{
    CHECK(options->engine != NULL || options->n_routes == 0);
    CHECK(options->clock != NULL);
    CHECK(options->max_connections > 0);
    CHECK(options->request_timeout_ms > 0);
    CHECK(options->max_in_flight_bytes > 0);
    struct http_source *source = mem_new(1, sizeof(*source));
    source->shared.options = *options;
    source->addresses =
        mem_new(options->n_addresses, sizeof(*source->addresses));
    if (!prepare(source, err)) {
        goto fail;
    }
    for (size_t i = 0; i < options->n_addresses; i++) {
        struct http_address *address = &source->addresses[i];
        if (!http_bind_parse(options->addresses[i], address, err)) {
            goto fail;
        }
        if (!start_loops(source, address, err)) {
            goto fail;
        }
    }
    *out = source;
    return true;
fail:
    http_source_free(&source);
    return false;
}

void http_source_stop_intake(struct http_source *source)
{
    atomic_store(&source->shared.is_stopping, true);
}

void http_source_free(struct http_source **taken)
{
    struct http_source *source = *taken;
    if (source == NULL) {
        return;
    }
    *taken = NULL;
    for (size_t i = 0; i < source->n_loops; i++) {
        http_loop_stop(&source->loops[i]);
    }
    for (size_t i = 0; i < source->shared.options.n_addresses; i++) {
        http_bind_remove(&source->addresses[i]);
    }
    http_answer_free(&source->shared);
    http_table_free(&source->shared.table);
    http_tls_free(&source->shared.tls);
    free(source->shared.trusted);
    free(source->addresses);
    free(source->loops);
    free(source);
}

uint16_t http_source_port(const struct http_source *source, size_t n)
{
    CHECK(n < source->shared.options.n_addresses);
    return http_bind_port(&source->addresses[n]);
}
