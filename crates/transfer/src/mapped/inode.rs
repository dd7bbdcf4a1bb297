//! A file that may be mapped: one for all descriptors of it that the library holds.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::MappedFiles;
use super::extent::{EXTENT, ExtentCell, Registered};
use super::rule::{Rule, RuleAbsent};
use crate::clock::Nanos;
use crate::file::{FileId, KeptFd, OpenFile, Stamp};

/// First and longest pause after somebody had the file open for writing, nanoseconds.
const PAUSE: Nanos = 1_000_000_000;
const PAUSE_MOST: Nanos = 60_000_000_000;

/// The rule that makes sure of the bytes, for readers: a copy of the one in [`RuleState`].
const UNSURE: u8 = 0;
const IMMUTABLE: u8 = 1;
const LEASED: u8 = 2;

/// A file that may be mapped. The library's files hold it, and with the last of them it ends.
#[derive(Debug)]
pub(crate) struct MappedInode {
    pub(super) files: &'static MappedFiles,
    pub(super) id: FileId,
    /// Open for reading, from when it is hot until the process has too few descriptors left.
    fd: Mutex<Option<Arc<KeptFd>>>,
    pub(super) cells: Box<[ExtentCell]>,
    sure: AtomicU8,
    /// The file's stamp when the lease was taken: size, and time of the last change.
    size: AtomicU64,
    modified: AtomicI64,
    rule: Mutex<RuleState>,
    /// The driver can't register it, or no rule will ever hold.
    pub(super) refused: AtomicBool,
}

#[derive(Debug)]
pub(super) struct RuleState {
    held: Option<Rule>,
    /// Counts the ends of rules.
    pub(super) ended: u64,
    /// Until when no rule is looked for, on the clock of the mapped files.
    until: Nanos,
    pause: Nanos,
}

impl MappedInode {
    pub(super) fn new(files: &'static MappedFiles, id: FileId, size: u64) -> Self {
        let cells = (0..size.div_ceil(EXTENT)).map(|_| ExtentCell::default()).collect();
        let rule = RuleState { held: None, ended: 0, until: 0, pause: PAUSE };
        Self {
            files,
            id,
            fd: Mutex::default(),
            cells,
            sure: AtomicU8::new(UNSURE),
            size: AtomicU64::new(0),
            modified: AtomicI64::new(0),
            rule: Mutex::new(rule),
            refused: AtomicBool::new(false),
        }
    }

    /// Its descriptor, if it has one and the program has not closed it.
    pub(super) fn fd(&self) -> Option<Arc<KeptFd>> {
        let fd = self.fd.lock().unwrap_or_else(PoisonError::into_inner).clone();
        fd.filter(|fd| fd.is_ours())
    }

    /// Gives it a descriptor, by one of its files; false where none can be had now. Whoever does
    /// not get the lock at once does without: in a child of `fork(2)` a thread of the parent may
    /// have it for ever.
    pub(super) fn has_fd(&self, of: &OpenFile) -> bool {
        let Ok(mut fd) = self.fd.try_lock() else { return false };
        if fd.is_none() {
            *fd = of.reopened_to_read(true).ok().map(Arc::new);
        }
        fd.is_some()
    }

