/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "support/json_oracle.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

struct text_row {
    struct slice text;
    enum json_status status;
    size_t offset; /* of the error */
};

static const struct text_row texts[] = {
    /* values and blanks */
    {SLICE_INIT("null"), JSON_OK, 0},
    {SLICE_INIT("true"), JSON_OK, 0},
    {SLICE_INIT("false"), JSON_OK, 0},
    {SLICE_INIT("\"\""), JSON_OK, 0},
    {SLICE_INIT("[]"), JSON_OK, 0},
    {SLICE_INIT("{}"), JSON_OK, 0},
    {SLICE_INIT(" \t\r\n[ 1 , { \"a\" : [ ] } ] \n"), JSON_OK, 0},
    {SLICE_INIT("{\"a\":1,\"a\":2}"), JSON_OK, 0},
    {SLICE_INIT("{\"\":{\"\":[]}}"), JSON_OK, 0},
    {SLICE_INIT(""), JSON_INVALID, 0},
    {SLICE_INIT("   "), JSON_INVALID, 3},
    {SLICE_INIT("nul"), JSON_INVALID, 0},
    {SLICE_INIT("nulL"), JSON_INVALID, 0},
    {SLICE_INIT("True"), JSON_INVALID, 0},
    {SLICE_INIT("truefalse"), JSON_INVALID, 4},
    {SLICE_INIT("{} {}"), JSON_INVALID, 3},
    {SLICE_INIT("1,"), JSON_INVALID, 1},
    {SLICE_INIT("[1\v]"), JSON_INVALID, 2},
    {SLICE_INIT("[1\xc2\xa0]"), JSON_INVALID, 2},
    {SLICE_INIT("\xef\xbb\xbf{}"), JSON_INVALID, 0},
    {SLICE_INIT("{}\0"), JSON_INVALID, 2},
    {SLICE_INIT("\0"), JSON_INVALID, 0},
    /* containers */
    {SLICE_INIT("["), JSON_INVALID, 1},
    {SLICE_INIT("]"), JSON_INVALID, 0},
    {SLICE_INIT("[1"), JSON_INVALID, 2},
    {SLICE_INIT("[1 2]"), JSON_INVALID, 3},
    {SLICE_INIT("[1,]"), JSON_INVALID, 3},
    {SLICE_INIT("[,1]"), JSON_INVALID, 1},
    {SLICE_INIT("[1}"), JSON_INVALID, 2},
    {SLICE_INIT("{"), JSON_INVALID, 1},
    {SLICE_INIT("{\"a\""), JSON_INVALID, 4},
    {SLICE_INIT("{\"a\":"), JSON_INVALID, 5},
    {SLICE_INIT("{\"a\" 1}"), JSON_INVALID, 5},
    {SLICE_INIT("{\"a\":1,}"), JSON_INVALID, 7},
    {SLICE_INIT("{\"a\":1]"), JSON_INVALID, 6},
    {SLICE_INIT("{\"a\":}"), JSON_INVALID, 5},
    {SLICE_INIT("{a:1}"), JSON_INVALID, 1},
    {SLICE_INIT("{1:1}"), JSON_INVALID, 1},
    {SLICE_INIT("{\"a\":1 \"b\":2}"), JSON_INVALID, 7},
    {SLICE_INIT("[1 /* one */]"), JSON_INVALID, 3},
    /* numbers */
    {SLICE_INIT("0"), JSON_OK, 0},
    {SLICE_INIT("-0"), JSON_OK, 0},
    {SLICE_INIT("-0.0e-0"), JSON_OK, 0},
    {SLICE_INIT("10.25E+07"), JSON_OK, 0},
    {SLICE_INIT("123456789012345678901234567890"), JSON_OK, 0},
    {SLICE_INIT("1e999999"), JSON_OK, 0},
    {SLICE_INIT("01"), JSON_INVALID, 1},
    {SLICE_INIT("-"), JSON_INVALID, 1},
    {SLICE_INIT("-a"), JSON_INVALID, 1},
    {SLICE_INIT("+1"), JSON_INVALID, 0},
    {SLICE_INIT(".5"), JSON_INVALID, 0},
    {SLICE_INIT("1."), JSON_INVALID, 2},
    {SLICE_INIT("1.e1"), JSON_INVALID, 2},
    {SLICE_INIT("1e"), JSON_INVALID, 2},
    {SLICE_INIT("1e+-1"), JSON_INVALID, 3},
    {SLICE_INIT("0x10"), JSON_INVALID, 1},
    {SLICE_INIT("NaN"), JSON_INVALID, 0},
    {SLICE_INIT("-Infinity"), JSON_INVALID, 1},
    /* strings */
    {SLICE_INIT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), JSON_OK, 0},
    {SLICE_INIT("\"\\u0001\\uFFFF\\ud83d\\uDE00\""), JSON_OK, 0},
    {SLICE_INIT("\"\x7f \xc2\x80 \xe2\x82\xac \xf0\x9f\x98\x80\""), JSON_OK, 0},
    {SLICE_INIT("\"12345678\xe2\x82\xac\""), JSON_OK, 0},
    {SLICE_INIT("\"\\u0000\""), JSON_OK, 0},
    {SLICE_INIT("\"\\ud800\""), JSON_OK, 0},
    {SLICE_INIT("\"\\ud800\\n\""), JSON_OK, 0},
    {SLICE_INIT("\"\\ud800\\u0041\""), JSON_OK, 0},
    {SLICE_INIT("\"\\ud800\\ud800\""), JSON_OK, 0},
    {SLICE_INIT("\"\\udc00\\ud800\""), JSON_OK, 0},
    {SLICE_INIT("{\"\\u0000\":1,\"\\ud800\":[\"\\udfff\"]}"), JSON_OK, 0},
    {SLICE_INIT("\"a"), JSON_INVALID, 2},
    {SLICE_INIT("\"a\\\""), JSON_INVALID, 4},
    {SLICE_INIT("\"\\"), JSON_INVALID, 1},
    {SLICE_INIT("'a'"), JSON_INVALID, 0},
    {SLICE_INIT("\"a\nb\""), JSON_INVALID, 2},
    {SLICE_INIT("\"12345678\x1f\""), JSON_INVALID, 9},
    {SLICE_INIT("\"a\0b\""), JSON_INVALID, 2},
    {SLICE_INIT("\"\\x41\""), JSON_INVALID, 1},
    {SLICE_INIT("\"\\0\""), JSON_INVALID, 1},
    {SLICE_INIT("\"ab\\u12g4\""), JSON_INVALID, 3},
    {SLICE_INIT("\"\\u123\""), JSON_INVALID, 1},
    {SLICE_INIT("\"\\ud800\\u12g4\""), JSON_INVALID, 7},
    {SLICE_INIT("\"\\ud800\\"), JSON_INVALID, 7},
    {SLICE_INIT("\"\\ud800\xed\xb0\x80\""), JSON_INVALID, 7},
    {SLICE_INIT("\"ab\xff\""), JSON_INVALID, 3},
    {SLICE_INIT("\"\xc0\x80\""), JSON_INVALID, 1},
    {SLICE_INIT("\"\xed\xa0\x80\""), JSON_INVALID, 1},
    {SLICE_INIT("\"\xf4\x90\x80\x80\""), JSON_INVALID, 1},
    {SLICE_INIT("\"12345678\xe2\x82\""), JSON_INVALID, 9},
    {SLICE_INIT("{\"\xff\":1}"), JSON_INVALID, 2},
};

