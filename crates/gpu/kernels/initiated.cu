// The kernel of path `initiated` of `bench`: it starts the I/O of files by itself.
//
// The host names blocks in commands, in page-locked memory. The kernel writes an entry into an io_uring ring for
// each, polls the completions, and moves the bytes between the ring's buffers and device memory. The host makes
// no system call for a block, and no thread of the program touches one.
//
// It exits when it has nothing to do for a while, and when its lifetime is over, also with I/O in flight: the
// next launch goes on with that. The protocol is in crates/gpu/src/initiated. softgpu/src/kernel/initiated.rs
// does the same in software. build.sh makes initiated.ptx from this file.

#include "copy.cuh"
#include "gpuio_device.cuh"

// The most I/Os in flight of a ring, and the most commands and completions that one round takes.
enum : u32 { ENTRIES = 64, ROUND = 32 };
// Commands and results in their pages, less one.
enum : u64 { COMMAND_MASK = 127 };
// Bytes that a warp copies at once: four loads of 16 in each thread.
enum : u64 { PIECE_LEN = 2048 };

// The description in the control page: the ring, and then these words.
struct Description {
    gpuio_queue ring;
    u64 destination; // entry 0's part of the destination
    u64 stride;      // bytes from there to the next entry's
    u64 commands;    // 128 commands of 32 bytes
    u64 results;     // 128 results of 32 bytes
    u64 count;       // word: the results that there are
    u64 exited;      // two words: commands that were taken, and the launch that exited
    u64 chain_begin; // a chain's first byte in the file
    u64 chain_len;   // bytes of its blocks
    u64 chain_count; // how many there are; 0: the blocks are no chain
};

// What is known of an I/O in flight.
struct Entry {
    u64 began; // when it was published, or its copy began, by the device's clock
    u32 skip;
    u32 gpu_ns; // time of the copy before it
    u64 is_read;
    u64 offset;
};

struct Copy {
    u64 dst;
    u64 src;
    u64 len;
};

DEVICE void sync_warp() { asm volatile("bar.warp.sync 0xffffffff;" : : : "memory"); }

// Orders what the threads of the block do before it and after it.
DEVICE void fence_block() { asm volatile("fence.acq_rel.cta;" : : : "memory"); }

// A bit for each thread of the warp for which `holds` is true. All of them must call it.
DEVICE u32 lanes_where(bool holds) {
    u32 result;
    asm volatile("{\n\t"
                 ".reg .pred mine;\n\t"
                 "setp.ne.u32 mine, %1, 0;\n\t"
                 "vote.sync.ballot.b32 %0, mine, 0xffffffff;\n\t"
                 "}"
                 : "=r"(result)
                 : "r"((u32)holds)
                 : "memory");
    return result;
}

DEVICE u32 from_first_lane(u32 value) {
    u32 result;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(result) : "r"(value) : "memory");
    return result;
}

DEVICE u32 bits_set(u32 word) {
    u32 result;
    asm volatile("popc.b32 %0, %1;" : "=r"(result) : "r"(word));
    return result;
}

