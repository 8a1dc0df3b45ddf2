/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "app/cli_internal.h"
#include "app/story.h"
#include "base/check.h"
#include "base/text.h"

enum { WAIT_POLL_MS = 250, WAITED_FOR_MAX = 100000 };

/* What replay and rerun do not share. */
struct bulk {
    const char *one;    /* the order on one event */
    const char *all;    /* the endpoint for all that match */
    const char *state;  /* of what it is for */
    const char *counts; /* the member that counts what was done */
};

static const struct bulk replays = {"/replay", "/v1/replay", "DEAD",
                                    "replayed"};
static const struct bulk reruns = {"/rerun", "/v1/rerun", "SUCCEEDED", "rerun"};

static const struct bulk *bulk_of(const struct cli *cli)
{
    return cli->command->run == cli_cmd_rerun ? &reruns : &replays;
}

static void set(json_t *object, const char *name, json_t *value)
{
    CHECK(json_object_set_new(object, name, value) == 0);
}

/* --- waiting until events are settled ------------------------------------ */

static void add_target(json_t *targets, const json_t *event)
{
    struct buf target = BUF_INIT;
    const char *tenant = json_string_value(json_object_get(event, "tenant"));

    buf_add_str(&target, "/v1/events/");
    text_percent(slice_of(json_string_value(json_object_get(event, "route"))),
                 &target);
    buf_add_byte(&target, '/');
    text_percent(slice_of(json_string_value(json_object_get(event, "id"))),
                 &target);
    if (tenant != NULL && tenant[0] != '\0') {
        cli_add_query(&target, "tenant", tenant);
    }
    CHECK(json_array_append_new(targets, json_string(buf_cstr(&target))) == 0);
    buf_free(&target);
}

static bool is_settled(const json_t *event)
{
    const char *state = json_string_value(json_object_get(event, "state"));

    return state != NULL &&
           (strcmp(state, "SUCCEEDED") == 0 || strcmp(state, "FAILED") == 0 ||
            strcmp(state, "DEAD") == 0);
}

void cli_sleep_ms(int64_t ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&time, &time) != 0 && errno == EINTR) {
    }
}

/* Nobody waits for an event of a paused route: it might be for ever. */
static bool goes_on(const struct site *site, const json_t *event,
                    struct err *err)
{
    const struct client_request request = {.socket = site->socket,
                                           .target = "/v1/status"};
    const char *name = json_string_value(json_object_get(event, "route"));
    json_t *status;
    const json_t *route;
    bool paused = false;
    size_t i;

    if (!cli_call(&request, &status, err)) {
        return false;
    }
    json_array_foreach(json_object_get(status, "routes"), i, route)
    {
        const char *other = json_string_value(json_object_get(route, "name"));

        if (name != NULL && other != NULL && strcmp(name, other) == 0) {
            paused = json_is_true(json_object_get(route, "paused"));
        }
    }
    json_decref(status);
    return !paused ||
           err_set(err, ERR_AGAIN,
                   "route \"%s\" is paused: its events are not waited for",
                   name);
}

static bool wait_for(const struct site *site, const char *target,
                     json_t **event, struct err *err)
{
    const struct client_request request = {.socket = site->socket,
                                           .target = target};

    for (;;) {
        if (!cli_call(&request, event, err)) {
            return false;
        }
        if (is_settled(*event)) {
            return true;
        }
        if (!goes_on(site, *event, err)) {
            json_decref(*event);
            return false;
        }
        json_decref(*event);
        cli_sleep_ms(WAIT_POLL_MS);
    }
}

/* Waits for all, and counts how many ended in which state. */
static bool wait_for_all(const struct site *site, const json_t *targets,
                         json_t *states, struct err *err)
{
    const json_t *target;
    const char *state;
    json_t *event;
    size_t i;

    json_array_foreach(targets, i, target)
    {
        if (!wait_for(site, json_string_value(target), &event, err)) {
            return false;
        }
        state = json_string_value(json_object_get(event, "state"));
        set(states, state,
            json_integer(json_integer_value(json_object_get(states, state)) +
                         1));
        json_decref(event);
    }
    return true;
}

/* What was waited for did not come to a good end. */
static bool any_failed(const json_t *states)
{
    return json_object_get(states, "DEAD") != NULL ||
           json_object_get(states, "FAILED") != NULL;
}

