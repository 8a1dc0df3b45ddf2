/* SPDX-License-Identifier: MIT */
#include "source/http_connection.h"

#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "source/http_tls.h"

void http_connection_init(struct http_deadlines *deadlines,
                          int64_t request_timeout_ms, int64_t idle_timeout_ms)
{
    for (int i = 0; i < HTTP_WAIT_NONE; i++) {
        TAILQ_INIT(&deadlines->lists[i]);
    }
    deadlines->timeouts_ms[HTTP_WAIT_REQUEST] = request_timeout_ms;
    deadlines->timeouts_ms[HTTP_WAIT_PEER] = idle_timeout_ms;
}

static void leave(struct http_deadlines *deadlines,
                  struct http_connection *connection)
{
    if (connection->waits != HTTP_WAIT_NONE) {
        TAILQ_REMOVE(&deadlines->lists[connection->waits], connection, link);
    }
    connection->waits = HTTP_WAIT_NONE;
}

void http_connection_wait(struct http_deadlines *deadlines,
                          struct http_connection *connection,
                          enum http_wait what, int64_t now_ms)
{
    leave(deadlines, connection);
    if (what == HTTP_WAIT_NONE) {
        return;
    }
    connection->waits = what;
    connection->deadline_ms = now_ms + deadlines->timeouts_ms[what];
    TAILQ_INSERT_TAIL(&deadlines->lists[what], connection, link);
}

void http_connection_add(struct http_deadlines *deadlines,
                         struct http_connection *connection, int64_t now_ms)
{
    connection->waits = HTTP_WAIT_NONE;
    http_connection_wait(deadlines, connection, HTTP_WAIT_REQUEST, now_ms);
}

struct http_connection *
http_connection_expired(struct http_deadlines *deadlines, int64_t now_ms)
{
    for (int i = 0; i < HTTP_WAIT_NONE; i++) {
        struct http_connection *first = TAILQ_FIRST(&deadlines->lists[i]);
        if (first != NULL && first->deadline_ms <= now_ms) {
            leave(deadlines, first);
            return first;
        }
    }
    return NULL;
}

int64_t http_connection_next_ms(const struct http_deadlines *deadlines,
                                int64_t now_ms)
{
    int64_t next = -1;
    for (int i = 0; i < HTTP_WAIT_NONE; i++) {
        const struct http_connection *first = TAILQ_FIRST(&deadlines->lists[i]);
        if (first == NULL) {
            continue;
        }
        int64_t left = first->deadline_ms - now_ms;
        if (left < 0) {
            left = 0;
        }
        if (next < 0 || left < next) {
            next = left;
        }
    }
    return next;
}

void http_connection_end(struct http_connection *connection,
                         const char *last_words)
{
    CHECK(connection->fd >= 0);
    if (last_words != NULL && connection->tls != NULL) {
        http_tls_send(connection->tls, last_words, strlen(last_words));
    } else if (last_words != NULL) {
        (void)send(connection->fd, last_words, strlen(last_words),
                   MSG_DONTWAIT | MSG_NOSIGNAL); /* it may be gone */
    }
    (void)shutdown(connection->fd, SHUT_RDWR);
}
