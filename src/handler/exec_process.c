/* SPDX-License-Identifier: MIT */
#include "handler/exec_process.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mark.h"
#include "handler/exec_env.h"
#include "handler/exec_fd.h"
#include "onced/handler.h"

enum { PIPE_CHUNK = 16 * 1024 };

/* --- the pipes ----------------------------------------------------------- */

static bool watch_add(struct exec_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    return epoll_ctl(watch->process->epoll, EPOLL_CTL_ADD, watch->fd, &event) ==
           0;
}

/* Taken off by hand: a child that another thread is just starting may have
 * a copy of the descriptor, which would keep a closed one in the epoll set. */
static void watch_close(struct exec_watch *watch)
{
    if (watch->fd != -1) {
        /* Fails where it was not added. */
        (void)epoll_ctl(watch->process->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
        exec_fd_close(&watch->fd);
    }
}

/* Writes as much of the body as the pipe takes. A process that does not want
 * it closes its end; that is no failure of the attempt. */
static void feed(struct exec_process *process)
{
    struct slice rest =
        slice_from(process->attempt->envelope.body, process->body_at);

    while (rest.len > 0) {
        ssize_t n = write(process->in.fd, rest.data, rest.len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n < 0) {
            break;
        }
        process->body_at += (size_t)n;
        rest = slice_from(rest, (size_t)n);
    }
    watch_close(&process->in);
}

static void keep_output(struct exec_process *process, struct slice data)
{
    if (process->output_omitted) {
        return;
    }
    if (data.len > process->max_output - process->output.len) {
        process->output_omitted = true;
        buf_free(&process->output);
    } else {
        buf_add_slice(&process->output, data);
    }
}

/* One read. False when there is no more now; closes it at the end. */
static bool read_some(struct exec_watch *watch,
                      void (*keep)(struct exec_process *, struct slice))
{
    char chunk[PIPE_CHUNK];
    ssize_t n = watch->fd == -1 ? -1 : read(watch->fd, chunk, sizeof chunk);

    if (n > 0) {
        keep(watch->process, (struct slice){chunk, (size_t)n});
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        watch_close(watch);
    }
    return false;
}

static void keep_line(struct exec_process *process, struct slice data)
{
    exec_stderr_add(&process->lines, process->attempt, data);
}

static void on_output(struct exec_process *process)
{
    (void)read_some(&process->out, keep_output);
}

static void on_error(struct exec_process *process)
{
    (void)read_some(&process->err, keep_line);
}

static void on_exit_of(struct exec_process *process)
{
    process->has_exited = true;
}

/* Takes what is in the pipes, without a wait for their end: a process that
 * left the group may hold them open. No pipe holds more than this. */
static void drain(struct exec_process *process)
{
    enum { READS_MAX = 64 };

    for (int i = 0; i < READS_MAX && read_some(&process->out, keep_output);
         i++) {
    }
    for (int i = 0; i < READS_MAX && read_some(&process->err, keep_line); i++) {
    }
}

/* --- its start ----------------------------------------------------------- */

/* The child's ends, which we close once it has them. */
struct ends {
    int in, out, err;
};

/* The pipes, watched, with as much of the body in as fits. */
static bool open_pipes(struct exec_process *process, struct ends *ends)
{
    int in[2] = {-1, -1};
    int out[2] = {-1, -1};
    int err[2] = {-1, -1};
    bool ok =
        exec_fd_pipe(in, 1) && exec_fd_pipe(out, 0) && exec_fd_pipe(err, 0);

    *ends = (struct ends){in[0], out[1], err[1]};
    process->in.fd = in[1];
    process->out.fd = out[0];
    process->err.fd = err[0];
    if (!ok) {
        return false;
    }
    feed(process);
    return (process->in.fd == -1 || watch_add(&process->in, EPOLLOUT)) &&
           watch_add(&process->out, EPOLLIN) &&
           watch_add(&process->err, EPOLLIN);
}

static void close_ends(struct ends *ends)
{
    exec_fd_close(&ends->in);
    exec_fd_close(&ends->out);
    exec_fd_close(&ends->err);
}

static int add_actions(posix_spawn_file_actions_t *actions,
                       const struct exec_command *command,
                       const struct ends *ends, int lease)
{
    const int from[] = {ends->in, ends->out, ends->err, lease};
    int error = 0;

    for (int i = 0; i < 4 && error == 0; i++) {
        error = posix_spawn_file_actions_adddup2(actions, from[i], i);
    }
    if (error == 0) {
        error = posix_spawn_file_actions_addclosefrom_np(actions,
                                                         ONCED_LEASE_FD + 1);
    }
    if (error == 0 && command->cwd != NULL) {
        error = posix_spawn_file_actions_addchdir_np(actions, command->cwd);
    }
    return error;
}

/* Returns an errno, 0 when it runs. */
static int spawn(struct exec_process *process,
                 const struct exec_command *command, const struct ends *ends,
                 int lease)
{
    posix_spawn_file_actions_t actions;
    struct exec_env env;
    int error = posix_spawn_file_actions_init(&actions);

    static_assert(ONCED_LEASE_FD == 3, "add_actions numbers them 0 to 3");
    CHECK(error == 0);
    exec_env_build(buf_slice(&command->environment), process->attempt, &env);
    error = add_actions(&actions, command, ends, lease);
    if (error == 0) {
        error = posix_spawn(&process->pid, command->path, &actions,
                            &command->attributes, command->argv, env.list);
    }
    exec_env_free(&env);
    CHECK(posix_spawn_file_actions_destroy(&actions) == 0);
    return error;
}

/* It runs, but its end would not be noticed: it must not go on. */
static void watch_exit(struct exec_process *process)
{
    process->exit.fd = pidfd_open(process->pid, 0);
    if (process->exit.fd != -1 && watch_add(&process->exit, EPOLLIN)) {
        return;
    }
    exec_process_cut(process, END_BROKEN, process->started_boot_ms);
    (void)kill(-process->pid, SIGKILL);
    process->has_exited = true;
}

static struct exec_process *create(const struct exec_site *site,
                                   struct attempt *attempt, int64_t now_boot_ms)
{
    struct exec_process *process = mem_new(1, sizeof *process);

    process->attempt = attempt;
    process->epoll = site->epoll;
    process->in = (struct exec_watch){process, feed, -1};
    process->out = (struct exec_watch){process, on_output, -1};
    process->err = (struct exec_watch){process, on_error, -1};
    process->exit = (struct exec_watch){process, on_exit_of, -1};
    process->max_output = site->max_output;
    process->started_boot_ms = now_boot_ms;
    process->due_boot_ms = now_boot_ms + attempt->timeout_ms;
    exec_stderr_init(&process->lines);
    attempt->retry_after_ms = -1;
    attempt->code[0] = '\0';
    return process;
}

static void destroy(struct exec_process *process)
{
    watch_close(&process->in);
    watch_close(&process->out);
    watch_close(&process->err);
    watch_close(&process->exit);
    buf_free(&process->output);
    free(process);
}

bool exec_process_start(const struct exec_site *site, struct attempt *attempt,
                        int64_t now_boot_ms, struct exec_process **out,
                        struct err *err)
{
    struct exec_process *process = create(site, attempt, now_boot_ms);
    struct exec_lease lease = {-1, -1, 0};
    struct ends ends;
    bool ok = false;
    int error;

    CHECK(attempt->timeout_ms > 0);
    if (!open_pipes(process, &ends)) {
        (void)err_set(err, ERR_AGAIN, "pipes: %s", strerror(errno));
        goto done;
    }
    if (!exec_lease_take(site->leases, attempt, &lease, err)) {
        goto done;
    }
    MARK(exec_before_spawn);
    error = spawn(process, site->command, &ends, lease.lock);
    if (error != 0) {
        (void)err_set(err, ERR_AGAIN, "spawn: %s", strerror(error));
        goto done;
    }
    MARK(exec_after_spawn);
    ok = true;
    exec_lease_hand_over(&lease, process->pid);
    watch_exit(process);
done:
    exec_lease_drop(&lease);
    close_ends(&ends);
    if (ok) {
        *out = process;
    } else {
        destroy(process);
    }
    return ok;
}

/* --- its end ------------------------------------------------------------- */

void exec_process_cut(struct exec_process *process, enum attempt_end end,
                      int64_t now_boot_ms)
{
    if (process->phase == EXEC_RUNNING) {
        process->phase = EXEC_TERMINATED;
        process->cut_end = end;
        process->due_boot_ms = now_boot_ms + EXEC_GRACE_MS;
        /* It may have ended by now: then there is nobody to tell. */
        (void)kill(-process->pid, SIGTERM);
    }
}

void exec_process_tick(struct exec_process *process, int64_t now_boot_ms)
{
    if (process->has_exited || now_boot_ms < process->due_boot_ms) {
        return;
    }
    switch (process->phase) {
    case EXEC_RUNNING:
        exec_process_cut(process, END_TIMEOUT, now_boot_ms);
        break;
    case EXEC_TERMINATED:
        (void)kill(-process->pid, SIGKILL);
        process->phase = EXEC_KILLED;
        process->due_boot_ms = INT64_MAX;
        break;
    case EXEC_KILLED:
        UNREACHABLE("it is due no more");
    }
}

/* Waits for an exit that has happened, or is about to by SIGKILL. */
static siginfo_t reap(const struct exec_process *process)
{
    siginfo_t info = {0};
    int status;

    do {
        status = waitid(P_PID, (id_t)process->pid, &info, WEXITED);
    } while (status != 0 && errno == EINTR);
    CHECK(status == 0);
    return info;
}

static void describe(struct attempt *attempt, const char *what, int number)
{
    int len =
        snprintf(attempt->text, sizeof attempt->text, "%s %d", what, number);

    CHECK(len > 0);
}

static void describe_cut(const struct exec_process *process)
{
    struct attempt *attempt = process->attempt;
    const char *by = process->phase == EXEC_KILLED ? "SIGKILL" : "SIGTERM";
    const char *why = process->cut_end == END_TIMEOUT ? "timed out" : "stopped";
    int len = snprintf(attempt->text, sizeof attempt->text,
                       "%s, ended after %s", why, by);

    CHECK(len > 0);
}

static void describe_end(const struct exec_process *process,
                         const siginfo_t *info)
{
    struct attempt *attempt = process->attempt;
    int len = 0;

    attempt->status = info->si_status;
    if (process->phase != EXEC_RUNNING) {
        attempt->status = 0;
        attempt->end = process->cut_end;
        describe_cut(process);
    } else if (info->si_code == CLD_EXITED) {
        attempt->end = END_EXIT;
        describe(attempt, "exit", info->si_status);
        if (info->si_status != ONCED_EXIT_DONE) {
            len = snprintf(attempt->code, sizeof attempt->code, "%d",
                           info->si_status);
        }
    } else {
        attempt->end = END_SIGNAL;
        describe(attempt, "signal", info->si_status);
        len = snprintf(attempt->code, sizeof attempt->code, "signal-%d",
                       info->si_status);
    }
    CHECK(len >= 0);
}

/* The HTTP status that stands for how the process ended. */
static uint16_t status_of(const struct attempt *attempt)
{
    if (attempt->end == END_TIMEOUT) {
        return 504;
    }
    if (attempt->end != END_EXIT) {
        return 502;
    }
    if (attempt->status == ONCED_EXIT_DONE) {
        return 200;
    }
    if (attempt->status == ONCED_EXIT_NOT_NOW) {
        return 503;
    }
    return attempt->status >= ONCED_EXIT_REFUSED_FIRST &&
                   attempt->status <= ONCED_EXIT_REFUSED_LAST
               ? 422
               : 502;
}

static void encode_result(const struct exec_process *process)
{
    struct slice output = buf_slice(&process->output);
    struct result result = {.status = status_of(process->attempt),
                            .body_omitted = process->output_omitted,
                            .body = output};
    struct buf headers = BUF_INIT;

    if (output.len == 0 && !process->output_omitted) {
        return;
    }
    if (output.len > 0) {
        headers_add(&headers, SLICE("Content-Type"),
                    slice_is_utf8(output) ? SLICE("text/plain; charset=utf-8")
                                          : SLICE("application/octet-stream"));
        result.headers = (struct headers){buf_slice(&headers), 1};
    }
    result_encode(&result, &process->attempt->result);
    buf_free(&headers);
}

struct attempt *exec_process_end(struct exec_process *process,
                                 int64_t now_boot_ms)
{
    struct attempt *attempt = process->attempt;
    siginfo_t info;

    CHECK(process->has_exited);
    /* Before it is reaped: the group's number cannot be another's yet. */
    (void)kill(-process->pid, SIGKILL);
    drain(process);
    exec_stderr_end(&process->lines, attempt);
    info = reap(process);
    describe_end(process, &info);
    encode_result(process);
    attempt->took_ms = now_boot_ms - process->started_boot_ms;
    destroy(process);
    return attempt;
}
