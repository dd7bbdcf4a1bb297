//! Copies that survive a mapped file's end moving under them.
//!
//! Touching a page of a mapping that lies past the end of the file, or that the device can't
//! read, is SIGBUS (mmap(2)). The handler here puts an anonymous page in its place, so that the
//! copy runs to its end, and notes the address; the copy then reports the hit. Addresses outside
//! the copy's mapping go to the handler that was there before.
//!
//! SIGBUS from a memory access is delivered to the thread that made it, so what the handler
//! needs lies in a thread-local: no lock, no table, and other threads' faults can't be confused.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

/// The mapping a copy of this thread is in, and what the handler found.
struct Guard {
    start: AtomicUsize,
    end: AtomicUsize,
    first: AtomicUsize,
    last: AtomicUsize,
}

thread_local! {
    // Const and without a destructor, so that the handler reaches it without any
    // initialisation: that would not be safe in a signal handler.
    static GUARD: Guard = const {
        Guard {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            first: AtomicUsize::new(usize::MAX),
            last: AtomicUsize::new(0),
        }
    };
}

/// The addresses, lowest and highest, at which a copy met SIGBUS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) first: usize,
    pub(super) last: usize,
}

struct Installed {
    page: usize,
    previous: libc::sigaction,
}

static INSTALLED: OnceLock<Installed> = OnceLock::new();

/// Installs the handler, once for the process; later calls do nothing. Any thread.
///
/// # Errors
/// sigaction(2) refused.
pub(super) fn install() -> io::Result<()> {
    static OUTCOME: OnceLock<Result<(), i32>> = OnceLock::new();
    OUTCOME
        .get_or_init(|| install_once().map_err(|err| err.raw_os_error().unwrap_or(libc::EINVAL)))
        .map_err(io::Error::from_raw_os_error)
}

fn install_once() -> io::Result<()> {
    // SAFETY: a sigaction is numbers, a mask and null pointers; all zero is a value of it.
    let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks only; `previous` is writable.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut previous) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // The handler reads this, so it is there before the handler is.
    INSTALLED.get_or_init(|| Installed { page: rustix::param::page_size(), previous });
    // SAFETY: as above.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_sigbus as *const () as usize;
    // SA_ONSTACK: a handler before us may have wanted the alternate stack.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the handler is async-signal-safe (atomics, mmap, sigaction, raise) and lives as
    // long as the process.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Copies `len` bytes while the mapping `start..end` is guarded.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes and they do not overlap; that part of
/// them which is not ordinary memory lies in `start..end`, which is one mapping of whole pages
/// that nothing but this thread replaces.
pub(super) unsafe fn copy(
    from: *const u8,
    to: *mut u8,
    len: usize,
    mapping: (usize, usize),
) -> Result<(), Hit> {
    GUARD.with(|guard| {
        guard.end.store(mapping.1, Ordering::Relaxed);
        guard.start.store(mapping.0, Ordering::Relaxed);
        // The handler runs on this thread, so it is the compiler alone that must not reorder.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the caller's promise; a page that is gone is replaced by the handler.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
        compiler_fence(Ordering::SeqCst);
        guard.end.store(0, Ordering::Relaxed);
        let first = guard.first.load(Ordering::Relaxed);
        if first == usize::MAX {
            return Ok(());
        }
        let last = guard.last.swap(0, Ordering::Relaxed);
        guard.first.store(usize::MAX, Ordering::Relaxed);
        Err(Hit { first, last })
    })
}

extern "C" fn on_sigbus(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: with SA_SIGINFO the kernel passes a siginfo, which lives as long as this call.
    let details = unsafe { &*info };
    // SAFETY: every field of a siginfo can be read; what this one holds for a signal that a
    // process sent is no address, and the code below tells.
    let address = unsafe { details.si_addr() } as usize;
    if let Some(installed) = INSTALLED.get() {
        // A positive code says that the kernel made the signal (sigaction(2)).
        if details.si_code > 0 && patch(address, installed.page) {
            return;
        }
        forward(&installed.previous, signal, info, context);
    } else {
        die(signal);
    }
}

/// Puts an anonymous page under `address` if it is in the guarded mapping.
fn patch(address: usize, page: usize) -> bool {
    GUARD.with(|guard| {
        let start = guard.start.load(Ordering::Relaxed);
        let end = guard.end.load(Ordering::Relaxed);
        if address < start || address >= end {
            return false;
        }
        // SAFETY: errno is this thread's own.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: the location is always valid; the interrupted code must find errno as it was.
        let saved = unsafe { *errno };
        let base = (address & !(page - 1)) as *mut libc::c_void;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: replaces one whole page of the mapping that `copy`'s caller owns.
        let mapped = unsafe { libc::mmap(base, page, access, flags, -1, 0) };
        // SAFETY: as for the read above.
        unsafe { *errno = saved };
        if mapped == libc::MAP_FAILED {
            return false;
        }
        guard.first.store(guard.first.load(Ordering::Relaxed).min(address), Ordering::Relaxed);
        guard.last.store(guard.last.load(Ordering::Relaxed).max(address), Ordering::Relaxed);
        true
    })
}

/// Does what the process did with SIGBUS before us.
fn forward(
    previous: &libc::sigaction,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    type Plain = extern "C" fn(libc::c_int);
    type Informed = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    let handler = previous.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // Ignoring a fault is not possible: the kernel kills in that case too.
        die(signal);
    } else if previous.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the address was given to sigaction(2) as a handler of this kind.
        let handler = unsafe { std::mem::transmute::<usize, Informed>(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: as above.
        let handler = unsafe { std::mem::transmute::<usize, Plain>(handler) };
        handler(signal);
    }
}

/// Takes the default action, death by signal, once this handler returns.
fn die(signal: libc::c_int) {
    // SAFETY: all zero is SIG_DFL with no flags.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: async-signal-safe (signal-safety(7)).
    unsafe { libc::sigaction(signal, &raw const default, std::ptr::null_mut()) };
    // SAFETY: async-signal-safe; the signal is blocked until the handler returns.
    unsafe { libc::raise(signal) };
}
