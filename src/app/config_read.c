/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "app/config_internal.h"
#include "base/check.h"
#include "base/text.h"

static void read_section(struct config_reading *reading,
                         const struct option_section *section,
                         const json_t *object, void *base);

void config_strings_add(struct config_strings *strings, char *item)
{
    strings->items =
        mem_grow(strings->items, strings->n + 2, sizeof(*strings->items));
    strings->items[strings->n++] = item;
    strings->items[strings->n] = NULL;
}

void config_strings_free(struct config_strings *strings)
{
    for (size_t i = 0; i < strings->n; i++) {
        free(strings->items[i]);
    }
    free(strings->items);
    *strings = (struct config_strings){NULL, 0};
}

/* --- one string ----------------------------------------------------------- */

static char *read_text(struct config_reading *reading,
                       const struct option *option, const json_t *json)
{
    char *text = config_value_text(reading, json, CONFIG_PLAIN);

    if (text && *text == '\0' && !(option->flags & OPTION_MAY_BE_EMPTY)) {
        config_problem(reading, "must not be empty");
        free(text);
        return NULL;
    }
    return text;
}

/* "retry, hold" */
static void list_choices(const struct option *option, struct buf *out)
{
    struct slice word;
    bool supported;

    for (size_t i = 0; option_choice(option, i, &word, &supported); i++) {
        if (!supported) {
            continue;
        }
        if (out->len > 0) {
            buf_add_str(out, ", ");
        }
        buf_add_slice(out, word);
    }
}

/* The place of `text` among the choices; false after a problem. */
static bool choose(struct config_reading *reading, const struct option *option,
                   const char *text, size_t *at)
{
    struct slice word;
    struct buf list = BUF_INIT;
    bool supported;

    for (*at = 0; option_choice(option, *at, &word, &supported); (*at)++) {
        if (!slice_eq(word, slice_of(text))) {
            continue;
        }
        if (supported) {
            return true;
        }
        config_problem(
            reading, "\"%s\" is not supported by this version of onced", text);
        return false;
    }
    list_choices(option, &list);
    config_problem(reading, "must be one of %s", buf_cstr(&list));
    buf_free(&list);
    return false;
}

static void read_string(struct config_reading *reading,
                        const struct option *option, const json_t *json,
                        void *base)
{
    char *text = read_text(reading, option, json);
    size_t at;

    if (text && (option->choices || option->names) &&
        !choose(reading, option, text, &at)) {
        free(text);
        text = NULL;
    }
    *(char **)option_field(option, base) = text;
}

static void read_choice(struct config_reading *reading,
                        const struct option *option, const json_t *json,
                        void *base)
{
    char *text = read_text(reading, option, json);
    size_t at;

    if (text && choose(reading, option, text, &at)) {
        option_put(option, base, at);
    }
    free(text);
}

static void read_path(struct config_reading *reading,
                      const struct option *option, const json_t *json,
                      void *base)
{
    char *text = read_text(reading, option, json);
    char *path = text ? config_value_path(reading, slice_of(text)) : NULL;

    free(text);
    *(char **)option_field(option, base) = path;
    if (path && option->type == OPTION_FILE) {
        config_value_check_file(reading, path, CONFIG_PLAIN);
    }
    if (path && option->type == OPTION_SECRET_FILE) {
        config_value_check_file(reading, path, CONFIG_SECRET);
    }
}

/* --- numbers ---------------------------------------------------------------*/

static void put_if_in_range(struct config_reading *reading,
                            const struct option *option, uint64_t value,
                            void *base)
{
    struct buf min = BUF_INIT;
    struct buf max = BUF_INIT;

    if (value >= option->min && value <= option->max) {
        option_put(option, base, value);
        return;
    }
    config_put_number(option, option->min, &min);
    config_put_number(option, option->max, &max);
    if (option->max == OPTION_NO_MAX) {
        config_problem(reading, "must be at least %s", buf_cstr(&min));
    } else {
        config_problem(reading, "must be from %s to %s", buf_cstr(&min),
                       buf_cstr(&max));
    }
    buf_free(&min);
    buf_free(&max);
}

