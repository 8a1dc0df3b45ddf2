/* SPDX-License-Identifier: MIT */
#include "source/http_loop.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mark.h"

enum {
    IDLE_TIMEOUT_MS = 60 * 1000,
    CONNECTION_BYTES = 32 * 1024, /* head, and a piece of the body */
    SHED_MAX = 256,  /* connections over the limit that get a proper 503 */
    SPARE_MAX = 256, /* further ones, on their way out */
    LAST_TURNS_MAX = 100,
};

struct http_loop {
    struct http_shared *shared;
    struct MHD_Daemon *daemon;
    struct http_deadlines deadlines;
    int64_t now_ms;  /* read once per turn */
    bool has_closed; /* a connection, since the last wait */
    uint32_t random;
    size_t n_held;
    int epoll_fd, wake_fd;
    pthread_t thread;
    atomic_bool is_ending;
    pthread_mutex_t lock;
    struct http_request *back; /* under the lock; newest first */
};

struct http_shared *http_loop_shared(struct http_loop *loop)
{
    return loop->shared;
}

uint32_t http_loop_random(struct http_loop *loop)
{
    loop->random = loop->random * 1664525U + 1013904223U;
    return loop->random >> 16;
}

static void wake(struct http_loop *loop)
{
    uint64_t one = 1;
    ssize_t n = write(loop->wake_fd, &one, sizeof(one));
    CHECK(n == (ssize_t)sizeof(one));
}

/* Under the lock also the wake-up: once the loop can see the request, it may
 * answer it, end and be freed. */
void http_loop_hand_back(struct http_request *request)
{
    struct http_loop *loop = request->connection->loop;
    CHECK(pthread_mutex_lock(&loop->lock) == 0);
    bool was_empty = loop->back == NULL;
    request->next_back = loop->back;
    loop->back = request;
    if (was_empty) {
        wake(loop);
    }
    CHECK(pthread_mutex_unlock(&loop->lock) == 0);
}

void http_loop_hold(struct http_request *request)
{
    struct http_loop *loop = request->connection->loop;
    loop->n_held++;
    http_connection_wait(&loop->deadlines, request->connection, HTTP_WAIT_NONE,
                         loop->now_ms);
    MHD_suspend_connection(request->handle);
}

void http_loop_answered(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    http_connection_wait(&loop->deadlines, connection, HTTP_WAIT_PEER,
                         loop->now_ms);
}

/* --- what libmicrohttpd calls -------------------------------------------- */

static struct http_connection *connection_of(struct MHD_Connection *handle)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    CHECK(info != NULL);
    CHECK(info->socket_context != NULL);
    return info->socket_context;
}

/* libmicrohttpd would make a record of each parameter in the little memory of
 * the connection; when that is full it goes on with a request that it has
 * refused, and forgets to tell its end (0.9.75, 4,000 parameters). The text
 * is its own buffer, which it changes in place next: end it behind the '?'. */
static void hide_query(const char *target)
{
    char *mark = target != NULL ? strchr(target, '?') : NULL;
    if (mark != NULL && mark[1] != '\0') {
        mark[1] = '\0';
    }
}

static void *on_request_line(void *cls, const char *target,
                             struct MHD_Connection *handle)
{
    struct http_loop *loop = cls;
    struct http_connection *connection = connection_of(handle);
    /* The time of the first request runs since the connection was made. */
    if (connection->waits == HTTP_WAIT_PEER) {
        http_connection_wait(&loop->deadlines, connection, HTTP_WAIT_REQUEST,
                             loop->now_ms);
    }
    CHECK(connection->request == NULL);
    connection->request = http_request_new(connection, handle, target);
    hide_query(target);
    return connection->request;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *handle,
                                  const char *url, const char *method,
                                  const char *version, const char *data,
                                  size_t *len, void **request)
{
    (void)cls;
    (void)url; /* decoded: of no use */
    CHECK(*request != NULL);
    struct http_call call = {handle, method, version, {data, *len}};
    *len = 0;
    return http_request_step(*request, &call) ? MHD_YES : MHD_NO;
}

