/* SPDX-License-Identifier: MIT */
#include "source/verify.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "source/verifier.h"

enum { TOLERANCE_DEFAULT_MS = 5 * 60 * 1000 };

static char *keep(struct verifier *verifier, const char *text)
{
    char *copy;

    if (text == NULL) {
        return NULL;
    }
    copy = mem_strdup(text);
    verifier->strings = mem_grow(verifier->strings, verifier->n_strings + 1,
                                 sizeof *verifier->strings);
    verifier->strings[verifier->n_strings++] = copy;
    return copy;
}

/* "hmac": the row is filled from copies, because the options go away. */
static bool fill_custom(struct verifier *verifier,
                        const struct verify_options *options, struct err *err)
{
    const char *pieces[VERIFY_PIECES_MAX];
    struct verify_options copy = *options;

    copy.header = keep(verifier, options->header);
    copy.prefix = keep(verifier, options->prefix);
    copy.timestamp_header = keep(verifier, options->timestamp_header);
    for (size_t i = 0; i < options->n_signed && i < VERIFY_PIECES_MAX; i++) {
        pieces[i] = keep(verifier, options->signed_pieces[i]);
    }
    copy.signed_pieces = pieces;
    verifier->scheme = &verifier->custom;
    return scheme_from_options(&verifier->custom, &copy, err);
}

/* The option that only "hmac" takes and that is set, or NULL. */
static const char *custom_option(const struct verify_options *options)
{
    const struct {
        const char *name;
        bool is_set;
    } all[] = {
        {"algorithm", options->algorithm != NULL},
        {"header", options->header != NULL},
        {"encoding", options->encoding != NULL},
        {"prefix", options->prefix != NULL},
        {"key_encoding", options->key_encoding != NULL},
        {"signed", options->n_signed > 0},
        {"timestamp",
         options->timestamp_header != NULL || options->timestamp_unit != NULL},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].is_set) {
            return all[i].name;
        }
    }
    return NULL;
}

static bool unknown_scheme(const char *scheme, struct err *err)
{
    const char *const *name = verify_scheme_names();
    struct buf names = BUF_INIT;

    for (; *name != NULL; name++) {
        buf_add_str(&names, *name);
        buf_add_str(&names, ", ");
    }
    (void)err_set(err, ERR_CONFIG,
                  "scheme: \"%.64s\" is unknown; there are %shmac and none",
                  scheme, buf_cstr(&names));
    buf_free(&names);
    return false;
}

static bool choose_scheme(struct verifier *verifier,
                          const struct verify_options *options, struct err *err)
{
    const char *extra;

    if (strcmp(options->scheme, "hmac") == 0) {
        return fill_custom(verifier, options, err);
    }
    verifier->scheme = scheme_find(options->scheme);
    if (verifier->scheme == NULL) {
        return unknown_scheme(options->scheme, err);
    }
    extra = custom_option(options);
    if (extra != NULL) {
        return err_set(err, ERR_CONFIG,
                       "%s: only the scheme \"hmac\" takes it; \"%s\" has its "
                       "own",
                       extra, options->scheme);
    }
    return true;
}

static bool open_keys(struct verifier *verifier,
                      const struct verify_options *options, struct err *err)
{
    size_t n = options->n_secrets;

    if (n == 0) {
        return err_set(err, ERR_CONFIG, "secrets: at least one is needed");
    }
    verifier->keys = mem_new(n, sizeof *verifier->keys);
    verifier->secrets = mem_new(n, sizeof *verifier->secrets);
    verifier->n_keys = n;
    for (size_t i = 0; i < n; i++) {
        if (!key_open(&verifier->keys[i], verifier->scheme, options->secrets[i],
                      err)) {
            return err_wrap(err, "secrets/%zu", i);
        }
        buf_add_slice(&verifier->secrets[i], options->secrets[i]);
    }
    return true;
}

static bool set_public_url(struct verifier *verifier, const char *url,
                           struct err *err)
{
    const char *host;

