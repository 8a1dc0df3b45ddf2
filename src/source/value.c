/* SPDX-License-Identifier: MIT */
#include "source/value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "source/field.h"

/* How the forms are written; one that ends in ':' takes an argument. */
static const struct form {
    const char *text;
    enum value_kind kind;
} forms[] = {
    {"json:", VALUE_JSON},
    {"header:", VALUE_HEADER},
    {"query:", VALUE_QUERY},
    {"kafka:key", VALUE_KAFKA_KEY},
    {"kafka:header:", VALUE_KAFKA_HEADER},
    {"kafka:position", VALUE_KAFKA_POSITION},
    {"body:sha256", VALUE_BODY_SHA256},
    {"const:", VALUE_CONST},
};

static bool takes_argument(struct slice form)
{
    return form.data[form.len - 1] == ':';
}

static const struct form *find_form(struct slice text)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct slice form = slice_of(forms[i].text);

        if (takes_argument(form) ? slice_starts(text, form)
                                 : slice_eq(text, form)) {
            return &forms[i];
        }
    }
    return NULL;
}

/* What is wrong with an argument, or NULL. */
static const char *argument_problem(enum value_kind kind, struct slice argument)
{
    if (argument.len == 0) {
        return "nothing stands behind the ':'";
    }
    if (slice_find(argument, '\0') < argument.len) {
        return "has a NUL byte";
    }
    if (kind == VALUE_JSON && !json_pointer_ok(argument)) {
        return "is not a JSON pointer like /data/id";
    }
    if (kind == VALUE_HEADER && !field_name_ok(argument)) {
        return "is not the name of a header";
    }
    return NULL;
}

static bool parse_term(struct value_term *term, struct slice text,
                       struct err *err)
{
    const struct form *form = find_form(text);
    struct slice argument;
    const char *problem;

    if (form == NULL) {
        return err_set(err, ERR_CONFIG,
                       "\"%.*s\" is not a value expression: json:/pointer, "
                       "header:Name, query:name, kafka:key, "
                       "kafka:header:name, kafka:position, body:sha256 or "
                       "const:text",
                       (int)(text.len > 100 ? 100 : text.len), text.data);
    }
    term->kind = form->kind;
    if (!takes_argument(slice_of(form->text))) {
        return true;
    }
    argument = slice_from(text, strlen(form->text));
    problem = argument_problem(form->kind, argument);
    if (problem != NULL) {
        return err_set(err, ERR_CONFIG, "\"%.*s\" %s",
                       (int)(text.len > 100 ? 100 : text.len), text.data,
                       problem);
    }
    term->argument = mem_dup(argument);
    return true;
}

static void free_choice(struct value_choice *choice)
{
    for (size_t i = 0; i < choice->n_terms; i++) {
        free(choice->terms[i].argument);
    }
    free(choice->terms);
}

bool value_add_choice(struct value *value, const struct slice *texts, size_t n,
                      struct err *err)
{
    struct value_choice choice;

    if (n == 0) {
        return err_set(err, ERR_CONFIG, "a list of parts is empty");
    }
    choice = (struct value_choice){mem_new(n, sizeof *choice.terms), n};
    for (size_t i = 0; i < n; i++) {
        if (!parse_term(&choice.terms[i], texts[i], err)) {
            free_choice(&choice);
            return false;
        }
    }
    value->choices =
        mem_grow(value->choices, value->n_choices + 1, sizeof *value->choices);
    value->choices[value->n_choices++] = choice;
    return true;
}

void value_free(struct value *value)
{
    for (size_t i = 0; i < value->n_choices; i++) {
        free_choice(&value->choices[i]);
    }
    free(value->choices);
    *value = (struct value){NULL, 0};
}

bool value_uses(const struct value *value, enum value_kind kind)
{
    for (size_t i = 0; i < value->n_choices; i++) {
        const struct value_choice *choice = &value->choices[i];

        for (size_t k = 0; k < choice->n_terms; k++) {
            if (choice->terms[k].kind == kind) {
                return true;
            }
        }
    }
    return false;
}

static enum value_status fail(enum value_status status, const char *text,
                              const char **why)
{
    CHECK(status != VALUE_OK);
    *why = text;
    return status;
}

