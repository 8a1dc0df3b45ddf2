/* SPDX-License-Identifier: MIT */
#include "base/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum type {
    COUNTER,
    GAUGE,
    HISTOGRAM,
    SIZE_HISTOGRAM,
    ROUTE_COUNTER,
    ROUTE_GAUGE,
    ROUTE_HISTOGRAM,
    SERIES_COUNTER,
    SERIES_GAUGE,
};

static const double bounds_seconds[] = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25,   0.5,   1,      2.5,   5,    10,    30,   60,
};
static const double bounds_items[] = {
    1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024,
};

#define BOUNDS(array) (array), sizeof(array) / sizeof((array)[0])

static const struct trait {
    const char *name;
    bool per_route, at_run_time;
    const double *bounds;
    size_t n_bounds;
} traits[] = {
    [COUNTER] = {"counter", false, false, NULL, 0},
    [GAUGE] = {"gauge", false, false, NULL, 0},
    [HISTOGRAM] = {"histogram", false, false, BOUNDS(bounds_seconds)},
    [SIZE_HISTOGRAM] = {"histogram", false, false, BOUNDS(bounds_items)},
    [ROUTE_COUNTER] = {"counter", true, false, NULL, 0},
    [ROUTE_GAUGE] = {"gauge", true, false, NULL, 0},
    [ROUTE_HISTOGRAM] = {"histogram", true, false, BOUNDS(bounds_seconds)},
    [SERIES_COUNTER] = {"counter", false, true, NULL, 0},
    [SERIES_GAUGE] = {"gauge", false, true, NULL, 0},
};

static const struct entry {
    const char *name;
    enum type type;
    const char *labels;
    const char *help;
} table[METRIC_COUNT] = {
#define METRIC(id, name, type, labels, help) {name, type, labels, help},
#include "base/metrics.def"
#undef METRIC
};

/* A counter or gauge is one slot, a histogram one for each bucket, one for
 * what is above the last bound, and one for the sum. Gauges and sums are the
 * bits of a double. What has its labels at run time is kept as it is written.
 */
struct series {
    struct metrics_labels labels;
    pthread_mutex_t lock;
    struct buf text[METRIC_COUNT]; /* under the lock */
    size_t first[METRIC_COUNT];
    _Atomic uint64_t slots[];
};

static _Atomic(struct series *) live;

static struct series *series_now(void)
{
    return atomic_load_explicit(&live, memory_order_acquire);
}

static const struct trait *trait_of(enum metric metric)
{
    CHECK(metric < METRIC_COUNT);
    return &traits[table[metric].type];
}

static size_t slots_each(enum metric metric)
{
    const struct trait *trait = trait_of(metric);

    return trait->bounds == NULL ? 1 : trait->n_bounds + 2;
}

static size_t count_routes(const struct metrics_labels *labels,
                           enum metric metric)
{
    return trait_of(metric)->per_route ? labels->n_routes : 1;
}

static size_t count_values(const struct metrics_labels *labels,
                           enum metric metric)
{
    return labels->values[metric] == NULL ? 1 : labels->n_values[metric];
}

static size_t count_byte(const char *text, char byte)
{
    size_t n = 0;

    for (; *text != '\0'; text++) {
        n += *text == byte;
    }
    return n;
}

static void check_labels(const struct metrics_labels *labels,
                         enum metric metric)
{
    const char *names = table[metric].labels;
    bool is_closed = names[0] != '\0' && !trait_of(metric)->at_run_time;

    CHECK(is_closed == (labels->values[metric] != NULL));
    if (labels->values[metric] == NULL) {
        return;
    }
    CHECK(trait_of(metric)->bounds == NULL);
    CHECK(labels->n_values[metric] <= METRIC_LABEL_VALUES_MAX);
    for (size_t i = 0; i < labels->n_values[metric]; i++) {
        CHECK(count_byte(labels->values[metric][i], ',') >=
              count_byte(names, ','));
    }
}

