/* SPDX-License-Identifier: MIT */
/* What the table cannot say of the keys outside of routes, and what holds
 * between routes. */
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "app/config_internal.h"
#include "base/check.h"
#include "source/http_bind.h"
#include "source/net.h"

enum { NAME_MAX_LEN = 64, TOKEN_SHORT = 16 };

bool config_name_ok(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    size_t len = strlen(name);

    return len >= 1 && len <= NAME_MAX_LEN && strspn(name, allowed) == len;
}

void config_check_networks(struct config_reading *reading, const char *member,
                           const struct config_strings *networks)
{
    size_t mark = config_enter(reading, member);

    for (size_t i = 0; i < networks->n; i++) {
        struct network network;
        size_t item = config_enter_item(reading, i);

        if (!net_parse(slice_of(networks->items[i]), &network)) {
            config_problem(reading,
                           "must be a network such as 192.0.2.0/24 or "
                           "2001:db8::/32, without bits behind the prefix");
        }
        config_leave(reading, item);
    }
    config_leave(reading, mark);
}

/* --- addresses -------------------------------------------------------------*/

static void absolute_socket(const struct config_reading *reading,
                            char **address)
{
    const struct slice scheme = SLICE("unix:");
    struct slice text = slice_of(*address);
    struct buf out = BUF_INIT;
    char *path;

    if (!slice_starts(text, scheme) || text.len == scheme.len) {
        return;
    }
    path = config_value_path(reading, slice_from(text, scheme.len));
    buf_add_slice(&out, scheme);
    buf_add_str(&out, path);
    free(path);
    free(*address);
    *address = mem_dup(buf_slice(&out));
    buf_free(&out);
}

static void check_address(struct config_reading *reading, char **address)
{
    struct http_address parsed;

    absolute_socket(reading, address);
    if (strlen(*address) >= sizeof(parsed.local.sun_path) + strlen("unix:")) {
        config_problem(reading, "the path of a socket has at most %zu bytes",
                       sizeof(parsed.local.sun_path) - 1);
    } else if (!http_bind_parse(*address, &parsed, NULL)) {
        config_problem(reading, "must be host:port, [v6]:port or unix:/path; "
                                "the host is a number, not a name");
    }
}

/* Port 0: the kernel chooses, another one each time. */
static bool is_any_port(const char *address)
{
    size_t len = strlen(address);

    return len > 2 && strcmp(address + len - 2, ":0") == 0;
}

static void check_addresses(struct config_reading *reading)
{
    struct config_strings *addresses = &reading->config->listen.addresses;
    size_t mark = config_enter(reading, "address");

    for (size_t i = 0; i < addresses->n; i++) {
        size_t item = config_enter_item(reading, i);

        check_address(reading, &addresses->items[i]);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(addresses->items[k], addresses->items[i]) == 0 &&
                !is_any_port(addresses->items[i])) {
                config_problem(reading, "is in the list twice");
            }
        }
        config_leave(reading, item);
    }
    config_leave(reading, mark);
}

static void check_listen(struct config_reading *reading)
{
    const struct config *config = reading->config;
    size_t mark = config_enter(reading, "listen");

    check_addresses(reading);
    config_check_networks(reading, "trusted_proxies",
                          &config->listen.trusted_proxies);
    config_leave(reading, mark);
}

/* --- admin -----------------------------------------------------------------*/

