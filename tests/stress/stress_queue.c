/* SPDX-License-Identifier: MIT */
/*
 * Several producers and one consumer on one queue, under ThreadSanitizer:
 * every item arrives once, in the order of its producer, within the room.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/check.h"
#include "base/queue.h"

enum {
    PRODUCERS = 4,
    ITEMS_EACH = 50000,
    ROOM = 64,
    RESERVED = 16,
    ITEM_BYTES = 10,
    ROOM_BYTES = 400,
    BATCH = 50,
    BATCH_BYTES = 300,
    LOST_AFTER_MS = 10000,
};

struct message {
    struct queue_item item; /* first */
    int producer;
    int number;
};

struct producer {
    pthread_t thread;
    int id;
    struct message messages[ITEMS_EACH];
};

static struct producer producers[PRODUCERS];
static struct queue *queue;
static atomic_int refusals;

static void *produce(void *arg)
{
    struct producer *self = arg;
    enum queue_class class =
        self->id % 2 == 0 ? QUEUE_ORDINARY : QUEUE_RESERVED;

    for (int i = 0; i < ITEMS_EACH; i++) {
        struct message *message = &self->messages[i];

        message->item.cost_bytes = ITEM_BYTES;
        message->producer = self->id;
        message->number = i;
        while (!queue_push(queue, &message->item, class)) {
            atomic_fetch_add(&refusals, 1);
            sched_yield();
        }
        if (i % 97 == 0) {
            queue_wake(queue);
        }
    }
    return NULL;
}

/* Returns the number of items in the batch. */
static int look_at(const struct queue_item *item, int next[PRODUCERS])
{
    int n = 0;

    for (; item != NULL; item = item->next) {
        const struct message *message = (const struct message *)item;

        CHECK(message->number == next[message->producer]);
        next[message->producer]++;
        n++;
    }
    return n;
}

static void consume(void)
{
    int next[PRODUCERS] = {0};
    int left = PRODUCERS * ITEMS_EACH;

    while (left > 0) {
        int n = look_at(queue_drain(queue, BATCH, BATCH_BYTES, LOST_AFTER_MS),
                        next);

        CHECK(n <= BATCH);
        CHECK(n * ITEM_BYTES <= BATCH_BYTES);
        CHECK(queue_length(queue) <= ROOM + RESERVED);
        left -= n;
    }
    for (int i = 0; i < PRODUCERS; i++) {
        CHECK(next[i] == ITEMS_EACH);
    }
}

int main(void)
{
    const struct queue_options options = {
        .max_items = ROOM,
        .max_bytes = ROOM_BYTES,
        .reserved_items = RESERVED,
    };

    queue = queue_new(&options);
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i].id = i;
        CHECK(pthread_create(&producers[i].thread, NULL, produce,
                             &producers[i]) == 0);
    }
    consume();
    for (int i = 0; i < PRODUCERS; i++) {
        CHECK(pthread_join(producers[i].thread, NULL) == 0);
    }
    CHECK(queue_length(queue) == 0);
    queue_free(queue);
    printf("stress_queue: %d items, %d refusals\n", PRODUCERS * ITEMS_EACH,
           atomic_load(&refusals));
    return 0;
}