Test(json, a_text_is_judged_by_the_grammar_and_the_place_told)
{
    for (size_t i = 0; i < COUNT(texts); i++) {
        size_t offset = 0;
        enum json_status status = json_check(texts[i].text, &offset);

        cr_expect(status == texts[i].status, "row %zu: %.*s %s", i,
                  (int)texts[i].text.len, texts[i].text.data,
                  json_status_text(status));
        cr_expect(offset == texts[i].offset, "row %zu: %.*s at %zu", i,
                  (int)texts[i].text.len, texts[i].text.data, offset);
        oracle_agree(texts[i].text, SLICE(""));
    }
}

/* Strings are read eight bytes at a time where there are so many. */
Test(json, a_byte_in_a_string_is_judged_alike_in_every_place)
{
    enum { LENGTH = 20 };
    char text[LENGTH + 12];

    for (int byte = 0; byte < 256; byte++) {
        bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';

        for (size_t place = 1; place <= LENGTH; place++) {
            enum json_status status;
            size_t offset = 0;

            memset(text, ' ', sizeof text);
            memset(text + 1, 'a', LENGTH);
            text[0] = '"';
            text[LENGTH + 1] = '"';
            text[place] = (char)byte;
            status = json_check((struct slice){text, sizeof text}, &offset);
            cr_expect((status == JSON_OK) == plain, "byte %d in place %zu",
                      byte, place);
            cr_expect(plain || strchr("\"\\", byte) != NULL || offset == place,
                      "byte %d in place %zu at %zu", byte, place, offset);
        }
    }
}

