//! Submits the uncached reads of a run all at once by io_uring(7).
//!
//! Each thread has one ring, made on first use, without registered files or memory, because files
//! come and go. Where the kernel, or a container's filter, refuses a ring, such reads are done one
//! after another, as are reads that the ring completed short.

use std::cell::RefCell;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::{IoUring, opcode, types};

use crate::file::UncachedRead;

/// Fewer reads than this are not worth a ring.
const FEWEST: usize = 4;
/// Entries of a ring: the most reads of a run.
const DEPTH: u32 = super::run::MOST_ENTRIES;
/// How often a kernel without memory for requests is retried, every 100 microseconds: for 2 s.
const MOST_RETRIES: u32 = 20_000;

thread_local! {
    /// `None` inside after the kernel refused.
    static RING: RefCell<Option<Option<KeptRing>>> = const { RefCell::new(None) };
}

/// A ring whose descriptor the program may close (`file/kept.rs`): all have one inode.
struct KeptRing {
    ring: ManuallyDrop<IoUring>,
    inode: Option<(u64, u64)>,
}

impl KeptRing {
    fn new() -> Option<Self> {
        let ring = ManuallyDrop::new(IoUring::builder().dontfork().build(DEPTH).ok()?);
        let mut kept = Self { ring, inode: None };
        kept.inode = kept.now();
        Some(kept)
    }

    fn now(&self) -> Option<(u64, u64)> {
        // SAFETY: only its number is used, and the kernel says whether it is open.
        let fd = unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) };
        rustix::fs::fstat(fd).ok().map(|facts| (facts.st_dev, facts.st_ino))
    }

    /// Whether the number still is of a ring.
    fn is_ours(&self) -> bool {
        self.inode.is_some() && self.now() == self.inode
    }
}

impl Drop for KeptRing {
    fn drop(&mut self) {
        // Otherwise the number is the program's, and the ring's memory stays mapped.
        if self.is_ours() {
            // SAFETY: not used any more.
            unsafe { ManuallyDrop::drop(&mut self.ring) };
        }
    }
}

/// Reads them all, at most [`DEPTH`], and returns which were read in full; `None` if nothing was
/// tried. After an error some reads may stay in flight forever.
///
/// # Safety
/// The memory of each is valid for writes until this returns, or forever after an error.
pub(super) unsafe fn read(wanted: &[UncachedRead<'_>]) -> Result<Option<Vec<bool>>, io::Error> {
    if wanted.len() < FEWEST || wanted.len() > DEPTH as usize {
        return Ok(None);
    }
    let with = |ring: &RefCell<Option<Option<KeptRing>>>| {
        let Ok(mut ring) = ring.try_borrow_mut() else {
            return Ok(None);
        };
        if matches!(&*ring, Some(Some(kept)) if !kept.is_ours()) {
            *ring = None;
        }
        let made = ring.get_or_insert_with(KeptRing::new);
        let Some(usable) = made else {
            return Ok(None);
        };
        // SAFETY: the caller's promise.
        let done = unsafe { all(&mut usable.ring, wanted) };
        if done.is_err() {
            // Its remaining completions must not be taken for those of another run.
            *made = None;
        }
        done.map(Some)
    };
    RING.try_with(with).unwrap_or(Ok(None))
}

/// # Safety
/// As [`read`].
unsafe fn all(ring: &mut IoUring, wanted: &[UncachedRead<'_>]) -> Result<Vec<bool>, io::Error> {
    for (number, read) in wanted.iter().enumerate() {
        let fd = types::Fd(read.fd.raw());
        let entry = opcode::Read::new(fd, read.at, read.len).offset(read.offset);
        let entry = entry.build().user_data(number as u64);
        // SAFETY: the memory is the caller's promise; the descriptor is open as long as the file,
        // which the run holds.
        let pushed = unsafe { ring.submission().push(&entry) };
        if pushed.is_err() {
            return Err(io::Error::other("a ring that was empty has no room"));
        }
    }
    let (mut whole, mut completed, mut retries) = (vec![false; wanted.len()], 0, 0);
    while completed < wanted.len() {
        if let Err(error) = ring.submit_and_wait(wanted.len() - completed) {
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) if retries < MOST_RETRIES => {
                    retries += 1;
                    std::thread::sleep(Duration::from_micros(100));
                }
                _ => return Err(error),
            }
        }
        for done in ring.completion() {
            completed += 1;
            let number = usize::try_from(done.user_data()).unwrap_or(usize::MAX);
            if let (Some(whole), Some(read)) = (whole.get_mut(number), wanted.get(number)) {
                *whole = u32::try_from(done.result()) == Ok(read.len);
            }
        }
    }
    Ok(whole)
}
