/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "fixture.h"

enum { EVENTS = 50 };

struct rig {
    struct fixture f;
    char above[PATH_MAX]; /* a folder for backups, empty at the start */
    char target[PATH_MAX + 16];
    struct store_backup made;
};

static void rig_begin(struct rig *rig)
{
    fixture_begin(&rig->f);
    for (int i = 0; i < EVENTS; i++) {
        char id[16];

        (void)snprintf(id, sizeof id, "e%d", i);
        fixture_add_done(&rig->f, id);
    }
    tmpdir_make(rig->above);
    (void)snprintf(rig->target, sizeof rig->target, "%s/monday", rig->above);
}

static void rig_end(struct rig *rig)
{
    fixture_end(&rig->f);
    tmpdir_remove(rig->above);
}

static void back_up(struct rig *rig)
{
    const struct store_backup_order order = {.target = rig->target};

    OK(&rig->f, store_backup(rig->f.store, &order, &rig->made, &rig->f.err));
}

/* How many names the folder has. */
static int names_in(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int n = 0;

    cr_assert_not_null(dir, "%s", path);
    while ((entry = readdir(dir)) != NULL) {
        n += entry->d_name[0] != '.';
    }
    closedir(dir);
    return n;
}

/* The backup takes the place of the fixture's store. */
static void turn_to(struct rig *rig, bool read_only, bool restore)
{
    store_close(&rig->f.store);
    rig->f.options.path = rig->target;
    rig->f.options.read_only = read_only;
    rig->f.options.restore = restore;
    rig->f.options.create = false;
}

static void expect_refused(struct rig *rig, enum err_kind kind,
                           const char *text)
{
    struct fixture *f = &rig->f;

    cr_assert_not(store_open(&f->store, &f->options, &f->err));
    cr_assert_eq(f->err.kind, kind, "%d: %s", f->err.kind, f->err.text);
    cr_assert_not_null(strstr(f->err.text, text), "%s", f->err.text);
}

static unsigned mode_of(const char *dir, const char *name, struct stat *info)
{
    char path[PATH_MAX + 32];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    cr_assert_eq(stat(path, info), 0, "%s", path);
    return info->st_mode & 07777;
}

Test(store_backup, holds_all_that_was_committed_and_nothing_else)
{
    struct rig rig;
    struct store_entry entry;
    struct store_report report;
    struct stat info;

    rig_begin(&rig);
    OK(&rig.f, store_begin(rig.f.store, &rig.f.err));
    fixture_accept(&rig.f, "later", &entry);
    back_up(&rig);
    OK(&rig.f, store_commit(rig.f.store, &rig.f.err));
    cr_expect_eq(rig.made.events, EVENTS);
    cr_expect_eq(rig.made.made_wall_ms, START_MS);
    cr_expect_eq(mode_of(rig.above, "monday", &info), 0700);
    cr_expect_eq(mode_of(rig.target, "data.mdb", &info), 0600);
    cr_expect_eq((uint64_t)info.st_size, rig.made.bytes);
    cr_expect_eq(names_in(rig.target), 1, "the data file, and nothing else");
    cr_expect_eq(names_in(rig.above), 1);
    OK(&rig.f, store_verify(rig.target, &report, &rig.f.err));
    cr_expect_eq(report.bad, 0, "%s", report.first_bad);
    cr_expect_eq(report.records, EVENTS);
    turn_to(&rig, true, false);
    OK(&rig.f, store_open(&rig.f.store, &rig.f.options, &rig.f.err));
    for (int i = 0; i < EVENTS; i++) {
        char id[16];

        (void)snprintf(id, sizeof id, "e%d", i);
        FOUND(&rig.f, fixture_look(&rig.f, id, &entry));
    }
    ABSENT(&rig.f, fixture_look(&rig.f, "later", &entry));
    rig_end(&rig);
}

