/* SPDX-License-Identifier: MIT */
#include "source/http_vet.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "source/field.h"

/* The headers that mean something here. */
enum known {
    KNOWN_HOST,
    KNOWN_CONTENT_LENGTH,
    KNOWN_TRANSFER_ENCODING,
    KNOWN_CONTENT_TYPE,
    KNOWN_EXPECT,
    KNOWN_CONTENT_ENCODING,
    KNOWN_CONNECTION,
    KNOWN_KEEP_ALIVE,
    KNOWN_PROXY_CONNECTION,
    KNOWN_TE,
    KNOWN_TRAILER,
    KNOWN_PROXY_AUTHORIZATION,
    KNOWN_UPGRADE,
    KNOWN_NONE,
};

static const struct {
    struct slice name;
    bool is_framing; /* says how the request is read: twice is two readings */
    bool is_hop_by_hop;
} known[KNOWN_NONE] = {
    [KNOWN_HOST] = {SLICE_INIT("Host"), true, false},
    [KNOWN_CONTENT_LENGTH] = {SLICE_INIT("Content-Length"), true, false},
    [KNOWN_TRANSFER_ENCODING] = {SLICE_INIT("Transfer-Encoding"), true, true},
    [KNOWN_CONTENT_TYPE] = {SLICE_INIT("Content-Type"), true, false},
    [KNOWN_EXPECT] = {SLICE_INIT("Expect"), true, true},
    [KNOWN_CONTENT_ENCODING] = {SLICE_INIT("Content-Encoding"), true, false},
    [KNOWN_CONNECTION] = {SLICE_INIT("Connection"), false, true},
    [KNOWN_KEEP_ALIVE] = {SLICE_INIT("Keep-Alive"), false, true},
    [KNOWN_PROXY_CONNECTION] = {SLICE_INIT("Proxy-Connection"), false, true},
    [KNOWN_TE] = {SLICE_INIT("TE"), false, true},
    [KNOWN_TRAILER] = {SLICE_INIT("Trailer"), false, true},
    [KNOWN_PROXY_AUTHORIZATION] = {SLICE_INIT("Proxy-Authorization"), false,
                                   true},
    [KNOWN_UPGRADE] = {SLICE_INIT("Upgrade"), false, true},
};

static bool is_name(struct slice text, struct slice name)
{
    return text.len == name.len && slice_eq_nocase(text, name);
}

static enum known know(struct slice name)
{
    for (size_t i = 0; i < KNOWN_NONE; i++) {
        if (is_name(name, known[i].name)) {
            return (enum known)i;
        }
    }
    return KNOWN_NONE;
}

static bool is_field_value(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f) {
            return false;
        }
    }
    return true;
}

static size_t count(const struct header *headers, size_t n, struct slice name)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        found += is_name(headers[i].name, name);
    }
    return found;
}

bool http_vet_singles(const struct header *headers, size_t n,
                      const char *const *names)
{
    for (; *names != NULL; names++) {
        if (count(headers, n, slice_of(*names)) > 1) {
            return false;
        }
    }
    return true;
}

/* The value exactly as it came: what libmicrohttpd does not take for
 * "chunked" it reads until the connection closes. */
static const char *read_length(const struct slice *length,
                               const struct slice *transfer, bool is_http11,
                               struct http_framing *framing)
{
    if (transfer != NULL) {
        if (!is_http11) {
            return "Transfer-Encoding needs HTTP/1.1";
        }
        if (length != NULL) {
            return "Transfer-Encoding stands beside Content-Length";
        }
        if (!slice_eq_nocase(*transfer, SLICE("chunked"))) {
            return "the only Transfer-Encoding is chunked";
        }
        framing->is_chunked = true;
        return NULL;
    }
    if (length == NULL) {
        return NULL;
    }
    framing->has_length = true;
    /* Not text_u64: leading zeros are legal here. */
    struct slice digits = *length;
    while (digits.len > 1 && digits.data[0] == '0') {
        digits = slice_from(digits, 1);
    }
    if (!text_u64(digits, &framing->length)) {
        return "Content-Length is not a number";
    }
    return NULL;
}

