/* SPDX-License-Identifier: MIT */
/* For each check: ledgers that keep the promise, and mutants of them that
 * break it, each of which is found by that check and by no other. */
#include "checker/checker.h"

#include <criterion/criterion.h>
#include <string.h>

#include "unit/checker/ledger_text.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

enum { NONE = -1 };

struct row {
    const char *name;
    int broken; /* the one check that finds something, or NONE */
    const char *ledger;
};

static struct checker *judge(const char *ledger, enum checker_verdict *verdict)
{
    struct checker *checker = checker_new();
    struct err err = {ERR_NONE, ""};

    cr_assert(checker_feed(checker, slice_of(ledger), &err), "%s", err.text);
    cr_assert(checker_finish(checker, verdict, &err), "%s", err.text);
    return checker;
}

static void run_row(const struct row *row)
{
    enum checker_verdict verdict;
    struct checker *checker = judge(row->ledger, &verdict);
    size_t n;
    const struct checker_finding *found = checker_findings(checker, &n);
    enum checker_verdict want = row->broken == NONE         ? CHECKER_OK
                                : row->broken == CHECKER_C9 ? CHECKER_STUCK
                                                            : CHECKER_UNSAFE;

    for (enum checker_check i = CHECKER_C1; i <= CHECKER_C9; i++) {
        bool is_broken = checker_total(checker, i) > 0;

        cr_expect(is_broken == ((int)i == row->broken), "%s: %s: %s", row->name,
                  checker_check_name(i), n > 0 ? found[0].why : "kept");
    }
    cr_expect(verdict == want, "%s: verdict %d", row->name, (int)verdict);
    checker_free(&checker);
}

static void run_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        run_row(&rows[i]);
    }
}

Test(checker, c1_what_was_acknowledged_is_kept)
{
    static const struct row rows[] = {
        {"settled", NONE,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") QUIET EVENT_DONE("a", 1)},
        {"unknown outcome, not stored", NONE, ROUTE SENT(1, "a") QUIET},
        {"refused, not stored", NONE, ROUTE SENT(1, "a") RESP(1, 503) QUIET},
        {"a part of a run, without an export", NONE, ROUTE TAKEN(1, "a")},
        {"dead with a reason", NONE,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 404)
             QUIET EVENT_DEAD("a", "refused", 1, 1, ROW("dead", 1))},
        {"missing", CHECKER_C1, ROUTE TAKEN(1, "a") HANDLED(1, "a") QUIET},
        {"answered before it was recorded", CHECKER_C1,
         ROUTE START(1) TAKEN(1, "a") CRASH(1) START(2) QUIET},
        {"a repeat's answer counts too", CHECKER_C1,
         ROUTE SENT(1, "a") SENT(2, "a") RESP(2, 200) QUIET},
        {"dead without a reason", CHECKER_C1,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 404)
             QUIET EVENT("a", "DEAD", 1, 1, ROW("dead", 1))},
    };

    run_rows(rows, COUNT(rows));
}

Test(checker, c2_every_invocation_was_asked_for)
{
    static const struct row rows[] = {
        {"sent, and no answer heard", NONE, ROUTE SENT(1, "a") HANDLED(1, "a")},
        {"one of two was valid", NONE,
         ROUTE SENT_BAD(1, "a") TAKEN(2, "a") HANDLED(1, "a")},
        {"nobody sent it", CHECKER_C2, ROUTE HANDLED(1, "a")},
        {"sent later", CHECKER_C2, ROUTE HANDLED(1, "a") SENT(1, "a")},
        {"only invalid requests", CHECKER_C2,
         ROUTE SENT_BAD(1, "a") HANDLED(1, "a")},
        {"other content", CHECKER_C2,
         ROUTE SENT(1, "a") INV_AS(1, "a", 1, 1, "h-b", "k-a")},
        {"content that changed between attempts", CHECKER_C2,
         ROUTE SENT(1, "a") SENT_AS(2, "a", "h-b", "") INV(1, "a", 1, 1)
             DONE(1, 503) INV_AS(2, "a", 2, 1, "h-b", "k-a") DONE(2, 200)},
    };

    run_rows(rows, COUNT(rows));
}

#define RETRIED(status)                                                        \
    TAKEN(1, "a")                                                              \
    INV(1, "a", 1, 1) DONE(1, status) INV(2, "a", 2, 1) DONE(2, 200) QUIET
#define CRASHED(id)                                                            \
    TAKEN(1, id)                                                               \
    INV(1, id, 1, 1)                                                           \
    DONE(1, 200) CRASH(1) START(2) INV(2, id, 2, 2) DONE(2, 200) QUIET
#define TWO(row) EVENT("a", "SUCCEEDED", 1, 2, row)

