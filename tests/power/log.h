/* SPDX-License-Identifier: MIT */
/*
 * The log of a recorded run: what the store did to its files, and between it
 * what was told to the outside, in one order. Each entry is a head and `len`
 * bytes behind it. A run that was killed and started again goes on in the same
 * log: what was not synced may still be lost then.
 */
#ifndef ONCED_TESTS_POWER_LOG_H
#define ONCED_TESTS_POWER_LOG_H

#include <stdint.h>

enum log_kind {
    LOG_WRITE = 1, /* bytes at `offset` of `file`; not yet durable */
    LOG_WROTE,     /* the last write went through an O_DSYNC descriptor and has
                      returned: it alone is durable */
    LOG_SYNC,      /* every write to `file` is durable */
    LOG_MKDIR,     /* the path */
    LOG_CREATE,    /* an empty `file` under the path */
    LOG_RENAME,    /* `file` to the path */
    LOG_REMOVE,    /* the file or folder at the path */
    LOG_SYNC_DIR,  /* every entry of the folder at the path is durable */
    LOG_FACT,      /* struct fact: somebody was told */
};
enum { LOG_KINDS = LOG_FACT + 1 };

/* Paths are relative to the recorded folder, which itself is "". */
struct log_head {
    uint32_t kind; /* enum log_kind */
    uint32_t len;
    uint64_t file; /* its inode */
    uint64_t offset;
};

#endif
