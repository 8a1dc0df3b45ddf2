/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "tool.h"

static const struct tool_command commands[] = {
    {"create", "TOPIC[:PARTITIONS[:REPLICATION]] [name=value]... ...", 1, false,
     topics_create},
    {"delete", "TOPIC...", 1, false, topics_delete},
    {"add-partitions", "TOPIC:TOTAL...", 1, false, topics_add_partitions},
    {"delete-records", "TOPIC:PARTITION:OFFSET|end...   what lies before it", 1,
     false, topics_delete_records},
    {"produce", "[quiet]   messages from stdin, a line each", 0, false,
     messages_produce},
    {"consume", "TOPIC...   from the beginning to the end", 1, false,
     messages_consume},
    {"watermarks", "TOPIC...", 1, false, messages_watermarks},
    {"committed", "GROUP [EVERY_MS]   again and again until stdin ends", 1,
     false, groups_committed},
    {"groups", "", 0, false, groups_list},
    {"describe", "GROUP...", 1, false, groups_describe},
    {"set-offsets", "GROUP TOPIC:PARTITION:OFFSET|beginning|end...", 2, false,
     groups_set_offsets},
    {"delete-groups", "GROUP...", 1, false, groups_delete},
    {"mock", "BROKERS [TOPIC:PARTITIONS]...   commands from stdin", 1, true,
     mock_run},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static _Noreturn void usage(int code)
{
    FILE *to = code ? stderr : stdout;
    (void)fputs("usage: kafka_tool -b SERVERS [-X name=value]... COMMAND ...\n",
                to);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        (void)fprintf(to, "  %s %s\n", commands[i].name, commands[i].usage);
    }
    exit(code);
}

static const struct tool_command *find_command(const char *name)
{
    for (size_t i = 0; name && i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static void add_setting(struct tool *tool, const char *setting)
{
    if (!strchr(setting, '=') || tool->n_settings == TOOL_SETTINGS_MAX) {
        usage(EX_USAGE);
    }
    tool->settings[tool->n_settings++] = setting;
}

int main(int argc, char **argv)
{
    struct tool tool = {0};
    int option;
    while ((option = getopt(argc, argv, "+b:X:h")) != -1) {
        switch (option) {
        case 'b':
            tool.servers = optarg;
            break;
        case 'X':
            add_setting(&tool, optarg);
            break;
        case 'h':
            usage(0);
        default:
            usage(EX_USAGE);
        }
    }
    const struct tool_command *command = find_command(argv[optind]);
    if (!command) {
        usage(EX_USAGE);
    }
    tool.args = argv + optind + 1;
    tool.n_args = (size_t)(argc - optind - 1);
    if (tool.n_args < command->min_args ||
        (!tool.servers && !command->is_local)) {
        usage(EX_USAGE);
    }
    return command->run(&tool);
}