Test(checker, c3_duplicates_are_explained)
{
    static const struct row rows[] = {
        {"a transient answer", NONE, ROUTE RETRIED(503) TWO(ROW("retry", 1))},
        {"an uncertain end", NONE, ROUTE RETRIED(500) TWO(ROW("uncertain", 1))},
        {"a crash before the result was recorded", NONE,
         ROUTE CRASHED("a") TWO(ROW("crashed", 1))},
        {"a crash before the spawn, which no handler saw", NONE,
         ROUTE TAKEN(1, "a") CRASH(1) START(2) INV(1, "a", 2, 2) DONE(1, 200)
             QUIET TWO(ROW("crashed", 1))},
        {"an answer that was never heard", NONE,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) INV(2, "a", 2, 1) DONE_AS(
             1, "lost", 200, "") DONE(2, 200) QUIET TWO(ROW("uncertain", 1))},
        {"an operator's replay", NONE,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 404)
             ORDER("replay", "a", "done") INV(2, "a", 2, 1) DONE(2, 200)
                 QUIET TWO(ROW("dead", 1) "," ROW("replayed", 1))},
        {"a replay whose verdict a crash hid", NONE,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 404) CRASH(1)
             ORDER("replay", "a", "unknown") INV(2, "a", 2, 2) DONE(2, 200)
                 QUIET TWO(ROW("dead", 1) "," ROW("replayed", 1))},
        {"not known to the end: a part of a run", NONE,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 503) INV(2, "a", 2, 1)
             DONE(2, 200)},

        {"invoked again after a success", CHECKER_C3,
         ROUTE RETRIED(200) TWO(ROW("retry", 1))},
        {"the same, and no history", CHECKER_C3,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 200) INV(2, "a", 2, 1)
             DONE(2, 200)},
        {"nothing in the history lets it go", CHECKER_C3,
         ROUTE RETRIED(503) TWO("")},
        {"a crash that another process had", CHECKER_C3,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 503) CRASH(7)
             INV(2, "a", 2, 1) DONE(2, 200) QUIET TWO(ROW("crashed", 1))},
        {"a crash that never was", CHECKER_C3,
         ROUTE TAKEN(1, "a") INV(1, "a", 2, 1) DONE(1, 200)
             QUIET TWO(ROW("crashed", 1))},
        {"one crash, and two attempts cut short by it", CHECKER_C3,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 200) CRASH(1) CRASH(2)
             INV(2, "a", 2, 1) DONE(2, 200) INV(3, "a", 3, 3) DONE(3, 200)
                 QUIET EVENT("a", "SUCCEEDED", 1, 3,
                             ROW("crashed", 1) "," ROW("crashed", 2))},
        {"a replay that nobody ordered", CHECKER_C3,
         ROUTE RETRIED(404) TWO(ROW("dead", 1) "," ROW("replayed", 1))},
        {"a replay that was refused", CHECKER_C3,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 200) ORDER(
             "replay", "a", "nothing-to-do") INV(2, "a", 2, 1) DONE(2, 200)},
        {"one replay, two invocations", CHECKER_C3,
         ROUTE TAKEN(1, "a") ORDER("replay", "a", "done") INV(1, "a", 1, 1)
             DONE(1, 200) INV(2, "a", 2, 1) DONE(2, 200) INV(3, "a", 3, 1)
                 DONE(3, 200)},
        {"two at one time", CHECKER_C3,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) INV(2, "a", 2, 1) DONE(1, 503)
             DONE(2, 200) QUIET TWO(ROW("retry", 1))},
        {"a success that is told as a retry, and a crash later", CHECKER_C3,
         ROUTE CRASHED("a") TWO(ROW("retry", 1))},
        {"a restore that nobody made", CHECKER_C3,
         ROUTE RETRIED(500) TWO(ROW("uncertain", 1) "," ROW("restored", 1))},
    };

    run_rows(rows, COUNT(rows));
}

Test(checker, c3_a_route_that_holds_leaves_doubt_to_people)
{
    static const struct row rows[] = {
        {"dead of its doubt", NONE,
         ROUTE_HOLD TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 500)
             QUIET EVENT_DEAD("a", "uncertain", 1, 1,
                              ROW("uncertain", 1) "," ROW("dead", 1))},
        {"not applied, an operator says", NONE,
         ROUTE_HOLD TAKEN(1, "a") INV(1, "a", 1, 1) CRASH(1)
             ORDER("resolve-not-applied", "a", "done") INV(2, "a", 2, 2)
                 DONE(2, 200) QUIET TWO(ROW("crashed", 1) "," ROW(
                     "dead", 1) "," ROW("not-applied", 1))},
        {"a transient answer leaves no doubt", NONE,
         ROUTE_HOLD RETRIED(429) TWO(ROW("retry", 1))},

        {"run again after an uncertain end", CHECKER_C3,
         ROUTE_HOLD RETRIED(500) TWO(ROW("uncertain", 1))},
        {"run again after a crash", CHECKER_C3,
         ROUTE_HOLD CRASHED("a") TWO(ROW("crashed", 1))},
        {"the same, and no history", CHECKER_C3,
         ROUTE_HOLD CRASHED("a")
             EVENT_AS("a", "SUCCEEDED", 1, 2, ",\"run\":1")},
        {"dead of something else", CHECKER_C3,
         ROUTE_HOLD TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 500)
             QUIET EVENT_DEAD("a", "exhausted", 1, 1,
                              ROW("uncertain", 1) "," ROW("dead", 1))},
    };

    run_rows(rows, COUNT(rows));
}