static void on_completed(void *cls, struct MHD_Connection *handle,
                         void **request, enum MHD_RequestTerminationCode why)
{
    (void)cls;
    (void)handle;
    (void)why;
    struct http_request *ended = *request;
    if (ended == NULL) {
        return;
    }
    struct http_connection *connection = ended->connection;
    CHECK(connection->request == ended);
    connection->request = NULL;
    http_loop_answered(connection);
    http_request_free(ended);
    *request = NULL;
    MARK(answer_sent);
}

static void open_connection(struct http_loop *loop,
                            struct MHD_Connection *handle, void **context)
{
    struct http_shared *shared = loop->shared;
    struct http_connection *connection = mem_new(1, sizeof(*connection));
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
    CHECK(info != NULL);
    connection->loop = loop;
    connection->fd = info->connect_fd;
    info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (shared->tls.certificate != NULL && info != NULL) {
        connection->tls = info->tls_session;
    }
    if (shared->tls.client_ca != NULL) {
        http_tls_demand_client(connection->tls);
    }
    *context = connection;
    http_connection_add(&loop->deadlines, connection, loop->now_ms);

    unsigned others = atomic_fetch_add(&shared->connections, 1);
    unsigned max = shared->options.max_connections;
    connection->is_shed = others >= max;
    if (others >= max + SHED_MAX) {
        http_connection_end(connection, http_answer_too_many);
    }
}

static void close_connection(struct http_loop *loop, void **context)
{
    struct http_connection *connection = *context;
    /* It does not tell of every end of a request that it breaks off. */
    if (connection->request != NULL) {
        http_request_free(connection->request);
    }
    http_connection_wait(&loop->deadlines, connection, HTTP_WAIT_NONE, 0);
    atomic_fetch_sub(&loop->shared->connections, 1);
    free(connection);
    *context = NULL;
    loop->has_closed = true;
}

static void on_connection(void *cls, struct MHD_Connection *handle,
                          void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    switch (what) {
    case MHD_CONNECTION_NOTIFY_STARTED:
        open_connection(cls, handle, context);
        return;
    case MHD_CONNECTION_NOTIFY_CLOSED:
        close_connection(cls, context);
        return;
    }
}

/* --- turns --------------------------------------------------------------- */

static struct http_request *take_back_list(struct http_loop *loop)
{
    CHECK(pthread_mutex_lock(&loop->lock) == 0);
    struct http_request *list = loop->back;
    loop->back = NULL;
    CHECK(pthread_mutex_unlock(&loop->lock) == 0);
    return list;
}

static void resume_decided(struct http_loop *loop)
{
    struct http_request *request = take_back_list(loop);
    while (request != NULL) {
        struct http_request *next = request->next_back;
        CHECK(loop->n_held > 0);
        loop->n_held--;
        http_request_decided(request);
        http_loop_answered(request->connection);
        MHD_resume_connection(request->handle);
        request = next;
    }
}

static void end_expired(struct http_loop *loop)
{
    struct http_connection *late;
    while ((late = http_connection_expired(&loop->deadlines, loop->now_ms)) !=
           NULL) {
        const char *last_words = NULL;
        if (late->request != NULL) {
            last_words = http_request_expire(late->request);
        }
        http_connection_end(late, last_words);
    }
}

static int wait_ms(struct http_loop *loop)
{
    MHD_UNSIGNED_LONG_LONG pending;
    int64_t wait = http_connection_next_ms(&loop->deadlines, loop->now_ms);
    /* Out of descriptors, the library stops to accept, and begins again in a
     * run after the one that closed a connection; nothing else wakes it. */
    if (loop->has_closed) {
        loop->has_closed = false;
        return 0;
    }
    if (MHD_get_timeout(loop->daemon, &pending) == MHD_YES &&
        (wait < 0 || pending < (MHD_UNSIGNED_LONG_LONG)wait)) {
        wait = (int64_t)pending;
    }
    return wait > INT_MAX ? INT_MAX : (int)wait;
}

static void wait_for_work(struct http_loop *loop)
{
    struct epoll_event events[2];
    uint64_t ignored;
    int n = epoll_wait(loop->epoll_fd, events, 2, wait_ms(loop));
    CHECK(n >= 0 || errno == EINTR);
    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == loop->wake_fd) {
            (void)read(loop->wake_fd, &ignored, sizeof(ignored));
        }
    }
}

static void turn(struct http_loop *loop)
{
    loop->now_ms = clock_boot_ms(loop->shared->options.clock);
    resume_decided(loop);
    CHECK(MHD_run(loop->daemon) == MHD_YES);
    end_expired(loop);
}

