/* SPDX-License-Identifier: MIT */
/*
 * What onced and your handler agree on. Plain C, needs nothing else; handlers
 * in other languages take the names from here.
 *
 * THE ONE RULE. onced invokes a handler once per event, and again only after
 * an attempt whose outcome it cannot know (a crash, a time-out, a connection
 * that broke, a status 5xx), after one that says "not now", or when an
 * operator orders it. All attempts of one event carry the same idempotency
 * key: a handler that remembers the keys whose effect it has applied, in the
 * same transaction as the effect, applies every event exactly once.
 *
 * HTTP HANDLERS get the sender's request again: its method, query, body and
 * headers in their order (without hop-by-hop headers), plus the headers below.
 * Headers of these names that the sender sent are not passed on, so what
 * arrives under them is from onced. `traceparent` passes unchanged. An event
 * from Kafka is a POST whose body is the message's value. Redirects are not
 * followed unless configured, and an answer is read to its end.
 *
 * The answer's status decides what happens next:
 *
 *     2xx                               done
 *     401 403 404 405 413 415           refused: a matter of set-up; nothing
 *                                       was applied, an operator may replay
 *     408 409 421 425 429               not now: nothing was applied, tried
 *                                       again; Retry-After is honoured
 *     other 4xx                         final no to this event
 *     5xx, time-out, broken connection  may have been applied: uncertain
 *     3xx                               an answer where the route passes
 *                                       answers on, else uncertain
 *
 * Interim answers (1xx) are skipped; 101 as the answer counts as broken.
 *
 * EXEC HANDLERS are started once per attempt, without a shell, in their own
 * process group, with the body on standard input. Standard output is the
 * result; lines on standard error go to the log of onced (the first 64 lines
 * or 8 KiB of an attempt). The attempt ends when the process that was started
 * exits: its process group is then killed, so nothing in the background
 * outlives it. At the time-out the group gets SIGTERM, and SIGKILL half a
 * second later, whatever it answers.
 *
 * The exit status decides what happens next:
 *
 *     0                                 done
 *     75 (EX_TEMPFAIL)                  not now: nothing was applied
 *     64-78 but 75                      final no to this event
 *     any other, a signal, time-out     may have been applied: uncertain
 *
 * The environment is clean: PATH, HOME, LANG and TZ as onced has them, what
 * the route configures, and the variables below. The descriptors are 0, 1, 2
 * and ONCED_LEASE_FD, all others are closed.
 */
#ifndef ONCED_HANDLER_H
#define ONCED_HANDLER_H

/* --- request headers of an HTTP handler ---------------------------------- */

/* Stable over all attempts of an event, over restarts too; 32 characters of
 * A-Z and 2-7. A rerun that an operator orders on purpose has a new one. */
#define ONCED_HEADER_IDEMPOTENCY_KEY "Idempotency-Key"
/* The route's name. */
#define ONCED_HEADER_ROUTE "Onced-Route"
/* The event's id, as the route's `id` rule found it: 1-255 bytes of UTF-8
 * without control characters, sent as they are. */
#define ONCED_HEADER_EVENT_ID "Onced-Event-Id"
/* Absent where the route has no tenants. */
#define ONCED_HEADER_TENANT "Onced-Tenant"
/* Number of the attempt, decimal, from 1; it never goes back. */
#define ONCED_HEADER_ATTEMPT "Onced-Attempt"

/* Events from Kafka only. */
#define ONCED_HEADER_KAFKA_TOPIC "Onced-Kafka-Topic"
#define ONCED_HEADER_KAFKA_PARTITION "Onced-Kafka-Partition"
#define ONCED_HEADER_KAFKA_OFFSET "Onced-Kafka-Offset"
#define ONCED_HEADER_KAFKA_TIMESTAMP                                           \
    "Onced-Kafka-Timestamp"                      /* ms since 1970              \
                                                  */
