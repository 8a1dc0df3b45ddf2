/* SPDX-License-Identifier: MIT */
/* What the table cannot say of a route, and what is made of its values. */
#include <stdlib.h>
#include <string.h>

#include "app/config_internal.h"
#include "base/check.h"
#include "handler/wire.h"

#define GIVE_UP_AFTER_MS (INT64_C(3) * 86400 * 1000)
#define KEEP_ENVELOPE_MS (INT64_C(7) * 86400 * 1000)
#define KEEP_RESULT_MS (INT64_C(35) * 86400 * 1000)

/* --- retention -------------------------------------------------------------*/

static void check_keep(struct config_reading *reading, const char *member,
                       int64_t preset_ms, int64_t ids_ms, int64_t *keep_ms)
{
    if (*keep_ms < 0) {
        *keep_ms = preset_ms < ids_ms ? preset_ms : ids_ms;
    } else if (*keep_ms > ids_ms) {
        config_problem_at(reading, member,
                          "is longer than the retention of the ids");
    }
}

void config_retention_check(struct config_reading *reading,
                            struct store_retention *retention)
{
    int64_t most_ms = reading->config->store.retention_ms;

    if (retention->ids_ms < 0) {
        retention->ids_ms = most_ms;
    } else if (most_ms > 0 && retention->ids_ms > most_ms) {
        config_problem_at(reading, "retention",
                          "is longer than store.retention");
    }
    if (retention->ids_ms <= 0) {
        return; /* already a problem */
    }
    check_keep(reading, "keep/envelope", KEEP_ENVELOPE_MS, retention->ids_ms,
               &retention->envelope_ms);
    check_keep(reading, "keep/result", KEEP_RESULT_MS, retention->ids_ms,
               &retention->result_ms);
}

static void check_retry(struct config_reading *reading,
                        const struct config_route *route)
{
    if (!config_has_problem(reading, "retry") &&
        route->policy.max_backoff_ms < route->policy.backoff_ms) {
        config_problem_at(reading, "retry/max_backoff",
                          "is shorter than retry.backoff");
    }
}

/* --- source ----------------------------------------------------------------*/

static const char *path_problem(const char *path)
{
    size_t len = strlen(path);
    const char *star = strchr(path, '*');

    if (path[0] != '/') {
        return "must start with \"/\"";
    }
    for (const char *at = path; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~') {
            return "must be percent-encoded: blanks, control characters and "
                   "what is not ASCII as %XX";
        }
    }
    if (strpbrk(path, "?#")) {
        return "must have no query and no fragment";
    }
    if (star && (star != path + len - 1 || star[-1] != '/')) {
        return "\"*\" may only stand at the end, behind a \"/\"";
    }
    if (strncmp(path, "/.onced/", strlen("/.onced/")) == 0) {
        return "\"/.onced/\" is onced's own";
    }
    return NULL;
}

static bool method_ok(const char *method)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-";
    size_t len = strlen(method);

    return len <= 32 && strspn(method, allowed) == len;
}

static void check_methods(struct config_reading *reading,
                          const struct config_strings *methods)
{
    size_t mark = config_enter(reading, "methods");

    if (methods->n > HTTP_METHODS_MAX) {
        config_problem(reading, "has more than %d methods", HTTP_METHODS_MAX);
    }
    for (size_t i = 0; i < methods->n; i++) {
        size_t item = config_enter_item(reading, i);

        if (!method_ok(methods->items[i])) {
            config_problem(reading, "must be a method in upper case");
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(methods->items[k], methods->items[i]) == 0) {
                config_problem(reading, "is in the list twice");
            }
        }
        config_leave(reading, item);
    }
    config_leave(reading, mark);
}

static void check_max_body(struct config_reading *reading,
                           struct config_route *route)
{
    const struct config *config = reading->config;

    if (route->max_body_bytes == 0) {
        route->max_body_bytes = config->listen.max_body_bytes;
        return; /* checked there */
    }
    if (config->listen.max_in_flight_bytes > 0 &&
        route->max_body_bytes > config->listen.max_in_flight_bytes) {
        config_problem_at(reading, "max_body",
                          "is more than listen.max_in_flight");
    }
    if (config->inbox.max_bytes > 0 &&
        route->max_body_bytes > config->inbox.max_bytes / 2) {
        config_problem_at(reading, "max_body",
                          "is more than half of inbox.max_bytes");
    }
}

static void check_http_source(struct config_reading *reading,
                              struct config_route *route)
{
    size_t source = config_enter(reading, "source");
    size_t http = config_enter(reading, "http");
    const char *problem = route->path ? path_problem(route->path) : NULL;

    if (problem) {
        config_problem_at(reading, "path", "%s", problem);
    }
    check_methods(reading, &route->methods);
    check_max_body(reading, route);
    config_check_networks(reading, "allow", &route->allow);
    if (route->public_url) {
        config_check_url(reading, "public_url", route->public_url);
    }
    config_leave(reading, http);
    config_leave(reading, source);
}

/* --- verification and identity ---------------------------------------------*/

