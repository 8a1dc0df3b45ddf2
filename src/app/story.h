/* SPDX-License-Identifier: MIT */
/*
 * What the store knows of an event, told as JSON: the shapes of the admin API
 * and of `--json`. The same functions serve a running worker and the store of
 * a stopped one. Credentials that stand in stored headers are not told.
 */
#ifndef ONCED_APP_STORY_H
#define ONCED_APP_STORY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "store/store.h"

/* The short form, as in a list. */
json_t *story_event(const struct store *store, const struct store_entry *entry);

/* The full form: with request, result and history. Inside a transaction of
 * the store. */
bool story_event_full(json_t **out, struct store *store,
                      const struct store_entry *entry,
                      struct err *err) MUST_CHECK;

/* Text that should be UTF-8. Where it is not, every byte stands for the
 * character of its number, which is what old senders of HTTP mean. */
json_t *story_text(struct slice text);

/* Sets `name`, or, where the bytes are not UTF-8, `name`_base64. */
void story_set_bytes(json_t *object, const char *name, struct slice bytes);

/* Sets `idempotency_key`: what the handler gets for the event's run. */
void story_set_key(json_t *event, const struct store *store,
                   const struct store_entry *entry);

/* RFC 3339 in UTC; null for RECORD_NEVER. */
json_t *story_time(int64_t wall_ms);

/* True for a header whose value is, or proves, a secret. */
bool story_is_credential(struct slice header_name);

#endif
