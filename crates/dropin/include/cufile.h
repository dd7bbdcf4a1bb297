/*
 * cufile.h: the cuFile interface that gpuio's libcufile.so.0 serves, for C11 and C++11.
 *
 * Written for gpuio from facts of the public interface: names, values, types and layouts, so that
 * programs that use this header and programs that use NVIDIA's run with either library. It includes
 * <cuda.h> where there is one, as programs expect, and does without where there is none or where
 * GPUIO_CUFILE_NO_CUDA is defined. Sizes and places of fields are asserted at the end. Apache-2.0,
 * as the rest of gpuio.
 *
 * How calls answer (the cuFile API Reference Guide):
 *  - Most return CUfileError_t: err is 0 or a code below, cu_err is CUDA's code where err is
 *    CU_FILE_CUDA_DRIVER_ERROR.
 *  - Reads and writes return bytes; -1 with errno for a failure of the file's; else the negative
 *    of a code. Fewer bytes than requested come only at the end of the file, and 0 there.
 * Every call may be made by any thread. Memory is GPU memory of any kind or host memory, and need
 * not be registered; offsets, addresses and lengths need no alignment.
 */
#ifndef GPUIO_CUFILE_H
#define GPUIO_CUFILE_H

#if !defined(GPUIO_CUFILE_NO_CUDA) && defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sockaddr;

/* With <cuda.h> these are its own; without it they are the same for the binary interface. */
#ifdef CUDA_VERSION
typedef CUresult gpuio_cufile_cuda_code;
typedef CUstream gpuio_cufile_stream;
#else
typedef int gpuio_cufile_cuda_code;
typedef struct CUstream_st *gpuio_cufile_stream;
#endif

/* ---- Codes -------------------------------------------------------------------------------- */

/* Codes lie above every errno. */
#define CUFILEOP_BASE_ERR 5000

typedef enum CUfileOpError {
  CU_FILE_SUCCESS = 0,
  CU_FILE_DRIVER_NOT_INITIALIZED = 5001,
  CU_FILE_DRIVER_INVALID_PROPS = 5002,
  CU_FILE_DRIVER_UNSUPPORTED_LIMIT = 5003,
  CU_FILE_DRIVER_VERSION_MISMATCH = 5004,
  CU_FILE_DRIVER_VERSION_READ_ERROR = 5005,
  CU_FILE_DRIVER_CLOSING = 5006,
  CU_FILE_PLATFORM_NOT_SUPPORTED = 5007,
  CU_FILE_IO_NOT_SUPPORTED = 5008,
  CU_FILE_DEVICE_NOT_SUPPORTED = 5009,
  CU_FILE_NVFS_DRIVER_ERROR = 5010,
  CU_FILE_CUDA_DRIVER_ERROR = 5011,
  CU_FILE_CUDA_POINTER_INVALID = 5012,
  CU_FILE_CUDA_MEMORY_TYPE_INVALID = 5013,
  CU_FILE_CUDA_POINTER_RANGE_ERROR = 5014,
  CU_FILE_CUDA_CONTEXT_MISMATCH = 5015,
  CU_FILE_INVALID_MAPPING_SIZE = 5016,
  CU_FILE_INVALID_MAPPING_RANGE = 5017,
  CU_FILE_INVALID_FILE_TYPE = 5018,
  CU_FILE_INVALID_FILE_OPEN_FLAG = 5019,
  CU_FILE_DIO_NOT_SET = 5020,
  CU_FILE_INVALID_VALUE = 5022,
  CU_FILE_MEMORY_ALREADY_REGISTERED = 5023,
  CU_FILE_MEMORY_NOT_REGISTERED = 5024,
  CU_FILE_PERMISSION_DENIED = 5025,
  CU_FILE_DRIVER_ALREADY_OPEN = 5026,
  CU_FILE_HANDLE_NOT_REGISTERED = 5027,
  CU_FILE_HANDLE_ALREADY_REGISTERED = 5028,
  CU_FILE_DEVICE_NOT_FOUND = 5029,
  CU_FILE_INTERNAL_ERROR = 5030,
  CU_FILE_GETNEWFD_FAILED = 5031,
  CU_FILE_NVFS_SETUP_ERROR = 5033,
  CU_FILE_IO_DISABLED = 5034,
  CU_FILE_BATCH_SUBMIT_FAILED = 5035,
  CU_FILE_GPU_MEMORY_PINNING_FAILED = 5036,
  CU_FILE_BATCH_FULL = 5037,
  CU_FILE_ASYNC_NOT_SUPPORTED = 5038,
  /* From here on codes came with release 1.15; 5039 meant CU_FILE_IO_MAX_ERROR before. gpuio's
   * library returns none of them. */
  CU_FILE_INTERNAL_BATCH_SETUP_ERROR = 5039,
  CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR = 5040,
  CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR = 5041,
  CU_FILE_INTERNAL_BATCH_CANCEL_ERROR = 5042,
  CU_FILE_NOMEM_ERROR = 5043,
  CU_FILE_IO_ERROR = 5044,
  CU_FILE_INTERNAL_BUF_REGISTER_ERROR = 5045,
  CU_FILE_HASH_OPR_ERROR = 5046,
  CU_FILE_INVALID_CONTEXT_ERROR = 5047,
  CU_FILE_NVFS_INTERNAL_DRIVER_ERROR = 5048,
  CU_FILE_BATCH_NOCOMPAT_ERROR = 5049,
  CU_FILE_IO_MAX_ERROR = 5050
} CUfileOpError;

