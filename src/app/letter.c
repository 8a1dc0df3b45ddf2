/* SPDX-License-Identifier: MIT */
#include "app/letter.h"

#include <inttypes.h>

#include "app/dump.h"
#include "app/story.h"
#include "base/check.h"
#include "base/text.h"
#include "source/value.h"

static bool is_onceds(const struct kafka_dead_letter *letter)
{
    return letter->writer == KAFKA_DEAD_LETTER_ONCED;
}

/* --- which are meant ----------------------------------------------------- */

/* "java.io.IOException" is meant by the whole, and by its last part. */
static bool is_class(struct slice class, struct slice word)
{
    size_t start = class.len;

    while (start > 0 && class.data[start - 1] != '.') {
        start--;
    }
    return slice_eq(class, word) || slice_eq(slice_from(class, start), word);
}

static bool reason_matches(const char *reason,
                           const struct kafka_dead_letter *letter)
{
    if (reason == NULL) {
        return true;
    }
    return is_onceds(letter) ? slice_eq(letter->reason, slice_of(reason))
                             : is_class(letter->code, slice_of(reason));
}

static bool time_matches(const struct letter_filter *filter,
                         const struct kafka_dead_letter *letter,
                         const struct envelope *message)
{
    int64_t died_ms =
        letter->died_ms > 0 ? letter->died_ms : message->timestamp_ms;

    return (filter->since_ms == 0 || died_ms >= filter->since_ms) &&
           (filter->until_ms == 0 || died_ms < filter->until_ms);
}

bool letter_matches(const struct letter_filter *filter,
                    const struct kafka_dead_letter *letter,
                    const struct envelope *message)
{
    if (is_onceds(letter) &&
        ((filter->route != NULL &&
          !slice_eq(letter->route, slice_of(filter->route))) ||
         (filter->id != NULL && !slice_eq(letter->id, slice_of(filter->id))))) {
        return false;
    }
    return reason_matches(filter->reason, letter) &&
           time_matches(filter, letter, message);
}

/* --- the order ----------------------------------------------------------- */

const char *letter_problem(const struct kafka_dead_letter *letter,
                           const char *route)
{
    if (!is_onceds(letter)) {
        return route == NULL ? "it names no route: give --route" : NULL;
    }
    if (value_check_id(letter->route) != NULL) {
        return "its route cannot be one";
    }
    if (value_check_id(letter->id) != NULL) {
        return "its id cannot be one";
    }
    return letter->tenant.len > 0 && value_check_id(letter->tenant) != NULL
               ? "its tenant cannot be one"
               : NULL;
}

static void set(json_t *object, const char *name, json_t *value)
{
    CHECK(json_object_set_new(object, name, value) == 0);
}

static void set_event(json_t *body, const struct kafka_dead_letter *letter)
{
    story_set_bytes(body, "route", letter->route);
    story_set_bytes(body, "id", letter->id);
    if (letter->tenant.len > 0) {
        story_set_bytes(body, "tenant", letter->tenant);
    }
}

static void set_order(json_t *body, const struct letter_order *order)
{
    if (order->max_replays > 0) {
        set(body, "max_replays", json_integer(order->max_replays));
    }
    if (order->assume_not_applied) {
        set(body, "assume_not_applied", json_true());
    }
    if (order->dry_run) {
        set(body, "dry_run", json_true());
    }
    if (order->why != NULL) {
        set(body, "why", story_text(slice_of(order->why)));
    }
}

/* What could not be decoded is no better as a new event. */
static bool can_run(const struct kafka_dead_letter *letter)
{
    return letter->has_original &&
           !slice_eq(letter->reason, slice_of(reason_name(REASON_UNDECODABLE)));
}

json_t *letter_body(struct kafka_dead_letter *letter,
                    const struct letter_order *order)
{
    json_t *body = json_object();

    if (is_onceds(letter)) {
        set_event(body, letter);
    } else {
        set(body, "route", json_string(order->route));
    }
    set(body, "replays", json_integer(letter->replays));
    if (can_run(letter)) {
        kafka_dead_letter_count_replay(letter);
        set(body, "request", dump_request(&letter->original));
    }
    set_order(body, order);
    return body;
}

/* --- names --------------------------------------------------------------- */

void letter_put_name(const struct kafka_dead_letter *letter, struct buf *out)
{
    const struct slice parts[] = {letter->route, letter->tenant, letter->id};

    if (!is_onceds(letter)) {
        text_percent(letter->original.topic, out);
        buf_printf(out, "/%" PRId32 "/%" PRId64, letter->original.partition,
                   letter->original.offset);
        return;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        buf_add_byte(out, '/');
        text_percent(parts[i], out);
    }
}

const char *letter_writer_name(enum kafka_dead_letter_writer writer)
{
    switch (writer) {
    case KAFKA_DEAD_LETTER_ONCED:
        return "onced";
    case KAFKA_DEAD_LETTER_CONNECT:
        return "connect";
    case KAFKA_DEAD_LETTER_SPRING:
        return "spring";
    }
    UNREACHABLE("every writer has a name");
}