/* Writes what was decided at the very end. */
static void last_turns(struct http_loop *loop)
{
    MHD_UNSIGNED_LONG_LONG pending;
    for (int i = 0; i < LAST_TURNS_MAX; i++) {
        turn(loop);
        if (MHD_get_timeout(loop->daemon, &pending) != MHD_YES || pending > 0) {
            return;
        }
    }
}

static void *run(void *arg)
{
    struct http_loop *loop = arg;
    while (!atomic_load(&loop->is_ending)) {
        wait_for_work(loop);
        turn(loop);
    }
    last_turns(loop);
    return NULL;
}

/* --- start and end ------------------------------------------------------- */

static struct MHD_Daemon *start_daemon(struct http_loop *loop, int listen_fd)
{
    const struct http_tls *tls = &loop->shared->tls;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    unsigned limit =
        loop->shared->options.max_connections + SHED_MAX + SPARE_MAX;
    struct MHD_OptionItem tls_options[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)HTTP_TLS_PRIORITIES},
        {MHD_OPTION_HTTPS_MEM_CERT, 0, tls->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key},
        {tls->client_ca != NULL ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END,
         0, tls->client_ca},
        {MHD_OPTION_END, 0, NULL},
    };
    if (tls->certificate != NULL) {
        flags |= MHD_USE_TLS;
    } else {
        tls_options[0].option = MHD_OPTION_END;
    }
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, loop, /* */
                            MHD_OPTION_LISTEN_SOCKET, listen_fd,    /* */
                            MHD_OPTION_URI_LOG_CALLBACK, on_request_line, loop,
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, loop,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, loop,
                            MHD_OPTION_CONNECTION_LIMIT, limit, /* */
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_BYTES, MHD_OPTION_ARRAY,
                            tls_options, MHD_OPTION_END);
}

static bool watch(struct http_loop *loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool open_descriptors(struct http_loop *loop)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    CHECK(info != NULL);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return loop->epoll_fd >= 0 && loop->wake_fd >= 0 &&
           watch(loop, loop->wake_fd) && watch(loop, info->epoll_fd);
}

static void free_loop(struct http_loop *loop)
{
    MHD_stop_daemon(loop->daemon);
    if (loop->wake_fd >= 0) {
        (void)close(loop->wake_fd);
    }
    if (loop->epoll_fd >= 0) {
        (void)close(loop->epoll_fd);
    }
    CHECK(pthread_mutex_destroy(&loop->lock) == 0);
    free(loop);
}

bool http_loop_start(struct http_loop **out, struct http_shared *shared,
                     int listen_fd, struct err *err)
{
    struct http_loop *loop = mem_new(1, sizeof(*loop));
    loop->shared = shared;
    loop->epoll_fd = loop->wake_fd = -1;
    hash_random(&loop->random, sizeof(loop->random));
    loop->now_ms = clock_boot_ms(shared->options.clock);
    http_connection_init(&loop->deadlines, shared->options.request_timeout_ms,
                         IDLE_TIMEOUT_MS);
    CHECK(pthread_mutex_init(&loop->lock, NULL) == 0);

    loop->daemon = start_daemon(loop, listen_fd);
    if (loop->daemon == NULL) {
        /* It has closed the socket by then. */
        (void)err_set(err, ERR_IO, "start the HTTP library: %s",
                      strerror(errno));
        goto fail;
    }
    if (!open_descriptors(loop)) {
        (void)err_set(err, ERR_IO, "epoll: %s", strerror(errno));
        goto fail;
    }
    int code = pthread_create(&loop->thread, NULL, run, loop);
    if (code != 0) {
        (void)err_set(err, ERR_IO, "start a thread: %s", strerror(code));
        goto fail;
    }
    (void)pthread_setname_np(loop->thread, "http"); /* for people */
    *out = loop;
    return true;
fail:
    free_loop(loop);
    return false;
}

void http_loop_stop(struct http_loop **taken)
{
    struct http_loop *loop = *taken;
    if (loop == NULL) {
        return;
    }
    *taken = NULL;
    atomic_store(&loop->is_ending, true);
    wake(loop);
    CHECK(pthread_join(loop->thread, NULL) == 0);
    CHECK(loop->n_held == 0);
    free_loop(loop);
}
