/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <string.h>

#include "app/cli_internal.h"
#include "base/check.h"

struct option_row {
    const char *name;
    char letter;       /* '\0': none */
    const char *value; /* "FILE"; NULL: a flag */
    const char *help;
};

static const struct option_row rows[CLI_OPTIONS] = {
    [CLI_CONFIG] = {"config", 'c', "FILE",
                    "the configuration (ONCED_CONFIG, or onced.json)"},
    [CLI_JSON] = {"json", '\0', NULL, "print JSON"},
    [CLI_HELP] = {"help", 'h', NULL, "print this"},
    [CLI_EFFECTIVE] = {"effective", '\0', NULL,
                       "print all that is in force, secrets masked"},
    [CLI_ROUTE] = {"route", '\0', "ROUTE", "of this route"},
    [CLI_TENANT] = {"tenant", '\0', "TENANT", "of this tenant"},
    [CLI_STATE] = {"state", '\0', "STATE", "in this state (DEAD, PENDING, …)"},
    [CLI_REASON] = {"reason", '\0', "REASON",
                    "with this reason (exhausted, refused, …)"},
    [CLI_SINCE] = {"since", '\0', "WHEN",
                   "first seen since then: 2h, or 2026-01-31T10:00:00Z"},
    [CLI_LIMIT] = {"limit", '\0', "N", "at most so many"},
    [CLI_CURSOR] = {"cursor", '\0', "CURSOR", "go on where a page ended"},
    [CLI_GROUP_BY] = {"group-by", '\0', "FIELDS",
                      "count them by fields: reason,code"},
    [CLI_DEAD] = {"dead", '\0', NULL, "all dead letters that match"},
    [CLI_DRY_RUN] = {"dry-run", '\0', NULL, "say what would be done"},
    [CLI_RATE] = {"rate", '\0', "N/s", "not faster than this"},
    [CLI_WAIT] = {"wait", '\0', NULL, "wait until all are settled"},
    [CLI_ASSUME_NOT_APPLIED] =
        {"assume-not-applied", '\0', NULL,
         "you know that the uncertain attempt took no effect"},
    [CLI_APPLIED] = {"applied", '\0', NULL, "it took effect: a success"},
    [CLI_NOT_APPLIED] = {"not-applied", '\0', NULL,
                         "it took no effect: to be attempted again"},
    [CLI_STATUS] = {"status", '\0', "N", "status of the result (200)"},
    [CLI_BODY] = {"body", '\0', "FILE", "body of the result (- is stdin)"},
    [CLI_WHY] = {"why", '\0', "TEXT", "kept in the event's history"},
    [CLI_SCHEME] = {"scheme", '\0', "SCHEME",
                    "signature scheme: standard-webhooks, stripe, …"},
    [CLI_SECRET_FILE] = {"secret-file", '\0', "FILE",
                         "where the secret stands"},
    [CLI_ID] = {"id", '\0', "ID", "id of the event"},
    [CLI_URL] = {"url", '\0', "URL", "where it is sent to"},
    [CLI_TOLERANCE] = {"tolerance", '\0', "TIME",
                       "width of the time window (5m)"},
    [CLI_HEADERS] = {"headers", '\0', "FILE",
                     "the headers, as \"Name: value\" lines"},
    [CLI_OUTPUT] = {"output", 'o', "FILE", "into a new file of mode 0600"},
    [CLI_SEEN] = {"seen", '\0', NULL, "ids that were handled elsewhere"},
    [CLI_AGAIN] = {"again", '\0', NULL, "also what was run again before"},
    [CLI_CURL] = {"curl", '\0', NULL, "print a curl command that sends it"},
    [CLI_FROM_TOPIC] = {"from-topic", '\0', "TOPIC",
                        "all dead letters of that topic that match"},
    [CLI_CLUSTER] = {"cluster", '\0', "NAME",
                     "of \"clusters\", where it is not \"kafka\""},
    [CLI_UNTIL] = {"until", '\0', "WHEN", "and before then"},
    [CLI_MAX_REPLAYS] = {"max-replays", '\0', "N",
                         "skip what was replayed that often (3)"},
};

/* --- telling ------------------------------------------------------------- */

int cli_fail(const struct cli *cli, const struct err *err)
{
    CHECK(err->kind != ERR_NONE);
    (void)fprintf(cli->err, "onced: %s\n", err->text);
    return (int)err->kind;
}

