/* SPDX-License-Identifier: MIT */
#include "source/http_connection.h"

#include <criterion/criterion.h>

enum { REQUEST_MS = 10, IDLE_MS = 60 };

Test(http_connection, the_first_to_expire_is_told_and_only_once)
{
    struct http_deadlines deadlines;
    struct http_connection a = {0}, b = {0}, c = {0};
    http_connection_init(&deadlines, REQUEST_MS, IDLE_MS);
    cr_assert_eq(http_connection_next_ms(&deadlines, 0), -1);

    http_connection_add(&deadlines, &a, 100);
    http_connection_add(&deadlines, &b, 103);
    http_connection_add(&deadlines, &c, 105);
    http_connection_wait(&deadlines, &a, HTTP_WAIT_PEER, 106);
    cr_assert_eq(http_connection_next_ms(&deadlines, 106), 7);
    cr_assert_null(http_connection_expired(&deadlines, 112));
    cr_assert_eq(http_connection_expired(&deadlines, 113), &b);
    cr_assert_null(http_connection_expired(&deadlines, 114));
    cr_assert_eq(http_connection_expired(&deadlines, 115), &c);
    cr_assert_eq(http_connection_next_ms(&deadlines, 116), 50);
    cr_assert_eq(http_connection_expired(&deadlines, 166), &a);
    cr_assert_eq(http_connection_next_ms(&deadlines, 166), -1);
}

Test(http_connection, a_connection_that_waits_for_us_never_expires)
{
    struct http_deadlines deadlines;
    struct http_connection a = {0};
    http_connection_init(&deadlines, REQUEST_MS, IDLE_MS);
    http_connection_add(&deadlines, &a, 0);
    http_connection_wait(&deadlines, &a, HTTP_WAIT_NONE, 5);
    cr_assert_null(http_connection_expired(&deadlines, 1000000));
    http_connection_wait(&deadlines, &a, HTTP_WAIT_PEER, 1000000);
    cr_assert_eq(http_connection_next_ms(&deadlines, 1000000), IDLE_MS);
    cr_assert_eq(http_connection_next_ms(&deadlines, 2000000), 0);
}
