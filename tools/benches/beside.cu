// How long does a program's GPU work take during continuous reads through cuFile? Latency of one
// kind of work, alone and during the reads, in phases of half a second, so that both see the same machine.
// No gpuio code: what differs between two runs is the libcufile.so.0 that the loader finds.
//
//   nvcc -O2 -std=c++17 -arch=native -I crates/dropin/include beside.cu -o beside -ldl
//   LD_LIBRARY_PATH=DIRECTORY_OF_NVIDIAS beside coop FILE THREADS BLOCK SECONDS
//   gpuio exec -- beside coop FILE THREADS BLOCK SECONDS
//
// Work, in a non-blocking stream of the program:
//   coop   a cooperative kernel that fills the GPU, with 200 barriers of the grid
//   sync   a short kernel and cudaDeviceSynchronize, which waits for the whole device
//   graph  a graph of 16 kernels and a copy; every 32nd time it is captured anew (global mode)
//   green  a cooperative kernel that fills a green context of half the GPU; the reads are made by threads
//          with the green context of the other half (CUDA 12.4 and later)
//
// FILE holds THREADS blocks of BLOCK bytes at least. Each thread reads blocks in a scattered order into a
// registered buffer of its own, and whenever the reads pause compares its last one with pread(2). The
// program ends at most about 10 s after SECONDS. One line of JSON, times in microseconds: "host" as the
// program sees it, from before the launch to after the wait; "gpu" between events before and after
// the work. Exit code: 0; 1 for wrong bytes, an error, or work that did not end within 5 s; 2 for wrong
// arguments; 3 where the GPU or the driver can't do it.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#define GPUIO_CUFILE_NO_RENAMES
#include "cufile.h"

