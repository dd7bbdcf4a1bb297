//! Blocks between a pinned ring and device memory, by three means and with no file read: one gather
//! launch for a batch, one driver copy for each block, and one driver copy for the whole batch,
//! which is what the link can do.
//!
//! `gather_speed [--gpu system|software] [--device N] [--memory MIB] [--millis N]`: a table on
//! standard output, in about a minute. `--memory` bounds the pinned memory, and as much of the
//! device (default 2048; software 64); rows that need more are left out. `--millis` is the time
//! for each cell (default 100; software 30). Each thread has a stream and keeps two batches in it,
//! and the gather's time holds the making of its list.
#![allow(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program whose output is its result")]

use std::error::Error;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use gpuio_gpu::{
    Context, DevPtr, DeviceBuf, Driver, Event, GatherKernel, GpuError, MemoryKind, Piece, Pinned,
    Stream, Wait, Which, most_pieces, pattern, pieces,
};

type Answer<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Batches that a stream holds at once: the next is queued while one runs.
const AHEAD: usize = 2;

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    ToDevice,
    ToHost,
}

#[derive(Clone, Copy, PartialEq)]
enum Means {
    Gather,
    Copies,
    Whole,
}

/// One row of the table.
#[derive(Clone, Copy)]
struct Row {
    direction: Direction,
    block: u64,
    blocks: u64,
    threads: u64,
}

impl Row {
    fn batch(self) -> u64 {
        self.block * self.blocks
    }
}

/// The shared state of all threads.
struct Setup {
    context: Context,
    kernel: GatherKernel,
    ring: Pinned,
    device: DeviceBuf,
    millis: u64,
}

/// The state of one thread: its part of the ring and its twin on the device.
struct Worker<'a> {
    setup: &'a Setup,
    row: Row,
    means: Means,
    stream: Stream,
    from: DevPtr,
    to: DevPtr,
    lists: Option<Pinned>,
    room: u64,
    piece_len: u64,
    marks: Vec<Event>,
}

impl<'a> Worker<'a> {
    fn new(setup: &'a Setup, row: Row, means: Means, thread: u64) -> Answer<Self> {
        setup.context.make_current()?;
        let at = thread * row.batch();
        let ends = [setup.ring.ptr().byte_add(at), setup.device.ptr().byte_add(at)];
        let [from, to] = match row.direction {
            Direction::ToDevice => ends,
            Direction::ToHost => [ends[1], ends[0]],
        };
        let piece_len = setup.kernel.piece_len(row.batch());
        let room = most_pieces(row.block, piece_len) * row.blocks * size_of::<Piece>() as u64;
        let lists = match means {
            Means::Gather => Some(Pinned::alloc(&setup.context, usize::try_from(room)? * AHEAD)?),
            Means::Copies | Means::Whole => None,
        };
        let marks = (0..AHEAD).map(|_| Event::new(&setup.context, Wait::Spin));
        Ok(Self {
            setup,
            row,
            means,
            stream: Stream::new(&setup.context)?,
            from,
            to,
            lists,
            room,
            piece_len,
            marks: marks.collect::<Result<_, _>>()?,
        })
    }

    /// The destination of a block: the batch is placed in reverse order, except as a whole.
    fn place(&self, number: u64) -> DevPtr {
        let place = self.row.blocks - 1 - number;
        self.to.byte_add(place * self.row.block)
    }

    /// Puts one batch into the stream, with its mark behind it.
    fn put(&self, turn: usize) -> Answer<()> {
        let row = self.row;
        match (self.means, &self.lists) {
            (Means::Gather, Some(lists)) => self.gather(lists, turn)?,
            (Means::Whole, _) => self.copy(self.to, self.from, row.batch())?,
            _ => {
                for number in 0..row.blocks {
                    let from = self.from.byte_add(number * row.block);
                    self.copy(self.place(number), from, row.block)?;
                }
            }
        }
        self.marks[turn].record(&self.stream)?;
        Ok(())
    }

