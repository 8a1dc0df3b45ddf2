/* SPDX-License-Identifier: MIT */
#include "source/http_table.h"

#include <criterion/criterion.h>
#include <string.h>

static struct http_route route(const char *path)
{
    return (struct http_route){.name = path,
                               .path = path,
                               .methods = {"POST"},
                               .n_methods = 1,
                               .max_body_bytes = 100};
}

static const char *name_at(const struct http_table *table, const char *path)
{
    const struct http_group *group = http_table_find(table, slice_of(path));
    return group == NULL ? "none" : group->members[0].route->name;
}

Test(http_table, exact_paths_win_and_then_the_longest_prefix)
{
    struct http_route routes[] = {route("/a/*"), route("/b"), route("/a/b/*"),
                                  route("/a/b"), route("/a"), route("/*"),
                                  route("/c*")};
    static const char *const rows[][2] = {
        {"/a", "/a"},         {"/a/b", "/a/b"}, {"/a/b/", "/a/b/*"},
        {"/a/b/c", "/a/b/*"}, {"/a/c", "/a/*"}, {"/b", "/b"},
        {"/bb", "/*"},        {"/", "/*"},      {"/c*", "/c*"},
        {"/cd", "/*"},
    };
    struct http_table table;
    struct err err;
    cr_assert(http_table_build(&table, routes, 7, &err));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cr_assert_str_eq(name_at(&table, rows[i][0]), rows[i][1], "%s",
                         rows[i][0]);
    http_table_free(&table);

    cr_assert(http_table_build(&table, routes, 1, &err));
    cr_assert_str_eq(name_at(&table, "/"), "none");
    cr_assert_str_eq(name_at(&table, "/a"), "none");
    http_table_free(&table);
    cr_assert(http_table_build(&table, routes, 0, &err));
    cr_assert_str_eq(name_at(&table, "/"), "none");
    http_table_free(&table);
}

Test(http_table, what_routes_on_one_path_differ_in_is_taken_at_its_strictest)
{
    static const char *const inside[] = {"10.0.0.0/8"};
    struct http_route routes[] = {route("/a"), route("/a")};
    struct http_table table;
    struct err err;
    struct net_address in, out;
    cr_assert(net_parse_address(SLICE("10.1.1.1"), &in));
    cr_assert(net_parse_address(SLICE("11.1.1.1"), &out));
    routes[0].methods[1] = "PUT";
    routes[0].n_methods = 2;
    routes[1].max_body_bytes = 10;
    routes[1].allow = inside;
    routes[1].n_allow = 1;
    cr_assert(http_table_build(&table, routes, 2, &err));
    const struct http_group *group = http_table_find(&table, SLICE("/a"));
    cr_assert_not_null(group);
    cr_assert_eq(group->n_members, 2);
    cr_assert_eq(group->max_body_bytes, 10);
    cr_assert_str_eq(group->allowed, "POST");
    cr_assert(http_table_takes(group, SLICE("POST")));
    cr_assert_not(http_table_takes(group, SLICE("PUT")));
    cr_assert(http_table_admits(group, &in));
    cr_assert_not(http_table_admits(group, &out));
    http_table_free(&table);
}

Test(http_table, headers_that_values_are_taken_from_are_single)
{
    static const char *const more[] = {"X-More", NULL};
    static const char *const expected[] = {"X-More", "Id", "Tenant", "Order"};
    struct http_route one = route("/a");
    struct http_table table;
    struct err err;
    struct slice parts[] = {SLICE("header:Id"), SLICE("json:/x")};
    struct slice tenant = SLICE("header:Tenant");
    struct slice order = SLICE("header:Order");
    one.single_headers = more;
    cr_assert(value_add_choice(&one.id, parts, 2, &err));
    cr_assert(value_add_choice(&one.tenant, &tenant, 1, &err));
    cr_assert(value_add_choice(&one.order_by, &order, 1, &err));
    cr_assert(http_table_build(&table, &one, 1, &err));
    const char **singles = table.groups[0].members[0].single_headers;
    for (size_t i = 0; i < 4; i++)
        cr_assert_str_eq(singles[i], expected[i]);
    cr_assert_null(singles[4]);
    http_table_free(&table);
    value_free(&one.id);
    value_free(&one.tenant);
    value_free(&one.order_by);
}

Test(http_table, mistakes_name_the_route)
{
    static const char *const network[] = {"10.0.0.1/8"};
    struct http_route routes[] = {route("/a"), route("/a")};
    struct http_table table;
    struct err err;

    routes[0].path = "a";
    cr_assert_not(http_table_build(&table, routes, 1, &err));
    cr_assert_not_null(strstr(err.text, "route /a"));
    routes[0] = route("/a");
    routes[0].methods[0] = "PUT";
    cr_assert_not(http_table_build(&table, routes, 2, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    routes[0] = route("/a");
    routes[0].allow = network;
    routes[0].n_allow = 1;
    cr_assert_not(http_table_build(&table, routes, 1, &err));
    cr_assert_not_null(strstr(err.text, "10.0.0.1/8"));
}
