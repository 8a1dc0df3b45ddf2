/* SPDX-License-Identifier: MIT */
/*
 * The usual mistakes of a sender, a proxy or a configuration, tried one by
 * one on a request whose signature does not match.
 */
#ifndef ONCED_SOURCE_VARIANT_H
#define ONCED_SOURCE_VARIANT_H

#include <stddef.h>

#include "base/bytes.h"
#include "core/envelope.h"
#include "source/verifier.h"

/* Appends a line for each that would make a signature match, "  body: without
 * its final newline", and returns how many there are. No secret is printed. */
size_t variant_find(const struct verifier *verifier,
                    const struct envelope *request, struct buf *out);

#endif
