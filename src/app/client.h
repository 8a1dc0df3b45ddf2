/* SPDX-License-Identifier: MIT */
/*
 * The command line's client of the admin API, over the worker's unix socket.
 */
#ifndef ONCED_APP_CLIENT_H
#define ONCED_APP_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

struct client_request {
    const char *socket; /* path */
    const char *target; /* "/v1/status", encoded */
    const json_t *body; /* POST; NULL: GET */
    bool is_long;       /* may take as long as it takes */
};

/* ERR_UNREACHABLE: nobody listens on the socket. ERR_IO: we may not connect to
 * it, or somebody listens but gave no answer that can be read. Any status is
 * an answer. */
bool client_call(const struct client_request *request, long *status,
                 json_t **answer, struct err *err) MUST_CHECK;

#endif
