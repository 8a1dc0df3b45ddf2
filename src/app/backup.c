/* SPDX-License-Identifier: MIT */
#include "app/backup.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/actor.h"
#include "app/setup.h"
#include "app/story.h"
#include "base/check.h"
#include "base/text.h"
#include "engine/engine.h"

static json_t *id_json(const struct store *store)
{
    struct buf hex = BUF_INIT;
    json_t *json;

    text_hex(store_uuid(store), &hex);
    json = json_stringn(hex.data, hex.len);
    buf_free(&hex);
    return json;
}

static json_t *made_json(const struct store *store, const char *target,
                         const struct store_backup *made)
{
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:I, s:I, s:I}", /* */
        "path", story_text(slice_of(target)), "store", id_json(store), "made",
        story_time(made->made_wall_ms), "events", (json_int_t)made->events,
        "bytes", (json_int_t)made->bytes, "took_ms", (json_int_t)made->took_ms);
    CHECK(json != NULL);
    return json;
}

bool backup_make(struct store *store, const struct store_backup_order *order,
                 json_t **out, struct err *err)
{
    struct store_backup made;

    if (!store_backup(store, order, &made, err)) {
        return false;
    }
    *out = made_json(store, order->target, &made);
    return true;
}

/* --- in a process that does nothing else --------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static bool is_wanted(void *ctx)
{
    (void)ctx;
    return interrupted == 0;
}

/* A signal ends the copy, so that nothing is left of it; once that is done it
 * ends the process as ever. */
static bool copy(struct store *store, const char *target,
                 struct store_backup *made, struct err *err)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    enum { N = sizeof numbers / sizeof *numbers };
    const struct store_backup_order order = {.target = target,
                                             .is_wanted = is_wanted};
    const struct sigaction catch = {.sa_handler = on_signal};
    struct sigaction before[N];
    bool ok;

    for (size_t i = 0; i < N; i++) {
        CHECK(sigaction(numbers[i], &catch, &before[i]) == 0);
    }
    ok = store_backup(store, &order, made, err);
    for (size_t i = 0; i < N; i++) {
        CHECK(sigaction(numbers[i], &before[i], NULL) == 0);
    }
    return ok;
}

bool backup_make_alone(struct store *store, const char *target, json_t **out,
                       struct err *err)
{
    struct store_backup made;

    if (!copy(store, target, &made, err)) {
        return false;
    }
    *out = made_json(store, target, &made);
    return true;
}

/* --- from another folder ------------------------------------------------- */

static bool open_reading(struct store **store, const char *path,
                         struct err *err)
{
    const struct store_options options = setup_reading(path);

    return store_open(store, &options, err);
}

/* The store that is there already is the one of the backup: the original, or
 * one that the backup was restored into. */
static bool refuse_same(const struct store *there, const struct store *from,
                        struct err *err)
{
    if (store_last_backup_wall_ms(there) == store_copied_wall_ms(from) &&
        store_incarnation(there) > store_incarnation(from)) {
        return err_set(err, ERR_USAGE,
                       "%s: this backup was restored into it already: `onced "
                       "run` it, or move it away to restore once more",
                       store_path(there));
    }
    return err_set(err, ERR_USAGE,
                   "%s is the store that the backup is of, incarnation %u: "
                   "move it away to restore",
                   store_path(there), (unsigned)store_incarnation(there));
}

/* An earlier call may have copied it, and ended before it was restored. */
static bool see_copied(const char *target, const struct store *from,
                       bool *is_copied, struct err *err)
{
    struct err why;
    struct store *there;
    bool ok = true;

    *is_copied = false;
    if (!open_reading(&there, target, &why)) {
        return why.kind != ERR_AGAIN || err_set(err, why.kind, "%s", why.text);
    }
    if (slice_eq(store_uuid(there), store_uuid(from))) {
        *is_copied = store_copied_wall_ms(there) == store_copied_wall_ms(from);
        ok = store_copied_wall_ms(there) != 0 || refuse_same(there, from, err);
    }
    store_close(&there);
    return ok;
}

