//! Opens a file again in another mode.

use std::os::fd::AsFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use super::closing;
use super::kept::{Descriptor, KeptFd, Spare, SpareUse};

/// A descriptor that is opened on first use and closed with this value, or earlier where the
/// process has too many. Where it has as many as it may have, each use opens one of its own.
///
/// There is no lock: if two threads open it at once, the second closes its own descriptor and uses
/// the first's. So a child of `fork(2)` never waits for a thread that it does not have.
///
/// A use raises the count of users and then reads the pointer; who closes takes the pointer away
/// and then reads the count, all sequentially consistent. So either the user finds nothing, or the
/// closer finds a user.
#[derive(Debug)]
pub(super) struct ReopenedFd {
    kept: AtomicPtr<KeptFd>,
    users: AtomicU32,
    /// Taken away while it had users.
    given_up: AtomicPtr<KeptFd>,
    /// The kernel does not open the file so.
    refused: AtomicBool,
    /// It is opened even if the process has a record lock on the file: a number is then taken until
    /// that is gone.
    is_needed: bool,
}

/// The errno of an opening that is left out for the sake of the program's locks.
pub(crate) const HAS_LOCKS: i32 = libc::EBUSY;

impl ReopenedFd {
    pub(super) fn new(is_needed: bool) -> Self {
        let none = || AtomicPtr::new(ptr::null_mut());
        let (users, refused) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { kept: none(), users, given_up: none(), refused, is_needed }
    }

    /// The descriptor: the file of `own`, reopened with `flags`. `advised`: it serves cached bytes,
    /// and the kernel is not to read ahead. `surely`: it is looked at in any case. `has_opened` is
    /// called if it is one that stays.
    pub(super) fn get(
        &self,
        own: &KeptFd,
        flags: libc::c_int,
        (advised, surely): (bool, bool),
        has_opened: impl FnOnce(),
    ) -> Option<Descriptor<'_>> {
        if let Some(known) = self.known(surely) {
            return Some(known);
        }
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let spare = Spare::take();
        let stays = spare.is_some();
        match open(own, flags, (advised, self.is_needed), spare) {
            Ok(opened) if stays => {
                has_opened();
                self.set(opened)
            }
            Ok(opened) => Some(Descriptor::Opened(opened)),
            Err(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR | HAS_LOCKS) => None,
            Err(_) => {
                self.refused.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// The same, opened with `spare`: one that stays.
    pub(super) fn get_with(
        &self,
        own: &KeptFd,
        flags: libc::c_int,
        (advised, spare): (bool, Spare),
        has_opened: impl FnOnce(),
    ) -> Option<Descriptor<'_>> {
        let opened = open(own, flags, (advised, false), Some(spare)).ok()?;
        has_opened();
        self.set(opened)
    }

    /// Whether it was opened.
    pub(super) fn is_open(&self) -> bool {
        !self.kept.load(Ordering::Relaxed).is_null()
    }

    fn enter(&self) -> SpareUse<'_> {
        self.users.fetch_add(1, Ordering::SeqCst);
        SpareUse(&self.users)
    }

