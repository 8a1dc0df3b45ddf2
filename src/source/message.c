/* SPDX-License-Identifier: MIT */
#include "source/message.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "source/field.h"

enum { FORM_PAIRS_MAX = 4096 };

static enum verify_status put_query(struct slice query, struct slice name,
                                    struct buf *out)
{
    struct slice encoded;
    size_t n = field_find_pair(query, name, &encoded);

    if (n == 0) {
        return VERIFY_MISSING;
    }
    return n == 1 && field_decode(encoded, out) ? VERIFY_OK : VERIFY_MALFORMED;
}

/* A member that is absent or null counts as empty, which is how senders that
 * sign single members treat optional ones. */
static enum verify_status put_json(struct slice body, struct slice pointer,
                                   struct buf *out)
{
    struct json_value found;
    enum json_status status = json_find(body, pointer, &found);

    if (status == JSON_ABSENT) {
        return VERIFY_OK;
    }
    if (status != JSON_OK) {
        return VERIFY_MALFORMED;
    }
    switch (found.type) {
    case JSON_NULL:
        return VERIFY_OK;
    case JSON_STRING:
        if (!json_string_is_text(found)) {
            return VERIFY_MALFORMED;
        }
        json_decode_string(found, out);
        return VERIFY_OK;
    case JSON_NUMBER:
    case JSON_FALSE:
    case JSON_TRUE:
        buf_add_slice(out, found.raw);
        return VERIFY_OK;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return VERIFY_MALFORMED;
    }
    UNREACHABLE("all types have returned");
}

static bool url_has_path(const char *url)
{
    const char *host = strstr(url, "://");

    CHECK(host != NULL);
    return strchr(host + 3, '/') != NULL;
}

static enum verify_status put_url(const struct envelope *request,
                                  const char *public_url, struct buf *out)
{
    struct slice host;

    if (public_url != NULL) {
        buf_add_str(out, public_url);
    } else if (headers_find(&request->headers, SLICE("Host"), &host)) {
        buf_add_str(out, "https://");
        buf_add_slice(out, host);
    } else {
        return VERIFY_MISSING;
    }
    if (public_url == NULL || !url_has_path(public_url)) {
        buf_add_slice(out, request->path);
    }
    if (request->has_query) {
        buf_add_byte(out, '?');
        buf_add_slice(out, request->query);
    }
    return VERIFY_OK;
}

static bool is_form(const struct envelope *request)
{
    const struct slice form = SLICE("application/x-www-form-urlencoded");
    struct slice type;

    if (!headers_find(&request->headers, SLICE("Content-Type"), &type)) {
        return false;
    }
    type.len = slice_find(type, ';');
    return slice_eq_nocase(slice_trim(type), form);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct field_pair *left = a;
    const struct field_pair *right = b;
    int order = slice_cmp(left->name, right->name);

    return order != 0 ? order : slice_cmp(left->value, right->value);
}

static bool decode_part(struct slice encoded, struct buf *text,
                        struct slice *out)
{
    size_t start = text->len;

    if (!field_decode(encoded, text)) {
        return false;
    }
    *out = slice_from(buf_slice(text), start);
    return true;
}

/* Decodes all pairs into `text`, which has room for them and does not move. */
static bool decode_pairs(struct slice body, struct buf *text,
                         struct field_pair *pairs, size_t *n)
{
    struct field_pair raw;

    *n = 0;
    buf_reserve(text, body.len);
    while (field_next_pair(&body, &raw)) {
        if (*n == FORM_PAIRS_MAX ||
            !decode_part(raw.name, text, &pairs[*n].name) ||
            !decode_part(raw.value, text, &pairs[*n].value)) {
            return false;
        }
        (*n)++;
    }
    return *n > 0;
}

/* Name and value of every pair, sorted, equal ones once. */
static enum verify_status put_form(struct slice body, struct buf *out)
{
    struct field_pair *pairs = mem_new(FORM_PAIRS_MAX, sizeof *pairs);
    struct buf text = BUF_INIT;
    size_t n;
    bool good = decode_pairs(body, &text, pairs, &n);

    if (good) {
        qsort(pairs, n, sizeof *pairs, compare_pairs);
    }
    for (size_t i = 0; good && i < n; i++) {
        if (i == 0 || compare_pairs(&pairs[i - 1], &pairs[i]) != 0) {
            buf_add_slice(out, pairs[i].name);
            buf_add_slice(out, pairs[i].value);
        }
    }
    buf_free(&text);
    free(pairs);
    return good ? VERIFY_OK : VERIFY_MALFORMED;
}

