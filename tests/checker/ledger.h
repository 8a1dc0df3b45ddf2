/* SPDX-License-Identifier: MIT */
/*
 * The ledger: what the outside of onced saw. Harnesses and test handlers
 * write it, onced never does; the checker (checker.h) holds it against the
 * promises.
 *
 * It is JSON lines. The member "l" says what a line tells of; members may
 * stand in any order, unknown ones are skipped. Text is UTF-8; `t` and all
 * that ends in _ms are whole milliseconds of the harness's one clock, which
 * never goes back; a content's hash and a body are only compared, so any text
 * that is equal for equal bytes will do (hex of SHA-256).
 *
 *   l       members (those in brackets may be left out)
 *   ------  --------------------------------------------------------------
 *   route   route namespace on_uncertain after_dead ordered
 *           [respond="accepted"] [drift="ack"]
 *   sent    t try route [tenant=""] id hash [order=""] [valid=true]
 *   resp    t try status [body] [retry_after]
 *   inv     t n route [tenant=""] id hash key attempt process
 *   done    t n end [status=0] [effect]
 *   order   t kind route [tenant=""] [id=""] verdict
 *   fault   t kind [process=0]
 *   start   t process [store=""]
 *   heal    t [within_ms=30000]
 *   quiet   t
 *   forgotten  t route [tenant=""] id
 *   msg     t topic partition offset route [tenant=""] id hash [order=""]
 *   assign  t process topic partition [committed]
 *   revoke  t process topic partition
 *   lost    t process topic partition
 *   commit  t topic partition offset [process=0]
 *   reset   t topic partition offset
 *   skip    t kind topic partition from to
 *   event   route namespace [tenant=""] id state [reason=null] run attempts
 *           [tries] [crashes] [deliveries] [drift] origin [due]
 *           [history=[{at what attempt run actor why}]] [store=""]
 *
 * - `route` comes before the first line that names it. on_uncertain: retry |
 *   hold | probe; after_dead: continue | hold; respond: accepted | result |
 *   handled; drift: ack | dead | reject.
 * - `sent` is written before the first byte leaves, `try` is its own number
 *   over all ledgers of a run. `order` is the value of the ordering key;
 *   `valid` is false where onced must refuse the request (signature,
 *   timestamp, form). A try without a `resp` has an unknown outcome.
 * - `inv` is written when an invocation reaches the handler, `n` is its own
 *   number over all ledgers, `process` the number of the onced process that
 *   made it: the harness counts them, and `start` and `fault` name them.
 * - `done` is written before the answer leaves, and tells what onced is told:
 *   end is status (an HTTP status), exit (an exit status), signal, timeout
 *   (onced gave up), broken, or unreached; lost where the handler cannot know
 *   whether the answer was taken. `effect` is true where this invocation
 *   applied the effect, false where it did not (its key was known, or it
 *   failed), left out where nobody looked. The handlers of the tests apply
 *   an effect once for a key.
 * - `order`: an operator's. kind: replay | rerun | resolve-applied |
 *   resolve-not-applied | discard | pause | resume (the last two without id).
 *   Written when the verdict is known: done | nothing-to-do | in-doubt |
 *   refused | not-found | busy, or unknown where a crash hid it (written at
 *   the crash). An order on many events is one line for each of them.
 * - `fault`: kind crash = the process ended without an order to (`process`
 *   says which); it is written when the process is known to be dead. restore =
 *   the store is a backup's from here on. Other kinds are for people who read
 *   the ledger.
 * - `start`: where several stores are exported, `store` says whose process it
 *   is, as the head of that store's dump does (or each of its `event` lines).
 * - `heal`: from here on nothing fails any more; everything must be settled
 *   within_ms later. `quiet`: everything came to rest. A ledger with neither
 *   is a part of a run: nothing is said of what is still unsettled.
 * - `forgotten`: the retention let go of a settled event. Of all lines that
 *   come later, those with its name speak of another event.
 * - `msg`: a message lies on the broker, and is an event on the route; a
 *   message that is one on several routes has a line for each. It is written
 *   before a worker can read it, and offsets only grow. A topic that was
 *   created anew, or whose end was cut off, is another one: it needs another
 *   name from there on (what is left of it has its lines again).
 * - `assign`, `revoke`, `lost`: the group gave the partition to the process,
 *   took it away in order, or without asking; `committed` is left out where
 *   the group had no offset. `revoke` is written behind the last commit.
 * - `commit`: the group's offset, as the broker has it; written when it was
 *   applied, or was seen to be. `process` made it; 0 where nobody knows.
 *   `reset`: somebody else set it, or the broker lost it.
 * - `skip`: the offsets from `from` to below `to` were not, or not any more,
 *   for the store that is exported. kind: moved = a worker with a store of
 *   its own had them and committed behind them; reset = the group's offset
 *   was set behind them; truncated = the broker deleted them. What was
 *   committed before that stays promised.
 * - `event`: the final export, one for each event that the store knows, with
 *   the members of `onced dump`. The output of `onced dump` may be given as
 *   it is: lines without "l" are taken for its.
 *
 * Lines stand in the order of `t`; among equal ones, in the order in which
 * things happened. `route` and `event` lines have no time: routes come first,
 * the export last.
 *
 * The writer below appends to memory; no function fails. One thread at a time.
 */
