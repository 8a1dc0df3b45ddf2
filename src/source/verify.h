/* SPDX-License-Identifier: MIT */
/*
 * Signature verification by data: a scheme says where the signature and the
 * timestamp stand, what is signed and with which algorithm. The presets
 * (standard-webhooks, svix, stripe, github, slack, shopify) are rows of a
 * table in the same terms that `"scheme": "hmac"` offers to everybody.
 *
 * Every active secret is tried, without early exit; decoded bytes are
 * compared in constant time. Timestamps are strict digits, and their window
 * is two-sided. Works on the raw bytes as they arrived; pure but for libcrypto.
 */
#ifndef ONCED_SOURCE_VERIFY_H
#define ONCED_SOURCE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "core/envelope.h"

enum verify_algorithm {
    VERIFY_HMAC_SHA1,
    VERIFY_HMAC_SHA256,
    VERIFY_HMAC_SHA384,
    VERIFY_HMAC_SHA512,
    VERIFY_HMAC_MD5,
    VERIFY_ED25519,
};

enum verify_encoding { VERIFY_HEX, VERIFY_BASE64 };
enum verify_key_encoding {
    VERIFY_KEY_UTF8,
    VERIFY_KEY_HEX,
    VERIFY_KEY_BASE64,
    VERIFY_KEY_STANDARD, /* whsec_, whpk_ and whsk_ of Standard Webhooks */
};
enum verify_time_unit { VERIFY_SECONDS, VERIFY_MILLISECONDS };

/* A piece of the signed text. */
enum verify_piece_kind {
    VERIFY_PIECE_TEXT,
    VERIFY_PIECE_BODY,
    VERIFY_PIECE_TIMESTAMP,
    VERIFY_PIECE_HEADER,
    VERIFY_PIECE_QUERY,
    VERIFY_PIECE_JSON,
    VERIFY_PIECE_URL, /* public_url, or what was requested */
    VERIFY_PIECE_FORM_SORTED,
};

enum { VERIFY_PIECES_MAX = 16, VERIFY_SIGNATURES_MAX = 16 };

/* What the configuration says under "verify". Strings are copied. */
struct verify_options {
    const char *scheme;    /* "none", "hmac" or a preset's name */
    const char *algorithm; /* hmac: "sha256" …; NULL: the default */
    const char *header;
    const char *encoding;             /* "hex" | "base64" */
    const char *prefix;               /* before the encoded signature */
    const char *key_encoding;         /* "utf8" | "hex" | "base64" */
    const char *const *signed_pieces; /* "timestamp" "text:." "body" … */
    size_t n_signed;
    const char *timestamp_header;
    const char *timestamp_unit; /* "s" | "ms" */
    /* < 0: 5 minutes; 0: the same second (or millisecond, by the unit). Of no
     * effect where the scheme has no timestamp. */
    int64_t tolerance_ms;
    const struct slice *secrets; /* as configured, decoded here */
    size_t n_secrets;
    /* Origin, or origin and path in place of the requested one; the query is
     * always the requested one. NULL: https, Host and what was requested. */
    const char *public_url;
};

struct verifier;

/* ERR_CONFIG names the option and what is wrong, never a secret. For "none"
 * `*out` is NULL: there is nothing to verify. */
bool verifier_new(struct verifier **out, const struct verify_options *options,
                  struct err *err) MUST_CHECK;
void verifier_free(struct verifier *verifier);

/* The headers that must stand at most once for this scheme (signature,
 * timestamp, signed id): the source refuses repeats with 400. NULL-ended. */
const char *const *verifier_single_headers(const struct verifier *verifier);

enum verify_status {
    VERIFY_OK,
    VERIFY_MISSING,   /* no signature or timestamp */
    VERIFY_MALFORMED, /* not of the scheme's form */
    VERIFY_MISMATCH,  /* no secret gives it */
    VERIFY_TOO_OLD,   /* right, but outside the window */
    VERIFY_TOO_NEW,
};
enum { VERIFY_STATUSES = VERIFY_TOO_NEW + 1 };

/* Any thread. */
enum verify_status verifier_check(const struct verifier *verifier,
                                  const struct envelope *request,
                                  int64_t now_wall_ms);

/* Also skips the time window: for stored deliveries. */
enum verify_status verifier_check_untimed(const struct verifier *verifier,
                                          const struct envelope *request);

/* Makes the headers (flat form, see headers_add) that a sender of this scheme
 * would send for `id` at `wall_ms` over `body`, with the first secret. False
 * where the scheme cannot be signed with what it has (a public key). */
bool verifier_sign(const struct verifier *verifier, struct slice id,
                   int64_t wall_ms, struct slice body, struct buf *headers,
                   struct err *err) MUST_CHECK;

/* Explains on which exact bytes the signature is computed and, where it does
 * not match, which usual mistake would make it match (secret trimmed, prefix
 * left on, final newline dropped …). Never prints a secret. */
void verifier_explain(const struct verifier *verifier,
                      const struct envelope *request, int64_t now_wall_ms,
                      struct buf *out);

const char *verify_status_name(enum verify_status status); /* "mismatch" */

/* NULL-ended names of all presets, for messages, docs and the schema. */
const char *const *verify_scheme_names(void);

/* The usual value expressions of the id of a preset, e.g. "json:/id" for
 * stripe; where several are tried in order, a blank divides them. NULL for
 * hmac and none. */
const char *verify_scheme_id(const char *scheme);

#endif
