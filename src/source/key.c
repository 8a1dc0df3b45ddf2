/* SPDX-License-Identifier: MIT */
#include "source/key.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

enum { PUBLIC_SIZE = 32, SEED_SIZE = 32 };

/* Standard Webhooks wants 24 to 64 bytes. One less is let through: a secret
 * of 24 bytes that lost its last character is in use, and other libraries
 * take it. */
enum { STANDARD_MIN = 23, STANDARD_MAX = 64 };

static const char *digest_name(enum verify_algorithm algorithm)
{
    switch (algorithm) {
    case VERIFY_HMAC_SHA1:
        return "SHA1";
    case VERIFY_HMAC_SHA256:
        return "SHA256";
    case VERIFY_HMAC_SHA384:
        return "SHA384";
    case VERIFY_HMAC_SHA512:
        return "SHA512";
    case VERIFY_HMAC_MD5:
        return "MD5";
    case VERIFY_ED25519:
        break;
    }
    UNREACHABLE("Ed25519 is no HMAC");
}

static bool open_hmac(struct key *out, struct slice bytes, struct err *err)
{
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    char *digest = mem_strdup(digest_name(out->algorithm));
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    bool good;

    CHECK(hmac != NULL);
    out->can_sign = true;
    out->mac = EVP_MAC_CTX_new(hmac);
    good = out->mac != NULL &&
           EVP_MAC_init(out->mac, (const unsigned char *)bytes.data, bytes.len,
                        params) == 1;
    free(digest);
    EVP_MAC_free(hmac);
    if (!good) {
        key_close(out);
        return err_set(err, ERR_CONFIG,
                       "libcrypto does not take it as an HMAC-%s key",
                       digest_name(out->algorithm));
    }
    return true;
}

static bool has_public(const EVP_PKEY *pair, const unsigned char *expected)
{
    unsigned char derived[PUBLIC_SIZE];
    size_t size = sizeof derived;

    return EVP_PKEY_get_raw_public_key(pair, derived, &size) == 1 &&
           size == sizeof derived && memcmp(derived, expected, size) == 0;
}

static bool open_ed25519(struct key *out, struct slice bytes, struct err *err)
{
    const unsigned char *raw = (const unsigned char *)bytes.data;

    if (bytes.len == PUBLIC_SIZE) {
        out->pair = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw,
                                                PUBLIC_SIZE);
    } else if (bytes.len == SEED_SIZE + PUBLIC_SIZE) {
        out->pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, raw,
                                                 SEED_SIZE);
        out->can_sign = true;
    } else {
        return err_set(err, ERR_CONFIG,
                       "is %zu bytes long; an Ed25519 public key has 32, a "
                       "private one 64",
                       bytes.len);
    }
    CHECK(out->pair != NULL);
    if (out->can_sign && !has_public(out->pair, raw + SEED_SIZE)) {
        key_close(out);
        return err_set(err, ERR_CONFIG,
                       "is not an Ed25519 key: its halves do not belong "
                       "together");
    }
    return true;
}

bool key_open_bytes(struct key *out, enum verify_algorithm algorithm,
                    struct slice bytes, struct err *err)
{
    *out = (struct key){.algorithm = algorithm};
    return algorithm == VERIFY_ED25519 ? open_ed25519(out, bytes, err)
                                       : open_hmac(out, bytes, err);
}

void key_close(struct key *key)
{
    EVP_MAC_CTX_free(key->mac);
    EVP_PKEY_free(key->pair);
    *key = (struct key){.algorithm = key->algorithm};
}

static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* What is wrong with a secret of any scheme, or NULL. */
static const char *secret_problem(const struct scheme *scheme,
                                  struct slice secret)
{
    bool standard = scheme->key_encoding == VERIFY_KEY_STANDARD;

