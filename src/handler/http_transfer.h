/* SPDX-License-Identifier: MIT */
/*
 * One transfer: an attempt on its way through an easy handle. The handler's
 * thread only. A transfer is used again and again; what its connections are
 * kept in is the multi handle's.
 */
#ifndef ONCED_HANDLER_HTTP_TRANSFER_H
#define ONCED_HANDLER_HTTP_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "base/bytes.h"
#include "engine/port.h"
#include "handler/backend.h"
#include "handler/http.h"

enum { HTTP_ANSWER_HEADER_BYTES = 64 * 1024 };

struct http_transfer {
    struct http_transfer *next, *prev; /* the handler's */
    CURL *easy;
    const struct backend *backend;
    uint64_t max_result_bytes;
    struct attempt *attempt;
    struct buf url;
    struct curl_slist *headers;
    /* the answer as it comes in */
    uint32_t n_sent;  /* requests of which a byte may have left */
    bool was_resend;  /* libcurl was about to send it again */
    bool has_headers; /* up to the empty line behind them */
    size_t header_bytes;
    struct buf body;
    bool body_omitted;
    char error[CURL_ERROR_SIZE];
};

struct http_transfer *http_transfer_new(const struct backend *backend,
                                        const struct http_handler_options *o);
void http_transfer_free(struct http_transfer *transfer); /* idle; NULL is ok */

/* Takes the attempt; the easy handle is then ready for a multi handle. */
void http_transfer_begin(struct http_transfer *transfer,
                         struct attempt *attempt);

/* The transfer left the multi handle with `code`: gives the attempt back,
 * filled in. CURLE_ABORTED_BY_CALLBACK stands for "cut off by us". */
struct attempt *http_transfer_end(struct http_transfer *transfer,
                                  CURLcode code);

#endif
