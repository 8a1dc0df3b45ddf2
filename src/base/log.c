/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log_line.h"

enum {
    RING_SIZE = 256 * 1024,
    /* Whole lines in one write that a pipe takes undivided, so that they
     * stay whole also beside other processes that write to it. */
    CHUNK_MAX = PIPE_BUF,
    REPORT_MAX = 256,
    STALL_MS = 100,
    STALLS_AT_STOP = 10,
};

static_assert((int)LOG_LINE_MAX < (int)CHUNK_MAX, "a chunk holds any line");

static struct {
    bool started; /* by log_start and log_stop alone, as the thread */
    pthread_t thread;
    int fd;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t changed;
    bool open; /* the ring takes lines */
    bool stopping;
    bool waiting;     /* the thread waits for a line */
    uint64_t dropped; /* lines since the last report */
    size_t start;
    size_t used;
    char bytes[RING_SIZE];
} ring = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
};

static _Atomic(enum log_level) level_now = LOG_WARN;
static _Atomic(enum log_format) format_now = LOG_LOGFMT;

static void lock(void)
{
    CHECK(pthread_mutex_lock(&ring.lock) == 0);
}

static void unlock(void)
{
    CHECK(pthread_mutex_unlock(&ring.lock) == 0);
}

static enum log_format current_format(void)
{
    return atomic_load_explicit(&format_now, memory_order_relaxed);
}

/* With the lock held, and room made sure of. */
static void push(const struct log_line *line)
{
    size_t end = (ring.start + ring.used) % RING_SIZE;
    size_t first = RING_SIZE - end < line->len ? RING_SIZE - end : line->len;

    CHECK(line->len <= RING_SIZE - ring.used);
    memcpy(ring.bytes + end, line->text, first);
    memcpy(ring.bytes, line->text + first, line->len - first);
    ring.used += line->len;
    if (ring.waiting) {
        ring.waiting = false;
        CHECK(pthread_cond_signal(&ring.changed) == 0);
    }
}

static void push_report(void)
{
    struct log_line report;

    log_line_open(&report, current_format(), LOG_WARN, "log", "lines dropped");
    log_int(&report, "count", (int64_t)ring.dropped);
    log_line_close(&report);
    CHECK(report.len <= REPORT_MAX);
    push(&report);
    ring.dropped = 0;
}

static void push_or_drop(const struct log_line *line)
{
    size_t report_len = ring.dropped > 0 ? REPORT_MAX : 0;

    if (line->len + report_len > RING_SIZE - ring.used) {
        ring.dropped++;
        return;
    }
    if (ring.dropped > 0) {
        push_report();
    }
    push(line);
}

static void write_directly(const struct log_line *line)
{
    ssize_t n;

    do {
        n = write(STDERR_FILENO, line->text, line->len);
    } while (n < 0 && errno == EINTR);
}

static void submit(const struct log_line *line)
{
    bool open;

    lock();
    open = ring.open;
    if (open) {
        push_or_drop(line);
    }
    unlock();
    if (!open) {
        write_directly(line);
    }
}

bool log_begin(struct log_line *line, enum log_level level, const char *part,
               const char *message)
{
    CHECK(level < LOG_OFF);
    if (level < atomic_load_explicit(&level_now, memory_order_relaxed)) {
        return false;
    }
    log_line_open(line, current_format(), level, part, message);
    return true;
}

void log_end(struct log_line *line)
{
    log_line_close(line);
    submit(line);
}

void log_error(const char *part, const char *message, const struct err *err)
{
    struct log_line line;

    if (log_begin(&line, LOG_ERROR, part, message)) {
        log_str(&line, "err", slice_of(err->text));
        log_end(&line);
    }
}

