/* SPDX-License-Identifier: MIT */
/*
 * Handlers under many attempts, and a stop in the middle of them: every
 * attempt that was started ends, and ends once (attempts.h aborts else).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "handler/exec.h"
#include "handler/http.h"
#include "handler/noop.h"
#include "support/attempts.h"
#include "support/http_script.h"

enum { ROUNDS = 3 };

struct load {
    struct handler handler;
    size_t n;
    struct test_attempt **all;
    pthread_t thread;
};

/* What the engine's thread does. */
static void *start_all(void *self)
{
    struct load *load = self;

    for (size_t i = 0; i < load->n; i++) {
        load->handler.ops->start(load->handler.self, &load->all[i]->attempt);
    }
    return NULL;
}

static void load_begin(struct load *load, size_t n)
{
    load->n = n;
    load->all = mem_new(n, sizeof *load->all);
    for (size_t i = 0; i < n; i++) {
        load->all[i] = attempt_new("{\"a\":1}");
        load->all[i]->attempt.number = (uint32_t)i + 1;
    }
    CHECK(pthread_create(&load->thread, NULL, start_all, load) == 0);
}

static size_t load_end(struct load *load)
{
    size_t n_done = 0;

    CHECK(pthread_join(load->thread, NULL) == 0);
    for (size_t i = 0; i < load->n; i++) {
        struct attempt *attempt = &load->all[i]->attempt;

        CHECK(attempt_wait(load->all[i]));
        n_done += (attempt->end == END_STATUS && attempt->status == 200) ||
                          attempt->end == END_EXIT
                      ? 1
                      : 0;
        attempt_free(load->all[i]);
    }
    free(load->all);
    return n_done;
}

/* Waits until at least `n` attempts are over, or for the first time out. */
static void load_stop_after(struct load *load, size_t n)
{
    CHECK(attempt_wait(load->all[n]));
    load->handler.ops->stop(load->handler.self);
}

static void make_http(struct load *load, uint16_t port)
{
    char url[64];
    struct http_handler_options options = {.url = url,
                                           .concurrency = 8,
                                           .connect_timeout_ms = 5000,
                                           .max_result_bytes = 4096};
    struct err err = {0};

    CHECK(snprintf(url, sizeof url, "http://127.0.0.1:%u/", port) > 0);
    CHECK(http_handler_new(&load->handler, &options, &err));
}

static void make_exec(struct load *load, const char *folder)
{
    static const char *const command[] = {"/bin/cat", NULL};
    const struct exec_handler_options options = {.command = command,
                                                 .lease_dir = folder,
                                                 .route = "r",
                                                 .concurrency = 4,
                                                 .max_result_bytes = 4096};
    struct err err = {0};

    CHECK(exec_handler_new(&load->handler, &options, &err));
}

static void make_noop(struct load *load)
{
    const struct noop_handler_options options = {0, 3, 0};
    struct err err = {0};

    CHECK(noop_handler_new(&load->handler, &options, &err));
}

static void run_round(uint16_t port, const char *folder, bool stops_early)
{
    struct load loads[3];
    static const size_t sizes[3] = {1000, 150, 2000};
    size_t n_done[3];

    make_http(&loads[0], port);
    make_exec(&loads[1], folder);
    make_noop(&loads[2]);
    for (size_t i = 0; i < 3; i++) {
        load_begin(&loads[i], sizes[i]);
    }
    for (size_t i = 0; i < 3 && stops_early; i++) {
        load_stop_after(&loads[i], sizes[i] / 4);
    }
    for (size_t i = 0; i < 3; i++) {
        n_done[i] = load_end(&loads[i]);
        CHECK(stops_early || n_done[i] == sizes[i]);
        loads[i].handler.ops->stop(loads[i].handler.self);
        loads[i].handler.ops->free(loads[i].handler.self);
    }
    (void)printf("done: http %zu, exec %zu, noop %zu\n", n_done[0], n_done[1],
                 n_done[2]);
}

static void remove_leases(const char *folder)
{
    for (int i = 0; i < 8; i++) {
        char path[128];

        CHECK(snprintf(path, sizeof path, "%s/r.%d", folder, i) > 0);
        (void)unlink(path);
    }
    CHECK(rmdir(folder) == 0);
}

int main(void)
{
    static const struct script_step step = {
        .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
    char folder[] = "/tmp/onced-XXXXXX";
    struct script script;

    CHECK(mkdtemp(folder) != NULL);
    script_start(&script, &step, 1);
    for (int round = 0; round < ROUNDS; round++) {
        run_round(script.port, folder, round % 2 == 1);
    }
    script_stop(&script);
    remove_leases(folder);
    return 0;
}
