//! Closes descriptors of users' files, and opens none again, where that would take something from
//! the program.
//!
//! Closing any descriptor of a file in the program's table drops the POSIX record locks
//! (`fcntl(2)`, `F_SETLK`) that the process has on the file. So the kernel is asked first, and with
//! such a lock the descriptor is kept, and closed later: each close of another one, and each
//! registration, looks again. A lock that another thread takes between the question and the close
//! is lost: there is no close that would ask by itself.
//!
//! Opening a file again breaks a write lease of the program's (`F_SETLEASE`), whose signal ends it
//! where it has no handler.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::kept::{FileId, is_of, owned};

/// A descriptor that is closed later, and the next one.
struct Parked {
    fd: RawFd,
    file: FileId,
    next: *mut Parked,
}

/// No lock: in a child of `fork(2)` a thread of the parent might have it for ever.
static PARKED: AtomicPtr<Parked> = AtomicPtr::new(std::ptr::null_mut());

/// Closes a descriptor of a file of the program's, now or when the process has no record lock on
/// the file any more.
pub(super) fn close(fd: OwnedFd, file: FileId) {
    close_parked();
    close_or_park(fd, file);
}

/// Closes those that were kept, as far as they may be by now.
pub(super) fn close_parked() {
    let mut next = PARKED.swap(std::ptr::null_mut(), Ordering::AcqRel);
    while !next.is_null() {
        // SAFETY: from `Box::into_raw` below, and taken out of the list by this thread alone.
        let one = unsafe { Box::from_raw(next) };
        next = one.next;
        // Otherwise the number is the program's by now.
        if is_of(one.fd, one.file) {
            // SAFETY: parked by its owner.
            close_or_park(unsafe { owned(one.fd) }, one.file);
        }
    }
}

fn close_or_park(fd: OwnedFd, file: FileId) {
    if !has_record_locks(fd.as_fd()) {
        return drop(fd);
    }
    let next = std::ptr::null_mut();
    let parked = Box::into_raw(Box::new(Parked { fd: fd.into_raw_fd(), file, next }));
    let mut first = PARKED.load(Ordering::Relaxed);
    loop {
        // SAFETY: made above, and not in the list yet.
        unsafe { (*parked).next = first };
        let put = PARKED.compare_exchange_weak(first, parked, Ordering::AcqRel, Ordering::Relaxed);
        match put {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Whether to open the file again, and close that descriptor, may take a lock or a lease from the
/// program.
pub(super) fn has_locks(file: BorrowedFd<'_>) -> bool {
    has_write_lease(file) || has_record_locks(file)
}

/// Whether the program has a write lease on the file: then this is the file's only open file
/// description.
pub(crate) fn has_write_lease(file: BorrowedFd<'_>) -> bool {
    // SAFETY: numbers only.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) == libc::F_WRLCK }
}

/// Whether this process has a record lock on the file. A lock of an open file description would
/// conflict with one of its own process, too. False where the kernel does not know such locks.
fn has_record_locks(file: BorrowedFd<'_>) -> bool {
    #[expect(clippy::cast_possible_truncation, reason = "constants below 3")]
    let (exclusive, none) = (libc::F_WRLCK as libc::c_short, libc::F_UNLCK as libc::c_short);
    // The whole file.
    let mut lock = libc::flock64 { l_type: exclusive, l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 };
    // SAFETY: `lock` is the structure that the call reads and writes.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    if asked != 0 || lock.l_type == none {
        return false;
    }
    // The first of all that conflict. Behind another's there may be one of ours.
    lock.l_pid.cast_unsigned() == std::process::id() || is_listed(file)
}

/// Whether `/proc/locks` (proc(5)) has a record lock of this process on a file of this inode
/// number; true if it can't be read.
fn is_listed(file: BorrowedFd<'_>) -> bool {
    let inode = rustix::fs::fstat(file).map(|facts| facts.st_ino);
    let (Ok(inode), Ok(locks)) = (inode, std::fs::read_to_string("/proc/locks")) else {
        return true;
    };
    has_line(&locks, std::process::id(), inode)
}

/// A line is `1: POSIX ADVISORY WRITE 1234 fd:00:5678 0 EOF`; that of one who waits has `->` behind
/// its number.
fn has_line(locks: &str, process: u32, inode: u64) -> bool {
    locks.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let kind = words.next();
        let (holder, place) = (words.nth(2), words.next());
        let of_file = place.and_then(|place| place.rsplit(':').next()?.parse().ok());
        kind == Some("POSIX")
            && holder.and_then(|holder| holder.parse().ok()) == Some(process)
            && of_file == Some(inode)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_this_process_is_found_in_the_list() {
        let text = "1: FLOCK  ADVISORY  WRITE 77 00:1a:5 0 EOF\n\
            2: POSIX  ADVISORY  READ 78 00:1a:5 0 EOF\n\
            2: -> POSIX  ADVISORY  WRITE 77 00:1a:5 0 EOF\n\
            3: OFDLCK ADVISORY  READ -1 00:1a:5 0 EOF\n\
            4: POSIX  ADVISORY  READ 77 fd:01:6 0 99\n";
        assert!(has_line(text, 77, 6) && has_line(text, 78, 5));
        assert!(!has_line(text, 77, 5) && !has_line(text, 78, 6));
    }

    #[test]
    fn a_lock_behind_that_of_another_process_is_known() {
        let (own, other) = {
            let file = tempfile::NamedTempFile::new().unwrap();
            (file.reopen().unwrap(), file.into_file())
        };
        let lock = |file: &std::fs::File, start| {
            let (l_type, l_len) = (libc::c_short::try_from(libc::F_RDLCK).unwrap(), 10);
            let lock = libc::flock64 { l_type, l_whence: 0, l_start: start, l_len, l_pid: 0 };
            // SAFETY: a valid structure.
            assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) }, 0);
        };
        assert!(!has_record_locks(own.as_fd()));
        let mut ends = [0; 2];
        // SAFETY: room for two.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: the child makes a system call or two, and waits for its end.
        let child = unsafe { libc::fork() };
        if child == 0 {
            lock(&other, 0);
            // SAFETY: numbers, and memory of its own.
            unsafe { libc::write(ends[1], [1_u8].as_ptr().cast(), 1) };
            loop {
                // SAFETY: waits.
                unsafe { libc::pause() };
            }
        }
        let mut byte = [0_u8];
        // SAFETY: room for a byte.
        assert_eq!(unsafe { libc::read(ends[0], byte.as_mut_ptr().cast(), 1) }, 1);
        assert!(!has_record_locks(own.as_fd()), "that is another's");
        lock(&own, 0);
        assert!(has_record_locks(own.as_fd()), "the same bytes, behind it");
        // SAFETY: a child of this process.
        unsafe { libc::kill(child, libc::SIGKILL) };
        // SAFETY: as above; nothing is written.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        // SAFETY: made above.
        ends.into_iter().for_each(|end| drop(unsafe { owned(end) }));
    }
}
