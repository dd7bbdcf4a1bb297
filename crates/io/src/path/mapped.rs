//! `mapped`: the GPU reads the page cache itself, and writes pages of memory file systems.
//!
//! The files are mapped and page-locked before the clock starts, once for all workers of a job
//! ([`MappedFile`]). A read is then a copy out of the mapping: blocks of [`MAPPED_COPY_BYTES`] and
//! more by the driver, one copy each; shorter ones by a launch of the kernel of `gather` for many
//! of them, with a list of (place in the mapping, destination, length). A write is the same in the
//! other direction. No byte passes memory of gpuio in the host, and no CPU touches one.
//!
//! **Writes** need a mapping that is writable, which the kernel pins for file systems in memory
//! only. They are in the file at once, as long as the page is the file's; a page that the file has
//! lost (truncation, a hole) takes them without a signal. So a read of a writable mapping, mostly
//! to verify it, is an error where its pages may be lost ([`MappedFile::lost_bytes`]), and who
//! closes the mapping looks at all of them.
//!
//! **Groups.** Requests wait until they are [`GpuSide::batch`], or until nothing is in flight; then
//! they go into a stream with one event behind them. A lone block of [`COPIED_BY_DEVICE`] and more
//! is a copy by the driver, which is over sooner than a launch. A shorter one is a launch too: the
//! driver may have the processor read it, which ends the process where the file became shorter.
//!
//! **Waiting.** The thread sleeps until the oldest group is done, where the GPU then still has
//! [`SLEEP_BYTES`] to read: the interrupt takes less time than these. With less it looks at the
//! events all the time, since a late wake-up would leave the GPU idle.
//!
//! **Times.** There is no file leg. All time is the GPU leg's.
//!
//! **View.** It reads pages, not the file: see [`MappedFile`].
//!
//! [`GpuSide::batch`]: super::GpuSide::batch

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use gpuio_base::catalog::MAPPED_COPY_BYTES;
use gpuio_base::stat::add_single_writer;
use gpuio_gpu::{COPIED_BY_DEVICE, DevPtr, GpuError, MappedFile, PieceList, Stream, Wait};

use super::destination::Destination;
use super::launcher::Launcher;
use super::library::MEMORY;
use super::slot_buffers;
use super::stream_queues::{Ended, StreamQueues};
use super::two_legs::Requests;
use super::{
    Backend, Completion, Fault, Mismatch, OpenedPath, Path, PathConfig, PathEntry, PathError,
    PathInfo, PatternBlock, Request, Start,
};
use crate::clock::Clock;
use crate::engine::monitor::LegCounters;
use crate::engine::{IoFault, Op};

const NAME: &str = "mapped";
/// Slots begin at whole pages.
const ALIGNMENT: usize = 4096;
/// Bytes in flight behind the oldest group from which on the thread sleeps for that: the fastest
/// links (64 GB/s) take 65 us for them, longer than a thread takes to wake.
const SLEEP_BYTES: u64 = 4 << 20;

/// Looks at the events in one wait that does not sleep, between two looks at the time.
const LOOKS: u32 = 64;

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio_name: "MAPPED",
        summary: "the GPU reads the page cache itself: files mapped and page-locked before; \
                  writes on memory file systems (tmpfs)",
        needs_gpu: true,
        buffered_only: true,
        backend: Backend::Mapping,
        batches: true,
        streams: true,
        memory: MEMORY,
        ..PathInfo::PLAIN
    },
    open,
};

/// The counts of one worker's reads and writes by the GPU. The worker's thread adds, any thread
/// reads, with `Ordering::Relaxed`. Aligned to two cache lines, so that workers do not slow each
/// other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct MappedCounters {
    /// Out of mappings.
    pub read: MappedBytes,
    /// Into them.
    pub write: MappedBytes,
}

impl MappedCounters {
    /// Those of a direction.
    pub fn of(&self, op: Op) -> &MappedBytes {
        match op {
            Op::Read => &self.read,
            Op::Write => &self.write,
        }
    }
}