    if (url == NULL) {
        return true;
    }
    host = strncmp(url, "https://", 8) == 0  ? url + 8
           : strncmp(url, "http://", 7) == 0 ? url + 7
                                             : "";
    if (host[0] == '\0' || host[0] == '/' || strpbrk(host, "?# ") != NULL) {
        return err_set(err, ERR_CONFIG,
                       "public_url: must be http:// or https://, a host and, "
                       "where it is not the requested one, a path");
    }
    verifier->public_url = mem_strdup(url);
    return true;
}

static void list_single_headers(struct verifier *verifier)
{
    const struct scheme *scheme = verifier->scheme;
    size_t n = 0;

    for (; scheme != NULL; scheme = scheme->otherwise) {
        const char *name;

        for (size_t i = 0; (name = scheme_single_header(scheme, i)) != NULL;
             i++) {
            verifier->single_headers =
                mem_grow(verifier->single_headers, n + 2,
                         sizeof *verifier->single_headers);
            verifier->single_headers[n++] = name;
        }
    }
    CHECK(n > 0);
    CHECK(n <= 64);
    verifier->single_headers[n] = NULL;
}

bool verifier_new(struct verifier **out, const struct verify_options *options,
                  struct err *err)
{
    struct verifier *verifier;

    CHECK(options->scheme != NULL);
    *out = NULL;
    if (strcmp(options->scheme, "none") == 0) {
        return options->n_secrets == 0 ||
               err_set(err, ERR_CONFIG,
                       "secrets: the scheme \"none\" checks nothing");
    }
    verifier = mem_new(1, sizeof *verifier);
    verifier->tolerance_ms = options->tolerance_ms < 0 ? TOLERANCE_DEFAULT_MS
                                                       : options->tolerance_ms;
    if (!choose_scheme(verifier, options, err) ||
        !open_keys(verifier, options, err) ||
        !set_public_url(verifier, options->public_url, err)) {
        verifier_free(verifier);
        return false;
    }
    list_single_headers(verifier);
    *out = verifier;
    return true;
}

void verifier_free(struct verifier *verifier)
{
    if (verifier == NULL) {
        return;
    }
    for (size_t i = 0; i < verifier->n_keys; i++) {
        struct buf *secret = &verifier->secrets[i];

        key_close(&verifier->keys[i]);
        OPENSSL_cleanse(secret->data, secret->cap);
        buf_free(secret);
    }
    for (size_t i = 0; i < verifier->n_strings; i++) {
        free(verifier->strings[i]);
    }
    free(verifier->keys);
    free(verifier->secrets);
    free(verifier->strings);
    free(verifier->public_url);
    free(verifier->single_headers);
    free(verifier);
}

const char *const *verifier_single_headers(const struct verifier *verifier)
{
    return verifier->single_headers;
}

static bool has_any_header(const struct scheme *scheme,
                           const struct envelope *request)
{
    const char *name;
    struct slice value;

    for (size_t i = 0; (name = scheme_single_header(scheme, i)) != NULL; i++) {
        if (headers_find(&request->headers, slice_of(name), &value)) {
            return true;
        }
    }
    return false;
}

const struct scheme *verifier_scheme(const struct verifier *verifier,
                                     const struct envelope *request)
{
    const struct scheme *scheme = verifier->scheme;

    while (scheme->otherwise != NULL && !has_any_header(scheme, request)) {
        scheme = scheme->otherwise;
    }
    return scheme;
}

bool verifier_matches(const struct verifier *verifier,
                      const struct message *message,
                      const struct signatures *signatures)
{
    bool found = false;

    for (size_t i = 0; i < verifier->n_keys; i++) {
        found |= key_matches(&verifier->keys[i], message, signatures);
    }
    return found;
}

/* The receiver's time is cut to the sender's unit, as senders' own libraries
 * do it: 300.9 s after a stamp in seconds is 300 s, still inside 5 minutes. */
