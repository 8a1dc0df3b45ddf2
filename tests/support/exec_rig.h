/* SPDX-License-Identifier: MIT */
/*
 * An exec handler in a folder of its own, which runs a shell script. Inside a
 * Criterion test.
 */
#ifndef ONCED_TEST_EXEC_RIG_H
#define ONCED_TEST_EXEC_RIG_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "handler/exec.h"
#include "support/attempts.h"

/* A store folder of its own, and a handler that runs a shell script in it. */
struct rig {
    char folder[64];
    char leases[80];
    const char *argv[4];
    struct exec_handler_options options;
    struct handler handler;
};

static inline void rig_init(struct rig *rig, const char *script)
{
    const char *tmp = getenv("TMPDIR");

    memset(rig, 0, sizeof *rig);
    snprintf(rig->folder, sizeof rig->folder, "%.40s/onced-XXXXXX",
             tmp != NULL ? tmp : "/tmp");
    cr_assert_not_null(mkdtemp(rig->folder));
    snprintf(rig->leases, sizeof rig->leases, "%s/lease", rig->folder);
    rig->argv[0] = "/bin/sh";
    rig->argv[1] = "-c";
    rig->argv[2] = script;
    rig->options = (struct exec_handler_options){
        .command = rig->argv,
        .cwd = rig->folder,
        .lease_dir = rig->leases,
        .route = "r",
        .concurrency = 2,
        .max_result_bytes = 1024 * 1024,
    };
}

static inline void rig_start(struct rig *rig)
{
    struct err err = {0};

    cr_assert(exec_handler_new(&rig->handler, &rig->options, &err), "%s",
              err.text);
}

static inline void rig_stop(struct rig *rig)
{
    if (rig->handler.ops != NULL) {
        rig->handler.ops->stop(rig->handler.self);
        rig->handler.ops->free(rig->handler.self);
        rig->handler.ops = NULL;
    }
}

static inline void empty(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    cr_assert_eq(rmdir(folder), 0);
}

static inline void rig_fini(struct rig *rig)
{
    rig_stop(rig);
    if (access(rig->leases, F_OK) == 0) {
        empty(rig->leases);
    }
    empty(rig->folder);
}

static inline void assert_body(const struct attempt *attempt, uint16_t status,
                               const char *body)
{
    struct result result;

    if (body[0] == '\0') {
        cr_assert_eq(attempt->result.len, 0);
        return;
    }
    cr_assert(result_open(buf_slice(&attempt->result), &result));
    cr_assert_eq(result.status, status);
    cr_assert(slice_eq(result.body, slice_of(body)), "got \"%.*s\"",
              (int)result.body.len, result.body.data);
}

/* A number that a script wrote into a file. */
static inline int read_number(const struct rig *rig, const char *name)
{
    char path[128];
    FILE *file;
    int number = 0;

    snprintf(path, sizeof path, "%s/%s", rig->folder, name);
    file = fopen(path, "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%d", &number), 1);
    fclose(file);
    return number;
}

/* Killed processes may be on their way to init still. */
static inline bool is_gone_soon(pid_t pid)
{
    for (int n = 0; n < 5000 && kill(pid, 0) == 0; n++) {
        poll(NULL, 0, 1);
    }
    return kill(pid, 0) != 0;
}

/* A script shows by a file how far it is. */
static inline void wait_for_file(const struct rig *rig, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", rig->folder, name);
    while (access(path, F_OK) != 0) {
        sched_yield();
    }
}

#endif