DEVICE u64 relaxed(u64 at) {
    u64 value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
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

// Nanoseconds as far as 32 bits hold them.
DEVICE u32 since(u64 now, u64 then) {
    const u64 passed = now - then;
    return passed > 0xffffffff ? 0xffffffffu : (u32)passed;
}

// A command has three words, each with the low 16 bits of the command's number on top, so that a word is there
// as a whole or not at all: in the first bits 0 to 31 are the length in bytes, 32 to 37 the entry, 38 the
// direction (1: a write); in the second bits 0 to 47 are the file's byte; in the third bits 0 to 31 are the
// first byte within the buffer, 32 to 47 the file's number. Length 0 ends the kernel. The host has at most one
// command in flight for an entry.
//
// In a chain the kernel starts one I/O at a time, and the block that a command names is moved on by the first
// word of the block before, modulo the chain's blocks. Commands for the rest of a block (whose first byte is not
// the buffer's) are as they say.
struct Command {
    u64 offset;
    u32 len;
    u32 entry;
    u32 skip;
    u32 file;
    bool is_write;
};

// The command of this number, and whether it is there.
DEVICE bool command(u64 commands, u64 number, Command &found) {
    const u64 at = commands + (number & COMMAND_MASK) * 32;
    const u64 mark = number & 0xffff;
    // The one without an order first: the acquire would hold it up.
    const u64 third = relaxed(at + 16);
    const Word two = acquire_two(at);
    const u64 first = two.low;
    const u64 second = two.high;
    found.offset = second & 0xffffffffffff;
    found.len = (u32)first;
    found.entry = (u32)(first >> 32) & (ENTRIES - 1);
    found.is_write = (first >> 38 & 1) != 0;
    found.skip = (u32)third;
    found.file = (u32)(third >> 32) & 0xffff;
    return first >> 48 == mark && second >> 48 == mark && third >> 48 == mark;
}

// Copies both lists, each warp a piece at a time.
DEVICE void copy_all(const Copy *copies, u32 count, u32 warp, u32 warps, u32 lane) {
    u32 turn = warp;
    for (u32 at = 0; at < count; at++) {
        const Copy one = copies[at];
        const u32 pieces = (u32)((one.len + PIECE_LEN - 1) / PIECE_LEN);
        u32 piece = turn;
        for (; piece < pieces; piece += warps) {
            const u64 begin = piece * PIECE_LEN;
            const u64 len = one.len - begin < PIECE_LEN ? one.len - begin : PIECE_LEN;
            copy<CoherentLoads>(one.dst + begin, one.src + begin, len, lane, 32);
        }
        // The next copy's first piece is for the warp that would have had this one's next.
        turn = piece - pieces;
    }
}

// One block of 64 to 512 threads. `description`: see above. `state`: ENTRIES entries in device memory, from
// one launch to the next. `first`: the number of the first command that no launch has taken. `completed`:
// results that there are; the word behind them is the chain's. `idle`, `lifetime`: nanoseconds after which it exits with nothing to do, and
// altogether. As its last access it stores `launch`.
KERNEL BOUNDS(512, 1) gpuio_initiated(u64 description, u64 state, u64 first, u64 completed, u64 launch, u64 idle,
                       u64 lifetime) {
    SHARED Description about;
    SHARED Entry entries[ENTRIES];
    SHARED Copy copies_in[ROUND];
    SHARED Copy copies_out[ROUND];
    SHARED u32 count_in;
    SHARED u32 count_out;
    SHARED u32 ends;
    SHARED volatile u64 shared_completed;
    // The first word of the chain's last block.
    SHARED volatile u64 chain_word;
    const u32 thread = thread_number();
    const u32 warp = thread / 32;
    const u32 warps = thread_count() / 32;
    const u32 lane = thread & 31;
    const u32 below = (1u << lane) - 1;
    const u64 began = clock_ns();
    if (thread < sizeof(Description) / 8) {
        ((u64 *)&about)[thread] = relaxed(description + thread * 8);
    }
    for (u32 at = thread; at < ENTRIES * 2; at += thread_count()) {
        ((Word *)entries)[at] = load(state + at * 16);
    }
    if (thread == 0) {
        shared_completed = completed;
        chain_word = relaxed(state + ENTRIES * sizeof(Entry));
    }
    sync_block();
    const gpuio_queue &ring = about.ring;
    // Warp 0: the next command and entry. Warp 1: the next completion.
    u64 next = first;
    u32 tail = gpuio_published(ring);
    u32 head = gpuio_taken(ring);
    u64 last_work = began;
    for (;;) {
        Command mine = {};
        bool is_write = false;
        gpuio_completion done = {};
        bool is_done = false;
        u64 seen = 0;
        if (warp == 0) {
            // No more commands can be there than entries are free; the one that ends the kernel always can.
            const u64 in_flight = next - 1 - shared_completed;
            const bool is_chain = about.chain_count != 0;
            const bool looks = lane == 0 || (!is_chain && in_flight + lane < ring.buffer_count);
            bool there = looks && command(about.commands, next + lane, mine);
            if (is_chain && there && mine.len != 0) {
                there = next - 1 == shared_completed;
                fence_block();
                if (mine.skip == 0) {
                    const u64 block = (mine.offset - about.chain_begin) / about.chain_len;
                    mine.offset = about.chain_begin +
                                  (block + chain_word) % about.chain_count * about.chain_len;
                }
            }
            const u32 missing = ~lanes_where(there);
            const u32 stops = lanes_where(there && mine.len == 0);
            // Lanes before the first without a command, and before the one that ends the kernel.
            const u32 until = missing | stops;
            const u32 valid = until == 0 ? 0xffffffff : (until & (0 - until)) - 1;
            const u32 taken = bits_set(valid);
            const bool is_mine = (valid >> lane & 1) != 0;
            is_write = is_mine && mine.is_write;
            const u32 reads = lanes_where(is_mine && !mine.is_write);
            const u32 writes = lanes_where(is_write);
            seen = clock_ns();
            if (is_mine) {
                Entry &entry = entries[mine.entry];
                entry.began = seen;
                entry.skip = mine.skip;
                entry.gpu_ns = 0;
                entry.is_read = !mine.is_write;
                entry.offset = mine.offset;
                if (is_write) {
                    Copy &one = copies_out[bits_set(writes & below)];
                    one.dst = ring.buffers + mine.entry * ring.buffer_len + mine.skip;
                    one.src = about.destination + mine.entry * about.stride + mine.skip;
                    one.len = mine.len;
                } else {
                    gpuio_prepare(ring, tail + bits_set(reads & below), GPUIO_READ, mine.file, mine.offset,
                                  mine.entry, mine.skip, mine.len, mine.entry);
                }
            }
            sync_warp();
            tail += bits_set(reads);
            next += taken;
            if (lane == 0) {
                if (reads != 0) {
                    gpuio_publish(ring, tail);
                }
                count_out = bits_set(writes);
                const bool works = taken != 0 || next - 1 != shared_completed;
                last_work = works ? seen : last_work;
                const bool stop = taken < 32 && (stops >> taken & 1) != 0;
                ends = stop || seen - last_work > idle || seen - began > lifetime;
            }
        } else if (warp == 1) {
            u32 now_there = head;
            if (lane == 0) {
                now_there = gpuio_completions(ring);
            }
            now_there = from_first_lane(now_there);
            sync_warp();
            const u32 count = now_there - head < ROUND ? now_there - head : ROUND;
            is_done = lane < count;
            seen = clock_ns();
            bool has_bytes = false;
            if (is_done) {
                done = gpuio_completed(ring, head + lane);
                mine.entry = (u32)done.user & (ENTRIES - 1);
                has_bytes = entries[mine.entry].is_read != 0 && done.result > 0;
            }
            const u32 all = lanes_where(has_bytes);
            if (has_bytes) {
                Copy &one = copies_in[bits_set(all & below)];
                const u32 skip = entries[mine.entry].skip;
                one.dst = about.destination + mine.entry * about.stride + skip;
                one.src = ring.buffers + mine.entry * ring.buffer_len + skip;
                one.len = (u32)done.result;
            }
            head += count;
            if (lane == 0) {
                count_in = bits_set(all);
            }
        }
        sync_block();
        const bool last = ends != 0;
        copy_all(copies_in, count_in, warp, warps, lane);
        copy_all(copies_out, count_out, warp, warps, lane);
        sync_block();
        if (warp == 0) {
            const u32 writes = lanes_where(is_write);
            if (is_write) {
                const u64 now = clock_ns();
                entries[mine.entry].began = now;
                entries[mine.entry].gpu_ns = since(now, seen);
                gpuio_prepare(ring, tail + bits_set(writes & below), GPUIO_WRITE, mine.file, mine.offset,
                              mine.entry, mine.skip, mine.len, mine.entry);
            }
            sync_warp();
            tail += bits_set(writes);
            if (lane == 0 && writes != 0) {
                gpuio_publish(ring, tail);
            }
        } else if (warp == 1) {
            const u32 count = bits_set(lanes_where(is_done));
            if (is_done) {
                const Entry &entry = entries[mine.entry];
                const bool copied = entry.is_read != 0 && done.result > 0;
                const u64 gpu_ns = copied ? since(clock_ns(), seen) : entry.gpu_ns;
                Word result;
                result.low = mine.entry | (u64)(u32)done.result << 32;
                result.high = since(seen, entry.began) | gpu_ns << 32;
                const u64 at = about.results + ((completed + lane) & COMMAND_MASK) * 32;
                store(at, result);
                result.low = entry.offset;
                result.high = 0;
                store(at + 16, result);
                if (copied && about.chain_count != 0 && entry.skip == 0) {
                    chain_word = load(about.destination + mine.entry * about.stride).low;
                    fence_block();
                }
            }
            sync_warp();
            completed += count;
            if (lane == 0 && count != 0) {
                // The completions were read; their places go back before the host can name another block.
                shared_completed = completed;
                gpuio_take(ring, head);
                release(about.count, completed);
            }
        }
        if (last) {
            break;
        }
    }
    sync_block();
    for (u32 at = thread; at < ENTRIES * 2; at += thread_count()) {
        store(state + at * 16, ((Word *)entries)[at]);
    }
    if (thread == 0) {
        store(state + ENTRIES * sizeof(Entry), Word{chain_word, 0});
        release(about.exited, next);
    }
    sync_block();
    // From here on no thread accesses host or device memory.
    if (thread == 0) {
        release(about.exited + 8, launch);
    }
}
