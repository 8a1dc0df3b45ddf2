/* SPDX-License-Identifier: MIT */
/*
 * Digests: SHA-256 and SipHash-2-4-128 from libcrypto, CRC32C by table or by
 * the processor's instruction. Any thread.
 */
#ifndef ONCED_BASE_HASH_H
#define ONCED_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { SHA256_SIZE = 32, HASH128_SIZE = 16, HASH_KEY_SIZE = 16 };

void hash_sha256(struct slice data, uint8_t out[SHA256_SIZE]);

/* SHA-256 over several parts, each behind its length (8 bytes, big-endian),
 * so that ("ab","c") and ("a","bc") differ. */
void hash_sha256_parts(const struct slice *parts, size_t n,
                       uint8_t out[SHA256_SIZE]);

/* A keyed hash over length-prefixed parts: for table and store keys that
 * outsiders must not be able to steer. */
void hash_keyed128(const uint8_t key[HASH_KEY_SIZE], const struct slice *parts,
                   size_t n, uint8_t out[HASH128_SIZE]);

/* CRC-32C (Castagnoli). Start with crc 0; may be continued. */
uint32_t hash_crc32c(uint32_t crc, const void *data, size_t len);

/* The same without the processor's instruction: what hash_crc32c falls back
 * to, named so that the two can be held against each other. */
uint32_t hash_crc32c_portable(uint32_t crc, const void *data, size_t len);

/* Random bytes from the kernel; ends the process where there are none. */
void hash_random(void *out, size_t len);

#endif
