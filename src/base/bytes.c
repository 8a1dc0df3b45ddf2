/* SPDX-License-Identifier: MIT */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct slice slice_of(const char *text)
{
    return (struct slice){text, text == NULL ? 0 : strlen(text)};
}

bool slice_eq(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static unsigned char lower(char byte)
{
    unsigned char u = (unsigned char)byte;

    return (u >= 'A' && u <= 'Z') ? (unsigned char)(u | 0x20U) : u;
}

bool slice_eq_nocase(struct slice a, struct slice b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.data[i]) != lower(b.data[i])) {
            return false;
        }
    }
    return true;
}

int slice_cmp(struct slice a, struct slice b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);

    if (order != 0) {
        return order;
    }
    return (a.len > b.len) - (a.len < b.len);
}

bool slice_starts(struct slice text, struct slice prefix)
{
    return text.len >= prefix.len &&
           slice_eq((struct slice){text.data, prefix.len}, prefix);
}

size_t slice_find(struct slice text, char byte)
{
    const char *at = text.len == 0 ? NULL : memchr(text.data, byte, text.len);

    return at == NULL ? text.len : (size_t)(at - text.data);
}

struct slice slice_from(struct slice text, size_t offset)
{
    CHECK(offset <= text.len);
    return (struct slice){offset == 0 ? text.data : text.data + offset,
                          text.len - offset};
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

struct slice slice_trim(struct slice text)
{
    while (text.len > 0 && is_blank(text.data[0])) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && is_blank(text.data[text.len - 1])) {
        text.len--;
    }
    return text;
}

/* The length of the sequence that `lead` opens, 0 for a byte that cannot. */
static size_t utf8_length(unsigned char lead)
{
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xc2 && lead <= 0xdf) {
        return 2;
    }
    if (lead >= 0xe0 && lead <= 0xef) {
        return 3;
    }
    return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

/* The second byte rules out overlong forms, surrogates and > U+10FFFF. */
static bool utf8_second_ok(unsigned char lead, unsigned char second)
{
    switch (lead) {
    case 0xe0:
        return second >= 0xa0 && second <= 0xbf;
    case 0xed:
        return second >= 0x80 && second <= 0x9f;
    case 0xf0:
        return second >= 0x90 && second <= 0xbf;
    case 0xf4:
        return second >= 0x80 && second <= 0x8f;
    default:
        return second >= 0x80 && second <= 0xbf;
    }
}

/* The length of the character at `at`, 0 where there is no valid one. */
static size_t utf8_take(const unsigned char *at, size_t left)
{
    size_t len = utf8_length(at[0]);

    if (len > left || (len > 1 && !utf8_second_ok(at[0], at[1]))) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if ((at[i] & 0xc0U) != 0x80U) {
            return 0;
        }
    }
    return len;
}

static bool is_ascii8(const unsigned char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return (word & 0x8080808080808080U) == 0;
}

size_t slice_utf8_prefix(struct slice text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t left = text.len;

    while (left > 0) {
        size_t len = left >= 8 && is_ascii8(at) ? 8 : utf8_take(at, left);

        if (len == 0) {
            break;
        }
        at += len;
        left -= len;
    }
    return text.len - left;
}

bool slice_is_utf8(struct slice text)
{
    return slice_utf8_prefix(text) == text.len;
}

void buf_free(struct buf *buf)
{
    free(buf->data);
    *buf = BUF_INIT;
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
}

void buf_reserve(struct buf *buf, size_t more)
{
    size_t cap = buf->cap == 0 ? 64 : buf->cap;

    CHECK(more <= SIZE_MAX / 4);
    CHECK(buf->len <= SIZE_MAX / 4);
    if (buf->len + more <= buf->cap) {
        return;
    }
    while (cap < buf->len + more) {
        cap *= 2;
    }
    buf->data = mem_grow(buf->data, cap, 1);
    buf->cap = cap;
}

void buf_add(struct buf *buf, const void *data, size_t len)
{
    if (len == 0) {
        return;
    }
    buf_reserve(buf, len);
    memcpy(buf->data + buf->len, data, len);
    buf->len += len;
}

void buf_add_slice(struct buf *buf, struct slice text)
{
    buf_add(buf, text.data, text.len);
}