static void read_count(struct config_reading *reading,
                       const struct option *option, const json_t *json,
                       void *base)
{
    json_int_t value = json_integer_value(json);

    if (!json_is_integer(json)) {
        config_problem(reading, "must be a whole number");
    } else {
        put_if_in_range(reading, option,
                        value < 0 ? UINT64_MAX : (uint64_t)value, base);
    }
}

static void read_share(struct config_reading *reading,
                       const struct option *option, const json_t *json,
                       void *base)
{
    double value = json_number_value(json);

    if (!json_is_number(json)) {
        config_problem(reading, "must be a number");
    } else if (value < 0 || value > 1) {
        config_problem(reading, "must be from 0 to 1");
    } else if (option->type == OPTION_PERMILLE) {
        option_put(option, base, (uint64_t)(value * 1000 + 0.5));
    } else {
        *(double *)option_field(option, base) = value;
    }
}

static void read_duration(struct config_reading *reading,
                          const struct option *option, const json_t *json,
                          void *base)
{
    char *text = read_text(reading, option, json);
    int64_t ms;

    if (text && text_duration_ms(slice_of(text), &ms)) {
        put_if_in_range(reading, option, (uint64_t)ms, base);
    } else if (text) {
        config_problem(reading, "must be a duration: a whole number and one "
                                "of ms, s, m, h, d");
    }
    free(text);
}

static void read_size(struct config_reading *reading,
                      const struct option *option, const json_t *json,
                      void *base)
{
    char *text = read_text(reading, option, json);
    uint64_t bytes;

    if (text && text_size(slice_of(text), &bytes)) {
        put_if_in_range(reading, option, bytes, base);
    } else if (text) {
        config_problem(reading, "must be a size: a whole number, alone or "
                                "with KiB, MiB or GiB");
    }
    free(text);
}

static void read_bool(struct config_reading *reading,
                      const struct option *option, const json_t *json,
                      void *base)
{
    if (json_is_boolean(json)) {
        option_put(option, base, json_is_true(json));
    } else {
        config_problem(reading, "must be true or false");
    }
}

/* --- lists and maps --------------------------------------------------------*/

static void read_item(struct config_reading *reading,
                      const struct option *option, const json_t *json,
                      struct config_strings *strings)
{
    char *text = option->type == OPTION_SECRETS
                     ? config_value_text(reading, json, CONFIG_SECRET)
                     : read_text(reading, option, json);

    size_t at;

    if (text && option->choices && !choose(reading, option, text, &at)) {
        free(text);
        text = NULL;
    }
    if (text) {
        config_strings_add(strings, text);
    }
}

static void read_strings(struct config_reading *reading,
                         const struct option *option, const json_t *json,
                         void *base)
{
    struct config_strings *strings = option_field(option, base);
    const json_t *item;
    size_t i;

    if (!json_is_array(json)) {
        if (option->flags & OPTION_LIST_ONLY) {
            config_problem(reading, "must be a list");
        } else {
            read_item(reading, option, json, strings);
        }
        return;
    }
    if (json_array_size(json) == 0) {
        config_problem(reading, "must not be empty");
    }
    json_array_foreach(json, i, item)
    {
        size_t mark = config_enter_item(reading, i);

        read_item(reading, option, item, strings);
        config_leave(reading, mark);
    }
}

static void read_statuses(struct config_reading *reading,
                          const struct option *option, const json_t *json,
                          void *base)
{
    struct config_statuses *statuses = option_field(option, base);
    const json_t *item;
    size_t i;

    statuses->set = true;
    if (!json_is_array(json)) {
        config_problem(reading, "must be a list of statuses");
        return;
    }
    if (json_array_size(json) > OUTCOME_STATUSES_MAX) {
        config_problem(reading, "has more than %d statuses",
                       OUTCOME_STATUSES_MAX);
        return;
    }
    json_array_foreach(json, i, item)
    {
        json_int_t status = json_integer_value(item);
        size_t mark = config_enter_item(reading, i);

        if (!json_is_integer(item) || status < 300 || status > 599) {
            config_problem(reading, "must be a status from 300 to 599");
        } else {
            statuses->items[statuses->n++] = (uint16_t)status;
        }
        config_leave(reading, mark);
    }
}

