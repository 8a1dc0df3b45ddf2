/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <criterion/criterion.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

typedef void (*writer)(struct slice, struct buf *);
typedef bool (*parser)(struct slice, struct buf *);

struct pair {
    struct slice data;
    struct slice text;
};

/* What stood in the buffer before stays there. */
static void expect_written(writer write, const struct pair *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct buf out = BUF_INIT;

        buf_add_str(&out, "=");
        write(rows[i].data, &out);
        cr_expect(slice_eq(slice_from(buf_slice(&out), 1), rows[i].text),
                  "row %zu: %s", i, buf_cstr(&out));
        cr_expect(out.data[0] == '=');
        buf_free(&out);
    }
}

static void expect_read(parser parse, const struct pair *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct buf out = BUF_INIT;

        buf_add_str(&out, "=");
        cr_expect(parse(rows[i].text, &out), "row %zu", i);
        cr_expect(slice_eq(slice_from(buf_slice(&out), 1), rows[i].data),
                  "row %zu: %s", i, buf_cstr(&out));
        buf_free(&out);
    }
}

static void expect_refused(parser parse, const struct slice *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct buf out = BUF_INIT;

        buf_add_str(&out, "=");
        cr_expect(!parse(rows[i], &out), "row %zu: %.*s", i, (int)rows[i].len,
                  rows[i].data);
        cr_expect(slice_eq(buf_slice(&out), SLICE("=")), "row %zu", i);
        buf_free(&out);
    }
}

/* Every byte, written and read again. */
static void expect_round_trip(writer write, parser parse)
{
    struct buf data = BUF_INIT;

    for (int i = 0; i < 20000; i++) {
        buf_add_byte(&data, (char)(i * 7));
    }
    for (size_t len = 0; len <= data.len; len += len < 300 ? 1 : 2500) {
        struct slice part = {data.data, len};
        struct buf text = BUF_INIT;
        struct buf back = BUF_INIT;

        write(part, &text);
        cr_expect(parse(buf_slice(&text), &back), "%zu", len);
        cr_expect(slice_eq(buf_slice(&back), part), "%zu", len);
        buf_free(&text);
        buf_free(&back);
    }
    buf_free(&data);
}

Test(text, hex)
{
    static const struct pair both[] = {
        {SLICE_INIT(""), SLICE_INIT("")},
        {SLICE_INIT("\x00\x01\x9a\xbc\xde\xff"), SLICE_INIT("00019abcdeff")},
    };
    static const struct pair upper[] = {
        {SLICE_INIT("\xab\xcd\xef"), SLICE_INIT("ABCDeF")}};
    static const struct slice bad[] = {
        SLICE_INIT("0"),   SLICE_INIT("0g"),   SLICE_INIT("g0"),
        SLICE_INIT("00 "), SLICE_INIT("0x00"), SLICE_INIT("00:0"),
        SLICE_INIT("@@"),  SLICE_INIT("00``"), SLICE_INIT("0/:0"),
        SLICE_INIT("000"),
    };

    expect_written(text_hex, both, COUNT(both));
    expect_read(text_unhex, both, COUNT(both));
    expect_read(text_unhex, upper, COUNT(upper));
    expect_refused(text_unhex, bad, COUNT(bad));
    expect_round_trip(text_hex, text_unhex);
}

Test(text, one_hex_digit)
{
    for (int byte = 0; byte < 256; byte++) {
        static const char digits[] = "0123456789abcdef";
        const char *at = byte == 0 ? NULL : strchr(digits, byte);
        int want = at == NULL ? -1 : (int)(at - digits);

        if (byte >= 'A' && byte <= 'F') {
            want = byte - 'A' + 10;
        }
        cr_expect(text_hex_digit((char)byte) == want, "%d", byte);
    }
}

