// The data rule on the GPU: fill memory with it, check memory against it; and digests by its mixing.
//
// A file is a sequence of little-endian 8-byte words. Word w stands at byte offset 8*w and is
// mix(key + w * GOLDEN), where mix is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014). Where `repeats` is not 0, each chunk of
// 2^(repeats & 255) words has repeats >> 8 such words, and then its first word over and over. Crate
// gpuio_pattern does the same on the CPU. build.sh makes pattern.ptx from this file.

#include "device.cuh"

typedef unsigned char u8;

// The number of a thread in its launch, and how many there are.
DEVICE u64 launch_thread() { return (u64)block_number() * thread_count() + thread_number(); }
DEVICE u64 launch_threads() { return (u64)block_count() * thread_count(); }

DEVICE u64 source(u64 repeats, u64 w) {
    if (repeats == 0) {
        return w;
    }
    const u64 within = w & ((1ull << (repeats & 63)) - 1);
    return within < (repeats >> 8) ? w : w - within;
}

DEVICE u64 word(u64 key, u64 repeats, u64 w) {
    w = source(repeats, w);
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
DEVICE void write(const Cut &c, u64 key, u64 repeats, u64 w) {
    const u64 value = word(key, repeats, w);
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
DEVICE bool differs(const Cut &c, u64 key, u64 repeats, u64 w) {
    const u64 value = word(key, repeats, w);
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

KERNEL gpuio_fill(u64 dst, u64 len, u64 key, u64 repeats, u64 offset) {
    const Cut c = cut(dst, len, offset);
    const u64 thread = launch_thread();
    const u64 threads = launch_threads();
    for (u64 p = c.first_pair + thread; p < c.last_pair; p += threads) {
        Word pair;
        pair.low = word(key, repeats, p * 2);
        pair.high = word(key, repeats, p * 2 + 1);
        *(Word *)(c.base + p * 16) = pair;
    }
    for (u64 w = c.head + thread; w < c.head_end; w += threads) {
        write(c, key, repeats, w);
    }
    for (u64 w = c.tail + thread; w < c.tail_end; w += threads) {
        write(c, key, repeats, w);
    }
}

// report[0] += words that differ; report[1] = the least byte offset of such a word. The caller
// starts them at 0 and at the greatest u64.
KERNEL gpuio_check(u64 src, u64 len, u64 key, u64 repeats, u64 offset, u64 report) {
    const Cut c = cut(src, len, offset);
    const u64 thread = launch_thread();
    const u64 threads = launch_threads();
    u64 bad = 0;
    u64 first = ~0ull;
    for (u64 p = c.first_pair + thread; p < c.last_pair; p += threads) {
        const Word pair = *(const Word *)(c.base + p * 16);
        const bool low = pair.low != word(key, repeats, p * 2);
        const bool high = pair.high != word(key, repeats, p * 2 + 1);
        bad += (u64)low + (u64)high;
        const u64 here = low ? p * 16 : high ? p * 16 + 8 : ~0ull;
        first = here < first ? here : first;
    }
    for (u64 w = c.head + thread; w < c.head_end; w += threads) {
        const bool differ = differs(c, key, repeats, w);
        bad += (u64)differ;
        first = differ && w * 8 < first ? w * 8 : first;
    }
    for (u64 w = c.tail + thread; w < c.tail_end; w += threads) {
        const bool differ = differs(c, key, repeats, w);
        bad += (u64)differ;
        first = differ && w * 8 < first ? w * 8 : first;
    }
    if (bad != 0) {
        atomic_add((u64 *)report, bad);
        atomic_min((u64 *)report + 1, first);
    }
}

// The bytes of a word at any address, the missing ones 0.
DEVICE u64 word_at(u64 at, u64 bytes) {
    u64 value = 0;
    for (u64 i = 0; i < bytes; i++) {
        value |= (u64)load_byte(at + i) << (8 * i);
    }
    return value;
}

// `list`: `count` entries of 32 bytes, {u64 address, bytes, number of the first word, sum}, at a
// multiple of 16. Adds each range's digest (gpuio_base, pattern::digest) to the word at `sum`. A
// block takes a range, then the one that stands as many further on as there are blocks. List and sums
// may be pinned memory of the host: a block reads an entry, and adds to a sum, once.
KERNEL gpuio_digest(u64 list, u64 count) {
    SHARED u64 total;
    const u64 thread = thread_number();
    const u64 threads = thread_count();
    for (u64 n = block_number(); n < count; n += block_count()) {
        const Word place = *(const Word *)(list + n * 32);
        const Word about = *(const Word *)(list + n * 32 + 16);
        const u64 at = place.low;
        const u64 whole = place.high >> 3;
        const u64 first = about.low + 1;
        u64 sum = 0;
        u64 begin = 0;
        if ((at & 15) == 0) {
            const u64 pairs = whole >> 1;
#pragma unroll 4
            for (u64 p = thread; p < pairs; p += threads) {
                const Word pair = *(const Word *)(at + p * 16);
                sum += word(pair.low, 0, first + p * 2);
                sum += word(pair.high, 0, first + p * 2 + 1);
            }
            begin = pairs * 2;
        }
        for (u64 w = begin + thread; w < whole; w += threads) {
            const u64 here = at + w * 8;
            const u64 value = (here & 7) == 0 ? *(const u64 *)here : word_at(here, 8);
            sum += word(value, 0, first + w);
        }
        if (thread == 0 && (place.high & 7) != 0) {
            sum += word(word_at(at + whole * 8, place.high & 7), 0, first + whole);
        }
        if (thread == 0) {
            total = 0;
        }
        sync_block();
        atomic_add(&total, sum);
        sync_block();
        if (thread == 0) {
            atomic_add((u64 *)about.high, total);
        }
    }
}
