// Errands: blocks of memory that many threads of the host have moved, each between addresses of its
// own, by a kernel that stays for a while.
//
// As with resident.cu the host writes a letter in pinned memory, and the device answers there, with
// no call of the driver in between. Here each thread block has up to eight desks of its own with one
// letter at a time each, and the letter names both addresses. All blocks leave together: when none had
// a letter for a while, when the launch is old, so that whoever waits for the whole device waits no
// longer than that, when the host says so, and when other kernels fill the device. The host launches
// it anew, in another stream, shortly before a launch is old: the new blocks wait until the old ones
// have left their desks. The twin in software is softgpu's errand.rs; build.sh makes errand.ptx from
// this file.
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

// Two words, in one access.
DEVICE Word acquire_two(u64 at) {
    Word word;
    asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(word.low), "=l"(word.high)
                 : "l"(at)
                 : "memory");
    return word;
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

// The same with an order for the threads of this device: what was stored before the release is seen
// after the acquire.
DEVICE u64 acquire_here(u64 at) {
    u64 value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

DEVICE void release_here(u64 at, u64 value) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

DEVICE void add_one(u64 at) {
    asm volatile("red.release.gpu.global.add.u64 [%0], %1;" : : "l"(at), "l"(1ull) : "memory");
}

DEVICE void raise(u64 at, u64 value) {
    asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
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

// A bit for each thread of the warp for which it holds; all of them ask.
DEVICE u32 who_say(bool holds) {
    u32 answer;
    asm volatile("{\n\t"
                 ".reg .pred mine;\n\t"
                 "setp.ne.u32 mine, %1, 0;\n\t"
                 "vote.sync.ballot.b32 %0, mine, 0xffffffff;\n\t"
                 "}"
                 : "=r"(answer)
                 : "r"((u32)holds)
                 : "memory");
    return answer;
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
    // Where the answer goes, and which it is.
    u64 desk;
    u64 number;
    u64 leaves;
};

// What the threads of the first warp keep: not in registers, for those are what limits how many blocks
// fit beside others.
struct Own {
    // The number of the letter that each one waits for.
    u64 number[32];
    // Where it looks: at the words of its desk, one each.
    u64 desk[32];
    // When the launch began here.
    u64 began;
    // Words of this launch's stream.
    u64 ends;
    u64 came;
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

// Where the words of a desk lie, in bytes from its beginning. The host writes the letter and behind it
// the number of a launch, on a cache line of their own, and the device the rest: launches up to that
// number leave. It stands at each desk, for blocks that read the same line of the host's memory wait
// for each other.
enum : u64 {
    DESK = 256,
    // The number of the last letter that was worked off.
    ANSWER = 128,
    // The last launch that has left the desk, times four, and why: see below. The block's last access
    // to memory of the host.
    GONE = 136,
    // The last launch that has come to the desk, times two; the lowest bit tells that it leaves soon,
    // and that every block of it is on the device.
    HERE = 144,
};

// Why a launch leaves: no letter came, it is old, other kernels fill the device, the host says so.
enum : u64 { IDLE = 0, OLD = 1, CROWDED = 2, TOLD = 3 };

// Words in the device's memory, in bytes from `shared` on. Two launches may be there at once, in two
// streams, and each stream has words of its own.
enum : u64 {
    // When the last letter of any desk came.
    LAST = 0,
    // The last launch of a stream that ends, times four, and why.
    ENDS = 16,
    // How many blocks came, and when the last one did that only tells that there is room for it: two
    // words for each stream.
    ARRIVED = 32,
    // For each desk the last launch that has left it.
    LEFT = 64,
    // Bytes from ARRIVED on to the time.
    TIME = 8,
};

// A block that had no letter for so long looks for one less often, and so takes less of the bus from
// others: nanoseconds.
enum : u64 { QUIET = 20000, PAUSE = 500 };

// On a device with nothing else to do all blocks of a launch begin within 0.1 microseconds, beside
// kernels that fill it the last one begins when one of their blocks ends, many microseconds later
// (measured on an H100). The clock of some devices has steps of a microsecond, and instructions that
// have left the caches take about as long to fetch, so less than SPREAD tells nothing. All must have
// told of it after JUDGED. Nanoseconds.
enum : u64 { SPREAD = 3000, JUDGED = 20000 };

// Whether it is known now if there was room for all blocks of a launch that began then.
DEVICE bool is_judged(u64 came, u64 arrived, u64 began, bool &crowded) {
    const bool all_came = acquire_here(came) >= arrived;
    // Clocks of multiprocessors may differ a little: as signed numbers.
    crowded = all_came ? (long long)(look(came + TIME) - began) > (long long)SPREAD
                       : nanoseconds() - began > JUDGED;
    return all_came || crowded;
}

// `desks`: 64 of 256 bytes, of which the first `count` are served, in pinned memory, at a multiple of
// 256. A letter is three words: source, destination and length, each of 48
// bits, and above them the low 16 bits of its number, so that the words may come one by one. A length
// of 0 moves nothing. With the highest bit of the length, the rest of it counts the entries of a list
// at the source, 32 bytes each, {u64 src, dst, len, unused}, at a multiple of 16 in memory as that of
// the letter. The first letter that is looked for at a desk is the one after its last answer.
//
// `shared`: 64 + 64 * 8 bytes of the device's memory, all zero before the first launch.
//
// `blocks`: the first so many blocks have desks, that of their own number and each `blocks` further
// on, eight at most. The others tell when they came, and leave; `arrived` is how many blocks have come
// in this stream when all of this launch have. Only then may the next launch be made in the other
// stream, whose blocks wait for these: one that waited for room behind them would never come. `half`: which of the two streams it is, 0 or 1.
//
// `launch`: the number of this launch, 1 or more. The one before it may be on the device still, and
// has the first `before` desks. `idle`, `stay`: nanoseconds without a letter at any desk, and
// altogether, after which all blocks leave; `lead` before the end of `stay` the host is told.
//
// Each block has 32 to 256 threads, a multiple of 32.
KERNEL gpuio_errand(u64 desks, u64 shared, u64 count, u64 blocks, u64 arrived, u64 half, u64 before,
                    u64 launch, u64 idle, u64 stay, u64 lead) {
    SHARED Order order;
    SHARED Own own;
    const u32 me = thread_number();
    const u32 all = thread_count();
    if (block_number() >= blocks) {
        if (me == 0) {
            const u64 came = shared + ARRIVED + half * 16;
            raise(came + TIME, nanoseconds());
            add_one(came);
        }
        return;
    }
    // Of the first warp two threads look at a desk, at two words each: those of a letter, and the
    // host's own.
    const u32 part = me & 1;
    const bool has = me < 16 && block_number() + (me / 2) * blocks < count;
    // When the clock was read last, in nanoseconds since the begin: not between a letter and its
    // answer, which somebody waits for.
    u32 now = 0;
    // Of the first thread: the host knows that this launch leaves soon. Of that of the first block:
    // whether it was seen if there is room for all blocks.
    bool announced = false;
    bool judged = block_number() != 0;
    bool crowded = false;
    if (me < 32) {
        const u64 mine = block_number() + (me / 2) * blocks;
        own.desk[me] = desks + mine * DESK + part * 16;
        if (me == 0) {
            own.began = nanoseconds();
            own.ends = shared + ENDS + half * 8;
            own.came = shared + ARRIVED + half * 16;
            add_one(own.came);
        }
        warp_meets();
        for (;;) {
            if (!judged) {
                judged = is_judged(own.came, arrived, own.began, crowded);
            }
            const bool first = has && part == 0 && mine < before;
            const bool waits = first && acquire_here(shared + LEFT + mine * 8) + 1 < launch;
            if (all_say(!waits)) {
                break;
            }
        }
        if (has && part == 0) {
            release(own.desk[me] + HERE, launch << 1);
        }
        warp_meets();
        // The host takes a letter back by the same steps the other way round: it changes the letter,
        // then looks whether a block is here. One of the two sees the other.
        fence();
        if (has) {
            own.number[me] = acquire(own.desk[me] - part * 16 + ANSWER) + 1;
        }
    }
    // Which of the block's desks had the last letter.
    u32 turn = 0;
    for (;;) {
        if (me < 32) {
            u32 since = 0;
            for (;;) {
                // In one access, and by no more threads than needed: more take longer.
                Word words = {};
                if (has) {
                    words = acquire_two(own.desk[me]);
                }
                const u64 mark = own.number[me] & 0xffff;
                const bool fits = words.low >> 48 == mark && (part == 1 || words.high >> 48 == mark);
                u32 ready = who_say(has && fits);
                ready &= ready >> 1;
                ready &= 0x5555;
                if (ready == 0) {
                    now = (u32)(nanoseconds() - own.began);
                    since = since == 0 ? now : since;
                }
                const bool told = !all_say(part != 1 || words.high < launch);
                u64 leaves = 0;
                bool soon = false;
                if (me == 0) {
                    if (!judged) {
                        judged = is_judged(own.came, arrived, own.began, crowded);
                    }
                    if (told) {
                        leaves = launch << 2 | TOLD;
                    } else if (crowded) {
                        leaves = launch << 2 | CROWDED;
                    } else if (now > stay) {
                        leaves = launch << 2 | OLD;
                    } else {
                        soon = !announced && now + lead > stay && look(own.came) >= arrived;
                        announced |= soon;
                        if (ready == 0) {
                            const u64 said = look(own.ends);
                            leaves = said >> 2 == launch ? said : 0;
                            if (leaves == 0 && now - since > idle) {
                                // Clocks of multiprocessors may differ a little: as a signed number.
                                const u64 last = look(shared + LAST) - own.began;
                                leaves = (long long)(now - last) > (long long)idle ? launch << 2 | IDLE : 0;
                            }
                        }
                    }
                }
                if (!all_say(leaves == 0)) {
                    if (me == 0) {
                        leave_word(own.ends, leaves);
                        order.leaves = leaves;
                    }
                    break;
                }
                if (!all_say(!soon) && has && part == 0) {
                    release(own.desk[me] + HERE, launch << 1 | 1);
                }
                if (ready != 0) {
                    // The next one behind the last that had a letter.
                    const u32 behind = ready & ~((2u << (turn * 2)) - 1);
                    const u32 first = behind != 0 ? behind : ready;
                    turn = (31 - __builtin_clz(first & (0 - first))) / 2;
                    if (me / 2 == turn) {
                        if (part == 0) {
                            order.src = words.low & 0xffffffffffffull;
                            order.dst = words.high & 0xffffffffffffull;
                            order.leaves = 0;
                            order.desk = own.desk[me];
                            order.number = own.number[me];
                        } else {
                            order.len = words.low & 0xffffffffffffull;
                        }
                        own.number[me]++;
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
            // No thread touches the host's memory from here on, but for these words.
            if (has && part == 0) {
                release(own.desk[me] + GONE, leaves);
                release_here(shared + LEFT + (block_number() + (me / 2) * blocks) * 8, launch);
            }
            return;
        }
        carry(order, me, all);
        meet();
        if (me == 0) {
            release(order.desk + ANSWER, order.number);
            const u64 answered = nanoseconds();
            now = (u32)(answered - own.began);
            leave_word(shared + LAST, answered);
        }
    }
}
