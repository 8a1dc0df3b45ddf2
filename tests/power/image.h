/* SPDX-License-Identifier: MIT */
/*
 * What a disk may hold after a power cut: a durable part, and writes and
 * folder entries since, each of which may be there or not. Writes of file
 * contents go lost one by one, or by sectors of 512 bytes; folder entries from
 * some point on, as a journal keeps their order.
 */
#ifndef ONCED_TESTS_POWER_IMAGE_H
#define ONCED_TESTS_POWER_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "power/log.h"

/* What is not done although it was asked for: the replay must notice. */
enum drop { DROP_NOTHING, DROP_DATA, DROP_META, DROP_FOLDERS };
enum { DROPS = DROP_FOLDERS + 1 };

/* Which of the uncertain part is there. */
enum way {
    WAY_NONE,
    WAY_ALL,
    WAY_SOME,
    WAY_OTHERS,
    WAY_SECTORS,
    WAY_MORE_SECTORS,
    WAY_TORN
};
enum { WAYS = WAY_TORN + 1 };

const char *way_name(enum way way);

struct entry {
    struct log_head head;
    const uint8_t *bytes; /* head.len */
};

struct image;

struct image *image_new(enum drop drop);
void image_free(struct image *image);

/* The next entry of the log, which is kept by the caller. */
void image_add(struct image *image, const struct entry *entry);

/* Nothing can be lost: every way is the same. */
bool image_is_certain(const struct image *image);

/* Builds one state in the folder `root`, in place of the last one. */
void image_build(const struct image *image, enum way way, uint64_t seed,
                 const char *root);

#endif
