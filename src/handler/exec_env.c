/* SPDX-License-Identifier: MIT */
#include "handler/exec_env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "handler/wire.h"
#include "onced/handler.h"

enum {
    HEADERS_BYTES_MAX = 4 * ONCED_ENV_VALUE_MAX,
    NAME_BYTES_MAX = 256,
};

/* --- the fixed part ------------------------------------------------------ */

static struct slice name_of(const char *entry)
{
    struct slice text = slice_of(entry);

    return (struct slice){entry, slice_find(text, '=')};
}

static bool is_ours(struct slice name)
{
    return slice_starts(name, SLICE("ONCED_")) ||
           slice_eq(name, SLICE(ONCED_ENV_IDEMPOTENCY_KEY)) ||
           slice_eq(name, SLICE(ONCED_ENV_CONTENT_TYPE));
}

static bool is_configured(const char *const *configured, struct slice name)
{
    for (; configured != NULL && *configured != NULL; configured++) {
        if (slice_eq(name_of(*configured), name)) {
            return true;
        }
    }
    return false;
}

bool exec_env_fixed(const char *const *configured, struct buf *out,
                    struct err *err)
{
    static const char *const inherited[] = {"PATH", "HOME", "LANG", "TZ"};

    for (size_t i = 0; i < sizeof inherited / sizeof inherited[0]; i++) {
        const char *value = getenv(inherited[i]);

        if (value != NULL &&
            !is_configured(configured, slice_of(inherited[i]))) {
            buf_printf(out, "%s=%s", inherited[i], value);
            buf_add_byte(out, '\0');
        }
    }
    for (; configured != NULL && *configured != NULL; configured++) {
        struct slice name = name_of(*configured);

        if (name.len == 0 || (*configured)[name.len] != '=') {
            return err_set(err, ERR_CONFIG, "environment: not NAME=value");
        }
        if (is_ours(name)) {
            return err_set(err, ERR_CONFIG, "environment: %.*s is set by onced",
                           (int)name.len, name.data);
        }
        buf_add(out, *configured, strlen(*configured) + 1);
    }
    return true;
}

/* --- variables ----------------------------------------------------------- */

struct builder {
    struct buf *text;    /* entries, each with a NUL behind it */
    struct buf omitted;  /* names of what was too long */
    struct buf base64;   /* names of what is not text */
    size_t header_bytes; /* values of headers so far */
};

static void list_name(struct buf *list, struct slice name)
{
    buf_add_str(list, list->len == 0 ? "" : " ");
    buf_add_slice(list, name);
}

static bool add(struct builder *builder, struct slice name, struct slice value)
{
    if (value.len > ONCED_ENV_VALUE_MAX ||
        slice_find(value, '\0') < value.len) {
        list_name(&builder->omitted, name);
        return false;
    }
    buf_add_slice(builder->text, name);
    buf_add_byte(builder->text, '=');
    buf_add_slice(builder->text, value);
    buf_add_byte(builder->text, '\0');
    return true;
}

static void add_int(struct builder *builder, struct slice name, int64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, value);

    CHECK(len > 0);
    (void)add(builder, name, (struct slice){text, (size_t)len});
}

static void add_bytes(struct builder *builder, struct slice name,
                      struct slice value)
{
    struct buf coded = BUF_INIT;

    if (wire_is_text(value)) {
        (void)add(builder, name, value);
        return;
    }
    text_base64(value, &coded);
    if (add(builder, name, buf_slice(&coded))) {
        list_name(&builder->base64, name);
    }
    buf_free(&coded);
}

/* --- headers ------------------------------------------------------------- */

/* Appends the name of the variable for a header; false where it has none. */
static bool add_variable(const struct envelope *envelope, struct slice name,
                         struct buf *out)
{
    buf_add_str(out, ONCED_ENV_HEADER_PREFIX);
    for (size_t i = 0; i < name.len; i++) {
        char byte = name.data[i];

        if ((byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9')) {
            buf_add_byte(out, byte);
        } else if (byte >= 'a' && byte <= 'z') {
            buf_add_byte(out, (char)(byte - 'a' + 'A'));
        } else if (byte == '-' || envelope->kind == ENVELOPE_KAFKA) {
            buf_add_byte(out, '_');
        } else {
            return false;
        }
    }
    return name.len > 0 && name.len <= NAME_BYTES_MAX;
}

struct field {
    struct slice name; /* of the variable */
    struct slice value;
    size_t index; /* keeps repeats in order */
};

static int field_cmp(const void *a, const void *b)
{
    const struct field *one = a;
    const struct field *two = b;
    int order = slice_cmp(one->name, two->name);

    return order != 0 ? order
                      : (one->index > two->index) - (one->index < two->index);
}

/* Fills `fields`, sorted; the names are kept in `names`. */
static size_t collect(const struct envelope *envelope, struct field *fields,
                      struct buf *names)
{
    struct header header;
    size_t n = 0;
    size_t start = 0;

    for (size_t at = 0; headers_next(&envelope->headers, &at, &header);) {
        start = names->len;
        if (add_variable(envelope, header.name, names)) {
            /* The buffer may still move: lengths now, pointers below. */
            fields[n].name.len = names->len - start;
            fields[n].value = header.value;
            fields[n].index = n;
            n++;
        } else {
            names->len = start;
        }
    }
    start = 0;
    for (size_t i = 0; i < n; i++) {
        fields[i].name.data = names->data + start;
        start += fields[i].name.len;
    }
    qsort(fields, n, sizeof fields[0], field_cmp);
    return n;
}

static void join(const struct field *fields, size_t n, bool in_base64,
                 struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        buf_add_str(out, i == 0 ? "" : ", ");
        if (in_base64) {
            text_base64(fields[i].value, out);
        } else {
            buf_add_slice(out, fields[i].value);
        }
    }
}

