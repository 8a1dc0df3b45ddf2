/* SPDX-License-Identifier: MIT */
/*
 * The exec handler: one process per attempt (posix_spawn), the body on its
 * standard input, the rest in a clean environment, its standard output the
 * result. It runs in its own process group and holds a locked lease file,
 * `<lease_dir>/<route>.<n>`, as descriptor 3: an orphan keeps the lease busy,
 * so that nobody takes it for dead. One thread serves all attempts of the
 * handler. What programs may rely on is in include/onced/handler.h.
 */
#ifndef ONCED_HANDLER_EXEC_H
#define ONCED_HANDLER_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/port.h"

struct exec_handler_options {
    const char *const *command; /* argv, NULL-ended; no shell */
    const char *cwd;
    const char *const *environment; /* "NAME=value" of the route, NULL-ended */
    const char *lease_dir; /* `<store>/lease`; made where it is missing */
    const char *route;
    uint32_t concurrency;
    uint64_t max_result_bytes; /* of stdout; more is drained and dropped */
};

/* Copies the options; looks command[0] up. */
bool exec_handler_new(struct handler *out,
                      const struct exec_handler_options *options,
                      struct err *err) MUST_CHECK;

#endif
