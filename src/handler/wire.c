/* SPDX-License-Identifier: MIT */
#include "handler/wire.h"

#include <string.h>

#include "onced/handler.h"

static bool is_token_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') ||
           (byte != '\0' && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

bool wire_is_token(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (!is_token_byte(name.data[i])) {
            return false;
        }
    }
    return name.len > 0;
}

static bool is_control(char byte)
{
    unsigned char u = (unsigned char)byte;

    return u < 0x20 || u == 0x7f;
}

bool wire_is_value(struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (is_control(value.data[i]) && value.data[i] != '\t') {
            return false;
        }
    }
    return true;
}

bool wire_is_text(struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (is_control(value.data[i])) {
            return false;
        }
    }
    return slice_trim(value).len == value.len && slice_is_utf8(value);
}

bool wire_is_one_of(struct slice name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_eq_nocase(name, slice_of(names[i]))) {
            return true;
        }
    }
    return false;
}

bool wire_is_framing(struct slice name)
{
    static const char *const names[] = {"content-length", "transfer-encoding",
                                        "expect",         "te",
                                        "trailer",        "upgrade"};

    return wire_is_one_of(name, names, sizeof names / sizeof names[0]);
}

bool wire_is_reserved(struct slice name)
{
    struct slice prefix = SLICE("onced-");
    struct slice start = {name.data,
                          name.len < prefix.len ? name.len : prefix.len};

    return slice_eq_nocase(start, prefix) ||
           slice_eq_nocase(name, SLICE(ONCED_HEADER_IDEMPOTENCY_KEY));
}

/* Whether the comma-separated `list` has `name` in it. */
static bool list_has(struct slice list, struct slice name)
{
    while (list.len > 0) {
        size_t end = slice_find(list, ',');
        struct slice element = {list.data, end};

        if (slice_eq_nocase(slice_trim(element), name)) {
            return true;
        }
        list = slice_from(list, end < list.len ? end + 1 : end);
    }
    return false;
}

bool wire_is_hop_by_hop(const struct headers *all, struct slice name)
{
    static const char *const known[] = {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
    };
    struct header header;

    if (wire_is_one_of(name, known, sizeof known / sizeof known[0])) {
        return true;
    }
    for (size_t at = 0; headers_next(all, &at, &header);) {
        if (slice_eq_nocase(header.name, SLICE("connection")) &&
            list_has(header.value, name)) {
            return true;
        }
    }
    return false;
}