static enum value_status eval_json(const char *pointer, struct slice body,
                                   struct buf *out, const char **why)
{
    struct json_value found;
    enum json_status status = json_find(body, slice_of(pointer), &found);

    switch (status) {
    case JSON_OK:
        break;
    case JSON_INVALID:
        return fail(VALUE_BAD_BODY, "the body is not JSON", why);
    case JSON_TOO_DEEP:
        return fail(VALUE_BAD_BODY, "the JSON body is nested too deeply", why);
    case JSON_ABSENT:
        return fail(VALUE_ABSENT, "the member is not in the body", why);
    case JSON_AMBIGUOUS:
        return fail(VALUE_AMBIGUOUS, "the member is in the body twice", why);
    }
    switch (found.type) {
    case JSON_STRING:
        if (!json_string_is_text(found)) {
            return fail(VALUE_BAD_BODY,
                        "the value holds a NUL or half a surrogate pair", why);
        }
        json_decode_string(found, out);
        return VALUE_OK;
    case JSON_NUMBER:
    case JSON_FALSE:
    case JSON_TRUE:
        buf_add_slice(out, found.raw);
        return VALUE_OK;
    case JSON_NULL:
        return fail(VALUE_ABSENT, "the member is null", why);
    case JSON_ARRAY:
    case JSON_OBJECT:
        return fail(VALUE_ABSENT, "the member is an object or an array", why);
    }
    UNREACHABLE("all types have returned");
}

/* Names of HTTP headers compare without case, those of Kafka exactly. */
static enum value_status eval_header(const struct envelope *envelope,
                                     struct slice name, struct buf *out,
                                     const char **why)
{
    bool exact = envelope->kind == ENVELOPE_KAFKA;
    struct slice value = {NULL, 0};
    struct header header;
    size_t at = 0;
    size_t n = 0;

    while (headers_next(&envelope->headers, &at, &header)) {
        if (exact ? slice_eq(header.name, name)
                  : slice_eq_nocase(header.name, name)) {
            value = header.value;
            n++;
        }
    }
    if (n == 0) {
        return fail(VALUE_ABSENT, "the header is missing", why);
    }
    if (n > 1) {
        return fail(VALUE_AMBIGUOUS, "the header is there twice", why);
    }
    buf_add_slice(out, value);
    return VALUE_OK;
}

static enum value_status eval_query(struct slice query, struct slice name,
                                    struct buf *out, const char **why)
{
    struct slice encoded;
    size_t n = field_find_pair(query, name, &encoded);

    if (n == 0) {
        return fail(VALUE_ABSENT, "the query parameter is missing", why);
    }
    if (n > 1) {
        return fail(VALUE_AMBIGUOUS, "the query parameter is there twice", why);
    }
    if (!field_decode(encoded, out)) {
        return fail(VALUE_ABSENT, "the query parameter has a broken %XX", why);
    }
    return VALUE_OK;
}

static enum value_status eval_kafka(const struct value_term *term,
                                    const struct envelope *envelope,
                                    struct buf *out, const char **why)
{
    if (envelope->kind != ENVELOPE_KAFKA) {
        return fail(VALUE_ABSENT, "it did not come from Kafka", why);
    }
    if (term->kind == VALUE_KAFKA_HEADER) {
        return eval_header(envelope, slice_of(term->argument), out, why);
    }
    if (term->kind == VALUE_KAFKA_KEY) {
        buf_add_slice(out, envelope->key);
        return VALUE_OK;
    }
    CHECK(term->kind == VALUE_KAFKA_POSITION);
    buf_add_slice(out, envelope->topic);
    buf_printf(out, "/%" PRId32 "/%" PRId64, envelope->partition,
               envelope->offset);
    if (envelope->incarnation > 0) {
        buf_printf(out, "~%" PRIu32, envelope->incarnation);
    }
    return VALUE_OK;
}

static enum value_status eval_http(const struct value_term *term,
                                   const struct envelope *envelope,
                                   struct buf *out, const char **why)
{
    struct slice name = slice_of(term->argument);

    if (envelope->kind != ENVELOPE_HTTP) {
        return fail(VALUE_ABSENT, "it did not come over HTTP", why);
    }
    return term->kind == VALUE_HEADER
               ? eval_header(envelope, name, out, why)
               : eval_query(envelope->query, name, out, why);
}

