/* SPDX-License-Identifier: MIT */
#include "engine/tracker.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/check.h"

enum { FIRST_CAPACITY = 64 };

struct position {
    int64_t offset;
    int64_t received_ms;
    uint16_t open;   /* events that were not settled before this batch */
    uint16_t staged; /* of these, settled in it */
};

/* A ring, oldest first, whose capacity is a power of two. `passed` counts the
 * positions at its head that are settled with this batch; they go when it is
 * committed. Positions are named by their distance from the head. */
struct tracker {
    struct position *ring;
    size_t capacity, start, length, passed;
    size_t *touched; /* positions of which the batch settled events */
    size_t n_touched, room_touched;
    int64_t base;    /* the low-water where nothing is in the ring; < 0: none */
    int64_t highest; /* received so far; < 0: nothing */
    /* before the batch */
    size_t old_length;
    int64_t old_highest;
};

struct tracker *tracker_new(int64_t low_water)
{
    struct tracker *tracker = mem_new(1, sizeof *tracker);

    tracker->capacity = FIRST_CAPACITY;
    tracker->ring = mem_new(tracker->capacity, sizeof *tracker->ring);
    tracker->base = low_water;
    tracker->highest = -1;
    tracker->old_highest = -1;
    return tracker;
}

void tracker_free(struct tracker *tracker)
{
    if (tracker != NULL) {
        free(tracker->ring);
        free(tracker->touched);
        free(tracker);
    }
}

static struct position *at(const struct tracker *tracker, size_t i)
{
    return &tracker->ring[(tracker->start + i) & (tracker->capacity - 1)];
}

static void grow(struct tracker *tracker)
{
    size_t capacity = tracker->capacity * 2;
    struct position *ring = mem_new(capacity, sizeof *ring);

    for (size_t i = 0; i < tracker->length; i++) {
        ring[i] = *at(tracker, i);
    }
    free(tracker->ring);
    tracker->ring = ring;
    tracker->capacity = capacity;
    tracker->start = 0;
}

bool tracker_receive(struct tracker *tracker, int64_t offset, uint16_t n_events,
                     int64_t now_ms)
{
    CHECK(offset >= 0);
    CHECK(n_events > 0);
    if (offset <= tracker->highest) {
        return false;
    }
    if (tracker->length == tracker->capacity) {
        grow(tracker);
    }
    *at(tracker, tracker->length++) = (struct position){
        .offset = offset, .received_ms = now_ms, .open = n_events};
    tracker->highest = offset;
    return true;
}

/* False where it is not in the ring. */
static bool find(const struct tracker *tracker, int64_t offset, size_t *out)
{
    size_t low = 0, high = tracker->length;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (at(tracker, middle)->offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *out = low;
    return low < tracker->length && at(tracker, low)->offset == offset;
}

static void pass_settled(struct tracker *tracker)
{
    while (tracker->passed < tracker->length) {
        const struct position *head = at(tracker, tracker->passed);

        if (head->open > head->staged) {
            return;
        }
        tracker->passed++;
    }
}

static void touch(struct tracker *tracker, size_t i)
{
    if (tracker->n_touched == tracker->room_touched) {
        tracker->room_touched =
            tracker->room_touched == 0 ? 64 : tracker->room_touched * 2;
        tracker->touched = mem_grow(tracker->touched, tracker->room_touched,
                                    sizeof *tracker->touched);
    }
    tracker->touched[tracker->n_touched++] = i;
}

void tracker_settle(struct tracker *tracker, int64_t offset)
{
    struct position *position;
    size_t i;

    if (!find(tracker, offset, &i)) {
        return;
    }
    position = at(tracker, i);
    CHECK(position->staged < position->open);
    if (position->staged == 0) {
        touch(tracker, i);
    }
    position->staged++;
    pass_settled(tracker);
}

int64_t tracker_low_water(const struct tracker *tracker)
{
    if (tracker->passed < tracker->length) {
        return at(tracker, tracker->passed)->offset;
    }
    return tracker->highest >= 0 ? tracker->highest + 1 : tracker->base;
}

int64_t tracker_highest_settled(const struct tracker *tracker)
{
    for (size_t i = tracker->length; i > tracker->passed; i--) {
        const struct position *position = at(tracker, i - 1);

        if (position->open == position->staged) {
            return position->offset;
        }
    }
    return -1;
}

void tracker_commit(struct tracker *tracker)
{
    for (size_t i = 0; i < tracker->n_touched; i++) {
        struct position *position = at(tracker, tracker->touched[i]);

        position->open = (uint16_t)(position->open - position->staged);
        position->staged = 0;
    }
    tracker->n_touched = 0;
    tracker->start =
        (tracker->start + tracker->passed) & (tracker->capacity - 1);
    tracker->length -= tracker->passed;
    tracker->passed = 0;
    tracker->old_length = tracker->length;
    tracker->old_highest = tracker->highest;
}

void tracker_abort(struct tracker *tracker)
{
    for (size_t i = 0; i < tracker->n_touched; i++) {
        at(tracker, tracker->touched[i])->staged = 0;
    }
    tracker->n_touched = 0;
    tracker->length = tracker->old_length;
    tracker->highest = tracker->old_highest;
    tracker->passed = 0;
}

size_t tracker_length(const struct tracker *tracker)
{
    return tracker->old_length;
}

int64_t tracker_head_since_ms(const struct tracker *tracker)
{
    return tracker->old_length == 0 ? 0 : at(tracker, 0)->received_ms;
}
