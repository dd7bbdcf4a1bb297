//! How far requests of a path whose bytes a library moves have come, by slot, and those that have
//! completed.

use std::sync::Arc;

use gpuio_stat::add_single_writer;

use super::completions::Completions;
use super::{Completion, Fault, Request};
use crate::clock::Nanos;
use crate::engine::IoFault;
use crate::engine::monitor::LegCounters;

#[derive(Clone, Copy)]
struct PartialRequest {
    request: Request,
    /// Bytes moved by I/Os that stopped short.
    done: u32,
}

pub(super) struct Progress {
    slots: Vec<Option<PartialRequest>>,
    pub(super) completions: Completions,
    counters: Arc<LegCounters>,
}

impl Progress {
    pub(super) fn new(slots: u32, counters: &Arc<LegCounters>) -> Progress {
        let slots = slots as usize;
        let completions = Completions::new(slots);
        Progress { slots: vec![None; slots], completions, counters: Arc::clone(counters) }
    }

    /// Notes a request that starts.
    pub(super) fn take(&mut self, request: Request) {
        self.slots[request.slot as usize] = Some(PartialRequest { request, done: 0 });
        self.completions.take();
    }

    /// The request of a slot and how many of its bytes have moved, if the slot is in use.
    pub(super) fn of(&self, slot: u32) -> Option<(Request, u32)> {
        self.slots.get(slot as usize)?.map(|held| (held.request, held.done))
    }

    /// Notes what an I/O for the rest of a request came to at `now`. True if it stopped short,
    /// which is the end of a file as a rule, and the rest is to be requested.
    pub(super) fn moved(&mut self, slot: u32, now: Nanos, result: Result<usize, Fault>) -> bool {
        let Some(held) = &mut self.slots[slot as usize] else {
            return false;
        };
        let left = held.request.len - held.done;
        match result {
            Err(fault) => self.complete(slot, now, Err(fault)),
            Ok(0) => {
                let read = held.done;
                self.complete(slot, now, Err(Fault::File(IoFault::EndOfFile(read))));
            }
            Ok(count) => match u32::try_from(count) {
                Ok(count) if count < left => {
                    if held.done == 0 {
                        add_single_writer(&self.counters.short_ios, 1);
                    }
                    held.done += count;
                    return true;
                }
                Ok(count) if count == left => self.complete(slot, now, Ok(())),
                // More than was requested: no answer to trust.
                _ => self.complete(slot, now, Err(Fault::File(IoFault::Errno(libc::EIO)))),
            },
        }
        false
    }

    /// Ends a request and frees its slot. Legs of a library can't be distinguished: all is the
    /// file's.
    pub(super) fn complete(&mut self, slot: u32, ended: Nanos, result: Result<(), Fault>) {
        let Some(held) = self.slots[slot as usize].take() else {
            return;
        };
        let request = held.request;
        let counters = self.counters.of(request.op);
        if result.is_ok() {
            add_single_writer(&counters.ios, 1);
            add_single_writer(&counters.bytes, u64::from(request.len));
        } else {
            add_single_writer(&counters.faults, 1);
        }
        let file_ns = ended.saturating_sub(request.started);
        self.completions.push(Completion { request, result, ended, file_ns, gpu_ns: 0 });
    }
}
