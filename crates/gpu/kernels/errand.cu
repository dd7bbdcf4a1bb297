// Errands: blocks of memory that many threads of the host have moved, each between addresses of its
// own, by a kernel that stays for a while.
//
// As with resident.cu the host writes a letter in pinned memory, and the device answers there, with
// no call of the driver in between. Here each thread block has a desk of its own with one letter at
// a time, and the letter names both addresses. All blocks leave together: when none had a letter for
// a while, or when the launch is old, so that whoever waits for the whole device waits no longer
// than that. The host launches it anew. The twin in software is softgpu's errand.rs; build.sh makes
// errand.ptx from this file.
//
// No CUDA header is needed under clang, so that the PTX can be made where no CUDA SDK is.

typedef unsigned long long u64;
typedef unsigned int u32;

#if defined(__clang__)
#define KERNEL extern "C" __attribute__((global)) __attribute__((launch_bounds(256, 3))) void
#define DEVICE static inline __attribute__((device))
#define SHARED static __attribute__((shared))

DEVICE u32 thread_number() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 thread_count() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 block_number() { return __nvvm_read_ptx_sreg_ctaid_x(); }
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 3)
#define DEVICE static inline __device__
#define SHARED __shared__

DEVICE u32 thread_number() { return threadIdx.x; }
DEVICE u32 thread_count() { return blockDim.x; }
DEVICE u32 block_number() { return blockIdx.x; }
#endif

// 16 bytes in one access, the widest that every GPU since sm_20 has.
struct Word {
    u64 low;
    u64 high;
};

// Letters and answers cross between host and device while the kernel runs. An acquire at system
// scope on what the host released makes the host's earlier stores visible, a release the device's
// stores to the host and to kernels that are launched after the host has seen it (PTX ISA, "Memory
// Consistency Model"; sm_70 and later).

