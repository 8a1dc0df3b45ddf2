/* SPDX-License-Identifier: MIT */
/*
 * Attempts on their way from the engine's thread to a handler's. Not
 * bounded: the engine starts no more than the handler has room for.
 */
#ifndef ONCED_HANDLER_BACKLOG_H
#define ONCED_HANDLER_BACKLOG_H

#include <pthread.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "engine/port.h"

struct backlog {
    pthread_mutex_t lock;
    struct attempt *first, *last;
    bool is_closed;
};

void backlog_init(struct backlog *backlog);
void backlog_fini(struct backlog *backlog); /* must be empty */

/* Any thread. False when closed; the attempt then stays the caller's. */
bool backlog_push(struct backlog *backlog, struct attempt *attempt) MUST_CHECK;

/* The oldest, or NULL. */
struct attempt *backlog_take(struct backlog *backlog);

/* From here on pushes are refused. */
void backlog_close(struct backlog *backlog);
bool backlog_is_closed(struct backlog *backlog);

/* Finishes an attempt that was never started, as unreached. */
void backlog_refuse(struct attempt *attempt);

#endif