Test(json, every_beginning_of_a_text_is_invalid)
{
    struct slice whole =
        SLICE("{\"a\":[1.5e3,true,null,\"\\ud83d\\ude00\xc3\xa9"
              "\"],\"bc\":{\"d\":-0}}");

    cr_assert(json_check(whole, NULL) == JSON_OK);
    for (size_t len = 0; len < whole.len; len++) {
        struct slice part = {whole.data, len};
        size_t offset = SIZE_MAX;

        cr_expect(json_check(part, &offset) == JSON_INVALID, "%zu", len);
        cr_expect(offset <= len, "%zu", len);
    }
}

static struct buf nested(size_t depth, const char *open, const char *core,
                         const char *close)
{
    struct buf text = BUF_INIT;

    for (size_t i = 0; i < depth; i++) {
        buf_add_str(&text, open);
    }
    buf_add_str(&text, core);
    for (size_t i = 0; i < depth; i++) {
        buf_add_str(&text, close);
    }
    return text;
}

Test(json, depth_ends_at_the_limit)
{
    static const char *const opens[] = {"[", "{\"a\":", "[1,{\"a\":"};
    static const char *const closes[] = {"]", "}", "}]"};

    for (size_t i = 0; i < COUNT(opens); i++) {
        size_t levels = i == 2 ? JSON_DEPTH_MAX / 2 : JSON_DEPTH_MAX;
        struct buf at = nested(levels, opens[i], "1", closes[i]);
        struct buf over = nested(levels, opens[i], "[]", closes[i]);
        size_t offset = 0;

        cr_expect(json_check(buf_slice(&at), NULL) == JSON_OK);
        cr_expect(json_check(buf_slice(&over), &offset) == JSON_TOO_DEEP);
        cr_expect(offset == levels * strlen(opens[i]), "%zu", offset);
        buf_free(&at);
        buf_free(&over);
    }
}

Test(json, levels_side_by_side_do_not_add_up)
{
    struct buf text = nested(1, "[", "[[]]", "]");

    for (size_t i = 0; i < 1000; i++) {
        text.len--;
        buf_add_str(&text, ",[[{}]]]");
    }
    cr_expect(json_check(buf_slice(&text), NULL) == JSON_OK);
    buf_free(&text);
}

struct find_row {
    const char *text;
    const char *pointer;
    enum json_status status;
    const char *raw; /* of what is found */
};

