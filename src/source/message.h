/* SPDX-License-Identifier: MIT */
/*
 * The text that is signed, as the list of its parts: it is hashed part by
 * part, so that a large body is never copied. Pure.
 */
#ifndef ONCED_SOURCE_MESSAGE_H
#define ONCED_SOURCE_MESSAGE_H

#include <stddef.h>

#include "base/bytes.h"
#include "core/envelope.h"
#include "source/scheme.h"

struct message {
    struct slice parts[VERIFY_PIECES_MAX]; /* borrowed, or in `made` */
    struct buf made[VERIFY_PIECES_MAX];
    size_t n;
};

/* Puts the parts together. `timestamp` is as sent; `public_url` may be NULL:
 * then it is https, the Host header and what was requested. VERIFY_MISSING
 * when a signed header or parameter is not there, VERIFY_MALFORMED when it is
 * unusable or there twice. Needs message_free in every case. */
enum verify_status message_build(struct message *message,
                                 const struct scheme *scheme,
                                 const struct envelope *request,
                                 struct slice timestamp,
                                 const char *public_url);
void message_free(struct message *message);

size_t message_length(const struct message *message);

/* Appends the whole text. */
void message_join(const struct message *message, struct buf *out);

#endif
