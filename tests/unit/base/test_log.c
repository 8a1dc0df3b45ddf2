/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static struct buf written;

static void tear_down(void)
{
    log_stop();
    buf_free(&written);
}

TestSuite(log, .fini = tear_down, .timeout = 30);

static void start(int fd, enum log_level level, enum log_format format)
{
    const struct log_options options = {level, format, fd};
    struct err err;

    cr_assert(log_start(&options, &err), "%s", err.text);
}

/* A file in memory to write to. */
static int memory_file(void)
{
    int fd = memfd_create("log", 0);

    cr_assert_geq(fd, 0);
    return fd;
}

/* All that was written to the file, as a C string. */
static const char *content(int fd)
{
    char chunk[4096];
    ssize_t n;

    buf_clear(&written);
    cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
    while ((n = read(fd, chunk, sizeof chunk)) > 0) {
        buf_add(&written, chunk, (size_t)n);
    }
    cr_assert_eq(n, 0);
    return buf_cstr(&written);
}

/* The line without its time stamp, whose length is fixed. */
static const char *behind_time(const char *line)
{
    const char *head = "ts=2026-11-30T18:38:03.120Z ";

    cr_assert_gt(strlen(line), strlen(head));
    return line + strlen(head);
}

static void log_one(enum log_level level, const char *message)
{
    struct log_line line;

    if (log_begin(&line, level, "engine", message)) {
        log_end(&line);
    }
}

static void log_value(const char *message, const char *key, struct slice value)
{
    struct log_line line;

    cr_assert(log_begin(&line, LOG_INFO, "test", message));
    log_str(&line, key, value);
    log_end(&line);
}

Test(log, a_logfmt_line_has_time_level_part_message_and_fields)
{
    struct log_line line;
    int fd = memory_file();

    start(fd, LOG_INFO, LOG_LOGFMT);
    cr_assert(log_begin(&line, LOG_INFO, "engine", "event settled"));
    log_str(&line, "route", slice_of("stripe"));
    log_int(&line, "attempts", 2);
    log_int(&line, "least", INT64_MIN);
    log_end(&line);
    log_stop();
    cr_assert_str_eq(behind_time(content(fd)),
                     "level=info part=engine msg=\"event settled\" "
                     "route=stripe attempts=2 least=-9223372036854775808\n");
}

Test(log, the_time_stamp_is_utc_with_milliseconds)
{
    const char *const form = "ts=dddd-dd-ddTdd:dd:dd.dddZ ";
    int fd = memory_file();
    struct tm tm = {0};
    const char *text;
    double age_s;

    start(fd, LOG_INFO, LOG_LOGFMT);
    log_one(LOG_INFO, "x");
    log_stop();
    text = content(fd);
    for (size_t i = 0; form[i] != '\0'; i++) {
        if (form[i] == 'd') {
            cr_assert(text[i] >= '0' && text[i] <= '9', "%s", text);
        } else {
            cr_assert_eq(text[i], form[i], "%s", text);
        }
    }
    cr_assert_not_null(strptime(text, "ts=%Y-%m-%dT%H:%M:%S.", &tm));
    age_s = difftime(time(NULL), timegm(&tm));
    cr_assert(age_s > -60 && age_s < 60, "%s", text);
}

Test(log, logfmt_quotes_and_escapes_where_needed)
{
    const struct {
        struct slice value;
        const char *want;
    } rows[] = {
        {SLICE("plain-1.5/x:y"), "plain-1.5/x:y"},
        {SLICE(""), "\"\""},
        {{NULL, 0}, "\"\""},
        {SLICE("two words"), "\"two words\""},
        {SLICE("a=b"), "\"a=b\""},
        {SLICE("say \"hi\""), "\"say \\\"hi\\\"\""},
        {SLICE("back\\slash"), "\"back\\\\slash\""},
        {SLICE("a\nlevel=error"), "\"a\\nlevel=error\""},
        {SLICE("a\r\tb"), "\"a\\r\\tb\""},
        {SLICE("a\0b"), "\"a\\x00b\""},
        {SLICE("\x1b[2J"), "\"\\x1b[2J\""},
        {SLICE("\x7f"), "\"\\x7f\""},
        {SLICE("\xc3\xa9t\xc3\xa9"), "\"\xc3\xa9t\xc3\xa9\""},
        {SLICE("\xf0\x9f\x90\x98"), "\"\xf0\x9f\x90\x98\""},
        {SLICE("\xc2\x9b"
               "1m"),
         "\"\\xc2\\x9b1m\""},
        {SLICE("\xc3("), "\"\\xc3(\""},
        {SLICE("\xe2\x82"), "\"\\xe2\\x82\""},
        {SLICE("\xc0\xaf"), "\"\\xc0\\xaf\""},
    };
    int fd = memory_file();
    struct buf want = BUF_INIT;
    const char *at;

    start(fd, LOG_INFO, LOG_LOGFMT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        log_value("m", "v", rows[i].value);
    }
    log_stop();
    at = content(fd);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *end = strchr(at, '\n');

        cr_assert_not_null(end, "row %zu", i);
        buf_clear(&want);
        buf_printf(&want, "level=info part=test msg=m v=%s", rows[i].want);
        at = behind_time(at);
        cr_assert_eq((size_t)(end - at), want.len, "row %zu: %s", i, at);
        cr_assert_eq(memcmp(at, want.data, want.len), 0, "row %zu", i);
        at = end + 1;
    }
    cr_assert_eq(*at, '\0');
    buf_free(&want);
}

