/* SPDX-License-Identifier: MIT */
#include "handler/exec_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "handler/exec_env.h"

static bool is_program(int folder, const char *path)
{
    struct stat info;

    return fstatat(folder, path, &info, 0) == 0 && S_ISREG(info.st_mode) &&
           faccessat(folder, path, X_OK, 0) == 0;
}

/* Empty elements of PATH mean the folder that onced happens to be in: those
 * are passed over. */
static char *search_path(const char *name)
{
    const char *variable = getenv("PATH");
    struct slice rest = slice_of(variable != NULL ? variable : "/usr/bin:/bin");
    struct buf path = BUF_INIT;
    char *found = NULL;

    while (rest.len > 0 && found == NULL) {
        size_t end = slice_find(rest, ':');
        struct slice folder = {rest.data, end};

        rest = slice_from(rest, end < rest.len ? end + 1 : end);
        buf_clear(&path);
        buf_add_slice(&path, folder);
        buf_add_byte(&path, '/');
        buf_add_str(&path, name);
        if (folder.len > 0 && is_program(AT_FDCWD, buf_cstr(&path))) {
            found = mem_dup(buf_slice(&path));
        }
    }
    buf_free(&path);
    return found;
}

static bool find_program(struct exec_command *command, int folder,
                         struct err *err)
{
    const char *name = command->argv[0];

    if (strchr(name, '/') == NULL) {
        command->path = search_path(name);
    } else if (is_program(folder, name)) {
        command->path = mem_strdup(name);
    }
    return command->path != NULL ||
           err_set(err, ERR_CONFIG, "command %s: no program of this name",
                   name);
}

static bool look_up(struct exec_command *command, struct err *err)
{
    int folder = AT_FDCWD;
    bool ok;

    if (command->cwd != NULL) {
        folder = open(command->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder == -1) {
            return err_set(err, ERR_CONFIG, "cwd %s: %s", command->cwd,
                           strerror(errno));
        }
    }
    ok = find_program(command, folder, err);
    if (folder != AT_FDCWD) {
        (void)close(folder);
    }
    return ok;
}

static char **copy_list(const char *const *list)
{
    size_t n = 0;
    char **copy;

    while (list[n] != NULL) {
        n++;
    }
    copy = mem_new(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        copy[i] = mem_strdup(list[i]);
    }
    return copy;
}

/* Its own process group; no signal blocked or ignored, whatever we do with
 * them. */
static void set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all;
    sigset_t none;

    CHECK(sigfillset(&all) == 0);
    CHECK(sigemptyset(&none) == 0);
    CHECK(posix_spawnattr_setpgroup(attributes, 0) == 0);
    CHECK(posix_spawnattr_setsigdefault(attributes, &all) == 0);
    CHECK(posix_spawnattr_setsigmask(attributes, &none) == 0);
    CHECK(posix_spawnattr_setflags(
              attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                              POSIX_SPAWN_SETSIGMASK) == 0);
}

bool exec_command_init(struct exec_command *command,
                       const struct exec_handler_options *options,
                       struct err *err)
{
    CHECK(options->command != NULL);
    *command = (struct exec_command){.path = NULL};
    CHECK(posix_spawnattr_init(&command->attributes) == 0);
    set_attributes(&command->attributes);
    command->argv = copy_list(options->command);
    if (options->cwd != NULL) {
        command->cwd = mem_strdup(options->cwd);
    }
    if (command->argv[0] == NULL) {
        return err_set(err, ERR_CONFIG, "command: is empty");
    }
    return look_up(command, err) &&
           exec_env_fixed(options->environment, &command->environment, err);
}

void exec_command_fini(struct exec_command *command)
{
    for (size_t i = 0; command->argv[i] != NULL; i++) {
        free(command->argv[i]);
    }
    free(command->argv);
    free(command->path);
    free(command->cwd);
    buf_free(&command->environment);
    CHECK(posix_spawnattr_destroy(&command->attributes) == 0);
}
