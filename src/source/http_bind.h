/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: TCP ones that several loops share by SO_REUSEPORT, and
 * unix ones.
 */
#ifndef ONCED_SOURCE_HTTP_BIND_H
#define ONCED_SOURCE_HTTP_BIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/err.h"

struct http_address {
    const char *text; /* kept by the caller */
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
        struct sockaddr_un local;
    };
    socklen_t len;
    bool is_ours; /* bound by http_bind_listen */
};

/* "127.0.0.1:8080", "[::1]:80", "unix:/path"; names are not looked up.
 * ERR_CONFIG for anything else. */
bool http_bind_parse(const char *text, struct http_address *out,
                     struct err *err) MUST_CHECK;

bool http_bind_is_unix(const struct http_address *address);
uint16_t http_bind_port(const struct http_address *address);

/* ERR_AGAIN when somebody listens there already: for TCP also another
 * process that would share the port by SO_REUSEPORT, for a unix address one
 * that accepts. The socket file of a process that is gone is removed. Fills
 * in the port where it was 0. */
bool http_bind_probe(struct http_address *address, struct err *err) MUST_CHECK;

/* One listening, non-blocking socket. Call http_bind_probe before. */
bool http_bind_listen(struct http_address *address, int *fd,
                      struct err *err) MUST_CHECK;

/* Removes the file of a unix address that http_bind_listen made. */
void http_bind_remove(const struct http_address *address);

#endif
