/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <openssl/evp.h>
#include <string.h>

#include "base/check.h"

void text_hex(struct slice data, struct buf *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < data.len; i++) {
        unsigned byte = (unsigned char)data.data[i];

        buf_add_byte(out, digits[byte >> 4]);
        buf_add_byte(out, digits[byte & 0xfU]);
    }
}

int text_hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* The byte that two hexadecimal digits stand for, or -1. */
static int hex_byte(const char *at)
{
    int high = text_hex_digit(at[0]);
    int low = text_hex_digit(at[1]);

    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool text_unhex(struct slice text, struct buf *out)
{
    size_t start = out->len;

    if (text.len % 2 != 0) {
        return false;
    }
    buf_reserve(out, text.len / 2);
    for (size_t i = 0; i < text.len; i += 2) {
        int byte = hex_byte(text.data + i);

        if (byte < 0) {
            out->len = start;
            return false;
        }
        out->data[out->len++] = (char)byte;
    }
    return true;
}

void text_base64(struct slice data, struct buf *out)
{
    enum { BLOCK = 3 * 4096 }; /* a multiple of 3: no padding inside */

    while (data.len > 0) {
        size_t len = data.len < BLOCK ? data.len : BLOCK;
        size_t coded = (len + 2) / 3 * 4;

        buf_reserve(out, coded + 1); /* EVP puts a NUL behind */
        CHECK(EVP_EncodeBlock((unsigned char *)out->data + out->len,
                              (const unsigned char *)data.data,
                              (int)len) == (int)coded);
        out->len += coded;
        data = slice_from(data, len);
    }
}

static int base64_value(char digit, char digit_62, char digit_63)
{
    if (digit >= 'A' && digit <= 'Z') {
        return digit - 'A';
    }
    if (digit >= 'a' && digit <= 'z') {
        return digit - 'a' + 26;
    }
    if (digit >= '0' && digit <= '9') {
        return digit - '0' + 52;
    }
    if (digit == digit_62) {
        return 62;
    }
    return digit == digit_63 ? 63 : -1;
}

/* Takes the padding away. False where there is some, but not the right. */
static bool base64_unpad(struct slice *text)
{
    size_t pads = 0;

    while (pads < 2 && pads < text->len &&
           text->data[text->len - 1 - pads] == '=') {
        pads++;
    }
    if (pads > 0 && text->len % 4 != 0) {
        return false;
    }
    text->len -= pads;
    return text->len % 4 != 1;
}

/* EVP_DecodeBlock skips blanks, wants padding, and counts its bytes as data;
 * a secret or a signature must be read in one way only. So blanks are
 * refused here, and unused bits must be zero (RFC 4648, 3.5). */
static bool unbase64(struct slice text, const char last[2], struct buf *out)
{
    size_t start = out->len;
    uint32_t bits = 0;
    unsigned n_bits = 0;

    if (!base64_unpad(&text)) {
        return false;
    }
    buf_reserve(out, text.len);
    for (size_t i = 0; i < text.len; i++) {
        int value = base64_value(text.data[i], last[0], last[1]);

        if (value < 0) {
            out->len = start;
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            buf_add_byte(out, (char)(bits >> n_bits));
            bits &= (1U << n_bits) - 1;
        }
    }
    if (bits != 0) {
        out->len = start;
        return false;
    }
    return true;
}

bool text_unbase64(struct slice text, struct buf *out)
{
    return unbase64(text, "+/", out);
}

bool text_unbase64url(struct slice text, struct buf *out)
{
    return unbase64(text, "-_", out);
}

void text_base32(struct slice data, struct buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    uint32_t bits = 0;
    unsigned n_bits = 0;

    buf_reserve(out, data.len * 8 / 5 + 1);
    for (size_t i = 0; i < data.len; i++) {
        bits = bits << 8 | (unsigned char)data.data[i];
        n_bits += 8;
        while (n_bits >= 5) {
            n_bits -= 5;
            out->data[out->len++] = digits[bits >> n_bits & 31U];
        }
        bits &= (1U << n_bits) - 1;
    }
    if (n_bits > 0) {
        out->data[out->len++] = digits[bits << (5 - n_bits) & 31U];
    }
}

static bool is_unreserved(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' ||
           byte == '_' || byte == '~';
}

void text_percent(struct slice data, struct buf *out)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < data.len; i++) {
        unsigned byte = (unsigned char)data.data[i];

        if (is_unreserved(data.data[i])) {
            buf_add_byte(out, data.data[i]);
            continue;
        }
        buf_add_byte(out, '%');
        buf_add_byte(out, digits[byte >> 4]);
        buf_add_byte(out, digits[byte & 0xfU]);
    }
}

bool text_unpercent(struct slice text, struct buf *out)
{
    size_t start = out->len;

    for (size_t i = 0; i < text.len; i++) {
        int byte;

        if (text.data[i] != '%') {
            buf_add_byte(out, text.data[i]);
            continue;
        }
        byte = text.len - i < 3 ? -1 : hex_byte(text.data + i + 1);
        if (byte < 0) {
            out->len = start;
            return false;
        }
        buf_add_byte(out, (char)byte);
        i += 2;
    }
    return true;
}
