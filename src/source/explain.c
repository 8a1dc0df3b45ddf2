/* SPDX-License-Identifier: MIT */
#include "source/verify.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"
#include "source/variant.h"
#include "source/verifier.h"

enum { DUMP_LINE = 16 };
#define DUMP_EDGE ((size_t)8 * DUMP_LINE)

static void dump_line(struct slice text, size_t at, struct buf *out)
{
    size_t left = text.len - at;
    size_t n = left < DUMP_LINE ? left : DUMP_LINE;

    buf_printf(out, "  %08zx  ", at);
    for (size_t i = 0; i < DUMP_LINE; i++) {
        if (i < n) {
            buf_printf(out, "%02x ", (unsigned char)text.data[at + i]);
        } else {
            buf_add_str(out, "   ");
        }
    }
    buf_add_str(out, " |");
    for (size_t i = 0; i < n; i++) {
        char byte = text.data[at + i];

        if (byte < ' ' || byte > '~') {
            byte = '.';
        }
        buf_add_byte(out, byte);
    }
    buf_add_str(out, "|\n");
}

/* The first and the last bytes: what differs stands mostly there. */
static void dump(struct slice text, struct buf *out)
{
    size_t skip = 0;

    if (text.len > 2 * DUMP_EDGE) {
        skip = (text.len - 2 * DUMP_EDGE) / DUMP_LINE * DUMP_LINE;
    }
    for (size_t at = 0; at < text.len; at += DUMP_LINE) {
        if (at == DUMP_EDGE && skip > 0) {
            buf_printf(out, "  … %zu bytes …\n", skip);
            at += skip;
        }
        dump_line(text, at, out);
    }
}

static void put_headers(const struct verifier *verifier,
                        const struct scheme *scheme,
                        const struct envelope *request, struct buf *out)
{
    const char *name;

    for (size_t i = 0; (name = scheme_single_header(scheme, i)) != NULL; i++) {
        size_t n = headers_count(&request->headers, slice_of(name));

        buf_printf(out, "header %s: %s\n", name,
                   n == 0   ? "missing"
                   : n == 1 ? "there"
                            : "there more than once, which is refused");
    }
    if (scheme != verifier->scheme) {
        buf_printf(out, "(there is none of those called %s…)\n",
                   verifier->scheme->header);
    }
}

static void put_expected(const struct scheme *scheme, struct buf *out)
{
    const char *encoding = scheme->encoding == VERIFY_HEX ? "hex" : "base64";

    if (scheme->item_end == '\0') {
        buf_printf(out, "expected: %s%s of %zu bytes\n",
                   scheme->prefix == NULL ? "" : scheme->prefix, encoding,
                   signature_size(scheme->algorithm));
        return;
    }
    buf_printf(out, "expected: a list, divided by '%c', of", scheme->item_end);
    if (scheme->time_tag != NULL) {
        buf_printf(out, " %s%ctimestamp", scheme->time_tag, scheme->tag_end);
    }
    for (size_t i = 0; scheme->tags[i].name != NULL; i++) {
        buf_printf(out, " %s%c%s", scheme->tags[i].name, scheme->tag_end,
                   encoding);
    }
    buf_add_byte(out, '\n');
}

static void put_time(const struct verifier *verifier,
                     const struct signatures *signatures, int64_t now_wall_ms,
                     struct buf *out)
{
    int64_t age_ms = now_wall_ms - signatures->wall_ms;
    char text[TEXT_TIME_SIZE];

    buf_printf(out, "timestamp: %.*s, ", (int)signatures->timestamp.len,
               signatures->timestamp.data);
    if (signatures->wall_ms > INT64_C(253402300799999)) {
        buf_add_str(out, "past the year 9999; is the unit right?\n");
        return;
    }
    text_time(signatures->wall_ms, text);
    buf_printf(out, "%s, ", text);
    text_put_duration(out, age_ms < 0 ? -age_ms : age_ms);
    buf_add_str(out, age_ms < 0 ? " after now; " : " before now; ");
    text_put_duration(out, verifier->tolerance_ms);
    buf_add_str(out, " is allowed\n");
}

static void put_body(struct slice body, struct buf *out)
{
    uint8_t digest[SHA256_SIZE];

    hash_sha256(body, digest);
    buf_printf(out, "body: %zu bytes, sha256 ", body.len);
    text_hex((struct slice){(const char *)digest, sizeof digest}, out);
    buf_add_byte(out, '\n');
}

static void put_message(const struct message *message, struct buf *out)
{
    struct buf text = BUF_INIT;

    message_join(message, &text);
    buf_printf(out, "signed text: %zu bytes\n", text.len);
    dump(buf_slice(&text), out);
    buf_free(&text);
}

static void put_matching(const struct verifier *verifier,
                         const struct message *message,
                         const struct signatures *signatures, struct buf *out)
{
    for (size_t i = 0; i < verifier->n_keys; i++) {
        if (key_matches(&verifier->keys[i], message, signatures)) {
            buf_printf(out, "matches: secrets/%zu\n", i);
        }
    }
}

static void put_result(const struct verifier *verifier,
                       const struct envelope *request,
                       enum verify_status status, struct buf *out)
{
    size_t start;

    buf_printf(out, "result: %s\n", verify_status_name(status));
    if ((status != VERIFY_MISMATCH && status != VERIFY_MALFORMED) ||
        verifier_repeats_header(verifier, request)) {
        return;
    }
    start = out->len;
    buf_add_str(out, "it would match with\n");
    if (variant_find(verifier, request, out) == 0) {
        out->len = start;
        buf_add_str(out, "none of the usual mistakes explains it; compare "
                         "secret, length and sha256 with the sender's\n");
    }
}

void verifier_explain(const struct verifier *verifier,
                      const struct envelope *request, int64_t now_wall_ms,
                      struct buf *out)
{
    const struct scheme *scheme = verifier_scheme(verifier, request);
    struct signatures signatures;
    struct message message;
    enum verify_status status = signatures_read(scheme, request, &signatures);

    buf_printf(out, "scheme: %s\n", scheme->name);
    put_headers(verifier, scheme, request, out);
    put_expected(scheme, out);
    if (status == VERIFY_OK && scheme_is_timed(scheme)) {
        put_time(verifier, &signatures, now_wall_ms, out);
    }
    put_body(request->body, out);
    if (message_build(&message, scheme, request, signatures.timestamp,
                      verifier->public_url) == VERIFY_OK) {
        put_message(&message, out);
        if (status == VERIFY_OK) {
            put_matching(verifier, &message, &signatures, out);
        }
    }
    message_free(&message);
    put_result(verifier, request,
               verifier_check(verifier, request, now_wall_ms), out);
}
