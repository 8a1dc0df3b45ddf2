/* SPDX-License-Identifier: MIT */
/*
 * Runs simulated worlds (sim.h), one for each seed.
 *
 *     onced_sim --seeds N [--from S] [--marks]   seeds S to S + N - 1
 *     onced_sim --seed S [--trace]               one
 *
 * 1 % of the seeds run twice, and must leave equal traces. With 200 seeds or
 * more every mark and every sight of a rare path must have been seen; --marks
 * tells how often they were. Exit
 * status: 0; 1 where there is a finding; 64 for a wrong command line.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"
#include "base/text.h"
#include "sim/sim.h"

enum { SEEN_ALL_FROM = 200, TWICE_EVERY = 100, SEED_SECONDS_MAX = 120 };

struct run {
    uint64_t from, seeds;
    bool trace, marks;
    char dir[SIM_DIR_SIZE];
    struct sights sights;
};

static void usage(void)
{
    (void)fputs("usage: onced_sim --seeds N [--from S] [--marks]\n"
                "       onced_sim --seed S [--trace]\n",
                stderr);
    exit(64);
}

static uint64_t number(const char *text)
{
    uint64_t value;

    if (!text_u64(slice_of(text), &value)) {
        usage();
    }
    return value;
}

static struct run read_arguments(int argc, char **argv)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"from", required_argument, NULL, 'f'},
        {"seed", required_argument, NULL, 's'},
        {"trace", no_argument, NULL, 't'},
        {"marks", no_argument, NULL, 'm'},
        {NULL, 0, NULL, 0},
    };
    struct run run = {.from = 1, .seeds = SEEN_ALL_FROM};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'n':
            run.seeds = number(optarg);
            break;
        case 'f':
            run.from = number(optarg);
            break;
        case 's':
            run.from = number(optarg);
            run.seeds = 1;
            break;
        case 't':
            run.trace = true;
            break;
        case 'm':
            run.marks = true;
            break;
        default:
            usage();
        }
    }
    if (optind < argc) {
        usage();
    }
    return run;
}

static void tell_finding(const struct sim *sim, const char *finding)
{
    (void)fprintf(stderr, "seed %" PRIu64 ": %s\n  the last of it:\n",
                  sim->seed, finding);
    trace_dump(&sim->trace);
    (void)fprintf(stderr,
                  "  all of it: scripts/sim --seed %" PRIu64 " --trace\n",
                  sim->seed);
}

/* --- what was seen
 * ------------------------------------------------------------ */

static void add_sights(struct sights *sum, const struct sights *of)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)of;

    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) {
        to[i] += from[i];
    }
}

/* A rare path and how often it was gone. */
static bool expect(const struct run *run, const char *what, uint64_t n)
{
    if (run->marks) {
        (void)printf("%8" PRIu64 "  %s\n", n, what);
    }
    if (n == 0 && run->seeds >= SEEN_ALL_FROM) {
        (void)fprintf(stderr, "never seen: %s\n", what);
        return false;
    }
    return true;
}

static bool expect_marks(const struct run *run)
{
    bool all = true;

#ifdef ONCED_MARKS
    for (enum mark mark = 0; mark < MARKS; mark++) {
        if (mark_kind(mark) == MARK_RARE) {
            all = expect(run, mark_name(mark), mark_count(mark)) && all;
        }
    }
#else
    (void)run;
#endif
    return all;
}

