/* SPDX-License-Identifier: MIT */
#include "kafka/client.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/log.h"

enum { PROBLEM_SIZE = 512 };

enum {
    CONSUMER = 1U << KAFKA_USE_CONSUMER,
    PRODUCER = 1U << KAFKA_USE_PRODUCER,
    READER = 1U << KAFKA_USE_READER,
    ALL = CONSUMER | PRODUCER | READER,
};

struct setting {
    unsigned uses;
    const char *name, *value;
};

/* --- what is refused ------------------------------------------------------ */

/* `only` is what may be set all the same; NULL: nothing. */
static const struct refusal {
    unsigned uses;
    const char *name;
    const char *only[4];
    const char *why;
} refusals[] = {
    {CONSUMER | READER,
     "group.id",
     {NULL},
     "the group belongs to the route (source.kafka.group)"},
    {CONSUMER,
     "enable.auto.offset.store",
     {"false"},
     "offsets of messages that are not settled would be committed"},
    {CONSUMER,
     "enable.auto.commit",
     {"true"},
     "the offsets of settled messages would not be committed"},
    {CONSUMER,
     "auto.commit.enable",
     {"true"},
     "the offsets of settled messages would not be committed"},
    {CONSUMER,
     "enable.partition.eof",
     {"false"},
     "the end of a partition is not a message"},
    {PRODUCER,
     "acks",
     {"all", "-1"},
     "what is told to be written could be lost"},
    {PRODUCER,
     "request.required.acks",
     {"all", "-1"},
     "what is told to be written could be lost"},
    {PRODUCER,
     "enable.idempotence",
     {"true"},
     "a message could be written twice"},
    {PRODUCER, "transactional.id", {NULL}, "onced writes no transactions"},
    {PRODUCER,
     "delivery.report.only.error",
     {"false"},
     "onced waits for the report of what was written"},
    {ALL, "log.queue", {"false"}, "nothing reads that queue"},
    {ALL, "enabled_events", {NULL}, "onced takes callbacks, not events"},
};

static bool is_one_of(const char *value, const char *const *only)
{
    while (*only != NULL) {
        if (strcmp(value, *only) == 0) {
            return true;
        }
        only++;
    }
    return false;
}

const char *kafka_refused(enum kafka_use use, const char *name,
                          const char *value)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *refusal = &refusals[i];

        if ((refusal->uses & 1U << use) != 0 &&
            strcmp(refusal->name, name) == 0 &&
            !is_one_of(value, refusal->only)) {
            return refusal->why;
        }
    }
    return NULL;
}

