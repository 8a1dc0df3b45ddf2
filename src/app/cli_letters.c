/* SPDX-License-Identifier: MIT */
/* `onced replay --from-topic`: dead letters are read back from a topic, and
 * those that match go to the worker, one by one. */
#include <string.h>

#include "app/cli_internal.h"
#include "app/letter.h"
#include "app/listing.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "kafka/reader.h"

enum { MAX_REPLAYS = 3, BUSY_WAIT_MS = 200, BUSY_TRIES = 50 };

/* What may come of a letter that matches. The first ones are the worker's
 * results (docs/api.md). */
static const struct {
    const char *result;
    const char *count; /* its name in JSON */
    const char *words; /* and in the last line, where it is not 0 */
} outcomes[] = {
    {"replayed", "replayed", "replayed"},
    {"delivered", "delivered", "delivered as new events"},
    {"nothing-to-do", "nothing_to_do", "already handled, or under way"},
    {"in-doubt", "skipped_in_doubt", "skipped in doubt"},
    {"skipped", "skipped_max_replays", "skipped that were replayed before"},
    {"other-topic", "skipped_other_topic", "skipped of other topics"},
    {"refused", "refused", "refused"},
    {"repeat", "skipped_repeats", "skipped as others of the same event"},
    {"failed", "failed", "failed"},
};
enum { OUTCOMES = sizeof outcomes / sizeof outcomes[0] };

struct letters {
    struct cli *cli;
    struct site site;
    struct letter_filter filter;
    struct letter_order order;
    uint64_t per_second; /* 0: as fast as it goes */
    int64_t next_us;     /* no order before then */
    json_t *done;        /* names of events that were replayed, as members */
    uint64_t messages, others, matched, counts[OUTCOMES];
};

static void set(json_t *object, const char *name, json_t *value)
{
    CHECK(json_object_set_new(object, name, value) == 0);
}

static const char *get(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text == NULL ? "" : text;
}

/* --- telling ------------------------------------------------------------- */

static bool is_json(const struct letters *letters)
{
    return letters->cli->values[CLI_JSON] != NULL;
}

/* "dead/0/17: orders evt_1: dry run, replayed: due now" */
static void tell_line(const struct letters *letters, const json_t *line)
{
    const char *id = get(line, "id"), *result = get(line, "result");
    const char *why = get(line, "why");
    bool says_more = strcmp(why, result) != 0;
    FILE *out = letters->cli->out;

    (void)fprintf(
        out, "%s/%lld/%lld: ", get(line, "topic"),
        (long long)json_integer_value(json_object_get(line, "partition")),
        (long long)json_integer_value(json_object_get(line, "offset")));
    if (id[0] != '\0') {
        (void)fprintf(out, "%s %s: ", get(line, "route"), id);
    }
    (void)fprintf(out, "%s%s%s%s\n", letters->order.dry_run ? "dry run, " : "",
                  result, says_more ? ": " : "", says_more ? why : "");
}

/* Counts it and tells it; the line has a result, and is consumed. */
static void note(struct letters *letters, const struct envelope *message,
                 const struct kafka_dead_letter *letter, json_t *line)
{
    size_t i = 0;

    while (strcmp(outcomes[i].result, get(line, "result")) != 0) {
        i++;
        CHECK(i < OUTCOMES);
    }
    letters->counts[i]++;
    set(line, "topic", json_stringn(message->topic.data, message->topic.len));
    set(line, "partition", json_integer(message->partition));
    set(line, "offset", json_integer(message->offset));
    set(line, "writer", json_string(letter_writer_name(letter->writer)));
    if (is_json(letters)) {
        (void)fputs(letters->matched > 1 ? "," : "", letters->cli->out);
        (void)json_dumpf(line, letters->cli->out, JSON_COMPACT);
    } else {
        tell_line(letters, line);
    }
    json_decref(line);
}

static json_t *line_of(const struct kafka_dead_letter *letter,
                       const char *result, const char *why)
{
    json_t *line = json_pack("{s:s, s:s}", "result", result, "why", why);

    CHECK(line != NULL);
    if (letter->writer == KAFKA_DEAD_LETTER_ONCED &&
        letter_problem(letter, NULL) == NULL) {
        set(line, "route", json_stringn(letter->route.data, letter->route.len));
        set(line, "id", json_stringn(letter->id.data, letter->id.len));
    }
    return line;
}

static void tell_counts(const struct letters *letters)
{
    FILE *out = letters->cli->out;

    (void)fprintf(out, "%llu read, %llu matched",
                  (unsigned long long)letters->messages,
                  (unsigned long long)letters->matched);
    for (size_t i = 0; i < OUTCOMES; i++) {
        if (letters->counts[i] > 0) {
            (void)fprintf(out, ", %llu %s",
                          (unsigned long long)letters->counts[i],
                          outcomes[i].words);
        }
    }
    if (letters->others > 0) {
        (void)fprintf(out, ", %llu no dead letters",
                      (unsigned long long)letters->others);
    }
    (void)fputs(letters->order.dry_run ? "; nothing was done\n" : "\n", out);
}

