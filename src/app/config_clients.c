/* SPDX-License-Identifier: MIT */
/*
 * Whether librdkafka makes clients of the clusters: only then it looks at
 * certificates, at mechanisms, and at properties that exclude each other.
 * Without servers a client talks to nobody.
 */
#include <stdlib.h>
#include <string.h>

#include "app/config_internal.h"
#include "base/check.h"

enum { WHY_SIZE = 512 };

static bool make_client(const struct kafka_cluster *cluster, enum kafka_use use,
                        struct err *err)
{
    char why[WHY_SIZE];
    bool reads = use == KAFKA_USE_CONSUMER;
    rd_kafka_conf_t *conf;
    rd_kafka_t *client;

    if (!kafka_conf_new(&conf, use, cluster, err)) {
        return false;
    }
    if (reads) {
        kafka_conf_force(conf, "group.id", "onced-check");
    }
    client = rd_kafka_new(reads ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, conf,
                          why, sizeof(why));
    if (!client) {
        rd_kafka_conf_destroy(conf);
        return err_set(err, ERR_CONFIG, "%s", why);
    }
    rd_kafka_destroy(client);
    return true;
}

static bool names_servers(const char *name)
{
    return strcmp(name, "bootstrap.servers") == 0 ||
           strcmp(name, "metadata.broker.list") == 0;
}

/* The pairs are borrowed. */
static struct kafka_cluster without_servers(const struct kafka_cluster *from,
                                            const char *(*settings)[2])
{
    size_t n = 0;

    for (size_t i = 0; i < from->n_settings; i++) {
        if (!names_servers(from->settings[i][0])) {
            settings[n][0] = from->settings[i][0];
            settings[n++][1] = from->settings[i][1];
        }
    }
    return (struct kafka_cluster){.name = from->name,
                                  .settings = (const char *const(*)[2])settings,
                                  .n_settings = n};
}

static void note(const struct kafka_cluster *cluster, const struct err *err,
                 struct buf *problems)
{
    if (strcmp(cluster->name, CONFIG_DEFAULT_CLUSTER) == 0) {
        buf_printf(problems, "/kafka: %s\n", err->text);
    } else {
        buf_printf(problems, "/clusters/%s: %s\n", cluster->name, err->text);
    }
}

bool config_try_clients(const struct config *config, struct buf *problems)
{
    bool ok = true;

    for (size_t i = 0; i < config->n_all_clusters; i++) {
        const struct kafka_cluster *cluster = &config->all_clusters[i];
        const char *(*settings)[2] =
            mem_new(cluster->n_settings, sizeof(*settings));
        const struct kafka_cluster silent = without_servers(cluster, settings);
        struct err err;

        if (!make_client(&silent, KAFKA_USE_PRODUCER, &err) ||
            !make_client(&silent, KAFKA_USE_CONSUMER, &err)) {
            note(cluster, &err, problems);
            ok = false;
        }
        free(settings);
    }
    return ok;
}
