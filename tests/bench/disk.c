/* SPDX-License-Identifier: MIT */
/*
 * Prints the median of a durable write in microseconds: 4 KiB over what is
 * there, then fdatasync, in the folder that is named.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

enum { WRITES = 500, BLOCK = 4096, BLOCKS = 256, EX_USAGE = 64 };

static char block[BLOCK];

static int64_t now_us(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static _Noreturn void fail(const char *what)
{
    (void)fprintf(stderr, "disk: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static void write_block(int fd, int i)
{
    if (pwrite(fd, block, BLOCK, (off_t)(i % BLOCKS) * BLOCK) != BLOCK) {
        fail("write");
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static int64_t median_us(int fd)
{
    static int64_t took_us[WRITES];
    for (int i = 0; i < BLOCKS; i++) {
        write_block(fd, i);
    }
    if (fsync(fd) != 0) {
        fail("sync");
    }
    for (int i = 0; i < WRITES; i++) {
        int64_t start_us = now_us();
        write_block(fd, i);
        if (fdatasync(fd) != 0) {
            fail("sync");
        }
        took_us[i] = now_us() - start_us;
    }
    qsort(took_us, WRITES, sizeof(*took_us), by_value);
    return took_us[WRITES / 2];
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fputs("disk FOLDER\n", stderr);
        return EX_USAGE;
    }
    int fd = open(argv[1], O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0) {
        fail(argv[1]);
    }
    (void)printf("%ld\n", (long)median_us(fd));
    (void)close(fd);
    return EXIT_SUCCESS;
}
