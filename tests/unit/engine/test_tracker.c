/* SPDX-License-Identifier: MIT */
/* The offsets of an assignment: fixed cases, and random ones beside a model
 * that is a plain array. */
#include "engine/tracker.h"

#include <criterion/criterion.h>
#include <string.h>

static struct tracker *tracker;

static void fini(void)
{
    tracker_free(tracker);
}

TestSuite(tracker, .fini = fini);

static void receive(int64_t first, int64_t last)
{
    for (int64_t offset = first; offset <= last; offset++) {
        cr_assert(tracker_receive(tracker, offset, 1, 1000 + offset));
    }
}

static void expect(int64_t low_water, size_t length, int64_t head_since_ms)
{
    cr_expect_eq(tracker_low_water(tracker), low_water, "low-water %lld",
                 (long long)tracker_low_water(tracker));
    cr_expect_eq(tracker_length(tracker), length, "length %zu",
                 tracker_length(tracker));
    cr_expect_eq(tracker_head_since_ms(tracker), head_since_ms, "head %lld",
                 (long long)tracker_head_since_ms(tracker));
}

Test(tracker, nothing_received_is_where_it_begins)
{
    tracker = tracker_new(-1);
    expect(-1, 0, 0);
    tracker_commit(tracker);
    expect(-1, 0, 0);
    tracker_free(tracker);
    tracker = tracker_new(17);
    expect(17, 0, 0);
    tracker_abort(tracker);
    expect(17, 0, 0);
    tracker_settle(tracker, 17);
    tracker_commit(tracker);
    expect(17, 0, 0);
}

Test(tracker, the_low_water_waits_for_the_oldest)
{
    tracker = tracker_new(5);
    receive(5, 8);
    tracker_commit(tracker);
    expect(5, 4, 1005);
    tracker_settle(tracker, 8);
    tracker_settle(tracker, 6);
    tracker_commit(tracker);
    expect(5, 4, 1005);
    tracker_settle(tracker, 5);
    cr_expect_eq(tracker_low_water(tracker), 7, "of the batch");
    cr_expect_eq(tracker_length(tracker), 4, "as of the last commit");
    tracker_commit(tracker);
    expect(7, 2, 1007);
    tracker_settle(tracker, 7);
    tracker_commit(tracker);
    expect(9, 0, 0);
}

Test(tracker, gaps_count_as_settled)
{
    tracker = tracker_new(0);
    cr_assert(tracker_receive(tracker, 3, 1, 1));
    cr_assert(tracker_receive(tracker, 10, 1, 2));
    cr_assert(tracker_receive(tracker, 1000000, 1, 3));
    tracker_commit(tracker);
    expect(3, 3, 1);
    tracker_settle(tracker, 4);
    tracker_settle(tracker, 3);
    tracker_commit(tracker);
    expect(10, 2, 2);
    tracker_settle(tracker, 10);
    tracker_commit(tracker);
    expect(1000000, 1, 3);
    tracker_settle(tracker, 1000000);
    tracker_commit(tracker);
    expect(1000001, 0, 0);
}

Test(tracker, an_offset_is_settled_with_the_last_of_its_events)
{
    tracker = tracker_new(0);
    cr_assert(tracker_receive(tracker, 0, 3, 1));
    cr_assert(tracker_receive(tracker, 1, 1, 2));
    tracker_settle(tracker, 0);
    tracker_commit(tracker);
    tracker_settle(tracker, 0);
    tracker_settle(tracker, 1);
    tracker_commit(tracker);
    expect(0, 2, 1);
    tracker_settle(tracker, 0);
    tracker_commit(tracker);
    expect(2, 0, 0);
}

Test(tracker, what_was_received_before_is_a_repeat)
{
    tracker = tracker_new(5);
    receive(5, 7);
    cr_expect_not(tracker_receive(tracker, 7, 1, 9));
    cr_expect_not(tracker_receive(tracker, 5, 2, 9));
    tracker_settle(tracker, 5);
    tracker_settle(tracker, 7);
    tracker_commit(tracker);
    cr_expect_not(tracker_receive(tracker, 5, 1, 9), "below the low-water");
    cr_expect_not(tracker_receive(tracker, 7, 1, 9));
    tracker_commit(tracker);
    expect(6, 2, 1006);
    tracker_settle(tracker, 5);
    tracker_settle(tracker, 6);
    tracker_commit(tracker);
    expect(8, 0, 0);
    cr_expect_not(tracker_receive(tracker, 7, 1, 9), "with nothing left");
    cr_expect(tracker_receive(tracker, 8, 1, 9));
}

Test(tracker, an_aborted_batch_leaves_no_trace)
{
    tracker = tracker_new(5);
    receive(5, 6);
    tracker_commit(tracker);
    tracker_settle(tracker, 5);
    receive(7, 300); /* the ring grows in it, too */
    tracker_settle(tracker, 6);
    tracker_settle(tracker, 7);
    cr_expect_eq(tracker_low_water(tracker), 8);
    tracker_abort(tracker);
    expect(5, 2, 1005);
    receive(7, 7);
    tracker_settle(tracker, 5);
    tracker_commit(tracker);
    expect(6, 2, 1006);
    tracker_abort(tracker);
    tracker_settle(tracker, 7);
    tracker_settle(tracker, 6);
    tracker_commit(tracker);
    expect(8, 0, 0);
}

