/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "support/tmpdir.h"
#include "support/world.h"

/* --- a commit at which the process dies ----------------------------------- */

/* Stands in for LMDB's: 0: none is killed. */
static unsigned die_at, commits;
static bool die_after;

int mdb_txn_commit(MDB_txn *txn)
{
    static int (*real)(MDB_txn * txn);
    bool dies = ++commits == die_at;
    int rc;

    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "mdb_txn_commit");
        CHECK(real != NULL);
    }
    if (dies && !die_after) {
        (void)raise(SIGKILL);
    }
    rc = real(txn);
    if (dies) {
        (void)raise(SIGKILL);
    }
    return rc;
}

/* --- a backup, and its restore -------------------------------------------- */

struct rig {
    struct world world;
    char backup[80]; /* the folder of the backup */
    struct engine_restored counts[WORLD_ROUTES];
    struct err err;
};

/* Route a holds what is uncertain, b tries it again. */
static void rig_begin(struct rig *rig)
{
    memset(rig, 0, sizeof *rig);
    world_init(&rig->world);
    rig->world.routes[0].policy.on_uncertain = ON_UNCERTAIN_HOLD;
    world_open(&rig->world);
    (void)snprintf(rig->backup, sizeof rig->backup, "%s/backup",
                   rig->world.dir);
}

static void rig_end(struct rig *rig)
{
    world_fini(&rig->world);
}

static void back_up(struct rig *rig)
{
    const struct store_backup_order order = {.target = rig->backup};
    struct store_backup made;

    cr_assert(store_backup(rig->world.store, &order, &made, &rig->err), "%s",
              rig->err.text);
}

static uint64_t no_random(void *self)
{
    (void)self;
    return 0;
}

static bool open_backup(struct rig *rig, bool restore, struct store **store)
{
    const struct store_options options = {
        .path = rig->backup,
        .max_bytes = rig->world.max_bytes,
        .retention_ms = rig->world.retention_ms,
        .read_only = !restore,
        .restore = restore,
        .no_sync = true,
        .clock = &rig->world.clock,
    };

    return store_open(store, &options, &rig->err);
}

static bool restore(struct rig *rig, size_t n_routes)
{
    struct engine_options engine = {
        .routes = rig->world.routes,
        .n_routes = n_routes,
        .clock = &rig->world.clock,
        .random = no_random,
        .inbox_items = 1,
        .inbox_bytes = 1,
    };
    bool ok;

    if (!open_backup(rig, true, &engine.store)) {
        return false;
    }
    ok = engine_restore(&engine, "tester", rig->counts, &rig->err);
    store_close(&engine.store);
    return ok;
}

static void must_restore(struct rig *rig)
{
    cr_assert(restore(rig, WORLD_ROUTES), "%s", rig->err.text);
}

/* The restored backup takes the place of the world's store. */
static void move_in(struct rig *rig)
{
    char path[80];

    (void)snprintf(path, sizeof path, "%s/store", rig->world.dir);
    tmpdir_remove(path);
    cr_assert_eq(rename(rig->backup, path), 0);
    rig->world.started = 0;
    world_open(&rig->world);
}

/* --- looking at the backup ------------------------------------------------ */

struct seen {
    struct record record;
    unsigned restored; /* rows of history that say so */
    char actor[STORE_ACTOR_MAX + 1];
    char why[STORE_TEXT_MAX + 1];
};

static bool see_row(void *ctx, const struct store_audit *audit)
{
    struct seen *seen = ctx;

    if (audit->move == MOVE_RESTORED) {
        seen->restored++;
        memcpy(seen->actor, audit->actor, sizeof seen->actor);
        memcpy(seen->why, audit->why, sizeof seen->why);
    }
    return true;
}

static struct seen look(struct rig *rig, const char *space, const char *id)
{
    struct seen seen = {.restored = 0};
    struct store *store;
    struct store_entry entry;
    uint16_t number;

    cr_assert(open_backup(rig, false, &store), "%s", rig->err.text);
    cr_assert(store_namespace_number(store, space, &number, &rig->err));
    cr_assert(store_begin(store, &rig->err));
    cr_assert_eq(
        store_find(store, number, SLICE(""), slice_of(id), &entry, &rig->err),
        STORE_FOUND, "%s: %s", id, rig->err.text);
    cr_assert(store_each_audit(store, &entry, see_row, &seen, &rig->err));
    seen.record = entry.record;
    store_abort(store);
    store_close(&store);
    return seen;
}

