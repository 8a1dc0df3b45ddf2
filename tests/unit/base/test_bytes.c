/* SPDX-License-Identifier: MIT */
#include "base/bytes.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static int sign(int value)
{
    return (value > 0) - (value < 0);
}

Test(slice, a_c_string_and_null_become_slices)
{
    cr_expect(slice_of("abc").len == 3);
    cr_expect(slice_of("").len == 0);
    cr_expect(slice_of(NULL).len == 0);
    cr_expect(SLICE("a\0b").len == 3);
}

Test(slice, equal_means_every_byte)
{
    cr_expect(slice_eq(SLICE("a\0b"), SLICE("a\0b")));
    cr_expect(!slice_eq(SLICE("a\0b"), SLICE("a\0c")));
    cr_expect(!slice_eq(SLICE("ab"), SLICE("abc")));
    cr_expect(slice_eq(SLICE(""), slice_of(NULL)));
}

Test(slice, case_is_ignored_for_ascii_letters_only)
{
    cr_expect(slice_eq_nocase(SLICE("Content-TYPE"), SLICE("content-type")));
    cr_expect(!slice_eq_nocase(SLICE("["), SLICE("{")));
    cr_expect(!slice_eq_nocase(SLICE("@"), SLICE("`")));
    cr_expect(!slice_eq_nocase(SLICE("\xc4"), SLICE("\xe4")));
    cr_expect(!slice_eq_nocase(SLICE("ab"), SLICE("a")));
}

Test(slice, order_is_bytewise_and_a_prefix_comes_first)
{
    static const struct slice rising[] = {
        SLICE_INIT(""),   SLICE_INIT("\0"), SLICE_INIT("a"),
        SLICE_INIT("aa"), SLICE_INIT("b"),  SLICE_INIT("\xff"),
    };

    for (size_t i = 0; i < COUNT(rising); i++) {
        for (size_t j = 0; j < COUNT(rising); j++) {
            cr_expect(sign(slice_cmp(rising[i], rising[j])) ==
                          (i > j) - (i < j),
                      "%zu %zu", i, j);
        }
    }
}

Test(slice, a_prefix_starts_a_text)
{
    cr_expect(slice_starts(SLICE("sha256=x"), SLICE("sha256=")));
    cr_expect(slice_starts(SLICE("a"), SLICE("")));
    cr_expect(slice_starts(SLICE("a"), SLICE("a")));
    cr_expect(!slice_starts(SLICE("a"), SLICE("ab")));
    cr_expect(!slice_starts(SLICE("xa"), SLICE("a")));
}

Test(slice, a_byte_is_found_or_the_length_given)
{
    cr_expect(slice_find(SLICE("a,b,c"), ',') == 1);
    cr_expect(slice_find(SLICE("abc"), ',') == 3);
    cr_expect(slice_find(SLICE("a\0b"), '\0') == 1);
    cr_expect(slice_find(slice_of(NULL), 'a') == 0);
}

Test(slice, the_rest_starts_at_the_offset)
{
    cr_expect(slice_eq(slice_from(SLICE("abc"), 1), SLICE("bc")));
    cr_expect(slice_eq(slice_from(SLICE("abc"), 0), SLICE("abc")));
    cr_expect(slice_from(SLICE("abc"), 3).len == 0);
    cr_expect(slice_from(slice_of(NULL), 0).data == NULL);
}

Test(slice, the_rest_behind_the_end_is_a_mistake, .signal = SIGABRT)
{
    (void)slice_from(SLICE("abc"), 4);
}

Test(slice, blanks_around_are_trimmed)
{
    cr_expect(slice_eq(slice_trim(SLICE(" \ta b\t ")), SLICE("a b")));
    cr_expect(slice_eq(slice_trim(SLICE("a\n")), SLICE("a\n")));
    cr_expect(slice_trim(SLICE(" \t ")).len == 0);
    cr_expect(slice_trim(slice_of(NULL)).len == 0);
}

struct utf8_row {
    struct slice text;
    size_t valid; /* bytes of the beginning */
};

