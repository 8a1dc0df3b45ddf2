/* SPDX-License-Identifier: MIT */
/*
 * The offsets of one assignment that were received, and which of them are
 * settled. The low-water is the next offset to commit: every received offset
 * below it is settled. Compaction and aborted transactions leave gaps, so
 * "below" means below among those received.
 *
 * An offset is received with the number of events that it is, and settled
 * once for each. What happens between two calls of tracker_commit or
 * tracker_abort belongs to one batch: tracker_abort undoes it. Engine's
 * thread.
 */
#ifndef ONCED_ENGINE_TRACKER_H
#define ONCED_ENGINE_TRACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracker;

/* `low_water` is where it begins; < 0: with the first offset. */
struct tracker *tracker_new(int64_t low_water);
void tracker_free(struct tracker *tracker);

/* False when the offset, or one behind it, was received before: a repeat,
 * which changes nothing. `n_events` is at least 1. */
bool tracker_receive(struct tracker *tracker, int64_t offset, uint16_t n_events,
                     int64_t now_ms);

/* One event of the offset is settled. An offset that was never received, or
 * lies below the low-water, is ignored. */
void tracker_settle(struct tracker *tracker, int64_t offset);

/* The low-water with what the batch settled; < 0: none yet. */
int64_t tracker_low_water(const struct tracker *tracker);

/* The highest offset that is settled, with what the batch settled, and not
 * below the low-water; < 0: none. */
int64_t tracker_highest_settled(const struct tracker *tracker);

void tracker_commit(struct tracker *tracker);
void tracker_abort(struct tracker *tracker);

/* --- as of the last commit ------------------------------------------------ */

/* Received offsets that are not below the low-water, settled or not. */
size_t tracker_length(const struct tracker *tracker);

/* When the offset at the low-water was received; 0: nothing waits. */
int64_t tracker_head_since_ms(const struct tracker *tracker);

#endif
