/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <stddef.h>
#include <time.h>

#include "base/check.h"

static int64_t read_ms(clockid_t id)
{
    struct timespec now;

    CHECK(clock_gettime(id, &now) == 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t system_wall_ms(void *self)
{
    (void)self;
    return read_ms(CLOCK_REALTIME);
}

static int64_t system_boot_ms(void *self)
{
    (void)self;
    return read_ms(CLOCK_BOOTTIME);
}

const struct clock *clock_system(void)
{
    static const struct clock system = {
        .wall_ms = system_wall_ms,
        .boot_ms = system_boot_ms,
        .self = NULL,
    };

    return &system;
}

int64_t clock_wall_ms(const struct clock *clock)
{
    return clock->wall_ms(clock->self);
}

int64_t clock_boot_ms(const struct clock *clock)
{
    return clock->boot_ms(clock->self);
}
