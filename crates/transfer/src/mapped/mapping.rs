//! Parts of files that a program maps for its own kernels ([`FileMapping`]).

use std::ops::Range;
use std::os::fd::BorrowedFd;

use gpuio_gpu::{DevPtr, FilePages, GpuError, MapError, MappedFile};
use thiserror::Error;

use super::MappedFiles;
use super::map::{Access, map};
use super::rule::{Rule, RuleAbsent};
use crate::device::Device;
use crate::file::{KeptFd, OpenFile, Stamp};

/// Why a part of a file can't be mapped for a program's kernels.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MappingError {
    /// Somebody has the file open for writing: this process or another one.
    #[error(
        "the file is open for writing, by this process or another one, so its bytes may change. \
         Close every writer, or seal the memfd, and map it again"
    )]
    Writer,
    /// Nothing makes sure that the bytes stay what they are.
    #[error(
        "nothing makes sure that the file's bytes stay what they are: a lease needs ext4, XFS, \
         Btrfs, F2FS or tmpfs, and the file's owner or CAP_LEASE"
    )]
    NoRule,
    /// The process holds as many leases as this library gives it.
    #[error(
        "the process holds {} leases, and this library takes no more. Give back a mapping first",
        super::lease::MOST
    )]
    TooMany,
    /// The file can't be opened a second time, by the descriptor's link in `/proc`.
    #[error(
        "the file can't be opened again for reading by /proc/self/fd: {}. /proc must be mounted, \
         this process must be allowed to read the file, and the limit of open files (ulimit -n) \
         must allow three more", std::io::Error::from_raw_os_error(*errno)
    )]
    Reopen {
        /// errno(3) of open(2).
        errno: i32,
    },
    /// The library has no thread to watch leases, or it is a child of `fork(2)`.
    #[error("no thread could be started that watches leases, or the process is a child of fork(2)")]
    NoWatcher,
    /// There is no CUDA driver, so no GPU.
    #[error("no CUDA driver could be loaded, so there is no GPU")]
    NoDriver,
    /// It could not be mapped or registered.
    #[error(transparent)]
    Map(#[from] MapError),
}

impl From<RuleAbsent> for MappingError {
    fn from(why: RuleAbsent) -> Self {
        match why {
            RuleAbsent::Writer => Self::Writer,
            RuleAbsent::Full => Self::TooMany,
            RuleAbsent::Reopen(errno) => Self::Reopen { errno },
            RuleAbsent::Never => Self::NoRule,
        }
    }
}

/// Whether the bytes of a mapping are still those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingState {
    /// They are, and no process waits to change them.
    Sure,
    /// Somebody waits to write the file, until the mapping is dropped or the kernel's
    /// `lease-break-time` (45 s by default) is over, or the file has changed without that: through
    /// overlayfs, or by a client of this machine's NFS server. Bytes that kernels read may be old.
    Wanted,
}

/// A part of a file in the page cache, which kernels of a device read at an address. Nothing
/// can write the file meanwhile: it is immutable, or this holds a read lease on it, and who opens
/// it for writing waits. Any thread may use it. Dropping it unregisters the pages, then gives the
/// lease back: no kernel may read them then.
#[derive(Debug)]
pub struct FileMapping {
    files: &'static MappedFiles,
    // Both are there until it is dropped.
    rule: Option<Rule>,
    registered: Option<MappedFile>,
    fd: KeptFd,
    /// The stamp from before it was registered.
    stamp: Option<Stamp>,
    device_ptr: DevPtr,
    bytes: u64,
}

impl FileMapping {
    /// Where kernels of the device read the first byte.
    pub fn address(&self) -> u64 {
        self.device_ptr.0
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the bytes are still those of the file. Asks the kernel (`F_GETLEASE`, `fstat`), so
    /// it is up to date.
    pub fn state(&self) -> MappingState {
        match &self.rule {
            Some(Rule::Lease(lease))
                if !lease.is_held()
                    || self.stamp.is_none()
                    || !self.fd.is_ours()
                    || Stamp::of(&self.fd) != self.stamp =>
            {
                MappingState::Wanted
            }
            _ => MappingState::Sure,
        }
    }

    /// Gives it back, as dropping it does.
    ///
    /// # Errors
    /// The driver's refusal to unregister the pages: they then stay in memory until the process
    /// ends. The lease is given back all the same.
    pub fn close(mut self) -> Result<(), GpuError> {
        match self.registered.take() {
            Some(registered) if self.files.is_here() => registered.close(),
            registered => {
                // The parent's, see below.
                std::mem::forget(registered);
                Ok(())
            }
        }
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        let (registered, rule) = (self.registered.take(), self.rule.take());
        if self.files.is_here() {
            drop(registered);
            drop(rule);
            return;
        }
        // In a child of `fork(2)` both are the parent's.
        std::mem::forget(registered);
        if let Some(Rule::Lease(lease)) = rule {
            lease.forget();
        }
    }
}

impl MappedFiles {
    /// Maps a part of a file for the program's kernels on a device: its pages are brought into the
    /// page cache and registered. Waits for the file's storage.
    pub(crate) fn map(
        &'static self,
        file: &OpenFile,
        device: &'static Device,
        range: Range<u64>,
    ) -> Result<FileMapping, MappingError> {
        let watcher = self.started_watcher().ok_or(MappingError::NoWatcher)?;
        let reopened = file.reopened_to_read(false);
        let fd = reopened.map_err(|errno| MappingError::Reopen { errno })?;
        let rule = super::rule::find(&fd, watcher, false)?;
        let stamp = Stamp::of(&fd);
        let (first, bytes) = (range.start, range.end.saturating_sub(range.start));
        let mapped = move |file: BorrowedFd<'_>| FilePages::map(file, range);
        let pages = map(fd.place(), Access::Read, mapped)?;
        pages.read_in(&|| true)?;
        let registered = pages.register(device.context(), true).map_err(MapError::Gpu)?;
        let start = registered.seen_by(device.context()).map_err(MapError::Gpu)?;
        let device_ptr = start.byte_add(first - registered.part().start);
        Ok(FileMapping {
            files: self,
            rule: Some(rule),
            registered: Some(registered),
            fd,
            stamp,
            device_ptr,
            bytes,
        })
    }

    /// The watcher, started if it is not running.
    fn started_watcher(&'static self) -> Option<super::Watcher> {
        if !self.is_here() || !self.mapper.has_started(self) {
            return None;
        }
        // The thread was started, and sets its number first of all.
        Some(*self.watcher.wait())
    }
}
