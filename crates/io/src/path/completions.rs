//! Requests of a path that are out, and those that have completed.

use super::Completion;

pub(super) struct Completions {
    ready: Vec<Completion>,
    out: usize,
}

impl Completions {
    pub(super) fn new(slots: usize) -> Completions {
        Completions { ready: Vec::with_capacity(slots), out: 0 }
    }

    /// Counts a request that starts.
    pub(super) fn take(&mut self) {
        self.out += 1;
    }

    /// Takes back the count of a request that found no space.
    pub(super) fn give_back(&mut self) {
        self.out -= 1;
    }

    pub(super) fn push(&mut self, completion: Completion) {
        self.ready.push(completion);
    }

    /// Whether none has completed since the last [`Completions::deliver`].
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