static json_t *parse(const char *text, size_t len)
{
    json_error_t error;
    json_t *json = json_loadb(text, len, JSON_ALLOW_NUL, &error);

    cr_assert_not_null(json, "%s in: %.*s", error.text, (int)len, text);
    return json;
}

Test(log, a_json_line_is_an_object_in_the_same_order)
{
    struct log_line line;
    int fd = memory_file();
    const char *text;
    json_t *json;

    start(fd, LOG_INFO, LOG_JSON);
    cr_assert(log_begin(&line, LOG_WARN, "engine", "it \"broke\""));
    log_str(&line, "route", slice_of("stripe"));
    log_int(&line, "attempts", -7);
    log_end(&line);
    log_stop();
    text = content(fd);
    cr_assert_eq(strncmp(text, "{\"ts\":\"20", 9), 0);
    cr_assert_not_null(strstr(
        text, "Z\",\"level\":\"warn\",\"part\":\"engine\",\"msg\":\"it "
              "\\\"broke\\\"\",\"route\":\"stripe\",\"attempts\":-7}\n"));
    json = parse(text, written.len);
    cr_assert_eq(json_object_size(json), 6);
    json_decref(json);
}

Test(log, json_escapes_and_replaces_what_is_not_utf8)
{
    const struct {
        struct slice value;
        struct slice want;
    } rows[] = {
        {SLICE(""), SLICE("")},
        {{NULL, 0}, SLICE("")},
        {SLICE("a \"b\" \\ c/d"), SLICE("a \"b\" \\ c/d")},
        {SLICE("\n\r\t\b\x01\x1f\x7f"), SLICE("\n\r\t\b\x01\x1f\x7f")},
        {SLICE("a\0b"), SLICE("a\0b")},
        {SLICE("\xc3\xa9\xf0\x9f\x90\x98"), SLICE("\xc3\xa9\xf0\x9f\x90\x98")},
        {SLICE("\xc2\x9b"), SLICE("\xc2\x9b")},
        {SLICE("a\xff"), SLICE("a\xef\xbf\xbd")},
        {SLICE("\xc3("), SLICE("\xef\xbf\xbd(")},
        {SLICE("\xed\xa0\x80"), SLICE("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd")},
    };
    int fd = memory_file();
    const char *at;

    start(fd, LOG_INFO, LOG_JSON);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        log_value("m", "v", rows[i].value);
    }
    log_stop();
    at = content(fd);
    cr_assert_null(strstr(at, "\xc2\x9b"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *end = strchr(at, '\n');
        json_t *json = parse(at, (size_t)(end - at));
        const json_t *value = json_object_get(json, "v");

        cr_assert_eq(json_string_length(value), rows[i].want.len, "row %zu", i);
        cr_assert_eq(memcmp(json_string_value(value), rows[i].want.data,
                            rows[i].want.len),
                     0, "row %zu", i);
        json_decref(json);
        at = end + 1;
    }
}

Test(log, lines_below_the_level_are_not_made)
{
    struct log_line line;
    int fd = memory_file();

    start(fd, LOG_WARN, LOG_LOGFMT);
    cr_assert_not(log_begin(&line, LOG_DEBUG, "engine", "x"));
    cr_assert_not(log_begin(&line, LOG_INFO, "engine", "x"));
    cr_assert(log_begin(&line, LOG_WARN, "engine", "x"));
    cr_assert(log_begin(&line, LOG_ERROR, "engine", "x"));
    log_end(&line);
    log_stop();
    cr_assert_str_eq(behind_time(content(fd)),
                     "level=error part=engine msg=x\n");
}

Test(log, level_off_logs_nothing)
{
    int fd = memory_file();

    start(fd, LOG_OFF, LOG_LOGFMT);
    log_one(LOG_ERROR, "x");
    log_stop();
    cr_assert_str_eq(content(fd), "");
}

/* Stderr goes to a file in memory from here on. */
static int catch_stderr(void)
{
    int fd = memory_file();

    cr_assert_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    return fd;
}

