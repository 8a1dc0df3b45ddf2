/* SPDX-License-Identifier: MIT */
/* Any message may be read as a dead letter; what is read, written again and
 * read once more is the same. */
#include "kafka/dead_letter.h"

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_and_read(const struct kafka_dead_letter *letter)
{
    static const struct kafka_dead_letter_form form = {.max_bytes = SIZE_MAX};
    struct kafka_dead_letter again;
    struct envelope message;
    struct buf headers = BUF_INIT;

    kafka_dead_letter_write(letter, &form, &headers, &message);
    CHECK(kafka_dead_letter_read(&message, &again));
    CHECK(slice_eq(letter->route, again.route));
    CHECK(slice_eq(letter->id, again.id));
    CHECK(slice_eq(letter->tenant, again.tenant));
    CHECK(letter->has_original == again.has_original);
    CHECK(letter->original.kind == again.original.kind);
    CHECK(slice_eq(letter->original.body, again.original.body));
    CHECK(slice_eq(letter->original.topic, again.original.topic));
    CHECK(slice_eq(letter->original.path, again.original.path));
    CHECK(letter->original.offset == again.original.offset);
    kafka_dead_letter_free(&again);
    buf_free(&headers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice flat = {(const char *)data, size};
    struct kafka_dead_letter letter;
    struct envelope message;
    struct header header;

    if (!envelope_open(flat, &message) || message.kind != ENVELOPE_KAFKA) {
        return 0;
    }
    if (kafka_dead_letter_read(&message, &letter)) {
        for (size_t at = 0;
             headers_next(&letter.original.headers, &at, &header);) {
        }
        if (letter.writer == KAFKA_DEAD_LETTER_ONCED) {
            write_and_read(&letter);
        }
    }
    kafka_dead_letter_free(&letter);
    return 0;
}
