/* SPDX-License-Identifier: MIT */
#include "handler/backend.h"

#include <stdlib.h>

#include <curl/curl.h>

#include "base/check.h"
#include "handler/wire.h"

static bool url_has(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool has = curl_url_get(url, part, &text, 0) == CURLUE_OK;

    curl_free(text);
    return has;
}

static bool is_http(CURLU *url)
{
    char *scheme = NULL;
    bool is = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              (slice_eq(slice_of(scheme), SLICE("http")) ||
               slice_eq(slice_of(scheme), SLICE("https")));

    curl_free(scheme);
    return is;
}

/* Moves the parts of a good URL into the backend. */
static void take_url(struct backend *backend, CURLU *url)
{
    char *text = NULL;

    if (curl_url_get(url, CURLUPART_QUERY, &text, 0) == CURLUE_OK) {
        backend->query = mem_strdup(text);
        curl_free(text);
    }
    CHECK(curl_url_set(url, CURLUPART_QUERY, NULL, 0) == CURLUE_OK);
    CHECK(curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK);
    CHECK(curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK);
    backend->base = mem_strdup(text);
    curl_free(text);
}

static bool parse_url(struct backend *backend, const char *text,
                      struct err *err)
{
    CURLU *url = curl_url();
    CURLUcode code;
    bool ok = false;

    CHECK(url != NULL);
    code = curl_url_set(url, CURLUPART_URL, text, 0);
    if (code != CURLUE_OK) {
        (void)err_set(err, ERR_CONFIG, "url: %s", curl_url_strerror(code));
    } else if (!is_http(url)) {
        (void)err_set(err, ERR_CONFIG, "url: neither http nor https");
    } else if (url_has(url, CURLUPART_USER) ||
               url_has(url, CURLUPART_PASSWORD)) {
        (void)err_set(err, ERR_CONFIG,
                      "url: credentials belong into the headers");
    } else {
        take_url(backend, url);
        ok = true;
    }
    curl_url_cleanup(url);
    return ok;
}

static bool check_header(const char *name, const char *value, struct err *err)
{
    if (!wire_is_token(slice_of(name))) {
        return err_set(err, ERR_CONFIG, "headers: a name is no token");
    }
    if (wire_is_framing(slice_of(name)) || wire_is_reserved(slice_of(name))) {
        return err_set(err, ERR_CONFIG, "header %s: is set by onced", name);
    }
    if (!wire_is_value(slice_of(value))) {
        return err_set(err, ERR_CONFIG,
                       "header %s: control character in the value", name);
    }
    return true;
}

bool backend_init(struct backend *backend,
                  const struct http_handler_options *options, struct err *err)
{
    *backend = (struct backend){.path_prefix_len = options->path_prefix_len};
    for (size_t i = 0; i < options->n_headers; i++) {
        if (!check_header(options->headers[i][0], options->headers[i][1],
                          err)) {
            return false;
        }
    }
    if (!parse_url(backend, options->url, err)) {
        return false;
    }
    backend->headers = mem_new(options->n_headers, sizeof backend->headers[0]);
    backend->n_headers = options->n_headers;
    for (size_t i = 0; i < options->n_headers; i++) {
        backend->headers[i].name = slice_of(mem_strdup(options->headers[i][0]));
        backend->headers[i].value =
            slice_of(mem_strdup(options->headers[i][1]));
    }
    return true;
}

void backend_fini(struct backend *backend)
{
    for (size_t i = 0; i < backend->n_headers; i++) {
        free((char *)backend->headers[i].name.data);
        free((char *)backend->headers[i].value.data);
    }
    free(backend->headers);
    free(backend->base);
    free(backend->query);
    *backend = (struct backend){0};
}

bool backend_has(const struct backend *backend, struct slice name)
{
    for (size_t i = 0; i < backend->n_headers; i++) {
        if (slice_eq_nocase(backend->headers[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* Bytes that would end the path or the request line stand as %XX. */
static void add_escaped(struct buf *url, struct slice part)
{
    for (size_t i = 0; i < part.len; i++) {
        unsigned char byte = (unsigned char)part.data[i];

        if (byte <= 0x20 || byte >= 0x7f || byte == '#') {
            buf_printf(url, "%%%02X", byte);
        } else {
            buf_add_byte(url, part.data[i]);
        }
    }
}

/* Whether the segment is `n` dots, each as it is or as %2e. */
static bool is_dots(struct slice segment, size_t n)
{
    for (; n > 0; n--) {
        struct slice start = {segment.data, segment.len < 3 ? segment.len : 3};

        if (slice_starts(segment, SLICE("."))) {
            segment = slice_from(segment, 1);
        } else if (slice_eq_nocase(start, SLICE("%2e"))) {
            segment = slice_from(segment, 3);
        } else {
            return false;
        }
    }
    return segment.len == 0;
}

/* The length that `url` has without its last segment, at least `floor`. */
static size_t parent_len(const struct buf *url, size_t floor)
{
    size_t len = url->len > floor ? url->len - 1 : floor;

    while (len > floor && url->data[len - 1] != '/') {
        len--;
    }
    return len;
}

/* Dot segments are resolved here, within the suffix: a sender that could
 * climb above the backend's path would choose its own handler. */
static void add_suffix(struct buf *url, struct slice suffix)
{
    size_t floor = url->len;

    for (;;) {
        size_t end = slice_find(suffix, '/');
        bool last = end == suffix.len;
        struct slice segment = {suffix.data, end};

        if (is_dots(segment, 2)) {
            url->len = parent_len(url, floor);
        } else if (!is_dots(segment, 1)) {
            add_escaped(url, segment);
            buf_add_str(url, last ? "" : "/");
        }
        if (last) {
            return;
        }
        suffix = slice_from(suffix, end + 1);
    }
}

static void add_query(struct buf *url, const struct backend *backend,
                      const struct envelope *envelope)
{
    const char *separator = "?";

    if (backend->query != NULL) {
        buf_add_str(url, separator);
        buf_add_str(url, backend->query);
        separator = "&";
    }
    if (envelope->kind == ENVELOPE_HTTP && envelope->has_query) {
        buf_add_str(url, separator);
        add_escaped(url, envelope->query);
    }
}

void backend_url(const struct backend *backend, const struct envelope *envelope,
                 struct buf *url)
{
    size_t prefix = backend->path_prefix_len;

    buf_add_str(url, backend->base);
    if (prefix > 0 && envelope->kind == ENVELOPE_HTTP &&
        envelope->path.len > prefix) {
        struct slice suffix = slice_from(envelope->path, prefix);

        if (slice_starts(suffix, SLICE("/"))) {
            suffix = slice_from(suffix, 1);
        }
        if (url->data[url->len - 1] != '/') {
            buf_add_byte(url, '/');
        }
        add_suffix(url, suffix);
    }
    add_query(url, backend, envelope);
    buf_add_byte(url, '\0');
}
