/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config_internal.h"
#include "base/check.h"

enum { VALUE_FILE_MAX = 64 * 1024 };

char *config_value_path(const struct config_reading *reading, struct slice path)
{
    struct slice folder = slice_of(reading->config->folder);
    struct buf out = BUF_INIT;
    char *copy;

    if (slice_starts(path, SLICE("/"))) {
        return mem_dup(path);
    }
    /* The folder is a real path, so that ".." is the folder above it. */
    for (;;) {
        if (slice_starts(path, SLICE("./"))) {
            path = slice_from(path, 2);
        } else if (slice_starts(path, SLICE("../")) && folder.len > 1) {
            path = slice_from(path, 3);
            while (folder.len > 0 && folder.data[folder.len - 1] != '/') {
                folder.len--;
            }
            folder.len -= folder.len > 1;
        } else {
            break;
        }
    }
    buf_add_slice(&out, folder);
    if (folder.len > 1) {
        buf_add_byte(&out, '/');
    }
    buf_add_slice(&out, path);
    copy = mem_dup(buf_slice(&out));
    buf_free(&out);
    return copy;
}

/* Opens a regular file, through symlinks, and looks at who may read it. -1
 * after a problem. */
static int open_file(struct config_reading *reading, const char *path,
                     enum config_secrecy secrecy)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || fstat(fd, &status) != 0) {
        config_problem(reading, "cannot read %s: %s", path, strerror(errno));
        goto fail;
    }
    if (!S_ISREG(status.st_mode)) {
        config_problem(reading, "%s is not a file", path);
        goto fail;
    }
    if (secrecy == CONFIG_SECRET && status.st_mode & (S_IROTH | S_IWOTH)) {
        config_problem(reading,
                       "%s may be read or written by everybody (mode %04o); "
                       "make it 0600",
                       path, (unsigned)status.st_mode & 07777U);
        goto fail;
    }
    if (secrecy == CONFIG_SECRET && status.st_mode & (S_IRGRP | S_IWGRP)) {
        config_warn(reading, "%s may be read or written by its group", path);
    }
    return fd;
fail:
    if (fd >= 0) {
        (void)close(fd); /* it was only read */
    }
    return -1;
}

void config_value_check_file(struct config_reading *reading, const char *path,
                             enum config_secrecy secrecy)
{
    int fd = open_file(reading, path, secrecy);

    if (fd >= 0) {
        (void)close(fd); /* it was only read */
    }
}

static bool read_all(int fd, struct buf *out)
{
    for (;;) {
        ssize_t n;

        buf_reserve(out, VALUE_FILE_MAX + 1 - out->len);
        n = read(fd, out->data + out->len, VALUE_FILE_MAX + 1 - out->len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0;
        }
        out->len += (size_t)n;
        if (out->len > VALUE_FILE_MAX) {
            return true;
        }
    }
}

/* Editors and `echo` put a newline at the end; it is not meant. */
static struct slice without_newline(struct slice text)
{
    if (text.len > 0 && text.data[text.len - 1] == '\n') {
        text.len--;
    }
    if (text.len > 0 && text.data[text.len - 1] == '\r') {
        text.len--;
    }
    return text;
}

static char *text_of_file(struct config_reading *reading, const char *name,
                          enum config_secrecy secrecy)
{
    char *path = config_value_path(reading, slice_of(name));
    struct buf content = BUF_INIT;
    struct slice text;
    char *copy = NULL;
    int fd = open_file(reading, path, secrecy);

    if (fd < 0) {
        goto out;
    }
    if (!read_all(fd, &content)) {
        config_problem(reading, "cannot read %s: %s", path, strerror(errno));
        goto out;
    }
    text = without_newline(buf_slice(&content));
    if (content.len > VALUE_FILE_MAX) {
        config_problem(reading, "%s is larger than 64 KiB", path);
    } else if (text.len == 0) {
        config_problem(reading, "%s is empty", path);
    } else if (slice_find(text, '\0') < text.len) {
        config_problem(reading, "%s has a NUL byte", path);
    } else {
        copy = mem_dup(text);
    }
out:
    if (fd >= 0) {
        (void)close(fd); /* it was only read */
    }
    if (content.data) {
        explicit_bzero(content.data, content.cap);
    }
    buf_free(&content);
    free(path);
    return copy;
}

