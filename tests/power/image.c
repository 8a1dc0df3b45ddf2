/* SPDX-License-Identifier: MIT */
#include "power/image.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "support/tmpdir.h"

enum { FILES_MAX = 8, FOLDER_OPS_MAX = 64, PATH_SIZE = 64, SECTOR = 512 };
/* A disk does not keep back for ever what it was not asked to write. */
enum { PENDING_MAX = 256 };

struct file {
    uint64_t inode;
    uint8_t *bytes;
    size_t size, room;
};

struct pending {
    struct file *file;
    size_t offset, len;
    const uint8_t *bytes;
};

/* A change to the entries of the folder that the path lies in. */
struct folder_op {
    enum log_kind kind;
    struct file *file;
    char path[PATH_SIZE];
    bool durable;
};

struct image {
    enum drop drop;
    struct file files[FILES_MAX];
    size_t n_files;
    struct pending pending[PENDING_MAX];
    size_t n_pending;
    struct folder_op ops[FOLDER_OPS_MAX];
    size_t n_ops;
};

const char *way_name(enum way way)
{
    static const char *const names[WAYS] = {
        "nothing kept", "all kept",      "some writes kept", "others kept",
        "some sectors", "other sectors", "last write torn"};

    return names[way];
}

struct image *image_new(enum drop drop)
{
    struct image *image = mem_new(1, sizeof *image);

    image->drop = drop;
    return image;
}

void image_free(struct image *image)
{
    for (size_t i = 0; i < image->n_files; i++) {
        free(image->files[i].bytes);
    }
    free(image);
}

/* --- what becomes durable ---------------------------------------------------
 */

static void put(struct file *file, size_t offset, const uint8_t *bytes,
                size_t len)
{
    size_t end = offset + len;

    if (end > file->room) {
        size_t room = 2 * end;

        file->bytes = mem_grow(file->bytes, room, 1);
        memset(file->bytes + file->room, 0, room - file->room);
        file->room = room;
    }
    memcpy(file->bytes + offset, bytes, len);
    file->size = end > file->size ? end : file->size;
}

static void settle(struct image *image, size_t i)
{
    const struct pending *write = &image->pending[i];

    put(write->file, write->offset, write->bytes, write->len);
    image->n_pending--;
    memmove(&image->pending[i], &image->pending[i + 1],
            (image->n_pending - i) * sizeof *write);
}

static void sync_file(struct image *image, const struct file *file)
{
    for (size_t i = 0; i < image->n_pending;) {
        if (image->pending[i].file == file) {
            settle(image, i);
        } else {
            i++;
        }
    }
}

static size_t folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (size_t)(slash - path);
}

static void sync_folder(struct image *image, const char *path)
{
    for (size_t i = 0; i < image->n_ops; i++) {
        struct folder_op *op = &image->ops[i];
        size_t len = folder_len(op->path);

        op->durable |= len == strlen(path) && memcmp(op->path, path, len) == 0;
    }
}

/* --- the log ---------------------------------------------------------------
 */

/* An inode may come again after its file is gone: the newest counts. */
static struct file *file_of(struct image *image, uint64_t inode)
{
    for (size_t i = image->n_files; i > 0; i--) {
        if (image->files[i - 1].inode == inode) {
            return &image->files[i - 1];
        }
    }
    return NULL;
}

static void add_write(struct image *image, const struct entry *entry)
{
    struct file *file = file_of(image, entry->head.file);

    CHECK(file != NULL);
    if (image->n_pending == PENDING_MAX) {
        settle(image, 0);
    }
    image->pending[image->n_pending++] = (struct pending){
        file, (size_t)entry->head.offset, entry->head.len, entry->bytes};
}

static void copy_path(const struct entry *entry, char out[PATH_SIZE])
{
    CHECK(entry->head.len < PATH_SIZE);
    memcpy(out, entry->bytes, entry->head.len);
    out[entry->head.len] = '\0';
}

