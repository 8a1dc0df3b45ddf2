/* SPDX-License-Identifier: MIT */
/*
 * Addresses and networks, for `allow` and `trusted_proxies`: "192.0.2.0/24",
 * "2001:db8::/32", a bare address (all its bits count: a bare IPv6 address
 * is one host), or "unix:" for the peers of a unix socket. An IPv4 address
 * inside IPv6 (::ffff:192.0.2.1) is the IPv4 address. Pure.
 */
#ifndef ONCED_SOURCE_NET_H
#define ONCED_SOURCE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/envelope.h"

struct sockaddr;

enum net_family {
    NET_UNKNOWN, /* is in no network */
    NET_IP4,
    NET_IP6,
    NET_UNIX,
};

struct net_address {
    enum net_family family;
    uint8_t bytes[16]; /* network order; IPv4 uses the first four */
};

struct network {
    struct net_address address;
    unsigned prefix_bits;
};

/* Bits behind the prefix must be zero: "10.0.0.1/8" is a mistake, and false
 * is returned for it as for anything else that is not a network. */
bool net_parse(struct slice text, struct network *out);

bool net_parse_address(struct slice text, struct net_address *out);

/* NULL gives NET_UNKNOWN. */
struct net_address net_address_of(const struct sockaddr *from);

bool net_has(const struct network *network, const struct net_address *address);
bool net_has_any(const struct network *networks, size_t n,
                 const struct net_address *address);

/* Who the request is from: the peer, or, where the peer is a trusted proxy,
 * the rightmost address of X-Forwarded-For that is not one. What does not
 * parse there gives NET_UNKNOWN. Wants all headers as they came: nobody must
 * get rid of X-Forwarded-For by naming it under Connection. */
struct net_address net_client(const struct network *trusted, size_t n_trusted,
                              struct net_address peer,
                              const struct header *headers, size_t n);

#endif