bool kafka_is_secret(const char *name)
{
    static const char *const marks[] = {
        "password", "passphrase",         "secret",
        ".pem",     "oauthbearer.config", "credential"};

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (strstr(name, marks[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* --- defaults ------------------------------------------------------------- */

static const struct setting defaults[] = {
    {ALL, "client.id", "onced"},
    {ALL, "socket.keepalive.enable", "true"},
#if RD_KAFKA_VERSION < 0x020a00ff
    {ALL, "socket.nagle.disable", "true"},
#endif
    /* A topic that is made later, and more partitions, are seen by it. */
    {CONSUMER | READER, "topic.metadata.refresh.interval.ms", "10000"},
    {CONSUMER, "auto.commit.interval.ms", "1000"},
    /* It ends while a fetch waits for more. */
    {READER, "fetch.wait.max.ms", "50"},
    /* Each message is waited for; and keys go where those of Java's producers
     * go. A topic that is not there is told before a handler gives up. */
    {PRODUCER, "linger.ms", "0.1"},
    {PRODUCER, "partitioner", "murmur2_random"},
    {PRODUCER, "topic.metadata.propagation.max.ms", "5000"},
    {CONSUMER | READER, "auto.offset.reset", "earliest"},
/* A threshold that is hit stops the fetches of a partition for
 * fetch.queue.backoff.ms, before 2.2.0 for a whole second: there the queue
 * must last that long. Both count for each partition. */
#if RD_KAFKA_VERSION < 0x020200ff
    {CONSUMER | READER, "queued.min.messages", "100000"},
    {CONSUMER | READER, "queued.max.messages.kbytes", "16384"},
#else
    {CONSUMER | READER, "fetch.queue.backoff.ms", "10"},
    {CONSUMER | READER, "queued.min.messages", "10000"},
    {CONSUMER | READER, "queued.max.messages.kbytes", "4096"},
#endif
};

/* Those of the classic group protocol: the other one refuses them. */
static const struct setting classic_defaults[] = {
    {CONSUMER, "session.timeout.ms", "10000"},
#if RD_KAFKA_VERSION < 0x020a01ff
    {CONSUMER, "partition.assignment.strategy", "range,roundrobin"},
#else
    {CONSUMER, "partition.assignment.strategy", "cooperative-sticky"},
#endif
};

static const struct setting forced[] = {
    {CONSUMER, "enable.auto.offset.store", "false"},
    {CONSUMER, "enable.auto.commit", "true"},
    {CONSUMER, "enable.partition.eof", "false"},
    {PRODUCER, "acks", "all"},
    {PRODUCER, "enable.idempotence", "true"},
    {READER, "enable.auto.commit", "false"},
    {READER, "enable.auto.offset.store", "false"},
    {READER, "enable.partition.eof", "true"},
};

const char *kafka_cluster_setting(const struct kafka_cluster *cluster,
                                  const char *name)
{
    for (size_t i = cluster->n_settings; i > 0; i--) {
        if (strcmp(cluster->settings[i - 1][0], name) == 0) {
            return cluster->settings[i - 1][1];
        }
    }
    return NULL;
}

void kafka_conf_force(rd_kafka_conf_t *conf, const char *name,
                      const char *value)
{
    char why[PROBLEM_SIZE];

    CHECK(rd_kafka_conf_set(conf, name, value, why, sizeof why) ==
          RD_KAFKA_CONF_OK);
}

static void set_all(rd_kafka_conf_t *conf, enum kafka_use use,
                    const struct setting *settings, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((settings[i].uses & 1U << use) != 0) {
            kafka_conf_force(conf, settings[i].name, settings[i].value);
        }
    }
}

/* --- what the library has to say ------------------------------------------ */

static enum log_level level_of(int severity, const char *facility,
                               const char *text)
{
    /* One cluster serves consumers and producers: what is set for the others
     * is none of this one's business. */
    if (strcmp(facility, "CONFWARN") == 0 &&
        strstr(text, "will be ignored") != NULL) {
        return LOG_DEBUG;
    }
    if (severity <= 2) {
        return LOG_ERROR;
    }
    if (severity <= 4) {
        return LOG_WARN;
    }
    return severity <= 6 ? LOG_INFO : LOG_DEBUG;
}

static void on_log(const rd_kafka_t *client, int severity, const char *facility,
                   const char *text)
{
    struct log_line line;

    if (log_begin(&line, level_of(severity, facility, text), "librdkafka",
                  text)) {
        log_str(&line, "facility", slice_of(facility));
        if (client != NULL) {
            log_str(&line, "client", slice_of(rd_kafka_name(client)));
        }
        log_end(&line);
    }
}

const char *kafka_version_problem(void)
{
    int version = rd_kafka_version();

    if (version < 0x020200ff) {
        return "librdkafka before 2.2.0 stops to fetch for a second whenever a "
               "partition's queue is full, and has errors in cooperative "
               "rebalances: 2.10.1 or later is better";
    }
    if (version < 0x020400ff) {
        return "librdkafka before 2.4.0 can go back in a partition when the "
               "subscription changes, and hang at the end: 2.10.1 or later is "
               "better";
    }
    return NULL;
}

/* --- configurations ------------------------------------------------------- */

static bool set_one(rd_kafka_conf_t *conf, enum kafka_use use, const char *name,
                    const char *value, struct err *err)
{
    char why[PROBLEM_SIZE];
    const char *refused = kafka_refused(use, name, value);

    if (refused != NULL) {
        return err_set(err, ERR_CONFIG, "\"%s\" may not be set%s: %s", name,
                       strcmp(name, "group.id") == 0 ? "" : " like that",
                       refused);
    }
    switch (rd_kafka_conf_set(conf, name, value, why, sizeof why)) {
    case RD_KAFKA_CONF_OK:
        return true;
    case RD_KAFKA_CONF_UNKNOWN:
        return err_set(err, ERR_CONFIG,
                       "\"%s\" is not a property of librdkafka %s", name,
                       rd_kafka_version_str());
    case RD_KAFKA_CONF_INVALID:
        return kafka_is_secret(name)
                   ? err_set(err, ERR_CONFIG,
                             "\"%s\": librdkafka does not take the value", name)
                   : err_set(err, ERR_CONFIG, "\"%s\": %.*s", name,
                             (int)strcspn(why, "\n"), why);
    }
    UNREACHABLE("every result has returned");
}

static bool set_configured(rd_kafka_conf_t *conf, enum kafka_use use,
                           const struct kafka_cluster *cluster, struct err *err)
{
    for (size_t i = 0; i < cluster->n_settings; i++) {
        if (!set_one(conf, use, cluster->settings[i][0],
                     cluster->settings[i][1], err)) {
            return err_wrap(err, "kafka cluster \"%s\"", cluster->name);
        }
    }
    return true;
}

bool kafka_conf_new(rd_kafka_conf_t **out, enum kafka_use use,
                    const struct kafka_cluster *cluster, struct err *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const char *protocol = kafka_cluster_setting(cluster, "group.protocol");

    rd_kafka_conf_set_log_cb(conf, on_log);
    set_all(conf, use, defaults, sizeof defaults / sizeof defaults[0]);
    if (protocol == NULL || strcmp(protocol, "consumer") != 0) {
        set_all(conf, use, classic_defaults,
                sizeof classic_defaults / sizeof classic_defaults[0]);
    }
    if (!set_configured(conf, use, cluster, err)) {
        rd_kafka_conf_destroy(conf);
        return false;
    }
    set_all(conf, use, forced, sizeof forced / sizeof forced[0]);
    *out = conf;
    return true;
}