static void deliver(struct rig *rig, size_t route, const char *letter, int n)
{
    for (int i = 0; i < n; i++) {
        char id[16];

        (void)snprintf(id, sizeof id, "%s%d", letter, i);
        (void)world_deliver(&rig->world, route, id, "{}");
    }
}

/* --- what becomes of events ----------------------------------------------- */

Test(engine_restore, a_hold_route_attempts_nothing)
{
    struct rig rig;

    rig_begin(&rig);
    deliver(&rig, 0, "a", 6); /* four run, two wait */
    world_end(&rig.world, "a0", END_STATUS, 200);
    back_up(&rig);
    world_close(&rig.world);
    must_restore(&rig);
    cr_expect_eq(rig.counts[0].uncertain, 5);
    cr_expect_eq(rig.counts[0].held, 5);
    cr_expect_eq(rig.counts[0].due, 0);
    for (int i = 1; i < 6; i++) {
        char id[16];
        struct seen seen;

        (void)snprintf(id, sizeof id, "a%d", i);
        seen = look(&rig, "a", id);
        cr_expect_eq(seen.record.state, RECORD_DEAD, "%s", id);
        cr_expect_eq(seen.record.reason, REASON_UNCERTAIN);
        cr_expect_neq(seen.record.flags & RECORD_RESTORED, 0);
        cr_expect_eq(seen.restored, 1);
        cr_expect_str_eq(seen.actor, "tester");
        cr_expect_str_eq(seen.why, "backup of 1970-01-01T00:16:40.000Z: "
                                   "the route holds what is uncertain");
    }
    cr_expect_eq(look(&rig, "a", "a0").record.state, RECORD_SUCCEEDED);
    cr_expect_eq(look(&rig, "a", "a0").restored, 0);
    move_in(&rig);
    world_pass(&rig.world, 60000);
    cr_expect_eq(rig.world.started, 0);
    cr_expect_eq(world_order(&rig.world, COMMAND_REPLAY, 0, "a3"),
                 COMMAND_IN_DOUBT);
    rig_end(&rig);
}

Test(engine_restore, a_retry_route_tries_again_under_the_same_keys)
{
    struct rig rig;
    char keys[6][ATTEMPT_KEY_SIZE] = {""};

    rig_begin(&rig);
    deliver(&rig, 1, "b", 4);
    for (size_t i = 0; i < 4; i++) {
        memcpy(keys[i], rig.world.running[i]->idempotency_key,
               ATTEMPT_KEY_SIZE);
    }
    world_end(&rig.world, "b0", END_STATUS, 500); /* uncertain, due in 1 s */
    back_up(&rig);
    world_end(&rig.world, "b1", END_STATUS, 200); /* the backup never knows */
    world_close(&rig.world);
    must_restore(&rig);
    cr_expect_eq(rig.counts[1].uncertain, 4);
    cr_expect_eq(rig.counts[1].due, 4);
    cr_expect_eq(rig.counts[1].held, 0);
    for (size_t i = 0; i < 4; i++) {
        char id[] = {'b', (char)('0' + i), '\0'};
        struct seen seen = look(&rig, "b", id);

        cr_expect_eq(seen.record.state, RECORD_UNCERTAIN, "%s", id);
        cr_expect_eq(seen.record.due_ms, rig.world.ms);
        cr_expect_gt(seen.record.doubt_since_ms, 0);
        cr_expect_eq(seen.restored, 1);
        cr_expect_not_null(strstr(seen.why, "from a backup: it may have run"),
                           "%s", seen.why);
    }
    move_in(&rig);
    world_turn(&rig.world);
    cr_assert_eq(rig.world.n_running, 4);
    for (size_t i = 0; i < 4; i++) {
        char id[] = {'b', (char)('0' + i), '\0'};
        const struct attempt *attempt = world_attempt(&rig.world, id);

        cr_assert_not_null(attempt);
        cr_expect_eq(attempt->number, 2);
        cr_expect_str_eq(attempt->idempotency_key, keys[i]);
    }
    rig_end(&rig);
}

