//! Opens a file again in another mode.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::kept::{Descriptor, KeptFd, Spare};

/// A descriptor that is opened on first use and closed with this value. Where the process has as
/// many as it may have, each use opens one of its own.
///
/// There is no lock: if two threads open it at once, the second closes its own descriptor and uses
/// the first's. So a child of `fork(2)` never waits for a thread that it does not have.
#[derive(Debug)]
pub(super) struct ReopenedFd {
    kept: AtomicPtr<KeptFd>,
    /// The kernel does not open the file so.
    refused: AtomicBool,
}

impl ReopenedFd {
    pub(super) fn new() -> Self {
        Self { kept: AtomicPtr::new(ptr::null_mut()), refused: AtomicBool::new(false) }
    }

    /// The descriptor: the file of `own`, reopened with `flags`. `advised`: it serves cached bytes,
    /// and the kernel is not to read ahead. `surely`: it is looked at in any case.
    pub(super) fn get(
        &self,
        own: &KeptFd,
        flags: libc::c_int,
        (advised, surely): (bool, bool),
    ) -> Option<Descriptor<'_>> {
        if let Some(kept) = self.known(surely) {
            return Some(Descriptor::Kept(kept));
        }
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let spare = Spare::take();
        let stays = spare.is_some();
        match open(own, flags, advised, spare) {
            Ok(opened) if stays => self.set(opened).map(Descriptor::Kept),
            Ok(opened) => Some(Descriptor::Opened(opened)),
            Err(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR) => None,
            Err(_) => {
                self.refused.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// The same, opened with `spare`.
    pub(super) fn get_with(
        &self,
        own: &KeptFd,
        flags: libc::c_int,
        (advised, spare): (bool, Spare),
    ) -> Option<&KeptFd> {
        self.set(open(own, flags, advised, Some(spare)).ok()?)
    }

    /// The descriptor, if it was opened, and the program has not closed it since.
    pub(super) fn known(&self, surely: bool) -> Option<&KeptFd> {
        let known = self.kept.load(Ordering::Acquire);
        // SAFETY: null, or from `Box::into_raw` in `set`; freed with this value only.
        let kept = unsafe { known.as_ref() }?;
        if kept.looks_ours(surely) {
            return Some(kept);
        }
        // Others may still look at it: it is never freed.
        let (none, order) = (ptr::null_mut(), Ordering::AcqRel);
        let _ = self.kept.compare_exchange(known, none, order, Ordering::Relaxed);
        None
    }

    /// From now on behaves as if the kernel had refused.
    #[cfg(test)]
    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    fn set(&self, opened: KeptFd) -> Option<&KeptFd> {
        let opened = Box::into_raw(Box::new(opened));
        let (none, order) = (ptr::null_mut(), Ordering::AcqRel);
        match self.kept.compare_exchange(none, opened, order, Ordering::Acquire) {
            // SAFETY: freed with this value only.
            Ok(_) => unsafe { opened.as_ref() },
            Err(first) => {
                // SAFETY: from above, and nobody has seen it.
                drop(unsafe { Box::from_raw(opened) });
                // SAFETY: as in `known`.
                unsafe { first.as_ref() }
            }
        }
    }
}

impl Drop for ReopenedFd {
    fn drop(&mut self) {
        let kept = *self.kept.get_mut();
        if !kept.is_null() {
            // SAFETY: from `Box::into_raw` in `set`, and this value alone has it.
            drop(unsafe { Box::from_raw(kept) });
        }
    }
}

/// Opens the file of a descriptor again, for reading; the errno if the kernel refuses. With
/// `is_spare` only where the process may have one more that it can do without (`EMFILE`).
pub(crate) fn reopen_to_read(file: &KeptFd, is_spare: bool) -> Result<KeptFd, i32> {
    let opened = |flags| {
        let spare = if is_spare { Some(Spare::take().ok_or(libc::EMFILE)?) } else { None };
        open(file, libc::O_RDONLY | flags, false, spare)
    };
    opened(libc::O_NOATIME).or_else(|_| opened(0))
}

fn open(
    own: &KeptFd,
    flags: libc::c_int,
    advised: bool,
    spare: Option<Spare>,
) -> Result<KeptFd, i32> {
    let opened = KeptFd::reopened(own, flags, spare)?;
    if advised {
        // With read-ahead, one cached piece would make the kernel read what follows into the cache
        // (mm/filemap.c, `filemap_readahead`), so that this is found cached too, and so on: most of
        // a cold file would be read twice. The advice holds for this descriptor alone, and a
        // refusal does no harm. SAFETY: a descriptor of ours, and no memory is passed.
        unsafe { libc::posix_fadvise(opened.raw(), 0, 0, libc::POSIX_FADV_RANDOM) };
    }
    Ok(opened)
}
