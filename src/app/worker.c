/* SPDX-License-Identifier: MIT */
#include "app/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/admin.h"
#include "app/kafka_setup.h"
#include "app/labels.h"
#include "app/setup.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"
#include "base/metrics.h"
#include "engine/engine.h"

enum {
    SIGNAL_POLL_MS = 20,
    HANDLERS_END_MS = 5000,
    SIGNAL_FAILED = SIGUSR1, /* from within: the worker has failed */
};

struct worker {
    const struct config *config;
    struct store *store;
    struct engine *engine;
    struct handler *handlers; /* one per route; ops NULL: none */
    struct kafka_setup *kafka;
    struct http_source *source;
    struct admin *admin;
    struct http_route *http_routes;
    char *lease_dir;
    pthread_t engine_thread;
    bool engine_started;
    atomic_bool ending;     /* the engine's thread ends */
    atomic_size_t attempts; /* in flight after the last turn */
    atomic_flag has_fatal;  /* `fatal` is taken */
    atomic_bool failed;     /* it is filled: the worker has to end */
    struct err fatal;
};

/* --- the engine's thread
 * ------------------------------------------------------ */

static void *engine_main(void *arg)
{
    struct worker *worker = arg;
    struct err err;
    bool is_last = false;

    (void)pthread_setname_np(pthread_self(), "engine");
    while (!is_last) {
        is_last = worker->ending; /* what came before that is looked at */
        if (!engine_turn(worker->engine, is_last ? 0 : -1, &err)) {
            log_error("worker", "the store failed, ending at once", &err);
            log_stop();
            _exit((int)err.kind);
        }
        worker->attempts = engine_running(worker->engine);
    }
    return NULL;
}

/* --- building
 * ------------------------------------------------------------------- */

static bool make_handler(struct worker *worker, size_t i, struct err *err)
{
    const struct config_route *route = &worker->config->routes[i];
    struct handler *handler = &worker->handlers[i];
    struct exec_handler_options exec = route->exec;
    bool ok = true;

    switch (route->handler) {
    case CONFIG_HANDLER_NONE:
        break;
    case CONFIG_HANDLER_HTTP:
        ok = http_handler_new(handler, &route->http, err);
        break;
    case CONFIG_HANDLER_EXEC:
        exec.lease_dir = worker->lease_dir;
        exec.route = route->name;
        ok = exec_handler_new(handler, &exec, err);
        break;
    case CONFIG_HANDLER_NOOP:
        ok = noop_handler_new(handler, &route->noop, err);
        break;
    case CONFIG_HANDLER_KAFKA:
        ok = kafka_setup_handler(worker->kafka, i, handler, err);
        break;
    }
    return ok || err_wrap(err, "route \"%s\"", route->name);
}

static bool open_store(struct worker *worker, struct err *err)
{
    const struct config *config = worker->config;
    struct store_options options = setup_store(config);
    struct buf lease_dir = BUF_INIT;

    buf_printf(&lease_dir, "%s/lease", config->store.path);
    worker->lease_dir = mem_dup(buf_slice(&lease_dir));
    buf_free(&lease_dir);
    options.create = true;
    return store_open(&worker->store, &options, err);
}

static bool make_handlers(struct worker *worker, struct err *err)
{
    worker->handlers =
        mem_new(worker->config->n_routes, sizeof *worker->handlers);
    for (size_t i = 0; i < worker->config->n_routes; i++) {
        if (!make_handler(worker, i, err)) {
            return false;
        }
    }
    return true;
}

static bool make_engine(struct worker *worker, struct err *err)
{
    struct engine_options options;
    struct engine_route *routes =
        setup_engine(worker->config, worker->handlers, &options);
    bool ok;

    for (size_t i = 0; i < worker->config->n_routes; i++) {
        routes[i].publisher = *kafka_setup_publisher(worker->kafka, i);
    }
    options.store = worker->store;
    ok = engine_new(&worker->engine, &options, err);
    free(routes);
    return ok;
}

