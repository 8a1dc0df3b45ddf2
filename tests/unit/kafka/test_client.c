/* SPDX-License-Identifier: MIT */
#include "kafka/client.h"

#include <criterion/criterion.h>
#include <string.h>

static bool make(enum kafka_use use, const char *name, const char *value,
                 rd_kafka_conf_t **conf, struct err *err)
{
    const char *const settings[][2] = {{name, value}};
    struct kafka_cluster cluster = {"main", settings, 1};

    return kafka_conf_new(conf, use, &cluster, err);
}

static void expect_setting(const rd_kafka_conf_t *conf, const char *name,
                           const char *expected)
{
    char value[128];
    size_t size = sizeof value;

    cr_assert_eq(rd_kafka_conf_get(conf, name, value, &size), RD_KAFKA_CONF_OK);
    cr_expect_str_eq(value, expected, "%s", name);
}

Test(client, properties_that_break_a_promise_are_refused)
{
    static const struct {
        enum kafka_use use;
        const char *name, *value;
        bool refused;
    } cases[] = {
        {KAFKA_USE_CONSUMER, "enable.auto.offset.store", "true", true},
        {KAFKA_USE_CONSUMER, "enable.auto.offset.store", "false", false},
        {KAFKA_USE_CONSUMER, "enable.auto.commit", "false", true},
        {KAFKA_USE_CONSUMER, "enable.partition.eof", "true", true},
        {KAFKA_USE_CONSUMER, "group.id", "g", true},
        {KAFKA_USE_CONSUMER, "session.timeout.ms", "45000", false},
        {KAFKA_USE_CONSUMER, "acks", "1", false},
        {KAFKA_USE_PRODUCER, "acks", "1", true},
        {KAFKA_USE_PRODUCER, "acks", "-1", false},
        {KAFKA_USE_PRODUCER, "request.required.acks", "0", true},
        {KAFKA_USE_PRODUCER, "enable.idempotence", "false", true},
        {KAFKA_USE_PRODUCER, "transactional.id", "x", true},
        {KAFKA_USE_PRODUCER, "enable.auto.commit", "false", false},
        {KAFKA_USE_READER, "log.queue", "true", true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rd_kafka_conf_t *conf = NULL;
        struct err err = {0};
        bool made =
            make(cases[i].use, cases[i].name, cases[i].value, &conf, &err);

        cr_expect_eq(made, !cases[i].refused, "%s=%s: %s", cases[i].name,
                     cases[i].value, err.text);
        cr_expect_eq(
            kafka_refused(cases[i].use, cases[i].name, cases[i].value) != NULL,
            cases[i].refused);
        if (made) {
            rd_kafka_conf_destroy(conf);
        } else {
            cr_expect_eq(err.kind, ERR_CONFIG);
            cr_expect(strstr(err.text, cases[i].name) != NULL, "%s", err.text);
        }
    }
}

Test(client, unknown_properties_and_bad_values_are_named)
{
    rd_kafka_conf_t *conf;
    struct err err;

    cr_assert_not(make(KAFKA_USE_CONSUMER, "no.such.thing", "1", &conf, &err));
    cr_expect_eq(err.kind, ERR_CONFIG);
    cr_expect(strstr(err.text, "kafka cluster \"main\": \"no.such.thing\" is "
                               "not a property") != NULL,
              "%s", err.text);
    cr_assert_not(
        make(KAFKA_USE_CONSUMER, "session.timeout.ms", "soon", &conf, &err));
    cr_expect(strstr(err.text, "session.timeout.ms") != NULL, "%s", err.text);
}

Test(client, a_secret_is_not_in_the_error)
{
    rd_kafka_conf_t *conf;
    struct err err;

    cr_assert_not(
        make(KAFKA_USE_CONSUMER, "no.such.password", "hunter2", &conf, &err));
    cr_expect(strstr(err.text, "hunter2") == NULL, "%s", err.text);
    cr_assert_not(
        make(KAFKA_USE_CONSUMER, "ssl.key.pem\n", "hunter2", &conf, &err));
    cr_expect(strstr(err.text, "hunter2") == NULL, "%s", err.text);
    cr_expect(kafka_is_secret("sasl.password"));
    cr_expect(kafka_is_secret("ssl.key.pem"));
    cr_expect(kafka_is_secret("sasl.oauthbearer.client.secret"));
    cr_expect_not(kafka_is_secret("bootstrap.servers"));
}

Test(client, the_configured_wins_over_defaults_and_the_promise_over_both)
{
    rd_kafka_conf_t *conf;
    struct err err;

    cr_assert(
        make(KAFKA_USE_CONSUMER, "auto.offset.reset", "error", &conf, &err));
    expect_setting(conf, "session.timeout.ms", "10000");
    expect_setting(conf, "enable.auto.offset.store", "false");
    expect_setting(conf, "enable.auto.commit", "true");
    expect_setting(conf, "auto.offset.reset", "error");
    rd_kafka_conf_destroy(conf);
    cr_assert(
        make(KAFKA_USE_CONSUMER, "session.timeout.ms", "6000", &conf, &err));
    expect_setting(conf, "session.timeout.ms", "6000");
    expect_setting(conf, "auto.offset.reset", "smallest"); /* earliest */
    rd_kafka_conf_destroy(conf);
    cr_assert(make(KAFKA_USE_PRODUCER, "linger.ms", "7", &conf, &err));
    expect_setting(conf, "enable.idempotence", "true");
    expect_setting(conf, "acks", "-1");
    rd_kafka_conf_destroy(conf);
    cr_assert(make(KAFKA_USE_READER, "client.id", "x", &conf, &err));
    expect_setting(conf, "enable.partition.eof", "true");
    expect_setting(conf, "enable.auto.commit", "false");
    rd_kafka_conf_destroy(conf);
}