static void read_map(struct config_reading *reading,
                     const struct option *option, const json_t *json,
                     void *base)
{
    struct config_pairs *pairs = option_field(option, base);
    const char *key;
    json_t *value;

    if (!json_is_object(json)) {
        config_problem(reading, "must be an object");
        return;
    }
    pairs->items = mem_new(json_object_size(json) + 1, sizeof(*pairs->items));
    json_object_foreach((json_t *)json, key, value)
    {
        size_t mark = config_enter(reading, key);
        /* A plain string is fine here: not every value is a secret. */
        enum config_secrecy secrecy =
            option->type == OPTION_SECRET_MAP && json_is_object(value)
                ? CONFIG_SECRET
                : CONFIG_PLAIN;
        char *text = config_value_text(reading, value, secrecy);

        if (text) {
            pairs->items[pairs->n][0] = mem_strdup(key);
            pairs->items[pairs->n++][1] = text;
        }
        config_leave(reading, mark);
    }
}

/* --- value expressions -----------------------------------------------------*/

/* One alternative: a string, or a list of parts. */
static void read_alternative(struct config_reading *reading,
                             const struct option *option, const json_t *json,
                             struct value *value)
{
    struct config_strings parts = {NULL, 0};
    struct slice *texts;
    struct err err;
    size_t before = reading->n_problems;

    read_strings(reading, option, json, &parts);
    texts = mem_new(parts.n + 1, sizeof(*texts));
    for (size_t i = 0; i < parts.n; i++) {
        texts[i] = slice_of(parts.items[i]);
    }
    if (reading->n_problems == before &&
        !value_add_choice(value, texts, parts.n, &err)) {
        config_problem(reading, "%s", err.text);
    }
    free(texts);
    config_strings_free(&parts);
}

static void read_value(struct config_reading *reading,
                       const struct option *option, const json_t *json,
                       void *base)
{
    /* read_strings puts the parts of one alternative where it is told. */
    const struct option parts = {.type = OPTION_STRINGS,
                                 .width = sizeof(struct config_strings)};
    struct value *value = option_field(option, base);
    const char *text = json_string_value(json);
    const json_t *item;
    size_t i;

    if (text && option->flags & OPTION_MAY_BE_NONE &&
        strcmp(text, "none") == 0) {
        value->choices = mem_new(1, sizeof(*value->choices));
        return;
    }
    if (!json_is_array(json)) {
        read_alternative(reading, &parts, json, value);
        return;
    }
    if (json_array_size(json) == 0) {
        config_problem(reading, "must not be empty");
    }
    json_array_foreach(json, i, item)
    {
        size_t mark = config_enter_item(reading, i);

        read_alternative(reading, &parts, item, value);
        config_leave(reading, mark);
    }
}

/* --- sections --------------------------------------------------------------*/

static void read_object(struct config_reading *reading,
                        const struct option *option, const json_t *json,
                        void *base)
{
    const struct option_section *section = option->section;
    const char *shorthand = section->shorthand;

    if (option->width > 0) {
        option_put(option, base, true);
    }
    if (json_is_object(json)) {
        read_section(reading, section, json, base);
    } else if (shorthand && json_is_string(json)) {
        json_t *object = json_pack("{s:s}", shorthand, json_string_value(json));

        CHECK(object != NULL);
        read_section(reading, section, object, base);
        json_decref(object);
    } else {
        config_problem(reading, shorthand ? "must be a string or an object"
                                          : "must be an object");
    }
}

static void read_objects(struct config_reading *reading,
                         const struct option *option, const json_t *json,
                         void *base)
{
    size_t *count = (size_t *)(void *)((char *)base + option->count_offset);
    const json_t *item;
    char *items;
    size_t i;

    if (!json_is_array(json)) {
        config_problem(reading, "must be a list");
        return;
    }
    items = mem_new(json_array_size(json) + 1, option->item_size);
    *(void **)option_field(option, base) = items;
    *count = json_array_size(json);
    json_array_foreach(json, i, item)
    {
        size_t mark = config_enter_item(reading, i);

        if (json_is_object(item)) {
            read_section(reading, option->section, item,
                         items + i * option->item_size);
        } else {
            config_problem(reading, "must be an object");
        }
        config_leave(reading, mark);
    }
}

typedef void read_function(struct config_reading *reading,
                           const struct option *option, const json_t *json,
                           void *base);

