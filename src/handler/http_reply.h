/* SPDX-License-Identifier: MIT */
/*
 * What the http handler got back, as a result that may be stored and
 * replayed: end-to-end headers in their order, raw, without those that are
 * true of one answer only (Date, cookies, rate limits, request ids).
 */
#ifndef ONCED_HANDLER_HTTP_REPLY_H
#define ONCED_HANDLER_HTTP_REPLY_H

#include <stdbool.h>

#include <curl/curl.h>

#include "base/bytes.h"
#include "engine/port.h"

/* Reads the complete answer off the easy handle: fills status, code,
 * retry_after_ms and result. `body` is empty where it was omitted. False
 * when the status is not that of a final answer. */
bool http_reply_take(CURL *easy, struct slice body, bool body_omitted,
                     struct attempt *attempt);

#endif
