/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "app/cli_internal.h"
#include "app/config.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "source/verify.h"

enum {
    BODY_MAX = 64 << 20,
    HEADERS_MAX = 1 << 20,
    SECRET_MAX = 64 << 10,
    ID_BYTES = 12,
};

/* What signs or checks: a scheme and its secret, given on the command line or
 * by a route. */
struct signer {
    const struct verifier *verifier; /* NULL: the route verifies nothing */
    struct verifier *own;            /* of --scheme */
    struct config *config;           /* of --route */
    const struct config_route *route;
};

static void close_signer(struct signer *signer)
{
    verifier_free(signer->own);
    config_free(signer->config);
}

/* As a file written by hand: the newline at its end is no part of it. */
static bool read_secret(const struct cli *cli, struct buf *secret,
                        struct err *err)
{
    if (!cli_read_file(cli->values[CLI_SECRET_FILE], SECRET_MAX, secret, err)) {
        return false;
    }
    while (secret->len > 0 && (secret->data[secret->len - 1] == '\n' ||
                               secret->data[secret->len - 1] == '\r')) {
        secret->len--;
    }
    return secret->len > 0 || err_set(err, ERR_CONFIG, "the secret is empty");
}

static bool open_scheme(const struct cli *cli, struct signer *signer,
                        struct err *err)
{
    struct verify_options options = {
        .scheme = cli->values[CLI_SCHEME],
        .tolerance_ms = -1,
        .n_secrets = 1,
        .public_url = cli->values[CLI_URL],
    };
    struct buf secret = BUF_INIT;
    struct slice secrets;
    bool ok;

    if (cli->values[CLI_TOLERANCE] != NULL &&
        !text_duration_ms(slice_of(cli->values[CLI_TOLERANCE]),
                          &options.tolerance_ms)) {
        return err_set(err, ERR_USAGE, "--tolerance must be like 5m");
    }
    if (cli->values[CLI_SECRET_FILE] == NULL) {
        return err_set(err, ERR_USAGE, "--scheme needs --secret-file");
    }
    ok = read_secret(cli, &secret, err);
    if (ok) {
        secrets = buf_slice(&secret);
        options.secrets = &secrets;
        ok = verifier_new(&signer->own, &options, err);
        signer->verifier = signer->own;
    }
    if (secret.data != NULL) {
        explicit_bzero(secret.data, secret.cap);
    }
    buf_free(&secret);
    return ok;
}

static const struct config_route *find_route(const struct config *config,
                                             const char *name)
{
    for (size_t i = 0; i < config->n_routes; i++) {
        if (strcmp(config->routes[i].name, name) == 0) {
            return &config->routes[i];
        }
    }
    return NULL;
}

static bool open_route(const struct cli *cli, struct signer *signer,
                       struct err *err)
{
    const char *name = cli->values[CLI_ROUTE];
    struct buf problems = BUF_INIT;
    bool ok =
        config_load(&signer->config, cli_config_file(cli), &problems, err);

    if (!ok) {
        cli_print_lines(cli, "", &problems);
    }
    buf_free(&problems);
    if (!ok) {
        return false;
    }
    signer->route = find_route(signer->config, name);
    if (signer->route == NULL) {
        return err_set(err, ERR_NOT_FOUND, "no route \"%s\"", name);
    }
    signer->verifier = signer->route->verifier;
    return true;
}

static bool open_signer(const struct cli *cli, struct signer *signer,
                        struct err *err)
{
    bool by_scheme = cli->values[CLI_SCHEME] != NULL;

    *signer = (struct signer){.verifier = NULL};
    if (by_scheme == (cli->values[CLI_ROUTE] != NULL)) {
        return err_set(err, ERR_USAGE, "give one of --route and --scheme");
    }
    return by_scheme ? open_scheme(cli, signer, err)
                     : open_route(cli, signer, err);
}

/* --- sign ---------------------------------------------------------------- */

static bool ends_with(struct slice text, struct slice end)
{
    return text.len >= end.len &&
           slice_eq(slice_from(text, text.len - end.len), end);
}

/* For a shell: within single quotes everything stands for itself. */
static void put_quoted(struct buf *out, struct slice text)
{
    buf_add_byte(out, '\'');
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\'') {
            buf_add_str(out, "'\\''");
        } else {
            buf_add_byte(out, text.data[i]);
        }
    }
    buf_add_byte(out, '\'');
}

