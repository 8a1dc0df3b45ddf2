/* SPDX-License-Identifier: MIT */
#include "source/signature.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"

size_t signature_size(enum verify_algorithm algorithm)
{
    switch (algorithm) {
    case VERIFY_HMAC_MD5:
        return 16;
    case VERIFY_HMAC_SHA1:
        return 20;
    case VERIFY_HMAC_SHA256:
        return 32;
    case VERIFY_HMAC_SHA384:
        return 48;
    case VERIFY_HMAC_SHA512:
    case VERIFY_ED25519:
        return 64;
    }
    UNREACHABLE("all algorithms have returned");
}

bool signature_decode(struct slice text, enum verify_encoding encoding,
                      enum verify_algorithm algorithm, struct signature *out)
{
    size_t size = signature_size(algorithm);
    struct buf bytes = BUF_INIT;
    bool good = false;

    if (text.len / 2 > SIGNATURE_SIZE_MAX) {
        return false;
    }
    switch (encoding) {
    case VERIFY_HEX:
        good = text_unhex(text, &bytes);
        break;
    case VERIFY_BASE64:
        good = text_unbase64(text, &bytes);
        break;
    }
    good = good && bytes.len == size;
    if (good) {
        out->algorithm = algorithm;
        memcpy(out->bytes, bytes.data, size);
    }
    buf_free(&bytes);
    return good;
}

static void add(struct signatures *out, const struct scheme *scheme,
                enum verify_algorithm algorithm, struct slice text)
{
    if (out->n < VERIFY_SIGNATURES_MAX &&
        signature_decode(text, scheme->encoding, algorithm,
                         &out->items[out->n])) {
        out->n++;
    }
}

/* False when the timestamp stands there a second time: readers differ in
 * which of the two they take. */
static bool read_item(const struct scheme *scheme, struct slice item,
                      struct signatures *out)
{
    struct slice tag = {item.data, slice_find(item, scheme->tag_end)};
    struct slice text;

    if (tag.len == item.len) {
        return true;
    }
    text = slice_from(item, tag.len + 1);
    if (scheme->time_tag != NULL && slice_eq(tag, slice_of(scheme->time_tag))) {
        if (out->timestamp.data != NULL) {
            return false;
        }
        out->timestamp = text;
        return true;
    }
    for (size_t i = 0; scheme->tags[i].name != NULL; i++) {
        if (slice_eq(tag, slice_of(scheme->tags[i].name))) {
            add(out, scheme, scheme->tags[i].algorithm, text);
        }
    }
    return true;
}

static bool read_list(const struct scheme *scheme, struct slice text,
                      struct signatures *out)
{
    while (text.len > 0) {
        size_t end = slice_find(text, scheme->item_end);

        if (!read_item(scheme, (struct slice){text.data, end}, out)) {
            return false;
        }
        text = slice_from(text, end < text.len ? end + 1 : end);
    }
    return out->n > 0;
}

static bool read_one(const struct scheme *scheme, struct slice text,
                     struct signatures *out)
{
    struct slice prefix = slice_of(scheme->prefix);

    if (!slice_starts(text, prefix)) {
        return false;
    }
    add(out, scheme, scheme->algorithm, slice_from(text, prefix.len));
    return out->n > 0;
}

static enum verify_status read_time(const struct scheme *scheme,
                                    struct signatures *out)
{
    int64_t unit_ms = scheme->time_unit == VERIFY_SECONDS ? 1000 : 1;
    uint64_t count;

    if (out->timestamp.len == 0) {
        return VERIFY_MISSING;
    }
    if (!text_u64(out->timestamp, &count) ||
        count > (uint64_t)(INT64_MAX / unit_ms)) {
        return VERIFY_MALFORMED;
    }
    out->wall_ms = (int64_t)count * unit_ms;
    return VERIFY_OK;
}

enum verify_status signatures_read(const struct scheme *scheme,
                                   const struct envelope *request,
                                   struct signatures *out)
{
    struct slice text;
    bool good;

    out->n = 0;
    out->timestamp = (struct slice){NULL, 0};
    out->wall_ms = 0;
    if (!headers_find(&request->headers, slice_of(scheme->header), &text) ||
        text.len == 0) {
        return VERIFY_MISSING;
    }
    good = scheme->item_end == '\0' ? read_one(scheme, text, out)
                                    : read_list(scheme, text, out);
    if (!good) {
        return VERIFY_MALFORMED;
    }
    if (scheme->time_header != NULL &&
        !headers_find(&request->headers, slice_of(scheme->time_header),
                      &out->timestamp)) {
        return VERIFY_MISSING;
    }
    return scheme_is_timed(scheme) ? read_time(scheme, out) : VERIFY_OK;
}
