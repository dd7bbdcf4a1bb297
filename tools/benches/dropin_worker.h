// One thread of tools/benches/dropin.cpp, and what all threads share.
#ifndef GPUIO_DROPIN_WORKER_H
#define GPUIO_DROPIN_WORKER_H

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#define GPUIO_CUFILE_NO_RENAMES
#include "cufile.h"

#include "cuda_driver.h"

namespace {

constexpr uint64_t kSeed = 0x6770'7569'6f21;
constexpr size_t kPage = 4096;

struct Load {
  std::string mode, path;
  int threads = 1, streams = 4, depth = 4;
  unsigned entries = 128, flags = 15;
  size_t block = 1 << 20, check = 16, size = 0, blocks = 0;
  double seconds = 2, ramp = 0.2;
  bool random = false, direct = false, cold = false, registered = true;

  bool writes() const { return mode == "write" || mode == "pwrite"; }
  bool cufile() const {
    return mode == "sync" || mode == "batch" || mode == "async" || mode == "write";
  }
  bool gpu() const { return mode != "pread" && mode != "pwrite"; }
};

[[noreturn]] void fail(const std::string& what, long code) {
  std::fprintf(stderr, "%s: %ld%s%s\n", what.c_str(), code, code == -1 ? ", " : "",
               code == -1 ? std::strerror(errno) : "");
  std::_Exit(1);
}

void need(bool fine, const char* what, long code = 0) {
  if (!fine) fail(what, code);
}

uint64_t now_ns() {
  using clock = std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch())
      .count();
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Word `n` of the file: it depends on the place, so that a block in the wrong place is wrong.
uint64_t word(uint64_t n) { return mix(kSeed + n * 0x9e3779b97f4a7c15); }

// Latencies, 32 classes for each power of two: a percentile is right to 3 %.
class Histogram {
 public:
  void add(uint64_t ns) {
    const int bits = ns < 64 ? 0 : 58 - __builtin_clzll(ns);
    counts_[bits * 32 + (ns >> bits)]++;
    total_++;
  }
  void add(const Histogram& other) {
    for (size_t n = 0; n < counts_.size(); n++) counts_[n] += other.counts_[n];
    total_ += other.total_;
  }
  double us(double share) const {
    uint64_t left = std::ceil(total_ * share);
    for (size_t n = 0; n < counts_.size(); n++) {
      if (counts_[n] >= left && total_ > 0) {
        const size_t bits = n < 64 ? 0 : n / 32 - 1;
        return ((n - bits * 32 + 0.5) * double(1ull << bits)) / 1e3;
      }
      left -= counts_[n];
    }
    return 0;
  }

 private:
  std::array<uint64_t, 62 * 32> counts_{};
  uint64_t total_ = 0;
};

// The cuFile library that the loader finds, as a program finds it that is not linked to it.
struct Cufile {
#define CALL(name) decltype(&::name) name = nullptr
  CALL(cuFileDriverOpen);
  CALL(cuFileGetVersion);
  CALL(cuFileHandleRegister);
  CALL(cuFileBufRegister);
  CALL(cuFileRead);
  CALL(cuFileWrite);
  CALL(cuFileBatchIOSetUp);
  CALL(cuFileBatchIOSubmit);
  CALL(cuFileBatchIOGetStatus);
  CALL(cuFileReadAsync);
  CALL(cuFileStreamRegister);
#undef CALL
  std::string path;
  int version = 0;

