/* SPDX-License-Identifier: MIT */
#include "base/metrics.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = 1000, NAME_MAX_LEN = 200 };

/* What a strict reader of the text format sees. */
struct sample {
    char series[NAME_MAX_LEN]; /* as written, with its labels */
    double value;
};

struct exposition {
    struct buf text;
    struct sample samples[SAMPLES_MAX];
    size_t n_samples;
    size_t n_metrics;
    char name[NAME_MAX_LEN]; /* of the metric that is being read */
    char type[16];
    double bound; /* of the last bucket read, and its count */
    double count;
};

static struct exposition seen;

static const char *const routes[] = {"stripe", "we\"ird\\ro\nute"};
static const char *const outcomes[] = {"accepted", "duplicate"};
static const char *const results[] = {"success"};
static const char *const states[] = {"PENDING", "DEAD"};
static const char *const settled[] = {"SUCCEEDED,", "DEAD,exhausted",
                                      "DEAD,too-old"};
static const char *const failures[] = {"signature"};
static const char *const versions[] = {"1.2.3,dirty"};
static const char *const published[] = {"failed", "published"};

static struct metrics_labels all_labels(void)
{
    struct metrics_labels labels = {.routes = routes, .n_routes = 2};
    const struct {
        enum metric metric;
        const char *const *values;
        size_t n;
    } sets[] = {
        {METRIC_DELIVERIES, outcomes, 2},
        {METRIC_ATTEMPTS, results, 1},
        {METRIC_EVENTS, states, 2},
        {METRIC_SETTLED, settled, 3},
        {METRIC_BUILD_INFO, versions, 1},
        {METRIC_VERIFY_FAILURES, failures, 1},
        {METRIC_DEAD_LETTERS_PUBLISHED, published, 2},
    };

    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        labels.values[sets[i].metric] = sets[i].values;
        labels.n_values[sets[i].metric] = sets[i].n;
    }
    return labels;
}

static void start(void)
{
    const struct metrics_labels labels = all_labels();

    metrics_start(&labels);
}

static const char *read_name(const char *at, char name[NAME_MAX_LEN])
{
    size_t n = 0;

    cr_assert(isalpha((unsigned char)*at) || *at == '_', "name at: %s", at);
    while (isalnum((unsigned char)at[n]) || at[n] == '_') {
        n++;
    }
    cr_assert_lt(n, NAME_MAX_LEN);
    memcpy(name, at, n);
    name[n] = '\0';
    return at + n;
}

/* From the opening quote to behind the closing one. */
static const char *read_quoted(const char *at)
{
    cr_assert_eq(*at, '"');
    at++;
    while (*at != '"') {
        cr_assert_neq(*at, '\0');
        cr_assert_neq(*at, '\n');
        if (*at == '\\') {
            at++;
            cr_assert_not_null(strchr("\\\"n", *at), "escape at: %s", at);
        }
        at++;
    }
    return at + 1;
}

static const char *read_labels(const char *at, double *bound)
{
    char name[NAME_MAX_LEN];

    do {
        at = read_name(at + 1, name);
        cr_assert_eq(*at, '=');
        at++;
        if (strcmp(name, "le") == 0) {
            *bound = strtod(at + 1, NULL);
        }
        at = read_quoted(at);
    } while (*at == ',');
    cr_assert_eq(*at, '}');
    return at + 1;
}

static void check_histogram(const char *suffix, double bound, double value)
{
    if (strcmp(suffix, "_bucket") == 0) {
        cr_assert(!isnan(bound));
        if (isinf(seen.bound)) {
            seen.count = 0;
        } else {
            cr_assert_gt(bound, seen.bound);
        }
        cr_assert_geq(value, seen.count);
        seen.bound = bound;
        seen.count = value;
    } else if (strcmp(suffix, "_count") == 0) {
        cr_assert(isinf(seen.bound));
        cr_assert_eq(value, seen.count);
    } else {
        cr_assert_str_eq(suffix, "_sum");
    }
}