    fn gather(&self, lists: &Pinned, turn: usize) -> Answer<()> {
        let row = self.row;
        let start = self.room * turn as u64;
        let skip = usize::try_from(start)?;
        // SAFETY: the turn's list lies within the memory, which has room for AHEAD of them.
        let list = unsafe { lists.as_ptr().add(skip) }.cast::<Piece>();
        let mut count = 0;
        for number in 0..row.blocks {
            let from = self.from.byte_add(number * row.block);
            for piece in pieces(from, self.place(number), row.block, self.piece_len) {
                // SAFETY: no more pieces than the room was computed for.
                let entry = unsafe { list.add(count) };
                // SAFETY: pinned memory of this thread; the launch that read it before has passed.
                unsafe { entry.write(piece) };
                count += 1;
            }
        }
        let count = u32::try_from(count)?;
        let longest = self.piece_len.min(row.block);
        let shape = self.setup.kernel.shape(count, longest);
        let list = lists.ptr().byte_add(start);
        // SAFETY: the list stays as it is until its mark is reached, and ring and twin are this
        // thread's part; blocks do not overlap.
        unsafe {
            self.setup.kernel.launch(&self.stream, list, count, shape)?;
        }
        Ok(())
    }

    fn copy(&self, to: DevPtr, from: DevPtr, len: u64) -> Answer<()> {
        let len = usize::try_from(len)?;
        let done = match self.row.direction {
            // SAFETY: this thread's part of ring and twin, which outlive the stream's work.
            Direction::ToDevice => unsafe { self.stream.h2d(to, from.0 as *const u8, len) },
            // SAFETY: as above.
            Direction::ToHost => unsafe { self.stream.d2h(to.0 as *mut u8, from, len) },
        };
        Ok(done?)
    }

    /// Batches until the time is over, and the time they took.
    fn run(&self, start: &Barrier) -> Answer<(u64, Duration)> {
        // The first use of a stream and of memory costs more: outside the clock.
        let warm = self.put(0).and_then(|()| Ok(self.marks[0].sync()?));
        start.wait();
        warm?;
        let began = Instant::now();
        let limit = Duration::from_millis(self.setup.millis);
        let mut batches = 0;
        for turn in (0..AHEAD).cycle() {
            if batches >= AHEAD as u64 {
                self.marks[turn].sync()?;
            }
            if began.elapsed() >= limit {
                break;
            }
            self.put(turn)?;
            batches += 1;
        }
        self.stream.sync()?;
        Ok((batches, began.elapsed()))
    }
}

/// Blocks a second, all threads together.
fn measure(setup: &Setup, row: Row, means: Means) -> Answer<f64> {
    let start = Barrier::new(usize::try_from(row.threads)?);
    let one = |thread| {
        let worker = Worker::new(setup, row, means, thread).inspect_err(|_| {
            // The others are not to wait for this thread.
            start.wait();
        })?;
        let (batches, time) = worker.run(&start)?;
        #[expect(clippy::cast_precision_loss, reason = "a count below 2^53")]
        let blocks = (batches * row.blocks) as f64;
        Ok(blocks / time.as_secs_f64())
    };
    let one = &one;
    let rates: Vec<Answer<f64>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..row.threads).map(|thread| scope.spawn(move || one(thread))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Answer<f64>>| {
            let joined = thread.join();
            joined.unwrap_or_else(|_| Err("a thread of the measurement panicked".into()))
        };
        threads.into_iter().map(join).collect()
    });
    rates.into_iter().sum()
}

/// Gathers one batch of 8 blocks of 64 KiB and back, and compares: a rate of wrong bytes is none.
fn verify(setup: &Setup) -> Answer<()> {
    let mut row = Row { direction: Direction::ToDevice, block: 64 << 10, blocks: 8, threads: 1 };
    let len = usize::try_from(row.batch())?;
    // SAFETY: the ring is at least as long, no copy is under way and no other thread runs.
    let bytes = unsafe { std::slice::from_raw_parts_mut(setup.ring.as_ptr().as_ptr(), len) };
    pattern::fill(bytes, 1, 0);
    // Reversed there and reversed back gives what was.
    for direction in [Direction::ToDevice, Direction::ToHost] {
        row.direction = direction;
        let worker = Worker::new(setup, row, Means::Gather, 0)?;
        worker.put(0)?;
        worker.stream.sync()?;
        if direction == Direction::ToDevice {
            // SAFETY: as above; the launch has passed.
            unsafe { setup.ring.as_ptr().write_bytes(0, len) };
        }
    }
    // SAFETY: as above.
    let bytes = unsafe { std::slice::from_raw_parts(setup.ring.as_ptr().as_ptr(), len) };
    match pattern::check(bytes, 1, 0) {
        None => Ok(()),
        Some(mismatch) => Err(format!("the gather copied wrong bytes: {mismatch:?}").into()),
    }
}

