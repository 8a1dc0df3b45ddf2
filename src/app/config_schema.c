/* SPDX-License-Identifier: MIT */
/* config/onced.schema.json: the table of options for editors. It is a help
 * while typing; config_load is what decides. */
#include <stdlib.h>
#include <string.h>

#include "app/config_internal.h"
#include "base/check.h"

static json_t *section_schema(const struct option_section *section);

/* Takes the values. */
static json_t *pack(const char *key, json_t *value)
{
    json_t *object = json_object();

    json_object_set_new(object, key, value);
    return object;
}

static json_t *type_schema(const char *type)
{
    return pack("type", json_string(type));
}

static json_t *reference(const char *name)
{
    json_t *json = json_sprintf("#/$defs/%s", name);

    return pack("$ref", json);
}

static json_t *any_of(json_t *first, json_t *second)
{
    json_t *list = json_array();

    json_array_append_new(list, first);
    json_array_append_new(list, second);
    return pack("anyOf", list);
}

static json_t *list_of(json_t *items, bool may_be_empty)
{
    json_t *list = type_schema("array");

    json_object_set_new(list, "items", items);
    if (!may_be_empty) {
        json_object_set_new(list, "minItems", json_integer(1));
    }
    return list;
}

static json_t *map_of(json_t *values)
{
    json_t *map = type_schema("object");

    json_object_set_new(map, "additionalProperties", values);
    return map;
}

static json_t *range_schema(const char *type, double min, double max)
{
    json_t *json = type_schema(type);

    json_object_set_new(json, "minimum", json_integer((json_int_t)min));
    json_object_set_new(json, "maximum", json_integer((json_int_t)max));
    return json;
}

/* One of the words, or a string from elsewhere. */
static json_t *choice_schema(const struct option *option)
{
    json_t *words = json_array();
    struct slice word;
    bool supported;

    for (size_t i = 0; option_choice(option, i, &word, &supported); i++) {
        if (supported) {
            json_array_append_new(words, json_stringn(word.data, word.len));
        }
    }
    return any_of(pack("enum", words), reference("elsewhere"));
}

static json_t *value_schema(void)
{
    return any_of(
        reference("text"),
        list_of(any_of(reference("text"), list_of(reference("text"), false)),
                false));
}

static json_t *object_schema(const struct option *option)
{
    const struct option_section *section = option->section;
    json_t *object = section_schema(section);

    if (!section->shorthand) {
        return object;
    }
    for (size_t i = 0; i < section->n; i++) {
        if (strcmp(section->options[i].key, section->shorthand) == 0) {
            return any_of(choice_schema(&section->options[i]), object);
        }
    }
    UNREACHABLE("the shorthand is a key of its section");
}

static json_t *option_schema(const struct option *option)
{
    switch (option->type) {
    case OPTION_BOOL:
        return type_schema("boolean");
    case OPTION_IGNORED:
        return type_schema("string");
    case OPTION_STRING:
        if (option->choices || option->names) {
            return choice_schema(option);
        }
        return reference("text");
    case OPTION_PATH:
    case OPTION_FILE:
    case OPTION_SECRET_FILE:
        return reference("text");
    case OPTION_SECRET_PART:
        return type_schema("string");
    case OPTION_COUNT:
        return range_schema("integer", (double)option->min,
                            (double)option->max);
    case OPTION_PERMILLE:
    case OPTION_SHARE:
        return range_schema("number", 0, 1);
    case OPTION_DURATION:
        return reference("duration");
    case OPTION_SIZE:
        return reference("size");
    case OPTION_CHOICE:
        return choice_schema(option);
    case OPTION_STRINGS:
        if (option->choices) {
            return list_of(choice_schema(option), false);
        }
        if (option->flags & OPTION_LIST_ONLY) {
            return list_of(reference("text"), false);
        }
        return any_of(reference("text"), list_of(reference("text"), false));
    case OPTION_SECRETS:
        return any_of(reference("secret"), list_of(reference("secret"), false));
    case OPTION_STATUSES:
        return list_of(range_schema("integer", 300, 599), true);
    case OPTION_VALUE:
        return value_schema();
    case OPTION_MAP:
        return map_of(reference("text"));
    case OPTION_SECRET_MAP:
        return map_of(reference("secret"));
    case OPTION_PROPERTIES:
        return map_of(reference("property"));
    case OPTION_CLUSTERS:
        return map_of(map_of(reference("property")));
    case OPTION_OBJECT:
        return object_schema(option);
    case OPTION_OBJECTS:
        return list_of(section_schema(option->section), true);
    }
    UNREACHABLE("every type has a schema");
}

