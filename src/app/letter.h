/* SPDX-License-Identifier: MIT */
/*
 * Dead letters as they stand on a topic: which of them an operator means, and
 * the order to replay one that the worker is given (docs/api.md). Pure.
 */
#ifndef ONCED_APP_LETTER_H
#define ONCED_APP_LETTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/envelope.h"
#include "kafka/dead_letter.h"

struct letter_filter {
    const char *route, *reason, *id; /* NULL: any */
    int64_t since_ms, until_ms; /* died from then on, before then; 0: any */
};

/* Whether the filter takes it; `message` is what it was read from. Letters
 * that onced did not write name no route: any is theirs; their reason is the
 * class of the exception, with its package or without; and their id is for
 * the worker to say. What does not tell when it died did so when it was
 * written. */
bool letter_matches(const struct letter_filter *filter,
                    const struct kafka_dead_letter *letter,
                    const struct envelope *message);

/* Why no worker can be asked to replay it, on `route` (NULL: not told) where
 * it names none itself; static text. NULL: one can. */
const char *letter_problem(const struct kafka_dead_letter *letter,
                           const char *route);

struct letter_order {
    const char *route;    /* where the letter names none */
    uint32_t max_replays; /* 0: any number */
    bool assume_not_applied, dry_run;
    const char *why; /* NULL: nothing is said */
};

/* The order for one that has no problem. Counts the replay in the original's
 * headers, so once for each letter. */
json_t *letter_body(struct kafka_dead_letter *letter,
                    const struct letter_order *order);

/* Appends what is the same for two letters of one event, and for no others:
 * text of one word. */
void letter_put_name(const struct kafka_dead_letter *letter, struct buf *out);

/* "onced", "connect", "spring" */
const char *letter_writer_name(enum kafka_dead_letter_writer writer);

#endif