Test(store_backup, is_read_but_not_written_to)
{
    struct rig rig;
    struct slice uuid;
    char hex[33] = "";

    rig_begin(&rig);
    cr_expect_eq(store_copied_wall_ms(rig.f.store), 0);
    back_up(&rig);
    uuid = store_uuid(rig.f.store);
    for (size_t i = 0; i < uuid.len; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)uuid.data[i]);
    }
    turn_to(&rig, false, false);
    expect_refused(&rig, ERR_DATA, "onced restore");
    expect_refused(&rig, ERR_DATA, hex);
    expect_refused(&rig, ERR_DATA, "made at 2027-01-15T08:00:00.000Z");
    rig.f.options.create = true;
    expect_refused(&rig, ERR_DATA, "it is a backup");
    turn_to(&rig, true, false);
    OK(&rig.f, store_open(&rig.f.store, &rig.f.options, &rig.f.err));
    cr_expect_eq(store_copied_wall_ms(rig.f.store), START_MS);
    rig_end(&rig);
}

Test(store_backup, only_a_backup_is_opened_to_be_restored)
{
    struct rig rig;

    rig_begin(&rig);
    store_close(&rig.f.store);
    rig.f.options.restore = true;
    expect_refused(&rig, ERR_DATA, "no backup");
    (void)snprintf(rig.target, sizeof rig.target, "%s/none", rig.above);
    turn_to(&rig, false, true);
    expect_refused(&rig, ERR_DATA, "no store");
    rig_end(&rig);
}

Test(store_backup, becomes_a_store_in_the_transaction_that_ends_the_restore)
{
    struct rig rig;

    rig_begin(&rig);
    fixture_pass(&rig.f, HOUR_MS);
    back_up(&rig);
    fixture_pass(&rig.f, HOUR_MS);
    turn_to(&rig, false, true);
    OK(&rig.f, store_open(&rig.f.store, &rig.f.options, &rig.f.err));
    cr_expect_eq(store_incarnation(rig.f.store), 1);
    OK(&rig.f, store_begin(rig.f.store, &rig.f.err));
    OK(&rig.f, store_end_restore(rig.f.store, &rig.f.err));
    store_abort(rig.f.store);
    cr_expect_eq(store_incarnation(rig.f.store), 1);
    cr_expect_eq(store_copied_wall_ms(rig.f.store), START_MS + HOUR_MS);
    OK(&rig.f, store_begin(rig.f.store, &rig.f.err));
    OK(&rig.f, store_end_restore(rig.f.store, &rig.f.err));
    OK(&rig.f, store_commit(rig.f.store, &rig.f.err));
    turn_to(&rig, false, true);
    expect_refused(&rig, ERR_DATA, "no backup");
    turn_to(&rig, false, false);
    OK(&rig.f, store_open(&rig.f.store, &rig.f.options, &rig.f.err));
    cr_expect_eq(store_incarnation(rig.f.store), 2);
    cr_expect_eq(store_copied_wall_ms(rig.f.store), 0);
    cr_expect_eq(store_last_backup_wall_ms(rig.f.store), START_MS + HOUR_MS);
    rig_end(&rig);
}

Test(store_backup, of_a_backup_keeps_its_time)
{
    struct rig rig;

    rig_begin(&rig);
    back_up(&rig);
    turn_to(&rig, true, false);
    fixture_pass(&rig.f, HOUR_MS);
    OK(&rig.f, store_open(&rig.f.store, &rig.f.options, &rig.f.err));
    (void)snprintf(rig.target, sizeof rig.target, "%s/again/", rig.above);
    back_up(&rig);
    cr_expect_eq(rig.made.made_wall_ms, START_MS);
    cr_expect_eq(rig.made.events, EVENTS);
    turn_to(&rig, true, false);
    OK(&rig.f, store_open(&rig.f.store, &rig.f.options, &rig.f.err));
    cr_expect_eq(store_copied_wall_ms(rig.f.store), START_MS);
    rig_end(&rig);
}

static void expect_not_made(struct rig *rig, enum err_kind kind,
                            const char *text)
{
    struct fixture *f = &rig->f;
    const struct store_backup_order order = {.target = rig->target};
    int before = names_in(rig->above);

    cr_expect_not(store_backup(f->store, &order, &rig->made, &f->err));
    cr_expect_eq(f->err.kind, kind, "%d: %s", f->err.kind, f->err.text);
    cr_expect_not_null(strstr(f->err.text, text), "%s", f->err.text);
    cr_expect_not_null(strstr(f->err.text, rig->target), "%s", f->err.text);
    cr_expect_eq(names_in(rig->above), before, "nothing is left behind");
}

