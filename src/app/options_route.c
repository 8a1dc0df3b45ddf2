/* SPDX-License-Identifier: MIT */
/* The keys of a route that say what arrives and which event it is. */
#include "app/config.h"
#include "app/options.h"
#include "app/options_rows.h"

#define FIELD(member) OPTIONS_FIELD(struct config_route, member)

static const struct option http_options[] = {
    {.key = "path",
     .type = OPTION_STRING,
     .flags = OPTION_REQUIRED,
     FIELD(path),
     .help = "The exact path. With `/*` at its end it matches everything "
             "below, the longest match wins, and the rest is appended to the "
             "handler's URL."},
    {.key = "methods",
     .type = OPTION_STRINGS,
     FIELD(methods),
     .preset = "[\"POST\"]",
     .help = "What may be done there; others get 405."},
    {.key = "max_body",
     .type = OPTION_SIZE,
     FIELD(max_body_bytes),
     .otherwise = "`listen.max_body`",
     .min = 1,
     .max = 256 * OPTIONS_MIB,
     .help = "The largest body; larger ones get 413."},
    {.key = "public_url",
     .type = OPTION_STRING,
     FIELD(public_url),
     .otherwise = "as requested",
     .help = "The URL as the sender knows it, for schemes that sign it."},
    {.key = "allow",
     .type = OPTION_STRINGS,
     FIELD(allow),
     .otherwise = "everybody",
     .help = "Networks that may send; others get 403."},
    {.key = "rate", .type = OPTION_STRING, .flags = OPTION_UNSUPPORTED},
};

static const struct option_section http_section = {
    .path = "routes[].source.http",
    .options = http_options,
    .n = OPTIONS_COUNT(http_options),
    .intro = "Several routes may share a path: a delivery is then one event on "
             "each of them. They must have the same `verify`, `methods` and "
             "`max_body`, and differ in their namespace.",
    .example = "\"source\": { \"http\": { \"path\": \"/webhooks/github\", "
               "\"max_body\": \"26MiB\" } }",
};

static const struct option source_options[] = {
    {.key = "http",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(has_http_source),
     .section = &http_section,
     .otherwise = "none",
     .help = "Requests to a path of the listener."},
    {.key = "kafka",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(has_kafka_source),
     .section = &options_kafka_source,
     .otherwise = "none",
     .help = "Messages of topics."},
};

static const struct option_section source_section = {
    .path = "routes[].source",
    .options = source_options,
    .n = OPTIONS_COUNT(source_options),
    .intro = "Exactly one of these.",
};

static const struct option timestamp_options[] = {
    {.key = "header",
     .type = OPTION_STRING,
     .flags = OPTION_REQUIRED,
     FIELD(verify.timestamp_header),
     .help = "The header that has it."},
    {.key = "unit",
     .type = OPTION_STRING,
     FIELD(verify.timestamp_unit),
     .preset = "\"s\"",
     .choices = "s|ms",
     .help = "Seconds or milliseconds since 1970."},
};

static const struct option_section timestamp_section = {
    .path = "routes[].verify.timestamp",
    .options = timestamp_options,
    .n = OPTIONS_COUNT(timestamp_options),
};