/// Bytes of one direction, by how.
#[derive(Debug, Default)]
pub struct MappedBytes {
    /// Bytes by the kernel.
    pub by_kernel: AtomicU64,
    /// Bytes by copies of the driver.
    pub by_copy: AtomicU64,
}

/// This process's page table, for [`MappedFile::lost_bytes`].
///
/// # Errors
/// There is no `/proc` (proc(5)), or it can't be read.
pub fn page_table() -> io::Result<File> {
    File::open("/proc/self/pagemap")
}

/// A mapping as this worker's GPU sees it.
struct Source {
    file: Arc<MappedFile>,
    seen: DevPtr,
}

impl Source {
    /// Where a request's bytes begin, in bytes from the beginning of the mapping; nothing where
    /// they are not in it.
    fn place(&self, request: &Request) -> Option<u64> {
        let part = self.file.part();
        let end = request.offset.checked_add(u64::from(request.len))?;
        (part.start <= request.offset && end <= part.end).then(|| request.offset - part.start)
    }
}

/// One block on its way between the mapping and its slot.
#[derive(Clone, Copy)]
struct Block {
    op: Op,
    /// The first byte in the mapping as the host names it, for the driver.
    host: *const u8,
    /// The same as kernels see it.
    seen: DevPtr,
    slot: DevPtr,
    len: u32,
}

impl Block {
    fn is_copied(&self) -> bool {
        u64::from(self.len) >= MAPPED_COPY_BYTES
    }
}

/// I/Os and bytes of one direction of a group.
#[derive(Default)]
struct Sum {
    ios: u64,
    bytes: u64,
    /// Those of them in [`Group::copies`].
    copied: u64,
}

/// Requests that go to the GPU together.
struct Group {
    slots: Vec<u32>,
    /// The first request's block, in case it stays alone.
    first: Option<Block>,
    /// Blocks that get a copy by the driver each.
    copies: Vec<Block>,
    /// The other blocks, written as they come.
    list: PieceList,
    /// One of reads, one of writes, in the order of [`OPS`].
    sums: [Sum; 2],
}

const OPS: [Op; 2] = [Op::Read, Op::Write];

impl Group {
    fn with_room(full: u32, list: PieceList) -> Group {
        let (slots, copies) = (Vec::with_capacity(full as usize), Vec::new());
        Group { slots, first: None, copies, list, sums: <[Sum; 2]>::default() }
    }

    /// Adds a request. The list's pieces have at most `piece_max` bytes.
    fn push(&mut self, slot: u32, block: Block, piece_max: u64) {
        self.slots.push(slot);
        self.first.get_or_insert(block);
        let len = u64::from(block.len);
        let sum = &mut self.sums[usize::from(block.op == Op::Write)];
        sum.ios += 1;
        sum.bytes += len;
        if block.is_copied() {
            sum.copied += len;
            self.copies.push(block);
            return;
        }
        let (from, to) = match block.op {
            Op::Read => (block.seen, block.slot),
            Op::Write => (block.slot, block.seen),
        };
        self.list.push(from, to, len, piece_max);
    }

    fn bytes(&self) -> u64 {
        self.sums.iter().map(|sum| sum.bytes).sum()
    }

    /// Makes a copy of a block that stayed alone, if the device reads it.
    fn copy_if_alone(&mut self) {
        if let (1, Some(block)) = (self.slots.len(), self.first)
            && self.copies.is_empty()
            && block.len as usize >= COPIED_BY_DEVICE
        {
            self.list.clear();
            self.copies.push(block);
            self.sums.iter_mut().for_each(|sum| sum.copied = sum.bytes);
        }
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.copies.clear();
        self.first = None;
        self.list.clear();
        self.sums = <[Sum; 2]>::default();
    }

