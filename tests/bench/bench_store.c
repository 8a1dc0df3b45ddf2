/* SPDX-License-Identifier: MIT */
/* The store alone, behind the real engine: see `usage`. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "store_direct.h"
#include "store_rig.h"
#include "store_size.h"

static const char usage[] =
    "bench_store [-a] [-i IDS,...] [-b BATCH,...] [-e EVENTS] [-r ROUNDS]\n"
    "            rate|start|order|verify DIR\n"
    "\n"
    "Prints one JSON object a line. Stores are made under DIR where they are\n"
    "missing, and left there.\n"
    "\n"
    "  rate    events accepted and settled by the engine, two durable commits\n"
    "          each, with IDS remembered, beside LMDB alone with every id put\n"
    "          straight into its tree (\"direct\"). Stores, batches and both\n"
    "          kinds alternate; without -r it goes on until each store of at\n"
    "          least 1 Mi ids has sealed a generation. Prints `size`, a\n"
    "          `sample` for each run, then `rate` and `ratio` (to the second\n"
    "          largest store) for each batch.\n"
    "  start   store_open and engine_new with IDS remembered, ROUNDS times,\n"
    "          with the file in the page cache and after it was dropped from\n"
    "          it.\n"
    "  order   the engine with 100,000 ordering keys held, and 0, 1,000 and\n"
    "          50,000 events waiting for one more: EVENTS without a key and "
    "of\n"
    "          keys that nobody holds, accepted and settled; arrivals of that\n"
    "          key; and its events settled, one after the other.\n"
    "  verify  store_verify with IDS remembered.\n"
    "\n"
    "  -a  the engine alone, without its baseline\n"
    "  -i  ids remembered, at most 4 (100000,1000000,10000000); more than a\n"
    "      generation is rounded so that the newest is 15/16 full\n"
    "  -b  events per batch, at most 4 (32,100,1000); a commit takes at most\n"
    "      1,024 arrivals and results\n"
    "  -e  events of one sample (10000)\n"
    "  -r  rounds (3, and more)\n";

enum { LIST_MAX = 4, SAMPLES_MAX = 1000 };

struct list {
    uint64_t values[LIST_MAX];
    size_t n;
};

struct bench {
    const char *dir;
    struct list ids, batches;
    uint64_t events;
    uint64_t rounds;
    bool until_sealed, alone;
};

/* --- words ---------------------------------------------------------------- */

static struct list parse_list(const char *text)
{
    struct list list = {.n = 0};