Test(engine_restore, the_order_of_a_key_is_kept)
{
    struct rig rig;

    rig_begin(&rig);
    for (size_t route = 0; route < WORLD_ROUTES; route++) {
        for (int i = 0; i < 3; i++) {
            char id[] = {(char)('a' + route), (char)('0' + i), '\0'};
            struct sent *sent =
                world_send_keyed(&rig.world, route, id, 7 + route);

            world_turn(&rig.world);
            sent_free(sent);
        }
    }
    cr_assert_eq(rig.world.n_running, 2, "the first of each key");
    back_up(&rig);
    world_close(&rig.world);
    must_restore(&rig);
    cr_expect_eq(rig.counts[0].held, 3);
    cr_expect_eq(rig.counts[1].due, 3);
    cr_expect_eq(look(&rig, "b", "b1").record.due_ms, RECORD_NEVER);
    move_in(&rig);
    world_turn(&rig.world);
    cr_assert_eq(rig.world.n_running, 1);
    cr_assert_not_null(world_attempt(&rig.world, "b0"));
    world_end(&rig.world, "b0", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&rig.world, "b1"));
    world_end(&rig.world, "b1", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&rig.world, "b2"));
    rig_end(&rig);
}

Test(engine_restore, a_paused_route_stays_paused)
{
    struct rig rig;

    rig_begin(&rig);
    cr_assert_eq(world_order(&rig.world, COMMAND_PAUSE, 1, ""), COMMAND_DONE);
    deliver(&rig, 1, "b", 2);
    back_up(&rig);
    world_close(&rig.world);
    must_restore(&rig);
    cr_expect_eq(rig.counts[1].due, 2);
    move_in(&rig);
    world_pass(&rig.world, 60000);
    cr_expect_eq(rig.world.started, 0);
    cr_assert_eq(world_order(&rig.world, COMMAND_RESUME, 1, ""), COMMAND_DONE);
    cr_expect_eq(rig.world.started, 2);
    rig_end(&rig);
}

Test(engine_restore, nothing_is_due_on_a_retired_route)
{
    struct rig rig;

    rig_begin(&rig);
    deliver(&rig, 1, "b", 2);
    back_up(&rig);
    world_close(&rig.world);
    rig.world.routes[1].retired = true;
    rig.world.routes[1].handler.ops = NULL;
    must_restore(&rig);
    cr_expect_eq(rig.counts[1].uncertain, 2);
    cr_expect_eq(rig.counts[1].held, 2);
    cr_expect_eq(rig.counts[1].due, 0);
    cr_expect_eq(look(&rig, "b", "b1").record.state, RECORD_DEAD);
    rig_end(&rig);
}

Test(engine_restore, what_an_earlier_restore_held_is_not_counted_again)
{
    struct rig rig;

    rig_begin(&rig);
    deliver(&rig, 0, "a", 2);
    back_up(&rig);
    world_close(&rig.world);
    must_restore(&rig);
    cr_expect_eq(rig.counts[0].held, 2);
    move_in(&rig);
    world_pass(&rig.world, 1000);
    deliver(&rig, 0, "more", 1);
    back_up(&rig);
    world_close(&rig.world);
    must_restore(&rig);
    cr_expect_eq(rig.counts[0].uncertain, 1);
    cr_expect_eq(rig.counts[0].held, 1);
    rig_end(&rig);
}

Test(engine_restore, a_second_restore_doubts_what_was_ordered_in_between)
{
    struct rig rig;

    rig_begin(&rig);
    deliver(&rig, 0, "a", 1);
    back_up(&rig);
    world_close(&rig.world);
    must_restore(&rig);
    move_in(&rig);
    cr_assert_eq(world_order(&rig.world, COMMAND_RESOLVE_NOT_APPLIED, 0, "a0"),
                 COMMAND_DONE);
    cr_assert_eq(rig.world.started, 1);
    back_up(&rig);
    world_close(&rig.world);
    must_restore(&rig);
    cr_expect_eq(rig.counts[0].held, 1);
    cr_expect_eq(look(&rig, "a", "a0").restored, 2);
    rig_end(&rig);
}

/* --- refusals --------------------------------------------------------------
 */

