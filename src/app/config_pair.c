/* SPDX-License-Identifier: MIT */
/* Two routes on one path: one delivery is an event on each of them, so that
 * what is decided before an event is known must not differ. */
#include <string.h>

#include "app/config_internal.h"

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_strings(const struct config_strings *a,
                         const struct config_strings *b)
{
    if (a->n != b->n) {
        return false;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (strcmp(a->items[i], b->items[i]) != 0) {
            return false;
        }
    }
    return true;
}

static bool same_verify(const struct config_route *a,
                        const struct config_route *b)
{
    const struct config_verify *left = &a->verify;
    const struct config_verify *right = &b->verify;

    return same_text(a->verify_scheme, b->verify_scheme) &&
           same_text(a->public_url, b->public_url) &&
           same_text(left->algorithm, right->algorithm) &&
           same_text(left->header, right->header) &&
           same_text(left->encoding, right->encoding) &&
           same_text(left->prefix, right->prefix) &&
           same_text(left->key_encoding, right->key_encoding) &&
           same_strings(&left->signed_pieces, &right->signed_pieces) &&
           same_text(left->timestamp_header, right->timestamp_header) &&
           same_text(left->timestamp_unit, right->timestamp_unit) &&
           left->tolerance_ms == right->tolerance_ms &&
           same_strings(&left->secrets, &right->secrets);
}

void config_route_check_pair(struct config_reading *reading,
                             const struct config_route *earlier,
                             const struct config_route *later)
{
    const char *name = earlier->name ? earlier->name : "?";

    if (!earlier->path || !later->path ||
        !same_text(earlier->path, later->path)) {
        return;
    }
    if (!same_verify(earlier, later)) {
        config_problem_at(reading, "verify",
                          "differs from route \"%s\" on the same path", name);
    }
    if (!same_strings(&earlier->methods, &later->methods)) {
        config_problem_at(reading, "source/http/methods",
                          "differ from route \"%s\" on the same path", name);
    }
    if (earlier->max_body_bytes != later->max_body_bytes) {
        config_problem_at(reading, "source/http/max_body",
                          "differs from route \"%s\" on the same path", name);
    }
    if (same_text(earlier->namespace, later->namespace)) {
        config_problem_at(reading, "namespace",
                          "is that of route \"%s\" on the same path", name);
    }
}
