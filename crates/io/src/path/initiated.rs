//! `initiated`: the GPU starts the I/O itself. A kernel writes entries into io_uring rings, which
//! threads of the operating system serve; it polls the completions and moves the bytes.
//!
//! The worker names each block in a command and takes its result; it makes no system call for a
//! block and touches none of its bytes. [`gpuio_gpu::initiated`] has the protocol, its limits and
//! what happens when something ends early. Each ring has a thread of the operating system, which
//! takes a processor while there is I/O, and a thread block on the GPU. Slot `n` belongs to ring
//! `n % rings`.
//!
//! **Times.** The file leg is measured by the GPU's clock (`globaltimer`), from the entry's writing
//! until the GPU saw the completion. All other time is the GPU leg's: the command's way to the GPU,
//! the copy between buffer and destination, and the result's way back.
//!
//! **Waiting.** The thread polls results, which lie in host memory. It wakes a ring's thread that
//! sleeps. **Short transfers** are continued by another command for the rest.
//!
//! **Chains** ([`InitiatedSide::chain`]): each ring has one I/O in flight, and the GPU decides by
//! the bytes of one where the next is. Requests in flight are those that the GPU has ready.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use gpuio_base::stat::add_single_writer;
use gpuio_gpu::MemoryKind;
pub use gpuio_gpu::initiated::Chain;
use gpuio_gpu::initiated::{Command, Direction, ENTRIES, MAX_LEN, Outcome, Ring, RingError};

use super::destination::Destination;
use super::progress::Progress;
use super::slot_buffers;
use super::{
    Backend, Completion, Fault, Mismatch, OpenedPath, Path, PathConfig, PathEntry, PathError,
    PathInfo, PatternBlock, Request, Start,
};
use crate::clock::Clock;
use crate::engine::{IoFault, Op};

const NAME: &str = "initiated";
/// Slots begin at whole pages.
const ALIGNMENT: usize = 4096;

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio_name: "INITIATED",
        summary: "the GPU starts the I/O itself: a kernel fills io_uring rings and polls them",
        needs_gpu: true,
        backend: Backend::Rings,
        memory: &[MemoryKind::Device, MemoryKind::Vmm, MemoryKind::Pinned],
        ..PathInfo::PLAIN
    },
    open,
};

/// The counts of one worker's rings. The worker's thread adds, any thread reads, with
/// `Ordering::Relaxed`. Aligned to two cache lines, so that workers do not slow each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct InitiatedCounters {
    /// Entries of the rings that the operating system completed, by its own count there: the GPU
    /// wrote them all.
    pub entries: AtomicU64,
    /// Commands that the worker gave: blocks, and the rest of those that stopped short.
    pub commands: AtomicU64,
}

/// The settings with which a worker's path is opened.
#[derive(Debug, Clone, Default)]
pub struct InitiatedSide {
    /// Rings, 1 to [`PathConfig::slots`]; what is outside is brought inside.
    pub rings: u32,
    /// The blocks of a chain, where the requests are one: all in the first file, each of the
    /// chain's length. A request names a block, and its completion has the one that was read.
    pub chain: Option<Chain>,
    /// Their counts.
    pub counters: Arc<InitiatedCounters>,
}

/// Why this machine has no such rings, if so.
///
/// # Errors
/// The kernel's refusal, with its remedy.
pub fn rings_available() -> Result<(), String> {
    gpuio_gpu::initiated::available().map_err(|error| error.to_string())
}

struct Initiated {
    // Dropped first: the kernels use the destination.
    rings: Vec<Ring>,
    destination: Destination,
    progress: Progress,
    outcomes: Vec<Outcome>,
    counters: Arc<InitiatedCounters>,
}

/// Opened on the worker's thread, which from then on has the GPU's context current.
fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let setup = |what: String| PathError::Setup { path: NAME, what };
    let gpu = slot_buffers::gpu(NAME, &config)?;
    if !gpu.memory.is_reachable_by_kernels() {
        return Err(setup(format!(
            "no kernel reaches {} memory; use --memory device, vmm or pinned, or another path",
            gpu.memory
        )));
    }
    let count = config.initiated.rings.clamp(1, config.slots);
    let entries = config.slots.div_ceil(count);
    if entries > ENTRIES {
        return Err(setup(format!(
            "{} I/Os in flight on {count} rings: a ring has {ENTRIES} entries; raise --rings, or \
             lower --depth",
            config.slots
        )));
    }
    // Makes the context current.
    let destination = Destination::open(NAME, &config, gpu, ALIGNMENT)?;
    let stride = destination.stride() as u64;
    if stride > MAX_LEN {
        return Err(setup(format!("blocks of {stride} bytes: at most {MAX_LEN} work; lower --bs")));
    }
    let files: Vec<i32> = config.files.iter().map(|file| file.fd).collect();
    let ring = |nth: u32| {
        let request = gpuio_gpu::initiated::Request {
            files: &files,
            entries,
            len: stride,
            destination: destination.block(nth, 0),
            stride: stride * u64::from(count),
            chain: config.initiated.chain,
        };
        Ring::new(&gpu.context, &request)
    };
    let rings: Result<Vec<Ring>, RingError> = (0..count).map(ring).collect();
    let rings = rings.map_err(|error| match error {
        RingError::Gpu(source) => PathError::Gpu { path: NAME, source },
        other => setup(other.to_string()),
    })?;
    let (host, device_bytes) = destination.bytes();
    let host_bytes = host + rings.iter().map(Ring::bytes).sum::<u64>();
    let helpers = rings.iter().filter_map(Ring::thread).collect();
    let path = Initiated {
        rings,
        destination,
        progress: Progress::new(config.slots, &config.counters),
        outcomes: Vec::with_capacity(config.slots as usize),
        counters: config.initiated.counters,
    };
    Ok(OpenedPath {
        path: Box::new(path),
        actual_engine: "the GPU, through io_uring".to_owned(),
        steps_down: Vec::new(),
        host_bytes,
        device_bytes,
        helpers,
    })
}

