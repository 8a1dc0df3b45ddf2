/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "app/config_internal.h"
#include "base/check.h"
#include "base/text.h"

void config_put_duration(struct buf *out, int64_t ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}};

    for (size_t i = 0; ms > 0 && i < sizeof(units) / sizeof(units[0]); i++) {
        if (ms % units[i].ms == 0) {
            buf_printf(out, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
            return;
        }
    }
    buf_printf(out, "%" PRId64 "ms", ms);
}

void config_put_number(const struct option *option, uint64_t value,
                       struct buf *out)
{
    if (option->type == OPTION_DURATION) {
        config_put_duration(out, (int64_t)value);
    } else if (option->type == OPTION_SIZE) {
        text_put_size(out, value);
    } else {
        buf_printf(out, "%" PRIu64, value);
    }
}

void config_put_json(struct buf *out, json_t *json)
{
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(6));

    CHECK(text != NULL);
    buf_add_str(out, text);
    buf_add_byte(out, '\n');
    free(text);
    json_decref(json);
}
