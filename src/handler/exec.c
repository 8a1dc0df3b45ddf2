/* SPDX-License-Identifier: MIT */
#include "handler/exec.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mark.h"
#include "handler/backlog.h"
#include "handler/exec_command.h"
#include "handler/exec_fd.h"
#include "handler/exec_lease.h"
#include "handler/exec_orphan.h"
#include "handler/exec_process.h"
#include "handler/thread.h"

enum { EVENTS = 64 };

struct exec_handler {
    struct exec_command command;
    struct exec_leases leases;
    struct exec_orphan *orphans; /* the engine's thread */
    struct backlog backlog;
    uint32_t concurrency;
    uint64_t max_output;
    int epoll, wake;
    pthread_t thread;
    bool has_thread;
    /* the thread's */
    struct exec_process *processes;
    uint32_t n_processes;
};

static int64_t now_boot_ms(void)
{
    return clock_boot_ms(clock_system());
}

/* --- the thread ---------------------------------------------------------- */

static void fail(struct attempt *attempt, const struct err *err)
{
    int len = snprintf(attempt->text, sizeof attempt->text, "%s", err->text);

    CHECK(len >= 0);
    attempt->end = END_UNREACHED;
    attempt->took_ms = 0;
    attempt_finish(attempt);
}

static void begin(struct exec_handler *handler, struct attempt *attempt)
{
    const struct exec_site site = {&handler->command, &handler->leases,
                                   handler->epoll, handler->max_output};
    struct exec_process *process;
    struct err err = {0};

    if (!exec_process_start(&site, attempt, now_boot_ms(), &process, &err)) {
        fail(attempt, &err);
        return;
    }
    process->next = handler->processes;
    if (process->next != NULL) {
        process->next->prev = process;
    }
    handler->processes = process;
    handler->n_processes++;
}

static void begin_waiting(struct exec_handler *handler)
{
    struct attempt *attempt;

    while (handler->n_processes < handler->concurrency &&
           (attempt = backlog_take(&handler->backlog)) != NULL) {
        begin(handler, attempt);
    }
}

static void end(struct exec_handler *handler, struct exec_process *process)
{
    struct attempt *attempt;

    if (process->next != NULL) {
        process->next->prev = process->prev;
    }
    if (process->prev != NULL) {
        process->prev->next = process->next;
    } else {
        handler->processes = process->next;
    }
    handler->n_processes--;
    attempt = exec_process_end(process, now_boot_ms());
    MARK(exec_ended);
    attempt_finish(attempt);
}

/* Behind the events of a turn, none of which may find its process gone. */
static void look_after(struct exec_handler *handler)
{
    struct exec_process *next;
    int64_t now = now_boot_ms();

    for (struct exec_process *at = handler->processes; at != NULL; at = next) {
        next = at->next;
        exec_process_tick(at, now);
        if (at->has_exited) {
            end(handler, at);
        }
    }
}

static int wait_ms(const struct exec_handler *handler)
{
    int64_t due = INT64_MAX;
    int64_t now = now_boot_ms();

    for (const struct exec_process *at = handler->processes; at != NULL;
         at = at->next) {
        if (at->has_exited) {
            return 0;
        }
        due = at->due_boot_ms < due ? at->due_boot_ms : due;
    }
    if (due == INT64_MAX) {
        return -1;
    }
    if (due <= now) {
        return 0;
    }
    return due - now < INT32_MAX ? (int)(due - now) : INT32_MAX;
}

static void wait_for_events(struct exec_handler *handler)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(handler->epoll, events, EVENTS, wait_ms(handler));

    CHECK(n >= 0 || errno == EINTR);
    for (int i = 0; i < n; i++) {
        struct exec_watch *watch = events[i].data.ptr;
        uint64_t count;

        if (watch == NULL) {
            /* Whatever was counted: the backlog is looked at next. */
            CHECK(read(handler->wake, &count, sizeof count) == sizeof count);
        } else if (watch->fd != -1) {
            watch->ready(watch->process);
        }
    }
}

