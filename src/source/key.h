/* SPDX-License-Identifier: MIT */
/*
 * Keys: secrets as they are configured, made ready for libcrypto. A key is
 * written once and then only read, by any number of threads.
 */
#ifndef ONCED_SOURCE_KEY_H
#define ONCED_SOURCE_KEY_H

#include <openssl/evp.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"
#include "source/message.h"
#include "source/scheme.h"
#include "source/signature.h"

struct key {
    enum verify_algorithm algorithm;
    EVP_MAC_CTX *mac; /* HMAC: keyed; each use works on a copy */
    EVP_PKEY *pair;   /* Ed25519 */
    bool can_sign;
};

/* Decodes a secret as the scheme wants it. ERR_CONFIG says what is wrong with
 * it, without a byte of it. */
bool key_open(struct key *out, const struct scheme *scheme, struct slice secret,
              struct err *err) MUST_CHECK;

/* From the bytes of a decoded key: of any size for HMAC; for Ed25519 32, the
 * public key, or 64, seed and public key. */
bool key_open_bytes(struct key *out, enum verify_algorithm algorithm,
                    struct slice bytes, struct err *err) MUST_CHECK;
void key_close(struct key *key); /* fine on a zeroed one */

/* True when one of the signatures is this key's for the message. All are
 * looked at, in constant time. */
bool key_matches(const struct key *key, const struct message *message,
                 const struct signatures *signatures);

/* Signs; signature_size bytes of `out` are set. The key must be one that can
 * sign. */
void key_sign(const struct key *key, const struct message *message,
              struct signature *out);

#endif
