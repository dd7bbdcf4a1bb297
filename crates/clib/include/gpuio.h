/*
 * gpuio.h: files into GPU memory, and files in the page cache for a program's own GPU kernels.
 *
 * gpuio_read moves bytes of a file into memory of a GPU or the host. gpuio_memory and gpuio_tensor
 * make such memory, and tensors in it, for programs without CUDA's runtime.
 *
 * gpuio_map: a kernel reads the mapped bytes of a file at an address, without a copy or a buffer.
 * They stay in memory until the mapping is closed. Only files that cannot change meanwhile can be
 * mapped: see docs/gpuio-h.md, which also says what is not here.
 *
 * gpuio_rings: kernels start reads and writes of any file by themselves, with the device functions
 * of gpuio_device.cuh: see docs/gpu-started-io.md.
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

/*
 * The GPUs that the driver has, or -ENODEV: there is no CUDA driver, or it has no GPU. `*software`,
 * unless NULL, becomes 1 for gpuio's software GPU, whose speed says nothing, else 0.
 */
int gpuio_gpus(int *software);

/* The bytes that a read moved. */
typedef struct gpuio_bytes {
  uint64_t bytes;  /* from the start of the range; fewer than asked only where the file ends */
  uint64_t cached; /* of these, through the page cache, which held them or read them from the
                      device first, as it does for host memory and for short reads */
  uint64_t direct; /* of these, from the device past the page cache (O_DIRECT) */
  uint64_t gpu;    /* of these, into memory of a GPU */
} gpuio_bytes;

/*
 * Reads `length` bytes of a file, from `offset` on, into memory at `address`: of a GPU (a
 * CUdeviceptr, of any allocation) or of the host. Any offset, address and length will do. Returns
 * when the bytes are there, for the host and for later work of any CUDA stream. The memory must not
 * be used meanwhile. `fd` is open for reading; `moved` may be NULL.
 *
 * Returns 0 or a negative errno; gpuio_error() has the words. What is in the memory is then
 * undefined.
 *
 *   -EINVAL  `address` is NULL, or `fd` is neither a regular file nor a block device
 *   -EBADF   `fd` is not open for reading
 *   -EFAULT  `address` is no memory of this process
 *   -EMFILE  too many open files
 *   -ENOMEM  no page-locked memory for the transfer
 *   -EIO     the file could not be read, or the driver refused a copy
 *   -EPERM   GPU memory in a child of fork(2)
 *   -ENOTRECOVERABLE  a defect in gpuio: please report it
 */
int gpuio_read(int fd, uint64_t offset, void *address, uint64_t length, gpuio_bytes *moved);

/* A range of a file, or rows of a matrix in one, and where its bytes go. */
typedef struct gpuio_part {
  uint64_t offset;     /* of its first byte in the file */
  uint64_t length;     /* bytes of a row */
  uint64_t rows;       /* 0 and 1: one */
  uint64_t stride;     /* bytes in the file from the begin of a row to that of the next one */
  void *address;       /* where the first row begins; the others follow without gaps */
  void *const *copies; /* memory of other GPUs that gets the same bytes, from `address` */
  uint32_t copy_count;
  int fd;
} gpuio_part;

/*
 * Reads `count` parts as gpuio_read reads a range, several of them at once. Each byte is read once:
 * GPUs of `copies` get it from the GPU of `address`, over NVLink or PCIe, while further parts are
 * read. So a file that several GPUs need whole arrives in the least time where each is the `address`
 * of its share. Where GPUs can't reach one another (gpuio_reaches) the driver copies through host
 * memory. `moved`, which may be NULL, becomes the sum of what was read; copies do not count.
 * Where rows are short, whole rows are read, once for parts with other columns of them, into memory
 * that is freed before the call returns (32 MiB of each GPU at most), and copies take them apart;
 * only the parts' bytes count then.
 *
 * 0 or a negative errno as gpuio_read; the parts hold any bytes then. -EINVAL also for copies
 * between other memory than that of GPUs.
 */
int gpuio_read_parts(const gpuio_part *parts, uint64_t count, gpuio_bytes *moved);

