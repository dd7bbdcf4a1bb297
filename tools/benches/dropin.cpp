// One client of cuFile's interface, to be run with NVIDIA's library and with gpuio's drop-in:
// what differs between two runs is the library that the loader finds.
//
//   g++ -O2 -std=c++17 -I crates/dropin/include -I examples/c -o dropin tools/benches/dropin.cpp -ldl
//       (and -pthread, before glibc 2.34)
//   dropin make FILE BYTES
//   LD_LIBRARY_PATH=DIRECTORY_OF_NVIDIAS dropin sync FILE --threads 16 --block 4096 --random
//   gpuio exec -- dropin sync FILE --threads 16 --block 4096 --random
//
// Modes:
//   make   writes the file with the pattern
//   sync   cuFileRead, one call after the other in each thread
//   batch  cuFileBatchIOSubmit of --entries reads, then all their events
//   async  cuFileReadAsync on --streams streams of each thread, --depth reads queued in each
//   pread  plain pread into host memory: no GPU
//   copy   pread into page-locked memory and cuMemcpyHtoD: what a program does by itself
//   write  cuFileWrite over the bytes of the file, which does not keep its pattern
//   pwrite plain pwrite of host memory: no GPU
//
// --cold drops the file from the page cache first (for a write its bytes: all pages are new) and
// moves each byte once at most, --direct opens with O_DIRECT. Before the clock each thread does for
// --ramp seconds what it will do. After the clock it reads --check blocks over memory that was
// filled with something else, copies them back and compares them with the pattern; or writes blocks
// with the pattern, and looks into the file. One line of JSON, times in microseconds. Without a
// GPU: GPUIO_CUFILE_DRIVER names the software GPU's file.
#include "dropin_worker.h"

#include <sys/mman.h>
#include <sys/stat.h>

namespace {

// Longest time without a completion: NVIDIA's library has states in which it waits for ever.
constexpr int kSilenceSeconds = 30;

int make(const char* path, size_t bytes) {
  const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
  need(fd >= 0, path, -1);
  std::vector<uint64_t> words((1 << 20) / 8);
  for (size_t at = 0; at < bytes; at += words.size() * 8) {
    for (size_t n = 0; n < words.size(); n++) words[n] = word(at / 8 + n);
    const size_t len = std::min(bytes - at, words.size() * 8);
    const ssize_t put = write(fd, words.data(), len);
    need(put == ssize_t(len), path, put);
  }
  need(fsync(fd) == 0, path, -1);
  return 0;
}

// Share of the file in the page cache (mincore(2)); below 0 if the kernel does not report it.
double cached(const Load& load) {
  const int fd = open(load.path.c_str(), O_RDONLY);
  void* map = mmap(nullptr, load.size, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return -1;
  std::vector<unsigned char> pages((load.size + kPage - 1) / kPage);
  const bool known = mincore(map, load.size, pages.data()) == 0;
  munmap(map, load.size);
  const size_t in = std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; });
  return known ? double(in) / pages.size() : -1;
}

void drop(const Load& load) {
  if (load.writes()) {
    need(truncate(load.path.c_str(), 0) == 0, "truncate", -1);
    need(truncate(load.path.c_str(), load.size) == 0, "truncate", -1);
    return;
  }
  const int fd = open(load.path.c_str(), O_RDONLY);
  need(fd >= 0 && fdatasync(fd) == 0, load.path.c_str(), -1);
  need(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "posix_fadvise");
  close(fd);
}

void watch(const Shared& shared) {
  uint64_t before = 0;
  for (int silent = 0; silent < kSilenceSeconds; silent++) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const uint64_t now = shared.progress.load(std::memory_order_relaxed);
    if (now != before) silent = 0;
    before = now;
  }
  std::fprintf(stderr, "nothing moved for %d s: given up\n", kSilenceSeconds);
  std::_Exit(4);
}

bool flag(Load& load, const std::string& name, const char* value) {
  const auto number = [&] { return std::strtoull(value, nullptr, 0); };
  if (name == "--threads") load.threads = number();
  else if (name == "--block") load.block = number();
  else if (name == "--entries") load.entries = number();
  else if (name == "--streams") load.streams = number();
  else if (name == "--depth") load.depth = number();
  else if (name == "--flags") load.flags = number();
  else if (name == "--check") load.check = number();
  else if (name == "--seconds") load.seconds = std::atof(value);
  else if (name == "--ramp") load.ramp = std::atof(value);
  else return false;
  return true;
}

