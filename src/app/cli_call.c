/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli_internal.h"
#include "base/check.h"
#include "base/text.h"

const char *cli_config_file(const struct cli *cli)
{
    const char *file = getenv("ONCED_CONFIG");

    if (cli->values[CLI_CONFIG] != NULL) {
        return cli->values[CLI_CONFIG];
    }
    return file != NULL && file[0] != '\0' ? file : "onced.json";
}

/* --- targets ------------------------------------------------------------- */

void cli_add_query(struct buf *target, const char *name, const char *value)
{
    bool is_first = slice_find(buf_slice(target), '?') == target->len;

    if (value != NULL) {
        buf_printf(target, "%c%s=", is_first ? '?' : '&', name);
        text_percent(slice_of(value), target);
    }
}

void cli_event_target(const struct cli *cli, const char *order,
                      struct buf *target)
{
    CHECK(cli->n_words == 2);
    buf_add_str(target, "/v1/events/");
    text_percent(slice_of(cli->words[0]), target);
    buf_add_byte(target, '/');
    text_percent(slice_of(cli->words[1]), target);
    buf_add_str(target, order);
    cli_add_query(target, "tenant", cli->values[CLI_TENANT]);
}

/* --- calls --------------------------------------------------------------- */

static enum err_kind kind_of(long status)
{
    switch (status) {
    case 400:
    case 413:
        return ERR_USAGE;
    case 404:
        return ERR_NOT_FOUND;
    case 503:
        return ERR_AGAIN;
    default:
        return ERR_IO;
    }
}

bool cli_call(const struct client_request *request, json_t **answer,
              struct err *err)
{
    const char *detail;
    long status;

    if (!client_call(request, &status, answer, err)) {
        return false;
    }
    if (status < 400 || status == 409) {
        return true;
    }
    detail = json_string_value(json_object_get(*answer, "detail"));
    (void)err_set(err, kind_of(status), "%s",
                  detail == NULL ? "the worker refused" : detail);
    json_decref(*answer);
    *answer = NULL;
    return false;
}

/* --- output and input ---------------------------------------------------- */

void cli_print_json(const struct cli *cli, const json_t *json)
{
    (void)json_dumpf(json, cli->out, JSON_COMPACT); /* see cli_finish */
    (void)fputc('\n', cli->out);
}

void cli_print_text(const struct cli *cli, struct buf *text)
{
    (void)fwrite(text->data, 1, text->len, cli->out); /* see cli_finish */
    buf_free(text);
}

void cli_print_lines(const struct cli *cli, const char *prefix,
                     const struct buf *lines)
{
    struct slice rest = buf_slice(lines);

    while (rest.len > 0) {
        size_t len = slice_find(rest, '\n');

        (void)fprintf(cli->err, "onced: %s%.*s\n", prefix, (int)len, rest.data);
        rest = slice_from(rest, len < rest.len ? len + 1 : rest.len);
    }
}

static bool read_all(FILE *file, size_t max_bytes, struct buf *out)
{
    char part[8192];
    size_t n;

    while (out->len <= max_bytes &&
           (n = fread(part, 1, sizeof part, file)) > 0) {
        buf_add(out, part, n);
    }
    return ferror(file) == 0;
}

bool cli_read_file(const char *path, size_t max_bytes, struct buf *out,
                   struct err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    bool ok;

    if (file == NULL) {
        return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                       "read %s: %s", path, strerror(errno));
    }
    ok = read_all(file, max_bytes, out) ||
         err_set(err, ERR_IO, "read %s: %s", path, strerror(errno));
    if (!is_stdin) {
        (void)fclose(file); /* it was only read */
    }
    if (ok && out->len > max_bytes) {
        return err_set(err, ERR_DATA, "%s is over %zu bytes", path, max_bytes);
    }
    return ok;
}
