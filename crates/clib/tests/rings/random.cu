/*
 * Random reads and writes by the device functions of gpuio_device.cuh, against a model in memory. Built by nvcc,
 * or as C++ for the host with the software GPU (examples/gpu/launch.h).
 *
 * usage: random FILE SEED OPERATIONS DIRECT: FILE is written, and read by pread at the end. Exit codes: 0, 1 a wrong
 * byte or result, 3 not here.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "launch.h"

enum : unsigned int { BLOCKS = 6, WARPS = 2, WIDTH = 32 };
/* Bytes of a lane's part of the file, and of its model; the most bytes of an I/O. */
enum : unsigned int { PART = 24576, MOST = 8192 };
/* Rings, and buffers of each: more than the 64 entries. */
enum : unsigned int { RINGS = 3, BUFFERS = BLOCKS / RINGS * WARPS * WIDTH };

struct Random {
  unsigned long long state;
};

ON_DEVICE unsigned int next(Random &random, unsigned int below) {
  random.state ^= random.state << 13;
  random.state ^= random.state >> 7;
  random.state ^= random.state << 17;
  return (unsigned int)(random.state >> 20) % below;
}

/* One I/O of a lane's part: what it is, and what has to come of it. */
struct Io {
  bool is_write;
  unsigned int at, skip, len;
};

ON_DEVICE Io choose(Random &random, bool is_direct) {
  const unsigned int unit = is_direct ? 4096 : 1;
  Io io;
  io.is_write = next(random, 2) == 0;
  io.skip = next(random, MOST / unit) * unit;
  io.len = (1 + next(random, (MOST - io.skip) / unit)) * unit;
  io.at = next(random, (PART - io.len) / unit + 1) * unit;
  return io;
}

/* A write's bytes, into the buffer. */
ON_DEVICE void fill(unsigned char *buffer, const Io &io, unsigned int salt) {
  for (unsigned int byte = 0; byte < io.len; byte++) {
    buffer[io.skip + byte] = (unsigned char)(salt * 31 + byte * 7 + (byte >> 8));
  }
}

/* Holds an I/O's result and bytes against the model, and a write's bytes go into it. */
ON_DEVICE bool is_right(const unsigned char *buffer, const Io &io, unsigned char *model, int result) {
  bool right = result == (int)io.len;
  for (unsigned int byte = 0; byte < io.len && right; byte++) {
    if (io.is_write) {
      model[io.at + byte] = buffer[io.skip + byte];
    } else {
      right = model[io.at + byte] == buffer[io.skip + byte];
    }
  }
  return right;
}

/* Each lane works on its own part, by the functions of a thread and of a warp in turn; then each block on its first
 * lane's, by those of a block. */
KERNEL work(const gpuio_ring *rings, unsigned int file, unsigned char *models, unsigned long long seed,
            unsigned int operations, bool is_direct, unsigned int *wrong) {
  const gpuio_ring ring = rings[BLOCK % RINGS];
  const unsigned int lane = BLOCK * WARPS * WIDTH + THREAD;
  const unsigned int buffer = BLOCK / RINGS * WARPS * WIDTH + THREAD;
  unsigned char *const bytes = (unsigned char *)gpuio_buffer(ring, buffer);
  unsigned char *const model = models + (size_t)lane * PART;
  const unsigned long long part = (unsigned long long)lane * PART;
  Random random = {(seed + lane) * 0x9e3779b97f4a7c15ull + 1};
  bool right = true;
  for (unsigned int turn = 0; turn < operations; turn++) {
    const Io io = choose(random, is_direct);
    const unsigned int op = io.is_write ? GPUIO_WRITE : GPUIO_READ;
    if (io.is_write) fill(bytes, io, turn + lane);
    int result;
    if (turn % 3 == 0) {
      gpuio_start(ring, op, file, part + io.at, buffer, io.skip, io.len);
      result = gpuio_wait(ring, buffer);
    } else {
      const bool takes_part = next(random, 4) != 0;
      gpuio_start_warp(ring, takes_part, op, file, part + io.at, buffer, io.skip, io.len);
      result = gpuio_wait_warp(ring, takes_part, buffer);
      if (!takes_part) {
        right = right && result == 0;
        continue;
      }
    }
    right = right && is_right(bytes, io, model, result);
  }
  gpuio_sync_block();
  const unsigned int first = BLOCK * WARPS * WIDTH;
  const unsigned int shared = BLOCK / RINGS * WARPS * WIDTH;
  unsigned char *const block_bytes = (unsigned char *)gpuio_buffer(ring, shared);
  Random common = {(seed + BLOCK) * 0xd1342543de82ef95ull + 3};
  for (unsigned int turn = 0; turn < operations / 2; turn++) {
    const Io io = choose(common, is_direct);
    const unsigned long long at = (unsigned long long)first * PART + io.at;
    if (io.is_write) {
      for (unsigned int byte = THREAD; byte < io.len; byte += THREADS) {
        block_bytes[io.skip + byte] = (unsigned char)(turn * 13 + byte);
      }
      const int result = gpuio_write_block(ring, file, at, shared, io.skip, io.len);
      right = right && result == (int)io.len;
    } else {
      const int result = gpuio_read_block(ring, file, at, shared, io.skip, io.len);
      right = right && result == (int)io.len;
    }
    if (THREAD == 0) right = right && is_right(block_bytes, io, models + (size_t)first * PART, (int)io.len);
    gpuio_sync_block();
  }
  if (!right) wrong[lane] = 1;
}