static void describe(const struct option *option, json_t *schema)
{
    json_object_set_new(schema, "description", json_string(option->help));
    if (option->preset) {
        json_object_set_new(schema, "default",
                            json_loads(option->preset, JSON_DECODE_ANY, NULL));
    }
}

static json_t *section_schema(const struct option_section *section)
{
    json_t *schema = type_schema("object");
    json_t *properties = json_object();
    json_t *required = json_array();

    for (size_t i = 0; i < section->n; i++) {
        const struct option *option = &section->options[i];
        json_t *property;

        if (option->flags & OPTION_UNSUPPORTED) {
            continue;
        }
        property = option_schema(option);
        describe(option, property);
        json_object_set_new(properties, option->key, property);
        if (option->flags & OPTION_REQUIRED) {
            json_array_append_new(required, json_string(option->key));
        }
    }
    json_object_set_new(schema, "additionalProperties", json_false());
    if (json_array_size(required) > 0) {
        json_object_set(schema, "required", required);
    }
    json_object_set_new(schema, "properties", properties);
    json_decref(required);
    return schema;
}

/* The forms of strings, which stand in many places. */
static const char definitions[] =
    "{ \"elsewhere\": { \"description\": \"A string from the environment or "
    "a file.\","
    "    \"type\": \"object\", \"additionalProperties\": false,"
    "    \"properties\": { \"env\": { \"type\": \"string\" },"
    "                      \"default\": { \"type\": \"string\" },"
    "                      \"file\": { \"type\": \"string\" } },"
    "    \"minProperties\": 1 },"
    "  \"text\": { \"anyOf\": [ { \"type\": \"string\" },"
    "                         { \"$ref\": \"#/$defs/elsewhere\" } ] },"
    "  \"secret\": { \"anyOf\": [ { \"$ref\": \"#/$defs/text\" },"
    "    { \"type\": \"object\", \"additionalProperties\": false,"
    "      \"properties\": { \"value\": { \"type\": \"string\" } },"
    "      \"required\": [ \"value\" ] } ] },"
    "  \"property\": { \"anyOf\": [ { \"$ref\": \"#/$defs/secret\" },"
    "    { \"type\": [ \"number\", \"boolean\" ] } ] },"
    "  \"duration\": { \"anyOf\": [ { \"type\": \"string\","
    "      \"pattern\": \"^[0-9]+([.][0-9]{1,3})?(ms|s|m|h|d)$\" },"
    "    { \"$ref\": \"#/$defs/elsewhere\" } ] },"
    "  \"size\": { \"anyOf\": [ { \"type\": \"string\","
    "      \"pattern\": \"^[0-9]+(KiB|MiB|GiB)?$\" },"
    "    { \"$ref\": \"#/$defs/elsewhere\" } ] } }";

void config_write_schema(struct buf *out)
{
    json_t *schema = json_object();
    json_t *root = section_schema(&options_root);
    json_t *forms = json_loads(definitions, 0, NULL);

    CHECK(forms != NULL);
    json_object_set_new(
        schema, "$schema",
        json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(schema, "title", json_string("onced"));
    json_object_set_new(schema, "$defs", forms);
    json_object_update(schema, root);
    json_decref(root);
    config_put_json(out, schema);
}
