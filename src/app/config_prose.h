/* SPDX-License-Identifier: MIT */
/*
 * What docs/config.md says in sentences: what no row of the table can hold.
 */
#ifndef ONCED_APP_CONFIG_PROSE_H
#define ONCED_APP_CONFIG_PROSE_H

#include "base/bytes.h"

void config_prose_start(struct buf *out);

/* What stands behind the section at `path`, if anything. */
void config_prose_behind(const char *path, struct buf *out);

/* Ends with the heading of the list of keys that are not supported. */
void config_prose_end(struct buf *out);

#endif
