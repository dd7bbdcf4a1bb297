/*
 * Kernels read and write files that change meanwhile, or whose I/O fails: each result and each byte is that of
 * pread or pwrite. Built as random.cu.
 *
 * usage: twin changes DIRECTORY SEED STEPS DIRECT   files that shrink, grow, are unlinked and replaced
 *        twin beside DIRECTORY SEED STEPS DIRECT    the same, while a kernel reads them without a pause
 *        twin given FILE TWIN SEED STEPS DIRECT     two files of the same content, as they are
 *
 * A file that kernels write has a twin, which pwrite writes. STEPS is below 250. Exit codes: 0, 1 a difference,
 * 2 usage, 3 no O_DIRECT here, or no rings.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "launch.h"

#ifdef __CUDACC__
#define ANYWHERE static __host__ __device__
#else
#define ANYWHERE static
#endif

enum : unsigned int { BLOCKS = 3, RINGS = 2, WIDTH = 2, BUFFERS = (BLOCKS + RINGS - 1) / RINGS * WIDTH };
/* The most bytes of an I/O; I/Os of a step; files at a time. */
enum : unsigned int { MOST = 8192, COUNT = 24, FILES = 3 };
/* Bytes of a file at first, and the most that this process's files may have: a write stops there, or is refused. */
enum : unsigned int { LENGTH = 150000, LONGEST = 49 * 4096 };
/* What buffers hold where no I/O has written. */
enum : unsigned char { MARK = 0xa5 };

struct Random {
  unsigned long long state;
};

ANYWHERE unsigned int next(Random &random, unsigned int below) {
  random.state ^= random.state << 13;
  random.state ^= random.state >> 7;
  random.state ^= random.state << 17;
  return (unsigned int)(random.state >> 20) % below;
}

/* The content of version `version` of a file. Never 0, which holes have. */
ANYWHERE unsigned char content(unsigned int version, unsigned long long offset) {
  return (unsigned char)(1 + (offset * 31 + (offset >> 8) + version * 17) % 255);
}

struct Io {
  unsigned int op, file;
  unsigned long long offset;
  unsigned int skip, len, salt;
};

/* What a buffer holds before an I/O. */
ANYWHERE void prepare(unsigned char *buffer, const Io &io) {
  for (unsigned int byte = 0; byte < MOST; byte++) buffer[byte] = MARK;
  if (io.op != GPUIO_WRITE) return;
  for (unsigned int byte = 0; byte < io.len; byte++) {
    buffer[io.skip + byte] = (unsigned char)(io.salt * 31 + byte * 7 + (byte >> 8));
  }
}

/* Each thread does one I/O after the other, in a buffer of its own, of which `bytes` gets a copy. */
KERNEL work(const gpuio_ring *rings, const Io *ios, unsigned int count, int *results, unsigned char *bytes) {
  const gpuio_ring ring = rings[BLOCK % RINGS];
  const unsigned int buffer = BLOCK / RINGS * WIDTH + THREAD;
  unsigned char *const own = (unsigned char *)gpuio_buffer(ring, buffer);
  for (unsigned int one = BLOCK * THREADS + THREAD; one < count; one += BLOCKS * THREADS) {
    const Io io = ios[one];
    prepare(own, io);
    gpuio_start(ring, io.op, io.file, io.offset, buffer, io.skip, io.len);
    results[one] = gpuio_wait(ring, buffer);
    for (unsigned int byte = 0; byte < MOST; byte++) bytes[(size_t)one * MOST + byte] = own[byte];
  }
}

/* Numbers of files for `follow`. In `control`: how many changes there were, and whether that is all. `progress` has a
 * byte for each block, which counts its turns. */
struct Followed {
  unsigned int changed, replaced, control, progress;
};

/* What a block has seen. */
struct Seen {
  unsigned int wrong, reads, ended, missing, versions;
};

/* Reads two files until the control file says that this is enough: one that is changed, whose bytes are those of
 * version 0 or zeros, and one that is replaced, of which each read has one version, or there is no file. */
