//! Requests whose bytes cross between slots and destination together.

use crate::engine::Op;
use crate::path::Request;

/// What a launch has to know of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) op: Op,
    pub(super) slot: u32,
    pub(super) len: u32,
}

/// Parts in the order in which they came.
#[derive(Debug)]
pub(super) struct Batch {
    parts: Vec<Part>,
    /// Lowest and highest slot.
    bounds: (u32, u32),
    /// Whether all have the same direction and fill their slots.
    even: bool,
    stride: usize,
}

/// Slots that one plain copy moves: from the first on, without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) op: Op,
    pub(super) first: u32,
    pub(super) bytes: usize,
}

impl Batch {
    /// An empty batch with space for `most` parts of slots that are `stride` bytes apart.
    pub(super) fn new(most: u32, stride: usize) -> Batch {
        let parts = Vec::with_capacity(most as usize);
        Batch { parts, bounds: (u32::MAX, 0), even: true, stride }
    }

    pub(super) fn push(&mut self, request: &Request) {
        let Request { op, slot, len, .. } = *request;
        let same = self.parts.first().is_none_or(|first| first.op == op);
        self.even &= same && len as usize == self.stride;
        self.bounds = (self.bounds.0.min(slot), self.bounds.1.max(slot));
        self.parts.push(Part { op, slot, len });
    }

    pub(super) fn clear(&mut self) {
        self.parts.clear();
        (self.bounds, self.even) = ((u32::MAX, 0), true);
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The batch as one run of slots, if it is one. The order in which its slots came does not
    /// matter: no slot comes twice, so as many slots as lie between the bounds are all of them.
    pub(super) fn run(&self) -> Option<Run> {
        let (first, last) = self.bounds;
        let count = self.parts.len();
        let op = self.parts.first()?.op;
        let whole = self.even && (last - first) as usize + 1 == count;
        whole.then_some(Run { op, first, bytes: count * self.stride })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(parts: &[(Op, u32, u32)]) -> Batch {
        let mut batch = Batch::new(8, 4096);
        for &(op, slot, len) in parts {
            batch.push(&Request { op, file: 0, offset: 0, len, slot, started: 0, due: 0 });
        }
        batch
    }

    #[test]
    fn full_slots_side_by_side_are_a_run_in_any_order() {
        let parts = [(Op::Read, 7, 4096), (Op::Read, 5, 4096), (Op::Read, 6, 4096)];
        let mut batch = batch(&parts);
        let run = Run { op: Op::Read, first: 5, bytes: 3 * 4096 };
        assert_eq!(batch.run(), Some(run));
        batch.clear();
        assert_eq!(batch.run(), None);
        let write =
            Request { op: Op::Write, slot: 1, len: 4096, file: 0, offset: 0, started: 0, due: 0 };
        batch.push(&write);
        assert_eq!(batch.run(), Some(Run { op: Op::Write, first: 1, bytes: 4096 }));
    }

    #[test]
    fn gaps_short_blocks_and_two_directions_are_none() {
        assert_eq!(batch(&[(Op::Read, 1, 4096), (Op::Read, 3, 4096)]).run(), None);
        assert_eq!(batch(&[(Op::Read, 1, 4096), (Op::Read, 2, 4095)]).run(), None);
        assert_eq!(batch(&[(Op::Read, 1, 4096), (Op::Write, 2, 4096)]).run(), None);
    }
}
