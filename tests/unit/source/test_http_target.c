/* SPDX-License-Identifier: MIT */
#include "source/http_target.h"

#include <criterion/criterion.h>

Test(http_target, is_split_at_the_first_question_mark)
{
    static const struct {
        const char *raw, *path, *query; /* NULL: none */
    } rows[] = {
        {"/", "/", NULL},
        {"/a/b", "/a/b", NULL},
        {"/a?", "/a", ""},
        {"/a?b=1&c", "/a", "b=1&c"},
        {"/a?b?c", "/a", "b?c"},
        {"/a%3Fb?c", "/a%3Fb", "c"},
        {"//a", "//a", NULL},
        {"/a//b/", "/a//b/", NULL},
        {"/a?x=../..", "/a", "x=../.."},
        {"/...", "/...", NULL},
        {"/.a/b.", "/.a/b.", NULL},
        {"/%2ea", "/%2ea", NULL},
        {"http://host/a?b", "/a", "b"},
        {"HTTPS://host:1/a", "/a", NULL},
        {"http://host", "/", NULL},
        {"http://host?b", "/", "b"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_target target;
        cr_assert_null(http_target_split(slice_of(rows[i].raw), &target), "%s",
                       rows[i].raw);
        cr_assert(slice_eq(target.path, slice_of(rows[i].path)), "%s",
                  rows[i].raw);
        cr_assert_eq(target.has_query, rows[i].query != NULL, "%s",
                     rows[i].raw);
        cr_assert(slice_eq(target.query, slice_of(rows[i].query)), "%s",
                  rows[i].raw);
    }
}

Test(http_target, what_is_no_path_is_refused)
{
    static const char *const rows[] = {
        "",
        "*",
        "a",
        "a/b",
        "host:443",
        "http://",
        "http:///a",
        "http:/a",
        "ftp://a/b",
        "/a b",
        "/a#b",
        "/a\tb",
        "/a\x7f",
        "/\xc3\xa4",
        "/.",
        "/..",
        "/a/../b",
        "/a/./b",
        "/a/..",
        "/%2e%2e/a",
        "/.%2E/a",
        "/w/%2e%2e%2fx",
        "/w/..%5Cx",
        "/w\\../x",
        "/%2E",
        "/a/%2e./b",
        "http://h/../a",
        "?a",
        "/a?b#c",
        "/a?\x01",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_target target;
        cr_assert_not_null(http_target_split(slice_of(rows[i]), &target), "%s",
                           rows[i]);
    }
}
