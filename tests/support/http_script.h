/* SPDX-License-Identifier: MIT */
/*
 * An HTTP server that does as it is told, wrongly too: the n-th request that
 * arrives, on whichever connection, gets the n-th step; the last one stands
 * for all that follow. It keeps the bytes of every request.
 */
#ifndef ONCED_TEST_HTTP_SCRIPT_H
#define ONCED_TEST_HTTP_SCRIPT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"

enum { SCRIPT_STEPS = 8, SCRIPT_ARRIVALS = 64, SCRIPT_CONNECTIONS = 64 };

struct script_step {
    const char *answer; /* sent as it is; NULL: nothing */
    size_t zeros;       /* so many NUL bytes behind it */
    bool then_close;    /* else the connection goes on */
    bool then_hang;     /* reads until the peer closes */
};

struct script {
    int fd;
    uint16_t port;
    struct script_step steps[SCRIPT_STEPS];
    size_t n_steps;
    pthread_t thread;
    pthread_mutex_t lock;
    struct buf arrivals[SCRIPT_ARRIVALS];
    size_t n_arrivals;
    pthread_t connections[SCRIPT_CONNECTIONS];
    size_t n_connections;
};

struct script_connection {
    struct script *script;
    int fd;
};

static inline bool script_send(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n <= 0) {
            return false;
        }
        data += n;
        len -= (size_t)n;
    }
    return true;
}

static inline size_t script_content_length(const char *head)
{
    const char *at = strcasestr(head, "\r\ncontent-length:");

    return at == NULL ? 0 : strtoul(at + 17, NULL, 10);
}

/* One whole request. False when the connection ends before that. */
static inline bool script_read(int fd, struct buf *request)
{
    size_t whole = 0;

    while (whole == 0 || request->len < whole) {
        char chunk[4096];
        ssize_t n = recv(fd, chunk, sizeof chunk, 0);
        const char *end;

        if (n <= 0) {
            return false;
        }
        buf_add(request, chunk, (size_t)n);
        end = strstr(buf_cstr(request), "\r\n\r\n");
        if (whole == 0 && end != NULL) {
            whole = (size_t)(end + 4 - request->data) +
                    script_content_length(request->data);
        }
    }
    return true;
}

static inline struct script_step script_take(struct script *script,
                                             struct buf *request)
{
    struct script_step step;
    size_t n;

    pthread_mutex_lock(&script->lock);
    n = script->n_arrivals++;
    if (n < SCRIPT_ARRIVALS) {
        script->arrivals[n] = *request;
        *request = BUF_INIT;
    }
    step = script->steps[n < script->n_steps ? n : script->n_steps - 1];
    pthread_mutex_unlock(&script->lock);
    return step;
}

static inline bool script_act(int fd, const struct script_step *step)
{
    static const char zeros[65536];
    size_t left = step->zeros;
    char byte;

    if (step->answer != NULL &&
        !script_send(fd, step->answer, strlen(step->answer))) {
        return false;
    }
    while (left > 0) {
        size_t n = left < sizeof zeros ? left : sizeof zeros;

        if (!script_send(fd, zeros, n)) {
            return false;
        }
        left -= n;
    }
    while (step->then_hang && recv(fd, &byte, 1, 0) > 0) {
    }
    return !step->then_close && !step->then_hang;
}

static inline void *script_serve(void *self)
{
    struct script_connection *connection = self;
    bool goes_on = true;

    while (goes_on) {
        struct buf request = BUF_INIT;

        goes_on = script_read(connection->fd, &request);
        if (goes_on) {
            struct script_step step = script_take(connection->script, &request);

            goes_on = script_act(connection->fd, &step);
        }
        buf_free(&request);
    }
    close(connection->fd);
    free(connection);
    return NULL;
}

static inline void *script_accept(void *self)
{
    struct script *script = self;
    int fd;

    while ((fd = accept(script->fd, NULL, NULL)) != -1) {
        struct script_connection *connection = mem_new(1, sizeof *connection);

        connection->script = script;
        connection->fd = fd;
        if (script->n_connections == SCRIPT_CONNECTIONS ||
            pthread_create(&script->connections[script->n_connections], NULL,
                           script_serve, connection) != 0) {
            abort();
        }
        script->n_connections++;
    }
    return NULL;
}

static inline void script_start(struct script *script,
                                const struct script_step *steps, size_t n)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;

    memset(script, 0, sizeof *script);
    memcpy(script->steps, steps, n * sizeof *steps);
    script->n_steps = n;
    script->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (pthread_mutex_init(&script->lock, NULL) != 0 ||
        bind(script->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(script->fd, 64) != 0 ||
        getsockname(script->fd, (struct sockaddr *)&address, &len) != 0 ||
        pthread_create(&script->thread, NULL, script_accept, script) != 0) {
        abort();
    }
    script->port = ntohs(address.sin_port);
}

static inline size_t script_arrivals(struct script *script)
{
    size_t n;

    pthread_mutex_lock(&script->lock);
    n = script->n_arrivals;
    pthread_mutex_unlock(&script->lock);
    return n;
}

/* After the handler is gone, and with it the connections. */
static inline void script_stop(struct script *script)
{
    shutdown(script->fd, SHUT_RDWR);
    pthread_join(script->thread, NULL);
    for (size_t i = 0; i < script->n_connections; i++) {
        pthread_join(script->connections[i], NULL);
    }
    for (size_t i = 0; i < SCRIPT_ARRIVALS; i++) {
        buf_free(&script->arrivals[i]);
    }
    close(script->fd);
    pthread_mutex_destroy(&script->lock);
}

#endif
