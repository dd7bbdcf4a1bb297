// gpuio_device.cuh: reads and writes of files that a CUDA kernel starts by itself.
//
// The host opens rings (gpuio_rings_open in gpuio.h, gpuio.Rings in Python) and passes their address to a
// kernel. Any thread of it starts an I/O between a file and a buffer of the ring, and waits for its result:
//
//     __global__ void first_word(const gpuio_ring *rings, unsigned long long *words) {
//         const gpuio_ring ring = rings[blockIdx.x];
//         int moved = gpuio_read_block(ring, 0, blockIdx.x * 4096ull, 0, 0, 4096);
//         if (threadIdx.x == 0 && moved == 4096) words[blockIdx.x] = *(unsigned long long *)gpuio_buffer(ring, 0);
//     }
//
// A ring is an io_uring ring in page-locked memory. A thread of the operating system takes its entries and does
// the I/O, from any file system. No thread of the program takes part, except that one wakes that thread where it
// sleeps. docs/gpu-started-io.md has the whole: limits, order, progress, and when not to use this.
//
// Results are bytes moved, which may be fewer than wanted, 0 at the end of the file, or a negative errno.
// A buffer has at most one I/O without a result. Its bytes are read with ordinary loads, never through the
// read-only cache (__ldg, const __restrict__): the operating system writes them while the kernel runs.
//
// Needs sm_70. Compiles with nvcc, nvrtc and clang, without any other header, and without CUDA as C++ for the
// host, where each thread is a warp and a block of its own: so a program tries its I/O on gpuio's software GPU.
#pragma once

#if !defined(__CUDACC__) && !defined(__CUDA__)
#define GPUIO_HOST_CODE 1
#define GPUIO_DEVICE static inline
extern "C" int sched_yield(void);
#elif defined(__clang__)
#define GPUIO_DEVICE static inline __attribute__((device, always_inline))
#else
#define GPUIO_DEVICE static __device__ __forceinline__
#endif

