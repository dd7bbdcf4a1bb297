// The kernels of `bench --beside`: they keep a chosen share of the GPU busy, by arithmetic in registers or a
// stream over device memory. softgpu/src/kernel/busy.rs does the same in software. build.sh makes busy.ptx
// from this file, and ../src/busy.rs launches it.
//
// A launch has one block for each multiprocessor that is to be busy, and a number of equal pieces of work,
// which the blocks take one after another from a counter. So a block that found no room, or shares its
// multiprocessor, leaves its pieces to the others, as in a matrix product whose tiles are given out
// dynamically. The last block resets the counter.

#include "device.cuh"

// With 64 registers a block of 1024 threads has all of a multiprocessor's 65536 (compute capability
// 7.0 to 12.0): no second block fits beside it, neither of this kernel nor of another.
#define THREADS 1024

DEVICE u32 multiprocessor() {
    u32 number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

// The state of a launch, in device memory that begins as zeros. The two counters have cache lines of their
// own.
struct State {
    u64 next; // the next piece
    u64 apart[15];
    u64 ended; // blocks that found no more pieces
    u64 apart_too[15];
    u64 seen[16]; // a bit for each multiprocessor that a block was on
};

DEVICE void begin(State *state) {
    if (thread_number() == 0) {
        u32 number = multiprocessor() & 1023;
        atomic_or(&state->seen[number >> 6], 1ull << (number & 63));
    }
}

// The last block resets the counters: no other block takes pieces any more.
DEVICE void end(State *state, u64 blocks) {
    if (thread_number() == 0 && atomic_add(&state->ended, 1) == blocks - 1) {
        state->next = 0;
        state->ended = 0;
    }
}

// Calls `work(piece)` in all threads of the block for each piece that it takes. The next piece is fetched
// before the work on this one, into the other of two words: so one barrier for each piece keeps a slow
// thread from reading a word that is overwritten.
template <typename Work> DEVICE void take_pieces(State *state, u64 pieces, Work work) {
    SHARED u64 taken[2];
    if (thread_number() == 0) taken[0] = atomic_add(&state->next, 1);
    for (u32 current = 0;; current ^= 1) {
        sync_block();
        u64 piece = taken[current];
        if (piece >= pieces) break;
        if (thread_number() == 0) taken[current ^ 1] = atomic_add(&state->next, 1);
        work(piece);
    }
}

// Multiply-adds of each thread that do not wait for one another, and how often they are done for a
// piece. So many accumulators need 57 to 64 registers, and make latency no matter.
#define ACCUMULATORS 52
#define TRIPS 64

// A piece is THREADS * TRIPS * ACCUMULATORS fused multiply-adds.
KERNEL BOUNDS(THREADS, 1) gpuio_busy_compute(u64 state_at, u64 pieces, u64 blocks) {
    State *state = (State *)state_at;
    begin(state);
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
    end(state, blocks);
    float all = 0.0f;
#pragma unroll
    for (u32 i = 0; i < ACCUMULATORS; i++) all += sums[i];
    // They tend to 500 each and are never below 0, which the compiler can't know: it has to do all
    // of the work.
    if (all < 0.0f) state->seen[0] = 0;
}

// Words of each thread that are under way at once, and how often for a piece.
#define AT_ONCE 4
#define ROUNDS 4

// A piece is THREADS * AT_ONCE * ROUNDS words of 16 bytes, read, changed and written back. Pieces
// follow one another round the `held` pieces at `memory`; this launch begins with piece `first`.
KERNEL BOUNDS(THREADS, 1) gpuio_busy_memory(u64 state_at, u64 pieces, u64 blocks, u64 memory, u64 held, u64 first) {
    State *state = (State *)state_at;
    begin(state);
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
    end(state, blocks);
}
