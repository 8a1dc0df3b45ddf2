/* SPDX-License-Identifier: MIT */
/*
 * Operating errors: a disk, a port, a file, a configuration.
 *
 * A function that can fail returns bool, is marked MUST_CHECK and takes a
 * `struct err *` last. It fills the error where it fails; callers add what
 * they were doing with err_wrap on the way up, so that the text reads
 * "open store /x: read meta: MDB_CORRUPTED". No secret goes into a text.
 *
 * Outcomes that belong to the domain (a duplicate, a handler's 500) are
 * values, not errors; mistakes of the program are CHECKs.
 */
#ifndef ONCED_BASE_ERR_H
#define ONCED_BASE_ERR_H

#include <stdbool.h>

#define MUST_CHECK __attribute__((warn_unused_result))

/* What kind of failure it is; the value is the exit code (sysexits.h). */
enum err_kind {
    ERR_NONE = 0,
    ERR_USAGE = 64,
    ERR_DATA = 65,
    ERR_NOT_FOUND = 66,
    ERR_UNREACHABLE = 69,
    ERR_IO = 74,
    ERR_AGAIN = 75,
    ERR_CONFIG = 78,
};

struct err {
    enum err_kind kind;
    char text[512]; /* one line, without newline; longer texts are cut */
};

/* Sets kind and text. `err` may be NULL: the caller does not want the text.
 * Both are false as expressions: `return err_set(err, ...)`; as macros, so
 * that compilers and analyzers know it, too. */
#define err_set(...) (err_set_text(__VA_ARGS__), false)

/* Puts "context: " before the text, keeps the kind. */
#define err_wrap(...) (err_wrap_text(__VA_ARGS__), false)

void err_set_text(struct err *err, enum err_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void err_wrap_text(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
