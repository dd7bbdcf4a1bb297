//! Descriptor shards: several descriptors of one file for reading, so that threads do not contend
//! for one reference count.
//!
//! A system call of a multithreaded process changes the reference count of the open file
//! description (`struct file`), whose cache line moves between processors. Sixteen threads that
//! read 4 KiB each of a warm file make 4.6 M/s by one description, 9.6 by four and 11.9 by sixteen
//! (Linux 6.18, sixteen cores of a Xeon). A duplicated descriptor shares the description, so the
//! file is reopened.

use std::sync::atomic::{AtomicU32, Ordering};

use super::kept::{Descriptor, KeptFd, Spare};
use super::reopen::ReopenedFd;

/// Descriptions that threads share, including the first one.
const SHARDS: usize = 4;
/// Reads by the threads of a shard before a description is opened for them: a file that is read
/// once or twice, or by one thread, costs none.
const READS: u32 = 64;
/// The descriptors of a file, for all threads except those of the first shard.
#[derive(Debug)]
pub(super) struct DescriptorShards([Shard; SHARDS - 1]);

#[derive(Debug)]
struct Shard {
    reopened: ReopenedFd,
    reads: AtomicU32,
}

impl DescriptorShards {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Shard {
            reopened: ReopenedFd::new(false),
            reads: AtomicU32::new(0),
        }))
    }

    /// The calling thread's descriptor, if it has one: the file of `own`, reopened with `flags`.
    pub(super) fn get(
        &self,
        own: &KeptFd,
        flags: libc::c_int,
        how: (bool, bool),
        has_opened: impl FnOnce(),
    ) -> Option<Descriptor<'_>> {
        self.0.get(shard_of_thread().checked_sub(1)?)?.get(own, flags, how, has_opened)
    }

    /// Closes those that are not in use. They are opened again after as many reads as at first.
    pub(super) fn close_unused(&self) {
        for shard in &self.0 {
            shard.reopened.close_unused();
            shard.reads.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn are_open(&self) -> bool {
        self.0.iter().any(|shard| shard.reopened.is_open())
    }
}

impl Shard {
    fn get(
        &self,
        own: &KeptFd,
        flags: libc::c_int,
        (advised, surely): (bool, bool),
        has_opened: impl FnOnce(),
    ) -> Option<Descriptor<'_>> {
        if let Some(known) = self.reopened.known(surely) {
            return Some(known);
        }
        // Exactly one thread reaches this count and opens it; the others continue as before.
        if self.reads.fetch_add(1, Ordering::Relaxed) != READS {
            return None;
        }
        let Some(spare) = Spare::take() else {
            // Others may have been closed when as many reads have come again.
            self.reads.store(0, Ordering::Relaxed);
            return None;
        };
        self.reopened.get_with(own, flags, (advised, spare), has_opened)
    }
}

/// The calling thread's shard. The first thread has the first one, so a process with one thread
/// never opens anything.
fn shard_of_thread() -> usize {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static SHARD: usize = NEXT.fetch_add(1, Ordering::Relaxed) as usize % SHARDS;
    }
    // A thread that is exiting has none any more.
    SHARD.try_with(|shard| *shard).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_shard_opens_its_own_description_after_some_reads() {
        let file = tempfile::tempfile().unwrap();
        let own = KeptFd::duplicate(file.as_fd()).unwrap();
        let shard = Shard { reopened: ReopenedFd::new(false), reads: AtomicU32::new(0) };
        let get = || shard.get(&own, libc::O_RDWR, (false, true), || ()).map(|used| used.raw());
        for _ in 0..READS {
            assert_eq!(get(), None);
        }
        let fd = get().unwrap();
        assert_ne!(fd, own.raw());
        assert_eq!(get(), Some(fd));
        // The program closes it: it is not used again, nor opened again before as many reads.
        // SAFETY: what a program may do with any number.
        assert_eq!(unsafe { libc::close(fd) }, 0);
        assert_eq!(get(), None);
    }

    #[test]
    fn a_thread_keeps_its_shard() {
        let request = || (shard_of_thread(), shard_of_thread());
        let (first, again) = std::thread::spawn(request).join().unwrap();
        assert_eq!(first, again);
        assert!(first < SHARDS);
    }
}
