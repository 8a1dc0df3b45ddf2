/* SPDX-License-Identifier: MIT */
#include "source/net.h"

#include <criterion/criterion.h>
#include <string.h>

static struct net_address address(const char *text)
{
    struct net_address out;
    cr_assert(net_parse_address(slice_of(text), &out), "%s", text);
    return out;
}

Test(net, a_network_holds_its_own_addresses_and_no_others)
{
    static const struct {
        const char *network, *address;
        bool has;
    } rows[] = {
        {"192.0.2.0/24", "192.0.2.0", true},
        {"192.0.2.0/24", "192.0.2.255", true},
        {"192.0.2.0/24", "192.0.3.0", false},
        {"192.0.2.128/25", "192.0.2.127", false},
        {"192.0.2.128/25", "192.0.2.200", true},
        {"10.32.0.0/11", "10.63.255.255", true},
        {"10.32.0.0/11", "10.64.0.0", false},
        {"0.0.0.0/0", "203.0.113.9", true},
        {"0.0.0.0/0", "::1", false},
        {"192.0.2.1", "192.0.2.1", true},
        {"192.0.2.1", "192.0.2.2", false},
        {"192.0.2.1/32", "192.0.2.1", true},
        {"2001:db8::1", "2001:db8::1", true},
        {"2001:db8::1", "2001:db8::2", false},
        {"2001:db8::/32", "2001:db8:ffff::1", true},
        {"2001:db8::/32", "2001:db9::1", false},
        {"::/0", "2001:db8::1", true},
        {"::/0", "192.0.2.1", false},
        {"192.0.2.0/24", "::ffff:192.0.2.7", true},
        {"::ffff:192.0.2.0/120", "192.0.2.7", true},
        {"::ffff:192.0.2.0/120", "192.0.3.7", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct network network;
        struct net_address one = address(rows[i].address);
        cr_assert(net_parse(slice_of(rows[i].network), &network), "row %zu", i);
        cr_assert_eq(net_has(&network, &one), rows[i].has, "row %zu", i);
    }
}

Test(net, what_is_no_network_is_refused)
{
    static const char *const rows[] = {
        "",
        "localhost",
        "192.0.2",
        "192.0.2.0/33",
        "192.0.2.0/",
        "192.0.2.0/-1",
        "192.0.2.0/ 8",
        "192.0.2.1/24",
        "/24",
        "192.0.2.256",
        "::1/129",
        "2001:db8::1/32",
        "[::1]",
        "192.0.2.0/024",
        "192.0.2.0/8/8",
        "::ffff:192.0.2.0/24",
        "unix",
        "*",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct network network;
        cr_assert_not(net_parse(slice_of(rows[i]), &network), "%s", rows[i]);
    }
}

Test(net, unknown_addresses_are_in_no_network)
{
    struct network all;
    struct net_address unknown = net_address_of(NULL);
    cr_assert(net_parse(SLICE("0.0.0.0/0"), &all));
    cr_assert_not(net_has(&all, &unknown));
}

Test(net, peers_of_a_unix_socket_have_a_network_of_their_own)
{
    struct network local;
    struct net_address peer = {.family = NET_UNIX};
    struct net_address other = address("127.0.0.1");
    cr_assert(net_parse(SLICE("unix:"), &local));
    cr_assert(net_has(&local, &peer));
    cr_assert_not(net_has(&local, &other));
}

static struct net_address client(const char *peer, const char *const *forwarded)
{
    struct network trusted[2];
    struct header headers[4] = {{.name = SLICE("Host"), .value = SLICE("a")}};
    size_t n = 1;
    cr_assert(net_parse(SLICE("10.0.0.0/8"), &trusted[0]));
    cr_assert(net_parse(SLICE("::1"), &trusted[1]));
    for (; *forwarded != NULL; forwarded++)
        headers[n++] = (struct header){.name = SLICE("x-forwarded-for"),
                                       .value = slice_of(*forwarded)};
    return net_client(trusted, 2, address(peer), headers, n);
}

Test(net, the_client_is_the_rightmost_address_that_is_no_trusted_proxy)
{
    static const struct {
        const char *peer, *forwarded[3], *client; /* NULL: not known */
    } rows[] = {
        {"192.0.2.1", {NULL}, "192.0.2.1"},
        {"192.0.2.1", {"203.0.113.9", NULL}, "192.0.2.1"},
        {"10.0.0.1", {NULL}, "10.0.0.1"},
        {"10.0.0.1", {"203.0.113.9", NULL}, "203.0.113.9"},
        {"10.0.0.1", {"198.51.100.7, 203.0.113.9", NULL}, "203.0.113.9"},
        {"10.0.0.1", {"203.0.113.9,10.0.0.2", NULL}, "203.0.113.9"},
        {"10.0.0.1", {"203.0.113.9", "10.0.0.2", NULL}, "203.0.113.9"},
        {"10.0.0.1", {"10.0.0.3, 10.0.0.2", NULL}, "10.0.0.3"},
        {"::1", {"203.0.113.9:4711", NULL}, "203.0.113.9"},
        {"::1", {"[2001:db8::7]:4711", NULL}, "2001:db8::7"},
        {"::1", {"2001:db8::7", NULL}, "2001:db8::7"},
        {"10.0.0.1", {"203.0.113.9, unknown", NULL}, NULL},
        {"10.0.0.1", {"203.0.113.9, ", NULL}, NULL},
        {"10.0.0.1", {"203.0.113.9, _hidden, 10.0.0.2", NULL}, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct net_address got = client(rows[i].peer, rows[i].forwarded);
        if (rows[i].client == NULL) {
            cr_assert_eq(got.family, NET_UNKNOWN, "row %zu", i);
            continue;
        }
        struct net_address right = address(rows[i].client);
        cr_assert_eq(got.family, right.family, "row %zu", i);
        cr_assert_eq(memcmp(got.bytes, right.bytes, 16), 0, "row %zu", i);
    }
}
