/* SPDX-License-Identifier: MIT */
/*
 * From a whole request to a delivery: signature over the bytes as they came,
 * inflating, then what the id, the tenant and the order are. Nothing is
 * parsed before the signature is known to be right.
 */
#ifndef ONCED_SOURCE_HTTP_DELIVERY_H
#define ONCED_SOURCE_HTTP_DELIVERY_H

#include <stdbool.h>

#include "source/http_request.h"

/* Fills request->delivery; its `answer` is the caller's. False when the
 * request is refused: request->refusal says with what. */
bool http_delivery_make(struct http_request *request);

/* What the engine's decision means for the sender. */
void http_delivery_decide(struct http_request *request);

/* Counts and logs the answer. */
void http_delivery_tell(const struct http_request *request);

void http_delivery_release(struct http_request *request);

#endif