/*
 * 1 if copies between two GPUs go directly, 0 if not, or a negative errno: -ENODEV, -EIO, -EPERM.
 */
int gpuio_reaches(int device, int other);

/* Memory that its maker and its tensors share. */
typedef struct gpuio_memory gpuio_memory;

/* The `device` of host memory. */
enum { GPUIO_HOST = -1 };

/*
 * Allocates `length` bytes on a GPU, by the CUDA driver's number, in its primary context, or with
 * GPUIO_HOST in the host. `*memory` becomes the memory, or NULL where it fails. 0, -ENODEV (no such
 * GPU), -ENOMEM, -EINVAL, -EIO, or -EPERM (a GPU in a child of fork(2)).
 */
int gpuio_memory_new(int device, uint64_t length, gpuio_memory **memory);

/* Its first byte, a CUdeviceptr on a GPU; NULL for NULL, and where it has no bytes. */
void *gpuio_memory_address(const gpuio_memory *memory);

/* Its bytes; 0 for NULL. */
uint64_t gpuio_memory_length(const gpuio_memory *memory);

/*
 * Copies `length` bytes, from `offset` on, to host memory. 0, -EINVAL for a range outside, -EIO, or
 * -EPERM (a GPU's memory in a child of fork(2)).
 */
int gpuio_memory_copy_out(const gpuio_memory *memory, uint64_t offset, void *to, uint64_t length);

/* Gives up its maker's share: it is freed when its tensors are gone too. */
void gpuio_memory_release(gpuio_memory *memory);

/* Pages of the caller that are locked in memory, so that a GPU copies at the rate of its link. */
typedef struct gpuio_pages gpuio_pages;

/*
 * Locks `length` bytes at `address`, whole pages of anonymous memory, of a memfd or of a file in a
 * memory file system, for copies by GPUs. They stay mapped until they are unlocked. `*pages` becomes
 * the lock, or NULL where it fails. 0, -ENODEV, -ENOMEM, -EINVAL, -EIO (the driver refuses: other
 * file systems than those in memory do not allow it), or -EPERM (a child of fork(2)).
 */
int gpuio_pages_lock(int device, void *address, uint64_t length, gpuio_pages **pages);

/* Unlocks them; no copy may use them any more. Nothing for NULL, and in a child of fork(2). */
void gpuio_pages_unlock(gpuio_pages *pages);

/* A copy: `length` bytes at `from` to host memory at `to`. */
typedef struct gpuio_copy {
  uint64_t from;
  void *to;
  uint64_t length;
} gpuio_copy;

/* Bytes whose digest is asked for: the sum modulo 2^64 of their little-endian 8-byte words, the last
 * one filled up with zeros, each mixed with its number. `first` is the number of the first word:
 * digests of parts, cut at multiples of 8 bytes, add up. A change within one word always shows. */
typedef struct gpuio_digest {
  uint64_t address;
  uint64_t length;
  uint64_t first;
  uint64_t digest; /* the result */
} gpuio_digest;

/*
 * Waits for all work of the GPU's primary context, then copies out of its memory and takes digests
 * in it, both at once. With GPUIO_HOST all addresses are the host's. Nothing may write the bytes
 * meanwhile. 0, or -EINVAL, -ENODEV, -EIO, -EPERM; what is at `to` is then undefined.
 */
int gpuio_copy_out(int device, const gpuio_copy *copies, uint64_t copy_count,
                   gpuio_digest *digests, uint64_t digest_count);

/* A tensor as in dlpack.h (DLPack 1.1), whose deleter frees it. */
struct DLManagedTensor;

/*
 * Makes a tensor of the elements in a memory from byte `offset` on, last index fastest. `code` and
 * `bits` are those of DLPack's DLDataType; `bits` is a multiple of 8. 0, or -EINVAL: no such shape,
 * or a range outside the memory.
 */
int gpuio_tensor_new(const gpuio_memory *memory, uint64_t offset, uint8_t code, uint8_t bits,
                     int dimensions, const int64_t *shape, struct DLManagedTensor **tensor);

/*
 * For PyCapsule_New: the destructor of a capsule of such a tensor, which frees one that nobody
 * took. An exception that is pending meanwhile stays pending. Before the first one, pass the
 * addresses of Python's PyCapsule_IsValid and PyCapsule_GetPointer: without, such a tensor stays.
 */