static const struct find_row finds[] = {
    {" {\"a\":1} ", "", JSON_OK, "{\"a\":1}"},
    {" 1 ", "", JSON_OK, "1"},
    {"\"x\"", "", JSON_OK, "\"x\""},
    {"{\"a\":1}", "/a", JSON_OK, "1"},
    {"{\"a\" : [ 1 , 2 ] }", "/a", JSON_OK, "[ 1 , 2 ]"},
    {"{\"a\":{\"b\":{\"c\":\"x\"}}}", "/a/b/c", JSON_OK, "\"x\""},
    {"{\"b\":{\"a\":1},\"a\":{\"b\":2}}", "/a/b", JSON_OK, "2"},
    {"{\"x\":{\"a\":1},\"a\":2}", "/a", JSON_OK, "2"},
    {"{\"a\":{\"a\":{\"a\":-3}}}", "/a/a", JSON_OK, "{\"a\":-3}"},
    {"{\"\":1}", "/", JSON_OK, "1"},
    {"{\"\":{\"\":2}}", "//", JSON_OK, "2"},
    {"{\"a\":null}", "/a", JSON_OK, "null"},
    {"{\"a\":false}", "/a", JSON_OK, "false"},
    {"[10,20,30]", "/0", JSON_OK, "10"},
    {"[10,20,30]", "/2", JSON_OK, "30"},
    {"[[1],[2,[3,4]],5]", "/1/1/0", JSON_OK, "3"},
    {"[[0,0,0],{\"a\":1}]", "/1/a", JSON_OK, "1"},
    {"[0,1,2,3,4,5,6,7,8,9,\"ten\"]", "/10", JSON_OK, "\"ten\""},
    /* names */
    {"{\"a/b\":1,\"m~n\":2}", "/a~1b", JSON_OK, "1"},
    {"{\"a/b\":1,\"m~n\":2}", "/m~0n", JSON_OK, "2"},
    {"{\"~1\":1,\"/\":2}", "/~01", JSON_OK, "1"},
    {"{\"\\u0061\":1}", "/a", JSON_OK, "1"},
    {"{\"a\\/b\":1}", "/a~1b", JSON_OK, "1"},
    {"{\"\\u00e9\":1}", "/\xc3\xa9", JSON_OK, "1"},
    {"{\"\\u20ac\":1}", "/\xe2\x82\xac", JSON_OK, "1"},
    {"{\"\\ud83d\\ude00\":1}", "/\xf0\x9f\x98\x80", JSON_OK, "1"},
    {"{\"a\\n\":1}", "/a\n", JSON_OK, "1"},
    {"{\"a%62\":1}", "/a%62", JSON_OK, "1"},
    {"{\"0\":1}", "/0", JSON_OK, "1"},
    /* names and values that are no text */
    {"{\"a\\u0000\":1,\"a\":2}", "/a", JSON_OK, "2"},
    {"{\"a\\ud800\":1,\"\\udc00a\":1,\"a\":2}", "/a", JSON_OK, "2"},
    {"{\"\\ud800\":1,\"\\ud800\":1,\"a\":2}", "/a", JSON_OK, "2"},
    {"{\"a\":\"\\u0000\"}", "/a", JSON_OK, "\"\\u0000\""},
    {"{\"\\u0000\":1}", "/", JSON_ABSENT, NULL},
    {"{\"\\u0000\":1}", "/\\u0000", JSON_ABSENT, NULL},
    {"{\"\\ud800\":1}", "/\xed\xa0\x80", JSON_ABSENT, NULL},
    {"{\"\\ud800\":1,\"\\ud800\":1}", "/\xed\xa0\x80", JSON_ABSENT, NULL},
    {"{\"a\":\"\\u0000\",\"a\":1}", "/a", JSON_AMBIGUOUS, NULL},
    /* nothing there */
    {"{\"a\":1}", "/b", JSON_ABSENT, NULL},
    {"{\"a\":1}", "/A", JSON_ABSENT, NULL},
    {"{\"a\":1}", "/aa", JSON_ABSENT, NULL},
    {"{\"aa\":1}", "/a", JSON_ABSENT, NULL},
    {"{\"a\":1}", "/a/b", JSON_ABSENT, NULL},
    {"{\"a\":1}", "/", JSON_ABSENT, NULL},
    {"{\"a\":\"b\"}", "/a/0", JSON_ABSENT, NULL},
    {"{\"x\":{\"a\":1}}", "/a", JSON_ABSENT, NULL},
    {"{\"a\":1,\"b\":{\"c\":2}}", "/a/c", JSON_ABSENT, NULL},
    {"{\"\\u00e9\":1}", "/\xc3", JSON_ABSENT, NULL},
    {"1", "/0", JSON_ABSENT, NULL},
    {"[]", "/0", JSON_ABSENT, NULL},
    {"[1]", "/1", JSON_ABSENT, NULL},
    {"[1,2]", "/-", JSON_ABSENT, NULL},
    {"[1,2]", "/01", JSON_ABSENT, NULL},
    {"[1,2]", "/+1", JSON_ABSENT, NULL},
    {"[1,2]", "/1.0", JSON_ABSENT, NULL},
    {"[1,2]", "/", JSON_ABSENT, NULL},
    {"[1,2]", "/18446744073709551616", JSON_ABSENT, NULL},
    {"[1,2]", "/18446744073709551615", JSON_ABSENT, NULL},
    {"[[1],2]", "/0/1", JSON_ABSENT, NULL},
    /* equal members */
    {"{\"a\":1,\"a\":1}", "/a", JSON_AMBIGUOUS, NULL},
    {"{\"a\":1,\"\\u0061\":2}", "/a", JSON_AMBIGUOUS, NULL},
    {"{\"a\":{\"b\":1},\"a\":{}}", "/a/b", JSON_AMBIGUOUS, NULL},
    {"{\"a\":{},\"a\":{\"b\":1}}", "/a/b", JSON_AMBIGUOUS, NULL},
    {"{\"a\":{\"b\":1,\"c\":{},\"b\":2}}", "/a/b", JSON_AMBIGUOUS, NULL},
    {"[{\"a\":1},{\"a\":1,\"a\":2}]", "/1/a", JSON_AMBIGUOUS, NULL},
    {"{\"a\":[{\"b\":1}],\"x\":[{}],\"a\":0}", "/a/0/b", JSON_AMBIGUOUS, NULL},
    {"[{\"a\":1},{\"a\":1,\"a\":2}]", "/0/a", JSON_OK, "1"},
    {"{\"b\":1,\"b\":2,\"a\":3}", "/a", JSON_OK, "3"},
    {"{\"a\":{\"b\":1,\"b\":2}}", "/a", JSON_OK, "{\"b\":1,\"b\":2}"},
    {"{\"x\":{\"a\":1,\"a\":2},\"a\":3}", "/a", JSON_OK, "3"},
    /* an error anywhere comes first */
    {"{\"a\":1,\"b\":}", "/a", JSON_INVALID, NULL},
    {"{\"a\":1,\"a\":2}x", "/a", JSON_INVALID, NULL},
    {"{\"a\":1", "/b", JSON_INVALID, NULL},
    {"", "", JSON_INVALID, NULL},
};

