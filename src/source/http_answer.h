/* SPDX-License-Identifier: MIT */
/*
 * The answers of the HTTP source. Every one says in Idempotency-Status what
 * became of the delivery and is not to be cached; refusals are problem
 * details (RFC 9457). Nothing that the sender sent is repeated in them.
 */
#ifndef ONCED_SOURCE_HTTP_ANSWER_H
#define ONCED_SOURCE_HTTP_ANSWER_H

#include <stdbool.h>

#include "base/err.h"
#include "source/http_shared.h"

struct MHD_Connection;

/* Indexes http_source_outcomes. */
enum http_outcome {
    HTTP_ACCEPTED,
    HTTP_DUPLICATE,
    HTTP_CONFLICT,
    HTTP_BAD_REQUEST,
    HTTP_UNAUTHORIZED,
    HTTP_FORBIDDEN,
    HTTP_WRONG_METHOD,
    HTTP_TOO_SLOW,
    HTTP_TOO_LARGE,
    HTTP_WRONG_ENCODING,
    HTTP_NO_ROOM,
    HTTP_STOPPING,
    HTTP_STOPPED_ROUTE,
};
enum { HTTP_OUTCOMES = HTTP_STOPPED_ROUTE + 1 };

struct http_answer {
    unsigned status;
    enum http_outcome outcome;
    const char *subject;    /* what the detail is about, or NULL */
    const char *detail;     /* static text */
    unsigned retry_after_s; /* 0: does not say */
    bool closes;            /* the connection ends with it */
    const char *allow;      /* the methods, with 405 */
};

/* Refusals that are sent past libmicrohttpd, whole. */
extern const char http_answer_too_slow[];
extern const char http_answer_too_large[];
extern const char http_answer_too_many[];

/* Makes the ready answers of all groups. ERR_CONFIG names a route whose
 * configured headers cannot be sent. */
bool http_answer_prepare(struct http_shared *shared,
                         struct err *err) MUST_CHECK;
void http_answer_free(struct http_shared *shared);

/* Queues it. False when libmicrohttpd does not take it. */
bool http_answer_refuse(struct MHD_Connection *connection,
                        const struct http_answer *answer);
/* 202 or 200, or what the route has in their place. */
bool http_answer_accept(struct MHD_Connection *connection,
                        const struct http_ready *ready, bool closes);

#endif
