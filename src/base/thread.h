/* SPDX-License-Identifier: MIT */
/*
 * Threads of ours: they take no signal, so that those stay with the
 * thread that waits for them, and a write to a closed pipe is an error code.
 */
#ifndef ONCED_BASE_THREAD_H
#define ONCED_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

/* Starts `run(self)` with all signals blocked. */
bool thread_start(pthread_t *thread, void *(*run)(void *self), void *self,
                  struct err *err) MUST_CHECK;

#endif
