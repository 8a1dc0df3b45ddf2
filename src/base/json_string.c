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

/* The second half of a surrogate pair, as an escape at `at`, or -1. */
static int32_t low_surrogate(const char *at, const char *end)
{
    int32_t value;

    if (end - at < 6 || at[0] != '\\' || at[1] != 'u') {
        return -1;
    }
    value = hex4(at + 2, end);
    return value >= 0xdc00 && value <= 0xdfff ? value : -1;
}

/* The rest of an escape behind "\u"; half a pair gives its own value. Moves
 * `at` only on success. */
static bool take_unicode(const char **at, const char *end, uint32_t *code)
{
    int32_t high = hex4(*at, end);
    int32_t low = -1;

    if (high < 0) {
        return false;
    }
    *at += 4;
    *code = (uint32_t)high;
    if (high >= 0xd800 && high <= 0xdbff) {
        low = low_surrogate(*at, end);
    }
    if (low >= 0) {
        *code = 0x10000U + ((uint32_t)(high - 0xd800) << 10) +
                (uint32_t)(low - 0xdc00);
        *at += 6;
    }
    return true;
}

/* Neither NUL nor half a surrogate pair. */
static bool is_text(uint32_t code)
{
    return code != 0 && (code < 0xd800 || code > 0xdfff);
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

/* The escape at `*at` in a valid text. */
static uint32_t take_valid_escape(const char **at, const char *end)
{
    uint32_t code;
    bool ok = take_escape(at, end, &code);

    CHECK(ok);
    return code;
}

static size_t put_utf8(uint32_t code, char out[4])
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = 1U + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000);

    CHECK(is_text(code));
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

/* The next character of a valid name, decoded; 0 bytes where it is no text. */
static size_t take_name_char(struct slice *name, char out[4])
{
    const char *at = name->data;
    uint32_t code;

    if (*at != '\\') {
        out[0] = *at;
        *name = slice_from(*name, 1);
        return 1;
    }
    code = take_valid_escape(&at, name->data + name->len);
    *name = slice_from(*name, (size_t)(at - name->data));
    return is_text(code) ? put_utf8(code, out) : 0;
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

        if (n == 0 || !take_token_text(&token, (struct slice){decoded, n})) {
            return false;
        }
    }
    return token.len == 0;
}

/* What stands between the quotes. */
static struct slice content(struct json_value value)
{
    CHECK(value.type == JSON_STRING);
    CHECK(value.raw.len >= 2);
    return (struct slice){value.raw.data + 1, value.raw.len - 2};
}

bool json_string_is_text(struct json_value value)
{
    struct slice text = content(value);
    const char *at = text.data;
    const char *end = text.data + text.len;

    while (at < end) {
        struct slice rest = {at, (size_t)(end - at)};

        at += slice_find(rest, '\\');
        if (at < end && !is_text(take_valid_escape(&at, end))) {
            return false;
        }
    }
    return true;
}

void json_decode_string(struct json_value value, struct buf *out)
{
    struct slice text = content(value);
    const char *at = text.data;
    const char *end = text.data + text.len;
    char utf8[4];

    while (at < end) {
        struct slice rest = {at, (size_t)(end - at)};
        size_t plain = slice_find(rest, '\\');

        buf_add(out, at, plain);
        at += plain;
        if (at < end) {
            buf_add(out, utf8, put_utf8(take_valid_escape(&at, end), utf8));
        }
    }
}
