/* SPDX-License-Identifier: MIT */
/* What the table cannot say of a handler, and the options made of it. */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/config_internal.h"
#include "base/check.h"
#include "base/text.h"
#include "handler/wire.h"

static char *url_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, 0) == CURLUE_OK ? text : NULL;
}

/* What is wrong with a parsed URL, or NULL. */
static const char *url_problem(CURLU *url)
{
    char *scheme = url_part(url, CURLUPART_SCHEME);
    char *user = url_part(url, CURLUPART_USER);
    char *fragment = url_part(url, CURLUPART_FRAGMENT);
    const char *problem = NULL;

    if (!scheme ||
        (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)) {
        problem = "must be an http or https URL";
    } else if (user) {
        problem = "must have no user and password; put them into headers";
    } else if (fragment) {
        problem = "must have no fragment";
    }
    curl_free(scheme);
    curl_free(user);
    curl_free(fragment);
    return problem;
}

void config_check_url(struct config_reading *reading, const char *member,
                      const char *text)
{
    CURLU *url = curl_url();
    const char *problem;

    CHECK(url != NULL);
    problem = curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK
                  ? url_problem(url)
                  : "must be an http or https URL";
    if (problem) {
        config_problem_at(reading, member, "%s", problem);
    }
    curl_url_cleanup(url);
}

/* --- http ------------------------------------------------------------------*/

static void take_statuses(struct config_reading *reading,
                          struct config_route *route)
{
    const struct config_statuses *not_applied = &route->not_applied;
    const struct config_statuses *final = &route->final;
    struct outcome_rules *rules = &route->rules;

    for (size_t i = 0; i < final->n; i++) {
        for (size_t k = 0; k < not_applied->n; k++) {
            if (final->items[i] == not_applied->items[k]) {
                config_problem_at(reading, "final",
                                  "%u is in \"not_applied\", too",
                                  final->items[i]);
            }
        }
    }
    memcpy(rules->not_applied, not_applied->items, sizeof(rules->not_applied));
    memcpy(rules->final, final->items, sizeof(rules->final));
    rules->n_not_applied = not_applied->n;
    rules->n_final = final->n;
    rules->has_not_applied = not_applied->set;
    rules->has_final = final->set;
}

/* Length of what the route's own wildcard path has before the "*". */
static size_t prefix_len(const char *path)
{
    size_t len = path ? strlen(path) : 0;

    return len > 0 && path[len - 1] == '*' ? len - 1 : 0;
}

static bool is_own_header(struct slice name)
{
    return wire_is_framing(name) || wire_is_reserved(name);
}

static void check_http(struct config_reading *reading,
                       struct config_route *route)
{
    size_t mark = config_enter(reading, "http");

    route->handler = CONFIG_HANDLER_HTTP;
    if (route->url) {
        config_check_url(reading, "url", route->url);
    }
    config_check_headers(reading, "headers", &route->handler_headers,
                         is_own_header);
    take_statuses(reading, route);
    route->http.url = route->url;
    route->http.headers = route->handler_headers.items;
    route->http.n_headers = route->handler_headers.n;
    route->http.concurrency = route->concurrency;
    route->http.max_result_bytes = route->max_result_bytes;
    route->http.ca_file = route->ca_file;
    route->http.path_prefix_len = prefix_len(route->path);
    config_leave(reading, mark);
}

/* --- exec ------------------------------------------------------------------*/

static bool variable_ok(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz_0123456789";
    size_t len = strlen(name);

    return len > 0 && strspn(name, allowed) == len &&
           (name[0] < '0' || name[0] > '9');
}

static bool variable_is_own(const char *name)
{
    return strncmp(name, "ONCED_", strlen("ONCED_")) == 0 ||
           strcmp(name, "IDEMPOTENCY_KEY") == 0 ||
           strcmp(name, "CONTENT_TYPE") == 0;
}

static void take_environment(struct config_reading *reading,
                             struct config_route *route)
{
    size_t mark = config_enter(reading, "environment");

