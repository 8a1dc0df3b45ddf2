/* SPDX-License-Identifier: MIT */
#include "app/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/config_internal.h"
#include "base/check.h"

enum { CONFIG_SIZE_MAX = 4 * 1024 * 1024, READ_SIZE = 64 * 1024 };

/* --- the file --------------------------------------------------------------*/

static bool cannot_read(const char *path, struct err *err)
{
    enum err_kind kind = errno == ENOENT ? ERR_NOT_FOUND : ERR_CONFIG;

    return err_set(err, kind, "cannot read %s: %s", path, strerror(errno));
}

/* Fills in `folder`, a real path, and `file`. */
static bool locate(struct config *config, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    char *folder =
        slash ? mem_dup((struct slice){path, len ? len : 1}) : mem_strdup(".");
    struct buf file = BUF_INIT;

    config->folder = realpath(folder, NULL);
    free(folder);
    if (!config->folder) {
        return cannot_read(path, err);
    }
    buf_printf(&file, "%s/%s",
               strcmp(config->folder, "/") ? config->folder : "",
               slash ? slash + 1 : path);
    config->file = mem_dup(buf_slice(&file));
    buf_free(&file);
    return true;
}

static bool read_open_file(int fd, const char *path, struct buf *text,
                           struct err *err)
{
    for (;;) {
        ssize_t n;

        buf_reserve(text, READ_SIZE);
        n = read(fd, text->data + text->len, READ_SIZE);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return cannot_read(path, err);
        }
        if (n == 0) {
            return true;
        }
        text->len += (size_t)n;
        if (text->len > CONFIG_SIZE_MAX) {
            return err_set(err, ERR_CONFIG, "%s is larger than 4 MiB", path);
        }
    }
}

static bool read_file(const char *path, struct buf *text, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok;

    if (fd < 0) {
        return cannot_read(path, err);
    }
    ok = read_open_file(fd, path, text, err);
    (void)close(fd); /* it was only read */
    return ok;
}

static bool read_config(struct config_reading *reading, const char *path,
                        struct err *err)
{
    struct buf text = BUF_INIT;
    json_t *root = NULL;

    if (!read_file(path, &text, err)) {
        buf_free(&text);
        return false;
    }
    buf_reserve(&text, 1); /* an empty file has no memory yet */
    root = config_text_parse(reading, path, &text);
    if (root) {
        config_read(reading, root);
        if (json_is_object(root)) {
            config_check(reading);
        }
    }
    json_decref(root);
    explicit_bzero(text.data, text.cap);
    buf_free(&text);
    if (reading->n_problems == 0) {
        return true;
    }
    return err_set(err, ERR_CONFIG, "%s: %zu %s", path, reading->n_problems,
                   reading->n_problems == 1 ? "problem" : "problems");
}

bool config_load(struct config **out, const char *path, struct buf *problems,
                 struct err *err)
{
    struct config *config = mem_new(1, sizeof(*config));
    struct config_reading reading = {.config = config, .problems = problems};
    bool ok;

    *out = NULL;
    buf_clear(problems);
    ok = locate(config, path, err) && read_config(&reading, path, err);
    buf_free(&reading.pointer);
    if (!ok) {
        config_free(config);
        return false;
    }
    *out = config;
    return true;
}

/* --- freeing ---------------------------------------------------------------*/

static void free_section(const struct option_section *section, void *base);

static void free_secret(char *secret)
{
    if (secret) {
        explicit_bzero(secret, strlen(secret));
    }
    free(secret);
}

static void free_secrets(struct config_strings *secrets)
{
    for (size_t i = 0; i < secrets->n; i++) {
        explicit_bzero(secrets->items[i], strlen(secrets->items[i]));
    }
    config_strings_free(secrets);
}

static void free_pairs(struct config_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++) {
        free((char *)pairs->items[i][0]);
        free_secret((char *)pairs->items[i][1]);
    }
    free(pairs->items);
}

static void free_clusters(struct config_clusters *clusters)
{
    for (size_t i = 0; i < clusters->n; i++) {
        free(clusters->items[i].name);
        free_pairs(&clusters->items[i].properties);
    }
    free(clusters->items);
}

static void free_objects(const struct option *option, void *base)
{
    const size_t *count = (const void *)((char *)base + option->count_offset);
    char *items = *(char **)option_field(option, base);

    for (size_t i = 0; i < *count; i++) {
        free_section(option->section, items + i * option->item_size);
    }
    free(items);
}

static void free_option(const struct option *option, void *base)
{
    switch (option->type) {
    case OPTION_STRING:
    case OPTION_PATH:
    case OPTION_FILE:
    case OPTION_SECRET_FILE:
        free(*(char **)option_field(option, base));
        break;
    case OPTION_STRINGS:
        config_strings_free(option_field(option, base));
        break;
    case OPTION_SECRETS:
        free_secrets(option_field(option, base));
        break;
    case OPTION_VALUE:
        value_free(option_field(option, base));
        break;
    case OPTION_MAP:
    case OPTION_SECRET_MAP:
    case OPTION_PROPERTIES:
        free_pairs(option_field(option, base));
        break;
    case OPTION_CLUSTERS:
        free_clusters(option_field(option, base));
        break;
    case OPTION_OBJECT:
        free_section(option->section, base);
        break;
    case OPTION_OBJECTS:
        free_objects(option, base);
        break;
    case OPTION_IGNORED:
    case OPTION_BOOL:
    case OPTION_COUNT:
    case OPTION_PERMILLE:
    case OPTION_SHARE:
    case OPTION_DURATION:
    case OPTION_SIZE:
    case OPTION_CHOICE:
    case OPTION_SECRET_PART: /* several rows for one field: see config_free */
    case OPTION_STATUSES:
        break;
    }
}

static void free_section(const struct option_section *section, void *base)
{
    for (size_t i = 0; i < section->n; i++) {
        if (!(section->options[i].flags & OPTION_UNSUPPORTED)) {
            free_option(&section->options[i], base);
        }
    }
}

/* What is not in the table, because it is made from what is. */
static void free_made(struct config *config)
{
    for (size_t i = 0; i < config->admin.n_tokens; i++) {
        free_secret(config->admin.tokens[i].secret);
    }
    for (size_t i = 0; i < config->n_routes; i++) {
        struct config_route *route = &config->routes[i];

        verifier_free(route->verifier);
        free_secrets(&route->environment_lines);
        free(route->answer_content_type);
    }
    free(config->all_clusters);
    config_strings_free(&config->streams);
}

void config_free(struct config *config)
{
    if (!config) {
        return;
    }
    free_made(config);
    free_section(&options_root, config);
    buf_free(&config->warnings);
    free(config->file);
    free(config->folder);
    free(config);
}