static bool bring(const char *target, struct store *from, struct err *err)
{
    struct store_backup made;
    bool is_copied;

    if (store_copied_wall_ms(from) == 0) {
        return err_set(err, ERR_DATA, "%s is a store, and no backup of one",
                       store_path(from));
    }
    return see_copied(target, from, &is_copied, err) &&
           (is_copied || copy(from, target, &made, err));
}

static bool is_same_folder(const char *a, const char *b)
{
    struct stat left, right;

    return stat(a, &left) == 0 && stat(b, &right) == 0 &&
           left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

/* In a process of its own: LMDB trusts the pages of a file. */
static bool check_whole(const char *path, struct err *err)
{
    struct store_report report;

    if (!store_verify(path, &report, err)) {
        return false;
    }
    return report.bad == 0 ||
           err_set(err, ERR_DATA, "%s is damaged: %llu bad, the first: %s",
                   path, (unsigned long long)report.bad, report.first_bad);
}

static bool is_there(const char *path, struct err *err)
{
    int error = access(path, F_OK) == 0 ? 0 : errno;

    return error == 0 || err_set(err, error == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                                 "%s: %s", path, strerror(error));
}

static bool bring_from(const char *target, const char *path, struct err *err)
{
    struct store *from;
    bool ok;

    if (is_same_folder(target, path)) {
        return true; /* LMDB must not open a file twice in one process */
    }
    if (!open_reading(&from, path, err)) {
        return false;
    }
    ok = bring(target, from, err);
    store_close(&from);
    return ok;
}

/* --- restoring ----------------------------------------------------------- */

static json_t *routes_json(const struct config *config,
                           const struct engine_restored *counts)
{
    json_t *routes = json_array();

    for (size_t i = 0; i < config->n_routes; i++) {
        json_t *route = json_pack(
            "{s:s, s:I, s:I, s:I}", "name", config->routes[i].name, "uncertain",
            (json_int_t)counts[i].uncertain, "due", (json_int_t)counts[i].due,
            "held", (json_int_t)counts[i].held);

        CHECK(json_array_append_new(routes, route) == 0);
    }
    return routes;
}

static bool restore(const struct config *config, struct store *store,
                    json_t **out, struct err *err)
{
    struct engine_restored *counts = mem_new(config->n_routes, sizeof *counts);
    int64_t made_ms = store_copied_wall_ms(store);
    struct engine_options options;
    struct engine_route *routes = setup_engine(config, NULL, &options);
    char actor[STORE_ACTOR_MAX + 1];
    bool ok;

    actor_of_user(geteuid(), actor);
    options.store = store;
    ok = engine_restore(&options, actor, counts, err);
    if (ok) {
        *out = json_pack("{s:o, s:o, s:o, s:I, s:o}", "path",
                         story_text(slice_of(store_path(store))), "store",
                         id_json(store), "made", story_time(made_ms),
                         "incarnation", (json_int_t)store_incarnation(store),
                         "routes", routes_json(config, counts));
        CHECK(*out != NULL);
    }
    free(routes);
    free(counts);
    return ok;
}

/* It was free a moment ago: what is missing now is room. */
static void tell_room(const struct config *config, struct err *err)
{
    struct buf size = BUF_INIT;

    text_put_size(&size, config->store.max_bytes);
    err_wrap_text(err, "store.max_size (%s), or the disk, is too small",
                  buf_cstr(&size));
    buf_free(&size);
}

bool backup_restore(const struct config *config, const char *from, json_t **out,
                    struct err *err)
{
    struct store_options options = setup_store(config);
    const char *path = config->store.path;
    struct store *store;
    bool ok;

    options.restore = true;
    if ((from != NULL && !is_there(from, err)) ||
        !check_whole(from != NULL ? from : path, err) ||
        (from != NULL && !bring_from(path, from, err))) {
        return false;
    }
    ok = store_open(&store, &options, err);
    if (ok) {
        ok = restore(config, store, out, err);
        store_close(&store);
    }
    if (!ok && err->kind == ERR_AGAIN) {
        tell_room(config, err);
    }
    return ok;
}
