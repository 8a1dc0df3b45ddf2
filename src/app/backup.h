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

/* For a process with one thread, that does nothing else: a signal that would
 * end it ends the copy, of which nothing is left (ERR_AGAIN). */
bool backup_make_alone(struct store *store, const char *target, json_t **out,
                       struct err *err) MUST_CHECK;

/* Makes a store of the backup at store.path, for a worker that is stopped;
 * where `from` is not NULL that backup is copied there first, unless an
 * earlier call did. Repeated after a crash it goes on. Every page is read and
 * checked before. ERR_NOT_FOUND: there is no such folder; ERR_DATA: it is no
 * backup, or damaged; ERR_USAGE: something is in the way; ERR_CONFIG: a route
 * is missing; ERR_AGAIN: it is in use, or there is no room, or it was
 * interrupted.
 *
 *     { "path": "…", "store": "<id>", "made": "…", "incarnation": 2,
 *       "routes": [ { "name": "…", "uncertain": 3, "due": 1, "held": 2 } ] } */
bool backup_restore(const struct config *config, const char *from, json_t **out,
                    struct err *err) MUST_CHECK;

#endif
