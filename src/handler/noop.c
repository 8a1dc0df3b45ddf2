/* SPDX-License-Identifier: MIT */
#include "handler/noop.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/thread.h"
#include "handler/backlog.h"

enum { NS_PER_MS = 1000 * 1000, NS_PER_S = 1000 * NS_PER_MS };

struct delayed {
    int64_t due_ns;
    int64_t delay_ns;
    struct attempt *attempt;
};

struct noop_handler {
    struct noop_handler_options options;
    /* With a delay only: a heap, the earliest first, and who waits for it.
     * Its times are finer than `struct clock` has them: delays of a few
     * milliseconds are measured against. */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_stopped;
    struct delayed *heap;
    size_t n, cap;
};

static int64_t now_ns(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* --- what becomes of an attempt ------------------------------------------ */

/* A number in [0, 1) that is the same for an attempt in every run (the
 * finaliser of splitmix64 over its name). */
static double draw(const struct attempt *attempt, uint64_t salt)
{
    uint64_t x = bytes_get_be64(attempt->identity) ^
                 bytes_get_be64(attempt->identity + 8) ^
                 ((uint64_t)attempt->number * 0x9e3779b97f4a7c15U) ^ salt;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-53;
}

static void finish(const struct noop_handler *handler, struct attempt *attempt,
                   int64_t took_ns)
{
    bool fails = draw(attempt, 1) < handler->options.fail;
    int len;

    attempt->end = END_STATUS;
    attempt->status = fails ? 503 : 200;
    attempt->retry_after_ms = -1;
    attempt->code[0] = '\0';
    attempt->took_ms = took_ns / NS_PER_MS;
    len = snprintf(attempt->text, sizeof attempt->text, "status %d",
                   attempt->status);
    CHECK(len > 0);
    attempt_finish(attempt);
}

static int64_t delay_ns(const struct noop_handler *handler,
                        const struct attempt *attempt)
{
    int64_t min = handler->options.min_delay_ms * NS_PER_MS;
    int64_t span = handler->options.max_delay_ms * NS_PER_MS - min;

    return min + (int64_t)((double)span * draw(attempt, 2));
}

/* --- the heap ------------------------------------------------------------ */

static void swap(struct delayed *a, struct delayed *b)
{
    struct delayed other = *a;

    *a = *b;
    *b = other;
}

static void heap_push(struct noop_handler *handler, struct delayed item)
{
    size_t at = handler->n;

    if (handler->n == handler->cap) {
        handler->cap = handler->cap == 0 ? 64 : 2 * handler->cap;
        handler->heap =
            mem_grow(handler->heap, handler->cap, sizeof handler->heap[0]);
    }
    handler->heap[handler->n++] = item;
    while (at > 0 &&
           handler->heap[(at - 1) / 2].due_ns > handler->heap[at].due_ns) {
        swap(&handler->heap[(at - 1) / 2], &handler->heap[at]);
        at = (at - 1) / 2;
    }
}

static struct delayed heap_pop(struct noop_handler *handler)
{
    struct delayed *heap = handler->heap;
    struct delayed first = heap[0];
    size_t at = 0;

    CHECK(handler->n > 0);
    heap[0] = heap[--handler->n];
    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < handler->n &&
            heap[child + 1].due_ns < heap[child].due_ns) {
            child++;
        }
        if (child >= handler->n || heap[child].due_ns >= heap[at].due_ns) {
            return first;
        }
        swap(&heap[child], &heap[at]);
        at = child;
    }
}

/* --- the thread ---------------------------------------------------------- */

static void wait_for_change(struct noop_handler *handler)
{
    struct timespec until;
    int64_t due_ns;

    if (handler->n == 0) {
        CHECK(pthread_cond_wait(&handler->changed, &handler->lock) == 0);
        return;
    }
    due_ns = handler->heap[0].due_ns;
    until.tv_sec = (time_t)(due_ns / NS_PER_S);
    until.tv_nsec = (long)(due_ns % NS_PER_S);
    /* Whether it was the time or a change: the heap is looked at anew. */
    (void)pthread_cond_timedwait(&handler->changed, &handler->lock, &until);
}