static void tell_states(const struct cli *cli, json_t *states)
{
    const char *state;
    const json_t *n;

    json_object_foreach(states, state, n)
    {
        (void)fprintf(cli->out, "%lld %s\n", (long long)json_integer_value(n),
                      state);
    }
}

/* --- one event ----------------------------------------------------------- */

static int wait_for_one(struct cli *cli)
{
    json_t *targets = json_array(), *states = json_object();
    struct buf target = BUF_INIT;
    struct site site = {.root = NULL};
    struct err err;
    int status;

    cli_event_target(cli, "", &target);
    CHECK(json_array_append_new(targets, json_string(buf_cstr(&target))) == 0);
    buf_free(&target);
    if (site_open(&site, cli_config_file(cli), &err) &&
        wait_for_all(&site, targets, states, &err)) {
        if (cli->values[CLI_JSON] == NULL) {
            tell_states(cli, states);
        }
        status = cli_finish(cli);
        if (status == 0 && any_failed(states)) {
            status = ERR_AGAIN;
        }
    } else {
        status = cli_fail(cli, &err);
    }
    site_close(&site);
    json_decref(states);
    json_decref(targets);
    return status;
}

static int order_one(struct cli *cli)
{
    json_t *body = cli_order_body(cli);
    struct buf target = BUF_INIT;
    int status;

    if (cli->values[CLI_ASSUME_NOT_APPLIED] != NULL) {
        set(body, "assume_not_applied", json_true());
    }
    cli_event_target(cli, bulk_of(cli)->one, &target);
    status = cli_order(cli, buf_cstr(&target), body);
    buf_free(&target);
    if (status == 0 && cli->values[CLI_WAIT] != NULL &&
        cli->values[CLI_DRY_RUN] == NULL) {
        status = wait_for_one(cli);
    }
    return status;
}

/* --- all that match ------------------------------------------------------ */

bool cli_rate(const struct cli *cli, uint64_t *per_second, struct err *err)
{
    const char *rate = cli->values[CLI_RATE];
    struct slice digits = slice_of(rate);

    *per_second = 0;
    if (rate == NULL) {
        return true;
    }
    digits.len = slice_find(digits, '/');
    if (!text_u64(digits, per_second) || *per_second == 0 ||
        *per_second > INT32_MAX ||
        (rate[digits.len] != '\0' && strcmp(rate + digits.len, "/s") != 0)) {
        return err_set(err, ERR_USAGE, "--rate must be like 50/s");
    }
    return true;
}

static bool add_rate(const struct cli *cli, json_t *body, struct err *err)
{
    char text[32];
    uint64_t n;

    if (!cli_rate(cli, &n, err)) {
        return false;
    }
    if (n > 0) {
        (void)snprintf(text, sizeof text, "%llu/s", (unsigned long long)n);
        set(body, "rate", json_string(text));
    }
    return true;
}

static bool add_limit(const struct cli *cli, json_t *body, struct err *err)
{
    uint64_t limit;

    if (cli->values[CLI_LIMIT] == NULL) {
        return true;
    }
    if (!text_u64(slice_of(cli->values[CLI_LIMIT]), &limit) || limit == 0 ||
        limit > INT32_MAX) {
        return err_set(err, ERR_USAGE, "--limit must be a number from 1");
    }
    set(body, "limit", json_integer((json_int_t)limit));
    return true;
}

static json_t *filter_body(const struct cli *cli, struct err *err)
{
    static const struct {
        enum cli_option option;
        const char *name;
    } texts[] = {
        {CLI_ROUTE, "route"},
        {CLI_REASON, "reason"},
        {CLI_SINCE, "since"},
    };
    json_t *body = cli_order_body(cli);

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = cli->values[texts[i].option];

        if (text != NULL) {
            set(body, texts[i].name, story_text(slice_of(text)));
        }
    }
    if (cli->values[CLI_ASSUME_NOT_APPLIED] != NULL) {
        set(body, "assume_not_applied", json_true());
    }
    if (cli->values[CLI_AGAIN] != NULL) {
        set(body, "again", json_true());
    }
    if (!add_rate(cli, body, err) || !add_limit(cli, body, err)) {
        json_decref(body);
        return NULL;
    }
    return body;
}