static void add_op(struct image *image, const struct entry *entry)
{
    struct folder_op *op = &image->ops[image->n_ops++];

    CHECK(image->n_ops <= FOLDER_OPS_MAX);
    op->kind = (enum log_kind)entry->head.kind;
    op->file = file_of(image, entry->head.file);
    copy_path(entry, op->path);
}

static void add_file(struct image *image, const struct entry *entry)
{
    CHECK(image->n_files < FILES_MAX);
    image->files[image->n_files++].inode = entry->head.file;
    add_op(image, entry);
}

static void add_sync(struct image *image, const struct entry *entry)
{
    char path[PATH_SIZE];

    if (entry->head.kind == LOG_SYNC_DIR && image->drop != DROP_FOLDERS) {
        copy_path(entry, path);
        sync_folder(image, path);
    } else if (entry->head.kind == LOG_SYNC && image->drop != DROP_DATA) {
        sync_file(image, file_of(image, entry->head.file));
    }
}

void image_add(struct image *image, const struct entry *entry)
{
    switch ((enum log_kind)entry->head.kind) {
    case LOG_WRITE:
        add_write(image, entry);
        return;
    case LOG_WROTE:
        if (image->drop != DROP_META) {
            settle(image, image->n_pending - 1);
        }
        return;
    case LOG_SYNC:
    case LOG_SYNC_DIR:
        add_sync(image, entry);
        return;
    case LOG_CREATE:
        add_file(image, entry);
        return;
    case LOG_MKDIR:
    case LOG_RENAME:
    case LOG_REMOVE:
        add_op(image, entry);
        return;
    case LOG_FACT:
        return;
    }
    UNREACHABLE("every kind of entry is handled");
}

bool image_is_certain(const struct image *image)
{
    size_t n = 0;

    while (n < image->n_ops && image->ops[n].durable) {
        n++;
    }
    return n == image->n_ops && image->n_pending == 0;
}

/* --- a state ---------------------------------------------------------------
 */

struct choice {
    enum way way;
    uint64_t random;
    uint64_t keep_permille;
};

static uint64_t draw(struct choice *choice, uint64_t below)
{
    choice->random =
        choice->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (choice->random >> 33) % below;
}

static bool toss(struct choice *choice)
{
    return draw(choice, 1000) < choice->keep_permille;
}

static void put_sectors(struct choice *choice, struct file *file,
                        const struct pending *write)
{
    for (size_t at = 0; at < write->len;) {
        size_t len = SECTOR - (write->offset + at) % SECTOR;

        len = len < write->len - at ? len : write->len - at;
        if (toss(choice)) {
            put(file, write->offset + at, write->bytes + at, len);
        }
        at += len;
    }
}

static void put_torn(struct choice *choice, struct file *file,
                     const struct pending *write)
{
    size_t sectors = write->len / SECTOR;

    put(file, write->offset, write->bytes,
        SECTOR * (size_t)draw(choice, sectors + 1));
}

static void put_pending(struct choice *choice, struct file *file,
                        const struct pending *write, bool is_last)
{
    switch (choice->way) {
    case WAY_NONE:
        return;
    case WAY_SOME:
    case WAY_OTHERS:
        if (!toss(choice)) {
            return;
        }
        break;
    case WAY_SECTORS:
    case WAY_MORE_SECTORS:
        put_sectors(choice, file, write);
        return;
    case WAY_TORN:
        if (is_last) {
            put_torn(choice, file, write);
            return;
        }
        break;
    case WAY_ALL:
        break;
    }
    put(file, write->offset, write->bytes, write->len);
}

/* The new length may have been kept where the bytes were not: zeros. */
static void stretch(struct choice *choice, struct file *file,
                    const struct pending *write)
{
    static const uint8_t zero;
    size_t end = write->offset + write->len;

    if (choice->way != WAY_NONE && end > file->size && draw(choice, 4) == 0) {
        put(file, end - 1, &zero, 1);
    }
}

