/* SPDX-License-Identifier: MIT */
#include "app/admin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/admin_internal.h"
#include "base/check.h"

enum { IDLE_TIMEOUT_S = 30, CONNECTION_BYTES = 32 * 1024, BACKLOG = 64 };

/* For a caller that does not take its answer. */
enum { SEND_TIMEOUT_MS = 2000 };

/* --- listening sockets --------------------------------------------------- */

/* The folder of the socket, for its owner alone where it is made here. */
static bool make_folder(const char *socket_path, struct err *err)
{
    char *folder = mem_strdup(socket_path);
    char *slash = strrchr(folder, '/');
    bool ok = true;

    if (slash != NULL && slash != folder) {
        *slash = '\0';
        ok =
            mkdir(folder, 0700) == 0 || errno == EEXIST ||
            err_set(err, ERR_IO, "make folder %s: %s", folder, strerror(errno));
    }
    free(folder);
    return ok;
}

/* The mode is set before anybody can connect: the socket does not listen. */
static bool listen_local(struct http_address *address, int *fd, struct err *err)
{
    const char *path = address->local.sun_path;

    if (!make_folder(path, err) || !http_bind_probe(address, err)) {
        return false;
    }
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0 && bind(*fd, &address->any, address->len) == 0) {
        address->is_ours = true;
        if (chmod(path, 0600) == 0 && listen(*fd, BACKLOG) == 0) {
            return true;
        }
    }
    (void)err_set(err, ERR_IO, "listen on %s: %s", path, strerror(errno));
    if (*fd >= 0) {
        (void)close(*fd); /* nothing came by it */
    }
    return false;
}

static bool listen_tcp(struct http_address *address, int *fd, struct err *err)
{
    return http_bind_probe(address, err) && http_bind_listen(address, fd, err);
}

/* --- daemons ------------------------------------------------------------- */

static bool start_daemon(struct admin_listener *listener, int fd,
                         struct err *err)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
                     MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC;

    listener->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, admin_request_serve, listener, /* */
        MHD_OPTION_LISTEN_SOCKET, fd,                        /* */
        MHD_OPTION_URI_LOG_CALLBACK, admin_request_begin, listener,
        MHD_OPTION_NOTIFY_COMPLETED, admin_request_end, listener,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)ADMIN_CONNECTIONS, /* */
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S,  /* */
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_END);
    if (listener->daemon == NULL) {
        (void)close(fd); /* nothing came by it */
        return err_set(err, ERR_IO, "serve %s", listener->text);
    }
    return true;
}

static bool start_listener(struct admin_listener *listener, struct err *err)
{
    int fd;
    bool ok;

    if (!http_bind_parse(listener->text, &listener->address, err)) {
        return false;
    }
    ok = http_bind_is_unix(&listener->address)
             ? listen_local(&listener->address, &fd, err)
             : listen_tcp(&listener->address, &fd, err);
    return ok && start_daemon(listener, fd, err);
}

bool admin_start(struct admin **out, const struct admin_options *options,
                 struct err *err)
{
    struct admin *admin = mem_new(1, sizeof *admin);
    const struct config *config = options->config;
    struct buf socket = BUF_INIT;
    bool ok = true;

    admin->config = config;
    admin->engine = options->engine;
    admin->store = options->store;
    admin->kafka = options->kafka;
    CHECK(pthread_mutex_init(&admin->lock, NULL) == 0);
    CHECK(pthread_cond_init(&admin->ending_changed, NULL) == 0);
    CHECK(pthread_cond_init(&admin->answered, NULL) == 0);
    buf_printf(&socket, "unix:%s", config->admin.socket);
    admin->listeners[0].text = mem_dup(buf_slice(&socket));
    buf_free(&socket);
    if (config->admin.address != NULL) {
        admin->listeners[1].text = mem_strdup(config->admin.address);
    }
    for (size_t i = 0; ok && i < 2 && admin->listeners[i].text != NULL; i++) {
        admin->listeners[i].admin = admin;
        ok = start_listener(&admin->listeners[i], err);
    }
    if (!ok) {
        (void)err_wrap(err, "admin");
        admin_stop(&admin);
    }
    *out = admin;
    return ok;
}

