/* SPDX-License-Identifier: MIT */
#include "app/site.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/config_internal.h"
#include "base/check.h"
#include "base/text.h"

enum { SITE_FILE_MAX = 4 * 1024 * 1024 };

static bool read_file(const char *path, struct buf *text, struct err *err)
{
    FILE *file = fopen(path, "re");
    char part[4096];
    size_t n;
    bool ok;

    if (file == NULL) {
        return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_CONFIG,
                       "cannot read %s: %s", path, strerror(errno));
    }
    while (text->len <= SITE_FILE_MAX &&
           (n = fread(part, 1, sizeof part, file)) > 0) {
        buf_add(text, part, n);
    }
    ok = ferror(file) == 0 && text->len <= SITE_FILE_MAX;
    (void)fclose(file); /* it was only read */
    return ok || err_set(err, ERR_CONFIG, "cannot read %s", path);
}

/* The folder of the file, a real path. */
static char *folder_of(const char *path)
{
    char *folder = mem_strdup(path);
    char *slash = strrchr(folder, '/');
    char *real;

    if (slash == NULL) {
        real = realpath(".", NULL);
    } else {
        slash[slash == folder ? 1 : 0] = '\0';
        real = realpath(folder, NULL);
    }
    free(folder);
    return real;
}

/* What stands in the file, or the default of the table; NULL where there is
 * neither. */
static json_t *value_of(const json_t *root, const char *section,
                        const char *key)
{
    json_t *value = json_object_get(json_object_get(root, section), key);
    const struct option *parent = option_find(&options_root, section);
    const struct option *option;

    CHECK(parent != NULL);
    option = option_find(parent->section, key);
    CHECK(option != NULL);
    if (value == NULL && option->preset != NULL) {
        return json_loads(option->preset, JSON_DECODE_ANY, NULL);
    }
    return json_incref(value);
}

/* NULL where it is not there, or wrong. */
static char *path_of(struct config_reading *reading, const json_t *root,
                     const char *section, const char *key)
{
    json_t *value = value_of(root, section, key);
    size_t outer = config_enter(reading, section);
    char *text = NULL, *path = NULL;

    (void)config_enter(reading, key);
    if (value != NULL) {
        text = config_value_text(reading, value, CONFIG_PLAIN);
    }
    if (text != NULL) {
        path = config_value_path(reading, slice_of(text));
    }
    config_leave(reading, outer);
    json_decref(value);
    free(text);
    return path;
}

static bool find_paths(struct config_reading *reading, struct site *site,
                       struct err *err)
{
    struct buf socket = BUF_INIT;
    struct buf *problems = reading->problems;
    size_t before = problems->len;

    site->store = path_of(reading, site->root, "store", "path");
    site->socket = path_of(reading, site->root, "admin", "socket");
    if (problems->len > before) {
        return err_set(err, ERR_CONFIG, "%.*s",
                       (int)(problems->len - before - 1),
                       problems->data + before);
    }
    if (site->socket == NULL) {
        buf_printf(&socket, "%s/admin.sock", site->store);
        site->socket = mem_dup(buf_slice(&socket));
        buf_free(&socket);
    }
    return true;
}

bool site_open(struct site *out, const char *path, struct err *err)
{
    struct buf text = BUF_INIT, problems = BUF_INIT;
    struct config config = {.folder = folder_of(path)};
    struct config_reading reading = {.config = &config, .problems = &problems};
    bool ok = false;

    *out = (struct site){.root = NULL};
    if (!read_file(path, &text, err)) {
        goto out;
    }
    buf_reserve(&text, 1); /* an empty file has no memory yet */
    out->root = config_text_parse(&reading, path, &text);
    if (out->root == NULL) {
        problems.len = slice_find(buf_slice(&problems), '\n');
        (void)err_set(err, ERR_CONFIG, "%s", buf_cstr(&problems));
        goto out;
    }
    ok = find_paths(&reading, out, err);
    out->folder = config.folder;
    config.folder = NULL;
out:
    buf_free(&reading.pointer);
    buf_free(&config.warnings);
    buf_free(&problems);
    buf_free(&text);
    free(config.folder);
    if (!ok) {
        site_close(out);
    }
    return ok;
}

void site_close(struct site *site)
{
    free(site->socket);
    free(site->store);
    free(site->folder);
    json_decref(site->root);
    *site = (struct site){.root = NULL};
}

const char *site_namespace(const struct site *site, const char *route)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(site->root, "routes"), i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        const json_t *namespace = json_object_get(entry, "namespace");

        if (name != NULL && strcmp(name, route) == 0) {
            return namespace == NULL ? name : json_string_value(namespace);
        }
    }
    return NULL;
}

/* --- how long contents are kept ------------------------------------------- */

