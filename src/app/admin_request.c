/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "app/actor.h"
#include "app/admin_internal.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"
#include "source/value.h"

static const struct admin_endpoint endpoints[] = {
    {"GET", "/healthz", ADMIN_OPEN, "", admin_health},
    {"GET", "/readyz", ADMIN_OPEN, "", admin_ready},
    {"GET", "/metrics", ADMIN_OPEN, "", admin_metrics},
    {"GET", "/v1/status", ADMIN_READ, "", admin_status},
    {"GET", "/v1/events", ADMIN_READ, "route state reason since limit cursor",
     admin_events},
    {"GET", "/v1/events/*/*", ADMIN_READ, "tenant", admin_event},
    {"POST", "/v1/events/*/*/replay", ADMIN_OPERATE, "tenant", admin_replay},
    {"POST", "/v1/events/*/*/rerun", ADMIN_OPERATE, "tenant", admin_rerun},
    {"POST", "/v1/events/*/*/resolve", ADMIN_OPERATE, "tenant", admin_resolve},
    {"POST", "/v1/events/*/*/discard", ADMIN_OPERATE, "tenant", admin_discard},
    {"POST", "/v1/replay", ADMIN_OPERATE, "", admin_replay_all},
    {"POST", "/v1/replay/letter", ADMIN_OPERATE, "", admin_replay_letter},
    {"POST", "/v1/rerun", ADMIN_OPERATE, "", admin_rerun_all},
    {"POST", "/v1/backup", ADMIN_OPERATE, "", admin_backup},
    {"POST", "/v1/routes/*/pause", ADMIN_OPERATE, "", admin_pause},
    {"POST", "/v1/routes/*/resume", ADMIN_OPERATE, "", admin_resume},
};

/* --- answers ------------------------------------------------------------- */

static void put_json(struct admin_request *request, unsigned status,
                     const char *type, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);

    CHECK(text != NULL);
    buf_clear(&request->answer);
    buf_add_str(&request->answer, text);
    buf_add_byte(&request->answer, '\n');
    request->status = status;
    request->content_type = type;
    free(text);
    json_decref(json);
}

void admin_answer(struct admin_request *request, unsigned status, json_t *json)
{
    put_json(request, status,
             status < 400 ? "application/json" : "application/problem+json",
             json);
}

