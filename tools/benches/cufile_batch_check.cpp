// Does cuFile's batch interface bring the right bytes? No gpuio code: every byte of a file tells its
// place, batches read at random into GPU memory, and each event's block is compared.
//
//   g++ -O2 -std=c++17 cufile_batch_check.cpp -o cufile_batch_check -lcuda -lcufile -lpthread
//   cufile_batch_check FILE THREADS BATCHES ENTRIES LARGEST ALIGN REGISTER DIRECT SYNC ROUNDS [HOLD]
//
// FILE is made (64 MiB) and overwritten. Each thread has BATCHES handles of ENTRIES blocks, each of 1
// to LARGEST bytes, offsets and lengths multiples of ALIGN. REGISTER: 0 nothing, 1 one buffer for
// each block. DIRECT: 1 opens with O_DIRECT. Blocks are fetched for comparison by a stream that does
// not wait for the default stream; SYNC 1 waits for the context first, 2 for 20 ms, 3 uses the
// default stream. HOLD: so many more handles of batches are set up and never used.
#include <cuda.h>
#include <cufile.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr size_t kFile = 64u << 20;

void need(long code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s: %ld\n", what, code);
  std::_Exit(1);
}

// Never 0, so that a block that nobody filled is told from one that holds other bytes.
unsigned char byte_at(size_t at) {
  size_t word = (at / 8 + 1) * 0x9E3779B97F4A7C15ull;
  word ^= word >> 29;
  return static_cast<unsigned char>((word >> (8 * (at % 8))) | 1);
}

struct Load {
  const char* path;
  int threads, batches, entries;
  size_t largest, align;
  int registers, direct, sync, rounds, hold;
};

struct Found {
  std::atomic<long> all{0}, wrong{0}, zeros{0};
  std::mutex lock;
  std::map<std::pair<int, long>, long> odd;  // status and whether short: not complete in full
};

