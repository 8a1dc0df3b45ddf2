/* SPDX-License-Identifier: MIT */
#include "app/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/setup.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"
#include "source/value.h"

struct loading {
    const struct load_job *job;
    struct load_report *report;
    struct engine_options options;
    struct engine_route *routes; /* of the options */
    struct buf name;             /* of the load; the store looks into it */
    struct store *store;         /* NULL: it is only checked, so far */
    struct load *load;           /* likewise */
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

static size_t find_route(const struct loading *loading, const char *name)
{
    for (size_t i = 0; name != NULL && i < loading->options.n_routes; i++) {
        if (strcmp(loading->routes[i].name, name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* "github evt_1 WHAT" */
static void tell(const struct loading *loading, const struct load_event *event,
                 const char *what)
{
    const struct load_job *job = loading->job;
    struct buf text = BUF_INIT;

    buf_printf(&text, "%s %.*s %s", event->route, (int)event->id.len,
               event->id.data, what);
    job->tell(job->ctx, loading->lines.number, buf_cstr(&text));
    buf_free(&text);
}

/* A delivery of its route, as that is here, would not be found to be one of
 * the event, and run. */
static void see_stray(struct loading *loading, const struct load_event *event,
                      const struct config_route *route)
{
    bool has_tenant = event->tenant.len > 0;
    struct buf what = BUF_INIT;

    if (route->retired) {
        return;
    }
    if (strcmp(event->namespace, route->namespace) != 0) {
        buf_printf(&what,
                   "is of namespace \"%s\", and here the route has \"%s\"",
                   event->namespace, route->namespace);
    } else if (has_tenant != (route->tenant.n_choices > 0)) {
        buf_printf(&what, "has %s tenant, and here the route has %s",
                   has_tenant ? "a" : "no", has_tenant ? "none" : "them");
    }
    if (what.len > 0) {
        buf_add_str(&what, ": no delivery will be known as a repeat of it");
        tell(loading, event, buf_cstr(&what));
        loading->report->strays++;
    }
    buf_free(&what);
}

static bool take_event(struct loading *loading, const struct load_event *event,
                       struct err *err)
{
    size_t index = find_route(loading, event->route);
    const struct engine_route *route =
        index == SIZE_MAX ? NULL : &loading->routes[index];
    enum load_verdict verdict = LOAD_TAKEN;

    if (loading->load == NULL
            ? !load_check_event(event, route, err)
            : !load_event(loading->load, event, &verdict, err)) {
        return false;
    }
    if (verdict == LOAD_CONFLICT) {
        tell(loading, event,
             "is in the store, and not as in the dump: left as it is");
    }
    if (route != NULL) {
        see_stray(loading, event, &loading->job->config->routes[index]);
    }
    return true;
}

static bool use_event(struct loading *loading, const json_t *line,
                      struct err *err)
{
    struct dump_read read;
    bool ok = dump_read_event(line, &read, err) &&
              take_event(loading, &read.event, err);

    loading->events++;
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

/* What the line says, with the route that it is of. An id may begin with a
 * brace, or with a space, but then it must stand in JSON. The line, where it
 * is JSON, is the caller's to free. */
static bool read_seen(const struct loading *loading, struct load_seen *out,
                      json_t **line, struct err *err)
{
    struct dump_seen from = {.id = slice_trim(buf_slice(&loading->lines.text))};
    const char *route;

    *line = NULL;
    if (from.id.data[0] == '{') {
        *line = dump_parse_line(&loading->lines, err);
        if (*line == NULL || !dump_read_seen(*line, &from, err)) {
            return false;
        }
    }
    route = from.route == NULL ? loading->job->route : from.route;
    *out = (struct load_seen){
        .route = find_route(loading, route),
        .tenant = from.tenant,
        .id = from.id,
        .at_ms = from.at_ms,
    };
    if (route == NULL) {
        return err_set(err, ERR_DATA, "it names no route");
    }
    if (out->route == SIZE_MAX) {
        return err_set(err, ERR_DATA, "no route \"%s\" is configured", route);
    }
    return check_seen(loading, out, err);
}

static bool use_id(struct loading *loading, struct err *err)
{
    struct load_seen seen;
    enum load_verdict verdict;
    json_t *line;
    bool ok = read_seen(loading, &seen, &line, err) &&
              (loading->load == NULL ||
               load_seen(loading->load, &seen, &verdict, err));

    json_decref(line);
    return ok;
}

/* --- the store ------------------------------------------------------------ */

/* By its first line: what a load that did not end is known by again. */
static bool name_dump(struct loading *loading, struct err *err)
{
    json_t *line = dump_parse_line(&loading->lines, err);
    struct dump_header header;
    bool ok = line != NULL && dump_read_header(line, &header, err);

    if (ok) {
        buf_printf(&loading->name, "the dump of store %s%s%s, written at %s",
                   header.store, header.route == NULL ? "" : ", route ",
                   header.route == NULL ? "" : header.route, header.at);
    }
    json_decref(line);
    return ok;
}

/* By all of its lines: a list has no line that tells how many it has, so that
 * another might begin like it. The route of plain lines is part of it. */
static bool name_list(struct loading *loading, struct err *err)
{
    const char *route = loading->job->route == NULL ? "" : loading->job->route;
    uint8_t digest[SHA256_SIZE];
    uint64_t n = 0;
    enum dump_line found = DUMP_LINE;

    hash_sha256(slice_of(route), digest);
    for (; found == DUMP_LINE; n++) {
        const struct slice parts[] = {
            {(const char *)digest, sizeof digest},
            buf_slice(&loading->lines.text),
        };

        hash_sha256_parts(parts, sizeof parts / sizeof parts[0], digest);
        found = dump_next_line(&loading->lines, err);
    }
    buf_printf(&loading->name, "the list of %llu ids, SHA-256 ",
               (unsigned long long)n);
    text_hex((struct slice){(const char *)digest, sizeof digest},
             &loading->name);
    return found == DUMP_LINES_END;
}

/* Back to the first line of the list. */
static bool begin_list_again(struct loading *loading, struct err *err)
{
    if (fseeko(loading->lines.file, 0, SEEK_SET) != 0) {
        return err_set(err, ERR_IO, "read it again: %s", strerror(errno));
    }
    loading->lines.number = 0;
    return dump_next_line(&loading->lines, err) == DUMP_LINE;
}

static bool name_load(struct loading *loading, enum dump_line first,
                      struct err *err)
{
    if (first != DUMP_LINE) {
        buf_add_str(&loading->name, "an empty list of ids");
        return true;
    }
    return loading->job->seen
               ? name_list(loading, err) && begin_list_again(loading, err)
               : name_dump(loading, err);
}

static bool open_store(struct loading *loading, struct err *err)
{
    struct store_options options = setup_store(loading->job->config);

    /* Nothing is forgotten, or taken for forgotten, while it goes on. */
    options.retention_ms = INT64_MAX;
    options.create = true;
    options.load = buf_cstr(&loading->name);
    if (!store_open(&loading->store, &options, err)) {
        return false;
    }
    loading->options.store = loading->store;
    return load_begin(&loading->load, &loading->options, loading->job->actor,
                      err);
}

/* --- all lines ------------------------------------------------------------ */

static bool is_whole(const struct loading *loading, struct err *err)
{
    return loading->job->seen || loading->ended ||
           err_set(err, ERR_DATA,
                   "the dump is truncated: it has no end, and %llu events",
                   (unsigned long long)loading->events);
}

static bool wrap_line(const struct loading *loading, struct err *err)
{
    return err_wrap(err, "line %llu",
                    (unsigned long long)loading->lines.number);
}

static bool use_lines(struct loading *loading, enum dump_line found,
                      struct err *err)
{
    while (found == DUMP_LINE) {
        if (!(loading->job->seen ? use_id(loading, err)
                                 : use_json(loading, err))) {
            return wrap_line(loading, err);
        }
        found = dump_next_line(&loading->lines, err);
    }
    return found == DUMP_LINES_FAILED ? wrap_line(loading, err)
                                      : is_whole(loading, err);
}

/* The store is opened when there is something to load into it, by the name
 * that the first line gives. */
static bool load_lines(struct loading *loading, struct err *err)
{
    enum dump_line first = dump_next_line(&loading->lines, err);

    if (first == DUMP_LINE || loading->job->seen) {
        if (first == DUMP_LINES_FAILED || !name_load(loading, first, err)) {
            return wrap_line(loading, err);
        }
        if (!open_store(loading, err)) {
            return false;
        }
    }
    if (!use_lines(loading, first, err)) {
        if (loading->load != NULL) {
            load_keep(loading->load);
        }
        return false;
    }
    return load_end(loading->load, err);
}

static struct loading begin(const struct load_job *job, FILE *file,
                            struct load_report *report)
{
    struct loading loading = {
        .job = job, .report = report, .lines = {.file = file}};

    *report = (struct load_report){.strays = 0};
    loading.routes = setup_engine(job->config, NULL, &loading.options);
    return loading;
}

static void end(struct loading *loading)
{
    load_free(&loading->load);
    if (loading->store != NULL) {
        loading->report->waits = store_is_loading(loading->store);
    }
    store_close(&loading->store);
    buf_free(&loading->lines.text);
    buf_free(&loading->name);
    free(loading->routes);
}

bool load_check(const struct load_job *job, FILE *file,
                struct load_report *report, struct err *err)
{
    struct loading loading = begin(job, file, report);
    bool ok = use_lines(&loading, dump_next_line(&loading.lines, err), err);

    end(&loading);
    return ok;
}

static void tell_room(const struct loading *loading, struct err *err)
{
    struct buf size = BUF_INIT;

    text_put_size(&size, loading->job->config->store.max_bytes);
    err_wrap_text(err, "store.max_size (%s), or the disk, is too small",
                  buf_cstr(&size));
    buf_free(&size);
}

bool load_file(const struct load_job *job, FILE *file,
               struct load_report *report, struct err *err)
{
    struct loading loading = begin(job, file, report);
    bool ok = load_lines(&loading, err);

    if (!ok && loading.store != NULL && err->kind == ERR_AGAIN) {
        tell_room(&loading, err);
    }
    if (loading.load != NULL) {
        report->counts = *load_counts(loading.load);
    }
    end(&loading);
    return ok;
}