static void end_all(struct exec_handler *handler)
{
    struct attempt *attempt;
    int64_t now = now_boot_ms();

    while ((attempt = backlog_take(&handler->backlog)) != NULL) {
        backlog_refuse(attempt);
    }
    for (struct exec_process *at = handler->processes; at != NULL;
         at = at->next) {
        exec_process_cut(at, END_BROKEN, now);
    }
    while (handler->processes != NULL) {
        wait_for_events(handler);
        look_after(handler);
    }
}

static void *run(void *self)
{
    struct exec_handler *handler = self;

    while (!backlog_is_closed(&handler->backlog)) {
        begin_waiting(handler);
        wait_for_events(handler);
        look_after(handler);
    }
    end_all(handler);
    return NULL;
}

/* --- the port ------------------------------------------------------------ */

static void wake(const struct exec_handler *handler)
{
    const uint64_t one = 1;

    CHECK(write(handler->wake, &one, sizeof one) == sizeof one);
}

static void exec_start(void *self, struct attempt *attempt)
{
    struct exec_handler *handler = self;

    if (backlog_push(&handler->backlog, attempt)) {
        wake(handler);
    } else {
        backlog_refuse(attempt);
    }
}

static bool exec_is_alive(void *self, const uint8_t identity[16],
                          uint32_t number)
{
    struct exec_handler *handler = self;

    return exec_orphan_is_alive(&handler->orphans, identity, number);
}

static void exec_kill(void *self, const uint8_t identity[16], uint32_t number)
{
    struct exec_handler *handler = self;

    exec_orphan_kill(handler->orphans, identity, number);
}

static void exec_stop(void *self)
{
    struct exec_handler *handler = self;

    backlog_close(&handler->backlog);
    if (handler->has_thread) {
        wake(handler);
        CHECK(pthread_join(handler->thread, NULL) == 0);
        handler->has_thread = false;
    }
}

static void exec_free(void *self)
{
    struct exec_handler *handler = self;

    exec_stop(handler);
    exec_command_fini(&handler->command);
    exec_leases_close(&handler->leases);
    exec_orphan_free(handler->orphans);
    backlog_fini(&handler->backlog);
    exec_fd_close(&handler->epoll);
    exec_fd_close(&handler->wake);
    free(handler);
}

static const struct handler_ops ops = {
    .start = exec_start,
    .is_alive = exec_is_alive,
    .kill = exec_kill,
    .stop = exec_stop,
    .free = exec_free,
};

static bool open_events(struct exec_handler *handler, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    handler->epoll = exec_fd_above(epoll_create1(EPOLL_CLOEXEC));
    handler->wake = exec_fd_above(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (handler->epoll == -1 || handler->wake == -1 ||
        epoll_ctl(handler->epoll, EPOLL_CTL_ADD, handler->wake, &event) != 0) {
        return err_set(err, ERR_AGAIN, "epoll: %s", strerror(errno));
    }
    return true;
}

static bool prepare(struct exec_handler *handler,
                    const struct exec_handler_options *options, struct err *err)
{
    return exec_command_init(&handler->command, options, err) &&
           exec_leases_open(&handler->leases, options->lease_dir,
                            options->route, options->concurrency, err) &&
           exec_orphan_find(handler->leases.prefix, &handler->orphans, err) &&
           open_events(handler, err);
}

bool exec_handler_new(struct handler *out,
                      const struct exec_handler_options *options,
                      struct err *err)
{
    struct exec_handler *handler = mem_new(1, sizeof *handler);

    CHECK(options->concurrency > 0);
    handler->concurrency = options->concurrency;
    handler->max_output = options->max_result_bytes;
    handler->epoll = -1;
    handler->wake = -1;
    backlog_init(&handler->backlog);
    handler->has_thread = prepare(handler, options, err) &&
                          thread_start(&handler->thread, run, handler, err);
    if (!handler->has_thread) {
        exec_free(handler);
        return false;
    }
    *out = (struct handler){&ops, handler};
    return true;
}