Test(tracker, an_aborted_first_batch_leaves_it_where_it_began)
{
    tracker = tracker_new(-1);
    receive(40, 41);
    tracker_settle(tracker, 40);
    cr_expect_eq(tracker_low_water(tracker), 41);
    tracker_abort(tracker);
    expect(-1, 0, 0);
    receive(40, 40);
    tracker_commit(tracker);
    expect(40, 1, 1040);
}

/* 63, 64, 65 and more, while its head is anywhere in it. */
Test(tracker, the_ring_grows_wherever_its_head_is)
{
    for (int64_t head = 0; head <= 60; head += 20) {
        tracker = tracker_new(0);
        receive(0, 59);
        for (int64_t offset = 0; offset < head; offset++) {
            tracker_settle(tracker, offset);
        }
        tracker_commit(tracker);
        receive(60, 1000);
        tracker_commit(tracker);
        for (int64_t offset = 1000; offset >= head; offset--) {
            cr_assert_eq(tracker_low_water(tracker), head);
            tracker_settle(tracker, offset);
        }
        tracker_commit(tracker);
        cr_assert_eq(tracker_low_water(tracker), 1001);
        cr_assert_eq(tracker_length(tracker), 0);
        tracker_free(tracker);
    }
    tracker = NULL;
}

/* --- beside a model ------------------------------------------------------- */

enum { MODEL_MAX = 4000, SEEDS = 300, BATCHES = 60 };

struct model {
    int64_t base;
    size_t n;
    struct {
        int64_t offset, since_ms;
        unsigned open;
    } at[MODEL_MAX]; /* all that was ever received */
};

static struct model model, committed;
static uint64_t random_state;

static unsigned draw(unsigned below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407;
    return (unsigned)((random_state >> 33) % below);
}

static size_t first_open(const struct model *of)
{
    size_t i = 0;

    while (i < of->n && of->at[i].open == 0) {
        i++;
    }
    return i;
}

static int64_t low_water(const struct model *of)
{
    size_t i = first_open(of);

    if (i < of->n) {
        return of->at[i].offset;
    }
    return of->n == 0 ? of->base : of->at[of->n - 1].offset + 1;
}

static void receive_some(unsigned gap)
{
    int64_t highest =
        model.n == 0 ? model.base - 1 : model.at[model.n - 1].offset;
    int64_t offset = (highest < 0 ? 0 : highest + 1) + draw(gap);
    uint16_t n_events = (uint16_t)(1 + draw(3) / 2);
    bool is_new;

    if (model.n > 0 && draw(8) == 0) {
        offset = (int64_t)draw((unsigned)highest + 1);
    }
    is_new = tracker_receive(tracker, offset, n_events, 7 + offset);
    cr_assert_eq(is_new, offset > highest);
    if (is_new) {
        model.at[model.n].offset = offset;
        model.at[model.n].since_ms = 7 + offset;
        model.at[model.n++].open = n_events;
    }
}

/* One that is open, or any other. */
static void settle_some(void)
{
    size_t i = model.n == 0 ? 0 : draw((unsigned)model.n);

    if (draw(2) == 0) {
        i = first_open(&model);
    }
    if (i < model.n && model.at[i].open > 0) {
        model.at[i].open--;
        tracker_settle(tracker, model.at[i].offset);
    } else if (i >= first_open(&model)) {
        tracker_settle(tracker, model.n == 0 ? 0 : low_water(&model) + 100000);
    } else if (i < first_open(&committed)) {
        tracker_settle(tracker, model.at[i].offset);
    }
}

static void check(uint64_t seed)
{
    size_t head = first_open(&committed);

    cr_assert_eq(tracker_low_water(tracker), low_water(&model), "seed %llu",
                 (unsigned long long)seed);
    cr_assert_eq(tracker_length(tracker), committed.n - head, "seed %llu",
                 (unsigned long long)seed);
    cr_assert_eq(tracker_head_since_ms(tracker),
                 head < committed.n ? committed.at[head].since_ms : 0,
                 "seed %llu", (unsigned long long)seed);
}

static void run_batch(uint64_t seed, unsigned size, unsigned settles)
{
    unsigned gap = 1 + draw(3);

    for (unsigned i = draw(size) + 1; i > 0; i--) {
        if (draw(10) < settles) {
            settle_some();
        } else {
            receive_some(gap);
        }
        check(seed);
    }
    if (draw(4) == 0) {
        tracker_abort(tracker);
        model = committed;
    } else {
        tracker_commit(tracker);
        committed = model;
    }
    check(seed);
}

Test(tracker, is_what_a_plain_array_says)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        unsigned size, settles;

        random_state = seed * 7919;
        size = seed % 3 == 0 ? 60 : 8;
        settles = 3 + draw(5);
        model.n = 0;
        model.base = draw(2) == 0 ? -1 : (int64_t)draw(50);
        committed = model;
        tracker = tracker_new(model.base);
        for (int i = 0; i < BATCHES && model.n < MODEL_MAX - 60; i++) {
            run_batch(seed, size, settles);
        }
        tracker_free(tracker);
    }
    tracker = NULL;
}
