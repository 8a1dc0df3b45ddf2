/* SPDX-License-Identifier: MIT */
/*
 * `onced run`: puts the parts together, runs them, and takes them apart in
 * order. The calling thread becomes the one that waits for signals; the
 * engine gets a thread of its own.
 *
 * SIGTERM or SIGINT: intake stops, attempts may end within shutdown_timeout,
 * what they answered is committed, consumers commit their last offsets, the
 * store is closed. A consumer that cannot go on ends the worker in the same
 * way (ERR_AGAIN). A second signal, or the deadline with an attempt that will
 * not end, exits at once: recovery at the next start sorts it out.
 */
#ifndef ONCED_APP_WORKER_H
#define ONCED_APP_WORKER_H

#include <stdbool.h>

#include "app/config.h"
#include "base/err.h"

/* Returns when the worker has ended in order. A failing store ends the
 * process from within: nothing may be acknowledged any more. */
bool worker_run(const struct config *config, struct err *err) MUST_CHECK;

#endif
