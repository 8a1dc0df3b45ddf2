/* SPDX-License-Identifier: MIT */
#include "store/store_check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

/* LMDB may run into a signal on a damaged file: everything is read in a
 * child, which tells its parent through shared memory. */
struct shared {
    struct store_report report;
    struct err err;
    bool could, finished;
    const char *stage; /* of static text: good in both processes */
};

static bool load_content(struct check *check, struct err *err)
{
    struct store *store = check->store;

    *check->stage = "meta";
    if (!store_meta_load(store, err)) {
        return false;
    }
    *check->stage = "ids";
    for (uint32_t n = store->state.first_gen; n <= store->state.last_gen; n++) {
        bool sealed = gen_at(store, n)->state == GEN_SEALED;

        if (!(sealed ? store_ids_load_bloom(store, n, err)
                     : store_ids_fill(store, n, err))) {
            return false;
        }
    }
    return true;
}

/* A compacting copy walks every page and finds those that leaked. LMDB
 * trusts what it copies: only where nothing else was found. */
static void copy_to_nowhere(struct check *check)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int rc =
        fd < 0 ? errno : mdb_env_copyfd2(check->store->env, fd, MDB_CP_COMPACT);

    if (rc != 0) {
        store_check_bad(check, "a compacting copy failed: %s",
                        mdb_strerror(rc));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void check_content(struct shared *shared, struct store *store)
{
    struct check *check = mem_new(1, sizeof *check);
    struct err err = {ERR_NONE, ""};

    check->store = store;
    check->report = &shared->report;
    check->stage = &shared->stage;
    if (load_content(check, &err)) {
        store_check_all(check);
    } else {
        store_check_bad(check, "%s", err.text);
    }
    shared->stage = "pages";
    if (shared->report.bad == 0) {
        copy_to_nowhere(check);
    }
    free(check);
}

static bool check_store(struct shared *shared, const char *path)
{
    struct store_options options = {
        .path = path,
        .max_bytes = 1,
        .retention_ms = INT64_MAX,
        .read_only = true,
        .clock = clock_system(),
    };
    struct store *store;
    int rc;

    shared->stage = "the data file";
    if (!store_open_files(&store, &options, &shared->err)) {
        return false;
    }
    rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &store->txn);
    if (rc != 0) {
        store->txn = NULL;
        (void)store_db_fail(store, rc, "begin", &shared->err);
        store_close(&store);
        return false;
    }
    check_content(shared, store);
    mdb_txn_abort(store->txn);
    store->txn = NULL;
    store_close(&store);
    return true;
}

/* A signal must end the child, whatever handlers the process has, and leave
 * no core file of the size of the store. */
static _Noreturn void run_child(struct shared *shared, const char *path)
{
    static const int fatal[] = {SIGBUS, SIGSEGV, SIGABRT, SIGFPE, SIGILL};
    const struct rlimit no_core = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &no_core);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        (void)signal(fatal[i], SIG_DFL);
    }
    shared->could = check_store(shared, path);
    shared->finished = true;
    _exit(0);
}

static bool wait_for(pid_t child, struct shared *shared, struct err *err)
{
    int status;

    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return err_set(err, ERR_IO, "verify: wait: %s", strerror(errno));
        }
    }
    if (shared->finished) {
        return true;
    }
    shared->could = true;
    if (shared->report.bad++ == 0) {
        (void)snprintf(
            shared->report.first_bad, sizeof shared->report.first_bad,
            "the data file is damaged: signal %d while reading %s",
            WIFSIGNALED(status) ? WTERMSIG(status) : 0, shared->stage);
    }
    return true;
}

static bool run(struct shared *shared, const char *path, struct err *err)
{
    pid_t child = fork();

    if (child < 0) {
        return err_set(err, ERR_AGAIN, "verify: fork: %s", strerror(errno));
    }
    if (child == 0) {
        run_child(shared, path);
    }
    return wait_for(child, shared, err);
}

bool store_verify(const char *path, struct store_report *report,
                  struct err *err)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool ok;

    if (shared == MAP_FAILED) {
        return err_set(err, ERR_AGAIN, "verify: %s", strerror(errno));
    }
    shared->stage = "";
    ok = run(shared, path, err);
    if (ok && !shared->could) {
        ok = err_set(err, shared->err.kind, "%s", shared->err.text);
    }
    *report = shared->report;
    (void)munmap(shared, sizeof *shared);
    return ok;
}
