/* SPDX-License-Identifier: MIT */
#include "tool.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/check.h"
#include "base/text.h"

static json_t *base64_json(const void *data, size_t len)
{
    struct buf text = BUF_INIT;
    text_base64((struct slice){data, len}, &text);
    json_t *value = json_stringn(text.data, text.len);
    CHECK(value != NULL);
    buf_free(&text);
    return value;
}

/* Text where it is text: NULL for bytes that are not UTF-8. */
static json_t *text_json(const void *data, size_t len)
{
    return data ? json_stringn(data, len) : json_null();
}

void message_put_bytes(json_t *object, const char *name, const void *data,
                       size_t len)
{
    json_t *text = text_json(data, len);
    if (text) {
        json_object_set_new(object, name, text);
        return;
    }
    char longer[64];
    (void)snprintf(longer, sizeof longer, "%s_base64", name);
    json_object_set_new(object, longer, base64_json(data, len));
}

static void add_base64(struct buf *out, const json_t *value)
{
    struct slice text = {json_string_value(value), json_string_length(value)};
    if (!text.data || !text_unbase64(text, out)) {
        tool_die(EX_DATAERR, "bad base64");
    }
}

static void add_text(struct buf *out, const json_t *value)
{
    if (!json_is_string(value)) {
        tool_die(EX_DATAERR, "a key, value or header is text or null");
    }
    buf_add(out, json_string_value(value), json_string_length(value));
}

bool message_get_bytes(const json_t *object, const char *name, struct buf *out)
{
    char longer[64];
    (void)snprintf(longer, sizeof longer, "%s_base64", name);
    const json_t *encoded = json_object_get(object, longer);
    const json_t *plain = json_object_get(object, name);
    buf_clear(out);
    buf_reserve(out, 1); /* empty is not NULL */
    if (encoded && !json_is_null(encoded)) {
        add_base64(out, encoded);
        return true;
    }
    if (plain && !json_is_null(plain)) {
        add_text(out, plain);
        return true;
    }
    return false;
}

json_t *message_headers_json(const rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers;
    if (rd_kafka_message_headers(message, &headers)) {
        return NULL;
    }
    json_t *list = json_array();
    const char *name;
    const void *data;
    size_t len;
    for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &data, &len);
         i++) {
        json_t *value = text_json(data, len);
        if (!value) {
            value = json_pack("{s:o}", "base64", base64_json(data, len));
        }
        json_array_append_new(list, json_pack("[s, o]", name, value));
    }
    return list;
}

static void add_header(rd_kafka_headers_t *headers, const json_t *pair,
                       struct buf *bytes)
{
    const char *name = json_string_value(json_array_get(pair, 0));
    const json_t *value = json_array_get(pair, 1);
    if (!name || json_array_size(pair) != 2) {
        tool_die(EX_DATAERR, "a header is [name, value]");
    }
    buf_clear(bytes);
    buf_reserve(bytes, 1);
    if (json_is_object(value)) {
        add_base64(bytes, json_object_get(value, "base64"));
    } else if (!json_is_null(value)) {
        add_text(bytes, value);
    }
    rd_kafka_header_add(headers, name, -1,
                        json_is_null(value) ? NULL : bytes->data,
                        (ssize_t)bytes->len);
}

rd_kafka_headers_t *message_headers(const json_t *list)
{
    size_t n = json_array_size(list);
    if (n == 0) {
        return NULL;
    }
    rd_kafka_headers_t *headers = rd_kafka_headers_new(n);
    struct buf bytes = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        add_header(headers, json_array_get(list, i), &bytes);
    }
    buf_free(&bytes);
    return headers;
}