static bool expect_sights(const struct run *run)
{
    const struct sights *sights = &run->sights;
    const struct {
        const char *what;
        uint64_t n;
    } table[] = {
        {"an answer that nobody waited for", sights->late_answers},
        {"death before a commit", sights->commits[COMMIT_LOST]},
        {"death after a commit", sights->commits[COMMIT_KEPT]},
        {"unknown commit, not applied", sights->commits[COMMIT_FAILS]},
        {"unknown commit, applied", sights->commits[COMMIT_UNKNOWN]},
        {"a commit without space", sights->commits[COMMIT_NO_SPACE]},
        {"death during recovery", sights->deaths_in_start},
        {"death during recovery, twice", sights->deaths_in_start_again},
        {"shed: the inbox is full", sights->sheds},
        {"409: the key is under way", sights->key_busy},
        {"an event forgotten", sights->forgotten},
        {"a partition revoked while it was at work", sights->revoked_busy},
        {"an event begun while its partition drains", sights->begun_in_drain},
        {"fenced before it was drained", sights->revoked_impatiently},
        {"a partition lost while it was at work", sights->lost_busy},
        {"a delivery fenced", sights->fenced},
        {"messages offered again", sights->offered_again},
        {"a partition elsewhere meanwhile", sights->elsewhere},
        {"a commit lost", sights->commits_lost},
        {"a commit of a dead process", sights->commits_late},
        {"the store ahead of the group's offset", sights->store_ahead},
        {"the group's offset set back", sights->rewound},
        {"the group's offset set forward", sights->reset_forward},
        {"a log that lost its beginning", sights->beginning_lost},
        {"a log that lost its end", sights->end_lost},
        {"a topic created anew", sights->created_anew},
    };
    bool all = expect_marks(run);

    for (int path = 0; path < PATHS; path++) {
        all = expect(run, path_words((enum path)path), sights->paths[path]) &&
              all;
    }
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        all = expect(run, table[i].what, table[i].n) && all;
    }
    return all;
}

/* --- when the program under test ends this one -------------------------------
 */

static const char *why_it_ends(int number)
{
    if (number == SIGALRM) {
        return "it does not end";
    }
    return number == SIGABRT ? "a CHECK failed, see above" : "stopped";
}

/* A failed CHECK aborts, and a loop without end is ended by the alarm. Nothing
 * is left to lose: what helps is told, though signal handlers should not. */
static void tell_and_end(int number)
{
    struct sim *sim = sim_current;

    (void)signal(number, SIG_DFL);
    if (sim != NULL) {
        sim_current = NULL;
        tell_finding(sim, why_it_ends(number));
        sim_remove_store(sim);
        (void)rmdir(sim->dir);
    }
    (void)raise(number);
}

/* --- seeds
 * ---------------------------------------------------------------------- */

static bool run_seed(struct run *run, struct sim *sim, uint64_t seed)
{
    bool ok;
    uint64_t hash;

    (void)alarm(SEED_SECONDS_MAX);
    ok = sim_run(sim, seed, run->dir, run->trace);
    hash = sim->trace.hash;

    add_sights(&run->sights, &sim->sights);
    if (ok && (seed % TWICE_EVERY == 0 || run->trace)) {
        ok = sim_run(sim, seed, run->dir, false);
        if (ok && sim->trace.hash != hash) {
            (void)snprintf(sim->finding, sizeof sim->finding,
                           "two runs have different traces: %016" PRIx64
                           " %016" PRIx64,
                           hash, sim->trace.hash);
            ok = false;
        }
    }
    if (!ok) {
        tell_finding(sim, sim->finding);
    } else if (run->trace) {
        (void)printf("seed %" PRIu64 ": trace %016" PRIx64 ", %" PRIu64
                     " lines\n",
                     seed, hash, sim->trace.lines);
    }
    return ok;
}

static bool run_all(struct run *run)
{
    struct sim *sim = mem_new(1, sizeof *sim);
    uint64_t bad = 0;

    for (uint64_t i = 0; i < run->seeds; i++) {
        bad += run_seed(run, sim, run->from + i) ? 0 : 1;
    }
    free(sim);
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " bad, %" PRIu64
                 " deaths of the process, in %s\n",
                 run->seeds, run->from, bad, run->sights.deaths, run->dir);
    return expect_sights(run) && bad == 0;
}

/* On memory: what is slow there is not the disk. */
static void make_dir(struct run *run)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    (void)snprintf(run->dir, sizeof run->dir, "%s/onced-sim-XXXXXX", base);
    if (mkdtemp(run->dir) == NULL) {
        (void)fprintf(stderr, "onced_sim: %s: %s\n", run->dir, strerror(errno));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    const struct log_options quiet = {.level = LOG_OFF, .fd = STDERR_FILENO};
    struct run run = read_arguments(argc, argv);
    struct err err = {ERR_NONE, ""};
    bool ok;

    CHECK(log_start(&quiet, &err));
    (void)signal(SIGABRT, tell_and_end);
    (void)signal(SIGALRM, tell_and_end);
    (void)signal(SIGINT, tell_and_end);
    (void)signal(SIGTERM, tell_and_end);
    make_dir(&run);
    ok = run_all(&run);
    (void)rmdir(run.dir);
    log_stop();
    return ok ? 0 : 1;
}
