/*
 * The rate of I/O that kernels start by themselves (gpuio_device.cuh), into and out of GPU memory.
 *
 *   nvcc -O3 -std=c++17 -arch=native -I crates/clib/include -I crates/gpu/kernels -I examples/gpu \
 *      tools/benches/kernel_io.cu -o kernel_io -L target/release -lgpuio
 *   ./kernel_io FILE RINGS POLL_THREADS GROUPS WARPS DEPTH LEN read|write [SECONDS [FILES]]
 *
 * Each ring has GROUPS blocks of WARPS warps, and each warp DEPTH (1 to 32) I/Os of LEN bytes in flight, at random blocks
 * of the file. A block copies together what its warps have read, while the I/O of the other blocks goes on. FILE.0 and so on have 128 MiB for each ring, spread over FILES files, and are made where they are not
 * there: each word of 8 bytes is its own place. Reads are copied into GPU memory, and each word is compared there; writes
 * come out of it, and the files are as before. A line of JSON: rates, times of the I/Os (globaltimer) from start to
 * result as the warp saw it, processor time of the whole process with the operating system's threads.
 * Exit codes: 0, 1 a wrong word or an error, 2 wrong arguments, 3 not here.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "launch.h"

typedef unsigned long long u64;

enum : u64 { PART = 128ull << 20 };
/* Times that a warp keeps. */
enum : unsigned int { TIMES = 4096 };
/* Loads that a thread has under way. */
enum : unsigned int { AT_ONCE = 4 };

struct Two {
  u64 low, high;
};

struct Load {
  unsigned int rings, warps, depth, files, is_write;
  u64 len, file_len, nanoseconds;
};

#ifdef __CUDACC__
#define SHARED __shared__
#define UNROLLED _Pragma("unroll")
#else
#define SHARED
#define UNROLLED
#endif

KERNEL work(const gpuio_ring *rings, Load load, char *memory, u64 *done, unsigned int *times, unsigned int *kept,
            unsigned int *wrong) {
  SHARED u64 places[64];
  SHARED bool is_over;
  const gpuio_ring ring = rings[BLOCK % load.rings];
  const unsigned int lane = THREAD & 31, warp = THREAD / 32, number = BLOCK * load.warps + warp;
  const bool mine = lane < load.depth;
  const unsigned int many = load.warps * load.depth, own = warp * load.depth + lane;
  const unsigned int buffers = BLOCK / load.rings * many;
  char *const there = memory + (u64)BLOCK * many * load.len;
  const u64 pieces = load.len / 16;
  u64 random = (number * 32ull + lane + 1) * 0x9e3779b97f4a7c15ull;
  u64 count = 0;
  unsigned int waves = 0;
  bool right = true;
  const u64 began = clock_ns();
  for (;;) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const unsigned int file = (unsigned int)(random >> 40) % load.files;
    const u64 at = (random >> 20) % (load.file_len / load.len) * load.len;
    if (mine) places[own] = at;
    if (THREAD == 0) is_over = clock_ns() - began > load.nanoseconds;
    gpuio_sync_block();
    if (is_over) break;
    if (load.is_write) {
      for (u64 piece = THREAD; piece < many * pieces; piece += THREADS) {
        const unsigned int which = (unsigned int)(piece / pieces);
        const u64 word = piece % pieces * 16;
        const Two two = {places[which] + word, places[which] + word + 8};
        *(Two *)((char *)gpuio_buffer(ring, buffers + which) + word) = two;
      }
      gpuio_sync_block();
    }
    const u64 start = clock_ns();
    gpuio_start_warp(ring, mine, load.is_write ? GPUIO_WRITE : GPUIO_READ, file, at, buffers + own, 0,
                     (unsigned int)load.len);
    const int moved = gpuio_wait_warp(ring, mine, buffers + own);
    const u64 now = clock_ns();
    right = right && (!mine || moved == (int)load.len);
    gpuio_sync_block();
    if (!load.is_write) {
      for (u64 begin = THREAD; begin < many * pieces; begin += (u64)THREADS * AT_ONCE) {
        /* All loads before the first store: a load of the host's memory takes a microsecond. */
        Two loaded[AT_ONCE];
        UNROLLED for (unsigned int turn = 0; turn < AT_ONCE; turn++) {
          const u64 piece = begin + (u64)turn * THREADS;
          if (piece >= many * pieces) break;
          const char *const from = (const char *)gpuio_buffer(ring, buffers + (unsigned int)(piece / pieces));
          loaded[turn] = *(const Two *)(from + piece % pieces * 16);
        }
        UNROLLED for (unsigned int turn = 0; turn < AT_ONCE; turn++) {
          const u64 piece = begin + (u64)turn * THREADS;
          if (piece >= many * pieces) break;
          const u64 which = piece / pieces, word = piece % pieces * 16;
          *(Two *)(there + which * load.len + word) = loaded[turn];
          right = right && loaded[turn].low == places[which] + word && loaded[turn].high == places[which] + word + 8;
        }
      }
    }
    count++;
    if (lane == 0 && waves < TIMES) times[(u64)number * TIMES + waves++] = (unsigned int)(now - start);
    gpuio_sync_block();
  }
  if (lane == 0) {
    done[number] = count * (load.depth < GPUIO_LANES ? load.depth : GPUIO_LANES);
    kept[number] = waves;
  }
  if (!right) wrong[number] = 1;
}

static void failed(const char *what) {
  perror(what);
  exit(1);
}