static const struct option verify_options[] = {
    {.key = "scheme",
     .type = OPTION_STRING,
     .flags = OPTION_REQUIRED,
     FIELD(verify_scheme),
     .choices = "none|hmac",
     .names = verify_scheme_names,
     .help = "How deliveries are signed. `none` takes anything from "
             "anybody."},
    {.key = "secrets",
     .type = OPTION_SECRETS,
     FIELD(verify.secrets),
     .otherwise = "none",
     .help = "One secret or several; each is tried, so that it can be "
             "changed without a gap."},
    {.key = "tolerance",
     .type = OPTION_DURATION,
     FIELD(verify.tolerance_ms),
     .otherwise = "`5m` where the scheme has a timestamp",
     .min = OPTIONS_SECOND,
     .max = OPTION_NO_MAX,
     .help = "How far the timestamp may be off, either way."},
    {.key = "algorithm",
     .type = OPTION_STRING,
     FIELD(verify.algorithm),
     .otherwise = "`\"sha256\"`",
     .choices = "sha256|sha1|sha384|sha512|md5|ed25519",
     .help = "`hmac`: the hash."},
    {.key = "header",
     .type = OPTION_STRING,
     FIELD(verify.header),
     .otherwise = "required for `hmac`",
     .help = "`hmac`: the header that has the signature."},
    {.key = "encoding",
     .type = OPTION_STRING,
     FIELD(verify.encoding),
     .otherwise = "`\"hex\"`",
     .choices = "hex|base64",
     .help = "`hmac`: how the signature is written."},
    {.key = "prefix",
     .type = OPTION_STRING,
     FIELD(verify.prefix),
     .otherwise = "none",
     .help = "`hmac`: what stands before it, such as `sha256=`."},
    {.key = "key_encoding",
     .type = OPTION_STRING,
     FIELD(verify.key_encoding),
     .otherwise = "`\"utf8\"`",
     .choices = "utf8|hex|base64",
     .help = "`hmac`: how the secret is written."},
    {.key = "signed",
     .type = OPTION_STRINGS,
     .flags = OPTION_LIST_ONLY,
     FIELD(verify.signed_pieces),
     .otherwise = "`[\"body\"]`",
     .help = "`hmac`: what is signed, in order: `body`, `timestamp`, "
             "`text:…`, `header:Name`, `query:name`, `json:/pointer`, `url`, "
             "`form-sorted`."},
    {.key = "timestamp",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(verify.has_timestamp),
     .section = &timestamp_section,
     .otherwise = "none",
     .help = "`hmac`: where the timestamp stands."},
};

static const struct option_section verify_section = {
    .path = "routes[].verify",
    .shorthand = "scheme",
    .options = verify_options,
    .n = OPTIONS_COUNT(verify_options),
    .intro = "Signatures are checked over the bytes as they came, before "
             "anything else is read of a delivery. A plain string is the "
             "`scheme`. The keys marked `hmac` describe a scheme that is not "
             "in the list.",
    .example =
        "\"verify\": { \"scheme\": \"hmac\", \"header\": \"X-Signature\", "
        "\"prefix\": \"sha256=\",\n"
        "            \"signed\": [\"timestamp\", \"text:.\", \"body\"],\n"
        "            \"timestamp\": { \"header\": \"X-Timestamp\" },\n"
        "            \"secrets\": [ { \"file\": \"secrets/new\" }, "
        "{ \"file\": \"secrets/old\" } ] }",
};

static const struct option respond_options[] = {
    {.key = "mode",
     .type = OPTION_CHOICE,
     FIELD(policy.respond),
     .preset = "\"accepted\"",
     .choices = "accepted|!result|!handled",
     .help = "`accepted`: 202 for a new event, 200 for a known one, as soon "
             "as it is durable."},
    {.key = "status",
     .type = OPTION_COUNT,
     FIELD(answer_status),
     .otherwise = "202 or 200",
     .min = 200,
     .max = 299,
     .help = "The status in their place."},
    {.key = "body",
     .type = OPTION_STRING,
     .flags = OPTION_MAY_BE_EMPTY,
     FIELD(answer_body),
     .otherwise = "none",
     .help = "The body, for senders that look for one."},
    {.key = "headers",
     .type = OPTION_MAP,
     FIELD(answer_headers),
     .otherwise = "none",
     .help = "More headers of the answer."},
};

static const struct option_section respond_section = {
    .path = "routes[].respond",
    .shorthand = "mode",
    .options = respond_options,
    .n = OPTIONS_COUNT(respond_options),
    .intro = "What the sender is answered. A plain string is the `mode`.",
    .example = "\"respond\": { \"mode\": \"accepted\", \"status\": 200, "
               "\"body\": \"[accepted]\" }",
};

