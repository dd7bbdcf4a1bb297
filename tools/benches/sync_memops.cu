// Which memory has CU_POINTER_ATTRIBUTE_SYNC_MEMOPS set, and what does it change? With the attribute
// "synchronous memory operations initiated on the region always synchronize" (CUDA driver API manual,
// cuPointerSetAttribute): a pageable cudaMemcpy, a cudaMemset and a copy on the device then return
// after they have ended, not before. No gpuio code.
//
//   nvcc -O2 -std=c++17 -arch=native sync_memops.cu -o sync_memops -lcuda -ldl
//   sync_memops FILE                          (libcufile.so.0 is the one that the loader finds)
//
// First part: how many of 400 pageable copies of 64 KiB a read in another stream comes before, per kind
// of memory: as it is, with the attribute, and after cuFileWrite of a block of it. Second part: the
// attribute after each call of cuFile. Third part: whether a program may set it, where, and what a call
// costs. Fourth part: microseconds until a call returns that is enqueued after a kernel of 20 ms in the
// legacy default stream, and in an idle stream.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define GPUIO_CUFILE_NO_RENAMES
#include "cufile.h"

namespace {

[[noreturn]] void fail(const char* what, long code) {
  std::fprintf(stderr, "%s: %ld\n", what, code);
  std::_Exit(1);
}
void cuda(cudaError_t code, const char* what) {
  if (code != cudaSuccess) fail(what, code);
}
void drv(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) fail(what, code);
}

__global__ void spin_ns(unsigned long long ns) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

double now_us() {
  auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(t).count();
}

const size_t kLen = 4 << 20;
enum Kind { kMalloc, kPool, kMapped, kManaged, kPinned, kKinds };
const char* kKindNames[] = {"cudaMalloc", "cudaMallocAsync", "cuMemMap", "cudaMallocManaged", "cudaMallocHost"};

unsigned char* allocate(Kind kind) {
  void* p = nullptr;
  switch (kind) {
    case kMalloc: cuda(cudaMalloc(&p, kLen), "cudaMalloc"); break;
    case kPool: cuda(cudaMallocAsync(&p, kLen, 0), "cudaMallocAsync"); cuda(cudaDeviceSynchronize(), "pool"); break;
    case kMapped: {
      CUmemAllocationProp prop{};
      prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
      prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
      CUmemGenericAllocationHandle handle;
      CUdeviceptr at;
      drv(cuMemCreate(&handle, kLen, &prop, 0), "cuMemCreate");
      drv(cuMemAddressReserve(&at, kLen, 0, 0, 0), "cuMemAddressReserve");
      drv(cuMemMap(at, kLen, 0, handle, 0), "cuMemMap");
      CUmemAccessDesc access{};
      access.location = prop.location;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      drv(cuMemSetAccess(at, kLen, &access, 1), "cuMemSetAccess");
      p = reinterpret_cast<void*>(at);
      break;
    }
    case kManaged: cuda(cudaMallocManaged(&p, kLen), "cudaMallocManaged"); break;
    default: cuda(cudaMallocHost(&p, kLen), "cudaMallocHost"); break;
  }
  return static_cast<unsigned char*>(p);
}

int attribute(const void* p) {
  unsigned value = 77;
  CUresult e = cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)p);
  return e == CUDA_SUCCESS ? int(value & 0xff) : -int(e);
}

template <class F>
double timed(F f) {
  double t = now_us();
  f();
  return now_us() - t;
}