typedef struct CUfileError {
  CUfileOpError err;
  gpuio_cufile_cuda_code cu_err;
} CUfileError_t;

/* Whether a number, a code or its negative, is one of cuFile's. */
#define IS_CUFILE_ERR(code) (labs((long)(code)) > CUFILEOP_BASE_ERR)
/* The words of a code or of its negative. */
#define CUFILE_ERRSTR(code) cufileop_status_error((CUfileOpError)labs((long)(code)))
/* Whether a call met a failure of CUDA's, and which. */
#define IS_CUDA_ERR(status) ((status).err == CU_FILE_CUDA_DRIVER_ERROR)
#define CU_FILE_CUDA_ERR(status) ((status).cu_err)

/* A code, or its negative, in words. */
static inline const char *cufileop_status_error(CUfileOpError code) {
  switch (labs((long)code)) {
    case 0: return "success";
    case 5001: return "the library is not open";
    case 5002: return "the configuration is not valid";
    case 5003: return "a limit is out of range";
    case 5004: return "library and kernel driver do not fit";
    case 5005: return "the kernel driver's version can't be read";
    case 5006: return "the library is being closed";
    case 5007: return "this platform is not supported";
    case 5008: return "this I/O is not supported";
    case 5009: return "this GPU is not supported";
    case 5010: return "the kernel driver failed";
    case 5011: return "the CUDA driver failed";
    case 5012: return "the address is none of CUDA's";
    case 5013: return "the kind of memory is not supported";
    case 5014: return "the range leaves the allocation";
    case 5015: return "the memory belongs to another context";
    case 5016: return "the range is too large to map";
    case 5017: return "the range can't be mapped";
    case 5018: return "the kind of file is not supported";
    case 5019: return "the file was opened with flags that are not supported";
    case 5020: return "the file was not opened with O_DIRECT";
    case 5022: return "an argument is not valid";
    case 5023: return "the memory is registered already";
    case 5024: return "the memory is not registered";
    case 5025: return "permission denied";
    case 5026: return "the library is open already";
    case 5027: return "the file is not registered";
    case 5028: return "the file is registered already";
    case 5029: return "there is no such GPU";
    case 5030: return "an internal error";
    case 5031: return "the file could not be opened again";
    case 5033: return "the kernel driver could not be set up";
    case 5034: return "I/O is disabled";
    case 5035: return "the batch could not be submitted";
    case 5036: return "GPU memory could not be pinned";
    case 5037: return "the batch is full";
    case 5038: return "this can't be done in a stream";
    default: return "a code that this header does not know";
  }
}

