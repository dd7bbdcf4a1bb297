// What do reads through cuFile cost a computation that keeps the GPU busy, and what does it cost the reads?
// Phases of half a second: the computation alone, both, the reads alone. No gpuio code: what differs
// between two runs is the libcufile.so.0 that the loader finds.
//
//   nvcc -O2 -std=c++17 -arch=native -I crates/dropin/include compute.cu -o compute -ldl -lcublas
//   LD_LIBRARY_PATH=DIRECTORY_OF_NVIDIAS compute gemm8192 FILE THREADS BLOCK SECONDS
//   gpuio exec -- compute gemm8192 FILE THREADS BLOCK SECONDS
//
// Computation, in a non-blocking stream that always has work queued:
//   gemmN    products of two bf16 matrices of N rows and columns (cuBLAS)
//   stream   a kernel that reads and writes 1 GiB of GPU memory
//
// FILE holds THREADS blocks of BLOCK bytes at least. Each thread reads blocks in a scattered order into
// a registered buffer of its own, and after each turn compares its last one with pread(2). One line of
// JSON: rates of the computation (launches per second) and of the reads (GiB/s), alone and at the same
// other. Exit code: 0; 1 for wrong bytes or an error; 2 for wrong arguments.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cufile.h"

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] static void fail(const char *what, long code) {
  fprintf(stderr, "%s: %ld\n", what, code);
  fflush(nullptr);
  _exit(1);
}

#define CHECK(call)                                   \
  do {                                                \
    if (auto code = (call); code != 0) {              \
      fail(#call, static_cast<long>(code));           \
    }                                                 \
  } while (0)

__global__ void touch(float4 *to, const float4 *from, size_t count) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t at = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; at < count; at += step) {
    float4 value = from[at];
    value.x += 1;
    to[at] = value;
  }
}

struct Cufile {
  decltype(&cuFileHandleRegister) handle;
  decltype(&cuFileBufRegister) buffer;
  decltype(&cuFileRead) read;
  decltype(&cuFileDriverOpen) open;
  Cufile() {
    void *library = dlopen("libcufile.so.0", RTLD_NOW);
    if (library == nullptr) {
      fail(dlerror(), 0);
    }
    handle = reinterpret_cast<decltype(handle)>(dlsym(library, "cuFileHandleRegister"));
    buffer = reinterpret_cast<decltype(buffer)>(dlsym(library, "cuFileBufRegister"));
    read = reinterpret_cast<decltype(read)>(dlsym(library, "cuFileRead"));
    open = reinterpret_cast<decltype(open)>(dlsym(library, "cuFileDriverOpen"));
  }
};

