/* SPDX-License-Identifier: MIT */
/*
 * The noop handler: succeeds at once, or as told, for benchmarks, tests and
 * dry runs. Without a delay it finishes on the engine's own thread.
 */
#ifndef ONCED_HANDLER_NOOP_H
#define ONCED_HANDLER_NOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/port.h"

struct noop_handler_options {
    int64_t min_delay_ms, max_delay_ms;
    double fail; /* share of attempts that end with status 503, 0 to 1 */
};

bool noop_handler_new(struct handler *out,
                      const struct noop_handler_options *options,
                      struct err *err) MUST_CHECK;

#endif
