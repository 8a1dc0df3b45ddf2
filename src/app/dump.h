/* SPDX-License-Identifier: MIT */
/*
 * The dump of a store: JSON lines that no change of the store's own format
 * concerns. docs/dump.md describes them. First a header, then a line for each
 * event in order of arrival, then a line that counts them.
 *
 * A dump is a full copy: credentials that stand in stored headers are in it.
 */
#ifndef ONCED_APP_DUMP_H
#define ONCED_APP_DUMP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "core/envelope.h"
#include "store/store.h"

enum { DUMP_VERSION = 1 };

/* Writes all of it. The store is open for reading, no transaction is open;
 * `route` (a name, NULL: all) must be one that the store knows, else
 * ERR_NOT_FOUND. A stream that cannot be written is ERR_IO. Takes the same
 * memory for every size of store. */
bool dump_write(struct store *store, const char *route, FILE *out,
                struct err *err) MUST_CHECK;

/* One event as its line says it; inside a transaction. */
bool dump_event(json_t **out, struct store *store,
                const struct store_entry *entry, struct err *err) MUST_CHECK;

/* What arrived, as "request" of a line says it. */
json_t *dump_request(const struct envelope *envelope);

#endif
