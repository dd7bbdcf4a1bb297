/*
 * gpuio.h: files in the page cache, for a program's own GPU kernels.
 *
 * A kernel reads the mapped bytes of a file at an address, without a copy or a buffer. They stay in
 * memory until the mapping is closed. Only files that cannot change meanwhile can be mapped: see
 * docs/gpuio-h.md, which also says what is not here.
 *
 * Link with -lgpuio. C11 and C++11; needs no CUDA header. Every function may be called from any
 * thread, and from many at once, and leaves the thread's current CUDA context as it was. Results
 * are return values: errno means nothing after a call.
 *
 * GPUIO_CUFILE_DRIVER in the environment names the CUDA driver: system (the default), software, or
 * a path.
 */
#ifndef GPUIO_H
#define GPUIO_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A mapped part of a file. */
typedef struct gpuio_map gpuio_map;

/* States of a mapping. */
enum {
  /* The bytes are those of the file, and were since the mapping was opened. No writer waits. */
  GPUIO_MAP_SURE = 0,
  /* A program waits to write or truncate the file, or the file's size or time of modification has
   * changed. What kernels read since the last GPUIO_MAP_SURE may be old. Close the mapping soon:
   * Linux lets the writer go on after /proc/sys/fs/lease-break-time (45 s by default). This
   * state does not end. */
  GPUIO_MAP_WANTED = 1
};

/*
 * Maps `length` bytes of a file, from `offset` on, for the kernels of a GPU. Any offset and length
 * inside the file will do. Waits until the page cache has the bytes and the driver has pinned them.
 *
 * `fd` is open for reading; it may be closed afterwards: a mapping has a descriptor of its own.
 * `device` is the CUDA driver's number of
 * the GPU, as in cuDeviceGet; the first call for it loads the driver and retains its primary
 * context. `*map` becomes the mapping, or NULL where it fails.
 *
 * Returns 0 or a negative errno; gpuio_error() has the words:
 *
 *   -EINVAL      `map` is NULL; `length` is 0; the file ends before the range does; or `fd` is
 *                neither a regular file nor a block device
 *   -EBADF       `fd` is not open
 *   -EAGAIN      the file is open for writing, by this process or another one; or a memfd is not
 *                sealed
 *   -EOPNOTSUPP  nothing makes sure that the bytes stay what they are (docs/gpuio-h.md, "Rules")
 *   -ENODEV      there is no CUDA driver, it has no such GPU, or the GPU can't register memory that
 *                may only be read
 *   -EACCES      the file can't be opened again by /proc/self/fd, which a mapping needs
 *   -EMFILE      too many open files, or 256 mappings under leases in the process
 *   -ENOMEM      the kernel has no memory for the mapping
 *   -EIO         the file could not be read, or the driver refused to register its pages
 *   -EPERM       this is a child of fork(2), or the process may start no thread
 *   -ENOTRECOVERABLE  a defect in gpuio: please report it
 */
int gpuio_map_open(int fd, uint64_t offset, uint64_t length, int device, gpuio_map **map);

/*
 * Where kernels read the byte at `offset`: a CUdeviceptr of the primary context, which is the CUDA
 * runtime's. Kernels must not write there, and the host must not use it. 0 for NULL.
 */
uint64_t gpuio_map_address(const gpuio_map *map);

/* The bytes that are mapped: `length` of gpuio_map_open. 0 for NULL. */
uint64_t gpuio_map_length(const gpuio_map *map);

/*
 * GPUIO_MAP_SURE, GPUIO_MAP_WANTED, or -EINVAL for NULL. Call it after a kernel has ended: where it
 * is GPUIO_MAP_SURE, all that the kernel read were bytes of the file. Costs one system call.
 */
int gpuio_map_state(const gpuio_map *map);

/*
 * Gives the pages back, then lets writers in. No kernel or copy may read the mapping any more, and
 * no other thread may use `map`. Afterwards `map` is no mapping: closing it twice is undefined.
 *
 * Returns 0; -EINVAL for NULL; -EIO if the driver refused to unregister the pages, as it does after
 * the device was reset. They may then stay in memory until the process ends. The mapping is closed
 * all the same.
 */
int gpuio_map_close(gpuio_map *map);

/*
 * What went wrong in the last call of this thread that failed: what happened, what it means, what
 * to do. "" before the first failure; never NULL. Valid until the next call of this thread that
 * fails, or the thread ends.
 */
const char *gpuio_error(void);

#ifdef __cplusplus
}
#endif

#endif
