/* SPDX-License-Identifier: MIT */
/* Rows of `meta` that low-waters and the outbox stand in. */
#ifndef ONCED_STORE_STORE_PARTITION_H
#define ONCED_STORE_STORE_PARTITION_H

#include "store/store_internal.h"

/* A letter, the stream, the partition. */
enum { STORE_LOW_WATER_KEY_SIZE = 1 + 2 + 4 };

/* False when it is damaged. */
bool store_low_water_decode(struct slice payload, struct store_low_water *out);

struct store_outbox_row {
    uint16_t route;
    uint64_t origin;
    struct identity identity;
};

/* Likewise; of the row as it stands, with its CRC. */
bool store_outbox_decode(struct slice key, struct slice value,
                         struct store_outbox_row *out);

#endif
