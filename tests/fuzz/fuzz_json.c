/* SPDX-License-Identifier: MIT */
/* The input is a JSON pointer, a line feed and a text. */
#include <stdint.h>

#include "../support/json_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    struct slice pointer = text;

    pointer.len = slice_find(text, '\n');
    if (pointer.len == size || !json_pointer_ok(pointer)) {
        return 0;
    }
    oracle_agree(slice_from(text, pointer.len + 1), pointer);
    return 0;
}
