/* SPDX-License-Identifier: MIT */
/*
 * Attempts without an engine: made by hand, and attempt_finish defined here,
 * in the one source file of a test program that includes this.
 */
#ifndef ONCED_TEST_ATTEMPTS_H
#define ONCED_TEST_ATTEMPTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "engine/port.h"

enum { ATTEMPT_WAIT_S = 20 };

struct test_attempt {
    struct attempt attempt; /* first */
    struct buf headers;
    bool is_finished;
};

static pthread_mutex_t finish_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finish_changed = PTHREAD_COND_INITIALIZER;

void attempt_finish(struct attempt *attempt)
{
    struct test_attempt *t = (struct test_attempt *)attempt;

    pthread_mutex_lock(&finish_lock);
    if (t->is_finished) {
        abort(); /* an attempt ends once */
    }
    t->is_finished = true;
    pthread_cond_broadcast(&finish_changed);
    pthread_mutex_unlock(&finish_lock);
}

/* False when it is not finished in time. */
static inline bool attempt_wait(struct test_attempt *t)
{
    struct timespec until;
    int error = 0;
    bool is_finished;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ATTEMPT_WAIT_S;
    pthread_mutex_lock(&finish_lock);
    while (!t->is_finished && error == 0) {
        error = pthread_cond_timedwait(&finish_changed, &finish_lock, &until);
    }
    is_finished = t->is_finished;
    pthread_mutex_unlock(&finish_lock);
    return is_finished;
}

/* A POST of `body` to /hooks/a of event "evt-1", attempt 1, 10 s. */
static inline struct test_attempt *attempt_new(const char *body)
{
    struct test_attempt *t = mem_new(1, sizeof *t);
    struct attempt *a = &t->attempt;

    a->route = "r";
    a->id = SLICE("evt-1");
    memcpy(a->idempotency_key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 32);
    memcpy(a->identity, "0123456789abcdef", 16);
    a->number = 1;
    a->timeout_ms = 10 * 1000;
    a->envelope.kind = ENVELOPE_HTTP;
    a->envelope.method = SLICE("POST");
    a->envelope.path = SLICE("/hooks/a");
    a->envelope.body = slice_of(body);
    a->envelope.has_body = true;
    return t;
}

static inline void attempt_header(struct test_attempt *t, const char *name,
                                  const char *value)
{
    headers_add(&t->headers, slice_of(name), slice_of(value));
    t->attempt.envelope.headers.count++;
    t->attempt.envelope.headers.flat = buf_slice(&t->headers);
}

static inline void attempt_free(struct test_attempt *t)
{
    buf_free(&t->headers);
    buf_free(&t->attempt.result);
    free(t);
}

/* Starts it and waits for its end. */
static inline bool attempt_run(struct handler *handler, struct test_attempt *t)
{
    handler->ops->start(handler->self, &t->attempt);
    return attempt_wait(t);
}

#endif
