/* SPDX-License-Identifier: MIT */
/*
 * A bounded queue from many threads to one. Items are intrusive, so that a
 * push never allocates. Bounded in items and in bytes; part of the room is
 * reserved, so that a flood of ordinary items cannot keep out the few that
 * free what the flood waits for.
 */
#ifndef ONCED_BASE_QUEUE_H
#define ONCED_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_item {
    struct queue_item *next;
    size_t cost_bytes;
    int kind; /* the user's own tag; the queue does not look at it */
};

enum queue_class {
    QUEUE_ORDINARY, /* refused when the ordinary room is used up */
    QUEUE_RESERVED, /* refused only when the reserved room is, too */
};

/* All items use the ordinary room, reserved ones what is on top as well. The
 * bytes of all items count, but keep out ordinary ones only; an ordinary item
 * over max_bytes gets in when nothing else is there, so that it does get in. */
struct queue_options {
    size_t max_items; /* ordinary room */
    size_t max_bytes;
    size_t reserved_items; /* on top of it, for QUEUE_RESERVED alone */
};

struct queue;

/* An empty queue; the options are copied. */
struct queue *queue_new(const struct queue_options *options);

/* Must be empty, and no thread may use it any more; NULL is fine. */
void queue_free(struct queue *queue);

/* Any thread. False when there is no room, or after queue_close for
 * ordinary items; the item then stays the caller's. */
bool queue_push(struct queue *queue, struct queue_item *item,
                enum queue_class class);

/* The consumer only. Waits until an item is there, queue_wake was called or
 * `timeout_ms` passed (< 0: no limit, 0: does not wait). Takes at most
 * `max_items`, and stops before an item that would go over `max_bytes`
 * unless it is the first. Returns the items in order of arrival. */
struct queue_item *queue_drain(struct queue *queue, size_t max_items,
                               size_t max_bytes, int64_t timeout_ms);

/* Any thread: ends a wait, or the next one. */
void queue_wake(struct queue *queue);

/* Any thread: from here on ordinary items are refused. */
void queue_close(struct queue *queue);

/* Any thread: items waiting now. */
size_t queue_length(struct queue *queue);

#endif
