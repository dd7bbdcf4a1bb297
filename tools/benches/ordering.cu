// After which earlier GPU work does a cuFile call come? One cell of the table for each kind of earlier
// work, call, size and registration: the work spins for DELAY ms and then touches the buffer; the
// call is made at once. A call that waits for the work sees what the work did. No gpuio code.
//
//   nvcc -O2 -std=c++17 -arch=native ordering.cu -o ordering -lcuda -ldl
//   ordering FILE [DELAY_MS [LOOPS]]          (libcufile.so.0 is the one that the loader finds)
//
// FILE is made and overwritten. Words of a cell: "after": the call waited; "before": it did not;
// "mixed": parts of both; "error N". The last table counts blocks that were wrong after a pageable
// cudaMemcpy of the size, which returns before its copy has ended, followed by a write. Vectored calls
// (two ranges) are left out, with a note, where the library has none (before release 1.20).
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
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

__global__ void spin_ns(unsigned long long ns) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < ns);
}
__global__ void copy_bytes(unsigned char* to, const unsigned char* from, size_t n) {
  for (size_t i = threadIdx.x + size_t(blockIdx.x) * blockDim.x; i < n; i += size_t(gridDim.x) * blockDim.x)
    to[i] = from[i];
}

// CUfileIOVec_t.
struct Range {
  void* base;
  size_t len;
};
struct Calls {
  decltype(&::cuFileDriverOpen) open;
  decltype(&::cuFileHandleRegister) handle;
  decltype(&::cuFileBufRegister) reg;
  decltype(&::cuFileBufDeregister) dereg;
  decltype(&::cuFileRead) read;
  decltype(&::cuFileWrite) write;
  decltype(&::cuFileBatchIOSetUp) setup;
  decltype(&::cuFileBatchIOSubmit) submit;
  decltype(&::cuFileBatchIOGetStatus) status;
  decltype(&::cuFileBatchIODestroy) destroy;
  decltype(&::cuFileReadAsync) read_async;
  decltype(&::cuFileWriteAsync) write_async;
  // Null in a library before release 1.20, whose header lacks them too.
  ssize_t (*readv)(CUfileHandle_t, const Range*, size_t, off_t, unsigned);
  ssize_t (*writev)(CUfileHandle_t, const Range*, size_t, off_t, unsigned);
};
Calls calls;
template <class T>
void find(void* lib, T& to, const char* name) {
  to = reinterpret_cast<T>(dlsym(lib, name));
  if (!to) fail(name, -1);
}

enum Work { kLegacyKernel, kPerThreadKernel, kBlockingKernel, kNonBlockingKernel, kLegacyPinned,
            kOtherThreadLegacy, kMemset, kDeviceCopy, kWorks };
const char* kWorkNames[] = {"legacy default stream", "per-thread default stream", "blocking stream",
                            "non-blocking stream", "legacy stream, pinned copy",
                            "legacy stream, other thread", "cudaMemset", "cudaMemcpy on the device"};
enum Call { kSync, kVectored, kBatch, kAsyncNull, kAsyncOther, kCalls };
const char* kCallNames[] = {"call", "vectored call", "batch", "async in legacy stream",
                            "async in a non-blocking stream"};

struct Machine {
  CUfileHandle_t file;
  int fd;
  cudaStream_t blocking, nonblocking, reader;
  unsigned char *buffer, *other, *pinned;
  unsigned long long delay_ns;
};

// Queues: spin, then to[0..n) = from[0..n).
void enqueue(const Machine& m, Work work, unsigned char* to, const unsigned char* from, size_t n,
             bool pinned_source) {
  cudaStream_t stream = cudaStreamLegacy;
  if (work == kPerThreadKernel) stream = cudaStreamPerThread;
  if (work == kBlockingKernel) stream = m.blocking;
  if (work == kNonBlockingKernel) stream = m.nonblocking;
  auto put = [&] {
    spin_ns<<<1, 1, 0, stream>>>(m.delay_ns);
    if (work == kLegacyPinned && pinned_source)
      cuda(cudaMemcpyAsync(to, m.pinned, n, cudaMemcpyHostToDevice, stream), "copy from pinned");
    else if (work == kMemset)
      cuda(cudaMemset(to, 0x22, n), "cudaMemset");
    else if (work == kDeviceCopy)
      cuda(cudaMemcpy(to, from, n, cudaMemcpyDeviceToDevice), "cudaMemcpy");
    else
      copy_bytes<<<4, 256, 0, stream>>>(to, from, n);
    cuda(cudaGetLastError(), "launch");
  };
  if (work == kOtherThreadLegacy) std::thread(put).join(); else put();
}

std::string verdict(const std::vector<unsigned char>& seen, unsigned char after, unsigned char before) {
  size_t a = 0, b = 0;
  for (auto byte : seen) a += byte == after, b += byte == before;
  if (a == seen.size()) return "after";
  if (b == seen.size()) return "before";
  return a + b == seen.size() ? "mixed" : "garbage";
}

