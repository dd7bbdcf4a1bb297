// Many pieces of memory, each from one address to another, in one launch.
//
// A copy engine takes one copy at a time and a call of the driver for each; a launch of this kernel
// takes a list. Sources and destinations may be memory of the device or pinned memory of the host,
// in any mix: with unified addresses the threads use both alike. The twin in software is softgpu's
// gather.rs; build.sh makes gather.ptx from this file.
//
// Across PCIe a load takes about a microsecond, so what counts is how many bytes are asked for
// before the first has come: each thread has four 16-byte loads under way.
//
// No CUDA header is needed under clang, so that the PTX can be made where no CUDA SDK is.

typedef unsigned long long u64;
typedef unsigned int u32;

// Four blocks of 256 threads on each multiprocessor: 64 KiB on their way there, with the four loads
// of each thread. It holds the compiler to 64 registers.
#if defined(__clang__)
#define KERNEL extern "C" __attribute__((global)) __attribute__((launch_bounds(256, 4))) void
#define DEVICE static inline __attribute__((device))

DEVICE u32 thread_number() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 thread_count() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 block_number() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 block_count() { return __nvvm_read_ptx_sreg_nctaid_x(); }
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 4)
#define DEVICE static inline __device__

DEVICE u32 thread_number() { return threadIdx.x; }
DEVICE u32 thread_count() { return blockDim.x; }
DEVICE u32 block_number() { return blockIdx.x; }
DEVICE u32 block_count() { return gridDim.x; }
#endif

// 16 bytes in one access, the widest that every GPU since sm_20 has.
struct Word {
    u64 low;
    u64 high;
};

// An entry of the list. With 32 bytes, not 24, none lies across two of the 32-byte sectors in which
// the GPU reads memory, and two 16-byte loads fetch it.
struct Piece {
    u64 src;
    u64 dst;
    u64 len; // in bytes
};

// Addresses come out of the list, so the compiler cannot know their space. They are global ones: a
// generic address outside the windows of shared and local memory is the global address (PTX ISA,
// "Generic Addressing").
//
// Loads are non-coherent (`.nc`): what is read is written by no thread of this launch, nor by
// anyone else while it runs, which is all that `.nc` asks for; caches that it may use are empty
// when a kernel starts. A kernel that waited for the host inside one launch could not use it.
// `volatile` keeps the loads in the order of the text, before the stores that wait for them.

DEVICE Word load(u64 at) {
    Word word;
    asm volatile("ld.global.nc.v2.u64 {%0, %1}, [%2];"
                 : "=l"(word.low), "=l"(word.high)
                 : "l"(at));
    return word;
}

DEVICE u32 load_byte(u64 at) {
    u32 byte;
    asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(byte) : "l"(at));
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

DEVICE Piece piece(u64 list, u64 number) {
    const Word ends = load(list + number * 32);
    const Word rest = load(list + number * 32 + 16);
    Piece p;
    p.src = ends.low;
    p.dst = ends.high;
    p.len = rest.low;
    return p;
}

// The aligned words that 16 bytes of the source lie in: one, or two if the source's alignment
// differs from the destination's.
struct Raw {
    Word first;
    Word second;
};

// Two words hold 16 bytes at least one of which is in each, so nothing is read that shares no
// 16-byte word with the piece. The second word is its neighbour's first, loaded by another lane of
// the same instruction: it comes from a cache, not across the bus again.
template <bool SHIFTED> DEVICE Raw raw(u64 at) {
    Raw r;
    r.first = load(at);
    if (SHIFTED) {
        r.second = load(at + 16);
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
template <bool SHIFTED> DEVICE void copy_words(u64 dst, u64 src, u64 len, u32 me, u32 all) {
    const u32 shift = (u32)src & 15;
    const u64 base = src - shift;
    // Strips start at multiples of 128 bytes of the source, which is what one read request across
    // PCIe takes. Before the first word the offset is negative, that is greater than any length.
    const u64 skew = base & 127 & ~15ull;
    const u64 first = (me & ~31u) * 64 + (me & 31) * 16 - skew;
    for (u64 at = first; (long long)at < (long long)len; at += all * 64) {
        Raw r[4] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (at + k * 512 < len) {
                r[k] = raw<SHIFTED>(base + at + k * 512);
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

// Copies one piece: bytes until the destination is a multiple of 16, words, bytes. At least 32
// threads are here: the first 16 have the bytes at the head, the next the bytes at the tail.
DEVICE void copy(const Piece &p, u32 me, u32 all) {
    const u64 to_aligned = (0 - p.dst) & 15;
    const u64 head = p.len < to_aligned ? p.len : to_aligned;
    const u64 words = (p.len - head) & ~15ull;
    const u64 tail = (p.len - head) & 15;
    const bool at_tail = me >= 16;
    const u64 edge = at_tail ? p.len - tail + (me - 16) : me;
    const bool has_edge = at_tail ? me - 16 < tail : me < head;
    u32 byte = 0;
    if (has_edge) {
        byte = load_byte(p.src + edge);
    }
    const u64 src = p.src + head;
    if ((src & 15) == 0) {
        copy_words<false>(p.dst + head, src, words, me, all);
    } else {
        copy_words<true>(p.dst + head, src, words, me, all);
    }
    if (has_edge) {
        store_byte(p.dst + edge, byte);
    }
}

// `list`: `count` entries of 32 bytes, {u64 src, dst, len, unused}, at a multiple of 16, in memory
// of the device or pinned memory. No destination may overlap another one or a source; order and
// time within the launch are not defined. A block of 32 to 256 threads takes a piece, then the one
// that stands as many further on as there are blocks.
KERNEL gpuio_gather(u64 list, u64 count) {
    const u32 me = thread_number();
    const u32 all = thread_count();
    const u64 step = block_count();
    u64 at = block_number();
    Piece next;
    if (at < count) {
        next = piece(list, at);
    }
    for (; at < count; at += step) {
        const Piece now = next;
        // Asked for early, so that its way here is the way of this piece's bytes too.
        if (at + step < count) {
            next = piece(list, at + step);
        }
        copy(now, me, all);
    }
}