Test(checker, c4_one_effect_and_one_key_for_a_run)
{
    static const struct row rows[] = {
        {"one effect in two attempts", NONE,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE_EFFECT(1, 500) INV(
             2, "a", 2, 1) DONE_NOTHING(2, 200) QUIET TWO(ROW("uncertain", 1))},
        {"a rerun has a key of its own", NONE,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") ORDER("rerun", "a", "done")
             INV_AS(2, "a", 2, 1, "h-a", "k-a-2") DONE_EFFECT(2, 200)
                 QUIET EVENT_RUN("a", 2, 2, ROW("rerun", 1))},
        {"a forgotten event comes back with its key", NONE,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") FORGOTTEN("a") TAKEN(2, "a")
             HANDLED(2, "a") QUIET EVENT_DONE("a", 9)},
        {"resolved as applied, and nobody saw the effect", NONE,
         ROUTE_HOLD TAKEN(1, "a") INV(1, "a", 1, 1) DONE_NOTHING(1, 500)
             ORDER("resolve-applied", "a", "done") QUIET EVENT(
                 "a", "SUCCEEDED", 1, 1,
                 ROW("uncertain", 1) "," ROW("dead", 1) "," ROW("applied", 1))},

        {"two effects", CHECKER_C4,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE_EFFECT(1, 500) INV(
             2, "a", 2, 1) DONE_EFFECT(2, 200) QUIET TWO(ROW("uncertain", 1))},
        {"a success without an effect", CHECKER_C4,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE_NOTHING(1, 200)
             QUIET EVENT_DONE("a", 1)},
        {"a key for each attempt", CHECKER_C4,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 503)
             INV_AS(2, "a", 2, 1, "h-a", "k-2") DONE(2, 200)
                 QUIET TWO(ROW("retry", 1))},
        {"the same, and no history", CHECKER_C4,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 503)
             INV_AS(2, "a", 2, 1, "h-a", "k-2") DONE(2, 200)},
        {"a key of two events", CHECKER_C4,
         ROUTE TAKEN(1, "a") TAKEN(2, "b") HANDLED(1, "a")
             INV_AS(2, "b", 1, 1, "h-b", "k-a") DONE_EFFECT(2, 200)
                 QUIET EVENT_DONE("a", 1) EVENT_DONE("b", 2)},
        {"a rerun with the old key", CHECKER_C4,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") ORDER("rerun", "a", "done")
             INV(2, "a", 2, 1) DONE_EFFECT(2, 200)
                 QUIET EVENT_RUN("a", 2, 2, ROW("rerun", 1))},
    };

    run_rows(rows, COUNT(rows));
}

Test(checker, c5_answers_are_as_the_rules_say)
{
    static const struct row rows[] = {
        {"one 202, then 200", NONE,
         ROUTE TAKEN(1, "a") SENT(2, "a") RESP(2, 200) SENT(3, "a")
             RESP(3, 200)},
        {"the repeat heard first", NONE,
         ROUTE SENT(1, "a") SENT(2, "a") RESP(2, 200) RESP(1, 202)},
        {"nobody heard the first answer", NONE,
         ROUTE SENT(1, "a") SENT(2, "a") RESP(2, 200)},
        {"the invalid one is refused", NONE,
         ROUTE SENT_BAD(1, "a") RESP(1, 401)},
        {"other content is a repeat", NONE,
         ROUTE TAKEN(1, "a") SENT_AS(2, "a", "h-b", "") RESP(2, 200)},
        {"other content is refused", NONE,
         ROUTE_REJECT TAKEN(1, "a") SENT_AS(2, "a", "h-b", "") RESP(2, 409)},
        {"a result and its replay", NONE,
         ROUTE_RESULT SENT(1, "a") RESP_BODY(1, 200, "x") SENT(2, "a")
             RESP_BODY(2, 200, "x")},
        {"a first and a repeat may differ", NONE,
         ROUTE SENT(1, "a") RESP_BODY(1, 202, "new") SENT(2, "a")
             RESP_BODY(2, 200, "old") SENT(3, "a") RESP_BODY(3, 200, "old")},
        {"sent while it was being forgotten", NONE,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") SENT(2, "a") FORGOTTEN("a")
             RESP(2, 202) HANDLED(2, "a") QUIET EVENT_DONE("a", 9)},

        {"a refusal has a body of its own", NONE,
         ROUTE_RESULT SENT(1, "a") RESP_BODY(1, 503, "y") SENT_BAD(2, "a")
             RESP_BODY(2, 401, "z") SENT(3, "a") RESP_BODY(3, 200, "x")
                 SENT(4, "a") RESP_BODY(4, 200, "x") SENT(5, "a") RESP(5, 200)},
        {"two that were first", CHECKER_C5,
         ROUTE TAKEN(1, "a") SENT(2, "a") RESP(2, 202)},
        {"a repeat of nothing", CHECKER_C5, ROUTE SENT(1, "a") RESP(1, 200)},
        {"a repeat before the first", CHECKER_C5,
         ROUTE SENT(1, "a") RESP(1, 200) TAKEN(2, "a")},
        {"an invalid one was acknowledged", CHECKER_C5,
         ROUTE SENT_BAD(1, "a") RESP(1, 202)},
        {"other content was not refused", CHECKER_C5,
         ROUTE_REJECT TAKEN(1, "a") SENT_AS(2, "a", "h-b", "") RESP(2, 200)},
        {"the first content was overwritten", CHECKER_C5,
         ROUTE TAKEN(1, "a") SENT_AS(2, "a", "h-b", "") RESP(2, 200)
             INV_AS(1, "a", 1, 1, "h-b", "k-a") DONE(1, 200)},
        {"a replay with other bytes", CHECKER_C5,
         ROUTE_RESULT SENT(1, "a") RESP_BODY(1, 200, "x") SENT(2, "a")
             RESP_BODY(2, 200, "y")},
        {"a result of another status with other bytes", CHECKER_C5,
         ROUTE_RESULT SENT(1, "a") RESP_BODY(1, 201, "x") SENT(2, "a")
             RESP_BODY(2, 201, "y")},
        {"repeats with different bodies", CHECKER_C5,
         ROUTE TAKEN(1, "a") SENT(2, "a") RESP_BODY(2, 200, "x") SENT(3, "a")
             RESP_BODY(3, 200, "y")},
    };

    run_rows(rows, COUNT(rows));
}

