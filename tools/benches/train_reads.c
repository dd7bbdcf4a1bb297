// The threads of train_step.py that read: outside Python's lock, as those of KvikIO or DALI do.
//
//   gcc -O2 -shared -fPIC -I crates/dropin/include -I examples/c train_reads.c -o libtrain_reads.so -ldl -pthread
//
// Each thread has one cuFileRead in flight, into memory that the caller gives. One load per process.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPUIO_CUFILE_NO_RENAMES
#include "cufile.h"

struct reader {
  pthread_t thread;
  char *memory;
  unsigned long long first, last;
  // The offset of the last block that was read. Valid after reads_stop.
  unsigned long long at;
  // What the last call returned where that is not the block's length, else 0.
  long failed;
  char between[64];
  atomic_ullong moved;
};

static struct {
  const char *path;
  size_t block;
  int threads;
  void *context;
  int (*set_current)(void *);
  CUfileError_t (*handle_register)(CUfileHandle_t *, CUfileDescr_t *);
  CUfileError_t (*buffer_register)(const void *, size_t, int);
  ssize_t (*read)(CUfileHandle_t, void *, size_t, off_t, off_t);
  atomic_int running, stop;
  struct reader *readers;
} load;

static void *run(void *given) {
  struct reader *me = given;
  const int fd = open(load.path, O_RDONLY);
  CUfileHandle_t handle = NULL;
  CUfileDescr_t describe;
  memset(&describe, 0, sizeof describe);
  describe.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  describe.handle.fd = fd;
  load.set_current(load.context);
  if (fd < 0 || load.handle_register(&handle, &describe).err != CU_FILE_SUCCESS) {
    me->failed = -1;
    return NULL;
  }
  load.buffer_register(me->memory, load.block, 0);
  unsigned long long at = me->first;
  while (!atomic_load(&load.stop)) {
    if (!atomic_load(&load.running)) {
      usleep(1000);
      continue;
    }
    const ssize_t got = load.read(handle, me->memory, load.block, (off_t)at, 0);
    if (got != (ssize_t)load.block) {
      me->failed = got == 0 ? -1 : got;
      return NULL;
    }
    me->at = at;
    atomic_fetch_add_explicit(&me->moved, load.block, memory_order_relaxed);
    at = at + 2 * load.block > me->last ? me->first : at + load.block;
  }
  return NULL;
}

// Opens the cuFile library that the loader finds, and starts the threads, which wait. `memory` holds `block`
// bytes for each thread, `size` is the file's length; `context` is the CUDA context. 0, or an error.
int reads_start(const char *path, unsigned long long size, int threads, size_t block, char *memory, void *context) {
  void *cufile = dlopen("libcufile.so.0", RTLD_NOW), *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!cufile || !driver) return 1;
  CUfileError_t (*driver_open)(void);
  *(void **)&driver_open = dlsym(cufile, "cuFileDriverOpen");
  *(void **)&load.handle_register = dlsym(cufile, "cuFileHandleRegister");
  *(void **)&load.buffer_register = dlsym(cufile, "cuFileBufRegister");
  *(void **)&load.read = dlsym(cufile, "cuFileRead");
  *(void **)&load.set_current = dlsym(driver, "cuCtxSetCurrent");
  if (!driver_open || driver_open().err != CU_FILE_SUCCESS) return 2;
  load.path = strdup(path);
  load.block = block;
  load.threads = threads;
  load.context = context;
  load.readers = calloc(threads, sizeof *load.readers);
  for (int n = 0; n < threads; n++) {
    struct reader *one = &load.readers[n];
    one->memory = memory + n * block;
    one->first = size / threads * n / block * block;
    one->last = one->first + size / threads / block * block;
    if (pthread_create(&one->thread, NULL, run, one) != 0) return 3;
  }
  return 0;
}

void reads_run(int running) { atomic_store(&load.running, running); }

unsigned long long reads_moved(void) {
  unsigned long long sum = 0;
  for (int n = 0; n < load.threads; n++) sum += atomic_load(&load.readers[n].moved);
  return sum;
}

// Ends the threads. The offset of each one's last block in `at`. 0, or what a failed call returned.
long reads_stop(unsigned long long *at) {
  long failed = 0;
  atomic_store(&load.stop, 1);
  for (int n = 0; n < load.threads; n++) {
    pthread_join(load.readers[n].thread, NULL);
    at[n] = load.readers[n].at;
    if (load.readers[n].failed) failed = load.readers[n].failed;
  }
  return failed;
}
