// Work that keeps a chosen share of the GPU busy beside a load: arithmetic in registers, or a
// stream over device memory. The twins in software are softgpu's busy.rs; build.sh makes busy.ptx
// from this file, and ../src/busy.rs launches it.
//
// A launch has one block for each multiprocessor that is to be busy and a number of equal pieces of
// work, which the blocks take one after another from a counter. So a block that found no room, or
// shares its multiprocessor with somebody, leaves its pieces to the others, as in a matrix product
// whose tiles are given out as they come. The last block to leave puts the counter back.
//
// No CUDA header is needed under clang, so that the PTX can be made where no CUDA SDK is.

typedef unsigned long long u64;
typedef unsigned int u32;

// With 64 registers a block of 1024 threads has all of a multiprocessor's 65536 (compute capability
// 7.0 to 12.0): no second block fits beside it, neither of this kernel nor of another.
#define THREADS 1024

#if defined(__clang__)
#define KERNEL extern "C" __attribute__((global)) __attribute__((launch_bounds(THREADS, 1))) void
#define DEVICE static inline __attribute__((device))
#define SHARED static __attribute__((shared))

DEVICE u32 thread_number() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 multiprocessor() {
    u32 number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}
DEVICE u64 add_atomic(u64 *at, u64 by) {
    return (u64)__nvvm_atom_add_gen_ll((long long *)at, (long long)by);
}
DEVICE void or_atomic(u64 *at, u64 with) { __nvvm_atom_or_gen_ll((long long *)at, (long long)with); }
DEVICE float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS, 1)
#define DEVICE static inline __device__
#define SHARED static __shared__

DEVICE u32 thread_number() { return threadIdx.x; }
DEVICE u32 multiprocessor() {
    u32 number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}
DEVICE u64 add_atomic(u64 *at, u64 by) { return atomicAdd(at, by); }
DEVICE void or_atomic(u64 *at, u64 with) { atomicOr(at, with); }
DEVICE float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
#endif

DEVICE void meet() { asm volatile("bar.sync 0;" : : : "memory"); }

// What is known of a launch, in memory of the device that begins as zeros. The two counters have
// cache lines of their own.
struct State {
    u64 next; // the next piece
    u64 apart[15];
    u64 gone; // blocks that found no more
    u64 apart_too[15];
    u64 seen[16]; // a bit for each multiprocessor that a block was on
};

DEVICE void arrive(State *state) {
    if (thread_number() == 0) {
        u32 here = multiprocessor() & 1023;
        or_atomic(&state->seen[here >> 6], 1ull << (here & 63));
    }
}

// By then no other block is left that takes pieces.
DEVICE void leave(State *state, u64 blocks) {
    if (thread_number() == 0 && add_atomic(&state->gone, 1) == blocks - 1) {
        state->next = 0;
        state->gone = 0;
    }
}

// Calls `work(piece)` in all threads of the block for each piece that it takes. The next piece is
// asked for before the work on this one, and waits in the other of two words: one barrier for each
// piece keeps a slow thread from reading a word that is written anew.
template <typename Work> DEVICE void take_pieces(State *state, u64 pieces, Work work) {
    SHARED u64 taken[2];
    if (thread_number() == 0) taken[0] = add_atomic(&state->next, 1);
    for (u32 turn = 0;; turn ^= 1) {
        meet();
        u64 piece = taken[turn];
        if (piece >= pieces) break;
        if (thread_number() == 0) taken[turn ^ 1] = add_atomic(&state->next, 1);
        work(piece);
    }
}

// Multiply-adds of each thread that do not wait for one another, and how often they are done for a
// piece. So many accumulators need 57 to 64 registers, and make latency no matter.
#define ACCUMULATORS 52
#define TRIPS 64

// A piece is THREADS * TRIPS * ACCUMULATORS fused multiply-adds.
KERNEL gpuio_busy_compute(u64 state_at, u64 pieces, u64 blocks) {
    State *state = (State *)state_at;
    arrive(state);
    float sums[ACCUMULATORS];
#pragma unroll
    for (u32 i = 0; i < ACCUMULATORS; i++) sums[i] = (float)(thread_number() + i);
    take_pieces(state, pieces, [&sums](u64) {
#pragma unroll 1
        for (u32 trip = 0; trip < TRIPS; trip++) {
#pragma unroll
            for (u32 i = 0; i < ACCUMULATORS; i++) sums[i] = multiply_add(sums[i], 0.999f, 0.5f);
        }
    });
    leave(state, blocks);
    float all = 0.0f;
#pragma unroll
    for (u32 i = 0; i < ACCUMULATORS; i++) all += sums[i];
    // They tend to 500 each and are never below 0, which the compiler can't know: it has to do all
    // of the work.
    if (all < 0.0f) state->seen[0] = 0;
}

// 16 bytes in one access.
struct __attribute__((aligned(16))) Word {
    u64 low;
    u64 high;
};

// Words of each thread that are under way at once, and how often for a piece.
#define AT_ONCE 4
#define ROUNDS 4

// A piece is THREADS * AT_ONCE * ROUNDS words of 16 bytes, read, changed and written back. Pieces
// follow one another round the `held` pieces at `memory`; this launch begins with piece `first`.
KERNEL gpuio_busy_memory(u64 state_at, u64 pieces, u64 blocks, u64 memory, u64 held, u64 first) {
    State *state = (State *)state_at;
    arrive(state);
    take_pieces(state, pieces, [=](u64 piece) {
        const u64 len = THREADS * AT_ONCE * ROUNDS;
        Word *words = (Word *)memory + (first + piece) % held * len + thread_number();
#pragma unroll 1
        for (u32 round = 0; round < ROUNDS; round++, words += THREADS * AT_ONCE) {
            Word word[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) word[i] = words[i * THREADS];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                word[i].low += 1;
                word[i].high += 1;
                words[i * THREADS] = word[i];
            }
        }
    });
    leave(state, blocks);
}