#define TWO_MESSAGES                                                           \
    ASSIGN(1)                                                                  \
    MSG_KEY(7, "a", ",\"order\":\"k\"")                                        \
    MSG_KEY(9, "b", ",\"order\":\"k\"")
#define A_AND_B TAKEN_KEY(1, "a", "k") TAKEN_KEY(2, "b", "k")
#define BOTH_DONE QUIET EVENT_DONE("a", 1) EVENT_DONE("b", 2)
#define A_DEAD                                                                 \
    EVENT_DEAD("a", "refused", 1, 1, ROW("dead", 1)) EVENT_DONE("b", 2)
#define A_REPLAYED                                                             \
    EVENT("a", "SUCCEEDED", 1, 2,                                              \
          ROW("dead", 1) "," ROW("replayed", 1) "," ROW("succeeded", 2))       \
    EVENT_DONE("b", 2)

#define EVENT_MOVED(id)                                                        \
    EVENT_AS(                                                                  \
        id, "FAILED", 1, 0,                                                    \
        ",\"run\":1,\"reason\":\"moved\",\"history\":[" ROW("moved", 0) "]")

Test(checker, c1_what_an_offset_passed_is_kept)
{
    static const struct row rows[] = {
        {"settled", NONE,
         ROUTE ASSIGN(1) MSG(7, "a") HANDLED(1, "a") COMMIT_BY(8, 1)
             QUIET EVENT_DONE("a", 1)},
        {"nobody reads the partition", NONE, ROUTE MSG(7, "a") QUIET},
        {"a part of a run, and the offset not passed", NONE,
         ROUTE ASSIGN(1) MSG(7, "a") COMMIT(7)},
        {"another worker had it, and it is not known here", NONE,
         ROUTE ASSIGN(1) MSG(7, "a") SKIP("moved", 0, 8) COMMIT(8) QUIET},
        {"another worker had it, and it is known here", NONE,
         ROUTE ASSIGN(1) MSG(7, "a") SKIP("moved", 0, 8) COMMIT(8)
             QUIET EVENT_MOVED("a")},
        {"the broker deleted it", NONE,
         ROUTE ASSIGN(1) MSG(7, "a") SKIP("truncated", 7, 8) QUIET},

        {"passed, and not there", CHECKER_C1,
         ROUTE ASSIGN(1) MSG(7, "a") COMMIT(8) QUIET},
        {"the same, and skipped later", CHECKER_C1,
         ROUTE ASSIGN(1) MSG(7, "a") COMMIT(8) SKIP("truncated", 0, 9) QUIET},
        {"moved, and nobody had it", CHECKER_C1,
         ROUTE ASSIGN(1) MSG(7, "a") SKIP("moved", 0, 7) COMMIT(8)
             QUIET EVENT_MOVED("a")},
    };

    run_rows(rows, COUNT(rows));
}

#define START_OF(process, store)                                               \
    "{\"l\":\"start\",\"t\":1,\"process\":" #process ",\"store\":\"" store     \
    "\"}\n"
#define TWO_WORKERS START_OF(1, "x") START_OF(2, "y") ASSIGN(1)
#define EVENT_OF(store, id, state, reason, attempts)                           \
    EVENT_AS(id, state, 1, attempts,                                           \
             ",\"run\":1,\"store\":\"" store "\",\"reason\":\"" reason         \
             "\",\"history\":[]")

