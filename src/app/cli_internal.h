/* SPDX-License-Identifier: MIT */
/*
 * What the files of the command line share.
 *
 *   cli.c         the table of commands, help
 *   cli_args.c    the table of options, parsing
 *   cli_call.c    calls to the worker, answers for people
 *   cli_worker.c  run, check, version, and the generated pages
 *   cli_read.c    status, events, show, verify-store
 *   cli_order.c   orders on one event or route
 *   cli_replay.c  replay and rerun
 *   cli_letters.c replay of dead letters from a topic
 *   cli_dump.c    dump
 *   cli_load.c    load
 *   cli_sign.c    sign, verify, explain
 */
#ifndef ONCED_APP_CLI_INTERNAL_H
#define ONCED_APP_CLI_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/cli.h"
#include "app/client.h"
#include "app/site.h"
#include "base/bytes.h"
#include "base/err.h"

enum cli_option {
    CLI_CONFIG,
    CLI_JSON,
    CLI_HELP,
    CLI_EFFECTIVE,
    CLI_ROUTE,
    CLI_TENANT,
    CLI_STATE,
    CLI_REASON,
    CLI_SINCE,
    CLI_LIMIT,
    CLI_CURSOR,
    CLI_GROUP_BY,
    CLI_DEAD,
    CLI_DRY_RUN,
    CLI_RATE,
    CLI_WAIT,
    CLI_ASSUME_NOT_APPLIED,
    CLI_APPLIED,
    CLI_NOT_APPLIED,
    CLI_STATUS,
    CLI_BODY,
    CLI_WHY,
    CLI_SCHEME,
    CLI_SECRET_FILE,
    CLI_ID,
    CLI_URL,
    CLI_TOLERANCE,
    CLI_HEADERS,
    CLI_OUTPUT,
    CLI_SEEN,
    CLI_AGAIN,
    CLI_CURL,
    CLI_FROM_TOPIC,
    CLI_CLUSTER,
    CLI_UNTIL,
    CLI_MAX_REPLAYS,
};
enum { CLI_OPTIONS = CLI_MAX_REPLAYS + 1, CLI_WORDS_MAX = 2 };

#define CLI_BIT(option) (UINT64_C(1) << (option))

struct cli;

struct cli_command {
    const char *name;
    const char *words;   /* "ROUTE ID" */
    const char *summary; /* one line; NULL: not listed */
    const char *text;    /* more, for its own help; or NULL */
    uint64_t options;
    size_t min_words, max_words;
    int (*run)(struct cli *cli);
};

struct cli {
    FILE *out, *err;
    const struct cli_command *command;
    const char *values[CLI_OPTIONS]; /* NULL: not given; flags: not NULL */
    const char *words[CLI_WORDS_MAX];
    size_t n_words;
};

/* --- cli_args.c ---------------------------------------------------------- */

/* 0, or the exit status after the problem was told. */
int cli_parse(struct cli *cli, int argc, char **argv);
void cli_print_options(FILE *out, uint64_t options);

/* --- telling; each returns the exit status ------------------------------- */

int cli_fail(const struct cli *cli, const struct err *err);
int cli_usage(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Flushes `out`; a full disk or a closed pipe is a failure. */
int cli_finish(const struct cli *cli);

/* --- cli_call.c ---------------------------------------------------------- */

/* The file that -c or ONCED_CONFIG names. */
const char *cli_config_file(const struct cli *cli);

/* Appends "&name=value", encoded ('?' for the first), where it is given. */
void cli_add_query(struct buf *target, const char *name, const char *value);

/* "/v1/events/ROUTE/ID" and, where it is given, the tenant, for the words of
 * the command; `order` ("/replay") goes behind the id. */
void cli_event_target(const struct cli *cli, const char *order,
                      struct buf *target);

/* Calls the worker. An answer of status 400 and above is an error with the
 * exit status that fits, but for 409, which the caller judges. */
bool cli_call(const struct client_request *request, json_t **answer,
              struct err *err) MUST_CHECK;

void cli_print_json(const struct cli *cli, const json_t *json);
void cli_print_text(const struct cli *cli, struct buf *text);

/* What config_load reports: a line for each problem or warning. */
void cli_print_lines(const struct cli *cli, const char *prefix,
                     const struct buf *lines);

/* Reads a file, or standard input for "-"; ERR_DATA over `max_bytes`. */
bool cli_read_file(const char *path, size_t max_bytes, struct buf *out,
                   struct err *err) MUST_CHECK;

/* --- cli_order.c --------------------------------------------------------- */

/* Gives an order by POST; the answer is told. Returns the exit status. */
int cli_order(struct cli *cli, const char *target, json_t *body);

/* The members of the body that every order may have. */
json_t *cli_order_body(const struct cli *cli);

/* --- cli_replay.c, cli_letters.c ------------------------------------------ */

/* Of --rate ("50", "50/s"); 0: it is not given. ERR_USAGE for what is none. */
bool cli_rate(const struct cli *cli, uint64_t *per_second,
              struct err *err) MUST_CHECK;

void cli_sleep_ms(int64_t ms);

/* `replay --from-topic`, whose options fit each other. Returns the exit
 * status. */
int cli_replay_letters(struct cli *cli);

/* --- cli_worker.c -------------------------------------------------------- */

struct config;

/* The configuration in full, as the worker has it; problems and warnings are
 * told. */
bool cli_load(const struct cli *cli, struct config **config,
              struct err *err) MUST_CHECK;

/* --- commands ------------------------------------------------------------ */

int cli_cmd_run(struct cli *cli);
int cli_cmd_check(struct cli *cli);
int cli_cmd_version(struct cli *cli);
int cli_cmd_docs(struct cli *cli);
int cli_cmd_status(struct cli *cli);
int cli_cmd_events(struct cli *cli);
int cli_cmd_show(struct cli *cli);
int cli_cmd_backup(struct cli *cli);
int cli_cmd_restore(struct cli *cli);
int cli_cmd_verify_store(struct cli *cli);
int cli_cmd_dump(struct cli *cli);
int cli_cmd_load(struct cli *cli);
int cli_cmd_replay(struct cli *cli);
int cli_cmd_rerun(struct cli *cli);
int cli_cmd_resolve(struct cli *cli);
int cli_cmd_discard(struct cli *cli);
int cli_cmd_pause(struct cli *cli);
int cli_cmd_resume(struct cli *cli);
int cli_cmd_sign(struct cli *cli);
int cli_cmd_verify(struct cli *cli);
int cli_cmd_explain(struct cli *cli);

#endif
