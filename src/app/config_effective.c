/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "app/config_internal.h"
#include "base/check.h"

static const char mask[] = "***";

static json_t *section_json(const struct option_section *section,
                            const void *base);

static json_t *text_json(struct buf *text)
{
    json_t *json = json_stringn(text->data, text->len);

    buf_free(text);
    return json;
}

static json_t *number_text(const struct option *option, uint64_t value)
{
    struct buf text = BUF_INIT;

    config_put_number(option, value, &text);
    return text_json(&text);
}

static json_t *choice_json(const struct option *option, const void *base)
{
    struct slice word;
    bool supported;
    bool found =
        option_choice(option, option_get(option, base), &word, &supported);

    CHECK(found);
    return json_stringn(word.data, word.len);
}

static json_t *strings_json(const struct config_strings *strings, bool masked)
{
    json_t *list = json_array();

    for (size_t i = 0; i < strings->n; i++) {
        json_array_append_new(list,
                              json_string(masked ? mask : strings->items[i]));
    }
    return list;
}

static json_t *statuses_json(const struct config_statuses *statuses)
{
    json_t *list = json_array();

    for (size_t i = 0; i < statuses->n; i++) {
        json_array_append_new(list, json_integer(statuses->items[i]));
    }
    return list;
}

static json_t *map_json(const struct config_pairs *pairs, bool masked)
{
    json_t *map = json_object();

    for (size_t i = 0; i < pairs->n; i++) {
        json_object_set_new(map, pairs->items[i][0],
                            json_string(masked ? mask : pairs->items[i][1]));
    }
    return map;
}

static json_t *properties_json(const struct config_pairs *pairs)
{
    json_t *map = json_object();

    for (size_t i = 0; i < pairs->n; i++) {
        const char *name = pairs->items[i][0];

        json_object_set_new(
            map, name,
            json_string(kafka_is_secret(name) ? mask : pairs->items[i][1]));
    }
    return map;
}

static json_t *clusters_json(const struct config_clusters *clusters)
{
    json_t *map = json_object();

    for (size_t i = 0; i < clusters->n; i++) {
        json_object_set_new(map, clusters->items[i].name,
                            properties_json(&clusters->items[i].properties));
    }
    return map;
}

static const char *term_form(enum value_kind kind)
{
    switch (kind) {
    case VALUE_JSON:
        return "json:";
    case VALUE_HEADER:
        return "header:";
    case VALUE_QUERY:
        return "query:";
    case VALUE_KAFKA_KEY:
        return "kafka:key";
    case VALUE_KAFKA_HEADER:
        return "kafka:header:";
    case VALUE_KAFKA_POSITION:
        return "kafka:position";
    case VALUE_BODY_SHA256:
        return "body:sha256";
    case VALUE_CONST:
        return "const:";
    }
    UNREACHABLE("every kind has a form");
}

static json_t *term_json(const struct value_term *term)
{
    struct buf text = BUF_INIT;

    buf_add_str(&text, term_form(term->kind));
    if (term->argument) {
        buf_add_str(&text, term->argument);
    }
    return text_json(&text);
}

static json_t *value_json(const struct value *value)
{
    json_t *list = json_array();

    for (size_t i = 0; i < value->n_choices; i++) {
        const struct value_choice *choice = &value->choices[i];
        json_t *parts = json_array();

        for (size_t k = 0; k < choice->n_terms; k++) {
            json_array_append_new(parts, term_json(&choice->terms[k]));
        }
        json_array_append(list, choice->n_terms == 1 ? json_array_get(parts, 0)
                                                     : parts);
        json_decref(parts);
    }
    return list;
}

static json_t *objects_json(const struct option *option, const void *base)
{
    const char *items = *(char *const *)option_field_const(option, base);
    size_t count = *(const size_t *)(const void *)((const char *)base +
                                                   option->count_offset);
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(
            list, section_json(option->section, items + i * option->item_size));
    }
    return list;
}

static json_t *number_json(const struct option *option, const void *base)
{
    uint64_t value = option_get(option, base);

    /* Absent durations are -1, other absent numbers 0. */
    if (!option->preset &&
        value == (option->type == OPTION_DURATION ? UINT64_MAX : 0)) {
        return NULL;
    }
    if (option->type == OPTION_COUNT) {
        return json_integer((json_int_t)value);
    }
    return number_text(option, value);
}

