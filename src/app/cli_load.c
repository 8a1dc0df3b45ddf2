/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "app/actor.h"
#include "app/cli_internal.h"
#include "app/load.h"
#include "app/story.h"

enum { CONFLICTS_TOLD = 20 };

struct telling {
    const struct cli *cli;
    uint64_t conflicts;
};

static void tell_conflict(void *ctx, uint64_t line,
                          const struct load_event *event)
{
    struct telling *telling = ctx;
    FILE *err = telling->cli->err;

    if (telling->conflicts++ < CONFLICTS_TOLD) {
        (void)fprintf(err,
                      "onced: line %llu: %s %.*s is in the store, and not as "
                      "in the dump: left as it is\n",
                      (unsigned long long)line, event->route,
                      (int)event->id.len, event->id.data);
    } else if (telling->conflicts == CONFLICTS_TOLD + 1) {
        (void)fputs("onced: and more\n", err);
    }
}

static FILE *open_file(const char *path, struct err *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");

    if (file == NULL) {
        (void)err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                      "read %s: %s", path, strerror(errno));
    }
    return file;
}

/* A file is read to its end before anything is stored; what comes by a pipe
 * cannot be read twice. */
static bool check(const struct load_job *job, FILE *file, bool only_that,
                  struct err *err)
{
    if (fseeko(file, 0, SEEK_SET) != 0 && !only_that) {
        return true;
    }
    return load_check(job, file, err) &&
           (only_that || fseeko(file, 0, SEEK_SET) == 0 ||
            err_set(err, ERR_IO, "read it again: %s", strerror(errno)));
}

static bool load(const struct cli *cli, const struct load_job *job,
                 struct load_counts *counts, struct err *err)
{
    const char *path = cli->words[0];
    bool only_check = cli->values[CLI_DRY_RUN] != NULL;
    FILE *file = open_file(path, err);
    bool ok;

    if (file == NULL) {
        return false;
    }
    ok = check(job, file, only_check, err) &&
         (only_check || load_file(job, file, counts, err));
    if (file != stdin) {
        (void)fclose(file); /* it was only read */
    }
    return ok || err_wrap(err, "load %s", path);
}

static int tell(const struct cli *cli, const struct load_counts *counts)
{
    if (cli->values[CLI_DRY_RUN] != NULL) {
        (void)fprintf(cli->out, "%s can be loaded\n", cli->words[0]);
    } else if (cli->values[CLI_JSON] != NULL) {
        json_t *json = json_pack("{s:I, s:I, s:I, s:I}", "loaded",
                                 (json_int_t)counts->taken, "uncertain",
                                 (json_int_t)counts->uncertain, "already_there",
                                 (json_int_t)counts->known, "conflicts",
                                 (json_int_t)counts->conflicts);

        cli_print_json(cli, json);
        json_decref(json);
    } else {
        (void)fprintf(cli->out,
                      "%llu loaded, %llu of them uncertain now, %llu already "
                      "there, %llu in conflict\n",
                      (unsigned long long)counts->taken,
                      (unsigned long long)counts->uncertain,
                      (unsigned long long)counts->known,
                      (unsigned long long)counts->conflicts);
    }
    return cli_finish(cli);
}

static int run(struct cli *cli, const struct config *config)
{
    char actor[STORE_ACTOR_MAX + 1];
    struct telling telling = {.cli = cli};
    const struct load_job job = {
        .config = config,
        .actor = actor,
        .route = cli->values[CLI_ROUTE],
        .seen = cli->values[CLI_SEEN] != NULL,
        .conflict = tell_conflict,
        .ctx = &telling,
    };
    struct load_counts counts = {0};
    struct err err;
    int status;

    actor_of_user(getuid(), actor);
    if (!load(cli, &job, &counts, &err)) {
        status = cli_fail(cli, &err);
        if (counts.taken + counts.known > 0) {
            (void)fprintf(cli->err,
                          "onced: %llu were loaded before that; the store "
                          "waits for a load that comes to its end\n",
                          (unsigned long long)counts.taken);
        }
        return status;
    }
    status = tell(cli, &counts);
    return status == 0 && counts.conflicts > 0 ? ERR_DATA : status;
}

int cli_cmd_load(struct cli *cli)
{
    struct config *config;
    struct err err;
    int status;

    if (cli->values[CLI_ROUTE] != NULL && cli->values[CLI_SEEN] == NULL) {
        return cli_usage(cli, "--route goes with --seen");
    }
    if (!cli_load(cli, &config, &err)) {
        return cli_fail(cli, &err);
    }
    status = run(cli, config);
    config_free(config);
    return status;
}