void admin_problem(struct admin_request *request, unsigned status,
                   const char *format, ...)
{
    char detail[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    admin_answer(
        request, status,
        json_pack(
            "{s:s, s:i, s:o}", "title", MHD_get_reason_phrase_for(status),
            "status", (int)status, "detail",
            json_stringn_nocheck(detail, slice_utf8_prefix(slice_of(detail)))));
}

void admin_failed(struct admin_request *request, const struct err *err)
{
    unsigned status = MHD_HTTP_INTERNAL_SERVER_ERROR;

    if (err->kind == ERR_USAGE) {
        status = MHD_HTTP_BAD_REQUEST;
    } else if (err->kind == ERR_NOT_FOUND) {
        status = MHD_HTTP_NOT_FOUND;
    } else if (err->kind == ERR_AGAIN) {
        status = MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    admin_problem(request, status, "%s", err->text);
}

/* --- the target ---------------------------------------------------------- */

/* One decoded word with a NUL behind it; NULL where it cannot be decoded.
 * There is room for all of them from the start, so that none moves. */
static const char *take_word(struct admin_request *request, struct slice raw)
{
    struct buf *words = &request->words;
    size_t start = words->len;

    CHECK(words->cap - words->len > raw.len);
    if (!text_unpercent(raw, words) ||
        slice_find(slice_from(buf_slice(words), start), '\0') <
            words->len - start) {
        return NULL;
    }
    buf_add_byte(words, '\0');
    return words->data + start;
}

/* The piece up to `end`, which is taken off `*rest` with the end. */
static struct slice take_piece(struct slice *rest, char end)
{
    struct slice piece = {rest->data, slice_find(*rest, end)};

    *rest =
        slice_from(*rest, piece.len < rest->len ? piece.len + 1 : rest->len);
    return piece;
}

static bool take_path(struct admin_request *request, struct slice path)
{
    if (path.len == 0 || path.data[0] != '/') {
        return false;
    }
    path = slice_from(path, 1);
    do {
        struct slice piece = take_piece(&path, '/');
        const char *word = take_word(request, piece);

        if (word == NULL || request->n_segments == ADMIN_SEGMENTS_MAX) {
            return false;
        }
        request->segments[request->n_segments++] = word;
    } while (path.len > 0);
    return true;
}

static bool take_query(struct admin_request *request, struct slice query)
{
    while (query.len > 0) {
        struct slice value = take_piece(&query, '&');
        struct slice name = take_piece(&value, '=');
        struct admin_parameter *parameter = &request->query[request->n_query];

        if (request->n_query == ADMIN_QUERY_MAX) {
            return false;
        }
        parameter->name = take_word(request, name);
        parameter->value = take_word(request, value);
        if (parameter->name == NULL || parameter->value == NULL ||
            admin_parameter(request, parameter->name) != NULL) {
            return false; /* a repeat, too */
        }
        request->n_query++;
    }
    return true;
}

static bool take_target(struct admin_request *request)
{
    struct slice rest = slice_of(request->target);
    struct slice path = take_piece(&rest, '?');

    buf_reserve(&request->words, 2 * strlen(request->target) + 2);
    return take_path(request, path) && take_query(request, rest);
}

const char *admin_parameter(const struct admin_request *request,
                            const char *name)
{
    for (size_t i = 0; i < request->n_query; i++) {
        if (strcmp(request->query[i].name, name) == 0) {
            return request->query[i].value;
        }
    }
    return NULL;
}

/* --- the endpoint -------------------------------------------------------- */

static bool path_matches(const struct admin_request *request, const char *path)
{
    struct slice rest = slice_of(path + 1);
    size_t i = 0;

    for (; rest.len > 0; i++) {
        struct slice want = take_piece(&rest, '/');

        if (i == request->n_segments ||
            (!slice_eq(want, SLICE("*")) &&
             !slice_eq(want, slice_of(request->segments[i])))) {
            return false;
        }
    }
    return i == request->n_segments;
}

static bool takes_parameter(const struct admin_endpoint *endpoint,
                            const char *name)
{
    struct slice rest = slice_of(endpoint->parameters);

    while (rest.len > 0) {
        if (slice_eq(take_piece(&rest, ' '), slice_of(name))) {
            return true;
        }
    }
    return false;
}

static void choose(struct admin_request *request, const char *method)
{
    if (strcmp(method, "HEAD") == 0) {
        method = "GET";
    }
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        if (!path_matches(request, endpoints[i].path)) {
            continue;
        }
        if (strcmp(endpoints[i].method, method) == 0) {
            request->endpoint = &endpoints[i];
            return;
        }
        request->allow = endpoints[i].method;
    }
    if (request->allow != NULL) {
        admin_problem(request, MHD_HTTP_METHOD_NOT_ALLOWED, "only %s",
                      request->allow);
    } else {
        admin_problem(request, MHD_HTTP_NOT_FOUND, "there is nothing here");
    }
}

static bool parameters_ok(struct admin_request *request)
{
    for (size_t i = 0; i < request->n_query; i++) {
        if (!takes_parameter(request->endpoint, request->query[i].name)) {
            admin_problem(request, MHD_HTTP_BAD_REQUEST,
                          "unknown parameter \"%s\"", request->query[i].name);
            return false;
        }
    }
    return true;
}

/* --- rights -------------------------------------------------------------- */

/* Digests of one length are compared, and to their end, so that the time
 * taken tells nothing of the token. */
static bool same_secret(struct slice a, struct slice b)
{
    uint8_t left[SHA256_SIZE], right[SHA256_SIZE];
    unsigned differs = 0;

    hash_sha256(a, left);
    hash_sha256(b, right);
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        differs |= (unsigned)(left[i] ^ right[i]);
    }
    return differs == 0;
}