static const struct utf8_row utf8_rows[] = {
    {SLICE_INIT(""), 0},
    {SLICE_INIT("plain\0ascii\x7f"), 12},
    {SLICE_INIT("\xc2\x80\xdf\xbf"), 4},
    {SLICE_INIT("\xe0\xa0\x80\xef\xbf\xbf"), 6},
    {SLICE_INIT("\xed\x9f\xbf\xee\x80\x80"), 6},
    {SLICE_INIT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), 8},
    {SLICE_INIT("12345678\xc3\xa9"), 10},
    /* invalid from the last byte or sequence on */
    {SLICE_INIT("a\x80"), 1},
    {SLICE_INIT("a\xbf"), 1},
    {SLICE_INIT("ab\xc0\x80"), 2},
    {SLICE_INIT("ab\xc1\xbf"), 2},
    {SLICE_INIT("\xc2"), 0},
    {SLICE_INIT("\xc2\x20"), 0},
    {SLICE_INIT("\xc2\xc0"), 0},
    {SLICE_INIT("\xe0\x9f\xbf"), 0},
    {SLICE_INIT("\xe2\x82"), 0},
    {SLICE_INIT("\xe2\x82\x20"), 0},
    {SLICE_INIT("\xed\xa0\x80"), 0},
    {SLICE_INIT("\xed\xbf\xbf"), 0},
    {SLICE_INIT("\xf0\x8f\xbf\xbf"), 0},
    {SLICE_INIT("\xf0\x9f\x98"), 0},
    {SLICE_INIT("\xf0\x9f\x98\xc0"), 0},
    {SLICE_INIT("\xf4\x90\x80\x80"), 0},
    {SLICE_INIT("\xf5\x80\x80\x80"), 0},
    {SLICE_INIT("\xfe"), 0},
    {SLICE_INIT("\xff"), 0},
    {{"\xc3\xa9", 1}, 0},
    {{"\xe2\x82\xac", 2}, 0},
    {{"\xf0\x9f\x98\x80", 3}, 0},
    {SLICE_INIT("12345678\xff"), 8},
    {SLICE_INIT("1234567\xff"), 7},
    {SLICE_INIT("\xe2\x82\xac"
                "12345678\xe2\x82"),
     11},
};

Test(slice, utf8_is_valid_up_to_the_first_wrong_character)
{
    for (size_t i = 0; i < COUNT(utf8_rows); i++) {
        const struct utf8_row *row = &utf8_rows[i];

        cr_expect(slice_utf8_prefix(row->text) == row->valid, "row %zu: %zu", i,
                  slice_utf8_prefix(row->text));
        cr_expect(slice_is_utf8(row->text) == (row->valid == row->text.len),
                  "row %zu", i);
    }
}

Test(buf, what_is_added_stands_in_order)
{
    struct buf buf = BUF_INIT;

    buf_add(&buf, "ab", 2);
    buf_add(&buf, NULL, 0);
    buf_add_byte(&buf, '\0');
    buf_add_str(&buf, "cd");
    buf_add_slice(&buf, SLICE("ef"));
    buf_printf(&buf, "%d-%s", 42, "x");
    cr_expect(slice_eq(buf_slice(&buf), SLICE("ab\0cdef42-x")));
    buf_clear(&buf);
    cr_expect(buf_slice(&buf).len == 0);
    buf_free(&buf);
    cr_expect(buf.data == NULL && buf.cap == 0);
    buf_free(&buf);
}

Test(buf, it_grows_and_keeps_its_content)
{
    struct buf buf = BUF_INIT;

    for (size_t i = 0; i < 10000; i++) {
        buf_add_byte(&buf, (char)(i % 251));
    }
    cr_assert(buf.len == 10000);
    for (size_t i = 0; i < 10000; i++) {
        cr_assert(buf.data[i] == (char)(i % 251), "%zu", i);
    }
    buf_free(&buf);
}

Test(buf, a_reservation_holds)
{
    struct buf buf = BUF_INIT;
    const char *at;

    buf_add_str(&buf, "x");
    buf_reserve(&buf, 100000);
    at = buf.data;
    for (size_t i = 0; i < 100000; i++) {
        buf_add_byte(&buf, 'y');
    }
    cr_expect(buf.data == at);
    buf_free(&buf);
}

