/* SPDX-License-Identifier: MIT */
/*
 * The header list that the http handler sends: what is end-to-end of the
 * envelope, the configured ones, and ours, which win in this order. Any
 * thread.
 */
#ifndef ONCED_HANDLER_HTTP_REQUEST_H
#define ONCED_HANDLER_HTTP_REQUEST_H

#include <curl/curl.h>

#include "engine/port.h"
#include "handler/backend.h"

/* For CURLOPT_HTTPHEADER; the caller's, see curl_slist_free_all. */
struct curl_slist *http_request_headers(const struct backend *backend,
                                        const struct attempt *attempt);

#endif
