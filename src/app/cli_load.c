/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "app/actor.h"
#include "app/cli_internal.h"
#include "app/load.h"
#include "app/story.h"

enum { TOLD_MAX = 20 };

struct telling {
    const struct cli *cli;
    uint64_t told;
};

static void tell_event(void *ctx, uint64_t line, const char *text)
{
    struct telling *telling = ctx;
    FILE *err = telling->cli->err;

    if (telling->told++ < TOLD_MAX) {
        (void)fprintf(err, "onced: line %llu: %s\n", (unsigned long long)line,
                      text);
    } else if (telling->told == TOLD_MAX + 1) {
        (void)fputs("onced: and more\n", err);
    }
}

static void tell_nobody(void *ctx, uint64_t line, const char *text)
{
    (void)ctx;
    (void)line;
    (void)text;
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

static bool copy(FILE *from, FILE *to)
{
    char block[16 * 1024];
    size_t n;

    while ((n = fread(block, 1, sizeof block, from)) > 0) {
        if (fwrite(block, 1, n, to) != n) {
            return false;
        }
    }
    return ferror(from) == 0 && fseeko(to, 0, SEEK_SET) == 0;
}

/* A list is read three times; what comes by a pipe is kept for that. */
static FILE *keep_list(FILE *pipe, struct err *err)
{
    FILE *kept = tmpfile();

    if (kept == NULL || !copy(pipe, kept)) {
        (void)err_set(err, ERR_IO, "keep the list: %s", strerror(errno));
        if (kept != NULL) {
            (void)fclose(kept); /* nobody reads it */
        }
        return NULL;
    }
    return kept;
}

static FILE *open_input(const struct load_job *job, const char *path,
                        struct err *err)
{
    FILE *file = open_file(path, err);
    FILE *kept;

    if (file == NULL || !job->seen || fseeko(file, 0, SEEK_SET) == 0) {
        return file;
    }
    kept = keep_list(file, err);
    if (file != stdin) {
        (void)fclose(file); /* it was only read */
    }
    return kept;
}

/* A file is read to its end before anything is stored; a dump that comes by a
 * pipe cannot be read twice. What there is to tell is told once. */
static bool check(const struct load_job *job, FILE *file, bool only_that,
                  struct load_report *report, struct err *err)
{
    struct load_job first = *job;

    if (fseeko(file, 0, SEEK_SET) != 0 && !only_that) {
        return true;
    }
    if (!only_that) {
        first.tell = tell_nobody;
    }
    return load_check(&first, file, report, err) &&
           (only_that || fseeko(file, 0, SEEK_SET) == 0 ||
            err_set(err, ERR_IO, "read it again: %s", strerror(errno)));
}

static bool load(const struct cli *cli, const struct load_job *job,
                 struct load_report *report, struct err *err)
{
    const char *path = cli->words[0];
    bool only_check = cli->values[CLI_DRY_RUN] != NULL;
    FILE *file = open_input(job, path, err);
    bool ok;

    if (file == NULL) {
        return false;
    }
    ok = check(job, file, only_check, report, err) &&
         (only_check || load_file(job, file, report, err));
    if (file != stdin) {
        (void)fclose(file); /* it was only read */
    }
    return ok || err_wrap(err, "load %s", path);
}

static void print_json(const struct cli *cli, const struct load_report *report)
{
    const struct load_counts *counts = &report->counts;
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:I, s:I}", "loaded", (json_int_t)counts->taken,
        "uncertain", (json_int_t)counts->uncertain, "already_there",
        (json_int_t)counts->known, "conflicts", (json_int_t)counts->conflicts,
        "strays", (json_int_t)report->strays);

    cli_print_json(cli, json);
    json_decref(json);
}

static void print_text(const struct cli *cli, const struct load_report *report)
{
    const struct load_counts *counts = &report->counts;

    (void)fprintf(cli->out,
                  "%llu loaded, %llu of them uncertain now, %llu already "
                  "there, %llu in conflict\n",
                  (unsigned long long)counts->taken,
                  (unsigned long long)counts->uncertain,
                  (unsigned long long)counts->known,
                  (unsigned long long)counts->conflicts);
}

/* Returns the exit status: what was told is not to go unseen. */
static int tell(const struct cli *cli, const struct load_report *report)
{
    int status;

    if (cli->values[CLI_DRY_RUN] != NULL) {
        (void)fprintf(cli->out, "%s can be loaded\n", cli->words[0]);
    } else if (cli->values[CLI_JSON] != NULL) {
        print_json(cli, report);
    } else {
        print_text(cli, report);
    }
    if (report->strays > 0) {
        (void)fprintf(cli->err,
                      "onced: of %llu no delivery will be known as a repeat: "
                      "mend their routes before the worker starts\n",
                      (unsigned long long)report->strays);
    }
    status = cli_finish(cli);
    return status == 0 && report->counts.conflicts + report->strays > 0
               ? ERR_DATA
               : status;
}

static int tell_failure(const struct cli *cli, const struct load_report *report,
                        const struct err *err)
{
    int status = cli_fail(cli, err);

    if (report->waits) {
        (void)fprintf(cli->err,
                      "onced: %llu were loaded before that; the store waits "
                      "for a load of the same that comes to its end\n",
                      (unsigned long long)report->counts.taken);
    }
    return status;
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
        .tell = tell_event,
        .ctx = &telling,
    };
    struct load_report report = {.strays = 0};
    struct err err;

    actor_of_user(getuid(), actor);
    return load(cli, &job, &report, &err) ? tell(cli, &report)
                                          : tell_failure(cli, &report, &err);
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
