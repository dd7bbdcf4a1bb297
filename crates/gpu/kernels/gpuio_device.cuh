// gpuio_device.cuh: reads and writes of files that a CUDA kernel starts by itself.
//
// A ring is an io_uring ring in page-locked memory which the device reaches. The kernel writes an entry
// (gpuio_prepare), makes it known (gpuio_publish), and looks for completions (gpuio_completions). A thread of
// the operating system takes entries and does the I/O. No thread of the program takes part, except that one of
// the host has to wake that thread where it fell asleep: see the host's interface for whose task that is.
//
// One thread at a time publishes to a ring, and one at a time takes its completions; they may be two. Entries
// that are published have to be written by the publishing thread, or by threads that a barrier orders before
// it. The header needs sm_70, and compiles with nvcc, nvrtc and clang, without any other header.
#pragma once

#if defined(__clang__)
#define GPUIO_DEVICE static inline __attribute__((device, always_inline))
#else
#define GPUIO_DEVICE static __device__ __forceinline__
#endif

// A ring as the host describes it. Addresses are the device's unless it says otherwise. The host writes it,
// and nothing changes it.
struct gpuio_ring {
    unsigned long long sq_tail;      // word of 32 bits: entries that were published; only the device writes it
    unsigned long long cq_head;      // word of 32 bits: completions that were taken; only the device writes it
    unsigned long long cq_tail;      // word of 32 bits: completions that there are
    unsigned long long entries;      // entries of 64 bytes
    unsigned long long completions;  // completions of 16 bytes
    unsigned long long entry_mask;   // how many entries there are, a power of two, less one
    unsigned long long answer_mask;  // how many completions there are, a power of two, less one
    unsigned long long buffers;      // buffer 0
    unsigned long long host_buffers; // buffer 0 as the operating system knows it
    unsigned long long buffer_len;   // bytes from one buffer to the next
    unsigned long long buffer_count; // buffers that there are
};

// The direction of an I/O: the operating system's numbers for I/O with registered buffers.
enum : unsigned int { GPUIO_READ = 4, GPUIO_WRITE = 5 };

// One completion: the number that its entry had, and bytes moved, or a negative errno.
struct gpuio_completion {
    unsigned long long user;
    int result;
};

// Words that host and device exchange.

GPUIO_DEVICE unsigned int gpuio_load_acquire(unsigned long long at) {
    unsigned int value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

GPUIO_DEVICE unsigned int gpuio_load_relaxed(unsigned long long at) {
    unsigned int value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

GPUIO_DEVICE void gpuio_store_release(unsigned long long at, unsigned int value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}

GPUIO_DEVICE void gpuio_store_pair(unsigned long long at, unsigned long long low, unsigned long long high) {
    asm volatile("st.global.v2.u64 [%0], {%1, %2};" : : "l"(at), "l"(low), "l"(high) : "memory");
}

// Entries that were published so far. Counters wrap at 2^32.
GPUIO_DEVICE unsigned int gpuio_published(const gpuio_ring &ring) { return gpuio_load_relaxed(ring.sq_tail); }

// Completions that were taken so far.
GPUIO_DEVICE unsigned int gpuio_taken(const gpuio_ring &ring) { return gpuio_load_relaxed(ring.cq_head); }

// Writes entry `number` (the count of entries before it): `len` bytes between file number `file`, from byte
// `offset` on, and buffer `buffer`, from its byte `skip` on. `user` comes back with the completion. At most
// entry_mask + 1 entries may be without a completion: there is no check.
GPUIO_DEVICE void gpuio_prepare(const gpuio_ring &ring, unsigned int number, unsigned int op, unsigned int file,
                                unsigned long long offset, unsigned int buffer, unsigned int skip,
                                unsigned int len, unsigned long long user) {
    const unsigned long long at = ring.entries + (number & ring.entry_mask) * 64;
    // IOSQE_FIXED_FILE is bit 0 of the second byte.
    gpuio_store_pair(at, op | 1ull << 8 | (unsigned long long)file << 32, offset);
    gpuio_store_pair(at + 16, ring.host_buffers + buffer * ring.buffer_len + skip, len);
    gpuio_store_pair(at + 32, user, buffer);
    gpuio_store_pair(at + 48, 0, 0);
}

// Makes all entries before `number` known.
GPUIO_DEVICE void gpuio_publish(const gpuio_ring &ring, unsigned int number) {
    gpuio_store_release(ring.sq_tail, number);
}

// Completions that there are so far. What the I/O wrote is visible to the thread that looked, and to those
// that a barrier orders behind it.
GPUIO_DEVICE unsigned int gpuio_completions(const gpuio_ring &ring) { return gpuio_load_acquire(ring.cq_tail); }

// Completion `number`, which is before what gpuio_completions returned.
GPUIO_DEVICE gpuio_completion gpuio_completed(const gpuio_ring &ring, unsigned int number) {
    const unsigned long long at = ring.completions + (number & ring.answer_mask) * 16;
    gpuio_completion completion;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(completion.user) : "l"(at) : "memory");
    completion.result = (int)gpuio_load_relaxed(at + 8);
    return completion;
}

// Gives the places of all completions before `number` back.
GPUIO_DEVICE void gpuio_take(const gpuio_ring &ring, unsigned int number) {
    gpuio_store_release(ring.cq_head, number);
}
