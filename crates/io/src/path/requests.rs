//! Requests in flight on a path with two legs, by slot, and those that have completed.

use super::{Completion, Fault, Request};
use crate::clock::Nanos;
use crate::engine::Op;

#[derive(Clone, Copy)]
struct Held {
    request: Request,
    /// When the first of its two legs ended.
    handed: Nanos,
    /// When the file leg of a read began, if something of the GPU leg came before it.
    prepared: Option<Nanos>,
}

pub(super) struct Requests {
    slots: Vec<Option<Held>>,
    ready: Vec<Completion>,
    out: usize,
}

impl Requests {
    pub(super) fn new(slots: u32) -> Requests {
        let slots = slots as usize;
        Requests { slots: vec![None; slots], ready: Vec::with_capacity(slots), out: 0 }
    }

    /// Notes a request that starts.
    pub(super) fn take(&mut self, request: Request) {
        self.slots[request.slot as usize] =
            Some(Held { request, handed: request.started, prepared: None });
        self.out += 1;
    }

    /// Forgets a request that was taken and found no space.
    pub(super) fn give_back(&mut self, slot: u32) {
        self.slots[slot as usize] = None;
        self.out -= 1;
    }

    /// The request of a slot, if it is in use.
    pub(super) fn of(&self, slot: u32) -> Option<Request> {
        self.slots[slot as usize].map(|held| held.request)
    }

    /// Notes that a slot's first leg ended; its request, if the slot is in use.
    pub(super) fn hand(&mut self, slot: u32, now: Nanos) -> Option<Request> {
        let held = self.slots[slot as usize].as_mut()?;
        held.handed = now;
        Some(held.request)
    }

    /// Notes that the file leg of a slot's read begins only now: what was until then belongs to the
    /// GPU leg.
    pub(super) fn prepared(&mut self, slot: u32, now: Nanos) {
        if let Some(held) = self.slots[slot as usize].as_mut() {
            (held.handed, held.prepared) = (now, Some(now));
        }
    }

    /// Ends a request and frees its slot.
    pub(super) fn complete(&mut self, slot: u32, now: Nanos, result: Result<(), Fault>) {
        let Some(held) = self.slots[slot as usize].take() else {
            return;
        };
        let request = held.request;
        let before = held.prepared.map_or(0, |at| at.saturating_sub(request.started));
        let first = held.handed.saturating_sub(request.started) - before;
        let second = now.saturating_sub(held.handed);
        let (file_ns, gpu_ns) = match request.op {
            Op::Read => (first, before + second),
            Op::Write => (second, first),
        };
        self.ready.push(Completion { request, result, ended: now, file_ns, gpu_ns });
    }

    /// Whether none has completed since the last [`Requests::deliver`].
    pub(super) fn none_ready(&self) -> bool {
        self.ready.is_empty()
    }

    /// Gives those that have completed to the worker.
    pub(super) fn deliver(&mut self, completed: &mut Vec<Completion>) {
        self.out -= self.ready.len();
        completed.append(&mut self.ready);
    }

    /// Requests taken and not yet delivered.
    pub(super) fn out(&self) -> usize {
        self.out
    }
}