static int file(const std::string &name, u64 len) {
  struct stat about;
  if (stat(name.c_str(), &about) != 0) {
    const std::string part = name + ".part";
    const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0) failed(part.c_str());
    std::vector<u64> words(1 << 17);
    for (u64 at = 0; at < len; at += words.size() * 8) {
      for (size_t word = 0; word < words.size(); word++) words[word] = at + word * 8;
      if (pwrite(fd, words.data(), words.size() * 8, (off_t)at) != (ssize_t)(words.size() * 8)) failed(part.c_str());
    }
    if (close(fd) || link(part.c_str(), name.c_str()) || unlink(part.c_str())) failed(name.c_str());
  } else if ((u64)about.st_size != len) {
    fprintf(stderr, "%s has another length than %llu\n", name.c_str(), len);
    exit(2);
  }
  const int fd = open(name.c_str(), O_RDWR);
  u64 words[2];
  if (fd < 0 || pread(fd, words, 16, (off_t)(len - 16)) != 16) failed(name.c_str());
  if (words[0] != len - 16 || words[1] != len - 8) {
    fprintf(stderr, "%s is no file of this program\n", name.c_str());
    exit(2);
  }
  return fd;
}

static double processors() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

int main(int count, char **arguments) {
  if (count < 9 || count > 11) {
    fprintf(stderr, "usage: %s FILE RINGS POLL_THREADS GROUPS WARPS DEPTH LEN read|write [SECONDS [FILES]]\n",
            arguments[0]);
    return 2;
  }
  const auto number = [&](int at) { return (unsigned int)strtoul(arguments[at], nullptr, 10); };
  const unsigned int rings_count = number(2), poll_threads = number(3), groups = number(4);
  Load load = {};
  load.rings = rings_count, load.warps = number(5), load.depth = number(6), load.len = number(7);
  load.is_write = arguments[8][0] == 'w';
  load.files = count > 10 ? number(10) : rings_count;
  const double wanted = count > 9 ? atof(arguments[9]) : 3;
  load.nanoseconds = (u64)(wanted * 1e9);
  if (!rings_count || !load.warps || load.warps > 16 || !load.depth || load.depth > 32 || load.len < 16 ||
      !groups || groups * load.warps * load.depth > 64 || !load.files || load.len % 16) {
    fprintf(stderr, "GROUPS times WARPS times DEPTH is at most 64, WARPS 16, DEPTH 32, LEN a multiple of 16\n");
    return 2;
  }
  load.file_len = PART * rings_count / load.files / load.len * load.len / (1 << 20) * (1 << 20);

  gpuio_rings *rings;
  gpuio_rings_options options = {};
  options.rings = rings_count;
  options.poll_threads = poll_threads;
  options.buffers = groups * load.warps * load.depth;
  options.buffer_length = (load.len + 4095) / 4096 * 4096;
  options.max_files = load.files;
  gpuio_needs(gpuio_rings_open(0, &options, &rings));
  std::vector<char> warm(1 << 20);
  for (unsigned int nth = 0; nth < load.files; nth++) {
    const int fd = file(std::string(arguments[1]) + "." + std::to_string(nth), load.file_len);
    for (u64 at = 0; at < load.file_len; at += warm.size()) {
      if (pread(fd, warm.data(), warm.size(), (off_t)at) < 0) failed(arguments[1]);
    }
    unsigned int place;
    gpuio_needs(gpuio_rings_add_file(rings, fd, &place));
    close(fd);
  }
  const unsigned int blocks = rings_count * groups, warps = blocks * load.warps;
  char *memory = device_array<char>((u64)warps * load.depth * load.len);
  u64 *done = device_array<u64>(warps);
  unsigned int *times = device_array<unsigned int>((u64)warps * TIMES);
  unsigned int *kept = device_array<unsigned int>(warps), *wrong = device_array<unsigned int>(warps);
  gpuio_needs(gpuio_rings_wake(rings));
  const double busy = processors();
  const double took = launch(blocks, 32 * load.warps, work, (const gpuio_ring *)gpuio_rings_address(rings), load,
                             memory, done, times, kept, wrong);
  const double used = processors() - busy;
  u64 ios = 0;
  for (u64 one : to_host(done, warps)) ios += one;
  int answer = 0;
  for (unsigned int one : to_host(wrong, warps)) answer |= one != 0;
  const std::vector<unsigned int> all = to_host(times, (u64)warps * TIMES), many = to_host(kept, warps);
  std::vector<unsigned int> sorted;
  for (unsigned int warp = 0; warp < warps; warp++) {
    sorted.insert(sorted.end(), all.begin() + (u64)warp * TIMES, all.begin() + (u64)warp * TIMES + many[warp]);
  }
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double part) { return sorted[(size_t)((sorted.size() - 1) * part)] / 1e3; };
  printf("{\"rings\": %u, \"poll_threads\": %u, \"in_flight\": %u, \"warps\": %u, \"len\": %llu, \"op\": \"%s\", \"files\": %u, "
         "\"m_per_s\": %.3f, \"gib_per_s\": %.2f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"processors\": %.2f, \"right\": %s}\n",
         rings_count, poll_threads ? poll_threads : rings_count, warps * load.depth, warps, load.len,
         load.is_write ? "write" : "read", load.files, ios / took / 1e6, ios / took * load.len / 1073741824.0, at(0.5),
         at(0.99), used / took, answer ? "false" : "true");
  gpuio_needs(gpuio_rings_close(rings));
  return answer;
}