static bool is_digest_of(struct slice hex, struct slice body)
{
    uint8_t digest[SHA256_SIZE];
    struct buf text = BUF_INIT;
    bool same;

    hash_sha256(body, digest);
    text_hex((struct slice){(const char *)digest, sizeof digest}, &text);
    same = slice_eq_nocase(hex, buf_slice(&text));
    buf_free(&text);
    return same;
}

static bool signs_url(const struct scheme *scheme)
{
    for (size_t i = 0; i < scheme->n_pieces; i++) {
        if (scheme->pieces[i].kind == VERIFY_PIECE_URL) {
            return true;
        }
    }
    return false;
}

/* The fields of a form. Another body is covered by its digest in the signed
 * URL, as Twilio does it; where that stands there it must be right for a form
 * too, else a body without fields would pass under any signed URL. */
static enum verify_status put_body_fields(const struct scheme *scheme,
                                          const struct envelope *request,
                                          struct buf *out)
{
    struct slice digest;
    size_t n = field_find_pair(request->query, SLICE("bodySHA256"), &digest);

    if (n > 0) {
        return n == 1 && signs_url(scheme) &&
                       is_digest_of(digest, request->body)
                   ? VERIFY_OK
                   : VERIFY_MALFORMED;
    }
    if (request->body.len == 0) {
        return VERIFY_OK;
    }
    return is_form(request) ? put_form(request->body, out) : VERIFY_MALFORMED;
}

static enum verify_status put_computed(const struct scheme *scheme,
                                       const struct scheme_piece *piece,
                                       const struct envelope *request,
                                       const char *public_url, struct buf *out)
{
    switch (piece->kind) {
    case VERIFY_PIECE_QUERY:
        return put_query(request->query, slice_of(piece->argument), out);
    case VERIFY_PIECE_JSON:
        return put_json(request->body, slice_of(piece->argument), out);
    case VERIFY_PIECE_URL:
        return put_url(request, public_url, out);
    case VERIFY_PIECE_FORM_SORTED:
        return put_body_fields(scheme, request, out);
    case VERIFY_PIECE_TEXT:
    case VERIFY_PIECE_BODY:
    case VERIFY_PIECE_TIMESTAMP:
    case VERIFY_PIECE_HEADER:
        break;
    }
    UNREACHABLE("the others are borrowed");
}

/* A piece that stands in the request, or in the scheme, as it is needed. */
static bool borrow(const struct scheme_piece *piece,
                   const struct envelope *request, struct slice timestamp,
                   struct slice *out)
{
    switch (piece->kind) {
    case VERIFY_PIECE_TEXT:
        *out = slice_of(piece->argument);
        return true;
    case VERIFY_PIECE_BODY:
        *out = request->body;
        return true;
    case VERIFY_PIECE_TIMESTAMP:
        *out = timestamp;
        return true;
    case VERIFY_PIECE_HEADER:
        return headers_find(&request->headers, slice_of(piece->argument), out);
    case VERIFY_PIECE_QUERY:
    case VERIFY_PIECE_JSON:
    case VERIFY_PIECE_URL:
    case VERIFY_PIECE_FORM_SORTED:
        break;
    }
    UNREACHABLE("the others are computed");
}

static bool is_computed(enum verify_piece_kind kind)
{
    return kind == VERIFY_PIECE_QUERY || kind == VERIFY_PIECE_JSON ||
           kind == VERIFY_PIECE_URL || kind == VERIFY_PIECE_FORM_SORTED;
}

enum verify_status message_build(struct message *message,
                                 const struct scheme *scheme,
                                 const struct envelope *request,
                                 struct slice timestamp, const char *public_url)
{
    CHECK(scheme->n_pieces <= VERIFY_PIECES_MAX);
    *message = (struct message){.n = scheme->n_pieces};
    for (size_t i = 0; i < scheme->n_pieces; i++) {
        const struct scheme_piece *piece = &scheme->pieces[i];
        struct buf *made = &message->made[i];
        enum verify_status status;

        if (is_computed(piece->kind)) {
            status = put_computed(scheme, piece, request, public_url, made);
            message->parts[i] = buf_slice(made);
        } else {
            status = borrow(piece, request, timestamp, &message->parts[i])
                         ? VERIFY_OK
                         : VERIFY_MISSING;
        }
        if (status != VERIFY_OK) {
            return status;
        }
    }
    return VERIFY_OK;
}

void message_free(struct message *message)
{
    for (size_t i = 0; i < message->n; i++) {
        buf_free(&message->made[i]);
    }
    message->n = 0;
}

size_t message_length(const struct message *message)
{
    size_t length = 0;

    for (size_t i = 0; i < message->n; i++) {
        length += message->parts[i].len;
    }
    return length;
}

void message_join(const struct message *message, struct buf *out)
{
    buf_reserve(out, message_length(message));
    for (size_t i = 0; i < message->n; i++) {
        buf_add_slice(out, message->parts[i]);
    }
}
