/* SPDX-License-Identifier: MIT */
#include "source/http_vet.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "source/field.h"

/* Headers that say how the request is to be read: twice is two readings. */
static const char *const framing_names[] = {
    "Host",         "Content-Length", "Transfer-Encoding",
    "Content-Type", "Expect",         "Content-Encoding",
    NULL,
};

static const char *const hop_by_hop[] = {
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Proxy-Authorization",
    "Upgrade",
    "Expect",
    NULL,
};

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
        found += slice_eq_nocase(headers[i].name, name);
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

static const struct slice *find(const struct header *headers, size_t n,
                                struct slice name)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_eq_nocase(headers[i].name, name)) {
            return &headers[i].value;
        }
    }
    return NULL;
}

/* The value exactly as it came: what libmicrohttpd does not take for
 * "chunked" it reads until the connection closes. */
static const char *read_length(const struct header *headers, size_t n,
                               bool is_http11, struct http_framing *framing)
{
    const struct slice *length = find(headers, n, SLICE("Content-Length"));
    const struct slice *transfer = find(headers, n, SLICE("Transfer-Encoding"));

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

static const char *check_fields(const struct header *headers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!field_name_ok(headers[i].name)) {
            return "a header's name is not a token";
        }
        if (!is_field_value(headers[i].value)) {
            return "a header's value has control bytes";
        }
    }
    if (!http_vet_singles(headers, n, framing_names)) {
        return "a header stands there twice that may not repeat";
    }
    return NULL;
}

unsigned http_vet(const struct header *headers, size_t n, bool is_http11,
                  struct http_framing *framing, const char **why)
{
    CHECK(n <= HTTP_HEADERS_MAX);
    *framing = (struct http_framing){.coding = HTTP_IDENTITY};
    *why = check_fields(headers, n);
    if (*why != NULL) {
        return 400;
    }
    if (is_http11 && find(headers, n, SLICE("Host")) == NULL) {
        *why = "Host is missing";
        return 400;
    }
    *why = read_length(headers, n, is_http11, framing);
    if (*why != NULL) {
        return 400;
    }
    const struct slice *expect = find(headers, n, SLICE("Expect"));
    if (expect != NULL && is_http11) {
        if (!slice_eq_nocase(*expect, SLICE("100-continue"))) {
            *why = "the only expectation that can be met is 100-continue";
            return 417;
        }
        framing->expects_continue = true;
    }
    framing->coding = read_coding(find(headers, n, SLICE("Content-Encoding")));
    return 0;
}

/* True when a Connection header lists the name. */
static bool is_named_by_connection(const struct header *headers, size_t n,
                                   struct slice name)
{
    for (size_t i = 0; i < n; i++) {
        if (!slice_eq_nocase(headers[i].name, SLICE("Connection"))) {
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

static bool is_hop_by_hop(struct slice name)
{
    for (size_t i = 0; hop_by_hop[i] != NULL; i++) {
        if (slice_eq_nocase(name, slice_of(hop_by_hop[i]))) {
            return true;
        }
    }
    return false;
}

void http_vet_end_to_end(const struct header *headers, size_t n,
                         struct buf *flat, uint32_t *kept)
{
    *kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct slice name = headers[i].name;
        if (is_hop_by_hop(name) || is_named_by_connection(headers, n, name)) {
            continue;
        }
        headers_add(flat, name, slice_trim(headers[i].value));
        (*kept)++;
    }
}
