/* SPDX-License-Identifier: MIT */
#include "source/http_bind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/text.h"
#include "source/net.h"

enum { SOCKET_FILE_MODE = 0660 };

/* --- addresses ----------------------------------------------------------- */

static bool parse_unix(struct slice path, struct http_address *out)
{
    struct sockaddr_un *local = &out->local;
    if (path.len == 0 || path.len >= sizeof(local->sun_path)) {
        return false;
    }
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path.data, path.len);
    local->sun_path[path.len] = '\0';
    out->len = sizeof(*local);
    return true;
}

static void fill(struct http_address *out, const struct net_address *host,
                 uint16_t port)
{
    if (host->family == NET_IP4) {
        struct sockaddr_in in = {.sin_family = AF_INET,
                                 .sin_port = htons(port)};
        memcpy(&in.sin_addr, host->bytes, sizeof(in.sin_addr));
        memcpy(&out->storage, &in, sizeof(in));
        out->len = sizeof(in);
        return;
    }
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_port = htons(port)};
    memcpy(&in6.sin6_addr, host->bytes, sizeof(in6.sin6_addr));
    memcpy(&out->storage, &in6, sizeof(in6));
    out->len = sizeof(in6);
}

/* "host:port", IPv6 in brackets. */
static bool parse_tcp(struct slice text, struct http_address *out)
{
    bool in_brackets = text.len > 0 && text.data[0] == '[';
    struct slice host = in_brackets ? slice_from(text, 1) : text;
    size_t end = slice_find(host, in_brackets ? ']' : ':');
    if (end == host.len) {
        return false;
    }
    struct slice rest = slice_from(host, in_brackets ? end + 1 : end);
    host.len = end;

    struct net_address address;
    uint64_t port;
    if (rest.len == 0 || rest.data[0] != ':' ||
        !text_u64(slice_from(rest, 1), &port) || port > UINT16_MAX ||
        !net_parse_address(host, &address) ||
        in_brackets != (address.family == NET_IP6)) {
        return false;
    }
    fill(out, &address, (uint16_t)port);
    return true;
}

bool http_bind_parse(const char *text, struct http_address *out,
                     struct err *err)
{
    *out = (struct http_address){.text = text};
    struct slice whole = slice_of(text);
    struct slice scheme = SLICE("unix:");
    bool ok = slice_starts(whole, scheme)
                  ? parse_unix(slice_from(whole, scheme.len), out)
                  : parse_tcp(whole, out);
    if (!ok) {
        return err_set(err, ERR_CONFIG,
                       "address %s is not host:port or unix:/path", text);
    }
    return true;
}

bool http_bind_is_unix(const struct http_address *address)
{
    return address->any.sa_family == AF_UNIX;
}

uint16_t http_bind_port(const struct http_address *address)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    if (address->any.sa_family == AF_INET) {
        memcpy(&in, &address->storage, sizeof(in));
        return ntohs(in.sin_port);
    }
    if (address->any.sa_family == AF_INET6) {
        memcpy(&in6, &address->storage, sizeof(in6));
        return ntohs(in6.sin6_port);
    }
    return 0;
}

/* --- sockets ------------------------------------------------------------- */

static bool fail(const struct http_address *address, const char *what,
                 struct err *err)
{
    enum err_kind kind = errno == EADDRINUSE ? ERR_AGAIN : ERR_IO;
    if (kind == ERR_AGAIN) {
        return err_set(err, kind, "address %s is in use", address->text);
    }
    return err_set(err, kind, "address %s: %s: %s", address->text, what,
                   strerror(errno));
}

static bool set_option(int fd, int level, int option)
{
    int on = 1;
    return setsockopt(fd, level, option, &on, sizeof(on)) == 0;
}

/* A socket that is bound, or -1. */
static int bind_socket(const struct http_address *address, bool is_shared,
                       struct err *err)
{
    int family = address->any.sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        (void)fail(address, "socket", err);
        return -1;
    }
    if (family != AF_UNIX && !set_option(fd, SOL_SOCKET, SO_REUSEADDR)) {
        goto broken;
    }
    if (family == AF_INET6 && !set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY)) {
        goto broken;
    }
    if (is_shared && !set_option(fd, SOL_SOCKET, SO_REUSEPORT)) {
        goto broken;
    }
    if (bind(fd, &address->any, address->len) == 0) {
        return fd;
    }
broken:
    (void)fail(address, "bind", err);
    (void)close(fd); /* nothing was written to it */
    return -1;
}

/* SO_REUSEADDR lets two sockets bind while neither listens, so that the port
 * is free only once this one does. */
static bool probe_tcp(struct http_address *address, struct err *err)
{
    int fd = bind_socket(address, false, err);
    if (fd < 0) {
        return false;
    }
    bool ok = listen(fd, 1) == 0 &&
              getsockname(fd, &address->any, &address->len) == 0;
    if (!ok) {
        (void)fail(address, "listen", err);
    }
    (void)close(fd);
    return ok;
}

static bool probe_unix(const struct http_address *address, struct err *err)
{
    struct stat status;
    const char *path = address->local.sun_path;
    if (lstat(path, &status) != 0) {
        return errno == ENOENT ? true : fail(address, "look at it", err);
    }
    if (!S_ISSOCK(status.st_mode)) {
        return err_set(err, ERR_CONFIG, "address %s is a file, not a socket",
                       address->text);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return fail(address, "socket", err);
    }
    bool is_gone =
        connect(fd, &address->any, address->len) != 0 && errno == ECONNREFUSED;
    (void)close(fd);
    if (!is_gone) {
        return err_set(err, ERR_AGAIN, "address %s is in use", address->text);
    }
    if (unlink(path) != 0 && errno != ENOENT) {
        return fail(address, "remove the old socket", err);
    }
    return true;
}

bool http_bind_probe(struct http_address *address, struct err *err)
{
    return http_bind_is_unix(address) ? probe_unix(address, err)
                                      : probe_tcp(address, err);
}

bool http_bind_listen(struct http_address *address, int *fd, struct err *err)
{
    bool is_unix = http_bind_is_unix(address);
    *fd = bind_socket(address, !is_unix, err);
    if (*fd < 0) {
        return false;
    }
    address->is_ours = true;
    /* Nobody can connect before listen, so the mode is never too wide. */
    if (is_unix && chmod(address->local.sun_path, SOCKET_FILE_MODE) != 0) {
        goto broken;
    }
    if (listen(*fd, SOMAXCONN) == 0) {
        return true;
    }
broken:
    (void)fail(address, "listen", err);
    (void)close(*fd);
    *fd = -1;
    return false;
}

void http_bind_remove(const struct http_address *address)
{
    if (address->is_ours && http_bind_is_unix(address)) {
        (void)unlink(address->local.sun_path); /* the next start replaces it */
    }
}
