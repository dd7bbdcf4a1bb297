// Copies between any addresses, by the threads of a warp or a block.
#pragma once

#include "device.cuh"

// How a copy loads its source: a struct with `word` and `byte`. These are loads that see what others write
// while the kernel runs.
struct CoherentLoads {
    MEMBER Word word(u64 at) { return load(at); }
    MEMBER u32 byte(u64 at) { return load_byte(at); }
};

// The aligned words that 16 bytes of the source lie in: one, or two if the source's alignment
// differs from the destination's.
struct Raw {
    Word first;
    Word second;
};

// Two words hold 16 bytes at least one of which is in each, so nothing is read that shares no
// 16-byte word with the piece. The second word is its neighbour's first, loaded by another lane of
// the same instruction: it comes from a cache, not across the bus again.
template <typename LOADS, bool SHIFTED> DEVICE Raw raw(u64 at) {
    Raw r;
    r.first = LOADS::word(at);
    if (SHIFTED) {
        r.second = LOADS::word(at + 16);
    }
    return r;
}

// The 16 bytes from byte `shift` of `r` on.
template <bool SHIFTED> DEVICE Word joined(const Raw &r, u32 shift) {
    if (!SHIFTED) {
        return r.first;
    }
    const bool half = shift >= 8;
    const u64 a = half ? r.first.high : r.first.low;
    const u64 b = half ? r.second.low : r.first.high;
    const u64 c = half ? r.second.high : r.second.low;
    const u32 bits = (shift & 7) * 8;
    // In two steps, for a shift by 64 is not defined.
    Word word;
    word.low = (a >> bits) | ((b << 1) << (63 - bits));
    word.high = (b >> bits) | ((c << 1) << (63 - bits));
    return word;
}

// Copies `len` bytes, a multiple of 16, to `dst`, a multiple of 16, from `src`, a multiple of 16
// unless SHIFTED.
//
// A warp takes 2 KiB at a time, in four strips of 512 bytes: neighbouring threads have neighbouring
// words, and the four words of a thread lie at distances that the instructions hold, so they cost
// no registers.
template <typename LOADS, bool SHIFTED> DEVICE void copy_words(u64 dst, u64 src, u64 len, u32 thread, u32 threads) {
    const u32 shift = (u32)src & 15;
    const u64 base = src - shift;
    // Strips start at multiples of 128 bytes of the source, which is what one read request across
    // PCIe takes. Before the first word the offset is negative, that is greater than any length.
    const u64 skew = base & 127 & ~15ull;
    const u64 first = (thread & ~31u) * 64 + (thread & 31) * 16 - skew;
    for (u64 at = first; (long long)at < (long long)len; at += threads * 64) {
        Raw r[4] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (at + k * 512 < len) {
                r[k] = raw<LOADS, SHIFTED>(base + at + k * 512);
            }
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (at + k * 512 < len) {
                store(dst + at + k * 512, joined<SHIFTED>(r[k], shift));
            }
        }
    }
}

// Copies `len` bytes between any addresses: bytes until the destination is a multiple of 16, words,
// bytes. At least 32 threads are here: the first 16 have the bytes at the head, the next the bytes
// at the tail.
template <typename LOADS> DEVICE void copy(u64 dst, u64 from, u64 len, u32 thread, u32 threads) {
    const u64 to_aligned = (0 - dst) & 15;
    const u64 head = len < to_aligned ? len : to_aligned;
    const u64 words = (len - head) & ~15ull;
    const u64 tail = (len - head) & 15;
    const bool at_tail = thread >= 16;
    const u64 edge = at_tail ? len - tail + (thread - 16) : thread;
    const bool has_edge = at_tail ? thread - 16 < tail : thread < head;
    u32 byte = 0;
    if (has_edge) {
        byte = LOADS::byte(from + edge);
    }
    const u64 src = from + head;
    if ((src & 15) == 0) {
        copy_words<LOADS, false>(dst + head, src, words, thread, threads);
    } else {
        copy_words<LOADS, true>(dst + head, src, words, thread, threads);
    }
    if (has_edge) {
        store_byte(dst + edge, byte);
    }
}

// An entry of a list. With 32 bytes, not 24, none lies across two of the 32-byte sectors in which the GPU
// reads memory, and two 16-byte loads fetch it.
struct Piece {
    u64 src;
    u64 dst;
    u64 len; // in bytes
};

template <typename LOADS> DEVICE Piece piece(u64 list, u64 number) {
    const Word ends = LOADS::word(list + number * 32);
    const Word rest = LOADS::word(list + number * 32 + 16);
    Piece p;
    p.src = ends.low;
    p.dst = ends.high;
    p.len = rest.low;
    return p;
}
