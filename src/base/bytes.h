/* SPDX-License-Identifier: MIT */
/*
 * Byte strings: slices that borrow, buffers that own.
 *
 * A slice points into memory that somebody else keeps for at least the call
 * (a slice from the store: until the transaction ends). A buf owns its
 * memory and grows. Neither is NUL-terminated unless a function says so.
 *
 * Small allocations that fail end the process (mem_*): there is nothing
 * better to do, and recovery at start is tested. Sizes that come from
 * outside are checked against a limit before anything is allocated.
 */
#ifndef ONCED_BASE_BYTES_H
#define ONCED_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
    const char *data; /* may be NULL when len is 0 */
    size_t len;
};

/* A slice over a string literal or a char array that holds a C string. */
#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

/* The same to initialize what is static. */
#define SLICE_INIT(literal)                                                    \
    {                                                                          \
        (literal), sizeof(literal) - 1                                         \
    }

/* A slice over a C string; NULL gives an empty slice. */
struct slice slice_of(const char *text);

bool slice_eq(struct slice a, struct slice b);

/* ASCII letters compare without case; other bytes exactly. */
bool slice_eq_nocase(struct slice a, struct slice b);

/* Bytewise order; a prefix comes first. Returns <0, 0 or >0. */
int slice_cmp(struct slice a, struct slice b);

bool slice_starts(struct slice text, struct slice prefix);

/* The offset of the first `byte`, or text.len where there is none. */
size_t slice_find(struct slice text, char byte);

/* What is left from `offset` (<= text.len) on. */
struct slice slice_from(struct slice text, size_t offset);

/* Without leading and trailing spaces and tabs. */
struct slice slice_trim(struct slice text);

/* True for valid UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool slice_is_utf8(struct slice text);

/* How many bytes at the beginning are valid UTF-8. */
size_t slice_utf8_prefix(struct slice text);

struct buf {
    char *data;
    size_t len;
    size_t cap;
};

#define BUF_INIT ((struct buf){NULL, 0, 0})

void buf_free(struct buf *buf); /* back to BUF_INIT; fine on BUF_INIT */
void buf_clear(struct buf *buf);
void buf_reserve(struct buf *buf, size_t more);
void buf_add(struct buf *buf, const void *data, size_t len);
void buf_add_slice(struct buf *buf, struct slice text);
void buf_add_str(struct buf *buf, const char *text);
void buf_add_byte(struct buf *buf, char byte);
void buf_printf(struct buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The content; valid until the buffer changes. */
struct slice buf_slice(const struct buf *buf);

/* The content as a C string (a NUL is put behind it, not counted). */
const char *buf_cstr(struct buf *buf);

/* Unsigned integers, big-endian, so that keys sort by value. */
void buf_add_be16(struct buf *buf, uint16_t value);
void buf_add_be32(struct buf *buf, uint32_t value);
void buf_add_be64(struct buf *buf, uint64_t value);
void bytes_put_be16(void *at, uint16_t value);
void bytes_put_be32(void *at, uint32_t value);
void bytes_put_be64(void *at, uint64_t value);
uint16_t bytes_get_be16(const void *at);
uint32_t bytes_get_be32(const void *at);
uint64_t bytes_get_be64(const void *at);

/*
 * A reader over a slice for decoders: every get checks what is left; the
 * first that does not fit sets `bad`, and all later ones return 0 or empty.
 */
struct reader {
    struct slice rest;
    bool bad;
};

uint8_t reader_byte(struct reader *reader);
uint16_t reader_be16(struct reader *reader);
uint32_t reader_be32(struct reader *reader);
uint64_t reader_be64(struct reader *reader);
struct slice reader_take(struct reader *reader, size_t len);

/* Zeroed memory; the process ends where there is none. */
void *mem_new(size_t count, size_t size);
void *mem_grow(void *at, size_t count, size_t size);
char *mem_dup(struct slice text); /* with a NUL behind it */
char *mem_strdup(const char *text);

#endif