void metrics_start(const struct metrics_labels *labels)
{
    struct series *series;
    size_t first[METRIC_COUNT];
    size_t slots = 0;

    CHECK(series_now() == NULL);
    for (enum metric i = 0; i < METRIC_COUNT; i++) {
        check_labels(labels, i);
        first[i] = slots;
        slots +=
            count_routes(labels, i) * count_values(labels, i) * slots_each(i);
    }
    series = mem_new(1, sizeof *series + slots * sizeof series->slots[0]);
    series->labels = *labels;
    CHECK(pthread_mutex_init(&series->lock, NULL) == 0);
    memcpy(series->first, first, sizeof first);
    atomic_store_explicit(&live, series, memory_order_release);
}

void metrics_stop(void)
{
    struct series *series = atomic_exchange(&live, NULL);

    if (series == NULL) {
        return;
    }
    for (enum metric i = 0; i < METRIC_COUNT; i++) {
        buf_free(&series->text[i]);
    }
    CHECK(pthread_mutex_destroy(&series->lock) == 0);
    free(series);
}

static _Atomic uint64_t *slots_of(struct series *series, enum metric metric,
                                  size_t route, size_t value)
{
    size_t n_values = count_values(&series->labels, metric);

    CHECK(route < count_routes(&series->labels, metric));
    CHECK(value < n_values);
    return &series->slots[series->first[metric] +
                          (route * n_values + value) * slots_each(metric)];
}

static uint64_t read_slot(const _Atomic uint64_t *slot)
{
    return atomic_load_explicit(slot, memory_order_relaxed);
}

static uint64_t bits_of(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static double number_of(uint64_t bits)
{
    double number;

    memcpy(&number, &bits, sizeof number);
    return number;
}

static void add_number(_Atomic uint64_t *slot, double more)
{
    uint64_t old = read_slot(slot);

    while (!atomic_compare_exchange_weak_explicit(
        slot, &old, bits_of(number_of(old) + more), memory_order_relaxed,
        memory_order_relaxed)) {
    }
}

void metric_add(enum metric metric, size_t route, size_t value, uint64_t n)
{
    struct series *series = series_now();
    enum type type = table[metric].type;

    CHECK(type == COUNTER || type == ROUTE_COUNTER);
    if (series != NULL) {
        atomic_fetch_add_explicit(slots_of(series, metric, route, value), n,
                                  memory_order_relaxed);
    }
}

void metric_set(enum metric metric, size_t route, size_t value, double to)
{
    struct series *series = series_now();
    enum type type = table[metric].type;

    CHECK(type == GAUGE || type == ROUTE_GAUGE);
    if (series != NULL) {
        atomic_store_explicit(slots_of(series, metric, route, value),
                              bits_of(to), memory_order_relaxed);
    }
}

void metric_observe(enum metric metric, size_t route, double amount)
{
    struct series *series = series_now();
    const struct trait *trait = trait_of(metric);
    _Atomic uint64_t *slots;
    size_t i = 0;

    CHECK(trait->bounds != NULL);
    if (series == NULL) {
        return;
    }
    if (!(amount > 0)) {
        amount = 0;
    }
    slots = slots_of(series, metric, route, 0);
    while (i < trait->n_bounds && amount > trait->bounds[i]) {
        i++;
    }
    atomic_fetch_add_explicit(&slots[i], 1, memory_order_relaxed);
    add_number(&slots[trait->n_bounds + 1], amount);
}

/* In 15 digits where these read back as the same number ("0.1"). */
static void put_number(struct buf *out, double number)
{
    char text[32];

    if (isnan(number)) {
        buf_add_str(out, "NaN");
        return;
    }
    if (isinf(number)) {
        buf_add_str(out, number > 0 ? "+Inf" : "-Inf");
        return;
    }
    (void)snprintf(text, sizeof text, "%.15g", number);
    if (bits_of(strtod(text, NULL)) != bits_of(number)) {
        (void)snprintf(text, sizeof text, "%.17g", number);
    }
    buf_add_str(out, text);
}

static void put_escaped(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        switch (text.data[i]) {
        case '\n':
            buf_add_str(out, "\\n");
            break;
        case '\\':
        case '"':
            buf_add_byte(out, '\\');
            buf_add_byte(out, text.data[i]);
            break;
        default:
            buf_add_byte(out, text.data[i]);
        }
    }
}

