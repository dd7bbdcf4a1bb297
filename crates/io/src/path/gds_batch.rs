//! `gds-batch`: cuFile's batches. gdsio's `-x 6`.
//!
//! `cuFileBatchIOSubmit` takes [`GpuSide::batch`] requests at once, and `cuFileBatchIOGetStatus`
//! reports each when it has ended, in any order. A handle of the library's is submitted again when
//! all of its last batch has ended; with more slots than a batch takes there are several handles.
//! Requests that find none wait, and their latency counts it. A batch that is not full goes when
//! nothing else is in flight.
//!
//! [`GpuSide::batch`]: super::GpuSide::batch

use std::time::Duration;

use gpuio_drivers::cufile::{Batch, Completion};
use gpuio_gpu::MemoryKind;

use super::destination::Destination;
use super::gds::buffers::{GdsBuffers, fault, setup, sides};
use super::grouped::{self, Groups, Queue};
use super::{
    Backend, Calls, Fault, OpenedPath, PathConfig, PathEntry, PathError, PathInfo, cufile_words,
};
use crate::clock::Clock;

const NAME: &str = "gds-batch";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: Some(6),
        gdsio_name: "GPU_BATCH",
        summary: "cuFile's batches: many blocks in one submit, each with an event of its own",
        needs_gpu: true,
        backend: Backend::Cufile(Calls::Batch),
        batches: true,
        // On host memory, batches of release 1.15 fail or end the process
        // (docs/lab-book/right-bytes.md).
        memory: &[MemoryKind::Device, MemoryKind::Vmm],
        ..PathInfo::PLAIN
    },
    open,
};

/// After a submit that was refused: nothing more comes of it when nothing has come for this long.
const QUIET: Duration = Duration::from_millis(100);

/// A handle of the library's and the slots of its last submit that have not ended.
struct Submit {
    batch: Batch,
    slots: Vec<u32>,
}

struct Batches {
    submits: Vec<Submit>,
    ended: Vec<Completion>,
}

fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let buffers = GdsBuffers::open(NAME, &config)?;
    let (gpu, cufile) = sides(NAME, &config)?;
    let full = gpu.batch.clamp(1, config.slots);
    let block = config.block_max as usize;
    let submit = |number: u32| {
        // The last handle takes what is left, so that no unusable buffer is counted.
        let capacity = full.min(config.slots - number * full);
        let batch = Batch::set_up(&cufile.driver, capacity, block);
        let batch = batch.map_err(|error| setup(NAME, error.to_string()))?;
        Ok(Submit { batch, slots: Vec::with_capacity(full as usize) })
    };
    let submits = (0..config.slots.div_ceil(full)).map(submit);
    let submits = submits.collect::<Result<Vec<Submit>, PathError>>()?;
    let batches = Batches { submits, ended: Vec::with_capacity(full as usize) };
    let open_info = buffers.open_info(&cufile.driver);
    let limits = (full, cufile.stall_timeout);
    Ok(open_info.of(grouped::assemble(NAME, &config, limits, buffers, batches)))
}

fn broken(what: String) -> PathError {
    PathError::Broken { path: NAME, what }
}

impl Batches {
    fn under_way(&self) -> usize {
        self.submits.iter().filter(|submit| submit.batch.in_flight() > 0).count()
    }

    /// A submit failed: what is in flight of it all the same ends, the rest fails with the code.
    fn refused(&mut self, queue: &mut Queue<GdsBuffers>, clock: &Clock, number: usize, code: i32) {
        let mut ended = std::mem::take(&mut self.ended);
        let renewed = self.submits[number].batch.renew(QUIET, &mut ended);
        self.report(queue, clock, number, &mut ended);
        self.ended = ended;
        for slot in std::mem::take(&mut self.submits[number].slots) {
            queue.progress.complete(slot, clock.now(), Err(Fault::Cufile(code)));
        }
        if let Err(error) = renewed {
            queue.broken = Some(broken(format!(
                "after a submit that was refused ({}) no other batch could be set up: {error}",
                cufile_words(code)
            )));
        }
    }

