/* SPDX-License-Identifier: MIT */
/*
 * A simulated world around the real engine, core and store.
 *
 * Everything that happens follows from one seed: senders that try, time out
 * and try again, handlers that succeed, refuse, fail, hang, lie and answer
 * late, operators, clocks that jump, a disk that is full or broken, and deaths
 * of the process between any two steps. Time passes only when nothing is left
 * to do. After a while everything heals, and must come to rest; then the
 * checker judges the ledger, and the store is verified.
 *
 *   plan.c      what the seed draws: which features and faults exist
 *   world.c     the run of one seed: two phases and the judgement
 *   process.c   the process under test: start, turns, death, orderly end
 *   seam.c      functions of libraries that the linker puts ours in front of
 *   sender.c    events, and their deliveries
 *   broker.c    partitions, their messages, the offsets of the group, and
 *               what happens to them
 *   consumer.c  the source: what the process does with its partitions
 *   offsets.c   what the source commits, held against the store
 *   receiver.c  handlers, and the effects that they have
 *   publisher.c where dead letters are told
 *   operator.c  orders
 *   nemesis.c   when faults happen
 *   healing.c   the second phase: what people do, and how long it may take
 *   export.c    the store's events into the ledger
 *
 * A process that dies lets nothing out any more: every sink asks
 * process_lets_out first. Then the engine is taken apart, and the store opened
 * again.
 */
#ifndef ONCED_TESTS_SIM_SIM_H
#define ONCED_TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "checker/ledger.h"
#include "engine/engine.h"
#include "sim/agenda.h"
#include "sim/dice.h"
#include "sim/trace.h"
#include "store/store.h"

enum {
    SIM_ROUTES_MAX = 4,
    SIM_KEYS_MAX = 4,
    SIM_TOPICS_MAX = 2,
    SIM_PARTITIONS_MAX = 6,
    SIM_FINDING_SIZE = 512,
    SIM_DIR_SIZE = 64,
    SIM_UNSENT_MAX = 64, /* concurrency of all routes */
    SIM_START_MS = 10 * 1000,
};

#define SIM_WALL_MS INT64_C(1790000000000) /* the wall clock at time 0 */
#define MINUTE_MS INT64_C(60000)
#define HOUR_MS INT64_C(3600000)
#define DAY_MS INT64_C(86400000)

/* --- the plan ---------------------------------------------------------------
 */

/* What exists in a world. */
enum feature {
    FEATURE_CRASHES,      /* the process dies */
    FEATURE_BAD_STARTS,   /* it dies while it starts, too */
    FEATURE_IO_ERRORS,    /* a commit fails, or succeeds and says it failed */
    FEATURE_NO_SPACE,     /* a commit finds the disk full */
    FEATURE_FULL_DISK,    /* no blocks can be allocated for a while */
    FEATURE_SMALL_STORE,  /* the quota is soon spent */
    FEATURE_SLOW_COMMITS, /* some commits take seconds */
    FEATURE_JUMPS,        /* the wall clock jumps by up to a day */
    FEATURE_REBOOTS,      /* the boot clock starts again, orphans are gone */
    FEATURE_RESTARTS,     /* orderly ones */
    FEATURE_OUTAGES,      /* handlers cannot be reached for a while */
    FEATURE_HANGS,
    FEATURE_LIES,    /* the effect is applied, and a failure reported */
    FEATURE_FAILS,   /* 5xx, broken connections, signals */
    FEATURE_REFUSES, /* 4xx */
    FEATURE_DEFERS,  /* 429 with Retry-After, 409, exit 75 */
    FEATURE_REPEATS, /* senders send again what was acknowledged */
    FEATURE_DRIFT,   /* with other content */
    FEATURE_CROWDS,  /* so many events that sealing takes many steps */
    FEATURE_BURSTS,  /* many at once; a small inbox */
    FEATURE_FAN_OUT, /* one delivery for two routes */
    FEATURE_TENANTS,
    FEATURE_ORDERS, /* operators do what they do, but run nothing again */
    FEATURE_RERUNS,
    FEATURE_PAUSES,
    FEATURE_CHANGES,     /* the configuration is another one at a start */
    FEATURE_FORGETTING,  /* the run is longer than the retention */
    FEATURE_KAFKA,       /* there are topics; of these: */
    FEATURE_REBALANCES,  /* partitions come and go */
    FEATURE_ELSEWHERE,   /* another worker has them meanwhile */
    FEATURE_BAD_COMMITS, /* are lost, or late */
    FEATURE_RESETS,      /* the group's offset is set by people */
    FEATURE_TRUNCATION,  /* logs lose their beginning or end, or all */
    FEATURES,
};

