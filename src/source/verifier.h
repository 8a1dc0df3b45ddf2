/* SPDX-License-Identifier: MIT */
/*
 * The inside of a verifier, for verify.c, sign.c and explain.c alone.
 * Written by verifier_new, then only read.
 */
#ifndef ONCED_SOURCE_VERIFIER_H
#define ONCED_SOURCE_VERIFIER_H

#include <stdint.h>

#include "source/key.h"
#include "source/message.h"
#include "source/scheme.h"
#include "source/signature.h"
#include "source/verify.h"

struct verifier {
    const struct scheme *scheme; /* a preset, or `custom` */
    struct scheme custom;
    struct buf *secrets; /* as configured: explain tries them otherwise */
    struct key *keys;    /* the same, ready for use */
    size_t n_keys;
    int64_t tolerance_ms;
    char *public_url;
    const char **single_headers; /* NULL-ended */
    char **strings;              /* what `custom` points to */
    size_t n_strings;
};

/* The row that fits the request: of a scheme with two sets of names the first
 * of which it has any. So nobody can add an id under the other names to a
 * request that is signed under these. */
const struct scheme *verifier_scheme(const struct verifier *verifier,
                                     const struct envelope *request);

/* True when a header stands there twice that may not. */
bool verifier_repeats_header(const struct verifier *verifier,
                             const struct envelope *request);

/* True when `signatures` has one for the message by any of the keys. */
bool verifier_matches(const struct verifier *verifier,
                      const struct message *message,
                      const struct signatures *signatures);

/* Where a right signature of `signed_wall_ms` stands in the time window. */
enum verify_status verifier_window(const struct verifier *verifier,
                                   const struct scheme *scheme,
                                   int64_t signed_wall_ms, int64_t now_wall_ms);

#endif
