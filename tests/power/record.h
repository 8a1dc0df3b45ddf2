/* SPDX-License-Identifier: MIT */
/*
 * Records what this process does to the data files under one folder. The
 * calls of libc that write, sync and rename are defined here; a program's own
 * symbols come first, so LMDB and the store find these. One thread. A call
 * that would change a data file in a way that the replay does not know ends
 * the process.
 */
#ifndef ONCED_TESTS_POWER_RECORD_H
#define ONCED_TESTS_POWER_RECORD_H

#include <stddef.h>

#include "power/log.h"

/* Appends to the log at `path` from here on. `root` is absolute. */
void record_start(const char *path, const char *root);

/* Raises SIGKILL at the nth entry of that kind from here on: LOG_WROTE before
 * it is logged (the write was seen, and is not durable), others behind. */
void record_kill_at(enum log_kind kind, unsigned nth);

/* An entry of the caller's: LOG_FACT. */
void record_fact(const void *fact, size_t len);

#endif
