/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <criterion/criterion.h>
#include <time.h>

static int64_t kernel_ms(clockid_t id)
{
    struct timespec now;

    cr_assert_eq(clock_gettime(id, &now), 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

Test(clock, boot_time_is_the_kernels)
{
    int64_t before = kernel_ms(CLOCK_BOOTTIME);
    int64_t got = clock_boot_ms(clock_system());

    cr_assert_leq(before, got);
    cr_assert_leq(got, kernel_ms(CLOCK_BOOTTIME));
}

Test(clock, wall_time_is_milliseconds_since_1970)
{
    int64_t before = kernel_ms(CLOCK_REALTIME);
    int64_t got = clock_wall_ms(clock_system());

    cr_assert_lt(got - before, 60000);
    cr_assert_gt(got - before, -60000);
}

static int64_t fixed_wall_ms(void *self)
{
    return *(const int64_t *)self;
}

static int64_t fixed_boot_ms(void *self)
{
    return *(const int64_t *)self + 1;
}

Test(clock, a_callers_clock_is_asked_with_its_own_state)
{
    int64_t now = 1234;
    const struct clock clock = {fixed_wall_ms, fixed_boot_ms, &now};

    cr_assert_eq(clock_wall_ms(&clock), 1234);
    cr_assert_eq(clock_boot_ms(&clock), 1235);
    now = 5678;
    cr_assert_eq(clock_wall_ms(&clock), 5678);
    cr_assert_eq(clock_boot_ms(&clock), 5679);
}