static void check_token(struct config_reading *reading, size_t i)
{
    const struct config_token *tokens = reading->config->admin.tokens;

    if (tokens[i].name && !config_name_ok(tokens[i].name)) {
        config_problem_at(reading, "name",
                          "must be 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    for (size_t k = 0; k < i && tokens[i].name; k++) {
        if (tokens[k].name && strcmp(tokens[k].name, tokens[i].name) == 0) {
            config_problem_at(reading, "name", "is the name of token %zu, too",
                              k);
        }
    }
    for (size_t k = 0; k < i && tokens[i].secret; k++) {
        if (tokens[k].secret &&
            strcmp(tokens[k].secret, tokens[i].secret) == 0) {
            config_problem(reading, "is the same secret as token %zu", k);
        }
    }
    if (tokens[i].secret && strlen(tokens[i].secret) < TOKEN_SHORT) {
        config_warn(reading, "the token has less than %d bytes", TOKEN_SHORT);
    }
}

static void check_admin(struct config_reading *reading)
{
    struct config *config = reading->config;
    struct sockaddr_un local;
    size_t mark = config_enter(reading, "admin");
    size_t tokens;

    if (config->admin.socket &&
        strlen(config->admin.socket) >= sizeof(local.sun_path)) {
        config_problem_at(reading, "socket",
                          "the path of a socket has at most %zu bytes",
                          sizeof(local.sun_path) - 1);
    }
    if (config->admin.address) {
        size_t address = config_enter(reading, "address");

        check_address(reading, &config->admin.address);
        if (config->admin.n_tokens == 0) {
            config_warn(reading, "there are no tokens, so that only health "
                                 "and metrics are served over TCP");
        }
        config_leave(reading, address);
    }
    tokens = config_enter(reading, "tokens");
    for (size_t i = 0; i < config->admin.n_tokens; i++) {
        size_t item = config_enter_item(reading, i);

        check_token(reading, i);
        config_leave(reading, item);
    }
    config_leave(reading, tokens);
    config_leave(reading, mark);
}

/* --- routes ----------------------------------------------------------------*/

static void check_names(struct config_reading *reading, size_t i)
{
    const struct config_route *routes = reading->config->routes;

    for (size_t k = 0; k < i && routes[i].name; k++) {
        if (routes[k].name && strcmp(routes[k].name, routes[i].name) == 0) {
            config_problem_at(reading, "name", "is the name of route %zu, too",
                              k);
        }
    }
}

static void check_routes(struct config_reading *reading)
{
    struct config *config = reading->config;
    size_t mark = config_enter(reading, "routes");

    if (config->n_routes == 0 && reading->n_problems == 0) {
        config_problem(reading, "must have at least one route");
    }
    if (config->n_routes > STORE_ROUTES_MAX) {
        config_problem(reading, "has more than %d routes", STORE_ROUTES_MAX);
    }
    for (size_t i = 0; i < config->n_routes; i++) {
        size_t item = config_enter_item(reading, i);

        check_names(reading, i);
        config_route_check(reading, &config->routes[i]);
        for (size_t k = 0; k < i; k++) {
            config_route_check_pair(reading, &config->routes[k],
                                    &config->routes[i]);
            config_kafka_check_pair(reading, &config->routes[k],
                                    &config->routes[i]);
        }
        config_leave(reading, item);
    }
    config_leave(reading, mark);
}

static void check_room(struct config_reading *reading)
{
    const struct config *config = reading->config;

    if (config_has_problem(reading, "listen") ||
        config_has_problem(reading, "inbox")) {
        return;
    }
    if (config->listen.max_body_bytes > config->listen.max_in_flight_bytes) {
        config_problem_at(reading, "listen/max_body",
                          "is more than listen.max_in_flight");
    }
    if (config->listen.max_body_bytes > config->inbox.max_bytes / 2) {
        config_problem_at(reading, "listen/max_body",
                          "is more than half of inbox.max_bytes");
    }
}

void config_check(struct config_reading *reading)
{
    struct config *config = reading->config;

    if (!config->admin.socket && config->store.path &&
        !config_has_problem(reading, "admin/socket")) {
        struct buf path = BUF_INIT;

        buf_printf(&path, "%s/admin.sock", config->store.path);
        config->admin.socket = mem_dup(buf_slice(&path));
        buf_free(&path);
    }
    check_listen(reading);
    check_admin(reading);
    check_room(reading);
    config_clusters_make(config);
    check_routes(reading);
    if (reading->n_problems == 0) {
        config_streams_make(config);
    }
}