static void put_label(struct buf *out, struct slice name, struct slice value)
{
    if (out->len > 0) {
        buf_add_byte(out, ',');
    }
    buf_add_slice(out, name);
    buf_add_str(out, "=\"");
    put_escaped(out, value);
    buf_add_byte(out, '"');
}

/* Cuts the part before the first comma off. */
static struct slice take_part(struct slice *rest)
{
    struct slice part = {rest->data, slice_find(*rest, ',')};

    *rest = slice_from(*rest, part.len < rest->len ? part.len + 1 : part.len);
    return part;
}

/* The labels of one series, without braces. */
static void put_labels(struct buf *out, const struct metrics_labels *labels,
                       enum metric metric, size_t route, size_t value)
{
    struct slice names = slice_of(table[metric].labels);
    struct slice parts = {NULL, 0};

    if (trait_of(metric)->per_route) {
        put_label(out, SLICE("route"), slice_of(labels->routes[route]));
    }
    if (names.len > 0) {
        parts = slice_of(labels->values[metric][value]);
    }
    while (names.len > 0) {
        struct slice name = take_part(&names);

        put_label(out, name, names.len > 0 ? take_part(&parts) : parts);
    }
}

static void put_sample(struct buf *out, enum metric metric, const char *suffix,
                       struct slice labels)
{
    buf_printf(out, "%s%s", table[metric].name, suffix);
    if (labels.len > 0) {
        buf_add_byte(out, '{');
        buf_add_slice(out, labels);
        buf_add_byte(out, '}');
    }
    buf_add_byte(out, ' ');
}

static void put_bucket(struct buf *out, enum metric metric, struct slice labels,
                       double bound, uint64_t count)
{
    struct buf with_bound = BUF_INIT;
    struct buf text = BUF_INIT;

    put_number(&text, bound);
    buf_add_slice(&with_bound, labels);
    put_label(&with_bound, SLICE("le"), buf_slice(&text));
    put_sample(out, metric, "_bucket", buf_slice(&with_bound));
    buf_printf(out, "%" PRIu64 "\n", count);
    buf_free(&with_bound);
    buf_free(&text);
}

/* The count is the last bucket, not a slot of its own, so that the two agree
 * whatever is observed meanwhile. */
static void put_histogram(struct buf *out, enum metric metric,
                          struct slice labels, const _Atomic uint64_t *slots)
{
    const struct trait *trait = trait_of(metric);
    uint64_t count = 0;

    for (size_t i = 0; i <= trait->n_bounds; i++) {
        count += read_slot(&slots[i]);
        put_bucket(out, metric, labels,
                   i < trait->n_bounds ? trait->bounds[i] : INFINITY, count);
    }
    put_sample(out, metric, "_sum", labels);
    put_number(out, number_of(read_slot(&slots[trait->n_bounds + 1])));
    buf_add_byte(out, '\n');
    put_sample(out, metric, "_count", labels);
    buf_printf(out, "%" PRIu64 "\n", count);
}

static void put_series(struct buf *out, enum metric metric, struct slice labels,
                       const _Atomic uint64_t *slots)
{
    switch (table[metric].type) {
    case COUNTER:
    case ROUTE_COUNTER:
        put_sample(out, metric, "", labels);
        buf_printf(out, "%" PRIu64 "\n", read_slot(slots));
        break;
    case GAUGE:
    case ROUTE_GAUGE:
        put_sample(out, metric, "", labels);
        put_number(out, number_of(read_slot(slots)));
        buf_add_byte(out, '\n');
        break;
    case HISTOGRAM:
    case SIZE_HISTOGRAM:
    case ROUTE_HISTOGRAM:
        put_histogram(out, metric, labels, slots);
        break;
    case SERIES_COUNTER:
    case SERIES_GAUGE:
        UNREACHABLE("they have no slots");
    }
}

/* --- what has its labels at run time -------------------------------------- */

