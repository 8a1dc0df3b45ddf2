/* SPDX-License-Identifier: MIT */
/* The text forms of numbers, durations, sizes and times. */
#include "base/text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/check.h"

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static size_t count_digits(struct slice text)
{
    size_t n = 0;

    while (n < text.len && is_digit(text.data[n])) {
        n++;
    }
    return n;
}

bool text_u64(struct slice text, uint64_t *out)
{
    uint64_t value = 0;

    if (text.len == 0 || count_digits(text) != text.len) {
        return false;
    }
    if (text.len > 1 && text.data[0] == '0') {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        uint64_t digit = (uint64_t)(text.data[i] - '0');

        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* Both tables go from the largest unit to the smallest. */
static const struct unit durations[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};
static const struct unit sizes[] = {
    {"GiB", 1ULL << 30},
    {"MiB", 1ULL << 20},
    {"KiB", 1ULL << 10},
    {"", 1},
};

enum {
    N_DURATIONS = sizeof durations / sizeof durations[0],
    N_SIZES = sizeof sizes / sizeof sizes[0],
};

static bool find_unit(const struct unit *units, size_t n, struct slice name,
                      uint64_t *factor)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(name, slice_of(units[i].name))) {
            *factor = units[i].factor;
            return true;
        }
    }
    return false;
}

/* Takes ".5" off the front of `text` and gives 500. True without a fraction
 * too; false for one that has no digit or more than three. */
static bool take_thousandths(struct slice *text, uint64_t *out)
{
    uint64_t value = 0;
    size_t n;

    *out = 0;
    if (text->len == 0 || text->data[0] != '.') {
        return true;
    }
    *text = slice_from(*text, 1);
    n = count_digits(*text);
    if (n == 0 || n > 3) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        value = value * 10 + (i < n ? (uint64_t)(text->data[i] - '0') : 0);
    }
    *text = slice_from(*text, n);
    *out = value;
    return true;
}

bool text_duration_ms(struct slice text, int64_t *out_ms)
{
    struct slice number = {text.data, count_digits(text)};
    struct slice rest = slice_from(text, number.len);
    uint64_t thousandths;
    uint64_t factor;
    uint64_t whole;

    if (!text_u64(number, &whole) || !take_thousandths(&rest, &thousandths) ||
        !find_unit(durations, N_DURATIONS, rest, &factor)) {
        return false;
    }
    if (thousandths * factor % 1000 != 0) {
        return false;
    }
    if (whole > (uint64_t)INT64_MAX / factor - 1) {
        return false;
    }
    *out_ms = (int64_t)(whole * factor + thousandths * factor / 1000);
    return true;
}

void text_put_duration(struct buf *out, int64_t ms)
{
    uint64_t size = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    const struct unit *unit = durations;
    uint64_t tenths;

    while (unit->factor > size && unit->factor > 1) {
        unit++;
    }
    tenths = size % unit->factor * 10 / unit->factor;
    buf_printf(out, "%s%" PRIu64, ms < 0 ? "-" : "", size / unit->factor);
    if (tenths != 0) {
        buf_printf(out, ".%" PRIu64, tenths);
    }
    buf_add_str(out, unit->name);
}

bool text_size(struct slice text, uint64_t *out_bytes)
{
    struct slice number = {text.data, count_digits(text)};
    uint64_t factor;
    uint64_t value;

    if (!text_u64(number, &value) ||
        !find_unit(sizes, N_SIZES, slice_from(text, number.len), &factor)) {
        return false;
    }
    if (value > UINT64_MAX / factor) {
        return false;
    }
    *out_bytes = value * factor;
    return true;
}

void text_put_size(struct buf *out, uint64_t bytes)
{
    const struct unit *unit = sizes;

    while (bytes % unit->factor != 0 || bytes < unit->factor) {
        if (unit->factor == 1) {
            break;
        }
        unit++;
    }
    buf_printf(out, "%" PRIu64 "%s", bytes / unit->factor, unit->name);
}

/* The years 0 to 9999, all that four digits hold. */
static const int64_t first_ms = -62167219200000;
static const int64_t last_ms = 253402300799999;

