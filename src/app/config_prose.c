/* SPDX-License-Identifier: MIT */
#include "app/config_prose.h"

#include <string.h>

#include "source/verify.h"

static const char start[] =
    "<!-- Generated from the table in src/app/options_*.c; do not edit. -->\n"
    "# Configuration\n"
    "\n"
    "One JSON file, read once at start: `onced.json`, or what `-c FILE` or\n"
    "`ONCED_CONFIG` names. `onced check` reads it, reports every mistake at\n"
    "once with its place, and changes nothing; `onced check --effective` also\n"
    "prints everything that is in force, with secrets masked. Editors that "
    "know\n"
    "JSON Schema help with `config/onced.schema.json`.\n"
    "\n"
    "The smallest useful file:\n"
    "\n"
    "```jsonc\n"
    "{\n"
    "  \"routes\": [\n"
    "    { \"name\": \"stripe\",\n"
    "      \"source\": { \"http\": { \"path\": \"/webhooks/stripe\" } },\n"
    "      \"verify\": { \"scheme\": \"stripe\", \"secrets\": [ { \"env\": "
    "\"STRIPE_SECRET\" } ] },\n"
    "      \"handler\": { \"http\": { \"url\": "
    "\"http://127.0.0.1:3000/stripe\" } } }\n"
    "  ]\n"
    "}\n"
    "```\n"
    "\n"
    "## How values are written\n"
    "\n"
    "- **Comments** `//` and `/* */` may stand anywhere. A key that is not\n"
    "  known, or stands twice, is a mistake.\n"
    "- A **duration** is a number and one of `ms`, `s`, `m`, `h`, `d`:\n"
    "  `\"150ms\"`, `\"35d\"`. A **size** is a number, alone (bytes) or with\n"
    "  `KiB`, `MiB`, `GiB`: `\"16GiB\"`.\n"
    "- **Any string** may come from elsewhere: `{ \"env\": \"NAME\" }`, with "
    "a\n"
    "  `\"default\"` beside it for when the variable is not set, or\n"
    "  `{ \"file\": \"path\" }`. One newline at the end of a file is dropped.\n"
    "- A **secret** is written the same way, or as `{ \"value\": \"…\" }`. A "
    "plain\n"
    "  string works and is warned about. A secret's file may be a symlink; a\n"
    "  file that its group can read is warned about, one that everybody can\n"
    "  read is refused, and so is an empty one.\n"
    "- **Relative paths** start at the folder of the configuration file.\n"
    "- A **network** is `192.0.2.0/24`, `2001:db8::/32`, or one address; "
    "`unix:`\n"
    "  stands for everybody who comes through a unix socket.\n"
    "\n"
    "## The file\n"
    "\n";

static const char value_expressions[] =
    "### Value expressions\n"
    "\n"
    "`id`, `tenant` and `order_by` say where in a delivery a value stands:\n"
    "\n"
    "| expression | value |\n"
    "|---|---|\n"
    "| `json:/data/id` | what stands at that JSON pointer of the body: a "
    "string, a number (exactly as written) or a boolean |\n"
    "| `header:X-Event-Id` | HTTP: a header of the request |\n"
    "| `query:id` | HTTP: a parameter of the query, decoded |\n"
    "| `kafka:key` | Kafka: the message's key |\n"
    "| `kafka:header:event-id` | Kafka: a header of the message |\n"
    "| `kafka:position` | Kafka: `topic/partition/offset`, which every message "
    "has; behind a topic that was made again `~N` |\n"
    "| `body:sha256` | a digest of the body, where there is no id at all |\n"
    "| `const:text` | the text itself |\n"
    "\n"
    "A list is tried in order; the first that gives something wins. An item "
    "that\n"
    "is itself a list needs all its parts, which are percent-encoded and "
    "joined by\n"
    "`/`:\n"
    "\n"
    "```jsonc\n"
    "\"id\": [ \"header:X-Event-Id\", [ \"json:/account\", \"json:/number\" ] "
    "]\n"
    "```\n"
    "\n"
    "An id is 1 to 255 bytes of UTF-8 without control characters. A delivery "
    "that\n"
    "has none is answered 400, and so is one where the header or the member "
    "stands\n"
    "twice: nobody must be able to choose which one counts. A message like "
    "that is\n"
    "DEAD (`undecodable`) under its position, and blocks nothing.\n"
    "\n";

static const char outcomes[] =
    "### What the end of an attempt means\n"
    "\n"
    "| handler | event |\n"
    "|---|---|\n"
    "| 2xx; exit 0 | SUCCEEDED |\n"
    "| 401 403 404 405 413 415 | DEAD (`refused`): the receiver is not set up "
    "for it; can be replayed |\n"
    "| 408 409 421 425 429; exit 75 | tried again; `Retry-After` is honoured "
    "|\n"
    "| other 4xx; exit 64 to 78 but 75 | DEAD (`refused`), can be replayed |\n"
    "| no connection, no process | tried again, counts for no limit |\n"
    "| 3xx, 5xx, timeout, broken after sending; other exit, signal | "
    "uncertain: `on_uncertain` decides |\n"
    "\n"
    "`handler.http.not_applied` and `handler.http.final` replace the third\n"
    "and the fourth row; a 4xx that is then in no row is uncertain. When the\n"
    "tries of an event are spent it is DEAD, with the reason `exhausted`, or\n"
    "`uncertain` where an attempt may have taken effect.\n"
    "\n"
    "When a handler cannot be reached at all, the route sends one event at a "
    "time\n"
    "(at least every 15 s) to see whether it is back; the others wait, and are "
    "due\n"
    "at once when it is.\n"
    "\n"
    "A program holds a locked file as descriptor 3, which tells a worker that\n"
    "was killed and started again that it still runs. It should leave that\n"
    "descriptor alone; one that leaves a daemon behind must close it there, "
    "or\n"
    "the daemon takes the place of an attempt. Its standard error goes to the\n"
    "log, line by line; what it prints is kept when it succeeds.\n"
    "\n";