#define ONCED_HEADER_KAFKA_KEY "Onced-Kafka-Key" /* absent: the key is null */
/* "1" where the value is null (a tombstone), which the body cannot say. */
#define ONCED_HEADER_KAFKA_NULL "Onced-Kafka-Null"
/* Headers of the message, each under this prefix and its own name; bytes of
 * a name that HTTP does not allow stand as %XX. content-type, traceparent
 * and tracestate also stand under their own names. A value that is null reads
 * as an empty one. */
#define ONCED_HEADER_KAFKA_PREFIX "Kafka-Header-"
/* A key or a message header that is not printable text is in base64; this
 * header names every header whose value is, separated by ", ". */
#define ONCED_HEADER_KAFKA_BASE64 "Onced-Kafka-Base64"

/* --- answer headers that onced reads ------------------------------------- */

/* Up to 64 printable ASCII characters of your own that say what went wrong
 * ("card-declined"); shown, counted and grouped by. Not passed on. */
#define ONCED_HEADER_CODE "Onced-Code"
/* With a "not now" status: seconds, or an HTTP date. */
#define ONCED_HEADER_RETRY_AFTER "Retry-After"

/* --- environment of an exec handler -------------------------------------- */

/* As the headers of the same names. Variables without a value are not set,
 * and no value has a NUL byte in it. */
#define ONCED_ENV_IDEMPOTENCY_KEY "IDEMPOTENCY_KEY"
#define ONCED_ENV_CONTENT_TYPE "CONTENT_TYPE"
#define ONCED_ENV_ROUTE "ONCED_ROUTE"
#define ONCED_ENV_EVENT_ID "ONCED_EVENT_ID"
#define ONCED_ENV_TENANT "ONCED_TENANT"
#define ONCED_ENV_ATTEMPT "ONCED_ATTEMPT"
/* Events from HTTP: path and query as they came, the query without '?'. */
#define ONCED_ENV_METHOD "ONCED_METHOD"
#define ONCED_ENV_PATH "ONCED_PATH"
#define ONCED_ENV_QUERY "ONCED_QUERY"
/* One variable per header, its name in upper case with '_' for '-':
 * ONCED_HEADER_USER_AGENT. Repeats are joined with ", ". HTTP headers whose
 * names hold other characters than letters, digits and '-' are left out, so
 * that no two names meet in one variable; in Kafka headers' names those
 * characters stand as '_', too. */
#define ONCED_ENV_HEADER_PREFIX "ONCED_HEADER_"
/* Events from Kafka; ONCED_KAFKA_BASE64 names variables, separated by a
 * blank. */
#define ONCED_ENV_KAFKA_TOPIC "ONCED_KAFKA_TOPIC"
#define ONCED_ENV_KAFKA_PARTITION "ONCED_KAFKA_PARTITION"
#define ONCED_ENV_KAFKA_OFFSET "ONCED_KAFKA_OFFSET"
#define ONCED_ENV_KAFKA_TIMESTAMP "ONCED_KAFKA_TIMESTAMP"
#define ONCED_ENV_KAFKA_KEY "ONCED_KAFKA_KEY"
#define ONCED_ENV_KAFKA_NULL "ONCED_KAFKA_NULL"
#define ONCED_ENV_KAFKA_BASE64 "ONCED_KAFKA_BASE64"
/* The system limits one variable to 128 KiB: what is longer than this, and
 * headers beyond four times this in all, are left out, and
 * ONCED_OMITTED names them, separated by a blank. */
#define ONCED_ENV_OMITTED "ONCED_OMITTED"
#define ONCED_ENV_VALUE_MAX 65536

/* --- exit statuses of an exec handler ------------------------------------ */

#define ONCED_EXIT_DONE 0
#define ONCED_EXIT_REFUSED_FIRST 64
#define ONCED_EXIT_NOT_NOW 75
#define ONCED_EXIT_REFUSED_LAST 78

/* A locked file, open for reading. Leave it open, and let processes that you
 * start inherit it: as long as one of them has it, onced knows, after a crash
 * of its own too, that the attempt still runs, and starts no second one. */
#define ONCED_LEASE_FD 3

#endif
