/* SPDX-License-Identifier: MIT */
#include "base/check.h"
#include "core/record.h"

int64_t backoff_ms(const struct policy *policy, uint32_t n, uint32_t random)
{
    int64_t max_ms = policy->max_backoff_ms;
    int64_t delay_ms =
        policy->backoff_ms < max_ms ? policy->backoff_ms : max_ms;
    int64_t spread_ms;

    CHECK(delay_ms >= 0);
    CHECK(max_ms <= INT64_MAX / 4); /* so that no sum below overflows */
    CHECK(policy->jitter_permille <= 1000);
    for (; n > 0 && delay_ms > 0 && delay_ms < max_ms; n--) {
        delay_ms = delay_ms > max_ms / 2 ? max_ms : delay_ms * 2;
    }
    /* By parts, so that no delay is too long to be multiplied. */
    spread_ms = delay_ms / 1000 * policy->jitter_permille +
                delay_ms % 1000 * policy->jitter_permille / 1000;
    return delay_ms - spread_ms + random % (2 * spread_ms + 1);
}
