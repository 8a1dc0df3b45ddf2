/* SPDX-License-Identifier: MIT */
#include "app/cli.h"

#include <criterion/criterion.h>

#include "support/operator.h"

enum { ARGS_MAX = 12 };

/* One command, run in a folder of its own. */
struct run {
    int status;
    char *out, *err;
};

static struct run run(const char *const *args)
{
    struct run run = {.out = NULL};
    char *argv[ARGS_MAX + 1] = {NULL};
    size_t out_len, err_len;
    FILE *out = open_memstream(&run.out, &out_len);
    FILE *err = open_memstream(&run.err, &err_len);
    int argc = 0;

    argv[argc++] = (char *)"onced";
    for (; *args != NULL; args++) {
        CHECK(argc < ARGS_MAX);
        argv[argc++] = (char *)*args;
    }
    run.status = cli_run(argc, argv, out, err);
    CHECK(fclose(out) == 0);
    CHECK(fclose(err) == 0);
    return run;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void run_free(struct run *run)
{
    free(run->out);
    free(run->err);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[160];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
}

static void expect(struct run got, int status, const char *out, const char *err)
{
    cr_expect(got.status == status, "status %d: %s%s", got.status, got.out,
              got.err);
    cr_expect(strstr(got.out, out) != NULL, "out: %s, not %s", got.out, out);
    cr_expect(strstr(got.err, err) != NULL, "err: %s, not %s", got.err, err);
    run_free(&got);
}

Test(cli, mistakes_in_the_words_are_told_with_a_hint)
{
    static const struct {
        const char *args[8];
        const char *says;
    } rows[] = {
        {{NULL}, "onced: a command is missing; see onced --help\n"},
        {{"evnts"}, "onced: unknown command evnts; see onced --help\n"},
        {{"help", "evnts"}, "onced: unknown command evnts; see onced --help\n"},
        {{"events", "--rout", "a"},
         "onced: unknown option --rout; see onced events --help\n"},
        {{"status", "--route", "a"}, "unknown option --route"},
        {{"events", "-x"}, "unknown option -x"},
        {{"events", "--route"}, "--route needs a value: ROUTE"},
        {{"events", "--json=yes"}, "--json takes no value"},
        {{"events", "--json", "--json"}, "--json is given twice"},
        {{"events", "a"}, "one word too many: a"},
        {{"show", "a"}, "ROUTE ID is missing"},
        {{"show", "a", "b", "c"}, "one word too many: c"},
        {{"backup"}, "DIR is missing"},
        {{"backup", ""}, "DIR is empty"},
        {{"backup", "a", "b"}, "one word too many: b"},
        {{"replay"}, "give ROUTE ID, --dead, or --from-topic TOPIC"},
        {{"replay", "a", "b", "--max-replays", "1"}, "go with --from-topic"},
        {{"replay", "--dead", "--cluster", "main"}, "go with --from-topic"},
        {{"replay", "--from-topic", "t", "a", "b"}, "goes with no ROUTE ID"},
        {{"replay", "--from-topic", "t", "--wait"}, "goes with no ROUTE ID"},
        {{"replay", "--from-topic", "t", "--rate", "0"}, "must be like 50/s"},
        {{"replay", "--from-topic", "t", "--max-replays", "0"},
         "number from 1"},
        {{"replay", "--from-topic", "t", "--until", "x"}, "--until: \"x\" is"},
        {{"replay", "a", "b", "--since", "1h"}, "filters go with --dead"},
        {{"replay", "--dead", "a", "b"}, "--dead goes with no ROUTE ID"},
        {{"replay", "--dead", "--rate", "fast"}, "--rate must be like 50/s"},
        {{"replay", "--dead", "--limit", "0"}, "--limit must be a number"},
        {{"resolve", "a", "b"}, "give one of --applied and --not-applied"},
        {{"resolve", "a", "b", "--not-applied", "--status", "200"},
         "--status and --body go with --applied"},
        {{"resolve", "a", "b", "--applied", "--status", "99"},
         "--status must be 200 to 599"},
        {{"sign", "-"}, "give one of --route and --scheme"},
        {{"sign", "--scheme", "github", "-"}, "--scheme needs --secret-file"},
        {{"docs", "nothing"}, "there is no page nothing"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect(run(rows[i].args), 64, "", rows[i].says);
    }
}

static size_t widest_line(const char *text)
{
    size_t widest = 0;

    while (*text != '\0') {
        size_t len = 0;

        for (; *text != '\0' && *text != '\n'; text++) {
            len += ((unsigned char)*text & 0xc0) != 0x80 ? 1 : 0;
        }
        widest = len > widest ? len : widest;
        text += *text == '\n' ? 1 : 0;
    }
    return widest;
}

Test(cli, every_command_has_help_that_fits_a_terminal)
{
    struct run overview = RUN("--help");
    const char *line = overview.out;
    int commands = 0;

    cr_assert(overview.status == 0);
    cr_expect(widest_line(overview.out) <= 80);
    while ((line = strstr(line, "\n  ")) != NULL) {
        char name[32];
        struct run help;

        cr_assert(sscanf(line, " %31s", name) == 1);
        help = RUN(name, "--help");
        cr_expect(help.status == 0);
        cr_expect(strstr(help.out, name) != NULL, "%s", help.out);
        cr_expect(widest_line(help.out) <= 80, "%s", help.out);
        run_free(&help);
        commands++;
        line += 3;
    }
    cr_expect(commands >= 16);
    run_free(&overview);
}

Test(cli, version_is_that_of_the_build)
{
    expect(RUN("version"), 0, "onced " ONCED_VERSION "\n", "");
    expect(RUN("--version"), 0, "onced " ONCED_VERSION "\n", "");
    expect(RUN("version", "--json"), 0, "{\"version\":\"" ONCED_VERSION "\"}\n",
           "");
}

Test(cli, check_tells_the_version_of_the_kafka_library)
{
    char folder[] = "/tmp/onced-cli-XXXXXX";
    char path[64], says[64];

    CHECK(mkdtemp(folder) != NULL);
    write_file(folder, "kafka.json",
               "{\"kafka\": {\"bootstrap.servers\": \"k:9092\"},"
               " \"routes\": [{\"name\": \"a\", \"retired\": true}]}");
    (void)snprintf(path, sizeof path, "%s/kafka.json", folder);
    (void)snprintf(says, sizeof says, "kafka.json: ok, 1 route, librdkafka %s",
                   rd_kafka_version_str());
    expect(RUN("check", "-c", path), 0, says,
           kafka_version_problem() == NULL ? "" : "warning: librdkafka ");
    (void)snprintf(says, sizeof says, "\"librdkafka\":\"%s\"",
                   rd_kafka_version_str());
    expect(RUN("check", "-c", path, "--json"), 0, says, "");
    expect(RUN("check", "-c", path, "--json"), 0,
           kafka_version_problem() == NULL ? "\"warnings\":[]"
                                           : "\"warnings\":[\"librdkafka ",
           "");
    CHECK(unlink(path) == 0);
    CHECK(rmdir(folder) == 0);
}

/* What librdkafka tells only when it makes a client. */
Test(cli, check_makes_the_clients_of_the_clusters)
{
    char folder[] = "/tmp/onced-cli-XXXXXX";
    char path[64];

    CHECK(mkdtemp(folder) != NULL);
    write_file(folder, "kafka.json",
               "{\"kafka\": {\"bootstrap.servers\": \"k:9092\","
               "  \"session.timeout.ms\": 400000},"
               " \"clusters\": {\"good\": {\"bootstrap.servers\": \"g:9092\"},"
               "  \"tls\": {\"bootstrap.servers\": \"t:9092\","
               "   \"security.protocol\": \"ssl\","
               "   \"ssl.ca.location\": \"nowhere.pem\"}},"
               " \"routes\": [{\"name\": \"a\", \"retired\": true}]}");
    (void)snprintf(path, sizeof path, "%s/kafka.json", folder);
    expect(RUN("check", "-c", path), 78, "",
           "onced: /kafka: `max.poll.interval.ms`must be >= "
           "`session.timeout.ms`\n"
           "onced: /clusters/tls: ssl.ca.location failed");
    expect(RUN("check", "-c", path, "--effective"), 78, "", "/clusters/tls: ");
    expect(RUN("check", "-c", path, "--json"), 78,
           "\"problems\":[\"/kafka: `max.poll", "");
    CHECK(unlink(path) == 0);
    CHECK(rmdir(folder) == 0);
}

Test(cli, check_tells_every_problem_and_where_it_stands)
{
    char folder[] = "/tmp/onced-cli-XXXXXX";
    char good[64], bad[64];

    CHECK(mkdtemp(folder) != NULL);
    write_file(
        folder, "good.json",
        "{\"routes\": [{\"name\": \"a\", \"source\": {\"http\":"
        " {\"path\": \"/a\"}}, \"verify\": \"none\", \"id\": \"json:/id\","
        " \"handler\": {\"noop\": {}}}]}");
    write_file(folder, "bad.json",
               "{\"store\": 1, \"routes\": [{\"name\": \"a\", \"sauce\": 1}]}");
    (void)snprintf(good, sizeof good, "%s/good.json", folder);
    (void)snprintf(bad, sizeof bad, "%s/bad.json", folder);
    expect(RUN("check", "-c", good), 0, "good.json: ok, 1 route\n", "");
    expect(RUN("check", "-c", good, "--effective"), 0, "\"retention\"", "");
    expect(RUN("check", "-c", bad), 78, "", "onced: /store: ");
    expect(RUN("check", "-c", bad), 78, "", "onced: /routes/0/sauce: ");
    expect(RUN("check", "-c", bad, "--json"), 78, "\"ok\":false", "");
    expect(RUN("check", "-c", "/nonexistent/x.json"), 66, "", "x.json");
    CHECK(unlink(good) == 0);
    CHECK(unlink(bad) == 0);
    CHECK(rmdir(folder) == 0);
}

/* The example in GitHub's documentation of X-Hub-Signature-256. */
static const char *const github_signature =
    "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

Test(cli, sign_and_verify_agree_with_a_published_example)
{
    char folder[] = "/tmp/onced-cli-XXXXXX";
    char body[64], secret[64], headers[64], wrong[64];
    char lines[160];

    CHECK(mkdtemp(folder) != NULL);
    write_file(folder, "body", "Hello, World!");
    write_file(folder, "secret", "It's a Secret to Everybody\n");
    (void)snprintf(lines, sizeof lines, "X-Hub-Signature-256: %s\r\n",
                   github_signature);
    write_file(folder, "headers", lines);
    write_file(folder, "wrong", "X-Hub-Signature-256: sha256=00\n");
    (void)snprintf(body, sizeof body, "%s/body", folder);
    (void)snprintf(secret, sizeof secret, "%s/secret", folder);
    (void)snprintf(headers, sizeof headers, "%s/headers", folder);
    (void)snprintf(wrong, sizeof wrong, "%s/wrong", folder);
    expect(RUN("sign", "--scheme", "github", "--secret-file", secret, body), 0,
           github_signature, "");
    expect(RUN("sign", "--scheme", "github", "--secret-file", secret, "--curl",
               "--url", "http://x/it's", body),
           0, "'http://x/it'\\''s'", "");
    expect(RUN("verify", "--scheme", "github", "--secret-file", secret,
               "--headers", headers, body),
           0, "ok\n", "");
    expect(RUN("verify", "--scheme", "github", "--secret-file", secret,
               "--headers", wrong, body),
           65, "m", "");
    expect(RUN("verify", "--scheme", "github", "--secret-file", secret, body),
           64, "", "--headers is missing");
    CHECK(unlink(body) == 0);
    CHECK(unlink(secret) == 0);
    CHECK(unlink(headers) == 0);
    CHECK(unlink(wrong) == 0);
    CHECK(rmdir(folder) == 0);
}

/* A configuration that leads to the office; it cannot run a worker, as an
 * operator's need not: the secret is not there. */
static void write_config(const struct office *office, char file[96])
{
    char text[512];

    (void)snprintf(text, sizeof text,
                   "{ \"store\": { \"path\": \"store\" }, // comment\n"
                   "  \"admin\": { \"socket\": \"admin.sock\" },\n"
                   "  \"routes\": [ { \"name\": \"a\", \"verify\": {\"scheme\":"
                   " \"github\", \"secrets\": [{\"env\": \"NOT_THERE_1\"}]}},\n"
                   "  { \"name\": \"b\" } ] }");
    write_file(office->world.dir, "onced.json", text);
    (void)snprintf(file, 96, "%s/onced.json", office->world.dir);
}

Test(cli, orders_exit_by_what_they_did)
{
    struct office office;
    char file[96];

    office_init(&office);
    world_close(&office.world);
    office.world.routes[1].policy.on_uncertain = ON_UNCERTAIN_HOLD;
    world_open(&office.world);
    (void)world_deliver(&office.world, 0, "fine", "{}");
    world_end(&office.world, "fine", END_STATUS, 200);
    (void)world_deliver(&office.world, 0, "dead", "{}");
    world_end(&office.world, "dead", END_STATUS, 404);
    (void)world_deliver(&office.world, 1, "doubt", "{}");
    world_end(&office.world, "doubt", END_TIMEOUT, 0);
    write_config(&office, file);
    office_open(&office);
    expect(RUN("status", "-c", file), 0, "ROUTE  PENDING", "");
    expect(RUN("replay", "-c", file, "a", "fine"), 0,
           "a fine: nothing-to-do: ", "");
    expect(RUN("replay", "-c", file, "a", "dead", "--dry-run"), 0,
           "a dead: dry run, done: ", "");
    expect(RUN("replay", "-c", file, "b", "doubt"), 75,
           "b doubt: in-doubt: ", "");
    expect(RUN("replay", "-c", file, "a", "nothing"), 66, "", "event");
    expect(RUN("replay", "-c", file, "--dead", "--dry-run"), 75,
           "2 matched, 1 would be replayed, 1 skipped in doubt", "");
    expect(RUN("replay", "-c", file, "--dead", "--reason", "refused"), 0,
           "1 matched, 1 replayed, 0 skipped in doubt", "");
    expect(RUN("resolve", "-c", file, "b", "doubt", "--applied"), 0,
           "; SUCCEEDED", "");
    expect(RUN("discard", "-c", file, "a", "fine"), 0,
           "a fine: nothing-to-do: ", "");
    expect(RUN("rerun", "-c", file, "a", "dead"), 65, "a dead: refused: ", "");
    expect(RUN("pause", "-c", file, "c"), 66, "", "no route \"c\"");
    expect(RUN("events", "-c", file, "--state", "X"), 64, "", "PENDING");
    expect(RUN("events", "-c", file, "--group-by", "state"), 0, "SUCCEEDED",
           "");
    office_close(&office);
    office_fini(&office);
}

Test(cli, the_store_of_a_stopped_worker_is_read_directly)
{
    struct office office;
    char file[96];
    struct run online, offline;

    office_init(&office);
    (void)world_deliver(&office.world, 0, "fine", "{\"n\":1}");
    world_end(&office.world, "fine", END_STATUS, 200);
    write_config(&office, file);
    office_open(&office);
    online = RUN("show", "-c", file, "a", "fine", "--json");
    office_close(&office);
    world_close(&office.world);
    offline = RUN("show", "-c", file, "a", "fine", "--json");
    cr_expect(online.status == 0);
    cr_expect(offline.status == 0, "%s", offline.err);
    cr_expect_str_eq(online.out, offline.out);
    run_free(&online);
    run_free(&offline);
    expect(RUN("events", "-c", file, "--route", "a"), 0, "SUCCEEDED  a", "");
    expect(RUN("show", "-c", file, "a", "nothing"), 66, "", "no event");
    expect(RUN("verify-store", "-c", file), 0, ": ok\n", "");
    expect(RUN("status", "-c", file), 69, "", office.socket);
    expect(RUN("pause", "-c", file, "a"), 69, "", office.socket);
    world_fini(&office.world);
}

Test(cli, what_came_from_outside_cannot_steer_the_terminal)
{
    struct office office;
    char file[96];
    struct run shown;

    office_init(&office);
    (void)world_deliver(&office.world, 0, "evil",
                        "\x1b[2J\xc2\x9b"
                        "31m");
    write_config(&office, file);
    office_open(&office);
    shown = RUN("show", "-c", file, "a", "evil");
    cr_expect(shown.status == 0);
    cr_expect(strstr(shown.out, "?[2J?31m") != NULL, "%s", shown.out);
    run_free(&shown);
    office_close(&office);
    office_fini(&office);
}
