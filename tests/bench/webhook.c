/* SPDX-License-Identifier: MIT */
#include "webhook.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

enum { DIGEST_BYTES = WEBHOOK_SIGNATURE_CHARS / 2, ID_CHARS = 36 };

#define ID_HOLE "........-....-....-....-............"
#define SIGNATURE_HOLE                                                         \
    "................................................................"

static const char body[] =
    "{\"action\":\"opened\",\"delivery\":\"" ID_HOLE "\",\"number\":1347,"
    "\"pull_request\":{\"id\":1934875,\"state\":\"open\",\"title\":"
    "\"Answer a repeat from the record\",\"draft\":false},"
    "\"repository\":{\"id\":1296269,\"full_name\":\"octo/hello-world\","
    "\"private\":false},\"sender\":{\"login\":\"octocat\",\"id\":583231}}";

static const char head[] = "POST %s HTTP/1.1\r\n"
                           "Host: 127.0.0.1\r\n"
                           "User-Agent: GitHub-Hookshot/044aadd\r\n"
                           "Accept: */*\r\n"
                           "Content-Type: application/json\r\n"
                           "X-GitHub-Delivery: " ID_HOLE "\r\n"
                           "X-GitHub-Event: pull_request\r\n"
                           "X-GitHub-Hook-ID: 292430182\r\n"
                           "X-Hub-Signature-256: sha256=" SIGNATURE_HOLE "\r\n"
                           "Content-Length: %zu\r\n\r\n";

static void put_hex(char *at, size_t chars, uint64_t value)
{
    while (chars-- > 0) {
        at[chars] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
}

/* Looks like the UUIDs that GitHub sends: series-0000-4000-8000-i. */
static void put_id(char at[ID_CHARS], uint32_t series, size_t i)
{
    memcpy(at, "........-0000-4000-8000-............", ID_CHARS);
    put_hex(at, 8, series);
    put_hex(at + 24, 12, i);
}

static size_t offset_of(const struct webhook *webhook, const char *hole,
                        size_t from)
{
    const char *at = strstr(webhook->text + from, hole);
    CHECK(at != NULL);
    return (size_t)(at - webhook->text);
}

static void lay_out(struct webhook *webhook, const char *path)
{
    char text[WEBHOOK_BYTES];
    int head_len = snprintf(text, sizeof(text), head, path, sizeof(body) - 1);
    CHECK(head_len > 0 && (size_t)head_len < sizeof(text));
    int len =
        snprintf(webhook->text, sizeof(webhook->text), "%s%s", text, body);
    CHECK(len > head_len && (size_t)len < sizeof(webhook->text));
    webhook->len = (size_t)len;
    webhook->head_id = offset_of(webhook, ID_HOLE, 0);
    webhook->signature = offset_of(webhook, SIGNATURE_HOLE, 0);
    webhook->body_id = offset_of(webhook, ID_HOLE, (size_t)head_len);
}

static void sign(struct webhooks *webhooks, EVP_MAC_CTX *mac, size_t i)
{
    char text[sizeof(body)];
    unsigned char digest[DIGEST_BYTES];
    size_t len;
    memcpy(text, body, sizeof(body));
    put_id(strstr(text, ID_HOLE), webhooks->series, i);
    /* No key: the one that was set stays. */
    CHECK(EVP_MAC_init(mac, NULL, 0, NULL) == 1);
    CHECK(EVP_MAC_update(mac, (unsigned char *)text, sizeof(body) - 1) == 1);
    CHECK(EVP_MAC_final(mac, digest, &len, sizeof(digest)) == 1);
    for (size_t k = 0; k < len; k++) {
        put_hex(webhooks->signatures[i] + 2 * k, 2, digest[k]);
    }
}

void webhooks_prepare(struct webhooks *webhooks, const char *path,
                      const char *secret)
{
    char name[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    CHECK(hmac != NULL);
    EVP_MAC_CTX *mac = EVP_MAC_CTX_new(hmac);
    CHECK(mac != NULL);
    CHECK(EVP_MAC_init(mac, (const unsigned char *)secret, strlen(secret),
                       params) == 1);

    lay_out(&webhooks->first, path);
    webhooks->signatures =
        mem_new(webhooks->n_ids, sizeof(*webhooks->signatures));
    for (size_t i = 0; i < webhooks->n_ids; i++) {
        sign(webhooks, mac, i);
    }
    EVP_MAC_CTX_free(mac);
    EVP_MAC_free(hmac);
}

void webhooks_free(struct webhooks *webhooks)
{
    free(webhooks->signatures);
    webhooks->signatures = NULL;
}

void webhook_set(struct webhook *webhook, const struct webhooks *webhooks,
                 size_t i)
{
    i %= webhooks->n_ids;
    put_id(webhook->text + webhook->head_id, webhooks->series, i);
    put_id(webhook->text + webhook->body_id, webhooks->series, i);
    memcpy(webhook->text + webhook->signature, webhooks->signatures[i],
           WEBHOOK_SIGNATURE_CHARS);
}
