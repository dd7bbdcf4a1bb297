/*
 * What gpuio's examples of file I/O by kernels need of CUDA: with nvcc its runtime, and without it threads of
 * the host, for which each block is one thread (gpuio_device.cuh). Then a program tries its I/O on gpuio's
 * software GPU: GPUIO_CUFILE_DRIVER=software in the environment.
 */
#ifndef GPUIO_EXAMPLE_LAUNCH_H
#define GPUIO_EXAMPLE_LAUNCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <thread>
#include <vector>

#include "gpuio.h"
#include "gpuio_device.cuh"

#ifdef __CUDACC__
#define KERNEL __global__ void
#define ON_DEVICE static __device__
#define BLOCK blockIdx.x
#define THREAD threadIdx.x
#define THREADS blockDim.x
#define PLACE "GPU"
#else
#define KERNEL static void
#define ON_DEVICE static
static thread_local unsigned int BLOCK;
enum : unsigned int { THREAD = 0, THREADS = 1 };
#define PLACE "host (one thread for each block)"
#endif

/* Ends the program with the words of gpuio unless a call was fine: 3 where this machine can't do it. */
static inline void gpuio_needs(int code) {
  if (code == 0) return;
  fprintf(stderr, "%s\n", gpuio_error());
  exit(code == -95 /* EOPNOTSUPP */ || code == -19 /* ENODEV */ ? 3 : 1);
}

#ifdef __CUDACC__
static inline void cuda_needs(cudaError_t code, const char *what) {
  if (code == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  exit(1);
}
#endif

/* Nanoseconds of a clock of the device. */
ON_DEVICE unsigned long long clock_ns() {
  unsigned long long now;
#ifdef __CUDACC__
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
#else
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  now = time.tv_sec * 1000000000ull + time.tv_nsec;
#endif
  return now;
}

/* Seconds of the host's clock. */
static inline double seconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

/* Memory of the device for `count` elements of zeros. */
template <class T> T *device_array(size_t count) {
  void *array;
#ifdef __CUDACC__
  cuda_needs(cudaMalloc(&array, count * sizeof(T)), "cudaMalloc");
  cuda_needs(cudaMemset(array, 0, count * sizeof(T)), "cudaMemset");
#else
  array = calloc(count, sizeof(T));
  if (!array) exit(1);
#endif
  return (T *)array;
}

/* Copies the host's elements to the beginning of an array of the device. */
template <class T> void to_device(T *array, const std::vector<T> &elements) {
#ifdef __CUDACC__
  cuda_needs(cudaMemcpy(array, elements.data(), elements.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
#else
  for (size_t at = 0; at < elements.size(); at++) array[at] = elements[at];
#endif
}

/* A copy of it in the host. */
template <class T> std::vector<T> to_host(const T *array, size_t count) {
  std::vector<T> copy(array ? count : 0);
#ifdef __CUDACC__
  cuda_needs(cudaMemcpy(copy.data(), array, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
#else
  for (size_t at = 0; at < copy.size(); at++) copy[at] = array[at];
#endif
  return copy;
}

/* Runs the kernel and waits for it; answers how long that took, in seconds. */
template <class... A, class... B>
double launch(unsigned int blocks, unsigned int threads, void (*kernel)(A...), B... arguments) {
  const double began = seconds();
#ifdef __CUDACC__
  kernel<<<blocks, threads>>>(arguments...);
  cuda_needs(cudaGetLastError(), "the launch");
  cuda_needs(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
#else
  (void)threads;
  std::vector<std::thread> started;
  for (unsigned int block = 0; block < blocks; block++) {
    started.emplace_back([=] {
      BLOCK = block;
      kernel(arguments...);
    });
  }
  for (std::thread &one : started) one.join();
#endif
  return seconds() - began;
}

#endif