    /// Closes its descriptor, when those who use it are done; false if it has none.
    pub(super) fn gives_fd_back(&self) -> bool {
        self.fd.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, RuleState> {
        self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what is mapped may be read at `now`.
    pub(super) fn is_sure(&self, now: Nanos) -> bool {
        match self.sure.load(Ordering::Acquire) {
            IMMUTABLE => true,
            LEASED => self.files.leases_are_fresh(now),
            _ => false,
        }
    }

    /// Whether the file is the one that it was when the rule was found. There are changes that end
    /// no lease, since no process opens the file: truncate(2) of a file of overlayfs, whose
    /// layer this is (ovl_setattr), or by a client of this machine's NFS server (nfsd_setattr).
    pub(super) fn is_unchanged(&self, stamp: impl FnOnce() -> Option<Stamp>) -> bool {
        let size = self.size.load(Ordering::Relaxed);
        let modified_ns = self.modified.load(Ordering::Relaxed);
        self.sure.load(Ordering::Relaxed) == IMMUTABLE
            || stamp() == Some(Stamp { size, modified_ns })
    }

    /// Finds a rule if there is none. Returns how many rules ended before it, for
    /// [`MappedInode::publish`].
    pub(super) fn find_rule(&self, now: Nanos) -> Option<u64> {
        let watcher = self.files.watcher()?;
        let mut rule = self.lock();
        if rule.held.is_some() {
            return Some(rule.ended);
        }
        if now < rule.until {
            return None;
        }
        let fd = self.fd()?;
        match super::rule::find(&fd, watcher, true) {
            Ok(found) => {
                let leased = matches!(found, Rule::Lease(_));
                // Nothing is registered under the rule yet.
                let stamp = Stamp::of(fd.as_ref())?;
                self.size.store(stamp.size, Ordering::Relaxed);
                self.modified.store(stamp.modified_ns, Ordering::Relaxed);
                rule.held = Some(found);
                self.sure.store(if leased { LEASED } else { IMMUTABLE }, Ordering::Release);
                if leased {
                    // It looks at all leases, with this one, before any is used.
                    watcher.wake();
                }
                Some(rule.ended)
            }
            Err(RuleAbsent::Writer | RuleAbsent::Full) => {
                rule.until = now + rule.pause;
                rule.pause = (rule.pause * 2).min(PAUSE_MOST);
                None
            }
            Err(RuleAbsent::Never | RuleAbsent::Reopen(_)) => {
                self.refused.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// Opens an extent, if the rule under which it was registered still holds; else returns it.
    ///
    /// # Safety
    /// Only the mapper calls it.
    pub(super) unsafe fn publish(
        &self,
        index: usize,
        registered: Registered,
        ended: u64,
        tick: u32,
    ) -> Result<(), Registered> {
        let rule = self.lock();
        if rule.held.is_none() || rule.ended != ended {
            return Err(registered);
        }
        // SAFETY: the caller's promise.
        unsafe { self.cells[index].put(registered, tick) }?;
        self.cells[index].open();
        Ok(())
    }

    /// Whether somebody wants the lease back, or has it.
    pub(super) fn lost_its_lease(&self) -> bool {
        matches!(&self.lock().held, Some(Rule::Lease(lease)) if !lease.is_held())
    }

    /// Ends the rule: no read begins any more that uses what is mapped, then the lease is given
    /// back. Reads that have begun go on: they run at the same time as what the writer then does,
    /// as a `pread(2)` would that began before it.
    pub(super) fn revoke(&self, now: Nanos) {
        let mut rule = self.lock();
        if rule.held.is_none() {
            return;
        }
        self.sure.store(UNSURE, Ordering::Release);
        for cell in &self.cells {
            cell.close();
            cell.cool();
        }
        rule.ended += 1;
        rule.until = now + rule.pause;
        rule.pause = (rule.pause * 2).min(PAUSE_MOST);
        drop(rule.held.take());
    }
}

impl Drop for MappedInode {
    fn drop(&mut self) {
        let held = self.rule.get_mut().unwrap_or_else(PoisonError::into_inner).held.take();
        if !self.files.is_here() {
            // In a child of `fork(2)` the parent's lease and registrations are not ours.
            if let Some(Rule::Lease(lease)) = held {
                lease.forget();
            }
            for cell in &mut self.cells {
                std::mem::forget(cell.end());
            }
            return;
        }
        drop(held);
        self.files.remove(self.id);
        let registered = self.cells.iter_mut().filter_map(ExtentCell::end);
        self.files.retire_soon(registered);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use gpuio_gpu::{Context, Driver, FilePages, Which};
    use rustix::fs::{MemfdFlags, SealFlags};

    use super::super::lease::Watcher;
    use super::*;
    use crate::settings::Settings;

    const LEN: u64 = 1 << 20;

    /// Registers the file, as the mapper does.
    fn registered(inode: &MappedInode) -> Registered {
        let context = Context::new(&Driver::load(&Which::Software).unwrap(), 0).unwrap();
        let pages = FilePages::map(inode.fd().unwrap().as_ref().as_fd(), 0..LEN).unwrap();
        let file = pages.register(&context, true).unwrap();
        let device_ptr = file.seen_by(&context).unwrap();
        Registered { file, device_ptr, serial: 1, ends_file: true }
    }

    #[test]
    fn what_was_registered_under_a_rule_that_ended_is_not_published_under_the_next() {
        let settings = Settings { driver: Which::Software, ..Settings::default() };
        let files: &'static MappedFiles = Box::leak(Box::new(MappedFiles::new(&settings)));
        files.watcher.set(Watcher::here()).unwrap();
        // A rule that needs no lease.
        let fd = rustix::fs::memfd_create(c"inode", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&fd, LEN).unwrap();
        let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW;
        rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
        let inode = MappedInode::new(files, FileId::default(), LEN);
        *inode.fd.lock().unwrap() = Some(Arc::new(KeptFd::duplicate(fd.as_fd()).unwrap()));

        let first = inode.find_rule(0).unwrap();
        let pages = registered(&inode);
        inode.revoke(0);
        // SAFETY: no other thread has the inode.
        let pages = unsafe { inode.publish(0, pages, first, 0) }.expect_err("no rule holds");
        assert_eq!(inode.find_rule(PAUSE - 1), None, "a pause");
        let second = inode.find_rule(PAUSE).unwrap();
        assert!(inode.is_sure(PAUSE));
        // SAFETY: as above.
        let pages = unsafe { inode.publish(0, pages, first, 0) }.expect_err("the rule ended");
        pages.file.close().unwrap();
        // SAFETY: as above.
        unsafe { inode.publish(0, registered(&inode), second, 0) }.expect("this one holds");
        assert!(inode.cells[0].enter(1, 0).is_some());

        inode.revoke(PAUSE);
        assert!(!inode.is_sure(PAUSE) && inode.cells[0].enter(1, 0).is_none());
        // The pause doubles.
        assert_eq!(inode.find_rule(3 * PAUSE - 1), None);
        assert!(inode.find_rule(3 * PAUSE).is_some());
        assert!(inode.cells[0].enter(1, 0).is_none(), "what is closed stays closed");
    }
}
