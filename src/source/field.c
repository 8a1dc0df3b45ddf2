/* SPDX-License-Identifier: MIT */
#include "source/field.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"

static bool is_token_byte(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
           (byte >= '0' && byte <= '9') ||
           (byte != '\0' && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

bool field_name_ok(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (!is_token_byte(name.data[i])) {
            return false;
        }
    }
    return name.len > 0;
}

static struct field_pair split_pair(struct slice text)
{
    size_t equals = slice_find(text, '=');
    struct field_pair pair = {{text.data, equals}, {NULL, 0}};

    if (equals < text.len) {
        pair.value = slice_from(text, equals + 1);
    }
    return pair;
}

bool field_next_pair(struct slice *rest, struct field_pair *out)
{
    while (rest->len > 0) {
        size_t end = slice_find(*rest, '&');
        struct slice text = {rest->data, end};

        *rest = slice_from(*rest, end < rest->len ? end + 1 : end);
        if (text.len > 0) {
            *out = split_pair(text);
            return true;
        }
    }
    return false;
}

bool field_decode(struct slice encoded, struct buf *out)
{
    size_t start = out->len;

    while (encoded.len > 0) {
        size_t plus = slice_find(encoded, '+');

        if (!text_unpercent((struct slice){encoded.data, plus}, out)) {
            out->len = start;
            return false;
        }
        if (plus < encoded.len) {
            buf_add_byte(out, ' ');
            plus++;
        }
        encoded = slice_from(encoded, plus);
    }
    return true;
}

size_t field_find_pair(struct slice text, struct slice name,
                       struct slice *value)
{
    struct buf decoded = BUF_INIT;
    struct field_pair pair;
    size_t n = 0;

    CHECK(name.len > 0);
    while (field_next_pair(&text, &pair)) {
        buf_clear(&decoded);
        if (!field_decode(pair.name, &decoded) ||
            !slice_eq(buf_slice(&decoded), name)) {
            continue;
        }
        if (n == 0) {
            *value = pair.value;
        }
        n++;
    }
    buf_free(&decoded);
    return n;
}
