/*
 * Maps a part of a file for the GPU, copies it out of the mapping by the driver, and compares it
 * with what pread(2) returns. A program's own kernels read the mapping in place, see below.
 *
 *   ln -sf libgpuio.so target/release/libgpuio.so.0
 *   cc -I crates/clib/include -I examples/c examples/c/map_file.c -o map_file \
 *      -L target/release -lgpuio -ldl
 *   LD_LIBRARY_PATH=target/release ./map_file FILE [OFFSET [LENGTH]]
 *
 * FILE is only read. Exit codes: 0 all bytes are right, 1 an error or a wrong byte, 2 wrong
 * arguments, 3 there is no GPU here that can do it, or no rule for the file (docs/gpuio-h.md).
 * Without a GPU: GPUIO_CUFILE_DRIVER=software in the environment.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda_driver.h"
#include "gpuio.h"

/* Bytes that are compared at a time. */
enum { STEP = 1 << 20 };

static void failed(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t number(const char *text) {
  char *end;
  unsigned long long value = strtoull(text, &end, 0);
  if (*text < '0' || *text > '9' || *end) {
    fprintf(stderr, "%s is no number\n", text);
    exit(2);
  }
  return value;
}

static void read_all(int fd, unsigned char *to, size_t bytes, uint64_t offset) {
  while (bytes) {
    ssize_t more = pread(fd, to, bytes, (off_t)offset);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) failed("pread");
    if (more == 0) {
      fprintf(stderr, "the file ends at byte %llu\n", (unsigned long long)offset);
      exit(1);
    }
    to += more;
    bytes -= (size_t)more;
    offset += (uint64_t)more;
  }
}

/*
 * A kernel takes the address as a pointer, here with the CUDA runtime:
 *
 *   __global__ void sum(const float *table, const int *rows, float *out) { ... table[rows[i]] ... }
 *
 *   sum<<<blocks, threads>>>((const float *)gpuio_map_address(map), rows, out);
 *   cudaDeviceSynchronize();
 *   if (gpuio_map_state(map) == GPUIO_MAP_SURE) ... what it read were the file's bytes ...
 *
 * It may read at any time until gpuio_map_close.
 */
static uint64_t wrong_bytes(const struct cuda_driver *cuda, const gpuio_map *map, int fd,
                            uint64_t offset) {
  unsigned char *seen = malloc(STEP), *right = malloc(STEP);
  uint64_t length = gpuio_map_length(map), done = 0, wrong = 0;
  if (!seen || !right) failed("malloc");
  while (done < length) {
    size_t bytes = length - done < STEP ? (size_t)(length - done) : STEP, n;
    cuda_needs(cuda, cuda->to_host(seen, gpuio_map_address(map) + done, bytes), "cuMemcpyDtoH");
    read_all(fd, right, bytes, offset + done);
    for (n = 0; n < bytes; n++) wrong += seen[n] != right[n];
    done += bytes;
  }
  free(seen);
  free(right);
  return wrong;
}

int main(int argc, char **argv) {
  struct cuda_driver cuda;
  char gpu[128];
  struct stat facts;
  gpuio_map *map;
  uint64_t offset, length, wrong;
  int fd, code, state;

  if (argc < 2 || argc > 4) {
    fprintf(stderr, "map_file FILE [OFFSET [LENGTH]]\n");
    return 2;
  }
  fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &facts)) failed(argv[1]);
  offset = argc > 2 ? number(argv[2]) : 0;
  length = argc > 3 ? number(argv[3]) : (uint64_t)facts.st_size - offset;
  cuda_start(&cuda, 0, gpu);

  code = gpuio_map_open(fd, offset, length, 0, &map);
  if (code) {
    fprintf(stderr, "%s\n", gpuio_error());
    return code == -EOPNOTSUPP || code == -ENODEV ? 3 : 1;
  }
  wrong = wrong_bytes(&cuda, map, fd, offset);
  state = gpuio_map_state(map);
  if (gpuio_map_close(map)) {
    fprintf(stderr, "%s\n", gpuio_error());
    return 1;
  }
  close(fd);
  printf("%s: %llu bytes at %llu read where the page cache has them, %llu of them wrong; %s\n", gpu,
         (unsigned long long)length, (unsigned long long)offset, (unsigned long long)wrong,
         state == GPUIO_MAP_SURE ? "no writer waits" : "a writer waits");
  return wrong != 0 || state != GPUIO_MAP_SURE;
}
