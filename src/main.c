/* SPDX-License-Identifier: MIT */
#include "app/cli.h"
#include "base/mark.h"

int main(int argc, char **argv)
{
    struct err err;

    if (!mark_start(&err)) {
        (void)fprintf(stderr, "onced: %s\n", err.text);
        return (int)err.kind;
    }
    return cli_run(argc, argv, stdout, stderr);
}