static void fill_http_route(const struct config_route *from, size_t index,
                            struct http_route *to)
{
    *to = (struct http_route){
        .engine_route = index,
        .name = from->name,
        .path = from->path,
        .n_methods = from->methods.n,
        .max_body_bytes = from->max_body_bytes,
        .verifier = from->verifier,
        .id = from->id,
        .tenant = from->tenant,
        .order_by = from->order_by,
        .answer_status = from->answer_status,
        .answer_body = from->answer_body,
        .answer_content_type = from->answer_content_type,
        .answer_headers = from->answer_headers.items,
        .n_answer_headers = from->answer_headers.n,
        .allow = (const char *const *)from->allow.items,
        .n_allow = from->allow.n,
    };
    CHECK(from->methods.n <= HTTP_METHODS_MAX);
    for (size_t i = 0; i < from->methods.n; i++) {
        to->methods[i] = from->methods.items[i];
    }
}

static bool start_source(struct worker *worker, struct err *err)
{
    const struct config *config = worker->config;
    struct http_source_options options = {
        .addresses = (const char *const *)config->listen.addresses.items,
        .n_addresses = config->listen.addresses.n,
        .threads = config->listen.threads,
        .max_connections = config->listen.max_connections,
        .request_timeout_ms = config->listen.request_timeout_ms,
        .max_in_flight_bytes = config->listen.max_in_flight_bytes,
        .tls_certificate = config->listen.tls_certificate,
        .tls_key = config->listen.tls_key,
        .tls_client_ca = config->listen.tls_client_ca,
        .trusted_proxies =
            (const char *const *)config->listen.trusted_proxies.items,
        .n_trusted_proxies = config->listen.trusted_proxies.n,
        .engine = worker->engine,
        .clock = clock_system(),
    };

    worker->http_routes =
        mem_new(config->n_routes, sizeof *worker->http_routes);
    for (size_t i = 0; i < config->n_routes; i++) {
        if (config->routes[i].has_http_source) {
            fill_http_route(&config->routes[i], i,
                            &worker->http_routes[options.n_routes++]);
        }
    }
    options.routes = worker->http_routes;
    return options.n_routes == 0 ||
           http_source_start(&worker->source, &options, err);
}

/* Poll thread of a source. */
static void end_for_good(void *ctx, const char *why)
{
    struct worker *worker = ctx;

    if (atomic_flag_test_and_set(&worker->has_fatal)) {
        return;
    }
    (void)err_set(&worker->fatal, ERR_AGAIN, "%s", why);
    log_error("worker", "ending: a consumer cannot go on", &worker->fatal);
    worker->failed = true;
    (void)kill(getpid(), SIGNAL_FAILED); /* to the thread that waits */
}

static bool start_kafka(struct worker *worker, struct err *err)
{
    const struct kafka_setup_start start = {
        .engine = worker->engine,
        .store = worker->store,
        .fatal = end_for_good,
        .fatal_ctx = worker,
    };

    return kafka_setup_start(worker->kafka, &start, err);
}

/* --- ending
 * ------------------------------------------------------------------------ */

/* Waits until no attempt is in flight. A second signal ends the process. */
static bool wait_attempts(const struct worker *worker, int64_t for_ms,
                          const sigset_t *signals)
{
    const struct clock *clock = clock_system();
    const struct timespec poll = {0, SIGNAL_POLL_MS * 1000000L};
    int64_t until_ms = clock_boot_ms(clock) + for_ms;

    while (worker->attempts > 0 && clock_boot_ms(clock) < until_ms) {
        if (sigtimedwait(signals, NULL, &poll) > 0) {
            struct err second = {ERR_NONE, "second signal"};

            log_error("worker", "ending at once", &second);
            log_stop();
            _exit(EXIT_SUCCESS);
        }
    }
    return worker->attempts == 0;
}

/* --- a command that passes through the inbox behind everything else ------- */

struct barrier {
    struct command command; /* first */
    pthread_mutex_t lock;
    pthread_cond_t passed_changed;
    bool passed;
};

static void read_nothing(void *ctx, struct store *store,
                         struct store_entry *entry)
{
    (void)ctx;
    (void)store;
    (void)entry;
}

static void barrier_passed(struct command *command)
{
    struct barrier *barrier = (struct barrier *)command;

    pthread_mutex_lock(&barrier->lock);
    barrier->passed = true;
    pthread_cond_signal(&barrier->passed_changed);
    pthread_mutex_unlock(&barrier->lock);
}

