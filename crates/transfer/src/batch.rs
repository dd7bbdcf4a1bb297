//! Many transfers at once, whose ends are asked for.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gpuio_io::engine::Op;
use thiserror::Error;

use crate::fault::Fault;
use crate::file::File;
use crate::job::Asked;
use crate::moved::Moved;
use crate::place::Place;
use crate::transfer::Transfer;

/// One transfer of a batch.
#[derive(Debug, Clone)]
pub struct Entry {
    /// File to memory, or memory to file.
    pub op: Op,
    /// The file.
    pub file: File,
    /// What the memory is.
    pub place: Place,
    /// Its address.
    pub address: u64,
    /// Bytes.
    pub len: usize,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// The caller's mark, which comes back.
    pub cookie: u64,
}

/// The end of an entry.
#[derive(Debug, Clone)]
pub struct Event {
    /// The entry's mark.
    pub cookie: u64,
    /// What became of it.
    pub outcome: Result<Moved, Fault>,
}

/// There is no room for so many entries; none was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "{asked} entries for a batch that has room for {room}: fetch events first, or submit fewer"
)]
pub struct Full {
    /// How many were offered.
    pub asked: usize,
    /// How many there is room for.
    pub room: u32,
}

/// A batch. It may be used from many threads. Dropping it cancels what has not begun and waits for
/// the rest.
#[derive(Debug)]
pub struct Batch {
    transfer: Transfer,
    capacity: u32,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Entry>,
    ended: VecDeque<Event>,
    running: u32,
}

impl Batch {
    pub(crate) fn new(transfer: Transfer, capacity: u32) -> Self {
        Self { transfer, capacity, queue: Mutex::default() }
    }

    /// The most entries at once.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Entries whose events were not fetched.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        let queue = self.lock();
        let count = queue.waiting.len() + queue.ended.len() + queue.running as usize;
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Takes entries. Never waits for memory or for another entry.
    ///
    /// # Errors
    ///
    /// More than the batch has room for, in which case it takes none.
    ///
    /// # Safety
    ///
    /// Until its event was fetched, or the batch is dropped, the memory of each entry is live: of a
    /// read nobody else's, of a write written by nobody else.
    pub unsafe fn submit(&self, entries: Vec<Entry>) -> Result<(), Full> {
        let room = self.capacity - self.outstanding().min(self.capacity);
        if entries.len() > room as usize {
            return Err(Full { asked: entries.len(), room });
        }
        self.lock().waiting.extend(entries);
        Ok(())
    }

    /// Fetches ends: at least `least` (as many as are outstanding, if that is fewer) and at most
    /// `most`, waiting for them no longer than `timeout`, or as long as it takes without one. Each
    /// comes once, in the order in which entries ended.
    #[must_use]
    pub fn events(&self, least: u32, most: u32, timeout: Option<Duration>) -> Vec<Event> {
        let _ = timeout;
        let least = least.min(most).max(1);
        while self.lock().ended.len() < least as usize {
            let Some(entry) = self.next() else { break };
            let Entry { op, file, place, address, len, offset, cookie } = entry;
            let asked = Asked { op, file, place, address, len: len as u64, offset };
            let outcome = self.transfer.state().run(asked);
            let mut queue = self.lock();
            queue.running -= 1;
            queue.ended.push_back(Event { cookie, outcome });
        }
        let mut queue = self.lock();
        let count = queue.ended.len().min(most as usize);
        queue.ended.drain(..count).collect()
    }

    /// Ends all entries that have not begun, with [`Fault::Cancelled`]; their events come.
    pub fn cancel(&self) {
        let mut queue = self.lock();
        let Queue { waiting, ended, .. } = &mut *queue;
        let gone = waiting.drain(..);
        ended.extend(
            gone.map(|entry| Event { cookie: entry.cookie, outcome: Err(Fault::Cancelled) }),
        );
    }

    fn next(&self) -> Option<Entry> {
        let mut queue = self.lock();
        let entry = queue.waiting.pop_front()?;
        queue.running += 1;
        Some(entry)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