static void read_nothing(struct config_reading *reading,
                         const struct option *option, const json_t *json,
                         void *base)
{
    (void)reading;
    (void)option;
    (void)json;
    (void)base;
}

static read_function *const readers[OPTION_TYPES] = {
    [OPTION_IGNORED] = read_nothing,
    [OPTION_BOOL] = read_bool,
    [OPTION_STRING] = read_string,
    [OPTION_PATH] = read_path,
    [OPTION_FILE] = read_path,
    [OPTION_SECRET_FILE] = read_path,
    [OPTION_COUNT] = read_count,
    [OPTION_PERMILLE] = read_share,
    [OPTION_SHARE] = read_share,
    [OPTION_DURATION] = read_duration,
    [OPTION_SIZE] = read_size,
    [OPTION_CHOICE] = read_choice,
    [OPTION_STRINGS] = read_strings,
    [OPTION_SECRETS] = read_strings,
    [OPTION_SECRET_PART] = read_nothing, /* see read_secret */
    [OPTION_STATUSES] = read_statuses,
    [OPTION_VALUE] = read_value,
    [OPTION_MAP] = read_map,
    [OPTION_SECRET_MAP] = read_map,
    [OPTION_PROPERTIES] = config_properties_read,
    [OPTION_CLUSTERS] = config_clusters_read,
    [OPTION_OBJECT] = read_object,
    [OPTION_OBJECTS] = read_objects,
};

static void check_key(struct config_reading *reading,
                      const struct option_section *section, const char *key)
{
    const struct option *option = option_find(section, key);
    const char *nearest = option_nearest(section, key);
    size_t mark = config_enter(reading, key);

    if (option && option->flags & OPTION_UNSUPPORTED) {
        config_problem(reading,
                       "\"%s\" is not supported by this version of onced", key);
    } else if (!option && nearest) {
        config_problem(reading, "unknown key; did you mean \"%s\"?", nearest);
    } else if (!option) {
        config_problem(reading, "unknown key");
    }
    config_leave(reading, mark);
}

/* What holds where the key is absent. */
static void read_absent(struct config_reading *reading,
                        const struct option *option, void *base)
{
    json_t *preset = NULL;

    if (option->flags & OPTION_REQUIRED) {
        config_problem(reading, "is required");
    } else if (option->preset) {
        preset = json_loads(option->preset, JSON_DECODE_ANY, NULL);
    } else if (option->type == OPTION_OBJECT &&
               !(option->flags & OPTION_OPTIONAL)) {
        preset = json_object();
    } else if (option->type == OPTION_DURATION) {
        option_put(option, base, (uint64_t)-1);
    }
    CHECK(preset || !option->preset || option->flags & OPTION_REQUIRED);
    if (preset) {
        readers[option->type](reading, option, preset, base);
    }
    json_decref(preset);
}

/* A secret whose parts stand among other keys. */
static void read_secret(struct config_reading *reading,
                        const struct option_section *section,
                        const json_t *object, void *base)
{
    for (size_t i = 0; i < section->n; i++) {
        const struct option *option = &section->options[i];

        if (option->type == OPTION_SECRET_PART) {
            *(char **)option_field(option, base) =
                config_value_from(reading, object, CONFIG_SECRET);
            return;
        }
    }
}

static void read_section(struct config_reading *reading,
                         const struct option_section *section,
                         const json_t *object, void *base)
{
    const char *key;
    json_t *member;

    json_object_foreach((json_t *)object, key, member)
    {
        check_key(reading, section, key);
    }
    for (size_t i = 0; i < section->n; i++) {
        const struct option *option = &section->options[i];
        const json_t *json = json_object_get(object, option->key);
        size_t mark = config_enter(reading, option->key);

        if (option->flags & OPTION_UNSUPPORTED) {
            ; /* check_key has refused it */
        } else if (!json) {
            read_absent(reading, option, base);
        } else {
            readers[option->type](reading, option, json, base);
        }
        config_leave(reading, mark);
    }
    read_secret(reading, section, object, base);
}

void config_read(struct config_reading *reading, const json_t *root)
{
    if (json_is_object(root)) {
        read_section(reading, &options_root, root, reading->config);
    } else {
        config_problem(reading, "must be an object");
    }
}