static void read_sample(const char *line)
{
    struct sample *sample = &seen.samples[seen.n_samples];
    char name[NAME_MAX_LEN];
    double bound = NAN;
    const char *at = read_name(line, name);
    char *end;

    cr_assert_lt(seen.n_samples, SAMPLES_MAX);
    cr_assert(strncmp(name, seen.name, strlen(seen.name)) == 0, "%s", line);
    if (*at == '{') {
        at = read_labels(at, &bound);
    }
    cr_assert_eq(*at, ' ');
    cr_assert_lt(at - line, NAME_MAX_LEN);
    memcpy(sample->series, line, (size_t)(at - line));
    for (size_t i = 0; i < seen.n_samples; i++) {
        cr_assert_str_neq(sample->series, seen.samples[i].series);
    }
    sample->value = strtod(at + 1, &end);
    cr_assert(end > at + 1 && *end == '\0', "value in: %s", line);
    if (strcmp(seen.type, "histogram") == 0) {
        check_histogram(name + strlen(seen.name), bound, sample->value);
    } else {
        cr_assert_str_eq(name, seen.name);
    }
    seen.n_samples++;
}

/* Each metric opens with HELP, and TYPE right behind it. */
static void read_line(const char *line)
{
    static char helped[NAME_MAX_LEN];

    if (strncmp(line, "# HELP ", 7) == 0) {
        cr_assert_eq(*read_name(line + 7, helped), ' ');
        return;
    }
    if (strncmp(line, "# TYPE ", 7) == 0) {
        const char *type = read_name(line + 7, seen.name) + 1;

        cr_assert_str_eq(seen.name, helped);
        cr_assert(strcmp(type, "counter") == 0 || strcmp(type, "gauge") == 0 ||
                  strcmp(type, "histogram") == 0);
        (void)strncpy(seen.type, type, sizeof seen.type - 1);
        seen.bound = INFINITY;
        seen.n_metrics++;
        return;
    }
    cr_assert_str_eq(seen.name, helped);
    read_sample(line);
}

static void read_back(void)
{
    char *at;

    buf_free(&seen.text);
    memset(&seen, 0, sizeof seen);
    metrics_write(&seen.text);
    at = seen.text.data;
    cr_assert_eq(at[seen.text.len - 1], '\n');
    while (at < seen.text.data + seen.text.len) {
        char *end = memchr(at, '\n', seen.text.len);

        *end = '\0';
        read_line(at);
        at = end + 1;
    }
}

static double value_of(const char *series)
{
    for (size_t i = 0; i < seen.n_samples; i++) {
        if (strcmp(seen.samples[i].series, series) == 0) {
            return seen.samples[i].value;
        }
    }
    cr_assert_fail("no series %s", series);
    return 0;
}

static void tear_down(void)
{
    buf_free(&seen.text);
    metrics_stop();
}

TestSuite(metrics, .fini = tear_down);

Test(metrics, updates_before_start_are_dropped)
{
    struct buf out = BUF_INIT;

    metric_add(METRIC_DELIVERIES, 7, 7, 1);
    metric_set(METRIC_STORE_BYTES, 0, 0, 1);
    metric_observe(METRIC_COMMIT_SECONDS, 0, 1);
    metrics_write(&out);
    cr_assert_eq(out.len, 0);
    start();
    read_back();
    cr_assert_eq(value_of("onced_store_bytes"), 0);
    cr_assert_eq(value_of("onced_commit_seconds_count"), 0);
}

Test(metrics, every_series_is_there_from_the_start_at_zero)
{
    start();
    read_back();
    cr_assert_eq(seen.n_metrics, METRIC_COUNT);
    for (size_t i = 0; i < seen.n_samples; i++) {
        cr_assert_eq(seen.samples[i].value, 0);
    }
    (void)value_of(
        "onced_deliveries_total{route=\"stripe\",outcome=\"duplicate\"}");
    (void)value_of("onced_oldest_pending_seconds{route=\"stripe\"}");
    (void)value_of(
        "onced_event_seconds_bucket{route=\"stripe\",le=\"0.0005\"}");
    (void)value_of("onced_event_seconds_bucket{route=\"stripe\",le=\"60\"}");
    (void)value_of("onced_inbox_items");
}