static const struct config_token *
find_token(const struct admin_request *request)
{
    const struct config *config = request->admin->config;
    const struct config_token *found = NULL;
    const char *header = MHD_lookup_connection_value(
        request->connection, MHD_HEADER_KIND, "Authorization");
    struct slice given = slice_of(header);

    if (given.len < 7 ||
        !slice_eq_nocase((struct slice){given.data, 7}, SLICE("Bearer "))) {
        return NULL;
    }
    given = slice_trim(slice_from(given, 7));
    for (size_t i = 0; i < config->admin.n_tokens; i++) {
        const struct config_token *token = &config->admin.tokens[i];

        if (same_secret(given, slice_of(token->secret))) {
            found = token;
        }
    }
    return found;
}

static void name_peer(struct admin_request *request)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t len = sizeof peer;

    CHECK(info != NULL);
    if (getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) !=
        0) {
        (void)snprintf(request->actor, sizeof request->actor, "socket");
        return;
    }
    actor_of_user(peer.uid, request->actor);
}

static bool is_allowed(struct admin_request *request)
{
    const struct config_token *token;

    if (request->endpoint->right == ADMIN_OPEN) {
        return true;
    }
    if (request->is_local) {
        name_peer(request);
        return true;
    }
    token = find_token(request);
    if (token == NULL) {
        admin_problem(request, MHD_HTTP_UNAUTHORIZED,
                      "a bearer token is needed");
        return false;
    }
    if (request->endpoint->right == ADMIN_OPERATE && !token->may_operate) {
        admin_problem(request, MHD_HTTP_FORBIDDEN,
                      "this needs a token with role operate");
        return false;
    }
    (void)snprintf(request->actor, sizeof request->actor, "%s", token->name);
    return true;
}

/* --- the body ------------------------------------------------------------ */

/* A letter has a whole message in it, in base64 maybe. */
static size_t body_max(const struct admin_request *request)
{
    bool is_letter = request->endpoint != NULL &&
                     request->endpoint->serve == admin_replay_letter;

    return is_letter ? ADMIN_LETTER_MAX : ADMIN_BODY_MAX;
}

static void take_body(struct admin_request *request, const char *data,
                      size_t len)
{
    if (len > body_max(request) - request->body.len) {
        request->body_too_large = true;
    }
    if (request->status == 0 && !request->body_too_large) {
        buf_add(&request->body, data, len);
    }
}

static bool is_member(const char *key, const char *const *members)
{
    for (; *members != NULL; members++) {
        if (strcmp(key, *members) == 0) {
            return true;
        }
    }
    return false;
}

static json_t *read_body(struct admin_request *request,
                         const char *const *members, size_t flags)
{
    struct slice text = slice_trim(buf_slice(&request->body));
    json_error_t error;
    json_t *body, *member;
    const char *key;

    if (text.len == 0) {
        return json_object();
    }
    body =
        json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES | flags, &error);
    if (!json_is_object(body)) {
        admin_problem(request, MHD_HTTP_BAD_REQUEST,
                      "the body is not a JSON object%s%s",
                      body == NULL ? ": " : "", body == NULL ? error.text : "");
        json_decref(body);
        return NULL;
    }
    json_object_foreach(body, key, member)
    {
        if (!is_member(key, members)) {
            admin_problem(request, MHD_HTTP_BAD_REQUEST,
                          "unknown member \"%s\"", key);
            json_decref(body);
            return NULL;
        }
    }
    return body;
}

json_t *admin_body(struct admin_request *request, const char *const *members)
{
    return read_body(request, members, 0);
}

json_t *admin_body_with_nul(struct admin_request *request,
                            const char *const *members)
{
    return read_body(request, members, JSON_ALLOW_NUL);
}

size_t admin_route(struct admin_request *request, const char *name)
{
    size_t index = engine_route_index(request->admin->engine, slice_of(name));

    if (index == SIZE_MAX) {
        admin_problem(request, MHD_HTTP_NOT_FOUND, "no route \"%s\"", name);
    }
    return index;
}

bool admin_caller_is_there(const struct admin_request *request)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd fd = {.fd = info->connect_fd, .events = POLLRDHUP};

    return poll(&fd, 1, 0) == 0;
}