void make(const Load& load) {
  const int fd = open(load.path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  need(fd < 0, "open");
  std::vector<unsigned char> bytes(kFile);
  for (size_t at = 0; at < kFile; at++) bytes[at] = byte_at(at);
  need(pwrite(fd, bytes.data(), kFile, 0) != (ssize_t)kFile, "pwrite");
  need(fsync(fd), "fsync");
  close(fd);
}

struct Block {
  size_t offset, len;
  bool out;
};

struct Batch {
  CUfileBatchHandle_t handle;
  std::vector<CUfileIOParams_t> params;
  std::vector<Block> blocks;
  CUdeviceptr memory;
  int out = 0;
};

void submit(const Load& load, CUfileHandle_t file, Batch& batch, size_t stride,
            std::mt19937_64& dice) {
  for (int n = 0; n < load.entries; n++) {
    const size_t units = load.largest / load.align;
    const size_t len = (dice() % units + 1) * load.align;
    const size_t offset = dice() % ((kFile - len) / load.align) * load.align;
    batch.blocks[n] = {offset, len, true};
    need(cuMemsetD8(batch.memory + n * stride, 0, stride), "cuMemsetD8");
    CUfileIOParams_t& io = batch.params[n];
    std::memset(&io, 0, sizeof io);
    io.mode = CUFILE_BATCH;
    io.u.batch.devPtr_base = reinterpret_cast<void*>(batch.memory + n * stride);
    io.u.batch.file_offset = offset;
    io.u.batch.size = len;
    io.fh = file;
    io.opcode = CUFILE_READ;
    io.cookie = reinterpret_cast<void*>(static_cast<size_t>(n) + 1);
  }
  need(cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  need(cuFileBatchIOSubmit(batch.handle, load.entries, batch.params.data(), 0).err,
       "cuFileBatchIOSubmit");
  batch.out = load.entries;
}

void compare(const Load& load, Batch& batch, size_t n, size_t stride, CUstream own, Found& found) {
  const Block& block = batch.blocks[n];
  std::vector<unsigned char> bytes(block.len);
  if (load.sync == 1) need(cuCtxSynchronize(), "cuCtxSynchronize");
  if (load.sync == 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const CUdeviceptr from = batch.memory + n * stride;
  const CUstream stream = load.sync == 3 ? nullptr : own;
  need(cuMemcpyDtoHAsync(bytes.data(), from, block.len, stream), "cuMemcpyDtoHAsync");
  need(cuStreamSynchronize(stream), "cuStreamSynchronize");
  bool right = true, zero = true;
  for (size_t at = 0; at < block.len; at++) {
    right = right && bytes[at] == byte_at(block.offset + at);
    zero = zero && bytes[at] == 0;
  }
  found.all++;
  found.wrong += !right;
  found.zeros += zero;
}

void reap(const Load& load, Batch& batch, size_t stride, CUstream own, Found& found) {
  std::vector<CUfileIOEvents_t> events(load.entries);
  std::memset(events.data(), 0, events.size() * sizeof events[0]);
  unsigned count = batch.out;
  timespec most{0, 100000000};
  need(cuFileBatchIOGetStatus(batch.handle, 1, &count, events.data(), &most).err,
       "cuFileBatchIOGetStatus");
  for (unsigned e = 0; e < count && e < events.size(); e++) {
    const auto& event = events[e];
    if (!(event.status & (CUFILE_COMPLETE | CUFILE_FAILED | CUFILE_INVALID | CUFILE_CANCELED |
                          CUFILE_TIMEOUT)))
      continue;
    const size_t n = reinterpret_cast<size_t>(event.cookie) - 1;
    if (n >= batch.blocks.size() || !batch.blocks[n].out) {
      std::lock_guard<std::mutex> guard(found.lock);
      found.odd[{-1, static_cast<long>(n)}]++;
      continue;
    }
    batch.blocks[n].out = false;
    batch.out--;
    const long moved = static_cast<long>(event.ret);
    if (event.status != CUFILE_COMPLETE || moved != (long)batch.blocks[n].len) {
      std::lock_guard<std::mutex> guard(found.lock);
      found.odd[{event.status, moved < 0 ? moved : moved - (long)batch.blocks[n].len}]++;
    } else {
      compare(load, batch, n, stride, own, found);
    }
  }
}

void work(const Load& load, int thread, CUcontext context, Found& found) {
  need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const int fd = open(load.path, O_RDONLY | (load.direct ? O_DIRECT : 0));
  need(fd < 0, "open");
  CUfileDescr_t describe;
  std::memset(&describe, 0, sizeof describe);
  describe.handle.fd = fd;
  describe.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  CUfileHandle_t file;
  need(cuFileHandleRegister(&file, &describe).err, "cuFileHandleRegister");
  const size_t stride = (load.largest + 65535) / 65536 * 65536;
  std::vector<Batch> batches(load.batches + load.hold);
  for (auto& batch : batches) {
    need(cuFileBatchIOSetUp(&batch.handle, load.entries).err, "cuFileBatchIOSetUp");
    batch.params.resize(load.entries);
    batch.blocks.resize(load.entries);
    need(cuMemAlloc(&batch.memory, stride * load.entries), "cuMemAlloc");
    for (int n = 0; load.registers && n < load.entries; n++) {
      need(cuFileBufRegister(reinterpret_cast<void*>(batch.memory + n * stride), stride, 0).err,
           "cuFileBufRegister");
    }
  }
  CUstream own;
  need(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  std::mt19937_64 dice(thread + 1);
  for (int round = 0; round < load.rounds; round++) {
    for (int b = 0; b < load.batches; b++) submit(load, file, batches[b], stride, dice);
    for (int b = 0; b < load.batches; b++) {
      while (batches[b].out > 0) reap(load, batches[b], stride, own, found);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 11 && argc != 12) {
    std::fprintf(stderr,
                 "cufile_batch_check FILE THREADS BATCHES ENTRIES LARGEST ALIGN REGISTER DIRECT SYNC "
                 "ROUNDS [HOLD]\n");
    return 2;
  }
  Load load{argv[1],
            std::atoi(argv[2]),
            std::atoi(argv[3]),
            std::atoi(argv[4]),
            std::strtoull(argv[5], nullptr, 0),
            std::strtoull(argv[6], nullptr, 0),
            std::atoi(argv[7]),
            std::atoi(argv[8]),
            std::atoi(argv[9]),
            std::atoi(argv[10]),
            argc == 12 ? std::atoi(argv[11]) : 0};
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
  std::printf("%ld of %ld blocks wrong, %ld of them zeros", found.wrong.load(), found.all.load(),
              found.zeros.load());
  for (const auto& [what, count] : found.odd) {
    std::printf("; status %#x, %ld: %ld times", what.first, what.second, count);
  }
  std::printf("\n");
  std::fflush(stdout);
  std::_Exit(0);
}
