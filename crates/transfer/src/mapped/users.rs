//! Counts the users of a mapped extent, so that it can be closed and then retired.

use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{size, thread_number};

/// Counts. Each thread uses one, which it shares with few others.
const SHARDS: usize = size(32, 2);

/// A count with cache lines of its own: two, since processors fetch them in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Shard(AtomicU32);

/// The users of one extent.
///
/// A user counts itself, then looks whether the extent is open. Who closes it marks it closed, then
/// looks at the counts. All four accesses are sequentially consistent, so one of the two sees the
/// other: either the user finds it closed, or the closer finds a user.
#[derive(Debug)]
pub(crate) struct Users {
    open: AtomicBool,
    shards: Box<[Shard]>,
}

impl Users {
    /// Closed, without users.
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Shard(AtomicU32::new(0))).collect();
        Self { open: AtomicBool::new(false), shards }
    }

    /// Counts the calling thread as a user. Returns what [`Users::leave`] wants, or `None` if the
    /// extent is closed. Writes made before [`Users::open`] are then visible.
    pub(crate) fn enter(&self) -> Option<usize> {
        if !self.open.load(Ordering::Relaxed) {
            return None;
        }
        let shard = thread_number() % self.shards.len();
        self.shards[shard].0.fetch_add(1, Ordering::SeqCst);
        if self.open.load(Ordering::SeqCst) {
            return Some(shard);
        }
        self.leave(shard);
        None
    }

    /// Ends a use. Any thread may call it.
    pub(crate) fn leave(&self, shard: usize) {
        self.shards[shard].0.fetch_sub(1, Ordering::Release);
    }

    /// Lets users in. Called by the one thread that prepares the extent.
    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    /// From now on no thread enters. Those inside stay until they leave.
    pub(crate) fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    /// Whether users can enter.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    /// Whether a closed extent has no users left. Their writes are then visible.
    pub(crate) fn is_idle(&self) -> bool {
        self.shards.iter().all(|shard| shard.0.load(Ordering::SeqCst) == 0)
    }
}