void admin_set_ready(struct admin *admin, bool ready)
{
    admin->ready = ready;
}

/* --- ending -------------------------------------------------------------- */

bool admin_is_ending(struct admin *admin)
{
    bool ending;

    CHECK(pthread_mutex_lock(&admin->lock) == 0);
    ending = admin->ending;
    CHECK(pthread_mutex_unlock(&admin->lock) == 0);
    return ending;
}

static struct timespec time_in(int64_t ms)
{
    struct timespec until;

    CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

bool admin_wait(struct admin *admin, int64_t ms)
{
    struct timespec until = time_in(ms);
    int rc = 0;
    bool ending;

    CHECK(pthread_mutex_lock(&admin->lock) == 0);
    while (!admin->ending && rc == 0) {
        rc = pthread_cond_timedwait(&admin->ending_changed, &admin->lock,
                                    &until);
    }
    ending = admin->ending;
    CHECK(pthread_mutex_unlock(&admin->lock) == 0);
    return !ending;
}

static void end_waits(struct admin *admin)
{
    CHECK(pthread_mutex_lock(&admin->lock) == 0);
    admin->ending = true;
    CHECK(pthread_cond_broadcast(&admin->ending_changed) == 0);
    CHECK(pthread_mutex_unlock(&admin->lock) == 0);
}

bool admin_begin_serving(struct admin *admin)
{
    bool may;

    CHECK(pthread_mutex_lock(&admin->lock) == 0);
    may = !admin->ending;
    admin->serving += may ? 1 : 0;
    CHECK(pthread_mutex_unlock(&admin->lock) == 0);
    return may;
}

void admin_begin_sending(struct admin *admin)
{
    CHECK(pthread_mutex_lock(&admin->lock) == 0);
    CHECK(admin->serving > 0);
    admin->serving--;
    admin->sending++;
    CHECK(pthread_cond_broadcast(&admin->answered) == 0);
    CHECK(pthread_mutex_unlock(&admin->lock) == 0);
}

void admin_end_sending(struct admin *admin)
{
    CHECK(pthread_mutex_lock(&admin->lock) == 0);
    CHECK(admin->sending > 0);
    admin->sending--;
    CHECK(pthread_cond_broadcast(&admin->answered) == 0);
    CHECK(pthread_mutex_unlock(&admin->lock) == 0);
}

/* The library cuts connections off, also those that wait for an answer. */
static void wait_answers(struct admin *admin)
{
    struct timespec until;
    int rc = 0;

    CHECK(pthread_mutex_lock(&admin->lock) == 0);
    while (admin->serving > 0) {
        CHECK(pthread_cond_wait(&admin->answered, &admin->lock) == 0);
    }
    until = time_in(SEND_TIMEOUT_MS);
    while (admin->sending > 0 && rc == 0) {
        rc = pthread_cond_timedwait(&admin->answered, &admin->lock, &until);
    }
    CHECK(pthread_mutex_unlock(&admin->lock) == 0);
}

void admin_stop(struct admin **admin)
{
    struct admin *old = *admin;

    *admin = NULL;
    if (old == NULL) {
        return;
    }
    end_waits(old);
    wait_answers(old);
    for (size_t i = 0; i < 2; i++) {
        struct admin_listener *listener = &old->listeners[i];

        if (listener->daemon != NULL) {
            MHD_stop_daemon(listener->daemon);
        }
        http_bind_remove(&listener->address);
        free(listener->text);
    }
    (void)pthread_cond_destroy(&old->ending_changed);
    (void)pthread_cond_destroy(&old->answered);
    (void)pthread_mutex_destroy(&old->lock);
    free(old);
}
