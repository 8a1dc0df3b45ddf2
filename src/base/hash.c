/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/check.h"

/* Looking an algorithm up by name, and making a context for it, costs more
 * than hashing a short key: the first is done once for the life of the
 * process, the second once for that of a thread. */
static EVP_MD *sha256;
static EVP_MAC *siphash;
static pthread_key_t contexts_of_thread;
static pthread_once_t fetched = PTHREAD_ONCE_INIT;

struct contexts {
    EVP_MD_CTX *sha256;
    EVP_MAC_CTX *siphash;
};

static void free_contexts(void *ended)
{
    struct contexts *contexts = ended;

    EVP_MD_CTX_free(contexts->sha256);
    EVP_MAC_CTX_free(contexts->siphash);
    free(contexts);
}

static void fetch(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    CHECK(sha256 != NULL);
    siphash = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
    CHECK(siphash != NULL);
    CHECK(pthread_key_create(&contexts_of_thread, free_contexts) == 0);
}

static const struct contexts *own_contexts(void)
{
    struct contexts *contexts;

    CHECK(pthread_once(&fetched, fetch) == 0);
    contexts = pthread_getspecific(contexts_of_thread);
    if (contexts == NULL) {
        contexts = mem_new(1, sizeof *contexts);
        contexts->sha256 = EVP_MD_CTX_new();
        contexts->siphash = EVP_MAC_CTX_new(siphash);
        CHECK(contexts->sha256 != NULL);
        CHECK(contexts->siphash != NULL);
        CHECK(pthread_setspecific(contexts_of_thread, contexts) == 0);
    }
    return contexts;
}

void hash_sha256(struct slice data, uint8_t out[SHA256_SIZE])
{
    EVP_MD_CTX *ctx = own_contexts()->sha256;

    CHECK(EVP_DigestInit_ex2(ctx, sha256, NULL) == 1);
    CHECK(EVP_DigestUpdate(ctx, data.data, data.len) == 1);
    CHECK(EVP_DigestFinal_ex(ctx, out, NULL) == 1);
}

void hash_sha256_parts(const struct slice *parts, size_t n,
                       uint8_t out[SHA256_SIZE])
{
    uint8_t length[8];
    EVP_MD_CTX *ctx = own_contexts()->sha256;

    CHECK(EVP_DigestInit_ex2(ctx, sha256, NULL) == 1);
    for (size_t i = 0; i < n; i++) {
        bytes_put_be64(length, parts[i].len);
        CHECK(EVP_DigestUpdate(ctx, length, sizeof length) == 1);
        CHECK(EVP_DigestUpdate(ctx, parts[i].data, parts[i].len) == 1);
    }
    CHECK(EVP_DigestFinal_ex(ctx, out, NULL) == 1);
}

static EVP_MAC_CTX *keyed_ctx(const uint8_t key[HASH_KEY_SIZE])
{
    size_t size = HASH128_SIZE;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC_CTX *ctx = own_contexts()->siphash;

    CHECK(EVP_MAC_init(ctx, key, HASH_KEY_SIZE, params) == 1);
    return ctx;
}

void hash_keyed128(const uint8_t key[HASH_KEY_SIZE], const struct slice *parts,
                   size_t n, uint8_t out[HASH128_SIZE])
{
    uint8_t length[8];
    EVP_MAC_CTX *ctx = keyed_ctx(key);
    size_t written = 0;

    for (size_t i = 0; i < n; i++) {
        const void *data = parts[i].len == 0 ? "" : parts[i].data;

        bytes_put_be64(length, parts[i].len);
        CHECK(EVP_MAC_update(ctx, length, sizeof length) == 1);
        CHECK(EVP_MAC_update(ctx, data, parts[i].len) == 1);
    }
    CHECK(EVP_MAC_final(ctx, out, &written, HASH128_SIZE) == 1);
    CHECK(written == HASH128_SIZE);
}

/* crc_table[k][b]: the remainder of byte b with k zero bytes behind it. */
static uint32_t crc_table[8][256];
static pthread_once_t crc_table_made = PTHREAD_ONCE_INIT;

static void make_crc_table(void)
{
    const uint32_t polynomial = 0x82f63b78; /* Castagnoli, bits reversed */

    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1U) != 0 ? polynomial : 0);
        }
        crc_table[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        for (int k = 1; k < 8; k++) {
            uint32_t crc = crc_table[k - 1][byte];

            crc_table[k][byte] = (crc >> 8) ^ crc_table[0][crc & 0xffU];
        }
    }
}

static uint32_t load_le32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

uint32_t hash_crc32c_portable(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *at = data;

    CHECK(pthread_once(&crc_table_made, make_crc_table) == 0);
    crc = ~crc;
    for (; len >= 8; at += 8, len -= 8) {
        uint32_t low = crc ^ load_le32(at);

        crc = crc_table[7][low & 0xffU] ^ crc_table[6][(low >> 8) & 0xffU] ^
              crc_table[5][(low >> 16) & 0xffU] ^ crc_table[4][low >> 24] ^
              crc_table[3][at[4]] ^ crc_table[2][at[5]] ^ crc_table[1][at[6]] ^
              crc_table[0][at[7]];
    }
    for (; len > 0; at++, len--) {
        crc = (crc >> 8) ^ crc_table[0][(crc ^ *at) & 0xffU];
    }
    return ~crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t
crc32c_sse42(uint32_t crc, const uint8_t *at, size_t len)
{
    uint64_t wide = ~crc;
    uint32_t narrow;

    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word;

        memcpy(&word, at, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    narrow = (uint32_t)wide;
    for (; len > 0; at++, len--) {
        narrow = __builtin_ia32_crc32qi(narrow, *at);
    }
    return ~narrow;
}

uint32_t hash_crc32c(uint32_t crc, const void *data, size_t len)
{
    if (__builtin_cpu_supports("sse4.2")) {
        return crc32c_sse42(crc, data, len);
    }
    return hash_crc32c_portable(crc, data, len);
}

#else

uint32_t hash_crc32c(uint32_t crc, const void *data, size_t len)
{
    return hash_crc32c_portable(crc, data, len);
}

#endif

void hash_random(void *out, size_t len)
{
    uint8_t *at = out;

    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        CHECK(got > 0);
        at += got;
        len -= (size_t)got;
    }
}
