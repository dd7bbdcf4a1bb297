//! The gather kernel against copies by the CPU, on gpuio's software GPU, or with
//! `GPUIO_TEST_GPU=system` on the system's.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(unsafe_code, reason = "the copies and kernels of the API are unsafe")]

use std::cell::RefCell;

use gpuio_gpu::{
    Context, DevPtr, DeviceBuf, Driver, GatherKernel, GpuError, MemoryKind, Piece, Pinned, Shape,
    Stream, most_pieces, pattern, pieces,
};
use gpuio_testkit::child;
use gpuio_testkit::gpu::{skipped, which};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The piece that one block of 256 threads moves in a single round of loads, in bytes.
const PIECE_LEN: u64 = 16 << 10;

/// The tools of a case; its thread has the context current.
struct Bench {
    context: Context,
    stream: Stream,
    kernel: GatherKernel,
}

fn bench() -> Bench {
    let driver = Driver::load(&which()).unwrap();
    let context = Context::new(&driver, 0).unwrap();
    context.make_current().unwrap();
    let stream = Stream::new(&context).unwrap();
    let kernel = GatherKernel::load(&context).unwrap();
    Bench { context, stream, kernel }
}

impl Bench {
    fn alloc(&self, kind: MemoryKind, len: usize) -> DeviceBuf {
        DeviceBuf::alloc(&self.context, kind, len).unwrap()
    }

    /// Writes to memory of any kind and waits.
    fn put(&self, to: DevPtr, bytes: &[u8]) {
        let from = DevPtr(bytes.as_ptr() as u64);
        // SAFETY: the test gives a range of its own; the wait follows.
        unsafe { self.stream.copy(to, from, bytes.len()).unwrap() };
        self.stream.sync().unwrap();
    }

    /// Reads memory of any kind, waiting.
    fn take(&self, from: DevPtr, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let to = DevPtr(bytes.as_mut_ptr() as u64);
        // SAFETY: the test gives a range of its own; the wait follows.
        unsafe { self.stream.copy(to, from, len).unwrap() };
        self.stream.sync().unwrap();
        bytes
    }

    /// A list as the kernel takes it, in memory of this kind.
    fn list(&self, kind: MemoryKind, list: &[Piece]) -> DeviceBuf {
        let buffer = self.alloc(kind, size_of_val(list).max(1));
        let words: Vec<u8> = list
            .iter()
            .flat_map(|piece| [piece.src, piece.dst, piece.len, 0x5EED])
            .flat_map(u64::to_le_bytes)
            .collect();
        if !words.is_empty() {
            self.put(buffer.ptr(), &words);
        }
        buffer
    }

    /// Launches and waits.
    fn gather(&self, list: &DeviceBuf, count: usize, shape: Shape) -> Result<(), GpuError> {
        let count = u32::try_from(count).unwrap();
        // SAFETY: the list and what it names are the test's own, and the wait follows.
        unsafe { self.kernel.launch(&self.stream, list.ptr(), count, shape)? };
        self.stream.sync()
    }
}

/// A piece by its place in the source, the room left before it in the destination, its length.
type Cut = (prop::sample::Index, usize, usize);

fn cuts() -> impl Strategy<Value = Vec<Cut>> {
    let len = prop_oneof![
        4 => 0..100_usize,
        4 => 0..3000_usize,
        1 => 0..=70_000_usize,
        1 => (0..=16_usize).prop_map(|pages| pages * 4096),
    ];
    let gap = prop_oneof![2 => Just(0), 3 => 0..40_usize];
    prop::collection::vec((any::<prop::sample::Index>(), gap, len), 0..600)
}

fn shapes() -> impl Strategy<Value = Shape> {
    (1..300_u32, 1..=8_u32).prop_map(|(grid, warps)| Shape { grid, block: warps * 32 })
}

/// Room at both ends of the destination, which has to stay as it was.
const MARGIN: usize = 64;
const SOURCE: usize = 1 << 17;

