/* SPDX-License-Identifier: MIT */
/*
 * Marks: named places in the program, for tests.
 *
 * MARK(id) stands where a test kills the process, or on a rare path that the
 * simulation must have been through; mark.def has them all. The build option
 * ONCED_MARKS gives them life; without it (in what is installed) they expand
 * to nothing, and nothing below but MARK and mark_start exists.
 *
 * ONCED_KILL_AT=name:k in the environment raises SIGKILL at the k-th hit of
 * that mark, counted from 1.
 */
#ifndef ONCED_BASE_MARK_H
#define ONCED_BASE_MARK_H

#include <stdint.h>

#include "base/err.h"

#ifdef ONCED_MARKS

enum mark {
#define MARK_DEF(id, name, kind, what) MARK_##id,
#include "base/mark.def"
#undef MARK_DEF
    MARKS
};

enum mark_kind {
    MARK_POINT, /* where the end-to-end test kills */
    MARK_RARE,  /* what the simulation must have been through */
    MARK_TOOL,  /* in a backup or restore, where their own tests kill */
};

#define MARK(id) mark_hit(MARK_##id)

/* Reads ONCED_KILL_AT; without it nothing is killed. Once per process, before
 * other threads start. ERR_USAGE for a mark that does not exist and for
 * anything but a number from 1 on. */
bool mark_start(struct err *err) MUST_CHECK;

/* Any thread; may not return. */
void mark_hit(enum mark mark);

/* How often it was hit since the process began; any thread. */
uint64_t mark_count(enum mark mark);

/* From mark.def; static strings. Marks are 0 to MARKS - 1. */
const char *mark_name(enum mark mark);
enum mark_kind mark_kind(enum mark mark);
const char *mark_what(enum mark mark);

#else

#define MARK(id) ((void)0)

static inline bool MUST_CHECK mark_start(struct err *err)
{
    (void)err;
    return true;
}

#endif

#endif
