/* SPDX-License-Identifier: MIT */
/*
 * All chance of a simulated world, from one number: splitmix64. Equal seeds
 * throw equal numbers.
 */
#ifndef ONCED_TESTS_SIM_DICE_H
#define ONCED_TESTS_SIM_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

uint64_t dice_next(struct dice *dice);
/* 0 to n - 1; n > 0. */
unsigned dice_below(struct dice *dice, unsigned n);
/* From `low` to `high`, both included. */
int64_t dice_between(struct dice *dice, int64_t low, int64_t high);
bool dice_permille(struct dice *dice, unsigned chance);
/* Most are near `low`, few near `high`: spans of time, sizes. */
int64_t dice_skewed(struct dice *dice, int64_t low, int64_t high);

#endif
