/* SPDX-License-Identifier: MIT */
#include "base/queue.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

enum { ROOM = 4, RESERVED = 2, ITEMS = 16, NO_LIMIT_MS = -1 };

static struct queue *queue;
static struct queue_item items[ITEMS];

static void set_up(void)
{
    const struct queue_options options = {
        .max_items = ROOM,
        .max_bytes = 100,
        .reserved_items = RESERVED,
    };

    queue = queue_new(&options);
}

static void empty(void)
{
    while (queue_drain(queue, ITEMS, SIZE_MAX, 0) != NULL) {
    }
}

static void tear_down(void)
{
    empty();
    queue_free(queue);
}

TestSuite(queue, .init = set_up, .fini = tear_down, .timeout = 20);

static bool push(int i, size_t cost_bytes, enum queue_class class)
{
    items[i].cost_bytes = cost_bytes;
    return queue_push(queue, &items[i], class);
}

/* The numbers of the items in the list, as decimal digits: 012 is 12. */
static int numbers(const struct queue_item *item)
{
    int digits = 0;

    for (; item != NULL; item = item->next) {
        digits = digits * 10 + (int)(item - items);
    }
    return digits;
}

Test(queue, items_come_out_in_order_of_arrival)
{
    cr_assert(push(1, 1, QUEUE_ORDINARY));
    cr_assert(push(2, 1, QUEUE_RESERVED));
    cr_assert(push(3, 1, QUEUE_ORDINARY));
    cr_assert_eq(queue_length(queue), 3);
    cr_assert_eq(numbers(queue_drain(queue, ITEMS, SIZE_MAX, 0)), 123);
    cr_assert_eq(queue_length(queue), 0);
    cr_assert(push(4, 1, QUEUE_ORDINARY));
    cr_assert_eq(numbers(queue_drain(queue, ITEMS, SIZE_MAX, 0)), 4);
    cr_assert_null(queue_drain(queue, ITEMS, SIZE_MAX, 0));
}

Test(queue, ordinary_items_are_refused_when_their_room_is_used_up)
{
    for (int i = 0; i < ROOM; i++) {
        cr_assert(push(i, 0, QUEUE_ORDINARY), "item %d", i);
    }
    cr_assert_not(push(ROOM, 0, QUEUE_ORDINARY));
    cr_assert_eq(queue_length(queue), ROOM);
    cr_assert_not_null(queue_drain(queue, 1, SIZE_MAX, 0));
    cr_assert(push(ROOM, 0, QUEUE_ORDINARY));
}

Test(queue, reserved_items_get_in_behind_a_flood_of_ordinary_ones)
{
    for (int i = 0; i < ROOM; i++) {
        cr_assert(push(i, 25, QUEUE_ORDINARY));
    }
    cr_assert(push(4, 1000, QUEUE_RESERVED));
    cr_assert_not(push(9, 0, QUEUE_ORDINARY));
    cr_assert(push(5, 1000, QUEUE_RESERVED));
    cr_assert_not(push(6, 1, QUEUE_RESERVED));
    cr_assert_eq(queue_length(queue), ROOM + RESERVED);
}

Test(queue, reserved_items_use_the_ordinary_room_first)
{
    for (int i = 0; i < ROOM; i++) {
        cr_assert(push(i, 1, QUEUE_RESERVED));
    }
    cr_assert_not(push(4, 1, QUEUE_ORDINARY));
    cr_assert(push(4, 1, QUEUE_RESERVED));
    cr_assert(push(5, 1, QUEUE_RESERVED));
    cr_assert_not(push(6, 1, QUEUE_RESERVED));
}

Test(queue, an_item_over_all_bytes_gets_in_alone)
{
    cr_assert(push(0, 0, QUEUE_RESERVED));
    cr_assert_not(push(1, 101, QUEUE_ORDINARY));
    empty();
    cr_assert(push(1, 101, QUEUE_ORDINARY));
    cr_assert_not(push(2, 0, QUEUE_ORDINARY));
    cr_assert(push(3, 1, QUEUE_RESERVED));
}

Test(queue, bytes_bound_ordinary_items_exactly)
{
    cr_assert(push(0, 60, QUEUE_ORDINARY));
    cr_assert_not(push(1, 41, QUEUE_ORDINARY));
    cr_assert_not(push(1, SIZE_MAX, QUEUE_ORDINARY));
    cr_assert(push(1, 40, QUEUE_ORDINARY));
    cr_assert_not(push(2, 1, QUEUE_ORDINARY));
    cr_assert(push(2, 0, QUEUE_ORDINARY));
}

