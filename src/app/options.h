/* SPDX-License-Identifier: MIT */
/*
 * The table of all configuration keys.
 *
 * A section is one JSON object; its rows are the keys that may stand in it.
 * A row says everything about its key: type, default, range, the field of
 * `struct config` (or of an item of a list) that it fills, and help. Reading,
 * freeing, `check --effective`, docs/config.md and the JSON Schema all walk
 * this table; no other place knows a key's name, type or default.
 */
#ifndef ONCED_APP_OPTIONS_H
#define ONCED_APP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum option_type {
    OPTION_IGNORED,     /* may stand there, means nothing to us */
    OPTION_BOOL,        /* bool */
    OPTION_STRING,      /* char *, NULL when absent */
    OPTION_PATH,        /* char *, absolute */
    OPTION_FILE,        /* char *, absolute, and can be read */
    OPTION_SECRET_FILE, /* the same, and not by everybody */
    OPTION_COUNT,       /* unsigned of any width, a JSON integer */
    OPTION_PERMILLE,    /* uint32_t, from a JSON number 0 to 1 */
    OPTION_SHARE,       /* double, 0 to 1 */
    OPTION_DURATION,    /* int64_t in ms, -1 when absent */
    OPTION_SIZE,        /* uint64_t in bytes, 0 when absent */
    OPTION_CHOICE,      /* enum or bool: the place in `choices` */
    OPTION_STRINGS,     /* struct config_strings: one, or a list */
    OPTION_SECRETS,     /* the same */
    OPTION_SECRET_PART, /* char *: a key of a secret that is the object */
    OPTION_STATUSES,    /* struct config_statuses */
    OPTION_VALUE,       /* struct value */
    OPTION_MAP,         /* struct config_pairs */
    OPTION_SECRET_MAP,  /* the same, values masked */
    OPTION_PROPERTIES,  /* the same, of librdkafka; secrets by name */
    OPTION_CLUSTERS,    /* struct config_clusters: such, each under a name */
    OPTION_OBJECT,      /* a section; bool: it is there */
    OPTION_OBJECTS,     /* a list of sections: pointer, and a count */
};
enum { OPTION_TYPES = OPTION_OBJECTS + 1 };

enum option_flag {
    OPTION_REQUIRED = 1U << 0,
    OPTION_UNSUPPORTED = 1U << 1, /* of a later version: refused by name */
    OPTION_LIST_ONLY = 1U << 2,   /* strings: no single one */
    OPTION_MAY_BE_EMPTY = 1U << 3,
    OPTION_MAY_BE_NONE = 1U << 4, /* value: "none" switches it off */
    OPTION_OPTIONAL = 1U << 5,    /* object: nothing is in it when absent */
};

struct option_section;

#define OPTION_NO_MAX ((uint64_t)INT64_MAX)

struct option {
    const char *key;
    enum option_type type;
    unsigned flags;
    size_t offset, width;  /* of the field; width 0: it has none */
    const char *preset;    /* the default as JSON text, or NULL */
    const char *otherwise; /* the default in words, where it has no preset */
    /* Words that may be given, of strings each: "retry|hold|!probe"; a '!'
     * marks those of a later version. `names` gives more (NULL-ended). */
    const char *choices;
    const char *const *(*names)(void);
    uint64_t min, max; /* both 0: no range; in ms, bytes, or as counted; max
                          may be OPTION_NO_MAX */
    /* OBJECT and OBJECTS */
    const struct option_section *section;
    size_t item_size, count_offset;
    const char *help;
};

struct option_section {
    const char *path;      /* "routes[].source.http"; "" is the root */
    const char *shorthand; /* the key that a plain string stands for */
    const struct option *options;
    size_t n;
    const char *intro;   /* Markdown, or NULL */
    const char *example; /* JSON with comments, or NULL */
};

extern const struct option_section options_root;

/* Parts of it. */
extern const struct option_section options_route;
extern const struct option_section options_handler;
extern const struct option_section options_kafka_source;
extern const struct option_section options_kafka_handler;
extern const struct option_section options_kafka_dead_letter;

/* NULL where the section has no such key. */
const struct option *option_find(const struct option_section *section,
                                 const char *key);

/* The nearest key by edit distance, or NULL where none is near. */
const char *option_nearest(const struct option_section *section,
                           const char *key);

/* The i-th word that may be given; false past the last. */
bool option_choice(const struct option *option, size_t i, struct slice *word,
                   bool *supported);

/* The number in the row's field of the struct at `base`, whatever its width,
 * and how to set it. */
uint64_t option_get(const struct option *option, const void *base);
void option_put(const struct option *option, void *base, uint64_t value);

/* The row's field itself. */
void *option_field(const struct option *option, void *base);
const void *option_field_const(const struct option *option, const void *base);

#endif
