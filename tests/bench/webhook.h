/* SPDX-License-Identifier: MIT */
/*
 * Signed webhooks as GitHub sends them, made ahead of time: what differs
 * between two requests is the id, in the head and in the body, and the
 * signature. So a connection keeps one request and changes it in place, and
 * the signatures are what is computed before the clock starts.
 */
#ifndef BENCH_WEBHOOK_H
#define BENCH_WEBHOOK_H

#include <stddef.h>
#include <stdint.h>

enum {
    WEBHOOK_BYTES = 1024,
    WEBHOOK_SIGNATURE_CHARS = 64, /* SHA-256 in hexadecimal */
};

struct webhook {
    char text[WEBHOOK_BYTES];
    size_t len;
    size_t head_id, signature, body_id; /* offsets into text */
};

struct webhooks {
    uint32_t series; /* makes the ids of one run differ from another's */
    size_t n_ids;
    char (*signatures)[WEBHOOK_SIGNATURE_CHARS];
    struct webhook first;
};

/* Signs n_ids events with the secret, to be posted to the path. */
void webhooks_prepare(struct webhooks *webhooks, const char *path,
                      const char *secret);

void webhooks_free(struct webhooks *webhooks);

/* Makes a copy of webhooks->first the request of event i, modulo n_ids. */
void webhook_set(struct webhook *webhook, const struct webhooks *webhooks,
                 size_t i);

#endif
