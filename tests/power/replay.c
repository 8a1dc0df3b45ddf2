/* SPDX-License-Identifier: MIT */
/*
 * Power cuts: records a run of the engine on its store, builds what a disk may
 * hold at many points of it, and starts from each.
 *
 *     power_replay [--states N] [--seed S]    none may be bad; then the same
 *                                             with syncs dropped: some must be
 *     power_replay --drop data|meta|folders   only that
 *     power_replay --log FILE [--at ENTRY]    a log that was kept, one point
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/log.h"
#include "power/image.h"
#include "power/judge.h"
#include "power/record.h"
#include "power/scene.h"

enum { WORKERS = 2, STATES = 2100, DROP_STATES = 140, NOWHERE = -1 };
enum { ROOM_MIN = 128 << 20 };

struct options {
    size_t states;
    uint64_t seed;
    enum drop drop;
    bool only_drop;
    const char *log;
    long at; /* NOWHERE: many points */
};

struct log {
    const uint8_t *bytes;
    size_t size;
    struct entry *entries;
    size_t n;
    struct fact *facts;
    size_t n_facts;
};

struct tally {
    size_t states, bad;
    size_t first_entry;
    enum way first_way;
    char first_why[JUDGE_WHY_MAX], why[JUDGE_WHY_MAX];
};

static struct world world; /* of this process */

static void *shared_memory(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(at != MAP_FAILED);
    return at;
}

/* --- recording -------------------------------------------------------------
 */

static void write_down(const struct fact *fact)
{
    record_fact(fact, sizeof *fact);
}

/* Killed while the store is made, and where a commit is seen that is not yet
 * on the disk; each next run goes on from what it finds. */
static const struct {
    enum log_kind kill_at;
    unsigned nth, steps;
} runs[] = {
    {LOG_MKDIR, 1, 1},     {LOG_MKDIR, 1, 1},     {LOG_RENAME, 1, 1},
    {LOG_WROTE, 180, 999}, {LOG_WROTE, 1, 999},   {LOG_WROTE, 150, 999},
    {LOG_WROTE, 2, 999},   {LOG_WROTE, 160, 999}, {LOG_FACT, 0, 400},
};

static void record_run(const char *log, struct scene_progress *progress,
                       size_t i)
{
    pid_t pid = fork();
    int status;

    CHECK(pid >= 0);
    if (pid == 0) {
        record_start(log, world.dir);
        record_kill_at(runs[i].kill_at, runs[i].nth);
        scene_run(&world, progress, runs[i].steps);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (runs[i].nth > 0 ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL
                        : status != 0) {
        fprintf(stderr, "power: run %zu ended with %#x\n", i, (unsigned)status);
        world_fini(&world);
        (void)unlink(log);
        exit(1);
    }
}

static void record(const char *log)
{
    struct scene_progress *progress = shared_memory(sizeof *progress);

    scene_init(&world, true, write_down);
    progress->ms = world.ms;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        record_run(log, progress, i);
    }
    world_fini(&world);
    printf("recorded %u events, %llu remembered, %llu dead, in %zu runs of "
           "%lld s\n",
           progress->events, (unsigned long long)progress->remembered,
           (unsigned long long)progress->dead, sizeof runs / sizeof *runs,
           (long long)(progress->ms - WORLD_START_MS) / 1000);
    CHECK(progress->forgot && progress->dead > 0);
    (void)munmap(progress, sizeof *progress);
}

/* --- the log ---------------------------------------------------------------
 */

static void index_entries(struct log *log)
{
    size_t room = 0;

    for (size_t at = 0; at < log->size;) {
        struct entry *entry;

        if (log->n == room) {
            room = 2 * room + 1024;
            log->entries = mem_grow(log->entries, room, sizeof *entry);
            log->facts = mem_grow(log->facts, room, sizeof *log->facts);
        }
        entry = &log->entries[log->n++];
        memcpy(&entry->head, log->bytes + at, sizeof entry->head);
        at += sizeof entry->head;
        entry->bytes = log->bytes + at;
        at += entry->head.len;
        CHECK(at <= log->size);
        if (entry->head.kind == LOG_FACT) {
            CHECK(entry->head.len == sizeof *log->facts);
            memcpy(&log->facts[log->n_facts++], entry->bytes,
                   sizeof *log->facts);
        }
    }
}

static bool read_log(struct log *log, const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *bytes;

    if (fd < 0 || fstat(fd, &info) != 0 || info.st_size == 0) {
        fprintf(stderr, "power: %s: %s\n", path, strerror(errno));
        return false;
    }
    bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(bytes != MAP_FAILED);
    (void)close(fd);
    log->bytes = bytes;
    log->size = (size_t)info.st_size;
    index_entries(log);
    return true;
}