/* RFC 4648, 10, without the padding where it is optional. */
static const struct pair base64_rows[] = {
    {SLICE_INIT(""), SLICE_INIT("")},
    {SLICE_INIT("f"), SLICE_INIT("Zg==")},
    {SLICE_INIT("fo"), SLICE_INIT("Zm8=")},
    {SLICE_INIT("foo"), SLICE_INIT("Zm9v")},
    {SLICE_INIT("foob"), SLICE_INIT("Zm9vYg==")},
    {SLICE_INIT("fooba"), SLICE_INIT("Zm9vYmE=")},
    {SLICE_INIT("foobar"), SLICE_INIT("Zm9vYmFy")},
    {SLICE_INIT("\xfb\xff\xbf"), SLICE_INIT("+/+/")},
};

Test(text, base64)
{
    static const struct pair bare[] = {
        {SLICE_INIT("f"), SLICE_INIT("Zg")},
        {SLICE_INIT("fo"), SLICE_INIT("Zm8")},
        {SLICE_INIT("foob"), SLICE_INIT("Zm9vYg")},
    };

    expect_written(text_base64, base64_rows, COUNT(base64_rows));
    expect_read(text_unbase64, base64_rows, COUNT(base64_rows));
    expect_read(text_unbase64, bare, COUNT(bare));
    expect_round_trip(text_base64, text_unbase64);
}

Test(text, base64_has_one_reading)
{
    static const struct slice bad[] = {
        SLICE_INIT("A"),        SLICE_INIT("AAAAA"),
        SLICE_INIT("Z"),        SLICE_INIT("Zm9vY"),
        SLICE_INIT("Zg="),      SLICE_INIT("Zg==="),
        SLICE_INIT("Zm8=="),    SLICE_INIT("Zm9v="),
        SLICE_INIT("Zm9v===="), SLICE_INIT("="),
        SLICE_INIT("=="),       SLICE_INIT("===="),
        SLICE_INIT("Zg==Zg=="), SLICE_INIT("Z=g="),
        SLICE_INIT("Zh=="),     SLICE_INIT("Zh"),
        SLICE_INIT("Zm9="),     SLICE_INIT("Zm9"),
        SLICE_INIT(" Zm9v"),    SLICE_INIT("Zm9v\n"),
        SLICE_INIT("Zm 9v"),    SLICE_INIT("Zm9v\r\nYmFy"),
        SLICE_INIT("Zm-_"),     SLICE_INIT("Zm9\0"),
        SLICE_INIT("Zm9\xff"),  SLICE_INIT("Zm@["),
        SLICE_INIT("Zm`{"),     SLICE_INIT("Zm.:"),
    };

    expect_refused(text_unbase64, bad, COUNT(bad));
}

Test(text, base64url)
{
    static const struct pair good[] = {
        {SLICE_INIT("\xfb\xff\xbf"), SLICE_INIT("-_-_")},
        {SLICE_INIT("f"), SLICE_INIT("Zg")},
        {SLICE_INIT("f"), SLICE_INIT("Zg==")},
    };
    static const struct slice bad[] = {SLICE_INIT("+/+/"), SLICE_INIT("Zh")};

    expect_read(text_unbase64url, good, COUNT(good));
    expect_refused(text_unbase64url, bad, COUNT(bad));
}

/* RFC 4648, 10, without the padding. */
Test(text, base32)
{
    static const struct pair rows[] = {
        {SLICE_INIT(""), SLICE_INIT("")},
        {SLICE_INIT("f"), SLICE_INIT("MY")},
        {SLICE_INIT("fo"), SLICE_INIT("MZXQ")},
        {SLICE_INIT("foo"), SLICE_INIT("MZXW6")},
        {SLICE_INIT("foob"), SLICE_INIT("MZXW6YQ")},
        {SLICE_INIT("fooba"), SLICE_INIT("MZXW6YTB")},
        {SLICE_INIT("foobar"), SLICE_INIT("MZXW6YTBOI")},
        {SLICE_INIT("\xff\xff\xff\xff\xff\x00"), SLICE_INIT("77777777AA")},
    };

    expect_written(text_base32, rows, COUNT(rows));
}

