// Does cuFileReadAsync bring the right bytes with several streams in flight? No gpuio code: block
// n of a file is filled with the number n + 1, read at random into GPU memory, and compared.
//
//   g++ -O2 -std=c++17 cufile_async_check.cpp -o cufile_async_check -lcuda -lcufile -lpthread
//   cufile_async_check FILE THREADS STREAMS MODE STREAM_FLAGS DIRECT BLOCK ROUNDS
//
// FILE is made (256 MiB) and overwritten. MODE: 0 nothing is registered, 1 one registered buffer for
// all streams of a thread, 2 one for each, 3 nothing, and each read has its own base. STREAM_FLAGS
// go to cuFileStreamRegister; 0 registers no stream. DIRECT: 1 opens with O_DIRECT.
#include <cuda.h>
#include <cufile.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

using Word = unsigned long long;

void need(long code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s: %ld\n", what, code);
  std::_Exit(1);
}

struct Load {
  const char* path;
  int threads, streams, mode, flags, direct;
  size_t block;
  int rounds;
  size_t blocks;
};

struct Found {
  std::atomic<long> all{0}, wrong{0}, failed{0};
};

// What cuFileReadAsync reads when the stream comes to it.
struct Request {
  size_t len;
  off_t offset, into;
  ssize_t done;
};

void make(const Load& load) {
  const int fd = open(load.path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  need(fd < 0, "open");
  std::vector<Word> words(load.block / sizeof(Word));
  for (size_t n = 0; n < load.blocks; n++) {
    for (auto& word : words) word = n + 1;
    need(pwrite(fd, words.data(), load.block, n * load.block) != (ssize_t)load.block, "pwrite");
  }
  need(fsync(fd), "fsync");
  close(fd);
}

void work(const Load& load, int thread, CUcontext context, Found& found) {
  need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const int fd = open(load.path, O_RDONLY | (load.direct ? O_DIRECT : 0));
  need(fd < 0, "open");
  CUdeviceptr memory;
  need(cuMemAlloc(&memory, load.block * load.streams), "cuMemAlloc");
  CUfileDescr_t describe;
  std::memset(&describe, 0, sizeof describe);
  describe.handle.fd = fd;
  describe.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  CUfileHandle_t handle;
  need(cuFileHandleRegister(&handle, &describe).err, "cuFileHandleRegister");
  const auto base = [&](size_t at) { return reinterpret_cast<void*>(memory + at); };
  if (load.mode == 1) {
    need(cuFileBufRegister(base(0), load.block * load.streams, 0).err, "cuFileBufRegister");
  }
  std::vector<CUstream> streams(load.streams);
  std::vector<CUevent> events(load.streams);
  for (int s = 0; s < load.streams; s++) {
    if (load.mode == 2) {
      need(cuFileBufRegister(base(s * load.block), load.block, 0).err, "cuFileBufRegister");
    }
    need(cuStreamCreate(&streams[s], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    need(cuEventCreate(&events[s], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    if (load.flags) need(cuFileStreamRegister(streams[s], load.flags).err, "cuFileStreamRegister");
  }
  const bool own = load.mode >= 2;
  std::mt19937_64 dice(thread + 1);
  std::vector<Request> requests(load.streams);
  std::vector<size_t> wanted(load.streams);
  std::vector<Word> words(load.block / sizeof(Word));
  for (int round = 0; round < load.rounds; round++) {
    for (int s = 0; s < load.streams; s++) {
      wanted[s] = dice() % load.blocks;
      const size_t at = s * load.block;
      requests[s] = {load.block, (off_t)(wanted[s] * load.block), own ? 0 : (off_t)at, -1};
      Request& request = requests[s];
      need(cuFileReadAsync(handle, base(own ? at : 0), &request.len, &request.offset, &request.into, &request.done,
                           streams[s])
               .err,
           "cuFileReadAsync");
      need(cuEventRecord(events[s], streams[s]), "cuEventRecord");
    }
    for (auto& event : events) need(cuEventSynchronize(event), "cuEventSynchronize");
    for (int s = 0; s < load.streams; s++) {
      need(cuMemcpyDtoH(words.data(), memory + s * load.block, load.block), "cuMemcpyDtoH");
      bool right = true;
      for (Word word : words) right = right && word == wanted[s] + 1;
      found.all++;
      found.wrong += !right;
      found.failed += requests[s].done != (ssize_t)load.block;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) {
    std::fprintf(stderr, "cufile_async_check FILE THREADS STREAMS MODE FLAGS DIRECT BLOCK ROUNDS\n");
    return 2;
  }
  Load load{argv[1],            std::atoi(argv[2]), std::atoi(argv[3]),
            std::atoi(argv[4]), std::atoi(argv[5]), std::atoi(argv[6]),
            std::strtoull(argv[7], nullptr, 0),     std::atoi(argv[8]), 0};
  load.blocks = (256u << 20) / load.block;
  make(load);
  CUdevice device;
  CUcontext context;
  need(cuInit(0), "cuInit");
  need(cuDeviceGet(&device, 0), "cuDeviceGet");
  need(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  need(cuFileDriverOpen().err, "cuFileDriverOpen");
  Found found;
  std::vector<std::thread> threads;
  for (int t = 0; t < load.threads; t++) {
    threads.emplace_back([&, t] { work(load, t, context, found); });
  }
  for (auto& thread : threads) thread.join();
  std::printf("%ld of %ld blocks wrong, %ld not read in full\n", found.wrong.load(),
              found.all.load(), found.failed.load());
  std::fflush(stdout);
  std::_Exit(0);
}