/// Gathers between memory of two kinds and compares all of the destination with what the CPU
/// copies.
fn agrees(bench: &Bench, kinds: [MemoryKind; 3], cuts: &[Cut], shape: Shape) {
    let [from, to, of_list] = kinds;
    let mut bytes = vec![0; SOURCE];
    pattern::fill(&mut bytes, 0xC0FFEE, 0);
    let whole: usize = cuts.iter().map(|(_, gap, len)| gap + len).sum();
    let mut expected = vec![0x5A; whole + 2 * MARGIN];
    let source = bench.alloc(from, SOURCE);
    bench.put(source.ptr(), &bytes);
    let destination = bench.alloc(to, expected.len());
    bench.put(destination.ptr(), &expected);
    let mut at = MARGIN;
    let mut list = Vec::new();
    for (place, gap, len) in cuts {
        at += gap;
        let first = place.index(SOURCE - len + 1);
        expected[at..at + len].copy_from_slice(&bytes[first..first + len]);
        list.push(Piece::new(
            source.ptr().byte_add(first as u64),
            destination.ptr().byte_add(at as u64),
            *len as u64,
        ));
        at += len;
    }
    let entries = bench.list(of_list, &list);
    bench.gather(&entries, list.len(), shape).unwrap();
    let found = bench.take(destination.ptr(), expected.len());
    let wrong = found.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "{kinds:?} {shape:?} {list:?}");
    assert!(bench.take(source.ptr(), SOURCE) == bytes);
}

fn any_list_agrees(kinds: [MemoryKind; 3]) {
    let bench = RefCell::new(bench());
    let mut runner =
        TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let run = runner.run(&(cuts(), shapes()), |(cuts, shape)| {
        agrees(&bench.borrow_mut(), kinds, &cuts, shape);
        Ok(())
    });
    run.unwrap();
}

gpuio_testkit::tests! {
    any_list_goes_from_the_host_to_the_device:
        any_list_agrees([MemoryKind::Pinned, MemoryKind::Device, MemoryKind::Pinned]);
    any_list_goes_from_the_device_to_the_host:
        any_list_agrees([MemoryKind::Device, MemoryKind::Pinned, MemoryKind::Device]);
    any_list_goes_within_the_device:
        any_list_agrees([MemoryKind::Device, MemoryKind::Device, MemoryKind::Pinned]);
    any_list_goes_into_mapped_memory:
        any_list_agrees([MemoryKind::Pinned, MemoryKind::Vmm, MemoryKind::Device]);
}

/// Each alignment of the source with each of the destination, at lengths around every border.
#[test]
fn every_pair_of_alignments_agrees() {
    let bench = bench();
    let lens = [1, 15, 16, 17, 31, 33, 511, 513, 2047, 2049, 8193];
    let bytes: Vec<u8> = (0..=250).cycle().take(1 << 14).collect();
    let source = bench.alloc(MemoryKind::Pinned, bytes.len());
    bench.put(source.ptr(), &bytes);
    let room = 8448;
    let mut expected = vec![0xEE; room * lens.len() * 16];
    let destination = bench.alloc(MemoryKind::Device, expected.len());
    for shift in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 100, 112, 127] {
        expected.fill(0xEE);
        bench.put(destination.ptr(), &expected);
        let mut list = Vec::new();
        for (number, len) in lens.iter().cycle().take(lens.len() * 16).enumerate() {
            let at = number * room + number / lens.len();
            expected[at..at + len].copy_from_slice(&bytes[shift..shift + len]);
            list.push(Piece::new(
                source.ptr().byte_add(shift as u64),
                destination.ptr().byte_add(at as u64),
                *len as u64,
            ));
        }
        let entries = bench.list(MemoryKind::Pinned, &list);
        let shape = bench.kernel.shape(u32::try_from(list.len()).unwrap(), 8193);
        bench.gather(&entries, list.len(), shape).unwrap();
        let found = bench.take(destination.ptr(), expected.len());
        assert!(found == expected, "source at {shift}");
    }
}

