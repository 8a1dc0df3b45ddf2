/* SPDX-License-Identifier: MIT */
/*
 * The JSON scanner held against jansson. Both must agree on what is valid
 * and on what stands at a pointer, except where json.h says that the scanner
 * differs: it stops at JSON_DEPTH_MAX levels, takes numbers of any size, and
 * does not choose between equal members; and jansson takes a NUL byte for the
 * end of the text. A difference is a failed CHECK.
 */
#ifndef ONCED_TESTS_JSON_ORACLE_H
#define ONCED_TESTS_JSON_ORACLE_H

/* jansson has the same names for types, as other constants. */
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_TRUE JANSSON_TRUE
#define JSON_FALSE JANSSON_FALSE
#define JSON_NULL JANSSON_NULL
#include <jansson.h>
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/json.h"
#include "base/text.h"

static void oracle_unescape(struct slice token, struct buf *out)
{
    for (size_t i = 0; i < token.len; i++) {
        if (token.data[i] == '~') {
            i++;
            buf_add_byte(out, token.data[i] == '1' ? '/' : '~');
        } else {
            buf_add_byte(out, token.data[i]);
        }
    }
}

static void oracle_escape(const char *name, struct buf *out)
{
    for (; *name != '\0'; name++) {
        if (*name == '~' || *name == '/') {
            buf_add_str(out, *name == '/' ? "~1" : "~0");
        } else {
            buf_add_byte(out, *name);
        }
    }
}

static json_t *oracle_step(json_t *at, struct slice token)
{
    struct buf name = BUF_INIT;
    uint64_t index;
    json_t *next = NULL;

    if (json_typeof(at) == JANSSON_ARRAY) {
        return text_u64(token, &index) ? json_array_get(at, index) : NULL;
    }
    oracle_unescape(token, &name);
    if (slice_find(buf_slice(&name), '\0') == name.len) {
        next = json_object_get(at, buf_cstr(&name));
    }
    buf_free(&name);
    return next;
}

static json_t *oracle_find(json_t *at, struct slice pointer)
{
    while (at != NULL && pointer.len > 0) {
        struct slice token = slice_from(pointer, 1);

        token.len = slice_find(token, '/');
        pointer = slice_from(pointer, 1 + token.len);
        at = oracle_step(at, token);
    }
    return at;
}

static void oracle_compare_string(json_t *want, struct json_value got)
{
    struct buf decoded = BUF_INIT;
    size_t len = json_string_length(want);

    json_decode_string(got, &decoded);
    CHECK(decoded.len == len);
    CHECK(memcmp(buf_cstr(&decoded), json_string_value(want), len) == 0);
    buf_free(&decoded);
}

static void oracle_compare_number(json_t *want, struct json_value got)
{
    struct buf copy = BUF_INIT;
    double value;

    buf_add_slice(&copy, got.raw);
    value = strtod(buf_cstr(&copy), NULL);
    CHECK(value >= json_real_value(want));
    CHECK(value <= json_real_value(want));
    buf_free(&copy);
}

static void oracle_compare(json_t *want, struct json_value got);

static void oracle_compare_array(json_t *want, struct json_value got)
{
    struct json_value item;
    size_t n = 0;
    size_t at = 0;

    while (json_next_item(got, &at, &item)) {
        CHECK(n < json_array_size(want));
        oracle_compare(json_array_get(want, n), item);
        n++;
    }
    CHECK(n == json_array_size(want));
}

