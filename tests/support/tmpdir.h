/* SPDX-License-Identifier: MIT */
/* A temporary folder per test, removed with all that is in it. */
#ifndef ONCED_TESTS_SUPPORT_TMPDIR_H
#define ONCED_TESTS_SUPPORT_TMPDIR_H

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"

static inline void tmpdir_make(char path[PATH_MAX])
{
    const char *base = getenv("TMPDIR");

    (void)snprintf(path, PATH_MAX, "%s/onced-test-XXXXXX",
                   base != NULL ? base : "/tmp");
    CHECK(mkdtemp(path) != NULL);
}

static inline int tmpdir_remove_one(const char *path, const struct stat *info,
                                    int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void tmpdir_remove(const char *path)
{
    (void)nftw(path, tmpdir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
