/* SPDX-License-Identifier: MIT */
#include "handler/exec_lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "handler/exec_fd.h"

static char *build_prefix(const char *dir, const char *route)
{
    struct buf prefix = BUF_INIT;
    char *real = realpath(dir, NULL);
    char *text = NULL;

    if (real != NULL) {
        buf_printf(&prefix, "%s/", real);
        text_percent(slice_of(route), &prefix);
        buf_add_byte(&prefix, '.');
        text = mem_dup(buf_slice(&prefix));
    }
    free(real);
    buf_free(&prefix);
    return text;
}

bool exec_leases_open(struct exec_leases *leases, const char *dir,
                      const char *route, uint32_t concurrency, struct err *err)
{
    CHECK(concurrency > 0);
    leases->n_slots = 2 * concurrency;
    atomic_init(&leases->next, 0);
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_set(err, ERR_IO, "make %s: %s", dir, strerror(errno));
    }
    leases->prefix = build_prefix(dir, route);
    if (leases->prefix == NULL) {
        return err_set(err, ERR_IO, "look up %s: %s", dir, strerror(errno));
    }
    return true;
}

void exec_leases_close(struct exec_leases *leases)
{
    free(leases->prefix);
    leases->prefix = NULL;
}

static int open_file(const char *path, int flags)
{
    return exec_fd_above(
        open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600));
}

bool exec_lease_is_busy(const char *path)
{
    int fd = open_file(path, O_RDONLY);
    bool is_busy;

    if (fd == -1) {
        return errno != ENOENT; /* in doubt somebody has it */
    }
    is_busy = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    exec_fd_close(&fd);
    return is_busy;
}

static bool write_at(int fd, struct slice text, size_t at)
{
    return pwrite(fd, text.data, text.len, (off_t)at) == (ssize_t)text.len;
}

/* In place and always of one length: a file that is cut and written anew is
 * one that some file systems flush when it is closed. */
static bool write_note(const struct attempt *attempt, struct exec_lease *lease)
{
    const struct slice identity = {(const char *)attempt->identity,
                                   sizeof attempt->identity};
    char ends[TEXT_TIME_SIZE];
    struct buf text = BUF_INIT;
    bool ok;

    text_time(clock_wall_ms(clock_system()) + attempt->timeout_ms, ends);
    text_hex(identity, &text);
    buf_printf(&text, " %u %s\n", attempt->number, ends);
    lease->pid_at = text.len;
    while (text.len < EXEC_LEASE_SIZE) {
        buf_add_byte(&text, '\n');
    }
    ok = write_at(lease->note, buf_slice(&text), 0);
    buf_free(&text);
    return ok;
}

/* Tries one slot. False with errno EWOULDBLOCK when it is busy. */
static bool take_slot(const char *path, const struct attempt *attempt,
                      struct exec_lease *out)
{
    int error;

    out->note = -1;
    out->lock = open_file(path, O_RDONLY | O_CREAT);
    if (out->lock != -1 && flock(out->lock, LOCK_EX | LOCK_NB) == 0) {
        out->note = open_file(path, O_WRONLY);
        if (out->note != -1 && write_note(attempt, out)) {
            return true;
        }
    }
    error = errno;
    exec_lease_drop(out);
    errno = error;
    return false;
}

bool exec_lease_take(struct exec_leases *leases, const struct attempt *attempt,
                     struct exec_lease *out, struct err *err)
{
    struct buf path = BUF_INIT;
    bool taken = false;
    bool is_busy = true;

    for (uint32_t i = 0; i < leases->n_slots && is_busy && !taken; i++) {
        buf_clear(&path);
        buf_printf(&path, "%s%u", leases->prefix,
                   atomic_fetch_add(&leases->next, 1) % leases->n_slots);
        taken = take_slot(buf_cstr(&path), attempt, out);
        is_busy = taken || errno == EWOULDBLOCK;
    }
    if (!taken && is_busy) {
        (void)err_set(err, ERR_AGAIN,
                      "all leases are held by processes of earlier attempts");
    } else if (!taken) {
        (void)err_set(err, ERR_IO, "lease: %s", strerror(errno));
    }
    buf_free(&path);
    return taken;
}

void exec_lease_hand_over(struct exec_lease *lease, pid_t pid)
{
    struct buf text = BUF_INIT;

    buf_printf(&text, "%d", (int)pid);
    /* Without this line an orphan is found by its lease alone. */
    (void)write_at(lease->note, buf_slice(&text), lease->pid_at);
    buf_free(&text);
    exec_lease_drop(lease);
}

void exec_lease_drop(struct exec_lease *lease)
{
    exec_fd_close(&lease->lock);
    exec_fd_close(&lease->note);
}