static enum http_coding read_coding(const struct slice *value)
{
    if (value == NULL) {
        return HTTP_IDENTITY;
    }
    struct slice coding = slice_trim(*value);
    if (coding.len == 0 || slice_eq_nocase(coding, SLICE("identity"))) {
        return HTTP_IDENTITY;
    }
    if (slice_eq_nocase(coding, SLICE("gzip")) ||
        slice_eq_nocase(coding, SLICE("x-gzip"))) {
        return HTTP_GZIP;
    }
    return HTTP_CODING_OTHER;
}

bool http_vet_lines(const struct header *headers, size_t n, const char *start,
                    const char *end)
{
    const char *line_end = start;
    for (size_t i = 0; i < n; i++) {
        if (headers[i].name.data != line_end + strlen("\r\n")) {
            return false;
        }
        line_end = headers[i].value.data + headers[i].value.len;
    }
    return end == line_end + strlen("\r\n\r\n");
}

/* Fills in the value of each known header: the first, where one may repeat. */
static const char *read_fields(const struct header *headers, size_t n,
                               const struct slice *values[KNOWN_NONE])
{
    for (size_t i = 0; i < n; i++) {
        enum known which = know(headers[i].name);
        if (!field_name_ok(headers[i].name)) {
            return "a header's name is not a token";
        }
        if (!is_field_value(headers[i].value)) {
            return "a header's value has control bytes";
        }
        if (which == KNOWN_NONE) {
            continue;
        }
        if (values[which] == NULL) {
            values[which] = &headers[i].value;
        } else if (known[which].is_framing) {
            return "a header stands there twice that may not repeat";
        }
    }
    return NULL;
}

unsigned http_vet(const struct header *headers, size_t n, bool is_http11,
                  struct http_framing *framing, const char **why)
{
    const struct slice *values[KNOWN_NONE] = {NULL};
    CHECK(n <= HTTP_HEADERS_MAX);
    *framing = (struct http_framing){.coding = HTTP_IDENTITY};
    *why = read_fields(headers, n, values);
    if (*why != NULL) {
        return 400;
    }
    if (is_http11 && values[KNOWN_HOST] == NULL) {
        *why = "Host is missing";
        return 400;
    }
    *why = read_length(values[KNOWN_CONTENT_LENGTH],
                       values[KNOWN_TRANSFER_ENCODING], is_http11, framing);
    if (*why != NULL) {
        return 400;
    }
    const struct slice *expect = values[KNOWN_EXPECT];
    if (expect != NULL && is_http11) {
        if (!slice_eq_nocase(*expect, SLICE("100-continue"))) {
            *why = "the only expectation that can be met is 100-continue";
            return 417;
        }
        framing->expects_continue = true;
    }
    framing->coding = read_coding(values[KNOWN_CONTENT_ENCODING]);
    return 0;
}

/* True when a Connection header lists the name. */
static bool is_named_by_connection(const struct header *headers, size_t n,
                                   struct slice name)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_name(headers[i].name, known[KNOWN_CONNECTION].name)) {
            continue;
        }
        struct slice rest = headers[i].value;
        while (rest.len > 0) {
            size_t comma = slice_find(rest, ',');
            struct slice option = {rest.data, comma};
            if (slice_eq_nocase(slice_trim(option), name)) {
                return true;
            }
            rest = slice_from(rest, comma < rest.len ? comma + 1 : comma);
        }
    }
    return false;
}

void http_vet_end_to_end(const struct header *headers, size_t n,
                         struct buf *flat, uint32_t *kept)
{
    bool names_more = count(headers, n, known[KNOWN_CONNECTION].name) > 0;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += headers_add_size(headers[i].name, headers[i].value);
    }
    buf_reserve(flat, bytes); /* once, not while it grows */
    *kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct slice name = headers[i].name;
        enum known which = know(name);
        if ((which != KNOWN_NONE && known[which].is_hop_by_hop) ||
            (names_more && is_named_by_connection(headers, n, name))) {
            continue;
        }
        headers_add(flat, name, slice_trim(headers[i].value));
        (*kept)++;
    }
}
