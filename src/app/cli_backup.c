/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/backup.h"
#include "app/cli_internal.h"
#include "app/setup.h"
#include "app/tell.h"
#include "base/check.h"
#include "base/text.h"

static const char *get(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text == NULL ? "" : text;
}

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* Tells, and consumes, what was done. */
static int tell(const struct cli *cli, json_t *done,
                void (*write)(const json_t *done, struct buf *out))
{
    struct buf text = BUF_INIT;

    if (cli->values[CLI_JSON] != NULL) {
        cli_print_json(cli, done);
    } else {
        write(done, &text);
        cli_print_text(cli, &text);
    }
    json_decref(done);
    return cli_finish(cli);
}

/* --- backup -------------------------------------------------------------- */

/* The worker's folder is another than the caller's. */
static bool make_absolute(const char *path, struct buf *out, struct err *err)
{
    char *here;

    if (path[0] != '/') {
        here = getcwd(NULL, 0);
        if (here == NULL) {
            return err_set(err, ERR_IO, "look up this folder: %s",
                           strerror(errno));
        }
        buf_printf(out, "%s/", here);
        free(here);
    }
    buf_add_str(out, path);
    return true;
}

static bool back_up_offline(const struct site *site, const char *path,
                            json_t **made, struct err *err)
{
    const struct store_options options = setup_reading(site->store);
    struct store *store;
    bool ok;

    if (!store_open(&store, &options, err)) {
        return err_wrap(err, "no worker listens on %s", site->socket);
    }
    ok = backup_make_alone(store, path, made, err);
    store_close(&store);
    return ok;
}

static bool back_up(const struct site *site, const char *path, json_t **made,
                    struct err *err)
{
    json_t *body = json_pack("{s:s}", "path", path);
    const struct client_request request = {
        .socket = site->socket,
        .target = "/v1/backup",
        .body = body,
        .is_long = true,
    };
    bool ok;

    if (body == NULL) {
        return err_set(err, ERR_USAGE, "%s is not UTF-8", path);
    }
    ok = cli_call(&request, made, err);
    json_decref(body);
    if (!ok && err->kind == ERR_UNREACHABLE) {
        ok = back_up_offline(site, path, made, err);
    }
    return ok;
}

static void write_backup(const json_t *made, struct buf *out)
{
    buf_printf(out, "%s: store %s, %lld events, %lld bytes, in ",
               get(made, "path"), get(made, "store"),
               (long long)number(made, "events"),
               (long long)number(made, "bytes"));
    text_put_duration(out, number(made, "took_ms"));
    buf_add_byte(out, '\n');
}

int cli_cmd_backup(struct cli *cli)
{
    struct site site = {.root = NULL};
    struct buf path = BUF_INIT;
    struct err err;
    json_t *made;
    bool ok;

    if (cli->words[0][0] == '\0') {
        return cli_usage(cli, "DIR is empty");
    }
    ok = make_absolute(cli->words[0], &path, &err) &&
         site_open(&site, cli_config_file(cli), &err) &&
         back_up(&site, buf_cstr(&path), &made, &err);
    site_close(&site);
    buf_free(&path);
    return ok ? tell(cli, made, write_backup) : cli_fail(cli, &err);
}

/* --- restore ------------------------------------------------------------- */

static json_t *count_of(const json_t *route, const char *name)
{
    return json_sprintf("%lld", (long long)number(route, name));
}

static void write_restored(const json_t *done, struct buf *out)
{
    json_t *rows =
        json_pack("[[s, s, s, s]]", "ROUTE", "UNCERTAIN", "DUE AGAIN", "HELD");
    const json_t *route;
    size_t i;

    buf_printf(out, "%s: store %s as of %s, incarnation %lld\n",
               get(done, "path"), get(done, "store"), get(done, "made"),
               (long long)number(done, "incarnation"));
    json_array_foreach(json_object_get(done, "routes"), i, route)
    {
        json_t *row = json_pack(
            "[s, o, o, o]", get(route, "name"), count_of(route, "uncertain"),
            count_of(route, "due"), count_of(route, "held"));

        CHECK(json_array_append_new(rows, row) == 0);
    }
    tell_table(rows, out);
    json_decref(rows);
}

int cli_cmd_restore(struct cli *cli)
{
    struct config *config;
    struct err err;
    json_t *done;
    bool ok;

    if (!cli_load(cli, &config, &err)) {
        return cli_fail(cli, &err);
    }
    ok = backup_restore(config, cli->words[0], &done, &err);
    config_free(config);
    return ok ? tell(cli, done, write_restored) : cli_fail(cli, &err);
}