static void tell_json_end(const struct letters *letters, bool is_whole)
{
    json_t *counts = json_pack("{s:I, s:I, s:I, s:b, s:b}", "messages",
                               (json_int_t)letters->messages, "not_letters",
                               (json_int_t)letters->others, "matched",
                               (json_int_t)letters->matched, "dry_run",
                               letters->order.dry_run, "cut_short", !is_whole);

    CHECK(counts != NULL);
    for (size_t i = 0; i < OUTCOMES; i++) {
        set(counts, outcomes[i].count,
            json_integer((json_int_t)letters->counts[i]));
    }
    (void)fputs("],\"counts\":", letters->cli->out);
    (void)json_dumpf(counts, letters->cli->out, JSON_COMPACT);
    (void)fputs("}\n", letters->cli->out);
    json_decref(counts);
}

/* --- asking the worker --------------------------------------------------- */

static bool ask(const struct letters *letters, const json_t *body,
                json_t **answer, struct err *err)
{
    const struct client_request request = {.socket = letters->site.socket,
                                           .target = "/v1/replay/letter",
                                           .body = body};

    for (int i = 0; !cli_call(&request, answer, err); i++) {
        if (err->kind != ERR_AGAIN || i == BUSY_TRIES) {
            return false;
        }
        cli_sleep_ms(BUSY_WAIT_MS);
    }
    return true;
}

/* The letter is what is wrong, so that the next one may go. */
static bool is_of_letter(const struct err *err)
{
    return err->kind == ERR_USAGE || err->kind == ERR_NOT_FOUND;
}

/* Whether the letter of somebody else has the id that is looked for, as the
 * worker reads it. */
static bool has_id(const struct letters *letters, json_t *body, bool *out,
                   struct err *err)
{
    json_t *answer = NULL;
    bool ok;

    set(body, "dry_run", json_true());
    ok = ask(letters, body, &answer, err);
    set(body, "dry_run", json_boolean(letters->order.dry_run));
    *out = ok && strcmp(get(answer, "id"), letters->filter.id) == 0;
    json_decref(answer);
    return ok || is_of_letter(err);
}

static void wait_turn(struct letters *letters)
{
    int64_t now_us = clock_boot_ms(clock_system()) * 1000;

    if (letters->per_second == 0 || letters->order.dry_run) {
        return;
    }
    if (letters->next_us > now_us) {
        cli_sleep_ms((letters->next_us - now_us) / 1000);
    } else {
        letters->next_us = now_us;
    }
    letters->next_us += INT64_C(1000000) / (int64_t)letters->per_second;
}

/* --- one letter ---------------------------------------------------------- */

static bool is_run(const json_t *answer)
{
    return strcmp(get(answer, "result"), "replayed") == 0 ||
           strcmp(get(answer, "result"), "delivered") == 0;
}

/* An event that died more than once has a letter for each time, and may have
 * died again since the first one was replayed: once is what was asked for. */
static bool order_once(struct letters *letters, const struct envelope *message,
                       const struct kafka_dead_letter *letter,
                       const json_t *body, struct err *err)
{
    struct buf name = BUF_INIT;
    json_t *line = NULL;
    bool ok = true;

    letters->matched++;
    letter_put_name(letter, &name);
    if (json_object_get(letters->done, buf_cstr(&name)) != NULL) {
        line = line_of(letter, "repeat", "another letter of it was replayed");
    } else {
        wait_turn(letters);
        ok = ask(letters, body, &line, err);
    }
    if (!ok && is_of_letter(err)) {
        line = line_of(letter, "failed", err->text);
        ok = true;
    }
    if (ok && is_run(line)) {
        set(letters->done, buf_cstr(&name), json_true());
    }
    buf_free(&name);
    if (ok) {
        note(letters, message, letter, line);
    }
    return ok;
}

static bool order(struct letters *letters, const struct envelope *message,
                  struct kafka_dead_letter *letter, struct err *err)
{
    const char *problem = letter_problem(letter, letters->order.route);
    bool is_meant = true, ok = true;
    json_t *body;

    if (problem != NULL) {
        letters->matched++;
        note(letters, message, letter, line_of(letter, "failed", problem));
        return true;
    }
    body = letter_body(letter, &letters->order);
    if (letters->filter.id != NULL &&
        letter->writer != KAFKA_DEAD_LETTER_ONCED) {
        ok = has_id(letters, body, &is_meant, err);
    }
    if (ok && is_meant) {
        ok = order_once(letters, message, letter, body, err);
    }
    json_decref(body);
    return ok;
}

static bool take(struct letters *letters, const struct envelope *message,
                 struct err *err)
{
    struct kafka_dead_letter letter;
    bool ok = true;

    letters->messages++;
    if (!kafka_dead_letter_read(message, &letter)) {
        letters->others++;
    } else if (letter_matches(&letters->filter, &letter, message)) {
        ok = order(letters, message, &letter, err);
    }
    kafka_dead_letter_free(&letter);
    return ok;
}

