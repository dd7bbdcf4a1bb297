//! More descriptors of one file to read by, so that threads do not meet in one count.
//!
//! A system call of a process with threads counts itself in the open file description (`struct
//! file`, its reference count), which passes from processor to processor. Sixteen threads that read
//! 4 KiB each of a warm file by one description make 4.6 M/s, by four 9.6 and by sixteen 11.9
//! (Linux 6.18, sixteen cores of a Xeon). A duplicate of a descriptor shares the description, so
//! the file is opened anew.

use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::twin::Twin;

/// Descriptions that threads share, the first one among them.
const SEATS: usize = 4;
/// Reads by the threads of a seat before a description is opened for them: a file that is read once
/// or twice, or by one thread, costs none.
const READS: u32 = 64;
/// Most descriptors that this takes of the process, and what part of its limit.
const MOST: u32 = 192;
const PART: u64 = 8;

/// How many are open in this process.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// The descriptors of a file for all threads but those of the first seat.
#[derive(Debug)]
pub(super) struct Spread([Seat; SEATS - 1]);

#[derive(Debug)]
struct Seat {
    twin: Twin,
    reads: AtomicU32,
}

impl Spread {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Seat { twin: Twin::new(), reads: AtomicU32::new(0) }))
    }

    /// The calling thread's descriptor, if it has one: the file of `own`, opened anew with `flags`.
    pub(super) fn get(&self, own: RawFd, flags: libc::c_int, advised: bool) -> Option<RawFd> {
        self.0.get(mine().checked_sub(1)?)?.get(own, flags, advised)
    }
}

impl Seat {
    fn get(&self, own: RawFd, flags: libc::c_int, advised: bool) -> Option<RawFd> {
        if let Some(fd) = self.twin.known() {
            return (fd >= 0).then_some(fd);
        }
        // One thread counts to exactly that, and opens it; the others go on as before meanwhile.
        if self.reads.fetch_add(1, Ordering::Relaxed) != READS {
            return None;
        }
        let more = |open| (open < most()).then_some(open + 1);
        if OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            // Others may be closed by the time that as many reads have come again.
            self.reads.store(0, Ordering::Relaxed);
            return None;
        }
        let fd = self.twin.get(own, flags, advised);
        if fd.is_none() {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
        fd
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.twin.known().is_some_and(|fd| fd >= 0) {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The calling thread's seat. The first thread that asks has the first, so a process with one
/// thread never opens anything.
fn mine() -> usize {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static SEAT: usize = NEXT.fetch_add(1, Ordering::Relaxed) as usize % SEATS;
    }
    // A thread that is ending has none any more.
    SEAT.try_with(|seat| *seat).unwrap_or(0)
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
    fn a_seat_opens_a_description_of_its_own_after_some_reads_and_closes_it() {
        let file = tempfile::tempfile().unwrap();
        let own = file.as_raw_fd();
        let seat = Seat { twin: Twin::new(), reads: AtomicU32::new(0) };
        for _ in 0..READS {
            assert_eq!(seat.get(own, libc::O_RDWR, false), None);
        }
        let fd = seat.get(own, libc::O_RDWR, false).unwrap();
        assert_ne!(fd, own);
        assert_eq!(seat.get(own, libc::O_RDWR, false), Some(fd));
        let inode = |fd: RawFd| {
            std::fs::metadata(format!("/proc/self/fd/{fd}"))
                .map(|m| std::os::unix::fs::MetadataExt::ino(&m))
        };
        assert_eq!(inode(fd).unwrap(), inode(own).unwrap());
        drop(seat);
        assert_ne!(inode(fd).ok(), inode(own).ok(), "{fd} is open still");
    }

    #[test]
    fn a_thread_keeps_its_seat() {
        let ask = || (mine(), mine());
        let (first, again) = std::thread::spawn(ask).join().unwrap();
        assert_eq!(first, again);
        assert!(first < SEATS);
    }
}