KERNEL follow(const gpuio_ring *rings, Followed files, unsigned long long seed, unsigned int unit, Seen *all) {
  if (THREAD != 0) return;
  const gpuio_ring ring = rings[BLOCK % RINGS];
  const unsigned int buffer = BLOCK / RINGS;
  const unsigned char *const bytes = (const unsigned char *)gpuio_buffer(ring, buffer);
  Random random = {(seed + BLOCK) * 0x9e3779b97f4a7c15ull + 1};
  Seen seen = {};
  unsigned int changes = 0, version = 0;
  for (unsigned char turn = 1;; turn++) {
    const unsigned int len = (1 + next(random, MOST / unit)) * unit;
    const unsigned long long at = next(random, (LENGTH + MOST) / unit) * unit;
    int result = gpuio_read(ring, files.changed, at, buffer, 0, len);
    bool right = result >= 0 && result <= (int)len;
    for (int byte = 0; byte < result && right; byte++) {
      right = bytes[byte] == content(0, at + byte) || bytes[byte] == 0;
    }
    seen.reads++;
    seen.ended += result < (int)len;

    const unsigned long long start = next(random, (LENGTH - MOST) / unit) * unit;
    result = gpuio_read(ring, files.replaced, start, buffer, 0, len);
    if (result == -EBADF) {
      seen.missing++;
    } else {
      right = right && result == (int)len;
      unsigned int found = 0;
      while (found < 15 && bytes[0] != content(found, start)) found++;
      for (unsigned int byte = 0; byte < len && right; byte++) right = bytes[byte] == content(found, start + byte);
      seen.versions += found != version;
      version = found;
    }

    result = gpuio_read(ring, files.control, 0, buffer, 0, 2);
    right = right && result == 2 && bytes[0] >= changes;
    changes = bytes[0];
    const bool is_over = bytes[1] != 0;
    *(unsigned char *)gpuio_buffer(ring, buffer) = turn;
    right = right && gpuio_write(ring, files.progress, BLOCK, buffer, 0, 1) == 1;
    if (!right) seen.wrong++;
    if (is_over || !right) break;
  }
  all[BLOCK] = seen;
}

static Random host_random;
static gpuio_rings *rings;
static bool is_direct;
static int answer = 0;
static unsigned long long compared, ended, refused;

static unsigned int drawn(unsigned int below) { return next(host_random, below); }

static void failed(const std::string &what) {
  perror(what.c_str());
  exit(1);
}

static void differs(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  answer = 1;
}

static const gpuio_ring *ring_address() { return (const gpuio_ring *)gpuio_rings_address(rings); }

static void open_rings(unsigned int files) {
  gpuio_rings_options options = {};
  options.rings = RINGS;
  options.poll_threads = 1;
  options.buffers = BUFFERS;
  options.max_files = files;
  options.buffer_length = MOST;
  gpuio_needs(gpuio_rings_open(0, &options, &rings));
}

static int opened(const std::string &name, int flags) {
  const int fd = open(name.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EINVAL && (flags & O_DIRECT)) exit(3);
  if (fd < 0) failed(name);
  return fd;
}

static unsigned int added(int fd) {
  unsigned int number;
  gpuio_needs(gpuio_rings_add_file(rings, fd, &number));
  return number;
}

static unsigned long long size(int fd) {
  struct stat facts;
  if (fstat(fd, &facts)) failed("fstat");
  return (unsigned long long)facts.st_size;
}

/* Writes `len` bytes of a version. */
static void put(int fd, unsigned int version, unsigned long long offset, size_t len) {
  std::vector<unsigned char> bytes(len);
  for (size_t at = 0; at < len; at++) bytes[at] = content(version, offset + at);
  if (pwrite(fd, bytes.data(), len, (off_t)offset) != (ssize_t)len) failed("pwrite");
}

static void cut(int fd, unsigned long long length) {
  if (ftruncate(fd, (off_t)length)) failed("ftruncate");
}

/* A file, open as kernels and their twin use it, and through the page cache. It stays when its name goes. */
struct File {
  int fd, plain;
  std::string name;

  File(const std::string &name, int flags) : name(name) {
    fd = opened(name, flags | (is_direct ? O_DIRECT : 0));
    plain = opened(name, flags & ~(O_CREAT | O_TRUNC));
  }
  void leave() const {
    close(fd);
    close(plain);
  }
};

static File created(const std::string &name, unsigned int version) {
  const File file(name, O_RDWR | O_CREAT | O_TRUNC);
  put(file.plain, version, 0, LENGTH);
  return file;
}

/* A file that kernels use, and its twin, which has the same changes. */
struct Pair {
  File file, twin;
  unsigned int number;

