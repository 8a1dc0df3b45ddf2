/* SPDX-License-Identifier: MIT */
#include "sim/trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define FNV_START UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

void trace_begin(struct trace *trace, bool print)
{
    trace->print = print;
    trace->hash = FNV_START;
    trace->lines = 0;
}

void trace_line(struct trace *trace, int64_t now_ms, const char *format, ...)
{
    char *line = trace->last[trace->lines++ % TRACE_LINES];
    int at = snprintf(line, TRACE_LINE_SIZE, "%10" PRId64 ".%03d  ",
                      now_ms / 1000, (int)(now_ms % 1000));
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line + at, (size_t)(TRACE_LINE_SIZE - at), format, args);
    va_end(args);
    for (const char *c = line; *c != '\0'; c++) {
        trace->hash = (trace->hash ^ (uint8_t)*c) * FNV_PRIME;
    }
    if (trace->print) {
        (void)puts(line);
    }
}

void trace_dump(const struct trace *trace)
{
    uint64_t first =
        trace->lines > TRACE_LINES ? trace->lines - TRACE_LINES : 0;

    for (uint64_t i = first; i < trace->lines; i++) {
        (void)fprintf(stderr, "    %s\n", trace->last[i % TRACE_LINES]);
    }
}