Test(json, a_pointer_finds_one_value_or_says_why_not)
{
    for (size_t i = 0; i < COUNT(finds); i++) {
        struct json_value got = {JSON_NULL, {NULL, 0}};
        struct slice text = slice_of(finds[i].text);
        struct slice pointer = slice_of(finds[i].pointer);
        enum json_status status = json_find(text, pointer, &got);

        cr_expect(status == finds[i].status, "row %zu: %s at %s: %s", i,
                  finds[i].text, finds[i].pointer, json_status_text(status));
        cr_expect(slice_eq(got.raw, slice_of(finds[i].raw)),
                  "row %zu: %s at %s: %.*s", i, finds[i].text, finds[i].pointer,
                  (int)got.raw.len, got.raw.data);
        oracle_agree(text, pointer);
    }
}

Test(json, a_found_value_has_its_type)
{
    struct slice text = SLICE("[null,false,true,-1,\"\",[],{}]");
    static const enum json_type types[] = {
        JSON_NULL,   JSON_FALSE, JSON_TRUE,   JSON_NUMBER,
        JSON_STRING, JSON_ARRAY, JSON_OBJECT,
    };

    for (size_t i = 0; i < COUNT(types); i++) {
        char pointer[] = {'/', (char)('0' + i), '\0'};
        struct json_value got;

        cr_assert(json_find(text, slice_of(pointer), &got) == JSON_OK);
        cr_expect(got.type == types[i], "%s", pointer);
    }
}

Test(json, a_pointer_reaches_the_deepest_level_and_not_beyond)
{
    struct buf text = nested(JSON_DEPTH_MAX, "[", "7", "]");
    struct buf pointer = nested(JSON_DEPTH_MAX, "/0", "", "");
    struct json_value got;

    cr_assert(json_find(buf_slice(&text), buf_slice(&pointer), &got) ==
              JSON_OK);
    cr_expect(slice_eq(got.raw, SLICE("7")));
    for (size_t i = 0; i < 3; i++) {
        buf_add_str(&pointer, "/0");
        cr_expect(json_find(buf_slice(&text), buf_slice(&pointer), &got) ==
                  JSON_ABSENT);
    }
    buf_free(&text);
    buf_free(&pointer);
}

Test(json, a_pointer_has_its_own_grammar)
{
    static const char *const good[] = {"", "/", "/a", "/a/b", "//", "/~0~1"};
    static const char *const bad[] = {"a", "a/b", "/~", "/a~", "/~2", "/~/0"};

    for (size_t i = 0; i < COUNT(good); i++) {
        cr_expect(json_pointer_ok(slice_of(good[i])), "%s", good[i]);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        cr_expect(!json_pointer_ok(slice_of(bad[i])), "%s", bad[i]);
    }
}

Test(json, a_pointer_that_is_none_is_a_mistake_of_the_program,
     .signal = SIGABRT)
{
    struct json_value got;

    (void)json_find(SLICE("{}"), SLICE("a"), &got);
}

