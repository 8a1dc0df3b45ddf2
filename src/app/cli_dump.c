/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "app/cli_internal.h"
#include "app/dump.h"
#include "app/setup.h"

/* A file that nobody else may read, and no older one: half a dump must not
 * take the place of a whole one. */
static FILE *create(const char *path, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (file == NULL) {
        (void)err_set(err, errno == EEXIST ? ERR_USAGE : ERR_IO,
                      "create %s: %s", path, strerror(errno));
        if (fd >= 0) {
            (void)close(fd); /* nothing was written */
        }
    }
    return file;
}

/* Closes it; true when all of it is on the disk. */
static bool keep(FILE *file, const char *path, struct err *err)
{
    bool synced = fflush(file) == 0 && fsync(fileno(file)) == 0;
    bool closed = fclose(file) == 0;

    return (synced && closed) ||
           err_set(err, ERR_IO, "write %s: %s", path, strerror(errno));
}

static bool dump_store(const struct cli *cli, const struct site *site,
                       FILE *out, struct err *err)
{
    const struct store_options options = setup_reading(site->store);
    struct store *store;
    bool ok;

    if (!store_open(&store, &options, err)) {
        return err->kind == ERR_AGAIN ? err_wrap(err, "stop the worker first")
                                      : false;
    }
    ok = site_set_keep(site, store, err) &&
         dump_write(store, cli->values[CLI_ROUTE], out, err);
    store_close(&store);
    return ok;
}

static bool dump_into_file(const struct cli *cli, const struct site *site,
                           struct err *err)
{
    const char *path = cli->values[CLI_OUTPUT];
    struct err late;
    FILE *file = create(path, err);
    bool ok;

    if (file == NULL) {
        return false;
    }
    ok = dump_store(cli, site, file, err);
    if (!keep(file, path, ok ? err : &late)) {
        ok = false;
    }
    if (!ok) {
        (void)unlink(path); /* what is there is no dump */
    }
    return ok;
}

int cli_cmd_dump(struct cli *cli)
{
    struct site site = {.root = NULL};
    struct err err;
    bool ok = site_open(&site, cli_config_file(cli), &err);

    if (ok) {
        ok = cli->values[CLI_OUTPUT] != NULL
                 ? dump_into_file(cli, &site, &err)
                 : dump_store(cli, &site, cli->out, &err);
    }
    site_close(&site);
    return ok ? cli_finish(cli) : cli_fail(cli, &err);
}
