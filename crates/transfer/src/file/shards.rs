//! Descriptor shards: several descriptors of one file for reading, so that threads do not contend
//! for one reference count.
//!
//! A system call of a multithreaded process changes the reference count of the open file
//! description (`struct file`), whose cache line moves between processors. Sixteen threads that
//! read 4 KiB each of a warm file make 4.6 M/s by one description, 9.6 by four and 11.9 by sixteen
//! (Linux 6.18, sixteen cores of a Xeon). A duplicated descriptor shares the description, so the
//! file is reopened.

use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::reopen::ReopenedFd;

/// Descriptions that threads share, including the first one.
const SHARDS: usize = 4;
/// Reads by the threads of a shard before a description is opened for them: a file that is read
/// once or twice, or by one thread, costs none.
const READS: u32 = 64;
/// Most descriptors that all shards of the process take, and the part of its limit that they may
/// take.
const MOST: u32 = 192;
const PART: u64 = 8;

/// How many are open in this process.
static OPEN: AtomicU32 = AtomicU32::new(0);

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
            reopened: ReopenedFd::new(),
            reads: AtomicU32::new(0),
        }))
    }

    /// The calling thread's descriptor, if it has one: the file of `own`, reopened with `flags`.
    pub(super) fn get(&self, own: RawFd, flags: libc::c_int, advised: bool) -> Option<RawFd> {
        self.0.get(shard_of_thread().checked_sub(1)?)?.get(own, flags, advised)
    }
}

impl Shard {
    fn get(&self, own: RawFd, flags: libc::c_int, advised: bool) -> Option<RawFd> {
        if let Some(fd) = self.reopened.known() {
            return (fd >= 0).then_some(fd);
        }
        // Exactly one thread reaches this count and opens it; the others continue as before.
        if self.reads.fetch_add(1, Ordering::Relaxed) != READS {
            return None;
        }
        let more = |open| (open < most()).then_some(open + 1);
        if OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            // Others may have been closed when as many reads have come again.
            self.reads.store(0, Ordering::Relaxed);
            return None;
        }
        let fd = self.reopened.get(own, flags, advised);
        if fd.is_none() {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
        fd
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        if self.reopened.known().is_some_and(|fd| fd >= 0) {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
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

fn most() -> u32 {
    static LIMIT: OnceLock<u32> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let part = limit.map_or(u64::MAX, |limit| limit / PART);
        u32::try_from(part).unwrap_or(MOST).min(MOST)
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_shard_opens_its_own_description_after_some_reads_and_closes_it() {
        let file = tempfile::tempfile().unwrap();
        let own = file.as_raw_fd();
        let shard = Shard { reopened: ReopenedFd::new(), reads: AtomicU32::new(0) };
        for _ in 0..READS {
            assert_eq!(shard.get(own, libc::O_RDWR, false), None);
        }
        let fd = shard.get(own, libc::O_RDWR, false).unwrap();
        assert_ne!(fd, own);
        assert_eq!(shard.get(own, libc::O_RDWR, false), Some(fd));
        let inode = |fd: RawFd| {
            std::fs::metadata(format!("/proc/self/fd/{fd}"))
                .map(|m| std::os::unix::fs::MetadataExt::ino(&m))
        };
        assert_eq!(inode(fd).unwrap(), inode(own).unwrap());
        drop(shard);
        assert_ne!(inode(fd).ok(), inode(own).ok(), "{fd} is open still");
    }

    #[test]
    fn a_thread_keeps_its_shard() {
        let request = || (shard_of_thread(), shard_of_thread());
        let (first, again) = std::thread::spawn(request).join().unwrap();
        assert_eq!(first, again);
        assert!(first < SHARDS);
    }
}