static void oracle_compare(json_t *want, struct json_value got)
{
    CHECK(json_check(got.raw, NULL) == JSON_OK);
    switch (got.type) {
    case JSON_NULL:
        CHECK(json_typeof(want) == JANSSON_NULL);
        return;
    case JSON_FALSE:
        CHECK(json_typeof(want) == JANSSON_FALSE);
        return;
    case JSON_TRUE:
        CHECK(json_typeof(want) == JANSSON_TRUE);
        return;
    case JSON_NUMBER:
        CHECK(json_typeof(want) == JSON_REAL);
        oracle_compare_number(want, got);
        return;
    case JSON_STRING:
        CHECK(json_typeof(want) == JANSSON_STRING);
        oracle_compare_string(want, got);
        return;
    case JSON_ARRAY:
        CHECK(json_typeof(want) == JANSSON_ARRAY);
        oracle_compare_array(want, got);
        return;
    case JSON_OBJECT:
        CHECK(json_typeof(want) == JANSSON_OBJECT);
        return;
    }
    UNREACHABLE("a type that json.h does not know");
}

static json_t *oracle_load(struct slice text, size_t flags,
                           enum json_error_code *code)
{
    json_error_t error;
    json_t *tree =
        json_loadb(text.data, text.len,
                   flags | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);

    *code = tree == NULL ? json_error_code(&error) : json_error_unknown;
    return tree;
}

/* Looks up what jansson found, from the top, value after value. */
struct oracle_walk {
    struct slice text;
    bool repeats; /* some object has equal members */
    struct buf pointer;
    int left; /* look-ups, since each costs the whole text */
};

/* True where the value at the pointer is there and is what jansson has. */
static bool oracle_look(const struct oracle_walk *walk, struct slice pointer,
                        json_t *want)
{
    struct json_value got;
    enum json_status status = json_find(walk->text, pointer, &got);

    if (status == JSON_AMBIGUOUS) {
        CHECK(walk->repeats);
        return false;
    }
    CHECK(status == (want == NULL ? JSON_ABSENT : JSON_OK));
    if (want != NULL) {
        oracle_compare(want, got);
    }
    return want != NULL;
}

static void oracle_step_down(struct oracle_walk *walk, json_t *want);

static void oracle_look_down(struct oracle_walk *walk, json_t *want)
{
    if (walk->left-- > 0 &&
        oracle_look(walk, buf_slice(&walk->pointer), want)) {
        oracle_step_down(walk, want);
    }
}

static void oracle_step_down(struct oracle_walk *walk, json_t *want)
{
    size_t len = walk->pointer.len;
    const char *name;
    json_t *value;

    json_object_foreach(want, name, value)
    {
        buf_add_byte(&walk->pointer, '/');
        oracle_escape(name, &walk->pointer);
        oracle_look_down(walk, value);
        walk->pointer.len = len;
    }
    if (json_typeof(want) != JANSSON_ARRAY) {
        return;
    }
    for (size_t i = 0; i <= json_array_size(want); i++) {
        buf_printf(&walk->pointer, "/%zu", i);
        oracle_look_down(walk, json_array_get(want, i));
        walk->pointer.len = len;
    }
}

static void oracle_look_everywhere(struct slice text, struct slice pointer,
                                   json_t *tree)
{
    struct oracle_walk walk = {text, false, BUF_INIT, 64};
    enum json_error_code code;
    json_t *strict = oracle_load(text, JSON_REJECT_DUPLICATES, &code);

    CHECK(strict != NULL || code == json_error_duplicate_key);
    walk.repeats = strict == NULL;
    json_decref(strict);
    (void)oracle_look(&walk, pointer, oracle_find(tree, pointer));
    oracle_look_down(&walk, tree);
    buf_free(&walk.pointer);
}

/* Looks at one text; `pointer` must be json_pointer_ok. */
static void oracle_agree(struct slice text, struct slice pointer)
{
    struct json_value got;
    enum json_status valid = json_check(text, NULL);
    enum json_error_code code;
    json_t *tree = oracle_load(text, 0, &code);
    bool has_nul = slice_find(text, '\0') < text.len;

    if (valid != JSON_OK) {
        CHECK(valid == JSON_TOO_DEEP || tree == NULL || has_nul);
        CHECK(json_find(text, pointer, &got) == valid);
    } else if (tree == NULL) {
        CHECK(code == json_error_numeric_overflow);
    } else {
        oracle_look_everywhere(text, pointer, tree);
    }
    json_decref(tree);
}

#endif
