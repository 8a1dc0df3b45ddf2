/* SPDX-License-Identifier: MIT */
#include "source/variant.h"

#include <openssl/crypto.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

/* One change of text into another; false where there is nothing to change. */
struct change {
    const char *what;
    bool (*apply)(struct slice from, struct buf *to);
};

struct search {
    const struct verifier *verifier;
    const struct scheme *scheme;
    const struct envelope *request;
    struct buf *out;
    size_t found;
};

static void report(struct search *search, const char *part, const char *what)
{
    buf_printf(search->out, "  %s: %s\n", part, what);
    search->found++;
}

/* Reads the signatures of `request` anew and looks whether `key` gives one. */
static bool key_fits(const struct search *search, const struct scheme *scheme,
                     const struct envelope *request, const char *url,
                     const struct key *key)
{
    struct signatures signatures;
    struct message message;
    bool fits = false;

    if (signatures_read(scheme, request, &signatures) != VERIFY_OK) {
        return false;
    }
    if (message_build(&message, scheme, request, signatures.timestamp,
                      url == NULL ? search->verifier->public_url : url) ==
        VERIFY_OK) {
        fits = key_matches(key, &message, &signatures);
    }
    message_free(&message);
    return fits;
}

/* The same with every configured key. */
static bool fits(const struct search *search, const struct scheme *scheme,
                 const struct envelope *request, const char *url)
{
    const struct verifier *verifier = search->verifier;

    for (size_t i = 0; i < verifier->n_keys; i++) {
        if (key_fits(search, scheme, request, url, &verifier->keys[i])) {
            return true;
        }
    }
    return false;
}

static bool without_newline(struct slice from, struct buf *to)
{
    if (from.len == 0 || from.data[from.len - 1] != '\n') {
        return false;
    }
    from.len--;
    if (from.len > 0 && from.data[from.len - 1] == '\r') {
        from.len--;
    }
    buf_add_slice(to, from);
    return true;
}

static bool with_newline(struct slice from, struct buf *to)
{
    buf_add_slice(to, from);
    buf_add_byte(to, '\n');
    return true;
}

static bool crlf_to_lf(struct slice from, struct buf *to)
{
    for (size_t i = 0; i < from.len; i++) {
        if (from.data[i] != '\r' || i + 1 == from.len ||
            from.data[i + 1] != '\n') {
            buf_add_byte(to, from.data[i]);
        }
    }
    return to->len < from.len;
}

static bool lf_to_crlf(struct slice from, struct buf *to)
{
    for (size_t i = 0; i < from.len; i++) {
        if (from.data[i] == '\n' && (i == 0 || from.data[i - 1] != '\r')) {
            buf_add_byte(to, '\r');
        }
        buf_add_byte(to, from.data[i]);
    }
    return to->len > from.len;
}

static bool without_all(struct slice from, struct buf *to)
{
    (void)to;
    return from.len > 0;
}

static void try_bodies(struct search *search)
{
    static const struct change changes[] = {
        {"without its final newline", without_newline},
        {"with a newline behind it", with_newline},
        {"with LF line ends in place of CRLF", crlf_to_lf},
        {"with CRLF line ends in place of LF", lf_to_crlf},
        {"empty (the sender signed nothing of it)", without_all},
    };
    struct envelope request = *search->request;
    struct buf body = BUF_INIT;

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        buf_clear(&body);
        if (!changes[i].apply(search->request->body, &body)) {
            continue;
        }
        request.body = buf_slice(&body);
        if (fits(search, search->scheme, &request, NULL)) {
            report(search, "body", changes[i].what);
        }
    }
    buf_free(&body);
}

static bool as_text(struct slice from, struct buf *to)
{
    buf_add_slice(to, from);
    return true;
}

static bool behind_prefix(struct slice from, struct buf *to)
{
    size_t end = slice_find(from, '_');

    if (end == from.len) {
        return false;
    }
    buf_add_slice(to, slice_from(from, end + 1));
    return true;
}

static bool behind_prefix_unbase64(struct slice from, struct buf *to)
{
    size_t end = slice_find(from, '_');

    return end < from.len && text_unbase64(slice_from(from, end + 1), to);
}

static bool secret_fits(const struct search *search, struct slice bytes)
{
    const struct key *first = &search->verifier->keys[0];
    struct key key;
    bool good;

    if (first->algorithm == VERIFY_ED25519 ||
        !key_open_bytes(&key, first->algorithm, bytes, NULL)) {
        return false;
    }
    good = key_fits(search, search->scheme, search->request, NULL, &key);
    key_close(&key);
    return good;
}

static void try_secrets(struct search *search)
{
    static const struct change changes[] = {
        {"as plain text", as_text},
        {"with a newline behind it", with_newline},
        {"decoded from base64", text_unbase64},
        {"decoded from hex", text_unhex},
        {"as plain text, without its prefix", behind_prefix},
        {"without its prefix, decoded from base64", behind_prefix_unbase64},
    };
    const struct verifier *verifier = search->verifier;
    struct buf bytes = BUF_INIT;

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        for (size_t k = 0; k < verifier->n_keys; k++) {
            buf_clear(&bytes);
            if (changes[i].apply(buf_slice(&verifier->secrets[k]), &bytes) &&
                secret_fits(search, buf_slice(&bytes))) {
                report(search, "secret", changes[i].what);
            }
        }
    }
    OPENSSL_cleanse(bytes.data, bytes.cap);
    buf_free(&bytes);
}