/// The copies of a path: a ring of pinned blocks into places of the device out of order, and back.
#[test]
fn a_batch_of_large_blocks_goes_there_and_back() {
    let bench = bench();
    let (blocks, block) = (128_u64, 1_u64 << 20);
    let total = usize::try_from(blocks * block).unwrap();
    let ring = Pinned::alloc(&bench.context, total).unwrap();
    // SAFETY: the memory is as long, and no one else has its address.
    let memory = unsafe { std::slice::from_raw_parts_mut(ring.as_ptr().as_ptr(), total) };
    pattern::fill(memory, 7, 0);
    let device = bench.alloc(MemoryKind::Device, total);
    let back = bench.alloc(MemoryKind::Pinned, total);
    let piece_len = bench.kernel.piece_len(blocks * block);
    let place = |number: u64| (number * 37 + 5) % blocks * block;
    let (mut there, mut home) = (Vec::new(), Vec::new());
    for number in 0..blocks {
        let from = ring.ptr().byte_add(number * block);
        let on_device = device.ptr().byte_add(place(number));
        there.extend(pieces(from, on_device, block, piece_len));
        let to = back.ptr().byte_add(number * block);
        home.extend(pieces(on_device, to, block, piece_len));
    }
    for list in [&there, &home] {
        let entries = bench.list(MemoryKind::Pinned, list);
        let shape = bench.kernel.shape(u32::try_from(list.len()).unwrap(), piece_len);
        bench.gather(&entries, list.len(), shape).unwrap();
    }
    let last =
        bench.take(device.ptr().byte_add(place(blocks - 1)), usize::try_from(block).unwrap());
    assert_eq!(pattern::check(&last, 7, (blocks - 1) * block), None);
    assert!(bench.take(back.ptr(), total) == *memory);
}

#[test]
fn no_pieces_and_empty_pieces_copy_nothing() {
    let bench = bench();
    let memory = bench.alloc(MemoryKind::Device, 4096);
    bench.put(memory.ptr(), &[3; 4096]);
    let shape = bench.kernel.shape(0, 0);
    assert_eq!((shape.grid, shape.block), (1, 64));
    let none = bench.list(MemoryKind::Pinned, &[]);
    bench.gather(&none, 0, shape).unwrap();
    let empty = [Piece::new(memory.ptr(), memory.ptr().byte_add(77), 0); 5];
    let list = bench.list(MemoryKind::Pinned, &empty);
    bench.gather(&list, 5, shape).unwrap();
    assert_eq!(bench.take(memory.ptr(), 4096), [3; 4096]);
}

#[test]
fn a_wrong_shape_or_list_is_refused_before_the_launch() {
    let bench = bench();
    let list = bench.list(MemoryKind::Pinned, &[Piece::default(); 2]);
    for (grid, block) in [(0, 64), (1, 0), (1, 48), (1, 288), (1, 1024)] {
        let error = bench.gather(&list, 1, Shape { grid, block }).unwrap_err();
        assert_eq!((error.call, error.code), ("cuLaunchKernel", 1));
        let reported = format!("{grid} blocks of {block} threads");
        assert!(error.to_string().contains(&reported), "{error}");
    }
    let shape = bench.kernel.shape(1, 0);
    let odd = list.ptr().byte_add(8);
    // SAFETY: it is refused.
    let error = unsafe { bench.kernel.launch(&bench.stream, odd, 1, shape) }.unwrap_err();
    assert!(error.to_string().contains("multiple of 16"), "{error}");
    bench.gather(&list, 2, shape).unwrap();
}

#[test]
fn a_piece_that_leaves_its_memory_loses_the_device() {
    if skipped("it would lose the device") {
        return;
    }
    child::passes(child_past_the_end, &[]);
    child::passes(child_in_plain_memory, &[]);
}

