/* SPDX-License-Identifier: MIT */
#include "app/cli.h"

#include <string.h>

#include "app/cli_internal.h"

#define COMMON (CLI_BIT(CLI_CONFIG) | CLI_BIT(CLI_HELP))
#define PRINTS (COMMON | CLI_BIT(CLI_JSON))
#define ORDERS                                                                 \
    (PRINTS | CLI_BIT(CLI_TENANT) | CLI_BIT(CLI_DRY_RUN) | CLI_BIT(CLI_WHY))
#define SIGNS                                                                  \
    (COMMON | CLI_BIT(CLI_SCHEME) | CLI_BIT(CLI_SECRET_FILE) |                 \
     CLI_BIT(CLI_ROUTE) | CLI_BIT(CLI_URL))

static const struct cli_command commands[] = {
    {
        .name = "run",
        .words = "",
        .summary = "run the worker",
        .text = "SIGTERM ends it in order, a second one at once.",
        .options = COMMON,
        .run = cli_cmd_run,
    },
    {
        .name = "check",
        .words = "",
        .summary = "check the configuration",
        .text = "Tells every problem at once, each with its place in the file.",
        .options = PRINTS | CLI_BIT(CLI_EFFECTIVE),
        .run = cli_cmd_check,
    },
    {
        .name = "status",
        .words = "",
        .summary = "what the worker is doing",
        .options = PRINTS,
        .run = cli_cmd_status,
    },
    {
        .name = "events",
        .words = "",
        .summary = "list events, newest first",
        .text = "Without a worker it reads the store itself.",
        .options = PRINTS | CLI_BIT(CLI_ROUTE) | CLI_BIT(CLI_STATE) |
                   CLI_BIT(CLI_REASON) | CLI_BIT(CLI_SINCE) |
                   CLI_BIT(CLI_LIMIT) | CLI_BIT(CLI_CURSOR) |
                   CLI_BIT(CLI_GROUP_BY),
        .run = cli_cmd_events,
    },
    {
        .name = "show",
        .words = "ROUTE ID",
        .summary = "one event: its state, history, request and result",
        .text = "Without a worker it reads the store itself.",
        .options = PRINTS | CLI_BIT(CLI_TENANT),
        .min_words = 2,
        .max_words = 2,
        .run = cli_cmd_show,
    },
    {
        .name = "replay",
        .words = "ROUTE ID | --dead | --from-topic TOPIC",
        .summary = "attempt dead letters again, under the same key",
        .text =
            "A success is left as it is. What may have taken effect already\n"
            "is skipped (exit status 75), unless the route says that its\n"
            "handler bears repeats, or you pass --assume-not-applied.\n\n"
            "--from-topic reads dead letters of onced, Kafka Connect and\n"
            "spring-kafka back, in no group. What the store does not know is\n"
            "delivered as a new event; --route says on which route where a\n"
            "letter does not, and --since and --until mean when it died.\n"
            "Letters that nothing can be made of: exit status 65.",
        .options = ORDERS | CLI_BIT(CLI_DEAD) | CLI_BIT(CLI_ROUTE) |
                   CLI_BIT(CLI_REASON) | CLI_BIT(CLI_SINCE) |
                   CLI_BIT(CLI_RATE) | CLI_BIT(CLI_LIMIT) | CLI_BIT(CLI_WAIT) |
                   CLI_BIT(CLI_ASSUME_NOT_APPLIED) | CLI_BIT(CLI_ID) |
                   CLI_BIT(CLI_FROM_TOPIC) | CLI_BIT(CLI_CLUSTER) |
                   CLI_BIT(CLI_UNTIL) | CLI_BIT(CLI_MAX_REPLAYS),
        .max_words = 2,
        .run = cli_cmd_replay,
    },
    {
        .name = "rerun",
        .words = "ROUTE ID | --since WHEN",
        .summary = "run successes again on purpose, under a new key",
        .text =
            "With --since all that were first seen since then, oldest first;\n"
            "but what was run again before is skipped, unless you pass\n"
            "--again, and so is what arrived and is not kept any more.",
        .options = ORDERS | CLI_BIT(CLI_ROUTE) | CLI_BIT(CLI_SINCE) |
                   CLI_BIT(CLI_RATE) | CLI_BIT(CLI_LIMIT) | CLI_BIT(CLI_AGAIN) |
                   CLI_BIT(CLI_WAIT),
        .max_words = 2,
        .run = cli_cmd_rerun,
    },
    {
        .name = "resolve",
        .words = "ROUTE ID --applied|--not-applied",
        .summary = "say what became of an uncertain event",
        .options = ORDERS | CLI_BIT(CLI_APPLIED) | CLI_BIT(CLI_NOT_APPLIED) |
                   CLI_BIT(CLI_STATUS) | CLI_BIT(CLI_BODY),
        .min_words = 2,
        .max_words = 2,
        .run = cli_cmd_resolve,
    },
    {
        .name = "discard",
        .words = "ROUTE ID",
        .summary = "give an event up for good",
        .options = ORDERS,
        .min_words = 2,
        .max_words = 2,
        .run = cli_cmd_discard,
    },
    {
        .name = "pause",
        .words = "ROUTE",
        .summary = "start no more attempts on a route; deliveries are kept",
        .options = PRINTS | CLI_BIT(CLI_DRY_RUN),
        .min_words = 1,
        .max_words = 1,
        .run = cli_cmd_pause,
    },
    {
        .name = "resume",
        .words = "ROUTE",
        .summary = "go on after a pause",
        .options = PRINTS | CLI_BIT(CLI_DRY_RUN),
        .min_words = 1,
        .max_words = 1,
        .run = cli_cmd_resume,
    },
    {
        .name = "backup",
        .words = "DIR",
        .summary = "copy the store into a new folder, also while it runs",
        .text = "DIR must be empty or not there, on the worker's machine.\n"
                "A worker does not start on a backup: see onced restore.",
        .options = PRINTS,
        .min_words = 1,
        .max_words = 1,
        .run = cli_cmd_backup,
    },
    {
        .name = "restore",
        .words = "[DIR]",
        .summary = "make a store of a backup (worker stopped)",
        .text =
            "Copies the backup DIR to store.path, which must be empty or\n"
            "not there; without DIR what is at store.path is the backup.\n"
            "What was not settled in it may have run since: it becomes\n"
            "uncertain, and is tried again under the same key, or held, as\n"
            "its route says.",
        .options = PRINTS,
        .max_words = 1,
        .run = cli_cmd_restore,
    },
    {
        .name = "verify-store",
        .words = "",
        .summary = "read the whole store and check it (worker stopped)",
        .options = PRINTS,
        .run = cli_cmd_verify_store,
    },
    {
        .name = "dump",
        .words = "",
        .summary = "write every event as a line of JSON (worker stopped)",
        .text = "A full copy, for onced load: it holds the credentials that "
                "stand\nin stored headers. Keep it as you keep them.",
        .options = COMMON | CLI_BIT(CLI_ROUTE) | CLI_BIT(CLI_OUTPUT),
        .run = cli_cmd_dump,
    },
    {
        .name = "load",
        .words = "FILE",
        .summary = "take a dump over, or ids handled elsewhere (stopped)",
        .text =
            "What is known already stays as it is. What was not settled may\n"
            "have run since: it becomes uncertain, as after a restore. With\n"
            "--seen FILE has an id a line, or {\"route\", \"id\", \"tenant\",\n"
            "\"at\"}: their deliveries are repeats from then on. FILE - is\n"
            "standard input. Where it fails, load the same again: it\n"
            "goes on.",
        .options = PRINTS | CLI_BIT(CLI_SEEN) | CLI_BIT(CLI_ROUTE) |
                   CLI_BIT(CLI_DRY_RUN),
        .min_words = 1,
        .max_words = 1,
        .run = cli_cmd_load,
    },
    {
        .name = "sign",
        .words = "FILE",
        .summary = "make the headers that a sender would send with a body",
        .text =
            "Give --route, for the secret in the configuration, or --scheme\n"
            "and --secret-file. FILE - is standard input.",
        .options = SIGNS | CLI_BIT(CLI_ID) | CLI_BIT(CLI_CURL),
        .min_words = 1,
        .max_words = 1,
        .run = cli_cmd_sign,
    },
    {
        .name = "verify",
        .words = "FILE --headers FILE",
        .summary = "check the signature of a delivery",
        .options = SIGNS | CLI_BIT(CLI_HEADERS) | CLI_BIT(CLI_TOLERANCE),
        .min_words = 1,
        .max_words = 1,
        .run = cli_cmd_verify,
    },
    {
        .name = "explain",
        .words = "FILE --headers FILE",
        .summary = "tell why a signature does not match",
        .options = SIGNS | CLI_BIT(CLI_HEADERS) | CLI_BIT(CLI_TOLERANCE),
        .min_words = 1,
        .max_words = 1,
        .run = cli_cmd_explain,
    },
    {
        .name = "version",
        .words = "",
        .summary = "print the version",
        .options = CLI_BIT(CLI_HELP) | CLI_BIT(CLI_JSON),
        .run = cli_cmd_version,
    },
    {
        .name = "docs",
        .words = "config|schema|metrics",
        .options = CLI_BIT(CLI_HELP),
        .min_words = 1,
        .max_words = 1,
        .run = cli_cmd_docs,
    },
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int print_overview(const struct cli *cli)
{
    (void)fputs("Usage: onced COMMAND [WORDS] [OPTIONS]\n"
                "Makes at-least-once deliveries safe.\n\n",
                cli->out);
    for (size_t i = 0; i < COMMANDS; i++) {
        if (commands[i].summary != NULL) {
            (void)fprintf(cli->out, "  %-13s %s\n", commands[i].name,
                          commands[i].summary);
        }
    }
    (void)fputs("\nonced COMMAND --help tells more.\n", cli->out);
    return cli_finish(cli);
}

static int print_help(const struct cli *cli)
{
    const struct cli_command *command = cli->command;

    (void)fprintf(cli->out, "Usage: onced %s %s%s[OPTIONS]\n", command->name,
                  command->words, command->words[0] == '\0' ? "" : " ");
    if (command->summary != NULL) {
        (void)fprintf(cli->out, "%s\n", command->summary);
    }
    if (command->text != NULL) {
        (void)fprintf(cli->out, "\n%s\n", command->text);
    }
    (void)fputc('\n', cli->out);
    cli_print_options(cli->out, command->options);
    return cli_finish(cli);
}

static const struct cli_command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

/* Of one command, or of all. */
static int help(struct cli *cli, const char *name)
{
    if (name == NULL) {
        return print_overview(cli);
    }
    cli->command = find(name);
    return cli->command == NULL ? cli_usage(cli, "unknown command %s", name)
                                : print_help(cli);
}

static bool is_any(const char *text, const char *a, const char *b)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

int cli_run(int argc, char **argv, FILE *out, FILE *err)
{
    struct cli cli = {.out = out, .err = err};
    const char *name = argc > 1 ? argv[1] : NULL;
    int status;

    if (name == NULL) {
        return cli_usage(&cli, "a command is missing");
    }
    if (is_any(name, "--help", "-h") || strcmp(name, "help") == 0) {
        return help(&cli, argc > 2 ? argv[2] : NULL);
    }
    if (is_any(name, "--version", "-V")) {
        name = "version";
    }
    cli.command = find(name);
    if (cli.command == NULL) {
        return cli_usage(&cli, "unknown command %s", name);
    }
    status = cli_parse(&cli, argc - 2, argv + 2);
    if (status != 0) {
        return status;
    }
    return cli.values[CLI_HELP] != NULL ? print_help(&cli)
                                        : cli.command->run(&cli);
}
