/* SPDX-License-Identifier: MIT */
/*
 * The JSON scanner held against jansson. Both must agree on what is valid
 * and on what stands at a pointer, except where json.h says that the scanner
 * differs: it stops at JSON_DEPTH_MAX levels, takes numbers of any size, does
 * not choose between equal members, and takes escapes for NUL and for half a
 * surrogate pair; and jansson takes a NUL byte for the end of the text. A
 * difference is a failed CHECK.
 *
 * jansson is given a stand-in for each such escape: a character that neither
 * the text nor the pointer has, so that what holds it is known to be no text.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/json.h"
#include "base/text.h"

struct oracle_stand_in {
    char escape[8]; /* "\ue000" */
    char utf8[4];
};

static bool oracle_holds(struct slice text, const char *part)
{
    struct slice window = slice_of(part);

    while (text.len >= window.len) {
        window.data = text.data;
        if (slice_eq_nocase(window, slice_of(part))) {
            return true;
        }
        text = slice_from(text, 1);
    }
    return false;
}

/* One of the characters for private use. */
static struct oracle_stand_in oracle_stand_in_for(struct slice text,
                                                  struct slice pointer)
{
    struct oracle_stand_in it = {"", "\xee"};

    for (unsigned code = 0xe000; code < 0xf000; code++) {
        (void)snprintf(it.escape, sizeof it.escape, "\\u%04x", code);
        it.utf8[1] = (char)(0x80U | (code >> 6 & 0x3fU));
        it.utf8[2] = (char)(0x80U | (code & 0x3fU));
        if (!oracle_holds(text, it.escape) && !oracle_holds(text, it.utf8) &&
            !oracle_holds(pointer, it.utf8)) {
            return it;
        }
    }
    UNREACHABLE("a text that has them all");
}

/* The value of an escape "\u1234" at the beginning, or -1. */
static long oracle_unit(struct slice text)
{
    long unit = 0;

    if (text.len < 6 || !slice_starts(text, SLICE("\\u"))) {
        return -1;
    }
    for (size_t i = 2; i < 6; i++) {
        int digit = text_hex_digit(text.data[i]);

        if (digit < 0) {
            return -1;
        }
        unit = unit << 4 | digit;
    }
    return unit;
}

static bool oracle_is_half(long unit, long first)
{
    return unit >= first && unit < first + 0x400;
}

/* Copies the text with the stand-in for each escape that is no text. */
static void oracle_replace(struct slice text, const char *stand_in,
                           struct buf *out)
{
    while (text.len > 0) {
        long unit = oracle_unit(text);
        size_t n = unit >= 0 ? 6 : 1;

        if (unit < 0 && text.data[0] == '\\' && text.len > 1) {
            n = 2;
        }
        if (oracle_is_half(unit, 0xd800) &&
            oracle_is_half(oracle_unit(slice_from(text, 6)), 0xdc00)) {
            n = 12;
        }
        if (n == 6 && (unit == 0 || oracle_is_half(unit, 0xd800) ||
                       oracle_is_half(unit, 0xdc00))) {
            buf_add_str(out, stand_in);
        } else {
            buf_add(out, text.data, n);
        }
        text = slice_from(text, n);
    }
}

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

static void oracle_compare_string(json_t *want, struct json_value got,
                                  const char *stand_in)
{
    struct buf decoded = BUF_INIT;
    size_t len = json_string_length(want);
    bool is_text = strstr(json_string_value(want), stand_in) == NULL;

    CHECK(json_string_is_text(got) == is_text);
    if (!is_text) {
        return;
    }
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

static void oracle_compare(json_t *want, struct json_value got,
                           const char *stand_in);

static void oracle_compare_array(json_t *want, struct json_value got,
                                 const char *stand_in)
{
    struct json_value item;
    size_t n = 0;
    size_t at = 0;

    while (json_next_item(got, &at, &item)) {
        CHECK(n < json_array_size(want));
        oracle_compare(json_array_get(want, n), item, stand_in);
        n++;
    }
    CHECK(n == json_array_size(want));
}

static void oracle_compare(json_t *want, struct json_value got,
                           const char *stand_in)
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
        oracle_compare_string(want, got, stand_in);
        return;
    case JSON_ARRAY:
        CHECK(json_typeof(want) == JANSSON_ARRAY);
        oracle_compare_array(want, got, stand_in);
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
    const char *stand_in; /* in what jansson has */
    bool repeats;         /* some object has equal members */
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
        oracle_compare(want, got, walk->stand_in);
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
        oracle_look_down(walk,
                         strstr(name, walk->stand_in) == NULL ? value : NULL);
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

static void oracle_look_everywhere(struct oracle_walk *walk,
                                   struct slice pointer, struct slice replaced,
                                   json_t *tree)
{
    enum json_error_code code;
    json_t *strict = oracle_load(replaced, JSON_REJECT_DUPLICATES, &code);

    CHECK(strict != NULL || code == json_error_duplicate_key);
    walk->repeats = strict == NULL;
    json_decref(strict);
    (void)oracle_look(walk, pointer, oracle_find(tree, pointer));
    oracle_look_down(walk, tree);
}

/* Looks at one text; `pointer` must be json_pointer_ok. */
static void oracle_agree(struct slice text, struct slice pointer)
{
    struct oracle_stand_in stand_in = oracle_stand_in_for(text, pointer);
    struct oracle_walk walk = {text, stand_in.utf8, false, BUF_INIT, 64};
    struct buf replaced = BUF_INIT;
    struct json_value got;
    enum json_status valid = json_check(text, NULL);
    enum json_error_code code;
    json_t *tree;
    bool has_nul = slice_find(text, '\0') < text.len;

    oracle_replace(text, stand_in.escape, &replaced);
    tree = oracle_load(buf_slice(&replaced), 0, &code);
    if (valid != JSON_OK) {
        CHECK(valid == JSON_TOO_DEEP || tree == NULL || has_nul);
        CHECK(json_find(text, pointer, &got) == valid);
    } else if (tree == NULL) {
        CHECK(code == json_error_numeric_overflow);
    } else {
        oracle_look_everywhere(&walk, pointer, buf_slice(&replaced), tree);
    }
    json_decref(tree);
    buf_free(&walk.pointer);
    buf_free(&replaced);
}

#endif
