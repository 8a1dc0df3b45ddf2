/* SPDX-License-Identifier: MIT */
/*
 * Standard error of an exec handler, line by line into the log, so much of it
 * per attempt and no more. The handler's thread.
 */
#ifndef ONCED_HANDLER_EXEC_STDERR_H
#define ONCED_HANDLER_EXEC_STDERR_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/port.h"

enum {
    EXEC_STDERR_LINES = 64,
    EXEC_STDERR_BYTES = 8 * 1024,
    EXEC_STDERR_LINE = 1024, /* longer ones are logged in pieces */
};

struct exec_stderr {
    char line[EXEC_STDERR_LINE];
    size_t len;
    size_t n_lines, n_bytes;
    bool was_cut;
};

void exec_stderr_init(struct exec_stderr *stream);

/* More of the stream; what is over the cap is dropped, and said so once. */
void exec_stderr_add(struct exec_stderr *stream, const struct attempt *attempt,
                     struct slice data);

/* The stream has ended: logs what has no newline behind it. */
void exec_stderr_end(struct exec_stderr *stream, const struct attempt *attempt);

#endif