/* ---- The library -------------------------------------------------------------------------- */

typedef enum CUfileDriverStatusFlags {
  CU_FILE_LUSTRE_SUPPORTED = 0,
  CU_FILE_WEKAFS_SUPPORTED = 1,
  CU_FILE_NFS_SUPPORTED = 2,
  CU_FILE_GPFS_SUPPORTED = 3,
  CU_FILE_NVME_SUPPORTED = 4,
  CU_FILE_NVMEOF_SUPPORTED = 5,
  CU_FILE_SCSI_SUPPORTED = 6,
  CU_FILE_SCALEFLUX_CSD_SUPPORTED = 7,
  CU_FILE_NVMESH_SUPPORTED = 8,
  CU_FILE_BEEGFS_SUPPORTED = 9,
  CU_FILE_NVME_P2P_SUPPORTED = 11,
  CU_FILE_SCATEFS_SUPPORTED = 12,
  CU_FILE_VIRTIOFS_SUPPORTED = 13,
  CU_FILE_PANFS_SUPPORTED = 14,
  CU_FILE_MAX_TARGET_TYPES = 15
} CUfileDriverStatusFlags_t;

typedef enum CUfileDriverControlFlags {
  CU_FILE_USE_POLL_MODE = 0,
  CU_FILE_ALLOW_COMPAT_MODE = 1,
  CU_FILE_VANILLA_POSIX_IO_MODE = 2,
  CU_FILE_POSIX_IO_MODE = CU_FILE_VANILLA_POSIX_IO_MODE,
  CU_FILE_FALLBACK_IO_MODE = 4,
  CU_FILE_GDS_FALLBACK_IO = CU_FILE_FALLBACK_IO_MODE
} CUfileDriverControlFlags_t;

typedef enum CUfileFeatureFlags {
  CU_FILE_DYN_ROUTING_SUPPORTED = 0,
  CU_FILE_BATCH_IO_SUPPORTED = 1,
  CU_FILE_STREAMS_SUPPORTED = 2,
  CU_FILE_PARALLEL_IO_SUPPORTED = 3,
  CU_FILE_P2P_SUPPORTED = 4
} CUfileFeatureFlags_t;

/* Numbers of bits. */
typedef enum CUfileP2PFlags {
  CUFILE_P2PDMA = 0,
  CUFILE_NVFS = 1,
  CUFILE_DMABUF = 2,
  CUFILE_C2C = 3,
  CUFILE_NVIDIA_PEERMEM = 4
} CUfileP2PFlags_t;
#define CU_FILE_P2P_FLAG_PCI_P2PDMA ((CUfileP2PFlags_t)(1 << CUFILE_P2PDMA))
#define CU_FILE_P2P_FLAG_NVFS ((CUfileP2PFlags_t)(1 << CUFILE_NVFS))
#define CU_FILE_P2P_FLAG_DMABUF ((CUfileP2PFlags_t)(1 << CUFILE_DMABUF))
#define CU_FILE_P2P_FLAG_C2C ((CUfileP2PFlags_t)(1 << CUFILE_C2C))

/* Sizes are KiB. nvfs 0.0: there is no nvidia-fs, and none is needed. */
typedef struct CUfileDrvProps {
  struct {
    unsigned int major_version;
    unsigned int minor_version;
    size_t poll_thresh_size;
    size_t max_direct_io_size;
    unsigned int dstatusflags;
    unsigned int dcontrolflags;
  } nvfs;
  unsigned int fflags;
  unsigned int max_device_cache_size;
  unsigned int per_buffer_cache_size;
  unsigned int max_device_pinned_mem_size;
  unsigned int max_batch_io_size;
  unsigned int max_batch_io_timeout_msecs;
} CUfileDrvProps_t;