Test(checker, c3_each_store_has_its_own_attempts)
{
    static const struct row rows[] = {
        {"it ran here, and there", NONE,
         ROUTE TWO_WORKERS MSG(7, "a") INV(1, "a", 1, 1) DONE_EFFECT(1, 200)
             CRASH(1) ASSIGN(2) INV(2, "a", 1, 2) DONE_NOTHING(2, 200)
                 COMMIT_BY(8, 2) QUIET EVENT_OF("x", "a", "UNCERTAIN", "", 1)
                     EVENT_OF("y", "a", "SUCCEEDED", "", 1)},
        {"a frozen one ends its attempt when the offset was passed", NONE,
         ROUTE TWO_WORKERS MSG(7, "a") INV(1, "a", 1, 1) ASSIGN(2)
             INV(2, "a", 1, 2) DONE_EFFECT(2, 200) COMMIT_BY(8, 2) DONE_NOTHING(
                 1, 200) QUIET EVENT_OF("x", "a", "SUCCEEDED", "", 1)
                 EVENT_OF("y", "a", "SUCCEEDED", "", 1)},
        {"one gave it away", NONE,
         ROUTE TWO_WORKERS MSG(7, "a") ASSIGN(2) HANDLED_BY(2, "a", 2)
             COMMIT_BY(8, 2) QUIET EVENT_OF("x", "a", "FAILED", "moved", 0)
                 EVENT_OF("y", "a", "SUCCEEDED", "", 1)},

        {"the second had no partition", CHECKER_C3,
         ROUTE TWO_WORKERS MSG(7, "a") INV(1, "a", 1, 1) DONE_EFFECT(1, 200)
             CRASH(1) INV(2, "a", 1, 2) DONE_NOTHING(2, 200) COMMIT_BY(8, 1)
                 QUIET EVENT_OF("x", "a", "SUCCEEDED", "", 1)
                     EVENT_OF("y", "a", "SUCCEEDED", "", 1)},
        {"twice in one of them", CHECKER_C3,
         ROUTE TWO_WORKERS MSG(7, "a") ASSIGN(2) INV(1, "a", 1, 2)
             DONE_EFFECT(1, 200) INV(2, "a", 2, 2) DONE_NOTHING(2, 200)
                 INV(3, "a", 1, 1) DONE_NOTHING(3, 200) COMMIT_BY(8, 2)
                     QUIET EVENT_OF("x", "a", "SUCCEEDED", "", 1) EVENT_AS(
                         "a", "SUCCEEDED", 1, 2, ",\"run\":1,\"store\":\"y\"")},
        {"both say that they gave it away", CHECKER_C1,
         ROUTE TWO_WORKERS MSG(7, "a") ASSIGN(2) COMMIT_BY(8, 2)
             QUIET EVENT_OF("x", "a", "FAILED", "moved", 0)
                 EVENT_OF("y", "a", "FAILED", "moved", 0)},
    };

    run_rows(rows, COUNT(rows));
}

Test(checker, c6_offsets_lie_behind_what_is_settled)
{
    static const struct row rows[] = {
        {"a gap is passed", NONE,
         ROUTE ASSIGN(1) MSG(7, "a") COMMIT(7) HANDLED(1, "a") COMMIT(12)
             QUIET EVENT_DONE("a", 1)},
        {"after the attempt that was the last", NONE,
         ROUTE ASSIGN(1) MSG(7, "a") INV(1, "a", 1, 1) DONE(1, 503) COMMIT(7)
             INV(2, "a", 2, 1) DONE(2, 200) COMMIT(8)
                 QUIET TWO(ROW("retry", 1) "," ROW("succeeded", 2))},
        {"a death settles, whatever a replay does later", NONE,
         ROUTE ASSIGN(1) MSG(7, "a") INV(1, "a", 1, 1) DONE(1, 404) COMMIT(8)
             ORDER("replay", "a", "done") INV(2, "a", 2, 1) DONE(2, 200)
                 QUIET TWO(ROW("dead", 1) "," ROW("replayed",
                                                  1) "," ROW("succeeded", 2))},
        {"somebody set it back", NONE,
         ROUTE ASSIGN(1) MSG(7, "a") HANDLED(1, "a") COMMIT(8) RESET(0)
             COMMIT(7) COMMIT(8) QUIET EVENT_DONE("a", 1)},
        {"the next owner goes on", NONE,
         ROUTE ASSIGN(1) COMMIT_BY(3, 1) OWNER_AS("revoke", 1) ASSIGN(2)
             COMMIT_BY(4, 2)},
        {"the same event came by a request, too", NONE,
         ROUTE ASSIGN(1) MSG(7, "a") HANDLED(1, "a") COMMIT(8) SENT(1, "a")
             RESP(1, 200) QUIET EVENT_DONE("a", 1)},

        {"before the end of the attempt", CHECKER_C6,
         ROUTE ASSIGN(1) MSG(7, "a") INV(1, "a", 1, 1) COMMIT(8) DONE(1, 200)
             QUIET EVENT_DONE("a", 1)},
        {"between two attempts", CHECKER_C6,
         ROUTE ASSIGN(1) MSG(7, "a") INV(1, "a", 1, 1) DONE(1, 503) COMMIT(8)
             INV(2, "a", 2, 1) DONE(2, 200)
                 QUIET TWO(ROW("retry", 1) "," ROW("succeeded", 2))},
        {"behind the second of two, of which the first is not settled",
         CHECKER_C6,
         ROUTE ASSIGN(1) MSG(7, "a") MSG(9, "b") INV(1, "a", 1, 1)
             HANDLED(2, "b") COMMIT(10) DONE(1, 200) QUIET EVENT_DONE("a", 1)
                 EVENT_DONE("b", 2)},
        {"it goes back", CHECKER_C6,
         ROUTE ASSIGN(1) MSG(7, "a") HANDLED(1, "a") COMMIT(8) COMMIT(7)
             QUIET EVENT_DONE("a", 1)},
        {"by a process that was fenced", CHECKER_C6,
         ROUTE ASSIGN(1) OWNER_AS("lost", 1) COMMIT_BY(4, 1) QUIET},
        {"by another one than the owner", CHECKER_C6,
         ROUTE ASSIGN(1) ASSIGN(2) COMMIT_BY(4, 1) QUIET},
    };

    run_rows(rows, COUNT(rows));
}

