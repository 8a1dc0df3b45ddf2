/* SPDX-License-Identifier: MIT */
#include "source/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/text.h"

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0,    0,
                                          0, 0, 0, 0, 0xff, 0xff};

static unsigned address_bits(enum net_family family)
{
    switch (family) {
    case NET_IP4:
        return 32;
    case NET_IP6:
        return 128;
    case NET_UNKNOWN:
    case NET_UNIX:
        return 0;
    }
    UNREACHABLE("every family has a width");
}

static struct net_address from_ip4(const void *bytes)
{
    struct net_address address = {.family = NET_IP4};
    memcpy(address.bytes, bytes, 4);
    return address;
}

static struct net_address from_ip6(const uint8_t *bytes)
{
    if (memcmp(bytes, mapped_prefix, sizeof(mapped_prefix)) == 0) {
        return from_ip4(bytes + sizeof(mapped_prefix));
    }
    struct net_address address = {.family = NET_IP6};
    memcpy(address.bytes, bytes, 16);
    return address;
}

struct net_address net_address_of(const struct sockaddr *from)
{
    if (from == NULL) {
        return (struct net_address){.family = NET_UNKNOWN};
    }
    if (from->sa_family == AF_UNIX) {
        return (struct net_address){.family = NET_UNIX};
    }
    if (from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof(in));
        return from_ip4(&in.sin_addr);
    }
    if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, from, sizeof(in6));
        return from_ip6(in6.sin6_addr.s6_addr);
    }
    return (struct net_address){.family = NET_UNKNOWN};
}

bool net_parse_address(struct slice text, struct net_address *out)
{
    char copy[INET6_ADDRSTRLEN];
    uint8_t bytes[16];

    if (text.len == 0 || text.len >= sizeof(copy) ||
        memchr(text.data, '\0', text.len) != NULL) {
        return false;
    }
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, bytes) == 1) {
        *out = from_ip4(bytes);
        return true;
    }
    if (inet_pton(AF_INET6, copy, bytes) == 1) {
        *out = from_ip6(bytes);
        return true;
    }
    return false;
}

static unsigned bit_at(const uint8_t *bytes, unsigned n)
{
    return bytes[n / 8] >> (7 - n % 8) & 1U;
}

static bool host_bits_are_zero(const struct network *network)
{
    unsigned bits = address_bits(network->address.family);
    for (unsigned i = network->prefix_bits; i < bits; i++) {
        if (bit_at(network->address.bytes, i) != 0) {
            return false;
        }
    }
    return true;
}

bool net_parse(struct slice text, struct network *out)
{
    if (slice_eq(text, SLICE("unix:"))) {
        *out = (struct network){.address.family = NET_UNIX};
        return true;
    }
    size_t slash = slice_find(text, '/');
    struct slice host = {text.data, slash};
    struct network network;
    if (!net_parse_address(host, &network.address)) {
        return false;
    }
    unsigned bits = address_bits(network.address.family);
    network.prefix_bits = bits;
    if (slash < text.len) {
        uint64_t prefix;
        /* ::ffff:192.0.2.0/120 counts its bits in the IPv6 form. */
        bool is_mapped = network.address.family == NET_IP4 &&
                         slice_find(host, ':') < host.len;
        uint64_t skipped = is_mapped ? 96 : 0;
        if (!text_u64(slice_from(text, slash + 1), &prefix) ||
            prefix < skipped || prefix - skipped > bits) {
            return false;
        }
        network.prefix_bits = (unsigned)(prefix - skipped);
    }
    if (!host_bits_are_zero(&network)) {
        return false;
    }
    *out = network;
    return true;
}

bool net_has(const struct network *network, const struct net_address *address)
{
    if (address->family == NET_UNKNOWN ||
        address->family != network->address.family) {
        return false;
    }
    CHECK(network->prefix_bits <= address_bits(address->family));
    unsigned whole = network->prefix_bits / 8;
    unsigned rest = network->prefix_bits % 8;
    if (memcmp(network->address.bytes, address->bytes, whole) != 0) {
        return false;
    }
    if (rest == 0) {
        return true;
    }
    unsigned differ = network->address.bytes[whole] ^ address->bytes[whole];
    return differ >> (8 - rest) == 0;
}

bool net_has_any(const struct network *networks, size_t n,
                 const struct net_address *address)
{
    for (size_t i = 0; i < n; i++) {
        if (net_has(&networks[i], address)) {
            return true;
        }
    }
    return false;
}

/* Proxies also write "192.0.2.1:4711" and "[2001:db8::1]:4711". */
static struct net_address parse_forwarded(struct slice text)
{
    struct net_address address = {.family = NET_UNKNOWN};
    if (net_parse_address(text, &address)) {
        return address;
    }
    struct slice host = {text.data, slice_find(text, ':')};
    if (text.len > 0 && text.data[0] == '[') {
        host = slice_from(text, 1);
        host.len = slice_find(host, ']');
    }
    if (!net_parse_address(host, &address)) {
        address.family = NET_UNKNOWN;
    }
    return address;
}

/* Cuts the last item off a list that commas separate. */
static struct slice take_last(struct slice *list)
{
    size_t start = list->len;
    while (start > 0 && list->data[start - 1] != ',') {
        start--;
    }
    struct slice last = slice_trim(slice_from(*list, start));
    list->len = start > 0 ? start - 1 : 0;
    return last;
}

struct net_address net_client(const struct network *trusted, size_t n_trusted,
                              struct net_address peer,
                              const struct header *headers, size_t n)
{
    if (!net_has_any(trusted, n_trusted, &peer)) {
        return peer;
    }
    /* Several lines are one list (RFC 9110, 5.3). */
    struct buf joined = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        if (!slice_eq_nocase(headers[i].name, SLICE("X-Forwarded-For"))) {
            continue;
        }
        if (joined.len > 0) {
            buf_add_byte(&joined, ',');
        }
        buf_add_slice(&joined, headers[i].value);
    }
    struct net_address client = peer;
    struct slice list = buf_slice(&joined);
    while (list.len > 0 && net_has_any(trusted, n_trusted, &client)) {
        client = parse_forwarded(take_last(&list));
    }
    buf_free(&joined);
    return client;
}