#ifndef CHECKER_LEDGER_H
#define CHECKER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"

enum ledger_on_uncertain { LEDGER_RETRY, LEDGER_HOLD, LEDGER_PROBE };
enum ledger_after_dead { LEDGER_CONTINUE, LEDGER_HOLD_KEY };
enum ledger_respond { LEDGER_ACCEPTED, LEDGER_RESULT, LEDGER_HANDLED };
enum ledger_drift { LEDGER_DRIFT_ACK, LEDGER_DRIFT_DEAD, LEDGER_DRIFT_REJECT };

struct ledger_route {
    struct slice route, namespace;
    enum ledger_on_uncertain on_uncertain;
    enum ledger_after_dead after_dead;
    enum ledger_respond respond;
    enum ledger_drift drift;
    bool ordered;
};

/* What names an event in the lines that speak of one. */
struct ledger_name {
    struct slice route, tenant, id;
};

struct ledger_sent {
    int64_t t_ms;
    uint64_t try;
    struct ledger_name event;
    struct slice hash;
    struct slice order; /* empty: none */
    bool valid;
};

struct ledger_resp {
    int64_t t_ms;
    uint64_t try;
    int64_t status;
    struct slice body;     /* data NULL: not looked at */
    int64_t retry_after_s; /* < 0: none */
};

struct ledger_inv {
    int64_t t_ms;
    uint64_t n;
    struct ledger_name event;
    struct slice hash, key;
    uint64_t attempt;
    uint64_t process;
};

/* The first six as enum attempt_end has them. */
enum ledger_end {
    LEDGER_END_STATUS,
    LEDGER_END_EXIT,
    LEDGER_END_SIGNAL,
    LEDGER_END_TIMEOUT,
    LEDGER_END_BROKEN,
    LEDGER_END_UNREACHED,
    LEDGER_END_LOST,
};

enum ledger_effect {
    LEDGER_EFFECT_UNSEEN, /* nobody looked */
    LEDGER_EFFECT_NONE,
    LEDGER_EFFECT_APPLIED,
};

struct ledger_done {
    int64_t t_ms;
    uint64_t n;
    enum ledger_end end;
    int64_t status;
    enum ledger_effect effect;
};

/* The first seven as enum command_kind has them. */
enum ledger_order_kind {
    LEDGER_REPLAY,
    LEDGER_RERUN,
    LEDGER_RESOLVE_APPLIED,
    LEDGER_RESOLVE_NOT_APPLIED,
    LEDGER_DISCARD,
    LEDGER_PAUSE,
    LEDGER_RESUME,
};

/* The first six as enum command_status has them. */
enum ledger_verdict {
    LEDGER_DONE,
    LEDGER_NOTHING_TO_DO,
    LEDGER_IN_DOUBT,
    LEDGER_REFUSED,
    LEDGER_NOT_FOUND,
    LEDGER_BUSY,
    LEDGER_UNKNOWN,
};

struct ledger_order {
    int64_t t_ms;
    enum ledger_order_kind kind;
    struct ledger_name event; /* PAUSE, RESUME: the route alone */
    enum ledger_verdict verdict;
};

struct ledger_fault {
    int64_t t_ms;
    struct slice kind; /* "crash" … */
    uint64_t process;
};