    /// Takes what the library says has ended of a batch: each request once.
    fn report(
        &mut self,
        queue: &mut Queue<GdsBuffers>,
        clock: &Clock,
        number: usize,
        ended: &mut Vec<Completion>,
    ) {
        if ended.is_empty() {
            return;
        }
        let now = clock.now();
        queue.stall.broken();
        for (cookie, result) in ended.drain(..) {
            let slots = &mut self.submits[number].slots;
            let at = slots.iter().position(|&slot| u64::from(slot) + 1 == cookie);
            let Some(at) = at else {
                queue.broken = Some(broken(format!(
                    "cuFile reported an I/O (cookie {cookie:#x}) that is not in flight, or one \
                     twice: its batches can't be counted"
                )));
                // One of the others may be in flight though the library no longer says so.
                queue.stuck = true;
                continue;
            };
            let slot = slots.swap_remove(at);
            if queue.progress.moved(slot, now, result.map_err(fault)) {
                queue.open.push(slot);
            }
        }
    }

    /// Asks one batch for what has ended, waiting as [`Batch::reap`] does.
    fn reap(
        &mut self,
        queue: &mut Queue<GdsBuffers>,
        clock: &Clock,
        number: usize,
        (least, timeout): (usize, Duration),
    ) {
        let mut ended = std::mem::take(&mut self.ended);
        let reaped = self.submits[number].batch.reap(least, timeout, &mut ended);
        self.report(queue, clock, number, &mut ended);
        self.ended = ended;
        if let Err(code) = reaped {
            let words = cufile_words(code);
            queue.broken = Some(broken(format!("cuFileBatchIOGetStatus: {words}")));
            queue.stuck = true;
        }
    }
}

impl Groups for Batches {
    type Buffers = GdsBuffers;

    fn submit(&mut self, queue: &mut Queue<GdsBuffers>, clock: &Clock) -> bool {
        let idle = self.submits.iter().position(|submit| submit.batch.in_flight() == 0);
        let Some(number) = idle else {
            return false;
        };
        let Submit { batch, slots } = &mut self.submits[number];
        let Queue { buffers, progress, open, .. } = queue;
        let count = open.len().min(batch.capacity());
        for slot in open.drain(..count) {
            let Some((request, done)) = progress.of(slot) else { continue };
            let (range, handle) = (buffers.rest(&request, done), buffers.handle(&request));
            // A cookie of 0 would be a null pointer to the library.
            match batch.push(request.op, handle, range, u64::from(slot) + 1) {
                Ok(()) => slots.push(slot),
                Err(error) => progress.complete(slot, clock.now(), Err(fault(error))),
            }
        }
        if batch.pushed() == 0 {
            return true;
        }
        // SAFETY: each slot's part of the destination is its request's alone until it completes,
        // what filled it was waited for, and handles and memory live until the batches are gone.
        let submitted = unsafe { batch.submit() };
        if let Err(code) = submitted {
            self.refused(queue, clock, number, code);
        }
        true
    }

    fn is_idle(&self) -> bool {
        self.under_way() == 0
    }

    /// Asks all batches that are in flight; one alone is waited for in the library.
    fn look(&mut self, queue: &mut Queue<GdsBuffers>, clock: &Clock, wait: bool) {
        let alone = self.under_way() == 1;
        let most = match wait && alone {
            true => (1, queue.stall.slice()),
            false => (0, Duration::ZERO),
        };
        for number in 0..self.submits.len() {
            if self.submits[number].batch.in_flight() > 0 {
                self.reap(queue, clock, number, most);
            }
        }
        if wait && !alone {
            // Whichever ends first is to be seen first, so none of several is waited for.
            std::thread::yield_now();
        }
    }

    /// An I/O of which the library said that it is complete may still be on its way between buffers
    /// of the library's and GPU memory, in streams that it does not expose.
    fn synchronize(&self, destination: &Destination) -> Result<(), PathError> {
        destination.quiet()
    }
}