/* A log without one of them would prove nothing of it. */
static bool says_enough(const struct log *log)
{
    static const char *const names[LOG_KINDS] = {
        NULL,     "write",  "wrote",
        "sync",   "mkdir",  "create",
        "rename", "remove", "sync of a folder",
        "fact"};
    size_t n[LOG_KINDS] = {0};
    bool ok = true;

    for (size_t i = 0; i < log->n; i++) {
        n[log->entries[i].head.kind]++;
    }
    for (int kind = 1; kind < LOG_KINDS; kind++) {
        printf("%s%zu × %s", kind == 1 ? "log: " : ", ", n[kind], names[kind]);
        ok &= n[kind] > 0;
    }
    printf("; %zu MiB\n", log->size >> 20);
    return ok;
}

/* --- points ----------------------------------------------------------------
 */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* Whether every way to cut behind an entry gives the same state. */
static bool *find_certain(const struct log *log, enum drop drop)
{
    struct image *image = image_new(drop);
    bool *certain = mem_new(log->n, sizeof *certain);

    for (size_t i = 0; i < log->n; i++) {
        image_add(image, &log->entries[i]);
        certain[i] = image_is_certain(image);
    }
    image_free(image);
    return certain;
}

/* Where the store is there for good and the first event was accepted. */
static size_t end_of_creation(const struct log *log)
{
    size_t facts = 0;

    for (size_t i = 0; i < log->n; i++) {
        if (log->entries[i].head.kind == LOG_FACT &&
            log->facts[facts++].kind == FACT_KNOWN) {
            return i + 1;
        }
    }
    return log->n;
}

/* Half of the points lie where a window of writes is full, one in eight while
 * the store is made. */
static size_t draw_point(const struct log *log, size_t creation,
                         uint64_t *random)
{
    uint64_t dice = mix((*random)++);
    size_t i = (dice >> 8) % (dice % 8 == 0 ? creation : log->n);

    while (dice % 2 == 1 && i + 1 < log->n &&
           log->entries[i + 1].head.kind == LOG_WRITE) {
        i++;
    }
    return i;
}

static bool *choose_points(const struct log *log, const struct options *options,
                           const bool *certain)
{
    bool *points = mem_new(log->n, sizeof *points);
    size_t creation = end_of_creation(log), states = 0;
    uint64_t random = mix(options->seed);

    if (options->at != NOWHERE) {
        CHECK((size_t)options->at < log->n);
        points[options->at] = true;
        return points;
    }
    for (size_t tries = 0; states < options->states && tries < 64 * log->n;
         tries++) {
        size_t i = draw_point(log, creation, &random);

        states += points[i] ? 0 : certain[i] ? 1 : WAYS;
        points[i] = true;
    }
    return points;
}

/* --- judging ---------------------------------------------------------------
 */

static void judge_state(const struct image *image, const struct facts *facts,
                        enum way way, uint64_t seed, struct tally *tally,
                        size_t entry)
{
    image_build(image, way, mix(seed ^ mix(entry * WAYS + way)), world.dir);
    tally->states++;
    if (judge(&world, facts, tally->why)) {
        return;
    }
    if (tally->bad++ == 0) {
        tally->first_entry = entry;
        tally->first_way = way;
        memcpy(tally->first_why, tally->why, sizeof tally->why);
    }
}

struct job {
    const struct log *log;
    const struct options *options;
    const bool *points, *certain;
};

static void work(const struct job *job, size_t worker, struct tally *tally)
{
    struct image *image = image_new(job->options->drop);
    struct facts facts = {job->log->facts, job->log->n_facts, 0};
    size_t n = 0;

    scene_init(&world, false, judge_hear);
    for (size_t i = 0; i < job->log->n; i++) {
        image_add(image, &job->log->entries[i]);
        facts.n_told += job->log->entries[i].head.kind == LOG_FACT ? 1 : 0;
        if (!job->points[i] || n++ % WORKERS != worker) {
            continue;
        }
        for (int way = 0; way < (job->certain[i] ? 1 : WAYS); way++) {
            judge_state(image, &facts, (enum way)way, job->options->seed, tally,
                        i);
        }
    }
    image_free(image);
    world_fini(&world);
}

static void start_workers(const struct job *job, struct tally *tallies)
{
    pid_t pids[WORKERS];
    int status;

    (void)fflush(stdout);
    for (size_t i = 0; i < WORKERS; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) {
            if (job->options->drop != DROP_NOTHING) {
                CHECK(freopen("/dev/null", "w", stderr) != NULL);
            }
            work(job, i, &tallies[i]);
            _exit(0);
        }
    }
    for (size_t i = 0; i < WORKERS; i++) {
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    }
}

