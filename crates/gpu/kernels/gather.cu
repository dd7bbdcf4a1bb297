// Many pieces of memory, each from one address to another, in one launch.
//
// A copy engine takes one copy at a time and a call of the driver for each; a launch of this kernel
// takes a list. Sources and destinations may be memory of the device or pinned memory of the host,
// in any mix: with unified addresses the threads use both alike. The twin in software is softgpu's
// gather.rs; build.sh makes gather.ptx from this file.
//
// Across PCIe a load takes about a microsecond, so the rate depends on how many bytes are requested before
// the first arrives: each thread has four 16-byte loads in flight.

#include "copy.cuh"

// Loads are non-coherent (`.nc`): what is read is written by no thread of this launch, nor by
// anyone else while it runs, which is all that `.nc` asks for; caches that it may use are empty
// when a kernel starts. A kernel that waited for the host inside one launch could not use it.
// `volatile` keeps the loads in the order of the text, before the stores that wait for them.

struct NonCoherentLoads {
    MEMBER Word word(u64 at) {
        Word word;
        asm volatile("ld.global.nc.v2.u64 {%0, %1}, [%2];"
                     : "=l"(word.low), "=l"(word.high)
                     : "l"(at));
        return word;
    }
    MEMBER u32 byte(u64 at) {
        u32 byte;
        asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(byte) : "l"(at));
        return byte;
    }
};

// `list`: `count` entries of 32 bytes, {u64 src, dst, len, unused}, at a multiple of 16, in memory
// of the device or pinned memory. No destination may overlap another one or a source; order and
// time within the launch are not defined. A block of 32 to 256 threads takes a piece, then the one
// that stands as many further on as there are blocks.
// Four blocks of 256 threads on each multiprocessor: 64 KiB on their way there, with the four loads
// of each thread. It holds the compiler to 64 registers.
KERNEL BOUNDS(256, 4) gpuio_gather(u64 list, u64 count) {
    const u32 thread = thread_number();
    const u32 threads = thread_count();
    const u64 step = block_count();
    u64 at = block_number();
    Piece next;
    if (at < count) {
        next = piece<NonCoherentLoads>(list, at);
    }
    for (; at < count; at += step) {
        const Piece now = next;
        // Loaded early, so that its latency overlaps with the copy of this piece.
        if (at + step < count) {
            next = piece<NonCoherentLoads>(list, at + step);
        }
        copy<NonCoherentLoads>(now.dst, now.src, now.len, thread, threads);
    }
}
