/* SPDX-License-Identifier: MIT */
#include "source/event.h"

#include <criterion/criterion.h>
#include <string.h>

static struct value value_of(const char *expression)
{
    const struct slice term = slice_of(expression);
    struct value value = {0};
    struct err err;

    cr_assert(value_add_choice(&value, &term, 1, &err), "%s", err.text);
    return value;
}

static const struct envelope message = {.kind = ENVELOPE_KAFKA,
                                        .topic = SLICE_INIT("t"),
                                        .partition = 1,
                                        .offset = 7,
                                        .body = SLICE_INIT("{\"a\":\"\\t\"}"),
                                        .has_body = true};

Test(event, a_name_is_appended_where_it_can_be_one)
{
    static const struct {
        const char *expression, *name, *why;
    } rows[] = {
        {"kafka:position", "t/1/7", NULL},    {"const:x", "x", NULL},
        {"kafka:key", NULL, "is empty"},      {"json:/a", NULL, "control"},
        {"json:/b", NULL, "not in the body"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct value value = value_of(rows[i].expression);
        struct buf bytes = BUF_INIT;
        const char *why = NULL;
        bool ok;

        buf_add_str(&bytes, "before ");
        ok = event_read_name(&value, &message, &bytes, &why);
        cr_expect_eq(ok, rows[i].name != NULL, "row %zu", i);
        cr_expect_str_eq(buf_cstr(&bytes) + 7, ok ? rows[i].name : "");
        cr_expect(ok ? why == NULL : strstr(why, rows[i].why) != NULL,
                  "row %zu: %s", i, why);
        buf_free(&bytes);
        value_free(&value);
    }
}

/* SHA-256 of "x" begins with 2d711642b726b044. */
Test(event, an_order_that_cannot_be_read_is_not_that_of_no_order)
{
    static const struct {
        const char *expression;
        bool ok;
        uint64_t key;
    } rows[] = {
        {"const:x", true, 0x2d711642b726b044},
        {"kafka:key", true, 0},
        {"json:/b", true, 0},
    };
    const struct envelope broken = {
        .kind = ENVELOPE_KAFKA, .body = SLICE_INIT("{"), .has_body = true};
    struct value none = {0}, value;
    struct buf scratch = BUF_INIT;
    const char *why = NULL;
    uint64_t key = 5;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        value = value_of(rows[i].expression);
        key = 5;
        cr_expect_eq(event_read_order(&value, &message, &scratch, &key, &why),
                     rows[i].ok, "row %zu", i);
        cr_expect_eq(key, rows[i].key, "row %zu: %lx", i, (unsigned long)key);
        cr_expect_eq(scratch.len, 0);
        value_free(&value);
    }
    key = 5;
    cr_expect(event_read_order(&none, &message, &scratch, &key, &why));
    cr_expect_eq(key, 0);
    value = value_of("json:/b");
    cr_expect_not(event_read_order(&value, &broken, &scratch, &key, &why));
    cr_expect_eq(key, 0);
    value_free(&value);
    buf_free(&scratch);
}
