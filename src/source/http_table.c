/* SPDX-License-Identifier: MIT */
#include "source/http_table.h"

#include <stdlib.h>

#include "base/check.h"

/* --- one route ----------------------------------------------------------- */

static bool parse_path(const struct http_route *route, struct http_group *out,
                       struct err *err)
{
    struct slice path = slice_of(route->path);
    if (path.len == 0 || path.data[0] != '/') {
        return err_set(err, ERR_CONFIG, "route %s: path must start with /",
                       route->name);
    }
    out->is_prefix = path.len >= 2 && path.data[path.len - 1] == '*' &&
                     path.data[path.len - 2] == '/';
    if (out->is_prefix) {
        path.len--;
    }
    out->path = path;
    return true;
}

static bool parse_allow(const struct http_route *route, struct http_member *out,
                        struct err *err)
{
    out->allow = mem_new(route->n_allow, sizeof(*out->allow));
    for (size_t i = 0; i < route->n_allow; i++) {
        if (!net_parse(slice_of(route->allow[i]), &out->allow[i])) {
            return err_set(err, ERR_CONFIG, "route %s: %s is not a network",
                           route->name, route->allow[i]);
        }
    }
    return true;
}

static size_t count_names(const char *const *names)
{
    size_t n = 0;
    while (names != NULL && names[n] != NULL) {
        n++;
    }
    return n;
}

static size_t count_terms(const struct value *value)
{
    size_t n = 0;
    for (size_t i = 0; i < value->n_choices; i++) {
        n += value->choices[i].n_terms;
    }
    return n;
}

static size_t add_names(const char **to, const char *const *names)
{
    size_t n = 0;
    for (; names != NULL && names[n] != NULL; n++) {
        to[n] = names[n];
    }
    return n;
}

static size_t add_header_terms(const char **to, const struct value *value)
{
    size_t n = 0;
    for (size_t i = 0; i < value->n_choices; i++) {
        const struct value_choice *choice = &value->choices[i];
        for (size_t j = 0; j < choice->n_terms; j++) {
            if (choice->terms[j].kind == VALUE_HEADER) {
                to[n++] = choice->terms[j].argument;
            }
        }
    }
    return n;
}

/* Whatever an id, a tenant, an order or a signature is taken from. */
static const char **collect_singles(const struct http_route *route)
{
    const char *const *of_scheme =
        route->verifier == NULL ? NULL
                                : verifier_single_headers(route->verifier);
    size_t room = count_names(of_scheme) + count_names(route->single_headers) +
                  count_terms(&route->id) + count_terms(&route->tenant) +
                  count_terms(&route->order_by);
    const char **names = mem_new(room + 1, sizeof(*names));
    size_t n = add_names(names, of_scheme);
    n += add_names(names + n, route->single_headers);
    n += add_header_terms(names + n, &route->id);
    n += add_header_terms(names + n, &route->tenant);
    n += add_header_terms(names + n, &route->order_by);
    CHECK(n <= room);
    return names;
}

static bool takes(const struct http_route *route, struct slice method)
{
    for (size_t i = 0; i < route->n_methods; i++) {
        if (slice_eq(slice_of(route->methods[i]), method)) {
            return true;
        }
    }
    return false;
}

/* --- groups -------------------------------------------------------------- */

static bool is_same_path(const struct http_group *a, const struct http_group *b)
{
    return a->is_prefix == b->is_prefix && slice_eq(a->path, b->path);
}

static struct http_group *group_for(struct http_table *table,
                                    const struct http_group *like)
{
    for (size_t i = 0; i < table->n_groups; i++) {
        if (is_same_path(&table->groups[i], like)) {
            return &table->groups[i];
        }
    }
    struct http_group *group = &table->groups[table->n_groups++];
    group->path = like->path;
    group->is_prefix = like->is_prefix;
    group->max_body_bytes = UINT64_MAX;
    return group;
}

