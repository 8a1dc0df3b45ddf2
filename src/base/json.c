/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <stdint.h>

#include "base/check.h"
#include "base/json_string.h"
#include "base/text.h"

/* What may stand next, behind blanks. */
enum want {
    WANT_VALUE,
    WANT_FIRST_ITEM, /* or the end of an array */
    WANT_FIRST_NAME, /* or the end of an object */
    WANT_NAME,
    WANT_NEXT, /* a comma or the end of the container */
    WANT_NOTHING,
};

/*
 * One pass over one value. Levels count from 1; at level d the container is
 * on the way to the target where d <= way, and its member or item is named
 * by token d - 1. A level is entered when the step above it was matched, so
 * one counter of items serves all levels.
 */
struct scan {
    const char *at;
    const char *end;
    enum want want;
    enum json_status status; /* of the text: JSON_OK until an error */
    int depth;
    bool is_object[JSON_DEPTH_MAX + 1];

    const struct slice *tokens; /* still escaped */
    int n_tokens;
    int way;
    bool matched[JSON_DEPTH_MAX + 1]; /* this container's step was seen */
    bool next_is_step;   /* the next value is the next step of the way */
    bool next_is_target; /* the next value is what is looked for */
    uint64_t index;      /* of the next item in the array at level `way` */
    uint64_t index_wanted;
    bool ambiguous;
    bool found;
    bool inside; /* the target has begun and not ended */
    int target_depth;
    struct json_value target;
};