/* --- who is in it ------------------------------------------------------------
 */

struct sim_route {
    struct engine_route conf;
    char name[24];
    struct sim *sim;
    bool is_exec; /* its attempts outlive the process as orphans */
    bool ordered;
    bool paused; /* known to be: the order was confirmed */
    int64_t unreachable_until_ms;
};

/* Growing lists of what lives until the world ends; `at` stays where it is. */
struct list {
    void **at;
    size_t n, cap;
};

/* Adds `size` bytes of zeroes. */
void *list_add(struct list *list, size_t size);
void list_free(struct list *list);

/* One event as its sender knows it. */
struct event {
    struct sim *sim;
    size_t route;
    size_t also; /* the delivery is for this route too; SIZE_MAX: it is not */
    char id[16];
    const char *tenant;
    uint64_t order_key; /* 0: none */
    unsigned size;      /* of its body */
    int64_t first_try_ms;
    int64_t give_up_ms; /* the sender sends no more from here on */
    bool acked;
    bool waits;        /* for an answer, or for its next try */
    bool trying;       /* for an answer */
    unsigned versions; /* of its content that were sent beside the first */
    /* what operators saw of it last, on `route` and `also` */
    struct record seen[2];
    unsigned reruns;  /* that were ordered */
    unsigned replays; /* likewise, and what else makes it run again */
    /* Where its messages go; NULL: it has none. */
    struct topic *topic;
    bool by_http;        /* it is sent, too */
    unsigned messages;   /* so many were there, some time */
    bool known;          /* to the store, some time */
    unsigned invoked[2]; /* on `route` and `also`, as long as it is known */
};

/* --- the broker ------------------------------------------------------------
 */

struct topic {
    char name[24], stream[40];
    size_t index;       /* of the stream */
    size_t route, also; /* also SIZE_MAX: one route reads it */
    unsigned n_partitions;
    bool tells_id; /* the library knows of topic ids */
};

struct message {
    struct event *event;
    unsigned version; /* of the content */
    int64_t offset;
    int64_t wall_ms;
    const struct holding *brought; /* by whom last; it may be gone */
};

struct partition {
    struct sim *sim;
    struct topic *topic;
    int32_t number;
    char name[40];           /* of the topic, in the ledger */
    unsigned renames;        /* the log is another one since then */
    unsigned creation;       /* of the topic */
    struct list messages;    /* all, also those that are gone */
    size_t first;            /* the first one that is not */
    int64_t start, end;      /* of the log */
    int64_t committed;       /* of the group; < 0: nothing */
    struct holding *holding; /* the owner's; NULL: this process is none */
    struct holding *last;    /* may not be over yet */
    bool will_be_given;
};

/* Of an event's messages. */
enum whereabouts {
    SOMEWHERE, /* there are several, or there is none any more */
    HERE,      /* the process has its partition */
    LEAVING,   /* as long as it drains */
    ELSEWHERE,
};

enum holding_state {
    HOLDING_OPENING,
    HOLDING_OPEN,
    HOLDING_DRAINING,
    HOLDING_FENCING,
    HOLDING_OVER,
};

/* A partition that the process has, from ASSIGN to its end. */
struct holding {
    struct assignment assignment; /* first */
    struct assignment_order open, drain, fence;
    struct sim *sim;
    struct partition *partition;
    unsigned process;
    enum holding_state state;
    bool in_order;    /* it ends so */
    bool races;       /* it is handed one more when it ends */
    bool may_be_late; /* the process died with it; its last commit may come */
    uint8_t topic_id[16];
    size_t next;             /* message to hand over */
    struct package *package; /* with the engine, or to be offered again */
    int64_t stored;          /* offset, for the next commit; < 0: none */
    size_t checked;          /* messages below it that were found settled */
    bool fetches, stores, commits; /* planned */
};

/* One delivery of messages. */
struct package {
    struct delivery delivery; /* first */
    struct holding *holding;
    struct arrival *arrivals;
    struct buf text;
    bool in_engine;
    bool late; /* handed in behind the order that ends the assignment */
};