    for (size_t i = 0; i < route->environment.n; i++) {
        const char *name = route->environment.items[i][0];
        size_t item = config_enter(reading, name);
        struct buf line = BUF_INIT;

        if (!variable_ok(name)) {
            config_problem(reading, "is not the name of a variable");
        } else if (variable_is_own(name)) {
            config_problem(reading, "is set by onced");
        }
        buf_printf(&line, "%s=%s", name, route->environment.items[i][1]);
        config_strings_add(&route->environment_lines,
                           mem_dup(buf_slice(&line)));
        explicit_bzero(line.data, line.cap);
        buf_free(&line);
        config_leave(reading, item);
    }
    config_leave(reading, mark);
}

/* A name without a slash is searched in PATH when the handler starts. */
static void take_command(struct config_reading *reading,
                         struct config_route *route)
{
    char **program = route->command.n > 0 ? &route->command.items[0] : NULL;
    char *path;

    if (!program || !strchr(*program, '/')) {
        return;
    }
    path = config_value_path(reading, slice_of(*program));
    free(*program);
    *program = path;
}

static void check_exec(struct config_reading *reading,
                       struct config_route *route)
{
    size_t mark = config_enter(reading, "exec");
    struct stat status;

    route->handler = CONFIG_HANDLER_EXEC;
    take_command(reading, route);
    take_environment(reading, route);
    if (!route->cwd) {
        route->cwd = mem_strdup(reading->config->folder);
    } else if (stat(route->cwd, &status) != 0 || !S_ISDIR(status.st_mode)) {
        config_problem_at(reading, "cwd", "is not a folder");
    }
    route->exec.command = (const char *const *)route->command.items;
    route->exec.cwd = route->cwd;
    route->exec.environment =
        (const char *const *)route->environment_lines.items;
    route->exec.route = route->name;
    route->exec.concurrency = route->concurrency;
    route->exec.max_result_bytes = route->max_result_bytes;
    config_leave(reading, mark);
}

/* --- noop ------------------------------------------------------------------*/

/* "5ms", or "0ms..5ms" */
static bool parse_delay(struct slice text, int64_t *min_ms, int64_t *max_ms)
{
    const char *dots = memmem(text.data, text.len, "..", 2);
    size_t end = dots ? (size_t)(dots - text.data) : text.len;
    struct slice first = {text.data, end};

    if (!dots) {
        if (!text_duration_ms(text, min_ms)) {
            return false;
        }
        *max_ms = *min_ms;
        return true;
    }
    return text_duration_ms(first, min_ms) &&
           text_duration_ms(slice_from(text, end + 2), max_ms) &&
           *min_ms <= *max_ms;
}

static void check_noop(struct config_reading *reading,
                       struct config_route *route)
{
    struct noop_handler_options *noop = &route->noop;
    size_t mark = config_enter(reading, "noop");

    route->handler = CONFIG_HANDLER_NOOP;
    if (route->noop_delay &&
        !parse_delay(slice_of(route->noop_delay), &noop->min_delay_ms,
                     &noop->max_delay_ms)) {
        config_problem_at(reading, "delay",
                          "must be a duration, or two: \"0ms..5ms\"");
    } else if (route->policy.timeout_ms > 0 &&
               noop->max_delay_ms >= route->policy.timeout_ms) {
        config_problem_at(reading, "delay", "must be shorter than the timeout");
    }
    config_leave(reading, mark);
}

void config_handler_check(struct config_reading *reading,
                          struct config_route *route)
{
    int n =
        route->has_http + route->has_exec + route->has_noop + route->has_kafka;
    size_t mark;

    if (!route->has_handler) {
        config_problem_at(reading, "handler",
                          "is required, unless the route is retired");
        return;
    }
    if (n != 1) {
        if (n > 1 || !config_has_problem(reading, "handler")) {
            config_problem_at(reading, "handler",
                              "must have one of \"http\", \"exec\", "
                              "\"kafka\" and \"noop\"");
        }
        return;
    }
    mark = config_enter(reading, "handler");
    if (route->has_http) {
        check_http(reading, route);
    } else if (route->has_exec) {
        check_exec(reading, route);
    } else if (route->has_kafka) {
        config_kafka_handler_check(reading, route);
    } else {
        check_noop(reading, route);
    }
    config_leave(reading, mark);
}
