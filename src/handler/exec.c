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
#include "base/thread.h"
#include "handler/backlog.h"
#include "handler/exec_command.h"
#include "handler/exec_fd.h"
#include "handler/exec_lease.h"
#include "handler/exec_orphan.h"
#include "handler/exec_process.h"

enum { EVENTS = 64, LOOPS_MAX = 4 };

/* To start a process takes until it has become the program: several threads
 * do so, each for processes of its own. */
struct exec_loop {
    struct exec_handler *handler;
    struct backlog backlog;
    int epoll, wake;
    pthread_t thread;
    bool has_thread;
    /* the thread's */
    struct exec_process *processes;
    uint32_t n_processes;
};

struct exec_handler {
    struct exec_command command;
    struct exec_leases leases;
    struct exec_orphan *orphans; /* the engine's thread */
    uint32_t concurrency;
    uint64_t max_output;
    struct exec_loop loops[LOOPS_MAX];
    uint32_t n_loops;
    uint32_t next_loop; /* the engine's thread */
};

static int64_t now_boot_ms(void)
{
    return clock_boot_ms(clock_system());
}

/* --- a loop -------------------------------------------------------------- */

static void fail(struct attempt *attempt, const struct err *err)
{
    int len = snprintf(attempt->text, sizeof attempt->text, "%s", err->text);

    CHECK(len >= 0);
    attempt->end = END_UNREACHED;
    attempt->took_ms = 0;
    attempt_finish(attempt);
}

static void begin(struct exec_loop *loop, struct attempt *attempt)
{
    struct exec_handler *handler = loop->handler;
    const struct exec_site site = {&handler->command, &handler->leases,
                                   loop->epoll, handler->max_output};
    struct exec_process *process;
    struct err err = {0};

    if (!exec_process_start(&site, attempt, now_boot_ms(), &process, &err)) {
        fail(attempt, &err);
        return;
    }
    process->next = loop->processes;
    if (process->next != NULL) {
        process->next->prev = process;
    }
    loop->processes = process;
    loop->n_processes++;
}

static void begin_waiting(struct exec_loop *loop)
{
    struct attempt *attempt;

    while (loop->n_processes < loop->handler->concurrency &&
           (attempt = backlog_take(&loop->backlog)) != NULL) {
        begin(loop, attempt);
    }
}

static void end(struct exec_loop *loop, struct exec_process *process)
{
    struct attempt *attempt;

    if (process->next != NULL) {
        process->next->prev = process->prev;
    }
    if (process->prev != NULL) {
        process->prev->next = process->next;
    } else {
        loop->processes = process->next;
    }
    loop->n_processes--;
    attempt = exec_process_end(process, now_boot_ms());
    MARK(exec_ended);
    attempt_finish(attempt);
}

/* Behind the events of a turn, none of which may find its process gone. */
static void look_after(struct exec_loop *loop)
{
    struct exec_process *next;
    int64_t now = now_boot_ms();

    for (struct exec_process *at = loop->processes; at != NULL; at = next) {
        next = at->next;
        exec_process_tick(at, now);
        if (at->has_exited) {
            end(loop, at);
        }
    }
}