/* One delivery under way. */
struct
try {
    struct delivery delivery; /* first */
    struct arrival arrivals[2];
    struct buf text; /* id, envelope */
    struct event *event;
    uint64_t numbers[2]; /* in the ledger, one for each route */
    bool in_engine;
    bool over; /* it is answered, or the sender hung up */
};

/* What a receiver knows of one idempotency key. */
struct keyed {
    char key[ATTEMPT_KEY_SIZE];
    bool applied;
    unsigned busy; /* invocations under way */
    struct keyed *next;
};

/* One attempt as its receiver sees it. */
struct invocation {
    struct sim_route *route;
    struct event *event;
    struct keyed *keyed;
    struct attempt *attempt; /* NULL: the engine was told, or is dead */
    uint8_t identity[16];
    uint32_t number; /* of the attempt */
    uint64_t n;      /* in the ledger; 0: it reached nobody */
    /* what will come of it */
    bool applies;      /* it has an effect, where its key had none */
    int64_t effect_ms; /* when */
    int64_t answer_ms; /* when the receiver is done with it */
    enum attempt_end end;
    int status;
    int64_t retry_after_ms;
    /* what has come of it */
    bool has_effect;
    size_t result_len;        /* of the body of its answer */
    enum ledger_end told_end; /* the engine was told so */
    int told_status;
    bool written; /* in the ledger */
    bool over;    /* the receiver is done with it */
};

struct order {
    struct command command; /* first */
    struct sim *sim;
    struct event *event; /* NULL: of a route */
    bool in_engine;
    bool leads_on;   /* READ: what is seen leads to another order */
    unsigned reruns; /* of the event, when it was seen */
};

/* --- the process -------------------------------------------------------------
 */

enum commit_fault {
    COMMIT_FINE,
    COMMIT_LOST,     /* the process dies before it */
    COMMIT_KEPT,     /* and after it, with some of what follows let out */
    COMMIT_FAILS,    /* nothing is applied, and it says so */
    COMMIT_UNKNOWN,  /* it is applied, and says that it failed */
    COMMIT_NO_SPACE, /* nothing is applied, there is no room */
};
enum { COMMIT_FAULTS = COMMIT_NO_SPACE + 1 };

struct process {
    struct store *store;
    struct engine *engine;
    unsigned number; /* counted from 1 */
    bool up;         /* engine_new has returned */
    bool dead;       /* nothing is let out, nothing is committed */
    bool stopping;
    int64_t wake_ms;       /* when the engine wants to turn */
    int64_t busy_until_ms; /* the commit takes so long */
    /* by the seam, of the last wait */
    int64_t wait_ms;
    bool drained;
    bool committed;
    unsigned idle_turns; /* that neither waited nor took an item */
    /* armed by the nemesis */
    enum commit_fault fault;
    unsigned fault_in;       /* commits from now; 0: not armed */
    unsigned fault_releases; /* COMMIT_KEPT: so much is let out */
    bool counts_releases;
    bool fault_hit;                         /* whatever fails now has a cause */
    struct attempt *unsent[SIM_UNSENT_MAX]; /* started by a dead process */
    size_t n_unsent;
};

/* Rare moves of events (paths.c). */
enum path {
    PATH_REPEAT_IN_FLIGHT,
    PATH_REPEAT_OF_SETTLED,
    PATH_REPEAT_OF_DEAD,
    PATH_DRIFTED,
    PATH_CRASHED,
    PATH_LEASE_PROLONGED,
    PATH_RERUN,
    PATH_HOLDER_REPLAYED,
    PATH_POISONED,
    PATH_EXHAUSTED,
    PATH_DOUBT_HELD,
    PATH_KEY_FREED_BY_SUCCESS,
    PATH_KEY_FREED_BY_DEATH,
    PATH_KEY_FREED_BY_DISCARD,
    PATH_PARKED,
    PATH_UNPARKED,
    PATH_MOVED,
    PATH_GONE,
    PATH_TOO_OLD,
    PATH_PIN_TAKEN_OVER,
    PATH_LEFT_CRASHED,
    PATH_LEFT_KEPT,
    PATH_LEFT_BROUGHT,
    PATHS, /* how many; also: none of them */
};
const char *path_words(enum path path);

