/* SPDX-License-Identifier: MIT */
#include "handler/exec.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/attempts.h"
#include "support/exec_rig.h"

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

Test(exec_handler, every_way_to_end_is_reported_as_it_was)
{
    static const struct {
        const char *script;
        enum attempt_end end;
        int status;
        const char *code, *text;
        uint16_t result;
        const char *body;
    } rows[] = {
        {"exit 0", END_EXIT, 0, "", "exit 0", 0, ""},
        {"cat", END_EXIT, 0, "", "exit 0", 200, "the body"},
        {"echo no; exit 65", END_EXIT, 65, "65", "exit 65", 422, "no\n"},
        {"echo later; exit 75", END_EXIT, 75, "75", "exit 75", 503, "later\n"},
        {"echo oops; exit 1", END_EXIT, 1, "1", "exit 1", 502, "oops\n"},
        {"echo x; exit 63", END_EXIT, 63, "63", "exit 63", 502, "x\n"},
        {"echo x; exit 64", END_EXIT, 64, "64", "exit 64", 422, "x\n"},
        {"echo x; exit 78", END_EXIT, 78, "78", "exit 78", 422, "x\n"},
        {"echo x; exit 79", END_EXIT, 79, "79", "exit 79", 502, "x\n"},
        {"exit 255", END_EXIT, 255, "255", "exit 255", 0, ""},
        {"echo bye; kill -SEGV $$", END_SIGNAL, SIGSEGV, "signal-11",
         "signal 11", 502, "bye\n"},
        {"kill -PIPE $$", END_SIGNAL, SIGPIPE, "signal-13", "signal 13", 0, ""},
        {"yes | head -1", END_EXIT, 0, "", "exit 0", 200, "y\n"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig rig;
        struct test_attempt *t = attempt_new("the body");

        rig_init(&rig, rows[i].script);
        rig_start(&rig);
        cr_assert(attempt_run(&rig.handler, t));
        cr_assert_eq(t->attempt.end, rows[i].end, "row %zu: %s", i,
                     t->attempt.text);
        cr_assert_eq(t->attempt.status, rows[i].status, "row %zu", i);
        cr_assert_str_eq(t->attempt.code, rows[i].code);
        cr_assert_str_eq(t->attempt.text, rows[i].text);
        cr_assert_eq(t->attempt.retry_after_ms, -1);
        assert_body(&t->attempt, rows[i].result, rows[i].body);
        rig_fini(&rig);
        attempt_free(t);
    }
}

Test(exec_handler, result_says_whether_it_is_text)
{
    static const struct {
        const char *script, *type;
    } rows[] = {{"printf 'gr\\303\\274n'", "text/plain; charset=utf-8"},
                {"printf '\\377\\376'", "application/octet-stream"}};

    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        struct result result;
        struct slice type;
        struct test_attempt *t = attempt_new("");

        rig_init(&rig, rows[i].script);
        rig_start(&rig);
        cr_assert(attempt_run(&rig.handler, t));
        cr_assert(result_open(buf_slice(&t->attempt.result), &result));
        cr_assert(headers_find(&result.headers, SLICE("content-type"), &type));
        cr_assert(slice_eq(type, slice_of(rows[i].type)));
        rig_fini(&rig);
        attempt_free(t);
    }
}

Test(exec_handler, time_limit_ends_the_whole_group)
{
    static const struct {
        const char *script, *text;
        int64_t max_ms;
    } rows[] = {
        {"echo early; echo $$ > group; sleep 600",
         "timed out, ended after SIGTERM", 5000},
        {"trap '' TERM; echo early; echo $$ > group; sleep 600 & wait",
         "timed out, ended after SIGKILL", 5000},
        {"trap 'exit 0' TERM; echo early; echo $$ > group; sleep 600 & wait",
         "timed out, ended after SIGTERM", 5000},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig rig;
        struct test_attempt *t = attempt_new("");
        int64_t start = now_ms();
        int group;

        rig_init(&rig, rows[i].script);
        rig_start(&rig);
        t->attempt.timeout_ms = 300;
        cr_assert(attempt_run(&rig.handler, t));
        cr_assert_eq(t->attempt.end, END_TIMEOUT, "row %zu", i);
        cr_assert_str_eq(t->attempt.text, rows[i].text);
        cr_assert_geq(now_ms() - start, 300);
        cr_assert_geq(t->attempt.took_ms, 300);
        cr_assert_leq(now_ms() - start, rows[i].max_ms);
        assert_body(&t->attempt, 504, "early\n");
        group = read_number(&rig, "group");
        cr_assert(is_gone_soon(-group));
        rig_fini(&rig);
        attempt_free(t);
    }
}

