/* SPDX-License-Identifier: MIT */
#include "app/kafka_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/config_internal.h"
#include "app/story.h"
#include "base/check.h"
#include "base/metrics.h"

struct partition {
    const char *cluster;
    struct kafka_partition_view view;
    char number[12];
};

struct partitions {
    struct partition *items;
    size_t n;
    const char *cluster; /* of those that are added now */
};

static void add_partition(void *ctx, const struct kafka_partition_view *view)
{
    struct partitions *all = ctx;
    struct partition *one;

    all->items = mem_grow(all->items, all->n + 1, sizeof *all->items);
    one = &all->items[all->n++];
    *one = (struct partition){.cluster = all->cluster, .view = *view};
    (void)snprintf(one->number, sizeof one->number, "%" PRId32,
                   view->partition);
}

static void add_source(void *ctx, const char *cluster,
                       struct kafka_source *source)
{
    struct partitions *all = ctx;

    all->cluster = cluster;
    kafka_source_each_partition(source, add_partition, all);
}

static bool knows_lag(const struct kafka_partition_view *view)
{
    return view->low_water >= 0 && view->log_end >= 0;
}

static int64_t head_age_ms(const struct kafka_partition_view *view,
                           int64_t now_ms)
{
    return view->head_since_ms > 0 && view->head_since_ms < now_ms
               ? now_ms - view->head_since_ms
               : 0;
}

/* --- metrics ------------------------------------------------------------- */

/* The cluster that has no name of its own needs no label. */
static const char *label_of(const char *cluster)
{
    return strcmp(cluster, CONFIG_DEFAULT_CLUSTER) == 0 ? "" : cluster;
}

/* False where it is not known. */
static bool number_of(enum metric metric, const struct kafka_partition_view *of,
                      int64_t now_ms, double *number)
{
    if (metric == METRIC_KAFKA_LAG) {
        *number = (double)of->lag;
        return knows_lag(of);
    }
    if (metric == METRIC_KAFKA_LOW_WATER) {
        *number = (double)of->low_water;
        return of->low_water >= 0;
    }
    if (metric == METRIC_KAFKA_UNSETTLED) {
        *number = (double)of->unsettled;
        return true;
    }
    CHECK(metric == METRIC_KAFKA_HEAD_AGE);
    *number = (double)head_age_ms(of, now_ms) / 1000;
    return true;
}

static void set_partitions(struct kafka_setup *setup, int64_t now_ms)
{
    static const enum metric metrics[] = {
        METRIC_KAFKA_LAG, METRIC_KAFKA_LOW_WATER, METRIC_KAFKA_UNSETTLED,
        METRIC_KAFKA_HEAD_AGE};
    struct partitions all = {.items = NULL};
    struct metric_series *series;

    kafka_setup_each_source(setup, add_source, &all);
    series = mem_new(all.n + 1, sizeof *series);
    for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++) {
        size_t n = 0;

        for (size_t i = 0; i < all.n; i++) {
            const struct partition *one = &all.items[i];

            series[n] = (struct metric_series){
                .values = {one->view.group, one->view.topic, one->number,
                           label_of(one->cluster)}};
            n += number_of(metrics[m], &one->view, now_ms, &series[n].number);
        }
        metric_replace(metrics[m], series, n);
    }
    free(series);
    free(all.items);
}

/* The counters of all groups. */
struct counters {
    struct metric_series *rebalances, *anomalies;
    size_t n_rebalances, n_anomalies;
};

static void add_counter(struct metric_series **series, size_t *n,
                        const struct metric_series *one)
{
    *series = mem_grow(*series, *n + 1, sizeof **series);
    (*series)[(*n)++] = *one;
}

static void add_counters(void *ctx, const char *cluster,
                         struct kafka_source *source)
{
    struct counters *all = ctx;
    const struct kafka_source_counts counts = kafka_source_count(source);
    const char *group = kafka_source_group(source);
    const char *label = label_of(cluster);
    const struct metric_series rebalances[] = {
        {{group, "assigned", label}, (double)counts.assigned},
        {{group, "revoked", label}, (double)counts.revoked},
        {{group, "lost", label}, (double)counts.lost},
    };
    const struct metric_series anomalies[] = {
        {{group, "rewound", label}, (double)counts.rewound},
        {{group, "gap", label}, (double)counts.gaps},
        {{group, "repeated", label}, (double)counts.repeated},
        {{group, "refused", label}, (double)counts.refused},
    };

    for (size_t i = 0; i < sizeof rebalances / sizeof rebalances[0]; i++) {
        add_counter(&all->rebalances, &all->n_rebalances, &rebalances[i]);
    }
    for (size_t i = 0; i < sizeof anomalies / sizeof anomalies[0]; i++) {
        add_counter(&all->anomalies, &all->n_anomalies, &anomalies[i]);
    }
}

void kafka_view_set_metrics(struct kafka_setup *setup, int64_t now_ms)
{
    struct counters all = {.rebalances = NULL};

    set_partitions(setup, now_ms);
    kafka_setup_each_source(setup, add_counters, &all);
    metric_replace(METRIC_KAFKA_REBALANCES, all.rebalances, all.n_rebalances);
    metric_replace(METRIC_KAFKA_ANOMALIES, all.anomalies, all.n_anomalies);
    free(all.rebalances);
    free(all.anomalies);
}

/* --- status -------------------------------------------------------------- */

static json_t *known(int64_t number, bool is_known)
{
    return is_known ? json_integer(number) : json_null();
}

static json_t *partition_json(const struct partition *one, int64_t now_ms)
{
    const struct kafka_partition_view *view = &one->view;
    json_t *json = json_pack(
        "{s:s, s:o, s:s, s:i, s:o, s:o, s:o, s:I, s:I}", /* */
        "cluster", one->cluster, "group", story_text(slice_of(view->group)),
        "topic", view->topic, "partition", (int)view->partition, "low_water",
        known(view->low_water, view->low_water >= 0), "log_end",
        known(view->log_end, view->log_end >= 0), "lag",
        known(view->lag, knows_lag(view)), "unsettled",
        (json_int_t)view->unsettled, "head_age_ms",
        (json_int_t)head_age_ms(view, now_ms));

    CHECK(json != NULL);
    return json;
}

json_t *kafka_view_json(struct kafka_setup *setup, int64_t now_ms)
{
    struct partitions all = {.items = NULL};
    json_t *list = json_array();

    kafka_setup_each_source(setup, add_source, &all);
    for (size_t i = 0; i < all.n; i++) {
        json_t *one = partition_json(&all.items[i], now_ms);

        CHECK(json_array_append_new(list, one) == 0);
    }
    free(all.items);
    return list;
}