Test(buf, an_impossible_size_is_a_mistake, .signal = SIGABRT)
{
    struct buf buf = BUF_INIT;

    buf_reserve(&buf, SIZE_MAX);
}

Test(buf, a_c_string_has_a_nul_that_does_not_count)
{
    struct buf buf = BUF_INIT;

    cr_expect_str_eq(buf_cstr(&buf), "");
    for (size_t i = 0; i < 64; i++) {
        buf_add_byte(&buf, 'a');
    }
    cr_expect(strlen(buf_cstr(&buf)) == 64);
    cr_expect(buf.len == 64);
    buf_free(&buf);
}

Test(buf, printed_text_may_be_long)
{
    struct buf buf = BUF_INIT;

    buf_printf(&buf, "%1000s|", "x");
    cr_expect(buf.len == 1001);
    cr_expect(buf.data[999] == 'x' && buf.data[1000] == '|');
    buf_free(&buf);
}

Test(bytes, integers_are_big_endian)
{
    struct buf buf = BUF_INIT;

    buf_add_be16(&buf, 0x0102);
    buf_add_be32(&buf, 0xf3f4f5f6);
    buf_add_be64(&buf, 0x8182838485868788);
    cr_expect(
        slice_eq(buf_slice(&buf), SLICE("\x01\x02\xf3\xf4\xf5\xf6"
                                        "\x81\x82\x83\x84\x85\x86\x87\x88")));
    cr_expect(bytes_get_be16(buf.data) == 0x0102);
    cr_expect(bytes_get_be32(buf.data + 2) == 0xf3f4f5f6);
    cr_expect(bytes_get_be64(buf.data + 6) == 0x8182838485868788);
    buf_free(&buf);
}

Test(reader, values_come_back_in_order)
{
    struct reader reader = {SLICE("\xff\x01\x02\x80\0\0\x01"
                                  "\x80\0\0\0\0\0\0\x02tail"),
                            false};

    cr_expect(reader_byte(&reader) == 0xff);
    cr_expect(reader_be16(&reader) == 0x0102);
    cr_expect(reader_be32(&reader) == 0x80000001);
    cr_expect(reader_be64(&reader) == 0x8000000000000002);
    cr_expect(slice_eq(reader_take(&reader, 3), SLICE("tai")));
    cr_expect(slice_eq(reader.rest, SLICE("l")));
    cr_expect(!reader.bad);
}

Test(reader, the_first_read_past_the_end_spoils_the_rest)
{
    struct reader reader = {SLICE("\x01\x02\x03"), false};

    cr_expect(reader_be32(&reader) == 0);
    cr_expect(reader.bad);
    cr_expect(reader_byte(&reader) == 0);
    cr_expect(reader_be16(&reader) == 0);
    cr_expect(reader_be64(&reader) == 0);
    cr_expect(reader_take(&reader, 1).len == 0);
    cr_expect(reader.rest.len == 3);
}

Test(reader, nothing_can_be_taken_from_nothing)
{
    struct reader reader = {{NULL, 0}, false};

    cr_expect(reader_take(&reader, 0).len == 0);
    cr_expect(!reader.bad);
    cr_expect(reader_take(&reader, SIZE_MAX).len == 0);
    cr_expect(reader.bad);
}

Test(mem, new_memory_is_zero)
{
    unsigned char *at = mem_new(1000, 3);

    for (size_t i = 0; i < 3000; i++) {
        cr_assert(at[i] == 0);
    }
    free(at);
    free(mem_new(0, 0));
}

Test(mem, growing_keeps_the_content)
{
    char *at = mem_dup(SLICE("abc"));

    at = mem_grow(at, 100, 10);
    cr_expect_str_eq(at, "abc");
    free(at);
}

Test(mem, a_copy_ends_with_a_nul)
{
    char *part = mem_dup((struct slice){"abcdef", 3});
    char *none = mem_dup(slice_of(NULL));
    char *text = mem_strdup("xyz");

    cr_expect_str_eq(part, "abc");
    cr_expect_str_eq(none, "");
    cr_expect_str_eq(text, "xyz");
    free(part);
    free(none);
    free(text);
}
