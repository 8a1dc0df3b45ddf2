/* SPDX-License-Identifier: MIT */
#include "base/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/bytes.h"
#include "base/check.h"

struct queue {
    struct queue_options options;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t changed;
    struct queue_item *first;
    struct queue_item **end; /* where the next item is linked */
    size_t items;
    size_t bytes;
    bool waiting; /* the consumer is in a wait and not yet signalled */
    bool woken;   /* queue_wake was called and has ended no wait yet */
    bool closed;
};

struct queue *queue_new(const struct queue_options *options)
{
    struct queue *queue = mem_new(1, sizeof *queue);
    pthread_condattr_t attr;

    CHECK(options->max_items > 0);
    CHECK(options->reserved_items <= SIZE_MAX - options->max_items);
    queue->options = *options;
    queue->end = &queue->first;
    CHECK(pthread_condattr_init(&attr) == 0);
    CHECK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&queue->changed, &attr) == 0);
    CHECK(pthread_condattr_destroy(&attr) == 0);
    CHECK(pthread_mutex_init(&queue->lock, NULL) == 0);
    return queue;
}

void queue_free(struct queue *queue)
{
    if (queue == NULL) {
        return;
    }
    CHECK(queue->items == 0);
    CHECK(!queue->waiting);
    CHECK(pthread_cond_destroy(&queue->changed) == 0);
    CHECK(pthread_mutex_destroy(&queue->lock) == 0);
    free(queue);
}

static void lock(struct queue *queue)
{
    CHECK(pthread_mutex_lock(&queue->lock) == 0);
}

static void unlock(struct queue *queue)
{
    CHECK(pthread_mutex_unlock(&queue->lock) == 0);
}

/* A thread that does not sleep costs no system call to wake. */
static void signal_consumer(struct queue *queue)
{
    if (queue->waiting) {
        queue->waiting = false;
        CHECK(pthread_cond_signal(&queue->changed) == 0);
    }
}

/* Reserved items use the ordinary room first, as all items do, and then
 * what is kept for them on top; bytes never keep them out. */
static bool has_room(const struct queue *queue, size_t cost_bytes,
                     enum queue_class class)
{
    const struct queue_options *options = &queue->options;

    if (class == QUEUE_RESERVED) {
        return queue->items < options->max_items + options->reserved_items;
    }
    if (queue->closed || queue->items >= options->max_items) {
        return false;
    }
    return queue->items == 0 ||
           (queue->bytes <= options->max_bytes &&
            cost_bytes <= options->max_bytes - queue->bytes);
}

bool queue_push(struct queue *queue, struct queue_item *item,
                enum queue_class class)
{
    bool taken;

    lock(queue);
    taken = has_room(queue, item->cost_bytes, class);
    if (taken) {
        CHECK(item->cost_bytes <= SIZE_MAX - queue->bytes);
        item->next = NULL;
        *queue->end = item;
        queue->end = &item->next;
        queue->items++;
        queue->bytes += item->cost_bytes;
        signal_consumer(queue);
    }
    unlock(queue);
    return taken;
}

static struct timespec deadline_in(int64_t timeout_ms)
{
    struct timespec at;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &at) == 0);
    at.tv_sec += timeout_ms / 1000;
    at.tv_nsec += (timeout_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* Until something is there, somebody calls queue_wake, or it is time. */
static void wait_for_change(struct queue *queue, int64_t timeout_ms)
{
    struct timespec deadline = {0, 0};
    int result = 0;

    if (timeout_ms > 0) {
        deadline = deadline_in(timeout_ms);
    }
    while (queue->first == NULL && !queue->woken && result != ETIMEDOUT) {
        queue->waiting = true;
        if (timeout_ms < 0) {
            result = pthread_cond_wait(&queue->changed, &queue->lock);
        } else {
            result = pthread_cond_timedwait(&queue->changed, &queue->lock,
                                            &deadline);
        }
        CHECK(result == 0 || result == ETIMEDOUT);
    }
    queue->waiting = false;
    queue->woken = false;
}

static struct queue_item *take_all(struct queue *queue)
{
    struct queue_item *taken = queue->first;

    queue->first = NULL;
    queue->end = &queue->first;
    queue->items = 0;
    queue->bytes = 0;
    return taken;
}

static struct queue_item *take_some(struct queue *queue, size_t max_items,
                                    size_t max_bytes)
{
    struct queue_item *taken = queue->first;
    struct queue_item *last = taken;
    size_t items = 1;
    size_t bytes;

    CHECK(taken != NULL);
    bytes = taken->cost_bytes;
    while (items < max_items && last->next != NULL && bytes <= max_bytes &&
           last->next->cost_bytes <= max_bytes - bytes) {
        last = last->next;
        items++;
        bytes += last->cost_bytes;
    }
    if (last->next == NULL) {
        return take_all(queue);
    }
    queue->first = last->next;
    queue->items -= items;
    queue->bytes -= bytes;
    last->next = NULL;
    return taken;
}

struct queue_item *queue_drain(struct queue *queue, size_t max_items,
                               size_t max_bytes, int64_t timeout_ms)
{
    struct queue_item *taken = NULL;

    CHECK(max_items > 0);
    lock(queue);
    if (queue->first == NULL && timeout_ms != 0) {
        wait_for_change(queue, timeout_ms);
    }
    /* The usual case holds the lock for a moment, not for a walk. */
    if (queue->items <= max_items && queue->bytes <= max_bytes) {
        taken = take_all(queue);
    } else {
        taken = take_some(queue, max_items, max_bytes);
    }
    unlock(queue);
    return taken;
}

void queue_wake(struct queue *queue)
{
    lock(queue);
    queue->woken = true;
    signal_consumer(queue);
    unlock(queue);
}

void queue_close(struct queue *queue)
{
    lock(queue);
    queue->closed = true;
    unlock(queue);
}

size_t queue_length(struct queue *queue)
{
    size_t items;

    lock(queue);
    items = queue->items;
    unlock(queue);
    return items;
}