static void report(const struct options *options, const struct tally *tallies,
                   struct tally *sum)
{
    static const char *const names[DROPS] = {"every sync", "no sync of data",
                                             "no sync of the meta page",
                                             "no sync of folders"};

    *sum = (struct tally){.first_entry = SIZE_MAX};
    for (size_t i = 0; i < WORKERS; i++) {
        size_t states = sum->states + tallies[i].states;
        size_t bad = sum->bad + tallies[i].bad;

        if (tallies[i].bad > 0 && tallies[i].first_entry < sum->first_entry) {
            *sum = tallies[i];
        }
        sum->states = states;
        sum->bad = bad;
    }
    printf("%s: %zu states, %zu bad (seed %llu)\n", names[options->drop],
           sum->states, sum->bad, (unsigned long long)options->seed);
    if (sum->bad > 0) {
        printf("    first: cut behind entry %zu, %s: %s\n", sum->first_entry,
               way_name(sum->first_way), sum->first_why);
    }
}

static bool try_states(const struct log *log, const struct options *options)
{
    struct tally *tallies = shared_memory(WORKERS * sizeof *tallies), sum;
    bool *certain = find_certain(log, options->drop);
    bool *points = choose_points(log, options, certain);
    struct job job = {log, options, points, certain};

    start_workers(&job, tallies);
    report(options, tallies, &sum);
    free(points);
    free(certain);
    (void)munmap(tallies, WORKERS * sizeof *tallies);
    if (options->drop == DROP_NOTHING) {
        return sum.bad == 0;
    }
    return sum.bad * 100 >= sum.states;
}

static bool try_all(const struct log *log, const struct options *options)
{
    struct options dropping = *options;
    bool ok = try_states(log, options);

    if (options->only_drop || options->at != NOWHERE) {
        return ok;
    }
    dropping.states = DROP_STATES;
    for (int drop = DROP_NOTHING + 1; drop < DROPS; drop++) {
        dropping.drop = (enum drop)drop;
        if (!try_states(log, &dropping)) {
            printf("    that is less than 1 %%: the test does not bite\n");
            ok = false;
        }
    }
    return ok;
}

/* --- options ---------------------------------------------------------------
 */

/* In memory where there is room: nothing here needs the disk. */
static void choose_folder(void)
{
    struct statvfs info;

    if (statvfs("/dev/shm", &info) == 0 && access("/dev/shm", W_OK) == 0 &&
        (uint64_t)info.f_bavail * info.f_frsize >= ROOM_MIN) {
        CHECK(setenv("TMPDIR", "/dev/shm", 0) == 0);
    }
}

static bool read_drop(const char *name, struct options *options)
{
    static const char *const names[DROPS] = {"nothing", "data", "meta",
                                             "folders"};

    for (int i = 0; i < DROPS; i++) {
        if (strcmp(name, names[i]) == 0) {
            options->drop = (enum drop)i;
            options->only_drop = true;
            return true;
        }
    }
    return false;
}

static bool read_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"states", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"drop", required_argument, NULL, 'd'},
        {"log", required_argument, NULL, 'l'},
        {"at", required_argument, NULL, 'a'},
        {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (c == 'n') {
            options->states = strtoul(optarg, NULL, 10);
        } else if (c == 's') {
            options->seed = strtoull(optarg, NULL, 10);
        } else if (c == 'l') {
            options->log = optarg;
        } else if (c == 'a') {
            options->at = strtol(optarg, NULL, 10);
        } else if (c != 'd' || !read_drop(optarg, options)) {
            return false;
        }
    }
    return optind == argc;
}

/* The level lasts. */
static void be_quiet(void)
{
    struct log_options quiet = {.level = LOG_OFF, .fd = STDERR_FILENO};
    struct err err = {ERR_NONE, ""};

    CHECK(log_start(&quiet, &err));
    log_stop();
}

int main(int argc, char **argv)
{
    struct options options = {.states = STATES, .seed = 1, .at = NOWHERE};
    char path[] = "/tmp/onced-power-XXXXXX";
    struct log log = {.n = 0};
    bool ok;

    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "power: see the head of tests/power/replay.c\n");
        return 64;
    }
    choose_folder();
    be_quiet();
    if (options.log == NULL) {
        int fd = mkstemp(path);

        CHECK(fd >= 0);
        (void)close(fd);
        record(path);
    }
    if (!read_log(&log, options.log != NULL ? options.log : path)) {
        return 1;
    }
    ok = says_enough(&log) && try_all(&log, &options);
    if (options.log == NULL && ok) {
        (void)unlink(path);
    } else if (options.log == NULL) {
        printf("the log is kept: --log %s --seed %llu --at ENTRY\n", path,
               (unsigned long long)options.seed);
    }
    return ok ? 0 : 1;
}
