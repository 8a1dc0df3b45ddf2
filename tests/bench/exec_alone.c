/* SPDX-License-Identifier: MIT */
/*
 * What starting a process costs without anything around it: a program is
 * spawned with a body on its standard input and pipes behind its output and
 * its errors, waited for, and spawned again, so many at a time.
 *
 *     exec_alone CONCURRENCY MS WARM_UP_MS PROGRAM
 *
 * Prints one line of JSON: the processes that ended behind the warm-up, and
 * how many a second that is.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"

enum { CONCURRENCY_MAX = 1024, BODY_BYTES = 350, EX_USAGE = 64 };

#define NS_PER_MS INT64_C(1000000)

struct child {
    pid_t pid;
    int out, err; /* ours */
};

static int64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static _Noreturn void fail(const char *what, int error)
{
    (void)fprintf(stderr, "exec_alone: %s: %s\n", what, strerror(error));
    exit(EXIT_FAILURE);
}

static void open_pipe(int fds[2])
{
    if (pipe2(fds, O_CLOEXEC) != 0) {
        fail("pipe", errno);
    }
}

static pid_t spawn(char *program, const int from[3])
{
    char *argv[] = {program, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    CHECK(posix_spawn_file_actions_init(&actions) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(posix_spawn_file_actions_adddup2(&actions, from[i], i) == 0);
    }
    int error = posix_spawn(&pid, program, &actions, NULL, argv, environ);
    if (error != 0) {
        fail(program, error);
    }
    CHECK(posix_spawn_file_actions_destroy(&actions) == 0);
    return pid;
}

static void start(struct child *child, char *program)
{
    static const char body[BODY_BYTES];
    int in[2], out[2], err[2];
    open_pipe(in);
    open_pipe(out);
    open_pipe(err);
    /* Fits into the pipe; nobody reads it yet. */
    CHECK(write(in[1], body, sizeof(body)) == (ssize_t)sizeof(body));
    (void)close(in[1]);
    child->pid = spawn(program, (const int[]){in[0], out[1], err[1]});
    child->out = out[0];
    child->err = err[0];
    (void)close(in[0]);
    (void)close(out[1]);
    (void)close(err[1]);
}

static void read_to_end(int fd)
{
    char chunk[4096];
    while (read(fd, chunk, sizeof(chunk)) > 0) {
    }
    (void)close(fd);
}

/* Waits for any of them. */
static struct child *end_one(struct child *children)
{
    int status;
    pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0) {
        fail("wait", errno);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail("the program failed", 0);
    }
    while (children->pid != pid) {
        children++;
    }
    read_to_end(children->out);
    read_to_end(children->err);
    return children;
}

static void run(char *program, size_t n, int64_t run_ms, int64_t warm_up_ms)
{
    static struct child children[CONCURRENCY_MAX];
    int64_t from_ns = now_ns() + warm_up_ms * NS_PER_MS;
    int64_t end_ns = from_ns + run_ms * NS_PER_MS;
    int64_t at_ns = 0;
    uint64_t ended = 0;
    for (size_t i = 0; i < n; i++) {
        start(&children[i], program);
    }
    while (at_ns < end_ns) {
        start(end_one(children), program);
        at_ns = now_ns();
        ended += at_ns >= from_ns;
    }
    for (size_t i = 0; i < n; i++) {
        end_one(children)->pid = -1;
    }
    (void)printf("{\"concurrency\":%zu,\"ended\":%lu,\"rate\":%.1f}\n", n,
                 ended, (double)ended * 1e9 / (double)(at_ns - from_ns));
}

int main(int argc, char **argv)
{
    uint64_t n, run_ms, warm_up_ms;
    if (argc != 5 || !text_u64(slice_of(argv[1]), &n) || n == 0 ||
        n > CONCURRENCY_MAX || !text_u64(slice_of(argv[2]), &run_ms) ||
        run_ms > 86400000 || !text_u64(slice_of(argv[3]), &warm_up_ms) ||
        warm_up_ms > 86400000) {
        (void)fputs("exec_alone CONCURRENCY MS WARM_UP_MS PROGRAM\n", stderr);
        return EX_USAGE;
    }
    run(argv[4], n, (int64_t)run_ms, (int64_t)warm_up_ms);
    return EXIT_SUCCESS;
}