/* Rare things that are seen from outside of the program. */
struct sights {
    uint64_t paths[PATHS];
    uint64_t late_answers; /* nobody waited for it any more */
    uint64_t commits[COMMIT_FAULTS];
    uint64_t deaths, deaths_in_start, deaths_in_start_again;
    uint64_t sheds;
    uint64_t key_busy; /* 409: the key's first invocation is under way */
    uint64_t forgotten;
    /* of partitions */
    uint64_t revoked_busy, revoked_impatiently, lost_busy, fenced,
        offered_again, begun_in_drain;
    uint64_t rewound, reset_forward, beginning_lost, end_lost, created_anew;
    uint64_t elsewhere, commits_lost, commits_late, store_ahead;
};

struct sim {
    uint64_t seed;
    char dir[SIM_DIR_SIZE]; /* of this run of the program */
    char path[SIM_DIR_SIZE + 16];
    struct dice dice;
    struct dice backoff; /* the engine's own */
    struct dice random;  /* what hash_random gives */
    struct trace trace;
    struct agenda agenda;
    struct ledger ledger;
    bool failed;
    char finding[SIM_FINDING_SIZE];
    /* time */
    int64_t now_ms; /* the world's own, never goes back */
    int64_t boot_offset_ms, wall_offset_ms;
    struct clock clock;
    /* plan */
    bool has[FEATURES];
    struct sim_route routes[SIM_ROUTES_MAX];
    size_t n_routes;
    struct topic topics[SIM_TOPICS_MAX];
    size_t n_topics;
    unsigned n_events, n_keys;
    int64_t phase_ms;   /* how long the first phase lasts */
    int64_t horizon_ms; /* so long a sender tries */
    int64_t retention_ms;
    uint64_t max_bytes;
    uint32_t ids_per_generation;
    size_t inbox_items;
    int64_t crash_gap_ms;    /* mean time between two faults of the process */
    unsigned tempt_permille; /* chance of one when something happens */
    /* state */
    bool healed, closing;
    bool disk_full;
    bool died_in_start; /* the last process did */
    struct process process;
    struct list events, tries, invocations, orders, packages, holdings;
    struct list publications, told;
    struct partition partitions[SIM_PARTITIONS_MAX];
    size_t n_partitions;
    uint32_t epochs; /* of assignments */
    struct keyed *keyed;
    uint64_t last_try, last_invocation;
    struct sights sights;
};

/* The world that the seam's functions act on; NULL: none. */
extern struct sim *sim_current;