static const struct option retry_options[] = {
    {.key = "give_up_after",
     .type = OPTION_DURATION,
     FIELD(policy.give_up_after_ms),
     .otherwise = "`3d`; `1h` where the source is Kafka",
     .min = OPTIONS_SECOND,
     .max = 365 * OPTIONS_DAY,
     .help = "No attempt starts later than that after the event was accepted, "
             "or replayed; but each gives at least one."},
    {.key = "max_attempts",
     .type = OPTION_COUNT,
     FIELD(policy.max_attempts),
     .preset = "0",
     .max = 1000000,
     .help = "0: no limit."},
    {.key = "backoff",
     .type = OPTION_DURATION,
     FIELD(policy.backoff_ms),
     .preset = "\"1s\"",
     .min = 1,
     .max = OPTIONS_DAY,
     .help = "The first pause; each is twice the one before."},
    {.key = "max_backoff",
     .type = OPTION_DURATION,
     FIELD(policy.max_backoff_ms),
     .preset = "\"10m\"",
     .min = 1,
     .max = 7 * OPTIONS_DAY,
     .help = "The longest pause."},
    {.key = "jitter",
     .type = OPTION_PERMILLE,
     FIELD(policy.jitter_permille),
     .preset = "0.2",
     .help = "Pauses are spread by this share, either way."},
    {.key = "max_crashes",
     .type = OPTION_COUNT,
     FIELD(policy.max_crashes),
     .preset = "20",
     .min = 1,
     .max = 1000000,
     .help = "An event whose attempts were cut short more often by a crash of "
             "onced is a dead letter (`poison`)."},
    {.key = "downstream_ttl",
     .type = OPTION_DURATION,
     FIELD(policy.downstream_ttl_ms),
     .preset = "\"0s\"",
     .max = 3650 * OPTIONS_DAY,
     .help = "How long the receiver remembers idempotency keys; an uncertain "
             "attempt is not repeated past it. `0s`: for ever."},
};

static const struct option_section retry_section = {
    .path = "routes[].retry",
    .options = retry_options,
    .n = OPTIONS_COUNT(retry_options),
    .intro = "When and how often an event is attempted again. Attempts that "
             "never left (no process, no connection) count for neither limit.",
    .example = "\"retry\": { \"give_up_after\": \"12h\", \"backoff\": "
               "\"500ms\", \"max_backoff\": \"1m\" }",
};

static const struct option keep_options[] = {
    {.key = "envelope",
     .type = OPTION_DURATION,
     FIELD(retention.envelope_ms),
     .otherwise = "`7d`, at most the route's `retention`",
     .max = 3650 * OPTIONS_DAY,
     .help = "What arrived. Kept at least until the event is settled."},
    {.key = "result",
     .type = OPTION_DURATION,
     FIELD(retention.result_ms),
     .otherwise = "`35d`, at most the route's `retention`",
     .max = 3650 * OPTIONS_DAY,
     .help = "What the handler answered."},
};

static const struct option_section keep_section = {
    .path = "routes[].keep",
    .options = keep_options,
    .n = OPTIONS_COUNT(keep_options),
    .intro = "How long the contents of settled events are kept; neither is "
             "longer than the `retention` of their ids.",
    .example = "\"keep\": { \"envelope\": \"1d\", \"result\": \"1d\" }",
};

static const struct option dead_letter_options[] = {
    {.key = "max_bytes",
     .type = OPTION_SIZE,
     FIELD(max_dead_bytes),
     .preset = "\"1GiB\"",
     .min = OPTIONS_MIB,
     .max = 16 * OPTIONS_TIB,
     .help = "What the route's dead letters may take."},
    {.key = "on_full",
     .type = OPTION_CHOICE,
     FIELD(on_dead_full),
     .preset = "\"stop-route\"",
     .choices = "stop-route|oldest",
     .help =
         "When that is reached: `stop-route` answers deliveries 503, "
         "`oldest` drops the oldest dead letter. One that holds an ordering "
         "key is never dropped; where those take twice `max_bytes`, the "
         "route stops."},
    {.key = "kafka",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(has_dead_kafka),
     .section = &options_kafka_dead_letter,
     .otherwise = "none",
     .help = "Writes them to a topic, too."},
};

static const struct option_section dead_letter_section = {
    .path = "routes[].dead_letter",
    .options = dead_letter_options,
    .n = OPTIONS_COUNT(dead_letter_options),
    .intro = "Dead letters wait for a person and never expire by themselves.",
    .example = "\"dead_letter\": { \"max_bytes\": \"100MiB\", \"on_full\": "
               "\"oldest\" }",
};