Test(json, a_string_is_decoded)
{
    static const char *const rows[][2] = {
        {"\"\"", ""},
        {"\"plain\"", "plain"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"a\\u0062c\\n\"", "abc\n"},
        {"\"\\u007f\\u0080\\u07ff\"", "\x7f\xc2\x80\xdf\xbf"},
        {"\"\\u0800\\uffff\"", "\xe0\xa0\x80\xef\xbf\xbf"},
        {"\"\\ud800\\udc00\"", "\xf0\x90\x80\x80"},
        {"\"\\uDBFF\\uDFFF\"", "\xf4\x8f\xbf\xbf"},
        {"\"\xe2\x82\xac\\u20AC\"", "\xe2\x82\xac\xe2\x82\xac"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct buf out = BUF_INIT;
        struct json_value value;

        buf_add_str(&out, "=");
        cr_assert(json_find(slice_of(rows[i][0]), SLICE(""), &value) ==
                  JSON_OK);
        json_decode_string(value, &out);
        cr_expect(
            slice_eq(slice_from(buf_slice(&out), 1), slice_of(rows[i][1])),
            "%s", rows[i][0]);
        buf_free(&out);
    }
}

Test(json, a_name_with_a_nul_equals_no_token_with_one)
{
    struct json_value got;

    cr_expect(json_find(SLICE("{\"a\\u0000\":1}"), SLICE("/a\0"), &got) ==
              JSON_ABSENT);
}

Test(json, a_string_with_a_nul_or_half_a_pair_is_no_text)
{
    static const struct {
        const char *text;
        bool is_text;
    } rows[] = {
        {"\"\"", true},
        {"\"a\\nb\\u0001\\\\u0000\\\\ud800\"", true},
        {"\"\\ud7ff\\ue000\\uffff\"", true},
        {"\"\\ud800\\udc00\\uDBFF\\uDFFF\"", true},
        {"\"ab\\n\\u0000cd\"", false},
        {"\"\\ud800\"", false},
        {"\"\\uDBFFx\"", false},
        {"\"x\\uDFFF\"", false},
        {"\"\\ud800\\ud800\\udc00\"", false},
        {"\"\\ud800\\udc00\\udc00\"", false},
        {"\"\\ud800\\\\udc00\"", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct json_value value;

        cr_assert(json_find(slice_of(rows[i].text), SLICE(""), &value) ==
                  JSON_OK);
        cr_expect(json_string_is_text(value) == rows[i].is_text, "%s",
                  rows[i].text);
        oracle_agree(slice_of(rows[i].text), SLICE(""));
    }
}

Test(json, to_decode_what_is_no_text_is_a_mistake_of_the_program,
     .signal = SIGABRT)
{
    struct buf out = BUF_INIT;

    json_decode_string((struct json_value){JSON_STRING, SLICE("\"\\ud800\"")},
                       &out);
}

Test(json, items_come_one_by_one)
{
    struct slice text = SLICE(" [ 1, \"a,]\" ,[2,[3]],{\"b\":[4]} , null ] ");
    static const char *const raws[] = {"1", "\"a,]\"", "[2,[3]]", "{\"b\":[4]}",
                                       "null"};
    static const enum json_type types[] = {JSON_NUMBER, JSON_STRING, JSON_ARRAY,
                                           JSON_OBJECT, JSON_NULL};
    struct json_value array;
    struct json_value item;
    size_t at = 0;

    cr_assert(json_find(text, SLICE(""), &array) == JSON_OK);
    for (size_t i = 0; i < COUNT(raws); i++) {
        cr_assert(json_next_item(array, &at, &item), "%zu", i);
        cr_expect(item.type == types[i], "%zu", i);
        cr_expect(slice_eq(item.raw, slice_of(raws[i])), "%zu", i);
    }
    cr_expect(!json_next_item(array, &at, &item));
    cr_expect(!json_next_item(array, &at, &item));
}

Test(json, an_empty_array_has_no_items)
{
    static const char *const texts_of_none[] = {"[]", "[ \n ]"};

    for (size_t i = 0; i < COUNT(texts_of_none); i++) {
        struct json_value array;
        struct json_value item;
        size_t at = 0;

        cr_assert(json_find(slice_of(texts_of_none[i]), SLICE(""), &array) ==
                  JSON_OK);
        cr_expect(!json_next_item(array, &at, &item));
    }
}

Test(json, every_status_has_a_text)
{
    cr_expect_str_eq(json_status_text(JSON_OK), "is JSON");
    cr_expect_str_eq(json_status_text(JSON_INVALID), "is not JSON");
    cr_expect_str_eq(json_status_text(JSON_TOO_DEEP), "is nested too deeply");
    cr_expect(json_status_text(JSON_ABSENT) != NULL);
    cr_expect(json_status_text(JSON_AMBIGUOUS) != NULL);
}

/* Texts of about a MiB, made of `head`, many times `more`, and `tail`. */
struct bomb {
    const char *head;
    const char *more;
    const char *tail;
    enum json_status status;
};

static const struct bomb bombs[] = {
    {"", "[", "", JSON_TOO_DEEP},
    {"", "{\"a\":", "", JSON_TOO_DEEP},
    {"", "[{\"a\":", "", JSON_TOO_DEEP},
    {"", "[1,", "", JSON_TOO_DEEP},
    {"", " [", "", JSON_TOO_DEEP},
    {"", "]", "", JSON_INVALID},
    {"[", "[],", "[]]", JSON_OK},
    {"[", "{},", "{}]", JSON_OK},
    {"[", "[[[[[[[]]]]]]],", "0]", JSON_OK},
    {"[", "1,", "1]", JSON_OK},
    {"[", "1,", "", JSON_INVALID},
    {"[", ",", "]", JSON_INVALID},
    {"1", "0", "", JSON_OK},
    {"-1", "9", "", JSON_OK},
    {"0.", "3", "", JSON_OK},
    {"1e", "9", "", JSON_OK},
    {"1e-", "9", "", JSON_OK},
    {"", "-", "", JSON_INVALID},
    {"0", "0", "", JSON_INVALID},
    {"\"", "a", "\"", JSON_OK},
    {"\"", "a", "", JSON_INVALID},
    {"\"", "\\\\", "\"", JSON_OK},
    {"\"", "\\u0041", "\"", JSON_OK},
    {"\"", "\\ud83d\\ude00", "\"", JSON_OK},
    {"\"", "\\ud83d", "\"", JSON_OK},
    {"\"", "\\u0000", "\"", JSON_OK},
    {"\"", "\xe2\x82\xac", "\"", JSON_OK},
    {"\"", "\xe2\x82\xac", "\xff\"", JSON_INVALID},
    {"\"", "\x80", "\"", JSON_INVALID},
    {"", " ", "1", JSON_OK},
    {"1", "\n", "", JSON_OK},
    {"{\"b\":0", ",\"a\":0", "}", JSON_OK},
    {"{\"b\":0", ",\"a\":{\"a\":{}}", "}", JSON_OK},
    {"{\"", "a", "\":1}", JSON_OK},
    {"[", "\"\",", "\"\"]", JSON_OK},
};

static int64_t cpu_ms(void)
{
    struct timespec now;

    cr_assert(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A hundred times what a plain build needs: only a time that is not linear
 * goes over it, also under a sanitizer. */
enum { BOMB_LIMIT_MS = 2000 };

Test(json, a_bomb_costs_no_more_than_its_length)
{
    for (size_t i = 0; i < COUNT(bombs); i++) {
        struct buf text = BUF_INIT;
        struct json_value got;
        enum json_status found;
        int64_t start_ms;

        buf_add_str(&text, bombs[i].head);
        while (text.len < (1U << 20)) {
            buf_add_str(&text, bombs[i].more);
        }
        buf_add_str(&text, bombs[i].tail);
        start_ms = cpu_ms();
        cr_expect(json_check(buf_slice(&text), NULL) == bombs[i].status,
                  "bomb %zu", i);
        found = json_find(buf_slice(&text), SLICE("/a/a/0"), &got);
        cr_expect(found == bombs[i].status ||
                      (bombs[i].status == JSON_OK && found >= JSON_ABSENT),
                  "bomb %zu", i);
        cr_expect(cpu_ms() - start_ms < BOMB_LIMIT_MS, "bomb %zu", i);
        buf_free(&text);
    }
}

Test(json, the_end_of_the_text_is_the_end_of_reading)
{
    static const char *const ends[] = {
        "\"12345678", "12",  "[true",     "{\"a",        "\"\\u12",        "-",
        "1e",         "nul", "\"\\ud800", "\"\\ud800\\", "\"\\ud800\\udc0"};

    for (size_t i = 0; i < COUNT(ends); i++) {
        struct slice text = slice_of(ends[i]);
        char *exact = malloc(text.len); /* no NUL: a sanitizer sees a step */

        cr_assert(exact != NULL);
        memcpy(exact, text.data, text.len);
        (void)json_check((struct slice){exact, text.len}, NULL);
        free(exact);
    }
}
