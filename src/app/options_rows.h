/* SPDX-License-Identifier: MIT */
/*
 * What the tables of options are written with: units, and the field that a
 * row fills. For options_*.c alone.
 */
#ifndef ONCED_APP_OPTIONS_ROWS_H
#define ONCED_APP_OPTIONS_ROWS_H

#include <stddef.h>
#include <stdint.h>

#define OPTIONS_SECOND UINT64_C(1000)
#define OPTIONS_MINUTE (60 * OPTIONS_SECOND)
#define OPTIONS_HOUR (60 * OPTIONS_MINUTE)
#define OPTIONS_DAY (24 * OPTIONS_HOUR)
#define OPTIONS_KIB UINT64_C(1024)
#define OPTIONS_MIB (1024 * OPTIONS_KIB)
#define OPTIONS_GIB (1024 * OPTIONS_MIB)
#define OPTIONS_TIB (1024 * OPTIONS_GIB)

/* The initialisers of offset and width. */
#define OPTIONS_FIELD(type, member)                                            \
    .offset = offsetof(type, member), .width = sizeof(((type *)NULL)->member)

#define OPTIONS_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
