/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "core/record.h"

static struct policy policy_of(int64_t base_ms, int64_t max_ms, uint32_t jitter)
{
    return (struct policy){.backoff_ms = base_ms,
                           .max_backoff_ms = max_ms,
                           .jitter_permille = jitter};
}

Test(backoff, it_doubles_from_the_base_to_the_maximum)
{
    static const int64_t expected_ms[] = {1000, 2000, 4000, 8000, 9000, 9000};
    struct policy policy = policy_of(1000, 9000, 0);

    for (uint32_t n = 0; n < 6; n++) {
        cr_expect_eq(backoff_ms(&policy, n, 12345), expected_ms[n]);
    }
    cr_expect_eq(backoff_ms(&policy, UINT32_MAX, 0), 9000);
}

Test(backoff, the_jitter_spreads_both_ways_and_reaches_both_ends)
{
    struct policy policy = policy_of(1000, 600000, 200);
    int64_t least_ms = INT64_MAX, most_ms = 0;

    for (uint32_t random = 0; random < 10000; random++) {
        int64_t delay_ms = backoff_ms(&policy, 1, random * 2654435761U);

        least_ms = delay_ms < least_ms ? delay_ms : least_ms;
        most_ms = delay_ms > most_ms ? delay_ms : most_ms;
    }
    cr_expect_eq(least_ms, 1600);
    cr_expect_eq(most_ms, 2400);
}

Test(backoff, a_base_above_the_maximum_is_the_maximum)
{
    struct policy policy = policy_of(5000, 3000, 0);

    cr_expect_eq(backoff_ms(&policy, 0, 0), 3000);
    cr_expect_eq(backoff_ms(&policy, 7, 0), 3000);
}

Test(backoff, no_base_is_no_delay)
{
    struct policy policy = policy_of(0, 3000, 1000);

    cr_expect_eq(backoff_ms(&policy, UINT32_MAX, 77), 0);
}

Test(backoff, the_longest_delays_do_not_overflow)
{
    struct policy policy = policy_of(INT64_MAX / 4, INT64_MAX / 4, 1000);

    cr_expect_geq(backoff_ms(&policy, 3, UINT32_MAX), 0);
    policy = policy_of(1, INT64_MAX / 4, 0);
    cr_expect_eq(backoff_ms(&policy, 60, 0), INT64_C(1) << 60);
    cr_expect_eq(backoff_ms(&policy, 61, 0), INT64_MAX / 4);
}
