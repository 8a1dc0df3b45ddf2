/* SPDX-License-Identifier: MIT */
/*
 * Descriptors on their way to a child. Any thread.
 */
#ifndef ONCED_HANDLER_EXEC_FD_H
#define ONCED_HANDLER_EXEC_FD_H

#include <stdbool.h>

/* Moves a descriptor above those that a child gets (0 to ONCED_LEASE_FD), so
 * that putting one in its place overwrites no other; close-on-exec. Closes
 * `fd` in any case. -1 and errno on failure, and for a `fd` of -1. */
int exec_fd_above(int fd);

/* A pipe above; `ours` (0: the reading end, 1: the writing end) does not
 * block. False and errno on failure. */
bool exec_fd_pipe(int fds[2], int ours);

/* Closes it and sets it to -1; fine on -1. */
void exec_fd_close(int *fd);

#endif
