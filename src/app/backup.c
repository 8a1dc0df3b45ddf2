/* SPDX-License-Identifier: MIT */
#include "app/backup.h"

#include <stdlib.h>
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

bool backup_make(struct store *store, const struct store_backup_order *order,
                 json_t **out, struct err *err)
{
    struct store_backup made;

    if (!store_backup(store, order, &made, err)) {
        return false;
    }
    *out =
        json_pack("{s:o, s:o, s:o, s:I, s:I, s:I}", /* */
                  "path", story_text(slice_of(order->target)), "store",
                  id_json(store), "made", story_time(made.made_wall_ms),
                  "events", (json_int_t)made.events, "bytes",
                  (json_int_t)made.bytes, "took_ms", (json_int_t)made.took_ms);
    CHECK(*out != NULL);
    return true;
}

/* --- from another folder ------------------------------------------------- */

static bool open_reading(struct store **store, const char *path,
                         struct err *err)
{
    const struct store_options options = setup_reading(path);

    return store_open(store, &options, err);
}

/* An earlier call may have copied it, and ended before it was restored. */
static bool see_copied(const char *target, const struct store *from,
                       bool *is_copied, struct err *err)
{
    struct err why;
    struct store *there;

    *is_copied = false;
    if (!open_reading(&there, target, &why)) {
        return why.kind != ERR_AGAIN || err_set(err, why.kind, "%s", why.text);
    }
    *is_copied = slice_eq(store_uuid(there), store_uuid(from)) &&
                 store_copied_wall_ms(there) == store_copied_wall_ms(from);
    store_close(&there);
    return true;
}

static bool bring(const char *target, struct store *from, struct err *err)
{
    const struct store_backup_order order = {.target = target};
    struct store_backup made;
    bool is_copied;

    if (store_copied_wall_ms(from) == 0) {
        return err_set(err, ERR_DATA, "%s is a store, and no backup of one",
                       store_path(from));
    }
    return see_copied(target, from, &is_copied, err) &&
           (is_copied || store_backup(from, &order, &made, err));
}

static bool is_same_folder(const char *a, const char *b)
{
    struct stat left, right;

    return stat(a, &left) == 0 && stat(b, &right) == 0 &&
           left.st_dev == right.st_dev && left.st_ino == right.st_ino;
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

bool backup_restore(const struct config *config, const char *from, json_t **out,
                    struct err *err)
{
    struct store_options options = setup_store(config);
    struct store *store;
    bool ok;

    options.restore = true;
    if ((from != NULL && !bring_from(config->store.path, from, err)) ||
        !store_open(&store, &options, err)) {
        return false;
    }
    ok = restore(config, store, out, err);
    store_close(&store);
    return ok;
}