Test(metrics, each_series_counts_alone)
{
    start();
    metric_add(METRIC_DELIVERIES, 0, 0, 1);
    metric_add(METRIC_DELIVERIES, 0, 1, 2);
    metric_add(METRIC_DELIVERIES, 1, 0, 4);
    metric_add(METRIC_DELIVERIES, 1, 1, 8);
    metric_add(METRIC_DELIVERIES, 1, 1, UINT64_C(1) << 40);
    read_back();
    cr_assert_eq(value_of("onced_deliveries_total{route=\"stripe\",outcome=\""
                          "accepted\"}"),
                 1);
    cr_assert_eq(value_of("onced_deliveries_total{route=\"stripe\",outcome=\""
                          "duplicate\"}"),
                 2);
    cr_assert_eq(value_of("onced_deliveries_total{route=\"we\\\"ird\\\\ro"
                          "\\nute\",outcome=\"accepted\"}"),
                 4);
    cr_assert_eq(value_of("onced_deliveries_total{route=\"we\\\"ird\\\\ro"
                          "\\nute\",outcome=\"duplicate\"}"),
                 1099511627784.0);
}

Test(metrics, a_value_of_two_labels_is_parted)
{
    start();
    metric_add(METRIC_SETTLED, 0, 0, 5);
    metric_add(METRIC_SETTLED, 0, 2, 6);
    read_back();
    cr_assert_eq(value_of("onced_settled_total{route=\"stripe\",state=\""
                          "SUCCEEDED\",reason=\"\"}"),
                 5);
    cr_assert_eq(value_of("onced_settled_total{route=\"stripe\",state=\"DEAD"
                          "\",reason=\"exhausted\"}"),
                 0);
    cr_assert_eq(value_of("onced_settled_total{route=\"stripe\",state=\"DEAD"
                          "\",reason=\"too-old\"}"),
                 6);
}

Test(metrics, a_single_label_keeps_its_commas)
{
    start();
    metric_set(METRIC_BUILD_INFO, 0, 0, 1);
    read_back();
    cr_assert_eq(value_of("onced_build_info{version=\"1.2.3,dirty\"}"), 1);
}

Test(metrics, gauges_keep_the_last_number_exactly)
{
    const double numbers[] = {
        0.1,      -2.5,      1e300, 17179869184.0, 1.0 / 3,
        INFINITY, -INFINITY, 0,     1764531483.12, 5e-324,
    };

    start();
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        metric_set(METRIC_STORE_BYTES, 0, 0, numbers[i]);
        read_back();
        cr_assert(value_of("onced_store_bytes") == numbers[i], "row %zu", i);
    }
    metric_set(METRIC_STORE_BYTES, 0, 0, NAN);
    read_back();
    cr_assert(isnan(value_of("onced_store_bytes")));
}

Test(metrics, numbers_are_short_where_they_can_be)
{
    struct buf out = BUF_INIT;

    start();
    metric_set(METRIC_STORE_BYTES, 0, 0, 0.1);
    metrics_write(&out);
    cr_assert_not_null(strstr(buf_cstr(&out), "\nonced_store_bytes 0.1\n"));
    buf_free(&out);
}

Test(metrics, a_bound_belongs_to_its_bucket)
{
    const struct {
        double amount;
        double at_most_5ms;
        double at_most_10ms;
        double at_most_60s;
        double all;
    } rows[] = {
        {0.005, 1, 1, 1, 1}, {0.0051, 1, 2, 2, 2}, {60, 1, 2, 3, 3},
        {60.1, 1, 2, 3, 4},  {-1, 2, 3, 4, 5},     {NAN, 3, 4, 5, 6},
    };

    start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        metric_observe(METRIC_COMMIT_SECONDS, 0, rows[i].amount);
        read_back();
        cr_assert_eq(value_of("onced_commit_seconds_bucket{le=\"0.005\"}"),
                     rows[i].at_most_5ms, "row %zu", i);
        cr_assert_eq(value_of("onced_commit_seconds_bucket{le=\"0.01\"}"),
                     rows[i].at_most_10ms, "row %zu", i);
        cr_assert_eq(value_of("onced_commit_seconds_bucket{le=\"60\"}"),
                     rows[i].at_most_60s, "row %zu", i);
        cr_assert_eq(value_of("onced_commit_seconds_count"), rows[i].all);
    }
    cr_assert_float_eq(value_of("onced_commit_seconds_sum"), 120.1101, 1e-9);
}

