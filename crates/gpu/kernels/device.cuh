// What the kernels share: types, qualifiers, thread numbers, barriers, the clock, and memory accesses that
// host and device order against each other. It needs no CUDA header under clang, so that the PTX can be
// made without a CUDA SDK; nvcc takes the same sources.
#pragma once

typedef unsigned long long u64;
typedef unsigned int u32;

// BOUNDS: the most threads of a block, and the least blocks of a multiprocessor.
#if defined(__clang__)
#define KERNEL extern "C" __attribute__((global)) void
#define BOUNDS(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define DEVICE static inline __attribute__((device))
#define MEMBER static __attribute__((device))
#define SHARED static __attribute__((shared))

DEVICE u32 thread_number() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 thread_count() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 block_number() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 block_count() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE u64 atomic_add(u64 *at, u64 by) {
    return (u64)__nvvm_atom_add_gen_ll((long long *)at, (long long)by);
}
DEVICE void atomic_or(u64 *at, u64 bits) { __nvvm_atom_or_gen_ll((long long *)at, (long long)bits); }
DEVICE void atomic_min(u64 *at, u64 value) { __nvvm_atom_min_gen_ull(at, value); }
DEVICE float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
#define KERNEL extern "C" __global__ void
#define BOUNDS(...) __launch_bounds__(__VA_ARGS__)
#define DEVICE static inline __device__
#define MEMBER static __device__
#define SHARED static __shared__

DEVICE u32 thread_number() { return threadIdx.x; }
DEVICE u32 thread_count() { return blockDim.x; }
DEVICE u32 block_number() { return blockIdx.x; }
DEVICE u32 block_count() { return gridDim.x; }
DEVICE u64 atomic_add(u64 *at, u64 by) { return atomicAdd(at, by); }
DEVICE void atomic_or(u64 *at, u64 bits) { atomicOr(at, bits); }
DEVICE void atomic_min(u64 *at, u64 value) { atomicMin(at, value); }
DEVICE float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
#endif

// 16 bytes in one access, the widest that every GPU since sm_20 has.
struct alignas(16) Word {
    u64 low;
    u64 high;
};

// Host and device exchange words while a kernel runs. An acquire at system scope on what the host released
// makes the host's earlier stores visible; a release makes the device's stores visible to the host, and to
// kernels that are launched after the host has seen it (PTX ISA, "Memory Consistency Model"; sm_70 and later).

DEVICE u64 acquire(u64 at) {
    u64 value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

DEVICE void release(u64 at, u64 value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

// A barrier for the threads of the block; orders their memory accesses.
DEVICE void sync_block() { asm volatile("bar.sync 0;" : : : "memory"); }

// The device's clock, nanoseconds. Its steps differ between GPUs: some have a microsecond.
DEVICE u64 clock_ns() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
    return now;
}

// Addresses come from commands and lists, so the compiler does not know their space. They are global: a
// generic address outside the windows of shared and local memory is the global address (PTX ISA, "Generic
// Addressing").

DEVICE Word load(u64 at) {
    Word word;
    asm volatile("ld.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(word.low), "=l"(word.high)
                 : "l"(at)
                 : "memory");
    return word;
}

DEVICE u32 load_byte(u64 at) {
    u32 byte;
    asm volatile("ld.global.u8 %0, [%1];" : "=r"(byte) : "l"(at) : "memory");
    return byte;
}

DEVICE void store(u64 at, Word word) {
    asm volatile("st.global.v2.u64 [%0], {%1, %2};"
                 :
                 : "l"(at), "l"(word.low), "l"(word.high)
                 : "memory");
}

DEVICE void store_byte(u64 at, u32 byte) {
    asm volatile("st.global.u8 [%0], %1;" : : "l"(at), "r"(byte) : "memory");
}
