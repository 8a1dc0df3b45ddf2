/* SPDX-License-Identifier: MIT */
/* Lines of ledgers for tests, all of one time: the order of the lines counts.
 * The content of an event "a" is "h-a", its key "k-a". */
#ifndef TESTS_LEDGER_TEXT_H
#define TESTS_LEDGER_TEXT_H

#define ROUTE_AS(name, on_uncertain, after_dead, ordered, more)                \
    "{\"l\":\"route\",\"route\":\"" name "\",\"namespace\":\"" name            \
    "\",\"on_uncertain\":\"" on_uncertain "\",\"after_dead\":\"" after_dead    \
    "\",\"ordered\":" ordered more "}\n"
#define ROUTE ROUTE_AS("r", "retry", "continue", "false", "")
#define ROUTE_HOLD ROUTE_AS("r", "hold", "continue", "false", "")
#define ROUTE_ORDERED ROUTE_AS("r", "retry", "continue", "true", "")
#define ROUTE_ORDERED_HOLD ROUTE_AS("r", "retry", "hold", "true", "")
#define ROUTE_REJECT                                                           \
    ROUTE_AS("r", "retry", "continue", "false", ",\"drift\":\"reject\"")
#define ROUTE_RESULT                                                           \
    ROUTE_AS("r", "hold", "continue", "false", ",\"respond\":\"result\"")

#define SENT_AS(try, id, hash, more)                                           \
    "{\"l\":\"sent\",\"t\":1,\"try\":" #try ",\"route\":\"r\",\"id\":\"" id    \
    "\",\"hash\":\"" hash "\"" more "}\n"
#define SENT(try, id) SENT_AS(try, id, "h-" id, "")
#define SENT_BAD(try, id) SENT_AS(try, id, "h-" id, ",\"valid\":false")
#define SENT_KEY(try, id, order)                                               \
    SENT_AS(try, id, "h-" id, ",\"order\":\"" order "\"")
#define RESP(try, status)                                                      \
    "{\"l\":\"resp\",\"t\":1,\"try\":" #try ",\"status\":" #status "}\n"
#define RESP_BODY(try, status, body)                                           \
    "{\"l\":\"resp\",\"t\":1,\"try\":" #try ",\"status\":" #status             \
    ",\"body\":\"" body "\"}\n"
/* Sent and acknowledged as new. */
#define TAKEN(try, id) SENT(try, id) RESP(try, 202)
#define TAKEN_KEY(try, id, order) SENT_KEY(try, id, order) RESP(try, 202)

#define INV_AS(n, id, attempt, process, hash, key)                             \
    "{\"l\":\"inv\",\"t\":1,\"n\":" #n ",\"route\":\"r\",\"id\":\"" id         \
    "\",\"hash\":\"" hash "\",\"key\":\"" key "\",\"attempt\":" #attempt       \
    ",\"process\":" #process "}\n"
#define INV(n, id, attempt, process)                                           \
    INV_AS(n, id, attempt, process, "h-" id, "k-" id)
#define DONE_AS(n, end, status, more)                                          \
    "{\"l\":\"done\",\"t\":1,\"n\":" #n ",\"end\":\"" end                      \
    "\",\"status\":" #status more "}\n"
#define DONE(n, status) DONE_AS(n, "status", status, "")
#define DONE_EFFECT(n, status) DONE_AS(n, "status", status, ",\"effect\":true")
#define DONE_NOTHING(n, status)                                                \
    DONE_AS(n, "status", status, ",\"effect\":false")
/* Invoked once, with success. */
#define HANDLED(n, id) INV(n, id, 1, 1) DONE_EFFECT(n, 200)

#define HANDLED_BY(n, id, process) INV(n, id, 1, process) DONE_EFFECT(n, 200)

#define ORDER(kind, id, verdict)                                               \
    "{\"l\":\"order\",\"t\":1,\"kind\":\"" kind                                \
    "\",\"route\":\"r\",\"id\":\"" id "\",\"verdict\":\"" verdict "\"}\n"
#define CRASH(process)                                                         \
    "{\"l\":\"fault\",\"t\":1,\"kind\":\"crash\",\"process\":" #process "}\n"
#define START(process) "{\"l\":\"start\",\"t\":1,\"process\":" #process "}\n"
#define HEAL "{\"l\":\"heal\",\"t\":1}\n"
#define QUIET "{\"l\":\"quiet\",\"t\":1}\n"
#define FORGOTTEN(id)                                                          \
    "{\"l\":\"forgotten\",\"t\":1,\"route\":\"r\",\"id\":\"" id "\"}\n"

#define MSG_KEY(offset, id, more)                                              \
    "{\"l\":\"msg\",\"t\":1,\"topic\":\"q\",\"partition\":3,"                  \
    "\"offset\":" #offset ",\"route\":\"r\",\"id\":\"" id                      \
    "\",\"hash\":\"h-" id "\"" more "}\n"
#define MSG(offset, id) MSG_KEY(offset, id, "")
#define OWNER_AS(kind, process)                                                \
    "{\"l\":\"" kind "\",\"t\":1,\"process\":" #process                        \
    ",\"topic\":\"q\",\"partition\":3}\n"
#define ASSIGN(process) OWNER_AS("assign", process)
#define COMMIT_AS(kind, offset, more)                                          \
    "{\"l\":\"" kind                                                           \
    "\",\"t\":1,\"topic\":\"q\",\"partition\":3,\"offset\":" #offset more      \
    "}\n"
#define COMMIT(offset) COMMIT_AS("commit", offset, "")
#define COMMIT_BY(offset, process)                                             \
    COMMIT_AS("commit", offset, ",\"process\":" #process)
#define RESET(offset) COMMIT_AS("reset", offset, "")
#define SKIP(kind, from, to)                                                   \
    "{\"l\":\"skip\",\"t\":1,\"kind\":\"" kind                                 \
    "\",\"topic\":\"q\",\"partition\":3,\"from\":" #from ",\"to\":" #to "}\n"

#define ROW(what, attempt) "{\"what\":\"" what "\",\"attempt\":" #attempt "}"
#define EVENT_AS(id, state, origin, attempts, more)                            \
    "{\"l\":\"event\",\"route\":\"r\",\"namespace\":\"r\",\"id\":\"" id        \
    "\",\"state\":\"" state "\",\"attempts\":" #attempts                       \
    ",\"origin\":" #origin more "}\n"
/* `rows` are ROWs with commas. */
#define EVENT(id, state, origin, attempts, rows)                               \
    EVENT_AS(id, state, origin, attempts, ",\"run\":1,\"history\":[" rows "]")
#define EVENT_RUN(id, run, attempts, rows)                                     \
    EVENT_AS(id, "SUCCEEDED", 1, attempts,                                     \
             ",\"run\":" #run ",\"history\":[" rows "]")
#define EVENT_DEAD(id, reason, origin, attempts, rows)                         \
    EVENT_AS(id, "DEAD", origin, attempts,                                     \
             ",\"run\":1,\"reason\":\"" reason "\",\"history\":[" rows "]")
/* Settled by its first attempt. */
#define EVENT_DONE(id, origin) EVENT(id, "SUCCEEDED", origin, 1, "")

#endif