Test(metrics, histograms_of_routes_and_sizes)
{
    start();
    metric_observe(METRIC_HANDLER_SECONDS, 1, 0.25);
    metric_observe(METRIC_BATCH_ITEMS, 0, 1024);
    metric_observe(METRIC_BATCH_ITEMS, 0, 1025);
    read_back();
    cr_assert_eq(value_of("onced_handler_seconds_sum{route=\"we\\\"ird\\\\ro"
                          "\\nute\"}"),
                 0.25);
    cr_assert_eq(value_of("onced_handler_seconds_count{route=\"stripe\"}"), 0);
    cr_assert_eq(value_of("onced_batch_items_bucket{le=\"512\"}"), 0);
    cr_assert_eq(value_of("onced_batch_items_bucket{le=\"1024\"}"), 1);
    cr_assert_eq(value_of("onced_batch_items_bucket{le=\"+Inf\"}"), 2);
    cr_assert_eq(value_of("onced_batch_items_sum"), 2049);
}

Test(metrics, without_routes_their_metrics_have_no_series)
{
    struct metrics_labels labels = all_labels();

    labels.n_routes = 0;
    metrics_start(&labels);
    read_back();
    cr_assert_eq(seen.n_metrics, METRIC_COUNT);
    cr_assert_eq(value_of("onced_inbox_items"), 0);
    for (size_t i = 0; i < seen.n_samples; i++) {
        cr_assert_null(strstr(seen.samples[i].series, "route="));
    }
}

/* --- labels that are known at run time only ------------------------------- */

static bool has_series(const char *part)
{
    for (size_t i = 0; i < seen.n_samples; i++) {
        if (strstr(seen.samples[i].series, part)) {
            return true;
        }
    }
    return false;
}

Test(metrics, series_of_run_time_are_replaced_all_at_once)
{
    const struct metric_series first[] = {
        {{"g", "orders", "0", ""}, 12},
        {{"g", "orders", "1", ""}, 0.5},
        {{"g\"\\\n,", "orders", "0", "other"}, 3},
    };
    const struct metric_series second[] = {{{"g", "orders", "1", ""}, 7}};

    metric_replace(METRIC_KAFKA_LAG, first, 3);
    start();
    read_back();
    cr_assert(!has_series("onced_kafka"));
    metric_replace(METRIC_KAFKA_LAG, first, 3);
    metric_replace(METRIC_KAFKA_UNSETTLED, second, 1);
    read_back();
    cr_assert_eq(seen.n_metrics, METRIC_COUNT);
    cr_assert_eq(value_of("onced_kafka_lag{group=\"g\",topic=\"orders\","
                          "partition=\"0\"}"),
                 12);
    cr_assert_eq(value_of("onced_kafka_lag{group=\"g\",topic=\"orders\","
                          "partition=\"1\"}"),
                 0.5);
    cr_assert_eq(value_of("onced_kafka_lag{group=\"g\\\"\\\\\\n,\",topic="
                          "\"orders\",partition=\"0\",cluster=\"other\"}"),
                 3);
    metric_replace(METRIC_KAFKA_LAG, second, 1);
    read_back();
    cr_assert_eq(value_of("onced_kafka_lag{group=\"g\",topic=\"orders\","
                          "partition=\"1\"}"),
                 7);
    cr_assert(!has_series("partition=\"0\""));
    cr_assert_eq(value_of("onced_kafka_unsettled{group=\"g\",topic=\"orders\","
                          "partition=\"1\"}"),
                 7);
    metric_replace(METRIC_KAFKA_LAG, NULL, 0);
    read_back();
    cr_assert(!has_series("onced_kafka_lag"));
}

Test(metrics, series_of_run_time_are_bounded)
{
    enum { MANY = METRIC_SERIES_MAX + 5 };
    static struct metric_series series[MANY];
    static char names[MANY][8];
    struct buf out = BUF_INIT;
    size_t lines = 0;

    for (int i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "%d", i);
        series[i] = (struct metric_series){{"g", "t", names[i], ""}, 1};
    }
    start();
    metric_replace(METRIC_KAFKA_LAG, series, MANY);
    metrics_write(&out);
    for (const char *at = strstr(buf_cstr(&out), "\nonced_kafka_lag{");
         at != NULL; at = strstr(at + 1, "\nonced_kafka_lag{")) {
        lines++;
    }
    cr_assert_eq(lines, METRIC_SERIES_MAX);
    buf_free(&out);
}

