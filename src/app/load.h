/* SPDX-License-Identifier: MIT */
/*
 * Loads a dump, or a list of ids, into the store of a stopped worker.
 */
#ifndef ONCED_APP_LOAD_H
#define ONCED_APP_LOAD_H

#include <stdbool.h>
#include <stdio.h>

#include "app/config.h"
#include "app/dump_read.h"
#include "base/err.h"
#include "engine/load.h"

struct load_job {
    const struct config *config;
    const char *actor; /* for the audit */
    const char *route; /* of ids that stand alone on a line; NULL: none do */
    bool seen;         /* ids instead of a dump */
    /* Told of every event that is there and is not the same. */
    void (*conflict)(void *ctx, uint64_t line, const struct load_event *event);
    void *ctx;
};

/* Reads `file` to its end, which is all there is to check a dump before it is
 * loaded: nothing is stored. */
bool load_check(const struct load_job *job, FILE *file,
                struct err *err) MUST_CHECK;

/* Loads it. ERR_DATA names the line that is wrong, or says that the end of a
 * dump is missing; what came before may be durable, and is found to be there
 * by the next try. `counts` is filled in any case. */
bool load_file(const struct load_job *job, FILE *file,
               struct load_counts *counts, struct err *err) MUST_CHECK;

#endif
