/* SPDX-License-Identifier: MIT */
/*
 * Counters, gauges and histograms, and their Prometheus text.
 *
 * One table, metrics.def, holds every metric: name, type, labels, help. The
 * labels' values are fixed before metrics_start or come from closed sets, so
 * that no event can add a series. Updating is one atomic operation on a slot
 * found by index: any thread, no lock, no allocation.
 *
 * The exception are the SERIES_ metrics, whose labels are known at run time
 * only (partitions): all of one are replaced at once, by what is true now.
 */
#ifndef ONCED_BASE_METRICS_H
#define ONCED_BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum metric {
#define METRIC(id, name, type, labels, help) METRIC_##id,
#include "base/metrics.def"
#undef METRIC
    METRIC_COUNT
};

enum {
    METRIC_LABEL_VALUES_MAX = 64,
    METRIC_SERIES_MAX = 8192, /* of one SERIES_ metric */
    METRIC_SERIES_LABELS_MAX = 4,
};

/* The closed sets that labels draw from, beside the route. */
struct metrics_labels {
    const char *const *routes; /* names by route number; kept by the caller */
    size_t n_routes;
    /* For each metric the values of its labels beside the route, by the
     * index that callers pass; NULL where it has none. Where metrics.def
     * names several labels ("state,reason"), a value has as many parts
     * ("DEAD,exhausted"; "SUCCEEDED," leaves the last one empty). Kept by
     * the caller. A SERIES_ metric has none here. */
    const char *const *values[METRIC_COUNT];
    size_t n_values[METRIC_COUNT];
};

/* Once per process, before any update. Updates before it are dropped. Every
 * series exists from here on, at 0, but for those of SERIES_ metrics. */
void metrics_start(const struct metrics_labels *labels);

/* Frees the series. No other thread may use the metrics any more; updates
 * by this one are dropped. Fine when not started. */
void metrics_stop(void);

/* `route` and `value` index the labels; 0 where the metric has none. The
 * metric must be a counter (add), a gauge (set), a histogram (observe). */
void metric_add(enum metric metric, size_t route, size_t value, uint64_t n);
void metric_set(enum metric metric, size_t route, size_t value, double to);

/* `amount` is in seconds, or in items for a size histogram; what is below 0
 * counts as 0. */
void metric_observe(enum metric metric, size_t route, double amount);

/* One series of a SERIES_ metric: a value for each label, in the order of
 * metrics.def. An empty one leaves the label out, which means the same. */
struct metric_series {
    const char *values[METRIC_SERIES_LABELS_MAX];
    double number;
};

/* From here on the metric has these series and no others; what is above
 * METRIC_SERIES_MAX is left out. No two may have the same labels. Any thread,
 * under a lock; everything is copied. */
void metric_replace(enum metric metric, const struct metric_series *series,
                    size_t n);

/* Appends the whole exposition, text format 0.0.4; nothing before start. */
void metrics_write(struct buf *out);

/* Appends the table as a Markdown page: docs/metrics.md. */
void metrics_write_docs(struct buf *out);

#endif