static const struct option route_options[] = {
    {.key = "name",
     .type = OPTION_STRING,
     .flags = OPTION_REQUIRED,
     FIELD(name),
     .help = "1 to 64 of `A-Z a-z 0-9 . _ -`, unique. It stands in logs, "
             "metrics and commands."},
    {.key = "source",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(has_source),
     .section = &source_section,
     .otherwise = "required, unless `retired`",
     .help = "Where deliveries come from."},
    {.key = "verify",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(has_verify),
     .section = &verify_section,
     .otherwise = "required with `source.http`, refused with Kafka",
     .help = "How they are known to be genuine."},
    {.key = "id",
     .type = OPTION_VALUE,
     FIELD(id),
     .otherwise = "the scheme's own, see below; else required",
     .help = "The event's id: equal ids are one event."},
    {.key = "tenant",
     .type = OPTION_VALUE,
     FIELD(tenant),
     .otherwise = "none",
     .help = "Ids are compared within a tenant. A delivery without one is "
             "answered 400, a message without one is a dead letter."},
    {.key = "namespace",
     .type = OPTION_STRING,
     FIELD(namespace),
     .otherwise = "the route's `name`",
     .help = "Where ids are compared. Routes that name the same one share "
             "their memory. A renamed route starts with an empty one, unless "
             "it keeps its old name here."},
    {.key = "respond",
     .type = OPTION_OBJECT,
     .section = &respond_section,
     .help = "What the sender is answered."},
    {.key = "drift",
     .type = OPTION_CHOICE,
     FIELD(policy.on_drift),
     .preset = "\"ack\"",
     .choices = "ack|!dead|reject",
     .help = "A known id with other content: `ack` answers as for any repeat "
             "and counts it, `reject` answers 422. The first content stays."},
    {.key = "handler",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(has_handler),
     .section = &options_handler,
     .otherwise = "required, unless `retired`",
     .help = "What is invoked for an event."},
    {.key = "retry",
     .type = OPTION_OBJECT,
     .section = &retry_section,
     .help = "When it is attempted again."},
    {.key = "on_uncertain",
     .type = OPTION_CHOICE,
     FIELD(policy.on_uncertain),
     .preset = "\"retry\"",
     .choices = "retry|hold|!probe",
     .help = "After an attempt whose effect is unknown: `retry` repeats it "
             "under the same idempotency key, `hold` makes it a dead letter "
             "(`uncertain`) for a person to resolve."},
    {.key = "order_by",
     .type = OPTION_VALUE,
     .flags = OPTION_MAY_BE_NONE,
     FIELD(order_by),
     .otherwise = "`\"none\"`; `kafka:key` where the source is Kafka",
     .help = "Events with the same key are handled one after another, in "
             "order of arrival."},
    {.key = "after_dead",
     .type = OPTION_CHOICE,
     FIELD(policy.after_dead),
     .preset = "\"continue\"",
     .choices = "continue|hold",
     .help = "When the first event of an ordering key is dead: let the next "
             "go, or hold them until it is replayed, resolved or discarded."},
    {.key = "retention",
     .type = OPTION_DURATION,
     FIELD(retention.ids_ms),
     .otherwise = "`store.retention`",
     .min = OPTIONS_SECOND,
     .max = 3650 * OPTIONS_DAY,
     .help = "How long ids of this route are remembered; at most the "
             "store's."},
    {.key = "keep",
     .type = OPTION_OBJECT,
     .section = &keep_section,
     .help = "How long contents are kept."},
    {.key = "dead_letter",
     .type = OPTION_OBJECT,
     .section = &dead_letter_section,
     .help = "How much may wait for a person."},
    {.key = "retired",
     .type = OPTION_BOOL,
     FIELD(retired),
     .preset = "false",
     .help = "The route takes nothing more: it has no source and no handler, "
             "and what is left of it can be shown, resolved and discarded."},
    {.key = "events", .flags = OPTION_UNSUPPORTED},
    {.key = "when", .flags = OPTION_UNSUPPORTED},
    {.key = "version", .flags = OPTION_UNSUPPORTED},
    {.key = "key", .flags = OPTION_UNSUPPORTED},
    {.key = "fingerprint", .flags = OPTION_UNSUPPORTED},
    {.key = "in_flight", .flags = OPTION_UNSUPPORTED},
    {.key = "on_error", .flags = OPTION_UNSUPPORTED},
    {.key = "unique", .flags = OPTION_UNSUPPORTED},
    {.key = "probe", .flags = OPTION_UNSUPPORTED},
};

const struct option_section options_route = {
    .path = "routes[]",
    .options = route_options,
    .n = OPTIONS_COUNT(route_options),
    .intro = "A route is the path of an event from its source to its handler, "
             "with its rules.",
    .example =
        "{ \"name\": \"stripe\",\n"
        "  \"source\": { \"http\": { \"path\": \"/webhooks/stripe\" } },\n"
        "  \"verify\": { \"scheme\": \"stripe\", \"secrets\": [ { \"env\": "
        "\"STRIPE_SECRET\" } ] },\n"
        "  \"handler\": { \"http\": { \"url\": "
        "\"http://127.0.0.1:3000/stripe\" } } }",
};