    while (*text != '\0' && list.n < LIST_MAX) {
        char *end;

        list.values[list.n++] = strtoull(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    CHECK(*text == '\0' && list.n > 0);
    return list;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y ? 1 : 0;
}

static double median(double *values, size_t n)
{
    CHECK(n > 0);
    qsort(values, n, sizeof *values, compare);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Ids after which a generation closes: docs/format.md, "Generations". */
static uint64_t generation_ids(uint64_t remembered)
{
    const uint64_t least = 1 << 20, most = 4 << 20;
    uint64_t ids = remembered / 16;

    return ids < least ? least : ids > most ? most : ids;
}

static uint64_t rounded(uint64_t ids)
{
    uint64_t one = generation_ids(ids);

    return ids < one / 2 ? ids : ids / one * one + one / 16 * 15;
}

static void path_of(const struct bench *bench, const char *kind, uint64_t ids,
                    char path[512])
{
    CHECK(snprintf(path, 512, "%s/%s-%" PRIu64, bench->dir, kind, ids) < 512);
}

static void make_store(const struct bench *bench, uint64_t ids, char path[512])
{
    path_of(bench, "onced", ids, path);
    if (access(path, F_OK) != 0) {
        rig_preload(path, rounded(ids));
    }
}

/* --- rate ----------------------------------------------------------------- */

struct samples {
    double rates[SAMPLES_MAX];
    size_t n;
    double events, wall_s, cpu_s;
};

enum kind { ONCED, DIRECT, KINDS };
static const char *const kind_names[KINDS] = {"onced", "direct"};

struct subject {
    uint64_t ids;
    bool seals;    /* it will, in this run */
    uint64_t left; /* events until the sealing is over */
    struct rig rig;
    struct direct *direct;
    struct samples samples[KINDS][LIST_MAX]; /* by batch */
};

static void open_direct(const struct bench *bench, struct subject *subject)
{
    char path[512];

    path_of(bench, "direct", subject->ids, path);
    if (access(path, F_OK) != 0) {
        direct_preload(path, rounded(subject->ids));
    }
    subject->direct = direct_open(path, false);
}

static void open_subject(const struct bench *bench, struct subject *subject,
                         uint64_t ids)
{
    uint64_t one = generation_ids(ids);
    char path[512];

    subject->ids = ids;
    subject->seals = rounded(ids) >= one / 2;
    subject->left = subject->seals ? one / 16 * 10 : 0;
    make_store(bench, ids, path);
    size_print(path, ids);
    rig_open(&subject->rig, path, false);
    if (!bench->alone) {
        open_direct(bench, subject);
    }
}

static void close_subject(struct subject *subject)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s", subject->rig.path);
    rig_close(&subject->rig);
    if (subject->direct != NULL) {
        direct_close(subject->direct);
    }
    size_print(path, subject->ids);
}

static void sample(const struct bench *bench, struct subject *subject,
                   enum kind kind, size_t batch)
{
    struct samples *samples = &subject->samples[kind][batch];
    const struct rig_load load = {.n = bench->events,
                                  .batch = bench->batches.values[batch]};
    uint64_t turns = subject->rig.turns;
    struct lap begin = lap_now(), took;

    if (kind == ONCED) {
        rig_run(&subject->rig, &load);
    } else {
        direct_run(subject->direct, load.n, load.batch);
    }
    took = lap_since(begin);
    CHECK(samples->n < SAMPLES_MAX);
    samples->rates[samples->n++] = (double)load.n / took.wall_s;
    samples->events += (double)load.n;
    samples->wall_s += took.wall_s;
    samples->cpu_s += took.cpu_s;
    (void)printf("{\"measure\":\"sample\",\"of\":\"%s\",\"ids\":%" PRIu64
                 ",\"batch\":%zu,\"events\":%" PRIu64 ",\"turns\":%" PRIu64
                 ",\"wall_s\":%.4f,\"cpu_s\":%.4f}\n",
                 kind_names[kind], subject->ids, load.batch, load.n,
                 subject->rig.turns - turns, took.wall_s, took.cpu_s);
    (void)fflush(stdout);
}

static void measure_subject(const struct bench *bench, struct subject *subject,
                            size_t batch)
{
    sample(bench, subject, ONCED, batch);
    if (!bench->alone) {
        sample(bench, subject, DIRECT, batch);
    }
    subject->left -=
        subject->left < bench->events ? subject->left : bench->events;
}

/* A store that has nothing to seal should not grow for nothing. */
static void go_round(const struct bench *bench, struct subject *subjects,
                     bool all)
{
    for (size_t batch = 0; batch < bench->batches.n; batch++) {
        for (size_t i = 0; i < bench->ids.n; i++) {
            if (all || subjects[i].seals) {
                measure_subject(bench, &subjects[i], batch);
            }
        }
    }
}

static bool all_sealed(const struct bench *bench,
                       const struct subject *subjects)
{
    uint64_t left = 0;

    for (size_t i = 0; i < bench->ids.n; i++) {
        left += subjects[i].left;
    }
    return left == 0;
}

static void print_rate(const struct bench *bench, struct subject *subject,
                       enum kind kind, size_t batch)
{
    struct samples *samples = &subject->samples[kind][batch];

    (void)printf("{\"measure\":\"rate\",\"of\":\"%s\",\"ids\":%" PRIu64
                 ",\"batch\":%" PRIu64 ",\"runs\":%zu,"
                 "\"per_second\":%.0f,\"median_per_second\":%.0f,"
                 "\"cpu_us_per_event\":%.2f}\n",
                 kind_names[kind], subject->ids, bench->batches.values[batch],
                 samples->n, samples->events / samples->wall_s,
                 median(samples->rates, samples->n),
                 samples->cpu_s / samples->events * 1e6);
}

/* By the whole time, sealing included, and by the medians of the samples. */
static void print_ratio(const struct bench *bench, struct subject *subjects,
                        enum kind kind, size_t batch)
{
    struct subject *most = &subjects[bench->ids.n - 1];
    struct subject *less = &subjects[bench->ids.n - 2];
    struct samples *a = &most->samples[kind][batch];
    struct samples *b = &less->samples[kind][batch];

    (void)printf("{\"measure\":\"ratio\",\"of\":\"%s\",\"ids\":%" PRIu64
                 ",\"to\":%" PRIu64 ",\"batch\":%" PRIu64
                 ",\"ratio\":%.3f,\"ratio_of_medians\":%.3f,"
                 "\"ratio_of_cpu\":%.3f}\n",
                 kind_names[kind], most->ids, less->ids,
                 bench->batches.values[batch], b->wall_s / a->wall_s,
                 median(a->rates, a->n) / median(b->rates, b->n),
                 b->cpu_s / a->cpu_s);
}

static void print_rates(const struct bench *bench, struct subject *subjects)
{
    for (size_t batch = 0; batch < bench->batches.n; batch++) {
        for (enum kind kind = ONCED; kind < (bench->alone ? DIRECT : KINDS);
             kind++) {
            for (size_t i = 0; i < bench->ids.n; i++) {
                print_rate(bench, &subjects[i], kind, batch);
            }
            if (bench->ids.n > 1) {
                print_ratio(bench, subjects, kind, batch);
            }
        }
    }
}

static void measure_rate(const struct bench *bench)
{
    struct subject *subjects = mem_new(bench->ids.n, sizeof *subjects);

    for (size_t i = 0; i < bench->ids.n; i++) {
        open_subject(bench, &subjects[i], bench->ids.values[i]);
    }
    for (uint64_t round = 0;
         round < bench->rounds ||
         (bench->until_sealed && !all_sealed(bench, subjects));
         round++) {
        go_round(bench, subjects, round < bench->rounds);
    }
    for (size_t i = 0; i < bench->ids.n; i++) {
        close_subject(&subjects[i]);
    }
    print_rates(bench, subjects);
    free(subjects);
}

/* --- start ---------------------------------------------------------------- */

static void drop_from_cache(const char *path)
{
    char file[600];
    int fd;

    (void)snprintf(file, sizeof file, "%s/data.mdb", path);
    fd = open(file, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(fsync(fd) == 0);
    CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    (void)close(fd);
}

static void start_once(const char *path, uint64_t ids, bool cold)
{
    struct rig rig;
    struct lap begin, took;

    if (cold) {
        drop_from_cache(path);
    }
    begin = lap_now();
    rig_open(&rig, path, false);
    took = lap_since(begin);
    (void)printf("{\"measure\":\"start\",\"ids\":%" PRIu64
                 ",\"remembered\":%" PRIu64
                 ",\"cache\":\"%s\",\"wall_s\":%.4f,\"cpu_s\":%.4f}\n",
                 ids, rig_remembered(&rig), cold ? "cold" : "warm", took.wall_s,
                 took.cpu_s);
    (void)fflush(stdout);
    rig_close(&rig);
}

static void measure_start(const struct bench *bench)
{
    for (size_t i = 0; i < bench->ids.n; i++) {
        uint64_t ids = bench->ids.values[i];
        char path[512];

        make_store(bench, ids, path);
        for (uint64_t round = 0; round < bench->rounds; round++) {
            start_once(path, ids, true);
            start_once(path, ids, false);
        }
    }
}

/* --- order ---------------------------------------------------------------- */

enum { HELD_KEYS = 100000, HOT_KEY = 1, FIRST_HELD = 1000 };
enum { FIRST_FREE = FIRST_HELD + HELD_KEYS };

/* An event of each key waits for its next try in an hour. */
static void hold_keys(struct rig *rig)
{
    rig->retry_after_ms = 3600000;
    rig_run(rig, &(struct rig_load){.n = HELD_KEYS,
                                    .batch = RIG_BATCH_MAX,
                                    .first_key = FIRST_HELD,
                                    .order_keys = HELD_KEYS});
    rig->retry_after_ms = 0;
}

static void print_order(const char *what, uint64_t waiting, uint64_t n,
                        struct lap took)
{
    (void)printf("{\"measure\":\"order\",\"what\":\"%s\",\"waiting\":%" PRIu64
                 ",\"events\":%" PRIu64
                 ",\"per_second\":%.0f,\"cpu_us_per_event\":%.2f}\n",
                 what, waiting, n, (double)n / took.wall_s,
                 took.cpu_s / (double)n * 1e6);
    (void)fflush(stdout);
}

static void measure_load(struct rig *rig, const char *what, uint64_t waiting,
                         const struct rig_load *load)
{
    struct lap begin = lap_now();

    rig_run(rig, load);
    print_order(what, waiting, load->n, lap_since(begin));
}

/* Events without a key, of keys that nobody holds, and of the one that is
 * held: those are accepted, and wait. */
static void measure_beside(struct rig *rig, const struct bench *bench,
                           uint64_t waiting)
{
    struct rig_load load = {.n = bench->events, .batch = 100};

    measure_load(rig, "no key", waiting, &load);
    load.first_key = FIRST_FREE;
    load.order_keys = HELD_KEYS;
    measure_load(rig, "other keys", waiting, &load);
    load.first_key = HOT_KEY;
    load.order_keys = 1;
    load.n = 1000;
    measure_load(rig, "the same key, accepted", waiting, &load);
}

/* One after the other: two commits each, the last one is held again. */
static void measure_drain(struct rig *rig, uint64_t waiting)
{
    const uint64_t n = 200;
    struct lap begin = lap_now();

    rig_let_go(rig);
    rig_turns(rig, 2 * n);
    print_order("the same key, settled", waiting, n, lap_since(begin));
    rig->hold_next = true;
    while (rig->held == NULL) {
        rig_turns(rig, 1);
    }
}

static void measure_order(const struct bench *bench)
{
    static const uint64_t backlogs[] = {0, 1000, 50000};
    const struct rig_load hot = {1, 1, HOT_KEY, 1};
    struct rig rig;
    char path[512];

    path_of(bench, "order", HELD_KEYS, path);
    rig_open(&rig, path, false);
    hold_keys(&rig);
    rig.hold_next = true;
    rig_send(&rig, &hot);
    for (size_t i = 0; i < sizeof backlogs / sizeof backlogs[0]; i++) {
        rig_send(&rig, &(struct rig_load){.n = backlogs[i],
                                          .batch = 1000,
                                          .first_key = HOT_KEY,
                                          .order_keys = 1});
        measure_beside(&rig, bench, backlogs[i]);
        measure_drain(&rig, backlogs[i]);
    }
    rig_close(&rig);
}

/* --- verify --------------------------------------------------------------- */

static void measure_verify(const struct bench *bench)
{
    for (size_t i = 0; i < bench->ids.n; i++) {
        struct store_report report;
        struct err err = {ERR_NONE, ""};
        struct rusage used;
        struct lap begin;
        char path[512];

        make_store(bench, bench->ids.values[i], path);
        begin = lap_now();
        rig_must(store_verify(path, &report, &err), &err);
        CHECK(getrusage(RUSAGE_CHILDREN, &used) == 0);
        (void)printf("{\"measure\":\"verify\",\"ids\":%" PRIu64
                     ",\"records\":%" PRIu64 ",\"bad\":%" PRIu64
                     ",\"wall_s\":%.2f,\"max_rss_kib\":%ld}\n",
                     bench->ids.values[i], report.records, report.bad,
                     lap_since(begin).wall_s, used.ru_maxrss);
    }
}

/* --- main ----------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(const struct bench *bench);
} measures[] = {
    {"rate", measure_rate},
    {"start", measure_start},
    {"order", measure_order},
    {"verify", measure_verify},
};

/* Thousands of attempts end badly on purpose. */
static void quieten_log(void)
{
    const struct log_options log = {LOG_ERROR, LOG_LOGFMT, STDERR_FILENO};
    struct err err = {ERR_NONE, ""};

    rig_must(log_start(&log, &err), &err);
}

static void parse(struct bench *bench, int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "ai:b:e:r:")) != -1) {
        switch (option) {
        case 'a':
            bench->alone = true;
            break;
        case 'i':
            bench->ids = parse_list(optarg);
            break;
        case 'b':
            bench->batches = parse_list(optarg);
            break;
        case 'e':
            bench->events = strtoull(optarg, NULL, 10);
            break;
        case 'r':
            bench->rounds = strtoull(optarg, NULL, 10);
            bench->until_sealed = false;
            break;
        default:
            (void)fputs(usage, stderr);
            exit(64);
        }
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {
        .ids = {{100000, 1000000, 10000000}, 3},
        .batches = {{32, 100, 1000}, 3},
        .events = 10000,
        .rounds = 3,
        .until_sealed = true,
    };

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        (void)fputs(usage, stdout);
        return 0;
    }
    parse(&bench, argc, argv);
    quieten_log();
    if (argc - optind == 2 && (mkdir(argv[optind + 1], 0700) == 0 ||
                               access(argv[optind + 1], W_OK) == 0)) {
        bench.dir = argv[optind + 1];
        for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
            if (strcmp(measures[i].name, argv[optind]) == 0) {
                measures[i].run(&bench);
                log_stop();
                return 0;
            }
        }
    }
    (void)fputs(usage, stderr);
    return 64;
}
