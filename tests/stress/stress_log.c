/* SPDX-License-Identifier: MIT */
/*
 * Several threads log into a pipe that one reads, under ThreadSanitizer:
 * every line arrives whole, in the order of its thread, or is counted.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"

enum { WRITERS = 4, LINES_EACH = 10000 };

static void *write_lines(void *arg)
{
    const int id = *(const int *)arg;

    for (int i = 0; i < LINES_EACH; i++) {
        struct log_line line;

        CHECK(log_begin(&line, LOG_INFO, "stress", "one of many"));
        log_int(&line, "writer", id);
        log_int(&line, "n", i);
        log_str(&line, "end", SLICE("of line"));
        log_end(&line);
    }
    return NULL;
}

static long number_behind(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    CHECK(at != NULL);
    return strtol(at + strlen(key), NULL, 10);
}

/* Reads to the end; returns the lines that came and those that are told to
 * be missing. */
static long read_lines(FILE *in, long *dropped)
{
    static const char end[] = " end=\"of line\"\n";
    char line[LOG_LINE_MAX + 1];
    long next[WRITERS] = {0};
    long n = 0;

    *dropped = 0;
    while (fgets(line, sizeof line, in) != NULL) {
        size_t len = strlen(line);

        CHECK(strncmp(line, "ts=", 3) == 0);
        if (strstr(line, "msg=\"lines dropped\"") != NULL) {
            *dropped += number_behind(line, " count=");
            continue;
        }
        long writer = number_behind(line, " writer=");
        long number = number_behind(line, " n=");

        CHECK(len > strlen(end));
        CHECK(strcmp(line + len - strlen(end), end) == 0);
        CHECK(writer >= 0 && writer < WRITERS);
        CHECK(number >= next[writer]);
        next[writer] = number + 1;
        n++;
    }
    return n;
}

struct totals {
    FILE *in;
    long lines;
    long dropped;
};

static void *read_log(void *arg)
{
    struct totals *totals = arg;

    totals->lines = read_lines(totals->in, &totals->dropped);
    return NULL;
}

int main(void)
{
    struct totals totals = {0};
    struct log_options options = {LOG_INFO, LOG_LOGFMT, -1};
    pthread_t reader;
    pthread_t writers[WRITERS];
    int ids[WRITERS];
    int pipe_fds[2];
    struct err err;

    CHECK(pipe(pipe_fds) == 0);
    totals.in = fdopen(pipe_fds[0], "r");
    CHECK(totals.in != NULL);
    options.fd = pipe_fds[1];
    CHECK(log_start(&options, &err));
    for (int i = 0; i < WRITERS; i++) {
        ids[i] = i;
        CHECK(pthread_create(&writers[i], NULL, write_lines, &ids[i]) == 0);
    }
    /* Nobody reads until the first is done, so that lines are dropped. */
    CHECK(pthread_join(writers[0], NULL) == 0);
    CHECK(pthread_create(&reader, NULL, read_log, &totals) == 0);
    for (int i = 1; i < WRITERS; i++) {
        CHECK(pthread_join(writers[i], NULL) == 0);
    }
    log_stop();
    CHECK(close(pipe_fds[1]) == 0);
    CHECK(pthread_join(reader, NULL) == 0);
    CHECK(fclose(totals.in) == 0);
    CHECK(totals.lines > 0);
    CHECK(totals.dropped > 0);
    CHECK(totals.lines + totals.dropped == (long)WRITERS * LINES_EACH);
    printf("stress_log: %ld lines, %ld dropped\n", totals.lines,
           totals.dropped);
    return 0;
}