  Pair(const File &file, const File &twin) : file(file), twin(twin), number(added(file.fd)) {}
};

/* Memory that O_DIRECT takes, for one of two I/Os. */
static unsigned char *room(unsigned int which) {
  static void *memory[2];
  if (!memory[which] && posix_memalign(&memory[which], 4096, MOST)) exit(1);
  return (unsigned char *)memory[which];
}

/* The result of pread or pwrite; the errno is negative. */
static int by_host(const Io &io, int fd, unsigned char *memory) {
  prepare(memory, io);
  unsigned char *const at = memory + io.skip;
  const ssize_t moved = io.op == GPUIO_READ ? pread(fd, at, io.len, (off_t)io.offset)
                                            : pwrite(fd, at, io.len, (off_t)io.offset);
  return moved < 0 ? -errno : (int)moved;
}

/* A kernel does the I/Os, of which `pairs[one]` have the files; then the host does. */
static void compare(const std::vector<Io> &ios, const std::vector<const Pair *> &pairs) {
  static Io *const device_ios = device_array<Io>(COUNT);
  static int *const results = device_array<int>(COUNT);
  static unsigned char *const bytes = device_array<unsigned char>((size_t)COUNT * MOST);
  const unsigned int count = (unsigned int)ios.size();
  to_device(device_ios, ios);
  launch(BLOCKS, WIDTH, work, ring_address(), (const Io *)device_ios, count, results, bytes);
  const std::vector<int> had = to_host(results, count);
  const std::vector<unsigned char> moved = to_host(bytes, (size_t)count * MOST);
  for (unsigned int one = 0; one < count; one++) {
    const Io &io = ios[one];
    const bool is_read = io.op == GPUIO_READ;
    const int due = by_host(io, is_read ? pairs[one]->file.fd : pairs[one]->twin.fd, room(0));
    compared++;
    ended += due >= 0 && due < (int)io.len;
    refused += due < 0;
    const char *const what = is_read ? "read" : "write";
    if (had[one] != due) {
      differs("a %s of %u bytes at %llu has %d, the host's %d", what, io.len, io.offset, had[one], due);
      continue;
    }
    /* Behind the bytes that moved, a read may leave anything in its range, and nothing outside. */
    const unsigned int free_from = io.skip + (unsigned int)(due > 0 ? due : 0), free_to = io.skip + io.len;
    for (unsigned int byte = 0; byte < MOST; byte++) {
      if ((byte >= free_from && byte < free_to) || moved[(size_t)one * MOST + byte] == room(0)[byte]) continue;
      differs("a %s of %u bytes at %llu: byte %u of its buffer", what, io.len, io.offset, byte);
      break;
    }
  }
}

/* A range of the buffer, and an offset in a file of so many bytes, every other time about its end. */
static Io chosen(unsigned int op, const Pair &pair, unsigned long long length) {
  const unsigned int unit = is_direct ? 4096 : 1;
  Io io = {op, pair.number, 0, 0, 0, drawn(255)};
  io.skip = drawn(MOST / unit) * unit;
  io.len = (1 + drawn((MOST - io.skip) / unit)) * unit;
  const unsigned long long begin = drawn(2) == 0 || length < MOST ? 0 : length - MOST;
  io.offset = (begin + drawn((unsigned int)(length - begin) + MOST)) / unit * unit;
  return io;
}

static void read_all(const std::vector<Pair> &pairs) {
  std::vector<Io> ios;
  std::vector<const Pair *> of;
  for (unsigned int one = 0; one < COUNT; one++) {
    of.push_back(&pairs[one % pairs.size()]);
    ios.push_back(chosen(GPUIO_READ, *of.back(), size(of.back()->file.fd)));
  }
  compare(ios, of);
}

/* Writes that do not overlap, some of them behind the end, and if there is room some at the limit. */
static void write_some(const Pair &pair, bool at_limit) {
  const unsigned long long length = size(pair.file.fd);
  std::vector<Io> ios;
  unsigned long long end = drawn((unsigned int)length + 1) / 4096 * 4096;
  for (unsigned int one = 0; one < COUNT / 4; one++) {
    Io io = chosen(GPUIO_WRITE, pair, length);
    io.offset = is_direct ? end : end + drawn(3000);
    end = io.offset + io.len;
    ios.push_back(io);
  }
  if (at_limit && end <= LONGEST - 4096) {
    ios.push_back({GPUIO_WRITE, pair.number, LONGEST - 4096, 0, MOST, drawn(255)});
    ios.push_back({GPUIO_WRITE, pair.number, LONGEST, 0, 4096, drawn(255)});
  }
  compare(ios, std::vector<const Pair *>(ios.size(), &pair));
}