Test(exec_handler, end_of_the_process_is_the_end_though_a_child_keeps_stdout)
{
    static const char *const scripts[] = {
        "sleep 600 & echo $! > child; echo done",
        "setsid sh -c 'touch up; exec sleep 600' & echo $! > child;"
        " while [ ! -e up ]; do :; done; echo done"};

    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        struct test_attempt *t = attempt_new("");
        int child;

        rig_init(&rig, scripts[i]);
        rig_start(&rig);
        cr_assert(attempt_run(&rig.handler, t));
        cr_assert_eq(t->attempt.end, END_EXIT);
        assert_body(&t->attempt, 200, "done\n");
        child = read_number(&rig, "child");
        if (i == 1) {
            /* It left the group, so it is not killed with it. */
            cr_assert_eq(kill(child, SIGKILL), 0);
        }
        cr_assert(is_gone_soon(child));
        rig_fini(&rig);
        attempt_free(t);
    }
}

Test(exec_handler, output_over_the_cap_is_drained_and_dropped)
{
    struct rig rig;
    struct result result;
    struct test_attempt *t = attempt_new("");

    rig_init(&rig, "head -c 10000000 /dev/zero; echo end >&2");
    rig_start(&rig);
    cr_assert(attempt_run(&rig.handler, t));
    cr_assert_eq(t->attempt.end, END_EXIT);
    cr_assert_eq(t->attempt.status, 0);
    cr_assert(result_open(buf_slice(&t->attempt.result), &result));
    cr_assert(result.body_omitted);
    cr_assert_eq(result.body.len, 0);
    rig_fini(&rig);
    attempt_free(t);
}

Test(exec_handler, output_up_to_the_cap_is_kept)
{
    struct rig rig;
    struct result result;
    struct test_attempt *t = attempt_new("");

    rig_init(&rig, "head -c 1048576 /dev/zero");
    rig_start(&rig);
    cr_assert(attempt_run(&rig.handler, t));
    cr_assert(result_open(buf_slice(&t->attempt.result), &result));
    cr_assert_not(result.body_omitted);
    cr_assert_eq(result.body.len, 1048576);
    rig_fini(&rig);
    attempt_free(t);
}

Test(exec_handler, a_flood_on_stderr_is_drained)
{
    struct rig rig;
    struct test_attempt *t = attempt_new("");

    rig_init(&rig, "head -c 10000000 /dev/zero | tr '\\0' 'x' >&2;"
                   "yes | head -100000 >&2; echo out");
    rig_start(&rig);
    cr_assert(attempt_run(&rig.handler, t));
    cr_assert_eq(t->attempt.end, END_EXIT);
    assert_body(&t->attempt, 200, "out\n");
    rig_fini(&rig);
    attempt_free(t);
}

Test(exec_handler, a_large_body_comes_through_and_may_be_ignored)
{
    static const struct {
        const char *script, *out;
    } rows[] = {{"wc -c | tr -d ' '", "5000000\n"},
                {"exec <&-; echo closed", "closed\n"},
                {"head -c 3", "aaa"},
                {"echo unread", "unread\n"}};
    char *body = mem_new(5000001, 1);

    memset(body, 'a', 5000000);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig rig;
        struct test_attempt *t = attempt_new(body);

        rig_init(&rig, rows[i].script);
        rig_start(&rig);
        cr_assert(attempt_run(&rig.handler, t));
        cr_assert_eq(t->attempt.end, END_EXIT, "%s", t->attempt.text);
        assert_body(&t->attempt, 200, rows[i].out);
        rig_fini(&rig);
        attempt_free(t);
    }
    free(body);
}

Test(exec_handler, signals_are_as_a_fresh_process_expects_them)
{
    struct rig rig;
    struct result result;
    unsigned long blocked = 1;
    unsigned long ignored = 1;
    struct test_attempt *t = attempt_new("");

    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    rig_init(&rig, "grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -f 2");
    rig_start(&rig);
    cr_assert(attempt_run(&rig.handler, t));
    cr_assert(result_open(buf_slice(&t->attempt.result), &result));
    cr_assert_eq(sscanf(result.body.data, "%lx %lx", &blocked, &ignored), 2);
    cr_assert_eq(blocked, 0);
    cr_assert_eq(ignored & 0x7fffffffUL, 0); /* above are glibc's own two */
    rig_fini(&rig);
    attempt_free(t);
}

