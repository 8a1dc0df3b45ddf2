/* SPDX-License-Identifier: MIT */
/*
 * How a log line is put together, for log.c alone: the head and the end. The
 * fields between are log_str and log_int. Pure but for the time of day.
 */
#ifndef ONCED_BASE_LOG_LINE_H
#define ONCED_BASE_LOG_LINE_H

#include "base/log.h"

/* Begins the line with the time, level, part and message, in `format`. */
void log_line_open(struct log_line *line, enum log_format format,
                   enum log_level level, const char *part, const char *message);

/* Ends it, with its newline; there is always room for that. */
void log_line_close(struct log_line *line);

#endif
