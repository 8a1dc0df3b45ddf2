/* SPDX-License-Identifier: MIT */
#include "handler/backlog.h"

#include <stdio.h>

#include "base/check.h"

void backlog_init(struct backlog *backlog)
{
    *backlog = (struct backlog){.first = NULL};
    CHECK(pthread_mutex_init(&backlog->lock, NULL) == 0);
}

void backlog_fini(struct backlog *backlog)
{
    CHECK(backlog->first == NULL);
    CHECK(pthread_mutex_destroy(&backlog->lock) == 0);
}

static void lock(struct backlog *backlog)
{
    CHECK(pthread_mutex_lock(&backlog->lock) == 0);
}

static void unlock(struct backlog *backlog)
{
    CHECK(pthread_mutex_unlock(&backlog->lock) == 0);
}

bool backlog_push(struct backlog *backlog, struct attempt *attempt)
{
    bool is_open;

    lock(backlog);
    is_open = !backlog->is_closed;
    if (is_open) {
        attempt->item.next = NULL;
        if (backlog->last == NULL) {
            backlog->first = attempt;
        } else {
            backlog->last->item.next = &attempt->item;
        }
        backlog->last = attempt;
    }
    unlock(backlog);
    return is_open;
}

struct attempt *backlog_take(struct backlog *backlog)
{
    struct attempt *attempt;

    lock(backlog);
    attempt = backlog->first;
    if (attempt != NULL) {
        /* `item` is the first member: a link to it is one to its attempt. */
        backlog->first = (struct attempt *)attempt->item.next;
        if (backlog->first == NULL) {
            backlog->last = NULL;
        }
        attempt->item.next = NULL;
    }
    unlock(backlog);
    return attempt;
}

void backlog_close(struct backlog *backlog)
{
    lock(backlog);
    backlog->is_closed = true;
    unlock(backlog);
}

bool backlog_is_closed(struct backlog *backlog)
{
    bool is_closed;

    lock(backlog);
    is_closed = backlog->is_closed;
    unlock(backlog);
    return is_closed;
}

void backlog_refuse(struct attempt *attempt)
{
    int len = snprintf(attempt->text, sizeof attempt->text,
                       "stopped: the worker shuts down");

    CHECK(len > 0);
    attempt->end = END_UNREACHED;
    attempt->retry_after_ms = -1;
    attempt->took_ms = 0;
    attempt_finish(attempt);
}
