//! Lines for the user on standard error, which is the program's.
//!
//! By the time a line is due, descriptor 2 may be anything: a file with the program's data that was
//! opened after close(2) of it, a pipe that nothing reads, a terminal that is stopped. A line is
//! written only to what descriptor 2 was when the library was loaded (a regular file: when `gpuio
//! exec` started the program, for a library may be loaded late), only where that does not wait, and
//! never with a signal. Otherwise it is lost.

use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, Stat, fstat};

/// Where `gpuio exec` says which file standard error is: `DEVICE:INODE`.
const VARIABLE: &str = "GPUIO_CUFILE_STDERR";
/// Longest line: so much fits into a pipe that has room (PIPE_BUF, pipe(7)).
const MOST: usize = 4096;
/// Numbers from here on are seldom expected by a program.
const ABOVE: i32 = 200;

type Identity = (u64, u64);

static AT_LOAD: OnceLock<Option<Identity>> = OnceLock::new();

// SAFETY: the loader calls each address in this section, with arguments that this function of C's
// calling convention may leave alone (elf(5), DT_INIT_ARRAY); it never unwinds.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    crate::call::run_void(|| {
        AT_LOAD.get_or_init(|| fstat(number()).ok().map(|facts| identity(&facts)));
    });
}

fn number() -> BorrowedFd<'static> {
    // SAFETY: nothing is owned by this; a call on it while it is closed answers EBADF.
    unsafe { BorrowedFd::borrow_raw(2) }
}

fn identity(facts: &Stat) -> Identity {
    (facts.st_dev, facts.st_ino)
}

/// Writes a line, if that is safe.
pub(crate) fn write(text: &str) {
    write_if(text, |facts| {
        let exec = gpuio_guard::objects::environment::text(VARIABLE);
        is_the_users(facts, *AT_LOAD.get_or_init(|| None), exec.as_deref())
    });
}

/// Whether this is what the user gave as standard error.
fn is_the_users(facts: &Stat, at_load: Option<Identity>, exec: Option<&str>) -> bool {
    let (device, inode) = identity(facts);
    let is_regular = FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile;
    exec.is_some_and(|exec| exec == format!("{device}:{inode}"))
        || !is_regular && at_load == Some((device, inode))
}

fn write_if(text: &str, is_meant: impl Fn(&Stat) -> bool) {
    let meant = |fd: BorrowedFd<'_>| fstat(fd).is_ok_and(|facts| is_meant(&facts));
    if !meant(number()) {
        return;
    }
    // Another thread may replace descriptor 2 at any time: what is looked at is what is written to.
    let Ok(own) = rustix::io::fcntl_dupfd_cloexec(number(), ABOVE) else { return };
    let mut polled = [PollFd::new(&own, PollFlags::OUT)];
    let ready = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    if !meant(own.as_fd()) || ready != Ok(1) || polled[0].revents() != PollFlags::OUT {
        return;
    }
    let line = &text.as_bytes()[..text.len().min(MOST)];
    without_signals(|| {
        let _ = std::fs::File::from(own).write_all(line);
    });
}

/// Runs `write` without the signals that a write may send to its thread.
fn without_signals(write: impl FnOnce()) {
    // A terminal's signal that is blocked stops nothing: the line is written (tty_check_change).
    const SENT: [i32; 3] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGTTOU];
    let mut set = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    let mut waiting = MaybeUninit::uninit();
    // SAFETY: an address of a set that it fills.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in SENT {
        // SAFETY: the set is filled; the number is a signal's.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    }
    // SAFETY: both are sets, the first is filled.
    if unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: an address of a set that it fills.
    unsafe { libc::sigpending(waiting.as_mut_ptr()) };
    write();
    for signal in SENT {
        // SAFETY: `waiting` was filled above.
        if unsafe { libc::sigismember(waiting.as_ptr(), signal) } == 1 {
            continue;
        }
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut own = MaybeUninit::uninit();
        // SAFETY: an address of a set that it fills.
        unsafe { libc::sigemptyset(own.as_mut_ptr()) };
        // SAFETY: the set is filled.
        unsafe { libc::sigaddset(own.as_mut_ptr(), signal) };
        // SAFETY: a set and a time that live as long as the call, which takes the signal, if it
        // waits, and returns at once.
        unsafe { libc::sigtimedwait(own.as_ptr(), std::ptr::null_mut(), &raw const now) };
    }
    // SAFETY: the set is what the first call filled.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_regular_file_is_the_users_only_where_exec_says_so() {
        let file = tempfile::tempfile().unwrap();
        let facts = fstat(&file).unwrap();
        let (device, inode) = identity(&facts);
        let named = format!("{device}:{inode}");
        assert!(!is_the_users(&facts, Some((device, inode)), None));
        assert!(is_the_users(&facts, None, Some(&named)));
        assert!(!is_the_users(&facts, Some((device, inode)), Some("1:2")));
        let (_reads, pipe) = std::io::pipe().unwrap();
        let facts = fstat(&pipe).unwrap();
        assert!(is_the_users(&facts, Some(identity(&facts)), Some("1:2")));
        assert!(
            !is_the_users(&facts, Some((device, inode)), None) && !is_the_users(&facts, None, None)
        );
    }

    #[test]
    fn a_write_that_fails_sends_no_signal() {
        // The test program ignores SIGPIPE, so it is asked for here.
        // SAFETY: the default is no function of ours; no other test of this program writes to a
        // pipe without a reader.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (reads, pipe) = std::io::pipe().unwrap();
        drop(reads);
        without_signals(|| {
            assert!((&pipe).write_all(b"line").is_err());
        });
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGPIPE, before) };
        assert!(pipe.as_raw_fd() >= 0);
    }
}
