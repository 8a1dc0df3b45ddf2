/* SPDX-License-Identifier: MIT */
#include "handler/noop.h"

#include <criterion/criterion.h>

#include "support/attempts.h"

static struct handler new_handler(int64_t min_ms, int64_t max_ms, double fail)
{
    const struct noop_handler_options options = {min_ms, max_ms, fail};
    struct handler handler;
    struct err err = {0};

    cr_assert(noop_handler_new(&handler, &options, &err), "%s", err.text);
    return handler;
}

static void free_handler(struct handler *handler)
{
    handler->ops->stop(handler->self);
    handler->ops->free(handler->self);
}

Test(noop_handler, without_a_delay_it_finishes_inside_start)
{
    struct handler handler = new_handler(0, 0, 0);
    struct test_attempt *t = attempt_new("x");

    handler.ops->start(handler.self, &t->attempt);
    cr_assert(t->is_finished);
    cr_assert_eq(t->attempt.end, END_STATUS);
    cr_assert_eq(t->attempt.status, 200);
    cr_assert_eq(t->attempt.retry_after_ms, -1);
    cr_assert_eq(t->attempt.result.len, 0);
    cr_assert_str_eq(t->attempt.text, "status 200");
    free_handler(&handler);
    attempt_free(t);
}

static size_t count_failures(double fail)
{
    struct handler handler = new_handler(0, 0, fail);
    size_t n = 0;

    for (uint32_t i = 1; i <= 4000; i++) {
        struct test_attempt *t = attempt_new("x");

        t->attempt.number = i;
        handler.ops->start(handler.self, &t->attempt);
        cr_assert(t->attempt.status == 200 || t->attempt.status == 503);
        n += t->attempt.status == 503 ? 1 : 0;
        attempt_free(t);
    }
    free_handler(&handler);
    return n;
}

Test(noop_handler, the_share_that_fails_is_the_one_asked_for)
{
    size_t n = count_failures(0.25);

    cr_assert_eq(count_failures(0), 0);
    cr_assert_eq(count_failures(1), 4000);
    /* 1000 expected; 27 is one standard deviation */
    cr_assert(n > 850 && n < 1150, "%zu", n);
    cr_assert_eq(count_failures(0.25), n); /* the same in every run */
}

Test(noop_handler, delays_are_within_their_bounds)
{
    enum { N = 200 };
    struct handler handler = new_handler(1, 20, 0);
    struct test_attempt *all[N];
    int64_t min = 1000;
    int64_t max = 0;

    for (uint32_t i = 0; i < N; i++) {
        all[i] = attempt_new("x");
        all[i]->attempt.number = i + 1;
        handler.ops->start(handler.self, &all[i]->attempt);
    }
    for (uint32_t i = 0; i < N; i++) {
        cr_assert(attempt_wait(all[i]));
        cr_assert_eq(all[i]->attempt.status, 200);
        min = all[i]->attempt.took_ms < min ? all[i]->attempt.took_ms : min;
        max = all[i]->attempt.took_ms > max ? all[i]->attempt.took_ms : max;
        attempt_free(all[i]);
    }
    cr_assert_geq(min, 1);
    cr_assert_leq(max, 20);
    cr_assert_lt(min, 5);
    cr_assert_gt(max, 15);
    free_handler(&handler);
}

Test(noop_handler, stop_ends_what_waits)
{
    struct handler handler = new_handler(600000, 600000, 0);
    struct test_attempt *waits = attempt_new("x");
    struct test_attempt *late = attempt_new("x");

    handler.ops->start(handler.self, &waits->attempt);
    handler.ops->stop(handler.self);
    cr_assert(waits->is_finished);
    cr_assert_eq(waits->attempt.end, END_UNREACHED);
    handler.ops->start(handler.self, &late->attempt);
    cr_assert(late->is_finished);
    cr_assert_eq(late->attempt.end, END_UNREACHED);
    handler.ops->free(handler.self);
    attempt_free(waits);
    attempt_free(late);
}