/* `start` */
struct ledger_start {
    int64_t t_ms;
    uint64_t process;
    struct slice store; /* empty: there is one */
};

/* `heal` and `quiet` */
struct ledger_phase {
    int64_t t_ms;
    int64_t within_ms; /* HEAL */
};

struct ledger_forgotten {
    int64_t t_ms;
    struct ledger_name event;
};

/* A partition of a topic. */
struct ledger_place {
    struct slice topic;
    int64_t partition;
};

struct ledger_msg {
    int64_t t_ms;
    struct ledger_place place;
    int64_t offset;
    struct ledger_name event;
    struct slice hash;
    struct slice order; /* empty: none */
};

/* `assign`, `revoke` and `lost` */
struct ledger_owner {
    int64_t t_ms;
    uint64_t process;
    struct ledger_place place;
    int64_t committed; /* ASSIGN; < 0: none */
};

/* `commit` and `reset` */
struct ledger_commit {
    int64_t t_ms;
    struct ledger_place place;
    int64_t offset;
    uint64_t process; /* COMMIT; 0: not known */
};

enum ledger_skip_kind {
    LEDGER_SKIP_MOVED,
    LEDGER_SKIP_RESET,
    LEDGER_SKIP_TRUNCATED,
};

struct ledger_skip {
    int64_t t_ms;
    enum ledger_skip_kind kind;
    struct ledger_place place;
    int64_t from, to;
};

enum ledger_state {
    LEDGER_PENDING,
    LEDGER_RUNNING,
    LEDGER_UNCERTAIN,
    LEDGER_SUCCEEDED,
    LEDGER_FAILED,
    LEDGER_DEAD,
};

/* One row of a history; `what` as move_name has it. */
struct ledger_row {
    struct slice at; /* time as text, for people; may be empty */
    struct slice what;
    uint64_t attempt, run;
    struct slice actor, why;
};

struct ledger_event {
    struct ledger_name event;
    struct slice namespace;
    enum ledger_state state;
    struct slice reason; /* empty: none */
    uint64_t run, attempts, tries, crashes, deliveries, drift, origin;
    struct slice due; /* time as text, for people; empty: none */
    const struct ledger_row *rows;
    size_t n_rows;
    struct slice store; /* empty: there is one */
};

/* --- writing -------------------------------------------------------------- */

struct ledger {
    struct buf text;
    size_t lines;
};

#define LEDGER_INIT ((struct ledger){BUF_INIT, 0})

/* Back to LEDGER_INIT. */
void ledger_fini(struct ledger *ledger);

/* Each appends one line. Slices are borrowed for the call and must be UTF-8. */
void ledger_route(struct ledger *ledger, const struct ledger_route *line);
void ledger_sent(struct ledger *ledger, const struct ledger_sent *line);
void ledger_resp(struct ledger *ledger, const struct ledger_resp *line);
void ledger_inv(struct ledger *ledger, const struct ledger_inv *line);
void ledger_done(struct ledger *ledger, const struct ledger_done *line);
void ledger_order(struct ledger *ledger, const struct ledger_order *line);
void ledger_fault(struct ledger *ledger, const struct ledger_fault *line);
void ledger_start(struct ledger *ledger, const struct ledger_start *line);
void ledger_heal(struct ledger *ledger, const struct ledger_phase *line);
void ledger_quiet(struct ledger *ledger, const struct ledger_phase *line);
void ledger_forgotten(struct ledger *ledger,
                      const struct ledger_forgotten *line);
void ledger_msg(struct ledger *ledger, const struct ledger_msg *line);
void ledger_assign(struct ledger *ledger, const struct ledger_owner *line);
void ledger_revoke(struct ledger *ledger, const struct ledger_owner *line);
void ledger_lost(struct ledger *ledger, const struct ledger_owner *line);
void ledger_commit(struct ledger *ledger, const struct ledger_commit *line);
void ledger_reset(struct ledger *ledger, const struct ledger_commit *line);
void ledger_skip(struct ledger *ledger, const struct ledger_skip *line);
void ledger_event(struct ledger *ledger, const struct ledger_event *line);

/* All lines so far; valid until the next one is appended. */
struct slice ledger_text(const struct ledger *ledger);

/* Writes out what is in memory, and forgets it. */
bool ledger_drain(struct ledger *ledger, FILE *file,
                  struct err *err) MUST_CHECK;

#endif