enum verify_status verifier_window(const struct verifier *verifier,
                                   const struct scheme *scheme,
                                   int64_t signed_wall_ms, int64_t now_wall_ms)
{
    int64_t unit_ms = scheme->time_unit == VERIFY_SECONDS ? 1000 : 1;
    int64_t now_ms = now_wall_ms - now_wall_ms % unit_ms;

    CHECK(now_wall_ms >= 0);
    CHECK(signed_wall_ms >= 0);
    if (!scheme_is_timed(scheme)) {
        return VERIFY_OK;
    }
    if (now_ms - signed_wall_ms > verifier->tolerance_ms) {
        return VERIFY_TOO_OLD;
    }
    return signed_wall_ms - now_ms > verifier->tolerance_ms ? VERIFY_TOO_NEW
                                                            : VERIFY_OK;
}

/* The names that `name` stands for, as bits; one of them may be listed under
 * two roles. */
static uint64_t roles_of(const struct verifier *verifier, struct slice name)
{
    uint64_t roles = 0;

    for (size_t i = 0; verifier->single_headers[i] != NULL; i++) {
        if (slice_eq_nocase(name, slice_of(verifier->single_headers[i]))) {
            roles |= UINT64_C(1) << i;
        }
    }
    return roles;
}

bool verifier_repeats_header(const struct verifier *verifier,
                             const struct envelope *request)
{
    struct header header;
    uint64_t seen = 0;

    for (size_t at = 0; headers_next(&request->headers, &at, &header);) {
        uint64_t roles = roles_of(verifier, header.name);

        if ((seen & roles) != 0) {
            return true;
        }
        seen |= roles;
    }
    return false;
}

/* Everything but the time window; `signed_wall_ms` is set on VERIFY_OK. */
static enum verify_status check_signature(const struct verifier *verifier,
                                          const struct scheme *scheme,
                                          const struct envelope *request,
                                          int64_t *signed_wall_ms)
{
    struct signatures signatures;
    struct message message;
    enum verify_status status;

    if (verifier_repeats_header(verifier, request)) {
        return VERIFY_MALFORMED;
    }
    status = signatures_read(scheme, request, &signatures);
    if (status != VERIFY_OK) {
        return status;
    }
    status = message_build(&message, scheme, request, signatures.timestamp,
                           verifier->public_url);
    if (status == VERIFY_OK &&
        !verifier_matches(verifier, &message, &signatures)) {
        status = VERIFY_MISMATCH;
    }
    message_free(&message);
    *signed_wall_ms = signatures.wall_ms;
    return status;
}

/* The window comes after the signature, so that "too old" is only said of
 * what the sender has really signed. */
enum verify_status verifier_check(const struct verifier *verifier,
                                  const struct envelope *request,
                                  int64_t now_wall_ms)
{
    const struct scheme *scheme = verifier_scheme(verifier, request);
    int64_t signed_wall_ms = 0;
    enum verify_status status =
        check_signature(verifier, scheme, request, &signed_wall_ms);

    if (status != VERIFY_OK) {
        return status;
    }
    return verifier_window(verifier, scheme, signed_wall_ms, now_wall_ms);
}

enum verify_status verifier_check_untimed(const struct verifier *verifier,
                                          const struct envelope *request)
{
    const struct scheme *scheme = verifier_scheme(verifier, request);
    int64_t signed_wall_ms;

    return check_signature(verifier, scheme, request, &signed_wall_ms);
}

const char *verify_status_name(enum verify_status status)
{
    static const char *const names[VERIFY_STATUSES] = {
        [VERIFY_OK] = "ok",
        [VERIFY_MISSING] = "missing",
        [VERIFY_MALFORMED] = "malformed",
        [VERIFY_MISMATCH] = "mismatch",
        [VERIFY_TOO_OLD] = "too-old",
        [VERIFY_TOO_NEW] = "too-new",
    };

    CHECK((unsigned)status < VERIFY_STATUSES);
    return names[status];
}