Test(text, percent)
{
    static const struct pair both[] = {
        {SLICE_INIT(""), SLICE_INIT("")},
        {SLICE_INIT("azAZ09-._~"), SLICE_INIT("azAZ09-._~")},
        {SLICE_INIT("a/b c%+"), SLICE_INIT("a%2Fb%20c%25%2B")},
        {SLICE_INIT("\0\xff\xc3\xa9"), SLICE_INIT("%00%FF%C3%A9")},
        {SLICE_INIT("@[`{:/"), SLICE_INIT("%40%5B%60%7B%3A%2F")},
    };
    static const struct pair loose[] = {
        {SLICE_INIT("a:b+c\xc3\xa9"), SLICE_INIT("a:b+c\xc3\xa9")},
        {SLICE_INIT("a/b"), SLICE_INIT("a%2fb")},
        {SLICE_INIT("%41"), SLICE_INIT("%2541")},
    };
    static const struct slice bad[] = {
        SLICE_INIT("%"),   SLICE_INIT("a%4"),  SLICE_INIT("%4g"),
        SLICE_INIT("%%"),  SLICE_INIT("%-41"), SLICE_INIT("%u0041"),
        SLICE_INIT("ab%"),
    };

    expect_written(text_percent, both, COUNT(both));
    expect_read(text_unpercent, both, COUNT(both));
    expect_read(text_unpercent, loose, COUNT(loose));
    expect_refused(text_unpercent, bad, COUNT(bad));
    expect_round_trip(text_percent, text_unpercent);
}

Test(text, decimal_numbers)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {
        {"0", 0},
        {"7", 7},
        {"10", 10},
        {"18446744073709551609", 18446744073709551609ULL},
        {"18446744073709551615", UINT64_MAX},
    };
    static const char *const bad[] = {
        "",
        " 1",
        "1 ",
        "+1",
        "-1",
        "00",
        "01",
        "1a",
        "0x1",
        "1.0",
        "1e3",
        "/",
        ":",
        "18446744073709551616",
        "18446744073709551620",
        "99999999999999999999",
        "184467440737095516150",
    };
    uint64_t value = 42;

    for (size_t i = 0; i < COUNT(bad); i++) {
        cr_expect(!text_u64(slice_of(bad[i]), &value), "%s", bad[i]);
        cr_expect(value == 42, "%s", bad[i]);
    }
    for (size_t i = 0; i < COUNT(good); i++) {
        cr_expect(text_u64(slice_of(good[i].text), &value), "%s", good[i].text);
        cr_expect(value == good[i].value, "%s", good[i].text);
    }
}

Test(text, durations_are_read)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"0ms", 0},          {"0s", 0},
        {"150ms", 150},      {"10s", 10000},
        {"5m", 300000},      {"1h", 3600000},
        {"35d", 3024000000}, {"1.5s", 1500},
        {"0.25s", 250},      {"1.234s", 1234},
        {"1.5m", 90000},     {"0.5d", 43200000},
        {"2.0ms", 2},        {"106751991166d", 9223372036742400000},
    };
    static const char *const bad[] = {
        "",
        "10",
        "s",
        "10 s",
        " 10s",
        "10s ",
        "-1s",
        "+1s",
        "1S",
        "1sec",
        "1us",
        "1w",
        "1y",
        "05s",
        "1s500ms",
        "1.s",
        ".5s",
        "1.5",
        "0.5ms",
        "1.2345s",
        "1e3s",
        "1,5s",
        "1..5s",
        "0.0001s",
        "106751991168d",
        "9223372036854775808ms",
        "99999999999999999999ms",
    };
    int64_t ms = 42;

    for (size_t i = 0; i < COUNT(bad); i++) {
        cr_expect(!text_duration_ms(slice_of(bad[i]), &ms), "%s", bad[i]);
        cr_expect(ms == 42, "%s", bad[i]);
    }
    for (size_t i = 0; i < COUNT(good); i++) {
        cr_expect(text_duration_ms(slice_of(good[i].text), &ms), "%s",
                  good[i].text);
        cr_expect(ms == good[i].ms, "%s: %lld", good[i].text, (long long)ms);
    }
}