fn print_row(setup: &Setup, row: Row, rates: [f64; 3]) {
    let piece_len = setup.kernel.piece_len(row.batch());
    let count = row.block.div_ceil(piece_len) * row.blocks;
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let shape = setup.kernel.shape(count, piece_len.min(row.block));
    let direction = match row.direction {
        Direction::ToDevice => "to device",
        Direction::ToHost => "to host",
    };
    #[expect(clippy::cast_precision_loss, reason = "at most 1 MiB")]
    let gib = |rate: f64| rate * row.block as f64 / f64::from(1 << 30);
    print!(
        "{direction:9} {:>5}K {:>6} {:>7} {:>8} {:>9}",
        row.block >> 10,
        row.blocks,
        row.threads,
        piece_len.min(row.block),
        format!("{}x{}", shape.grid, shape.block),
    );
    for rate in rates {
        print!(" {:>8.2} {:>10.0}", gib(rate), rate);
    }
    println!(" {:>6.2}", rates[0] / rates[1]);
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for direction in [Direction::ToDevice, Direction::ToHost] {
        for block in [4 << 10, 16 << 10, 64 << 10, 1 << 20] {
            for blocks in [8, 32, 128, 512] {
                for threads in [1, 4, 16] {
                    rows.push(Row { direction, block, blocks, threads });
                }
            }
        }
    }
    rows
}

struct Options {
    which: Which,
    device: u32,
    memory: Option<u64>,
    millis: Option<u64>,
}

fn options() -> Answer<Options> {
    let mut options = Options { which: Which::System, device: 0, memory: None, millis: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        match (name.as_str(), value.as_str()) {
            ("--gpu", "system") => options.which = Which::System,
            ("--gpu", "software") => options.which = Which::Software,
            ("--device", number) => options.device = number.parse()?,
            ("--memory", mib) => options.memory = Some(mib.parse::<u64>()?.clamp(1, 1 << 20)),
            ("--millis", number) => options.millis = Some(number.parse()?),
            _ => return Err(format!("{name} {value}: see the head of this program").into()),
        }
    }
    Ok(options)
}

fn setup(options: &Options) -> Answer<Setup> {
    let driver = Driver::load(&options.which).map_err(|absent| absent.to_string())?;
    let context = Context::new(&driver, options.device)?;
    context.make_current()?;
    let software = driver.is_software();
    let memory = options.memory.unwrap_or(if software { 64 } else { 2048 }) << 20;
    let len = usize::try_from(memory)?;
    let found: Result<_, GpuError> = driver.devices();
    for facts in found?.iter().filter(|facts| facts.index == options.device) {
        println!(
            "{}, {} multiprocessors{}",
            facts.name,
            facts.multiprocessors,
            if software { ": the rates say nothing about hardware" } else { "" }
        );
    }
    Ok(Setup {
        kernel: GatherKernel::load(&context)?,
        ring: Pinned::alloc(&context, len)?,
        device: DeviceBuf::alloc(&context, MemoryKind::Device, len)?,
        millis: options.millis.unwrap_or(if software { 30 } else { 100 }),
        context,
    })
}

fn main() -> Answer<()> {
    let setup = setup(&options()?)?;
    verify(&setup)?;
    println!("{:48} {:>19} {:>19} {:>19}", "", "one gather", "a copy a block", "one copy");
    println!(
        "{:9} {:>6} {:>6} {:>7} {:>8} {:>9} {:>8} {:>10} {:>8} {:>10} {:>8} {:>10} {:>6}",
        "direction",
        "block",
        "blocks",
        "threads",
        "piece",
        "shape",
        "GiB/s",
        "blocks/s",
        "GiB/s",
        "blocks/s",
        "GiB/s",
        "blocks/s",
        "gain"
    );
    let memory = setup.ring.len() as u64;
    let (fitting, left): (Vec<Row>, Vec<Row>) =
        rows().into_iter().partition(|row| row.batch() * row.threads <= memory);
    for row in fitting {
        let mut rates = [0.0; 3];
        for (rate, means) in rates.iter_mut().zip([Means::Gather, Means::Copies, Means::Whole]) {
            *rate = measure(&setup, row, means)?;
        }
        print_row(&setup, row, rates);
    }
    println!("gain: one gather over a copy a block; {} rows need more memory", left.len());
    Ok(())
}
