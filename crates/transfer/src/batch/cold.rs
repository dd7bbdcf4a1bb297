//! Reads of a run that the page cache can't answer, all at once by io_uring(7).
//!
//! One ring for each thread, made when it is first wanted, with no file and no memory registered:
//! files come and go with their handles. Where the kernel, or a container's filter, has no ring for
//! us, such reads are done one after another, as is whatever the ring did not read whole.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use io_uring::{IoUring, opcode, types};

use crate::file::Absent;

/// Fewer reads than these are not worth a ring.
const FEWEST: usize = 4;
/// Entries of a ring: the most reads of a run.
const DEPTH: u32 = super::run::MOST_ENTRIES;
/// How long a kernel without memory for requests is asked again, every 100 microseconds: 2 s.
const MOST_RETRIES: u32 = 20_000;

thread_local! {
    /// `None` inside once the kernel refused.
    static RING: RefCell<Option<Option<IoUring>>> = const { RefCell::new(None) };
}

/// Reads them all, at most [`DEPTH`], and tells which were read whole; `None` where nothing was
/// tried. An error means that some may be under way for ever.
///
/// # Safety
///
/// The memory of each is valid for writes until this returns, or for ever after an error.
pub(super) unsafe fn read(wanted: &[Absent]) -> Result<Option<Vec<bool>>, io::Error> {
    if wanted.len() < FEWEST || wanted.len() > DEPTH as usize {
        return Ok(None);
    }
    let with = |ring: &RefCell<Option<Option<IoUring>>>| {
        let Ok(mut ring) = ring.try_borrow_mut() else {
            return Ok(None);
        };
        let made = ring.get_or_insert_with(|| IoUring::builder().dontfork().build(DEPTH).ok());
        let Some(usable) = made else {
            return Ok(None);
        };
        // SAFETY: the caller's promise.
        let done = unsafe { all(usable, wanted) };
        if done.is_err() {
            // What is left in it must not be taken for another run's.
            *made = None;
        }
        done.map(Some)
    };
    RING.try_with(with).unwrap_or(Ok(None))
}

/// # Safety
///
/// As [`read`].
unsafe fn all(ring: &mut IoUring, wanted: &[Absent]) -> Result<Vec<bool>, io::Error> {
    for (number, absent) in wanted.iter().enumerate() {
        let fd = types::Fd(absent.fd);
        let read = opcode::Read::new(fd, absent.at, absent.len).offset(absent.offset);
        let entry = read.build().user_data(number as u64);
        // SAFETY: the memory is the caller's promise; the descriptor is open as long as the file,
        // which the run holds.
        let pushed = unsafe { ring.submission().push(&entry) };
        if pushed.is_err() {
            return Err(io::Error::other("a ring that was empty has no room"));
        }
    }
    let (mut whole, mut ended, mut retries) = (vec![false; wanted.len()], 0, 0);
    while ended < wanted.len() {
        if let Err(error) = ring.submit_and_wait(wanted.len() - ended) {
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
            ended += 1;
            let number = usize::try_from(done.user_data()).unwrap_or(usize::MAX);
            if let (Some(whole), Some(absent)) = (whole.get_mut(number), wanted.get(number)) {
                *whole = u32::try_from(done.result()) == Ok(absent.len);
            }
        }
    }
    Ok(whole)
}
