/* SPDX-License-Identifier: MIT */
/*
 * What may stand in a header field, and which fields belong to one
 * connection only (RFC 9110 §7.6.1). Any thread.
 */
#ifndef ONCED_HANDLER_WIRE_H
#define ONCED_HANDLER_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "core/envelope.h"

/* A field name: one or more token characters. */
bool wire_is_token(struct slice name);

/* May stand as a value as it is: no control byte but the tab. */
bool wire_is_value(struct slice value);

/* Comes through header fields and environments unchanged: UTF-8 without
 * control characters, no blank at either end. */
bool wire_is_text(struct slice value);

/* True when `name` describes the connection it came on: one of the known
 * names, or one that a Connection header among `all` lists. */
bool wire_is_hop_by_hop(const struct headers *all, struct slice name);

/* True for a name that says how the message is framed: never copied, never
 * configured. */
bool wire_is_framing(struct slice name);

/* True for the names that only onced sets on a request. */
bool wire_is_reserved(struct slice name);

/* Whether `name` is one of the `n` names, without case. */
bool wire_is_one_of(struct slice name, const char *const *names, size_t n);

#endif