static const char kafka[] =
    "## Kafka clusters\n"
    "\n"
    "`kafka` is the cluster that routes mean when they name none, "
    "`clusters` has\n"
    "more, each under a name. Both hold properties of librdkafka as its "
    "CONFIGURATION.md\n"
    "lists them: strings, numbers, `true` and `false`. What the library does "
    "not know, or\n"
    "does not take, is told by `onced check`, which also prints its version; "
    "it makes\n"
    "the clients, so that missing certificates are noticed, and talks to no "
    "broker.\n"
    "\n"
    "```jsonc\n"
    "\"kafka\": { \"bootstrap.servers\": \"kafka-1:9093,kafka-2:9093\",\n"
    "           \"security.protocol\": \"SASL_SSL\", \"sasl.mechanism\": "
    "\"SCRAM-SHA-512\",\n"
    "           \"sasl.username\": \"onced\", \"sasl.password\": { \"env\": "
    "\"KAFKA_PASSWORD\" } },\n"
    "\"clusters\": { \"archive\": { \"bootstrap.servers\": \"archive:9092\" "
    "} }\n"
    "```\n"
    "\n"
    "- `bootstrap.servers` is required. Passwords, secrets and private keys "
    "are "
    "secrets,\n"
    "  written as all of them are and shown as `***`. Relative paths of "
    "`….location` start at\n"
    "  the folder of the configuration file.\n"
    "- Refused by name is what would break a promise: `group.id` (it belongs "
    "to "
    "the\n"
    "  route), `enable.auto.commit=false`, `enable.auto.offset.store=true`,\n"
    "  `enable.partition.eof=true`, `acks` other than `all`,\n"
    "  `enable.idempotence=false`, `transactional.id`, and what would take "
    "the library's\n"
    "  reports from onced.\n"
    "- Set unless the cluster says otherwise, with the reasons in "
    "[kafka.md](kafka.md):\n"
    "  `group.instance.id` (`onced-<store id>-<group>`; `\"\"` for none),\n"
    "  `session.timeout.ms` 10000, `auto.offset.reset` `earliest`,\n"
    "  `auto.commit.interval.ms` 1000, and how much is fetched ahead.\n"
    "\n";

static const char end[] =
    "## Memory\n"
    "\n"
    "`onced check --effective` prints, as `memory_bound`, the most that the\n"
    "process takes under this configuration, and its parts:\n"
    "\n"
    "| part | how it is computed |\n"
    "|---|---|\n"
    "| `program` | 64 MiB for the program itself, its libraries and threads "
    "|\n"
    "| `connections` | `listen.max_connections` × 32 KiB; with TLS × 80 KiB "
    "|\n"
    "| `bodies` | `listen.max_in_flight` |\n"
    "| `inbox` | `inbox.max_bytes` |\n"
    "| `attempts` | for each route `concurrency` × (2 × `max_body` + "
    "`max_result` + 64 KiB); a message counts as 1 MiB |\n"
    "| `ids` | the newest ids, at most 4 Mi × 2 × 64 bytes, and a filter of 2 "
    "bytes for each id that fits into `store.max_size` |\n"
    "\n"
    "Of each Kafka partition that is assigned, librdkafka holds up to\n"
    "`queued.max.messages.kbytes` and one fetch beside that; how many there "
    "are the\n"
    "configuration does not say.\n"
    "\n"
    "Parts are rounded up to whole MiB. The kernel's cache of the store's file "
    "is not\n"
    "in it: it is given back under pressure.\n"
    "\n"
    "## Not in this version\n"
    "\n"
    "These keys and words belong to later versions. They are refused by name, "
    "never\n"
    "ignored.\n"
    "\n";

/* The ids that the schemes bring along. */
static void put_schemes(struct buf *out)
{
    buf_add_str(out, "### Schemes\n\n"
                     "| `scheme` | `id` where the route names none |\n"
                     "|---|---|\n");
    for (const char *const *name = verify_scheme_names(); *name; name++) {
        struct slice rest = slice_of(verify_scheme_id(*name));

        buf_printf(out, "| `%s` | ", *name);
        while (rest.len > 0) {
            size_t len = slice_find(rest, ' ');

            buf_printf(out, "`%.*s`", (int)len, rest.data);
            rest = slice_from(rest, len < rest.len ? len + 1 : len);
            buf_add_str(out, rest.len > 0 ? ", else " : "");
        }
        buf_add_str(out, " |\n");
    }
    buf_add_str(out, "| `hmac`, `none` | none: `id` is required |\n\n");
}

void config_prose_start(struct buf *out)
{
    buf_add_str(out, start);
}

void config_prose_behind(const char *path, struct buf *out)
{
    if (strcmp(path, "routes[]") == 0) {
        buf_add_str(out, value_expressions);
    }
    if (strcmp(path, "routes[].verify") == 0) {
        put_schemes(out);
    }
    if (strcmp(path, "routes[].handler") == 0) {
        buf_add_str(out, outcomes);
    }
}

void config_prose_end(struct buf *out)
{
    buf_add_str(out, kafka);
    buf_add_str(out, end);
}
