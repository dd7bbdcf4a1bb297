//! Reading a range into memory of the host.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use super::Inner;
use super::sys::{self, Cached};
use crate::bounce::BounceBuffer;
use crate::fault::Failed;

/// Where the bytes shall stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadBuffer {
    /// The first of them.
    pub(crate) at: *mut u8,
    /// True for a slot of ours: `at` is [`Inner::skip`] bytes behind an aligned address, and the
    /// memory around, from that address to the next aligned one behind the end, may be written.
    pub(crate) slack: bool,
}

/// What was read: bytes by the way that they came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileBytes {
    pub(crate) cached: usize,
    pub(crate) direct: usize,
}

/// A read that the page cache could not answer, for whoever does many at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UncachedRead {
    pub(crate) fd: RawFd,
    pub(crate) at: *mut u8,
    pub(crate) len: u32,
    pub(crate) offset: u64,
}

/// What a look into the page cache gave.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CacheLookup {
    /// It is done.
    Done(Result<FileBytes, Failed>),
    /// It is not there. If the read that was told of comes back whole, this is what was got.
    Uncached { file_bytes: FileBytes },
}

impl FileBytes {
    pub(crate) fn total(&self) -> usize {
        self.cached + self.direct
    }
}

impl Inner {
    /// Reads `len` bytes at `offset`: fewer only where the file ends. `large` says that the call
    /// is, of which this may be a piece.
    ///
    /// What the page cache holds comes from there. The rest comes by direct I/O where the caller's
    /// descriptor has it or the call is large, and by a plain read otherwise, which has the kernel
    /// read ahead.
    ///
    /// # Safety
    ///
    /// The spot is valid for writes of `len` bytes, and of what its slack promises.
    pub(crate) unsafe fn read(
        &self,
        buffer: ReadBuffer,
        len: usize,
        offset: u64,
        large: bool,
    ) -> Result<FileBytes, Failed> {
        #[cfg(test)]
        self.panic_if_asked();
        let mut file_bytes = FileBytes::default();
        let buffered = self.reading();
        let direct =
            if self.bypasses_cache(large) || buffered.is_none() { self.direct() } else { None };
        if let Some(direct) = direct {
            if let Some(buffered) = buffered {
                // SAFETY: the caller's promise.
                file_bytes.cached = unsafe { self.read_cached(buffered, buffer.at, len, offset) }?;
            }
            if file_bytes.cached < len {
                let rest = buffer.after(file_bytes.cached);
                let (left, at) = (len - file_bytes.cached, offset + file_bytes.cached as u64);
                // SAFETY: the rest of the caller's spot.
                file_bytes.direct = unsafe { self.read_direct(direct, rest, left, at) }?;
            }
        }
        while file_bytes.total() < len {
            let (done, at) = (file_bytes.total(), offset + file_bytes.total() as u64);
            let rest = buffer.after(done);
            let more = if let Some(fd) = buffered {
                // SAFETY: the rest of the caller's spot.
                let more = unsafe { sys::pread(fd, rest.at, len - done, at) }?;
                file_bytes.cached += more;
                more
            } else {
                // SAFETY: the rest of the caller's spot.
                let more = unsafe { self.read_bounced(rest.at, len - done, at) }?;
                file_bytes.direct += more;
                more
            };
            if more == 0 {
                break;
            }
        }
        Ok(file_bytes)
    }

    /// As [`Inner::read`] for small pieces, but what would wait for the device is not read: it is
    /// added to `absent`, and [`CacheLookup::Uncached`] is the answer.
    ///
    /// # Safety
    ///
    /// As [`Inner::read`], with slack.
    pub(crate) unsafe fn read_cached_or_defer(
        &self,
        buffer: ReadBuffer,
        len: usize,
        offset: u64,
        absent: &mut Vec<UncachedRead>,
    ) -> CacheLookup {
        #[cfg(test)]
        self.panic_if_asked();
        let buffered = self.reading();
        let direct = if self.mode.direct { self.direct() } else { None };
        let (Some(fd), true) = (buffered, buffer.slack) else {
            // SAFETY: the caller's promise.
            return CacheLookup::Done(unsafe { self.read(buffer, len, offset, false) });
        };
        // SAFETY: the caller's promise.
        match unsafe { self.read_cached(fd, buffer.at, len, offset) } {
            Ok(found) if found == len => {
                return CacheLookup::Done(Ok(FileBytes { cached: found, direct: 0 }));
            }
            Ok(_) => {}
            Err(failed) => return CacheLookup::Done(Err(failed)),
        }
        let all = FileBytes { cached: 0, direct: len };
        let (limits, file_bytes) = match direct {
            Some(fd) => {
                let skip = self.skip(offset);
                let span = (skip + len).next_multiple_of(self.align());
                let (at, offset) = (buffer.at.wrapping_sub(skip), offset - skip as u64);
                (UncachedRead { fd, at, len: small(span), offset }, all)
            }
            None => {
                let file_bytes = FileBytes { cached: len, direct: 0 };
                (UncachedRead { fd, at: buffer.at, len: small(len), offset }, file_bytes)
            }
        };
        absent.push(limits);
        CacheLookup::Uncached { file_bytes }
    }

