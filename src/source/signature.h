/* SPDX-License-Identifier: MIT */
/*
 * The signatures and the timestamp that a request brings, decoded. Pure.
 */
#ifndef ONCED_SOURCE_SIGNATURE_H
#define ONCED_SOURCE_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/envelope.h"
#include "source/scheme.h"

enum { SIGNATURE_SIZE_MAX = 64 };

/* How many bytes a signature has. */
size_t signature_size(enum verify_algorithm algorithm);

struct signature {
    enum verify_algorithm algorithm;
    uint8_t bytes[SIGNATURE_SIZE_MAX]; /* signature_size of them */
};

struct signatures {
    struct signature items[VERIFY_SIGNATURES_MAX];
    size_t n;
    struct slice timestamp; /* as sent; empty where the scheme has none */
    int64_t wall_ms;        /* and what it means */
};

/* Decodes one signature as `encoding` has it; false where it is not of that
 * form or not of the algorithm's size. */
bool signature_decode(struct slice text, enum verify_encoding encoding,
                      enum verify_algorithm algorithm, struct signature *out);

/* Reads what the request has under the scheme's names. Items of a list that
 * do not count (unknown tag, bad encoding) are passed over, and so are those
 * behind the 16th that does. VERIFY_OK, VERIFY_MISSING or VERIFY_MALFORMED.
 * `out` borrows from the request. */
enum verify_status signatures_read(const struct scheme *scheme,
                                   const struct envelope *request,
                                   struct signatures *out);

#endif
