/* SPDX-License-Identifier: MIT */
/*
 * The admin API's JSON, told to people. What came from outside cannot move
 * the cursor of their terminal: control characters are shown as '?'.
 */
#ifndef ONCED_APP_TELL_H
#define ONCED_APP_TELL_H

#include <jansson.h>
#include <stdint.h>

#include "base/bytes.h"

/* One event in full, as of `now_ms`. */
void tell_event(const json_t *event, int64_t now_ms, struct buf *out);

/* A page of events, one line each. */
void tell_events(const json_t *page, int64_t now_ms, struct buf *out);

void tell_status(const json_t *status, struct buf *out);

/* Rows of strings, the first of them titles, in aligned columns. */
void tell_table(const json_t *rows, struct buf *out);

#endif