/// A gather of `len` bytes must end with CUDA_ERROR_ILLEGAL_ADDRESS, for good.
fn loses_the_device(bench: &Bench, src: DevPtr, dst: DevPtr, len: u64) {
    let list = bench.list(MemoryKind::Pinned, &[Piece::new(src, dst, len)]);
    let shape = bench.kernel.shape(1, len);
    let error = bench.gather(&list, 1, shape).unwrap_err();
    assert_eq!(error.code, 700);
    assert!(error.is_sticky());
    assert_eq!(bench.stream.sync().unwrap_err().code, 700);
}

#[test]
#[ignore = "run as a child"]
fn child_past_the_end() {
    let bench = bench();
    let source = bench.alloc(MemoryKind::Pinned, 8192);
    let memory = bench.alloc(MemoryKind::Device, 4096);
    loses_the_device(&bench, source.ptr(), memory.ptr().byte_add(1), 4096);
}

#[test]
#[ignore = "run as a child"]
fn child_in_plain_memory() {
    let bench = bench();
    let plain = bench.alloc(MemoryKind::Malloc, 4096);
    let memory = bench.alloc(MemoryKind::Device, 4096);
    loses_the_device(&bench, plain.ptr(), memory.ptr(), 4096);
}

// ---- the plan of a launch

proptest! {
    #[test]
    fn pieces_cover_a_block_in_order(
        src in 0..1_u64 << 40,
        dst in 0..1_u64 << 40,
        len in 0..300_000_u64,
        piece_max in 0..70_000_u64,
    ) {
        let list: Vec<Piece> = pieces(DevPtr(src), DevPtr(dst), len, piece_max).collect();
        let mut at = 0;
        for piece in &list {
            prop_assert_eq!((piece.src, piece.dst), (src + at, dst + at));
            prop_assert!(piece.len > 0 && piece.len <= piece_max.max(128));
            prop_assert!(at == 0 || piece.dst % 128 == 0);
            at += piece.len;
        }
        prop_assert_eq!(at, len);
        prop_assert!(list.len() as u64 <= most_pieces(len, piece_max));
        // The room asked for is no waste.
        let fewest = len.div_ceil(piece_max.max(128) / 128 * 128);
        prop_assert!(most_pieces(len, piece_max) <= fewest + 1);
    }
}

#[test]
fn aligned_blocks_are_cut_evenly() {
    let cut = pieces(DevPtr(1 << 20), DevPtr(1 << 21), 1 << 20, PIECE_LEN);
    let lens: Vec<u64> = cut.map(|piece| piece.len).collect();
    assert_eq!(lens, [PIECE_LEN; 64]);
    assert_eq!(most_pieces(0, PIECE_LEN), 0);
    assert_eq!(most_pieces(u64::MAX, 128), (1 << 57) + 1);
}

#[test]
fn the_shape_follows_the_pieces() {
    let kernel = bench().kernel;
    for (longest, block) in
        [(0, 64), (4096, 64), (4097, 96), (8192, 128), (PIECE_LEN, 256), (u64::MAX, 256)]
    {
        let few = kernel.shape(3, longest);
        assert_eq!((few.grid, few.block), (3, block), "{longest}");
        let most = kernel.shape(u32::MAX, longest);
        // Whole multiprocessors of 1024 threads, or what of them blocks of this size fill.
        assert!(most.grid.is_multiple_of(1024 / block), "{most:?}");
        assert_eq!(kernel.shape(most.grid, longest), most);
        let modest = kernel.modest_shape(u32::MAX, longest);
        assert_eq!(kernel.modest_shape(3, longest).block, block);
        assert!(modest.grid * block <= 256.max(most.grid * block / 32), "{modest:?}");
    }
}

#[test]
fn small_batches_are_cut_fine_and_large_ones_coarsely() {
    let kernel = bench().kernel;
    assert_eq!(kernel.piece_len(0), 4096);
    assert_eq!(kernel.piece_len(4096), 4096);
    assert_eq!(kernel.piece_len(u64::MAX), 65_536);
    let lens: Vec<u64> = (0..40).map(|bits| kernel.piece_len(1 << bits)).collect();
    assert!(lens.is_sorted());
    assert!(lens.iter().all(|len| len.is_power_of_two()));
}
