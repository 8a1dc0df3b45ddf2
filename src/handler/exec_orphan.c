/* SPDX-License-Identifier: MIT */
#include "handler/exec_orphan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "handler/exec_fd.h"
#include "handler/exec_lease.h"
#include "onced/handler.h"

/* --- what a lease says --------------------------------------------------- */

/* Takes what stands before `end` off the text, with the end. */
static struct slice take_until(struct slice *text, char end)
{
    size_t n = slice_find(*text, end);
    struct slice taken = {text->data, n};

    *text = slice_from(*text, n < text->len ? n + 1 : n);
    return taken;
}

static bool parse_identity(struct slice text, uint8_t out[16])
{
    struct buf raw = BUF_INIT;
    bool ok = text_unhex(text, &raw) && raw.len == 16;

    if (ok) {
        memcpy(out, raw.data, 16);
    }
    buf_free(&raw);
    return ok;
}

static bool parse_note(struct slice text, struct exec_orphan *out)
{
    uint64_t number;
    uint64_t pid;

    if (!parse_identity(take_until(&text, ' '), out->identity) ||
        !text_u64(take_until(&text, ' '), &number) || number > UINT32_MAX) {
        return false;
    }
    out->number = (uint32_t)number;
    (void)take_until(&text, '\n'); /* the end of its time, for people */
    out->pid = 0;
    if (text_u64(take_until(&text, '\n'), &pid) && pid > 1 && pid <= INT_MAX) {
        out->pid = (pid_t)pid;
    }
    return true;
}

static bool read_note(const char *path, struct exec_orphan *out)
{
    char text[EXEC_LEASE_SIZE];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text);

    exec_fd_close(&fd);
    return n > 0 && parse_note((struct slice){text, (size_t)n}, out);
}

/* --- the list ------------------------------------------------------------ */

static void warn_unreadable(const char *path)
{
    struct log_line line;

    if (log_begin(&line, LOG_WARN, "exec", "a busy lease names no attempt")) {
        log_str(&line, "file", slice_of(path));
        log_end(&line);
    }
}

static void add(struct exec_orphan **list, const char *path)
{
    struct exec_orphan *orphan;

    if (!exec_lease_is_busy(path)) {
        return;
    }
    orphan = mem_new(1, sizeof *orphan);
    if (!read_note(path, orphan)) {
        warn_unreadable(path);
        free(orphan);
        return;
    }
    orphan->path = mem_strdup(path);
    orphan->next = *list;
    *list = orphan;
}

bool exec_orphan_find(const char *prefix, struct exec_orphan **list,
                      struct err *err)
{
    const char *file = strrchr(prefix, '/') + 1;
    char *folder = mem_dup((struct slice){prefix, (size_t)(file - prefix)});
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    *list = NULL;
    if (dir == NULL) {
        (void)err_set(err, ERR_IO, "open %s: %s", folder, strerror(errno));
        free(folder);
        return false;
    }
    while ((entry = readdir(dir)) != NULL) {
        struct slice name = slice_of(entry->d_name);
        struct buf path = BUF_INIT;
        uint64_t slot;

        if (slice_starts(name, slice_of(file)) &&
            text_u64(slice_from(name, strlen(file)), &slot)) {
            buf_printf(&path, "%s%s", folder, entry->d_name);
            add(list, buf_cstr(&path));
            buf_free(&path);
        }
    }
    (void)closedir(dir);
    free(folder);
    return true;
}

void exec_orphan_free(struct exec_orphan *list)
{
    while (list != NULL) {
        struct exec_orphan *next = list->next;

        free(list->path);
        free(list);
        list = next;
    }
}

static bool is_named(const struct exec_orphan *orphan,
                     const uint8_t identity[16], uint32_t number)
{
    return orphan->number == number &&
           memcmp(orphan->identity, identity, 16) == 0;
}

/* Busy, and not with an attempt of this run that got the lease since. What
 * cannot be read is held: the next look will tell. */
static bool holds_still(const struct exec_orphan *orphan)
{
    struct exec_orphan now = {.next = NULL};

    return exec_lease_is_busy(orphan->path) &&
           (!read_note(orphan->path, &now) ||
            is_named(&now, orphan->identity, orphan->number));
}

bool exec_orphan_is_alive(struct exec_orphan **list, const uint8_t identity[16],
                          uint32_t number)
{
    for (; *list != NULL; list = &(*list)->next) {
        struct exec_orphan *orphan = *list;

        if (!is_named(orphan, identity, number)) {
            continue;
        }
        if (holds_still(orphan)) {
            return true;
        }
        *list = orphan->next;
        orphan->next = NULL;
        exec_orphan_free(orphan);
        return false;
    }
    return false;
}

/* --- the end of them ----------------------------------------------------- */

static bool has_lease(pid_t pid, const char *path)
{
    char link[64];
    char target[PATH_MAX];
    ssize_t n;
    int len =
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, ONCED_LEASE_FD);

    CHECK(len > 0 && (size_t)len < sizeof link);
    n = readlink(link, target, sizeof target);
    return n > 0 && slice_eq((struct slice){target, (size_t)n}, slice_of(path));
}

/* The number of a process may be another's by the time of the signal: a
 * pidfd names the one that was looked at. Its group is killed only while it
 * is a member, for the same reason. */
static void kill_holder(const struct exec_orphan *orphan, pid_t pid)
{
    int fd = pidfd_open(pid, 0);

    if (fd == -1) {
        return;
    }
    if (has_lease(pid, orphan->path)) {
        if (orphan->pid != 0 && getpgid(pid) == orphan->pid) {
            (void)kill(-orphan->pid, SIGKILL);
        }
        (void)pidfd_send_signal(fd, SIGKILL, NULL, 0);
    }
    exec_fd_close(&fd);
}

static void kill_holders(const struct exec_orphan *orphan)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;
    uint64_t pid;

    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (text_u64(slice_of(entry->d_name), &pid) && pid > 1 &&
            pid <= INT_MAX && (pid_t)pid != getpid() &&
            has_lease((pid_t)pid, orphan->path)) {
            kill_holder(orphan, (pid_t)pid);
        }
    }
    (void)closedir(dir);
}

void exec_orphan_kill(struct exec_orphan *list, const uint8_t identity[16],
                      uint32_t number)
{
    for (; list != NULL; list = list->next) {
        if (is_named(list, identity, number) && holds_still(list)) {
            kill_holders(list);
        }
    }
}