long transfer(const Machine& m, Call call, bool write, size_t n) {
  if (call == kSync)
    return write ? calls.write(m.file, m.buffer, n, 0, 0) : calls.read(m.file, m.buffer, n, 0, 0);
  if (call == kVectored) {
    const Range ranges[] = {{m.buffer, n / 2}, {m.buffer + n / 2, n - n / 2}};
    return write ? calls.writev(m.file, ranges, 2, 0, 0) : calls.readv(m.file, ranges, 2, 0, 0);
  }
  if (call == kBatch) {
    CUfileBatchHandle_t batch;
    CUfileError_t e = calls.setup(&batch, 1);
    if (e.err) return -e.err;
    CUfileIOParams_t p;
    std::memset(&p, 0, sizeof p);
    p.mode = CUFILE_BATCH;
    p.u.batch.devPtr_base = m.buffer;
    p.u.batch.size = n;
    p.fh = m.file;
    p.opcode = write ? CUFILE_WRITE : CUFILE_READ;
    e = calls.submit(batch, 1, &p, 0);
    if (e.err) return -e.err;
    CUfileIOEvents_t event;
    for (;;) {
      unsigned count = 1;
      e = calls.status(batch, 1, &count, &event, nullptr);
      if (e.err) return -e.err;
      if (count == 1 && event.status != CUFILE_WAITING && event.status != CUFILE_PENDING) break;
    }
    calls.destroy(batch);
    return event.status == CUFILE_COMPLETE ? long(event.ret) : -9000 - long(event.status);
  }
  static size_t size;
  static off_t zero, zero2;
  static ssize_t done;
  size = n, zero = zero2 = 0, done = -1;
  cudaStream_t stream = call == kAsyncNull ? cudaStreamLegacy : m.reader;
  CUfileError_t e = write ? calls.write_async(m.file, m.buffer, &size, &zero, &zero2, &done, (CUstream)stream)
                          : calls.read_async(m.file, m.buffer, &size, &zero, &zero2, &done, (CUstream)stream);
  if (e.err) return -e.err;
  cuda(cudaStreamSynchronize(stream), "wait for async");
  return done;
}

std::string cell(const Machine& m, Work work, Call call, bool write, size_t n, bool registered) {
  std::vector<unsigned char> host(n, 0x11), seen(n);
  cuda(cudaMemcpy(m.buffer, host.data(), n, cudaMemcpyHostToDevice), "old bytes");
  cuda(cudaMemset(m.other, 0x22, n), "new bytes");
  std::memset(m.pinned, 0x22, n);
  std::fill(host.begin(), host.end(), 0x33);
  if (pwrite(m.fd, host.data(), n, 0) != ssize_t(n)) fail("pwrite", errno);
  cuda(cudaDeviceSynchronize(), "quiet");
  if (registered) {
    CUfileError_t e = calls.reg(m.buffer, n, 0);
    if (e.err) return "error " + std::to_string(e.err);
  }
  long got;
  std::string word;
  if (write) {
    enqueue(m, work, m.buffer, m.other, n, true);
    got = transfer(m, call, true, n);
    if (pread(m.fd, seen.data(), n, 0) != ssize_t(n)) fail("pread", errno);
    word = verdict(seen, 0x22, 0x11);
  } else {
    // The earlier work still reads the buffer: it must not see what the call brings.
    enqueue(m, work, m.other, m.buffer, n, false);
    got = transfer(m, call, false, n);
    cuda(cudaDeviceSynchronize(), "end");
    cuda(cudaMemcpy(seen.data(), m.other, n, cudaMemcpyDeviceToHost), "look");
    word = verdict(seen, 0x11, 0x33);
  }
  cuda(cudaDeviceSynchronize(), "end");
  if (registered) calls.dereg(m.buffer);
  return got == long(n) ? word : "error " + std::to_string(got);
}