/* --- all of them --------------------------------------------------------- */

static bool take_all(struct letters *letters, struct kafka_reader *reader,
                     struct err *err)
{
    struct envelope message;

    for (;;) {
        switch (kafka_reader_next(reader, &message, err)) {
        case KAFKA_READ:
            if (!take(letters, &message, err)) {
                return false;
            }
            break;
        case KAFKA_READ_END:
            return true;
        case KAFKA_READ_FAILED:
            return false;
        }
    }
}

static bool read_topic(struct letters *letters,
                       const struct kafka_cluster *cluster, struct err *err)
{
    struct cli *cli = letters->cli;
    struct kafka_reader *reader;
    bool ok;

    if (!kafka_reader_open(&reader, cluster, cli->values[CLI_FROM_TOPIC],
                           err)) {
        return false;
    }
    if (is_json(letters)) {
        (void)fputs("{\"letters\":[", cli->out);
    }
    ok = take_all(letters, reader, err);
    kafka_reader_free(reader);
    if (is_json(letters)) {
        tell_json_end(letters, ok);
    } else {
        tell_counts(letters);
    }
    return ok;
}

/* Before anything is read: the worker is there, and knows the route. */
static bool find_worker(const struct letters *letters, struct err *err)
{
    const struct client_request request = {.socket = letters->site.socket,
                                           .target = "/v1/status"};
    const char *name = letters->filter.route;
    const json_t *route;
    json_t *status;
    bool found = name == NULL;
    size_t i;

    if (!cli_call(&request, &status, err)) {
        return false;
    }
    json_array_foreach(json_object_get(status, "routes"), i, route)
    {
        found = found || strcmp(get(route, "name"), name) == 0;
    }
    json_decref(status);
    return found || err_set(err, ERR_NOT_FOUND, "no route \"%s\"", name);
}

static bool run(struct letters *letters, struct err *err)
{
    struct config *config;
    bool ok;

    if (!site_open(&letters->site, cli_config_file(letters->cli), err) ||
        !find_worker(letters, err) ||
        !site_cluster(&letters->site, letters->cli->values[CLI_CLUSTER],
                      &config, err)) {
        return false;
    }
    ok = read_topic(letters, &config->all_clusters[0], err);
    config_free(config);
    return ok;
}

/* --- what was asked for -------------------------------------------------- */

static bool take_time(const struct cli *cli, enum cli_option option,
                      const char *name, int64_t *out, struct err *err)
{
    return cli->values[option] == NULL ||
           listing_when(name, cli->values[option],
                        clock_wall_ms(clock_system()), out, err);
}

static bool take_max_replays(const struct cli *cli, uint32_t *out,
                             struct err *err)
{
    const char *text = cli->values[CLI_MAX_REPLAYS];
    uint64_t max = MAX_REPLAYS;

    if (text != NULL &&
        (!text_u64(slice_of(text), &max) || max == 0 || max > UINT32_MAX)) {
        return err_set(err, ERR_USAGE, "--max-replays must be a number from 1");
    }
    *out = (uint32_t)max;
    return true;
}

static bool take_options(struct letters *letters, struct err *err)
{
    const struct cli *cli = letters->cli;
    struct letter_filter *filter = &letters->filter;
    struct letter_order *what = &letters->order;

    filter->route = cli->values[CLI_ROUTE];
    filter->reason = cli->values[CLI_REASON];
    filter->id = cli->values[CLI_ID];
    what->route = filter->route;
    what->assume_not_applied = cli->values[CLI_ASSUME_NOT_APPLIED] != NULL;
    what->dry_run = cli->values[CLI_DRY_RUN] != NULL;
    what->why = cli->values[CLI_WHY];
    return take_time(cli, CLI_SINCE, "--since", &filter->since_ms, err) &&
           take_time(cli, CLI_UNTIL, "--until", &filter->until_ms, err) &&
           take_max_replays(cli, &what->max_replays, err) &&
           cli_rate(cli, &letters->per_second, err);
}

static uint64_t count_of(const struct letters *letters, const char *result)
{
    for (size_t i = 0; i < OUTCOMES; i++) {
        if (strcmp(outcomes[i].result, result) == 0) {
            return letters->counts[i];
        }
    }
    UNREACHABLE("every result is counted");
}

static int exit_status(const struct letters *letters)
{
    int finished = cli_finish(letters->cli);

    if (finished != 0) {
        return finished;
    }
    if (count_of(letters, "failed") > 0) {
        return ERR_DATA;
    }
    return count_of(letters, "in-doubt") > 0 ? ERR_AGAIN : 0;
}

int cli_replay_letters(struct cli *cli)
{
    struct letters letters = {.cli = cli, .done = json_object()};
    struct err err;
    int status;

    if (take_options(&letters, &err) && run(&letters, &err)) {
        status = exit_status(&letters);
    } else {
        status = cli_fail(cli, &err);
    }
    site_close(&letters.site);
    json_decref(letters.done);
    return status;
}