/* Returns when every delivery that was in the inbox has been answered. */
static void pass_barrier(struct worker *worker)
{
    struct barrier barrier = {
        .command = {.kind = COMMAND_READ,
                    .route = SIZE_MAX,
                    .actor = "",
                    .read = read_nothing,
                    .done = barrier_passed},
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .passed_changed = PTHREAD_COND_INITIALIZER,
    };

    if (!engine_command(worker->engine, &barrier.command)) {
        return; /* a flood of commands: they are behind the deliveries, too */
    }
    pthread_mutex_lock(&barrier.lock);
    while (!barrier.passed) {
        pthread_cond_wait(&barrier.passed_changed, &barrier.lock);
    }
    pthread_mutex_unlock(&barrier.lock);
}

static void stop_handlers(struct worker *worker)
{
    for (size_t i = 0; worker->handlers != NULL && i < worker->config->n_routes;
         i++) {
        struct handler *handler = &worker->handlers[i];

        if (handler->ops != NULL) {
            handler->ops->stop(handler->self);
        }
    }
}

static void end_in_order(struct worker *worker, const sigset_t *signals)
{
    struct log_line line;

    if (worker->admin != NULL) {
        admin_set_ready(worker->admin, false);
    }
    if (worker->source != NULL) {
        http_source_stop_intake(worker->source);
    }
    kafka_setup_stop_intake(worker->kafka);
    if (!worker->engine_started) {
        stop_handlers(worker);
        return;
    }
    engine_stop_intake(worker->engine);
    MARK(shutdown_begun);
    if (log_begin(&line, LOG_INFO, "worker", "stopping")) {
        log_int(&line, "attempts", (int64_t)worker->attempts);
        log_int(&line, "wait_at_most_ms", worker->config->shutdown_timeout_ms);
        log_end(&line);
    }
    pass_barrier(worker);
    (void)wait_attempts(worker, worker->config->shutdown_timeout_ms, signals);
    stop_handlers(worker);
    if (!wait_attempts(worker, HANDLERS_END_MS, signals)) {
        struct err late = {ERR_AGAIN, "an attempt did not end"};

        log_error("worker", "ending at once", &late);
        log_stop();
        _exit(EXIT_SUCCESS);
    }
    MARK(shutdown_drained);
}

static void wait_for_end(const struct worker *worker, const sigset_t *signals)
{
    sigset_t all = *signals;
    struct log_line line;
    int number;

    CHECK(sigaddset(&all, SIGNAL_FAILED) == 0);
    while (sigwait(&all, &number) == 0) {
        if (number == SIGNAL_FAILED && !worker->failed) {
            continue;
        }
        if (number != SIGHUP) {
            return;
        }
        if (log_begin(&line, LOG_WARN, "worker",
                      "SIGHUP: the configuration is read at start only")) {
            log_end(&line);
        }
    }
}

/* The adapters go while the engine still turns, so that whoever waits for it
 * gets an answer: consumers need it to give their partitions back. What is
 * below their final offsets is settled, as no attempt runs any more. */
static void free_worker(struct worker *worker)
{
    admin_stop(&worker->admin);
    http_source_free(&worker->source);
    kafka_setup_end(worker->kafka);
    if (worker->engine_started) {
        worker->ending = true;
        engine_stop_intake(worker->engine); /* wakes it */
        (void)pthread_join(worker->engine_thread, NULL);
    }
    engine_free(&worker->engine);
    for (size_t i = 0; worker->handlers != NULL && i < worker->config->n_routes;
         i++) {
        if (worker->handlers[i].ops != NULL) {
            worker->handlers[i].ops->free(worker->handlers[i].self);
        }
    }
    kafka_setup_free(worker->kafka);
    MARK(store_before_close);
    store_close(&worker->store);
    MARK(store_closed);
    free(worker->handlers);
    free(worker->http_routes);
    free(worker->lease_dir);
}

/* --- running
 * ------------------------------------------------------------------------ */

/* Connections, handlers' pipes and transfers: as many as we may have. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* the old one does, too */
    }
}

/* A page of the mapped store could not be read: a bad sector, or somebody
 * cut the file. Nothing can be trusted to go on. */
static void on_bus_error(int number)
{
    static const char text[] =
        "onced: SIGBUS: the store's file could not be read, ending at once\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);

    (void)ignored;
    (void)number;
    _exit(ERR_IO);
}

