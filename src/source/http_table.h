/* SPDX-License-Identifier: MIT */
/*
 * The table of paths: which routes a request is for. Routes on one path form
 * a group and get their events from one delivery; what differs between them
 * is taken at its strictest. Built once, then read by every loop.
 */
#ifndef ONCED_SOURCE_HTTP_TABLE_H
#define ONCED_SOURCE_HTTP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "source/http.h"
#include "source/net.h"

struct http_member {
    const struct http_route *route;
    const char **single_headers; /* NULL-ended, of the whole route */
    struct network *allow;
};

struct http_group {
    struct slice path; /* without the star of a prefix */
    bool is_prefix;
    struct http_member *members;
    size_t n_members;
    uint64_t max_body_bytes; /* the smallest */
    char *allowed;           /* the methods that all take: "POST, PUT" */
};

struct http_table {
    struct http_group *groups; /* exact ones first; prefixes by length */
    size_t n_groups, n_exact;
};

/* ERR_CONFIG names the route: a path or a network that is none, or routes on
 * one path that share no method. Routes are kept by the caller. */
bool http_table_build(struct http_table *table, const struct http_route *routes,
                      size_t n, struct err *err) MUST_CHECK;
void http_table_free(struct http_table *table);

/* The exact path first, then the longest prefix; NULL where none matches. */
const struct http_group *http_table_find(const struct http_table *table,
                                         struct slice path);

bool http_table_takes(const struct http_group *group, struct slice method);

/* False when the client is outside the networks of any member. */
bool http_table_admits(const struct http_group *group,
                       const struct net_address *client);

#endif