    /// Puts the blocks into the stream. The list's longest piece has `longest` bytes.
    ///
    /// # Errors
    /// The driver's refusal; what is in flight then is for the caller to wait for.
    ///
    /// # Safety
    /// The mappings that the blocks are in, their slots and the list live until the stream has
    /// passed the group; until then the host accesses no mapping, and nothing else uses the slots
    /// and the list.
    unsafe fn put(
        &self,
        stream: &Stream,
        launcher: &Launcher,
        longest: u64,
    ) -> Result<(), GpuError> {
        for block in &self.copies {
            let (host, slot, len) = (block.host, block.slot, block.len as usize);
            match block.op {
                // SAFETY: the caller's promise. Writes of others into the file meanwhile may show,
                // as they may in any read of it.
                Op::Read => unsafe { stream.h2d(slot, host, len) }?,
                // SAFETY: the caller's promise; the mapping is writable (`Mapped::block`).
                Op::Write => unsafe { stream.d2h(host.cast_mut(), slot, len) }?,
            }
        }
        if self.list.count() == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise. Mappings are whole pages, so that the rest of a word in
        // which a block begins or ends is live too.
        unsafe { launcher.launch_list(stream, &self.list, longest) }
    }
}

struct Mapped {
    // Drop order: the streams are waited for before anything goes that the GPU reads or writes.
    queues: StreamQueues,
    launcher: Launcher,
    /// Blocks in lists are cut into pieces of at most so many bytes.
    piece_max: u64,
    /// The longest piece that there can be.
    longest: u64,
    destination: Destination,
    sources: Vec<Source>,
    /// Absent where no mapping is writable, or it can't be read.
    page_table: Option<File>,
    requests: Requests,
    /// By number; the number is also that of the group's list and event.
    groups: Vec<Group>,
    /// The group that requests join.
    open: u32,
    /// Groups that are neither open nor in flight.
    idle: Vec<u32>,
    full: usize,
    /// The stream of the next group.
    next: usize,
    /// Groups in flight, oldest first: the stream and the bytes of each.
    order: VecDeque<(usize, u64)>,
    /// Bytes of all groups in flight.
    in_flight: u64,
    /// Groups that are over and whose requests have not completed yet.
    ended: Vec<Ended>,
    legs: Arc<LegCounters>,
    counters: Arc<MappedCounters>,
}

/// Opened on the worker's thread, which from then on has the GPU's context current.
fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let setup = |what: &str| PathError::Setup { path: NAME, what: what.to_owned() };
    let gpu = slot_buffers::gpu(NAME, &config)?;
    if config.direct {
        return Err(setup(
            "this path reads the page cache and can't be --direct; use --path staged",
        ));
    }
    if config.mappings.len() != config.files.len() {
        return Err(setup("its files were not mapped before, which is a bug in gpuio"));
    }
    let driver = |source| PathError::Gpu { path: NAME, source };
    // Makes the context current.
    let destination = Destination::open(NAME, &config, gpu, ALIGNMENT)?;
    let source = |file: &Arc<MappedFile>| {
        let seen = file.seen_by(&gpu.context)?;
        Ok(Source { file: Arc::clone(file), seen })
    };
    let sources = config.mappings.iter().map(source).collect::<Result<_, _>>().map_err(driver)?;
    let writable = config.mappings.iter().any(|file| file.is_writable());
    let full = gpu.batch.clamp(1, config.slots);
    // Full groups hold all slots at most; in addition there are the open one and one that went
    // before it was full, which happens only while no other is in flight.
    let count = config.slots / full + 2;
    let longest = u64::from(config.block_max).min(MAPPED_COPY_BYTES);
    let launcher = Launcher::new(&gpu.context, (count, full), longest).map_err(driver)?;
    let queues = StreamQueues::waited_for(&gpu.context, gpu.streams, count, Wait::Block);
    let (host, device_bytes) = destination.bytes();
    let host_bytes = host + launcher.bytes();
    // A group that goes before it is full is cut as coarsely as a full one.
    let piece_max = launcher.piece_max(longest * u64::from(full));
    let groups = (0..count).map(|nth| Group::with_room(full, launcher.list(nth))).collect();
    let path = Mapped {
        queues: queues.map_err(driver)?,
        groups,
        launcher,
        piece_max,
        longest: longest.min(piece_max),
        destination,
        page_table: writable.then(page_table).and_then(Result::ok),
        sources,
        requests: Requests::new(config.slots),
        open: 0,
        idle: (1..count).rev().collect(),
        full: full as usize,
        next: 0,
        order: VecDeque::with_capacity(count as usize),
        in_flight: 0,
        ended: Vec::with_capacity(count as usize),
        legs: config.counters,
        counters: config.mapped,
    };
    Ok(OpenedPath {
        path: Box::new(path),
        actual_engine: "the GPU, from the page cache".to_owned(),
        steps_down: Vec::new(),
        host_bytes,
        device_bytes,
        helpers: Vec::new(),
    })
}

