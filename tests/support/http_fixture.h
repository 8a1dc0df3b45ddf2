/* SPDX-License-Identifier: MIT */
/*
 * An HTTP source in front of a stand-in for the engine, and a client on a
 * raw socket. The stand-in answers from a thread of its own, in batches.
 */
#ifndef TESTS_SUPPORT_HTTP_FIXTURE_H
#define TESTS_SUPPORT_HTTP_FIXTURE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "core/envelope.h"
#include "engine/port.h"
#include "source/http.h"

/* --- the engine's stand-in ------------------------------------------------ */

struct engine {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct queue_item *waiting;
    size_t n_taken, n_answered;
    bool is_ending, is_closed, is_full;
    enum delivery_answer result;
    int64_t retry_after_s;
    /* the last delivery, copied */
    struct buf id, tenant, envelope;
    size_t n_arrivals, routes[8];
    uint64_t order_key;
    struct fingerprint fingerprint;
    size_t cost_bytes;
};

static void engine_note(struct engine *engine, const struct delivery *delivery)
{
    const struct arrival *first = &delivery->arrivals[0];
    buf_clear(&engine->id);
    buf_add_slice(&engine->id, first->id);
    buf_clear(&engine->tenant);
    buf_add_slice(&engine->tenant, first->tenant);
    buf_clear(&engine->envelope);
    buf_add_slice(&engine->envelope, first->envelope);
    engine->order_key = first->order_key;
    engine->fingerprint = first->fingerprint;
    engine->cost_bytes = delivery->item.cost_bytes;
    engine->n_arrivals = delivery->n_arrivals;
    for (size_t i = 0; i < delivery->n_arrivals && i < 8; i++)
        engine->routes[i] = delivery->arrivals[i].route;
}

bool engine_deliver(struct engine *engine, struct delivery *delivery)
{
    CHECK(pthread_mutex_lock(&engine->lock) == 0);
    bool takes = !engine->is_full;
    if (takes) {
        engine_note(engine, delivery);
        delivery->item.next = engine->waiting;
        engine->waiting = &delivery->item;
        engine->n_taken++;
        CHECK(pthread_cond_broadcast(&engine->changed) == 0);
    }
    CHECK(pthread_mutex_unlock(&engine->lock) == 0);
    return takes;
}

static void *engine_run(void *arg)
{
    struct engine *engine = arg;
    CHECK(pthread_mutex_lock(&engine->lock) == 0);
    while (!engine->is_ending || engine->waiting != NULL) {
        if (engine->waiting == NULL ||
            (engine->is_closed && !engine->is_ending)) {
            CHECK(pthread_cond_wait(&engine->changed, &engine->lock) == 0);
            continue;
        }
        struct queue_item *batch = engine->waiting;
        enum delivery_answer result = engine->result;
        int64_t retry_after_s = engine->retry_after_s;
        engine->waiting = NULL;
        CHECK(pthread_mutex_unlock(&engine->lock) == 0);
        size_t n = 0;
        while (batch != NULL) {
            struct delivery *delivery = (struct delivery *)batch;
            batch = batch->next;
            delivery->result = result;
            delivery->retry_after_s = retry_after_s;
            delivery->answer(delivery);
            n++;
        }
        CHECK(pthread_mutex_lock(&engine->lock) == 0);
        engine->n_answered += n;
        CHECK(pthread_cond_broadcast(&engine->changed) == 0);
    }
    CHECK(pthread_mutex_unlock(&engine->lock) == 0);
    return NULL;
}

static inline struct engine *engine_start(void)
{
    struct engine *engine = mem_new(1, sizeof(*engine));
    CHECK(pthread_mutex_init(&engine->lock, NULL) == 0);
    CHECK(pthread_cond_init(&engine->changed, NULL) == 0);
    CHECK(pthread_create(&engine->thread, NULL, engine_run, engine) == 0);
    return engine;
}

static inline void engine_set(struct engine *engine, bool is_closed,
                              bool is_full, enum delivery_answer result)
{
    CHECK(pthread_mutex_lock(&engine->lock) == 0);
    engine->is_closed = is_closed;
    engine->is_full = is_full;
    engine->result = result;
    CHECK(pthread_cond_broadcast(&engine->changed) == 0);
    CHECK(pthread_mutex_unlock(&engine->lock) == 0);
}

static inline void engine_wait_taken(struct engine *engine, size_t n)
{
    CHECK(pthread_mutex_lock(&engine->lock) == 0);
    while (engine->n_taken < n)
        CHECK(pthread_cond_wait(&engine->changed, &engine->lock) == 0);
    CHECK(pthread_mutex_unlock(&engine->lock) == 0);
}

static inline size_t engine_taken(struct engine *engine)
{
    CHECK(pthread_mutex_lock(&engine->lock) == 0);
    size_t n = engine->n_taken;
    CHECK(pthread_mutex_unlock(&engine->lock) == 0);
    return n;
}

static inline void engine_end(struct engine *engine)
{
    CHECK(pthread_mutex_lock(&engine->lock) == 0);
    engine->is_ending = true;
    CHECK(pthread_cond_broadcast(&engine->changed) == 0);
    CHECK(pthread_mutex_unlock(&engine->lock) == 0);
    CHECK(pthread_join(engine->thread, NULL) == 0);
}

static inline void engine_drop(struct engine *engine)
{
    buf_free(&engine->id);
    buf_free(&engine->tenant);
    buf_free(&engine->envelope);
    free(engine);
}

/* --- the source ----------------------------------------------------------- */

struct fixture {
    struct engine *engine;
    struct http_source *source;
    struct http_source_options options;
    const char *addresses[2];
    struct http_route routes[8];
    size_t n_routes;
    bool is_stopped;
};

