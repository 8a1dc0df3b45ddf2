/* SPDX-License-Identifier: MIT */
#include "source/http_gzip.h"

#include <criterion/criterion.h>
#include <string.h>

/* printf hello | gzip -n */
static const char hello[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86"
    "\xa6\x10\x36\x05\x00\x00\x00";
static const struct slice member = {hello, sizeof(hello) - 1};

static enum http_gzip_status inflate_to(struct slice body, uint64_t max,
                                        struct buf *out)
{
    buf_clear(out);
    return http_gzip_inflate(body, max, out);
}

Test(http_gzip, members_are_inflated_one_behind_the_other)
{
    struct buf out = BUF_INIT, two = BUF_INIT;
    cr_assert_eq(inflate_to(member, 100, &out), HTTP_GZIP_OK);
    cr_assert_str_eq(buf_cstr(&out), "hello");
    buf_add_slice(&two, member);
    buf_add_slice(&two, member);
    cr_assert_eq(inflate_to(buf_slice(&two), 100, &out), HTTP_GZIP_OK);
    cr_assert_str_eq(buf_cstr(&out), "hellohello");
    buf_free(&out);
    buf_free(&two);
}

Test(http_gzip, the_limit_is_exact)
{
    struct buf out = BUF_INIT;
    cr_assert_eq(inflate_to(member, 5, &out), HTTP_GZIP_OK);
    cr_assert_eq(inflate_to(member, 4, &out), HTTP_GZIP_TOO_LARGE);
    cr_assert_eq(inflate_to(member, 0, &out), HTTP_GZIP_TOO_LARGE);
    buf_free(&out);
}

Test(http_gzip, every_cut_and_every_flipped_byte_of_the_frame_is_bad)
{
    struct buf out = BUF_INIT;
    char copy[sizeof(hello)];
    for (size_t len = 0; len < member.len; len++) {
        struct slice cut = {hello, len};
        cr_assert_eq(inflate_to(cut, 100, &out), HTTP_GZIP_BAD, "%zu", len);
    }
    for (size_t i = 0; i < member.len; i++) {
        if (i >= 4 && i < 17)
            continue; /* time and system, and the data: its CRC counts */
        memcpy(copy, hello, sizeof(hello));
        copy[i] ^= 0x40;
        struct slice body = {copy, member.len};
        cr_assert_neq(inflate_to(body, 100, &out), HTTP_GZIP_OK, "byte %zu", i);
    }
    cr_assert_eq(inflate_to(SLICE("hello"), 100, &out), HTTP_GZIP_BAD);
    buf_free(&out);
}

Test(http_gzip, bytes_behind_the_end_are_bad)
{
    struct buf out = BUF_INIT, more = BUF_INIT;
    buf_add_slice(&more, member);
    buf_add_str(&more, "x");
    cr_assert_eq(inflate_to(buf_slice(&more), 100, &out), HTTP_GZIP_BAD);
    buf_free(&out);
    buf_free(&more);
}