impl Mapped {
    /// A request's block; why there is none.
    fn block(&self, request: &Request) -> Result<Block, IoFault> {
        let source = self.sources.get(request.file as usize).ok_or(IoFault::Errno(libc::EBADF))?;
        let writable = source.file.is_writable();
        if request.op == Op::Write && !writable {
            return Err(IoFault::Errno(libc::EBADF));
        }
        let place = source.place(request).ok_or(IoFault::Errno(libc::EINVAL))?;
        let part = request.offset..request.offset + u64::from(request.len);
        let table = self.page_table.as_ref();
        let lost = || table.and_then(|table| source.file.lost_bytes(table, part).ok());
        if request.op == Op::Read && writable && lost() != Some(0) {
            return Err(IoFault::Errno(libc::ESTALE));
        }
        // Inside a mapping, so that it fits an address.
        let at = usize::try_from(place).map_err(|_| IoFault::Errno(libc::EINVAL))?;
        Ok(Block {
            op: request.op,
            host: source.file.as_ptr().wrapping_add(at),
            seen: source.seen.byte_add(place),
            slot: self.destination.block(request.slot, request.len),
            len: request.len,
        })
    }

    fn has_open(&self) -> bool {
        !self.groups[self.open as usize].slots.is_empty()
    }

    /// Gives the open group to the GPU.
    fn launch(&mut self, clock: &Clock) {
        let (number, at) = (self.open, self.next);
        self.next = (at + 1) % self.queues.count();
        let group = &mut self.groups[number as usize];
        group.copy_if_alone();
        // SAFETY: slots are their requests' alone until these come back, the list is the group's
        // until its event is reached, the host accesses no mapping, and all of it is dropped after
        // the streams were waited for.
        let enqueued = unsafe { group.put(self.queues.stream(at), &self.launcher, self.longest) };
        let (bytes, before) = (group.bytes(), self.ended.len());
        self.order.push_back((at, bytes));
        self.in_flight += bytes;
        self.queues.record(at, number, enqueued, &mut self.ended);
        // The refused launch is over, and so are those before it in the stream.
        for _ in before..self.ended.len() {
            self.left(at);
        }
        self.open = self.next_open(clock);
    }

    /// A group to be filled while others are in flight.
    fn next_open(&mut self, clock: &Clock) -> u32 {
        loop {
            if let Some(number) = self.idle.pop() {
                return number;
            }
            // There are more groups than can be out (see `open`), so one is idle; if ever none
            // were, the oldest would be the next to be.
            self.wait_for_oldest();
            self.settle(clock);
        }
    }

    /// The oldest group of a stream is over.
    fn left(&mut self, at: usize) {
        let nth = self.order.iter().position(|(stream, _)| *stream == at);
        let gone = nth.and_then(|nth| self.order.remove(nth));
        self.in_flight -= gone.map_or(0, |(_, bytes)| bytes);
    }