/* Whether a file and its twin have the same bytes and faults, without what the page cache still has of them. */
static void compare_twins(const Pair &pair) {
  for (const File &file : {pair.file, pair.twin}) {
    errno = posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
    if (errno) failed("posix_fadvise");
  }
  const unsigned long long length = size(pair.file.fd), other = size(pair.twin.fd);
  if (length != other) differs("%llu bytes, its twin %llu", length, other);
  for (unsigned long long at = 0; at < length; at += 4096) {
    const Io page = {GPUIO_READ, 0, at, 0, 4096, 0};
    const int moved = by_host(page, pair.file.fd, room(0)), twins = by_host(page, pair.twin.fd, room(1));
    if (moved == twins && (moved < 0 || memcmp(room(0), room(1), (size_t)moved) == 0)) continue;
    differs("page %llu has %d, its twin's %d, or other bytes", at / 4096, moved, twins);
  }
}

/* The next version in the place of the file of this name, if there is one. */
static File replaced(const std::string &name, unsigned int version) {
  File file = created(name + ".new", version);
  if (rename(file.name.c_str(), name.c_str())) failed("rename");
  file.name = name;
  return file;
}

static void changes(const std::string &directory, unsigned int steps) {
  open_rings(FILES);
  const std::string name = directory + "/file", twin = directory + "/twin";
  unsigned int versions = 0;
  std::vector<Pair> pairs;
  for (unsigned int step = 0; step < steps; step++) {
    const unsigned int which = pairs.empty() ? 0 : drawn((unsigned int)pairs.size());
    const unsigned int change = pairs.empty() ? 0 : step < 6 ? step : drawn(6);
    if (change == 0) {
      if (pairs.size() == FILES) {
        const Pair oldest = pairs.front();
        pairs.erase(pairs.begin());
        compare_twins(oldest);
        gpuio_needs(gpuio_rings_remove_file(rings, oldest.number));
        oldest.file.leave();
        oldest.twin.leave();
      }
      versions++;
      pairs.push_back(Pair(replaced(name, versions), replaced(twin, versions)));
    } else if (change == 1) {
      for (const std::string &one : {name, twin}) {
        if (unlink(one.c_str()) && errno != ENOENT) failed("unlink");
      }
    } else {
      const Pair &pair = pairs[which];
      const unsigned long long length = size(pair.file.fd);
      const unsigned int shorter = drawn(4) == 0 ? 0 : drawn((unsigned int)length + 1), more = 1 + drawn(20000);
      for (const File &file : {pair.file, pair.twin}) {
        if (change == 2) cut(file.plain, shorter);
        if (change == 3 && length + more <= LONGEST) cut(file.plain, length + more);
        if (change == 4 && length + more <= LONGEST) put(file.plain, 7, length, more);
        if (change == 5) put(file.plain, 9, shorter / 2, more);
      }
    }
    read_all(pairs);
    write_some(pairs[drawn((unsigned int)pairs.size())], step % 3 == 0);
    read_all(pairs);
  }
  for (const Pair &pair : pairs) compare_twins(pair);
  if (steps >= 6 && (ended == 0 || refused == 0)) differs("no I/O met the end of a file, or no write the limit");
}

static void given(const std::string &name, const std::string &twin, unsigned int steps) {
  const int probe = open(name.c_str(), O_RDWR | O_CLOEXEC);
  const int flags = probe < 0 && errno == EROFS ? O_RDONLY : O_RDWR;
  close(probe);
  open_rings(1);
  const std::vector<Pair> pairs = {Pair(File(name, flags), File(twin, flags))};
  for (unsigned int step = 0; step < steps; step++) {
    read_all(pairs);
    write_some(pairs[0], false);
  }
  compare_twins(pairs[0]);
}

