/* SPDX-License-Identifier: MIT */
/*
 * A page of events, as asked for in words: by the admin API's query
 * parameters or by the command line's options.
 */
#ifndef ONCED_APP_LISTING_H
#define ONCED_APP_LISTING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

enum { LISTING_DEFAULT = 100, LISTING_MAX = 1000 };

/* NULL where a word is not given. */
struct listing {
    const char *route, *state, *reason;
    const char *since; /* a duration before now, or a time of RFC 3339 */
    const char *limit, *cursor;
};

/* A duration before `now_ms`, or a time; ERR_USAGE, with the name, for what is
 * neither. */
bool listing_when(const char *name, const char *text, int64_t now_ms,
                  int64_t *out, struct err *err) MUST_CHECK;

/* ERR_USAGE for a word that cannot be understood, ERR_NOT_FOUND for a route
 * that the store does not know. */
bool listing_filter(const struct listing *listing, const struct store *store,
                    int64_t now_ms, struct store_filter *out,
                    struct err *err) MUST_CHECK;

/* { "events": […], "cursor": … }, newest first. Any thread. */
bool listing_json(const struct listing *listing, struct store *store,
                  int64_t now_ms, json_t **out, struct err *err) MUST_CHECK;

#endif