static char *put_digits(char *at, int value, size_t n)
{
    for (size_t i = n; i > 0; i--) {
        at[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + n;
}

static int64_t clamp_ms(int64_t wall_ms)
{
    if (wall_ms < first_ms) {
        return first_ms;
    }
    return wall_ms > last_ms ? last_ms : wall_ms;
}

void text_time(int64_t wall_ms, char out[TEXT_TIME_SIZE])
{
    int64_t clamped_ms = clamp_ms(wall_ms);
    int ms = (int)((clamped_ms % 1000 + 1000) % 1000);
    time_t seconds = (clamped_ms - ms) / 1000;
    struct tm tm;
    char *at = out;

    CHECK(gmtime_r(&seconds, &tm) != NULL);
    at = put_digits(at, tm.tm_year + 1900, 4);
    *at++ = '-';
    at = put_digits(at, tm.tm_mon + 1, 2);
    *at++ = '-';
    at = put_digits(at, tm.tm_mday, 2);
    *at++ = 'T';
    at = put_digits(at, tm.tm_hour, 2);
    *at++ = ':';
    at = put_digits(at, tm.tm_min, 2);
    *at++ = ':';
    at = put_digits(at, tm.tm_sec, 2);
    *at++ = '.';
    at = put_digits(at, ms, 3);
    *at++ = 'Z';
    *at++ = '\0';
    CHECK(at == out + TEXT_TIME_SIZE);
}

/* `n` digits between `low` and `high`, then the byte `end` where it is not
 * NUL, taken off the front of `text`. */
struct field {
    size_t n;
    int low;
    int high;
    char end;
};

static bool take_field(struct slice *text, struct field field, int *out)
{
    int value = 0;

    if (text->len < field.n) {
        return false;
    }
    for (size_t i = 0; i < field.n; i++) {
        if (!is_digit(text->data[i])) {
            return false;
        }
        value = value * 10 + (text->data[i] - '0');
    }
    *text = slice_from(*text, field.n);
    if (value < field.low || value > field.high) {
        return false;
    }
    if (field.end != '\0') {
        if (text->len == 0 || text->data[0] != field.end) {
            return false;
        }
        *text = slice_from(*text, 1);
    }
    *out = value;
    return true;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    CHECK(month >= 1 && month <= 12);
    return month == 2 && leap ? 29 : days[month - 1];
}

static bool take_date(struct slice *text, struct tm *tm)
{
    int year;

    if (!take_field(text, (struct field){4, 0, 9999, '-'}, &year) ||
        !take_field(text, (struct field){2, 1, 12, '-'}, &tm->tm_mon) ||
        !take_field(text, (struct field){2, 1, 31, '\0'}, &tm->tm_mday)) {
        return false;
    }
    if (tm->tm_mday > days_in_month(year, tm->tm_mon)) {
        return false;
    }
    tm->tm_year = year - 1900;
    tm->tm_mon -= 1;
    if (text->len == 0 || (text->data[0] != 'T' && text->data[0] != 't')) {
        return false;
    }
    *text = slice_from(*text, 1);
    return true;
}

static bool take_clock(struct slice *text, struct tm *tm, int *ms)
{
    size_t n;

    if (!take_field(text, (struct field){2, 0, 23, ':'}, &tm->tm_hour) ||
        !take_field(text, (struct field){2, 0, 59, ':'}, &tm->tm_min) ||
        !take_field(text, (struct field){2, 0, 60, '\0'}, &tm->tm_sec)) {
        return false;
    }
    *ms = 0;
    if (text->len == 0 || text->data[0] != '.') {
        return true;
    }
    *text = slice_from(*text, 1);
    n = count_digits(*text);
    for (size_t i = 0; i < 3; i++) {
        *ms = *ms * 10 + (i < n ? text->data[i] - '0' : 0);
    }
    *text = slice_from(*text, n);
    return n > 0;
}

/* "Z", "+01:30", "-08:00"; nothing may stand behind it. */
static bool take_offset(struct slice text, int *minutes)
{
    bool west;
    int hour;
    int minute;

    if (slice_eq_nocase(text, SLICE("z"))) {
        *minutes = 0;
        return true;
    }
    if (text.len == 0 || (text.data[0] != '+' && text.data[0] != '-')) {
        return false;
    }
    west = text.data[0] == '-';
    text = slice_from(text, 1);
    if (!take_field(&text, (struct field){2, 0, 23, ':'}, &hour) ||
        !take_field(&text, (struct field){2, 0, 59, '\0'}, &minute)) {
        return false;
    }
    *minutes = (hour * 60 + minute) * (west ? -1 : 1);
    return text.len == 0;
}

bool text_parse_time(struct slice text, int64_t *out_wall_ms)
{
    struct tm tm = {0};
    int64_t minute; /* of the epoch, in UTC */
    int second;
    int offset;
    int ms;

    if (!take_date(&text, &tm) || !take_clock(&text, &tm, &ms) ||
        !take_offset(text, &offset)) {
        return false;
    }
    second = tm.tm_sec;
    tm.tm_sec = 0;
    minute = timegm(&tm) / 60 - offset;
    /* A leap second ends a day in UTC; it counts as the second after it. */
    if (second == 60 && (minute % 1440 + 1440) % 1440 != 1439) {
        return false;
    }
    *out_wall_ms = (minute * 60 + second) * 1000 + ms;
    return true;
}