Test(log, before_start_warnings_go_to_stderr)
{
    int fd = catch_stderr();

    log_one(LOG_INFO, "quiet");
    log_one(LOG_WARN, "loud");
    cr_assert_str_eq(behind_time(content(fd)),
                     "level=warn part=engine msg=loud\n");
}

Test(log, after_stop_lines_go_to_stderr)
{
    int log_fd = memory_file();
    int fd = catch_stderr();

    start(log_fd, LOG_INFO, LOG_LOGFMT);
    log_stop();
    log_one(LOG_INFO, "late");
    cr_assert_str_eq(content(log_fd), "");
    cr_assert_str_eq(behind_time(content(fd)),
                     "level=info part=engine msg=late\n");
}

Test(log, an_error_is_one_field)
{
    struct err err;
    int fd = memory_file();

    (void)err_set(&err, ERR_IO, "open store /x: No such file");
    start(fd, LOG_INFO, LOG_LOGFMT);
    log_error("app", "cannot start", &err);
    log_stop();
    cr_assert_str_eq(behind_time(content(fd)),
                     "level=error part=app msg=\"cannot start\" "
                     "err=\"open store /x: No such file\"\n");
}

/* Three bytes each, so that a cut may fall inside. */
static struct slice many_euros(size_t n)
{
    static const char euro[] = {'\xe2', '\x82', '\xac'};
    static char text[sizeof euro * LOG_LINE_MAX];

    for (size_t i = 0; i < n; i++) {
        memcpy(text + sizeof euro * i, euro, sizeof euro);
    }
    return (struct slice){text, sizeof euro * n};
}

static void log_long(const char *pad, size_t n_euros)
{
    struct log_line line;

    cr_assert(log_begin(&line, LOG_INFO, "test", pad));
    log_str(&line, "v", many_euros(n_euros));
    log_int(&line, "n", 1234567890);
    log_str(&line, "w", slice_of("\x01\x01"));
    log_end(&line);
}

/* Every length around the limit, in steps of one byte; the ring has room for
 * all of them. */
static void log_long_lines(void)
{
    for (size_t n = 630; n < 660; n++) {
        log_long("", n);
        log_long("1", n);
        log_long("22", n);
    }
    log_long("", LOG_LINE_MAX);
}

/* True when the line was cut; what is in it is right in any case. */
static bool check_long_line(const char *at, size_t len)
{
    json_t *json = parse(at, len);
    const json_t *n = json_object_get(json, "n");
    const json_t *w = json_object_get(json, "w");
    bool cut = json_is_true(json_object_get(json, "cut"));
    size_t value_len = json_string_length(json_object_get(json, "v"));

    cr_assert_leq(len, LOG_LINE_MAX - 1);
    cr_assert_eq(value_len % 3, 0);
    if (n != NULL) {
        cr_assert_eq(json_integer_value(n), 1234567890);
    }
    if (cut) {
        cr_assert_geq(len, LOG_LINE_MAX - 40);
    } else {
        cr_assert_not_null(n);
        cr_assert_str_eq(json_string_value(w), "\x01\x01");
    }
    json_decref(json);
    return cut;
}

Test(log, a_json_line_that_is_cut_stays_valid_and_says_so)
{
    int fd = memory_file();
    size_t n = 0;
    size_t n_cut = 0;
    const char *at;

    start(fd, LOG_INFO, LOG_JSON);
    log_long_lines();
    log_stop();
    at = content(fd);
    while (*at != '\0') {
        const char *end = strchr(at, '\n');

        n_cut += check_long_line(at, (size_t)(end - at));
        n++;
        at = end + 1;
    }
    cr_assert_eq(n, 91);
    cr_assert_gt(n_cut, 10);
    cr_assert_lt(n_cut, 80);
}

static bool ends_with(const char *at, size_t len, const char *tail)
{
    return len >= strlen(tail) &&
           memcmp(at + len - strlen(tail), tail, strlen(tail)) == 0;
}

Test(log, a_logfmt_line_that_is_cut_is_closed_and_says_so)
{
    int fd = memory_file();
    size_t n_cut = 0;
    const char *at;

    start(fd, LOG_INFO, LOG_LOGFMT);
    log_long_lines();
    log_stop();
    at = content(fd);
    while (*at != '\0') {
        size_t len = strcspn(at, "\n");

        cr_assert_leq(len, LOG_LINE_MAX - 1);
        if (ends_with(at, len, " cut=true")) {
            cr_assert(at[len - 10] == '"' || at[len - 10] == '0', "%s", at);
            cr_assert_geq(len, LOG_LINE_MAX - 40);
            n_cut++;
        } else {
            cr_assert(ends_with(at, len, " n=1234567890 w=\"\\x01\\x01\""));
        }
        at += len + 1;
    }
    cr_assert_gt(n_cut, 5);
    cr_assert_lt(n_cut, 80);
}