// Blocks that a write took before the pageable copy had arrived; or that a read brought before it.
long pageable(const Machine& m, Call call, bool write, size_t n, int loops, bool busy, bool registered) {
  std::vector<unsigned char> host(n), seen(n);
  long wrong = 0;
  if (registered && calls.reg(m.buffer, n, 0).err) return -2;
  for (int i = 0; i < loops; i++) {
    std::memset(host.data(), 1 + i % 250, n);
    if (busy) cuda(cudaMemcpyAsync(m.other, m.pinned, 16 << 20, cudaMemcpyHostToDevice, m.nonblocking), "busy");
    cuda(cudaMemcpy(m.buffer, host.data(), n, cudaMemcpyHostToDevice), "pageable");
    if (write) {
      if (transfer(m, call, true, n) != long(n)) return -1;
      if (pread(m.fd, seen.data(), n, 0) != ssize_t(n)) fail("pread", errno);
    } else {
      if (transfer(m, call, false, n) != long(n)) return -1;
      cuda(cudaDeviceSynchronize(), "late copies");
      cuda(cudaMemcpy(seen.data(), m.buffer, n, cudaMemcpyDeviceToHost), "look");
      if (pread(m.fd, host.data(), n, 0) != ssize_t(n)) fail("pread", errno);
    }
    wrong += seen != host;
  }
  cuda(cudaDeviceSynchronize(), "end");
  if (registered) calls.dereg(m.buffer);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) fail("usage: ordering FILE [DELAY_MS [LOOPS]]", 2);
  const int loops = argc > 3 ? std::atoi(argv[3]) : 1000;
  void* lib = dlopen("libcufile.so.0", RTLD_NOW);
  if (!lib) fail(dlerror(), -1);
  find(lib, calls.open, "cuFileDriverOpen");
  find(lib, calls.handle, "cuFileHandleRegister");
  find(lib, calls.reg, "cuFileBufRegister");
  find(lib, calls.dereg, "cuFileBufDeregister");
  find(lib, calls.read, "cuFileRead");
  find(lib, calls.write, "cuFileWrite");
  find(lib, calls.setup, "cuFileBatchIOSetUp");
  find(lib, calls.submit, "cuFileBatchIOSubmit");
  find(lib, calls.status, "cuFileBatchIOGetStatus");
  find(lib, calls.destroy, "cuFileBatchIODestroy");
  find(lib, calls.read_async, "cuFileReadAsync");
  find(lib, calls.write_async, "cuFileWriteAsync");
  calls.readv = reinterpret_cast<decltype(calls.readv)>(dlsym(lib, "cuFileReadv"));
  calls.writev = reinterpret_cast<decltype(calls.writev)>(dlsym(lib, "cuFileWritev"));
  const bool vectored = calls.readv && calls.writev;
  const size_t most = 16 << 20;
  Machine m{};
  m.delay_ns = (argc > 2 ? std::atoll(argv[2]) : 30) * 1000000ull;
  cuda(cudaSetDevice(0), "device");
  cuda(cudaMalloc(&m.buffer, most), "memory");
  cuda(cudaMalloc(&m.other, most), "memory");
  cuda(cudaMallocHost(&m.pinned, most), "pinned");
  cuda(cudaStreamCreate(&m.blocking), "stream");
  cuda(cudaStreamCreateWithFlags(&m.nonblocking, cudaStreamNonBlocking), "stream");
  cuda(cudaStreamCreateWithFlags(&m.reader, cudaStreamNonBlocking), "stream");
  // Kernels are loaded before anything is timed by them.
  spin_ns<<<1, 1>>>(1);
  copy_bytes<<<1, 1>>>(m.buffer, m.other, 1);
  cuda(cudaDeviceSynchronize(), "warm");
  m.fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (m.fd < 0 || ftruncate(m.fd, most)) fail("open", errno);
  CUfileError_t e = calls.open();
  if (e.err) fail("cuFileDriverOpen", e.err);
  CUfileDescr_t descr;
  std::memset(&descr, 0, sizeof descr);
  descr.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  descr.handle.fd = m.fd;
  e = calls.handle(&m.file, &descr);
  if (e.err) fail("cuFileHandleRegister", e.err);
  Dl_info where;
  dladdr(reinterpret_cast<void*>(calls.read), &where);
  std::printf("library %s\n", where.dli_fname);
  if (!vectored) std::printf("vectored calls left out: the library has no cuFileReadv and cuFileWritev\n");
  const size_t sizes[] = {4096, 65536, 1 << 20, 16 << 20};
  for (int call = 0; call < kCalls; call++)
    for (int write = 1; write >= 0 && (vectored || call != kVectored); write--)
      for (int work = 0; work < kWorks; work++) {
        if (!write && (work == kLegacyPinned || work == kMemset)) continue;
        std::printf("%-5s %-31s %-27s", write ? "write" : "read", kCallNames[call], kWorkNames[work]);
        for (int registered = 0; registered < 2; registered++)
          for (size_t n : sizes)
            std::printf(" %s%-8s", registered ? "" : "", cell(m, Work(work), Call(call), write, n, registered).c_str());
        std::printf("\n");
        std::fflush(stdout);
      }
  for (Call call : {kSync, kVectored})
    for (int write = 1; write >= 0 && (vectored || call != kVectored); write--)
      for (size_t n : sizes)
        for (int busy = 0; busy < 2; busy++)
          for (int registered = 0; registered < 2; registered++) {
            const int count = n > (1 << 20) ? loops / 10 : loops;
            std::printf("pageable cudaMemcpy of %zu bytes, copy engine %s, %sregistered, then %s%s: %ld of %d wrong\n",
                        n, busy ? "busy" : "idle", registered ? "" : "not ", call == kVectored ? "vectored " : "",
                        write ? "write" : "read", pageable(m, call, write, n, count, busy, registered), count);
          }
  std::fflush(stdout);
  std::_Exit(0);
}