static bool scheme_is(const struct config_route *route, const char *scheme)
{
    return route->verify_scheme && strcmp(route->verify_scheme, scheme) == 0;
}

/* "secrets/0: is empty" names the option it means; "public_url" is not one
 * of "verify", and what is wrong with it is known already. */
static void note_verify_problem(struct config_reading *reading,
                                const struct err *err)
{
    size_t len = strspn(err->text, "abcdefghijklmnopqrstuvwxyz_/0123456789");
    struct buf member = BUF_INIT;

    buf_add_str(&member, "verify");
    if (len > 0 && strncmp(err->text + len, ": ", 2) == 0) {
        buf_printf(&member, "/%.*s", (int)len, err->text);
        config_problem_at(reading, buf_cstr(&member), "%s",
                          err->text + len + 2);
    } else {
        config_problem_at(reading, buf_cstr(&member), "%s", err->text);
    }
    buf_free(&member);
}

static void make_verifier(struct config_reading *reading,
                          struct config_route *route)
{
    const struct config_verify *verify = &route->verify;
    struct slice *secrets = mem_new(verify->secrets.n + 1, sizeof(*secrets));
    struct verify_options options = {
        .scheme = route->verify_scheme,
        .algorithm = verify->algorithm,
        .header = verify->header,
        .encoding = verify->encoding,
        .prefix = verify->prefix,
        .key_encoding = verify->key_encoding,
        .signed_pieces = (const char *const *)verify->signed_pieces.items,
        .n_signed = verify->signed_pieces.n,
        .timestamp_header = verify->timestamp_header,
        .timestamp_unit = verify->timestamp_unit,
        .tolerance_ms = verify->tolerance_ms,
        .secrets = secrets,
        .n_secrets = verify->secrets.n,
        .public_url = route->public_url,
    };
    struct err err;

    for (size_t i = 0; i < verify->secrets.n; i++) {
        secrets[i] = slice_of(verify->secrets.items[i]);
    }
    if (!verifier_new(&route->verifier, &options, &err)) {
        note_verify_problem(reading, &err);
    }
    free(secrets);
}

/* "none" takes no other key: whoever writes a secret beside it believes that
 * it is used. */
static void check_no_verify(struct config_reading *reading,
                            const struct config_route *route)
{
    const struct config_verify *verify = &route->verify;

    if (verify->secrets.n > 0 || verify->algorithm || verify->header ||
        verify->encoding || verify->prefix || verify->key_encoding ||
        verify->signed_pieces.n > 0 || verify->has_timestamp ||
        verify->tolerance_ms >= 0) {
        config_problem_at(reading, "verify",
                          "the scheme \"none\" takes no other key");
    }
}

static void check_verify(struct config_reading *reading,
                         struct config_route *route)
{
    if (!route->has_verify) {
        config_problem_at(reading, "verify",
                          "is required; \"none\" takes anything from anybody");
    }
    if (!route->verify_scheme || config_has_problem(reading, "verify") ||
        config_has_problem(reading, "source/http/public_url")) {
        return;
    }
    if (scheme_is(route, "none")) {
        check_no_verify(reading, route);
    } else {
        make_verifier(reading, route);
    }
}

/* The usual ids of the scheme: expressions with a blank between. */
static void fill_scheme_id(struct config_route *route)
{
    const char *usual =
        route->verifier ? verify_scheme_id(route->verify_scheme) : NULL;
    struct slice rest = slice_of(usual);

    while (rest.len > 0) {
        size_t end = slice_find(rest, ' ');
        struct slice text = {rest.data, end};
        struct err err;
        bool ok = value_add_choice(&route->id, &text, 1, &err);

        CHECK(ok);
        rest = slice_from(rest, end < rest.len ? end + 1 : end);
    }
}

/* Values that a source does not have. */
struct unfit {
    enum value_kind kind;
    const char *why;
};

#define NOT_HTTP "kafka: has no value on a route whose source is http"

static const struct unfit unfit_http[] = {
    {VALUE_KAFKA_KEY, NOT_HTTP},
    {VALUE_KAFKA_HEADER, NOT_HTTP},
    {VALUE_KAFKA_POSITION, NOT_HTTP},
};
static const struct unfit unfit_kafka[] = {
    {VALUE_HEADER, "header: has no value on a route whose source is kafka; "
                   "write kafka:header:"},
    {VALUE_QUERY, "query: has no value on a route whose source is kafka"},
};

static const char *unfit_value(const struct config_route *route,
                               const struct value *value)
{
    const struct unfit *table =
        route->has_kafka_source ? unfit_kafka : unfit_http;
    size_t n = route->has_kafka_source
                   ? sizeof(unfit_kafka) / sizeof(unfit_kafka[0])
                   : sizeof(unfit_http) / sizeof(unfit_http[0]);

    for (size_t i = 0; i < n; i++) {
        if (value_uses(value, table[i].kind)) {
            return table[i].why;
        }
    }
    return NULL;
}

static void check_values(struct config_reading *reading,
                         struct config_route *route)
{
    const struct {
        const char *key;
        const struct value *value;
    } values[] = {{"id", &route->id},
                  {"tenant", &route->tenant},
                  {"order_by", &route->order_by}};