// Of 400 pageable copies, each followed by a read in a stream of its own, those that the read came before.
int stale(unsigned char* p) {
  const size_t len = 65536;
  static cudaStream_t stream = nullptr;
  static unsigned char* seen = nullptr;
  if (!stream) {
    cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    cuda(cudaMallocHost(&seen, len), "cudaMallocHost");
  }
  std::vector<unsigned char> host(len);
  int early = 0;
  for (int n = 0; n < 400; n++) {
    std::memset(host.data(), n * 37 + 11, len);
    cuda(cudaMemcpy(p, host.data(), len, cudaMemcpyHostToDevice), "cudaMemcpy");
    cuda(cudaMemcpyAsync(seen, p, len, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    early += std::memcmp(seen, host.data(), len) != 0;
    cuda(cudaDeviceSynchronize(), "quiet");
  }
  return early;
}

// How long each synchronous operation takes to return, after a kernel of 20 ms or not.
void operations(const char* what, unsigned char* p, unsigned char* other) {
  std::vector<unsigned char> host(kLen, 1);
  cuda(cudaDeviceSynchronize(), "quiet");
  for (int busy = 0; busy < 2; busy++) {
    std::printf("%-34s %s:", what, busy ? "behind 20 ms" : "idle        ");
    auto run = [&](const char* name, auto f) {
      cuda(cudaDeviceSynchronize(), "quiet");
      if (busy) spin_ns<<<1, 1, 0, cudaStreamLegacy>>>(20000000ull);
      double us = timed(f);
      double rest = timed([] { cuda(cudaDeviceSynchronize(), "quiet"); });
      std::printf("  %s %.0f+%.0f", name, us, rest);
    };
    run("memset", [&] { cuda(cudaMemset(p, 3, kLen), "memset"); });
    run("HtoD 4K", [&] { cuda(cudaMemcpy(p, host.data(), 4096, cudaMemcpyHostToDevice), "h2d"); });
    run("HtoD 64K", [&] { cuda(cudaMemcpy(p, host.data(), 65536, cudaMemcpyHostToDevice), "h2d"); });
    run("HtoD 4M", [&] { cuda(cudaMemcpy(p, host.data(), kLen, cudaMemcpyHostToDevice), "h2d"); });
    run("DtoD", [&] { cuda(cudaMemcpy(p, other, kLen, cudaMemcpyDeviceToDevice), "d2d"); });
    run("DtoD from", [&] { cuda(cudaMemcpy(other, p, kLen, cudaMemcpyDeviceToDevice), "d2d"); });
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) fail("usage: sync_memops FILE", 2);
  cuda(cudaSetDevice(0), "device");
  cuda(cudaFree(nullptr), "context");
  spin_ns<<<1, 1>>>(1);
  cuda(cudaDeviceSynchronize(), "warm");
  void* lib = dlopen("libcufile.so.0", RTLD_NOW);
  if (!lib) fail(dlerror(), -1);
  auto open_driver = (decltype(&::cuFileDriverOpen))dlsym(lib, "cuFileDriverOpen");
  auto handle_register = (decltype(&::cuFileHandleRegister))dlsym(lib, "cuFileHandleRegister");
  auto reg = (decltype(&::cuFileBufRegister))dlsym(lib, "cuFileBufRegister");
  auto dereg = (decltype(&::cuFileBufDeregister))dlsym(lib, "cuFileBufDeregister");
  auto rd = (decltype(&::cuFileRead))dlsym(lib, "cuFileRead");
  auto wr = (decltype(&::cuFileWrite))dlsym(lib, "cuFileWrite");
  unsigned flags = 0;
  auto get_flags = (CUresult(*)(unsigned*))dlsym(RTLD_DEFAULT, "cuCtxGetFlags");
  auto set_flags = (CUresult(*)(unsigned))dlsym(RTLD_DEFAULT, "cuCtxSetFlags");
  if (get_flags) drv(get_flags(&flags), "flags");
  std::printf("context flags %#x before, ", flags);
  CUfileError_t e = open_driver();
  if (e.err) fail("cuFileDriverOpen", e.err);
  if (get_flags) drv(get_flags(&flags), "flags");
  std::printf("%#x after cuFileDriverOpen\n", flags);
  int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, kLen)) fail("open", errno);
  CUfileDescr_t descr;
  std::memset(&descr, 0, sizeof descr);
  descr.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  descr.handle.fd = fd;
  CUfileHandle_t file;
  e = handle_register(&file, &descr);
  if (e.err) fail("cuFileHandleRegister", e.err);

  // All without cuFile first: what it does for one kind of memory may hold for others as well.
  for (int k = 0; k < kPinned; k++) {
    unsigned char* p = allocate(Kind(k));
    const int fresh = stale(p);
    unsigned on = 1;
    const CUresult set = cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)p);
    std::printf("%-18s too early: %d of 400, with the attribute (%d, then %d) %d\n", kKindNames[k], fresh,
                int(set), attribute(p), stale(p));
  }
  for (int k = 0; k < kPinned; k++) {
    unsigned char* p = allocate(Kind(k));
    const long n = wr(file, p, 65536, 0, 0);
    std::printf("%-18s after cuFileWrite (%ld) too early: %d of 400\n", kKindNames[k], n, stale(p));
  }
  for (int k = 0; k < kPinned; k++) {
    unsigned char* p = allocate(Kind(k));
    std::printf("%-18s fresh %d", kKindNames[k], attribute(p));
    long n = wr(file, p, 65536, 0, 0);
    std::printf(", unregistered write (%ld) %d", n, attribute(p));
    n = rd(file, p, 65536, 0, 0);
    std::printf(", read (%ld) %d", n, attribute(p));
    e = reg(p, kLen, 0);
    std::printf(", registered (%d) %d", int(e.err), attribute(p));
    n = wr(file, p, 65536, 0, 0);
    std::printf(", write (%ld) %d", n, attribute(p));
    dereg(p);
    std::printf(", deregistered %d\n", attribute(p));
  }
  // A fresh buffer, the first part of which alone is registered.
  unsigned char* part = allocate(kMalloc);
  e = reg(part + 65536, 65536, 0);
  std::printf("registered in the middle (%d): base %d, middle %d, end %d\n", int(e.err), attribute(part),
              attribute(part + 65536), attribute(part + kLen - 1));

  for (int k = 0; k < kKinds; k++) {
    unsigned char* p = allocate(Kind(k));
    unsigned on = 1;
    CUresult at_middle = cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(p + 70000));
    int seen = attribute(p);
    CUresult at_base = cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)p);
    CUresult without = CUDA_SUCCESS;
    std::thread([&] { without = cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)p); }).join();
    std::printf("%-18s set in the middle: %d (then %d), at the base: %d (then %d), thread without context: %d\n",
                kKindNames[k], int(at_middle), seen, int(at_base), attribute(p), int(without));
  }
  CUcontext primary, own;
  cuCtxGetCurrent(&primary);
