/* SPDX-License-Identifier: MIT */
/*
 * What the HTTP library can do at most: the loop of src/source/http_loop.c
 * with a handler that reads the body and answers 202 at once. It decides,
 * verifies and stores nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"

enum {
    LOOPS_MAX = 64,
    CONNECTION_BYTES = 32 * 1024,
    CONNECTIONS_MAX = 4096,
    BACKLOG = 1024,
    EX_USAGE = 64,
};

struct loop {
    struct MHD_Daemon *daemon;
    int epoll_fd, wake_fd;
    pthread_t thread;
    atomic_bool is_ending;
};

static struct MHD_Response *answer;

static void *on_request_line(void *cls, const char *target,
                             struct MHD_Connection *handle)
{
    (void)target;
    (void)handle;
    return cls;
}

/* Called with the head, with each piece of the body, and at the end. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *handle,
                                  const char *url, const char *method,
                                  const char *version, const char *data,
                                  size_t *len, void **request)
{
    (void)cls;
    (void)url;
    (void)method;
    (void)version;
    (void)data;
    bool is_head = *request != NULL;
    *request = NULL;
    if (is_head) {
        return MHD_YES;
    }
    if (*len > 0) {
        *len = 0;
        return MHD_YES;
    }
    return MHD_queue_response(handle, MHD_HTTP_ACCEPTED, answer);
}

/* --- turns --------------------------------------------------------------- */

static int wait_ms(struct loop *loop)
{
    MHD_UNSIGNED_LONG_LONG pending;
    if (MHD_get_timeout(loop->daemon, &pending) != MHD_YES) {
        return -1;
    }
    return pending > INT_MAX ? INT_MAX : (int)pending;
}

static void wait_for_work(struct loop *loop)
{
    struct epoll_event events[2];
    uint64_t ignored;
    int n = epoll_wait(loop->epoll_fd, events, 2, wait_ms(loop));
    CHECK(n >= 0 || errno == EINTR);
    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == loop->wake_fd) {
            (void)!read(loop->wake_fd, &ignored, sizeof(ignored));
        }
    }
}

static void *run(void *arg)
{
    struct loop *loop = arg;
    while (!atomic_load(&loop->is_ending)) {
        wait_for_work(loop);
        CHECK(MHD_run(loop->daemon) == MHD_YES);
    }
    return NULL;
}

/* --- start and end ------------------------------------------------------- */

static _Noreturn void fail(const char *what)
{
    (void)fprintf(stderr, "ceiling: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static int listen_at(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(fd, BACKLOG) != 0) {
        fail("listen");
    }
    return fd;
}

static void watch(const struct loop *loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        fail("epoll");
    }
}

static void start_loop(struct loop *loop, uint16_t port)
{
    loop->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
        loop, MHD_OPTION_LISTEN_SOCKET, listen_at(port),
        MHD_OPTION_URI_LOG_CALLBACK, on_request_line, loop,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_END);
    if (loop->daemon == NULL) {
        fail("start the HTTP library");
    }
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->wake_fd < 0) {
        fail("epoll");
    }
    watch(loop, loop->wake_fd);
    watch(
        loop,
        MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd);
    if (pthread_create(&loop->thread, NULL, run, loop) != 0) {
        fail("start a thread");
    }
}

static void stop_loop(struct loop *loop)
{
    uint64_t one = 1;
    atomic_store(&loop->is_ending, true);
    CHECK(write(loop->wake_fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
    CHECK(pthread_join(loop->thread, NULL) == 0);
    MHD_stop_daemon(loop->daemon);
    (void)close(loop->wake_fd);
    (void)close(loop->epoll_fd);
}

int main(int argc, char **argv)
{
    static struct loop loops[LOOPS_MAX];
    uint64_t port, n_loops;
    sigset_t signals;
    int number;
    if (argc != 3 || !text_u64(slice_of(argv[1]), &port) ||
        !text_u64(slice_of(argv[2]), &n_loops) || port > UINT16_MAX ||
        n_loops == 0 || n_loops > LOOPS_MAX) {
        (void)fputs("ceiling PORT THREADS\n", stderr);
        return EX_USAGE;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    answer = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    CHECK(answer != NULL);
    for (size_t i = 0; i < n_loops; i++) {
        start_loop(&loops[i], (uint16_t)port);
    }
    CHECK(sigwait(&signals, &number) == 0);
    for (size_t i = 0; i < n_loops; i++) {
        stop_loop(&loops[i]);
    }
    MHD_destroy_response(answer);
    return EXIT_SUCCESS;
}
