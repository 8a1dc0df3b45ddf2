/* SPDX-License-Identifier: MIT */
#include "source/http_vet.h"

#include <criterion/criterion.h>
#include <string.h>

enum { HEADERS_MAX = 6 };

struct header_text {
    const char *name, *value;
};

static size_t fill(const struct header_text *texts, struct header *out)
{
    size_t n = 0;
    for (; n < HEADERS_MAX && texts[n].name != NULL; n++)
        out[n] = (struct header){.name = slice_of(texts[n].name),
                                 .value = slice_of(texts[n].value)};
    return n;
}

Test(http_vet, only_what_has_one_reading_passes)
{
    static const struct {
        struct header_text headers[HEADERS_MAX];
        bool is_http10;
        unsigned status;
    } rows[] = {
        {{{"Host", "a"}}, false, 0},
        {{{"Host", ""}}, false, 0},
        {{{NULL, NULL}}, true, 0},
        {{{NULL, NULL}}, false, 400},
        {{{"Host", "a"}, {"host", "a"}}, false, 400},
        {{{"Host", "a"}, {"Host", "b"}}, true, 400},
        {{{"Host", "a"}, {"Content-Length", "0"}}, false, 0},
        {{{"Host", "a"}, {"Content-Length", "0007"}}, false, 0},
        {{{"Host", "a"}, {"Content-Length", ""}}, false, 400},
        {{{"Host", "a"}, {"Content-Length", "+1"}}, false, 400},
        {{{"Host", "a"}, {"Content-Length", "-1"}}, false, 400},
        {{{"Host", "a"}, {"Content-Length", "1 "}}, false, 400},
        {{{"Host", "a"}, {"Content-Length", "1,1"}}, false, 400},
        {{{"Host", "a"}, {"Content-Length", "0x1"}}, false, 400},
        {{{"Host", "a"}, {"Content-Length", "18446744073709551616"}},
         false,
         400},
        {{{"Host", "a"}, {"Content-Length", "1"}, {"content-length", "1"}},
         false,
         400},
        {{{"Host", "a"}, {"Transfer-Encoding", "chunked"}}, false, 0},
        {{{"Host", "a"}, {"Transfer-Encoding", "Chunked"}}, false, 0},
        {{{"Host", "a"}, {"Transfer-Encoding", "chunked"}}, true, 400},
        {{{"Host", "a"}, {"Transfer-Encoding", "chunked "}}, false, 400},
        {{{"Host", "a"}, {"Transfer-Encoding", "gzip, chunked"}}, false, 400},
        {{{"Host", "a"}, {"Transfer-Encoding", "identity"}}, false, 400},
        {{{"Host", "a"}, {"Transfer-Encoding", ""}}, false, 400},
        {{{"Host", "a"},
          {"Transfer-Encoding", "chunked"},
          {"Transfer-Encoding", "chunked"}},
         false,
         400},
        {{{"Host", "a"},
          {"Content-Length", "0"},
          {"Transfer-Encoding", "chunked"}},
         false,
         400},
        {{{"Host", "a"}, {"Content-Type", "a"}, {"Content-Type", "a"}},
         false,
         400},
        {{{"Host", "a"},
          {"Content-Encoding", "gzip"},
          {"Content-Encoding", "br"}},
         false,
         400},
        {{{"Host", "a"}, {"X Y", "1"}}, false, 400},
        {{{"Host", "a"}, {"X:", "1"}}, false, 400},
        {{{"Host", "a"}, {"X ", "1"}}, false, 400},
        {{{"Host", "a"}, {"", "1"}}, false, 400},
        {{{"Host", "a"}, {"X\x80", "1"}}, false, 400},
        {{{"Host", "a"}, {"!#$%&'*+-.^_`|~09azAZ", "1"}}, false, 0},
        {{{"Host", "a"}, {"X", "tab\tand \x80 are fine"}}, false, 0},
        {{{"Host", "a"}, {"X", "a\rb"}}, false, 400},
        {{{"Host", "a"}, {"X", "a\nb"}}, false, 400},
        {{{"Host", "a"}, {"X", "\x1f"}}, false, 400},
        {{{"Host", "a"}, {"X", "\x7f"}}, false, 400},
        {{{"Host", "a"}, {"X", "1"}, {"X", "2"}}, false, 0},
        {{{"Host", "a"}, {"Expect", "100-Continue"}}, false, 0},
        {{{"Host", "a"}, {"Expect", "102-processing"}}, false, 417},
        {{{"Host", "a"}, {"Expect", "x"}}, true, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct header headers[HEADERS_MAX];
        struct http_framing framing;
        const char *why;
        size_t n = fill(rows[i].headers, headers);
        unsigned status =
            http_vet(headers, n, !rows[i].is_http10, &framing, &why);
        cr_assert_eq(status, rows[i].status, "row %zu: %u", i, status);
        cr_assert_eq(why != NULL, status != 0, "row %zu", i);
    }
}

Test(http_vet, the_framing_is_told)
{
    struct header headers[HEADERS_MAX];
    struct http_framing framing;
    const char *why;
    static const struct header_text with_length[] = {
        {"Host", "a"},
        {"Content-Length", "012"},
        {"Expect", "100-continue"},
        {"Content-Encoding", " GZIP "},
        {NULL, NULL}};
    static const struct header_text chunked[] = {
        {"Host", "a"},
        {"Transfer-Encoding", "chunked"},
        {"Content-Encoding", "deflate"},
        {NULL, NULL}};

    cr_assert_eq(
        http_vet(headers, fill(with_length, headers), true, &framing, &why), 0);
    cr_assert(framing.has_length);
    cr_assert_eq(framing.length, 12);
    cr_assert(framing.expects_continue);
    cr_assert_not(framing.is_chunked);
    cr_assert_eq(framing.coding, HTTP_GZIP);

    cr_assert_eq(
        http_vet(headers, fill(chunked, headers), true, &framing, &why), 0);
    cr_assert(framing.is_chunked);
    cr_assert_not(framing.has_length);
    cr_assert_not(framing.expects_continue);
    cr_assert_eq(framing.coding, HTTP_CODING_OTHER);
}

Test(http_vet, singles_may_stand_there_once)
{
    static const struct header_text texts[] = {
        {"Id", "1"}, {"X", "1"}, {"x", "2"}, {NULL, NULL}};
    static const char *const once[] = {"ID", "Absent", NULL};
    static const char *const twice[] = {"Id", "X", NULL};
    struct header headers[HEADERS_MAX];
    size_t n = fill(texts, headers);
    cr_assert(http_vet_singles(headers, n, once));
    cr_assert_not(http_vet_singles(headers, n, twice));
}

Test(http_vet, hop_by_hop_headers_are_left_out)
{
    static const struct header_text texts[] = {
        {"A", " 1 "},       {"Connection", "close, b ,"}, {"B", "2"},
        {"Upgrade", "h2c"}, {"TE", "trailers"},           {"a", "3"}};
    struct header headers[HEADERS_MAX], one;
    struct buf flat = BUF_INIT;
    struct headers kept;
    size_t at = 0;
    http_vet_end_to_end(headers, fill(texts, headers), &flat, &kept.count);
    kept.flat = buf_slice(&flat);
    cr_assert_eq(kept.count, 2);
    cr_assert(headers_next(&kept, &at, &one));
    cr_assert(slice_eq(one.name, SLICE("A")));
    cr_assert(slice_eq(one.value, SLICE("1")));
    cr_assert(headers_next(&kept, &at, &one));
    cr_assert(slice_eq(one.name, SLICE("a")));
    cr_assert_not(headers_next(&kept, &at, &one));
    buf_free(&flat);
}

/* RFC 9110, 7.6.1, and what proxies still send; in any spelling. Expect was
 * for us. */
Test(http_vet, headers_of_one_hop_go_no_further)
{
    static const char *const names[] = {
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "transfer-encoding",
        "Upgrade",
        "Proxy-Authorization",
        "Expect",
        "te",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct header headers[] = {
            {.name = slice_of(names[i]), .value = SLICE("x")},
            {.name = SLICE("Host"), .value = SLICE("a")}};
        struct buf flat = BUF_INIT;
        uint32_t kept;
        http_vet_end_to_end(headers, 2, &flat, &kept);
        cr_expect_eq(kept, 1, "%s", names[i]);
        buf_free(&flat);
    }
}

/* Text as it stands in the buffer of libmicrohttpd: '.' for what it made 0. */
Test(http_vet, a_gap_between_the_lines_is_seen)
{
    static const struct {
        const char *text;
        size_t names[2], values[2], lens[2], n;
        bool is_plain;
    } rows[] = {
        {"L..A.1..B. 22....", {3, 8}, {5, 11}, {1, 2}, 2, true},
        {"L..A.1...", {3}, {5}, {1}, 1, false},               /* CR LF, LF */
        {"L..A.1.B.2....", {3, 7}, {5, 9}, {1, 1}, 2, false}, /* LF */
        {"L.A.1....", {2}, {4}, {1}, 1, false},               /* LF at first */
        {"L..A.1..... a..", {3}, {5}, {1}, 1, false},         /* no name */
        {"L..A.1.x....", {3}, {5}, {1}, 1, false},            /* NUL */
        {"L....", {0}, {0}, {0}, 0, true},
        {"L...", {0}, {0}, {0}, 0, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text = rows[i].text;
        struct header headers[2];
        for (size_t j = 0; j < rows[i].n; j++) {
            headers[j].name = (struct slice){text + rows[i].names[j], 1};
            headers[j].value =
                (struct slice){text + rows[i].values[j], rows[i].lens[j]};
        }
        cr_assert_eq(
            http_vet_lines(headers, rows[i].n, text + 1, text + strlen(text)),
            rows[i].is_plain, "row %zu", i);
    }
}