/* Every thread that is started later inherits the mask: signals come to the
 * calling thread alone, when it asks for them. */
static void block_signals(sigset_t *signals)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    const struct sigaction bus_error = {.sa_handler = on_bus_error};
    sigset_t others;

    sigemptyset(signals);
    sigemptyset(&others);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    CHECK(pthread_sigmask(SIG_BLOCK, signals, NULL) == 0);
    /* Nobody asks for SIGCHLD: else each program that ends wakes this thread.
     */
    CHECK(sigaddset(&others, SIGCHLD) == 0);
    CHECK(sigaddset(&others, SIGNAL_FAILED) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &others, NULL) == 0);
    CHECK(sigaction(SIGPIPE, &ignore, NULL) == 0);
    CHECK(sigaction(SIGBUS, &bus_error, NULL) == 0);
}

static bool start_engine(struct worker *worker, struct err *err)
{
    int failed =
        pthread_create(&worker->engine_thread, NULL, engine_main, worker);

    if (failed != 0) {
        return err_set(err, ERR_AGAIN, "start the engine's thread: %s",
                       strerror(failed));
    }
    worker->engine_started = true;
    return true;
}

/* Every address is bound before the engine turns: a worker that cannot be
 * reached handles nothing. Where one is in use the engine still turns, to
 * answer those who are waiting, but starts no attempt. Consumers come last:
 * they need it. */
static bool start_worker(struct worker *worker, struct err *err)
{
    struct admin_options admin = {.config = worker->config};
    struct err late;
    bool ok;

    if (!open_store(worker, err) ||
        !kafka_setup_new(&worker->kafka, worker->config, err) ||
        !make_handlers(worker, err) || !make_engine(worker, err)) {
        return false;
    }
    admin.kafka = worker->kafka;
    admin.engine = worker->engine;
    admin.store = worker->store;
    ok = admin_start(&worker->admin, &admin, err) && start_source(worker, err);
    if (!ok) {
        engine_stop_intake(worker->engine);
    }
    if (!start_engine(worker, ok ? err : &late)) {
        log_error("worker", "ending at once", ok ? err : &late);
        log_stop();
        _exit(ERR_AGAIN);
    }
    ok = ok && start_kafka(worker, err);
    if (ok) {
        admin_set_ready(worker->admin, true);
    }
    return ok;
}

static void tell_ready(const struct worker *worker)
{
    const struct config_strings *addresses = &worker->config->listen.addresses;
    struct log_line line;

    if (!log_begin(&line, LOG_INFO, "worker", "ready")) {
        return;
    }
    log_str(&line, "version", slice_of(ONCED_VERSION));
    log_str(&line, "config", slice_of(worker->config->file));
    log_str(&line, "store", slice_of(worker->config->store.path));
    for (size_t i = 0; i < addresses->n && worker->source != NULL; i++) {
        log_str(&line, "listen", slice_of(addresses->items[i]));
    }
    log_str(&line, "admin", slice_of(worker->config->admin.socket));
    log_int(&line, "routes", (int64_t)worker->config->n_routes);
    log_end(&line);
}

bool worker_run(const struct config *config, struct err *err)
{
    struct worker worker = {.config = config, .has_fatal = ATOMIC_FLAG_INIT};
    const struct log_options log = {
        .level = config->log.level,
        .format = config->log.format,
        .fd = STDERR_FILENO,
    };
    struct log_line line;
    sigset_t signals;
    bool ok;

    block_signals(&signals);
    raise_descriptor_limit();
    (void)umask(0077);
    /* Handlers are not to gain rights that the worker has not. */
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!log_start(&log, err)) {
        return false;
    }
    labels_start_metrics(config);
    ok = start_worker(&worker, err);
    if (ok) {
        tell_ready(&worker);
        wait_for_end(&worker, &signals);
    }
    end_in_order(&worker, &signals);
    free_worker(&worker);
    if (ok && log_begin(&line, LOG_INFO, "worker", "stopped")) {
        log_end(&line);
    }
    metrics_stop();
    log_stop();
    if (ok && worker.failed) {
        *err = worker.fatal;
        return false;
    }
    return ok;
}
