/* SPDX-License-Identifier: MIT */
/*
 * Signature schemes as data: where the signature and the timestamp stand,
 * what is signed, and how secrets are written. The presets are rows of one
 * table; `"scheme": "hmac"` fills a row of its own from the configuration.
 */
#ifndef ONCED_SOURCE_SCHEME_H
#define ONCED_SOURCE_SCHEME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "source/verify.h"

struct scheme_piece {
    enum verify_piece_kind kind;
    const char *argument; /* text, name or pointer, else NULL */
};

/* In a list of signatures: the mark of those that count. */
struct scheme_tag {
    const char *name; /* NULL ends the list */
    enum verify_algorithm algorithm;
};

enum { SCHEME_TAGS_MAX = 2 };

struct scheme {
    const char *name;
    /* The signature: one behind `prefix`, or, where `item_end` is set, a
     * list of items "tag<tag_end>signature<item_end>…". */
    const char *header;
    const char *prefix; /* or NULL */
    struct scheme_tag tags[SCHEME_TAGS_MAX + 1];
    const char *time_tag; /* the item that is the timestamp, or NULL */
    /* The timestamp, where it is not in the list; NULL: none. */
    const char *time_header;
    enum verify_time_unit time_unit;
    enum verify_encoding encoding;
    enum verify_key_encoding key_encoding;
    enum verify_algorithm algorithm; /* of keys whose form does not tell */
    struct scheme_piece pieces[VERIFY_PIECES_MAX];
    size_t n_pieces;
    const char *id_header; /* where a sender puts the id, or NULL */
    const char *id;        /* the usual value expressions, or NULL */
    /* The same under other header names: used for a request that has none of
     * this one's. */
    const struct scheme *otherwise;
    char item_end, tag_end;
};

/* The preset called `name`, or NULL. */
const struct scheme *scheme_find(const char *name);

/* True where the scheme has a timestamp at all. */
bool scheme_is_timed(const struct scheme *scheme);

/* The name of the n-th header that may stand only once, or NULL behind the
 * last. Those of `otherwise` are not among them. */
const char *scheme_single_header(const struct scheme *scheme, size_t n);

/* Fills a row from what is configured for "hmac". Strings stay the caller's.
 * ERR_CONFIG says which option is wrong. */
bool scheme_from_options(struct scheme *out,
                         const struct verify_options *options,
                         struct err *err) MUST_CHECK;

#endif
