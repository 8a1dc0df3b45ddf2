/* SPDX-License-Identifier: MIT */
#include "base/json_string.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"

/* Four hexadecimal digits at `at`, or -1. */
static int32_t hex4(const char *at, const char *end)
{
    int32_t value = 0;

    if (end - at < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        int digit = text_hex_digit(at[i]);

        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

/* The rest of an escape behind "\u". Moves `at` only on success. */
static bool take_unicode(const char **at, const char *end, uint32_t *code)
{
    int32_t high = hex4(*at, end);
    int32_t low;

    if (high <= 0 || (high >= 0xdc00 && high <= 0xdfff)) {
        return false;
    }
    if (high < 0xd800 || high > 0xdbff) {
        *code = (uint32_t)high;
        *at += 4;
        return true;
    }
    if (end - *at < 10 || (*at)[4] != '\\' || (*at)[5] != 'u') {
        return false;
    }
    low = hex4(*at + 6, end);
    if (low < 0xdc00 || low > 0xdfff) {
        return false;
    }
    *code =
        0x10000U + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    *at += 10;
    return true;
}

/* What a letter behind a backslash stands for, 0 where it means nothing. */
static char short_escape(char letter)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    const char *found = memchr(letters, letter, sizeof letters - 1);

    if (found == NULL) {
        return '\0';
    }
    return meanings[found - letters];
}

/* One escape; `*at` is on its backslash. Moves `at` only on success. */
static bool take_escape(const char **at, const char *end, uint32_t *code)
{
    const char *behind = *at + 2;

    if (end - *at < 2) {
        return false;
    }
    if ((*at)[1] == 'u') {
        if (!take_unicode(&behind, end, code)) {
            return false;
        }
    } else {
        *code = (unsigned char)short_escape((*at)[1]);
        if (*code == 0) {
            return false;
        }
    }
    *at = behind;
    return true;
}

static size_t put_utf8(uint32_t code, char out[4])
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = 1U + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000);

    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80U | (code & 0x3fU));
        code >>= 6;
    }
    out[0] = (char)(lead[n] | code);
    return n;
}

/* Eight bytes at once. A byte's top bit is set in the answer where it is a
 * quote, a backslash or a control; the lowest such bit is exact, those above
 * it may come from a borrow. */
static uint64_t special_bytes(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101U;
    uint64_t quote = word ^ (ones * '"');
    uint64_t slash = word ^ (ones * '\\');

    return (((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) |
            ((slash - ones) & ~slash)) &
           (ones * 0x80);
}

static bool is_special(char byte)
{
    return (unsigned char)byte < 0x20 || byte == '"' || byte == '\\';
}

/* The first byte from `at` on that is not plain text, or `end`. The top bits
 * of what was passed over are gathered in `*seen`. */
static const char *skip_plain(const char *at, const char *end, uint64_t *seen)
{
    while (end - at >= 8) {
        uint64_t word;
        uint64_t special;

        memcpy(&word, at, sizeof word);
        word = le64toh(word);
        special = special_bytes(word);
        if (special != 0) {
            unsigned bits = (unsigned)__builtin_ctzll(special) - 7;

            *seen |= word & ((1ULL << bits) - 1);
            return at + bits / 8;
        }
        *seen |= word;
        at += 8;
    }
    while (at < end && !is_special(*at)) {
        *seen |= (unsigned char)*at++;
    }
    return at;
}

bool json_string_take(const char **at, const char *end, struct slice *text)
{
    const char *start = *at + 1;
    uint64_t seen = 0;
    uint32_t code;
    size_t valid;

    *at = skip_plain(start, end, &seen);
    while (*at < end && **at == '\\') {
        if (!take_escape(at, end, &code)) {
            return false;
        }
        *at = skip_plain(*at, end, &seen);
    }
    if (*at == end || **at != '"') {
        return false;
    }
    *text = (struct slice){start, (size_t)(*at - start)};
    if ((seen & 0x8080808080808080U) != 0) {
        valid = slice_utf8_prefix(*text);
        if (valid < text->len) {
            *at = start + valid;
            return false;
        }
    }
    (*at)++;
    return true;
}

/* The next character of a valid name, decoded. */
static size_t take_name_char(struct slice *name, char out[4])
{
    const char *at = name->data;
    uint32_t code;
    bool ok;

    if (*at != '\\') {
        out[0] = *at;
        *name = slice_from(*name, 1);
        return 1;
    }
    ok = take_escape(&at, name->data + name->len, &code);
    CHECK(ok);
    *name = slice_from(*name, (size_t)(at - name->data));
    return put_utf8(code, out);
}

/* RFC 6901, 4: "~1" is '/', "~0" is '~'. */
static char take_token_byte(struct slice *token)
{
    char byte = token->data[0];

    if (byte != '~') {
        *token = slice_from(*token, 1);
        return byte;
    }
    byte = token->data[1] == '1' ? '/' : '~';
    *token = slice_from(*token, 2);
    return byte;
}

/* Takes `text` off the front of the token where it stands there. */
static bool take_token_text(struct slice *token, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (token->len == 0 || take_token_byte(token) != text.data[i]) {
            return false;
        }
    }
    return true;
}

bool json_string_is(struct slice name, struct slice token)
{
    char decoded[4];

    while (name.len > 0) {
        size_t n = take_name_char(&name, decoded);

        if (!take_token_text(&token, (struct slice){decoded, n})) {
            return false;
        }
    }
    return token.len == 0;
}

void json_decode_string(struct json_value value, struct buf *out)
{
    const char *at = value.raw.data + 1;
    const char *end = value.raw.data + value.raw.len - 1;
    char utf8[4];
    uint32_t code;

    CHECK(value.type == JSON_STRING);
    CHECK(value.raw.len >= 2);
    while (at < end) {
        struct slice rest = {at, (size_t)(end - at)};
        size_t plain = slice_find(rest, '\\');
        bool ok;

        buf_add(out, at, plain);
        at += plain;
        if (at < end) {
            ok = take_escape(&at, end, &code);
            CHECK(ok);
            buf_add(out, utf8, put_utf8(code, utf8));
        }
    }
}