/* One more word of a command line, put together from `parts`. */
static void put_word(struct buf *out, const struct slice *parts, size_t n)
{
    struct buf word = BUF_INIT;

    for (size_t i = 0; i < n; i++) {
        buf_add_slice(&word, parts[i]);
    }
    buf_add_byte(out, ' ');
    put_quoted(out, buf_slice(&word));
    buf_free(&word);
}

/* Where the route listens; of a path for all below it, the beginning. */
static void put_route_url(const struct signer *signer, struct buf *out)
{
    const struct config *config = signer->config;
    struct slice address = slice_of(config->listen.addresses.items[0]);
    struct slice path = slice_of(signer->route->path);
    struct slice local = SLICE("unix:");

    if (ends_with(path, SLICE("/*"))) {
        path.len--;
    }
    if (slice_starts(address, local)) {
        const struct slice file = slice_from(address, local.len);

        buf_add_str(out, " --unix-socket");
        put_word(out, &file, 1);
        address = SLICE("localhost");
    }
    put_word(out,
             (struct slice[]){config->listen.has_tls ? SLICE("https://")
                                                     : SLICE("http://"),
                              address, path},
             3);
}

static void put_curl(const struct cli *cli, const struct signer *signer,
                     const struct headers *headers, struct buf *out)
{
    struct header header;
    bool has_type = false;
    size_t at = 0;

    buf_add_str(out, "curl -sS -i -X POST");
    while (headers_next(headers, &at, &header)) {
        const struct slice line[] = {header.name, SLICE(": "), header.value};

        has_type |= slice_eq_nocase(header.name, SLICE("Content-Type"));
        buf_add_str(out, " -H");
        put_word(out, line, 3);
    }
    if (!has_type) {
        buf_add_str(out, " -H 'Content-Type: application/json'");
    }
    buf_add_str(out, " --data-binary");
    put_word(out, (struct slice[]){SLICE("@"), slice_of(cli->words[0])}, 2);
    if (cli->values[CLI_URL] != NULL) {
        const struct slice url = slice_of(cli->values[CLI_URL]);

        put_word(out, &url, 1);
    } else {
        put_route_url(signer, out);
    }
    buf_add_byte(out, '\n');
}

static void put_lines(const struct headers *headers, struct buf *out)
{
    struct header header;
    size_t at = 0;

    while (headers_next(headers, &at, &header)) {
        buf_printf(out, "%.*s: %.*s\n", (int)header.name.len, header.name.data,
                   (int)header.value.len, header.value.data);
    }
}

/* The id that was given, or a new one. */
static void choose_id(const struct cli *cli, struct buf *id)
{
    uint8_t random[ID_BYTES];

    if (cli->values[CLI_ID] != NULL) {
        buf_add_str(id, cli->values[CLI_ID]);
        return;
    }
    hash_random(random, sizeof random);
    buf_add_str(id, "msg_");
    text_base32((struct slice){(const char *)random, sizeof random}, id);
}

static bool sign(const struct cli *cli, const struct signer *signer,
                 struct buf *flat, struct err *err)
{
    struct buf body = BUF_INIT, id = BUF_INIT;
    bool ok = cli_read_file(cli->words[0], BODY_MAX, &body, err);

    if (ok && signer->verifier != NULL) {
        choose_id(cli, &id);
        ok = verifier_sign(signer->verifier, buf_slice(&id),
                           clock_wall_ms(clock_system()), buf_slice(&body),
                           flat, err);
    }
    buf_free(&body);
    buf_free(&id);
    return ok;
}

static bool sign_ok(const struct cli *cli, const struct signer *signer,
                    struct err *err)
{
    if (cli->values[CLI_CURL] == NULL) {
        return true;
    }
    if (strcmp(cli->words[0], "-") == 0) {
        return err_set(err, ERR_USAGE, "--curl needs a file, not -");
    }
    if (cli->values[CLI_URL] == NULL &&
        (signer->route == NULL || !signer->route->has_http_source)) {
        return err_set(err, ERR_USAGE, "--curl needs --url here");
    }
    return true;
}