    if (route->id.n_choices == 0 && !config_has_problem(reading, "id")) {
        fill_scheme_id(route);
    }
    if (route->id.n_choices == 0 && !config_has_problem(reading, "id") &&
        !config_has_problem(reading, "verify")) {
        config_problem_at(reading, "id", "is required%s",
                          route->has_kafka_source
                              ? "; \"kafka:position\" is what every message has"
                              : "");
    }
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const char *why = unfit_value(route, values[i].value);

        if (why) {
            config_problem_at(reading, values[i].key, "%s", why);
        }
    }
}

/* --- the answer ------------------------------------------------------------*/

void config_check_headers(struct config_reading *reading, const char *member,
                          const struct config_pairs *headers,
                          bool (*is_own)(struct slice name))
{
    size_t mark = reading->pointer.len;

    buf_printf(&reading->pointer, "/%s", member);
    for (size_t i = 0; i < headers->n; i++) {
        struct slice name = slice_of(headers->items[i][0]);
        size_t item = config_enter(reading, headers->items[i][0]);

        if (!wire_is_token(name)) {
            config_problem(reading, "is not the name of a header");
        } else if (is_own(name)) {
            config_problem(reading, "is set by onced");
        }
        if (!wire_is_value(slice_of(headers->items[i][1]))) {
            config_problem(reading, "has a control character");
        }
        config_leave(reading, item);
    }
    config_leave(reading, mark);
}

static bool is_own_answer_header(struct slice name)
{
    static const char *const own[] = {"Connection", "Keep-Alive", "Date",
                                      "Retry-After", "Idempotency-Status"};

    return wire_is_framing(name) ||
           wire_is_one_of(name, own, sizeof(own) / sizeof(own[0]));
}

/* The content type has a field of its own. */
static void take_content_type(struct config_route *route)
{
    struct config_pairs *headers = &route->answer_headers;

    for (size_t i = 0; i < headers->n; i++) {
        if (!slice_eq_nocase(slice_of(headers->items[i][0]),
                             SLICE("Content-Type"))) {
            continue;
        }
        route->answer_content_type = (char *)headers->items[i][1];
        free((char *)headers->items[i][0]);
        headers->n--;
        memmove(headers->items + i, headers->items + i + 1,
                (headers->n - i) * sizeof(*headers->items));
        return;
    }
    if (route->answer_body) {
        route->answer_content_type = mem_strdup("text/plain; charset=utf-8");
    }
}

static void check_respond(struct config_reading *reading,
                          struct config_route *route)
{
    config_check_headers(reading, "respond/headers", &route->answer_headers,
                         is_own_answer_header);
    if (route->answer_status == 204 && route->answer_body &&
        *route->answer_body != '\0') {
        config_problem_at(reading, "respond/body",
                          "an answer with status 204 has no body");
    }
    take_content_type(route);
    route->rules.respond = route->policy.respond;
}

/* --- the whole -------------------------------------------------------------*/

static void check_retired(struct config_reading *reading,
                          const struct config_route *route)
{
    const struct {
        const char *key;
        bool is_there;
    } keys[] = {{"source", route->has_source},
                {"handler", route->has_handler},
                {"verify", route->has_verify},
                {"id", route->id.n_choices > 0},
                {"tenant", route->tenant.n_choices > 0},
                {"order_by", route->order_by.n_choices > 0}};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].is_there) {
            config_problem_at(reading, keys[i].key, "a retired route has none");
        }
    }
}

static void check_live(struct config_reading *reading,
                       struct config_route *route)
{
    if (!route->has_source) {
        config_problem_at(reading, "source",
                          "is required, unless the route is retired");
    } else if (route->has_http_source == route->has_kafka_source &&
               !config_has_problem(reading, "source")) {
        config_problem_at(reading, "source",
                          "must have one of \"http\" and \"kafka\"");
        return;
    }
    if (route->has_kafka_source) {
        config_kafka_source_check(reading, route);
        check_values(reading, route);
    } else if (route->has_http_source) {
        check_http_source(reading, route);
        check_verify(reading, route);
        check_values(reading, route);
    }
    config_handler_check(reading, route);
}

void config_route_check(struct config_reading *reading,
                        struct config_route *route)
{
    if (route->name && !config_name_ok(route->name)) {
        config_problem_at(reading, "name",
                          "must be 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    if (route->namespace && !config_name_ok(route->namespace)) {
        config_problem_at(reading, "namespace",
                          "must be 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    if (!route->namespace && route->name) {
        route->namespace = mem_strdup(route->name);
    }
    config_retention_check(reading, &route->retention);
    check_retry(reading, route);
    if (route->retired) {
        check_retired(reading, route);
    } else {
        check_live(reading, route);
    }
    if (route->policy.give_up_after_ms < 0) {
        route->policy.give_up_after_ms = GIVE_UP_AFTER_MS;
    }
    config_dead_letter_check(reading, route);
    check_respond(reading, route);
}