Test(text, durations_are_written_for_people)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "0ms"},
        {1, "1ms"},
        {999, "999ms"},
        {1000, "1s"},
        {1099, "1s"},
        {1234, "1.2s"},
        {59999, "59.9s"},
        {60000, "1m"},
        {90000, "1.5m"},
        {300000, "5m"},
        {3599999, "59.9m"},
        {3600000, "1h"},
        {86399999, "23.9h"},
        {86400000, "1d"},
        {259200000, "3d"},
        {129600000, "1.5d"},
        {3024000000, "35d"},
        {-1500, "-1.5s"},
        {INT64_MAX, "106751991167.3d"},
        {INT64_MIN, "-106751991167.3d"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct buf out = BUF_INIT;

        text_put_duration(&out, rows[i].ms);
        cr_expect_str_eq(buf_cstr(&out), rows[i].text);
        buf_free(&out);
    }
}

Test(text, sizes_are_read_and_written)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } both[] = {
        {"0", 0},
        {"1", 1},
        {"512", 512},
        {"1023", 1023},
        {"1KiB", 1024},
        {"1025", 1025},
        {"64KiB", 65536},
        {"1MiB", 1048576},
        {"1536KiB", 1572864},
        {"16GiB", 17179869184},
        {"17179869183GiB", 18446744072635809792ULL},
        {"18446744073709551615", UINT64_MAX},
    };
    static const char *const bad[] = {
        "",
        "KiB",
        "1K",
        "1k",
        "1kb",
        "1KB",
        "1kib",
        "1TiB",
        "1 KiB",
        "1.5MiB",
        "-1",
        "01",
        "1KiB ",
        "1KiBMiB",
        "1B",
        "17179869184GiB",
        "18446744073709551616",
    };
    uint64_t bytes = 42;

    for (size_t i = 0; i < COUNT(bad); i++) {
        cr_expect(!text_size(slice_of(bad[i]), &bytes), "%s", bad[i]);
        cr_expect(bytes == 42, "%s", bad[i]);
    }
    for (size_t i = 0; i < COUNT(both); i++) {
        struct buf out = BUF_INIT;

        cr_expect(text_size(slice_of(both[i].text), &bytes));
        cr_expect(bytes == both[i].bytes, "%s", both[i].text);
        text_put_size(&out, both[i].bytes);
        cr_expect_str_eq(buf_cstr(&out), both[i].text);
        buf_free(&out);
    }
}

/* Seconds as `date -u -d … +%s` gives them. */
static const struct {
    const char *text;
    int64_t wall_ms;
} times[] = {
    {"1970-01-01T00:00:00.000Z", 0},
    {"2026-11-30T18:38:03.120Z", 1796063883120},
    {"2000-02-29T00:00:00.000Z", 951782400000},
    {"2024-02-29T12:00:00.007Z", 1709208000007},
    {"1985-04-12T23:20:50.520Z", 482196050520},
    {"1969-12-31T23:59:59.999Z", -1},
    {"1937-01-01T11:40:27.870Z", -1041337172130},
    {"1900-02-28T23:59:59.000Z", -2203891201000},
    {"0001-01-01T00:00:00.000Z", -62135596800000},
    {"0000-01-01T00:00:00.000Z", -62167219200000},
    {"9999-12-31T23:59:59.999Z", 253402300799999},
};

Test(text, times_are_written_and_read_back)
{
    for (size_t i = 0; i < COUNT(times); i++) {
        char text[TEXT_TIME_SIZE];
        int64_t wall_ms = 42;

        text_time(times[i].wall_ms, text);
        cr_expect_str_eq(text, times[i].text);
        cr_expect(text_parse_time(slice_of(times[i].text), &wall_ms));
        cr_expect(wall_ms == times[i].wall_ms, "%s: %lld", times[i].text,
                  (long long)wall_ms);
    }
}