static void *run(void *self)
{
    struct noop_handler *handler = self;

    CHECK(pthread_mutex_lock(&handler->lock) == 0);
    while (!handler->is_stopped) {
        if (handler->n > 0 && handler->heap[0].due_ns <= now_ns()) {
            struct delayed item = heap_pop(handler);

            CHECK(pthread_mutex_unlock(&handler->lock) == 0);
            finish(handler, item.attempt, item.delay_ns);
            CHECK(pthread_mutex_lock(&handler->lock) == 0);
        } else {
            wait_for_change(handler);
        }
    }
    CHECK(pthread_mutex_unlock(&handler->lock) == 0);
    return NULL;
}

/* --- the port ------------------------------------------------------------ */

static bool delay(struct noop_handler *handler, struct attempt *attempt)
{
    int64_t ns = delay_ns(handler, attempt);
    struct delayed item = {now_ns() + ns, ns, attempt};
    bool is_taken;

    CHECK(pthread_mutex_lock(&handler->lock) == 0);
    is_taken = !handler->is_stopped;
    if (is_taken) {
        heap_push(handler, item);
        CHECK(pthread_cond_signal(&handler->changed) == 0);
    }
    CHECK(pthread_mutex_unlock(&handler->lock) == 0);
    return is_taken;
}

static void noop_start(void *self, struct attempt *attempt)
{
    struct noop_handler *handler = self;

    if (handler->options.max_delay_ms == 0) {
        finish(handler, attempt, 0);
    } else if (!delay(handler, attempt)) {
        backlog_refuse(attempt);
    }
}

static void noop_stop(void *self)
{
    struct noop_handler *handler = self;

    CHECK(pthread_mutex_lock(&handler->lock) == 0);
    handler->is_stopped = true;
    CHECK(pthread_cond_signal(&handler->changed) == 0);
    CHECK(pthread_mutex_unlock(&handler->lock) == 0);
    if (!handler->has_thread) {
        return;
    }
    CHECK(pthread_join(handler->thread, NULL) == 0);
    handler->has_thread = false;
    while (handler->n > 0) {
        backlog_refuse(heap_pop(handler).attempt);
    }
}

static void noop_free(void *self)
{
    struct noop_handler *handler = self;

    noop_stop(handler);
    CHECK(handler->n == 0);
    CHECK(pthread_cond_destroy(&handler->changed) == 0);
    CHECK(pthread_mutex_destroy(&handler->lock) == 0);
    free(handler->heap);
    free(handler);
}

static const struct handler_ops ops = {
    .start = noop_start,
    .stop = noop_stop,
    .free = noop_free,
};

static void init_waiting(struct noop_handler *handler)
{
    pthread_condattr_t attributes;

    CHECK(pthread_mutex_init(&handler->lock, NULL) == 0);
    CHECK(pthread_condattr_init(&attributes) == 0);
    CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&handler->changed, &attributes) == 0);
    CHECK(pthread_condattr_destroy(&attributes) == 0);
}

bool noop_handler_new(struct handler *out,
                      const struct noop_handler_options *options,
                      struct err *err)
{
    struct noop_handler *handler = mem_new(1, sizeof *handler);

    CHECK(options->min_delay_ms >= 0);
    CHECK(options->max_delay_ms >= options->min_delay_ms);
    handler->options = *options;
    init_waiting(handler);
    if (options->max_delay_ms > 0) {
        handler->has_thread = thread_start(&handler->thread, run, handler, err);
        if (!handler->has_thread) {
            noop_free(handler);
            return false;
        }
    }
    *out = (struct handler){&ops, handler};
    return true;
}
