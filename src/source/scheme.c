/* SPDX-License-Identifier: MIT */
#include "source/scheme.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/check.h"

enum { STANDARD_WEBHOOKS = 0 };

static const struct scheme presets[] = {
    [STANDARD_WEBHOOKS] =
        {
            .name = "standard-webhooks",
            .header = "webhook-signature",
            .item_end = ' ',
            .tag_end = ',',
            .tags = {{"v1", VERIFY_HMAC_SHA256}, {"v1a", VERIFY_ED25519}},
            .encoding = VERIFY_BASE64,
            .key_encoding = VERIFY_KEY_STANDARD,
            .time_header = "webhook-timestamp",
            .pieces = {{VERIFY_PIECE_HEADER, "webhook-id"},
                       {VERIFY_PIECE_TEXT, "."},
                       {VERIFY_PIECE_TIMESTAMP, NULL},
                       {VERIFY_PIECE_TEXT, "."},
                       {VERIFY_PIECE_BODY, NULL}},
            .n_pieces = 5,
            .id_header = "webhook-id",
            .id = "header:webhook-id",
        },
    {
        .name = "svix",
        .header = "svix-signature",
        .item_end = ' ',
        .tag_end = ',',
        .tags = {{"v1", VERIFY_HMAC_SHA256}, {"v1a", VERIFY_ED25519}},
        .encoding = VERIFY_BASE64,
        .key_encoding = VERIFY_KEY_STANDARD,
        .time_header = "svix-timestamp",
        .pieces = {{VERIFY_PIECE_HEADER, "svix-id"},
                   {VERIFY_PIECE_TEXT, "."},
                   {VERIFY_PIECE_TIMESTAMP, NULL},
                   {VERIFY_PIECE_TEXT, "."},
                   {VERIFY_PIECE_BODY, NULL}},
        .n_pieces = 5,
        .id_header = "svix-id",
        .id = "header:svix-id header:webhook-id",
        .otherwise = &presets[STANDARD_WEBHOOKS],
    },
    {
        .name = "stripe",
        .header = "Stripe-Signature",
        .item_end = ',',
        .tag_end = '=',
        .tags = {{"v1", VERIFY_HMAC_SHA256}},
        .time_tag = "t",
        .algorithm = VERIFY_HMAC_SHA256,
        .pieces = {{VERIFY_PIECE_TIMESTAMP, NULL},
                   {VERIFY_PIECE_TEXT, "."},
                   {VERIFY_PIECE_BODY, NULL}},
        .n_pieces = 3,
        .id = "json:/id",
    },
    {
        .name = "github",
        .header = "X-Hub-Signature-256",
        .prefix = "sha256=",
        .algorithm = VERIFY_HMAC_SHA256,
        .pieces = {{VERIFY_PIECE_BODY, NULL}},
        .n_pieces = 1,
        .id_header = "X-GitHub-Delivery",
        .id = "header:X-GitHub-Delivery",
    },
    {
        .name = "slack",
        .header = "X-Slack-Signature",
        .prefix = "v0=",
        .algorithm = VERIFY_HMAC_SHA256,
        .time_header = "X-Slack-Request-Timestamp",
        .pieces = {{VERIFY_PIECE_TEXT, "v0:"},
                   {VERIFY_PIECE_TIMESTAMP, NULL},
                   {VERIFY_PIECE_TEXT, ":"},
                   {VERIFY_PIECE_BODY, NULL}},
        .n_pieces = 4,
        .id = "json:/event_id",
    },
    {
        .name = "shopify",
        .header = "X-Shopify-Hmac-Sha256",
        .algorithm = VERIFY_HMAC_SHA256,
        .encoding = VERIFY_BASE64,
        .pieces = {{VERIFY_PIECE_BODY, NULL}},
        .n_pieces = 1,
        .id_header = "X-Shopify-Webhook-Id",
        .id = "header:X-Shopify-Webhook-Id",
    },
};

enum { N_PRESETS = sizeof presets / sizeof presets[0] };

/* A row that says nothing of these gets the usual ones. */
static_assert(VERIFY_HEX == 0, "hex is the default of a row");
static_assert(VERIFY_KEY_UTF8 == 0, "text is the default of a row");
static_assert(VERIFY_SECONDS == 0, "seconds are the default of a row");

const struct scheme *scheme_find(const char *name)
{
    CHECK(name != NULL);
    for (size_t i = 0; i < N_PRESETS; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            return &presets[i];
        }
    }
    return NULL;
}

static const char *names[N_PRESETS + 1];
static pthread_once_t names_listed = PTHREAD_ONCE_INIT;

static void list_names(void)
{
    for (size_t i = 0; i < N_PRESETS; i++) {
        names[i] = presets[i].name;
    }
}

const char *const *verify_scheme_names(void)
{
    CHECK(pthread_once(&names_listed, list_names) == 0);
    return names;
}

const char *verify_scheme_id(const char *scheme)
{
    const struct scheme *preset = scheme_find(scheme);

    return preset == NULL ? NULL : preset->id;
}

bool scheme_is_timed(const struct scheme *scheme)
{
    return scheme->time_header != NULL || scheme->time_tag != NULL;
}

/* The n-th header that is part of what is signed. */
static const char *signed_header(const struct scheme *scheme, size_t n)
{
    for (size_t i = 0; i < scheme->n_pieces; i++) {
        if (scheme->pieces[i].kind != VERIFY_PIECE_HEADER) {
            continue;
        }
        if (n == 0) {
            return scheme->pieces[i].argument;
        }
        n--;
    }
    return NULL;
}

const char *scheme_single_header(const struct scheme *scheme, size_t n)
{
    if (n == 0) {
        return scheme->header;
    }
    if (scheme->time_header != NULL) {
        if (n == 1) {
            return scheme->time_header;
        }
        n--;
    }
    return signed_header(scheme, n - 1);
}