int cli_cmd_sign(struct cli *cli)
{
    struct signer signer;
    struct buf flat = BUF_INIT, text = BUF_INIT;
    struct err err;
    bool ok = open_signer(cli, &signer, &err) && sign_ok(cli, &signer, &err) &&
              sign(cli, &signer, &flat, &err);

    if (ok) {
        const struct headers headers = {.flat = buf_slice(&flat)};

        if (cli->values[CLI_CURL] != NULL) {
            put_curl(cli, &signer, &headers, &text);
        } else {
            put_lines(&headers, &text);
        }
        cli_print_text(cli, &text);
    }
    buf_free(&flat);
    close_signer(&signer);
    return ok ? cli_finish(cli) : cli_fail(cli, &err);
}

/* --- verify, explain ----------------------------------------------------- */

/* A request as it is in files: headers as lines, and the body. */
struct request {
    struct buf flat, body;
    struct envelope envelope;
};

static bool add_lines(struct request *request, struct slice rest,
                      struct err *err)
{
    while (rest.len > 0) {
        struct slice line = {rest.data, slice_find(rest, '\n')};
        size_t colon;

        rest = slice_from(rest, line.len < rest.len ? line.len + 1 : rest.len);
        if (line.len > 0 && line.data[line.len - 1] == '\r') {
            line.len--;
        }
        colon = slice_find(line, ':');
        if (line.len == 0) {
            continue;
        }
        if (colon == 0 || colon == line.len) {
            return err_set(err, ERR_DATA,
                           "--headers: a line is not \"Name: value\"");
        }
        headers_add(&request->flat, (struct slice){line.data, colon},
                    slice_trim(slice_from(line, colon + 1)));
        request->envelope.headers.count++;
    }
    request->envelope.headers.flat = buf_slice(&request->flat);
    return true;
}

/* Path and query of --url, or of the route. */
static void set_target(const struct cli *cli, const struct signer *signer,
                       struct envelope *envelope)
{
    struct slice url = slice_of(cli->values[CLI_URL]);
    const char *scheme = url.data == NULL ? NULL : strstr(url.data, "://");
    size_t query;

    if (scheme != NULL) {
        url = slice_of(scheme + 3);
        url = slice_from(url, slice_find(url, '/'));
    }
    if (url.len == 0) {
        url = signer->route != NULL && signer->route->path != NULL
                  ? slice_of(signer->route->path)
                  : SLICE("/");
    }
    query = slice_find(url, '?');
    envelope->path = (struct slice){url.data, query};
    if (query < url.len) {
        envelope->has_query = true;
        envelope->query = slice_from(url, query + 1);
    }
}

static bool read_request(const struct cli *cli, const struct signer *signer,
                         struct request *request, struct err *err)
{
    struct buf lines = BUF_INIT;
    bool ok;

    request->envelope = (struct envelope){
        .kind = ENVELOPE_HTTP,
        .method = SLICE("POST"),
        .has_body = true,
    };
    if (cli->values[CLI_HEADERS] == NULL) {
        return err_set(err, ERR_USAGE, "--headers is missing");
    }
    ok = cli_read_file(cli->values[CLI_HEADERS], HEADERS_MAX, &lines, err) &&
         add_lines(request, buf_slice(&lines), err) &&
         cli_read_file(cli->words[0], BODY_MAX, &request->body, err);
    buf_free(&lines);
    request->envelope.body = buf_slice(&request->body);
    set_target(cli, signer, &request->envelope);
    return ok;
}

static int check_request(struct cli *cli, bool explain)
{
    struct request request = {.flat = BUF_INIT};
    enum verify_status status = VERIFY_OK;
    int64_t now_ms = clock_wall_ms(clock_system());
    struct signer signer;
    struct buf text = BUF_INIT;
    struct err err;
    bool ok = open_signer(cli, &signer, &err) &&
              read_request(cli, &signer, &request, &err);

    if (ok && signer.verifier == NULL) {
        buf_add_str(&text, "nothing is verified\n");
    } else if (ok) {
        status = verifier_check(signer.verifier, &request.envelope, now_ms);
        if (explain) {
            verifier_explain(signer.verifier, &request.envelope, now_ms, &text);
        } else {
            buf_printf(&text, "%s\n", verify_status_name(status));
        }
    }
    buf_free(&request.flat);
    buf_free(&request.body);
    close_signer(&signer);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    cli_print_text(cli, &text);
    ok = cli_finish(cli) == 0;
    return !ok ? ERR_IO : status == VERIFY_OK ? 0 : ERR_DATA;
}

int cli_cmd_verify(struct cli *cli)
{
    return check_request(cli, false);
}

int cli_cmd_explain(struct cli *cli)
{
    return check_request(cli, true);
}
