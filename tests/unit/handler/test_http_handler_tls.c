/* SPDX-License-Identifier: MIT */
#include "handler/http.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/attempts.h"

/* openssl's own server, with a fresh certificate for "localhost". */
struct server {
    char folder[64], key[96], certificate[96];
    pid_t pid;
    int port;
};

static void make_certificate(struct server *server)
{
    char command[512];

    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
             "-nodes -days 2 -subj /CN=localhost "
             "-addext subjectAltName=DNS:localhost -keyout %s -out %s "
             "2>/dev/null",
             server->key, server->certificate);
    cr_assert_eq(system(command), 0); /* NOLINT(cert-env33-c): test */
}

/* It says "ACCEPT [::]:12345" once it listens. */
static int read_port(int fd)
{
    FILE *file = fdopen(fd, "r");
    char line[256];
    int port = 0;

    cr_assert_not_null(file);
    while (port == 0 && fgets(line, sizeof line, file) != NULL) {
        const char *at = strrchr(line, ':');

        if (strncmp(line, "ACCEPT", 6) == 0 && at != NULL) {
            port = (int)strtol(at + 1, NULL, 10);
        }
    }
    return port; /* the pipe stays open: the server still writes to it */
}

static void server_start(struct server *server)
{
    int out[2];

    strcpy(server->folder, "/tmp/onced-XXXXXX");
    cr_assert_not_null(mkdtemp(server->folder));
    snprintf(server->key, sizeof server->key, "%s/key", server->folder);
    snprintf(server->certificate, sizeof server->certificate, "%s/cert",
             server->folder);
    make_certificate(server);
    cr_assert_eq(pipe(out), 0);
    server->pid = fork();
    if (server->pid == 0) {
        dup2(out[1], 1);
        execlp("openssl", "openssl", "s_server", "-accept", "0", "-www", "-key",
               server->key, "-cert", server->certificate, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    server->port = read_port(out[0]);
    cr_assert_gt(server->port, 0);
}

static void server_stop(struct server *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    unlink(server->key);
    unlink(server->certificate);
    rmdir(server->folder);
}

static void run(const char *url, const char *ca_file, struct test_attempt *t)
{
    const struct http_handler_options options = {.url = url,
                                                 .concurrency = 1,
                                                 .connect_timeout_ms = 5000,
                                                 .max_result_bytes = 1048576,
                                                 .ca_file = ca_file};
    struct handler handler;
    struct err err = {0};

    t->attempt.envelope.method = SLICE("GET"); /* all that s_server knows */
    cr_assert(http_handler_new(&handler, &options, &err), "%s", err.text);
    cr_assert(attempt_run(&handler, t));
    handler.ops->stop(handler.self);
    handler.ops->free(handler.self);
}

Test(http_handler_tls, only_a_certificate_that_verifies_gets_the_request)
{
    struct server server;
    const struct {
        const char *host;
        bool has_ca;
        enum attempt_end end;
    } rows[] = {{"localhost", true, END_STATUS},
                {"localhost", false, END_UNREACHED},
                {"127.0.0.1", true, END_UNREACHED}};

    server_start(&server);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct test_attempt *t = attempt_new("");
        char url[64];

        snprintf(url, sizeof url, "https://%s:%d/", rows[i].host, server.port);
        run(url, rows[i].has_ca ? server.certificate : NULL, t);
        cr_assert_eq(t->attempt.end, rows[i].end, "row %zu: %s", i,
                     t->attempt.text);
        if (rows[i].end == END_UNREACHED) {
            cr_assert_eq(strncmp(t->attempt.text, "tls: ", 5), 0, "%s",
                         t->attempt.text);
        }
        attempt_free(t);
    }
    server_stop(&server);
}