static int wait_ms(const struct exec_loop *loop)
{
    int64_t due = INT64_MAX;
    int64_t now = now_boot_ms();

    for (const struct exec_process *at = loop->processes; at != NULL;
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

static void wait_for_events(struct exec_loop *loop)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(loop->epoll, events, EVENTS, wait_ms(loop));

    CHECK(n >= 0 || errno == EINTR);
    for (int i = 0; i < n; i++) {
        struct exec_watch *watch = events[i].data.ptr;
        uint64_t count;

        if (watch == NULL) {
            /* Whatever was counted: the backlog is looked at next. */
            CHECK(read(loop->wake, &count, sizeof count) == sizeof count);
        } else if (watch->fd != -1) {
            watch->ready(watch->process);
        }
    }
}

static void end_all(struct exec_loop *loop)
{
    struct attempt *attempt;
    int64_t now = now_boot_ms();

    while ((attempt = backlog_take(&loop->backlog)) != NULL) {
        backlog_refuse(attempt);
    }
    for (struct exec_process *at = loop->processes; at != NULL; at = at->next) {
        exec_process_cut(at, END_BROKEN, now);
    }
    while (loop->processes != NULL) {
        wait_for_events(loop);
        look_after(loop);
    }
}

static void *run(void *self)
{
    struct exec_loop *loop = self;

    while (!backlog_is_closed(&loop->backlog)) {
        begin_waiting(loop);
        wait_for_events(loop);
        look_after(loop);
    }
    end_all(loop);
    return NULL;
}

/* --- the port ------------------------------------------------------------ */

static void wake(const struct exec_loop *loop)
{
    const uint64_t one = 1;

    CHECK(write(loop->wake, &one, sizeof one) == sizeof one);
}

static void exec_start(void *self, struct attempt *attempt)
{
    struct exec_handler *handler = self;
    struct exec_loop *loop = &handler->loops[handler->next_loop];

    handler->next_loop = (handler->next_loop + 1) % handler->n_loops;
    if (backlog_push(&loop->backlog, attempt)) {
        wake(loop);
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

/* All are told before one is waited for: their processes end together. */
static void exec_stop(void *self)
{
    struct exec_handler *handler = self;

    for (uint32_t i = 0; i < handler->n_loops; i++) {
        struct exec_loop *loop = &handler->loops[i];

        backlog_close(&loop->backlog);
        if (loop->has_thread) {
            wake(loop);
        }
    }
    for (uint32_t i = 0; i < handler->n_loops; i++) {
        struct exec_loop *loop = &handler->loops[i];

        if (loop->has_thread) {
            CHECK(pthread_join(loop->thread, NULL) == 0);
            loop->has_thread = false;
        }
    }
}

static void loop_fini(struct exec_loop *loop)
{
    CHECK(!loop->has_thread && loop->processes == NULL);
    backlog_fini(&loop->backlog);
    exec_fd_close(&loop->epoll);
    exec_fd_close(&loop->wake);
}

static void exec_free(void *self)
{
    struct exec_handler *handler = self;

    exec_stop(handler);
    for (uint32_t i = 0; i < handler->n_loops; i++) {
        loop_fini(&handler->loops[i]);
    }
    exec_command_fini(&handler->command);
    exec_leases_close(&handler->leases);
    exec_orphan_free(handler->orphans);
    free(handler);
}

static const struct handler_ops ops = {
    .start = exec_start,
    .is_alive = exec_is_alive,
    .kill = exec_kill,
    .stop = exec_stop,
    .free = exec_free,
};

static bool open_events(struct exec_loop *loop, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    loop->epoll = exec_fd_above(epoll_create1(EPOLL_CLOEXEC));
    loop->wake = exec_fd_above(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (loop->epoll == -1 || loop->wake == -1 ||
        epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &event) != 0) {
        return err_set(err, ERR_AGAIN, "epoll: %s", strerror(errno));
    }
    return true;
}

static bool start_loop(struct exec_handler *handler, struct err *err)
{
    struct exec_loop *loop = &handler->loops[handler->n_loops++];

    loop->handler = handler;
    loop->epoll = -1;
    loop->wake = -1;
    backlog_init(&loop->backlog);
    loop->has_thread =
        open_events(loop, err) && thread_start(&loop->thread, run, loop, err);
    return loop->has_thread;
}

/* One for each processor, and none that would never have a process. */
static bool start_loops(struct exec_handler *handler, struct err *err)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = processors < 1           ? 1
                 : processors > LOOPS_MAX ? LOOPS_MAX
                                          : (uint32_t)processors;

    n = n < handler->concurrency ? n : handler->concurrency;
    while (handler->n_loops < n) {
        if (!start_loop(handler, err)) {
            return false;
        }
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
           start_loops(handler, err);
}

bool exec_handler_new(struct handler *out,
                      const struct exec_handler_options *options,
                      struct err *err)
{
    struct exec_handler *handler = mem_new(1, sizeof *handler);

    CHECK(options->concurrency > 0);
    handler->concurrency = options->concurrency;
    handler->max_output = options->max_result_bytes;
    if (!prepare(handler, options, err)) {
        exec_free(handler);
        return false;
    }
    *out = (struct handler){&ops, handler};
    return true;
}
