/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "app/cli_internal.h"
#include "app/config.h"
#include "app/story.h"
#include "app/worker.h"
#include "base/check.h"
#include "base/metrics.h"

static json_t *lines_json(const struct buf *lines)
{
    struct slice rest = buf_slice(lines);
    json_t *array = json_array();

    while (rest.len > 0) {
        size_t len = slice_find(rest, '\n');

        (void)json_array_append_new(array,
                                    story_text((struct slice){rest.data, len}));
        rest = slice_from(rest, len < rest.len ? len + 1 : rest.len);
    }
    return array;
}

bool cli_load(const struct cli *cli, struct config **config, struct err *err)
{
    struct buf problems = BUF_INIT;
    bool ok = config_load(config, cli_config_file(cli), &problems, err);

    if (ok) {
        cli_print_lines(cli, "warning: ", &(*config)->warnings);
    } else {
        cli_print_lines(cli, "", &problems);
    }
    buf_free(&problems);
    return ok;
}

int cli_cmd_run(struct cli *cli)
{
    struct config *config;
    struct err err;
    bool ok;

    if (!cli_load(cli, &config, &err)) {
        return cli_fail(cli, &err);
    }
    ok = worker_run(config, &err);
    config_free(config);
    return ok ? 0 : cli_fail(cli, &err);
}

/* --- check --------------------------------------------------------------- */

/* What is known to be wrong with the library; NULL where nothing is, or where
 * the configuration does not use it. */
static const char *version_problem(const struct config *config)
{
    return config->n_all_clusters > 0 ? kafka_version_problem() : NULL;
}

static json_t *warnings_json(const struct config *config)
{
    json_t *warnings = lines_json(&config->warnings);
    const char *problem = version_problem(config);

    if (problem != NULL) {
        (void)json_array_append_new(warnings, json_string(problem));
    }
    return warnings;
}

/* All that a start would look at, short of addresses and the store. */
static bool load_and_try(const struct cli *cli, struct config **config,
                         struct buf *problems, struct err *err)
{
    const char *file = cli_config_file(cli);

    if (!config_load(config, file, problems, err)) {
        return false;
    }
    if (config_try_clients(*config, problems)) {
        return true;
    }
    config_free(*config);
    *config = NULL;
    return err_set(err, ERR_CONFIG, "%s: no Kafka client can be made", file);
}

static int check_json(struct cli *cli)
{
    struct buf problems = BUF_INIT;
    struct config *config = NULL;
    struct err err = {ERR_NONE, ""};
    bool ok = load_and_try(cli, &config, &problems, &err);
    json_t *json =
        json_pack("{s:o, s:b, s:i, s:s, s:o, s:o}", "file",
                  story_text(slice_of(cli_config_file(cli))), "ok", ok,
                  "routes", ok ? (int)config->n_routes : 0, "librdkafka",
                  rd_kafka_version_str(), "problems", lines_json(&problems),
                  "warnings", ok ? warnings_json(config) : json_array());

    cli_print_json(cli, json);
    json_decref(json);
    config_free(config);
    buf_free(&problems);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    return cli_finish(cli);
}

static void put_checked(const struct cli *cli, const struct config *config,
                        struct buf *text)
{
    const char *problem = version_problem(config);

    buf_printf(text, "%s: ok, %zu %s", cli_config_file(cli), config->n_routes,
               config->n_routes == 1 ? "route" : "routes");
    if (config->n_all_clusters > 0) {
        buf_printf(text, ", librdkafka %s", rd_kafka_version_str());
    }
    buf_add_byte(text, '\n');
    if (problem != NULL) {
        struct buf line = BUF_INIT;

        buf_printf(&line, "%s\n", problem);
        cli_print_lines(cli, "warning: ", &line);
        buf_free(&line);
    }
}

int cli_cmd_check(struct cli *cli)
{
    struct buf text = BUF_INIT, problems = BUF_INIT;
    struct config *config;
    struct err err;

    if (cli->values[CLI_JSON] != NULL && cli->values[CLI_EFFECTIVE] == NULL) {
        return check_json(cli);
    }
    if (!load_and_try(cli, &config, &problems, &err)) {
        cli_print_lines(cli, "", &problems);
        buf_free(&problems);
        return cli_fail(cli, &err);
    }
    cli_print_lines(cli, "warning: ", &config->warnings);
    if (cli->values[CLI_EFFECTIVE] != NULL) {
        config_write_effective(config, &text);
    } else {
        put_checked(cli, config, &text);
    }
    (void)fwrite(text.data, 1, text.len, cli->out);
    buf_free(&text);
    config_free(config);
    return cli_finish(cli);
}

/* --- version, docs ------------------------------------------------------- */

int cli_cmd_version(struct cli *cli)
{
    if (cli->values[CLI_JSON] != NULL) {
        (void)fputs("{\"version\":\"" ONCED_VERSION "\"}\n", cli->out);
    } else {
        (void)fputs("onced " ONCED_VERSION "\n", cli->out);
    }
    return cli_finish(cli);
}

int cli_cmd_docs(struct cli *cli)
{
    static const struct {
        const char *name;
        void (*write)(struct buf *out);
    } pages[] = {
        {"config", config_write_docs},
        {"schema", config_write_schema},
        {"metrics", metrics_write_docs},
    };
    struct buf text = BUF_INIT;

    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        if (strcmp(pages[i].name, cli->words[0]) == 0) {
            pages[i].write(&text);
            (void)fwrite(text.data, 1, text.len, cli->out);
            buf_free(&text);
            return cli_finish(cli);
        }
    }
    return cli_usage(cli, "there is no page %s", cli->words[0]);
}