/* The first finding stays; the run ends. */
void sim_fail(struct sim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* world.c: runs the seed; the world's memory and its store are gone after it,
 * but for finding, trace and sights. False: there is a finding. */
bool sim_run(struct sim *sim, uint64_t seed, const char *dir, bool print);
/* For one that does not come back from sim_run. */
void sim_remove_store(const struct sim *sim);
/* Lets the world go on until then, or a finding. */
void sim_pass_until(struct sim *sim, int64_t until_ms);

/* plan.c */
void plan_draw(struct sim *sim);
/* Another configuration, as an operator may write between two starts. */
void plan_change(struct sim *sim);

/* process.c */
/* Starts it. False: it died while starting, or there is a finding. */
bool process_start(struct sim *sim);
/* Dies at once, where it stands. */
void process_kill(struct sim *sim, const char *why);
/* An orderly end, as on SIGTERM. It may die on the way. */
void process_stop(struct sim *sim);
/* One turn of the engine, where it wants one. */
void process_turn(struct sim *sim);
/* Something is in the inbox. */
void process_poke(struct sim *sim);
/* Asked by every sink; false: the process is dead, let nothing happen. */
bool process_lets_out(struct sim *sim);
/* Of an attempt that starts: while nobody is reached, it is alone. */
void process_watch_breaker(struct sim *sim, size_t route);
/* Its store, with all that is asked for by the plan. */
bool process_open_store(struct sim *sim, bool read_only, struct store **out,
                        struct err *err);

/* sender.c */
void sender_plan(struct sim *sim);
/* What was in a process that died has no answer. */
void sender_process_died(struct sim *sim);
struct event *sender_find(struct sim *sim, size_t route, struct slice tenant,
                          struct slice id);
/* Who waits for its next try makes it soon. */
void sender_hurry(struct sim *sim);
/* It was known, forgotten, and came as new: another event for the ledger. */
void sender_see_renewed(struct event *event, size_t route);
/* Whether that may be. */
bool sender_may_be_renewed(const struct event *event);
/* How a content stands in the ledger. */
void sender_hash(struct slice body, struct buf *hex);

/* From here on it may be known; its horizon begins. */
void sender_begin(struct event *event);
/* The content of a version of the event. */
void sender_body(const struct event *event, unsigned version, struct buf *body);
/* Which one is sent next. */
unsigned sender_draw_version(struct event *event);
/* What an arrival says of the event itself. */
void sender_fill(struct arrival *arrival, const struct event *event,
                 size_t route, struct slice body);

/* broker.c */
void broker_plan(struct sim *sim);
void broker_free(struct sim *sim);
/* Plans the messages of an event; its first one at `at_ms`. */
void broker_send(struct sim *sim, struct event *event, int64_t at_ms);
struct ledger_place broker_place(const struct partition *partition);
void broker_commit(struct partition *partition, int64_t offset,
                   unsigned process);
/* The process has it no more. */
void broker_freed(struct partition *partition);
/* A process is there, or everything is healed: partitions are given out. */
void broker_give_out(struct sim *sim);
enum whereabouts broker_find(const struct sim *sim, const struct event *event);
/* Every message was read and committed. */
bool broker_rests(const struct sim *sim);

/* consumer.c */
void consumer_open(struct partition *partition);
/* `in_order`: the process may finish what it has begun. */
void consumer_take_away(struct holding *holding, bool in_order);
/* There may be something to take. */
void consumer_fetch(struct holding *holding, int64_t in_ms);
void consumer_stop(struct sim *sim);
/* Its process runs. */
bool holding_is_alive(const struct holding *holding);
/* Nothing of the process is left. */
bool consumer_is_over(const struct sim *sim);
void consumer_process_died(struct sim *sim);

/* offsets.c */
/* The engine told of a low-water: it is looked at between two turns. */
void offsets_follow(struct holding *holding);
/* Holds it against the store, and keeps it for the next commit. */
void offsets_store(struct holding *holding, int64_t low_water);
void offsets_commit(struct holding *holding);

/* receiver.c */
extern const struct handler_ops receiver_ops;
/* Before an orderly end: every attempt is over. */
void receiver_stop(struct sim *sim);
/* The machine went down: so did all commands. */
void receiver_reboot(struct sim *sim);
/* Whether some receiver still works on the event, whoever waits for it. */
bool receiver_is_busy(struct sim *sim, const struct event *event, size_t route);
/* Whether the effect of the event's run was applied. */
bool receiver_applied(struct sim *sim, const struct event *event, size_t route,
                      uint32_t run);
void receiver_free(struct sim *sim);

/* publisher.c */
extern const struct publisher_ops publisher_ops;
/* What is on its way comes back, not published; before the engine is freed. */
void publisher_stop(struct sim *sim);
/* Nothing is on its way, nothing waits. */
bool publisher_rests(const struct sim *sim);
/* Of a dead letter of a route that tells them, at the very end. */
void publisher_check(struct sim *sim, const char *route,
                     const struct store_entry *entry);

/* operator.c */
void operator_plan(struct sim *sim);
void operator_process_died(struct sim *sim);
/* Gives an order; `event` NULL: of the route. False: no room, or no process. */
bool operator_order(struct sim *sim, enum command_kind kind, size_t route,
                    struct event *event);
/* Looks at all events: one that was acknowledged must be there. */
void operator_audit(struct sim *sim);
/* What a person does with this dead letter, who knows what was applied. */
void operator_settle(struct sim *sim, struct event *event, size_t route,
                     uint32_t run);
/* Whether the retention let go of the event, as far as was seen. */
bool operator_is_forgotten(const struct sim *sim, const struct event *event,
                           size_t route, int64_t store_now_ms);

/* nemesis.c */
void nemesis_plan(struct sim *sim);
/* Something is under way for so long, which a fault would hit well. */
void nemesis_tempt(struct sim *sim, int64_t within_ms);
/* The same, of what is rare. */
void nemesis_tempt_more(struct sim *sim, int64_t within_ms);
/* What happens to the commit that is about to be made. */
enum commit_fault nemesis_judge(struct sim *sim);
/* The store has work of its own in more than one step. */
void nemesis_tempt_upkeep(struct sim *sim);
/* After any end of the process: when it starts again. */
void nemesis_process_ended(struct sim *sim);

/* healing.c: the second phase. */
void healing_run(struct sim *sim);

/* export.c: the events of the closed store, as the ledger's last lines. */
void export_events(struct sim *sim);

/* Names for the ledger. */
struct ledger_name event_name(const struct sim *sim, const struct event *event,
                              size_t route);

#endif