bool parse(Load& load, int argc, char** argv) {
  if (argc < 3) return false;
  load.mode = argv[1];
  load.path = argv[2];
  for (int n = 3; n < argc; n++) {
    const std::string name = argv[n];
    if (name == "--random") load.random = true;
    else if (name == "--direct") load.direct = true;
    else if (name == "--cold") load.cold = true;
    else if (name == "--unregistered") load.registered = false;
    else if (n + 1 == argc || !flag(load, name, argv[++n])) return false;
  }
  struct stat about;
  need(stat(load.path.c_str(), &about) == 0, load.path.c_str(), -1);
  load.size = about.st_size;
  if (load.block < 8 || load.block % 8 != 0 || load.threads < 1 || load.entries < 1) return false;
  load.blocks = load.size / load.block;
  const bool known = load.cufile() || !load.gpu() || load.mode == "copy";
  if (load.cold && load.writes()) load.ramp = 0;
  return known && load.blocks >= size_t(load.threads) && load.streams > 0 && load.depth > 0;
}

void print(const Shared& shared, const std::vector<std::unique_ptr<Worker>>& workers,
           double cpu, double before, double after, const char* gpu) {
  const Load& load = shared.load;
  Histogram all;
  uint64_t ios = 0, checked = 0, bad = 0, ended = shared.start;
  for (const auto& worker : workers) {
    all.add(worker->latencies);
    ios += worker->ios;
    checked += worker->checked;
    bad += worker->bad;
    ended = std::max(ended, worker->ended);
  }
  const double took = (ended - shared.start) / 1e9, mib = double(ios) * load.block / (1 << 20);
  std::printf("{\"mode\": \"%s\", \"library\": \"%s\", \"version\": %d, \"gpu\": \"%s\", "
              "\"threads\": %d, \"block\": %zu, \"random\": %s, \"direct\": %s, \"cold\": %s, ",
              load.mode.c_str(), shared.cufile.path.c_str(), shared.cufile.version, gpu,
              load.threads, load.block, load.random ? "true" : "false",
              load.direct ? "true" : "false", load.cold ? "true" : "false");
  std::printf("\"seconds\": %.3f, \"ios\": %llu, \"gib_per_s\": %.3f, \"iops\": %.0f, "
              "\"p50_us\": %.2f, \"p99_us\": %.2f, \"cpu_s\": %.3f, \"cpu_us_per_mib\": %.2f, ",
              took, (unsigned long long)ios, mib / 1024 / took, ios / took, all.us(0.5),
              all.us(0.99), cpu, mib > 0 ? cpu * 1e6 / mib : 0.0);
  std::printf("\"checked_blocks\": %llu, \"bad_blocks\": %llu, \"cached_before\": %.3f, "
              "\"cached_after\": %.3f}\n",
              (unsigned long long)checked, (unsigned long long)bad, before, after);
  std::fflush(stdout);
  // NVIDIA's library has states in which it does not end.
  std::_Exit(bad == 0 ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "make") == 0)
    return make(argv[2], std::strtoull(argv[3], nullptr, 0));
  static Shared shared;
  Load& load = shared.load;
  if (!parse(load, argc, argv)) {
    std::fprintf(stderr,
                 "dropin make FILE BYTES\n"
                 "dropin sync|batch|async|pread|copy|write|pwrite FILE [--threads N] "
                 "[--block BYTES] [--seconds S] [--ramp S] [--random] [--direct] [--cold] [--unregistered] "
                 "[--entries N] [--streams N] [--depth N] [--flags N] [--check BLOCKS]\n");
    return 2;
  }
  char gpu[128] = "";
  if (load.gpu()) shared.context = cuda_start(&shared.cuda, 0, gpu);
  if (load.cufile()) shared.cufile.load();
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;
  for (int n = 0; n < load.threads; n++) {
    workers.push_back(std::make_unique<Worker>(shared, n));
    threads.emplace_back([&worker = *workers.back()] { worker.run(); });
  }
  std::thread(watch, std::cref(shared)).detach();
  while (shared.ready < load.threads) rest();
  if (load.cold) drop(load);
  const double before = cached(load), cpu = cpu_seconds();
  shared.start = now_ns();
  shared.end = shared.start + uint64_t(load.seconds * 1e9);
  shared.go = true;
  while (shared.finished < load.threads) rest();
  const double used = cpu_seconds() - cpu, after = cached(load);
  // What the check costs is not the load's.
  shared.checking = true;
  for (auto& thread : threads) thread.join();
  print(shared, workers, used, before, after, gpu);
}