Test(checker, c7_the_events_of_a_key_keep_their_order)
{
    static const struct row rows[] = {
        {"one after the other", NONE,
         ROUTE_ORDERED A_AND_B HANDLED(1, "a") HANDLED(2, "b") BOTH_DONE},
        {"two keys do not wait for each other", NONE,
         ROUTE_ORDERED TAKEN_KEY(1, "a", "k") TAKEN_KEY(2, "b", "j")
             INV(1, "b", 1, 1) INV(2, "a", 1, 1) DONE(1, 200) DONE(2, 200)
                 BOTH_DONE},
        {"a route without order", NONE,
         ROUTE A_AND_B HANDLED(2, "b") HANDLED(1, "a") BOTH_DONE},
        {"successes hold no key", NONE,
         ROUTE_ORDERED_HOLD A_AND_B HANDLED(1, "a") HANDLED(2, "b") BOTH_DONE},
        {"the dead let go", NONE,
         ROUTE_ORDERED A_AND_B INV(1, "a", 1, 1) DONE(1, 404) HANDLED(2, "b")
             QUIET A_DEAD},
        {"a replay comes after those that went on", NONE,
         ROUTE_ORDERED A_AND_B INV(1, "a", 1, 1) DONE(1, 404) HANDLED(2, "b")
             ORDER("replay", "a", "done") INV(3, "a", 2, 1) DONE(3, 200)
                 QUIET A_REPLAYED},
        {"the dead hold until they are replayed", NONE,
         ROUTE_ORDERED_HOLD A_AND_B INV(1, "a", 1, 1) DONE(1, 404)
             ORDER("replay", "a", "done") INV(3, "a", 2, 1) DONE(3, 200)
                 HANDLED(2, "b") QUIET A_REPLAYED},
        {"a crash ends an attempt", NONE,
         ROUTE_ORDERED A_AND_B INV(1, "a", 1, 1) CRASH(1) INV(2, "a", 2, 2)
             DONE(2, 200) INV(3, "b", 1, 2) DONE(3, 200) DONE(1, 200) QUIET TWO(
                 ROW("crashed", 1) "," ROW("succeeded", 2)) EVENT_DONE("b", 2)},

        {"two messages of a partition", NONE,
         ROUTE_ORDERED TWO_MESSAGES HANDLED(1, "a") HANDLED(2, "b") COMMIT(10)
             BOTH_DONE},
        {"the later of two messages was another worker's first", NONE,
         ROUTE_ORDERED TWO_MESSAGES SKIP("reset", 7, 8) HANDLED(1, "b") COMMIT(
             10) HANDLED(2, "a") QUIET EVENT_DONE("a", 2) EVENT_DONE("b", 1)},
        {"the later message was accepted first", CHECKER_C7,
         ROUTE_ORDERED TWO_MESSAGES HANDLED(1, "b") HANDLED(2, "a") COMMIT(10)
             QUIET EVENT_DONE("a", 2) EVENT_DONE("b", 1)},
        {"the later one first", CHECKER_C7,
         ROUTE_ORDERED A_AND_B HANDLED(2, "b") HANDLED(1, "a") BOTH_DONE},
        {"the key of the request that was the first", CHECKER_C7,
         ROUTE_ORDERED SENT_KEY(3, "a", "j") A_AND_B RESP(3, 200)
             HANDLED(2, "b") HANDLED(1, "a") BOTH_DONE},
        {"two at one time", CHECKER_C7,
         ROUTE_ORDERED A_AND_B INV(1, "a", 1, 1) INV(2, "b", 1, 1)
             DONE_EFFECT(1, 200) DONE_EFFECT(2, 200) BOTH_DONE},
        {"overtaken while it waited for its retry", CHECKER_C7,
         ROUTE_ORDERED A_AND_B INV(1, "a", 1, 1) DONE(1, 503) HANDLED(2, "b")
             INV(3, "a", 2, 1) DONE(3, 200) QUIET TWO(
                 ROW("retry", 1) "," ROW("succeeded", 2)) EVENT_DONE("b", 2)},
        {"the dead should have held", CHECKER_C7,
         ROUTE_ORDERED_HOLD A_AND_B INV(1, "a", 1, 1) DONE(1, 404)
             HANDLED(2, "b") QUIET A_DEAD},
        {"a replay at the time of another", CHECKER_C7,
         ROUTE_ORDERED A_AND_B INV(1, "a", 1, 1) DONE(1, 404)
             ORDER("replay", "a", "done") INV(2, "b", 1, 1) INV(3, "a", 2, 1)
                 DONE(3, 200) DONE(2, 200) QUIET A_REPLAYED},
    };

    run_rows(rows, COUNT(rows));
}

