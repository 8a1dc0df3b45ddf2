/* SPDX-License-Identifier: MIT */
#include "power/record.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"

enum { FILES_MAX = 16 };

static struct {
    bool on;
    int fd;
    char root[PATH_MAX];
    ino_t files[FILES_MAX];
    size_t n_files;
    enum log_kind kill_kind;
    unsigned kill_in; /* 0: never */
} state;

void record_start(const char *path, const char *root)
{
    CHECK(strlen(root) < sizeof state.root);
    strcpy(state.root, root);
    state.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(state.fd >= 0);
    state.on = true;
}

void record_kill_at(enum log_kind kind, unsigned nth)
{
    state.kill_kind = kind;
    state.kill_in = nth;
}

static void count_down(enum log_kind kind)
{
    if (kind == state.kill_kind && state.kill_in > 0 && --state.kill_in == 0) {
        (void)raise(SIGKILL);
    }
}

static void add(struct log_head head, const void *bytes)
{
    struct iovec parts[] = {{&head, sizeof head},
                            {(void *)(uintptr_t)bytes, head.len}};
    ssize_t n;

    if (head.kind == LOG_WROTE) {
        count_down(LOG_WROTE);
    }
    n = syscall(SYS_writev, state.fd, parts, 2);
    CHECK(n == (ssize_t)(sizeof head + head.len));
    if (head.kind != LOG_WROTE) {
        count_down((enum log_kind)head.kind);
    }
}

void record_fact(const void *fact, size_t len)
{
    add((struct log_head){.kind = LOG_FACT, .len = (uint32_t)len}, fact);
}

/* --- what belongs to the store -------------------------------------------- */

