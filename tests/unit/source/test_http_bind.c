/* SPDX-License-Identifier: MIT */
#include "source/http_bind.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"

Test(http_bind, addresses_are_host_and_port_or_a_unix_path)
{
    static const struct {
        const char *text;
        sa_family_t family;
        uint16_t port;
    } rows[] = {
        {"127.0.0.1:8080", AF_INET, 8080}, {"0.0.0.0:0", AF_INET, 0},
        {"[::1]:80", AF_INET6, 80},        {"[::]:65535", AF_INET6, 65535},
        {"unix:/run/x.sock", AF_UNIX, 0},  {"unix:x", AF_UNIX, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_address address;
        struct err err;
        cr_assert(http_bind_parse(rows[i].text, &address, &err), "row %zu", i);
        cr_assert_eq(address.any.sa_family, rows[i].family, "row %zu", i);
        cr_assert_eq(http_bind_port(&address), rows[i].port, "row %zu", i);
        cr_assert_eq(http_bind_is_unix(&address), rows[i].family == AF_UNIX);
    }
}

Test(http_bind, other_addresses_are_configuration_errors)
{
    static const char *const rows[] = {
        "",           "8080",         ":8080",       "127.0.0.1",
        "127.0.0.1:", "127.0.0.1:x",  "::1:80",      "[127.0.0.1]:80",
        "[::1]80",    "[::1",         "[::1]",       "127.0.0.1:65536",
        "unix:",      "localhost:80", "127.0.0.1:-1"};
    char long_path[300];
    struct http_address address;
    struct err err;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        err.kind = ERR_NONE;
        cr_assert_not(http_bind_parse(rows[i], &address, &err), "%s", rows[i]);
        cr_assert_eq(err.kind, ERR_CONFIG, "%s", rows[i]);
    }
    memset(long_path, 'a', sizeof(long_path));
    memcpy(long_path, "unix:/", 6);
    long_path[sizeof(long_path) - 1] = '\0';
    cr_assert_not(http_bind_parse(long_path, &address, &err));
}

Test(http_bind, a_port_is_shared_by_our_sockets_and_refused_to_others)
{
    struct http_address address, other;
    struct err err;
    char text[32];
    int first, second;
    cr_assert(http_bind_parse("127.0.0.1:0", &address, &err));
    cr_assert(http_bind_probe(&address, &err));
    cr_assert_gt(http_bind_port(&address), 0);
    cr_assert(http_bind_listen(&address, &first, &err), "%s", err.text);
    cr_assert(http_bind_listen(&address, &second, &err), "%s", err.text);

    (void)snprintf(text, sizeof(text), "127.0.0.1:%u",
                   http_bind_port(&address));
    cr_assert(http_bind_parse(text, &other, &err));
    cr_assert_not(http_bind_probe(&other, &err));
    cr_assert_eq(err.kind, ERR_AGAIN);
    cr_assert_eq(close(first), 0);
    cr_assert_eq(close(second), 0);
    cr_assert(http_bind_probe(&other, &err), "%s", err.text);
}

Test(http_bind, a_file_that_is_no_socket_is_left_alone)
{
    char path[] = "/tmp/onced-bind-XXXXXX";
    char text[64];
    struct http_address address;
    struct err err;
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(close(fd), 0);
    (void)snprintf(text, sizeof(text), "unix:%s", path);
    cr_assert(http_bind_parse(text, &address, &err));
    cr_assert_not(http_bind_probe(&address, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    http_bind_remove(&address);
    cr_assert_eq(access(path, F_OK), 0);
    cr_assert_eq(unlink(path), 0);
}
