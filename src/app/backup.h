/* SPDX-License-Identifier: MIT */
/*
 * Backups, and making a store of one again; as JSON, which the admin API
 * answers and the command line prints.
 */
#ifndef ONCED_APP_BACKUP_H
#define ONCED_APP_BACKUP_H

#include <jansson.h>
#include <stdbool.h>

#include "app/config.h"
#include "base/err.h"
#include "store/store.h"

/* Any thread; see store_backup.
 *
 *     { "path": "…", "store": "<id>", "made": "…", "events": 1, "bytes": 2,
 *       "took_ms": 3 } */
bool backup_make(struct store *store, const struct store_backup_order *order,
                 json_t **out, struct err *err) MUST_CHECK;

/* Makes a store of the backup at store.path, for a worker that is stopped;
 * where `from` is not NULL that backup is copied there first, unless an
 * earlier call did. Repeated after a crash it goes on. ERR_DATA: it is no
 * backup; ERR_USAGE: something is in the way; ERR_CONFIG: a route is missing.
 *
 *     { "path": "…", "store": "<id>", "made": "…", "incarnation": 2,
 *       "routes": [ { "name": "…", "uncertain": 3, "due": 1, "held": 2 } ] } */
bool backup_restore(const struct config *config, const char *from, json_t **out,
                    struct err *err) MUST_CHECK;

#endif
