/* SPDX-License-Identifier: MIT */
#include "app/load.h"

#include <stdlib.h>
#include <string.h>

#include "app/setup.h"
#include "base/check.h"
#include "source/value.h"

struct loading {
    const struct load_job *job;
    struct load *load; /* NULL: it is only checked */
    struct dump_lines lines;
    uint64_t events;
    bool begun; /* the header was there */
    bool ended; /* the last line of a dump was there */
};

/* --- a dump --------------------------------------------------------------- */

static bool use_header(struct loading *loading, const json_t *line,
                       struct err *err)
{
    struct dump_header header;
    const json_t *name;
    size_t i;

    if (!dump_read_header(line, &header, err)) {
        return false;
    }
    if (loading->load == NULL) {
        return true;
    }
    if (header.forgotten_until_ms != INT64_MIN &&
        !load_forget_until(loading->load, header.forgotten_until_ms, err)) {
        return false;
    }
    json_array_foreach(header.paused, i, name)
    {
        if (!load_pause(loading->load, json_string_value(name), err)) {
            return false;
        }
    }
    return true;
}

static bool use_event(struct loading *loading, const json_t *line,
                      struct err *err)
{
    const struct load_job *job = loading->job;
    enum load_verdict verdict = LOAD_TAKEN;
    struct dump_read read;
    bool ok = dump_read_event(line, &read, err);

    loading->events++;
    if (ok && loading->load != NULL) {
        ok = load_event(loading->load, &read.event, &verdict, err);
    }
    if (ok && verdict == LOAD_CONFLICT) {
        job->conflict(job->ctx, loading->lines.number, &read.event);
    }
    dump_read_fini(&read);
    return ok;
}

static bool use_end(struct loading *loading, const json_t *line,
                    struct err *err)
{
    const json_t *events = json_object_get(line, "events");

    loading->ended = true;
    return (json_is_integer(events) &&
            (uint64_t)json_integer_value(events) == loading->events) ||
           err_set(err, ERR_DATA,
                   "the dump is not whole: %llu events stand before its end, "
                   "which counts %lld",
                   (unsigned long long)loading->events,
                   (long long)json_integer_value(events));
}

static bool use_line(struct loading *loading, const json_t *line,
                     struct err *err)
{
    if (loading->ended) {
        return err_set(err, ERR_DATA, "something follows the end of the dump");
    }
    if (!loading->begun) {
        loading->begun = true;
        return use_header(loading, line, err);
    }
    return json_is_true(json_object_get(line, "end"))
               ? use_end(loading, line, err)
               : use_event(loading, line, err);
}

static bool use_json(struct loading *loading, struct err *err)
{
    json_t *line = dump_parse_line(&loading->lines, err);
    bool ok = line != NULL && use_line(loading, line, err);

    json_decref(line);
    return ok;
}

/* --- ids ------------------------------------------------------------------ */

static size_t find_route(const struct config *config, const char *name)
{
    for (size_t i = 0; name != NULL && i < config->n_routes; i++) {
        if (strcmp(config->routes[i].name, name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* As a delivery of it would be named; else none would be found. */
static bool check_seen(const struct loading *loading,
                       const struct load_seen *seen, struct err *err)
{
    const struct config_route *route =
        &loading->job->config->routes[seen->route];
    const char *problem = value_check_id(seen->id);

    if (problem != NULL) {
        return err_set(err, ERR_DATA, "the id %s", problem);
    }
    if (route->tenant.n_choices == 0 && seen->tenant.len > 0) {
        return err_set(err, ERR_DATA, "route \"%s\" has no tenants",
                       route->name);
    }
    problem = route->tenant.n_choices > 0 ? value_check_id(seen->tenant) : NULL;
    return problem == NULL || err_set(err, ERR_DATA, "the tenant %s", problem);
}

static bool use_seen(struct loading *loading, const struct dump_seen *from,
                     struct err *err)
{
    const struct load_job *job = loading->job;
    const char *route = from->route == NULL ? job->route : from->route;
    struct load_seen seen = {
        .route = find_route(job->config, route),
        .tenant = from->tenant,
        .id = from->id,
        .at_ms = from->at_ms,
    };
    enum load_verdict verdict;

    if (route == NULL) {
        return err_set(err, ERR_DATA, "it names no route");
    }
    if (seen.route == SIZE_MAX) {
        return err_set(err, ERR_DATA, "no route \"%s\" is configured", route);
    }
    return check_seen(loading, &seen, err) &&
           (loading->load == NULL ||
            load_seen(loading->load, &seen, &verdict, err));
}

/* An id may begin with a brace, but then it must stand in JSON. */
static bool use_id(struct loading *loading, struct err *err)
{
    struct slice text = buf_slice(&loading->lines.text);
    struct dump_seen seen = {.id = text};
    json_t *line;
    bool ok;

    if (text.data[0] != '{') {
        return use_seen(loading, &seen, err);
    }
    line = dump_parse_line(&loading->lines, err);
    ok = line != NULL && dump_read_seen(line, &seen, err) &&
         use_seen(loading, &seen, err);
    json_decref(line);
    return ok;
}

/* --- all lines ------------------------------------------------------------ */

static bool read_lines(struct loading *loading, struct err *err)
{
    enum dump_line found;

    while ((found = dump_next_line(&loading->lines, err)) == DUMP_LINE) {
        if (!(loading->job->seen ? use_id(loading, err)
                                 : use_json(loading, err))) {
            found = DUMP_LINES_FAILED;
            break;
        }
    }
    if (found == DUMP_LINES_FAILED) {
        return err_wrap(err, "line %llu",
                        (unsigned long long)loading->lines.number);
    }
    return loading->job->seen || loading->ended ||
           err_set(err, ERR_DATA,
                   "the dump is truncated: it has no end, and %llu events",
                   (unsigned long long)loading->events);
}

bool load_check(const struct load_job *job, FILE *file, struct err *err)
{
    struct loading loading = {.job = job, .lines = {.file = file}};
    bool ok = read_lines(&loading, err);

    buf_free(&loading.lines.text);
    return ok;
}

static bool load_into(const struct load_job *job, struct store *store,
                      FILE *file, struct load_counts *counts, struct err *err)
{
    struct loading loading = {.job = job, .lines = {.file = file}};
    struct engine_options options;
    struct engine_route *routes = setup_engine(job->config, NULL, &options);
    bool ok;

    options.store = store;
    ok = load_begin(&loading.load, &options, job->actor, err);
    free(routes);
    if (!ok) {
        return false;
    }
    ok = read_lines(&loading, err);
    if (!ok) {
        load_keep(loading.load);
    }
    ok = ok && load_end(loading.load, err);
    *counts = *load_counts(loading.load);
    load_free(&loading.load);
    buf_free(&loading.lines.text);
    return ok;
}

bool load_file(const struct load_job *job, FILE *file,
               struct load_counts *counts, struct err *err)
{
    struct store_options options = setup_store(job->config);
    struct store *store;
    bool ok;

    *counts = (struct load_counts){0};
    /* Nothing is forgotten, or taken for forgotten, while it goes on. */
    options.retention_ms = INT64_MAX;
    options.create = true;
    options.load = true;
    if (!store_open(&store, &options, err)) {
        return false;
    }
    ok = load_into(job, store, file, counts, err);
    store_close(&store);
    return ok;
}
