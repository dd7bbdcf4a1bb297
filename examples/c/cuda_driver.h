/*
 * The calls of the CUDA driver that gpuio's examples and benchmarks in C and C++ make, found at run
 * time, so that they are built without CUDA and run on gpuio's software GPU too.
 *
 * Declarations are our own, from the CUDA Driver API reference manual (release 12); names with a
 * suffix are those that the library exports.
 *
 * The library is the one that GPUIO_CUFILE_DRIVER names: libcuda.so.1 (`system`, or nothing), gpuio's
 * software GPU where the loader finds it (`software`), or a file. gpuio's libcufile.so.0 heeds the
 * same variable, and both have to use one driver.
 */
#ifndef GPUIO_CUDA_DRIVER_H
#define GPUIO_CUDA_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An address that the GPU knows. */
typedef unsigned long long cuda_address;
typedef struct CUctx_st *cuda_context;
typedef struct CUstream_st *cuda_stream;

struct cuda_driver {
  int (*init)(unsigned int flags);
  int (*device)(int *device, int ordinal);
  int (*device_name)(char *text, int room, int device);
  int (*retain)(cuda_context *context, int device);
  int (*set_current)(cuda_context context);
  int (*alloc)(cuda_address *address, size_t bytes);
  int (*free)(cuda_address address);
  int (*host_alloc)(void **start, size_t bytes, unsigned int flags);
  int (*host_free)(void *start);
  int (*to_device)(cuda_address to, const void *from, size_t bytes);
  int (*to_host)(void *to, cuda_address from, size_t bytes);
  int (*fill)(cuda_address start, unsigned char value, size_t bytes);
  int (*stream)(cuda_stream *stream, unsigned int flags);
  int (*stream_wait)(cuda_stream stream);
  int (*stream_free)(cuda_stream stream);
  int (*error_name)(int code, const char **text);
};

/* Ends the program unless a call of CUDA's was fine. */
static inline void cuda_needs(const struct cuda_driver *driver, int code, const char *what) {
  const char *name = "unknown code";
  if (code == 0) return;
  if (driver->error_name) driver->error_name(code, &name);
  fprintf(stderr, "%s: CUDA answers %d (%s)\n", what, code, name ? name : "unknown code");
  exit(1);
}

static inline void cuda_find(void *library, const char *name, void *place) {
  /* By way of memory: a pointer to an object is none to a function in C. */
  void *found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "the CUDA driver has no %s\n", name);
    exit(3);
  }
  memcpy(place, &found, sizeof found);
}

/* Loads the driver and makes the primary context of GPU `ordinal` current in this thread. Ends the
 * program with 3 where there is no driver. */
static inline cuda_context cuda_start(struct cuda_driver *driver, int ordinal, char name[128]) {
  const char *file = getenv("GPUIO_CUFILE_DRIVER");
  void *library;
  cuda_context context = NULL;
  int device = 0;
  if (!file || !*file || strcmp(file, "system") == 0) file = "libcuda.so.1";
  if (strcmp(file, "software") == 0) file = "libgpuio_softgpu.so";
  library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    fprintf(stderr, "no CUDA driver: %s\n", dlerror());
    exit(3);
  }
  cuda_find(library, "cuGetErrorName", &driver->error_name);
  cuda_find(library, "cuInit", &driver->init);
  cuda_find(library, "cuDeviceGet", &driver->device);
  cuda_find(library, "cuDeviceGetName", &driver->device_name);
  cuda_find(library, "cuDevicePrimaryCtxRetain", &driver->retain);
  cuda_find(library, "cuCtxSetCurrent", &driver->set_current);
  cuda_find(library, "cuMemAlloc_v2", &driver->alloc);
  cuda_find(library, "cuMemFree_v2", &driver->free);
  cuda_find(library, "cuMemHostAlloc", &driver->host_alloc);
  cuda_find(library, "cuMemFreeHost", &driver->host_free);
  cuda_find(library, "cuMemcpyHtoD_v2", &driver->to_device);
  cuda_find(library, "cuMemcpyDtoH_v2", &driver->to_host);
  cuda_find(library, "cuMemsetD8_v2", &driver->fill);
  cuda_find(library, "cuStreamCreate", &driver->stream);
  cuda_find(library, "cuStreamSynchronize", &driver->stream_wait);
  cuda_find(library, "cuStreamDestroy_v2", &driver->stream_free);
  cuda_needs(driver, driver->init(0), "cuInit");
  cuda_needs(driver, driver->device(&device, ordinal), "cuDeviceGet");
  cuda_needs(driver, driver->device_name(name, 128, device), "cuDeviceGetName");
  cuda_needs(driver, driver->retain(&context, device), "cuDevicePrimaryCtxRetain");
  cuda_needs(driver, driver->set_current(context), "cuCtxSetCurrent");
  return context;
}

#endif
