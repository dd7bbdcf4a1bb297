/*
 * A complete cuFile program: fills GPU memory, writes it to a file, reads it back into other GPU
 * memory and compares.
 *
 *   cc -I crates/dropin/include -I examples/c examples/c/write_read.c -o write_read \
 *      -L target/release -lcufile -ldl
 *   target/release/gpuio exec -- ./write_read FILE [BYTES]
 *
 * FILE is made or overwritten. Also runs with NVIDIA's library: it uses nothing of gpuio's own.
 * Without a GPU: GPUIO_CUFILE_DRIVER=software in the environment.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_driver.h"
#include "cufile.h"

/* Fill byte and default size of the file. */
enum { FILL = 0xab, DEFAULT_BYTES = 1 << 20 };

static void needs(CUfileError_t status, const char *what) {
  if (status.err == CU_FILE_SUCCESS) return;
  fprintf(stderr, "%s: %d, %s (CUDA: %d)\n", what, (int)status.err,
          cufileop_status_error(status.err), (int)status.cu_err);
  exit(1);
}

/* Ends the program unless all bytes were moved. */
static void needs_all(ssize_t moved, size_t bytes, const char *what) {
  if (moved == (ssize_t)bytes) return;
  if (moved == -1) {
    perror(what);
  } else if (moved < 0) {
    fprintf(stderr, "%s: %ld, %s\n", what, (long)-moved,
            cufileop_status_error((CUfileOpError)-moved));
  } else {
    fprintf(stderr, "%s: %zd of %zu bytes\n", what, moved, bytes);
  }
  exit(1);
}

/* O_DIRECT where the file system has it: tmpfs and others refuse it (open(2)). */
static int open_file(const char *path, int flags) {
  int fd = open(path, flags | O_DIRECT, 0644);
  if (fd < 0 && errno == EINVAL) fd = open(path, flags, 0644);
  if (fd < 0) {
    perror(path);
    exit(1);
  }
  return fd;
}

static CUfileHandle_t register_file(int fd) {
  CUfileDescr_t descriptor;
  CUfileHandle_t handle = NULL;
  memset(&descriptor, 0, sizeof descriptor);
  descriptor.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  descriptor.handle.fd = fd;
  needs(cuFileHandleRegister(&handle, &descriptor), "cuFileHandleRegister");
  return handle;
}

static cuda_address filled(const struct cuda_driver *cuda, unsigned char value, size_t bytes) {
  cuda_address memory = 0;
  cuda_needs(cuda, cuda->alloc(&memory, bytes), "cuMemAlloc");
  cuda_needs(cuda, cuda->fill(memory, value, bytes), "cuMemsetD8");
  /* May be left out: it can only be quicker. */
  needs(cuFileBufRegister((void *)(uintptr_t)memory, bytes, 0), "cuFileBufRegister");
  return memory;
}

static void freed(const struct cuda_driver *cuda, cuda_address memory) {
  needs(cuFileBufDeregister((void *)(uintptr_t)memory), "cuFileBufDeregister");
  cuda_needs(cuda, cuda->free(memory), "cuMemFree");
}

int main(int argc, char **argv) {
  struct cuda_driver cuda;
  char gpu[128];
  cuda_address source, target;
  unsigned char *check;
  CUfileHandle_t handle;
  size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 0) : DEFAULT_BYTES, wrong = 0, n;
  int fd, version = 0;

  if (argc < 2 || argc > 3 || bytes == 0) {
    fprintf(stderr, "write_read FILE [BYTES]\n");
    return 2;
  }
  cuda_start(&cuda, 0, gpu);
  needs(cuFileDriverOpen(), "cuFileDriverOpen");
  needs(cuFileGetVersion(&version), "cuFileGetVersion");

  source = filled(&cuda, FILL, bytes);
  fd = open_file(argv[1], O_CREAT | O_TRUNC | O_WRONLY);
  handle = register_file(fd);
  needs_all(cuFileWrite(handle, (void *)(uintptr_t)source, bytes, 0, 0), bytes, "cuFileWrite");
  cuFileHandleDeregister(handle);
  close(fd);
  freed(&cuda, source);

  target = filled(&cuda, 0, bytes);
  fd = open_file(argv[1], O_RDONLY);
  handle = register_file(fd);
  needs_all(cuFileRead(handle, (void *)(uintptr_t)target, bytes, 0, 0), bytes, "cuFileRead");
  cuFileHandleDeregister(handle);
  close(fd);

  check = malloc(bytes);
  if (!check) {
    perror("malloc");
    return 1;
  }
  cuda_needs(&cuda, cuda.to_host(check, target, bytes), "cuMemcpyDtoH");
  for (n = 0; n < bytes; n++) wrong += check[n] != FILL;
  free(check);
  freed(&cuda, target);
  needs(cuFileDriverClose(), "cuFileDriverClose");
  printf("%s, cuFile %d.%d: %zu bytes written and read back, %zu of them wrong\n", gpu,
         version / 1000, version % 1000 / 10, bytes, wrong);
  return wrong != 0;
}
