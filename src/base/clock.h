/* SPDX-License-Identifier: MIT */
/*
 * The time seam. Everything that needs a time is given one, or is given a
 * clock; only clock_system() asks the kernel. A simulator brings its own.
 *
 * Names end in _wall_ms (milliseconds since 1970, may jump) or _boot_ms
 * (CLOCK_BOOTTIME, only forward); the two are never mixed.
 */
#ifndef ONCED_BASE_CLOCK_H
#define ONCED_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    int64_t (*wall_ms)(void *self);
    int64_t (*boot_ms)(void *self);
    void *self;
};

/* The kernel's clocks; any thread, never fails. */
const struct clock *clock_system(void);

int64_t clock_wall_ms(const struct clock *clock);
int64_t clock_boot_ms(const struct clock *clock);

#endif