/* One variable of the `n` headers that share its name. */
static void add_joined(struct builder *builder, const struct field *fields,
                       size_t n, bool is_kafka)
{
    struct buf value = BUF_INIT;
    bool in_base64 = false;

    for (size_t i = 0; is_kafka && i < n; i++) {
        in_base64 = in_base64 || !wire_is_text(fields[i].value);
    }
    join(fields, n, in_base64, &value);
    builder->header_bytes += value.len;
    if (builder->header_bytes > HEADERS_BYTES_MAX) {
        list_name(&builder->omitted, fields[0].name);
    } else if (add(builder, fields[0].name, buf_slice(&value)) && in_base64) {
        list_name(&builder->base64, fields[0].name);
    }
    buf_free(&value);
}

static void add_headers(struct builder *builder,
                        const struct envelope *envelope)
{
    struct field *fields = mem_new(envelope->headers.count, sizeof *fields);
    struct buf names = BUF_INIT;
    size_t n = collect(envelope, fields, &names);
    size_t first = 0;

    for (size_t i = 1; i <= n; i++) {
        if (i == n || !slice_eq(fields[i].name, fields[first].name)) {
            add_joined(builder, &fields[first], i - first,
                       envelope->kind == ENVELOPE_KAFKA);
            first = i;
        }
    }
    free(fields);
    buf_free(&names);
}

/* --- one attempt --------------------------------------------------------- */

static void add_http(struct builder *builder, const struct envelope *envelope)
{
    (void)add(builder, SLICE(ONCED_ENV_METHOD), envelope->method);
    (void)add(builder, SLICE(ONCED_ENV_PATH), envelope->path);
    if (envelope->has_query) {
        (void)add(builder, SLICE(ONCED_ENV_QUERY), envelope->query);
    }
}

static void add_kafka(struct builder *builder, const struct envelope *envelope)
{
    add_bytes(builder, SLICE(ONCED_ENV_KAFKA_TOPIC), envelope->topic);
    add_int(builder, SLICE(ONCED_ENV_KAFKA_PARTITION), envelope->partition);
    add_int(builder, SLICE(ONCED_ENV_KAFKA_OFFSET), envelope->offset);
    if (envelope->timestamp_ms >= 0) {
        add_int(builder, SLICE(ONCED_ENV_KAFKA_TIMESTAMP),
                envelope->timestamp_ms);
    }
    if (envelope->has_key) {
        add_bytes(builder, SLICE(ONCED_ENV_KAFKA_KEY), envelope->key);
    }
    if (!envelope->has_body) {
        (void)add(builder, SLICE(ONCED_ENV_KAFKA_NULL), SLICE("1"));
    }
}

static void add_event(struct builder *builder, const struct attempt *attempt)
{
    struct slice type;

    (void)add(builder, SLICE(ONCED_ENV_IDEMPOTENCY_KEY),
              slice_of(attempt->idempotency_key));
    (void)add(builder, SLICE(ONCED_ENV_ROUTE), slice_of(attempt->route));
    (void)add(builder, SLICE(ONCED_ENV_EVENT_ID), attempt->id);
    add_int(builder, SLICE(ONCED_ENV_ATTEMPT), attempt->number);
    if (attempt->tenant.len > 0) {
        (void)add(builder, SLICE(ONCED_ENV_TENANT), attempt->tenant);
    }
    if (headers_find(&attempt->envelope.headers, SLICE("content-type"),
                     &type)) {
        (void)add(builder, SLICE(ONCED_ENV_CONTENT_TYPE), type);
    }
}

/* Points at the entries, which stand in `text` one behind the other. */
static char **point_at(const struct buf *text)
{
    size_t n = 0;
    char **list;

    for (size_t i = 0; i < text->len; i++) {
        n += text->data[i] == '\0' ? 1 : 0;
    }
    list = mem_new(n + 1, sizeof *list);
    n = 0;
    for (size_t at = 0; at < text->len; at += strlen(text->data + at) + 1) {
        list[n++] = text->data + at;
    }
    return list;
}

void exec_env_build(struct slice fixed, const struct attempt *attempt,
                    struct exec_env *out)
{
    struct builder builder = {&out->text, BUF_INIT, BUF_INIT, 0};

    out->text = BUF_INIT;
    buf_add_slice(&out->text, fixed);
    add_event(&builder, attempt);
    switch (attempt->envelope.kind) {
    case ENVELOPE_HTTP:
        add_http(&builder, &attempt->envelope);
        break;
    case ENVELOPE_KAFKA:
        add_kafka(&builder, &attempt->envelope);
        break;
    }
    add_headers(&builder, &attempt->envelope);
    if (builder.base64.len > 0) {
        (void)add(&builder, SLICE(ONCED_ENV_KAFKA_BASE64),
                  buf_slice(&builder.base64));
    }
    if (builder.omitted.len > 0) {
        (void)add(&builder, SLICE(ONCED_ENV_OMITTED),
                  buf_slice(&builder.omitted));
    }
    buf_free(&builder.base64);
    buf_free(&builder.omitted);
    out->list = point_at(&out->text);
}

void exec_env_free(struct exec_env *env)
{
    free(env->list);
    buf_free(&env->text);
}