    if (secret.len == 0) {
        return "is empty";
    }
    if (is_blank(secret.data[0])) {
        return "starts with a blank or a newline";
    }
    if (is_blank(secret.data[secret.len - 1])) {
        return "ends with a blank or a newline";
    }
    if (slice_starts(secret, SLICE("v1,whsec_"))) {
        return "starts with \"v1,\": the secret begins at \"whsec_\"";
    }
    if (!standard && (slice_starts(secret, SLICE("whpk_")) ||
                      slice_starts(secret, SLICE("whsk_")))) {
        return "is a key pair's, of Standard Webhooks; this scheme wants "
               "another";
    }
    return NULL;
}

static void wipe(struct buf *buf)
{
    OPENSSL_cleanse(buf->data, buf->cap);
    buf_free(buf);
}

/* Base64 with or without padding, where the unused bits of the last character
 * do not matter: such secrets are in use. 'A' stands for zero bits, so filling
 * up with it gives the missing ones. */
static bool decode_loose(struct slice text, struct buf *out)
{
    struct buf full = BUF_INIT;
    bool good;

    while (text.len > 0 && text.data[text.len - 1] == '=') {
        text.len--;
    }
    if (text.len % 4 == 1) {
        return false;
    }
    buf_reserve(&full, text.len + 2);
    buf_add_slice(&full, text);
    buf_add(&full, "AA", (4 - text.len % 4) % 4);
    good = text_unbase64(buf_slice(&full), out);
    if (good) {
        out->len = text.len * 6 / 8;
    }
    wipe(&full);
    return good;
}

/* One half of a key pair, or all of it. */
static bool open_pair(struct key *out, struct slice text, size_t size,
                      struct err *err)
{
    struct buf bytes = BUF_INIT;
    bool good;

    if (!text_unbase64(text, &bytes)) {
        good = err_set(err, ERR_CONFIG, "is not base64 behind its prefix");
    } else if (bytes.len != size) {
        good = err_set(err, ERR_CONFIG, "has %zu bytes, must have %zu",
                       bytes.len, size);
    } else {
        good = key_open_bytes(out, VERIFY_ED25519, buf_slice(&bytes), err);
    }
    wipe(&bytes);
    return good;
}

static bool open_shared(struct key *out, struct slice text, struct err *err)
{
    struct buf bytes = BUF_INIT;
    bool good;

    if (!decode_loose(text, &bytes)) {
        good = err_set(err, ERR_CONFIG,
                       "is not \"whsec_\" (or \"whpk_\", \"whsk_\") and "
                       "base64");
    } else if (bytes.len < STANDARD_MIN || bytes.len > STANDARD_MAX) {
        good = err_set(err, ERR_CONFIG, "has %zu bytes, must have 24 to %d",
                       bytes.len, STANDARD_MAX);
    } else {
        good = key_open_bytes(out, VERIFY_HMAC_SHA256, buf_slice(&bytes), err);
    }
    wipe(&bytes);
    return good;
}

static bool open_standard(struct key *out, struct slice secret, struct err *err)
{
    const struct slice shared = SLICE("whsec_");
    const struct slice public = SLICE("whpk_");
    const struct slice private = SLICE("whsk_");

    if (slice_starts(secret, public)) {
        return open_pair(out, slice_from(secret, public.len), PUBLIC_SIZE, err);
    }
    if (slice_starts(secret, private)) {
        return open_pair(out, slice_from(secret, private.len),
                         SEED_SIZE + PUBLIC_SIZE, err);
    }
    if (slice_starts(secret, shared)) {
        secret = slice_from(secret, shared.len);
    }
    return open_shared(out, secret, err);
}

static bool open_coded(struct key *out, const struct scheme *scheme,
                       struct slice secret, struct err *err)
{
    bool hex = scheme->key_encoding == VERIFY_KEY_HEX;
    struct buf bytes = BUF_INIT;
    bool good =
        hex ? text_unhex(secret, &bytes) : text_unbase64(secret, &bytes);

    good = good ? key_open_bytes(out, scheme->algorithm, buf_slice(&bytes), err)
                : err_set(err, ERR_CONFIG, "is not %s, as key_encoding says",
                          hex ? "hex" : "base64");
    wipe(&bytes);
    return good;
}

