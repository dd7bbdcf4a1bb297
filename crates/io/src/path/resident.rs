//! `resident`: a kernel that stays on the GPU moves each block on command, without a launch.
//!
//! File to pinned slot, then a command in pinned memory that the kernel polls, and its answer the
//! same way: no call of the driver for a block. This is the path of the shortest latency for small
//! blocks at low depth. Blocks go one after the other, so that at high depth `gather` moves more,
//! and above some 16 KiB the copy engine is faster. The kernel takes one multiprocessor's place for
//! each worker while it stays, and exits after 2 ms without a command.

use std::collections::VecDeque;

use gpuio_gpu::MemoryKind;
use gpuio_gpu::resident::{Direction, MAX_SLOTS, Resident, Sides};

use super::slot_buffers::{self, SlotBuffers};
use super::stream_queues::Ended;
use super::two_legs::{self, GpuStage, Slots};
use super::verifier::Verifier;
use super::{Backend, OpenedPath, PathConfig, PathEntry, PathError, PathInfo, Request};
use crate::engine::Op;

const NAME: &str = "resident";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio_name: "RESIDENT",
        summary: "file to a pinned ring, then a kernel that stays on the GPU; shortest latency",
        needs_gpu: true,
        backend: Backend::Engine,
        memory: &[MemoryKind::Device, MemoryKind::Vmm, MemoryKind::Pinned],
        ..PathInfo::PLAIN
    },
    open,
};

struct Commands {
    // Its drop waits for the kernel's end.
    resident: Resident,
    /// Slots in flight, oldest first: answers come in the commands' order.
    slots: VecDeque<u32>,
}

fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let gpu = slot_buffers::gpu(NAME, &config)?;
    let setup = |what: String| PathError::Setup { path: NAME, what };
    if !gpu.memory.is_reachable_by_kernels() {
        return Err(setup(format!(
            "no kernel reaches {} memory; use --memory device, vmm or pinned, or another path",
            gpu.memory
        )));
    }
    if config.slots > MAX_SLOTS {
        return Err(setup(format!(
            "{} slots: a command names one of at most {MAX_SLOTS}; lower --depth",
            config.slots
        )));
    }
    let driver = |source| PathError::Gpu { path: NAME, source };
    gpu.context.make_current().map_err(driver)?;
    let buffers = SlotBuffers::new(NAME, &config, gpu, None)?;
    let sides = Sides {
        host: buffers.host(0),
        device: buffers.device(0),
        stride: buffers.stride() as u64,
        slots: config.slots,
    };
    let resident = Resident::new(&gpu.context, sides).map_err(driver)?;
    let slots = VecDeque::with_capacity(config.slots as usize);
    let verifier = Verifier::new(gpu, buffers.destination()).map_err(driver)?;
    two_legs::open(NAME, &config, verifier, buffers, Commands { resident, slots })
}

impl Commands {
    /// Looks for answers; whether anything came back.
    fn look(&mut self, ended: &mut Vec<Ended>) -> bool {
        match self.resident.take() {
            Ok(0) => false,
            Ok(count) => {
                // Commands in flight are as many as the slots here.
                let count = usize::try_from(count).unwrap_or(usize::MAX).min(self.slots.len());
                ended.extend(self.slots.drain(..count).map(|slot| (slot, Ok(()))));
                true
            }
            Err(error) => {
                ended.extend(self.slots.drain(..).map(|slot| (slot, Err(error.clone()))));
                true
            }
        }
    }
}

impl GpuStage<SlotBuffers> for Commands {
    fn enqueue(&mut self, buffers: &SlotBuffers, request: &Request, ended: &mut Vec<Ended>) {
        // It checks that the block fits its slot.
        let location = buffers.location(request.slot, request.len);
        let (slot, len) = (request.slot, request.len);
        if location.is_empty() {
            return ended.push((slot, Ok(())));
        }
        let direction = match request.op {
            Op::Read => Direction::In,
            Op::Write => Direction::Out,
        };
        // SAFETY: the sides are those of the buffers, which are dropped after the GPU stage; a slot
        // is its request's alone until it comes back.
        match unsafe { self.resident.submit(slot, len, direction) } {
            Ok(()) => self.slots.push_back(slot),
            Err(error) => ended.push((slot, Err(error))),
        }
    }

    fn poll(&mut self, ended: &mut Vec<Ended>) {
        self.look(ended);
    }

    fn wait(&mut self, ended: &mut Vec<Ended>) -> bool {
        while !self.slots.is_empty() {
            if self.look(ended) {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    fn is_idle(&self) -> bool {
        self.slots.is_empty()
    }

    fn bytes(&self) -> u64 {
        self.resident.bytes()
    }
}