static bool add_route(struct http_table *table, const struct http_route *route,
                      struct err *err)
{
    struct http_group like = {0};
    if (!parse_path(route, &like, err)) {
        return false;
    }
    struct http_group *group = group_for(table, &like);
    group->members =
        mem_grow(group->members, group->n_members + 1, sizeof(*group->members));
    struct http_member *member = &group->members[group->n_members++];
    *member = (struct http_member){.route = route};
    member->single_headers = collect_singles(route);
    if (route->max_body_bytes < group->max_body_bytes) {
        group->max_body_bytes = route->max_body_bytes;
    }
    return parse_allow(route, member, err);
}

bool http_table_takes(const struct http_group *group, struct slice method)
{
    for (size_t i = 0; i < group->n_members; i++) {
        if (!takes(group->members[i].route, method)) {
            return false;
        }
    }
    return true;
}

static bool list_methods(struct http_group *group, struct err *err)
{
    const struct http_route *first = group->members[0].route;
    struct buf list = BUF_INIT;
    for (size_t i = 0; i < first->n_methods; i++) {
        if (!http_table_takes(group, slice_of(first->methods[i]))) {
            continue;
        }
        if (list.len > 0) {
            buf_add_str(&list, ", ");
        }
        buf_add_str(&list, first->methods[i]);
    }
    bool ok = list.len > 0;
    group->allowed = mem_dup(buf_slice(&list));
    buf_free(&list);
    return ok || err_set(err, ERR_CONFIG, "route %s: no method is taken at %s",
                         first->name, first->path);
}

static int compare_groups(const void *left, const void *right)
{
    const struct http_group *a = left, *b = right;
    if (a->is_prefix != b->is_prefix) {
        return a->is_prefix ? 1 : -1;
    }
    if (a->is_prefix && a->path.len != b->path.len) {
        return a->path.len > b->path.len ? -1 : 1;
    }
    return slice_cmp(a->path, b->path);
}

bool http_table_build(struct http_table *table, const struct http_route *routes,
                      size_t n, struct err *err)
{
    *table = (struct http_table){0};
    table->groups = mem_new(n, sizeof(*table->groups));
    for (size_t i = 0; i < n; i++) {
        if (!add_route(table, &routes[i], err)) {
            goto fail;
        }
    }
    for (size_t i = 0; i < table->n_groups; i++) {
        if (!list_methods(&table->groups[i], err)) {
            goto fail;
        }
        table->n_exact += !table->groups[i].is_prefix;
    }
    qsort(table->groups, table->n_groups, sizeof(*table->groups),
          compare_groups);
    return true;
fail:
    http_table_free(table);
    return false;
}

void http_table_free(struct http_table *table)
{
    for (size_t i = 0; i < table->n_groups; i++) {
        struct http_group *group = &table->groups[i];
        for (size_t j = 0; j < group->n_members; j++) {
            free(group->members[j].single_headers);
            free(group->members[j].allow);
        }
        free(group->members);
        free(group->allowed);
    }
    free(table->groups);
    *table = (struct http_table){0};
}

/* --- look-up ------------------------------------------------------------- */

static int compare_path(const void *key, const void *element)
{
    const struct slice *path = key;
    const struct http_group *group = element;
    return slice_cmp(*path, group->path);
}

const struct http_group *http_table_find(const struct http_table *table,
                                         struct slice path)
{
    if (table->n_groups == 0) {
        return NULL;
    }
    const struct http_group *exact = bsearch(
        &path, table->groups, table->n_exact, sizeof(*exact), compare_path);
    if (exact != NULL) {
        return exact;
    }
    for (size_t i = table->n_exact; i < table->n_groups; i++) {
        const struct http_group *group = &table->groups[i];
        if (slice_starts(path, group->path)) {
            return group;
        }
    }
    return NULL;
}

bool http_table_admits(const struct http_group *group,
                       const struct net_address *client)
{
    for (size_t i = 0; i < group->n_members; i++) {
        const struct http_member *member = &group->members[i];
        size_t n = member->route->n_allow;
        if (n > 0 && !net_has_any(member->allow, n, client)) {
            return false;
        }
    }
    return true;
}
