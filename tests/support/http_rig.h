/* SPDX-License-Identifier: MIT */
/*
 * An http handler for a scripted server. Inside a Criterion test.
 */
#ifndef ONCED_TEST_HTTP_RIG_H
#define ONCED_TEST_HTTP_RIG_H

#include <criterion/criterion.h>
#include <stdio.h>

#include "handler/http.h"
#include "support/attempts.h"
#include "support/http_script.h"

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

static inline char *url_of(uint16_t port, const char *path)
{
    static char url[256];

    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", port, path);
    return url;
}

static inline struct http_handler_options default_options(const char *url)
{
    return (struct http_handler_options){.url = url,
                                         .concurrency = 4,
                                         .connect_timeout_ms = 2000,
                                         .max_result_bytes = 1024 * 1024};
}

static inline struct handler
new_handler(const struct http_handler_options *options)
{
    struct handler handler;
    struct err err = {0};

    cr_assert(http_handler_new(&handler, options, &err), "%s", err.text);
    return handler;
}

static inline void free_handler(struct handler *handler)
{
    handler->ops->stop(handler->self);
    handler->ops->free(handler->self);
}

#endif