namespace {

[[noreturn]] void end(int code, const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::fflush(stderr);
  std::_Exit(code);
}
void fine(cudaError_t code, const char* what) {
  if (code != cudaSuccess) end(1, what, cudaGetErrorString(code));
}
void need(bool good, const char* what, long code) {
  if (!good) end(1, what, std::to_string(code).c_str());
}

constexpr double kTimeoutSeconds = 5, kTurnSeconds = 0.5, kSettleSeconds = 0.1;
constexpr int kBarriers = 200, kGraphKernels = 16, kCaptureEvery = 32;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Each block of the grid adds one between two barriers: what is counted is right only if all ran.
__global__ void barriers(int rounds, unsigned* counter) {
  auto grid = cooperative_groups::this_grid();
  for (int n = 0; n < rounds; n++) {
    if (threadIdx.x == 0) atomicAdd(counter, 1);
    grid.sync();
  }
}
__global__ void arithmetic(int rounds, unsigned* counter) {
  float value = threadIdx.x;
  for (int n = 0; n < rounds; n++) value = value * 1.0001f + 0.5f;
  if (value == -1.0f) *counter = 0;
  if (threadIdx.x == 0) atomicAdd(counter, 1);
}

// A call of the driver, looked for at run time: drivers before release 550 have no green contexts.
template <class F>
F driver_call(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* found = driver ? dlsym(driver, name) : nullptr;
  if (!found) end(3, name, "the driver does not have it");
  return reinterpret_cast<F>(found);
}
#define DRIVER(name) driver_call<decltype(&name)>(#name)
void set_current(CUcontext context) {
  const CUresult code = DRIVER(cuCtxSetCurrent)(context);
  need(code == CUDA_SUCCESS, "cuCtxSetCurrent", code);
}

#if CUDA_VERSION >= 12040
struct Green {
  CUcontext compute = nullptr, reads = nullptr;
  CUgreenCtx compute_green = nullptr;
  unsigned compute_sms = 0, reads_sms = 0;
};

void drv(CUresult code, const char* what) {
  if (code == CUDA_ERROR_NOT_SUPPORTED) end(3, what, "the GPU has no green contexts");
  need(code == CUDA_SUCCESS, what, code);
}

Green green_contexts() {
  Green made;
  CUdevResource all{}, half{}, other{};
  drv(DRIVER(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
  unsigned groups = 1;
  // Rounded up to what the GPU can separate; the other half is what remains.
  const CUresult split =
      DRIVER(cuDevSmResourceSplitByCount)(&half, &groups, &all, &other, 0, all.sm.smCount / 2);
  if (split == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION || groups == 0 || other.sm.smCount == 0)
    end(3, "cuDevSmResourceSplitByCount", "the GPU has too few multiprocessors");
  drv(split, "cuDevSmResourceSplitByCount");
  auto make = [](CUdevResource& part, CUgreenCtx& green, CUcontext& context) {
    CUdevResourceDesc description;
    drv(DRIVER(cuDevResourceGenerateDesc)(&description, &part, 1), "cuDevResourceGenerateDesc");
    drv(DRIVER(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
    drv(DRIVER(cuCtxFromGreenCtx)(&context, green), "cuCtxFromGreenCtx");
  };
  CUgreenCtx reads;
  make(half, made.compute_green, made.compute);
  make(other, reads, made.reads);
  made.compute_sms = half.sm.smCount;
  made.reads_sms = other.sm.smCount;
  return made;
}
#else
struct Green {
  CUcontext compute = nullptr, reads = nullptr;
  unsigned compute_sms = 0, reads_sms = 0;
};
Green green_contexts() { end(3, "green", "built with a CUDA before 12.4"); }
#endif

struct Calls {
  decltype(&::cuFileHandleRegister) handle;
  decltype(&::cuFileBufRegister) reg;
  decltype(&::cuFileRead) read;
};

// The reads: threads that go on while `going_`, and compare what they read last whenever it ends.
class Reads {
 public:
  // They wait for the first go().
  Reads(const Calls& calls, std::string path, int threads, size_t block, CUcontext context)
      : calls_(calls), path_(std::move(path)), block_(block), context_(context), threads_(threads) {
    struct stat about;
    need(stat(path_.c_str(), &about) == 0, path_.c_str(), errno);
    blocks_ = about.st_size / block;
    if (blocks_ < size_t(threads)) end(2, path_.c_str(), "shorter than THREADS blocks");
    for (int n = 0; n < threads; n++) std::thread([this, n] { work(n); }).detach();
    pause();
  }
  void go() {
    std::lock_guard<std::mutex> held(lock_);
    paused_ = 0;
    turn_++;
    going_ = true;
    changed_.notify_all();
  }
  // Returns once all threads have compared their last block.
  void pause() {
    going_ = false;
    std::unique_lock<std::mutex> held(lock_);
    const auto timeout = std::chrono::duration<double>(2 * kTimeoutSeconds);
    if (!changed_.wait_for(held, timeout, [&] { return paused_ == threads_; }))
      end(1, "reads", "a call did not return within 10 s");
  }
  unsigned long long count() const { return count_.load(std::memory_order_relaxed); }
  unsigned long long compared() const { return compared_.load(std::memory_order_relaxed); }

 private:
  void work(int n);

  const Calls& calls_;
  const std::string path_;
  const size_t block_;
  size_t blocks_ = 0;
  CUcontext context_;
  std::mutex lock_;
  std::condition_variable changed_;
  const int threads_;
  int paused_ = 0, turn_ = 0;
  std::atomic<bool> going_{false};
  std::atomic<unsigned long long> count_{0}, compared_{0};
};

void Reads::work(int n) {
  if (context_) set_current(context_);
  else fine(cudaSetDevice(0), "cudaSetDevice");
  void* buffer;
  fine(cudaMalloc(&buffer, block_), "cudaMalloc");
  const int fd = open(path_.c_str(), O_RDONLY);
  need(fd >= 0, path_.c_str(), errno);
  CUfileDescr_t description;
  std::memset(&description, 0, sizeof description);
  description.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  description.handle.fd = fd;
  CUfileHandle_t file;
  CUfileError_t error = calls_.handle(&file, &description);
  need(error.err == CU_FILE_SUCCESS, "cuFileHandleRegister", error.err);
  error = calls_.reg(buffer, block_, 0);
  need(error.err == CU_FILE_SUCCESS, "cuFileBufRegister", error.err);
  std::vector<char> seen(block_), wanted(block_);
  // 7919 is prime: unless the file has a multiple of so many blocks, all come up in turn.
  size_t next = size_t(n) * 977;
  for (int turn = 0;; turn++) {
    {
      std::unique_lock<std::mutex> held(lock_);
      paused_++;
      changed_.notify_all();
      changed_.wait(held, [&] { return turn_ > turn; });
    }
    size_t at;
    do {
      at = next++ * 7919 % blocks_ * block_;
      const ssize_t got = calls_.read(file, buffer, block_, at, 0);
      need(got == ssize_t(block_), "cuFileRead", got);
      count_.fetch_add(1, std::memory_order_relaxed);
    } while (going_.load(std::memory_order_relaxed));
    fine(cudaMemcpy(seen.data(), buffer, block_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    need(pread(fd, wanted.data(), block_, at) == ssize_t(block_), "pread", errno);
    if (seen != wanted) end(1, "wrong bytes", ("at offset " + std::to_string(at)).c_str());
    compared_.fetch_add(1, std::memory_order_relaxed);
  }
}

enum class Mode { kCoop, kSync, kGraph, kGreen };

// The program's work.
class Work {
 public:
  Work(Mode mode, unsigned sms) : mode_(mode) {
    cudaDeviceProp about;
    fine(cudaGetDeviceProperties(&about, 0), "cudaGetDeviceProperties");
    if (!about.cooperativeLaunch) end(3, "coop", "the GPU has no cooperative launches");
    int most = 0;
    fine(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, barriers, kBlock, 0), "occupancy");
    const unsigned parts = sms ? sms : about.multiProcessorCount;
    grid_ = whole() ? most * parts : 4 * parts;
    fine(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    fine(cudaMalloc(&counter_, sizeof *counter_), "cudaMalloc");
    fine(cudaMemset(counter_, 0, sizeof *counter_), "cudaMemset");
    fine(cudaMallocHost(&seen_, sizeof *seen_), "cudaMallocHost");
    fine(cudaEventCreate(&before_), "cudaEventCreate");
    fine(cudaEventCreate(&behind_), "cudaEventCreate");
    fine(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::thread([this] { watch(); }).detach();
  }
  // Once: microseconds as the program sees it, and between the events.
  void once(double& host_us, double& gpu_us) {
    if (mode_ == Mode::kGraph && done_ % kCaptureEvery == 0) capture();
    const double begin = now();
    began_ = begin;
    fine(cudaEventRecord(before_, stream_), "cudaEventRecord");
    launch();
    fine(cudaEventRecord(behind_, stream_), "cudaEventRecord");
    if (mode_ == Mode::kSync) fine(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    else fine(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    host_us = (now() - begin) * 1e6;
    began_ = 0;
    float ms = 0;
    fine(cudaEventElapsedTime(&ms, before_, behind_), "cudaEventElapsedTime");
    gpu_us = ms * 1e3;
    done_++;
    if (mode_ == Mode::kGraph) need(*seen_ == expected(), "a graph's kernels did not all run", *seen_);
  }
  // Whether all blocks of all kernels ran, which the reads must be paused for.
  void check() {
    fine(cudaMemcpy(seen_, counter_, sizeof *seen_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    need(*seen_ == expected(), "kernels did not all run", *seen_);
  }
  unsigned captures() const { return captures_; }

 private:
  static constexpr int kBlock = 1024;
  bool whole() const { return mode_ == Mode::kCoop || mode_ == Mode::kGreen; }
  unsigned expected() const {
    const unsigned each = whole() ? kBarriers : mode_ == Mode::kGraph ? kGraphKernels : 1;
    return done_ * each * grid_;  // modulo 2^32, as the counter
  }
  void launch() {
    if (mode_ == Mode::kGraph) {
      fine(cudaGraphLaunch(ready_, stream_), "cudaGraphLaunch");
    } else if (whole()) {
      int rounds = kBarriers;
      void* arguments[] = {&rounds, &counter_};
      const void* kernel = reinterpret_cast<const void*>(barriers);
      fine(cudaLaunchCooperativeKernel(kernel, grid_, kBlock, arguments, 0, stream_), "cooperative launch");
    } else {
      arithmetic<<<grid_, 256, 0, stream_>>>(1000, counter_);
      fine(cudaGetLastError(), "launch");
    }
  }
  void capture() {
    cudaGraph_t graph;
    fine(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    for (int n = 0; n < kGraphKernels; n++) arithmetic<<<grid_, 256, 0, stream_>>>(1000, counter_);
    fine(cudaMemcpyAsync(seen_, counter_, sizeof *seen_, cudaMemcpyDeviceToHost, stream_), "captured copy");
    fine(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    if (ready_) fine(cudaGraphExecDestroy(ready_), "cudaGraphExecDestroy");
    fine(cudaGraphInstantiateWithFlags(&ready_, graph, 0), "cudaGraphInstantiate");
    fine(cudaGraphDestroy(graph), "cudaGraphDestroy");
    captures_++;
  }
  void watch() {
    for (;; rest(0.1)) {
      const double began = began_;
      if (began != 0 && now() - began > kTimeoutSeconds) end(1, "starved", "the work did not end within 5 s");
    }
  }

  const Mode mode_;
  unsigned grid_ = 0, done_ = 0, captures_ = 0;
  cudaStream_t stream_;
  cudaEvent_t before_, behind_;
  cudaGraphExec_t ready_ = nullptr;
  unsigned *counter_, *seen_;
  std::atomic<double> began_{0};
};

struct Times {
  std::vector<double> host, gpu;
};

void sample(Work& work, Times& to) {
  for (const double until = now() + kTurnSeconds; now() < until;) {
    double host = 0, gpu = 0;
    work.once(host, gpu);
    to.host.push_back(host);
    to.gpu.push_back(gpu);
  }
}

void print(const char* name, std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  auto at = [&](double part) { return times[std::min(times.size() - 1, size_t(times.size() * part))]; };
  std::printf("\"%s\": {\"p50_us\": %.1f, \"p99_us\": %.1f, \"most_us\": %.1f}, ", name, at(0.5), at(0.99),
              times.back());
}

const char* find(void* library, const char* name, Calls& calls) {
  auto call = [&](auto& to, const char* symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, symbol));
    if (!to) end(1, symbol, "libcufile.so.0 does not have it");
  };
  decltype(&::cuFileDriverOpen) open;
  call(open, "cuFileDriverOpen");
  call(calls.handle, "cuFileHandleRegister");
  call(calls.reg, "cuFileBufRegister");
  call(calls.read, "cuFileRead");
  const CUfileError_t error = open();
  need(error.err == CU_FILE_SUCCESS, "cuFileDriverOpen", error.err);
  Dl_info where;
  return dladdr(reinterpret_cast<void*>(calls.read), &where) ? where.dli_fname : name;
}

}  // namespace

int main(int argc, char** argv) {
  const char* names[] = {"coop", "sync", "graph", "green"};
  int mode = 0;
  while (argc == 6 && mode < 4 && std::strcmp(argv[1], names[mode]) != 0) mode++;
  const int threads = argc == 6 ? std::atoi(argv[3]) : 0;
  const size_t block = argc == 6 ? std::strtoull(argv[4], nullptr, 0) : 0;
  const double seconds = argc == 6 ? std::atof(argv[5]) : 0;
  if (mode == 4 || threads < 1 || block == 0 || !(seconds > 0))
    end(2, "usage", "beside coop|sync|graph|green FILE THREADS BLOCK SECONDS");
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) end(3, "beside", "no GPU here");
  fine(cudaSetDevice(0), "cudaSetDevice");
  fine(cudaFree(nullptr), "context");
  void* library = dlopen("libcufile.so.0", RTLD_NOW);
  if (!library) end(3, "libcufile.so.0", dlerror());
  Calls calls;
  const char* file = find(library, "libcufile.so.0", calls);
  Green green;
  if (Mode(mode) == Mode::kGreen) {
    green = green_contexts();
    set_current(green.compute);
  }
  // Neither is ever destroyed: their threads work until the process ends.
  Work& work = *new Work(Mode(mode), green.compute_sms);
  Times warm, alone, beside;
  sample(work, warm);
  Reads& reads = *new Reads(calls, argv[2], threads, block, green.reads);
  reads.go();
  rest(kTurnSeconds);
  double beside_rate = 0, alone_rate = 0;
  const int turns = std::max(1, int(seconds / (3 * kTurnSeconds)));
  for (int turn = 0; turn < turns; turn++) {
    reads.pause();
    work.check();
    rest(kSettleSeconds);
    sample(work, alone);
    reads.go();
    rest(kSettleSeconds);
    auto rate = [&](auto during) {
      const double begin = now();
      const auto before = reads.count();
      during();
      return (reads.count() - before) * double(block) / (now() - begin) / (1 << 30) / turns;
    };
    beside_rate += rate([&] { sample(work, beside); });
    alone_rate += rate([&] { rest(kTurnSeconds); });
  }
  reads.pause();
  work.check();
  std::printf("{\"work\": \"%s\", \"library\": \"%s\", \"threads\": %d, \"block\": %zu, ", names[mode], file,
              threads, block);
  std::printf("\"alone\": {");
  print("host", alone.host);
  print("gpu", alone.gpu);
  std::printf("\"times\": %zu}, \"beside\": {", alone.host.size());
  print("host", beside.host);
  print("gpu", beside.gpu);
  std::printf("\"times\": %zu}, \"captures\": %u, \"multiprocessors\": [%u, %u], ", beside.host.size(),
              work.captures(), green.compute_sms, green.reads_sms);
  std::printf("\"gib_per_s_alone\": %.3f, \"gib_per_s_beside\": %.3f, \"reads\": %llu, \"compared\": %llu}\n",
              alone_rate, beside_rate, reads.count(), reads.compared());
  std::fflush(stdout);
  std::_Exit(0);
}
