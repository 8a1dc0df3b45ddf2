/* SPDX-License-Identifier: MIT */
/*
 * The command line: `onced COMMAND …`. One table holds the commands and one
 * the options; parsing and help both walk them. Exit statuses are those of
 * sysexits.h, as enum err_kind has them.
 */
#ifndef ONCED_APP_CLI_H
#define ONCED_APP_CLI_H

#include <stdio.h>

/* Runs one command and returns the exit status. What was asked for goes to
 * `out`, what went wrong to `err`, one line each. */
int cli_run(int argc, char **argv, FILE *out, FILE *err);

#endif
