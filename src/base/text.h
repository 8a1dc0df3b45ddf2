/* SPDX-License-Identifier: MIT */
/*
 * Text forms of bytes, times, durations and sizes, both ways. Parsers are
 * strict: the whole slice must be the form, or they return false and leave
 * the output alone.
 */
#ifndef ONCED_BASE_TEXT_H
#define ONCED_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

void text_hex(struct slice data, struct buf *out);   /* lower case */
bool text_unhex(struct slice text, struct buf *out); /* either case */

/* The value of one digit of either case, -1 for any other byte. */
int text_hex_digit(char digit);

/* One text, one reading: padding may be absent but not wrong, no blanks, and
 * bits that are left over must be zero. */
void text_base64(struct slice data, struct buf *out);
bool text_unbase64(struct slice text, struct buf *out);
bool text_unbase64url(struct slice text, struct buf *out);

/* RFC 4648 base32 without padding, upper case. */
void text_base32(struct slice data, struct buf *out);

/* Everything but RFC 3986 unreserved characters as %XX. Read back, any other
 * byte stands for itself, '+' too. */
void text_percent(struct slice data, struct buf *out);
bool text_unpercent(struct slice text, struct buf *out);

/* Decimal digits only: no sign, no blank, no overflow, no leading zero. */
bool text_u64(struct slice text, uint64_t *out);

/* "150ms" "10s" "1.5s" "5m" "1h" "35d"; a number and one unit, a whole number
 * of milliseconds. Written for people: the largest unit that fits, cut after
 * one decimal ("1.2s", "3d"). */
bool text_duration_ms(struct slice text, int64_t *out_ms);
void text_put_duration(struct buf *out, int64_t ms);

/* "512" "64KiB" "1MiB" "16GiB". Written exactly, in the largest unit that
 * divides it. */
bool text_size(struct slice text, uint64_t *out_bytes);
void text_put_size(struct buf *out, uint64_t bytes);

enum { TEXT_TIME_SIZE = 25 };

/* RFC 3339 in UTC with milliseconds: "2026-11-30T18:38:03.120Z". What is
 * outside the years 0 to 9999 is shown as the nearer end. */
void text_time(int64_t wall_ms, char out[TEXT_TIME_SIZE]);
/* RFC 3339 with any offset and fraction; what is finer than 1 ms is cut. */
bool text_parse_time(struct slice text, int64_t *out_wall_ms);

#endif
