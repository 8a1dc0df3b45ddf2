/* SPDX-License-Identifier: MIT */
/*
 * Between the files of the configuration. Reading goes in three steps: the
 * text (comments blanked, parsed by jansson), the values (the table of
 * options.h is walked over the tree and fills `struct config`), the checks
 * (what the table cannot say, and what follows from several keys). Every step
 * notes what is wrong under the JSON pointer where it stands, and goes on.
 */
#ifndef ONCED_APP_CONFIG_INTERNAL_H
#define ONCED_APP_CONFIG_INTERNAL_H

#include <jansson.h>

#include "app/config.h"
#include "app/options.h"

struct config_reading {
    struct config *config;
    struct buf *problems; /* one line each */
    size_t n_problems;
    struct buf pointer; /* where we are */
};

/* --- config_problem.c: where we are, and what is wrong there ------------ */

/* Goes down to a member or an item; returns what config_leave takes. */
size_t config_enter(struct config_reading *reading, const char *key);
size_t config_enter_item(struct config_reading *reading, size_t i);
void config_leave(struct config_reading *reading, size_t mark);

/* Notes a problem at the current pointer. No value goes into the text: it
 * may be a secret that stands in the wrong place. */
void config_problem(struct config_reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void config_warn(struct config_reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same at a member of where we are: "path", "tls/key", "routes/3". */
void config_problem_at(struct config_reading *reading, const char *member,
                       const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True when something was noted at or below the member of where we are. */
bool config_has_problem(const struct config_reading *reading,
                        const char *member);

/* --- config_text.c: comments and positions ------------------------------ */

/* Blanks the comments and parses. Problems are noted with `name` and position;
 * NULL when nothing can be read at all. Duplicate keys are a problem, but the
 * rest is returned. */
json_t *config_text_parse(struct config_reading *reading, const char *name,
                          struct buf *text);

/* --- config_value.c: strings, wherever they come from ------------------- */

enum config_secrecy { CONFIG_PLAIN, CONFIG_SECRET };

/* A string, or where it comes from. NULL after a problem. */
char *config_value_text(struct config_reading *reading, const json_t *json,
                        enum config_secrecy secrecy);

/* As above for an object that has other keys, too (a token). */
char *config_value_from(struct config_reading *reading, const json_t *object,
                        enum config_secrecy secrecy);

/* Absolute: relative paths start at the file's folder. */
char *config_value_path(const struct config_reading *reading,
                        struct slice path);

/* Whether a file can be read, and a secret one not by everybody. */
void config_value_check_file(struct config_reading *reading, const char *path,
                             enum config_secrecy secrecy);

/* --- config_read.c: the table over the tree ------------------------------ */

void config_read(struct config_reading *reading, const json_t *root);

void config_strings_add(struct config_strings *strings, char *item);
void config_strings_free(struct config_strings *strings);

/* --- config_properties.c: the clusters ----------------------------------- */

/* The name of the cluster that the object "kafka" is. */
#define CONFIG_DEFAULT_CLUSTER "default"

/* For the table of readers. */
void config_properties_read(struct config_reading *reading,
                            const struct option *option, const json_t *json,
                            void *base);
void config_clusters_read(struct config_reading *reading,
                          const struct option *option, const json_t *json,
                          void *base);

/* Fills in all_clusters. */
void config_clusters_make(struct config *config);
bool config_clusters_find(const struct config *config, const char *name,
                          size_t *index);

/* --- config_check.c, _route.c, _pair.c, _handler.c, _kafka.c: what follows */

void config_check(struct config_reading *reading);
void config_route_check(struct config_reading *reading,
                        struct config_route *route);
/* Fills in what is absent (negative); store.retention must be known. */
void config_retention_check(struct config_reading *reading,
                            struct store_retention *retention);
void config_route_check_pair(struct config_reading *reading,
                             const struct config_route *earlier,
                             const struct config_route *later);
void config_handler_check(struct config_reading *reading,
                          struct config_route *route);
void config_kafka_source_check(struct config_reading *reading,
                               struct config_route *route);
void config_kafka_check_pair(struct config_reading *reading,
                             const struct config_route *earlier,
                             const struct config_route *later);
void config_kafka_handler_check(struct config_reading *reading,
                                struct config_route *route);
/* Fills in the streams, where all is well. */
void config_streams_make(struct config *config);
void config_dead_letter_check(struct config_reading *reading,
                              const struct config_route *route);

/* True for 1 to 64 of A-Z a-z 0-9 . _ - */
bool config_name_ok(const char *name);

/* Notes what is wrong with a list of networks at `member`. */
void config_check_networks(struct config_reading *reading, const char *member,
                           const struct config_strings *networks);

/* Notes what is wrong with headers that are to be sent; those that are our
 * own cannot be set. */
void config_check_headers(struct config_reading *reading, const char *member,
                          const struct config_pairs *headers,
                          bool (*is_own)(struct slice name));

/* Notes what is wrong with a URL. */
void config_check_url(struct config_reading *reading, const char *member,
                      const char *text);

/* --- config_memory.c, config_print.c ------------------------------------- */

/* The most that the process takes, as { "total": …, "parts": { … } }. */
json_t *config_memory_bound(const struct config *config);

/* Exact, in the largest unit that divides it: "36h", "1500ms". */
void config_put_duration(struct buf *out, int64_t ms);

/* A number of the row's type as it stands in a file, without quotes. */
void config_put_number(const struct option *option, uint64_t value,
                       struct buf *out);

/* Appends the JSON text and a newline; drops the reference. */
void config_put_json(struct buf *out, json_t *json);

#endif
