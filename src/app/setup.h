/* SPDX-License-Identifier: MIT */
/*
 * What the store and the engine are told of a configuration: by the worker,
 * and by commands that work on the store of a stopped one.
 */
#ifndef ONCED_APP_SETUP_H
#define ONCED_APP_SETUP_H

#include "app/config.h"
#include "engine/engine.h"
#include "store/store.h"

/* A store that must be there. Strings are the configuration's. */
struct store_options setup_store(const struct config *config);

/* To look at the store of a stopped worker as it is: nothing in it is full,
 * or too old. */
struct store_options setup_reading(const char *path);

/* All but the store, and the publishers. `handlers` has one for each route and
 * is copied, or is NULL where none will run. Returns out->routes, which the
 * caller frees once the engine is there; strings are the configuration's. */
struct engine_route *setup_engine(const struct config *config,
                                  const struct handler *handlers,
                                  struct engine_options *out);

#endif