Test(metrics, replacing_what_has_no_run_time_labels_aborts, .signal = SIGABRT)
{
    metric_replace(METRIC_STORE_BYTES, NULL, 0);
}

enum { THREADS = 4, UPDATES = 20000 };

static void *replace(void *arg)
{
    const struct metric_series one = {{"g", "t", "0", ""}, 1};

    for (int i = 0; i < UPDATES / 10; i++) {
        metric_replace(METRIC_KAFKA_LAG, &one, 1);
    }
    return arg;
}

/* Never a part of a set, never two sets. */
Test(metrics, series_of_run_time_may_be_replaced_by_any_thread)
{
    pthread_t threads[THREADS];

    start();
    metric_replace(METRIC_KAFKA_LAG,
                   &(struct metric_series){{"g", "t", "0", ""}, 1}, 1);
    for (size_t i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, replace, NULL), 0);
    }
    for (int i = 0; i < 20; i++) {
        read_back();
        cr_assert_eq(value_of("onced_kafka_lag{group=\"g\",topic=\"t\","
                              "partition=\"0\"}"),
                     1);
    }
    for (size_t i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    }
}

static void *update(void *arg)
{
    for (int i = 0; i < UPDATES; i++) {
        metric_add(METRIC_DELIVERIES, 0, 0, 1);
        metric_observe(METRIC_EVENT_SECONDS, 0, 0.5);
    }
    return arg;
}

Test(metrics, no_update_of_any_thread_is_lost)
{
    pthread_t threads[THREADS];

    start();
    for (size_t i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, update, NULL), 0);
    }
    read_back();
    for (size_t i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    }
    read_back();
    cr_assert_eq(value_of("onced_deliveries_total{route=\"stripe\",outcome=\""
                          "accepted\"}"),
                 THREADS * UPDATES);
    cr_assert_eq(value_of("onced_event_seconds_count{route=\"stripe\"}"),
                 THREADS * UPDATES);
    cr_assert_eq(value_of("onced_event_seconds_sum{route=\"stripe\"}"),
                 THREADS * UPDATES * 0.5);
}

Test(metrics, the_page_names_every_metric_with_its_labels)
{
    struct buf out = BUF_INIT;
    const char *text;

    metrics_write_docs(&out);
    text = buf_cstr(&out);
    cr_assert_not_null(
        strstr(text, "| `onced_settled_total` | counter | `route`, `state`, "
                     "`reason` | Events settled"));
    cr_assert_not_null(
        strstr(text, "| `onced_build_info` | gauge | `version` | "));
    cr_assert_not_null(
        strstr(text, "| `onced_commit_seconds` | histogram |  "));
    cr_assert_not_null(strstr(text,
                              "| `onced_kafka_lag` | gauge | `group`, `topic`, "
                              "`partition`, `cluster` | "));
    cr_assert_not_null(
        strstr(text, "| `onced_kafka_rebalances_total` | counter | `group`, "
                     "`kind`, `cluster` | "));
    cr_assert_not_null(strstr(text, ": 0.0005, 0.001, 0.0025, "));
    cr_assert_not_null(strstr(text, ": 1, 2, 4, 8, 16, "));
    buf_free(&out);
}

Test(metrics, a_route_that_is_not_there_aborts, .signal = SIGABRT)
{
    start();
    metric_add(METRIC_DELIVERIES, 2, 0, 1);
}

Test(metrics, a_value_that_is_not_there_aborts, .signal = SIGABRT)
{
    start();
    metric_add(METRIC_DELIVERIES, 0, 2, 1);
}

Test(metrics, adding_to_a_gauge_aborts, .signal = SIGABRT)
{
    metric_add(METRIC_STORE_BYTES, 0, 0, 1);
}

Test(metrics, a_label_without_values_aborts, .signal = SIGABRT)
{
    struct metrics_labels labels = all_labels();

    labels.values[METRIC_ATTEMPTS] = NULL;
    metrics_start(&labels);
}

Test(metrics, a_value_with_too_few_parts_aborts, .signal = SIGABRT)
{
    static const char *const bare[] = {"SUCCEEDED"};
    struct metrics_labels labels = all_labels();

    labels.values[METRIC_SETTLED] = bare;
    labels.n_values[METRIC_SETTLED] = 1;
    metrics_start(&labels);
}
