/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "app/cli_internal.h"
#include "app/listing.h"
#include "app/setup.h"
#include "app/story.h"
#include "app/tell.h"
#include "base/check.h"
#include "base/clock.h"
#include "store/store.h"

enum { GROUPED_MAX = 1000000 };

static int64_t now_ms(void)
{
    return clock_wall_ms(clock_system());
}

/* Tells, and consumes, what was read. */
static int tell(const struct cli *cli, json_t *json,
                void (*write)(const json_t *, int64_t, struct buf *))
{
    struct buf text = BUF_INIT;

    if (cli->values[CLI_JSON] != NULL) {
        cli_print_json(cli, json);
    } else {
        write(json, now_ms(), &text);
        cli_print_text(cli, &text);
    }
    json_decref(json);
    return cli_finish(cli);
}

/* --- the store of a stopped worker --------------------------------------- */

static bool open_store(const struct site *site, struct store **store,
                       struct err *err)
{
    const struct store_options options = setup_reading(site->store);

    return store_open(store, &options, err) ||
           err_wrap(err, "no worker listens on %s", site->socket);
}

static struct listing listing_of(const struct cli *cli)
{
    return (struct listing){
        .route = cli->values[CLI_ROUTE],
        .state = cli->values[CLI_STATE],
        .reason = cli->values[CLI_REASON],
        .since = cli->values[CLI_SINCE],
        .limit = cli->values[CLI_LIMIT],
        .cursor = cli->values[CLI_CURSOR],
    };
}

static bool list_offline(const struct site *site, const struct listing *listing,
                         json_t **page, struct err *err)
{
    struct store *store;
    bool ok;

    if (!open_store(site, &store, err)) {
        return false;
    }
    ok = listing_json(listing, store, now_ms(), page, err);
    store_close(&store);
    return ok;
}

static bool find_offline(const struct cli *cli, const struct site *site,
                         struct store *store, json_t **event, struct err *err)
{
    const char *route = cli->words[0];
    const char *namespace = site_namespace(site, route);
    struct store_entry entry;
    uint16_t number;

    if (!store_namespace_number(store, namespace == NULL ? route : namespace,
                                &number, err) ||
        !store_begin(store, err)) {
        return false;
    }
    switch (store_find(store, number, slice_of(cli->values[CLI_TENANT]),
                       slice_of(cli->words[1]), &entry, err)) {
    case STORE_FOUND: {
        bool ok = story_event_full(event, store, &entry, err);

        store_abort(store);
        return ok;
    }
    case STORE_ABSENT:
        store_abort(store);
        return err_set(err, ERR_NOT_FOUND, "no event \"%s\" on \"%s\"",
                       cli->words[1], route);
    case STORE_FAILED:
        store_abort(store);
        return false;
    }
    UNREACHABLE("every result of a look-up is handled");
}

static bool show_offline(const struct cli *cli, const struct site *site,
                         json_t **event, struct err *err)
{
    struct store *store;
    bool ok;

    if (!open_store(site, &store, err)) {
        return false;
    }
    ok = find_offline(cli, site, store, event, err);
    store_close(&store);
    return ok;
}

/* --- status, show -------------------------------------------------------- */

static void write_status(const json_t *status, int64_t at_ms, struct buf *out)
{
    (void)at_ms;
    tell_status(status, out);
}

int cli_cmd_status(struct cli *cli)
{
    struct client_request request = {.target = "/v1/status"};
    struct site site = {.root = NULL};
    struct err err;
    json_t *status;
    bool ok = site_open(&site, cli_config_file(cli), &err);

    request.socket = site.socket;
    ok = ok && cli_call(&request, &status, &err);
    site_close(&site);
    return ok ? tell(cli, status, write_status) : cli_fail(cli, &err);
}

int cli_cmd_show(struct cli *cli)
{
    struct client_request request = {.target = NULL};
    struct buf target = BUF_INIT;
    struct site site = {.root = NULL};
    struct err err;
    json_t *event;
    bool ok = site_open(&site, cli_config_file(cli), &err);

    cli_event_target(cli, "", &target);
    request.socket = site.socket;
    request.target = buf_cstr(&target);
    if (ok) {
        ok = cli_call(&request, &event, &err);
        if (!ok && err.kind == ERR_UNREACHABLE) {
            ok = show_offline(cli, &site, &event, &err);
        }
    }
    site_close(&site);
    buf_free(&target);
    return ok ? tell(cli, event, tell_event) : cli_fail(cli, &err);
}

