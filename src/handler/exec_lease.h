/* SPDX-License-Identifier: MIT */
/*
 * Leases: locked files that say which attempts' processes are alive.
 *
 * A route's leases are `<dir>/<route>.<n>`, the route percent-encoded, n
 * below twice its concurrency: a lease whose processes are just dying, or
 * that something of an earlier run holds, keeps no attempt waiting. The lock
 * (flock) belongs to the open file that the process inherits as descriptor
 * ONCED_LEASE_FD, so it is busy until the last process that has it is gone.
 *
 * Content: "<identity in hex> <attempt> <end of its time>\n", behind it the
 * process id, which is its group's, once it runs; newlines up to the size.
 *
 * Any thread of the handler's.
 */
#ifndef ONCED_HANDLER_EXEC_LEASE_H
#define ONCED_HANDLER_EXEC_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/err.h"
#include "engine/port.h"

struct exec_leases {
    char *prefix; /* `<dir>/<route>.`, absolute */
    uint32_t n_slots;
    atomic_uint next; /* the slot to try first, by the remainder */
};

/* Makes the directory where it is missing. */
bool exec_leases_open(struct exec_leases *leases, const char *dir,
                      const char *route, uint32_t concurrency,
                      struct err *err) MUST_CHECK;
void exec_leases_close(struct exec_leases *leases);

enum { EXEC_LEASE_SIZE = 128 };

struct exec_lease {
    int lock; /* for the child, read-only */
    int note; /* for us */
    size_t pid_at;
};

/* Whether somebody holds the lease of this file; true where that cannot be
 * told. Any thread. */
bool exec_lease_is_busy(const char *path);

/* Takes a free lease and writes the attempt into it. Fails with ERR_AGAIN
 * when all are busy. */
bool exec_lease_take(struct exec_leases *leases, const struct attempt *attempt,
                     struct exec_lease *out, struct err *err) MUST_CHECK;

/* The process runs and holds the lease from here on. */
void exec_lease_hand_over(struct exec_lease *lease, pid_t pid);

/* No process came of it. */
void exec_lease_drop(struct exec_lease *lease);

#endif
