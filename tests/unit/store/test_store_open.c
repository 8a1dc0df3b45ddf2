/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tamper.h"

static void expect_refused(struct fixture *f, enum err_kind kind,
                           const char *text)
{
    struct store *store;

    cr_assert_not(store_open(&store, &f->options, &f->err));
    cr_assert_null(store);
    cr_assert_eq(f->err.kind, kind, "%d: %s", f->err.kind, f->err.text);
    cr_assert_not_null(strstr(f->err.text, text), "%s", f->err.text);
}

Test(store_open, one_process_owns_a_store)
{
    struct fixture f;

    fixture_begin(&f);
    expect_refused(&f, ERR_AGAIN, "in use");
    f.options.read_only = true;
    expect_refused(&f, ERR_AGAIN, "in use");
    f.options.read_only = false;
    fixture_reopen(&f);
    fixture_end(&f);
}

Test(store_open, two_readers_of_a_stopped_store_get_along)
{
    struct fixture f;
    struct store *second;

    fixture_begin(&f);
    f.options.read_only = true;
    fixture_reopen(&f);
    OK(&f, store_open(&second, &f.options, &f.err));
    store_close(&second);
    fixture_end(&f);
}

/* Also one that is made while the reader reads. */
Test(store_open, a_reader_leaves_nothing_behind_and_keeps_writers_out)
{
    static const char *const names[] = {"LOCK", "lock.mdb"};
    struct fixture f;
    char path[PATH_MAX + 16];

    fixture_begin(&f);
    fixture_add_done(&f, "e1");
    store_close(&f.store);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", f.dir, names[i]);
        cr_assert_eq(unlink(path), 0, "%s", path);
    }
    f.options.read_only = true;
    fixture_open(&f);
    f.options.read_only = false;
    expect_refused(&f, ERR_AGAIN, "in use");
    (void)snprintf(path, sizeof path, "%s/LOCK", f.dir);
    cr_assert_eq(unlink(path), 0, "the writer's");
    store_close(&f.store);
    f.options.read_only = true;
    fixture_open(&f);
    store_close(&f.store);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", f.dir, names[i]);
        cr_expect_neq(access(path, F_OK), 0, "%s", path);
    }
    f.options.read_only = false;
    fixture_open(&f);
    fixture_end(&f);
}

