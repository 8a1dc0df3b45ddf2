/* SPDX-License-Identifier: MIT */
/*
 * What happened in a simulated world, line by line: hashed always, so that two
 * runs can be compared; printed on request; the last lines kept for a failure.
 */
#ifndef ONCED_TESTS_SIM_TRACE_H
#define ONCED_TESTS_SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_LINES = 64, TRACE_LINE_SIZE = 200 };

struct trace {
    bool print; /* every line, to stdout */
    uint64_t hash;
    uint64_t lines;
    char last[TRACE_LINES][TRACE_LINE_SIZE];
};

/* An empty trace. */
void trace_begin(struct trace *trace, bool print);
void trace_line(struct trace *trace, int64_t now_ms, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The lines that are kept, to stderr. */
void trace_dump(const struct trace *trace);

#endif