Test(text, a_time_that_has_no_four_digit_year_is_shown_as_the_nearer_end)
{
    char text[TEXT_TIME_SIZE];

    text_time(253402300800000, text);
    cr_expect_str_eq(text, "9999-12-31T23:59:59.999Z");
    text_time(INT64_MAX, text);
    cr_expect_str_eq(text, "9999-12-31T23:59:59.999Z");
    text_time(-62167219200001, text);
    cr_expect_str_eq(text, "0000-01-01T00:00:00.000Z");
    text_time(INT64_MIN, text);
    cr_expect_str_eq(text, "0000-01-01T00:00:00.000Z");
}

/* RFC 3339, 5.6 and 5.8. */
Test(text, times_have_other_forms_too)
{
    static const struct {
        const char *text;
        int64_t wall_ms;
    } rows[] = {
        {"1996-12-19T16:39:57-08:00", 851042397000},
        {"1996-12-20T00:39:57Z", 851042397000},
        {"1996-12-20t00:39:57z", 851042397000},
        {"1996-12-20T06:09:57+05:30", 851042397000},
        {"1996-12-20T00:39:57-00:00", 851042397000},
        {"1996-12-20T00:39:57.1Z", 851042397100},
        {"1996-12-20T00:39:57.12Z", 851042397120},
        {"1996-12-20T00:39:57.1239999999Z", 851042397123},
        {"1996-12-20T00:39:57.0009Z", 851042397000},
        {"1990-12-31T23:59:60Z", 662688000000},
        {"1990-12-31T15:59:60-08:00", 662688000000},
        {"1960-12-31T23:59:60Z", -283996800000},
        {"0000-01-01T00:00:00+23:59", -62167305540000},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t wall_ms = 42;

        cr_expect(text_parse_time(slice_of(rows[i].text), &wall_ms), "%s",
                  rows[i].text);
        cr_expect(wall_ms == rows[i].wall_ms, "%s: %lld", rows[i].text,
                  (long long)wall_ms);
    }
}

Test(text, what_is_no_time_is_refused)
{
    static const char *const bad[] = {
        "",
        "2026",
        "2026-11-30",
        "2026-11-30T18:38:03",
        "2026-11-30 18:38:03Z",
        "2026-11-30T18:38Z",
        "2026-11-30T18:38:03Z ",
        " 2026-11-30T18:38:03Z",
        "2026-11-30T18:38:03ZZ",
        "2026-11-30T18:38:03.Z",
        "2026-11-30T18:38:03,5Z",
        "2026-11-30T18:38:03.5",
        "2026-11-30T18:38:03+01",
        "2026-11-30T18:38:03+0100",
        "2026-11-30T18:38:03+24:00",
        "2026-11-30T18:38:03+01:60",
        "2026-11-30T18:38:03+01:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-11-31T00:00:00Z",
        "2026-11-00T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "2025-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2000-02-30T00:00:00Z",
        "2026-11-30T24:00:00Z",
        "2026-11-30T18:60:00Z",
        "2026-11-30T18:38:61Z",
        "2026-11-30T18:38:60Z",
        "1990-12-31T23:59:60-08:00",
        "26-11-30T18:38:03Z",
        "02026-11-30T18:38:03Z",
        "2026-1-30T18:38:03Z",
        "2026-11-30T8:38:03Z",
        "-026-11-30T18:38:03Z",
        "2026-+1-30T18:38:03Z",
        "2026/11/30T18:38:03Z",
        "2026-11-30T18.38.03Z",
        "20261130T183803Z",
        "1796063883",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t wall_ms = 42;

        cr_expect(!text_parse_time(slice_of(bad[i]), &wall_ms), "%s", bad[i]);
        cr_expect(wall_ms == 42, "%s", bad[i]);
    }
}

Test(text, every_beginning_of_a_time_is_refused)
{
    struct slice whole = SLICE("2026-11-30T18:38:03.120+01:30");
    int64_t wall_ms;

    cr_expect(text_parse_time(whole, &wall_ms));
    for (size_t len = 0; len < whole.len; len++) {
        cr_expect(!text_parse_time((struct slice){whole.data, len}, &wall_ms),
                  "%zu", len);
    }
}
