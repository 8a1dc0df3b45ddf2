/* SPDX-License-Identifier: MIT */
/*
 * onced_checker [-n MAX] [FILE...]
 *
 * Judges a ledger (ledger.h) by the checks of checker.h. Several files are
 * parts of one ledger and are merged by their times; lines of one time are
 * taken in the order of the files. Without a file it reads its standard input.
 * Tells the first MAX findings (10) with all that is known of their events.
 *
 * Exit: 0 nothing is broken, 1 safety (C1 to C8), 2 liveness alone (C9), 64
 * usage, 65 the ledger is malformed, 66 no such file, 74 it cannot be read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "checker/checker.h"
#include "checker/ledger_read.h"

/* One file, and the line of it that is to be taken next. */
struct part {
    const char *name;
    FILE *file;
    char *line;
    size_t cap;
    ssize_t len; /* < 0: at its end */
    int64_t t_ms;
    uint64_t number;
};

struct merge {
    struct part *parts;
    size_t n;
    struct ledger_reader reader;
};

/* Routes come before everything, the export behind. */
static bool find_time(struct merge *merge, struct part *part, struct err *err)
{
    struct slice text = {part->line, (size_t)part->len};
    struct ledger_line line;

    if (merge->n == 1 || slice_trim(text).data[0] == '\n') {
        return true; /* nothing to be merged */
    }
    if (!ledger_read(&merge->reader, text, &line, err)) {
        return false;
    }
    if (!ledger_line_time(&line, &part->t_ms)) {
        part->t_ms = line.kind == LINE_ROUTE ? INT64_MIN : INT64_MAX;
    }
    return true;
}

static bool read_line(struct merge *merge, struct part *part, struct err *err)
{
    errno = 0;
    part->len = getline(&part->line, &part->cap, part->file);
    if (part->len < 0) {
        return feof(part->file) ||
               err_set(err, ERR_IO, "read: %s", strerror(errno));
    }
    part->number++;
    return find_time(merge, part, err);
}

static bool open_part(struct merge *merge, struct part *part, const char *name,
                      struct err *err)
{
    part->name = name == NULL ? "standard input" : name;
    part->file = name == NULL ? stdin : fopen(name, "re");
    if (part->file == NULL) {
        return err_set(err, ERR_NOT_FOUND, "%s: %s", name, strerror(errno));
    }
    return read_line(merge, part, err) ||
           err_wrap(err, "%s:%" PRIu64, part->name, part->number);
}

static struct part *next_part(struct merge *merge)
{
    struct part *next = NULL;

    for (size_t i = 0; i < merge->n; i++) {
        struct part *part = &merge->parts[i];

        if (part->len >= 0 && (next == NULL || part->t_ms < next->t_ms)) {
            next = part;
        }
    }
    return next;
}

static bool feed_all(struct merge *merge, struct checker *checker,
                     struct err *err)
{
    struct part *part;

    while ((part = next_part(merge)) != NULL) {
        struct slice line = {part->line, (size_t)part->len};

        if (!checker_feed(checker, line, err) || !read_line(merge, part, err)) {
            return err_wrap(err, "%s:%" PRIu64, part->name, part->number);
        }
    }
    return true;
}

static void merge_free(struct merge *merge)
{
    for (size_t i = 0; i < merge->n; i++) {
        if (merge->parts[i].file != NULL) {
            (void)fclose(merge->parts[i].file); /* it was only read */
        }
        free(merge->parts[i].line);
    }
    free(merge->parts);
    ledger_reader_fini(&merge->reader);
}

static bool feed_files(struct checker *checker, char **names, size_t n,
                       struct err *err)
{
    struct merge merge = {
        .n = n == 0 ? 1 : n,
        .reader = LEDGER_READER_INIT,
    };
    bool ok = true;

    merge.parts = mem_new(merge.n, sizeof *merge.parts);
    for (size_t i = 0; ok && i < merge.n; i++) {
        ok = open_part(&merge, &merge.parts[i], n == 0 ? NULL : names[i], err);
    }
    ok = ok && feed_all(&merge, checker, err);
    merge_free(&merge);
    return ok;
}

/* --- telling -----------------------------------------------------------------
 */

static void tell_findings(const struct checker *checker, uint64_t max)
{
    struct buf text = BUF_INIT;
    size_t n;
    const struct checker_finding *all = checker_findings(checker, &n);

    for (size_t i = 0; i < n && i < max; i++) {
        buf_printf(&text, "%s ", checker_check_name(all[i].check));
        checker_put_name(all[i].event, &text);
        buf_printf(&text, ": %s\n", all[i].why);
        if (all[i].event != NULL) {
            checker_put_story(all[i].event, &text);
        }
    }
    (void)fwrite(text.data, 1, text.len, stdout); /* the exit code tells too */
    buf_free(&text);
}

static void tell_summary(const struct checker *checker)
{
    struct checker_summary all = checker_summary(checker);
    const char *before = "broken:";

    printf("%" PRIu64 " events, %" PRIu64 " acknowledged, %" PRIu64
           " exported; %" PRIu64 " invocations, %" PRIu64
           " of them further ones; %" PRIu64 " crashes, %" PRIu64 " orders\n",
           all.events, all.acknowledged, all.exported, all.invocations,
           all.further, all.crashes, all.orders);
    if (all.messages > 0) {
        printf("%" PRIu64 " messages, %" PRIu64 " of them committed; %" PRIu64
               " events moved to another worker, %" PRIu64
               " invocations followed one of another store\n",
               all.messages, all.committed, all.moved, all.again);
    }
    for (enum checker_check i = CHECKER_C1; i <= CHECKER_C9; i++) {
        uint64_t total = checker_total(checker, i);

        if (total > 0) {
            printf("%s %s (%" PRIu64 ")", before, checker_check_name(i), total);
            before = ",";
        }
    }
    puts(*before == ',' ? "" : "nothing is broken");
}

static int judge(char **names, size_t n, uint64_t max)
{
    struct checker *checker = checker_new();
    enum checker_verdict verdict = CHECKER_OK;
    struct err err = {ERR_NONE, ""};
    int code;

    if (feed_files(checker, names, n, &err) &&
        checker_finish(checker, &verdict, &err)) {
        tell_findings(checker, max);
        tell_summary(checker);
        code = (int)verdict;
    } else {
        (void)fprintf(stderr, "onced_checker: %s\n", err.text);
        code = (int)err.kind;
    }
    checker_free(&checker);
    return code;
}

int main(int argc, char **argv)
{
    uint64_t max = 10;
    int option;

    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option != 'n' || !text_u64(slice_of(optarg), &max)) {
            (void)fprintf(stderr, "usage: onced_checker [-n MAX] [FILE...]\n");
            return ERR_USAGE;
        }
    }
    return judge(argv + optind, (size_t)(argc - optind), max);
}
