/* SPDX-License-Identifier: MIT */
/* What the tables of a store that nobody has open take on the disk. */
#ifndef ONCED_BENCH_STORE_SIZE_H
#define ONCED_BENCH_STORE_SIZE_H

#include <stdint.h>

/* Prints one JSON object: pages of each kind of table, in bytes, and what an
 * id takes in sealed generations: record, index, filter, counters. */
void size_print(const char *path, uint64_t ids);

#endif