/* --- events -------------------------------------------------------------- */

static bool fetch_page(const struct site *site, const struct listing *listing,
                       json_t **page, struct err *err)
{
    struct client_request request = {.socket = site->socket};
    struct buf target = BUF_INIT;
    bool ok;

    buf_add_str(&target, "/v1/events");
    cli_add_query(&target, "route", listing->route);
    cli_add_query(&target, "state", listing->state);
    cli_add_query(&target, "reason", listing->reason);
    cli_add_query(&target, "since", listing->since);
    cli_add_query(&target, "limit", listing->limit);
    cli_add_query(&target, "cursor", listing->cursor);
    request.target = buf_cstr(&target);
    ok = cli_call(&request, page, err);
    buf_free(&target);
    if (!ok && err->kind == ERR_UNREACHABLE) {
        ok = list_offline(site, listing, page, err);
    }
    return ok;
}

/* --- events, counted by fields ------------------------------------------- */

/* The first of the fields, which are parted by commas. */
static struct slice take_field(struct slice *rest)
{
    struct slice field = {rest->data, slice_find(*rest, ',')};

    *rest =
        slice_from(*rest, field.len < rest->len ? field.len + 1 : rest->len);
    return field;
}

/* The event's values of the fields. */
static json_t *group_of(const json_t *event, const char *fields)
{
    json_t *row = json_array();
    struct slice rest = slice_of(fields);

    while (rest.len > 0) {
        struct slice field = take_field(&rest);
        char *name = mem_dup(field);
        const char *value = json_string_value(json_object_get(event, name));

        CHECK(json_array_append_new(
                  row, json_string(value == NULL ? "-" : value)) == 0);
        free(name);
    }
    return row;
}

/* `groups` maps the values, as JSON text, to how many events have them. */
static void count_page(json_t *groups, const json_t *page, const char *fields)
{
    const json_t *event;
    size_t i;

    json_array_foreach(json_object_get(page, "events"), i, event)
    {
        json_t *values = group_of(event, fields);
        char *key = json_dumps(values, JSON_COMPACT);
        json_int_t n = json_integer_value(json_object_get(groups, key));

        CHECK(json_object_set_new(groups, key, json_integer(n + 1)) == 0);
        free(key);
        json_decref(values);
    }
}

static bool count_all(const struct cli *cli, const struct site *site,
                      json_t *groups, struct err *err)
{
    struct listing listing = listing_of(cli);
    char *cursor = NULL;
    size_t n = 0;
    json_t *page;

    listing.limit = "1000";
    do {
        if (!fetch_page(site, &listing, &page, err)) {
            free(cursor);
            return false;
        }
        n += json_array_size(json_object_get(page, "events"));
        count_page(groups, page, cli->values[CLI_GROUP_BY]);
        free(cursor);
        cursor =
            json_is_string(json_object_get(page, "cursor"))
                ? mem_strdup(json_string_value(json_object_get(page, "cursor")))
                : NULL;
        listing.cursor = cursor;
        json_decref(page);
    } while (cursor != NULL && n < GROUPED_MAX);
    free(cursor);
    return true;
}

/* "reason,code" gives ["reason", "code"]. */
static json_t *fields_json(const char *fields)
{
    json_t *all = json_array();
    struct slice rest = slice_of(fields);

    while (rest.len > 0) {
        struct slice field = take_field(&rest);

        CHECK(json_array_append_new(all, json_stringn(field.data, field.len)) ==
              0);
    }
    return all;
}

/* { "fields": ["reason", "code"],
 *   "groups": [ { "values": ["exhausted", "503"], "events": 3 } ] } */
static json_t *groups_json(const json_t *groups, const char *fields)
{
    json_t *all = json_array();
    const char *key;
    json_t *n;

    json_object_foreach((json_t *)groups, key, n)
    {
        json_t *group = json_pack("{s:o, s:O}", "values",
                                  json_loads(key, 0, NULL), "events", n);

        CHECK(json_array_append_new(all, group) == 0);
    }
    return json_pack("{s:o, s:o}", "fields", fields_json(fields), "groups",
                     all);
}

