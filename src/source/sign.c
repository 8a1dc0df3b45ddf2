/* SPDX-License-Identifier: MIT */
#include "source/verify.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/text.h"
#include "source/value.h"
#include "source/verifier.h"

/* The request while it is being made. */
struct draft {
    const struct verifier *verifier;
    struct buf *flat;
    struct envelope request;
    char time_text[24];
};

static void add_header(struct draft *draft, const char *name,
                       struct slice value)
{
    headers_add(draft->flat, slice_of(name), value);
    draft->request.headers.flat = buf_slice(draft->flat);
    draft->request.headers.count++;
}

static bool signs_form(const struct scheme *scheme)
{
    for (size_t i = 0; i < scheme->n_pieces; i++) {
        if (scheme->pieces[i].kind == VERIFY_PIECE_FORM_SORTED) {
            return true;
        }
    }
    return false;
}

static bool add_id(struct draft *draft, struct slice id, struct err *err)
{
    const char *name = draft->verifier->scheme->id_header;
    const char *problem;

    if (name == NULL || id.len == 0) {
        return true;
    }
    problem = value_check_id(id);
    if (problem != NULL) {
        return err_set(err, ERR_DATA, "the id %s", problem);
    }
    add_header(draft, name, id);
    return true;
}

static bool add_time(struct draft *draft, int64_t wall_ms, struct err *err)
{
    const struct scheme *scheme = draft->verifier->scheme;
    int64_t unit_ms = scheme->time_unit == VERIFY_SECONDS ? 1000 : 1;

    if (!scheme_is_timed(scheme)) {
        return true;
    }
    if (wall_ms < 0) {
        return err_set(err, ERR_DATA, "the time lies before 1970");
    }
    (void)snprintf(draft->time_text, sizeof draft->time_text, "%" PRId64,
                   wall_ms / unit_ms);
    if (scheme->time_header != NULL) {
        add_header(draft, scheme->time_header, slice_of(draft->time_text));
    }
    return true;
}

static const char *tag_of(const struct scheme *scheme,
                          enum verify_algorithm algorithm)
{
    for (size_t i = 0; scheme->tags[i].name != NULL; i++) {
        if (scheme->tags[i].algorithm == algorithm) {
            return scheme->tags[i].name;
        }
    }
    UNREACHABLE("a key of a scheme has one of its algorithms");
}

static void put_signature(const struct scheme *scheme,
                          const struct signature *signature, struct buf *out)
{
    struct slice bytes = {(const char *)signature->bytes,
                          signature_size(signature->algorithm)};

    switch (scheme->encoding) {
    case VERIFY_HEX:
        text_hex(bytes, out);
        return;
    case VERIFY_BASE64:
        text_base64(bytes, out);
        return;
    }
    UNREACHABLE("all encodings have returned");
}

static void add_signature(struct draft *draft,
                          const struct signature *signature)
{
    const struct scheme *scheme = draft->verifier->scheme;
    struct buf value = BUF_INIT;

    if (scheme->time_tag != NULL) {
        buf_printf(&value, "%s%c%s%c", scheme->time_tag, scheme->tag_end,
                   draft->time_text, scheme->item_end);
    }
    if (scheme->item_end != '\0') {
        buf_printf(&value, "%s%c", tag_of(scheme, signature->algorithm),
                   scheme->tag_end);
    }
    buf_add_slice(&value, slice_of(scheme->prefix));
    put_signature(scheme, signature, &value);
    add_header(draft, scheme->header, buf_slice(&value));
    buf_free(&value);
}

static bool sign_draft(struct draft *draft, struct err *err)
{
    const struct verifier *verifier = draft->verifier;
    const struct key *key = &verifier->keys[0];
    struct signature signature;
    struct message message;
    enum verify_status status =
        message_build(&message, verifier->scheme, &draft->request,
                      slice_of(draft->time_text), verifier->public_url);

    if (status == VERIFY_OK) {
        key_sign(key, &message, &signature);
        add_signature(draft, &signature);
    }
    message_free(&message);
    switch (status) {
    case VERIFY_OK:
        return true;
    case VERIFY_MISSING:
        return err_set(err, ERR_USAGE,
                       "a part of what is signed is not given: the id, the "
                       "URL, or a header or query parameter");
    case VERIFY_MALFORMED:
    case VERIFY_MISMATCH:
    case VERIFY_TOO_OLD:
    case VERIFY_TOO_NEW:
        return err_set(err, ERR_DATA,
                       "the body is not of the form that this scheme signs");
    }
    UNREACHABLE("all statuses have returned");
}

bool verifier_sign(const struct verifier *verifier, struct slice id,
                   int64_t wall_ms, struct slice body, struct buf *headers,
                   struct err *err)
{
    size_t start = headers->len;
    struct buf flat = BUF_INIT;
    struct draft draft = {
        .verifier = verifier,
        .flat = &flat,
        .request = {.kind = ENVELOPE_HTTP, .body = body, .has_body = true},
    };
    bool good;

    CHECK(verifier->n_keys > 0);
    if (!verifier->keys[0].can_sign) {
        return err_set(err, ERR_CONFIG,
                       "secrets/0: is a public key, which only verifies");
    }
    if (signs_form(verifier->scheme) && body.len > 0) {
        add_header(&draft, "Content-Type",
                   SLICE("application/x-www-form-urlencoded"));
    }
    good = add_id(&draft, id, err) && add_time(&draft, wall_ms, err) &&
           sign_draft(&draft, err);
    if (good) {
        buf_add_slice(headers, buf_slice(&flat));
    }
    CHECK(good || headers->len == start);
    buf_free(&flat);
    return good;
}
