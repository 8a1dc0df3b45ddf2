/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/bytes.h"

static const size_t room = sizeof(((struct err *)NULL)->text) - 1;

/* `len` times the letter a. */
static const char *letters(size_t len)
{
    static char text[2000];

    cr_assert(len < sizeof text);
    memset(text, 'a', len);
    text[len] = '\0';
    return text;
}

Test(err, setting_gives_kind_and_text_and_false)
{
    struct err err;

    cr_expect(!err_set(&err, ERR_IO, "read %s: %d", "file", 5));
    cr_expect(err.kind == ERR_IO);
    cr_expect_str_eq(err.text, "read file: 5");
}

Test(err, wrapping_puts_the_context_first_and_keeps_the_kind)
{
    struct err err;

    (void)err_set(&err, ERR_DATA, "MDB_CORRUPTED");
    cr_expect(!err_wrap(&err, "read %s", "meta"));
    cr_expect(!err_wrap(&err, "open store /x"));
    cr_expect(err.kind == ERR_DATA);
    cr_expect_str_eq(err.text, "open store /x: read meta: MDB_CORRUPTED");
}

Test(err, a_caller_may_not_want_it)
{
    cr_expect(!err_set(NULL, ERR_IO, "x"));
    cr_expect(!err_wrap(NULL, "x"));
}

Test(err, a_long_text_is_cut)
{
    struct err err;

    (void)err_set(&err, ERR_IO, "%s", letters(1500));
    cr_expect(strlen(err.text) == room);
    (void)err_wrap(&err, "%s", "context");
    cr_expect(strlen(err.text) == room);
    cr_expect(slice_starts(slice_of(err.text), SLICE("context: aaa")));
}

Test(err, a_long_context_leaves_no_room_for_the_rest)
{
    struct err err;

    for (size_t len = room - 3; len <= room + 1; len++) {
        (void)err_set(&err, ERR_IO, "inner");
        (void)err_wrap(&err, "%s", letters(len));
        cr_expect(strlen(err.text) == room, "%zu", len);
    }
}

Test(err, a_cut_never_leaves_half_a_character)
{
    for (size_t before = room - 5; before <= room; before++) {
        struct err err;
        size_t want = before + (room - before) / 4 * 4;

        (void)err_set(&err, ERR_IO, "%s\xf0\x9f\x98\x80\xf0\x9f\x98\x80",
                      letters(before));
        cr_expect(slice_is_utf8(slice_of(err.text)), "%zu", before);
        cr_expect(strlen(err.text) == want, "%zu: %zu", before,
                  strlen(err.text));
    }
}

Test(err, a_text_stays_one_line)
{
    struct err err;

    (void)err_set(&err, ERR_CONFIG, "bad name \"%s\"", "a\nb\x1b[31m\x7f");
    cr_expect_str_eq(err.text, "bad name \"a b [31m \"");
    (void)err_wrap(&err, "file %s", "c\r\n.json");
    cr_expect_str_eq(err.text, "file c  .json: bad name \"a b [31m \"");
}

Test(err, a_text_may_quote_itself)
{
    struct err err;

    (void)err_set(&err, ERR_IO, "inner");
    (void)err_set(&err, ERR_AGAIN, "outer (%s)", err.text);
    cr_expect_str_eq(err.text, "outer (inner)");
    (void)err_wrap(&err, "%s", err.text);
    cr_expect_str_eq(err.text, "outer (inner): outer (inner)");
}

Test(err, kinds_are_exit_codes)
{
    cr_expect(ERR_USAGE == 64 && ERR_DATA == 65 && ERR_NOT_FOUND == 66);
    cr_expect(ERR_UNREACHABLE == 69 && ERR_IO == 74 && ERR_AGAIN == 75);
    cr_expect(ERR_CONFIG == 78);
}