static bool is_wanted(const struct cli *cli, const json_t *event)
{
    return bulk_of(cli) != &reruns || cli->values[CLI_AGAIN] != NULL ||
           json_integer_value(json_object_get(event, "run")) == 1;
}

static bool add_page(const struct cli *cli,
                     const struct client_request *request, json_t *targets,
                     json_t **cursor, struct err *err)
{
    const json_t *event;
    json_t *page;
    size_t i;

    if (!cli_call(request, &page, err)) {
        return false;
    }
    json_array_foreach(json_object_get(page, "events"), i, event)
    {
        if (is_wanted(cli, event)) {
            add_target(targets, event);
        }
    }
    *cursor = json_incref(json_object_get(page, "cursor"));
    json_decref(page);
    return true;
}

/* What matches now: that is what to wait for. */
static bool collect(const struct cli *cli, const struct site *site,
                    json_t *targets, struct err *err)
{
    struct client_request request = {.socket = site->socket};
    json_t *cursor = NULL;
    bool ok;

    do {
        struct buf target = BUF_INIT;

        buf_add_str(&target, "/v1/events?limit=1000");
        cli_add_query(&target, "state", bulk_of(cli)->state);
        cli_add_query(&target, "route", cli->values[CLI_ROUTE]);
        cli_add_query(&target, "reason", cli->values[CLI_REASON]);
        cli_add_query(&target, "since", cli->values[CLI_SINCE]);
        cli_add_query(&target, "cursor", json_string_value(cursor));
        json_decref(cursor);
        cursor = NULL;
        request.target = buf_cstr(&target);
        ok = add_page(cli, &request, targets, &cursor, err);
        buf_free(&target);
    } while (ok && json_is_string(cursor) &&
             json_array_size(targets) < WAITED_FOR_MAX);
    json_decref(cursor);
    return ok;
}

static long long number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void tell_count(const struct cli *cli, const json_t *counts,
                       const char *name, const char *what)
{
    (void)fprintf(cli->out, ", %lld %s", number(counts, name), what);
}

static void tell_counts(const struct cli *cli, const json_t *counts)
{
    const struct bulk *bulk = bulk_of(cli);

    if (cli->values[CLI_JSON] != NULL) {
        cli_print_json(cli, counts);
        return;
    }
    (void)fprintf(cli->out, "%lld matched, %lld %s%s",
                  number(counts, "matched"), number(counts, bulk->counts),
                  cli->values[CLI_DRY_RUN] != NULL ? "would be " : "",
                  bulk->counts);
    if (bulk == &reruns) {
        tell_count(cli, counts, "skipped_run_before",
                   "skipped that were run again before");
        tell_count(cli, counts, "skipped_not_kept",
                   "skipped whose request is not kept");
    } else {
        tell_count(cli, counts, "skipped_in_doubt", "skipped in doubt");
    }
    if (number(counts, "skipped_retired") > 0) {
        tell_count(cli, counts, "skipped_retired",
                   "skipped whose route is retired");
    }
    tell_count(cli, counts, "nothing_to_do", "with nothing to do");
    tell_count(cli, counts, "refused", "refused");
    if (number(counts, "left") > 0) {
        tell_count(cli, counts, "left", "left");
    }
    (void)fputc('\n', cli->out);
    if (json_is_true(json_object_get(counts, "more"))) {
        (void)fputs("there are more: give the order again\n", cli->out);
    }
}

static bool was_cut_short(const json_t *counts)
{
    return json_is_true(json_object_get(counts, "cut_short"));
}

/* Whether the same order, given again, finds more to do. */
static bool was_skipped(const json_t *counts)
{
    return number(counts, "skipped_in_doubt") > 0 ||
           number(counts, "no_room") > 0 || was_cut_short(counts);
}

/* Orders by `body`, waits where that is wanted, and tells it all at once, so
 * that --json prints one value. */
