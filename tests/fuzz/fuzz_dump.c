/* SPDX-License-Identifier: MIT */
/* A line of a dump: whatever stands in it, what is read is an event that the
 * store can hold. */
#include <stdlib.h>
#include <string.h>

#include "app/dump_read.h"
#include "core/envelope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_sound(const struct load_event *event)
{
    struct envelope envelope;
    struct result result;

    for (size_t i = 0; i < event->n_history; i++) {
        if (strlen(event->history[i].actor) > STORE_ACTOR_MAX ||
            event->history[i].move == MOVE_NONE) {
            return false;
        }
    }
    return record_problem(&event->record) == NULL &&
           event->record.state != RECORD_NONE && event->id.len > 0 &&
           event->id.len <= STORE_ID_MAX &&
           event->tenant.len <= STORE_TENANT_MAX &&
           (event->stream == NULL ||
            (event->stream[0] != '\0' && event->position.partition >= 0 &&
             event->position.offset >= 0)) &&
           strlen(event->code) <= STORE_CODE_MAX &&
           strlen(event->text) <= STORE_TEXT_MAX &&
           (!event->has_envelope ||
            envelope_open(event->envelope, &envelope)) &&
           (!event->has_result || result_open(event->result, &result));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct engine_route route = {.name = "a", .namespace = "a"};
    struct dump_lines lines = {.number = 1};
    struct dump_read read;
    struct dump_header header;
    struct dump_seen seen;
    struct err err;
    json_t *line;

    buf_add(&lines.text, data, size);
    buf_reserve(&lines.text, 1); /* never NULL */
    line = dump_parse_line(&lines, &err);
    if (line != NULL) {
        if (dump_read_event(line, &read, &err) &&
            load_check_event(&read.event, &route, &err) &&
            !is_sound(&read.event)) {
            abort();
        }
        dump_read_fini(&read);
        (void)!dump_read_header(line, &header, &err);
        (void)!dump_read_seen(line, &seen, &err);
        json_decref(line);
    }
    buf_free(&lines.text);
    return 0;
}