#if CUDA_VERSION >= 13000
  drv(cuCtxCreate(&own, nullptr, 0, 0), "context");
#else
  drv(cuCtxCreate(&own, 0, 0), "context");
#endif
  CUdeviceptr theirs;
  drv(cuMemAlloc(&theirs, kLen), "memory");
  cuCtxSetCurrent(primary);
  unsigned on = 1;
  CUresult foreign = cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, theirs);
  std::printf("memory of another context: %d (then %d)\n", int(foreign), attribute((void*)theirs));

  unsigned char* p = allocate(kMalloc);
  CUpointer_attribute seven[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT,
      CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
      CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_MAPPED, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
  unsigned long long v[8];
  void* at[8];
  for (int i = 0; i < 8; i++) at[i] = &v[i];
  for (int round = 0; round < 2; round++)
    for (unsigned count = 7; count <= 8; count++) {
      double us = timed([&] { for (int i = 0; i < 100000; i++) drv(cuPointerGetAttributes(count, seven, at, (CUdeviceptr)p), "ask"); });
      std::printf("%u attributes: %.0f ns\n", count, us / 100);
    }
  double us = timed([&] { for (int i = 0; i < 10000; i++) cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)p); });
  std::printf("set: %.0f ns; ", us / 10);
  us = timed([&] { for (int i = 0; i < 100000; i++) cuStreamQuery(CU_STREAM_LEGACY); });
  std::printf("query of the legacy stream: %.0f ns\n", us / 100);

  unsigned char* q = allocate(kMalloc);
  unsigned char* r = allocate(kMalloc);
  operations("cudaMalloc, not set", r, q);
  cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)r);
  operations("cudaMalloc, set", r, q);
  unsigned char* m = allocate(kMapped);
  unsigned char* pool = allocate(kPool);
  operations("cuMemMap, not set", m, q);
  operations("pool, not set", pool, q);
  if (set_flags) {
    drv(get_flags(&flags), "flags");
    CUresult code = set_flags(flags | 0x80);
    get_flags(&flags);
    std::printf("cuCtxSetFlags(SYNC_MEMOPS): %d, flags %#x\n", int(code), flags);
    operations("cuMemMap, context's flag", m, q);
    operations("pool, context's flag", pool, q);
    operations("cudaMalloc, context's flag", allocate(kMalloc), q);
  }
  std::fflush(stdout);
  std::_Exit(0);
}
