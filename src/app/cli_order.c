/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "app/cli_internal.h"
#include "app/story.h"
#include "base/check.h"
#include "base/text.h"

enum { RESULT_MAX = 512 << 10 };

static void set(json_t *object, const char *name, json_t *value)
{
    CHECK(json_object_set_new(object, name, value) == 0);
}

json_t *cli_order_body(const struct cli *cli)
{
    json_t *body = json_object();

    if (cli->values[CLI_DRY_RUN] != NULL) {
        set(body, "dry_run", json_true());
    }
    if (cli->values[CLI_WHY] != NULL) {
        set(body, "why", story_text(slice_of(cli->values[CLI_WHY])));
    }
    return body;
}

static const char *get(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text == NULL ? "" : text;
}

/* "stripe evt_1: done, replayed by an operator; PENDING" */
static void tell(const struct cli *cli, const json_t *answer)
{
    const char *id = get(answer, "id"), *state = get(answer, "state");

    if (cli->values[CLI_JSON] != NULL) {
        cli_print_json(cli, answer);
        return;
    }
    (void)fprintf(cli->out, "%s%s%s: %s%s: %s%s%s\n", get(answer, "route"),
                  id[0] == '\0' ? "" : " ", id,
                  json_is_true(json_object_get(answer, "dry_run")) ? "dry run, "
                                                                   : "",
                  get(answer, "result"), get(answer, "why"),
                  state[0] == '\0' ? "" : "; ", state);
}

static int exit_status(const json_t *answer, bool refused_is_fine)
{
    const char *result = get(answer, "result");

    if (strcmp(result, "in-doubt") == 0) {
        return ERR_AGAIN;
    }
    if (strcmp(result, "refused") == 0 && !refused_is_fine) {
        return ERR_DATA;
    }
    return 0;
}

int cli_order(struct cli *cli, const char *target, json_t *body)
{
    struct client_request request = {.target = target, .body = body};
    struct site site = {.root = NULL};
    struct err err;
    json_t *answer;
    int status, finished;
    bool ok = site_open(&site, cli_config_file(cli), &err);

    request.socket = site.socket;
    ok = ok && cli_call(&request, &answer, &err);
    site_close(&site);
    json_decref(body);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    tell(cli, answer);
    /* A replay reports what it leaves as it is, and that is no failure. */
    status = exit_status(answer, cli->command->run == cli_cmd_replay);
    json_decref(answer);
    finished = cli_finish(cli);
    return finished != 0 ? finished : status;
}

/* --- orders on one event ------------------------------------------------- */

static int order_event(struct cli *cli, const char *order, json_t *body)
{
    struct buf target = BUF_INIT;
    int status;

    cli_event_target(cli, order, &target);
    status = cli_order(cli, buf_cstr(&target), body);
    buf_free(&target);
    return status;
}

int cli_cmd_discard(struct cli *cli)
{
    return order_event(cli, "/discard", cli_order_body(cli));
}

/* The result that callers of a resolved event get. */
static bool add_result(const struct cli *cli, json_t *body, struct err *err)
{
    struct buf bytes = BUF_INIT;
    uint64_t status;
    bool ok = true;

    if (cli->values[CLI_STATUS] != NULL) {
        if (!text_u64(slice_of(cli->values[CLI_STATUS]), &status) ||
            status < 200 || status > 599) {
            return err_set(err, ERR_USAGE, "--status must be 200 to 599");
        }
        set(body, "status", json_integer((json_int_t)status));
    }
    if (cli->values[CLI_BODY] != NULL) {
        ok = cli_read_file(cli->values[CLI_BODY], RESULT_MAX, &bytes, err);
        if (ok) {
            story_set_bytes(body, "body", buf_slice(&bytes));
        }
        buf_free(&bytes);
    }
    return ok;
}

int cli_cmd_resolve(struct cli *cli)
{
    bool applied = cli->values[CLI_APPLIED] != NULL;
    json_t *body;
    struct err err;

    if (applied == (cli->values[CLI_NOT_APPLIED] != NULL)) {
        return cli_usage(cli, "give one of --applied and --not-applied");
    }
    if (!applied &&
        (cli->values[CLI_STATUS] != NULL || cli->values[CLI_BODY] != NULL)) {
        return cli_usage(cli, "--status and --body go with --applied");
    }
    body = cli_order_body(cli);
    set(body, "applied", json_boolean(applied));
    if (!add_result(cli, body, &err)) {
        json_decref(body);
        return cli_fail(cli, &err);
    }
    return order_event(cli, "/resolve", body);
}

/* --- orders on a route --------------------------------------------------- */

static int order_route(struct cli *cli, const char *order)
{
    struct buf target = BUF_INIT;
    int status;

    buf_add_str(&target, "/v1/routes/");
    text_percent(slice_of(cli->words[0]), &target);
    buf_add_str(&target, order);
    status = cli_order(cli, buf_cstr(&target), cli_order_body(cli));
    buf_free(&target);
    return status;
}

int cli_cmd_pause(struct cli *cli)
{
    return order_route(cli, "/pause");
}

int cli_cmd_resume(struct cli *cli)
{
    return order_route(cli, "/resume");
}