Test(exec_handler, descriptors_are_0_to_3_and_the_last_is_read_only)
{
    struct rig rig;
    struct test_attempt *t = attempt_new("");
    int leak = open("/dev/null", O_RDONLY); /* without close-on-exec */

    rig_init(&rig, "i=0; while [ $i -lt 200 ]; do"
                   " [ -e /proc/$$/fd/$i ] && printf '%s ' $i;"
                   " i=$((i + 1)); done;"
                   " { echo x >&3; } 2>/dev/null || echo read-only");
    rig_start(&rig);
    cr_assert(attempt_run(&rig.handler, t));
    assert_body(&t->attempt, 200, "0 1 2 3 read-only\n");
    rig_fini(&rig);
    attempt_free(t);
    close(leak);
}

static void run_env(struct rig *rig, struct test_attempt *t,
                    const char *expected)
{
    rig->argv[0] = "env"; /* searched in PATH */
    rig->argv[1] = NULL;
    rig_start(rig);
    cr_assert(attempt_run(&rig->handler, t));
    assert_body(&t->attempt, 200, expected);
    rig_fini(rig);
    attempt_free(t);
}

Test(exec_handler, environment_of_an_http_event_is_exact)
{
    static const char *const configured[] = {"APP=1", "LANG=C.UTF-8", NULL};
    struct rig rig;
    struct test_attempt *t = attempt_new("");

    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("HOME", "/home/h", 1);
    setenv("LANG", "de_DE", 1);
    unsetenv("TZ");
    setenv("SECRET", "not for handlers", 1);
    rig_init(&rig, "");
    rig.options.environment = configured;
    t->attempt.tenant = SLICE("acct");
    t->attempt.number = 2;
    t->attempt.envelope.query = SLICE("a=1&b=2");
    t->attempt.envelope.has_query = true;
    attempt_header(t, "User-Agent", "ua/1");
    attempt_header(t, "content-type", "application/json");
    attempt_header(t, "X-Two", "1");
    attempt_header(t, "X_Two", "forged");
    attempt_header(t, "x-two", "2");
    run_env(&rig, t,
            "PATH=/usr/bin:/bin\nHOME=/home/h\nAPP=1\nLANG=C.UTF-8\n"
            "IDEMPOTENCY_KEY=ABCDEFGHIJKLMNOPQRSTUVWXYZ234567\n"
            "ONCED_ROUTE=r\nONCED_EVENT_ID=evt-1\nONCED_ATTEMPT=2\n"
            "ONCED_TENANT=acct\nCONTENT_TYPE=application/json\n"
            "ONCED_METHOD=POST\nONCED_PATH=/hooks/a\nONCED_QUERY=a=1&b=2\n"
            "ONCED_HEADER_CONTENT_TYPE=application/json\n"
            "ONCED_HEADER_USER_AGENT=ua/1\nONCED_HEADER_X_TWO=1, 2\n");
}

Test(exec_handler, environment_of_a_kafka_event_is_exact)
{
    struct rig rig;
    struct test_attempt *t = attempt_new("");
    char *large = mem_new(70001, 1);

    memset(large, 'x', 70000);
    setenv("PATH", "/usr/bin:/bin", 1);
    unsetenv("HOME");
    unsetenv("LANG");
    unsetenv("TZ");
    rig_init(&rig, "");
    t->attempt.envelope = (struct envelope){.kind = ENVELOPE_KAFKA,
                                            .topic = SLICE("orders"),
                                            .partition = 3,
                                            .offset = 41,
                                            .timestamp_ms = -1,
                                            .key = {"k\0y", 3},
                                            .has_key = true};
    attempt_header(t, "event_id", "e1");
    attempt_header(t, "raw", "\xff");
    attempt_header(t, "large", large);
    run_env(&rig, t,
            "PATH=/usr/bin:/bin\n"
            "IDEMPOTENCY_KEY=ABCDEFGHIJKLMNOPQRSTUVWXYZ234567\n"
            "ONCED_ROUTE=r\nONCED_EVENT_ID=evt-1\nONCED_ATTEMPT=1\n"
            "ONCED_KAFKA_TOPIC=orders\nONCED_KAFKA_PARTITION=3\n"
            "ONCED_KAFKA_OFFSET=41\nONCED_KAFKA_KEY=awB5\n"
            "ONCED_KAFKA_NULL=1\nONCED_HEADER_EVENT_ID=e1\n"
            "ONCED_HEADER_RAW=/w==\n"
            "ONCED_KAFKA_BASE64=ONCED_KAFKA_KEY ONCED_HEADER_RAW\n"
            "ONCED_OMITTED=ONCED_HEADER_LARGE\n");
    free(large);
}

