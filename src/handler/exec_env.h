/* SPDX-License-Identifier: MIT */
/*
 * The environment of an exec handler's process, as include/onced/handler.h
 * describes it. Any thread.
 */
#ifndef ONCED_HANDLER_EXEC_ENV_H
#define ONCED_HANDLER_EXEC_ENV_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"
#include "engine/port.h"

/* What is the same for all attempts: what we pass on of our own, and what
 * the route configures ("NAME=value", NULL-ended, may be NULL), which wins.
 * Fails (ERR_CONFIG) for an entry without a name, or with one of ours. */
bool exec_env_fixed(const char *const *configured, struct buf *out,
                    struct err *err) MUST_CHECK;

struct exec_env {
    char **list; /* for posix_spawn, NULL-ended; borrows from `text` */
    struct buf text;
};

/* Builds the environment of one attempt on top of the fixed part. */
void exec_env_build(struct slice fixed, const struct attempt *attempt,
                    struct exec_env *out);
void exec_env_free(struct exec_env *env);

#endif
