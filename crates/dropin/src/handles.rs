//! Handles of files, found without a lock.
//!
//! A handle is a number in the form of a pointer: a slot's index and how often the slot has been
//! used. So invalid and closed handles are recognised, and nothing is ever read through the
//! pointer. A slot counts its current users, on one cache line for each of a few groups of threads.
//!
//! Ordering: a user raises its count and then reads the state; who closes changes the state and
//! then reads the counts, all sequentially consistent. So in their total order either the user's
//! raise comes first, and the closer sees it and waits, or the change does, and the user sees it
//! and leaves. Users of an earlier generation may raise a count for a moment: they touch nothing
//! else, and a closer waits for them.

use std::ops::Deref;
use std::sync::OnceLock;
use std::time::Duration;

use crate::abi::Handle;
use crate::fork;
use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use crate::sync::{Guarded, size, sleep, thread_number};

/// Slots made at once.
const CHUNK: usize = size(64, 1);
/// Most chunks: a million handles, as many as the kernel allows descriptors.
const CHUNKS: usize = size(16_384, 1);
/// Groups of threads, each with a count of its own.
const GROUPS: usize = size(8, 2);
/// Low bits of a handle: the slot. High bits: its generation.
const SLOT_BITS: u32 = 24;

/// Values of [`HandleSlot::state`] beside the generation.
const FREE: u64 = 0;
const OPEN: u64 = 1;
const CLOSING: u64 = 2;
const STATE_BITS: u32 = 2;

/// On cache lines of its own: processors fetch two lines together.
#[repr(align(128))]
struct Count(AtomicU64);

struct HandleSlot<T> {
    /// The generation and the state.
    state: AtomicU64,
    users: [Count; GROUPS],
    /// Written only by the owner of a free or closing slot, read by users of an open one.
    entry: Guarded<Option<T>>,
}

// SAFETY: `entry` is written by one thread only, while no user can read it (see the module's page).
unsafe impl<T: Send + Sync> Sync for HandleSlot<T> {}

impl<T> HandleSlot<T> {
    fn new() -> HandleSlot<T> {
        let users = std::array::from_fn(|_| Count(AtomicU64::new(0)));
        // Begins at generation 1: small numbers are never handles.
        let state = AtomicU64::new(1 << STATE_BITS | FREE);
        HandleSlot { state, users, entry: Guarded::new(None) }
    }

    fn in_use(&self) -> bool {
        self.users.iter().any(|count| count.0.load(SeqCst) != 0)
    }
}

/// Slots that are made together when the first of them is needed.
type Chunk<T> = OnceLock<Box<[HandleSlot<T>]>>;

pub(crate) struct Table<T: 'static> {
    chunks: Box<[Chunk<T>]>,
}

/// Free slots. Protected by the lock that whoever opens or closes holds.
#[derive(Debug, Default)]
pub(crate) struct Free {
    /// Returned, to be used again.
    freed: Vec<usize>,
    /// From here on slots were never used.
    next_unused: usize,
}

impl<T> std::fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Table")
    }
}

/// An open entry, which can't be closed while this lives. It may move to another thread.
pub(crate) struct HeldHandle<'t, T> {
    slot: &'t HandleSlot<T>,
    group: usize,
    /// The fork generation of the process that counted it.
    generation: u32,
}

impl<T> Deref for HeldHandle<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the slot was open after this user was counted, so no thread writes the entry
        // until the count is lowered, which is when `self` is dropped.
        let entry = unsafe { &*self.slot.entry.read() };
        entry.as_ref().expect("an open slot has an entry")
    }
}

impl<T> std::fmt::Debug for HeldHandle<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeldHandle")
    }
}

impl<T> Drop for HeldHandle<'_, T> {
    fn drop(&mut self) {
        // A child of `fork(2)` has reset the counts of its parent's users.
        if self.generation == fork::generation() {
            self.slot.users[self.group].0.fetch_sub(1, SeqCst);
        }
    }
}

impl<T: Send + Sync> Table<T> {
    pub(crate) fn new() -> Table<T> {
        Table { chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect() }
    }

    fn slot(&self, at: usize) -> Option<&HandleSlot<T>> {
        self.chunks.get(at / CHUNK)?.get()?.get(at % CHUNK)
    }

    /// The slot and the state of an open handle.
    fn parts(&self, handle: Handle) -> Option<(usize, &HandleSlot<T>, u64)> {
        let number = handle.addr() as u64;
        let at = usize::try_from(number & ((1 << SLOT_BITS) - 1)).ok()?.checked_sub(1)?;
        let generation = number >> SLOT_BITS;
        Some((at, self.slot(at)?, generation << STATE_BITS | OPEN))
    }

    /// Puts an entry into a free slot; `None` when there is none.
    pub(crate) fn open(&self, free: &mut Free, entry: T) -> Option<Handle> {
        let at = match free.freed.pop() {
            Some(at) => at,
            None if free.next_unused < CHUNK * CHUNKS => {
                free.next_unused += 1;
                free.next_unused - 1
            }
            None => return None,
        };
        let chunk = &self.chunks[at / CHUNK];
        chunk.get_or_init(|| (0..CHUNK).map(|_| HandleSlot::new()).collect());
        let slot = self.slot(at)?;
        let generation = slot.state.load(SeqCst) >> STATE_BITS;
        // SAFETY: the slot is free and taken out of the list of free ones: no thread reads or
        // writes the entry.
        unsafe { *slot.entry.write() = Some(entry) };
        slot.state.store(generation << STATE_BITS | OPEN, SeqCst);
        let number = generation << SLOT_BITS | (at as u64 + 1);
        let number = usize::try_from(number).ok()?;
        Some(std::ptr::without_provenance_mut(number))
    }

