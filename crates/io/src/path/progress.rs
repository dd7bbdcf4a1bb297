//! How far requests of a path whose bytes a library moves have come, by slot, and those that have
//! completed.

use std::sync::Arc;

use gpuio_base::stat::add_single_writer;

use super::two_legs::Requests;
use super::{Fault, Request};
use crate::clock::Nanos;
use crate::engine::IoFault;
use crate::engine::monitor::LegCounters;

pub(super) struct Progress {
    pub(super) requests: Requests,
    /// By slot: bytes moved by I/Os that stopped short.
    done: Vec<u32>,
    /// By slot: time in the file leg, where it is measured apart.
    file_ns: Vec<Option<Nanos>>,
    counters: Arc<LegCounters>,
}

impl Progress {
    pub(super) fn new(slots: u32, counters: &Arc<LegCounters>) -> Progress {
        let (done, file_ns) = (vec![0; slots as usize], vec![None; slots as usize]);
        Progress { requests: Requests::new(slots), done, file_ns, counters: Arc::clone(counters) }
    }

    /// Notes a request that starts.
    pub(super) fn take(&mut self, request: Request) {
        self.done[request.slot as usize] = 0;
        self.file_ns[request.slot as usize] = None;
        self.requests.take(request);
    }

    /// The request of a slot and how many of its bytes have moved, if the slot is in use.
    pub(super) fn of(&self, slot: u32) -> Option<(Request, u32)> {
        Some((self.requests.of(slot)?, self.done[slot as usize]))
    }

    /// Notes time that a slot's request spent in the file leg: what else it takes is the GPU leg's.
    pub(super) fn spent(&mut self, slot: u32, file_ns: Nanos) {
        if let Some(sum) = self.file_ns.get_mut(slot as usize) {
            *sum = Some(sum.unwrap_or(0) + file_ns);
        }
    }

    /// Notes where in its file an I/O for the rest of a slot's request was, if elsewhere than it
    /// said.
    pub(super) fn found_at(&mut self, slot: u32, offset: u64) {
        let done = u64::from(self.done[slot as usize]);
        self.requests.move_to(slot, offset.saturating_sub(done));
    }

    /// Notes what an I/O for the rest of a request came to at `now`. True if it stopped short,
    /// which is the end of a file as a rule, and the rest is to be requested.
    pub(super) fn moved(&mut self, slot: u32, now: Nanos, result: Result<usize, Fault>) -> bool {
        let Some((request, done)) = self.of(slot) else {
            return false;
        };
        let left = request.len - done;
        match result {
            Err(fault) => self.complete(slot, now, Err(fault)),
            Ok(0) => {
                self.complete(slot, now, Err(Fault::File(IoFault::EndOfFile(done))));
            }
            Ok(count) => match u32::try_from(count) {
                Ok(count) if count < left => {
                    if done == 0 {
                        add_single_writer(&self.counters.short_ios, 1);
                    }
                    self.done[slot as usize] += count;
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
    /// file's, unless [`Progress::spent`] was called.
    pub(super) fn complete(&mut self, slot: u32, ended: Nanos, result: Result<(), Fault>) {
        let Some(request) = self.requests.of(slot) else {
            return;
        };
        let counters = self.counters.of(request.op);
        if result.is_ok() {
            add_single_writer(&counters.ios, 1);
            add_single_writer(&counters.bytes, u64::from(request.len));
        } else {
            add_single_writer(&counters.faults, 1);
        }
        self.requests.complete_legs(slot, ended, result, self.file_ns[slot as usize]);
    }
}