/* Waits until each block has had a whole turn. */
static void one_turn(int progress) {
  unsigned char before[BLOCKS], now[BLOCKS];
  if (pread(progress, before, BLOCKS, 0) != BLOCKS) failed("pread");
  const double until = seconds() + 60;
  for (unsigned int block = 0; block < BLOCKS;) {
    if (pread(progress, now, BLOCKS, 0) != BLOCKS) failed("pread");
    if ((unsigned char)(now[block] - before[block]) >= 2) {
      block++;
    } else if (seconds() > until) {
      fprintf(stderr, "block %u stands still, or has seen a wrong byte or result\n", block);
      exit(1);
    } else {
      usleep(100);
    }
  }
}

static void beside(const std::string &directory, unsigned long long seed, unsigned int steps) {
  open_rings(4);
  const std::string name = directory + "/replaced";
  const File changed = created(directory + "/changed", 0);
  File current = replaced(name, 0);
  Followed files = {added(changed.fd), added(current.fd), 0, 0};
  const int control = opened(directory + "/control", O_RDWR | O_CREAT | O_TRUNC);
  const int progress = opened(directory + "/progress", O_RDWR | O_CREAT | O_TRUNC);
  files.control = added(control);
  files.progress = added(progress);
  unsigned char words[2] = {}, none[BLOCKS] = {};
  if (pwrite(control, words, 2, 0) != 2 || pwrite(progress, none, BLOCKS, 0) != BLOCKS) failed("pwrite");
  Seen *const all = device_array<Seen>(BLOCKS);
  const unsigned int unit = is_direct ? 4096 : 1;
  std::thread kernel([&] { launch(BLOCKS, WIDTH, follow, ring_address(), files, seed, unit, all); });
  for (unsigned int step = 0; step < steps; step++) {
    switch (step < 6 ? step : drawn(6)) {
    case 0: cut(changed.plain, 0); break;
    case 1: put(changed.plain, 0, 0, LENGTH); break;
    case 2: cut(changed.plain, drawn(LENGTH)); break;
    case 3: cut(changed.plain, drawn(LONGEST)); break;
    case 4:
      if (unlink(changed.name.c_str()) && errno != ENOENT) failed("unlink");
      break;
    default:
      const File fresh = replaced(name, step);
      gpuio_needs(gpuio_rings_remove_file(rings, files.replaced));
      if (drawn(2) == 0 || step == 5) one_turn(progress);
      if (added(fresh.fd) != files.replaced) differs("another number for the only place");
      current.leave();
      current = fresh;
    }
    words[0] = (unsigned char)(step + 1);
    if (pwrite(control, words, 2, 0) != 2) failed("pwrite");
    one_turn(progress);
  }
  words[1] = 1;
  if (pwrite(control, words, 2, 0) != 2) failed("pwrite");
  kernel.join();
  for (const Seen &seen : to_host(all, BLOCKS)) {
    compared += seen.reads;
    ended += seen.ended;
    refused += seen.missing;
    if (seen.wrong) differs("a block has a wrong byte or result after %u reads", seen.reads);
    const bool saw_all = seen.ended > 0 && seen.missing > 0 && seen.versions > 0;
    if (steps >= 6 && !saw_all) differs("a block has missed a change");
  }
}

int main(int count, char **words) {
  const std::string mode = count > 1 ? words[1] : "";
  if (count != (mode == "given" ? 7 : 6)) return 2;
  const unsigned long long seed = strtoull(words[count - 3], nullptr, 10);
  const unsigned int steps = (unsigned int)strtoul(words[count - 2], nullptr, 10);
  host_random.state = seed * 0x9e3779b97f4a7c15ull + 1;
  is_direct = words[count - 1][0] == '1';
  if (steps >= 250) return 2;
  const rlimit longest = {LONGEST, LONGEST};
  signal(SIGXFSZ, SIG_IGN);
  if (setrlimit(RLIMIT_FSIZE, &longest)) failed("setrlimit");
  if (mode == "changes") {
    changes(words[2], steps);
  } else if (mode == "beside") {
    beside(words[2], seed, steps);
  } else if (mode == "given") {
    given(words[2], words[3], steps);
  } else {
    return 2;
  }
  if (gpuio_rings_in_flight(rings) != 0) differs("I/O is left in flight");
  gpuio_needs(gpuio_rings_close(rings));
  if (answer == 0) {
    printf("%llu I/Os are those of the host: %llu stop short, %llu fail; by the %s\n", compared, ended, refused, PLACE);
  }
  return answer;
}
