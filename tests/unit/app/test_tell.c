/* SPDX-License-Identifier: MIT */
#include "app/tell.h"

#include <criterion/criterion.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);

    cr_assert(json != NULL, "the test's JSON: %s", error.text);
    return json;
}

static void expect_has(struct buf *text, const char *what)
{
    cr_expect(strstr(buf_cstr(text), what) != NULL, "no\n%s\nin\n%s", what,
              buf_cstr(text));
}

Test(tell, a_status_shows_the_partitions_that_are_assigned)
{
    json_t *status = parse(
        "{\"version\": \"1\", \"state\": \"ready\","
        " \"store\": {\"path\": \"/s\", \"bytes\": 0, \"max_bytes\": 1048576,"
        "  \"remembered\": 2}, \"routes\": [], \"kafka\": ["
        " {\"cluster\": \"default\", \"group\": \"g\", \"topic\": \"orders\","
        "  \"partition\": 11, \"low_water\": 120, \"log_end\": 125,"
        "  \"lag\": 5, \"unsettled\": 3, \"head_age_ms\": 90000},"
        " {\"cluster\": \"default\", \"group\": \"g\", \"topic\": \"orders\","
        "  \"partition\": 2, \"low_water\": null, \"log_end\": null,"
        "  \"lag\": null, \"unsettled\": 0, \"head_age_ms\": 0}]}");
    struct buf out = BUF_INIT;

    tell_status(status, &out);
    expect_has(&out,
               "\nGROUP  TOPIC   PARTITION  LOW-WATER  LAG  UNSETTLED  "
               "HEAD AGE\n"
               "g      orders  11         120        5    3          1.5m\n"
               "g      orders  2          -          -    0\n");
    json_decref(status);
    buf_free(&out);
}

Test(tell, a_status_without_kafka_says_nothing_of_it)
{
    json_t *status =
        parse("{\"version\": \"1\", \"state\": \"ready\", \"store\": {}, "
              "\"routes\": [], \"kafka\": []}");
    struct buf out = BUF_INIT;

    tell_status(status, &out);
    cr_expect(strstr(buf_cstr(&out), "PARTITION") == NULL);
    json_decref(status);
    buf_free(&out);
}

static void expect_request(const char *request, const char *what)
{
    json_t *event = json_pack("{s:s, s:s, s:s, s:i, s:[], s:o}", "route", "a",
                              "id", "e", "state", "DEAD", "deliveries", 1,
                              "history", "request", parse(request));
    struct buf out = BUF_INIT;

    cr_assert(event != NULL);
    tell_event(event, 0, &out);
    expect_has(&out, what);
    json_decref(event);
    buf_free(&out);
}

/* Null, empty and not text are three things. */
Test(tell, a_message_is_shown_with_its_place_key_and_headers)
{
    expect_request(
        "{\"topic\": \"orders\", \"partition\": 3, \"offset\": 42,"
        " \"timestamp\": \"2026-01-02T03:04:05.678Z\", \"key\": \"c\\u001b7\","
        " \"headers\": [[\"trace\", \"x\"], [\"gone\", null], [\"no\", \"\"]],"
        " \"body\": \"{}\"}",
        "\nrequest  orders partition 3 offset 42\n"
        "  timestamp   2026-01-02T03:04:05.678Z\n"
        "  key         \"c?7\"\n"
        "  trace: x\n"
        "  gone is null\n"
        "  no: \n"
        "\n{}\n");
    expect_request("{\"topic\": \"t\", \"partition\": 0, \"offset\": 0,"
                   " \"timestamp\": null, \"key\": null, \"headers\": [],"
                   " \"body\": null}",
                   "offset 0\n  key         null\n");
    expect_request("{\"topic\": \"t\", \"partition\": 0, \"offset\": 0,"
                   " \"timestamp\": null, \"key\": \"\", \"headers\": []}",
                   "offset 0\n  key         \"\"\n");
    expect_request("{\"topic\": \"t\", \"partition\": 0, \"offset\": 0,"
                   " \"timestamp\": null, \"key_base64\": \"/wAB\","
                   " \"headers\": []}",
                   "offset 0\n  key         /wAB (base64)\n");
}

Test(tell, a_request_of_http_is_shown_with_its_method_and_path)
{
    expect_request(
        "{\"method\": \"POST\", \"path\": \"/a\", \"query\": \"b=1\","
        " \"headers\": [[\"X\", \"y\"]], \"body\": \"\"}",
        "\nrequest  POST /a?b=1\n  X: y\n");
}
