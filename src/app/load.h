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
    /* Told, in words, of every event that is there and is not the same, and
     * of every stray. */
    void (*tell)(void *ctx, uint64_t line, const char *text);
    void *ctx;
};

struct load_report {
    struct load_counts counts;
    uint64_t strays; /* events that no delivery here would be known as a
                        repeat of: their route has another namespace, or
                        tenants */
    bool waits;      /* the store waits for this load, to its end */
};

/* Reads `file` to its end, which is all there is to check a dump before it is
 * loaded: nothing is stored, and whatever load_file would refuse in it is
 * refused. Counts strays. */
bool load_check(const struct load_job *job, FILE *file,
                struct load_report *report, struct err *err) MUST_CHECK;

/* Loads it. ERR_DATA names the line that is wrong, or says that the end of a
 * dump is missing; what came before may be durable, and is found to be there
 * by the next try. ERR_AGAIN: the store is in use, or there is no room.
 * `report` is filled in any case. */
bool load_file(const struct load_job *job, FILE *file,
               struct load_report *report, struct err *err) MUST_CHECK;

#endif
