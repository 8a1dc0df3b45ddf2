/* SPDX-License-Identifier: MIT */
#include "source/http_target.h"

#include <stddef.h>

/* RFC 9112, 3.2: no blank, no control byte, no fragment, ASCII only. */
static bool has_only_target_bytes(struct slice raw)
{
    for (size_t i = 0; i < raw.len; i++) {
        unsigned char byte = (unsigned char)raw.data[i];
        if (byte <= ' ' || byte >= 0x7f || byte == '#') {
            return false;
        }
    }
    return true;
}

/* Skips "http://authority"; false where the target has not that form. */
static bool skip_authority(struct slice *rest)
{
    static const struct slice schemes[] = {{"http://", 7}, {"https://", 8}};

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        struct slice scheme = schemes[i];
        if (rest->len <= scheme.len) {
            continue;
        }
        struct slice start = {rest->data, scheme.len};
        if (!slice_eq_nocase(start, scheme)) {
            continue;
        }
        *rest = slice_from(*rest, scheme.len);
        size_t end = 0;
        while (end < rest->len && rest->data[end] != '/' &&
               rest->data[end] != '?') {
            end++;
        }
        *rest = slice_from(*rest, end);
        return end > 0;
    }
    return false;
}

/* "." in any spelling; returns how many bytes it takes, or 0. */
static size_t dot_length(struct slice text)
{
    if (text.len >= 1 && text.data[0] == '.') {
        return 1;
    }
    if (text.len >= 3 && text.data[0] == '%' && text.data[1] == '2' &&
        (text.data[2] == 'e' || text.data[2] == 'E')) {
        return 3;
    }
    return 0;
}

static bool is_dot_segment(struct slice segment)
{
    size_t first = dot_length(segment);
    if (first == 0) {
        return false;
    }
    struct slice rest = slice_from(segment, first);
    return rest.len == 0 || dot_length(rest) == rest.len;
}

/* "/", or what a receiver that decodes first may take for it; returns how many
 * bytes it takes, or 0. */
static size_t separator_length(struct slice text)
{
    static const struct slice spelled[] = {
        {"/", 1}, {"\\", 1}, {"%2f", 3}, {"%5c", 3}};

    for (size_t i = 0; i < sizeof(spelled) / sizeof(spelled[0]); i++) {
        struct slice start = {text.data, spelled[i].len};
        if (text.len >= start.len && slice_eq_nocase(start, spelled[i])) {
            return start.len;
        }
    }
    return 0;
}

static bool has_dot_segment(struct slice path)
{
    struct slice segment = {path.data, 0};
    while (path.len > 0) {
        size_t separator = separator_length(path);
        if (separator > 0 && is_dot_segment(segment)) {
            return true;
        }
        path = slice_from(path, separator > 0 ? separator : 1);
        segment = separator > 0 ? (struct slice){path.data, 0}
                                : (struct slice){segment.data, segment.len + 1};
    }
    return is_dot_segment(segment);
}

const char *http_target_split(struct slice raw, struct http_target *out)
{
    if (!has_only_target_bytes(raw)) {
        return "the request target has bytes that no target may have";
    }
    if (raw.len == 0 || raw.data[0] != '/') {
        if (!skip_authority(&raw)) {
            return "the request target is not a path";
        }
    }
    size_t mark = slice_find(raw, '?');
    out->path = (struct slice){raw.data, mark};
    out->has_query = mark < raw.len;
    out->query = slice_from(raw, out->has_query ? mark + 1 : raw.len);
    if (out->path.len == 0) {
        out->path = SLICE("/");
    }
    if (has_dot_segment(out->path)) {
        return "the request target has dot segments";
    }
    return NULL;
}
