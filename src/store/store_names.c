/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <string.h>

#include "base/check.h"

static bool find_namespace(const struct store *store, const char *name,
                           uint16_t *number)
{
    for (uint16_t i = 0; i < store->n_namespaces; i++) {
        if (strcmp(store->namespaces[i], name) == 0) {
            *number = i;
            return true;
        }
    }
    return false;
}

static bool find_route(const struct store *store, const char *name,
                       uint16_t *number)
{
    for (uint16_t i = 0; i < store->n_routes; i++) {
        if (strcmp(store->routes[i].name, name) == 0) {
            *number = i;
            return true;
        }
    }
    return false;
}

/* In a transaction of its own: a name that an aborted batch had taken back
 * would leave its number in the caller's hands. */
static bool add(struct store *store, char letter, uint16_t number,
                const char *name, struct err *err)
{
    if (store->options.read_only) {
        return err_set(err, ERR_NOT_FOUND, "the store does not know %s", name);
    }
    if (number >= STORE_NAMES_MAX) {
        return err_set(err, ERR_CONFIG, "more than %d names in one store",
                       STORE_NAMES_MAX);
    }
    if (!store_begin(store, err)) {
        return false;
    }
    if (!store_meta_save_name(store, letter, number, slice_of(name), err) ||
        (letter == 't' && !store_meta_raise_format(store, err))) {
        store_abort(store);
        return err_wrap(err, "name %s", name);
    }
    return store_commit(store, err);
}

bool store_route_number(struct store *store, const char *name, uint16_t *number,
                        struct err *err)
{
    struct store_route *route;

    CHECK(store->txn == NULL);
    if (find_route(store, name, number)) {
        return true;
    }
    if (!add(store, 'r', store->n_routes, name, err)) {
        return false;
    }
    *number = store->n_routes++;
    route = &store->routes[*number];
    route->name = mem_strdup(name);
    store_index_start_route(&route->now);
    return true;
}

bool store_namespace_number(struct store *store, const char *name,
                            uint16_t *number, struct err *err)
{
    CHECK(store->txn == NULL);
    if (find_namespace(store, name, number)) {
        return true;
    }
    if (!add(store, 'n', store->n_namespaces, name, err)) {
        return false;
    }
    *number = store->n_namespaces++;
    store->namespaces[*number] = mem_strdup(name);
    return true;
}

static bool find_stream(const struct store *store, const char *name,
                        uint16_t *number)
{
    for (uint16_t i = 1; i < store->n_streams; i++) {
        if (strcmp(store->streams[i], name) == 0) {
            *number = i;
            return true;
        }
    }
    return false;
}

bool store_stream_number(struct store *store, const char *name,
                         uint16_t *number, struct err *err)
{
    CHECK(store->txn == NULL);
    if (find_stream(store, name, number)) {
        return true;
    }
    if (!add(store, 't', store->n_streams, name, err)) {
        return false;
    }
    store->format = STORE_FORMAT;
    *number = store->n_streams++;
    store->streams[*number] = mem_strdup(name);
    return true;
}

const char *store_stream_name(const struct store *store, uint16_t number)
{
    return number > 0 && number < store->n_streams ? store->streams[number]
                                                   : NULL;
}

const char *store_route_name(const struct store *store, uint16_t number)
{
    return number < store->n_routes ? store->routes[number].name : NULL;
}

const char *store_namespace_name(const struct store *store, uint16_t number)
{
    return number < store->n_namespaces ? store->namespaces[number] : NULL;
}

void store_set_retention(struct store *store, uint16_t route,
                         const struct store_retention *retention)
{
    CHECK(route < store->n_routes);
    store->routes[route].retention = *retention;
    store->routes[route].configured = true;
}

bool store_set_paused(struct store *store, uint16_t route, bool paused,
                      struct err *err)
{
    (void)err;
    CHECK(store->txn != NULL && !store->options.read_only);
    store_journal_route(store, route)->paused = paused;
    return true;
}

bool store_is_paused(const struct store *store, uint16_t route)
{
    CHECK(route < store->n_routes);
    return store->routes[route].now.paused;
}

void store_set_unreachable(struct store *store, uint16_t route,
                           bool unreachable)
{
    CHECK(store->txn != NULL && !store->options.read_only);
    store_journal_route(store, route)->unreachable = unreachable;
}

bool store_is_unreachable(const struct store *store, uint16_t route)
{
    CHECK(route < store->n_routes);
    return store->routes[route].now.unreachable;
}
