// The resident copy kernel: copies for many host threads, each between addresses of its own.
//
// The host writes a command into a slot in pinned memory. A thread block polls up to eight slots, copies
// what the command names, and writes the number of the completed command. No driver call is needed in
// between. All blocks exit together: when no command came for a while; when the launch has reached its
// lifetime, so that whoever waits for the whole device waits no longer than that; when the host requests
// it; and when other kernels fill the device. The host launches the kernel again, in a second stream,
// shortly before the lifetime ends: the new blocks wait until the old ones have left their slots.
//
// The protocol is in crates/gpu/src/resident_copy. softgpu/src/kernel/resident_copy.rs does the same in
// software. build.sh makes resident_copy.ptx from this file.

#include "copy.cuh"

// Two words, in one access.
DEVICE Word acquire_two(u64 at) {
    Word word;
    asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(word.low), "=l"(word.high)
                 : "l"(at)
                 : "memory");
    return word;
}

// Words that the blocks of a launch share. Each access is atomic by itself; there is no order among them.
DEVICE u64 load_relaxed(u64 at) {
    u64 value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

DEVICE void store_relaxed(u64 at, u64 value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

// The same, ordered for the threads of this device: after the acquire they see what was stored before
// the release.
DEVICE u64 acquire_gpu(u64 at) {
    u64 value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

DEVICE void release_gpu(u64 at, u64 value) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

DEVICE void atomic_add_one(u64 at) {
    asm volatile("red.release.gpu.global.add.u64 [%0], %1;" : : "l"(at), "l"(1ull) : "memory");
}

DEVICE void atomic_max(u64 at, u64 value) {
    asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

// Everything before it is visible to host and device before anything after it is done.
DEVICE void fence() { asm volatile("fence.sc.sys;" : : : "memory"); }

// A barrier for the threads of the warp.
DEVICE void sync_warp() { asm volatile("bar.warp.sync 0xffffffff;" : : : "memory"); }

// Whether `holds` is true for all threads of the warp. All of them must call it.
DEVICE bool all_lanes(bool holds) {
    u32 result;
    asm volatile("{\n\t"
                 ".reg .pred mine, all;\n\t"
                 "setp.ne.u32 mine, %1, 0;\n\t"
                 "vote.sync.all.pred all, mine, 0xffffffff;\n\t"
                 "selp.u32 %0, 1, 0, all;\n\t"
                 "}"
                 : "=r"(result)
                 : "r"((u32)holds)
                 : "memory");
    return result != 0;
}

// A bit for each thread of the warp for which `holds` is true. All of them must call it.
DEVICE u32 ballot(bool holds) {
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

DEVICE void sleep_ns(u32 nanoseconds) {
    asm volatile("nanosleep.u32 %0;" : : "r"(nanoseconds) : "memory");
}

// Flag in a command's length: the length counts the entries of a list.
enum : u64 { LISTED = 1ull << 47 };

// The thread of the first warp that decides when the block exits. It polls no slot, so that a host thread does
// not wait for what it does.
enum : u32 { TIMER = 16 };

// What warp 0 passes to the other threads of the block.
struct Work {
    u64 src;
    u64 dst;
    u64 len;
    // The command's slot and number, for its completion.
    u64 slot;
    u64 number;
    // Not 0: the block exits, with this exit word.
    u64 exit;
};

// State of the first warp, one entry for each thread. It is in shared memory, since the registers of a
// thread limit how many blocks fit beside those of other kernels.
struct PollState {
    // The number of the command that the thread waits for.
    u64 number[32];
    // The address that the thread polls.
    u64 slot[32];
    // When this block began.
    u64 began;
    // Addresses of EXIT_WORD and STARTED of this launch's stream.
    u64 exit_word;
    u64 started;
};

// Executes a command: all threads of the block copy one range, or each warp copies pieces of a list, every
// n-th piece for n warps. A piece of 4 KiB is two rounds of a warp, but less than one round of the block.
// A separate loop, or more strips at a time, would take more registers from other kernels on the device.
DEVICE void run_command(const Work &work, u32 thread, u32 thread_total) {
    const bool listed = (work.len & LISTED) != 0;
    const u64 count = listed ? work.len & ~LISTED : 1;
    const u32 step = listed ? thread_total / 32 : 1;
    const u32 rank = listed ? thread & 31 : thread;
    const u32 ranks = listed ? 32 : thread_total;
    u64 at = listed ? thread / 32 : 0;
    Piece next = {work.src, work.dst, work.len};
    if (listed && at < count) {
        next = piece<CoherentLoads>(work.src, at);
    }
    for (; at < count; at += step) {
        const Piece now = next;
        // Loaded early, so that its latency overlaps with the copy of this piece.
        if (at + step < count) {
            next = piece<CoherentLoads>(work.src, at + step);
        }
        copy<CoherentLoads>(now.dst, now.src, now.len, rank, ranks);
    }
}

// The layout of a slot, in bytes from its begin. The host writes the command and, behind it, the exit
// request (launches up to that number exit); the device writes the rest, on other cache lines. Each slot
// has an exit request of its own, because blocks that read the same line of host memory wait for each
// other.
enum : u64 {
    SLOT_LEN = 256,
    // The number of the last completed command.
    COMPLETED = 128,
    // The last launch that has left the slot, times four, plus the reason (below). It is the block's last
    // access to host memory.
    EXITED = 136,
    // The last launch that has a block for the slot on the device. The block may still wait for that of the
    // previous launch.
    ENTERED = 144,
    // The last launch that exits soon, and all of whose blocks are on the device.
    ANNOUNCED = 152,
};

// Why a launch exits: no command came, its lifetime is over, other kernels fill the device, the host
// requested it.
enum : u64 { IDLE = 0, EXPIRED = 1, GPU_FULL = 2, REQUESTED = 3 };

// The layout of `shared`, in device memory, in bytes. Two launches may be on the device, in two streams,
// so some words exist once for each stream.
enum : u64 {
    // When the last command of any slot completed.
    LAST = 0,
    // The last launch of the stream that exits, times four, plus the reason.
    EXIT_WORD = 16,
    // How many blocks have started, and when the last probe block did: two words for each stream.
    STARTED = 32,
    // For each slot, the last launch that has left it, and the number of the last command that was completed
    // then.
    SLOT_EXITED = 64,
    SLOT_EXITED_LEN = 16,
    // Offset of the number behind SLOT_EXITED.
    NUMBER = 8,
    // Offset of the time behind STARTED.
    TIME = 8,
};

// A block that had no command for QUIET nanoseconds polls every PAUSE nanoseconds, to leave the bus to
// others.
enum : u64 { QUIET = 20000, PAUSE = 500 };

// So often, in polls, a block without a command looks for EXIT_WORD.
enum : u32 { WORD_EVERY = 4 };

// On an otherwise idle device all blocks of a launch start within 0.1 microseconds. Beside kernels that
// fill the device the last one starts when one of their blocks ends, many microseconds later (measured
// on an H100). The clock of some devices has steps of a microsecond, and instructions that have left the
// caches take about as long to fetch, so a shorter time than SPREAD means nothing. All blocks must have
// started after OCCUPANCY_TIMEOUT. Nanoseconds.
enum : u64 { SPREAD = 3000, OCCUPANCY_TIMEOUT = 20000 };

// Whether it is known now if there was room for all blocks of a launch that began at `began`.
DEVICE bool occupancy_known(u64 counter, u64 blocks, u64 began, bool &gpu_full) {
    const bool all_started = acquire_gpu(counter) >= blocks;
    // Clocks of multiprocessors may differ a little: as signed numbers.
    gpu_full = all_started ? (long long)(load_relaxed(counter + TIME) - began) > (long long)SPREAD
                           : clock_ns() - began > OCCUPANCY_TIMEOUT;
    return all_started || gpu_full;
}

// `slots`: 64 slots of 256 bytes, in pinned memory, aligned to 256, of which the first `count` are served.
// A command is three words: source, destination and length, each of 48 bits, with the low 16 bits of the
// command's number above them, so that the words may arrive one by one. A length of 0 copies nothing. With
// the highest bit of the length set, the rest of it counts the entries of a list at the source, 32 bytes
// each, {u64 src, dst, len, unused}, aligned to 16. The first command of a slot has number 1.
//
// `shared`: 64 + 64 * 16 bytes of device memory, all zero before the first launch.
//
// `blocks`: so many blocks poll slots: the slot of their own number and each `blocks` further on, eight at
// most. All other blocks are probes: they record when they started, and exit. `started`: how many blocks
// have started in this stream once all of this launch have. Only then may the next launch be made in the
// other stream: its blocks wait for these, and one of these that waited for room behind them would never
// start. `stream`: which of the two streams it is, 0 or 1.
//
// `launch`: the number of this launch, 1 or more. The previous one may still be on the device, and has the
// first `previous` slots. `idle`, `lifetime`: all blocks exit after so many nanoseconds without a command in
// any slot, and altogether. `lead`: so long before the end of `lifetime` the host is notified.
//
// Each block has 32 to 256 threads, a multiple of 32.
KERNEL BOUNDS(256, 3) gpuio_resident_copy(u64 slots, u64 shared, u64 count, u64 blocks, u64 started, u64 stream,
                           u64 previous, u64 launch, u64 idle, u64 lifetime, u64 lead) {
    SHARED Work work;
    SHARED PollState state;
    const u32 thread = thread_number();
    const u32 thread_total = thread_count();
    if (block_number() >= blocks) {
        if (thread == 0) {
            const u64 counter = shared + STARTED + stream * 16;
            atomic_max(counter + TIME, clock_ns());
            atomic_add_one(counter);
        }
        return;
    }
    // Two threads of the first warp poll a slot, two words each: the command and the exit request.
    const u32 part = thread & 1;
    const bool has = thread < 16 && block_number() + (thread / 2) * blocks < count;
    // The last reading of the clock, in nanoseconds since the block began. The clock is not read between a
    // command and its completion, which a host thread waits for.
    u32 now = 0;
    // What only thread TIMER uses: whether the host was notified that this launch exits soon; whether there
    // is anything to do between two commands, though the next is there; and in block 0, whether it is known if
    // there was room for all blocks.
    bool announced = false;
    bool known = block_number() != 0 || thread != TIMER;
    bool attention = !known;
    bool gpu_full = false;
    if (thread < 32) {
        const u64 mine = block_number() + (thread / 2) * blocks;
        state.slot[thread] = slots + mine * SLOT_LEN + part * 16;
        if (thread == 0) {
            state.began = clock_ns();
            state.exit_word = shared + EXIT_WORD + stream * 8;
            state.started = shared + STARTED + stream * 16;
        }
        if (has && part == 0) {
            release(state.slot[thread] + ENTERED, launch);
        }
        sync_warp();
        // The host cancels a command by the same two steps in the other order: it changes the command,
        // then reads ENTERED. At least one of the two sees the other. All of this happens while the previous
        // launch still serves the slots, so that commands do not wait for the bus meanwhile.
        fence();
        // Behind ENTERED, so that the next launch, which is made after all blocks have started, enters later.
        if (thread == 0) {
            atomic_add_one(state.started);
        }
        const u64 left = shared + SLOT_EXITED + mine * SLOT_EXITED_LEN;
        for (;;) {
            if (!known) {
                known = occupancy_known(state.started, started, state.began, gpu_full);
            }
            const bool waits = has && acquire_gpu(left) + 1 < launch && mine < previous;
            if (all_lanes(!waits)) {
                break;
            }
        }
        if (has) {
            state.number[thread] = load_relaxed(left + NUMBER) + 1;
        }
    }
    // The block's slot that had the last command.
    u32 next = 0;
    // Polls that found no command.
    u32 polls = 0;
    for (;;) {
        if (thread < 32) {
            u32 since = 0;
            for (;;) {
                // In one access, by as few threads as possible: more threads take longer.
                Word words = {};
                if (has) {
                    words = acquire_two(state.slot[thread]);
                }
                const u64 mark = state.number[thread] & 0xffff;
                const bool fits = words.low >> 48 == mark && (part == 1 || words.high >> 48 == mark);
                const u32 votes = ballot(thread == TIMER ? attention : has && fits);
                const u32 ready = votes & votes >> 1 & 0x5555;
                // A command that is there comes first, since a host thread waits for it. Whether to exit is
                // looked for where there is none, or where it is due.
                if (ready == 0 || (votes >> TIMER) != 0) {
                    now = (u32)(clock_ns() - state.began);
                    since = since == 0 ? now : since;
                    const bool exit_requested = !all_lanes(part != 1 || words.high < launch);
                    u64 exit = 0;
                    bool soon = false;
                    if (thread == TIMER) {
                        if (!known) {
                            known = occupancy_known(state.started, started, state.began, gpu_full);
                        }
                        if (exit_requested) {
                            exit = launch << 2 | REQUESTED;
                        } else if (gpu_full) {
                            exit = launch << 2 | GPU_FULL;
                        } else if (now > lifetime) {
                            exit = launch << 2 | EXPIRED;
                        } else {
                            soon = !announced && now + lead > lifetime;
                            soon = soon && load_relaxed(state.started) >= started;
                            announced |= soon;
                            // Not at each poll, which would take longer.
                            if (ready == 0 && ++polls % WORD_EVERY == 0) {
                                const u64 word = load_relaxed(state.exit_word);
                                exit = word >> 2 == launch ? word : 0;
                                if (exit == 0 && now - since > idle) {
                                    // Clocks of multiprocessors may differ a little: as a signed number.
                                    const u64 last = load_relaxed(shared + LAST) - state.began;
                                    exit = (long long)(now - last) > (long long)idle ? launch << 2 | IDLE : 0;
                                }
                            }
                        }
                    }
                    if (!all_lanes(exit == 0)) {
                        if (thread == TIMER) {
                            store_relaxed(state.exit_word, exit);
                            work.exit = exit;
                        }
                        break;
                    }
                    if (!all_lanes(!soon) && has && part == 0) {
                        release(state.slot[thread] + ANNOUNCED, launch);
                    }
                    if (ready == 0) {
                        if (now - since > QUIET) {
                            sleep_ns(PAUSE);
                        }
                        continue;
                    }
                }
                // Round robin: the next ready slot after the last one.
                const u32 later = ready & ~((2u << (next * 2)) - 1);
                const u32 first = later != 0 ? later : ready;
                next = (31 - __builtin_clz(first & (0 - first))) / 2;
                if (thread / 2 == next) {
                    if (part == 0) {
                        work.src = words.low & 0xffffffffffffull;
                        work.dst = words.high & 0xffffffffffffull;
                        work.exit = 0;
                        work.slot = state.slot[thread];
                        work.number = state.number[thread];
                    } else {
                        work.len = words.low & 0xffffffffffffull;
                    }
                    state.number[thread]++;
                }
                break;
            }
        }
        sync_block();
        const u64 exit = work.exit;
        if (exit != 0) {
            // From here on no thread accesses host memory, except for EXITED. It comes before SLOT_EXITED: the
            // next launch may exit at once, and this block must not overwrite that launch's word.
            if (has && part == 0) {
                release(state.slot[thread] + EXITED, exit);
                const u64 mine = block_number() + (thread / 2) * blocks;
                const u64 left = shared + SLOT_EXITED + mine * SLOT_EXITED_LEN;
                store_relaxed(left + NUMBER, state.number[thread] - 1);
                release_gpu(left, launch);
            }
            return;
        }
        run_command(work, thread, thread_total);
        sync_block();
        if (thread == 0) {
            release(work.slot + COMPLETED, work.number);
        } else if (thread == TIMER) {
            const u64 completed = clock_ns();
            now = (u32)(completed - state.began);
            store_relaxed(shared + LAST, completed);
            attention = !known || now > lifetime || (!announced && now + lead > lifetime);
        }
    }
}