/* People put tokens into the query of a URL. */
static json_t *text_option_json(const struct option *option, const void *base)
{
    const char *text = *(char *const *)option_field_const(option, base);
    const char *query = text ? strstr(text, "://") : NULL;
    struct buf shown = BUF_INIT;

    query = query ? strchr(query, '?') : NULL;
    if (!query) {
        return text ? json_string(text) : NULL;
    }
    buf_add(&shown, text, (size_t)(query - text) + 1);
    buf_add_str(&shown, mask);
    return text_json(&shown);
}

/* Several keys are one secret: it is shown under that of a plain one. */
static json_t *part_json(const struct option *option)
{
    return strcmp(option->key, "value") == 0 ? json_string(mask) : NULL;
}

static json_t *list_option_json(const struct option *option, const void *base)
{
    const void *field = option_field_const(option, base);
    const struct config_strings *strings = field;
    const struct config_statuses *statuses = field;
    const struct config_pairs *pairs = field;
    const struct config_clusters *clusters = field;
    const struct value *value = field;

    if (option->type == OPTION_STATUSES) {
        return statuses->set ? statuses_json(statuses) : NULL;
    }
    if (option->type == OPTION_MAP || option->type == OPTION_SECRET_MAP) {
        return pairs->n ? map_json(pairs, option->type == OPTION_SECRET_MAP)
                        : NULL;
    }
    if (option->type == OPTION_PROPERTIES) {
        return pairs->items ? properties_json(pairs) : NULL;
    }
    if (option->type == OPTION_CLUSTERS) {
        return clusters->n ? clusters_json(clusters) : NULL;
    }
    if (option->type != OPTION_VALUE) {
        return strings->n
                   ? strings_json(strings, option->type == OPTION_SECRETS)
                   : NULL;
    }
    if (value->n_choices > 0) {
        return value_json(value);
    }
    return option->flags & OPTION_MAY_BE_NONE ? json_string("none") : NULL;
}

/* NULL where nothing is in force. */
static json_t *option_json(const struct option *option, const void *base)
{
    switch (option->type) {
    case OPTION_IGNORED:
        return NULL;
    case OPTION_BOOL:
        return json_boolean(option_get(option, base));
    case OPTION_STRING:
    case OPTION_PATH:
    case OPTION_FILE:
    case OPTION_SECRET_FILE:
        return text_option_json(option, base);
    case OPTION_COUNT:
    case OPTION_DURATION:
    case OPTION_SIZE:
        return number_json(option, base);
    case OPTION_PERMILLE:
        return json_real((double)option_get(option, base) / 1000);
    case OPTION_SHARE:
        return json_real(*(const double *)option_field_const(option, base));
    case OPTION_CHOICE:
        return choice_json(option, base);
    case OPTION_STRINGS:
    case OPTION_SECRETS:
    case OPTION_STATUSES:
    case OPTION_VALUE:
    case OPTION_MAP:
    case OPTION_SECRET_MAP:
    case OPTION_PROPERTIES:
    case OPTION_CLUSTERS:
        return list_option_json(option, base);
    case OPTION_SECRET_PART:
        return part_json(option);
    case OPTION_OBJECT:
        if (option->width > 0 && !option_get(option, base)) {
            return NULL;
        }
        return section_json(option->section, base);
    case OPTION_OBJECTS:
        return objects_json(option, base);
    }
    UNREACHABLE("every type is shown");
}

static json_t *section_json(const struct option_section *section,
                            const void *base)
{
    json_t *object = json_object();

    for (size_t i = 0; i < section->n; i++) {
        const struct option *option = &section->options[i];
        json_t *value = option->flags & OPTION_UNSUPPORTED
                            ? NULL
                            : option_json(option, base);

        if (value) {
            json_object_set_new(object, option->key, value);
        }
    }
    return object;
}

/* The content type was taken from the headers of the answer. */
static void add_content_type(json_t *route, const struct config_route *from)
{
    json_t *respond = json_object_get(route, "respond");
    json_t *headers = json_object_get(respond, "headers");

    if (!from->answer_content_type) {
        return;
    }
    if (!headers) {
        headers = json_object();
        json_object_set_new(respond, "headers", headers);
    }
    json_object_set_new(headers, "Content-Type",
                        json_string(from->answer_content_type));
}

void config_write_effective(const struct config *config, struct buf *out)
{
    json_t *root = section_json(&options_root, config);
    const json_t *routes = json_object_get(root, "routes");

    for (size_t i = 0; i < config->n_routes; i++) {
        add_content_type(json_array_get(routes, i), &config->routes[i]);
    }
    json_object_set_new(root, "memory_bound", config_memory_bound(config));
    config_put_json(out, root);
}