Test(checker, c8_the_export_agrees_with_the_ledger)
{
    static const struct row rows[] = {
        {"an attempt that did not reach the handler", NONE,
         ROUTE TAKEN(1, "a") INV(1, "a", 2, 1) DONE(1, 200)
             QUIET TWO(ROW("retry", 1))},
        {"two deliveries of two requests", NONE,
         ROUTE TAKEN(1, "a") SENT(2, "a") RESP(2, 200) HANDLED(1, "a")
             QUIET EVENT_AS("a", "SUCCEEDED", 1, 1,
                            ",\"run\":1,\"deliveries\":2,\"history\":[]")},
        {"a rerun whose verdict a crash hid", NONE,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") CRASH(1)
             ORDER("rerun", "a", "unknown") QUIET EVENT_DONE("a", 1)},
        {"what was forgotten may still be in the store", NONE,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") FORGOTTEN("a") TAKEN(2, "a")
             HANDLED(2, "a") QUIET EVENT_DONE("a", 1) EVENT_DONE("a", 9)},

        {"nobody sent it", CHECKER_C8,
         ROUTE QUIET EVENT_DEAD("a", "too-old", 1, 0,
                                ROW("dead-on-arrival", 0))},
        {"it stands there twice", CHECKER_C8,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") QUIET EVENT_DONE("a", 1)
             EVENT_DONE("a", 2)},
        {"invoked, and not there", CHECKER_C8,
         ROUTE SENT(1, "a") HANDLED(1, "a") QUIET},
        {"a number twice", CHECKER_C8,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 503) INV(2, "a", 1, 1)
             DONE(2, 200) QUIET EVENT_DONE("a", 1)},
        {"a number that was not counted", CHECKER_C8,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 200) INV(2, "a", 2, 1)
             DONE_AS(2, "lost", 0, "") ORDER("replay", "a", "unknown")
                 QUIET EVENT_DONE("a", 1)},
        {"an attempt that nothing tells of", CHECKER_C8,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 503)
             QUIET EVENT_DEAD("a", "exhausted", 1, 2, ROW("retry", 1))},
        {"more attempts than can be", CHECKER_C8,
         ROUTE TAKEN(1, "a") HANDLED(1, "a")
             QUIET EVENT("a", "SUCCEEDED", 1, 4000000000, "")},
        {"a time-out taken for a success", CHECKER_C8,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE_AS(1, "timeout", 0, "")
             QUIET EVENT_DONE("a", 1)},
        {"a success that no handler saw", CHECKER_C8,
         ROUTE TAKEN(1, "a") QUIET EVENT_DONE("a", 1)},
        {"a success of an attempt that is told as lost", CHECKER_C8,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 500)
             QUIET TWO(ROW("uncertain", 1) "," ROW("uncertain", 2))},
        {"more deliveries than requests", CHECKER_C8,
         ROUTE TAKEN(1, "a") HANDLED(1, "a")
             QUIET EVENT_AS("a", "SUCCEEDED", 1, 1,
                            ",\"run\":1,\"deliveries\":2,\"history\":[]")},
        {"a drift of one content", CHECKER_C8,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") QUIET EVENT_AS(
             "a", "SUCCEEDED", 1, 1, ",\"run\":1,\"drift\":1,\"history\":[]")},
        {"a rerun that left no trace", CHECKER_C8,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") ORDER("rerun", "a", "done")
             QUIET EVENT_DONE("a", 1)},
        {"a run that nobody ordered", CHECKER_C8,
         ROUTE TAKEN(1, "a") HANDLED(1, "a") QUIET EVENT_RUN("a", 2, 1, "")},
    };

    run_rows(rows, COUNT(rows));
}

Test(checker, c9_everything_settles)
{
    static const struct row rows[] = {
        {"a part of a run says nothing of its end", NONE,
         ROUTE TAKEN(1, "a") EVENT("a", "PENDING", 1, 0, "")},
        {"it waits behind a dead letter that holds", NONE,
         ROUTE_ORDERED_HOLD A_AND_B INV(1, "a", 1, 1) DONE(1, 404)
             HEAL QUIET EVENT_DEAD("a", "refused", 1, 1, ROW("dead", 1))
                 EVENT("b", "PENDING", 2, 0, "")},

        {"pending", CHECKER_C9,
         ROUTE TAKEN(1, "a") QUIET EVENT("a", "PENDING", 1, 0, "")},
        {"running", CHECKER_C9,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1)
             QUIET EVENT("a", "RUNNING", 1, 1, "")},
        {"uncertain", CHECKER_C9,
         ROUTE TAKEN(1, "a") INV(1, "a", 1, 1) DONE(1, 500)
             QUIET EVENT("a", "UNCERTAIN", 1, 1, ROW("uncertain", 1))},
        {"it waits behind a dead letter that does not hold", CHECKER_C9,
         ROUTE_ORDERED A_AND_B INV(1, "a", 1, 1) DONE(1, 404)
             HEAL QUIET EVENT_DEAD("a", "refused", 1, 1, ROW("dead", 1))
                 EVENT("b", "PENDING", 2, 0, "")},
        {"a message that was never passed", CHECKER_C9,
         ROUTE ASSIGN(1) MSG(7, "a") HANDLED(1, "a") COMMIT(7)
             QUIET EVENT_DONE("a", 1)},
        {"a message that nobody took", CHECKER_C9,
         ROUTE ASSIGN(1) MSG(7, "a") QUIET},
        {"healed, and no rest", CHECKER_C9, ROUTE HEAL},
        {"rest came late", CHECKER_C9,
         ROUTE HEAL "{\"l\":\"quiet\",\"t\":30002}\n"},
        {"rest came later than was allowed", CHECKER_C9,
         ROUTE "{\"l\":\"heal\",\"t\":1,\"within_ms\":10}\n"
               "{\"l\":\"quiet\",\"t\":12}\n"},
    };

    run_rows(rows, COUNT(rows));
}

Test(checker, names_are_of_a_namespace_and_a_tenant)
{
    static const char same[] =
        ROUTE "{\"l\":\"route\",\"route\":\"s\",\"namespace\":\"r\","
              "\"on_uncertain\":\"retry\",\"after_dead\":\"continue\","
              "\"ordered\":false}\n"
              "{\"l\":\"sent\",\"t\":1,\"try\":1,\"route\":\"s\",\"id\":\"a\","
              "\"hash\":\"h-a\"}\n" HANDLED(1, "a");
    static const char other[] = ROUTE
        "{\"l\":\"sent\",\"t\":1,\"try\":1,\"route\":\"r\",\"tenant\":\"t\","
        "\"id\":\"a\",\"hash\":\"h-a\"}\n" HANDLED(1, "a");
    const struct row rows[] = {
        {"two routes of one namespace", NONE, same},
        {"another tenant", CHECKER_C2, other},
    };

    run_rows(rows, COUNT(rows));
}