DEVICE u64 acquire(u64 at) {
    u64 value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

DEVICE void release(u64 at, u64 value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

// Words that the blocks of a launch share: each by itself, with no order among them.
DEVICE u64 look(u64 at) {
    u64 value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

DEVICE void leave_word(u64 at, u64 value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

// What comes before is seen by everybody before what comes after is done.
DEVICE void fence() { asm volatile("fence.sc.sys;" : : : "memory"); }

// All threads of the block come here before one goes on; orders their accesses to memory.
DEVICE void meet() { asm volatile("bar.sync 0;" : : : "memory"); }

// The same for the threads of a warp.
DEVICE void warp_meets() { asm volatile("bar.warp.sync 0xffffffff;" : : : "memory"); }

// Whether it holds for all threads of the warp; all of them ask.
DEVICE bool all_say(bool holds) {
    u32 answer;
    asm volatile("{\n\t"
                 ".reg .pred mine, all;\n\t"
                 "setp.ne.u32 mine, %1, 0;\n\t"
                 "vote.sync.all.pred all, mine, 0xffffffff;\n\t"
                 "selp.u32 %0, 1, 0, all;\n\t"
                 "}"
                 : "=r"(answer)
                 : "r"((u32)holds)
                 : "memory");
    return answer != 0;
}

DEVICE u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
    return now;
}

DEVICE void doze(u32 nanoseconds) {
    asm volatile("nanosleep.u32 %0;" : : "r"(nanoseconds) : "memory");
}

// Addresses come out of the letter, so the compiler cannot know their space. They are global ones: a
// generic address outside the windows of shared and local memory is the global address (PTX ISA,
// "Generic Addressing").
//
// Not `.nc`, unlike the loads of gather.cu: others write these bytes while the kernel runs.

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

// Copies `len` bytes between any addresses: bytes until the destination is a multiple of 16, words,
// bytes. At least 32 threads are here: the first 16 have the bytes at the head, the next the bytes
// at the tail.
DEVICE void copy(u64 dst, u64 from, u64 len, u32 me, u32 all) {
    const u64 to_aligned = (0 - dst) & 15;
    const u64 head = len < to_aligned ? len : to_aligned;
    const u64 words = (len - head) & ~15ull;
    const u64 tail = (len - head) & 15;
    const bool at_tail = me >= 16;
    const u64 edge = at_tail ? len - tail + (me - 16) : me;
    const bool has_edge = at_tail ? me - 16 < tail : me < head;
    u32 byte = 0;
    if (has_edge) {
        byte = load_byte(from + edge);
    }
    const u64 src = from + head;
    if ((src & 15) == 0) {
        copy_words<false>(dst + head, src, words, me, all);
    } else {
        copy_words<true>(dst + head, src, words, me, all);
    }
    if (has_edge) {
        store_byte(dst + edge, byte);
    }
}

// An entry of a list: 32 bytes, the last eight of which are not read.
struct Piece {
    u64 src;
    u64 dst;
    u64 len;
};

DEVICE Piece piece(u64 list, u64 at) {
    const Word first = load(list + at * 32);
    const Word second = load(list + at * 32 + 16);
    Piece p;
    p.src = first.low;
    p.dst = first.high;
    p.len = second.low;
    return p;
}

// In a letter's length: it counts the entries of a list.
enum : u64 { LISTED = 1ull << 47 };

// What warp 0 tells the other threads.
struct Order {
    u64 src;
    u64 dst;
    u64 len;
    u64 leaves;
};

// Moves what a letter asks for: a block by all threads, or the pieces of a list. Of these each warp
// takes one, then the one that stands as many further on as there are warps: a piece of 4 KiB is two
// rounds of a warp, and not all of one for the block. More strips at a time would take more registers
// from whatever else runs on the device, and so would a loop of its own.
DEVICE void carry(const Order &order, u32 me, u32 all) {
    const bool listed = (order.len & LISTED) != 0;
    const u64 count = listed ? order.len & ~LISTED : 1;
    const u32 step = listed ? all / 32 : 1;
    const u32 who = listed ? me & 31 : me;
    const u32 of = listed ? 32 : all;
    u64 at = listed ? me / 32 : 0;
    Piece next = {order.src, order.dst, order.len};
    if (listed && at < count) {
        next = piece(order.src, at);
    }
    for (; at < count; at += step) {
        const Piece now = next;
        // Asked for early, so that its way here is the way of this piece's bytes too.
        if (at + step < count) {
            next = piece(order.src, at + step);
        }
        copy(now.dst, now.src, now.len, who, of);
    }
}

// Where the words of a desk lie, in bytes from its beginning. The host writes the letter, on a cache
// line of its own, and the device the rest.
enum : u64 {
    DESK = 256,
    // The number of the last letter that was worked off.
    ANSWER = 128,
    // The last launch that this block has left, times two; the lowest bit tells that it left because
    // the launch was old. The block's last access.
    GONE = 136,
    // The last launch that this block has entered.
    HERE = 144,
};

// A block that had no letter for so long looks for one less often, and so takes less of the bus from
// others: nanoseconds.
enum : u64 { QUIET = 20000, PAUSE = 500 };

// `desks`: one of 256 bytes for each block, in pinned memory, at a multiple of 256. A letter is three
// words: source, destination and length, each of 48 bits, and above them the low 16 bits of its
// number, so that the words may come one by one. A length of 0 moves nothing. With the highest bit of
// the length, the rest of it counts the entries of a list at the source, 32 bytes each, {u64 src, dst,
// len, unused}, at a multiple of 16 in memory as that of the letter. The first letter that a block
// looks for is the one after its last answer.
//
// `shared`: two words in the device's memory, all zero before the first launch. The first tells that
// a launch ends (as GONE has it), the second when the last letter of any desk came.
//
// `count`: the number of blocks. `launch`: the number of this launch, 1 or more. `idle`, `stay`:
// nanoseconds without a letter at any desk, and altogether, after which all blocks leave.
//
// Each block has 32 to 256 threads, a multiple of 32.
KERNEL gpuio_errand(u64 desks, u64 shared, u64 count, u64 launch, u64 idle, u64 stay) {
    SHARED Order order;
    const u32 me = thread_number();
    const u32 all = thread_count();
    if (block_number() >= count) {
        return;
    }
    const u64 desk = desks + block_number() * DESK;
    const u64 began = nanoseconds();
    // When the clock was read last: not between a letter and its answer, which somebody waits for.
    u64 now = began;
    u64 number = 0;
    if (me < 32) {
        if (me == 0) {
            release(desk + HERE, launch);
        }
        warp_meets();
        // The host takes a letter back by the same steps the other way round: it changes the letter,
        // then looks whether a block is here. One of the two sees the other.
        fence();
        number = acquire(desk + ANSWER) + 1;
    }
    for (;; number++) {
        if (me < 32) {
            const u64 mark = number & 0xffff;
            u64 since = 0;
            for (;;) {
                // Three threads read a word each, in one access.
                const u64 word = me < 3 ? acquire(desk + me * 8) : mark << 48;
                const bool is_here = all_say(word >> 48 == mark);
                if (!is_here) {
                    now = nanoseconds();
                    since = since == 0 ? now : since;
                }
                u64 leaves = 0;
                if (me == 0) {
                    if (now - began > stay) {
                        leaves = launch << 1 | 1;
                    } else if (!is_here) {
                        const u64 told = look(shared);
                        leaves = told >> 1 == launch ? told : 0;
                        if (leaves == 0 && now - since > idle) {
                            // Clocks of multiprocessors may differ a little: as a signed number.
                            const long long quiet = (long long)(now - look(shared + 8));
                            leaves = quiet > (long long)idle ? launch << 1 : 0;
                        }
                    }
                }
                if (!all_say(leaves == 0)) {
                    if (me == 0) {
                        leave_word(shared, leaves);
                        order.leaves = leaves;
                    }
                    break;
                }
                if (is_here) {
                    const u64 value = word & 0xffffffffffffull;
                    if (me == 0) {
                        order.src = value;
                        order.leaves = 0;
                    } else if (me == 1) {
                        order.dst = value;
                    } else if (me == 2) {
                        order.len = value;
                    }
                    break;
                }
                if (now - since > QUIET) {
                    doze(PAUSE);
                }
            }
        }
        meet();
        const u64 leaves = order.leaves;
        if (leaves != 0) {
            // No thread touches the host's memory or the device's from here on.
            if (me == 0) {
                release(desk + GONE, leaves);
            }
            return;
        }
        carry(order, me, all);
        meet();
        if (me == 0) {
            release(desk + ANSWER, number);
            now = nanoseconds();
            leave_word(shared + 8, now);
        }
    }
}
