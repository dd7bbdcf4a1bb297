/*
 * Follows pointers through a file that may be larger than the memory of the GPU: each read's offset is in the bytes
 * of the read before, so only the GPU knows it. This is the load of a search in a graph, a tree or a list.
 *
 *   nvcc -O3 -std=c++17 -arch=native -I crates/clib/include -I crates/gpu/kernels examples/gpu/pointer_chase.cu \
 *      -o pointer_chase -L target/release -lgpuio -lcuda
 *   LD_LIBRARY_PATH=target/release ./pointer_chase FILE [NODES [SPAN_GIB [CHAINS [STEPS]]]]
 *
 * and without CUDA, on gpuio's software GPU (launch.h): g++ -std=c++17 -x c++ ... -pthread
 *
 * FILE is made, with a hole between any two nodes, unless it is there; another program's file is refused. NODES
 * blocks of 4 KiB (262144) lie at random places of SPAN_GIB (128), in one circle. CHAINS searches (8) run at once,
 * of STEPS reads (20000). Exit codes: 0 each node was the right one, 1 an error or a wrong node, 2 wrong arguments,
 * 3 this machine can't do it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>

#include "launch.h"

enum : unsigned int { NODE_LEN = 4096 };
enum : unsigned long long { MAGIC = 0x6573616863202d6full };

/* The first bytes of a node. */
struct Node {
  unsigned long long magic;
  unsigned long long own;  /* its own byte in the file */
  unsigned long long next; /* the next node's */
  unsigned long long nodes;
};

static void failed(const char *what) {
  perror(what);
  exit(1);
}

/* A chain in each block: its first thread alone reads. */
KERNEL chase(const gpuio_ring *rings, unsigned int ring_count, unsigned int file, const unsigned long long *starts,
             unsigned int steps, unsigned int *times, unsigned long long *wrong) {
  if (THREAD != 0) return;
  const gpuio_ring ring = rings[BLOCK % ring_count];
  const unsigned int buffer = BLOCK / ring_count;
  unsigned long long at = starts[BLOCK];
  for (unsigned int step = 0; step < steps; step++) {
    const unsigned long long began = clock_ns();
    const int moved = gpuio_read(ring, file, at, buffer, 0, NODE_LEN);
    const Node node = *(const Node *)gpuio_buffer(ring, buffer);
    times[(size_t)BLOCK * steps + step] = (unsigned int)(clock_ns() - began);
    if (moved != NODE_LEN || node.magic != MAGIC || node.own != at) {
      wrong[BLOCK] = at + 1;
      return;
    }
    at = node.next;
  }
}

static unsigned long long number(const char *text) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 0);
  if (*text < '0' || *text > '9' || *end || errno || value == 0) {
    fprintf(stderr, "%s is no number above 0\n", text);
    exit(2);
  }
  return value;
}

/* Makes the circle of nodes: a file without a name that gets one when it is whole. */
static void make(const char *name, unsigned long long nodes, unsigned long long slots) {
  const std::string part = std::string(name) + ".part";
  int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (fd < 0) failed(part.c_str());
  std::mt19937_64 random(7);
  /* A place in each of `nodes` equal ranges, and a random circle through them. The first is at byte 0. */
  std::vector<unsigned long long> place(nodes);
  const unsigned long long range = slots / nodes;
  for (unsigned long long at = 0; at < nodes; at++) place[at] = (at * range + (at ? random() % range : 0)) * NODE_LEN;
  std::vector<unsigned long long> order(nodes);
  for (unsigned long long at = 0; at < nodes; at++) order[at] = at;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<unsigned long long> next(nodes);
  for (unsigned long long at = 0; at < nodes; at++) next[order[at]] = place[order[(at + 1) % nodes]];
  std::vector<char> bytes(NODE_LEN);
  for (unsigned long long at = 0; at < nodes; at++) {
    const Node node = {MAGIC, place[at], next[at], nodes};
    memcpy(bytes.data(), &node, sizeof node);
    if (pwrite(fd, bytes.data(), NODE_LEN, (off_t)place[at]) != NODE_LEN) failed(part.c_str());
  }
  if (ftruncate(fd, (off_t)(slots * NODE_LEN)) || fsync(fd) || close(fd)) failed(part.c_str());
  /* Not over a file that has come meanwhile. */
  if (link(part.c_str(), name) || unlink(part.c_str())) failed(name);
}

