/* SPDX-License-Identifier: MIT */
#include "app/dump_member.h"

#include <stdio.h>
#include <string.h>

#include "app/config_internal.h"
#include "base/text.h"

/* The store's times have 48 bits. */
#define TIME_MAX_MS INT64_C(0xfffffffffffe)

void member_fail(struct member_reading *parse, const char *name,
                 const char *what)
{
    if (!parse->bad) {
        (void)err_set(parse->err, ERR_DATA, "\"%s\" %s", name, what);
        parse->bad = true;
    }
}

const json_t *member_get(struct member_reading *parse, const json_t *object,
                         const char *name)
{
    const json_t *member = json_object_get(object, name);

    if (member == NULL) {
        member_fail(parse, name, "is missing");
    }
    return member;
}

uint64_t member_number(struct member_reading *parse, const json_t *object,
                       const char *name, uint64_t max)
{
    const json_t *member = member_get(parse, object, name);
    json_int_t value = json_integer_value(member);

    if (!json_is_integer(member) || value < 0 || (uint64_t)value > max) {
        member_fail(parse, name, "is no such number");
        return 0;
    }
    return (uint64_t)value;
}

uint32_t member_u32(struct member_reading *parse, const json_t *object,
                    const char *name)
{
    return (uint32_t)member_number(parse, object, name, UINT32_MAX);
}

int64_t member_signed(struct member_reading *parse, const json_t *object,
                      const char *name)
{
    const json_t *member = member_get(parse, object, name);

    if (!json_is_integer(member)) {
        member_fail(parse, name, "is no number");
    }
    return json_integer_value(member);
}

int64_t member_time(struct member_reading *parse, const json_t *object,
                    const char *name)
{
    const json_t *member = member_get(parse, object, name);
    int64_t ms = 0;

    if (!json_is_string(member) ||
        !text_parse_time(slice_of(json_string_value(member)), &ms) || ms <= 0 ||
        ms > TIME_MAX_MS) {
        member_fail(parse, name, "is no time");
        return 1;
    }
    return ms;
}

int64_t member_time_or(struct member_reading *parse, const json_t *object,
                       const char *name, int64_t none)
{
    return json_is_null(member_get(parse, object, name))
               ? none
               : member_time(parse, object, name);
}

struct slice member_base64(struct member_reading *parse, const json_t *text,
                           const char *name)
{
    struct dump_owned *owned = mem_new(1, sizeof *owned);

    owned->next = *parse->owned;
    *parse->owned = owned;
    if (!json_is_string(text) ||
        !text_unbase64(
            (struct slice){json_string_value(text), json_string_length(text)},
            &owned->bytes)) {
        member_fail(parse, name, "is no base64");
    }
    return buf_slice(&owned->bytes);
}

struct slice member_string(const json_t *text)
{
    return (struct slice){json_string_value(text), json_string_length(text)};
}

bool member_bytes(struct member_reading *parse, const json_t *object,
                  const char *name, struct slice *out)
{
    const json_t *member = json_object_get(object, name), *base64;
    char key[64];

    *out = (struct slice){NULL, 0};
    (void)snprintf(key, sizeof key, "%s_base64", name);
    base64 = json_object_get(object, key);
    if (member != NULL && base64 != NULL) {
        member_fail(parse, name, "stands there twice");
    } else if (base64 != NULL) {
        *out = member_base64(parse, base64, key);
        return true;
    } else if (json_is_string(member)) {
        *out = member_string(member);
        return true;
    } else if (!json_is_null(member)) {
        member_fail(parse, name, member == NULL ? "is missing" : "is no text");
    }
    return false;
}

struct slice member_must_bytes(struct member_reading *parse,
                               const json_t *object, const char *name)
{
    struct slice bytes;

    if (!member_bytes(parse, object, name, &bytes)) {
        member_fail(parse, name, "is null");
    }
    return bytes;
}

void member_text(struct member_reading *parse, const json_t *object,
                 const char *name, char *out, size_t size)
{
    struct slice text;

    out[0] = '\0';
    if (!member_bytes(parse, object, name, &text)) {
        return;
    }
    if (text.len >= size || slice_find(text, '\0') < text.len) {
        member_fail(parse, name, "is too long");
        return;
    }
    if (text.len > 0) {
        memcpy(out, text.data, text.len);
    }
    out[text.len] = '\0';
}

static bool is_word(const json_t *word)
{
    return json_string_length(word) > 0 &&
           json_string_length(word) == strlen(json_string_value(word));
}

bool member_is_name(const json_t *name)
{
    return is_word(name) && config_name_ok(json_string_value(name));
}

const char *member_word(struct member_reading *parse, const json_t *object,
                        const char *name)
{
    const json_t *member = member_get(parse, object, name);

    if (!is_word(member)) {
        member_fail(parse, name, "is no word");
        return "";
    }
    return json_string_value(member);
}

const char *member_name(struct member_reading *parse, const json_t *object,
                        const char *name)
{
    const char *word = member_word(parse, object, name);

    if (!parse->bad && !config_name_ok(word)) {
        member_fail(parse, name, "is no name");
    }
    return word;
}

bool member_hex(struct member_reading *parse, const json_t *object,
                const char *name, void *out, size_t size)
{
    const char *text = json_string_value(member_get(parse, object, name));
    struct buf bytes = BUF_INIT;
    bool ok =
        text != NULL && text_unhex(slice_of(text), &bytes) && bytes.len == size;

    if (ok) {
        memcpy(out, bytes.data, size);
    } else {
        member_fail(parse, name, "is no such hex text");
    }
    buf_free(&bytes);
    return ok;
}