int main(int count, char **given) {
  if (count != 6) {
    fprintf(stderr, "usage: compute gemmN|stream FILE THREADS BLOCK SECONDS\n");
    return 2;
  }
  const std::string work = given[1];
  const char *path = given[2];
  const int threads = atoi(given[3]);
  const size_t block = strtoull(given[4], nullptr, 0);
  const double seconds = atof(given[5]);
  const int side = work.rfind("gemm", 0) == 0 ? atoi(work.c_str() + 4) : 0;
  struct stat status {};
  if (threads < 1 || block < 1 || seconds <= 0 || (side < 1 && work != "stream") ||
      stat(path, &status) != 0 || static_cast<size_t>(status.st_size) < block * threads) {
    fprintf(stderr, "compute: an argument is wrong, or %s is too short\n", path);
    return 2;
  }
  const size_t blocks = status.st_size / block;

  CHECK(cudaSetDevice(0));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::function<void()> launch;
  int queued = 4;
  cublasHandle_t handle = nullptr;
  if (side > 0) {
    // Not zeros: the rate of products depends on the bits that change.
    const size_t bytes = static_cast<size_t>(side) * side * 2;
    std::vector<unsigned short> values(bytes / 2);
    for (size_t at = 0; at < values.size(); at++) {
      values[at] = 0x3c00 + (at * 2654435761u >> 22 & 0x3ff);
    }
    static void *a, *b, *c;
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    CHECK(cudaMalloc(&c, bytes));
    CHECK(cudaMemcpy(a, values.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b, values.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cublasCreate(&handle));
    CHECK(cublasSetStream(handle, stream));
    queued = side >= 8192 ? 4 : 64;
    launch = [=] {
      const float one = 1, zero = 0;
      CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one, a, CUDA_R_16BF, side, b,
                         CUDA_R_16BF, side, &zero, c, CUDA_R_16BF, side, CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT));
    };
  } else {
    const size_t words = (512u << 20) / sizeof(float4);
    float4 *to, *from;
    CHECK(cudaMalloc(&to, words * sizeof(float4)));
    CHECK(cudaMalloc(&from, words * sizeof(float4)));
    int processors = 0;
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    launch = [=] {
      touch<<<processors * 8, 256, 0, stream>>>(to, from, words);
      CHECK(cudaGetLastError());
    };
  }

  Cufile cufile;
  CHECK(cufile.open().err);
  std::atomic<bool> reads{false}, ends{false};
  std::atomic<int> resting{0};
  struct alignas(128) Counter {
    std::atomic<unsigned long> bytes{0};
  };
  std::vector<Counter> counters(threads);
  std::vector<std::thread> readers;
  for (int number = 0; number < threads; number++) {
    readers.emplace_back([&, number] {
      CHECK(cudaSetDevice(0));
      const int file = open(path, O_RDONLY);
      void *memory;
      CHECK(cudaMalloc(&memory, block));
      CUfileDescr_t description;
      memset(&description, 0, sizeof description);
      description.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
      description.handle.fd = file;
      CUfileHandle_t opened;
      CHECK(cufile.handle(&opened, &description).err);
      CHECK(cufile.buffer(memory, block, 0).err);
      std::vector<char> wanted(block), got(block);
      size_t turn = number;
      while (!ends) {
        if (!reads) {
          resting++;
          while (!reads && !ends) {
            usleep(200);
          }
          resting--;
          continue;
        }
        off_t offset = 0;
        for (int each = 0; each < 16 && reads; each++) {
          turn += threads;
          offset = static_cast<off_t>(turn * 7919 % blocks * block);
          const ssize_t done = cufile.read(opened, memory, block, offset, 0);
          if (done != static_cast<ssize_t>(block)) {
            fail("cuFileRead", done);
          }
          counters[number].bytes += block;
        }
        if (!reads) {
          CHECK(cudaMemcpy(got.data(), memory, block, cudaMemcpyDeviceToHost));
          if (pread(file, wanted.data(), block, offset) != static_cast<ssize_t>(block) || got != wanted) {
            fail("wrong bytes of the block at", offset);
          }
        }
      }
    });
  }

  // Half a second of one or both. Rates per second.
  struct Rates {
    double launches = 0, bytes = 0;
  };
  auto moved = [&] {
    unsigned long sum = 0;
    for (auto &counter : counters) {
      sum += counter.bytes;
    }
    return sum;
  };
  auto turn = [&](bool computes, bool with_reads) {
    reads = with_reads;
    auto compute = [&](double until) {
      unsigned long done = 0;
      // Two groups in flight, so that the GPU never waits for the host.
      cudaEvent_t marks[2];
      CHECK(cudaEventCreateWithFlags(&marks[0], cudaEventDisableTiming));
      CHECK(cudaEventCreateWithFlags(&marks[1], cudaEventDisableTiming));
      for (int group = 0;; group++) {
        for (int each = 0; each < queued; each++) {
          launch();
        }
        CHECK(cudaEventRecord(marks[group % 2], stream));
        if (group > 0) {
          CHECK(cudaEventSynchronize(marks[(group + 1) % 2]));
          done += queued;
        }
        if (now() > until) {
          break;
        }
      }
      CHECK(cudaStreamSynchronize(stream));
      CHECK(cudaEventDestroy(marks[0]));
      CHECK(cudaEventDestroy(marks[1]));
      return done + queued;
    };
    if (computes) {
      compute(now() + 0.1);
    } else {
      usleep(100000);
    }
    const unsigned long before = moved();
    const double began = now();
    Rates rates;
    if (computes) {
      rates.launches = static_cast<double>(compute(began + 0.5));
    } else {
      usleep(500000);
    }
    const double took = now() - began;
    rates.launches /= took;
    rates.bytes = static_cast<double>(moved() - before) / took;
    reads = false;
    while (resting != threads) {
      usleep(100);
    }
    return rates;
  };
  while (resting != threads) {
    usleep(100);
  }
  turn(true, true);
  Rates alone, both, only;
  int turns = 0;
  for (const double end = now() + seconds; now() < end; turns++) {
    const Rates a = turn(true, false), b = turn(true, true), c = turn(false, true);
    alone.launches += a.launches;
    both.launches += b.launches;
    both.bytes += b.bytes;
    only.bytes += c.bytes;
  }
  ends = true;
  for (auto &reader : readers) {
    reader.join();
  }
  const double gib = turns * static_cast<double>(1 << 30);
  Dl_info library{};
  dladdr(reinterpret_cast<void *>(cufile.read), &library);
  printf("{\"work\": \"%s\", \"library\": \"%s\", \"threads\": %d, \"block\": %zu, \"turns\": %d, "
         "\"compute_per_s_alone\": %.1f, \"compute_per_s_beside\": %.1f, \"compute_keeps\": %.4f, "
         "\"gib_per_s_alone\": %.3f, \"gib_per_s_beside\": %.3f}\n",
         work.c_str(), library.dli_fname, threads, block, turns, alone.launches / turns,
         both.launches / turns, both.launches / alone.launches, only.bytes / gib, both.bytes / gib);
  fflush(nullptr);
  _exit(0);
}
