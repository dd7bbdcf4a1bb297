// The resident kernel of `bench`: copies one block after another, without a driver call for each.
//
// A launch or a driver's copy takes some microseconds before the first byte moves. This kernel is launched
// once and then polls commands in pinned memory: a small block needs three crossings of PCIe (the poll that
// sees the command, the bytes, the completion).
//
// A kernel that stays would block whoever waits for the whole device, a free of memory among them, and a GPU
// that drives a display ends it after some seconds. So it exits when no command came for a while, and when
// its lifetime is over; the host launches it again. softgpu/src/kernel/resident.rs does the same in software.
// build.sh makes resident.ptx from this file.

#include "device.cuh"

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
DEVICE void copy(u64 dst, u64 src, u64 len, u64 thread, u64 threads) {
    const u64 words = len & ~15ull;
    for (u64 at = thread * 16; at < words; at += threads * 64) {
        Word word[4] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (at + k * threads * 16 < words) {
                word[k] = load(src + at + k * threads * 16);
            }
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (at + k * threads * 16 < words) {
                store(dst + at + k * threads * 16, word[k]);
            }
        }
    }
    if (thread < len - words) {
        copy_byte(dst + words + thread, src + words + thread);
    }
}

// A command is one word, so that it is there as a whole or not at all: bits 0 to 31 the length in bytes, 32
// to 46 the slot, 47 the direction (1: from the device to the host), 48 to 63 the low bits of the command's
// number. Length 0 ends the kernel.
//
// `commands`: mask + 1 words, a power of two of at most 32768; command n is word n & mask. `completions`: two
// words in pinned memory at least 128 bytes apart; the number of the last completed command goes to the
// first, and `launch` to the second as the kernel's last access. `host`, `device`: slot 0 on either side,
// multiples of 16, slots `stride` bytes apart, a multiple of 16. `first`: the number of the first command.
// `idle`, `lifetime`: the kernel exits after so many nanoseconds without a command, and altogether.
//
// One block of 32 to 256 threads.
KERNEL BOUNDS(256, 1) gpuio_resident(u64 commands, u64 mask, u64 completions, u64 host, u64 device, u64 stride,
                      u64 first, u64 launch, u64 idle, u64 lifetime) {
    SHARED u64 shared_command;
    const u64 thread = thread_number();
    const u64 threads = thread_count();
    const u64 began = clock_ns();
    for (u64 number = first;; number++) {
        if (thread == 0) {
            const u64 at = commands + (number & mask) * 8;
            const u64 mark = number & 0xffff;
            u64 command = acquire(at);
            u64 since = 0;
            // Checked now and then also while commands never pause.
            if ((number & 63) == 0 && clock_ns() - began > lifetime) {
                // A command of length 0 ends the kernel for all threads.
                command = mark << 48;
            }
            while (command >> 48 != mark) {
                const u64 now = clock_ns();
                since = since == 0 ? now : since;
                if (now - since > idle || now - began > lifetime) {
                    command = 0;
                    break;
                }
                command = acquire(at);
            }
            shared_command = command;
        }
        sync_block();
        const u64 command = shared_command;
        const u64 len = command & 0xffffffff;
        if (len == 0) {
            // From here on no thread accesses host or device memory.
            if (thread == 0) {
                release(completions + 128, launch);
            }
            return;
        }
        const u64 offset = (command >> 32 & 0x7fff) * stride;
        const bool out = (command >> 47 & 1) != 0;
        copy(out ? host + offset : device + offset, out ? device + offset : host + offset, len, thread,
             threads);
        sync_block();
        if (thread == 0) {
            release(completions, number);
        }
    }
}
