/* SPDX-License-Identifier: MIT */
#include "sim/dice.h"

#include "base/check.h"

uint64_t dice_next(struct dice *dice)
{
    uint64_t z = dice->state += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

unsigned dice_below(struct dice *dice, unsigned n)
{
    CHECK(n > 0);
    return (unsigned)(dice_next(dice) % n);
}

int64_t dice_between(struct dice *dice, int64_t low, int64_t high)
{
    CHECK(low <= high);
    return low + (int64_t)(dice_next(dice) % (uint64_t)(high - low + 1));
}

bool dice_permille(struct dice *dice, unsigned chance)
{
    return dice_below(dice, 1000) < chance;
}

int64_t dice_skewed(struct dice *dice, int64_t low, int64_t high)
{
    int64_t top = dice_between(dice, low, high);

    return dice_between(dice, low, dice_between(dice, low, top));
}
