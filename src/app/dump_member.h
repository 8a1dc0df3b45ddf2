/* SPDX-License-Identifier: MIT */
/*
 * The members of one line of a dump. Each function gives the value of the
 * member `name` of `object`, or notes what is wrong with it and gives one that
 * does no harm: after all members were read, `bad` says whether all were good.
 */
#ifndef ONCED_APP_DUMP_MEMBER_H
#define ONCED_APP_DUMP_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

/* What base64 was decoded to, a list; the reader's caller frees it. */
struct dump_owned {
    struct dump_owned *next;
    struct buf bytes;
};

struct member_reading {
    bool bad;
    struct err *err;           /* the first thing that is wrong, ERR_DATA */
    struct dump_owned **owned; /* NULL where nothing is in base64 */
};

/* Notes: "NAME" WHAT. */
void member_fail(struct member_reading *parse, const char *name,
                 const char *what);

/* NULL where it is missing. */
const json_t *member_get(struct member_reading *parse, const json_t *object,
                         const char *name);

uint64_t member_number(struct member_reading *parse, const json_t *object,
                       const char *name, uint64_t max);
uint32_t member_u32(struct member_reading *parse, const json_t *object,
                    const char *name);
int64_t member_signed(struct member_reading *parse, const json_t *object,
                      const char *name);

/* Wall time in milliseconds, which the store can hold; `none` for null. */
int64_t member_time(struct member_reading *parse, const json_t *object,
                    const char *name);
int64_t member_time_or(struct member_reading *parse, const json_t *object,
                       const char *name, int64_t none);

/* Of a value: what it is in base64, owned, and a string, borrowed. */
struct slice member_base64(struct member_reading *parse, const json_t *text,
                           const char *name);
struct slice member_string(const json_t *text);

/* What stands in `name`, or in `name`_base64; false for null. */
bool member_bytes(struct member_reading *parse, const json_t *object,
                  const char *name, struct slice *out);
struct slice member_must_bytes(struct member_reading *parse,
                               const json_t *object, const char *name);

/* One line of text, as the store keeps it; "" for null. */
void member_text(struct member_reading *parse, const json_t *object,
                 const char *name, char *out, size_t size);

/* Not empty and without NUL; borrowed. A name is one of a route or of a
 * namespace, as it may stand in a configuration. */
const char *member_word(struct member_reading *parse, const json_t *object,
                        const char *name);
const char *member_name(struct member_reading *parse, const json_t *object,
                        const char *name);
bool member_is_name(const json_t *name);

/* Exactly `size` bytes in hex. */
bool member_hex(struct member_reading *parse, const json_t *object,
                const char *name, void *out, size_t size);

#endif
