/* SPDX-License-Identifier: MIT */
#include "engine/load.h"

#include <string.h>

#include "core/envelope.h"

/* Counters that have this far to go do not run over. */
enum { COUNT_MAX = 1 << 30 };

/* A cluster, a topic and a group have less. */
enum { STREAM_NAME_MAX = 1023 };

static bool refuse(struct err *err, const char *what)
{
    return err_set(err, ERR_DATA, "%s", what);
}

static bool check_counters(const struct record *record, struct err *err)
{
    const struct {
        const char *name;
        uint32_t value;
    } counters[] = {
        {"run", record->run},
        {"attempts", record->attempt},
        {"tries", record->tries},
        {"crashes", record->crashes},
        {"probes", record->probes},
        {"backoffs", record->backoffs},
        {"deliveries", record->deliveries},
        {"drift", record->drifts},
    };

    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        if (counters[i].value > COUNT_MAX) {
            return err_set(err, ERR_DATA, "\"%s\" is over %d", counters[i].name,
                           COUNT_MAX);
        }
    }
    return true;
}

/* What runs, or may be told to, has what it would run with, or the broker
 * has it. */
static bool check_contents(const struct load_event *event, struct err *err)
{
    const struct record *record = &event->record;
    bool erased = (record->flags & RECORD_ERASED) != 0;
    bool is_here = event->has_envelope || (record->flags & RECORD_LEFT) != 0;
    struct envelope envelope;
    struct result result;

    if (event->has_envelope && !envelope_open(event->envelope, &envelope)) {
        return refuse(err, "its request is damaged");
    }
    if (event->has_result && !result_open(event->result, &result)) {
        return refuse(err, "its result is damaged");
    }
    if (event->has_envelope && erased) {
        return refuse(err, "its request is there, and flagged as erased");
    }
    if (!record_is_settled(record) && !is_here) {
        return refuse(err, "it is not settled, and its request is not there");
    }
    return record->state != RECORD_DEAD || is_here || erased ||
           refuse(err, "it is a dead letter, and its request is not there and "
                       "not flagged as erased");
}

static bool check_position(const struct load_event *event, struct err *err)
{
    if (event->stream == NULL) {
        return true;
    }
    return (event->stream[0] != '\0' &&
            strlen(event->stream) <= STREAM_NAME_MAX &&
            event->position.partition >= 0 && event->position.offset >= 0) ||
           refuse(err, "its position is none");
}

/* Of what is not settled somebody must say how it goes on. */
static bool check_route(const struct load_event *event,
                        const struct engine_route *route, struct err *err)
{
    return record_is_settled(&event->record) || route != NULL ||
           err_set(err, ERR_CONFIG,
                   "an unsettled event of route \"%s\", which is not "
                   "configured; keep it as { \"name\": \"%s\", \"retired\": "
                   "true }",
                   event->route, event->route);
}

bool load_check_event(const struct load_event *event,
                      const struct engine_route *route, struct err *err)
{
    const char *problem = record_problem(&event->record);

    if (problem != NULL || event->record.state == RECORD_NONE) {
        return refuse(err, problem != NULL ? problem : "it has no state");
    }
    return check_counters(&event->record, err) &&
           check_route(event, route, err) && check_position(event, err) &&
           check_contents(event, err);
}
