/* SPDX-License-Identifier: MIT */
#include "app/options.h"

#include <string.h>

#include "base/check.h"

const struct option *option_find(const struct option_section *section,
                                 const char *key)
{
    for (size_t i = 0; i < section->n; i++) {
        if (strcmp(section->options[i].key, key) == 0) {
            return &section->options[i];
        }
    }
    return NULL;
}

enum { KEY_MAX = 32 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t min = a < b ? a : b;

    return min < c ? min : c;
}

/* Levenshtein, one row of the matrix at a time. */
static size_t distance(const char *a, const char *b)
{
    size_t row[KEY_MAX + 1];
    size_t len_b = strlen(b);

    CHECK(len_b <= KEY_MAX);
    for (size_t j = 0; j <= len_b; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= len_b; j++) {
            size_t above = row[j];

            row[j] = least(above + 1, row[j - 1] + 1,
                           diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[len_b];
}

const char *option_nearest(const struct option_section *section,
                           const char *key)
{
    const char *nearest = NULL;
    size_t least_so_far = 3;

    if (strlen(key) > KEY_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < section->n; i++) {
        const char *candidate = section->options[i].key;
        size_t d = distance(key, candidate);

        if (d < least_so_far && d < strlen(candidate)) {
            least_so_far = d;
            nearest = candidate;
        }
    }
    return nearest;
}

static bool nth_word(const char *words, size_t *i, struct slice *word)
{
    struct slice rest = slice_of(words);

    while (rest.len > 0) {
        size_t end = slice_find(rest, '|');

        if (*i == 0) {
            *word = (struct slice){rest.data, end};
            return true;
        }
        (*i)--;
        rest = slice_from(rest, end < rest.len ? end + 1 : end);
    }
    return false;
}

bool option_choice(const struct option *option, size_t i, struct slice *word,
                   bool *supported)
{
    *supported = true;
    if (option->choices && nth_word(option->choices, &i, word)) {
        if (word->data[0] == '!') {
            *supported = false;
            *word = slice_from(*word, 1);
        }
        return true;
    }
    if (!option->names) {
        return false;
    }
    for (const char *const *name = option->names(); *name; name++, i--) {
        if (i == 0) {
            *word = slice_of(*name);
            return true;
        }
    }
    return false;
}

void *option_field(const struct option *option, void *base)
{
    CHECK(option->width > 0);
    return (char *)base + option->offset;
}

const void *option_field_const(const struct option *option, const void *base)
{
    CHECK(option->width > 0);
    return (const char *)base + option->offset;
}

uint64_t option_get(const struct option *option, const void *base)
{
    const void *field = option_field_const(option, base);

    switch (option->width) {
    case sizeof(uint8_t):
        return *(const uint8_t *)field;
    case sizeof(uint16_t):
        return *(const uint16_t *)field;
    case sizeof(uint32_t):
        return *(const uint32_t *)field;
    case sizeof(uint64_t):
        return *(const uint64_t *)field;
    }
    UNREACHABLE("a number has 1, 2, 4 or 8 bytes");
}

void option_put(const struct option *option, void *base, uint64_t value)
{
    void *field = option_field(option, base);

    switch (option->width) {
    case sizeof(uint8_t):
        *(uint8_t *)field = (uint8_t)value;
        return;
    case sizeof(uint16_t):
        *(uint16_t *)field = (uint16_t)value;
        return;
    case sizeof(uint32_t):
        *(uint32_t *)field = (uint32_t)value;
        return;
    case sizeof(uint64_t):
        *(uint64_t *)field = value;
        return;
    }
    UNREACHABLE("a number has 1, 2, 4 or 8 bytes");
}