Test(engine_restore, events_of_a_route_that_is_missing_are_not_left_behind)
{
    struct rig rig;
    struct store *store;

    rig_begin(&rig);
    deliver(&rig, 0, "a", 1);
    deliver(&rig, 1, "b", 2);
    back_up(&rig);
    world_close(&rig.world);
    cr_assert_not(restore(&rig, 1));
    cr_expect_eq(rig.err.kind, ERR_CONFIG);
    cr_expect_not_null(strstr(rig.err.text, "route \"b\""), "%s", rig.err.text);
    cr_expect_not_null(strstr(rig.err.text, "2 running"), "%s", rig.err.text);
    cr_assert(open_backup(&rig, false, &store));
    cr_expect_neq(store_copied_wall_ms(store), 0, "it still is a backup");
    store_close(&store);
    cr_expect_eq(look(&rig, "a", "a0").record.state, RECORD_RUNNING);
    must_restore(&rig);
    cr_expect_eq(rig.counts[0].held, 1);
    rig_end(&rig);
}

Test(engine_restore, what_was_restored_is_not_restored_again)
{
    struct rig rig;

    rig_begin(&rig);
    deliver(&rig, 1, "b", 1);
    back_up(&rig);
    world_close(&rig.world);
    must_restore(&rig);
    cr_assert_not(restore(&rig, WORLD_ROUTES));
    cr_expect_eq(rig.err.kind, ERR_DATA);
    cr_expect_eq(look(&rig, "b", "b0").restored, 1);
    rig_end(&rig);
}

/* --- crashes ----------------------------------------------------------------
 */

/* Restores in a process of its own that dies at that commit; true when it
 * died. */
static bool restore_and_die(struct rig *rig, unsigned at, bool after)
{
    pid_t child = fork();
    int status;

    cr_assert_geq(child, 0);
    if (child == 0) {
        commits = 0;
        die_at = at;
        die_after = after;
        _exit(restore(rig, WORLD_ROUTES) ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        cr_assert_eq(WTERMSIG(status), SIGKILL);
        return true;
    }
    cr_assert_eq(WEXITSTATUS(status), 0);
    return false;
}

static void expect_restored_once(struct rig *rig, int n, unsigned at)
{
    struct store *store;

    cr_assert(open_backup(rig, false, &store));
    cr_expect_eq(store_copied_wall_ms(store), 0);
    cr_expect_eq(store_incarnation(store), 2, "died at %u", at);
    store_close(&store);
    for (int i = 0; i < n; i += 97) {
        char id[16];
        struct seen seen;

        (void)snprintf(id, sizeof id, "a%d", i);
        seen = look(rig, "a", id);
        cr_expect_eq(seen.record.state, RECORD_DEAD, "%s, died at %u", id, at);
        cr_expect_eq(seen.restored, 1, "%s, died at %u", id, at);
        (void)snprintf(id, sizeof id, "b%d", i);
        seen = look(rig, "b", id);
        cr_expect_eq(seen.record.state, RECORD_UNCERTAIN, "%s, died at %u", id,
                     at);
        cr_expect_eq(seen.restored, 1, "%s, died at %u", id, at);
    }
}

/* So many events that each route takes two transactions. */
Test(engine_restore, may_be_repeated_whichever_commit_it_died_at)
{
    enum { EVENTS = 1100 };
    struct rig rig;
    unsigned at = 0, deaths = 0;
    bool died = true;

    rig_begin(&rig);
    deliver(&rig, 0, "a", EVENTS);
    deliver(&rig, 1, "b", EVENTS);
    for (at = 1; died; at++) {
        for (int after = 0; after < 2; after++) {
            struct store_report report;

            back_up(&rig);
            died = restore_and_die(&rig, at, after == 1);
            deaths += died ? 1 : 0;
            /* Behind its last commit there is nothing left to do. */
            if (died && !restore(&rig, WORLD_ROUTES)) {
                cr_assert_eq(rig.err.kind, ERR_DATA, "%s", rig.err.text);
                cr_assert_eq(after, 1);
            } else if (died) { /* it reports what both have done */
                cr_expect_eq(rig.counts[0].uncertain, EVENTS, "at %u", at);
                cr_expect_eq(rig.counts[0].held, EVENTS, "at %u", at);
                cr_expect_eq(rig.counts[1].due, EVENTS, "at %u", at);
            }
            expect_restored_once(&rig, EVENTS, at);
            cr_assert(store_verify(rig.backup, &report, &rig.err));
            cr_assert_eq(report.bad, 0, "died at %u: %s", at, report.first_bad);
            tmpdir_remove(rig.backup);
        }
    }
    /* Tables, epoch, two batches of two routes, and the end. */
    cr_expect_geq(deaths, 2 * (2 + 4 + 1), "%u", deaths);
    rig_end(&rig);
}