static inline void value_set(struct value *value, const char *text)
{
    struct slice part = slice_of(text);
    struct err err;
    CHECK(value_add_choice(value, &part, 1, &err));
}

/* A route that takes POST with its id in the header Id. */
static inline struct http_route *fixture_route(struct fixture *fixture,
                                               const char *path)
{
    struct http_route *route = &fixture->routes[fixture->n_routes];
    *route = (struct http_route){
        .engine_route = fixture->n_routes++,
        .name = "test",
        .path = path,
        .methods = {"POST"},
        .n_methods = 1,
        .max_body_bytes = 64 * 1024,
    };
    value_set(&route->id, "header:Id");
    return route;
}

static inline void fixture_init(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    fixture->engine = engine_start();
    fixture->addresses[0] = "127.0.0.1:0";
    fixture->options = (struct http_source_options){
        .addresses = fixture->addresses,
        .n_addresses = 1,
        .threads = 2,
        .max_connections = 1000,
        .request_timeout_ms = 20 * 1000,
        .max_in_flight_bytes = 8 << 20,
        .engine = fixture->engine,
        .clock = clock_system(),
    };
}

static inline void fixture_start(struct fixture *fixture)
{
    struct err err = {0};
    fixture->options.routes = fixture->routes;
    fixture->options.n_routes = fixture->n_routes;
    if (!http_source_start(&fixture->source, &fixture->options, &err)) {
        (void)fprintf(stderr, "%s\n", err.text);
        abort();
    }
}

static inline void fixture_stop(struct fixture *fixture)
{
    engine_end(fixture->engine);
    http_source_free(&fixture->source);
    fixture->is_stopped = true;
}

static inline void fixture_end(struct fixture *fixture)
{
    if (!fixture->is_stopped)
        fixture_stop(fixture);
    engine_drop(fixture->engine);
    for (size_t i = 0; i < fixture->n_routes; i++) {
        value_free(&fixture->routes[i].id);
        value_free(&fixture->routes[i].tenant);
        value_free(&fixture->routes[i].order_by);
    }
}

/* --- the client ----------------------------------------------------------- */

struct client {
    int fd;
    struct buf in;
};

struct reply {
    int status; /* 0: the connection ended without one */
    struct buf head, body;
    char value[256]; /* reply_header's */
};

static inline void client_open(struct client *client,
                               const struct fixture *fixture)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct timeval patience = {.tv_sec = 20};
    to.sin_port = htons(http_source_port(fixture->source, 0));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *client = (struct client){.in = BUF_INIT};
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(client->fd >= 0);
    CHECK(setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
                     sizeof(patience)) == 0);
    CHECK(connect(client->fd, (struct sockaddr *)&to, sizeof(to)) == 0);
}

static inline void client_close(struct client *client)
{
    if (client->fd > 0)
        (void)close(client->fd);
    client->fd = -1;
    buf_free(&client->in);
}

/* False when the other side has closed. */
static inline bool client_send(struct client *client, const void *data,
                               size_t len)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = send(client->fd, at, len, MSG_NOSIGNAL);
        if (n < 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static inline bool client_say(struct client *client, const char *text)
{
    return client_send(client, text, strlen(text));
}

static inline bool client_fill(struct client *client)
{
    char piece[4096];
    ssize_t n = recv(client->fd, piece, sizeof(piece), 0);
    if (n <= 0)
        return false;
    buf_add(&client->in, piece, (size_t)n);
    return true;
}

static inline void client_skip(struct client *client, size_t n)
{
    memmove(client->in.data, client->in.data + n, client->in.len - n);
    client->in.len -= n;
}

static inline const char *reply_header(struct reply *reply, const char *name)
{
    const char *at = buf_cstr(&reply->head);
    size_t len = strlen(name);
    while ((at = strstr(at, "\r\n")) != NULL) {
        at += 2;
        if (strncasecmp(at, name, len) != 0 || at[len] != ':')
            continue;
        at += len + 1;
        at += strspn(at, " ");
        (void)snprintf(reply->value, sizeof(reply->value), "%.*s",
                       (int)strcspn(at, "\r"), at);
        return reply->value;
    }
    return NULL;
}

/* Reads one answer; status 0 when there is none. */
static inline void client_read(struct client *client, struct reply *reply)
{
    size_t body_len = 0;
    const char *end;
    reply->status = 0;
    buf_clear(&reply->head);
    buf_clear(&reply->body);
    while ((end = strstr(buf_cstr(&client->in), "\r\n\r\n")) == NULL) {
        if (!client_fill(client))
            return;
    }
    size_t head_len = (size_t)(end - client->in.data) + 4;
    buf_add(&reply->head, client->in.data, head_len);
    client_skip(client, head_len);
    reply->status = atoi(buf_cstr(&reply->head) + strlen("HTTP/1.1 "));
    const char *length = reply_header(reply, "Content-Length");
    if (length != NULL)
        body_len = (size_t)atol(length);
    while (client->in.len < body_len) {
        if (!client_fill(client))
            return;
    }
    buf_add(&reply->body, client->in.data, body_len);
    if (body_len > 0)
        client_skip(client, body_len);
}

static inline void reply_free(struct reply *reply)
{
    buf_free(&reply->head);
    buf_free(&reply->body);
}

/* True when the other side ends the connection without another byte. */
static inline bool client_is_at_end(struct client *client)
{
    return client->in.len == 0 && !client_fill(client);
}

/* One request on its own connection. */
static inline int client_status(const struct fixture *fixture,
                                const char *request)
{
    struct client client;
    struct reply reply = {0};
    client_open(&client, fixture);
    (void)client_say(&client, request);
    client_read(&client, &reply);
    client_close(&client);
    reply_free(&reply);
    return reply.status;
}

#endif