int main(int count, char **arguments) {
  if (count < 2 || count > 6) {
    fprintf(stderr, "usage: %s FILE [NODES [SPAN_GIB [CHAINS [STEPS]]]]\n", arguments[0]);
    return 2;
  }
  const char *name = arguments[1];
  const unsigned long long nodes = count > 2 ? number(arguments[2]) : 262144;
  const unsigned long long slots = (count > 3 ? number(arguments[3]) : 128) * ((1ull << 30) / NODE_LEN);
  const unsigned int chains = (unsigned int)(count > 4 ? number(arguments[4]) : 8);
  const unsigned int steps = (unsigned int)(count > 5 ? number(arguments[5]) : 20000);
  if (slots < nodes || chains > 512) {
    fprintf(stderr, "NODES blocks of 4 KiB have to fit SPAN_GIB, and CHAINS is at most 512\n");
    return 2;
  }
  if (access(name, F_OK) != 0) make(name, nodes, slots);
  const int fd = open(name, O_RDONLY);
  Node first;
  struct stat about;
  if (fd < 0 || fstat(fd, &about)) failed(name);
  if (pread(fd, &first, sizeof first, 0) != sizeof first || first.magic != MAGIC) {
    fprintf(stderr, "%s is no file of this program. Name one that is not there yet\n", name);
    return 2;
  }

  gpuio_rings *rings;
  gpuio_rings_options options = {};
  options.rings = chains;
  options.buffers = 1;
  options.buffer_length = NODE_LEN;
  gpuio_needs(gpuio_rings_open(0, &options, &rings));
  unsigned int file;
  gpuio_needs(gpuio_rings_add_file(rings, fd, &file));

  /* Each chain begins at another node of the circle, found on the host. */
  std::vector<unsigned long long> begins(chains);
  unsigned long long at = 0;
  for (unsigned int chain = 0; chain < chains; chain++) {
    begins[chain] = at;
    for (int step = 0; step < 7; step++) {
      Node node;
      if (pread(fd, &node, sizeof node, (off_t)at) != sizeof node) failed(name);
      at = node.next;
    }
  }
  close(fd);
  unsigned long long *starts = device_array<unsigned long long>(chains);
#ifdef __CUDACC__
  cuda_needs(cudaMemcpy(starts, begins.data(), chains * 8, cudaMemcpyHostToDevice), "cudaMemcpy");
#else
  std::copy(begins.begin(), begins.end(), starts);
#endif
  unsigned int *times = device_array<unsigned int>((size_t)chains * steps);
  unsigned long long *wrong = device_array<unsigned long long>(chains);

  gpuio_needs(gpuio_rings_wake(rings));
  const double took = launch(chains, 32, chase, (const gpuio_ring *)gpuio_rings_address(rings),
                             gpuio_rings_count(rings), file, (const unsigned long long *)starts, steps, times, wrong);

  int answer = 0;
  for (unsigned long long one : to_host(wrong, chains)) {
    if (one == 0) continue;
    fprintf(stderr, "a wrong node, or a read that failed, at byte %llu\n", one - 1);
    answer = 1;
  }
  std::vector<unsigned int> sorted = to_host(times, (size_t)chains * steps);
  std::sort(sorted.begin(), sorted.end());
  printf("%s of %.1f GiB (%llu nodes, %.1f GiB of blocks); %u chains of %u steps, 1 read in flight each, by the %s\n",
         name, about.st_size / 1073741824.0, first.nodes, about.st_blocks * 512 / 1073741824.0, chains, steps, PLACE);
  printf("a step: p50 %.1f us, p99 %.1f us; all together %.3f M steps/s; %s\n", sorted[sorted.size() / 2] / 1e3,
         sorted[sorted.size() * 99 / 100] / 1e3, (double)chains * steps / took / 1e6,
         answer ? "WRONG NODES" : "each node was the right one");
  gpuio_needs(gpuio_rings_close(rings));
  return answer;
}
