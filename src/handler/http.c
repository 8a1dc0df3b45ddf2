/* SPDX-License-Identifier: MIT */
#include "handler/http.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/check.h"
#include "base/mark.h"
#include "base/thread.h"
#include "handler/backend.h"
#include "handler/backlog.h"
#include "handler/http_transfer.h"

enum { POLL_MS = 60 * 1000 }; /* libcurl's own timers cut it short */

struct http_handler {
    struct backend backend;
    struct backlog backlog;
    CURLM *multi;
    pthread_t thread;
    bool has_thread;
    /* the thread's */
    struct http_transfer *idle; /* one for each that may run at a time */
    struct http_transfer *busy;
};

/* --- the thread ---------------------------------------------------------- */

static void begin(struct http_handler *handler, struct attempt *attempt)
{
    struct http_transfer *transfer = handler->idle;

    handler->idle = transfer->next;
    transfer->next = handler->busy;
    transfer->prev = NULL;
    if (handler->busy != NULL) {
        handler->busy->prev = transfer;
    }
    handler->busy = transfer;
    http_transfer_begin(transfer, attempt);
    MARK(request_before_send);
    CHECK(curl_multi_add_handle(handler->multi, transfer->easy) == CURLM_OK);
}

static void end(struct http_handler *handler, struct http_transfer *transfer,
                CURLcode code)
{
    struct attempt *attempt = http_transfer_end(transfer, code);

    CHECK(curl_multi_remove_handle(handler->multi, transfer->easy) == CURLM_OK);
    if (transfer->next != NULL) {
        transfer->next->prev = transfer->prev;
    }
    if (transfer->prev != NULL) {
        transfer->prev->next = transfer->next;
    } else {
        handler->busy = transfer->next;
    }
    transfer->next = handler->idle;
    handler->idle = transfer;
    MARK(request_answered);
    attempt_finish(attempt);
}

/* True when there were any: they have to be performed before a wait. */
static bool begin_waiting(struct http_handler *handler)
{
    struct attempt *attempt;
    bool any = false;

    while (handler->idle != NULL &&
           (attempt = backlog_take(&handler->backlog)) != NULL) {
        begin(handler, attempt);
        any = true;
    }
    return any;
}

static void end_done(struct http_handler *handler)
{
    CURLMsg *message;
    int n_left;

    while ((message = curl_multi_info_read(handler->multi, &n_left)) != NULL) {
        struct http_transfer *transfer;
        CURLcode code = message->data.result;

        CHECK(message->msg == CURLMSG_DONE);
        CHECK(curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
                                (char **)&transfer) == CURLE_OK);
        end(handler, transfer, code);
    }
}

static void end_all(struct http_handler *handler)
{
    struct attempt *attempt;

    while (handler->busy != NULL) {
        end(handler, handler->busy, CURLE_ABORTED_BY_CALLBACK);
    }
    while ((attempt = backlog_take(&handler->backlog)) != NULL) {
        backlog_refuse(attempt);
    }
}

static void *run(void *self)
{
    struct http_handler *handler = self;
    int n_running;

    while (!backlog_is_closed(&handler->backlog)) {
        CHECK(curl_multi_perform(handler->multi, &n_running) == CURLM_OK);
        end_done(handler);
        if (!begin_waiting(handler)) {
            CHECK(curl_multi_poll(handler->multi, NULL, 0, POLL_MS, NULL) ==
                  CURLM_OK);
        }
    }
    end_done(handler);
    end_all(handler);
    return NULL;
}

/* --- the port ------------------------------------------------------------ */

static void http_start(void *self, struct attempt *attempt)
{
    struct http_handler *handler = self;

    if (backlog_push(&handler->backlog, attempt)) {
        CHECK(curl_multi_wakeup(handler->multi) == CURLM_OK);
    } else {
        backlog_refuse(attempt);
    }
}

static void http_stop(void *self)
{
    struct http_handler *handler = self;

    backlog_close(&handler->backlog);
    if (handler->has_thread) {
        CHECK(curl_multi_wakeup(handler->multi) == CURLM_OK);
        CHECK(pthread_join(handler->thread, NULL) == 0);
        handler->has_thread = false;
    }
}

static void http_free(void *self)
{
    struct http_handler *handler = self;

    http_stop(handler);
    while (handler->idle != NULL) {
        struct http_transfer *transfer = handler->idle;

        handler->idle = transfer->next;
        http_transfer_free(transfer);
    }
    CHECK(curl_multi_cleanup(handler->multi) == CURLM_OK);
    backlog_fini(&handler->backlog);
    backend_fini(&handler->backend);
    free(handler);
    curl_global_cleanup();
}

static const struct handler_ops ops = {
    .start = http_start,
    .stop = http_stop,
    .free = http_free,
};

static struct http_handler *create(const struct http_handler_options *options)
{
    struct http_handler *handler = mem_new(1, sizeof *handler);

    /* Counted by the library: http_free takes it back. */
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    backlog_init(&handler->backlog);
    handler->multi = curl_multi_init();
    CHECK(handler->multi != NULL);
    CHECK(curl_multi_setopt(handler->multi, CURLMOPT_MAXCONNECTS,
                            (long)options->concurrency) == CURLM_OK);
    for (uint32_t i = 0; i < options->concurrency; i++) {
        struct http_transfer *transfer =
            http_transfer_new(&handler->backend, options);

        transfer->next = handler->idle;
        handler->idle = transfer;
    }
    return handler;
}

static bool check_options(const struct http_handler_options *options,
                          struct err *err)
{
    if (options->ca_file != NULL && access(options->ca_file, R_OK) != 0) {
        return err_set(err, ERR_CONFIG, "ca_file %s: %s", options->ca_file,
                       strerror(errno));
    }
    return true;
}

bool http_handler_new(struct handler *out,
                      const struct http_handler_options *options,
                      struct err *err)
{
    struct http_handler *handler;

    CHECK(options->concurrency > 0);
    if (!check_options(options, err)) {
        return false;
    }
    handler = create(options);
    handler->has_thread = backend_init(&handler->backend, options, err) &&
                          thread_start(&handler->thread, run, handler, err);
    if (!handler->has_thread) {
        http_free(handler);
        return false;
    }
    *out = (struct handler){&ops, handler};
    return true;
}