/* The secrets again, opened for another algorithm. */
static bool algorithm_fits(const struct search *search,
                           const struct scheme *scheme)
{
    const struct verifier *verifier = search->verifier;
    bool found = false;

    for (size_t i = 0; !found && i < verifier->n_keys; i++) {
        struct key key;

        if (key_open(&key, scheme, buf_slice(&verifier->secrets[i]), NULL)) {
            found = key_fits(search, scheme, search->request, NULL, &key);
            key_close(&key);
        }
    }
    return found;
}

static void try_algorithms(struct search *search)
{
    static const struct {
        const char *what;
        enum verify_algorithm algorithm;
    } all[] = {
        {"sha1", VERIFY_HMAC_SHA1},     {"sha256", VERIFY_HMAC_SHA256},
        {"sha384", VERIFY_HMAC_SHA384}, {"sha512", VERIFY_HMAC_SHA512},
        {"md5", VERIFY_HMAC_MD5},
    };
    struct scheme scheme = *search->scheme;

    if (scheme.item_end != '\0' || scheme.algorithm == VERIFY_ED25519) {
        return;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        scheme.algorithm = all[i].algorithm;
        if (algorithm_fits(search, &scheme)) {
            report(search, "algorithm", all[i].what);
        }
    }
}

static void try_forms(struct search *search)
{
    static const char *const prefixes[] = {"sha256=", "sha1=", "v0=", "v1="};
    struct scheme scheme = *search->scheme;

    scheme.encoding =
        scheme.encoding == VERIFY_HEX ? VERIFY_BASE64 : VERIFY_HEX;
    if (fits(search, &scheme, search->request, NULL)) {
        report(search, "encoding",
               scheme.encoding == VERIFY_HEX ? "hex" : "base64");
    }
    scheme = *search->scheme;
    if (scheme.item_end != '\0') {
        return;
    }
    scheme.prefix = NULL;
    if (fits(search, &scheme, search->request, NULL)) {
        report(search, "prefix", "none");
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        scheme.prefix = prefixes[i];
        if (fits(search, &scheme, search->request, NULL)) {
            report(search, "prefix", prefixes[i]);
        }
    }
}

static void try_pieces(struct search *search)
{
    static const struct scheme_piece time = {VERIFY_PIECE_TIMESTAMP, NULL};
    static const struct scheme_piece body = {VERIFY_PIECE_BODY, NULL};
    static const struct {
        const char *what;
        const char *between;
    } timed[] = {
        {"timestamp, body", ""},
        {"timestamp, \".\", body", "."},
        {"timestamp, \":\", body", ":"},
    };
    struct scheme scheme = *search->scheme;

    scheme.pieces[0] = body;
    scheme.n_pieces = 1;
    if (fits(search, &scheme, search->request, NULL)) {
        report(search, "signed", "the body alone");
    }
    for (size_t i = 0; i < sizeof timed / sizeof timed[0]; i++) {
        scheme.pieces[0] = time;
        scheme.pieces[1].kind = VERIFY_PIECE_TEXT;
        scheme.pieces[1].argument = timed[i].between;
        scheme.pieces[2] = body;
        scheme.n_pieces = 3;
        if (scheme_is_timed(&scheme) &&
            fits(search, &scheme, search->request, NULL)) {
            report(search, "signed", timed[i].what);
        }
    }
}

/* "https://" or "http://", a host with or without the usual port, a path. */
static void put_url(struct buf *out, bool tls, bool port, struct slice rest)
{
    size_t end = slice_find(rest, '/');
    struct slice host = {rest.data, end};

    host.len = slice_find(host, ':');
    buf_add_str(out, tls ? "https://" : "http://");
    buf_add_slice(out, host);
    if (port) {
        buf_add_str(out, tls ? ":443" : ":80");
    }
    buf_add_slice(out, slice_from(rest, end));
}

/* What stands behind "https://" in the URL that is signed, without the path
 * where that is the requested one. */
static bool find_host(const struct search *search, struct slice *out)
{
    const char *url = search->verifier->public_url;

    if (url == NULL) {
        return headers_find(&search->request->headers, SLICE("Host"), out);
    }
    *out = slice_of(strstr(url, "://") + 3);
    return true;
}

static void try_urls(struct search *search)
{
    struct buf url = BUF_INIT;
    struct slice rest;

    if (!find_host(search, &rest)) {
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        buf_clear(&url);
        put_url(&url, (i & 1U) == 0, (i & 2U) != 0, rest);
        if (fits(search, search->scheme, search->request, buf_cstr(&url))) {
            report(search, "public_url", buf_cstr(&url));
        }
    }
    buf_free(&url);
}

size_t variant_find(const struct verifier *verifier,
                    const struct envelope *request, struct buf *out)
{
    struct search search = {
        .verifier = verifier,
        .scheme = verifier_scheme(verifier, request),
        .request = request,
        .out = out,
    };
    bool signs_url = false;

    CHECK(verifier->n_keys > 0);
    for (size_t i = 0; i < search.scheme->n_pieces; i++) {
        signs_url |= search.scheme->pieces[i].kind == VERIFY_PIECE_URL;
    }
    try_bodies(&search);
    try_secrets(&search);
    try_algorithms(&search);
    try_forms(&search);
    try_pieces(&search);
    if (signs_url) {
        try_urls(&search);
    }
    return search.found;
}