/* Programs that are compiled close by the second of the two symbols, which counts references. */
CUfileError_t cuFileDriverOpen(void);
CUfileError_t cuFileDriverClose_v2(void);
#ifndef GPUIO_CUFILE_NO_RENAMES
#define cuFileDriverClose cuFileDriverClose_v2
#else
CUfileError_t cuFileDriverClose(void);
#endif
long cuFileUseCount(void);
/* 1000 × major + 10 × minor. */
CUfileError_t cuFileGetVersion(int *version);
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *properties);
CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_kib);
CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t kib);
CUfileError_t cuFileDriverSetMaxCacheSize(size_t kib);
CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t kib);
CUfileError_t cuFileDriverGetP2PFlags(CUfileDriverStatusFlags_t of, CUfileP2PFlags_t *flags);
CUfileError_t cuFileDriverSetP2PFlags(CUfileDriverStatusFlags_t of, CUfileP2PFlags_t flags);
CUfileError_t cuFileExportPCIeTopology(const char *path);
CUfileError_t cuFileGetBARSizeInKB(int gpu, size_t *kib);

/* ---- Files -------------------------------------------------------------------------------- */

typedef void *CUfileHandle_t;

typedef enum CUfileFileHandleType {
  CU_FILE_HANDLE_TYPE_OPAQUE_FD = 1,
  CU_FILE_HANDLE_TYPE_OPAQUE_WIN32 = 2,
  CU_FILE_HANDLE_TYPE_USERSPACE_FS = 3
} CUfileFileHandleType;

typedef struct cufileRDMAInfo {
  int version;
  int desc_len;
  const char *desc_str;
} cufileRDMAInfo_t;

/* For file systems in user space. gpuio's library answers 5008 to a file of that kind. */
typedef struct CUfileFSOps {
  const char *(*fs_type)(const void *handle);
  int (*getRDMADeviceList)(const void *handle, struct sockaddr **addresses);
  int (*getRDMADevicePriority)(const void *handle, char *, size_t, int64_t,
                               const struct sockaddr *);
  ssize_t (*read)(const void *handle, char *, size_t, int64_t, const cufileRDMAInfo_t *);
  ssize_t (*write)(const void *handle, const char *, size_t, int64_t, const cufileRDMAInfo_t *);
} CUfileFSOps_t;

/* type and handle.fd are all that a file of this process needs. */
typedef struct CUfileDescr {
  CUfileFileHandleType type;
  union {
    int fd;
    void *handle;
  } handle;
  const CUfileFSOps_t *fs_ops;
} CUfileDescr_t;

/* The descriptor stays the caller's, who may close it after the deregistration. */
CUfileError_t cuFileHandleRegister(CUfileHandle_t *handle, CUfileDescr_t *descriptor);
void cuFileHandleDeregister(CUfileHandle_t handle);

/* ---- Memory ------------------------------------------------------------------------------- */

#define CU_FILE_RDMA_REGISTER 1
#define CU_FILE_RDMA_RELAXED_ORDERING 2

CUfileError_t cuFileBufRegister(const void *base, size_t bytes, int flags);
CUfileError_t cuFileBufDeregister(const void *base);

/* ---- Calls that wait ---------------------------------------------------------------------- */

typedef struct CUfileIOVec {
  void *base;
  size_t len;
} CUfileIOVec_t;

/* Bytes go to or come from base + buffer_offset. */
ssize_t cuFileRead(CUfileHandle_t handle, void *base, size_t bytes, off_t file_offset,
                   off_t buffer_offset);
ssize_t cuFileWrite(CUfileHandle_t handle, const void *base, size_t bytes, off_t file_offset,
                    off_t buffer_offset);
ssize_t cuFileReadv(CUfileHandle_t handle, const CUfileIOVec_t *pieces, size_t count,
                    off_t file_offset, unsigned int flags);