bool admin_event_ok(struct admin_request *request)
{
    const char *problem = value_check_id(slice_of(request->segments[3]));
    const char *tenant = admin_parameter(request, "tenant");

    if (problem != NULL) {
        admin_problem(request, MHD_HTTP_BAD_REQUEST, "the id %s", problem);
        return false;
    }
    if (tenant != NULL && slice_of(tenant).len > STORE_TENANT_MAX) {
        admin_problem(request, MHD_HTTP_BAD_REQUEST,
                      "the tenant is longer than %d bytes", STORE_TENANT_MAX);
        return false;
    }
    return true;
}

/* --- callbacks ----------------------------------------------------------- */

void *admin_request_begin(void *cls, const char *target,
                          struct MHD_Connection *connection)
{
    struct admin_listener *listener = cls;
    struct admin_request *request = mem_new(1, sizeof *request);

    request->admin = listener->admin;
    request->connection = connection;
    request->is_local = http_bind_is_unix(&listener->address);
    request->target = mem_strdup(target);
    return request;
}

void admin_request_end(void *cls, struct MHD_Connection *connection,
                       void **state, enum MHD_RequestTerminationCode code)
{
    struct admin_request *request = *state;

    (void)cls;
    (void)connection;
    (void)code;
    *state = NULL;
    if (request == NULL) {
        return;
    }
    if (request->is_sending) {
        admin_end_sending(request->admin);
    }
    buf_free(&request->words);
    buf_free(&request->body);
    buf_free(&request->answer);
    free(request->target);
    free(request);
}

static void begin(struct admin_request *request, const char *method)
{
    request->has_begun = true;
    if (!take_target(request)) {
        admin_problem(request, MHD_HTTP_BAD_REQUEST,
                      "the target cannot be understood");
        return;
    }
    choose(request, method);
    if (request->status == 0 && is_allowed(request)) {
        (void)parameters_ok(request);
    }
}

static void add_header(struct MHD_Response *response, const char *name,
                       const char *value)
{
    CHECK(MHD_add_response_header(response, name, value) == MHD_YES);
}

static enum MHD_Result send_answer(struct admin_request *request)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        request->answer.len, request->answer.data, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result sent;

    CHECK(response != NULL);
    add_header(response, "Content-Type", request->content_type);
    add_header(response, "Cache-Control", "no-store");
    if (request->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        add_header(response, "Allow", request->allow);
    }
    if (request->status == MHD_HTTP_UNAUTHORIZED) {
        add_header(response, "WWW-Authenticate", "Bearer");
    }
    if (request->status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        add_header(response, "Retry-After", "1");
    }
    if (request->is_last) {
        add_header(response, "Connection", "close");
    }
    sent = MHD_queue_response(request->connection, request->status, response);
    MHD_destroy_response(response);
    return sent;
}

static void serve(struct admin_request *request)
{
    if (!admin_begin_serving(request->admin)) {
        admin_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                      "the worker is stopping");
        return;
    }
    request->endpoint->serve(request);
    request->is_sending = true;
    admin_begin_sending(request->admin);
}

enum MHD_Result admin_request_serve(void *cls,
                                    struct MHD_Connection *connection,
                                    const char *url, const char *method,
                                    const char *version, const char *data,
                                    size_t *data_len, void **state)
{
    struct admin_request *request = *state;

    (void)cls;
    (void)connection;
    (void)url;
    (void)version;
    CHECK(request != NULL);
    if (!request->has_begun) {
        begin(request, method);
        return MHD_YES;
    }
    if (*data_len > 0) {
        take_body(request, data, *data_len);
        *data_len = 0;
        return MHD_YES;
    }
    if (request->status == 0 && request->body_too_large) {
        admin_problem(request, MHD_HTTP_CONTENT_TOO_LARGE,
                      "the body is over %zu MiB", body_max(request) >> 20);
    }
    if (request->status == 0) {
        serve(request);
    }
    CHECK(request->status != 0);
    return send_answer(request);
}
