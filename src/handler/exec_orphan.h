/* SPDX-License-Identifier: MIT */
/*
 * Processes that an earlier run left behind, known by the leases that they
 * hold. Engine's thread.
 */
#ifndef ONCED_HANDLER_EXEC_ORPHAN_H
#define ONCED_HANDLER_EXEC_ORPHAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/err.h"

struct exec_orphan {
    struct exec_orphan *next;
    char *path; /* of its lease */
    uint8_t identity[16];
    uint32_t number;
    pid_t pid; /* 0: not told */
};

/* Finds the busy leases whose path begins with `prefix`. */
bool exec_orphan_find(const char *prefix, struct exec_orphan **list,
                      struct err *err) MUST_CHECK;

/* Whether the attempt is on the list and its lease still busy; takes it off
 * the list where it is not. */
bool exec_orphan_is_alive(struct exec_orphan **list, const uint8_t identity[16],
                          uint32_t number);

/* Kills what holds the lease, and its process group. */
void exec_orphan_kill(struct exec_orphan *list, const uint8_t identity[16],
                      uint32_t number);

void exec_orphan_free(struct exec_orphan *list);

#endif