ssize_t cuFileWritev(CUfileHandle_t handle, const CUfileIOVec_t *pieces, size_t count,
                     off_t file_offset, unsigned int flags);

/* ---- Batches ------------------------------------------------------------------------------ */

typedef void *CUfileBatchHandle_t;

typedef enum CUfileOpcode { CUFILE_READ = 0, CUFILE_WRITE = 1 } CUfileOpcode_t;
typedef enum CUfileBatchMode { CUFILE_BATCH = 1 } CUfileBatchMode_t;

typedef enum CUFILEStatus_enum {
  CUFILE_WAITING = 0x01,
  CUFILE_PENDING = 0x02,
  CUFILE_INVALID = 0x04,
  CUFILE_CANCELED = 0x08,
  CUFILE_COMPLETE = 0x10,
  CUFILE_TIMEOUT = 0x20,
  CUFILE_FAILED = 0x40
} CUfileStatus_t;

typedef struct CUfileIOParams {
  CUfileBatchMode_t mode;
  union {
    struct {
      void *devPtr_base;
      off_t file_offset;
      off_t devPtr_offset;
      size_t size;
    } batch;
  } u;
  CUfileHandle_t fh;
  CUfileOpcode_t opcode;
  void *cookie;
} CUfileIOParams_t;

/* ret: bytes, or the bits of what the call that waits would have returned. */
typedef struct CUfileIOEvents {
  void *cookie;
  CUfileStatus_t status;
  size_t ret;
} CUfileIOEvents_t;

CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch, unsigned int entries);
CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch, unsigned int count,
                                  CUfileIOParams_t *entries, unsigned int flags);
/* *count: room in events before, events after. No timeout: until `least` of them are there. */
CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch, unsigned int least,
                                     unsigned int *count, CUfileIOEvents_t *events,
                                     struct timespec *timeout);
CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch);
void cuFileBatchIODestroy(CUfileBatchHandle_t batch);

/* ---- Streams ------------------------------------------------------------------------------ */

#define CU_FILE_STREAM_FIXED_BUF_OFFSET 1
#define CU_FILE_STREAM_FIXED_FILE_OFFSET 2
#define CU_FILE_STREAM_FIXED_FILE_SIZE 4
#define CU_FILE_STREAM_PAGE_ALIGNED_INPUTS 8

/* Sizes and offsets are read when the stream comes to the transfer, unless they are fixed by the
 * flags of the stream's registration; *bytes at the call is the most. *done is what the call that
 * waits would have returned. */
CUfileError_t cuFileReadAsync(CUfileHandle_t handle, void *base, size_t *bytes, off_t *file_offset,
                              off_t *buffer_offset, ssize_t *done, gpuio_cufile_stream stream);
CUfileError_t cuFileWriteAsync(CUfileHandle_t handle, void *base, size_t *bytes,
                               off_t *file_offset, off_t *buffer_offset, ssize_t *done,
                               gpuio_cufile_stream stream);
CUfileError_t cuFileStreamRegister(gpuio_cufile_stream stream, unsigned int flags);
CUfileError_t cuFileStreamDeregister(gpuio_cufile_stream stream);

/* ---- Configuration ------------------------------------------------------------------------ */

typedef enum CUFileSizeTConfigParameter_t {
  CUFILE_PARAM_PROFILE_STATS = 0,
  CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH,
  CUFILE_PARAM_EXECUTION_MAX_IO_THREADS,
  CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB,
  CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM,
  CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB,
  CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB,
  CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
  CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB,
  CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
  CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB,
  CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS
} CUFileSizeTConfigParameter_t;

