//! Read leases (`F_SETLEASE`, fcntl(2)): while one is held no process writes the file.
//! Who wants to, or to truncate the file, waits until the lease is given back, for
//! `/proc/sys/fs/lease-break-time` at most, and the holder gets a signal.

use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use super::rule::RuleAbsent;
use crate::file::{FileId, KeptFd};

/// Most leases of the process.
pub(super) const MOST: usize = 256;
/// No descriptor.
const NONE: RawFd = -1;

/// `struct f_owner_ex` (fcntl(2)).
#[repr(C)]
struct OwnerEx {
    kind: libc::c_int,
    pid: libc::pid_t,
}
const F_SETOWN_EX: libc::c_int = 15;
const F_OWNER_TID: libc::c_int = 0;

/// The descriptors of all leases and their files (device, inode, birth), for the child of a fork.
static DESCRIPTORS: [AtomicI32; MOST] = [const { AtomicI32::new(NONE) }; MOST];
static FILES: [[AtomicU64; 3]; MOST] = [const { [const { AtomicU64::new(0) }; 3] }; MOST];

/// A thread that blocks all signals and waits for those of leases, by its number (gettid(2)).
#[derive(Debug, Clone, Copy)]
pub(super) struct Watcher(libc::pid_t);

/// A lease on a file. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Lease {
    fd: KeptFd,
    entry: usize,
}

impl Lease {
    /// Takes a lease on the file of a descriptor. The lease has an open file description of its
    /// own. Its signal, SIGIO, goes to the watching thread, and to no handler of the program.
    /// `is_spare`: see [`crate::file::reopen_to_read`].
    pub(super) fn take(
        file: &KeptFd,
        watcher: Watcher,
        is_spare: bool,
    ) -> Result<Self, RuleAbsent> {
        if !closes_in_children() {
            return Err(RuleAbsent::Never);
        }
        let entry = DESCRIPTORS.iter().position(|one| {
            // A value that is no descriptor and not free.
            one.compare_exchange(NONE, NONE - 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        let entry = entry.ok_or(RuleAbsent::Full)?;
        let free = |why| {
            DESCRIPTORS[entry].store(NONE, Ordering::Release);
            why
        };
        let fd = crate::file::reopen_to_read(file, is_spare).map_err(|errno| {
            let for_now = is_spare && [libc::EMFILE, crate::file::HAS_LOCKS].contains(&errno);
            free(if for_now { RuleAbsent::Full } else { RuleAbsent::Reopen(errno) })
        })?;
        let FileId { device, inode, birth } = fd.place().file;
        for (part, value) in FILES[entry].iter().zip([device, inode, birth]) {
            part.store(value, Ordering::Relaxed);
        }
        DESCRIPTORS[entry].store(fd.raw(), Ordering::Release);
        // From here on dropping it frees the entry.
        let lease = Self { fd, entry };
        let owner = OwnerEx { kind: F_OWNER_TID, pid: watcher.0 };
        // SAFETY: `owner` is the structure that the call reads.
        if unsafe { libc::fcntl(lease.fd.raw(), F_SETOWN_EX, &raw const owner) } != 0 {
            return Err(RuleAbsent::Never);
        }
        // SAFETY: numbers only.
        if unsafe { libc::fcntl(lease.fd.raw(), libc::F_SETLEASE, libc::F_RDLCK) } == 0 {
            // Not one on another file, which the program put there meanwhile.
            return if lease.fd.is_ours() { Ok(lease) } else { Err(RuleAbsent::Full) };
        }
        let error = std::io::Error::last_os_error().raw_os_error();
        Err(if error == Some(libc::EAGAIN) { RuleAbsent::Writer } else { RuleAbsent::Never })
    }

    /// Whether it is held and not wanted back.
    pub(super) fn is_held(&self) -> bool {
        // SAFETY: numbers only.
        unsafe { libc::fcntl(self.fd.raw(), libc::F_GETLEASE) == libc::F_RDLCK }
    }

    /// Forgets it in a child of `fork(2)`, where its descriptor was closed.
    pub(super) fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Given back by name: a child that did not close the descriptor yet shares the lease.
        // SAFETY: numbers only.
        unsafe { libc::fcntl(self.fd.raw(), libc::F_SETLEASE, libc::F_UNLCK) };
        DESCRIPTORS[self.entry].store(NONE, Ordering::Release);
    }
}

/// Makes children of `fork(2)` close the leases' descriptors: a child that outlives this process
/// would keep the leases, and none would give them back. False if that can't be had.
fn closes_in_children() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    extern "C" fn in_child() {
        for (one, file) in DESCRIPTORS.iter().zip(&FILES) {
            let fd = one.swap(NONE, Ordering::AcqRel);
            let [device, inode, birth] = file.each_ref().map(|part| part.load(Ordering::Relaxed));
            // The program may have closed it, and have another file there.
            if fd >= 0 && crate::file::is_of(fd, FileId { device, inode, birth }) {
                // SAFETY: a lease's descriptor, which this process never uses.
                unsafe { libc::close(fd) };
            }
        }
    }
    // SAFETY: the function is safe in a child: it closes descriptors and changes atomics.
    *REGISTERED.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(in_child)) } == 0)
}

impl Watcher {
    /// The calling thread, which blocks all signals.
    pub(super) fn here() -> Self {
        // glibc has the function from 2.30 on only.
        Self(rustix::thread::gettid().as_raw_nonzero().get())
    }

    /// Wakes it. It lives as long as the process.
    pub(super) fn wake(self) {
        let process = std::process::id();
        // SAFETY: numbers; the thread is of this process and blocks the signal.
        unsafe { libc::syscall(libc::SYS_tgkill, process, self.0, libc::SIGIO) };
    }
}

/// Waits in the watching thread until a lease is wanted back, or for `seconds`.
pub(super) fn wait(seconds: i64) {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` is valid for the write of one set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: made above.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGIO) };
    let most = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
    // SAFETY: the set and the time are valid; nothing is written.
    unsafe { libc::sigtimedwait(set.as_ptr(), std::ptr::null_mut(), &raw const most) };
}

/// How long the kernel waits for a lease that it wants back, seconds; 0 if unknown.
pub(super) fn break_time() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/fs/lease-break-time");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
