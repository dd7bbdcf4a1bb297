//! Detects a child of `fork(2)`, and holds values that belong to one process.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Identifies the process that made it.
///
/// The kernel clears a page of this mapping in a child (`madvise(2)`, `MADV_WIPEONFORK`, Linux
/// 4.14). So the check is one load, and `fork` calls no handler of ours. Where the kernel lacks
/// this, process IDs are compared.
#[derive(Debug)]
pub(crate) enum ProcessMark {
    Page(*const AtomicU32),
    Number(u32),
}

// SAFETY: the page is only read through an atomic, and never unmapped.
unsafe impl Send for ProcessMark {}
// SAFETY: as for Send.
unsafe impl Sync for ProcessMark {}

impl ProcessMark {
    /// Marks this process. Its page stays mapped for the life of the process.
    pub(crate) fn new() -> Self {
        match page() {
            Some(page) => Self::Page(page),
            None => Self::Number(std::process::id()),
        }
    }

    /// True in the process that made it, false in its children.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        match self {
            // SAFETY: never unmapped, aligned, and only used as an atomic.
            Self::Page(page) => unsafe { &**page }.load(Ordering::Relaxed) == 1,
            Self::Number(number) => *number == std::process::id(),
        }
    }
}

/// A value that each process has for itself and that is never freed. A child of `fork(2)` makes its
/// own: it lacks its parent's threads, and the parent's locks may be held forever.
#[derive(Debug)]
pub(crate) struct PerProcess<T>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> PerProcess<T> {
    /// Made on first use.
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Starts with `value` for this process.
    pub(crate) fn with(value: T) -> Self {
        Self(AtomicPtr::new(Box::into_raw(Box::new(value))))
    }

    /// This process's value: the existing one if its `mark` is of this process, else the result of
    /// `make`.
    pub(crate) fn get(
        &self,
        mark: impl FnOnce(&T) -> &ProcessMark,
        make: impl FnOnce() -> T,
    ) -> &'static T {
        let known = self.0.load(Ordering::Acquire);
        // SAFETY: null, or from Box::into_raw, above or below, and never freed.
        if let Some(value) = unsafe { known.as_ref() }
            && mark(value).is_here()
        {
            return value;
        }
        let fresh = Box::into_raw(Box::new(make()));
        match self.0.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &*fresh },
            Err(first) => {
                // SAFETY: from Box::into_raw above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: another thread's of this process; never freed.
                unsafe { &*first }
            }
        }
    }
}

fn page() -> Option<*const AtomicU32> {
    let len = rustix::param::page_size();
    let (prot, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping at an address that the kernel chooses touches no other.
    let start = unsafe { libc::mmap(ptr::null_mut(), len, prot, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    if !wiped(start, len) {
        // SAFETY: mapped above with this length, and not used elsewhere.
        unsafe { libc::munmap(start, len) };
        return None;
    }
    let page = start.cast::<AtomicU32>();
    // SAFETY: a page of ours, aligned, holding zeros.
    unsafe { &*page }.store(1, Ordering::Relaxed);
    Some(page)
}

fn wiped(start: *mut c_void, len: usize) -> bool {
    // SAFETY: whole pages of a mapping of ours.
    unsafe { libc::madvise(start, len, libc::MADV_WIPEONFORK) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_not_here() {
        let mark = ProcessMark::new();
        assert!(mark.is_here());
        assert!(matches!(mark, ProcessMark::Page(_)), "this kernel has MADV_WIPEONFORK");
        // SAFETY: the child only loads an atomic and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = i32::from(mark.is_here());
            // SAFETY: leaves at once, running no handler.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `status` is valid for the write of one int.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
        assert!(mark.is_here());
    }
}
