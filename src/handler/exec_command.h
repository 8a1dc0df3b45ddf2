/* SPDX-License-Identifier: MIT */
/*
 * What an exec handler starts: its options, made ready for posix_spawn once.
 * Read-only afterwards, any thread.
 */
#ifndef ONCED_HANDLER_EXEC_COMMAND_H
#define ONCED_HANDLER_EXEC_COMMAND_H

#include <spawn.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"
#include "handler/exec.h"

struct exec_command {
    char *path; /* of the program; from `cwd` on where it is relative */
    char **argv;
    char *cwd;              /* or NULL */
    struct buf environment; /* the fixed part, see exec_env.h */
    posix_spawnattr_t attributes;
};

/* Copies what it needs. Fails (ERR_CONFIG) where the program, the folder or
 * the environment is not as it must be. */
bool exec_command_init(struct exec_command *command,
                       const struct exec_handler_options *options,
                       struct err *err) MUST_CHECK;
void exec_command_fini(struct exec_command *command);

#endif