Test(exec_handler, a_program_that_is_gone_is_unreached)
{
    struct rig rig;
    struct test_attempt *t = attempt_new("");
    char path[128];
    FILE *file;

    rig_init(&rig, "");
    snprintf(path, sizeof path, "%s/program", rig.folder);
    file = fopen(path, "w");
    fputs("#!/bin/sh\n", file);
    fclose(file);
    cr_assert_eq(chmod(path, 0755), 0);
    rig.argv[0] = "./program"; /* seen from cwd */
    rig.argv[1] = NULL;
    rig_start(&rig);
    cr_assert_eq(unlink(path), 0);
    cr_assert(attempt_run(&rig.handler, t));
    cr_assert_eq(t->attempt.end, END_UNREACHED);
    cr_assert_str_eq(t->attempt.text, "spawn: No such file or directory");
    rig_fini(&rig);
    attempt_free(t);
}

Test(exec_handler, options_that_cannot_work_are_refused)
{
    static const char *const ours[] = {"ONCED_ROUTE=x", NULL};
    static const char *const nameless[] = {"=x", NULL};
    static const struct {
        const char *program, *cwd;
        const char *const *environment;
        const char *text;
    } rows[] = {
        {"no-such-program-here", NULL, NULL, "no-such-program-here"},
        {"./nothing", NULL, NULL, "./nothing"},
        {"/", NULL, NULL, "command /"},
        {"/bin/sh", "/nowhere", NULL, "cwd /nowhere"},
        {"/bin/sh", NULL, ours, "ONCED_ROUTE"},
        {"/bin/sh", NULL, nameless, "NAME=value"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig rig;
        struct err err = {0};

        rig_init(&rig, "");
        rig.argv[0] = rows[i].program;
        rig.options.environment = rows[i].environment;
        if (rows[i].cwd != NULL) {
            rig.options.cwd = rows[i].cwd;
        }
        cr_assert_not(exec_handler_new(&rig.handler, &rig.options, &err));
        cr_assert_eq(err.kind, ERR_CONFIG);
        cr_assert_not_null(strstr(err.text, rows[i].text), "%s", err.text);
        rig.handler.ops = NULL;
        rig_fini(&rig);
    }
}

Test(exec_handler, stop_ends_running_attempts_and_refuses_new_ones)
{
    struct rig rig;
    struct test_attempt *running = attempt_new("");
    struct test_attempt *late = attempt_new("");

    rig_init(&rig, "trap '' TERM; touch up; while :; do sleep 1; done");
    rig_start(&rig);
    rig.handler.ops->start(rig.handler.self, &running->attempt);
    wait_for_file(&rig, "up");
    rig.handler.ops->stop(rig.handler.self);
    cr_assert(running->is_finished);
    cr_assert_eq(running->attempt.end, END_BROKEN);
    cr_assert_str_eq(running->attempt.text, "stopped, ended after SIGKILL");
    rig.handler.ops->start(rig.handler.self, &late->attempt);
    cr_assert(late->is_finished);
    cr_assert_eq(late->attempt.end, END_UNREACHED);
    rig_fini(&rig);
    attempt_free(running);
    attempt_free(late);
}

Test(exec_handler, many_attempts_share_few_processes)
{
    enum { N = 60 };
    struct rig rig;
    struct test_attempt *all[N];

    rig_init(&rig, "cat");
    rig_start(&rig);
    for (size_t i = 0; i < N; i++) {
        all[i] = attempt_new("body");
        rig.handler.ops->start(rig.handler.self, &all[i]->attempt);
    }
    for (size_t i = 0; i < N; i++) {
        cr_assert(attempt_wait(all[i]));
        cr_assert_eq(all[i]->attempt.end, END_EXIT, "%s", all[i]->attempt.text);
        assert_body(&all[i]->attempt, 200, "body");
        attempt_free(all[i]);
    }
    rig_fini(&rig);
}