/* Negative where it is absent, or wrong. `parent` is NULL for none. */
static int64_t duration_of(struct config_reading *reading, const char *parent,
                           const char *key, const json_t *value)
{
    size_t outer = reading->pointer.len;
    char *text = NULL;
    int64_t ms = -1;

    if (parent != NULL) {
        (void)config_enter(reading, parent);
    }
    (void)config_enter(reading, key);
    if (value != NULL) {
        text = config_value_text(reading, value, CONFIG_PLAIN);
    }
    if (text != NULL && !text_duration_ms(slice_of(text), &ms)) {
        config_problem(reading, "must be a duration");
        ms = -1;
    }
    config_leave(reading, outer);
    free(text);
    return ms;
}

static void set_keep(struct config_reading *reading, const json_t *route,
                     struct store *store)
{
    const json_t *keep = json_object_get(route, "keep");
    const char *name = json_string_value(json_object_get(route, "name"));
    struct store_retention retention = {
        .ids_ms = duration_of(reading, NULL, "retention",
                              json_object_get(route, "retention")),
        .envelope_ms = duration_of(reading, "keep", "envelope",
                                   json_object_get(keep, "envelope")),
        .result_ms = duration_of(reading, "keep", "result",
                                 json_object_get(keep, "result")),
    };
    const char *known;

    config_retention_check(reading, &retention);
    retention.ids_ms = INT64_MAX;
    for (uint16_t i = 0; (known = store_route_name(store, i)) != NULL; i++) {
        if (name != NULL && strcmp(known, name) == 0) {
            store_set_retention(store, i, &retention);
        }
    }
}

bool site_set_keep(const struct site *site, struct store *store,
                   struct err *err)
{
    struct buf problems = BUF_INIT;
    struct config config = {.folder = site->folder};
    struct config_reading reading = {.config = &config, .problems = &problems};
    json_t *most = value_of(site->root, "store", "retention");
    const json_t *route;
    bool ok;
    size_t i;

    config.store.retention_ms =
        duration_of(&reading, "store", "retention", most);
    json_decref(most);
    json_array_foreach(json_object_get(site->root, "routes"), i, route)
    {
        size_t outer = config_enter(&reading, "routes");

        (void)config_enter_item(&reading, i);
        set_keep(&reading, route, store);
        config_leave(&reading, outer);
    }
    ok = problems.len == 0 ||
         err_set(err, ERR_CONFIG, "%.*s",
                 (int)slice_find(buf_slice(&problems), '\n'), problems.data);
    buf_free(&reading.pointer);
    buf_free(&config.warnings);
    buf_free(&problems);
    return ok;
}

/* --- one cluster ---------------------------------------------------------- */

static const json_t *find_cluster(const struct site *site, const char *name,
                                  struct err *err)
{
    const json_t *cluster =
        name == NULL
            ? json_object_get(site->root, "kafka")
            : json_object_get(json_object_get(site->root, "clusters"), name);

    if (cluster == NULL) {
        (void)(name == NULL
                   ? err_set(err, ERR_NOT_FOUND,
                             "the configuration has no \"kafka\"")
                   : err_set(err, ERR_NOT_FOUND,
                             "the configuration has no cluster \"%s\"", name));
    }
    return cluster;
}

static void read_cluster(struct config_reading *reading, const char *name,
                         const json_t *cluster)
{
    const char *key = name == NULL ? "kafka" : "clusters";
    const struct option *option = option_find(&options_root, key);
    size_t outer = config_enter(reading, key);
    json_t *one;

    CHECK(option != NULL);
    if (name == NULL) {
        config_properties_read(reading, option, cluster, reading->config);
    } else {
        one = json_object();
        CHECK(json_object_set(one, name, (json_t *)cluster) == 0);
        config_clusters_read(reading, option, one, reading->config);
        json_decref(one);
    }
    config_leave(reading, outer);
    config_clusters_make(reading->config);
}

bool site_cluster(const struct site *site, const char *name,
                  struct config **out, struct err *err)
{
    bool is_default = name == NULL || strcmp(name, CONFIG_DEFAULT_CLUSTER) == 0;
    const char *key = is_default ? NULL : name;
    const json_t *cluster = find_cluster(site, key, err);
    struct buf problems = BUF_INIT;
    struct config_reading reading = {.problems = &problems};
    bool ok;

    if (cluster == NULL) {
        return false;
    }
    reading.config = mem_new(1, sizeof *reading.config);
    reading.config->folder = mem_strdup(site->folder);
    read_cluster(&reading, key, cluster);
    ok = problems.len == 0 ||
         err_set(err, ERR_CONFIG, "%.*s",
                 (int)slice_find(buf_slice(&problems), '\n'), problems.data);
    buf_free(&reading.pointer);
    buf_free(&problems);
    if (!ok) {
        config_free(reading.config);
        return false;
    }
    *out = reading.config;
    return true;
}
