/* SPDX-License-Identifier: MIT */
#include "source/value.h"

#include <criterion/criterion.h>
#include <string.h>

#include "support/signed_request.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One alternative from up to three texts. */
static bool add(struct value *value, const char *a, const char *b,
                const char *c, struct err *err)
{
    struct slice texts[3] = {slice_of(a), slice_of(b), slice_of(c)};
    size_t n = b == NULL ? 1 : c == NULL ? 2 : 3;

    return value_add_choice(value, texts, n, err);
}

static void must_add(struct value *value, const char *text)
{
    struct err err = {0};

    cr_assert(add(value, text, NULL, NULL, &err), "%s: %s", text, err.text);
}

/* Evaluates one expression; `expected` NULL: it must give `status`. */
static void expect(const char *text, const struct envelope *envelope,
                   enum value_status status, const char *expected)
{
    struct value value = {0};
    struct buf out = BUF_INIT;
    const char *why = "unset";
    enum value_status got;

    must_add(&value, text);
    buf_add_str(&out, "kept ");
    got = value_eval(&value, envelope, &out, &why);
    cr_expect_eq(got, status, "%s: %d", text, got);
    if (status == VALUE_OK) {
        cr_expect_null(why);
        cr_expect_str_eq(buf_cstr(&out) + 5, expected, "%s", text);
    } else {
        cr_expect_not_null(why);
        cr_expect_str_eq(buf_cstr(&out), "kept ", "%s", text);
    }
    buf_free(&out);
    value_free(&value);
}

Test(value, finds_json_members)
{
    static const struct {
        const char *text;
        enum value_status status;
        const char *expected;
    } cases[] = {
        {"json:/id", VALUE_OK, "evt_1"},
        {"json:/n", VALUE_OK, "12345678901234567890123.50"},
        {"json:/data/0/object/id", VALUE_OK, "ü/x"},
        {"json:/yes", VALUE_OK, "true"},
        {"json:/no", VALUE_OK, "false"},
        {"json:/a~1b", VALUE_OK, "slash"},
        {"json:/none", VALUE_ABSENT, NULL},
        {"json:/null", VALUE_ABSENT, NULL},
        {"json:/empty", VALUE_ABSENT, NULL},
        {"json:/data", VALUE_ABSENT, NULL},
        {"json:/data/0", VALUE_ABSENT, NULL},
        {"json:/twice", VALUE_AMBIGUOUS, NULL},
    };
    struct signed_request request;

    request_start(
        &request,
        SLICE("{\"id\":\"evt_1\",\"n\":12345678901234567890123.50,"
              "\"data\":[{\"object\":{\"id\":\"\\u00fc\\/x\"}}],"
              "\"yes\":true,\"no\":false,\"a/b\":\"slash\",\"null\":null,"
              "\"empty\":\"\",\"twice\":1,\"twice\":1}"));
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect(cases[i].text, &request.envelope, cases[i].status,
               cases[i].expected);
    }
}

Test(value, a_body_that_is_not_json_is_told_apart_from_a_missing_member)
{
    static const char *const bodies[] = {"", "{", "{\"id\":1}x", "id=1"};
    struct signed_request request;
    char deep[600];

    for (size_t i = 0; i < COUNT(bodies); i++) {
        request_start(&request, slice_of(bodies[i]));
        expect("json:/id", &request.envelope, VALUE_BAD_BODY, NULL);
    }
    memset(deep, '[', 300);
    memset(deep + 300, ']', 300);
    request_start(&request, (struct slice){deep, sizeof deep});
    expect("json:/0", &request.envelope, VALUE_BAD_BODY, NULL);
}

Test(value, a_string_that_is_no_text_spoils_no_member_but_its_own)
{
    static const struct {
        const char *text;
        enum value_status status;
        const char *expected;
    } cases[] = {
        {"json:/id", VALUE_OK, "evt_1"},
        {"json:/face", VALUE_OK, "\xf0\x9f\x98\x80"},
        {"json:/nul", VALUE_BAD_BODY, NULL},
        {"json:/half/0", VALUE_BAD_BODY, NULL},
        {"json:/x", VALUE_ABSENT, NULL},
    };
    struct signed_request request;

    request_start(&request,
                  SLICE("{\"nul\":\"a\\u0000\",\"half\":[\"\\ud83d\"],"
                        "\"x\\u0000\":1,\"\\udc00\":2,"
                        "\"face\":\"\\ud83d\\ude00\","
                        "\"id\":\"evt_1\"}"));
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect(cases[i].text, &request.envelope, cases[i].status,
               cases[i].expected);
    }
}