    fn poll(&mut self) {
        for at in 0..self.queues.count() {
            while let Some(one) = self.queues.poll_stream(at) {
                self.ended.push(one);
                self.left(at);
            }
        }
    }

    /// Sleeps until the oldest group is over.
    fn wait_for_oldest(&mut self) {
        let Some(&(at, _)) = self.order.front() else { return };
        if let Some(one) = self.queues.oldest(at) {
            self.ended.push(one);
            self.left(at);
        }
    }

    /// Completes the requests of groups that are over.
    fn settle(&mut self, clock: &Clock) {
        if self.ended.is_empty() {
            return;
        }
        let now = clock.now();
        let mut ended = std::mem::take(&mut self.ended);
        for (number, result) in ended.drain(..) {
            let group = &mut self.groups[number as usize];
            for (op, sum) in OPS.into_iter().zip(&group.sums).filter(|(_, sum)| sum.ios > 0) {
                let (legs, counters) = (self.legs.of(op), self.counters.of(op));
                if result.is_err() {
                    add_single_writer(&legs.faults, sum.ios);
                    continue;
                }
                add_single_writer(&legs.ios, sum.ios);
                add_single_writer(&legs.bytes, sum.bytes);
                add_single_writer(&counters.by_copy, sum.copied);
                add_single_writer(&counters.by_kernel, sum.bytes - sum.copied);
            }
            let result = result.map_err(|error| Fault::Gpu(error.code));
            for &slot in &group.slots {
                self.requests.complete_legs(slot, now, result, Some(0));
            }
            group.clear();
            self.idle.push(number);
        }
        self.ended = ended;
    }

    /// Waits until a group is over.
    fn wait(&mut self) {
        let behind = self.order.front().map_or(0, |(_, bytes)| self.in_flight - bytes);
        if behind >= SLEEP_BYTES {
            return self.wait_for_oldest();
        }
        for _ in 0..LOOKS {
            self.poll();
            if !self.ended.is_empty() {
                return;
            }
            std::hint::spin_loop();
        }
        std::thread::yield_now();
    }

    /// Moves requests on until one has completed; without `wait`, as far as they are.
    fn drive(&mut self, clock: &Clock, wait: bool) {
        loop {
            self.poll();
            self.settle(clock);
            if self.requests.none_completed() && self.queues.none_in_flight() && self.has_open() {
                // Blocks that wait for company wait for nothing else.
                self.launch(clock);
                self.settle(clock);
            }
            let nothing_left = self.queues.none_in_flight() && !self.has_open();
            if !wait || !self.requests.none_completed() || nothing_left {
                return;
            }
            self.wait();
            self.settle(clock);
        }
    }
}

impl Path for Mapped {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        self.requests.take(request);
        match self.block(&request) {
            Ok(block) => {
                let group = &mut self.groups[self.open as usize];
                group.push(request.slot, block, self.piece_max);
                if group.slots.len() >= self.full {
                    self.launch(clock);
                }
            }
            Err(fault) => {
                add_single_writer(&self.legs.of(request.op).faults, 1);
                let fault = Err(Fault::File(fault));
                self.requests.complete_legs(request.slot, clock.now(), fault, Some(0));
            }
        }
        Start::Taken
    }

    fn advance(
        &mut self,
        clock: &Clock,
        completed: &mut Vec<Completion>,
        wait: bool,
    ) -> Result<(), PathError> {
        self.drive(clock, wait);
        self.requests.deliver(completed);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.requests.out()
    }

    fn generate(&mut self, block: PatternBlock) -> Result<(), PathError> {
        self.destination.generate(block)
    }

    fn check(&mut self, block: PatternBlock) -> Result<Option<Mismatch>, PathError> {
        self.destination.check(block)
    }

    fn copy_out(&mut self, slot: u32, into: &mut [u8]) -> Result<(), PathError> {
        self.destination.copy_out(slot, into)
    }
}
