/* SPDX-License-Identifier: MIT */
#include "tool.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"

static void check_groups(const rd_kafka_group_result_t **results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const rd_kafka_error_t *error = rd_kafka_group_result_error(results[i]);
        if (error) {
            tool_die(EX_DATAERR, "%s: %s",
                     rd_kafka_group_result_name(results[i]),
                     rd_kafka_error_string(error));
        }
    }
}

/* --- committed offsets --------------------------------------------------- */

static json_t *committed_of(rd_kafka_event_t *event)
{
    size_t n;
    const rd_kafka_group_result_t **results =
        rd_kafka_ListConsumerGroupOffsets_result_groups(
            rd_kafka_event_ListConsumerGroupOffsets_result(event), &n);
    const rd_kafka_error_t *error = rd_kafka_group_result_error(results[0]);
    if (error) {
        return json_pack("{s:s}", "error", rd_kafka_error_string(error));
    }
    return json_pack(
        "{s:o}", "offsets",
        tool_positions(rd_kafka_group_result_partitions(results[0])));
}

/* One line; false where the group could not be asked. */
static bool say_committed(struct admin *admin, const char *group)
{
    rd_kafka_ListConsumerGroupOffsets_t *wanted =
        rd_kafka_ListConsumerGroupOffsets_new(group, NULL);
    rd_kafka_ListConsumerGroupOffsets(admin->client, &wanted, 1, admin->options,
                                      admin->queue);
    char *error;
    rd_kafka_event_t *event = admin_try(admin, &error);
    json_t *line =
        event ? committed_of(event) : json_pack("{s:s}", "error", error);
    if (event) {
        rd_kafka_event_destroy(event);
    }
    free(error);
    rd_kafka_ListConsumerGroupOffsets_destroy(wanted);
    json_object_set_new(line, "group", json_string(group));
    json_object_set_new(line, "at_wall_ms",
                        json_integer(clock_wall_ms(clock_system())));
    bool is_known = json_object_get(line, "offsets") != NULL;
    tool_say(line);
    tool_flush();
    return is_known;
}

/* True once nobody holds the other end of stdin any more. */
static bool stdin_ended(int wait_ms)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char ignored[256];
    return poll(&in, 1, wait_ms) > 0 && read(in.fd, ignored, 256) <= 0;
}

int groups_committed(const struct tool *tool)
{
    struct admin admin;
    admin_init(&admin, tool);
    bool is_known = say_committed(&admin, tool->args[0]);
    if (tool->n_args > 1) {
        int every_ms = (int)tool_number(tool->args[1], "an interval");
        while (!stdin_ended(every_ms)) {
            is_known = say_committed(&admin, tool->args[0]);
        }
    }
    admin_fini(&admin);
    return is_known ? 0 : EX_UNAVAILABLE;
}

static void resolve(rd_kafka_t *client, rd_kafka_topic_partition_t *at)
{
    if (at->offset >= 0) {
        return;
    }
    int64_t low, high;
    rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        client, at->topic, at->partition, &low, &high, TOOL_TIMEOUT_MS);
    if (code) {
        tool_die(EX_UNAVAILABLE, "%s: %s", at->topic, rd_kafka_err2str(code));
    }
    at->offset = at->offset == RD_KAFKA_OFFSET_END ? high : low;
}

int groups_set_offsets(const struct tool *tool)
{
    struct admin admin;
    admin_init(&admin, tool);
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)tool->n_args);
    for (size_t i = 1; i < tool->n_args; i++) {
        tool_add_position(list, tool->args[i]);
        resolve(admin.client, &list->elems[i - 1]);
    }
    rd_kafka_AlterConsumerGroupOffsets_t *wanted =
        rd_kafka_AlterConsumerGroupOffsets_new(tool->args[0], list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_AlterConsumerGroupOffsets(admin.client, &wanted, 1, admin.options,
                                       admin.queue);
    rd_kafka_event_t *event = admin_wait(&admin);
    size_t n;
    const rd_kafka_group_result_t **results =
        rd_kafka_AlterConsumerGroupOffsets_result_groups(
            rd_kafka_event_AlterConsumerGroupOffsets_result(event), &n);
    check_groups(results, n);
    const rd_kafka_topic_partition_list_t *set =
        rd_kafka_group_result_partitions(results[0]);
    int code = 0;
    for (int i = 0; i < set->cnt; i++) {
        code = set->elems[i].err ? EX_DATAERR : code;
    }
    tool_say(tool_positions(set));
    rd_kafka_event_destroy(event);
    rd_kafka_AlterConsumerGroupOffsets_destroy(wanted);
    admin_fini(&admin);
    return code;
}

