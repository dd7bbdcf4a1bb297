// The comparison partner of gpuio's GPU paths: moves blocks between a file and GPU memory through
// NVIDIA's libcufile, whatever mode it picks on this machine, with one handle and one registered
// buffer per thread. Needs the CUDA toolkit; see docs/lab-book/staged.md.
//
//   g++ -O2 -std=c++17 cufile_peer.cpp -o cufile_peer -lcuda -lcufile -lpthread
//   cufile_peer FILE THREADS BLOCK SECONDS [random 0|1] [O_DIRECT 0|1] [write 0|1]
//
// A read goes over FILE, a write over a file of its own per thread: FILE.0, FILE.1 and so on, which
// must be there. Prints one line: GiB/s, IOPS, median and 99th percentile latency, CPU cost.
#include <cuda.h>
#include <cufile.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

void need(bool ok, const char* what, long code) {
  if (ok) return;
  std::fprintf(stderr, "%s: %ld\n", what, code);
  std::_Exit(1);
}

double now() {
  using clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

struct Load {
  std::string path;
  int threads;
  size_t block;
  double seconds;
  bool random;
  bool direct;
  bool write;
  size_t blocks;
};

struct Shared {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  double start = 0;
};

void worker(const Load& load, int thread, CUcontext context, Shared& shared,
            std::vector<float>& latencies) {
  need(cuCtxSetCurrent(context) == CUDA_SUCCESS, "cuCtxSetCurrent", 0);
  const std::string path = load.write ? load.path + "." + std::to_string(thread) : load.path;
  int fd = open(path.c_str(), (load.write ? O_RDWR : O_RDONLY) | (load.direct ? O_DIRECT : 0));
  need(fd >= 0, "open", fd);
  CUdeviceptr memory;
  need(cuMemAlloc(&memory, std::max<size_t>(load.block, 65536)) == CUDA_SUCCESS, "cuMemAlloc", 0);
  CUfileDescr_t describe;
  std::memset(&describe, 0, sizeof describe);
  describe.handle.fd = fd;
  describe.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  CUfileHandle_t handle;
  CUfileError_t error = cuFileHandleRegister(&handle, &describe);
  need(error.err == CU_FILE_SUCCESS, "cuFileHandleRegister", error.err);
  error = cuFileBufRegister(reinterpret_cast<void*>(memory), load.block, 0);
  need(error.err == CU_FILE_SUCCESS, "cuFileBufRegister", error.err);
  std::mt19937_64 dice(thread + 1);
  const size_t each = load.write ? load.blocks : load.blocks / load.threads;
  latencies.reserve(1 << 20);
  shared.ready++;
  while (!shared.go) std::this_thread::yield();
  const double end = shared.start + load.seconds;
  for (size_t n = 0;; n++) {
    const double before = now();
    if (before >= end) break;
    const size_t first = load.write ? 0 : thread * each;
    const size_t at = load.random ? dice() % load.blocks : first + n % each;
    void* base = reinterpret_cast<void*>(memory);
    const off_t offset = at * load.block;
    const ssize_t got = load.write ? cuFileWrite(handle, base, load.block, offset, 0)
                                   : cuFileRead(handle, base, load.block, offset, 0);
    need(got == static_cast<ssize_t>(load.block), load.write ? "cuFileWrite" : "cuFileRead", got);
    latencies.push_back((now() - before) * 1e6);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "cufile_peer FILE THREADS BLOCK SECONDS [random] [direct] [write]\n");
    return 2;
  }
  Load load{argv[1], std::atoi(argv[2]), std::strtoull(argv[3], nullptr, 0), std::atof(argv[4]),
            argc > 5 && std::atoi(argv[5]) != 0, argc > 6 && std::atoi(argv[6]) != 0,
            argc > 7 && std::atoi(argv[7]) != 0, 0};
  struct stat about;
  const std::string first = load.write ? load.path + ".0" : load.path;
  need(stat(first.c_str(), &about) == 0, "stat", 0);
  load.blocks = about.st_size / load.block;
  CUdevice device;
  CUcontext context;
  need(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
           cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
           cuCtxSetCurrent(context) == CUDA_SUCCESS,
       "CUDA", 0);
  CUfileError_t error = cuFileDriverOpen();
  need(error.err == CU_FILE_SUCCESS, "cuFileDriverOpen", error.err);
  Shared shared;
  std::vector<std::vector<float>> latencies(load.threads);
  std::vector<std::thread> threads;
  for (int t = 0; t < load.threads; t++)
    threads.emplace_back([&, t] { worker(load, t, context, shared, latencies[t]); });
  while (shared.ready < load.threads) std::this_thread::yield();
  const double cpu = cpu_seconds();
  shared.start = now();
  shared.go = true;
  for (auto& thread : threads) thread.join();
  const double took = now() - shared.start, used = cpu_seconds() - cpu;
  std::vector<float> all;
  for (auto& some : latencies) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  const double bytes = double(all.size()) * load.block;
  std::printf("cufile threads %d block %zu: %.3f GiB/s %.0f IOPS p50 %.1f us p99 %.1f us "
              "%.1f us/MiB\n",
              load.threads, load.block, bytes / took / (1 << 30), all.size() / took,
              all[all.size() / 2], all[all.size() * 99 / 100], used * 1e6 / (bytes / (1 << 20)));
  std::fflush(stdout);
  std::_Exit(0);
}
