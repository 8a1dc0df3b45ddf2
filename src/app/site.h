/* SPDX-License-Identifier: MIT */
/*
 * Where the worker of a configuration file and its store are found. Reads
 * only what is needed for that, so that an operator needs none of the secrets
 * that the worker has, and so that a mistake elsewhere in the file does not
 * keep anybody from looking at what runs.
 */
#ifndef ONCED_APP_SITE_H
#define ONCED_APP_SITE_H

#include <jansson.h>
#include <stdbool.h>

#include "app/config.h"
#include "base/err.h"
#include "store/store.h"

struct site {
    char *socket; /* of the admin API */
    char *store;  /* folder */
    char *folder; /* of the file */
    json_t *root; /* the whole file */
};

/* ERR_NOT_FOUND: no such file; ERR_CONFIG: it cannot be understood. */
bool site_open(struct site *out, const char *path, struct err *err) MUST_CHECK;
void site_close(struct site *site); /* fine on a zeroed one */

/* The namespace of a route; NULL where the route is not configured. */
const char *site_namespace(const struct site *site, const char *route);

/* Sets how long the contents of settled events are kept, as for the worker,
 * in a store opened for reading; ids are read whatever their age. ERR_CONFIG:
 * a value cannot be understood. */
bool site_set_keep(const struct site *site, struct store *store,
                   struct err *err) MUST_CHECK;

/* A configuration with nothing in it but the cluster of that name, as the only
 * one of all_clusters (NULL: the object "kafka"), secrets included; for
 * config_free. ERR_NOT_FOUND: there is none; ERR_CONFIG: it cannot be
 * understood. */
bool site_cluster(const struct site *site, const char *name,
                  struct config **out, struct err *err) MUST_CHECK;

#endif