typedef enum CUFileBoolConfigParameter_t {
  CUFILE_PARAM_PROPERTIES_USE_POLL_MODE = 0,
  CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE,
  CUFILE_PARAM_FORCE_COMPAT_MODE,
  CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE,
  CUFILE_PARAM_EXECUTION_PARALLEL_IO,
  CUFILE_PARAM_PROFILE_NVTX,
  CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY,
  CUFILE_PARAM_USE_PCIP2PDMA,
  CUFILE_PARAM_PREFER_IO_URING,
  CUFILE_PARAM_FORCE_ODIRECT_MODE,
  CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION,
  CUFILE_PARAM_STREAM_MEMOPS_BYPASS,
  CUFILE_PARAM_PROPERTIES_POSIX_IO_MODE,
  CUFILE_PARAM_POSIX_IO_MODE = CUFILE_PARAM_PROPERTIES_POSIX_IO_MODE,
  CUFILE_PARAM_GDS_FALLBACK_IO
} CUFileBoolConfigParameter_t;

typedef enum CUFileStringConfigParameter_t {
  CUFILE_PARAM_LOGGING_LEVEL = 0,
  CUFILE_PARAM_ENV_LOGFILE_PATH,
  CUFILE_PARAM_LOG_DIR,
  CUFILE_PARAM_RDMA_TRANSPORT
} CUFileStringConfigParameter_t;

typedef enum CUFileArrayConfigParameter_t {
  CUFILE_PARAM_POSIX_POOL_SLAB_SIZE_KB = 0,
  CUFILE_PARAM_POSIX_POOL_SLAB_COUNT,
  CUFILE_PARAM_GPU_BOUNCE_BUFFER_SLAB_SIZE_KB,
  CUFILE_PARAM_GPU_BOUNCE_BUFFER_SLAB_COUNT
} CUFileArrayConfigParameter_t;

CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t key, size_t *value);
CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t key, size_t value);
CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t key, bool *value);
CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t key, bool value);
CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t key, char *text, int room);
CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t key, const char *text);
CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t key, size_t *least,
                                            size_t *most);
CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t *sizes_kib, size_t *counts, int len);
CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t *sizes_kib, const size_t *counts,
                                                   int len);
CUfileError_t cuFileGetParameterGpuBounceBufferSlabArray(size_t *sizes_kib, size_t *counts,
                                                         int len);
CUfileError_t cuFileSetParameterGpuBounceBufferSlabArray(const size_t *sizes_kib,
                                                         const size_t *counts, int len);

/* ---- Statistics --------------------------------------------------------------------------- */

/* Their layout grew in release 1.20 without a mark: by 112 bytes after level 1, which moves the
 * rest. These are those of 1.15, which gpuio's library fills unless GPUIO_CUFILE_VERSION=1200 is
 * in its environment; a program for that defines GPUIO_CUFILE_STATS_1_20. */

typedef struct CUfileOpCounter {
  uint64_t ok;
  uint64_t err;
} CUfileOpCounter_t;