void gpuio_tensor_python(void *is_valid, void *get_pointer);
void gpuio_tensor_capsule_gone(void *capsule);

/* Text of a file: UTF-8 of `length` bytes, which may hold NULs, and none ends it. */
typedef struct gpuio_text {
  const char *bytes;
  uint64_t length;
} gpuio_text;

/* A tensor in a file of safetensors. */
typedef struct gpuio_stored {
  gpuio_text name;
  gpuio_text dtype;      /* the format's name of the type: "BF16" */
  uint32_t bits;         /* of an element */
  uint32_t dimensions;
  const uint64_t *shape; /* in elements, `dimensions` of them, last index fastest */
  uint64_t offset;       /* of its first byte in the file */
  uint64_t length;       /* in bytes */
} gpuio_stored;

/* A name and a text of the metadata in a file of safetensors. */
typedef struct gpuio_pair {
  gpuio_text name;
  gpuio_text text;
} gpuio_pair;

/* The contents of the header of a safetensors file. */
typedef struct gpuio_safetensors {
  const gpuio_stored *tensors; /* in the order of the header, each name once. Their names follow each
                                * other in memory without gaps, and so do their shapes */
  uint64_t tensor_count;
  const gpuio_pair *metadata;
  uint64_t metadata_count;
} gpuio_safetensors;

/*
 * Reads the header of a file of safetensors, and holds it against the size of the file: the tensors
 * are all of the data, once. No byte of them is read. As strict as the format's own library (0.8).
 * `*header` becomes the header, or NULL where it fails.
 *
 * 0 or a negative errno; gpuio_error() has the words: -EBADMSG (the file is not of the format, or
 * damaged), -EINVAL (`header` is NULL, or `fd` is no regular file), -EBADF, -ENOMEM, -EIO.
 */
int gpuio_safetensors_open(int fd, const gpuio_safetensors **header);

/* Frees a header and all that it points to. Nothing for NULL. */
void gpuio_safetensors_close(const gpuio_safetensors *header);

/* Neighbours in a file that stay neighbours in memory: one read fills them. */
typedef struct gpuio_run {
  uint64_t group;  /* its number */
  uint64_t at;     /* of its first byte in the group: a multiple of 256 */
  uint64_t offset; /* of its first byte in the file */
  uint64_t length; /* in bytes */
} gpuio_run;

/* The place of a tensor in memory. */
typedef struct gpuio_place {
  uint64_t tensor; /* its number in the header */
  uint64_t group;
  uint64_t at;     /* of its first byte in the group */
} gpuio_place;

/* Tensors in groups, each to be an allocation of its own. */
typedef struct gpuio_arrangement {
  const uint64_t *groups;    /* bytes of each */
  uint64_t group_count;
  const gpuio_run *runs;     /* in the order of the file */
  uint64_t run_count;
  const gpuio_place *places; /* one for each tensor, in the order of the file */
  uint64_t place_count;
} gpuio_arrangement;

/*
 * Arranges all tensors in groups of at most `most` bytes, or of one tensor with more: who keeps a
 * tensor keeps its group. Elements are aligned. `*arrangement` becomes it, or NULL where it fails.
 * 0, or -EINVAL: `header` or `arrangement` is NULL.
 */
int gpuio_safetensors_arrange(const gpuio_safetensors *header, uint64_t most,
                              const gpuio_arrangement **arrangement);

/* Frees an arrangement and its arrays. Nothing for NULL. */
void gpuio_arrangement_free(const gpuio_arrangement *arrangement);

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

/* Rings of a GPU: the I/O of files that kernels start. */
typedef struct gpuio_rings gpuio_rings;