bool key_open(struct key *out, const struct scheme *scheme, struct slice secret,
              struct err *err)
{
    const char *problem = secret_problem(scheme, secret);

    if (problem != NULL) {
        return err_set(err, ERR_CONFIG, "%s", problem);
    }
    switch (scheme->key_encoding) {
    case VERIFY_KEY_UTF8:
        return key_open_bytes(out, scheme->algorithm, secret, err);
    case VERIFY_KEY_HEX:
    case VERIFY_KEY_BASE64:
        return open_coded(out, scheme, secret, err);
    case VERIFY_KEY_STANDARD:
        return open_standard(out, secret, err);
    }
    UNREACHABLE("all encodings have returned");
}

static void compute_mac(const struct key *key, const struct message *message,
                        uint8_t out[SIGNATURE_SIZE_MAX])
{
    EVP_MAC_CTX *ctx = EVP_MAC_CTX_dup(key->mac);
    size_t size;

    CHECK(ctx != NULL);
    for (size_t i = 0; i < message->n; i++) {
        struct slice part = message->parts[i];

        CHECK(EVP_MAC_update(ctx, (const unsigned char *)part.data, part.len) ==
              1);
    }
    CHECK(EVP_MAC_final(ctx, out, &size, SIGNATURE_SIZE_MAX) == 1);
    CHECK(size == signature_size(key->algorithm));
    EVP_MAC_CTX_free(ctx);
}

static bool mac_matches(const struct key *key, const struct message *message,
                        const struct signatures *signatures)
{
    size_t size = signature_size(key->algorithm);
    uint8_t expected[SIGNATURE_SIZE_MAX];
    bool found = false;

    compute_mac(key, message, expected);
    for (size_t i = 0; i < signatures->n; i++) {
        const struct signature *item = &signatures->items[i];

        if (item->algorithm == key->algorithm) {
            found |= CRYPTO_memcmp(expected, item->bytes, size) == 0;
        }
    }
    return found;
}

/* Ed25519 hashes twice, so libcrypto takes the message in one piece only. */
static bool pair_signed(const struct key *key, struct slice text,
                        const struct signature *signature)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good;

    CHECK(ctx != NULL);
    CHECK(EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key->pair) == 1);
    good = EVP_DigestVerify(ctx, signature->bytes, 64,
                            (const unsigned char *)text.data, text.len) == 1;
    EVP_MD_CTX_free(ctx);
    return good;
}

static bool pair_matches(const struct key *key, const struct message *message,
                         const struct signatures *signatures)
{
    struct buf text = BUF_INIT;
    bool found = false;

    message_join(message, &text);
    for (size_t i = 0; i < signatures->n; i++) {
        const struct signature *item = &signatures->items[i];

        if (item->algorithm == VERIFY_ED25519) {
            found |= pair_signed(key, buf_slice(&text), item);
        }
    }
    buf_free(&text);
    return found;
}

bool key_matches(const struct key *key, const struct message *message,
                 const struct signatures *signatures)
{
    CHECK(signatures->n <= VERIFY_SIGNATURES_MAX);
    return key->algorithm == VERIFY_ED25519
               ? pair_matches(key, message, signatures)
               : mac_matches(key, message, signatures);
}

static void pair_sign(const struct key *key, const struct message *message,
                      struct signature *out)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t size = sizeof out->bytes;
    struct buf text = BUF_INIT;

    CHECK(ctx != NULL);
    message_join(message, &text);
    CHECK(EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pair) == 1);
    CHECK(EVP_DigestSign(ctx, out->bytes, &size,
                         (const unsigned char *)text.data, text.len) == 1);
    CHECK(size == signature_size(VERIFY_ED25519));
    buf_free(&text);
    EVP_MD_CTX_free(ctx);
}

void key_sign(const struct key *key, const struct message *message,
              struct signature *out)
{
    CHECK(key->can_sign);
    out->algorithm = key->algorithm;
    if (key->algorithm == VERIFY_ED25519) {
        pair_sign(key, message, out);
    } else {
        compute_mac(key, message, out->bytes);
    }
}
