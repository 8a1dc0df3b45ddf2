/* SPDX-License-Identifier: MIT */
/*
 * Assertions that stay on in release builds.
 *
 * CHECK states what the program itself must have got right; it is never used
 * on anything that comes from outside. A failed check prints one line and
 * aborts: the store survives any crash, and recovery at start is tested.
 */
#ifndef ONCED_BASE_CHECK_H
#define ONCED_BASE_CHECK_H

/* One condition each, so that the line names what failed. */
#define CHECK(cond)                                                            \
    ((cond) ? (void)0 : check_failed(#cond, __FILE__, __LINE__, __func__))

/* For a place that control cannot reach, with the reason why. */
#define UNREACHABLE(why) check_failed(why, __FILE__, __LINE__, __func__)

_Noreturn void check_failed(const char *what, const char *file, int line,
                            const char *function);

#endif