static void put_run_time_labels(struct buf *out, enum metric metric,
                                const struct metric_series *series)
{
    struct slice names = slice_of(table[metric].labels);

    for (size_t i = 0; names.len > 0; i++) {
        struct slice name = take_part(&names);

        CHECK(i < METRIC_SERIES_LABELS_MAX && series->values[i] != NULL);
        if (series->values[i][0] != '\0') {
            put_label(out, name, slice_of(series->values[i]));
        }
    }
}

void metric_replace(enum metric metric, const struct metric_series *series,
                    size_t n)
{
    struct series *all = series_now();
    struct buf labels = BUF_INIT;
    struct buf text = BUF_INIT;
    struct buf old;

    CHECK(trait_of(metric)->at_run_time);
    if (all == NULL) {
        return;
    }
    for (size_t i = 0; i < n && i < METRIC_SERIES_MAX; i++) {
        buf_clear(&labels);
        put_run_time_labels(&labels, metric, &series[i]);
        put_sample(&text, metric, "", buf_slice(&labels));
        put_number(&text, series[i].number);
        buf_add_byte(&text, '\n');
    }
    CHECK(pthread_mutex_lock(&all->lock) == 0);
    old = all->text[metric];
    all->text[metric] = text;
    CHECK(pthread_mutex_unlock(&all->lock) == 0);
    buf_free(&old);
    buf_free(&labels);
}

static void put_run_time(struct buf *out, struct series *series,
                         enum metric metric)
{
    CHECK(pthread_mutex_lock(&series->lock) == 0);
    buf_add_slice(out, buf_slice(&series->text[metric]));
    CHECK(pthread_mutex_unlock(&series->lock) == 0);
}

/* --- the exposition ------------------------------------------------------- */

static void put_metric(struct buf *out, struct series *series,
                       enum metric metric)
{
    const struct metrics_labels *labels = &series->labels;
    size_t n_values = count_values(labels, metric);
    size_t n = count_routes(labels, metric) * n_values;
    struct buf text = BUF_INIT;

    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", table[metric].name,
               table[metric].help, table[metric].name, trait_of(metric)->name);
    if (trait_of(metric)->at_run_time) {
        put_run_time(out, series, metric);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        size_t route = i / n_values;
        size_t value = i % n_values;

        buf_clear(&text);
        put_labels(&text, labels, metric, route, value);
        put_series(out, metric, buf_slice(&text),
                   slots_of(series, metric, route, value));
    }
    buf_free(&text);
}

void metrics_write(struct buf *out)
{
    struct series *series = series_now();

    if (series == NULL) {
        return;
    }
    for (enum metric i = 0; i < METRIC_COUNT; i++) {
        put_metric(out, series, i);
    }
}

static void put_bounds(struct buf *out, const char *what, const double *bounds,
                       size_t n)
{
    buf_printf(out, "\nBuckets of %s:", what);
    for (size_t i = 0; i < n; i++) {
        buf_add_str(out, i == 0 ? " " : ", ");
        put_number(out, bounds[i]);
    }
    buf_add_str(out, ".\n");
}

static void put_label_names(struct buf *out, enum metric metric)
{
    struct slice names = slice_of(table[metric].labels);
    bool per_route = trait_of(metric)->per_route;

    if (per_route) {
        buf_add_str(out, "`route`");
    }
    for (size_t i = per_route; names.len > 0; i++) {
        struct slice name = take_part(&names);

        buf_printf(out, "%s`%.*s`", i == 0 ? "" : ", ", (int)name.len,
                   name.data);
    }
}

void metrics_write_docs(struct buf *out)
{
    buf_add_str(out, "# Metrics\n\n"
                     "| name | type | labels | meaning |\n"
                     "|---|---|---|---|\n");
    for (enum metric i = 0; i < METRIC_COUNT; i++) {
        buf_printf(out, "| `%s` | %s | ", table[i].name, trait_of(i)->name);
        put_label_names(out, i);
        buf_printf(out, " | %s |\n", table[i].help);
    }
    put_bounds(out, "times, in seconds", BOUNDS(bounds_seconds));
    put_bounds(out, "sizes, in items", BOUNDS(bounds_items));
}
