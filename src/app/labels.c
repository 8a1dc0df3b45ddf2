/* SPDX-License-Identifier: MIT */
#include "app/labels.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/metrics.h"
#include "core/record.h"
#include "engine/engine.h"
#include "source/http.h"
#include "source/kafka.h"
#include "source/verify.h"

enum {
    STATES = RECORD_STATES - RECORD_PENDING,
    SETTLED_STATES = RECORD_STATES - RECORD_SUCCEEDED,
    SETTLED_LABELS = SETTLED_STATES * REASONS,
    LABEL_SIZE = 32,
};

static const char *route_names[STORE_ROUTES_MAX];
static const char *states[STATES];
static char settled_text[SETTLED_LABELS][LABEL_SIZE];
static const char *settled[SETTLED_LABELS];
static const char *verify[VERIFY_STATUSES];
static const char *outcomes[METRIC_LABEL_VALUES_MAX];
static size_t n_outcomes;
static size_t kafka_outcomes[METRIC_LABEL_VALUES_MAX];
/* In the order of dead_letter.published. */
static const char *const published[] = {"failed", "published"};

static void set_values(struct metrics_labels *labels, enum metric metric,
                       const char *const *values, size_t n)
{
    labels->values[metric] = values;
    labels->n_values[metric] = n;
}

static size_t count(const char *const *names)
{
    size_t n = 0;

    while (names[n] != NULL) {
        n++;
    }
    return n;
}

static void fill_states(void)
{
    for (int i = 0; i < STATES; i++) {
        states[i] = record_state_name((enum record_state)(RECORD_PENDING + i));
    }
    for (int i = 0; i < SETTLED_LABELS; i++) {
        enum record_state state =
            (enum record_state)(RECORD_SUCCEEDED + i / REASONS);

        (void)snprintf(settled_text[i], LABEL_SIZE, "%s,%s",
                       record_state_name(state),
                       reason_name((enum reason)(i % REASONS)));
        settled[i] = settled_text[i];
    }
    for (int i = 0; i < VERIFY_STATUSES; i++) {
        verify[i] = verify_status_name((enum verify_status)i);
    }
}

/* The place of an outcome, which is added where it is new. */
static size_t outcome_index(const char *outcome)
{
    size_t i = 0;

    while (i < n_outcomes && strcmp(outcomes[i], outcome) != 0) {
        i++;
    }
    CHECK(i < METRIC_LABEL_VALUES_MAX);
    outcomes[i] = outcome;
    n_outcomes += i == n_outcomes;
    return i;
}

/* One list for both sources: that of HTTP, which indexes it, and what only
 * Kafka has. */
static void fill_outcomes(void)
{
    for (size_t i = 0; http_source_outcomes[i] != NULL; i++) {
        (void)outcome_index(http_source_outcomes[i]);
    }
    for (size_t i = 0; kafka_source_outcomes[i] != NULL; i++) {
        kafka_outcomes[i] = outcome_index(kafka_source_outcomes[i]);
    }
}

const size_t *labels_kafka_outcomes(void)
{
    return kafka_outcomes;
}

void labels_start_metrics(const struct config *config)
{
    static const char *const versions[] = {ONCED_VERSION};
    struct metrics_labels labels = {
        .routes = route_names,
        .n_routes = config->n_routes,
    };

    CHECK(config->n_routes <= STORE_ROUTES_MAX);
    for (size_t i = 0; i < config->n_routes; i++) {
        route_names[i] = config->routes[i].name;
    }
    fill_states();
    fill_outcomes();
    set_values(&labels, METRIC_DELIVERIES, outcomes, n_outcomes);
    set_values(&labels, METRIC_ATTEMPTS, engine_attempt_results,
               count(engine_attempt_results));
    set_values(&labels, METRIC_EVENTS, states, STATES);
    set_values(&labels, METRIC_SETTLED, settled, SETTLED_LABELS);
    set_values(&labels, METRIC_VERIFY_FAILURES, verify, VERIFY_STATUSES);
    set_values(&labels, METRIC_DEAD_LETTERS_PUBLISHED, published,
               sizeof published / sizeof published[0]);
    set_values(&labels, METRIC_BUILD_INFO, versions, 1);
    metrics_start(&labels);
    metric_set(METRIC_BUILD_INFO, 0, 0, 1);
}