static void write_groups(const json_t *json, int64_t at_ms, struct buf *out)
{
    json_t *rows = json_array(), *titles = json_pack("[s]", "EVENTS");
    const json_t *group;
    size_t i;

    (void)at_ms;
    CHECK(json_array_extend(titles, json_object_get(json, "fields")) == 0);
    CHECK(json_array_append_new(rows, titles) == 0);
    json_array_foreach(json_object_get(json, "groups"), i, group)
    {
        json_t *row = json_array();
        char n[24];

        (void)snprintf(
            n, sizeof n, "%lld",
            (long long)json_integer_value(json_object_get(group, "events")));
        CHECK(json_array_append_new(row, json_string(n)) == 0);
        CHECK(json_array_extend(row, json_object_get(group, "values")) == 0);
        CHECK(json_array_append_new(rows, row) == 0);
    }
    tell_table(rows, out);
    json_decref(rows);
}

static bool fields_ok(const char *fields)
{
    static const char *const known[] = {"reason", "code",   "state",
                                        "route",  "tenant", "why"};
    struct slice rest = slice_of(fields);
    size_t n = 0;

    while (rest.len > 0) {
        struct slice field = take_field(&rest);
        bool found = false;

        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            found |= slice_eq(field, slice_of(known[i]));
        }
        if (!found || ++n > sizeof known / sizeof known[0]) {
            return false;
        }
    }
    return n > 0;
}

static int count_events(struct cli *cli, const struct site *site)
{
    json_t *groups = json_object(), *json;
    struct err err;

    if (!fields_ok(cli->values[CLI_GROUP_BY])) {
        json_decref(groups);
        return cli_usage(cli, "--group-by takes some of reason, code, state, "
                              "route, tenant, why, with commas");
    }
    if (!count_all(cli, site, groups, &err)) {
        json_decref(groups);
        return cli_fail(cli, &err);
    }
    json = groups_json(groups, cli->values[CLI_GROUP_BY]);
    json_decref(groups);
    return tell(cli, json, write_groups);
}

int cli_cmd_events(struct cli *cli)
{
    struct listing listing = listing_of(cli);
    struct site site;
    struct err err;
    json_t *page;
    int status;

    if (!site_open(&site, cli_config_file(cli), &err)) {
        return cli_fail(cli, &err);
    }
    if (cli->values[CLI_GROUP_BY] != NULL) {
        status = count_events(cli, &site);
    } else if (fetch_page(&site, &listing, &page, &err)) {
        status = tell(cli, page, tell_events);
    } else {
        status = cli_fail(cli, &err);
    }
    site_close(&site);
    return status;
}

/* --- verify-store -------------------------------------------------------- */

static void write_report(const json_t *report, int64_t at_ms, struct buf *out)
{
    json_int_t bad = json_integer_value(json_object_get(report, "bad"));

    (void)at_ms;
    buf_printf(
        out, "%lld records, %lld envelopes, %lld dead letters, %lld audits: ",
        (long long)json_integer_value(json_object_get(report, "records")),
        (long long)json_integer_value(json_object_get(report, "envelopes")),
        (long long)json_integer_value(json_object_get(report, "dead_letters")),
        (long long)json_integer_value(json_object_get(report, "audits")));
    if (bad == 0) {
        buf_add_str(out, "ok\n");
    } else {
        buf_printf(out, "%lld bad, the first: %s\n", (long long)bad,
                   json_string_value(json_object_get(report, "first_bad")));
    }
}

int cli_cmd_verify_store(struct cli *cli)
{
    struct store_report report;
    struct site site = {.root = NULL};
    struct err err;
    bool ok = site_open(&site, cli_config_file(cli), &err) &&
              store_verify(site.store, &report, &err);
    int status;

    site_close(&site);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    status = tell(cli,
                  json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "records",
                            (json_int_t)report.records, "envelopes",
                            (json_int_t)report.envelopes, "dead_letters",
                            (json_int_t)report.dead_letters, "audits",
                            (json_int_t)report.audits, "bad",
                            (json_int_t)report.bad, "first_bad",
                            report.bad == 0
                                ? json_null()
                                : story_text(slice_of(report.first_bad))),
                  write_report);
    return status == 0 && report.bad > 0 ? ERR_DATA : status;
}