static char *text_of_environment(struct config_reading *reading,
                                 const json_t *object,
                                 enum config_secrecy secrecy)
{
    const json_t *otherwise = json_object_get(object, "default");
    const char *name = json_string_value(json_object_get(object, "env"));
    const char *text = getenv(name);

    if (!text && otherwise) {
        text = json_string_value(otherwise);
    }
    if (!text) {
        config_problem(reading, "environment variable %s is not set", name);
    } else if (*text == '\0' && secrecy == CONFIG_SECRET) {
        config_problem(reading, "environment variable %s is empty", name);
    } else {
        return mem_strdup(text);
    }
    return NULL;
}

/* Each of the members is a string where it is there at all. */
static bool members_ok(struct config_reading *reading, const json_t *object)
{
    static const char *const members[] = {"env", "default", "file", "value"};
    bool ok = true;

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const json_t *member = json_object_get(object, members[i]);

        if (!member) {
            continue;
        }
        if (!json_is_string(member)) {
            config_problem_at(reading, members[i], "must be a string");
            ok = false;
        } else if (json_string_length(member) == 0 && i != 1) {
            config_problem_at(reading, members[i], "must not be empty");
            ok = false;
        }
    }
    return ok;
}

char *config_value_from(struct config_reading *reading, const json_t *object,
                        enum config_secrecy secrecy)
{
    const json_t *env = json_object_get(object, "env");
    const json_t *file = json_object_get(object, "file");
    const json_t *value = json_object_get(object, "value");
    const char *one_of = secrecy == CONFIG_SECRET
                             ? "\"env\", \"file\" and \"value\""
                             : "\"env\" and \"file\"";

    if (!members_ok(reading, object)) {
        return NULL;
    }
    if (!!env + !!file + !!value != 1) {
        config_problem(reading, "must have one of %s", one_of);
        return NULL;
    }
    if (!env && json_object_get(object, "default")) {
        config_problem_at(reading, "default", "goes with \"env\" only");
        return NULL;
    }
    if (env) {
        return text_of_environment(reading, object, secrecy);
    }
    if (file) {
        return text_of_file(reading, json_string_value(file), secrecy);
    }
    if (secrecy == CONFIG_SECRET) {
        return mem_strdup(json_string_value(value));
    }
    config_problem_at(reading, "value",
                      "is for secrets; write the string itself");
    return NULL;
}

/* Where a string comes from, and nothing else. */
static bool only_members(struct config_reading *reading, const json_t *object)
{
    bool ok = true;
    const char *key;
    json_t *member;

    json_object_foreach((json_t *)object, key, member)
    {
        if (strcmp(key, "env") != 0 && strcmp(key, "default") != 0 &&
            strcmp(key, "file") != 0 && strcmp(key, "value") != 0) {
            size_t mark = config_enter(reading, key);

            config_problem(reading, "unknown key");
            config_leave(reading, mark);
            ok = false;
        }
    }
    return ok;
}

char *config_value_text(struct config_reading *reading, const json_t *json,
                        enum config_secrecy secrecy)
{
    if (json_is_object(json)) {
        if (!only_members(reading, json)) {
            return NULL;
        }
        return config_value_from(reading, json, secrecy);
    }
    if (!json_is_string(json)) {
        config_problem(reading, "must be a string, or an object with "
                                "\"env\" or \"file\"");
        return NULL;
    }
    if (secrecy == CONFIG_SECRET && json_string_length(json) == 0) {
        config_problem(reading, "must not be empty");
        return NULL;
    }
    if (secrecy == CONFIG_SECRET) {
        config_warn(reading, "the secret stands in the file; "
                             "\"env\" or \"file\" keeps it out");
    }
    return mem_strdup(json_string_value(json));
}