    /// The entry of an open handle.
    pub(crate) fn hold(&self, handle: Handle) -> Option<HeldHandle<'_, T>> {
        let (_, slot, open) = self.parts(handle)?;
        let group = thread_number() % GROUPS;
        slot.users[group].0.fetch_add(1, SeqCst);
        // Made first, so that its drop lowers the count if the state is of another generation.
        let held = HeldHandle { slot, group, generation: fork::generation() };
        (slot.state.load(SeqCst) == open).then_some(held)
    }

    /// Resets all counts in a child of `fork(2)`: the users were threads of the parent.
    pub(crate) fn forget_users(&self) {
        let made = self.chunks.iter().map_while(|chunk| chunk.get());
        for count in made.flatten().flat_map(|slot| &slot.users) {
            count.0.store(0, SeqCst);
        }
    }

    /// Closes an open handle: from now on it is not found. The caller waits for the result.
    pub(crate) fn close(&self, handle: Handle) -> Option<Closing<'_, T>> {
        let (at, slot, open) = self.parts(handle)?;
        let closing = open ^ OPEN ^ CLOSING;
        slot.state.compare_exchange(open, closing, SeqCst, SeqCst).ok()?;
        Some(Closing { slot, at })
    }
}

/// A closed handle that may still have users.
pub(crate) struct Closing<'t, T> {
    slot: &'t HandleSlot<T>,
    at: usize,
}

impl<T> std::fmt::Debug for Closing<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Closing")
    }
}

impl<T> Closing<'_, T> {
    /// Waits until the last user is gone, calling `meanwhile` repeatedly.
    pub(crate) fn wait(&self, mut meanwhile: impl FnMut()) {
        // Rare, and as long as an I/O takes: sleeping is good enough.
        let mut pause = Duration::from_micros(20);
        while self.slot.in_use() {
            meanwhile();
            sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    /// Takes the entry out and frees the slot, once it has no users (see [`Closing::wait`]).
    pub(crate) fn finish(self, free: &mut Free) -> Option<T> {
        // SAFETY: all users are gone, and new ones leave before they read the entry.
        let entry = unsafe { (*self.slot.entry.write()).take() };
        let generation = (self.slot.state.load(SeqCst) >> STATE_BITS).wrapping_add(1);
        // The part of the generation that fits into a handle of 64 bits.
        let generation = generation & (u64::MAX >> SLOT_BITS);
        self.slot.state.store(generation << STATE_BITS | FREE, SeqCst);
        free.freed.push(self.at);
        entry
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn garbage_and_handles_given_back_are_not_found() {
        let table: Table<u32> = Table::new();
        let mut free = Free::default();
        let first = table.open(&mut free, 7).unwrap();
        assert_eq!(*table.hold(first).unwrap(), 7);
        for garbage in [0, 1, 2, 65, usize::MAX, 0x7fff_dead_beef, first.addr() + (1 << 24)] {
            assert!(table.hold(std::ptr::without_provenance_mut(garbage)).is_none());
        }
        let closing = table.close(first).unwrap();
        closing.wait(|| {});
        assert_eq!(closing.finish(&mut free), Some(7));
        assert!(table.hold(first).is_none() && table.close(first).is_none());
        let second = table.open(&mut free, 8).unwrap();
        assert_ne!(first, second);
        assert!(table.hold(first).is_none() && *table.hold(second).unwrap() == 8);
    }

    #[test]
    fn users_of_the_parent_do_not_count_in_a_forked_child() {
        let table: Table<u32> = Table::new();
        let mut free = Free::default();
        let handle = table.open(&mut free, 7).unwrap();
        // As after a fork: the count is reset, the value is from before.
        let mut parents = table.hold(handle).unwrap();
        table.forget_users();
        parents.generation = u32::MAX;
        let childs = table.hold(handle).unwrap();
        let closing = table.close(handle).unwrap();
        assert!(closing.slot.in_use(), "a thread of the child uses it");
        drop(parents);
        assert!(closing.slot.in_use(), "still");
        drop(childs);
        assert!(!closing.slot.in_use());
        assert_eq!(closing.finish(&mut free), Some(7));
    }

    #[test]
    fn closing_waits_for_users_in_other_threads() {
        let table: &'static Table<Arc<AtomicBool>> = Box::leak(Box::new(Table::new()));
        let mut free = Free::default();
        for _ in 0..200 {
            let alive = Arc::new(AtomicBool::new(true));
            let handle = table.open(&mut free, Arc::clone(&alive)).unwrap().addr();
            let users: Vec<_> = (0..4)
                .map(|_| {
                    std::thread::spawn(move || {
                        let handle = std::ptr::without_provenance_mut(handle);
                        while let Some(held) = table.hold(handle) {
                            assert!(held.load(SeqCst), "used after it was closed");
                        }
                    })
                })
                .collect();
            let handle = std::ptr::without_provenance_mut(handle);
            let closing = table.close(handle).unwrap();
            closing.wait(|| {});
            alive.store(false, SeqCst);
            assert!(closing.finish(&mut free).is_some());
            users.into_iter().for_each(|user| user.join().unwrap());
        }
    }
}