/* The size of a set of rings. 0 is the default of each field. */
typedef struct gpuio_rings_options {
  uint32_t rings;         /* 1 to 1024. Default: 1 */
  uint32_t poll_threads;  /* of the operating system, which serve them. Default: one for each ring.
                           * Each takes a processor while there is I/O */
  uint32_t buffers;       /* of each ring at first, up to 16384. Default: 64. A ring has 64 I/Os in
                           * flight at most */
  uint32_t max_buffers;   /* after gpuio_rings_grow. Default: `buffers` */
  uint32_t max_files;     /* 1 to 65536. Default: 64 */
  uint32_t reserved;      /* 0 */
  uint64_t buffer_length; /* bytes: a multiple of 4096 up to 2^30. Default: 65536 */
} gpuio_rings_options;

/*
 * Opens rings for the kernels of a GPU, by the CUDA driver's number, in its primary context. They
 * have no file yet. `options` may be NULL. `*rings` becomes the rings, or NULL where it fails.
 *
 * 0 or a negative errno; gpuio_error() has the words:
 *
 *   -EINVAL      `rings` is NULL, or an option is outside its range
 *   -EOPNOTSUPP  no such rings can be made here: they need Linux 6.6, and that io_uring is allowed
 *   -ENODEV      there is no CUDA driver, or it has no such GPU
 *   -ENOMEM      no memory for the buffers, or this user may not lock so much (ulimit -l)
 *   -EMFILE      too many open files, or a table of files that is too large (ulimit -n)
 *   -EAGAIN      no thread can be started (ulimit -u)
 *   -EIO         io_uring or the driver refused
 *   -EPERM       this is a child of fork(2)
 *
 * The calls below have these errnos too.
 */
int gpuio_rings_open(int device, const gpuio_rings_options *options, gpuio_rings **rings);

/* A CUdeviceptr: the first `gpuio_ring` of gpuio_device.cuh, with the others behind it. It stays the
 * same. 0 for NULL. */
uint64_t gpuio_rings_address(const gpuio_rings *rings);

/* How many rings there are. 0 for NULL. */
uint32_t gpuio_rings_count(const gpuio_rings *rings);

/*
 * Adds a file to all rings. `*number` becomes what kernels call it: the lowest number that is free.
 * `fd` is open for what kernels do with it, with O_DIRECT or without; it may be closed afterwards.
 * Also while kernels use the rings. 0, -EINVAL (neither a regular file nor a block device, or
 * `max_files` are there), -EBADF, or as gpuio_rings_open.
 */
int gpuio_rings_add_file(gpuio_rings *rings, int fd, uint32_t *number);

/*
 * Takes a file out; its number is free then. I/O that the operating system has taken ends; later
 * entries with this number have the result -EBADF. 0, -EINVAL (no such file), or -EIO.
 */
int gpuio_rings_remove_file(gpuio_rings *rings, uint32_t number);

/*
 * Raises the number of buffers of each ring to `buffers`. Also while kernels use the rings: those
 * that are launched afterwards may use the new ones. 0, -EINVAL (above `max_buffers`), -ENOMEM, -EIO.
 */
int gpuio_rings_grow(gpuio_rings *rings, uint32_t buffers);

/*
 * Wakes the threads of the operating system that serve the rings. They sleep after 50 ms without
 * I/O, and a thread of this library wakes them where there is some, up to 1 ms late. Called before a
 * launch after a pause, this call saves that time. 0 or -EIO.
 */
int gpuio_rings_wake(gpuio_rings *rings);

/* I/O that kernels have started and that has not ended. 0 for NULL, and in a child of fork(2). */
uint64_t gpuio_rings_in_flight(const gpuio_rings *rings);

/*
 * Waits for I/O in flight, for half a minute at most, then gives all back. No kernel may use the
 * rings any more, and no other thread `rings`. Afterwards it is no set of rings. 0; -EINVAL for
 * NULL; -EIO if some I/O did not end: the rings are closed all the same, and the operating system
 * keeps the pages of their buffers until it has ended; -EPERM in a child of fork(2).
 */
int gpuio_rings_close(gpuio_rings *rings);

/* The text of gpuio_device.cuh, for nvrtc. Never NULL; lives as long as the process. */
const char *gpuio_device_header(void);

/*
 * The error of the last call of this thread that failed: the event, its meaning and the remedy. ""
 * before the first failure; never NULL. Valid until the next call of this thread that fails, or the
 * thread ends.
 */
const char *gpuio_error(void);

#ifdef __cplusplus
}
#endif

#endif