static bool order_and_wait(const struct cli *cli, const struct site *site,
                           const json_t *body, json_t **counts, struct err *err)
{
    const struct client_request request = {.socket = site->socket,
                                           .target = bulk_of(cli)->all,
                                           .body = body,
                                           .is_long = true};
    bool waits =
        cli->values[CLI_WAIT] != NULL && cli->values[CLI_DRY_RUN] == NULL;
    json_t *targets = json_array(), *states = json_object();
    bool ok = (!waits || collect(cli, site, targets, err)) &&
              cli_call(&request, counts, err);

    if (ok && was_cut_short(*counts)) {
        waits = false; /* nobody is there to ask */
        (void)fputs("onced: the worker stopped before it came to all of them: "
                    "give the order again\n",
                    cli->err);
    }
    if (ok && waits) {
        ok = wait_for_all(site, targets, states, err);
    }
    if (ok && waits) {
        CHECK(json_object_set(*counts, "settled", states) == 0);
    }
    if (ok) {
        tell_counts(cli, *counts);
    }
    if (ok && waits && cli->values[CLI_JSON] == NULL) {
        tell_states(cli, states);
    }
    json_decref(targets);
    json_decref(states);
    return ok;
}

static int order_all(struct cli *cli)
{
    struct site site = {.root = NULL};
    struct err err;
    json_t *body = filter_body(cli, &err), *counts = NULL;
    int status;

    if (body != NULL && site_open(&site, cli_config_file(cli), &err) &&
        order_and_wait(cli, &site, body, &counts, &err)) {
        status = cli_finish(cli);
        if (status == 0 && (was_skipped(counts) ||
                            any_failed(json_object_get(counts, "settled")))) {
            status = ERR_AGAIN;
        }
    } else {
        status = cli_fail(cli, &err);
    }
    site_close(&site);
    json_decref(body);
    json_decref(counts);
    return status;
}

/* Whether one of the options is given that go with all that match. */
static bool has_filter(const struct cli *cli)
{
    static const enum cli_option filters[] = {CLI_ROUTE, CLI_REASON, CLI_SINCE,
                                              CLI_RATE,  CLI_LIMIT,  CLI_AGAIN};

    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        if (cli->values[filters[i]] != NULL) {
            return true;
        }
    }
    return false;
}

/* Whether an option is given that goes with --from-topic alone. */
static bool has_topic_option(const struct cli *cli)
{
    return cli->values[CLI_CLUSTER] != NULL || cli->values[CLI_UNTIL] != NULL ||
           cli->values[CLI_ID] != NULL || cli->values[CLI_MAX_REPLAYS] != NULL;
}

static int replay_topic(struct cli *cli)
{
    if (cli->n_words > 0 || cli->values[CLI_DEAD] != NULL ||
        cli->values[CLI_TENANT] != NULL || cli->values[CLI_LIMIT] != NULL ||
        cli->values[CLI_WAIT] != NULL) {
        return cli_usage(cli, "--from-topic goes with no ROUTE ID, --dead, "
                              "--tenant, --limit and --wait");
    }
    return cli_replay_letters(cli);
}

int cli_cmd_replay(struct cli *cli)
{
    if (cli->values[CLI_FROM_TOPIC] != NULL) {
        return replay_topic(cli);
    }
    if (has_topic_option(cli)) {
        return cli_usage(cli, "--cluster, --until, --id and --max-replays go "
                              "with --from-topic");
    }
    if (cli->values[CLI_DEAD] != NULL) {
        if (cli->n_words > 0 || cli->values[CLI_TENANT] != NULL) {
            return cli_usage(cli, "--dead goes with no ROUTE ID and no tenant");
        }
        return order_all(cli);
    }
    if (has_filter(cli)) {
        return cli_usage(cli, "filters go with --dead");
    }
    if (cli->n_words != 2) {
        return cli_usage(cli, "give ROUTE ID, --dead, or --from-topic TOPIC");
    }
    return order_one(cli);
}

int cli_cmd_rerun(struct cli *cli)
{
    if (cli->values[CLI_SINCE] != NULL) {
        if (cli->n_words > 0 || cli->values[CLI_TENANT] != NULL) {
            return cli_usage(cli,
                             "--since goes with no ROUTE ID and no tenant");
        }
        return order_all(cli);
    }
    if (has_filter(cli)) {
        return cli_usage(cli, "filters go with --since");
    }
    if (cli->n_words != 2) {
        return cli_usage(cli, "give ROUTE ID, or --since");
    }
    return order_one(cli);
}