    /// What the page cache holds of the range, from its start on.
    ///
    /// # Safety
    ///
    /// `at` is valid for writes of `len` bytes.
    unsafe fn read_cached(
        &self,
        fd: RawFd,
        at: *mut u8,
        len: usize,
        offset: u64,
    ) -> Result<usize, Failed> {
        if !self.residency.is_worth_trying(fd, offset, len) {
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        let found = match unsafe { sys::pread_cached(fd, at, len, offset) }? {
            Cached::Bytes(bytes) => bytes,
            Cached::Nothing => 0,
            // A file system without the question keeps all its files in memory (tmpfs before Linux
            // 6.8), or can't tell: the caller's own mode decides.
            Cached::Unsupported => return Ok(0),
        };
        self.residency.record(found == len);
        Ok(found)
    }

    /// Reads by direct I/O as far as alignment lets it, which is all where there is slack. May end
    /// early, before the end of the file too: the caller goes on.
    ///
    /// # Safety
    ///
    /// As [`Inner::read`].
    unsafe fn read_direct(
        &self,
        fd: RawFd,
        buffer: ReadBuffer,
        len: usize,
        offset: u64,
    ) -> Result<usize, Failed> {
        let align = self.align();
        let skip = self.skip(offset);
        if !buffer.slack && (skip != 0 || !buffer.at.addr().is_multiple_of(align)) {
            return Ok(0);
        }
        let span =
            if buffer.slack { (skip + len).next_multiple_of(align) } else { len - len % align };
        let (start, from) = (buffer.at.wrapping_sub(skip), offset - skip as u64);
        let mut done = 0;
        while done < span {
            // SAFETY: inside the spot and its slack: `span` ends at most at the next aligned
            // address behind it.
            let more = unsafe {
                sys::pread(fd, start.wrapping_add(done), span - done, from + done as u64)
            };
            let more = match more {
                Ok(more) => more,
                Err(failed) if failed.errno == libc::EINVAL => {
                    self.direct_refused.store(!self.mode.direct, Ordering::Relaxed);
                    break;
                }
                Err(failed) => return Err(failed),
            };
            done += more;
            // What ends inside a block ends with the file.
            if more == 0 || !more.is_multiple_of(align) {
                break;
            }
        }
        Ok(done.saturating_sub(skip).min(len))
    }

    /// Reads one aligned piece through memory of its own and copies what was asked for: for a file
    /// that has no descriptor without `O_DIRECT`, into memory that direct I/O can't use.
    ///
    /// # Safety
    ///
    /// `at` is valid for writes of `len` bytes.
    unsafe fn read_bounced(&self, at: *mut u8, len: usize, offset: u64) -> Result<usize, Failed> {
        use std::os::fd::AsRawFd;
        let align = self.align();
        let skip = self.skip(offset);
        let mut bounce = BounceBuffer::new((skip + len).next_multiple_of(align), align);
        let (into, room) = (bounce.as_mut_ptr(), bounce.len());
        // SAFETY: all of a buffer of our own.
        let count = unsafe { sys::pread(self.own.as_raw_fd(), into, room, offset - skip as u64) }?;
        let bytes = count.saturating_sub(skip).min(len);
        // SAFETY: `bytes` are in the buffer behind `skip`, and `at` has room for them; a buffer
        // that was just allocated overlaps nobody's.
        unsafe { std::ptr::copy_nonoverlapping(into.wrapping_add(skip), at, bytes) };
        Ok(bytes)
    }
}

/// The length of a small read, which is far below 2^32.
fn small(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl ReadBuffer {
    fn after(self, bytes: usize) -> Self {
        Self { at: self.at.wrapping_add(bytes), slack: self.slack }
    }
}
