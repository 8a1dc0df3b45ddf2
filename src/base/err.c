/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

/* Half a character at the end would make the text invalid UTF-8. */
static void drop_half_character(char *text, size_t len)
{
    size_t start = len;

    while (start > 0 && len - start < 3 &&
           ((unsigned char)text[start - 1] & 0xc0U) == 0x80U) {
        start--;
    }
    if (start > 0) {
        start--;
    }
    if (!slice_is_utf8((struct slice){text + start, len - start})) {
        text[start] = '\0';
    }
}

/* Texts quote what came from outside: they stay one line all the same. */
static void blank_controls(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = ' ';
        }
    }
}

static void set_text(struct err *err, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* The arguments may point into the text that is being replaced. */
static void set_text(struct err *err, const char *format, va_list args)
{
    char text[sizeof err->text];
    int need = vsnprintf(text, sizeof text, format, args);

    CHECK(need >= 0);
    if ((size_t)need >= sizeof text) {
        drop_half_character(text, sizeof text - 1);
    }
    blank_controls(text);
    memcpy(err->text, text, sizeof text);
}

static void set_text_of(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void set_text_of(struct err *err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set_text(err, format, args);
    va_end(args);
}

void err_set_text(struct err *err, enum err_kind kind, const char *format, ...)
{
    va_list args;

    if (err == NULL) {
        return;
    }
    va_start(args, format);
    set_text(err, format, args);
    va_end(args);
    err->kind = kind;
}

void err_wrap_text(struct err *err, const char *format, ...)
{
    struct err context;
    va_list args;

    if (err == NULL) {
        return;
    }
    va_start(args, format);
    set_text(&context, format, args);
    va_end(args);
    set_text_of(err, "%s: %s", context.text, err->text);
}