int cli_usage(const struct cli *cli, const char *format, ...)
{
    va_list args;

    (void)fputs("onced: ", cli->err);
    va_start(args, format);
    (void)vfprintf(cli->err, format, args);
    va_end(args);
    (void)fprintf(cli->err, "; see onced %s%s\n",
                  cli->command == NULL ? "" : cli->command->name,
                  cli->command == NULL ? "--help" : " --help");
    return ERR_USAGE;
}

int cli_finish(const struct cli *cli)
{
    struct err err;

    if (fflush(cli->out) == 0 && ferror(cli->out) == 0) {
        return 0;
    }
    (void)err_set(&err, ERR_IO, "cannot write the output");
    return cli_fail(cli, &err);
}

void cli_print_options(FILE *out, uint64_t options)
{
    for (int i = 0; i < CLI_OPTIONS; i++) {
        const struct option_row *row = &rows[i];
        struct buf name = BUF_INIT;

        if ((options & CLI_BIT(i)) == 0) {
            continue;
        }
        if (row->letter != '\0') {
            buf_printf(&name, "-%c, ", row->letter);
        }
        buf_printf(&name, "--%s%s%s", row->name, row->value == NULL ? "" : " ",
                   row->value == NULL ? "" : row->value);
        (void)fprintf(out, "  %-22s  %s\n", buf_cstr(&name), row->help);
        buf_free(&name);
    }
}

/* --- parsing ------------------------------------------------------------- */

struct parser {
    struct cli *cli;
    int argc;
    char **argv;
    int at;
};

/* The option that the argument names; CLI_OPTIONS: none of the command. */
static int find(const struct parser *parser, struct slice name, char letter)
{
    for (int i = 0; i < CLI_OPTIONS; i++) {
        bool same = letter != '\0' ? rows[i].letter == letter
                                   : slice_eq(slice_of(rows[i].name), name);

        if (same && (parser->cli->command->options & CLI_BIT(i)) != 0) {
            return i;
        }
    }
    return CLI_OPTIONS;
}

/* One option whose value, if it is given with '=', is `attached`. */
static int take(struct parser *parser, int option, const char *attached)
{
    struct cli *cli = parser->cli;
    const struct option_row *row = &rows[option];

    if (cli->values[option] != NULL) {
        return cli_usage(cli, "--%s is given twice", row->name);
    }
    if (row->value == NULL) {
        cli->values[option] = row->name;
        return attached == NULL
                   ? 0
                   : cli_usage(cli, "--%s takes no value", row->name);
    }
    if (attached == NULL) {
        if (parser->at + 1 >= parser->argc) {
            return cli_usage(cli, "--%s needs a value: %s", row->name,
                             row->value);
        }
        attached = parser->argv[++parser->at];
    }
    cli->values[option] = attached;
    return 0;
}

static int take_option(struct parser *parser, const char *text)
{
    const char *equals = strchr(text, '=');
    const char *attached = equals == NULL ? NULL : equals + 1;
    int option;

    if (text[1] == '-') {
        struct slice name = slice_of(text + 2);

        name.len = slice_find(name, '=');
        option = find(parser, name, '\0');
    } else {
        option = find(parser, SLICE(""), text[1]);
        attached = text[2] == '\0' ? NULL : text + 2;
    }
    if (option == CLI_OPTIONS) {
        return cli_usage(parser->cli, "unknown option %s", text);
    }
    return take(parser, option, attached);
}

static int take_word(struct cli *cli, const char *word)
{
    if (cli->n_words == cli->command->max_words) {
        return cli_usage(cli, "one word too many: %s", word);
    }
    cli->words[cli->n_words++] = word;
    return 0;
}

int cli_parse(struct cli *cli, int argc, char **argv)
{
    struct parser parser = {.cli = cli, .argc = argc, .argv = argv};
    bool words_only = false;
    int status = 0;

    for (; status == 0 && parser.at < argc; parser.at++) {
        const char *text = argv[parser.at];

        if (!words_only && strcmp(text, "--") == 0) {
            words_only = true;
        } else if (!words_only && text[0] == '-' && text[1] != '\0') {
            status = take_option(&parser, text);
        } else {
            status = take_word(cli, text);
        }
    }
    if (status == 0 && cli->values[CLI_HELP] == NULL &&
        cli->n_words < cli->command->min_words) {
        return cli_usage(cli, "%s is missing", cli->command->words);
    }
    return status;
}