// The queues of a ring as the host describes them. Addresses are the device's unless it says otherwise. The host
// writes it, and nothing changes it.
//
// One thread at a time publishes to a queue, and one at a time takes its completions; they may be two. Entries
// that are published have to be written by the publishing thread, or by threads that a barrier orders before it.
// A gpuio_ring, below, has no such rule.
struct gpuio_queue {
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

// Words that host and device exchange: 32 bits, at the scope of the system.

GPUIO_DEVICE unsigned int gpuio_load_acquire(unsigned long long at) {
    unsigned int value;
#ifdef GPUIO_HOST_CODE
    value = __atomic_load_n((unsigned int *)at, __ATOMIC_ACQUIRE);
#else
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
#endif
    return value;
}

GPUIO_DEVICE unsigned int gpuio_load_relaxed(unsigned long long at) {
    unsigned int value;
#ifdef GPUIO_HOST_CODE
    value = __atomic_load_n((unsigned int *)at, __ATOMIC_RELAXED);
#else
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
#endif
    return value;
}

GPUIO_DEVICE void gpuio_store_release(unsigned long long at, unsigned int value) {
#ifdef GPUIO_HOST_CODE
    __atomic_store_n((unsigned int *)at, value, __ATOMIC_RELEASE);
#else
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
#endif
}

GPUIO_DEVICE void gpuio_store_relaxed(unsigned long long at, unsigned int value) {
#ifdef GPUIO_HOST_CODE
    __atomic_store_n((unsigned int *)at, value, __ATOMIC_RELAXED);
#else
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
#endif
}

GPUIO_DEVICE void gpuio_store_pair(unsigned long long at, unsigned long long low, unsigned long long high) {
#ifdef GPUIO_HOST_CODE
    __atomic_store_n((unsigned long long *)at, low, __ATOMIC_RELAXED);
    __atomic_store_n((unsigned long long *)at + 1, high, __ATOMIC_RELAXED);
#else
    asm volatile("st.global.v2.u64 [%0], {%1, %2};" : : "l"(at), "l"(low), "l"(high) : "memory");
#endif
}

// Entries that were published so far. Counters wrap at 2^32.
GPUIO_DEVICE unsigned int gpuio_published(const gpuio_queue &queue) { return gpuio_load_relaxed(queue.sq_tail); }

// Completions that were taken so far.
GPUIO_DEVICE unsigned int gpuio_taken(const gpuio_queue &queue) { return gpuio_load_relaxed(queue.cq_head); }

// Writes entry `number` (the count of entries before it): `len` bytes between file number `file`, from byte
// `offset` on, and buffer `buffer`, from its byte `skip` on. `user` comes back with the completion. At most
// entry_mask + 1 entries may be without a completion: there is no check.
GPUIO_DEVICE void gpuio_prepare(const gpuio_queue &queue, unsigned int number, unsigned int op, unsigned int file,
                                unsigned long long offset, unsigned int buffer, unsigned int skip,
                                unsigned int len, unsigned long long user) {
    const unsigned long long at = queue.entries + (number & queue.entry_mask) * 64;
    // IOSQE_FIXED_FILE is bit 0 of the second byte.
    gpuio_store_pair(at, op | 1ull << 8 | (unsigned long long)file << 32, offset);
    gpuio_store_pair(at + 16, queue.host_buffers + buffer * queue.buffer_len + skip, len);
    gpuio_store_pair(at + 32, user, buffer);
    gpuio_store_pair(at + 48, 0, 0);
}

// Makes all entries before `number` known.
GPUIO_DEVICE void gpuio_publish(const gpuio_queue &queue, unsigned int number) {
    gpuio_store_release(queue.sq_tail, number);
}

// Completions that there are so far. What the I/O wrote is visible to the thread that looked, and to those
// that a barrier orders behind it.
GPUIO_DEVICE unsigned int gpuio_completions(const gpuio_queue &queue) { return gpuio_load_acquire(queue.cq_tail); }

// Completion `number`, which is before what gpuio_completions returned.
GPUIO_DEVICE gpuio_completion gpuio_completed(const gpuio_queue &queue, unsigned int number) {
    const unsigned long long at = queue.completions + (number & queue.answer_mask) * 16;
    gpuio_completion completion;
#ifdef GPUIO_HOST_CODE
    completion.user = __atomic_load_n((unsigned long long *)at, __ATOMIC_RELAXED);
#else
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(completion.user) : "l"(at) : "memory");
#endif
    completion.result = (int)gpuio_load_relaxed(at + 8);
    return completion;
}

// Gives the places of all completions before `number` back.
GPUIO_DEVICE void gpuio_take(const gpuio_queue &queue, unsigned int number) {
    gpuio_store_release(queue.cq_head, number);
}

// From here on: rings that any number of threads share. What they exchange is in device memory, at the scope
// of the device.

// A ring, as gpuio_rings_address has them one behind the other. Kernels take a copy.
struct gpuio_ring {
    gpuio_queue queue;
    unsigned long long state; // the words below, and a result for each buffer
};

// Where they are in the state, in bytes. NEXT: tickets that were given out, one for each entry. PUBLISHED: entries
// that were published, which happens in the order of the tickets. TAKEN: completions that were taken, and whether
// a thread takes some. RESULTS: one word for each buffer.
enum : unsigned int { GPUIO_NEXT = 0, GPUIO_PUBLISHED = 128, GPUIO_TAKEN = 256, GPUIO_RESULTS = 384 };
// A result: these, and the number in its low half. 0: none yet.
enum : unsigned long long { GPUIO_DONE = 1ull << 32 };
// In TAKEN's word: a thread takes completions.
enum : unsigned long long { GPUIO_TAKING = 1ull << 32 };
// Looks at the completions of a thread that has the turn.
#ifdef GPUIO_HOST_CODE
enum : unsigned int { GPUIO_LOOKS = 1 };
#else
enum : unsigned int { GPUIO_LOOKS = 16 };
#endif

