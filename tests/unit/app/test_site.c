/* SPDX-License-Identifier: MIT */
#include "app/site.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/tmpdir.h"

static const char text[] =
    "{ \"kafka\": { \"bootstrap.servers\": \"one:9092\",\n"
    "    \"sasl.password\": { \"env\": \"TEST_SITE_PASSWORD\" } },\n"
    "  \"clusters\": {\n"
    "    \"main\": { \"bootstrap.servers\": \"two:9092\",\n"
    "                \"linger.ms\": 7 },\n"
    "    \"bad\": { \"bootstrap.servers\": \"two:9092\",\n"
    "               \"acks\": \"hush-hush\" },\n"
    "    \"locked\": { \"bootstrap.servers\": \"three:9092\",\n"
    "                  \"sasl.password\": { \"env\": \"TEST_SITE_NONE\" } } "
    "},\n"
    "  \"routes\": [ { \"name\": \"a mistake\" } ] }";

static char folder[PATH_MAX];

static struct site open_site(void)
{
    char path[PATH_MAX + 16];
    struct site site;
    struct err err;
    FILE *file;

    tmpdir_make(folder);
    (void)snprintf(path, sizeof path, "%s/onced.json", folder);
    file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
    cr_assert(site_open(&site, path, &err), "%s", err.text);
    return site;
}

static void expect_cluster(const struct site *site, const char *name,
                           const char *servers, const char *setting,
                           const char *value)
{
    struct config *config;
    struct err err;

    cr_assert(site_cluster(site, name, &config, &err), "%s", err.text);
    cr_assert_eq(config->n_all_clusters, 1);
    cr_expect_str_eq(config->all_clusters[0].name,
                     name == NULL ? "default" : name);
    cr_expect_str_eq(
        kafka_cluster_setting(&config->all_clusters[0], "bootstrap.servers"),
        servers);
    cr_expect_str_eq(kafka_cluster_setting(&config->all_clusters[0], setting),
                     value);
    config_free(config);
}

Test(site, one_cluster_is_read_whatever_the_others_need)
{
    struct site site = open_site();

    CHECK(setenv("TEST_SITE_PASSWORD", "of one", 1) == 0);
    CHECK(unsetenv("TEST_SITE_NONE") == 0);
    expect_cluster(&site, NULL, "one:9092", "sasl.password", "of one");
    expect_cluster(&site, "default", "one:9092", "sasl.password", "of one");
    expect_cluster(&site, "main", "two:9092", "linger.ms", "7");
    site_close(&site);
    tmpdir_remove(folder);
}

Test(site, a_cluster_that_cannot_be_read_is_told_and_no_value_with_it)
{
    struct site site = open_site();
    struct config *config;
    struct err err;

    CHECK(unsetenv("TEST_SITE_NONE") == 0);
    cr_assert_not(site_cluster(&site, "other", &config, &err));
    cr_expect_eq(err.kind, ERR_NOT_FOUND);
    cr_expect(strstr(err.text, "\"other\"") != NULL, "%s", err.text);
    cr_assert_not(site_cluster(&site, "locked", &config, &err));
    cr_expect_eq(err.kind, ERR_CONFIG);
    cr_expect(strstr(err.text, "/clusters/locked/sasl.password") != NULL, "%s",
              err.text);
    cr_assert_not(site_cluster(&site, "bad", &config, &err));
    cr_expect_eq(err.kind, ERR_CONFIG);
    cr_expect(strstr(err.text, "/clusters/bad/acks") != NULL, "%s", err.text);
    cr_expect(strstr(err.text, "hush-hush") == NULL, "%s", err.text);
    site_close(&site);
    tmpdir_remove(folder);
}