impl Initiated {
    /// A slot's ring, and its entry there.
    fn place(&self, slot: u32) -> (usize, u32) {
        // As many as slots at most.
        let count = u32::try_from(self.rings.len()).unwrap_or(1);
        ((slot % count) as usize, slot / count)
    }

    fn slot(&self, ring: usize, entry: u32) -> u32 {
        let [count, ring] = [self.rings.len(), ring].map(|n| u32::try_from(n).unwrap_or(0));
        entry * count + ring
    }

    /// Gives the rest of a slot's request to the GPU; a refusal ends the request.
    fn command(&mut self, clock: &Clock, slot: u32) {
        let Some((request, done)) = self.progress.of(slot) else { return };
        if request.len == 0 {
            return self.progress.complete(slot, clock.now(), Ok(()));
        }
        // It checks that the block fits its slot.
        self.destination.block(slot, request.len);
        let (ring, entry) = self.place(slot);
        let command = Command {
            entry,
            direction: match request.op {
                Op::Read => Direction::Read,
                Op::Write => Direction::Write,
            },
            file: request.file,
            offset: request.offset + u64::from(done),
            skip: done,
            len: request.len - done,
        };
        // SAFETY: the destination lives as long as the rings, and a slot's part of it is its
        // request's alone until that comes back; the slot's entry has no other command.
        match unsafe { self.rings[ring].submit(&command) } {
            Ok(()) => add_single_writer(&self.counters.commands, 1),
            Err(error) => {
                self.progress.spent(slot, 0);
                self.progress.complete(slot, clock.now(), Err(fault(&error)));
            }
        }
    }

    /// Takes what has ended on all rings.
    fn look(&mut self, clock: &Clock) {
        for ring in 0..self.rings.len() {
            let before = self.rings[ring].completed();
            let mut outcomes = std::mem::take(&mut self.outcomes);
            let taken = self.rings[ring].take(&mut outcomes);
            add_single_writer(&self.counters.entries, self.rings[ring].completed() - before);
            let now = if outcomes.is_empty() { 0 } else { clock.now() };
            for outcome in outcomes.drain(..) {
                let slot = self.slot(ring, outcome.entry);
                if outcome.result.is_ok() {
                    self.progress.spent(slot, outcome.file_ns.into());
                }
                self.progress.found_at(slot, outcome.offset);
                let result = outcome.result.map(|bytes| bytes as usize);
                let result = result.map_err(|code| Fault::File(IoFault::Errno(code)));
                if self.progress.moved(slot, now, result) {
                    self.command(clock, slot);
                }
            }
            self.outcomes = outcomes;
            if let Err(error) = taken {
                self.fail(clock, ring, &error);
            }
        }
    }

    /// Ends all requests of a ring that failed.
    fn fail(&mut self, clock: &Clock, ring: usize, error: &RingError) {
        for entry in 0..ENTRIES {
            let slot = self.slot(ring, entry);
            self.progress.spent(slot, 0);
            self.progress.complete(slot, clock.now(), Err(fault(error)));
        }
    }
}

/// A ring's failure as a request's.
fn fault(error: &RingError) -> Fault {
    match error {
        RingError::Gpu(error) => Fault::Gpu(error.code),
        _ => Fault::File(IoFault::Errno(libc::EIO)),
    }
}

impl Path for Initiated {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        self.progress.take(request);
        self.command(clock, request.slot);
        Start::Taken
    }

    fn advance(
        &mut self,
        clock: &Clock,
        completed: &mut Vec<Completion>,
        wait: bool,
    ) -> Result<(), PathError> {
        self.look(clock);
        while wait && self.progress.requests.none_completed() && self.progress.requests.out() > 0 {
            std::hint::spin_loop();
            self.look(clock);
        }
        self.progress.requests.deliver(completed);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.progress.requests.out()
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