void buf_add_str(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_add_byte(struct buf *buf, char byte)
{
    buf_reserve(buf, 1);
    buf->data[buf->len++] = byte;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    int need;

    va_start(args, format);
    need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CHECK(need >= 0);
    buf_reserve(buf, (size_t)need + 1);
    va_start(args, format);
    (void)vsnprintf(buf->data + buf->len, (size_t)need + 1, format, args);
    va_end(args);
    buf->len += (size_t)need;
}

struct slice buf_slice(const struct buf *buf)
{
    return (struct slice){buf->data, buf->len};
}

const char *buf_cstr(struct buf *buf)
{
    buf_reserve(buf, 1);
    buf->data[buf->len] = '\0';
    return buf->data;
}

void bytes_put_be16(void *at, uint16_t value)
{
    unsigned char *out = at;

    out[0] = (unsigned char)(value >> 8);
    out[1] = (unsigned char)value;
}

void bytes_put_be32(void *at, uint32_t value)
{
    unsigned char *out = at;

    bytes_put_be16(out, (uint16_t)(value >> 16));
    bytes_put_be16(out + 2, (uint16_t)value);
}

void bytes_put_be64(void *at, uint64_t value)
{
    unsigned char *out = at;

    bytes_put_be32(out, (uint32_t)(value >> 32));
    bytes_put_be32(out + 4, (uint32_t)value);
}

uint16_t bytes_get_be16(const void *at)
{
    const unsigned char *in = at;

    return (uint16_t)((in[0] << 8) | in[1]);
}

uint32_t bytes_get_be32(const void *at)
{
    const unsigned char *in = at;

    return ((uint32_t)bytes_get_be16(in) << 16) | bytes_get_be16(in + 2);
}

uint64_t bytes_get_be64(const void *at)
{
    const unsigned char *in = at;

    return ((uint64_t)bytes_get_be32(in) << 32) | bytes_get_be32(in + 4);
}

void buf_add_be16(struct buf *buf, uint16_t value)
{
    unsigned char raw[2];

    bytes_put_be16(raw, value);
    buf_add(buf, raw, sizeof raw);
}

void buf_add_be32(struct buf *buf, uint32_t value)
{
    unsigned char raw[4];

    bytes_put_be32(raw, value);
    buf_add(buf, raw, sizeof raw);
}

void buf_add_be64(struct buf *buf, uint64_t value)
{
    unsigned char raw[8];

    bytes_put_be64(raw, value);
    buf_add(buf, raw, sizeof raw);
}

struct slice reader_take(struct reader *reader, size_t len)
{
    struct slice taken = {reader->rest.data, len};

    if (reader->bad || len > reader->rest.len) {
        reader->bad = true;
        return (struct slice){NULL, 0};
    }
    reader->rest = slice_from(reader->rest, len);
    return taken;
}

uint8_t reader_byte(struct reader *reader)
{
    struct slice raw = reader_take(reader, 1);

    return raw.len == 0 ? 0 : (uint8_t)raw.data[0];
}

uint16_t reader_be16(struct reader *reader)
{
    struct slice raw = reader_take(reader, 2);

    return raw.len == 0 ? 0 : bytes_get_be16(raw.data);
}

uint32_t reader_be32(struct reader *reader)
{
    struct slice raw = reader_take(reader, 4);

    return raw.len == 0 ? 0 : bytes_get_be32(raw.data);
}

uint64_t reader_be64(struct reader *reader)
{
    struct slice raw = reader_take(reader, 8);

    return raw.len == 0 ? 0 : bytes_get_be64(raw.data);
}

void *mem_new(size_t count, size_t size)
{
    void *at = calloc(count == 0 ? 1 : count, size == 0 ? 1 : size);

    CHECK(at != NULL);
    return at;
}

void *mem_grow(void *at, size_t count, size_t size)
{
    void *grown = reallocarray(at, count == 0 ? 1 : count, size);

    CHECK(grown != NULL);
    return grown;
}

char *mem_dup(struct slice text)
{
    char *copy = mem_new(text.len + 1, 1);

    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    return copy;
}

char *mem_strdup(const char *text)
{
    return mem_dup(slice_of(text));
}