Test(value, a_string_that_is_no_text_and_a_body_that_is_not_json_are_told_apart)
{
    static const char *const rows[][2] = {
        {"{\"id\":\"a\\u0000\"}",
         "the value holds a NUL or half a surrogate pair"},
        {"{\"id\":\"\\udc00\"}",
         "the value holds a NUL or half a surrogate pair"},
        {"{\"id\":\"\\ud80\"}", "the body is not JSON"},
        {"{\"id\":\"\xed\xa0\x80\"}", "the body is not JSON"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct signed_request request;
        struct value value = {0};
        struct buf out = BUF_INIT;
        const char *why = NULL;

        must_add(&value, "json:/id");
        request_start(&request, slice_of(rows[i][0]));
        cr_expect_eq(value_eval(&value, &request.envelope, &out, &why),
                     VALUE_BAD_BODY);
        cr_expect_str_eq(why, rows[i][1]);
        buf_free(&out);
        value_free(&value);
    }
}

Test(value, finds_headers_without_case_and_refuses_repeats)
{
    struct signed_request request;

    request_start(&request, SLICE(""));
    request_header_text(&request, "X-GitHub-Delivery", "72d3162e");
    request_header_text(&request, "Empty", "");
    request_header_text(&request, "Twice", "a");
    request_header_text(&request, "TWICE", "a");
    expect("header:x-github-delivery", &request.envelope, VALUE_OK, "72d3162e");
    expect("header:Empty", &request.envelope, VALUE_ABSENT, NULL);
    expect("header:Missing", &request.envelope, VALUE_ABSENT, NULL);
    expect("header:Twice", &request.envelope, VALUE_AMBIGUOUS, NULL);
    expect("kafka:header:Empty", &request.envelope, VALUE_ABSENT, NULL);
    request_end(&request);
}

Test(value, finds_and_decodes_query_parameters)
{
    struct signed_request request;

    request_start(&request, SLICE(""));
    expect("query:id", &request.envelope, VALUE_ABSENT, NULL);
    request_query(&request, "&a=1&i%64=x+y%2Fz%2B&empty=&bare&bad=%4&"
                            "twice=1&twice=2&%zz=3");
    expect("query:id", &request.envelope, VALUE_OK, "x y/z+");
    expect("query:a", &request.envelope, VALUE_OK, "1");
    expect("query:empty", &request.envelope, VALUE_ABSENT, NULL);
    expect("query:bare", &request.envelope, VALUE_ABSENT, NULL);
    expect("query:bad", &request.envelope, VALUE_ABSENT, NULL);
    expect("query:twice", &request.envelope, VALUE_AMBIGUOUS, NULL);
    expect("query:%zz", &request.envelope, VALUE_ABSENT, NULL);
}

Test(value, finds_what_kafka_has)
{
    struct envelope message = {
        .kind = ENVELOPE_KAFKA,
        .topic = SLICE("orders"),
        .partition = 3,
        .offset = 9007199254740993,
        .key = SLICE("k1"),
        .has_key = true,
        .query = SLICE("id=1"),
        .has_query = true,
    };
    struct buf flat = BUF_INIT;

    headers_add(&flat, SLICE("event-id"), SLICE("e1"));
    headers_add(&flat, SLICE("Event-Id"), SLICE("other"));
    headers_add(&flat, SLICE("r"), SLICE("1"));
    headers_add(&flat, SLICE("r"), SLICE("2"));
    message.headers = (struct headers){buf_slice(&flat), 4};
    expect("kafka:key", &message, VALUE_OK, "k1");
    expect("kafka:position", &message, VALUE_OK, "orders/3/9007199254740993");
    expect("kafka:header:event-id", &message, VALUE_OK, "e1");
    expect("kafka:header:r", &message, VALUE_AMBIGUOUS, NULL);
    expect("header:event-id", &message, VALUE_ABSENT, NULL);
    expect("query:id", &message, VALUE_ABSENT, NULL);
    expect("body:sha256", &message, VALUE_ABSENT, NULL);
    message.key = (struct slice){NULL, 0};
    message.has_key = false;
    expect("kafka:key", &message, VALUE_ABSENT, NULL);
    buf_free(&flat);
}

Test(value, digests_and_constants_need_nothing)
{
    struct signed_request request;

    request_start(&request, SLICE("abc"));
    expect("body:sha256", &request.envelope, VALUE_OK,
           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("const:a:b", &request.envelope, VALUE_OK, "a:b");
    expect("kafka:key", &request.envelope, VALUE_ABSENT, NULL);
    expect("kafka:position", &request.envelope, VALUE_ABSENT, NULL);
}

Test(value, the_first_alternative_with_a_value_wins)
{
    struct value value = {0};
    struct signed_request request;
    struct buf out = BUF_INIT;
    const char *why;

    must_add(&value, "header:A");
    must_add(&value, "json:/id");
    must_add(&value, "header:B");
    request_start(&request, SLICE("not json"));
    cr_expect_eq(value_eval(&value, &request.envelope, &out, &why),
                 VALUE_BAD_BODY);
    cr_expect_str_eq(why, "the body is not JSON");
    request_header_text(&request, "B", "b");
    cr_expect_eq(value_eval(&value, &request.envelope, &out, &why), VALUE_OK);
    cr_expect_str_eq(buf_cstr(&out), "b");
    buf_clear(&out);
    request.envelope.body = SLICE("{\"id\":7}");
    cr_expect_eq(value_eval(&value, &request.envelope, &out, &why), VALUE_OK);
    cr_expect_str_eq(buf_cstr(&out), "7");
    buf_clear(&out);
    request_header_text(&request, "A", "a");
    cr_expect_eq(value_eval(&value, &request.envelope, &out, &why), VALUE_OK);
    cr_expect_str_eq(buf_cstr(&out), "a");
    buf_clear(&out);
    request_header_text(&request, "A", "a");
    cr_expect_eq(value_eval(&value, &request.envelope, &out, &why),
                 VALUE_AMBIGUOUS);
    cr_expect_eq(out.len, 0);
    buf_free(&out);
    request_end(&request);
    value_free(&value);
}

Test(value, parts_are_encoded_and_all_needed)
{
    struct value value = {0};
    struct signed_request request;
    struct buf out = BUF_INIT;
    const char *why;

    cr_assert(add(&value, "const:a/b", "header:Id", "const:ü", NULL));
    must_add(&value, "const:else");
    request_start(&request, SLICE(""));
    cr_expect_eq(value_eval(&value, &request.envelope, &out, &why), VALUE_OK);
    cr_expect_str_eq(buf_cstr(&out), "else");
    buf_clear(&out);
    request_header_text(&request, "Id", "x y");
    cr_expect_eq(value_eval(&value, &request.envelope, &out, &why), VALUE_OK);
    cr_expect_str_eq(buf_cstr(&out), "a%2Fb/x%20y/%C3%BC");
    buf_free(&out);
    request_end(&request);
    value_free(&value);
}

Test(value, what_is_not_an_expression_is_refused)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "is not a value expression"},
        {"id", "is not a value expression"},
        {"jso:/id", "\"jso:/id\" is not a value expression"},
        {"body:md5", "is not a value expression"},
        {"kafka:keys", "is not a value expression"},
        {"kafka:position:", "is not a value expression"},
        {"json:", "nothing stands behind"},
        {"header:", "nothing stands behind"},
        {"query:", "nothing stands behind"},
        {"kafka:header:", "nothing stands behind"},
        {"const:", "nothing stands behind"},
        {"json:id", "is not a JSON pointer"},
        {"json:/a~2", "is not a JSON pointer"},
        {"header:A B", "is not the name of a header"},
        {"header:A:", "is not the name of a header"},
        {"header:Ä", "is not the name of a header"},
    };
    struct slice nul = SLICE("const:a\0b");

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct value value = {0};
        struct err err = {0};

        cr_expect_not(add(&value, cases[i].text, NULL, NULL, &err), "%s",
                      cases[i].text);
        cr_expect_eq(err.kind, ERR_CONFIG);
        cr_expect_not_null(strstr(err.text, cases[i].part), "%s", err.text);
        cr_expect_not(add(&value, "const:a", cases[i].text, NULL, &err));
        cr_expect_eq(value.n_choices, 0);
        value_free(&value);
    }
    cr_expect_not(value_add_choice(&(struct value){0}, &nul, 1, NULL));
    cr_expect_not(value_add_choice(&(struct value){0}, NULL, 0, NULL));
}

