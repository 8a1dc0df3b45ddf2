/* SPDX-License-Identifier: MIT */
/*
 * Clients on four threads against the HTTP source, for ThreadSanitizer:
 * connections that are kept, that are cut while the engine holds their
 * delivery, that are slow, that are too many; then an orderly end.
 */
#include "support/http_fixture.h"

#define SIMPLE                                                                 \
    "POST /hook HTTP/1.1\r\nHost: a\r\nId: 1\r\nContent-Length: 2\r\n\r\nhi"

enum { THREADS = 4, ROUNDS = 100, REQUESTS = 20 };

struct worker {
    pthread_t thread;
    const struct fixture *fixture;
    unsigned seed;
    size_t n_accepted;
};

/* Nothing is due to a request that arrives while intake ends. */
static void keep_asking(struct worker *worker, struct client *client)
{
    struct reply reply = {0};
    for (int i = 0; i < REQUESTS; i++) {
        if (!client_say(client, SIMPLE))
            break;
        client_read(client, &reply);
        if (reply.status == 0)
            break;
        CHECK(reply.status == 202 || reply.status == 503);
        worker->n_accepted += reply.status == 202;
    }
    reply_free(&reply);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    for (int round = 0; round < ROUNDS; round++) {
        struct client client;
        client_open(&client, worker->fixture);
        switch (rand_r(&worker->seed) % 4) {
        case 0: /* leaves while its delivery is with the engine */
            (void)client_say(&client, SIMPLE SIMPLE);
            break;
        case 1: /* leaves in the middle of the body */
            (void)client_say(&client, "POST /hook HTTP/1.1\r\nHost: a\r\n"
                                      "Content-Length: 9\r\n\r\nhi");
            break;
        default:
            keep_asking(worker, &client);
            break;
        }
        client_close(&client);
    }
    return NULL;
}

int main(void)
{
    struct fixture fixture;
    struct worker workers[THREADS];
    size_t n_accepted = 0;

    fixture_init(&fixture);
    fixture_route(&fixture, "/hook");
    fixture.options.request_timeout_ms = 100;
    fixture.options.max_connections = 8 * THREADS;
    fixture_start(&fixture);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.fixture = &fixture, .seed = i};
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    /* The last thread meets the end of intake on its way. */
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
        if (i == 0)
            http_source_stop_intake(fixture.source);
        n_accepted += workers[i].n_accepted;
    }
    CHECK(n_accepted > THREADS * REQUESTS);
    CHECK(client_status(&fixture, SIMPLE) == 503);
    fixture_end(&fixture);
    return 0;
}
