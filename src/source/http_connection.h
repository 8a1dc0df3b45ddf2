/* SPDX-License-Identifier: MIT */
/*
 * The connections of one loop, and how long each may take. libmicrohttpd
 * knows only inactivity, which a sender of one byte a second never shows, and
 * misses an end of stream that comes together with the last bytes; so every
 * connection has a deadline at all times but while the engine holds
 * its delivery. A list per kind of wait is sorted by itself, as all of a
 * kind wait equally long.
 *
 * Only the loop's thread touches any of it.
 */
#ifndef ONCED_SOURCE_HTTP_CONNECTION_H
#define ONCED_SOURCE_HTTP_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct MHD_Connection;
struct http_loop;
struct http_request;

enum http_wait {
    HTTP_WAIT_REQUEST, /* first byte of a request to the last of its body */
    HTTP_WAIT_PEER,    /* until an answer is taken and the next one begins */
    HTTP_WAIT_NONE,
};

struct http_connection {
    TAILQ_ENTRY(http_connection) link;
    enum http_wait waits;
    int64_t deadline_ms;
    struct http_loop *loop;
    struct http_request *request; /* the one under way, or NULL */
    int fd;
    void *tls;    /* gnutls_session_t, or NULL */
    bool is_shed; /* one too many: it gets 503 */
};

TAILQ_HEAD(http_connection_list, http_connection);

struct http_deadlines {
    struct http_connection_list lists[HTTP_WAIT_NONE];
    int64_t timeouts_ms[HTTP_WAIT_NONE];
};

void http_connection_init(struct http_deadlines *deadlines,
                          int64_t request_timeout_ms, int64_t idle_timeout_ms);

/* Puts a new connection under a deadline. */
void http_connection_add(struct http_deadlines *deadlines,
                         struct http_connection *connection, int64_t now_ms);

/* Starts another wait, with its whole time. */
void http_connection_wait(struct http_deadlines *deadlines,
                          struct http_connection *connection,
                          enum http_wait what, int64_t now_ms);

/* The next one whose time is over, taken off its list, or NULL. */
struct http_connection *
http_connection_expired(struct http_deadlines *deadlines, int64_t now_ms);

/* How long until the first deadline; < 0 where there is none. */
int64_t http_connection_next_ms(const struct http_deadlines *deadlines,
                                int64_t now_ms);

/* Says it without libmicrohttpd, which sends nothing before the whole request
 * is read, and ends the connection: it sees the end and cleans up. */
void http_connection_end(struct http_connection *connection,
                         const char *last_words);

#endif
