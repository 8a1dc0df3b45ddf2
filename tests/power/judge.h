/* SPDX-License-Identifier: MIT */
/*
 * Starts from a state after a power cut, in a process of its own, and holds
 * what is found against what was told before the cut.
 */
#ifndef ONCED_TESTS_POWER_JUDGE_H
#define ONCED_TESTS_POWER_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "power/scene.h"

enum { JUDGE_WHY_MAX = 512 };

struct facts {
    const struct fact *all; /* in order */
    size_t n;               /* in the whole run */
    size_t n_told;          /* before the cut */
};

/* For scene_init: what the judge's own engine tells. */
void judge_hear(const struct fact *fact);

/* `world` is from scene_init, and the state lies in its folder. True when all
 * is well; else `why` says what is not. `why` is shared memory. */
bool judge(struct world *world, const struct facts *facts,
           char why[JUDGE_WHY_MAX]);

#endif