Test(store_backup, touches_nothing_where_something_is_in_the_way)
{
    struct rig rig;
    char inside[PATH_MAX + 32];
    struct stat info;
    FILE *file;

    rig_begin(&rig);
    cr_assert_eq(mkdir(rig.target, 0755), 0);
    (void)snprintf(inside, sizeof inside, "%s/.keep", rig.target);
    file = fopen(inside, "w");
    cr_assert_not_null(file);
    (void)fclose(file);
    expect_not_made(&rig, ERR_USAGE, "not empty");
    cr_expect_eq(mode_of(rig.target, ".keep", &info), 0644);
    cr_expect_eq(mode_of(rig.above, "monday", &info), 0755);
    (void)snprintf(rig.target, sizeof rig.target, "%s/monday/.keep", rig.above);
    expect_not_made(&rig, ERR_USAGE, "no folder");
    (void)snprintf(rig.target, sizeof rig.target, "%s/no/where", rig.above);
    expect_not_made(&rig, ERR_USAGE, "/no is not there");
    cr_assert_eq(unlink(inside), 0);
    (void)snprintf(rig.target, sizeof rig.target, "%s/monday", rig.above);
    back_up(&rig);
    cr_expect_eq(names_in(rig.above), 1, "an empty folder is taken");
    expect_not_made(&rig, ERR_USAGE, "not empty");
    rig_end(&rig);
}

Test(store_backup, is_not_made_where_it_could_not_be_put)
{
    struct rig rig;
    char place[PATH_MAX + 16];

    rig_begin(&rig);
    (void)snprintf(place, sizeof place, "%s/there", rig.above);
    cr_assert_eq(mkdir(place, 0700), 0);
    cr_assert_eq(symlink(place, rig.target), 0);
    expect_not_made(&rig, ERR_USAGE, "symbolic link");
    (void)snprintf(rig.target, sizeof rig.target, "%s/monday/", rig.above);
    expect_not_made(&rig, ERR_USAGE, "symbolic link");
    (void)snprintf(place, sizeof place, "%s/sub", rig.f.dir);
    cr_assert_eq(mkdir(place, 0700), 0);
    (void)snprintf(rig.target, sizeof rig.target, "%s/copy", rig.f.dir);
    expect_not_made(&rig, ERR_USAGE, "inside of the store");
    (void)snprintf(rig.target, sizeof rig.target, "%s/sub/../sub/copy",
                   rig.f.dir);
    expect_not_made(&rig, ERR_USAGE, "inside of the store");
    cr_expect_eq(names_in(place), 0);
    rig_end(&rig);
}

/* A file that may not grow stands for a full disk: the write fails. */
Test(store_backup, leaves_nothing_behind_when_it_cannot_be_written)
{
    struct rig rig;
    struct rlimit none = {4096, RLIM_INFINITY}, all = {0, 0};
    struct store_report report;

    rig_begin(&rig);
    cr_assert_neq(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &all), 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    expect_not_made(&rig, ERR_IO, "File too large");
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &all), 0);
    back_up(&rig);
    fixture_add_done(&rig.f, "goes on");
    store_close(&rig.f.store);
    OK(&rig.f, store_verify(rig.f.dir, &report, &rig.f.err));
    cr_expect_eq(report.bad, 0, "%s", report.first_bad);
    cr_expect_eq(report.records, EVENTS + 1);
    rig_end(&rig);
}

Test(store_backup, takes_nothing_along_but_the_data)
{
    struct rig rig;
    char path[PATH_MAX + 16];

    rig_begin(&rig);
    (void)snprintf(path, sizeof path, "%s/lease", rig.f.dir);
    cr_assert_eq(mkdir(path, 0700), 0);
    back_up(&rig);
    cr_expect_eq(names_in(rig.target), 1);
    rig_end(&rig);
}