    /// The descriptor, if it was opened, and the program has not closed it since.
    pub(super) fn known(&self, surely: bool) -> Option<Descriptor<'_>> {
        if !self.is_open() {
            return None;
        }
        let used = self.enter();
        let known = self.kept.load(Ordering::SeqCst);
        // SAFETY: null, or from `Box::into_raw` in `set`, and not freed while there are users.
        let kept = unsafe { known.as_ref() }?;
        if kept.looks_ours(surely) {
            return Some(Descriptor::Spare { kept, _used: used });
        }
        // The number is the program's now. Others may still look at this: it is never freed.
        let (none, order) = (ptr::null_mut(), Ordering::SeqCst);
        let _ = self.kept.compare_exchange(known, none, order, Ordering::Relaxed);
        None
    }

    /// From now on behaves as if the kernel had refused.
    #[cfg(test)]
    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    fn set(&self, opened: KeptFd) -> Option<Descriptor<'_>> {
        let used = self.enter();
        let opened = Box::into_raw(Box::new(opened));
        let (none, order) = (ptr::null_mut(), Ordering::SeqCst);
        let now = match self.kept.compare_exchange(none, opened, order, Ordering::SeqCst) {
            Ok(_) => opened,
            Err(first) => {
                // SAFETY: from above, and nobody has seen it.
                drop(unsafe { Box::from_raw(opened) });
                first
            }
        };
        // SAFETY: as in `known`; the use was counted before the pointer was read.
        unsafe { now.as_ref() }.map(|kept| Descriptor::Spare { kept, _used: used })
    }

    /// Closes it, unless it is in use. It is opened again when it is needed. One thread at a time
    /// calls this.
    pub(super) fn close_unused(&self) {
        if self.users.load(Ordering::SeqCst) != 0 {
            return;
        }
        free(self.given_up.swap(ptr::null_mut(), Ordering::AcqRel));
        let kept = self.kept.swap(ptr::null_mut(), Ordering::SeqCst);
        if self.users.load(Ordering::SeqCst) == 0 {
            free(kept);
        } else {
            self.given_up.store(kept, Ordering::Release);
        }
    }
}

/// Closes a descriptor that nobody uses.
fn free(kept: *mut KeptFd) {
    if !kept.is_null() {
        // SAFETY: from `Box::into_raw` in `set`, taken out of its place by the caller, and without
        // users.
        drop(unsafe { Box::from_raw(kept) });
    }
}

impl Drop for ReopenedFd {
    fn drop(&mut self) {
        free(*self.kept.get_mut());
        free(*self.given_up.get_mut());
    }
}

/// Opens the file of a descriptor again, for reading; the errno if the kernel refuses. With
/// `is_spare` only where the process may have one more that it can do without (`EMFILE`).
pub(crate) fn reopen_to_read(file: &KeptFd, is_spare: bool) -> Result<KeptFd, i32> {
    let opened = |flags| {
        let spare = if is_spare { Some(Spare::take_fixed().ok_or(libc::EMFILE)?) } else { None };
        open(file, libc::O_RDONLY | flags, (false, !is_spare), spare)
    };
    opened(libc::O_NOATIME).or_else(|_| opened(0))
}

/// `is_needed`: record locks of the program's do not matter.
fn open(
    own: &KeptFd,
    flags: libc::c_int,
    (advised, is_needed): (bool, bool),
    spare: Option<Spare>,
) -> Result<KeptFd, i32> {
    let has_locks = if is_needed { closing::has_write_lease } else { closing::has_locks };
    if has_locks(own.as_fd()) {
        return Err(HAS_LOCKS);
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn what_is_in_use_is_not_closed() {
        let file = tempfile::tempfile().unwrap();
        let own = KeptFd::duplicate(file.as_fd()).unwrap();
        let reopened = ReopenedFd::new(false);
        let get = || reopened.get(&own, libc::O_RDWR, (false, true), || ()).unwrap();
        let used = get();
        let fd = used.raw();
        reopened.close_unused();
        assert_eq!(get().raw(), fd, "it is in use");
        drop(used);
        reopened.close_unused();
        assert!(!reopened.is_open());
        assert!(get().raw() >= 3 && reopened.is_open(), "opened again");
    }

    #[test]
    fn uses_find_the_file_while_it_is_closed_again_and_again() {
        let file = tempfile::tempfile().unwrap();
        let own = KeptFd::duplicate(file.as_fd()).unwrap();
        let (reopened, inode) = (&ReopenedFd::new(false), file.metadata().unwrap().ino());
        let done = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let users: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..3000 {
                            let used = reopened.get(&own, libc::O_RDWR, (false, false), || ());
                            let used = used.unwrap();
                            // SAFETY: open for as long as the use.
                            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(used.raw()) };
                            assert_eq!(rustix::fs::fstat(fd).unwrap().st_ino, inode);
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    reopened.close_unused();
                }
            });
            let ended: Vec<_> = users.into_iter().map(|user| user.join()).collect();
            done.store(true, Ordering::Release);
            ended.into_iter().for_each(|user| user.unwrap());
        });
    }
}
