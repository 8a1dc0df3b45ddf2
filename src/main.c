/* SPDX-License-Identifier: MIT */
#include "app/cli.h"

int main(int argc, char **argv)
{
    return cli_run(argc, argv, stdout, stderr);
}