typedef struct CUfileStatsLevel1 {
  CUfileOpCounter_t read_ops;
  CUfileOpCounter_t write_ops;
  CUfileOpCounter_t hdl_register_ops;
  CUfileOpCounter_t hdl_deregister_ops;
  CUfileOpCounter_t buf_register_ops;
  CUfileOpCounter_t buf_deregister_ops;
  uint64_t read_bytes;
  uint64_t write_bytes;
  uint64_t read_bw_bytes_per_sec;
  uint64_t write_bw_bytes_per_sec;
  uint64_t read_lat_avg_us;
  uint64_t write_lat_avg_us;
  uint64_t read_ops_per_sec;
  uint64_t write_ops_per_sec;
  uint64_t read_lat_sum_us;
  uint64_t write_lat_sum_us;
  CUfileOpCounter_t batch_submit_ops;
  CUfileOpCounter_t batch_complete_ops;
  CUfileOpCounter_t batch_setup_ops;
  CUfileOpCounter_t batch_cancel_ops;
  CUfileOpCounter_t batch_destroy_ops;
  CUfileOpCounter_t batch_enqueued_ops;
  CUfileOpCounter_t batch_posix_enqueued_ops;
  CUfileOpCounter_t batch_processed_ops;
  CUfileOpCounter_t batch_posix_processed_ops;
  CUfileOpCounter_t batch_nvfs_submit_ops;
  CUfileOpCounter_t batch_p2p_submit_ops;
  CUfileOpCounter_t batch_aio_submit_ops;
  CUfileOpCounter_t batch_iouring_submit_ops;
  CUfileOpCounter_t batch_mixed_io_submit_ops;
  CUfileOpCounter_t batch_total_submit_ops;
  uint64_t batch_read_bytes;
  uint64_t batch_write_bytes;
  uint64_t batch_read_bw_bytes;
  uint64_t batch_write_bw_bytes;
  uint64_t batch_submit_lat_avg_us;
  uint64_t batch_completion_lat_avg_us;
  uint64_t batch_submit_ops_per_sec;
  uint64_t batch_complete_ops_per_sec;
  uint64_t batch_submit_lat_sum_us;
  uint64_t batch_completion_lat_sum_us;
  uint64_t last_batch_read_bytes;
  uint64_t last_batch_write_bytes;
#ifdef GPUIO_CUFILE_STATS_1_20
  uint64_t of_several_pieces[14];
#endif
} CUfileStatsLevel1_t;

/* Transfers by size; classes are powers of two in KiB. */
typedef struct CUfileStatsLevel2 {
  CUfileStatsLevel1_t basic;
  uint64_t read_size_kb_hist[32];
  uint64_t write_size_kb_hist[32];
} CUfileStatsLevel2_t;

#define CUFILE_GPU_UUID_LEN 16
typedef struct CUfilePerGpuStats {
  char uuid[CUFILE_GPU_UUID_LEN];
  uint64_t read_bytes;
  uint64_t read_bw_bytes_per_sec;
  uint64_t read_utilization;
  uint64_t read_duration_us;
  uint64_t n_total_reads;
  uint64_t n_p2p_reads;
  uint64_t n_nvfs_reads;
  uint64_t n_posix_reads;
  uint64_t n_unaligned_reads;
  uint64_t n_dr_reads;
  uint64_t n_sparse_regions;
  uint64_t n_inline_regions;
  uint64_t n_reads_err;
  uint64_t writes_bytes;
  uint64_t write_bw_bytes_per_sec;
  uint64_t write_utilization;
  uint64_t write_duration_us;
  uint64_t n_total_writes;
  uint64_t n_p2p_writes;
  uint64_t n_nvfs_writes;
  uint64_t n_posix_writes;
  uint64_t n_unaligned_writes;
  uint64_t n_dr_writes;
  uint64_t n_writes_err;
  uint64_t n_mmap;
  uint64_t n_mmap_ok;
  uint64_t n_mmap_err;
  uint64_t n_mmap_free;
  uint64_t reg_bytes;
} CUfilePerGpuStats_t;

typedef struct CUfileStatsLevel3 {
  CUfileStatsLevel2_t detailed;
  uint32_t num_gpus;
  CUfilePerGpuStats_t per_gpu_stats[16];
} CUfileStatsLevel3_t;

/* Level 0 to 3: none, totals, also sizes, also GPUs. */
CUfileError_t cuFileSetStatsLevel(int level);
CUfileError_t cuFileGetStatsLevel(int *level);
CUfileError_t cuFileStatsStart(void);
CUfileError_t cuFileStatsStop(void);
CUfileError_t cuFileStatsReset(void);
CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *statistics);
CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *statistics);
CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *statistics);

/* ---- The binary interface, 64 bits -------------------------------------------------------- */