Test(queue, bytes_of_reserved_items_count_for_ordinary_ones)
{
    cr_assert(push(0, 150, QUEUE_RESERVED));
    cr_assert_not(push(1, 0, QUEUE_ORDINARY));
    cr_assert_eq(numbers(queue_drain(queue, 1, 0, 0)), 0);
    cr_assert(push(1, 100, QUEUE_ORDINARY));
}

Test(queue, a_drain_stops_at_its_limits_but_takes_one_item_always)
{
    const struct {
        size_t max_items;
        size_t max_bytes;
        int want;
    } rows[] = {
        {1, SIZE_MAX, 1}, {2, SIZE_MAX, 12}, {4, SIZE_MAX, 1234}, {4, 10, 1},
        {4, 9, 1},        {4, 0, 1},         {4, 29, 1},          {4, 30, 12},
        {4, 35, 123},     {4, 54, 123},      {4, 55, 1234},       {3, 55, 123},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int got;

        empty();
        cr_assert(push(1, 10, QUEUE_ORDINARY));
        cr_assert(push(2, 20, QUEUE_ORDINARY));
        cr_assert(push(3, 5, QUEUE_ORDINARY));
        cr_assert(push(4, 20, QUEUE_ORDINARY));
        got = numbers(
            queue_drain(queue, rows[i].max_items, rows[i].max_bytes, 0));
        cr_assert_eq(got, rows[i].want, "row %zu: got %d", i, got);
    }
}

Test(queue, what_a_drain_left_comes_next)
{
    for (int i = 1; i <= 4; i++) {
        cr_assert(push(i, 10, QUEUE_ORDINARY));
    }
    cr_assert_eq(numbers(queue_drain(queue, 3, 20, 0)), 12);
    cr_assert_eq(queue_length(queue), 2);
    cr_assert(push(5, 80, QUEUE_ORDINARY));
    cr_assert_not(push(6, 1, QUEUE_ORDINARY));
    cr_assert_eq(numbers(queue_drain(queue, 3, 1000, 0)), 345);
}

Test(queue, a_closed_queue_refuses_ordinary_items_only)
{
    cr_assert(push(1, 1, QUEUE_ORDINARY));
    queue_close(queue);
    cr_assert_not(push(2, 1, QUEUE_ORDINARY));
    cr_assert(push(3, 1, QUEUE_RESERVED));
    cr_assert_eq(numbers(queue_drain(queue, ITEMS, SIZE_MAX, NO_LIMIT_MS)), 13);
}

Test(queue, a_wake_before_the_wait_ends_it)
{
    queue_wake(queue);
    cr_assert_null(queue_drain(queue, 1, 1, NO_LIMIT_MS));
}

Test(queue, a_wake_is_kept_by_a_drain_that_does_not_wait)
{
    queue_wake(queue);
    cr_assert_null(queue_drain(queue, 1, 1, 0));
    cr_assert(push(1, 1, QUEUE_ORDINARY));
    cr_assert_eq(numbers(queue_drain(queue, 1, 1, NO_LIMIT_MS)), 1);
    cr_assert_null(queue_drain(queue, 1, 1, NO_LIMIT_MS));
}

static int64_t mono_ms(void)
{
    struct timespec now;

    cr_assert_eq(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

Test(queue, a_wake_ends_one_wait_only)
{
    int64_t start_ms;

    queue_wake(queue);
    queue_wake(queue);
    cr_assert_null(queue_drain(queue, 1, 1, NO_LIMIT_MS));
    start_ms = mono_ms();
    cr_assert_null(queue_drain(queue, 1, 1, 30));
    cr_assert_geq(mono_ms() - start_ms, 29);
}

static void *push_one(void *arg)
{
    (void)arg;
    return push(7, 1, QUEUE_RESERVED) ? &items[7] : NULL;
}

static void *wake(void *arg)
{
    (void)arg;
    queue_wake(queue);
    return NULL;
}

Test(queue, another_thread_ends_a_wait)
{
    pthread_t thread;
    void *pushed;

    cr_assert_eq(pthread_create(&thread, NULL, push_one, NULL), 0);
    cr_assert_eq(numbers(queue_drain(queue, 1, 1, NO_LIMIT_MS)), 7);
    cr_assert_eq(pthread_join(thread, &pushed), 0);
    cr_assert_not_null(pushed);
    cr_assert_eq(pthread_create(&thread, NULL, wake, NULL), 0);
    cr_assert_null(queue_drain(queue, 1, 1, INT64_MAX));
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(queue, free_takes_null)
{
    queue_free(NULL);
}

Test(queue, freeing_a_queue_that_holds_items_aborts, .signal = SIGABRT)
{
    cr_assert(push(1, 1, QUEUE_ORDINARY));
    queue_free(queue);
}