  void load() {
    void* library = dlopen("libcufile.so.0", RTLD_NOW);
    if (!library) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::_Exit(3);
    }
#define FIND(name) \
  need((name = reinterpret_cast<decltype(name)>(dlsym(library, #name))) != nullptr, #name)
    FIND(cuFileDriverOpen);
    FIND(cuFileGetVersion);
    FIND(cuFileHandleRegister);
    FIND(cuFileBufRegister);
    FIND(cuFileRead);
    FIND(cuFileWrite);
    FIND(cuFileBatchIOSetUp);
    FIND(cuFileBatchIOSubmit);
    FIND(cuFileBatchIOGetStatus);
    FIND(cuFileReadAsync);
    FIND(cuFileStreamRegister);
#undef FIND
    Dl_info about;
    if (dladdr(reinterpret_cast<void*>(cuFileRead), &about)) path = about.dli_fname;
    const CUfileError_t error = cuFileDriverOpen();
    need(error.err == CU_FILE_SUCCESS, "cuFileDriverOpen", error.err);
    cuFileGetVersion(&version);
  }
};

struct Shared {
  Load load;
  cuda_driver cuda{};
  cuda_context context = nullptr;
  Cufile cufile;
  std::atomic<int> ready{0}, finished{0};
  std::atomic<bool> go{false}, checking{false};
  std::atomic<uint64_t> progress{0};
  uint64_t start = 0, end = 0;
};

// Long compared with reading a flag, short compared with a run.
void rest() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

void* host_memory(size_t bytes) {
  void* memory = nullptr;
  need(posix_memalign(&memory, kPage, bytes) == 0, "posix_memalign");
  std::memset(memory, 1, bytes);
  return memory;
}

// One thread's part: its file, its memory, the blocks that it reads.
class Worker {
 public:
  Worker(Shared& shared, int thread)
      : shared_(shared), load_(shared.load), cuda_(shared.cuda), thread_(thread) {
    state_ = mix(kSeed ^ (thread + 1));
    const size_t each = load_.blocks / load_.threads;
    first_ = thread * each;
    share_ = std::max<size_t>(each, 1);
  }

  void run() {
    if (load_.gpu()) cuda_needs(&cuda_, cuda_.set_current(shared_.context), "cuCtxSetCurrent");
    const int access = load_.writes() ? O_RDWR : O_RDONLY;
    fd_ = open(load_.path.c_str(), access | (load_.direct ? O_DIRECT : 0));
    need(fd_ >= 0, load_.path.c_str(), -1);
    slots_ = load_.mode == "batch"   ? load_.entries
             : load_.mode == "async" ? size_t(load_.streams) * load_.depth
                                     : 1;
    if (load_.gpu()) {
      const size_t bytes = std::max<size_t>(slots_ * load_.block, 64 << 10);
      cuda_needs(&cuda_, cuda_.alloc(&memory_, bytes), "cuMemAlloc");
    }
    if (load_.cufile()) open_cufile();
    if (!load_.gpu()) host_ = host_memory(load_.block);
    if (load_.mode == "copy")
      cuda_needs(&cuda_, cuda_.host_alloc(&host_, load_.block, 0), "cuMemHostAlloc");
    if (load_.mode == "batch") open_batch();
    if (load_.mode == "async") open_streams();
    // What a library makes at its first calls is set-up.
    until_ = now_ns() + uint64_t(load_.ramp * 1e9);
    timed();
    latencies = {};
    ios = taken_ = 0;
    shared_.ready++;
    while (!shared_.go) rest();
    until_ = shared_.end;
    timed();
    shared_.finished++;
    while (!shared_.checking) rest();
    check();
  }

  Histogram latencies;
  uint64_t ios = 0, checked = 0, bad = 0, ended = 0;

 private:
  void open_cufile() {
    CUfileDescr_t describe;
    std::memset(&describe, 0, sizeof describe);
    describe.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
    describe.handle.fd = fd_;
    CUfileError_t error = shared_.cufile.cuFileHandleRegister(&handle_, &describe);
    need(error.err == CU_FILE_SUCCESS, "cuFileHandleRegister", error.err);
    if (!load_.registered) return;
    error = shared_.cufile.cuFileBufRegister(base(0), slots_ * load_.block, 0);
    need(error.err == CU_FILE_SUCCESS, "cuFileBufRegister", error.err);
  }

  void open_batch() {
    const CUfileError_t error = shared_.cufile.cuFileBatchIOSetUp(&batch_, load_.entries);
    need(error.err == CU_FILE_SUCCESS, "cuFileBatchIOSetUp", error.err);
    entries_.resize(load_.entries);
    events_.resize(load_.entries);
  }

  void open_streams() {
    for (int n = 0; n < load_.streams; n++) {
      cuda_stream stream;
      // Not ordered with the default stream.
      cuda_needs(&cuda_, cuda_.stream(&stream, 1), "cuStreamCreate");
      const CUfileError_t error = shared_.cufile.cuFileStreamRegister(stream, load_.flags);
      need(error.err == CU_FILE_SUCCESS, "cuFileStreamRegister", error.err);
      streams_.push_back(stream);
    }
    requests_.resize(slots_);
  }

  void* base(size_t slot) const {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(memory_ + slot * load_.block));
  }

  // The next block's number, or none left in a run that reads each byte once.
  bool next(size_t& block) {
    if (load_.random) {
      state_ = mix(state_ + 0x9e3779b97f4a7c15);
      block = state_ % load_.blocks;
      return true;
    }
    if (load_.cold && taken_ == share_) return false;
    block = first_ + taken_++ % share_;
    return true;
  }

  bool over(uint64_t at) const { return at >= until_; }

  void timed() {
    if (load_.mode == "batch") {
      batches();
    } else if (load_.mode == "async") {
      streams();
    } else {
      for (size_t block; !over(ended = now_ns()) && next(block);) {
        one(block);
        done(now_ns() - ended, 1);
      }
    }
    ended = now_ns();
  }

  void done(uint64_t ns, size_t count) {
    shared_.progress.fetch_add(1, std::memory_order_relaxed);
    if (shared_.checking) return;
    for (size_t n = 0; n < count; n++) latencies.add(ns);
    ios += count;
  }

  void one(size_t block) {
    const off_t at = block * load_.block;
    if (load_.mode == "sync") {
      const ssize_t got = shared_.cufile.cuFileRead(handle_, base(0), load_.block, at, 0);
      need(got == ssize_t(load_.block), "cuFileRead", got);
      return;
    }
    if (load_.mode == "write") {
      const ssize_t put = shared_.cufile.cuFileWrite(handle_, base(0), load_.block, at, 0);
      need(put == ssize_t(load_.block), "cuFileWrite", put);
      return;
    }
    if (load_.mode == "pwrite") {
      const ssize_t put = pwrite(fd_, host_, load_.block, at);
      need(put == ssize_t(load_.block), "pwrite", put);
      return;
    }
    const ssize_t got = pread(fd_, host_, load_.block, at);
    need(got == ssize_t(load_.block), "pread", got);
    if (load_.mode == "copy")
      cuda_needs(&cuda_, cuda_.to_device(memory_, host_, load_.block), "cuMemcpyHtoD");
  }

  // A batch of blocks, waited for; gives the blocks that were read.
  std::vector<size_t> one_batch() {
    std::vector<size_t> blocks;
    size_t block;
    while (blocks.size() < load_.entries && next(block)) blocks.push_back(block);
    for (size_t n = 0; n < blocks.size(); n++) {
      CUfileIOParams_t& entry = entries_[n];
      std::memset(&entry, 0, sizeof entry);
      entry.mode = CUFILE_BATCH;
      entry.u.batch.devPtr_base = base(0);
      entry.u.batch.devPtr_offset = n * load_.block;
      entry.u.batch.file_offset = blocks[n] * load_.block;
      entry.u.batch.size = load_.block;
      entry.fh = handle_;
      entry.opcode = CUFILE_READ;
      entry.cookie = reinterpret_cast<void*>(n);
    }
    if (blocks.empty()) return blocks;
    CUfileError_t error =
        shared_.cufile.cuFileBatchIOSubmit(batch_, blocks.size(), entries_.data(), 0);
    need(error.err == CU_FILE_SUCCESS, "cuFileBatchIOSubmit", error.err);
    for (size_t back = 0; back < blocks.size();) {
      unsigned count = blocks.size() - back;
      error = shared_.cufile.cuFileBatchIOGetStatus(batch_, count, &count, events_.data(), nullptr);
      need(error.err == CU_FILE_SUCCESS, "cuFileBatchIOGetStatus", error.err);
      for (unsigned n = 0; n < count; n++) {
        need(events_[n].status == CUFILE_COMPLETE, "status of an event", events_[n].status);
        need(events_[n].ret == load_.block, "bytes of an event", events_[n].ret);
      }
      back += count;
    }
    return blocks;
  }

  void batches() {
    while (!over(ended = now_ns())) {
      const size_t count = one_batch().size();
      if (count == 0) break;
      done(now_ns() - ended, count);
    }
  }

  // What a read in a stream is given by reference: it stays where it is until the read is done.
  struct Requested {
    size_t bytes, block;
    off_t file, memory;
    ssize_t moved;
    uint64_t since;
  };

  void submit(size_t slot, size_t block) {
    Requested& request = requests_[slot];
    const off_t file = block * load_.block, memory = slot * load_.block;
    request = {load_.block, block, file, memory, -2, now_ns()};
    const CUfileError_t error = shared_.cufile.cuFileReadAsync(
        handle_, base(0), &request.bytes, &request.file, &request.memory, &request.moved,
        streams_[slot % streams_.size()]);
    need(error.err == CU_FILE_SUCCESS, "cuFileReadAsync", error.err);
  }

  // Each stream in turn: waited for as a whole, then filled again while the others go on.
  void streams() {
    std::vector<std::vector<size_t>> under_way(streams_.size());
    for (bool more = true; more;) {
      more = false;
      for (size_t s = 0; s < streams_.size(); s++) {
        land(s, under_way[s]);
        for (int n = 0; n < load_.depth && !over(now_ns()); n++) {
          size_t block;
          if (!next(block)) break;
          const size_t slot = n * streams_.size() + s;
          submit(slot, block);
          under_way[s].push_back(slot);
        }
        more = more || !under_way[s].empty();
      }
    }
  }

  void land(size_t stream, std::vector<size_t>& slots) {
    if (slots.empty()) return;
    cuda_needs(&cuda_, cuda_.stream_wait(streams_[stream]), "cuStreamSynchronize");
    const uint64_t at = now_ns();
    for (size_t slot : slots) {
      need(requests_[slot].moved == ssize_t(load_.block), "a read in a stream", requests_[slot].moved);
      done(at - requests_[slot].since, 1);
    }
    slots.clear();
  }

  void check() {
    if (load_.check == 0) return;
    // The runs that read once have nothing left to take otherwise.
    taken_ = 0;
    std::vector<uint64_t> back(load_.block / 8);
    for (size_t n = 0; n < load_.check; n++) {
      if (load_.writes()) {
        size_t block;
        if (!next(block)) return;
        rewrite(block, back);
        continue;
      }
      poison();
      std::vector<size_t> blocks;
      if (load_.mode == "batch") {
        blocks = one_batch();
        n += blocks.size() - std::min<size_t>(1, blocks.size());
      } else {
        size_t block;
        if (!next(block)) return;
        blocks = {block};
        if (load_.mode == "async") {
          submit(0, block);
          std::vector<size_t> slots{0};
          land(0, slots);
        } else {
          one(block);
        }
      }
      for (size_t slot = 0; slot < blocks.size(); slot++) compare(slot, blocks[slot], back);
      if (blocks.empty()) return;
    }
  }

  // Writes a block with the pattern, and compares what is in the file then.
  void rewrite(size_t block, std::vector<uint64_t>& back) {
    const uint64_t first = block * load_.block / 8;
    for (size_t n = 0; n < back.size(); n++) back[n] = word(first + n);
    if (load_.gpu()) {
      cuda_needs(&cuda_, cuda_.to_device(memory_, back.data(), load_.block), "cuMemcpyHtoD");
    } else {
      std::memcpy(host_, back.data(), load_.block);
    }
    one(block);
    const int fd = open(load_.path.c_str(), O_RDONLY);
    const ssize_t got = pread(fd, back.data(), load_.block, block * load_.block);
    close(fd);
    need(got == ssize_t(load_.block), "pread", got);
    count(back, first);
  }

  void poison() {
    if (!load_.gpu()) {
      std::memset(host_, 0xa5, load_.block);
      return;
    }
    cuda_needs(&cuda_, cuda_.fill(memory_, 0xa5, slots_ * load_.block), "cuMemsetD8");
    // The default stream does not wait for it, and cuFile is not ordered with that one.
    uint8_t last;
    const cuda_address end = memory_ + slots_ * load_.block - 1;
    cuda_needs(&cuda_, cuda_.to_host(&last, end, 1), "cuMemcpyDtoH");
  }

  void compare(size_t slot, size_t block, std::vector<uint64_t>& back) {
    if (load_.gpu()) {
      const cuda_address from = memory_ + slot * load_.block;
      cuda_needs(&cuda_, cuda_.to_host(back.data(), from, load_.block), "cuMemcpyDtoH");
    } else {
      std::memcpy(back.data(), host_, load_.block);
    }
    count(back, block * load_.block / 8);
  }

  void count(const std::vector<uint64_t>& back, uint64_t first) {
    for (size_t n = 0; n < back.size(); n++) {
      if (back[n] != word(first + n)) {
        bad++;
        break;
      }
    }
    checked++;
  }

  Shared& shared_;
  const Load& load_;
  const cuda_driver& cuda_;
  int thread_, fd_ = -1;
  uint64_t state_ = 0, until_ = 0;
  size_t first_ = 0, share_ = 0, taken_ = 0, slots_ = 1;
  cuda_address memory_ = 0;
  void* host_ = nullptr;
  CUfileHandle_t handle_ = nullptr;
  CUfileBatchHandle_t batch_ = nullptr;
  std::vector<CUfileIOParams_t> entries_;
  std::vector<CUfileIOEvents_t> events_;
  std::vector<cuda_stream> streams_;
  std::vector<Requested> requests_;
};

}  // namespace

#endif
