/* SPDX-License-Identifier: MIT */
/*
 * Structured log lines, logfmt or JSON, to one file descriptor (stderr).
 *
 * A line is built in a fixed buffer on the caller's stack and handed to a
 * bounded ring, which one thread of the log writes out: no caller waits for
 * a slow terminal or pipe. When the ring is full, lines are dropped and
 * counted; a line before the next one that fits says how many. Before
 * log_start (from LOG_WARN up, logfmt) and after log_stop lines are written
 * to stderr directly.
 *
 *     struct log_line line;
 *     if (log_begin(&line, LOG_INFO, "engine", "event settled")) {
 *         log_str(&line, "route", slice_of(route->name));
 *         log_int(&line, "attempts", record->attempt);
 *         log_end(&line);
 *     }
 *
 * gives  ts=2026-…Z level=info part=engine msg="event settled" route=… .
 * Values are escaped; a line over LOG_LINE_MAX is cut and says cut=true. No
 * secret and no body goes into a line. Any thread; the core does not log.
 */
#ifndef ONCED_BASE_LOG_H
#define ONCED_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

enum { LOG_LINE_MAX = 2048 };

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };
enum log_format { LOG_LOGFMT, LOG_JSON };

struct log_options {
    enum log_level level;
    enum log_format format;
    int fd; /* kept open by the caller until log_stop returned */
};

/* Once per process. Starts the writing thread. */
bool log_start(const struct log_options *options, struct err *err) MUST_CHECK;

/* Writes what is in the ring, ends the thread. What a reader does not take
 * within a second is given up. Fine when not started. */
void log_stop(void);

struct log_line {
    char text[LOG_LINE_MAX];
    size_t len;
    enum log_level level;
    enum log_format format;
    bool cut; /* the rest, from some value on, is left out */
};

/* False when the level is off: skip the fields. */
bool log_begin(struct log_line *line, enum log_level level, const char *part,
               const char *message);

/* One more field. `value` may hold any bytes. */
void log_str(struct log_line *line, const char *key, struct slice value);
void log_int(struct log_line *line, const char *key, int64_t value);

/* Hands the line over; never waits for the reader of the log. */
void log_end(struct log_line *line);

/* A line at LOG_ERROR with one text field "err", the usual way to tell an
 * error. */
void log_error(const char *part, const char *message, const struct err *err);

#endif
