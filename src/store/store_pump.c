/* SPDX-License-Identifier: MIT */
/* LMDB writes a copy in one call that cannot be ended, and tells nothing of
 * how it goes. Through a pipe it can be: whoever closes the other end has
 * ended it. */
#include "store/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"

/* What is read at a time: a multiple of any page, for O_DIRECT. */
enum { PUMP_BYTES = 1 << 20, PUMP_ALIGNED = 1 << 16 };

struct copier {
    MDB_env *env;
    int fd; /* of the pipe */
    int rc;
};

static void *copier_main(void *arg)
{
    struct copier *copier = arg;

    copier->rc = mdb_env_copyfd2(copier->env, copier->fd, MDB_CP_COMPACT);
    (void)close(copier->fd); /* the end, for the reader */
    return NULL;
}

/* As much as there is room for, less at the end; < 0 with errno. */
static ssize_t fill(int fd, char *room)
{
    size_t len = 0;
    ssize_t n = 1;

    while (n > 0 && len < PUMP_BYTES) {
        n = read(fd, room + len, PUMP_BYTES - len);
        if (n < 0 && errno == EINTR) {
            n = 1;
        } else if (n > 0) {
            len += (size_t)n;
        }
    }
    return n < 0 ? -1 : (ssize_t)len;
}

static bool write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n == 0) {
            errno = EIO;
            return false;
        }
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static int pump_all(struct store_pump *pump, int from, char *room)
{
    ssize_t n;

    while ((n = fill(from, room)) > 0) {
        if (pump->is_wanted != NULL && !pump->is_wanted(pump->ctx)) {
            pump->given_up = true;
            return ECANCELED;
        }
        if (!write_all(pump->fd, room, (size_t)n)) {
            return errno;
        }
    }
    return n < 0 ? errno : 0;
}

static int run(struct store_pump *pump, int ends[2])
{
    struct copier copier = {.env = pump->env, .fd = ends[1]};
    char *room = aligned_alloc(PUMP_ALIGNED, PUMP_BYTES);
    pthread_t thread;
    int rc = pthread_create(&thread, NULL, copier_main, &copier);

    CHECK(room != NULL);
    if (rc != 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        free(room);
        return rc;
    }
    rc = pump_all(pump, ends[0], room);
    (void)close(ends[0]); /* ends the copy, where it goes on */
    CHECK(pthread_join(thread, NULL) == 0);
    free(room);
    return rc != 0 ? rc : copier.rc;
}

int store_pump_run(struct store_pump *pump)
{
    int ends[2];

    pump->given_up = false;
    return pipe2(ends, O_CLOEXEC) == 0 ? run(pump, ends) : errno;
}