Test(store_open, reads_what_it_may_not_write)
{
    static const uid_t nobody = 65534;
    struct fixture f;
    struct store_report report;
    char path[PATH_MAX + 16];
    pid_t child;
    int status;

    fixture_begin(&f);
    fixture_add_done(&f, "e1");
    store_close(&f.store);
    (void)snprintf(path, sizeof path, "%s/data.mdb", f.dir);
    cr_assert_eq(chmod(path, 0444), 0);
    cr_assert_eq(chmod(f.dir, 0555), 0);
    f.options.read_only = true;
    f.options.create = false;
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        struct store *store;
        /* Modes do not hold root back. */
        bool ok = (geteuid() != 0 || setuid(nobody) == 0) &&
                  store_open(&store, &f.options, &f.err) &&
                  store_verify(f.dir, &report, &f.err) && report.bad == 0 &&
                  report.records == 1;

        if (!ok) {
            (void)fprintf(stderr, "%s\n", f.err.text);
        }
        _exit(ok ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
    cr_assert_eq(chmod(f.dir, 0700), 0);
    fixture_end(&f);
}

Test(store_open, does_not_make_a_store_unless_told)
{
    struct fixture f;
    char path[PATH_MAX + 8];

    fixture_prepare(&f);
    f.options.create = false;
    expect_refused(&f, ERR_DATA, "no store");
    (void)snprintf(path, sizeof path, "%s/sub", f.dir);
    f.options.path = path;
    expect_refused(&f, ERR_DATA, "no store");
    f.options.create = true;
    f.options.read_only = true;
    expect_refused(&f, ERR_DATA, "no store");
    f.options.read_only = false;
    fixture_open(&f);
    fixture_end(&f);
}

static unsigned mode_of(const char *dir, const char *name)
{
    char path[PATH_MAX + 16];
    struct stat info;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    cr_assert_eq(stat(path, &info), 0, "%s", path);
    return info.st_mode & 0777;
}

Test(store_open, nobody_else_can_read_it)
{
    struct fixture f;
    char path[PATH_MAX + 8];

    fixture_prepare(&f);
    (void)snprintf(path, sizeof path, "%s/sub/", f.dir);
    f.options.path = path;
    fixture_open(&f);
    cr_assert_eq(mode_of(path, "."), 0700);
    cr_assert_eq(mode_of(path, "data.mdb"), 0600);
    cr_assert_eq(mode_of(path, "lock.mdb"), 0600);
    cr_assert_eq(mode_of(path, "LOCK"), 0600);
    fixture_end(&f);
}

Test(store_open, goes_on_where_a_crash_cut_the_creation_short)
{
    struct fixture f;
    char path[PATH_MAX + 32];
    FILE *file;

    fixture_prepare(&f);
    (void)snprintf(path, sizeof path, "%s/new", f.dir);
    cr_assert_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/new/data.mdb", f.dir);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    (void)fputs("half", file);
    fclose(file);
    fixture_open(&f);
    (void)snprintf(path, sizeof path, "%s/new", f.dir);
    cr_assert_neq(access(path, F_OK), 0);
    fixture_end(&f);
}

Test(store_open, a_newer_format_is_refused_in_words)
{
    struct fixture f;

    fixture_begin(&f);
    store_close(&f.store);
    tamper_set_byte(f.dir, "meta", SLICE("F"), 3, 3);
    expect_refused(&f, ERR_DATA, "newer");
    fixture_end(&f);
}

Test(store_open, another_lmdb_file_is_not_a_store)
{
    struct fixture f;
    struct tamper t;

    fixture_prepare(&f);
    cr_assert_eq(mdb_env_create(&t.env), 0);
    cr_assert_eq(mdb_env_open(t.env, f.dir, 0, 0600), 0);
    mdb_env_close(t.env);
    expect_refused(&f, ERR_DATA, "not a store");
    fixture_end(&f);
}

Test(store_open, garbage_and_a_file_cut_short_are_refused)
{
    struct fixture f;
    char path[PATH_MAX + 16];
    FILE *file;

    fixture_begin(&f);
    fixture_add_done(&f, "a");
    store_close(&f.store);
    (void)snprintf(path, sizeof path, "%s/data.mdb", f.dir);
    cr_assert_eq(truncate(path, 3 * 4096), 0);
    expect_refused(&f, ERR_DATA, "cut short");
    file = fopen(path, "w");
    cr_assert_not_null(file);
    for (int i = 0; i < 20000; i++) {
        (void)fputc(i % 251, file);
    }
    fclose(file);
    expect_refused(&f, ERR_DATA, "damaged");
    fixture_end(&f);
}

/* A long row that one transaction puts and takes out again. */
static void take_and_give_back(const char *dir)
{
    static char bytes[40000];
    struct tamper t;
    char name[] = "~";
    MDB_val key = {1, name};
    MDB_val value = {sizeof bytes, bytes};

    tamper_begin(&t, dir, "meta");
    cr_assert_eq(mdb_put(t.txn, t.dbi, &key, &value, 0), 0);
    cr_assert_eq(mdb_del(t.txn, t.dbi, &key, NULL), 0);
    tamper_end(&t);
}

static uint64_t missing_bytes(const char *dir, const char *path)
{
    MDB_env *env;
    MDB_envinfo info;
    struct stat file;

    cr_assert_eq(mdb_env_create(&env), 0);
    cr_assert_eq(mdb_env_open(env, dir, MDB_RDONLY, 0600), 0);
    cr_assert_eq(mdb_env_info(env, &info), 0);
    mdb_env_close(env);
    cr_assert_eq(stat(path, &file), 0);
    return (info.me_last_pgno + 1) * 4096 - (uint64_t)file.st_size;
}

/* LMDB does not write pages that were never needed. */
Test(store_open, a_file_that_lacks_only_free_pages_is_whole)
{
    struct fixture f;
    struct store_report report;
    char path[PATH_MAX + 16];

    fixture_begin(&f);
    fixture_add_done(&f, "a");
    store_close(&f.store);
    (void)snprintf(path, sizeof path, "%s/data.mdb", f.dir);
    take_and_give_back(f.dir);
    cr_assert_gt(missing_bytes(f.dir, path), 0);
    cr_assert(store_open(&f.store, &f.options, &f.err), "%s", f.err.text);
    cr_assert_eq(missing_bytes(f.dir, path), 0);
    store_close(&f.store);
    cr_assert(store_verify(f.dir, &report, &f.err), "%s", f.err.text);
    cr_assert_eq(report.bad, 0, "%s", report.first_bad);
    fixture_end(&f);
}

/* The same, and what is in use behind them. */
Test(store_open, a_file_that_lacks_more_is_refused_as_it_is)
{
    struct fixture f;
    char path[PATH_MAX + 16];
    struct stat before, after;

    fixture_begin(&f);
    fixture_add_done(&f, "a");
    store_close(&f.store);
    (void)snprintf(path, sizeof path, "%s/data.mdb", f.dir);
    take_and_give_back(f.dir);
    cr_assert_eq(stat(path, &before), 0);
    cr_assert_eq(truncate(path, before.st_size / 8192 * 4096), 0);
    expect_refused(&f, ERR_DATA, "cut short");
    cr_assert_eq(stat(path, &after), 0);
    cr_assert_eq(after.st_size, before.st_size / 8192 * 4096);
    fixture_end(&f);
}

/* LMDB would take it for a new one and answer that nothing was ever seen. */
Test(store_open, an_empty_file_is_refused_and_left_alone)
{
    struct fixture f;
    char path[PATH_MAX + 16];
    struct stat info;

    fixture_prepare(&f);
    (void)snprintf(path, sizeof path, "%s/data.mdb", f.dir);
    cr_assert_eq(mknod(path, S_IFREG | 0600, 0), 0);
    expect_refused(&f, ERR_DATA, "empty");
    f.options.read_only = true;
    expect_refused(&f, ERR_DATA, "empty");
    cr_assert_eq(stat(path, &info), 0);
    cr_assert_eq(info.st_size, 0);
    fixture_end(&f);
}

Test(store_open, makes_the_folders_above_it)
{
    struct fixture f;
    char path[PATH_MAX + 16];

    fixture_prepare(&f);
    (void)snprintf(path, sizeof path, "%s/a/b/store", f.dir);
    f.options.path = path;
    fixture_open(&f);
    cr_assert_eq(mode_of(f.dir, "a"), 0700);
    cr_assert_eq(mode_of(f.dir, "a/b/store"), 0700);
    fixture_end(&f);
}

/* Whatever LMDB and we open must not end up in a handler process. */
Test(store_open, every_descriptor_is_closed_on_exec)
{
    struct fixture f;
    DIR *dir;
    struct dirent *entry;
    int checked = 0;

    fixture_begin(&f);
    dir = opendir("/proc/self/fd");
    cr_assert_not_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        int fd = atoi(entry->d_name);
        char link[PATH_MAX] = "";

        if (readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1) < 0 ||
            strstr(link, f.dir) == NULL) {
            continue;
        }
        checked++;
        cr_assert_neq(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0, "%s", link);
    }
    closedir(dir);
    cr_assert_geq(checked, 4, "data, meta, lock, LOCK and the folder");
    fixture_end(&f);
}

static int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

Test(store_open, leaves_no_descriptor_behind)
{
    struct fixture f;
    int before = count_fds();

    fixture_begin(&f);
    expect_refused(&f, ERR_AGAIN, "in use");
    fixture_reopen(&f);
    store_close(&f.store);
    cr_assert_eq(count_fds(), before);
    fixture_end(&f);
}