static bool fail(struct scan *scan)
{
    scan->status = JSON_INVALID;
    return false;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static void skip_blank(struct scan *scan)
{
    while (scan->at < scan->end && is_blank(*scan->at)) {
        scan->at++;
    }
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* --- the way to the target */

static void step_matched(struct scan *scan)
{
    if (scan->matched[scan->depth]) {
        scan->ambiguous = true;
        return;
    }
    scan->matched[scan->depth] = true;
    scan->next_is_target = scan->depth == scan->n_tokens;
    scan->next_is_step = !scan->next_is_target;
}

static void see_name(struct scan *scan, struct slice name)
{
    if (scan->depth == scan->way &&
        json_string_is(name, scan->tokens[scan->depth - 1])) {
        step_matched(scan);
    }
}

/* Once the wanted item was seen, the counter may serve a level below. */
static void see_item(struct scan *scan)
{
    if (scan->depth == scan->way && !scan->matched[scan->depth] &&
        scan->index++ == scan->index_wanted) {
        step_matched(scan);
    }
}

static void begin_value(struct scan *scan, enum json_type type)
{
    if (scan->next_is_target) {
        scan->next_is_target = false;
        scan->found = true;
        scan->inside = true;
        scan->target_depth = scan->depth;
        scan->target.type = type;
        scan->target.raw.data = scan->at;
    }
}

static void end_value(struct scan *scan)
{
    scan->next_is_step = false;
    scan->want = scan->depth == 0 ? WANT_NOTHING : WANT_NEXT;
    if (scan->inside && scan->depth == scan->target_depth) {
        scan->inside = false;
        scan->target.raw.len = (size_t)(scan->at - scan->target.raw.data);
    }
}

/* A container has been opened: is it on the way? */
static void see_container(struct scan *scan)
{
    if (!scan->next_is_step) {
        return;
    }
    scan->next_is_step = false;
    scan->way = scan->depth;
    scan->matched[scan->depth] = false;
    scan->index = 0;
    if (scan->is_object[scan->depth] ||
        !text_u64(scan->tokens[scan->depth - 1], &scan->index_wanted)) {
        scan->index_wanted = UINT64_MAX;
    }
}

/* --- the grammar */

static bool open_container(struct scan *scan, bool is_object)
{
    if (scan->depth == JSON_DEPTH_MAX) {
        scan->status = JSON_TOO_DEEP;
        return false;
    }
    begin_value(scan, is_object ? JSON_OBJECT : JSON_ARRAY);
    scan->at++;
    scan->depth++;
    scan->is_object[scan->depth] = is_object;
    scan->want = is_object ? WANT_FIRST_NAME : WANT_FIRST_ITEM;
    see_container(scan);
    return true;
}

static bool close_container(struct scan *scan)
{
    CHECK(scan->depth > 0);
    if (scan->depth == scan->way) {
        scan->way--;
    }
    scan->depth--;
    scan->at++;
    end_value(scan);
    return true;
}

static size_t skip_digits(struct scan *scan)
{
    const char *start = scan->at;

    while (scan->at < scan->end && is_digit(*scan->at)) {
        scan->at++;
    }
    return (size_t)(scan->at - start);
}

static bool skip_byte(struct scan *scan, char byte)
{
    if (scan->at == scan->end || *scan->at != byte) {
        return false;
    }
    scan->at++;
    return true;
}

static bool take_number(struct scan *scan)
{
    begin_value(scan, JSON_NUMBER);
    (void)skip_byte(scan, '-'); /* optional */
    if (!skip_byte(scan, '0') && skip_digits(scan) == 0) {
        return fail(scan);
    }
    if (skip_byte(scan, '.') && skip_digits(scan) == 0) {
        return fail(scan);
    }
    if (skip_byte(scan, 'e') || skip_byte(scan, 'E')) {
        if (!skip_byte(scan, '+')) {
            (void)skip_byte(scan, '-'); /* optional */
        }
        if (skip_digits(scan) == 0) {
            return fail(scan);
        }
    }
    end_value(scan);
    return true;
}

static bool take_literal(struct scan *scan, struct slice word,
                         enum json_type type)
{
    struct slice rest = {scan->at, (size_t)(scan->end - scan->at)};

    if (!slice_starts(rest, word)) {
        return fail(scan);
    }
    begin_value(scan, type);
    scan->at += word.len;
    end_value(scan);
    return true;
}

static bool take_text(struct scan *scan)
{
    struct slice text;

    begin_value(scan, JSON_STRING);
    if (!json_string_take(&scan->at, scan->end, &text)) {
        return fail(scan);
    }
    end_value(scan);
    return true;
}

static bool take_value(struct scan *scan)
{
    switch (*scan->at) {
    case '{':
        return open_container(scan, true);
    case '[':
        return open_container(scan, false);
    case '"':
        return take_text(scan);
    case 't':
        return take_literal(scan, SLICE("true"), JSON_TRUE);
    case 'f':
        return take_literal(scan, SLICE("false"), JSON_FALSE);
    case 'n':
        return take_literal(scan, SLICE("null"), JSON_NULL);
    default:
        return take_number(scan);
    }
}

static bool take_name(struct scan *scan)
{
    struct slice name;

    if (*scan->at != '"' || !json_string_take(&scan->at, scan->end, &name)) {
        return fail(scan);
    }
    see_name(scan, name);
    skip_blank(scan);
    if (!skip_byte(scan, ':')) {
        return fail(scan);
    }
    scan->want = WANT_VALUE;
    return true;
}

static bool take_item(struct scan *scan)
{
    see_item(scan);
    return take_value(scan);
}

static bool take_next(struct scan *scan)
{
    bool is_object = scan->is_object[scan->depth];

    if (*scan->at == (is_object ? '}' : ']')) {
        return close_container(scan);
    }
    if (!skip_byte(scan, ',')) {
        return fail(scan);
    }
    scan->want = WANT_VALUE;
    if (is_object) {
        scan->want = WANT_NAME;
    } else {
        see_item(scan);
    }
    return true;
}

static bool take_wanted(struct scan *scan)
{
    switch (scan->want) {
    case WANT_VALUE:
        return take_value(scan);
    case WANT_FIRST_ITEM:
        return *scan->at == ']' ? close_container(scan) : take_item(scan);
    case WANT_FIRST_NAME:
        return *scan->at == '}' ? close_container(scan) : take_name(scan);
    case WANT_NAME:
        return take_name(scan);
    case WANT_NEXT:
        return take_next(scan);
    case WANT_NOTHING:
        break;
    }
    UNREACHABLE("the value has ended");
}

static bool scan_value(struct scan *scan)
{
    while (scan->want != WANT_NOTHING) {
        skip_blank(scan);
        if (scan->at == scan->end) {
            return fail(scan);
        }
        if (!take_wanted(scan)) {
            return false;
        }
    }
    return true;
}

static bool scan_text(struct scan *scan)
{
    if (!scan_value(scan)) {
        return false;
    }
    skip_blank(scan);
    return scan->at == scan->end || fail(scan);
}

static void scan_begin(struct scan *scan, struct slice text)
{
    scan->at = text.len == 0 ? "" : text.data;
    scan->end = scan->at + text.len;
    scan->want = WANT_VALUE;
    scan->status = JSON_OK;
    scan->depth = 0;
    scan->tokens = NULL;
    scan->n_tokens = 0;
    scan->way = 0;
    scan->next_is_step = false;
    scan->next_is_target = false;
    scan->ambiguous = false;
    scan->found = false;
    scan->inside = false;
}

enum json_status json_check(struct slice text, size_t *offset)
{
    struct scan scan;

    scan_begin(&scan, text);
    if (!scan_text(&scan) && offset != NULL) {
        *offset = text.len - (size_t)(scan.end - scan.at);
    }
    return scan.status;
}

bool json_pointer_ok(struct slice pointer)
{
    if (pointer.len > 0 && pointer.data[0] != '/') {
        return false;
    }
    for (size_t i = 0; i < pointer.len; i++) {
        if (pointer.data[i] != '~') {
            continue;
        }
        i++;
        if (i == pointer.len ||
            (pointer.data[i] != '0' && pointer.data[i] != '1')) {
            return false;
        }
    }
    return true;
}

/* One token more than there are levels is enough to find nothing. */
enum { TOKENS_MAX = JSON_DEPTH_MAX + 1 };

static int split_pointer(struct slice pointer, struct slice tokens[TOKENS_MAX])
{
    int n = 0;

    CHECK(json_pointer_ok(pointer));
    while (pointer.len > 0 && n < TOKENS_MAX) {
        pointer = slice_from(pointer, 1);
        tokens[n].data = pointer.data;
        tokens[n].len = slice_find(pointer, '/');
        pointer = slice_from(pointer, tokens[n].len);
        n++;
    }
    return n;
}

enum json_status json_find(struct slice text, struct slice pointer,
                           struct json_value *out)
{
    struct slice tokens[TOKENS_MAX];
    struct scan scan;

    scan_begin(&scan, text);
    scan.tokens = tokens;
    scan.n_tokens = split_pointer(pointer, tokens);
    scan.next_is_target = scan.n_tokens == 0;
    scan.next_is_step = scan.n_tokens > 0;
    if (!scan_text(&scan)) {
        return scan.status;
    }
    if (scan.ambiguous) {
        return JSON_AMBIGUOUS;
    }
    if (!scan.found) {
        return JSON_ABSENT;
    }
    *out = scan.target;
    return JSON_OK;
}

bool json_next_item(struct json_value array, size_t *at,
                    struct json_value *item)
{
    struct scan scan;
    bool ok;

    CHECK(array.type == JSON_ARRAY);
    CHECK(*at < array.raw.len);
    scan_begin(&scan, slice_from(array.raw, *at));
    (void)skip_byte(&scan, *at == 0 ? '[' : ',');
    skip_blank(&scan);
    if (scan.end - scan.at == 1) {
        return false;
    }
    scan.next_is_target = true;
    ok = scan_value(&scan);
    CHECK(ok);
    skip_blank(&scan);
    *item = scan.target;
    *at = array.raw.len - (size_t)(scan.end - scan.at);
    return true;
}

const char *json_status_text(enum json_status status)
{
    switch (status) {
    case JSON_OK:
        return "is JSON";
    case JSON_INVALID:
        return "is not JSON";
    case JSON_TOO_DEEP:
        return "is nested too deeply";
    case JSON_ABSENT:
        return "has nothing at the pointer";
    case JSON_AMBIGUOUS:
        return "has a member twice on the way of the pointer";
    }
    UNREACHABLE("an unknown status");
}