/* Whatever has no mark yet has no name that a store has. */
Test(store_backup, is_no_store_under_its_first_name)
{
    struct rig rig;
    char from[PATH_MAX + 32], to[PATH_MAX + 32];

    rig_begin(&rig);
    back_up(&rig);
    (void)snprintf(from, sizeof from, "%s/data.mdb", rig.target);
    (void)snprintf(to, sizeof to, "%s/copy.mdb", rig.target);
    cr_assert_eq(rename(from, to), 0);
    turn_to(&rig, true, false);
    expect_refused(&rig, ERR_DATA, "no store");
    turn_to(&rig, false, false);
    expect_refused(&rig, ERR_DATA, "no store");
    turn_to(&rig, false, true);
    expect_refused(&rig, ERR_DATA, "no store");
    rig_end(&rig);
}

Test(store_backup, the_time_of_the_last_one_is_kept)
{
    struct rig rig;

    rig_begin(&rig);
    cr_expect_eq(store_last_backup_wall_ms(rig.f.store), 0);
    OK(&rig.f, store_begin(rig.f.store, &rig.f.err));
    OK(&rig.f, store_set_last_backup(rig.f.store, 1234567, &rig.f.err));
    OK(&rig.f, store_commit(rig.f.store, &rig.f.err));
    OK(&rig.f, store_begin(rig.f.store, &rig.f.err));
    OK(&rig.f, store_set_last_backup(rig.f.store, 7654321, &rig.f.err));
    store_abort(rig.f.store);
    cr_expect_eq(store_last_backup_wall_ms(rig.f.store), 1234567);
    fixture_reopen(&rig.f);
    cr_expect_eq(store_last_backup_wall_ms(rig.f.store), 1234567);
    rig_end(&rig);
}

static int count_fds(void)
{
    return names_in("/proc/self/fd");
}

Test(store_backup, leaves_no_descriptor_open)
{
    struct rig rig;
    const struct store_backup_order order = {.target = rig.target};
    int before;

    rig_begin(&rig);
    before = count_fds();
    back_up(&rig);
    cr_expect_eq(count_fds(), before);
    cr_expect_not(store_backup(rig.f.store, &order, &rig.made, NULL));
    cr_expect_eq(count_fds(), before);
    rig_end(&rig);
}

static bool count_down(void *ctx)
{
    return --*(int *)ctx > 0;
}

/* LMDB's thread writes on into a pipe that nobody reads any more. */
Test(store_backup, ends_when_it_is_not_wanted_any_more)
{
    enum { ENVELOPE_BYTES = 100000 };
    struct rig rig;
    int left = 3;
    const struct store_backup_order order = {
        .target = rig.target, .is_wanted = count_down, .ctx = &left};
    char *text = mem_new(1, ENVELOPE_BYTES);

    rig_begin(&rig);
    for (int i = 0; i < 100; i++) {
        struct store_entry entry;
        char id[16];

        (void)snprintf(id, sizeof id, "big%d", i);
        OK(&rig.f, store_begin(rig.f.store, &rig.f.err));
        fixture_accept(&rig.f, id, &entry);
        OK(&rig.f, store_put_envelope(rig.f.store, &entry,
                                      (struct slice){text, ENVELOPE_BYTES},
                                      &rig.f.err));
        OK(&rig.f, store_commit(rig.f.store, &rig.f.err));
    }
    free(text);
    cr_expect_not(store_backup(rig.f.store, &order, &rig.made, &rig.f.err));
    cr_expect_eq(rig.f.err.kind, ERR_AGAIN, "%s", rig.f.err.text);
    cr_expect_eq(left, 0);
    cr_expect_eq(names_in(rig.above), 0);
    left = INT_MAX;
    OK(&rig.f, store_backup(rig.f.store, &order, &rig.made, &rig.f.err));
    cr_expect_leq(INT_MAX - left, 12, "asked with each MiB");
    cr_expect_geq(INT_MAX - left, 10);
    fixture_add_done(&rig.f, "goes on");
    rig_end(&rig);
}
