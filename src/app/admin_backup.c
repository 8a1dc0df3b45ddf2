/* SPDX-License-Identifier: MIT */
#include "app/admin_internal.h"
#include "app/backup.h"
#include "base/log.h"

/* Of all that was acknowledged: repeats of the last second, too. */
static void flush_repeats(struct admin *admin)
{
    struct admin_order flush = {
        .command = {.kind = COMMAND_FLUSH, .actor = "", .route = SIZE_MAX}};

    admin_run(admin, &flush, 1);
}

/* For the metric, also after a restart. A store without room for it has it
 * with the next backup. */
static void note_backup(struct admin *admin)
{
    struct admin_order note = {
        .command = {.kind = COMMAND_BACKED_UP,
                    .actor = "",
                    .route = SIZE_MAX,
                    .backup_wall_ms = clock_wall_ms(clock_system())}};

    admin_run(admin, &note, 1);
}

static void tell(const struct admin_request *request, const char *path,
                 const char *result)
{
    struct log_line line;

    if (log_begin(&line, LOG_INFO, "admin", "operator's order")) {
        log_str(&line, "actor", slice_of(request->actor));
        log_str(&line, "backup", slice_of(path));
        log_str(&line, "result", slice_of(result));
        log_end(&line);
    }
}

static bool is_wanted(void *ctx)
{
    const struct admin_request *request = ctx;

    return !admin_is_ending(request->admin) && admin_caller_is_there(request);
}

static void back_up(struct admin_request *request, const char *path)
{
    const struct store_backup_order order = {
        .target = path, .is_wanted = is_wanted, .ctx = request};
    struct err err;
    json_t *made;

    flush_repeats(request->admin);
    tell(request, path, "begun");
    if (!backup_make(request->admin->store, &order, &made, &err)) {
        tell(request, path, err.text);
        admin_failed(request, &err);
        return;
    }
    note_backup(request->admin);
    tell(request, path, "made");
    admin_answer(request, MHD_HTTP_OK, made);
}

void admin_backup(struct admin_request *request)
{
    static const char *const members[] = {"path", NULL};
    json_t *body = admin_body(request, members);
    const char *path = json_string_value(json_object_get(body, "path"));

    if (body != NULL && (path == NULL || path[0] != '/')) {
        admin_problem(request, MHD_HTTP_BAD_REQUEST,
                      "\"path\" must be an absolute path on the worker's "
                      "machine");
    } else if (body != NULL) {
        back_up(request, path);
    }
    json_decref(body);
}
