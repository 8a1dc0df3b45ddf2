/* SPDX-License-Identifier: MIT */
/*
 * A dead letter as a Kafka message. Key, value, timestamp and headers are
 * those of the original; behind its headers stands a block of onced's own:
 *
 *     onced-dead-letter: 1     begins the block; the last one counts
 *     onced-source …           what became of the event, where it came from
 *     __connect.errors.* …     where asked: as Kafka Connect writes them
 *     kafka_dlt-* …            where asked: as spring-kafka writes them
 *
 * so that the original is got back byte for byte, also when it was a dead
 * letter of somebody else. docs/kafka.md, "Dead letters", has every name.
 * Pure but for memory; any thread.
 */
#ifndef ONCED_KAFKA_DEAD_LETTER_H
#define ONCED_KAFKA_DEAD_LETTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/envelope.h"

/* Whose headers a dead letter has. */
enum kafka_dead_letter_writer {
    KAFKA_DEAD_LETTER_ONCED,
    KAFKA_DEAD_LETTER_CONNECT,
    KAFKA_DEAD_LETTER_SPRING,
};

/* Read from a message that onced did not write, all but `writer`, `code`
 * (the class of the exception), `why` and `original` is empty. */
struct kafka_dead_letter {
    enum kafka_dead_letter_writer writer; /* when read */
    struct slice route, tenant, id, idempotency_key;
    struct slice reason, code, why; /* code and why: empty where none */
    uint32_t run, attempts, deliveries;
    uint32_t replays; /* how often it was replayed from a topic; when written
                         it is taken from the original (see below) */
    int64_t first_seen_ms, died_ms; /* store time; 0: not known */
    /* What arrived. Without: what is known of the event is all there is. */
    bool has_original;
    struct envelope original;
    struct buf headers; /* of a letter that was read: the original's */
};

/* What a route asks for. */
struct kafka_dead_letter_form {
    bool want_connect, want_spring;
    struct slice group; /* of the route's source, for spring; may be empty */
    size_t max_bytes;   /* of a message; what is for people is left out, or
                           cut, where the original leaves no room for it */
};

/* Makes the message: key, body, headers and timestamp_ms of `out` (0: not
 * known). It borrows from the letter, and from `headers`, which is cleared
 * and filled. An event from HTTP has its id as key, its body as value and
 * the time at which it was received as timestamp; credentials among its
 * headers are the caller's to leave out. Old exceptions of Connect and spring
 * are replaced where theirs are asked for, their original positions kept. */
void kafka_dead_letter_write(const struct kafka_dead_letter *letter,
                             const struct kafka_dead_letter_form *form,
                             struct buf *headers, struct envelope *out);

/* Reads a dead letter that onced, Connect or spring wrote; false where the
 * message is none, or its headers do not say where it came from. `original`
 * is then what arrived at first, at its own topic, partition and offset, with
 * the headers it had; of an HTTP event without its credentials. It borrows
 * from the message and needs kafka_dead_letter_free, in every case. */
bool kafka_dead_letter_read(const struct envelope *message,
                            struct kafka_dead_letter *out);
void kafka_dead_letter_free(struct kafka_dead_letter *letter);

/* Puts the next number of `replays` as the last header of an original that
 * was read, from where kafka_dead_letter_write takes it should the event die
 * once more: this is how a letter that goes round is told from a new one. */
void kafka_dead_letter_count_replay(struct kafka_dead_letter *letter);

#endif