/* --- groups -------------------------------------------------------------- */

int groups_list(const struct tool *tool)
{
    struct admin admin;
    admin_init(&admin, tool);
    rd_kafka_ListConsumerGroups(admin.client, admin.options, admin.queue);
    rd_kafka_event_t *event = admin_wait(&admin);
    size_t n;
    const rd_kafka_ConsumerGroupListing_t **groups =
        rd_kafka_ListConsumerGroups_result_valid(
            rd_kafka_event_ListConsumerGroups_result(event), &n);
    for (size_t i = 0; i < n; i++) {
        tool_say(json_pack(
            "{s:s, s:s}", "group",
            rd_kafka_ConsumerGroupListing_group_id(groups[i]), "state",
            rd_kafka_consumer_group_state_name(
                rd_kafka_ConsumerGroupListing_state(groups[i]))));
    }
    rd_kafka_event_destroy(event);
    admin_fini(&admin);
    return 0;
}

static json_t *member_json(const rd_kafka_MemberDescription_t *member)
{
    const rd_kafka_MemberAssignment_t *assignment =
        rd_kafka_MemberDescription_assignment(member);
    json_t *partitions =
        assignment
            ? tool_positions(rd_kafka_MemberAssignment_partitions(assignment))
            : json_array();
    size_t i;
    json_t *partition;
    json_array_foreach(partitions, i, partition)
    {
        json_object_del(partition, "offset");
    }
    return json_pack("{s:s, s:s, s:s?, s:o}", "client",
                     rd_kafka_MemberDescription_client_id(member), "member",
                     rd_kafka_MemberDescription_consumer_id(member), "instance",
                     rd_kafka_MemberDescription_group_instance_id(member),
                     "partitions", partitions);
}

static json_t *group_json(const rd_kafka_ConsumerGroupDescription_t *group)
{
    json_t *members = json_array();
    size_t n = rd_kafka_ConsumerGroupDescription_member_count(group);
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(
            members,
            member_json(rd_kafka_ConsumerGroupDescription_member(group, i)));
    }
    return json_pack(
        "{s:s, s:s, s:s, s:o}", "group",
        rd_kafka_ConsumerGroupDescription_group_id(group), "state",
        rd_kafka_consumer_group_state_name(
            rd_kafka_ConsumerGroupDescription_state(group)),
        "assignor", rd_kafka_ConsumerGroupDescription_partition_assignor(group),
        "members", members);
}

int groups_describe(const struct tool *tool)
{
    struct admin admin;
    admin_init(&admin, tool);
    rd_kafka_DescribeConsumerGroups(admin.client, (const char **)tool->args,
                                    tool->n_args, admin.options, admin.queue);
    rd_kafka_event_t *event = admin_wait(&admin);
    size_t n;
    const rd_kafka_ConsumerGroupDescription_t **groups =
        rd_kafka_DescribeConsumerGroups_result_groups(
            rd_kafka_event_DescribeConsumerGroups_result(event), &n);
    for (size_t i = 0; i < n; i++) {
        const rd_kafka_error_t *error =
            rd_kafka_ConsumerGroupDescription_error(groups[i]);
        if (error) {
            tool_die(EX_DATAERR, "%s", rd_kafka_error_string(error));
        }
        tool_say(group_json(groups[i]));
    }
    rd_kafka_event_destroy(event);
    admin_fini(&admin);
    return 0;
}

int groups_delete(const struct tool *tool)
{
    struct admin admin;
    admin_init(&admin, tool);
    size_t n = tool->n_args;
    rd_kafka_DeleteGroup_t **groups =
        mem_new(n, sizeof(rd_kafka_DeleteGroup_t *));
    for (size_t i = 0; i < n; i++) {
        groups[i] = rd_kafka_DeleteGroup_new(tool->args[i]);
    }
    rd_kafka_DeleteGroups(admin.client, groups, n, admin.options, admin.queue);
    rd_kafka_event_t *event = admin_wait(&admin);
    size_t n_results;
    const rd_kafka_group_result_t **results =
        rd_kafka_DeleteGroups_result_groups(
            rd_kafka_event_DeleteGroups_result(event), &n_results);
    check_groups(results, n_results);
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteGroup_destroy_array(groups, n);
    free(groups);
    admin_fini(&admin);
    return 0;
}