Test(checker, a_finding_tells_all_that_is_known)
{
    static const char ledger[] =
        ROUTE START(1) TAKEN(1, "a") SENT(2, "a") INV(1, "a", 1, 1)
            DONE_EFFECT(1, 500) CRASH(1) ORDER("replay", "a", "unknown")
                QUIET EVENT_AS("a", "UNCERTAIN", 7, 1,
                               ",\"run\":1,\"due\":\"soon\",\"history\":["
                               "{\"at\":\"then\",\"what\":\"uncertain\","
                               "\"attempt\":1,\"run\":1,\"actor\":\"ops\","
                               "\"why\":\"status 500\"}]");
    static const char story[] =
        "    state UNCERTAIN, due soon, run 1, attempts 1, tries 0, crashes 0, "
        "deliveries 0, origin 7\n"
        "    try 1 sent at 1, content h-a: 202 at 1\n"
        "    try 2 sent at 1, content h-a: no answer\n"
        "    invocation 1: attempt 1 of process 1 at 1, key k-a: status 500 at "
        "1, with its effect; the process crashed\n"
        "    order replay at 1: unknown\n"
        "    history then uncertain, attempt 1, run 1, by ops: status 500\n";
    enum checker_verdict verdict;
    struct checker *checker = judge(ledger, &verdict);
    struct checker_summary summary = checker_summary(checker);
    struct buf text = BUF_INIT;
    size_t n;
    const struct checker_finding *found = checker_findings(checker, &n);

    cr_assert(n == 1);
    checker_put_name(found[0].event, &text);
    cr_expect_str_eq(buf_cstr(&text), "r/a");
    buf_clear(&text);
    checker_put_story(found[0].event, &text);
    cr_expect_str_eq(buf_cstr(&text), story);
    buf_free(&text);
    cr_expect(summary.events == 1 && summary.acknowledged == 1);
    cr_expect(summary.invocations == 1 && summary.further == 0);
    cr_expect(summary.crashes == 1 && summary.orders == 1);
    cr_expect(summary.exported == 1);
    checker_free(&checker);
}

Test(checker, a_ledger_that_contradicts_itself_is_refused)
{
    static const char *const ledgers[] = {
        ROUTE ROUTE,
        SENT(1, "a"),
        ROUTE SENT(1, "a") SENT(1, "b"),
        ROUTE RESP(1, 202),
        ROUTE TAKEN(1, "a") RESP(1, 200),
        ROUTE SENT(1, "a") INV(1, "a", 1, 1) INV(1, "a", 2, 1),
        ROUTE DONE(1, 200),
        ROUTE SENT(1, "a") HANDLED(1, "a") DONE(1, 200),
        ROUTE CRASH(1) CRASH(1),
        ROUTE "{\"l\":\"quiet\",\"t\":2}\n" HEAL,
        ROUTE "{\"onced_dump\":1}\n{\"onced_dump\":1}\n",
        ROUTE "{\"onced_dump\":1}\n{\"end\":true,\"events\":1}\n",
        ROUTE "{\"end\":true,\"events\":0}\n",
        ROUTE MSG(7, "a") MSG(6, "b"),
        MSG(7, "a"),
        ROUTE "not JSON\n",
    };
    struct err err;

    for (size_t i = 0; i < COUNT(ledgers); i++) {
        struct checker *checker = checker_new();

        cr_expect(!checker_feed(checker, slice_of(ledgers[i]), &err), "%s",
                  ledgers[i]);
        cr_expect(err.kind == ERR_DATA && strncmp(err.text, "line ", 5) == 0,
                  "%s", err.text);
        checker_free(&checker);
    }
}

Test(checker, a_dump_is_taken_as_it_is)
{
    static const char dump[] =
        "{\"onced_dump\":1,\"store\":\"0a\",\"incarnation\":1}\n"
        "{\"route\":\"r\",\"namespace\":\"r\",\"tenant\":\"\",\"id\":\"a\","
        "\"state\":\"SUCCEEDED\",\"reason\":null,\"run\":1,\"attempts\":1,"
        "\"origin\":1,\"flags\":[],\"due\":null,"
        "\"request\":{\"method\":\"POST\",\"body\":\"{\\\"l\\\":1}]\"},"
        "\"history\":[]}\n";
    enum checker_verdict verdict;
    struct checker *checker = checker_new();
    struct err err = {ERR_NONE, ""};

    cr_assert(checker_feed(
        checker, slice_of(ROUTE TAKEN(1, "a") HANDLED(1, "a") QUIET), &err));
    cr_assert(checker_feed(checker, slice_of(dump), &err), "%s", err.text);
    cr_expect(!checker_finish(checker, &verdict, &err), "it has no end");
    cr_assert(
        checker_feed(checker, slice_of("{\"end\":true,\"events\":1}\n"), &err));
    cr_assert(checker_finish(checker, &verdict, &err));
    cr_expect(verdict == CHECKER_OK);
    checker_free(&checker);
}