/* Results that are no success, by one thread: (file, offset, length, direction) and what has to come. */
struct Refused {
  unsigned int op, file;
  unsigned long long offset;
  unsigned int skip, len;
  int result;
};

KERNEL refuse(const gpuio_ring *rings, const Refused *cases, unsigned int count, int *results) {
  if (THREAD != 0 || BLOCK != 0) return;
  const gpuio_ring ring = rings[0];
  for (unsigned int one = 0; one < count; one++) {
    const Refused &io = cases[one];
    gpuio_start(ring, io.op, io.file, io.offset, 0, io.skip, io.len);
    results[one] = gpuio_wait(ring, 0);
  }
}

static void failed(const char *what) {
  perror(what);
  exit(1);
}

int main(int count, char **arguments) {
  if (count != 5) return 2;
  const char *name = arguments[1];
  const unsigned long long seed = strtoull(arguments[2], nullptr, 10);
  const unsigned int operations = (unsigned int)strtoul(arguments[3], nullptr, 10);
  const bool is_direct = arguments[4][0] == '1';
  const size_t lanes = BLOCKS * WARPS * WIDTH, len = lanes * PART;
  int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | (is_direct ? O_DIRECT : 0), 0600);
  if (fd < 0) return errno == EINVAL ? 3 : (failed(name), 1);
  if (ftruncate(fd, (off_t)len)) failed(name);
  const int read_only = open(name, O_RDONLY);

  gpuio_rings *rings;
  gpuio_rings_options options = {};
  options.rings = RINGS;
  options.poll_threads = 2;
  options.buffers = 1;
  options.max_buffers = BUFFERS;
  options.max_files = 5;
  options.buffer_length = MOST;
  gpuio_needs(gpuio_rings_open(0, &options, &rings));
  unsigned int file, other, third;
  gpuio_needs(gpuio_rings_add_file(rings, read_only, &other));
  gpuio_needs(gpuio_rings_add_file(rings, fd, &file));
  close(fd);
  close(read_only);
  const unsigned int buffers[] = {2, BUFFERS / 2 + 1, BUFFERS};
  for (unsigned int more : buffers) gpuio_needs(gpuio_rings_grow(rings, more));
  if (gpuio_rings_grow(rings, BUFFERS + 1) != -EINVAL || gpuio_rings_count(rings) != RINGS) return 1;
  const gpuio_ring *const device = (const gpuio_ring *)gpuio_rings_address(rings);

  unsigned char *models = device_array<unsigned char>(len);
  unsigned int *wrong = device_array<unsigned int>(lanes);
  launch(BLOCKS, WARPS * WIDTH, work, device, file, models, seed, operations, is_direct, wrong);
  int answer = 0;
  for (unsigned int one : to_host(wrong, lanes)) answer |= one != 0;
  if (answer) fprintf(stderr, "a wrong byte or result\n");

  const std::vector<unsigned char> model = to_host(models, len);
  std::vector<unsigned char> found(len);
  const int plain = open(name, O_RDONLY);
  if (pread(plain, found.data(), len, 0) != (ssize_t)len) failed("pread");
  close(plain);
  if (found != model) {
    fprintf(stderr, "pread finds other bytes than the kernels wrote\n");
    answer = 1;
  }

  /* The end of the file, a file that may not be written, numbers without a file, and one that was taken out. */
  gpuio_needs(gpuio_rings_remove_file(rings, other));
  if (gpuio_rings_remove_file(rings, other) != -EINVAL) answer = 1;
  const int again = open(name, O_RDONLY);
  gpuio_needs(gpuio_rings_add_file(rings, again, &third));
  if (third != other) answer = 1;
  close(again);
  std::vector<Refused> cases = {
      {GPUIO_READ, file, len - 4096, 0, 8192, 4096}, {GPUIO_READ, file, len, 0, 4096, 0},
      {GPUIO_WRITE, third, 0, 0, 4096, -EBADF},      {GPUIO_READ, 4, 0, 0, 4096, -EBADF},
      {GPUIO_READ, 77, 0, 0, 4096, -EBADF},          {GPUIO_READ, file, 0, 4096, 8192, -EFAULT},
  };
  if (is_direct) {
    /* Some file systems refuse it, and some read through the page cache. */
    const int direct = open(name, O_RDONLY | O_DIRECT);
    void *memory = nullptr;
    if (posix_memalign(&memory, 4096, 4096)) return 1;
    const ssize_t moved = pread(direct, memory, 4096, 1);
    cases.push_back({GPUIO_READ, file, 1, 0, 4096, moved < 0 ? -errno : (int)moved});
    free(memory);
    close(direct);
  }
  Refused *device_cases = device_array<Refused>(cases.size());
  int *results = device_array<int>(cases.size());
  to_device(device_cases, cases);
  /* The threads of the operating system sleep by then, and gpuio_rings_wake is not called. */
  usleep(200000);
  launch(1, 32, refuse, device, (const Refused *)device_cases, (unsigned int)cases.size(), results);
  const std::vector<int> had = to_host(results, cases.size());
  for (size_t one = 0; one < cases.size(); one++) {
    if (had[one] == cases[one].result) continue;
    fprintf(stderr, "case %zu has %d, not %d\n", one, had[one], cases[one].result);
    answer = 1;
  }
  if (gpuio_rings_in_flight(rings) != 0) answer = 1;
  gpuio_needs(gpuio_rings_close(rings));
  if (answer == 0) printf("%zu lanes and their file agree; %zu refusals are right; by the %s\n", lanes, cases.size(), PLACE);
  return answer;
}
