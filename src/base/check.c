/* SPDX-License-Identifier: MIT */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *what, const char *file, int line,
                            const char *function)
{
    (void)fprintf(stderr, "onced: check failed: %s (%s:%d, %s)\n", what, file,
                  line, function);
    abort();
}
