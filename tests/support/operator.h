/* SPDX-License-Identifier: MIT */
/*
 * The admin API in front of a world: the engine turns in a thread of its own
 * while operators ask. What the handler is to do is settled before and after
 * that, by the test's own thread.
 */
#ifndef ONCED_TESTS_OPERATOR_H
#define ONCED_TESTS_OPERATOR_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/admin.h"
#include "app/admin_internal.h"
#include "base/check.h"
#include "support/world.h"

struct office {
    struct world world;
    struct config config;
    struct config_route routes[WORLD_ROUTES];
    struct config_token tokens[2];
    char socket[96];
    struct admin *admin;
    pthread_t thread;
    atomic_bool closing;
};

static inline void *office_turn(void *arg)
{
    struct office *office = arg;
    struct err err;

    while (!office->closing) {
        CHECK(engine_turn(office->world.engine, 5, &err));
    }
    return NULL;
}

static inline void office_init(struct office *office)
{
    static char ops[] = "ops", viewer[] = "viewer", address[] = "127.0.0.1:0";
    static char secret[] = "operate-secret", other[] = "read-secret";

    memset(office, 0, sizeof *office);
    world_init(&office->world);
    world_open(&office->world);
    (void)snprintf(office->socket, sizeof office->socket, "%s/admin.sock",
                   office->world.dir);
    office->tokens[0] = (struct config_token){ops, true, secret};
    office->tokens[1] = (struct config_token){viewer, false, other};
    for (size_t i = 0; i < WORLD_ROUTES; i++) {
        office->routes[i].name = (char *)office->world.routes[i].name;
        office->routes[i].namespace = office->routes[i].name;
    }
    office->config.routes = office->routes;
    office->config.n_routes = WORLD_ROUTES;
    office->config.admin.socket = office->socket;
    office->config.admin.address = address;
    office->config.admin.tokens = office->tokens;
    office->config.admin.n_tokens = 2;
}

static inline void office_open(struct office *office)
{
    const struct admin_options options = {
        .config = &office->config,
        .engine = office->world.engine,
        .store = office->world.store,
    };
    struct err err = {ERR_NONE, ""};

    office->closing = false;
    CHECK(pthread_create(&office->thread, NULL, office_turn, office) == 0);
    if (!admin_start(&office->admin, &options, &err)) {
        fprintf(stderr, "office: %s\n", err.text);
        CHECK(err.kind == ERR_NONE);
    }
    admin_set_ready(office->admin, true);
}

static inline void office_close(struct office *office)
{
    admin_stop(&office->admin);
    office->closing = true;
    CHECK(pthread_join(office->thread, NULL) == 0);
}

static inline void office_fini(struct office *office)
{
    world_fini(&office->world);
}

/* --- a client ------------------------------------------------------------ */

struct office_call {
    bool tcp;
    const char *token; /* NULL: none */
    const char *method, *target, *body;
};

static inline int office_connect(const struct office *office, bool tcp)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {
        .sin_family = AF_INET,
        .sin_port = htons(http_bind_port(&office->admin->listeners[1].address)),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(local.sun_path, office->socket, sizeof office->socket);
    CHECK(fd >= 0);
    if (tcp) {
        CHECK(connect(fd, (struct sockaddr *)&in, sizeof in) == 0);
    } else {
        CHECK(connect(fd, (struct sockaddr *)&local, sizeof local) == 0);
    }
    return fd;
}

/* Calls; returns the status, and the head and body in `answer`. */
static inline int office_ask(const struct office *office,
                             const struct office_call *call, struct buf *answer)
{
    int fd = office_connect(office, call->tcp);
    struct buf text = BUF_INIT;
    char part[4096];
    ssize_t n;
    int status = 0;

    buf_printf(&text, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n",
               call->method, call->target);
    if (call->token != NULL) {
        buf_printf(&text, "Authorization: Bearer %s\r\n", call->token);
    }
    buf_printf(&text, "Content-Length: %zu\r\n\r\n%s",
               call->body == NULL ? (size_t)0 : strlen(call->body),
               call->body == NULL ? "" : call->body);
    CHECK(send(fd, text.data, text.len, MSG_NOSIGNAL) == (ssize_t)text.len);
    buf_free(&text);
    buf_clear(answer);
    while ((n = recv(fd, part, sizeof part, 0)) > 0) {
        buf_add(answer, part, (size_t)n);
    }
    (void)close(fd);
    (void)sscanf(buf_cstr(answer), "HTTP/1.1 %d", &status);
    return status;
}

#endif
