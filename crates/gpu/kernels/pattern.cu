// The data rule on the GPU: fill memory with it, check memory against it.
//
// A file is a sequence of little-endian 8-byte words. Word w stands at byte offset 8*w and is
// mix(key + w * GOLDEN), where mix is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014). The twin for the CPU is
// ../src/pattern.rs; build.sh makes pattern.ptx from this file.
//
// No CUDA header is needed under clang, so that the PTX can be made where no CUDA SDK is.

typedef unsigned long long u64;
typedef unsigned char u8;

#if defined(__clang__)
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE static inline __attribute__((device))

DEVICE u64 thread_number() {
    return (u64)__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
           __nvvm_read_ptx_sreg_tid_x();
}

DEVICE u64 thread_count() {
    return (u64)__nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
}

DEVICE void add_atomic(u64 *at, u64 by) { __nvvm_atom_add_gen_ll((long long *)at, (long long)by); }

DEVICE void min_atomic(u64 *at, u64 with) { __nvvm_atom_min_gen_ull(at, with); }
#else
#define KERNEL extern "C" __global__ void
#define DEVICE static inline __device__

DEVICE u64 thread_number() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

DEVICE u64 thread_count() { return (u64)gridDim.x * blockDim.x; }

DEVICE void add_atomic(u64 *at, u64 by) { atomicAdd(at, by); }

DEVICE void min_atomic(u64 *at, u64 with) { atomicMin(at, with); }
#endif

// Two words in one 16-byte access, the widest that every GPU since sm_20 has.
struct alignas(16) Pair {
    u64 low;
    u64 high;
};

DEVICE u64 word(u64 key, u64 w) {
    u64 z = key + w * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// The range [offset, offset + len) of the file as the threads divide it: whole 16-byte pairs where
// the address of a pair is a multiple of 16, and the words that are left at both ends, or all words
// where the address has another alignment.
struct Cut {
    u64 base;       // address of the file's byte 0 (it may wrap: only sums with it are used)
    u64 begin, end; // the bytes of the file that are here
    u64 first_pair, last_pair;
    u64 head, head_end; // words before the pairs
    u64 tail, tail_end; // words after the pairs
};

DEVICE Cut cut(u64 address, u64 len, u64 offset) {
    Cut c;
    c.base = address - offset;
    c.begin = offset;
    c.end = offset + len;
    const u64 first = c.begin >> 3;
    const u64 end = (c.end + 7) >> 3;
    c.first_pair = (c.begin + 15) >> 4;
    c.last_pair = c.end >> 4;
    if ((c.base & 15) != 0 || c.first_pair >= c.last_pair) {
        c.first_pair = c.last_pair = 0;
        c.head = first;
        c.head_end = end;
        c.tail = c.tail_end = end;
        return c;
    }
    c.head = first;
    c.head_end = c.first_pair * 2;
    c.tail = c.last_pair * 2;
    c.tail_end = end;
    return c;
}

// Writes the bytes of word w that lie in the range: one by one, unless the word is whole and
// aligned.
DEVICE void put(const Cut &c, u64 key, u64 w) {
    const u64 value = word(key, w);
    const u64 at = w * 8;
    if (at >= c.begin && at + 8 <= c.end && ((c.base + at) & 7) == 0) {
        *(u64 *)(c.base + at) = value;
        return;
    }
    for (u64 i = 0; i < 8; i++) {
        if (at + i >= c.begin && at + i < c.end) {
            *(u8 *)(c.base + at + i) = (u8)(value >> (8 * i));
        }
    }
}

// True if a byte of word w that lies in the range is not what the rule says.
DEVICE bool differs(const Cut &c, u64 key, u64 w) {
    const u64 value = word(key, w);
    const u64 at = w * 8;
    if (at >= c.begin && at + 8 <= c.end && ((c.base + at) & 7) == 0) {
        return *(const u64 *)(c.base + at) != value;
    }
    bool bad = false;
    for (u64 i = 0; i < 8; i++) {
        if (at + i >= c.begin && at + i < c.end) {
            bad |= *(const u8 *)(c.base + at + i) != (u8)(value >> (8 * i));
        }
    }
    return bad;
}

KERNEL gpuio_fill(u64 dst, u64 len, u64 key, u64 offset) {
    const Cut c = cut(dst, len, offset);
    const u64 me = thread_number();
    const u64 all = thread_count();
    for (u64 p = c.first_pair + me; p < c.last_pair; p += all) {
        Pair pair;
        pair.low = word(key, p * 2);
        pair.high = word(key, p * 2 + 1);
        *(Pair *)(c.base + p * 16) = pair;
    }
    for (u64 w = c.head + me; w < c.head_end; w += all) {
        put(c, key, w);
    }
    for (u64 w = c.tail + me; w < c.tail_end; w += all) {
        put(c, key, w);
    }
}

// report[0] += words that differ; report[1] = the least byte offset of such a word. The caller
// starts them at 0 and at the greatest u64.
KERNEL gpuio_check(u64 src, u64 len, u64 key, u64 offset, u64 report) {
    const Cut c = cut(src, len, offset);
    const u64 me = thread_number();
    const u64 all = thread_count();
    u64 bad = 0;
    u64 first = ~0ull;
    for (u64 p = c.first_pair + me; p < c.last_pair; p += all) {
        const Pair pair = *(const Pair *)(c.base + p * 16);
        const bool low = pair.low != word(key, p * 2);
        const bool high = pair.high != word(key, p * 2 + 1);
        bad += (u64)low + (u64)high;
        const u64 here = low ? p * 16 : high ? p * 16 + 8 : ~0ull;
        first = here < first ? here : first;
    }
    for (u64 w = c.head + me; w < c.head_end; w += all) {
        const bool differ = differs(c, key, w);
        bad += (u64)differ;
        first = differ && w * 8 < first ? w * 8 : first;
    }
    for (u64 w = c.tail + me; w < c.tail_end; w += all) {
        const bool differ = differs(c, key, w);
        bad += (u64)differ;
        first = differ && w * 8 < first ? w * 8 : first;
    }
    if (bad != 0) {
        add_atomic((u64 *)report, bad);
        min_atomic((u64 *)report + 1, first);
    }
}