static void write_file(const char *path, const struct file *file)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t done = 0;

    CHECK(fd >= 0);
    while (done < file->size) {
        ssize_t n = write(fd, file->bytes + done, file->size - done);

        CHECK(n > 0);
        done += (size_t)n;
    }
    (void)close(fd);
}

static void build_file(const struct image *image, struct choice *choice,
                       const struct file *file, const char *path)
{
    struct file copy = {.inode = file->inode};

    if (file->size > 0) {
        put(&copy, 0, file->bytes, file->size);
    }
    for (size_t i = 0; i < image->n_pending; i++) {
        const struct pending *write = &image->pending[i];

        if (write->file == file) {
            put_pending(choice, &copy, write, i + 1 == image->n_pending);
            stretch(choice, &copy, write);
        }
    }
    write_file(path, &copy);
    free(copy.bytes);
}

/* The paths that are there; a file has one name at most. */
struct names {
    const struct folder_op *at[FOLDER_OPS_MAX];
    size_t n;
};

static bool has_folder(const struct names *names, const char *path)
{
    size_t len = folder_len(path);

    for (size_t i = 0; i < names->n; i++) {
        const struct folder_op *op = names->at[i];

        if (op->kind == LOG_MKDIR && strlen(op->path) == len &&
            memcmp(op->path, path, len) == 0) {
            return true;
        }
    }
    return len == 0;
}

static void take_away(struct names *names, const struct folder_op *op)
{
    for (size_t i = 0; i < names->n;) {
        const struct folder_op *old = names->at[i];
        bool same_file = op->kind == LOG_RENAME && old->file == op->file &&
                         old->kind != LOG_MKDIR;

        if (same_file || strcmp(old->path, op->path) == 0) {
            names->at[i] = names->at[--names->n];
        } else {
            i++;
        }
    }
}

static void apply(struct names *names, const struct folder_op *op)
{
    if (op->kind == LOG_REMOVE) {
        take_away(names, op);
    } else if (has_folder(names, op->path)) {
        take_away(names, op);
        names->at[names->n++] = op;
    }
}

static size_t uncertain_ops(const struct image *image)
{
    size_t n = 0;

    for (size_t i = 0; i < image->n_ops; i++) {
        n += image->ops[i].durable ? 0 : 1;
    }
    return n;
}

static void choose_names(const struct image *image, struct choice *choice,
                         struct names *names)
{
    size_t kept = uncertain_ops(image), seen = 0;

    if (choice->way == WAY_NONE) {
        kept = 0;
    } else if (choice->way != WAY_ALL && choice->way != WAY_TORN) {
        kept = (size_t)draw(choice, kept + 1);
    }
    for (size_t i = 0; i < image->n_ops; i++) {
        const struct folder_op *op = &image->ops[i];

        if (op->durable || seen++ < kept) {
            apply(names, op);
        }
    }
}

static void build_names(const struct image *image, struct choice *choice,
                        const struct names *names, const char *root)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < names->n; i++) {
        const struct folder_op *op = names->at[i];

        (void)snprintf(path, sizeof path, "%s/%s", root, op->path);
        if (op->kind == LOG_MKDIR) {
            CHECK(mkdir(path, 0700) == 0);
        } else {
            build_file(image, choice, op->file, path);
        }
    }
}

void image_build(const struct image *image, enum way way, uint64_t seed,
                 const char *root)
{
    static const uint64_t keep_permille[] = {500, 100, 900, 500};
    struct choice choice = {.way = way, .random = seed};
    struct names names = {.n = 0};

    choice.keep_permille = keep_permille[draw(&choice, 4)];
    tmpdir_remove(root);
    CHECK(mkdir(root, 0700) == 0);
    choose_names(image, &choice, &names);
    build_names(image, &choice, &names, root);
}