struct reader_job {
    int fd;
    struct buf text;
};

static void *read_all(void *arg)
{
    struct reader_job *job = arg;
    char chunk[4096];
    ssize_t n;

    while ((n = read(job->fd, chunk, sizeof chunk)) > 0) {
        buf_add(&job->text, chunk, (size_t)n);
    }
    return NULL;
}

static const char padding[] = "0123456789012345678901234567890123456789"
                              "0123456789012345678901234567890123456789";

static void log_numbers(int from, int to)
{
    for (int i = from; i < to; i++) {
        struct log_line line;

        cr_assert(log_begin(&line, LOG_INFO, "test", padding));
        log_int(&line, "n", i);
        log_end(&line);
    }
}

static int number_behind(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    cr_assert_not_null(at, "no %s in: %s", key, line);
    return (int)strtol(at + strlen(key), NULL, 10);
}

/* Follows the numbers: what is missing is told where it is missing. Returns
 * the next number, and through `dropped` how many were not there. */
static int follow(char *text, int *dropped)
{
    int next = 0;

    *dropped = 0;
    for (char *line = strtok(text, "\n"); line != NULL;
         line = strtok(NULL, "\n")) {
        cr_assert_eq(strncmp(line, "ts=", 3), 0, "torn: %s", line);
        if (strstr(line, "part=log msg=\"lines dropped\"") != NULL) {
            int count = number_behind(line, " count=");

            cr_assert_gt(count, 0);
            *dropped += count;
            next += count;
        } else {
            cr_assert_eq(number_behind(line, " n="), next, "%s", line);
            next++;
        }
    }
    return next;
}

Test(log, dropped_lines_are_counted_where_they_are_missing)
{
    struct reader_job job = {.text = BUF_INIT};
    pthread_t reader;
    int pipe_fds[2];
    int dropped;

    cr_assert_eq(pipe(pipe_fds), 0);
    job.fd = pipe_fds[0];
    start(pipe_fds[1], LOG_INFO, LOG_LOGFMT);
    log_numbers(0, 10000);
    cr_assert_eq(pthread_create(&reader, NULL, read_all, &job), 0);
    log_numbers(10000, 20000);
    log_stop();
    cr_assert_eq(close(pipe_fds[1]), 0);
    cr_assert_eq(pthread_join(reader, NULL), 0);
    buf_add_byte(&job.text, '\0');
    cr_assert_eq(follow(job.text.data, &dropped), 20000);
    cr_assert_gt(dropped, 5000);
    buf_free(&job.text);
}

Test(log, stop_does_not_wait_for_a_reader_that_does_not_read)
{
    struct reader_job job = {.text = BUF_INIT};
    int pipe_fds[2];
    int dropped;

    cr_assert_eq(pipe(pipe_fds), 0);
    start(pipe_fds[1], LOG_INFO, LOG_LOGFMT);
    log_numbers(0, 1000);
    log_stop();
    cr_assert_eq(close(pipe_fds[1]), 0);
    job.fd = pipe_fds[0];
    (void)read_all(&job);
    cr_assert_gt(job.text.len, 0);
    cr_assert_eq(job.text.data[job.text.len - 1], '\n');
    buf_add_byte(&job.text, '\0');
    cr_assert_gt(follow(job.text.data, &dropped), 100);
    cr_assert_eq(dropped, 0);
    buf_free(&job.text);
}

Test(log, a_log_that_cannot_be_written_does_no_harm)
{
    int pipe_fds[2];
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    cr_assert_geq(full, 0);
    start(full, LOG_INFO, LOG_LOGFMT);
    log_numbers(0, 100);
    log_stop();
    cr_assert_eq(pipe(pipe_fds), 0);
    cr_assert_eq(close(pipe_fds[0]), 0);
    start(pipe_fds[1], LOG_INFO, LOG_LOGFMT);
    log_numbers(0, 100);
    log_stop();
}

Test(log, a_full_ring_keeps_its_order_when_it_wraps)
{
    int fd = memory_file();
    int dropped;
    int next;

    start(fd, LOG_INFO, LOG_LOGFMT);
    log_numbers(0, 10000);
    log_stop();
    (void)content(fd);
    next = follow(written.data, &dropped);
    cr_assert_eq(next, 10000);
    cr_assert_gt(next - dropped, 1000);
}

Test(log, stop_is_fine_when_not_started)
{
    log_stop();
    log_stop();
}

Test(log, starting_twice_aborts, .signal = SIGABRT)
{
    start(STDERR_FILENO, LOG_INFO, LOG_LOGFMT);
    start(STDERR_FILENO, LOG_INFO, LOG_LOGFMT);
}