GPUIO_DEVICE unsigned int gpuio_ticket(unsigned long long at, unsigned int more) {
    unsigned int before;
#ifdef GPUIO_HOST_CODE
    before = __atomic_fetch_add((unsigned int *)at, more, __ATOMIC_RELAXED);
#else
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(more) : "memory");
#endif
    return before;
}

GPUIO_DEVICE unsigned long long gpuio_near_acquire(unsigned long long at) {
    unsigned long long value;
#ifdef GPUIO_HOST_CODE
    value = __atomic_load_n((unsigned long long *)at, __ATOMIC_ACQUIRE);
#else
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
#endif
    return value;
}

GPUIO_DEVICE void gpuio_near_relaxed(unsigned long long at, unsigned long long value) {
#ifdef GPUIO_HOST_CODE
    __atomic_store_n((unsigned long long *)at, value, __ATOMIC_RELAXED);
#else
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
#endif
}

GPUIO_DEVICE void gpuio_near_release(unsigned long long at, unsigned long long value) {
#ifdef GPUIO_HOST_CODE
    __atomic_store_n((unsigned long long *)at, value, __ATOMIC_RELEASE);
#else
    asm volatile("st.release.gpu.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
#endif
}

GPUIO_DEVICE bool gpuio_near_swap(unsigned long long at, unsigned long long from, unsigned long long to) {
#ifdef GPUIO_HOST_CODE
    return __atomic_compare_exchange_n((unsigned long long *)at, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
#else
    unsigned long long before;
    asm volatile("atom.acquire.gpu.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(before)
                 : "l"(at), "l"(from), "l"(to)
                 : "memory");
    return before == from;
#endif
}

// Orders what came before, with what other threads and the host let this one see, before each later store.
GPUIO_DEVICE void gpuio_near_fence() {
#ifdef GPUIO_HOST_CODE
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
#else
    asm volatile("fence.acq_rel.gpu;" : : : "memory");
#endif
}

// Lets others go on: this thread has nothing to do but wait.
GPUIO_DEVICE void gpuio_pause() {
#ifdef GPUIO_HOST_CODE
    sched_yield();
#else
    asm volatile("nanosleep.u32 40;" : : : "memory");
#endif
}

GPUIO_DEVICE unsigned int gpuio_lane() {
    unsigned int lane = 0;
#ifndef GPUIO_HOST_CODE
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
#endif
    return lane;
}

// Lanes of a warp.
#ifdef GPUIO_HOST_CODE
enum : unsigned int { GPUIO_LANES = 1 };
#else
enum : unsigned int { GPUIO_LANES = 32 };
#endif

// Whether this is the first thread of its block.
GPUIO_DEVICE bool gpuio_is_first() {
    unsigned int x = 0, y = 0, z = 0;
#ifndef GPUIO_HOST_CODE
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    asm volatile("mov.u32 %0, %%tid.y;" : "=r"(y));
    asm volatile("mov.u32 %0, %%tid.z;" : "=r"(z));
#endif
    return (x | y | z) == 0;
}

GPUIO_DEVICE void gpuio_sync_block() {
#ifndef GPUIO_HOST_CODE
    asm volatile("barrier.sync 0;" : : : "memory");
#endif
}

GPUIO_DEVICE void gpuio_sync_warp() {
#ifndef GPUIO_HOST_CODE
    asm volatile("bar.warp.sync 0xffffffff;" : : : "memory");
#endif
}

// A bit for each lane of the warp for which `holds` is true. All 32 call it.
GPUIO_DEVICE unsigned int gpuio_lanes_where(bool holds) {
    unsigned int lanes;
#ifdef GPUIO_HOST_CODE
    lanes = holds;
#else
    asm volatile("{\n\t"
                 ".reg .pred mine;\n\t"
                 "setp.ne.u32 mine, %1, 0;\n\t"
                 "vote.sync.ballot.b32 %0, mine, 0xffffffff;\n\t"
                 "}"
                 : "=r"(lanes)
                 : "r"((unsigned int)holds)
                 : "memory");
#endif
    return lanes;
}

// The first lane's value. All 32 call it.
GPUIO_DEVICE unsigned int gpuio_from_first_lane(unsigned int value) {
#ifndef GPUIO_HOST_CODE
    asm volatile("shfl.sync.idx.b32 %0, %0, 0, 0x1f, 0xffffffff;" : "+r"(value) : : "memory");
#endif
    return value;
}

GPUIO_DEVICE unsigned int gpuio_bits(unsigned int word) {
    unsigned int count;
#ifdef GPUIO_HOST_CODE
    count = (unsigned int)__builtin_popcount(word);
#else
    asm volatile("popc.b32 %0, %1;" : "=r"(count) : "r"(word));
#endif
    return count;
}

// The bytes of a buffer.
GPUIO_DEVICE void *gpuio_buffer(const gpuio_ring &ring, unsigned int buffer) {
    return (void *)(ring.queue.buffers + buffer * ring.queue.buffer_len);
}

GPUIO_DEVICE unsigned long long gpuio_result_at(const gpuio_ring &ring, unsigned long long buffer) {
    return ring.state + GPUIO_RESULTS + buffer * 8;
}

// The completions that there are, once there are more than `taken`, or after some looks: one look is a way to the
// host's memory and back, and the thread has taken the turn from others that wait.
GPUIO_DEVICE unsigned int gpuio_look(const gpuio_ring &ring, unsigned int taken) {
    unsigned int there = gpuio_completions(ring.queue);
    for (unsigned int look = 1; look < GPUIO_LOOKS && there == taken; look++) {
        there = gpuio_completions(ring.queue);
    }
    return there;
}

// Gives the places of completions back, of which TAKEN says so later. There are twice as many as entries: none is
// written again before entries are started for which TAKEN has to be further on, so the order does not matter.
GPUIO_DEVICE void gpuio_give_back(const gpuio_ring &ring, unsigned int taken) {
    gpuio_store_relaxed(ring.queue.cq_head, taken);
}

// Gives the buffers their results of all completions that there are, unless another thread does so.
GPUIO_DEVICE void gpuio_progress(const gpuio_ring &ring) {
    const unsigned long long word = ring.state + GPUIO_TAKEN;
    const unsigned long long before = gpuio_near_acquire(word);
    if ((before & GPUIO_TAKING) != 0 || !gpuio_near_swap(word, before, before | GPUIO_TAKING)) {
        gpuio_pause();
        return;
    }
    const unsigned int there = gpuio_look(ring, (unsigned int)before);
    // The bytes that the I/O wrote, before its result.
    gpuio_near_fence();
    for (unsigned int number = (unsigned int)before; number != there; number++) {
        const gpuio_completion one = gpuio_completed(ring.queue, number);
        gpuio_near_relaxed(gpuio_result_at(ring, one.user), GPUIO_DONE | (unsigned int)one.result);
    }
    if (there != (unsigned int)before) {
        gpuio_give_back(ring, there);
    }
    gpuio_near_release(word, there);
}

// The same by a warp, of which all 32 lanes call it.
GPUIO_DEVICE void gpuio_progress_warp(const gpuio_ring &ring) {
    const unsigned long long word = ring.state + GPUIO_TAKEN;
    const bool leads = gpuio_lane() == 0;
    unsigned int begin = 0, there = 0, has_turn = 0;
    if (leads) {
        const unsigned long long before = gpuio_near_acquire(word);
        begin = (unsigned int)before;
        has_turn = (before & GPUIO_TAKING) == 0 && gpuio_near_swap(word, before, before | GPUIO_TAKING);
        if (has_turn != 0) {
            there = gpuio_look(ring, begin);
        }
    }
    if (gpuio_from_first_lane(has_turn) == 0) {
        gpuio_pause();
        return;
    }
    begin = gpuio_from_first_lane(begin);
    there = gpuio_from_first_lane(there);
    if (begin != there) {
        gpuio_sync_warp();
        // The bytes that the I/O wrote, which the first lane may use, before its result.
        gpuio_near_fence();
        for (unsigned int number = gpuio_lane(); number < there - begin; number += GPUIO_LANES) {
            const gpuio_completion one = gpuio_completed(ring.queue, begin + number);
            gpuio_near_relaxed(gpuio_result_at(ring, one.user), GPUIO_DONE | (unsigned int)one.result);
        }
        gpuio_sync_warp();
        if (leads) {
            gpuio_give_back(ring, there);
        }
    }
    if (leads) {
        gpuio_near_release(word, there);
    }
}

// Whether the ring has places for the entries before `number`: as many may be without a taken completion as it has.
GPUIO_DEVICE bool gpuio_has_room(const gpuio_ring &ring, unsigned int number) {
    const unsigned int taken = (unsigned int)gpuio_near_acquire(ring.state + GPUIO_TAKEN);
    return number - taken <= (unsigned int)ring.queue.entry_mask + 1;
}

// Publishes the entries from `first` up to `next`, after all of before.
GPUIO_DEVICE void gpuio_publish_in_turn(const gpuio_ring &ring, unsigned int first, unsigned int next) {
    const unsigned long long published = ring.state + GPUIO_PUBLISHED;
    while ((unsigned int)gpuio_near_acquire(published) != first) {
        gpuio_pause();
    }
    gpuio_publish(ring.queue, next);
    gpuio_near_release(published, next);
}

// Starts an I/O of `len` bytes, by one thread: `op` is GPUIO_READ or GPUIO_WRITE, `file` the number of a file
// (gpuio_rings_add_file), `offset` its byte, `skip` the first byte in the buffer. Waits while the ring is full.
// The bytes of a write are what this thread wrote into the buffer, or sees by a barrier.
GPUIO_DEVICE void gpuio_start(const gpuio_ring &ring, unsigned int op, unsigned int file, unsigned long long offset,
                              unsigned int buffer, unsigned int skip, unsigned int len) {
    gpuio_near_relaxed(gpuio_result_at(ring, buffer), 0);
    const unsigned int ticket = gpuio_ticket(ring.state + GPUIO_NEXT, 1);
    while (!gpuio_has_room(ring, ticket + 1)) {
        gpuio_progress(ring);
    }
    gpuio_prepare(ring.queue, ticket, op, file, offset, buffer, skip, len, buffer);
    gpuio_publish_in_turn(ring, ticket, ticket + 1);
}

// The same by a warp, of which all 32 lanes call it, for each lane where `starts`. Their buffers differ. They are
// published together, which costs less than one after the other.
GPUIO_DEVICE void gpuio_start_warp(const gpuio_ring &ring, bool starts, unsigned int op, unsigned int file,
                                   unsigned long long offset, unsigned int buffer, unsigned int skip,
                                   unsigned int len) {
    const unsigned int lanes = gpuio_lanes_where(starts);
    const unsigned int lane = gpuio_lane();
    if (lanes == 0) {
        return;
    }
    if (starts) {
        gpuio_near_relaxed(gpuio_result_at(ring, buffer), 0);
    }
    const unsigned int count = gpuio_bits(lanes);
    const unsigned int first =
        gpuio_from_first_lane(lane == 0 ? gpuio_ticket(ring.state + GPUIO_NEXT, count) : 0);
    while (gpuio_lanes_where(lane == 0 && !gpuio_has_room(ring, first + count)) != 0) {
        gpuio_progress_warp(ring);
    }
    // The look at the room was the first lane's.
    gpuio_sync_warp();
    if (starts) {
        const unsigned int number = first + gpuio_bits(lanes & ((1u << lane) - 1));
        gpuio_prepare(ring.queue, number, op, file, offset, buffer, skip, len, buffer);
    }
    gpuio_sync_warp();
    if (lane == 0) {
        gpuio_publish_in_turn(ring, first, first + count);
    }
    gpuio_sync_warp();
}

// The same by a block, of which all threads call it with the same arguments. What they wrote into the buffer
// before is what a write writes.
GPUIO_DEVICE void gpuio_start_block(const gpuio_ring &ring, unsigned int op, unsigned int file,
                                    unsigned long long offset, unsigned int buffer, unsigned int skip,
                                    unsigned int len) {
    gpuio_sync_block();
    if (gpuio_is_first()) {
        gpuio_start(ring, op, file, offset, buffer, skip, len);
    }
    gpuio_sync_block();
}

// Whether the I/O of the buffer has a result, and which: bytes moved, or a negative errno. With the result this
// thread sees the bytes.
GPUIO_DEVICE bool gpuio_test(const gpuio_ring &ring, unsigned int buffer, int &result) {
    const unsigned long long word = gpuio_near_acquire(gpuio_result_at(ring, buffer));
    result = (int)(unsigned int)word;
    return (word & GPUIO_DONE) != 0;
}

// Waits for the result of the buffer's I/O, by a thread that started it or saw by a barrier that another had.
// Several threads may wait for one.
GPUIO_DEVICE int gpuio_wait(const gpuio_ring &ring, unsigned int buffer) {
    int result = 0;
    while (!gpuio_test(ring, buffer, result)) {
        gpuio_progress(ring);
    }
    return result;
}

// The same by a warp, of which all 32 lanes call it, for each lane where `waits`. Where it does not: 0.
GPUIO_DEVICE int gpuio_wait_warp(const gpuio_ring &ring, bool waits, unsigned int buffer) {
    int result = 0;
    for (;;) {
        waits = waits && !gpuio_test(ring, buffer, result);
        if (gpuio_lanes_where(waits) == 0) {
            return result;
        }
        gpuio_progress_warp(ring);
    }
}

// The same by a block, of which all threads call it. All see the bytes then.
GPUIO_DEVICE int gpuio_wait_block(const gpuio_ring &ring, unsigned int buffer) {
    if (gpuio_is_first()) {
        gpuio_wait(ring, buffer);
    }
    gpuio_sync_block();
    int result = 0;
    gpuio_test(ring, buffer, result);
    return result;
}

// Reads into a buffer and waits: one thread.
GPUIO_DEVICE int gpuio_read(const gpuio_ring &ring, unsigned int file, unsigned long long offset, unsigned int buffer,
                            unsigned int skip, unsigned int len) {
    gpuio_start(ring, GPUIO_READ, file, offset, buffer, skip, len);
    return gpuio_wait(ring, buffer);
}

// Writes out of a buffer and waits: one thread.
GPUIO_DEVICE int gpuio_write(const gpuio_ring &ring, unsigned int file, unsigned long long offset,
                             unsigned int buffer, unsigned int skip, unsigned int len) {
    gpuio_start(ring, GPUIO_WRITE, file, offset, buffer, skip, len);
    return gpuio_wait(ring, buffer);
}

// Reads into a buffer and waits: all threads of a block, with the same arguments.
GPUIO_DEVICE int gpuio_read_block(const gpuio_ring &ring, unsigned int file, unsigned long long offset,
                                  unsigned int buffer, unsigned int skip, unsigned int len) {
    gpuio_start_block(ring, GPUIO_READ, file, offset, buffer, skip, len);
    return gpuio_wait_block(ring, buffer);
}

// Writes out of a buffer and waits: all threads of a block, with the same arguments.
GPUIO_DEVICE int gpuio_write_block(const gpuio_ring &ring, unsigned int file, unsigned long long offset,
                                   unsigned int buffer, unsigned int skip, unsigned int len) {
    gpuio_start_block(ring, GPUIO_WRITE, file, offset, buffer, skip, len);
    return gpuio_wait_block(ring, buffer);
}