/* A Kafka tombstone has no content; taking the digest of nothing would make
 * one event of them all. */
static enum value_status eval_digest(const struct envelope *envelope,
                                     struct buf *out, const char **why)
{
    uint8_t digest[SHA256_SIZE];

    if (envelope->kind == ENVELOPE_KAFKA && !envelope->has_body) {
        return fail(VALUE_ABSENT, "the message has no value", why);
    }
    hash_sha256(envelope->body, digest);
    text_hex((struct slice){(const char *)digest, sizeof digest}, out);
    return VALUE_OK;
}

static enum value_status eval_kind(const struct value_term *term,
                                   const struct envelope *envelope,
                                   struct buf *out, const char **why)
{
    switch (term->kind) {
    case VALUE_JSON:
        return eval_json(term->argument, envelope->body, out, why);
    case VALUE_HEADER:
    case VALUE_QUERY:
        return eval_http(term, envelope, out, why);
    case VALUE_KAFKA_KEY:
    case VALUE_KAFKA_HEADER:
    case VALUE_KAFKA_POSITION:
        return eval_kafka(term, envelope, out, why);
    case VALUE_BODY_SHA256:
        return eval_digest(envelope, out, why);
    case VALUE_CONST:
        buf_add_str(out, term->argument);
        return VALUE_OK;
    }
    UNREACHABLE("all kinds have returned");
}

/* Appends the term's value; an empty one is absent. */
static enum value_status eval_term(const struct value_term *term,
                                   const struct envelope *envelope,
                                   struct buf *out, const char **why)
{
    size_t start = out->len;
    enum value_status status = eval_kind(term, envelope, out, why);

    if (status == VALUE_OK && out->len == start) {
        return fail(VALUE_ABSENT, "the value is empty", why);
    }
    return status;
}

static enum value_status eval_choice(const struct value_choice *choice,
                                     const struct envelope *envelope,
                                     struct buf *out, const char **why)
{
    struct buf part = BUF_INIT;
    enum value_status status = VALUE_OK;

    if (choice->n_terms == 1) {
        return eval_term(&choice->terms[0], envelope, out, why);
    }
    for (size_t i = 0; status == VALUE_OK && i < choice->n_terms; i++) {
        buf_clear(&part);
        status = eval_term(&choice->terms[i], envelope, &part, why);
        if (i > 0) {
            buf_add_byte(out, '/');
        }
        text_percent(buf_slice(&part), out);
    }
    buf_free(&part);
    return status;
}

/* A body that is not JSON leaves the later alternatives their chance (a
 * tombstone still has its key), but what is ambiguous is refused: whoever can
 * repeat a header must not choose which alternative counts. */
enum value_status value_eval(const struct value *value,
                             const struct envelope *envelope, struct buf *out,
                             const char **why)
{
    enum value_status worst = VALUE_ABSENT;
    const char *text = "no value is configured";
    size_t start = out->len;

    *why = text;
    for (size_t i = 0; i < value->n_choices; i++) {
        enum value_status status =
            eval_choice(&value->choices[i], envelope, out, &text);

        if (status == VALUE_OK) {
            *why = NULL;
            return VALUE_OK;
        }
        out->len = start;
        if (i == 0 || status != VALUE_ABSENT) {
            worst = status;
            *why = text;
        }
        if (status == VALUE_AMBIGUOUS) {
            break;
        }
    }
    return worst;
}

static bool has_control(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (byte < 0x20 || byte == 0x7f) {
            return true;
        }
        /* U+0080 to U+009F: no lead byte but 0xc2 is followed by these. */
        if (byte == 0xc2 && (unsigned char)text.data[i + 1] < 0xa0) {
            return true;
        }
    }
    return false;
}

const char *value_check_id(struct slice id)
{
    enum { ID_MAX = 255 };

    if (id.len == 0) {
        return "is empty";
    }
    if (id.len > ID_MAX) {
        return "is longer than 255 bytes";
    }
    if (!slice_is_utf8(id)) {
        return "is not UTF-8";
    }
    return has_control(id) ? "has a control character" : NULL;
}
