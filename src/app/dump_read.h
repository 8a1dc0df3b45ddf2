/* SPDX-License-Identifier: MIT */
/*
 * Reads what dump_write wrote, line by line. A line comes from outside:
 * whatever stands in it, it is an event for load_check_event to judge, or an
 * error that says what is wrong with it.
 */
#ifndef ONCED_APP_DUMP_READ_H
#define ONCED_APP_DUMP_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "engine/load.h"

enum { DUMP_LINE_MAX = 256 << 20 };

/* A stream of lines; `number` is that of the last one, from 1. */
struct dump_lines {
    FILE *file;
    uint64_t number;
    struct buf text; /* of the last one */
};

enum dump_line { DUMP_LINE, DUMP_LINES_END, DUMP_LINES_FAILED };

/* The next line, without its end, in lines->text; blank ones are skipped, and
 * a byte order mark at the start. */
enum dump_line dump_next_line(struct dump_lines *lines,
                              struct err *err) MUST_CHECK;

/* The last line as a JSON object, new; NULL after an error. */
json_t *dump_parse_line(const struct dump_lines *lines, struct err *err);

struct dump_header {
    const char *store, *at;     /* which, and when it was written; borrowed */
    const char *route;          /* the only one in it; NULL: all; borrowed */
    int64_t forgotten_until_ms; /* INT64_MIN: nothing is */
    const json_t *paused;       /* names of routes; borrowed */
};

/* ERR_DATA says what is wrong with the line. */
bool dump_read_header(const json_t *line, struct dump_header *out,
                      struct err *err) MUST_CHECK;

/* An event, and the memory that its slices look into beside the line's. */
struct dump_read {
    struct load_event event;
    char code[STORE_CODE_MAX + 1], text[STORE_TEXT_MAX + 1];
    struct buf envelope, result;
    struct store_audit *history;
    struct dump_owned *owned;
};

/* Likewise. `line` must live, and `out` stay in its place, as long as the
 * event is used; dump_read_fini ends that, also after an error. */
bool dump_read_event(const json_t *line, struct dump_read *out,
                     struct err *err) MUST_CHECK;
void dump_read_fini(struct dump_read *read);

/* What arrived, as "request" of a line has it (an object): its flat form is
 * appended. ERR_DATA says what is wrong with it. */
bool dump_read_request(const json_t *request, struct buf *flat,
                       struct err *err) MUST_CHECK;

/* One line of ids that were handled elsewhere. */
struct dump_seen {
    const char *route; /* NULL: not told */
    struct slice tenant, id;
    int64_t at_ms; /* 0: not told */
};

/* Likewise; it looks into the line. */
bool dump_read_seen(const json_t *line, struct dump_seen *out,
                    struct err *err) MUST_CHECK;

#endif