/* With the lock held: whole lines from the ring, at most `size` bytes. */
static size_t take_lines(char *out, size_t size)
{
    size_t len = ring.used < size ? ring.used : size;
    size_t first = RING_SIZE - ring.start < len ? RING_SIZE - ring.start : len;

    memcpy(out, ring.bytes + ring.start, first);
    memcpy(out + first, ring.bytes, len - first);
    while (len > 0 && out[len - 1] != '\n') {
        len--;
    }
    CHECK(len > 0);
    ring.start = (ring.start + len) % RING_SIZE;
    ring.used -= len;
    return len;
}

/* Waits for lines; 0 when log_stop was called and all are taken. */
static size_t next_chunk(char *out, size_t size)
{
    size_t len = 0;

    lock();
    while (ring.used == 0 && !ring.stopping) {
        ring.waiting = true;
        CHECK(pthread_cond_wait(&ring.changed, &ring.lock) == 0);
    }
    ring.waiting = false;
    if (ring.used == 0 && ring.dropped > 0) {
        push_report();
    }
    if (ring.used > 0) {
        len = take_lines(out, size);
    } else {
        ring.open = false;
    }
    unlock();
    return len;
}

static bool is_stopping(void)
{
    bool stopping;

    lock();
    stopping = ring.stopping;
    unlock();
    return stopping;
}

/* A descriptor that is ready takes a chunk at once, so that a reader who
 * does not read cannot keep the process from ending. */
static bool wait_writable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    int stalls = 0;

    while (stalls < STALLS_AT_STOP) {
        int n = poll(&poll_fd, 1, STALL_MS);

        if (n > 0) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
        stalls = is_stopping() ? stalls + 1 : 0;
    }
    return false;
}

/* Returns how much was written; less than `len` when the rest cannot be. */
static size_t write_chunk(int fd, const char *data, size_t len)
{
    size_t done = 0;

    while (done < len && wait_writable(fd)) {
        ssize_t n = write(fd, data + done, len - done);

        if (n >= 0) {
            done += (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            break;
        }
    }
    return done;
}

/* Counts the lines that could not be written. At the end there is nobody
 * left to tell. */
static void give_up(const char *data, size_t len)
{
    lock();
    if (ring.stopping) {
        ring.used = 0;
        ring.dropped = 0;
    } else {
        for (size_t i = 0; i < len; i++) {
            ring.dropped += data[i] == '\n';
        }
    }
    unlock();
}

static void *write_lines(void *arg)
{
    char chunk[CHUNK_MAX];
    /* A line that a full disk cut short is ended before the next one. */
    bool torn = false;
    size_t len;

    chunk[0] = '\n';
    while ((len = next_chunk(chunk + 1, sizeof chunk - 1)) > 0) {
        const char *data = torn ? chunk : chunk + 1;
        size_t want = torn ? len + 1 : len;
        size_t done = write_chunk(ring.fd, data, want);

        if (done > 0) {
            torn = data[done - 1] != '\n';
        }
        if (done < want) {
            give_up(data + done, want - done);
        }
    }
    return arg;
}

/* Signals are for the main thread; SIGPIPE shall be an error of write. */
static int start_thread(void)
{
    sigset_t all;
    sigset_t before;
    int result;

    CHECK(sigfillset(&all) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    result = pthread_create(&ring.thread, NULL, write_lines, NULL);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return result;
}

bool log_start(const struct log_options *options, struct err *err)
{
    int result;

    CHECK(!ring.started);
    CHECK(options->fd >= 0);
    lock();
    ring.fd = options->fd;
    ring.stopping = false;
    result = start_thread();
    ring.started = result == 0;
    ring.open = ring.started;
    unlock();
    if (result != 0) {
        return err_set(err, ERR_AGAIN, "start the log: %s", strerror(result));
    }
    atomic_store_explicit(&level_now, options->level, memory_order_relaxed);
    atomic_store_explicit(&format_now, options->format, memory_order_relaxed);
    return true;
}

void log_stop(void)
{
    if (!ring.started) {
        return;
    }
    lock();
    ring.stopping = true;
    CHECK(pthread_cond_signal(&ring.changed) == 0);
    unlock();
    CHECK(pthread_join(ring.thread, NULL) == 0);
    ring.started = false;
}