Test(value, says_which_kinds_it_uses)
{
    struct value value = {0};

    cr_expect_not(value_uses(&value, VALUE_CONST));
    cr_assert(add(&value, "const:a", "header:B", NULL, NULL));
    must_add(&value, "json:/c");
    cr_expect(value_uses(&value, VALUE_JSON));
    cr_expect(value_uses(&value, VALUE_HEADER));
    cr_expect_not(value_uses(&value, VALUE_QUERY));
    value_free(&value);
    cr_expect_not(value_uses(&value, VALUE_JSON));
}

Test(value, none_configured_is_absent)
{
    struct signed_request request;
    struct buf out = BUF_INIT;
    const char *why = NULL;

    request_start(&request, SLICE("{}"));
    cr_expect_eq(value_eval(&(struct value){0}, &request.envelope, &out, &why),
                 VALUE_ABSENT);
    cr_expect_not_null(why);
    buf_free(&out);
}

Test(value, ids_are_short_clean_text)
{
    static const struct {
        const char *id, *problem;
    } cases[] = {
        {"evt_1", NULL},
        {"größe 1/2", NULL},
        {"\xc2\xa0", NULL},
        {"\xf0\x9f\x98\x8a", NULL},
        {"", "is empty"},
        {"a\nb", "has a control character"},
        {"a\x7f", "has a control character"},
        {"\xc2\x80", "has a control character"},
        {"\xc2\x9f", "has a control character"},
        {"\xff", "is not UTF-8"},
        {"a\xc2", "is not UTF-8"},
        {"\xed\xa0\x80", "is not UTF-8"},
    };
    char text[256];

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *got = value_check_id(slice_of(cases[i].id));

        cr_expect((got == NULL) == (cases[i].problem == NULL), "%zu", i);
        if (got != NULL && cases[i].problem != NULL) {
            cr_expect_str_eq(got, cases[i].problem);
        }
    }
    memset(text, 'x', sizeof text);
    cr_expect_null(value_check_id((struct slice){text, 255}));
    cr_expect_str_eq(value_check_id((struct slice){text, 256}),
                     "is longer than 255 bytes");
    text[3] = '\0';
    cr_expect_str_eq(value_check_id((struct slice){text, 5}),
                     "has a control character");
}