#ifdef __cplusplus
#define GPUIO_CUFILE_HOLDS(what) static_assert(what, #what)
#else
#define GPUIO_CUFILE_HOLDS(what) _Static_assert(what, #what)
#endif
#define GPUIO_CUFILE_SIZE(type, bytes) GPUIO_CUFILE_HOLDS(sizeof(type) == (bytes))
#define GPUIO_CUFILE_PLACE(type, field, at) GPUIO_CUFILE_HOLDS(offsetof(type, field) == (at))
#ifdef GPUIO_CUFILE_STATS_1_20
#define GPUIO_CUFILE_MORE 112
#else
#define GPUIO_CUFILE_MORE 0
#endif

GPUIO_CUFILE_SIZE(off_t, 8);
GPUIO_CUFILE_SIZE(CUfileError_t, 8);
GPUIO_CUFILE_PLACE(CUfileError_t, cu_err, 4);
GPUIO_CUFILE_SIZE(CUfileDescr_t, 24);
GPUIO_CUFILE_PLACE(CUfileDescr_t, handle, 8);
GPUIO_CUFILE_PLACE(CUfileDescr_t, fs_ops, 16);
GPUIO_CUFILE_SIZE(CUfileFSOps_t, 40);
GPUIO_CUFILE_SIZE(cufileRDMAInfo_t, 16);
GPUIO_CUFILE_SIZE(CUfileDrvProps_t, 56);
GPUIO_CUFILE_PLACE(CUfileDrvProps_t, nvfs.poll_thresh_size, 8);
GPUIO_CUFILE_PLACE(CUfileDrvProps_t, nvfs.dcontrolflags, 28);
GPUIO_CUFILE_PLACE(CUfileDrvProps_t, fflags, 32);
GPUIO_CUFILE_PLACE(CUfileDrvProps_t, max_batch_io_timeout_msecs, 52);
GPUIO_CUFILE_SIZE(CUfileIOParams_t, 64);
GPUIO_CUFILE_PLACE(CUfileIOParams_t, u.batch.devPtr_base, 8);
GPUIO_CUFILE_PLACE(CUfileIOParams_t, u.batch.file_offset, 16);
GPUIO_CUFILE_PLACE(CUfileIOParams_t, u.batch.size, 32);
GPUIO_CUFILE_PLACE(CUfileIOParams_t, fh, 40);
GPUIO_CUFILE_PLACE(CUfileIOParams_t, opcode, 48);
GPUIO_CUFILE_PLACE(CUfileIOParams_t, cookie, 56);
GPUIO_CUFILE_SIZE(CUfileIOEvents_t, 24);
GPUIO_CUFILE_PLACE(CUfileIOEvents_t, status, 8);
GPUIO_CUFILE_PLACE(CUfileIOEvents_t, ret, 16);
GPUIO_CUFILE_SIZE(CUfileIOVec_t, 16);
GPUIO_CUFILE_SIZE(CUfileOpCounter_t, 16);
GPUIO_CUFILE_SIZE(CUfilePerGpuStats_t, 248);
GPUIO_CUFILE_PLACE(CUfilePerGpuStats_t, writes_bytes, 120);
GPUIO_CUFILE_PLACE(CUfileStatsLevel1_t, read_bytes, 96);
GPUIO_CUFILE_PLACE(CUfileStatsLevel1_t, batch_read_bytes, 416);
GPUIO_CUFILE_SIZE(CUfileStatsLevel1_t, 512 + GPUIO_CUFILE_MORE);
GPUIO_CUFILE_SIZE(CUfileStatsLevel2_t, 1024 + GPUIO_CUFILE_MORE);
GPUIO_CUFILE_PLACE(CUfileStatsLevel3_t, num_gpus, 1024 + GPUIO_CUFILE_MORE);
GPUIO_CUFILE_SIZE(CUfileStatsLevel3_t, 5000 + GPUIO_CUFILE_MORE);

#undef GPUIO_CUFILE_HOLDS
#undef GPUIO_CUFILE_SIZE
#undef GPUIO_CUFILE_PLACE
#undef GPUIO_CUFILE_MORE

#ifdef __cplusplus
}
#endif

#endif
