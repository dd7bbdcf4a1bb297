// Blocks of memory, one after another, for as long as the host has some: a kernel that stays.
//
// A launch or a copy by the driver costs some microseconds before the first byte moves. This kernel
// is launched once and then polls a mailbox in pinned memory: a small block is across after three
// crossings of PCIe (the poll that sees the letter, the bytes, the answer). The twin in software is
// softgpu's resident.rs; build.sh makes resident.ptx from this file.
//
// A kernel that stays would hold up whoever waits for the whole device, a free of memory among
// them, and a GPU that drives a display ends it after some seconds. So it goes by itself, when no
// letter has come for a while and when it has been there for long; the host launches it anew.
//
// No CUDA header is needed under clang, so that the PTX can be made where no CUDA SDK is.

typedef unsigned long long u64;
typedef unsigned int u32;

#if defined(__clang__)
#define KERNEL extern "C" __attribute__((global)) __attribute__((launch_bounds(256, 1))) void
#define DEVICE static inline __attribute__((device))
#define SHARED static __attribute__((shared))

DEVICE u32 thread_number() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 thread_count() { return __nvvm_read_ptx_sreg_ntid_x(); }
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 1)
#define DEVICE static inline __device__
#define SHARED __shared__

DEVICE u32 thread_number() { return threadIdx.x; }
DEVICE u32 thread_count() { return blockDim.x; }
#endif

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

// All threads of the block come here before one goes on; orders their accesses to memory.
DEVICE void meet() { asm volatile("bar.sync 0;" : : : "memory"); }

DEVICE u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
    return now;
}

// Not `.nc`, unlike the loads of gather.cu: the host writes these bytes while the kernel runs.
DEVICE Word load(u64 at) {
    Word word;
    asm volatile("ld.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(word.low), "=l"(word.high)
                 : "l"(at)
                 : "memory");
    return word;
}

DEVICE void store(u64 at, Word word) {
    asm volatile("st.global.v2.u64 [%0], {%1, %2};"
                 :
                 : "l"(at), "l"(word.low), "l"(word.high)
                 : "memory");
}

DEVICE void copy_byte(u64 dst, u64 src) {
    asm volatile("{\n\t"
                 ".reg .u32 byte;\n\t"
                 "ld.global.u8 byte, [%1];\n\t"
                 "st.global.u8 [%0], byte;\n\t"
                 "}"
                 :
                 : "l"(dst), "l"(src)
                 : "memory");
}

// Copies `len` bytes between addresses that are multiples of 16: four loads of 16 bytes in each
// thread before the first store, then the bytes of the last word.
DEVICE void copy(u64 dst, u64 src, u64 len, u64 me, u64 all) {
    const u64 words = len & ~15ull;
    for (u64 at = me * 16; at < words; at += all * 64) {
        Word word[4] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (at + k * all * 16 < words) {
                word[k] = load(src + at + k * all * 16);
            }
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (at + k * all * 16 < words) {
                store(dst + at + k * all * 16, word[k]);
            }
        }
    }
    if (me < len - words) {
        copy_byte(dst + words + me, src + words + me);
    }
}

// A letter is one word, so that it is there as a whole or not at all: bits 0 to 31 the length in
// bytes, 32 to 46 the slot, 47 the direction (1: from the device to the host), 48 to 63 the low
// bits of the letter's number. Length 0 ends the kernel.
//
// `letters`: mask + 1 words, a power of two of at most 32768; letter n lies in word n & mask.
// `answers`: two words in pinned memory at least 128 bytes apart; the number of the last letter
// that was worked off goes to the first, and `launch` to the second as the kernel's last access.
// `host`, `device`: where slot 0 lies on either side, multiples of 16, slots `stride` bytes apart,
// a multiple of 16. `first`: the number of the letter to begin with. `idle`, `stay`: nanoseconds
// without a letter, and altogether, after which it goes.
//
// One block of 32 to 256 threads.
KERNEL gpuio_resident(u64 letters, u64 mask, u64 answers, u64 host, u64 device, u64 stride,
                      u64 first, u64 launch, u64 idle, u64 stay) {
    SHARED u64 shared_letter;
    const u64 me = thread_number();
    const u64 all = thread_count();
    const u64 began = nanoseconds();
    for (u64 number = first;; number++) {
        if (me == 0) {
            const u64 at = letters + (number & mask) * 8;
            const u64 mark = number & 0xffff;
            u64 letter = acquire(at);
            u64 since = 0;
            // Also where a letter always waits: once in a while is often enough.
            if ((number & 63) == 0 && nanoseconds() - began > stay) {
                // A letter of length 0 ends the kernel for all threads.
                letter = mark << 48;
            }
            while (letter >> 48 != mark) {
                const u64 now = nanoseconds();
                since = since == 0 ? now : since;
                if (now - since > idle || now - began > stay) {
                    letter = 0;
                    break;
                }
                letter = acquire(at);
            }
            shared_letter = letter;
        }
        meet();
        const u64 letter = shared_letter;
        const u64 len = letter & 0xffffffff;
        if (len == 0) {
            // No thread touches the host's memory or the device's from here on.
            if (me == 0) {
                release(answers + 128, launch);
            }
            return;
        }
        const u64 offset = (letter >> 32 & 0x7fff) * stride;
        const bool out = (letter >> 47 & 1) != 0;
        copy(out ? host + offset : device + offset, out ? device + offset : host + offset, len, me,
             all);
        meet();
        if (me == 0) {
            release(answers, number);
        }
    }
}
