/* SPDX-License-Identifier: MIT */
/*
 * One process of an exec handler, from its start to its end: the pipes to
 * it, its time limit, what it left. The thread of its loop only.
 */
#ifndef ONCED_HANDLER_EXEC_PROCESS_H
#define ONCED_HANDLER_EXEC_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/err.h"
#include "engine/port.h"
#include "handler/exec_command.h"
#include "handler/exec_lease.h"
#include "handler/exec_stderr.h"

/* SIGTERM at the time limit, SIGKILL so much later. */
enum { EXEC_GRACE_MS = 500 };

struct exec_process;

/* What an epoll event of this process points at. */
struct exec_watch {
    struct exec_process *process;
    void (*ready)(struct exec_process *process);
    int fd; /* -1: closed */
};

enum exec_phase {
    EXEC_RUNNING,
    EXEC_TERMINATED, /* was sent SIGTERM */
    EXEC_KILLED,
};

struct exec_process {
    struct exec_process *next, *prev; /* the loop's */
    struct attempt *attempt;
    int epoll; /* the loop's */
    pid_t pid; /* not reaped before the end, so the number stays its own */
    struct exec_watch in, out, err, exit;
    bool has_exited;
    enum exec_phase phase;
    enum attempt_end cut_end; /* what it ends as, when not EXEC_RUNNING */
    int64_t started_boot_ms;
    int64_t due_boot_ms; /* when its phase is over */
    size_t body_at;      /* of the body, written to it */
    uint64_t max_output;
    struct buf output;
    bool output_omitted;
    struct exec_stderr lines;
};

/* Where processes are started from: what all of a handler share. */
struct exec_site {
    const struct exec_command *command;
    struct exec_leases *leases;
    int epoll;
    uint64_t max_output;
};

/* Starts a process for the attempt. On failure nothing has run, and the
 * attempt stays the caller's. */
bool exec_process_start(const struct exec_site *site, struct attempt *attempt,
                        int64_t now_boot_ms, struct exec_process **out,
                        struct err *err) MUST_CHECK;

/* Ends its phase where that is due. */
void exec_process_tick(struct exec_process *process, int64_t now_boot_ms);

/* Ends it before its time; the attempt ends as `end`. */
void exec_process_cut(struct exec_process *process, enum attempt_end end,
                      int64_t now_boot_ms);

/* After has_exited: kills what is left of its group, takes what is in the
 * pipes, reaps it. Gives the attempt back, filled in; frees the process. */
struct attempt *exec_process_end(struct exec_process *process,
                                 int64_t now_boot_ms);

#endif
