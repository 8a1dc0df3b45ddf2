/* SPDX-License-Identifier: MIT */
/* docs/config.md: the table of options, with config_prose.c around it. */
#include <inttypes.h>
#include <string.h>

#include "app/config_internal.h"
#include "app/config_prose.h"
#include "base/check.h"

static void put_choices(const struct option *option, struct buf *out)
{
    struct slice word;
    bool supported;
    const char *between = "";

    for (size_t i = 0; option_choice(option, i, &word, &supported); i++) {
        if (!supported) {
            continue;
        }
        buf_printf(out, "%s`%.*s`", between, (int)word.len, word.data);
        between = ", ";
    }
}

static const char *type_text(enum option_type type)
{
    switch (type) {
    case OPTION_IGNORED:
    case OPTION_STRING:
    case OPTION_SECRET_PART:
        return "string";
    case OPTION_BOOL:
        return "`true` or `false`";
    case OPTION_PATH:
        return "path";
    case OPTION_FILE:
    case OPTION_SECRET_FILE:
        return "path of a file";
    case OPTION_COUNT:
        return "number";
    case OPTION_PERMILLE:
    case OPTION_SHARE:
        return "number, 0 to 1";
    case OPTION_DURATION:
        return "duration";
    case OPTION_SIZE:
        return "size";
    case OPTION_CHOICE:
        return "one of ";
    case OPTION_STRINGS:
        return "string, or list";
    case OPTION_SECRETS:
        return "secret, or list";
    case OPTION_STATUSES:
        return "list of statuses";
    case OPTION_VALUE:
        return "[value expression](#value-expressions)";
    case OPTION_MAP:
        return "map of strings";
    case OPTION_SECRET_MAP:
        return "map of strings or secrets";
    case OPTION_PROPERTIES:
        return "map of properties";
    case OPTION_CLUSTERS:
        return "map of such maps";
    case OPTION_OBJECT:
        return "object";
    case OPTION_OBJECTS:
        return "list of objects";
    }
    UNREACHABLE("every type has a text");
}

static void put_type(const struct option *option, struct buf *out)
{
    if (option->choices || option->names) {
        buf_add_str(out, option->type == OPTION_STRINGS
                             ? "list of "
                             : type_text(OPTION_CHOICE));
        put_choices(option, out);
        return;
    }
    if (option->type == OPTION_STRINGS && option->flags & OPTION_LIST_ONLY) {
        buf_add_str(out, "list of strings");
    } else {
        buf_add_str(out, type_text(option->type));
    }
    if (option->max == OPTION_NO_MAX) {
        buf_add_str(out, ", from ");
        config_put_number(option, option->min, out);
    } else if (option->max > 0) {
        buf_add_str(out, ", ");
        config_put_number(option, option->min, out);
        buf_add_str(out, " to ");
        config_put_number(option, option->max, out);
    }
}

static void put_default(const struct option *option, struct buf *out)
{
    if (option->flags & OPTION_REQUIRED) {
        buf_add_str(out, "**required**");
    } else if (option->preset) {
        buf_printf(out, "`%s`", option->preset);
    } else if (option->otherwise) {
        buf_add_str(out, option->otherwise);
    } else {
        buf_add_str(out, "see below");
    }
}

static void put_row(const struct option *option, struct buf *out)
{
    buf_printf(out, "| `%s` | ", option->key);
    put_type(option, out);
    buf_add_str(out, " | ");
    put_default(option, out);
    buf_printf(out, " | %s |\n", option->help);
}

static void put_table(const struct option_section *section, struct buf *out)
{
    buf_add_str(out, "| key | type | default | what it is |\n"
                     "|---|---|---|---|\n");
    for (size_t i = 0; i < section->n; i++) {
        if (!(section->options[i].flags & OPTION_UNSUPPORTED)) {
            put_row(&section->options[i], out);
        }
    }
    buf_add_byte(out, '\n');
}

/* A section, and those below it. */
static void put_section(const struct option_section *section, struct buf *out)
{
    if (*section->path != '\0') {
        buf_printf(out, "## `%s`\n\n", section->path);
    }
    if (section->intro) {
        buf_printf(out, "%s\n\n", section->intro);
    }
    put_table(section, out);
    if (section->example) {
        buf_printf(out, "```jsonc\n%s\n```\n\n", section->example);
    }
    config_prose_behind(section->path, out);
    for (size_t i = 0; i < section->n; i++) {
        if (section->options[i].section) {
            put_section(section->options[i].section, out);
        }
    }
}

static void put_unsupported(const struct option_section *section,
                            struct buf *out)
{
    for (size_t i = 0; i < section->n; i++) {
        const struct option *option = &section->options[i];

        if (option->flags & OPTION_UNSUPPORTED) {
            buf_printf(out, "- `%s%s%s`\n", section->path,
                       *section->path ? "." : "", option->key);
        }
        for (size_t k = 0; option->choices; k++) {
            struct slice word;
            bool supported;

            if (!option_choice(option, k, &word, &supported)) {
                break;
            }
            if (!supported) {
                buf_printf(out, "- `%s.%s: %.*s`\n", section->path, option->key,
                           (int)word.len, word.data);
            }
        }
        if (option->section) {
            put_unsupported(option->section, out);
        }
    }
}

void config_write_docs(struct buf *out)
{
    config_prose_start(out);
    put_section(&options_root, out);
    config_prose_end(out);
    put_unsupported(&options_root, out);
}
