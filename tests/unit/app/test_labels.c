/* SPDX-License-Identifier: MIT */
#include "app/labels.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics.h"
#include "source/http.h"
#include "source/kafka.h"

static struct buf out;

static void start(void)
{
    static char name[] = "a";
    static struct config_route route;
    static struct config config;

    route.name = name;
    config.routes = &route;
    config.n_routes = 1;
    labels_start_metrics(&config);
}

static void expect_outcome(const char *outcome, int count)
{
    char line[128];

    (void)snprintf(line, sizeof line,
                   "\nonced_deliveries_total{route=\"a\",outcome=\"%s\"} %d\n",
                   outcome, count);
    cr_expect(strstr(buf_cstr(&out), line) != NULL, "no%s", line);
}

/* Outcomes that both sources have are one series. */
Test(labels, each_source_counts_its_outcomes_under_their_names)
{
    start();
    for (size_t i = 0; http_source_outcomes[i] != NULL; i++) {
        metric_add(METRIC_DELIVERIES, 0, i, 1);
    }
    for (size_t i = 0; kafka_source_outcomes[i] != NULL; i++) {
        metric_add(METRIC_DELIVERIES, 0, labels_kafka_outcomes()[i], 2);
    }
    metrics_write(&out);
    expect_outcome("accepted", 3);
    expect_outcome("duplicate", 3);
    expect_outcome("unauthorized", 1);
    expect_outcome("too-large", 1);
    expect_outcome("undecodable", 2);
    expect_outcome("fenced", 2);
    buf_free(&out);
    metrics_stop();
}

Test(labels, a_dead_letter_was_published_or_not)
{
    start();
    metric_add(METRIC_DEAD_LETTERS_PUBLISHED, 0, true, 5);
    metrics_write(&out);
    cr_expect(strstr(buf_cstr(&out),
                     "onced_dead_letters_published_total{route=\"a\","
                     "result=\"failed\"} 0\n") != NULL);
    cr_expect(strstr(buf_cstr(&out),
                     "onced_dead_letters_published_total{route=\"a\","
                     "result=\"published\"} 5\n") != NULL);
    buf_free(&out);
    metrics_stop();
}
