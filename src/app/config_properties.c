/* SPDX-License-Identifier: MIT */
/*
 * Properties of librdkafka. Their names, types and ranges are the library's:
 * it is asked about each of them, so that a wrong one is told with its place.
 */
#include <stdlib.h>
#include <string.h>

#include "app/config_internal.h"
#include "base/check.h"

enum { WHY_SIZE = 512 };

/* --- what librdkafka and onced's promises say ------------------------------
 */

static const char *refused(const char *name, const char *value)
{
    static const enum kafka_use uses[] = {KAFKA_USE_CONSUMER,
                                          KAFKA_USE_PRODUCER, KAFKA_USE_READER};
    const char *why = NULL;

    for (size_t i = 0; !why && i < sizeof(uses) / sizeof(uses[0]); i++) {
        why = kafka_refused(uses[i], name, value);
    }
    return why;
}

/* A text may be a secret that stands in the wrong place, and the library puts
 * what it does not take into its own. */
static const char *harmless(const char *why, const json_t *json)
{
    if (json_is_number(json) || strstr(why, "not supported in this build")) {
        return why;
    }
    return "librdkafka does not take this value";
}

static void check_property(struct config_reading *reading, const char *name,
                           const char *value, const json_t *json)
{
    char why[WHY_SIZE];
    const char *broken = refused(name, value);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    switch (rd_kafka_conf_set(conf, name, value, why, sizeof(why))) {
    case RD_KAFKA_CONF_OK:
        if (broken) {
            config_problem(reading, "may not be set like that: %s", broken);
        }
        break;
    case RD_KAFKA_CONF_UNKNOWN:
        config_problem(reading, "is not a property of librdkafka %s",
                       rd_kafka_version_str());
        break;
    case RD_KAFKA_CONF_INVALID:
        why[strcspn(why, "\n")] = '\0';
        config_problem(reading, "%s", harmless(why, json));
        break;
    }
    rd_kafka_conf_destroy(conf);
}

/* --- reading ---------------------------------------------------------------*/

/* Of all properties these alone are paths of files to be read; "probe" lets
 * the library look for the system's authorities. */
static bool is_path(const char *name)
{
    static const char end[] = ".location";
    size_t len = strlen(name);

    return len >= sizeof(end) && strcmp(name + len - sizeof(end) + 1, end) == 0;
}

static char *absolute(const struct config_reading *reading, char *path)
{
    char *whole;

    if (*path == '\0' || strcmp(path, "probe") == 0) {
        return path;
    }
    whole = config_value_path(reading, slice_of(path));
    free(path);
    return whole;
}

static char *property_text(struct config_reading *reading, const char *name,
                           const json_t *json)
{
    char *text;

    if (json_is_number(json) || json_is_boolean(json)) {
        text = json_dumps(json, JSON_ENCODE_ANY);
        CHECK(text != NULL);
        return text;
    }
    text = config_value_text(
        reading, json, kafka_is_secret(name) ? CONFIG_SECRET : CONFIG_PLAIN);
    return text && is_path(name) ? absolute(reading, text) : text;
}

static void check_servers(struct config_reading *reading,
                          const struct config_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++) {
        if (strcmp(pairs->items[i][0], "bootstrap.servers") == 0 ||
            strcmp(pairs->items[i][0], "metadata.broker.list") == 0) {
            return;
        }
    }
    if (!config_has_problem(reading, "bootstrap.servers")) {
        config_problem(reading, "must have \"bootstrap.servers\"");
    }
}

static void read_properties(struct config_reading *reading, const json_t *json,
                            struct config_pairs *pairs)
{
    const char *name;
    json_t *value;

    if (!json_is_object(json)) {
        config_problem(reading, "must be an object");
        return;
    }
    pairs->items = mem_new(json_object_size(json) + 1, sizeof(*pairs->items));
    json_object_foreach((json_t *)json, name, value)
    {
        size_t mark = config_enter(reading, name);
        char *text = property_text(reading, name, value);

        if (text) {
            check_property(reading, name, text, value);
            pairs->items[pairs->n][0] = mem_strdup(name);
            pairs->items[pairs->n++][1] = text;
        }
        config_leave(reading, mark);
    }
    check_servers(reading, pairs);
}

void config_properties_read(struct config_reading *reading,
                            const struct option *option, const json_t *json,
                            void *base)
{
    read_properties(reading, json, option_field(option, base));
}

static void check_cluster_name(struct config_reading *reading, const char *name)
{
    if (!config_name_ok(name)) {
        config_problem(reading,
                       "its name must be 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    if (strcmp(name, CONFIG_DEFAULT_CLUSTER) == 0) {
        config_problem(reading, "is the name of the object \"kafka\"");
    }
}

void config_clusters_read(struct config_reading *reading,
                          const struct option *option, const json_t *json,
                          void *base)
{
    struct config_clusters *clusters = option_field(option, base);
    const char *name;
    json_t *properties;

    if (!json_is_object(json)) {
        config_problem(reading, "must be an object");
        return;
    }
    clusters->items =
        mem_new(json_object_size(json) + 1, sizeof(*clusters->items));
    json_object_foreach((json_t *)json, name, properties)
    {
        struct config_cluster *cluster = &clusters->items[clusters->n++];
        size_t mark = config_enter(reading, name);

        cluster->name = mem_strdup(name);
        check_cluster_name(reading, name);
        read_properties(reading, properties, &cluster->properties);
        config_leave(reading, mark);
    }
}

/* --- all clusters ----------------------------------------------------------*/

static void add_cluster(struct config *config, const char *name,
                        const struct config_pairs *properties)
{
    config->all_clusters[config->n_all_clusters++] = (struct kafka_cluster){
        .name = name,
        .settings = (const char *const(*)[2])properties->items,
        .n_settings = properties->n,
    };
}

void config_clusters_make(struct config *config)
{
    const struct config_clusters *clusters = &config->clusters;

    config->all_clusters =
        mem_new(clusters->n + 1, sizeof(*config->all_clusters));
    if (config->kafka.items) {
        add_cluster(config, CONFIG_DEFAULT_CLUSTER, &config->kafka);
    }
    for (size_t i = 0; i < clusters->n; i++) {
        add_cluster(config, clusters->items[i].name,
                    &clusters->items[i].properties);
    }
}

bool config_clusters_find(const struct config *config, const char *name,
                          size_t *index)
{
    for (*index = 0; *index < config->n_all_clusters; (*index)++) {
        if (strcmp(config->all_clusters[*index].name, name) == 0) {
            return true;
        }
    }
    return false;
}

size_t config_cluster_index(const struct config *config, const char *name)
{
    size_t index;
    bool found = config_clusters_find(config, name, &index);

    CHECK(found);
    return index;
}