static ino_t inode_of(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

static bool is_ours(int fd)
{
    ino_t inode;

    if (!state.on) {
        return false;
    }
    inode = inode_of(fd);
    for (size_t i = 0; i < state.n_files; i++) {
        if (state.files[i] == inode) {
            return true;
        }
    }
    return false;
}

static void know(ino_t inode)
{
    CHECK(state.n_files < FILES_MAX);
    state.files[state.n_files++] = inode;
}

/* The length of the path that the descriptor was opened under. */
static size_t path_of(int fd, char out[PATH_MAX])
{
    char link[32] = "/proc/self/cwd";
    ssize_t n;

    if (fd != AT_FDCWD) {
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    }
    n = readlink(link, out, PATH_MAX - 1);
    CHECK(n > 0);
    out[n] = '\0';
    return (size_t)n;
}

/* The path below the root, or NULL where it is elsewhere. `buf` is the
 * caller's room for it. */
static const char *below_root(int dir, const char *path, char buf[PATH_MAX])
{
    size_t root_len = strlen(state.root), len = 0;

    if (!state.on) {
        return NULL;
    }
    if (path[0] != '/') {
        len = path_of(dir, buf);
        buf[len++] = '/';
    }
    CHECK(len + strlen(path) < PATH_MAX);
    strcpy(buf + len, path);
    len = strlen(buf);
    while (len > 0 && buf[len - 1] == '/') {
        buf[--len] = '\0';
    }
    if (strncmp(buf, state.root, root_len) != 0) {
        return NULL;
    }
    return buf[root_len] == '\0'  ? buf + root_len
           : buf[root_len] == '/' ? buf + root_len + 1
                                  : NULL;
}

static bool is_data(const char *path)
{
    const char *name = path == NULL ? NULL : strrchr(path, '/');

    return name != NULL && strcmp(name, "/data.mdb") == 0;
}

static void add_path(enum log_kind kind, ino_t file, const char *path)
{
    add((struct log_head){.kind = kind,
                          .len = (uint32_t)strlen(path),
                          .file = file},
        path);
}

/* --- files ------------------------------------------------------------------
 */

static int open_file(int dir, const char *path, int flags, mode_t mode)
{
    char buf[PATH_MAX];
    const char *below = below_root(dir, path, buf);
    bool is_new = is_data(below) && (flags & O_CREAT) != 0 &&
                  faccessat(dir, path, F_OK, 0) != 0;
    int fd = (int)syscall(SYS_openat, dir, path, flags, mode);

    if (fd < 0 || !is_data(below)) {
        return fd;
    }
    CHECK((flags & O_TRUNC) == 0);
    if (is_new || !is_ours(fd)) {
        know(inode_of(fd));
    }
    if (is_new) {
        add_path(LOG_CREATE, inode_of(fd), below);
    }
    return fd;
}

static mode_t mode_of(int flags, va_list rest)
{
    return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    mode_t mode;

    va_start(rest, flags);
    mode = mode_of(flags, rest);
    va_end(rest);
    return open_file(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list rest;
    mode_t mode;

    va_start(rest, flags);
    mode = mode_of(flags, rest);
    va_end(rest);
    return open_file(dir, path, flags, mode);
}

/* After the write, so that only what went in is logged. */
static void add_write(int fd, const void *bytes, ssize_t len, off_t offset)
{
    int flags = fcntl(fd, F_GETFL);
    struct log_head head = {.kind = LOG_WRITE,
                            .len = (uint32_t)len,
                            .file = inode_of(fd),
                            .offset = (uint64_t)offset};

    if (len <= 0) {
        return;
    }
    add(head, bytes);
    if ((flags & O_DSYNC) != 0) {
        head.kind = LOG_WROTE;
        head.len = 0;
        add(head, NULL);
    }
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    ssize_t n = syscall(SYS_pwrite64, fd, bytes, len, offset);

    if (is_ours(fd)) {
        add_write(fd, bytes, n, offset);
    }
    return n;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    bool ours = is_ours(fd);
    off_t offset = ours ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t n = syscall(SYS_writev, fd, parts, count), left = n;

    for (int i = 0; ours && i < count && left > 0; i++) {
        ssize_t len = (ssize_t)parts[i].iov_len;

        len = len < left ? len : left;
        add_write(fd, parts[i].iov_base, len, offset);
        offset += len;
        left -= len;
    }
    return n;
}

static int sync_file(int fd, long call)
{
    struct stat info;
    char buf[PATH_MAX];
    const char *below;
    int rc = (int)syscall(call, fd);

    if (!state.on || rc != 0 || fstat(fd, &info) != 0) {
        return rc;
    }
    if (is_ours(fd)) {
        add((struct log_head){.kind = LOG_SYNC, .file = info.st_ino}, NULL);
    } else if (S_ISDIR(info.st_mode)) {
        below = below_root(fd, "", buf);
        if (below != NULL) {
            add_path(LOG_SYNC_DIR, info.st_ino, below);
        }
    }
    return rc;
}

int fdatasync(int fd)
{
    return sync_file(fd, SYS_fdatasync);
}

int fsync(int fd)
{
    return sync_file(fd, SYS_fsync);
}

/* Blocks behind the end, and holes: neither the size nor what is read. */
int fallocate(int fd, int mode, off_t offset, off_t len)
{
    CHECK(!is_ours(fd) || mode == FALLOC_FL_KEEP_SIZE);
    return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

/* --- not known to the replay -----------------------------------------------
 */

ssize_t write(int fd, const void *bytes, size_t len)
{
    CHECK(!is_ours(fd));
    return syscall(SYS_write, fd, bytes, len);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    CHECK(!is_ours(fd));
    return syscall(SYS_pwritev, fd, parts, count, offset, 0);
}

int ftruncate(int fd, off_t size)
{
    CHECK(!is_ours(fd));
    return (int)syscall(SYS_ftruncate, fd, size);
}

int sync_file_range(int fd, off_t offset, off_t len, unsigned flags)
{
    CHECK(!is_ours(fd));
    return (int)syscall(SYS_sync_file_range, fd, offset, len, flags);
}

/* --- folders ---------------------------------------------------------------
 */

static int made(int dir, const char *path, int rc)
{
    char buf[PATH_MAX];
    const char *below = rc == 0 ? below_root(dir, path, buf) : NULL;

    if (below != NULL) {
        add_path(LOG_MKDIR, 0, below);
    }
    return rc;
}

int mkdir(const char *path, mode_t mode)
{
    return made(AT_FDCWD, path, (int)syscall(SYS_mkdir, path, mode));
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    return made(dir, path, (int)syscall(SYS_mkdirat, dir, path, mode));
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    char buf[PATH_MAX];
    const char *below = below_root(to_dir, to, buf);
    struct stat info = {.st_ino = 0};
    int rc = fstatat(from_dir, from, &info, 0);

    if (rc == 0) {
        rc = (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
    }
    if (rc == 0 && is_data(below)) {
        add_path(LOG_RENAME, info.st_ino, below);
    }
    return rc;
}

int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat(int dir, const char *path, int flags)
{
    char buf[PATH_MAX];
    const char *below = below_root(dir, path, buf);
    int rc = (int)syscall(SYS_unlinkat, dir, path, flags);

    if (rc == 0 && below != NULL &&
        (is_data(below) || (flags & AT_REMOVEDIR) != 0)) {
        add_path(LOG_REMOVE, 0, below);
    }
    return rc;
}
