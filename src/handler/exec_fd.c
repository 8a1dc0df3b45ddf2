/* SPDX-License-Identifier: MIT */
#include "handler/exec_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "onced/handler.h"

int exec_fd_above(int fd)
{
    int moved;
    int error;

    if (fd == -1 || fd > ONCED_LEASE_FD) {
        return fd;
    }
    moved = fcntl(fd, F_DUPFD_CLOEXEC, ONCED_LEASE_FD + 1);
    error = errno;
    (void)close(fd);
    errno = error;
    return moved;
}

bool exec_fd_pipe(int fds[2], int ours)
{
    if (pipe2(fds, O_CLOEXEC) != 0) {
        fds[0] = -1;
        fds[1] = -1;
        return false;
    }
    fds[0] = exec_fd_above(fds[0]);
    fds[1] = exec_fd_above(fds[1]);
    if (fds[0] == -1 || fds[1] == -1 ||
        fcntl(fds[ours], F_SETFL, O_NONBLOCK) != 0) {
        int error = errno;

        exec_fd_close(&fds[0]);
        exec_fd_close(&fds[1]);
        errno = error;
        return false;
    }
    return true;
}

void exec_fd_close(int *fd)
{
    if (*fd != -1) {
        (void)close(*fd); /* nothing of ours is buffered in it */
        *fd = -1;
    }
}
