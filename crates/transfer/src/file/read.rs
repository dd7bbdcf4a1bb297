//! Reads a range of a file into host memory.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use super::kept::Descriptor;
use super::sys::{self, Cached};
use super::{OpenFile, residency};
use crate::bounce::BounceBuffer;
use crate::fault::FileFault;

/// The longest read before which the descriptor is not looked at each time.
const SHORT: usize = 64 << 10;

/// The destination of a read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadBuffer {
    /// Its first byte.
    pub(crate) at: *mut u8,
    /// True for a staging slot: `at` is [`OpenFile::skip`] bytes after an aligned address, and the
    /// memory from that address to the next aligned one after the end may be written.
    pub(crate) slack: bool,
}

/// Bytes moved between file and host memory, by mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileBytes {
    pub(crate) cached: usize,
    pub(crate) direct: usize,
}

/// A read that the page cache could not serve, to be done together with others.
pub(crate) struct UncachedRead<'file> {
    pub(crate) fd: Descriptor<'file>,
    pub(crate) at: *mut u8,
    pub(crate) len: u32,
    pub(crate) offset: u64,
}

/// The result of a read from the page cache.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CacheLookup {
    /// The read is done.
    Done(Result<FileBytes, FileFault>),
    /// The bytes are not cached. If the deferred read completes in full, this is its result.
    Uncached { file_bytes: FileBytes },
}

impl FileBytes {
    pub(crate) fn total(&self) -> usize {
        self.cached + self.direct
    }
}

impl OpenFile {
    /// Reads `len` bytes at `offset`; fewer only at the end of the file. `large`: this is a piece
    /// of a large call.
    ///
    /// Cached bytes come from the page cache. The rest comes by direct I/O if the caller's
    /// descriptor has it or the call is large, otherwise by a plain read, for which the kernel
    /// reads ahead.
    ///
    /// # Safety
    /// The buffer is valid for writes of `len` bytes, and of its slack.
    pub(crate) unsafe fn read(
        &self,
        buffer: ReadBuffer,
        len: usize,
        offset: u64,
        large: bool,
    ) -> Result<FileBytes, FileFault> {
        #[cfg(test)]
        self.panic_if_requested();
        let mut file_bytes = FileBytes::default();
        // A short read is not worth a look each time: see `kept`.
        let surely = len > SHORT;
        self.check(surely, offset, len)?;
        let is_cold = buffer.slack && self.needs_no_cache(offset, len);
        let buffered = if is_cold { None } else { self.reading(surely) };
        let is_direct = self.bypasses_cache(large) || buffered.is_none();
        let direct = if is_direct { self.direct(surely) } else { None };
        let buffered = buffered.as_ref().map(Descriptor::raw);
        if let Some(direct) = direct.as_ref().map(Descriptor::raw) {
            if let Some(buffered) = buffered {
                // SAFETY: the caller's promise.
                file_bytes.cached = unsafe { self.read_cached(buffered, buffer.at, len, offset) }?;
            }
            if file_bytes.cached < len {
                let rest = buffer.after(file_bytes.cached);
                let (left, at) = (len - file_bytes.cached, offset + file_bytes.cached as u64);
                // SAFETY: the rest of the caller's buffer.
                file_bytes.direct = unsafe { self.read_direct(direct, rest, left, at) }?;
            }
        }
        while file_bytes.total() < len {
            let (done, at) = (file_bytes.total(), offset + file_bytes.total() as u64);
            let rest = buffer.after(done);
            let more = if let Some(fd) = buffered {
                // SAFETY: the rest of the caller's buffer.
                let more = unsafe { sys::pread(fd, rest.at, len - done, at) }?;
                file_bytes.cached += more;
                more
            } else {
                // SAFETY: the rest of the caller's buffer.
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

    /// Like [`OpenFile::read`] for small pieces, but does not wait for the device: a read that
    /// would is added to `absent`, and the result is [`CacheLookup::Uncached`].
    ///
    /// # Safety
    /// As [`OpenFile::read`], with slack.
    pub(crate) unsafe fn read_cached_or_defer<'file>(
        &'file self,
        buffer: ReadBuffer,
        len: usize,
        offset: u64,
        absent: &mut Vec<UncachedRead<'file>>,
    ) -> CacheLookup {
        #[cfg(test)]
        self.panic_if_requested();
        let surely = len > SHORT;
        if let Err(failed) = self.check(surely, offset, len) {
            return CacheLookup::Done(Err(failed));
        }
        let is_cold = buffer.slack && self.needs_no_cache(offset, len);
        let buffered = if is_cold { None } else { self.reading(surely) };
        let direct = if self.mode.direct { self.direct(surely) } else { None };
        let fd = match (buffered, &direct) {
            (Some(fd), _) if buffer.slack => {
                // SAFETY: the caller's promise.
                match unsafe { self.read_cached(fd.raw(), buffer.at, len, offset) } {
                    Ok(found) if found == len => {
                        return CacheLookup::Done(Ok(FileBytes { cached: found, direct: 0 }));
                    }
                    Ok(_) => Some(fd),
                    Err(failed) => return CacheLookup::Done(Err(failed)),
                }
            }
            (None, Some(_)) if is_cold => None,
            // SAFETY: the caller's promise.
            _ => return CacheLookup::Done(unsafe { self.read(buffer, len, offset, false) }),
        };
        let all = FileBytes { cached: 0, direct: len };
        let (uncached, file_bytes) = match direct.ok_or(fd) {
            Ok(fd) => {
                let skip = self.skip(offset);
                let span = (skip + len).next_multiple_of(self.align());
                let (at, offset) = (buffer.at.wrapping_sub(skip), offset - skip as u64);
                (UncachedRead { fd, at, len: small(span), offset }, all)
            }
            Err(fd) => {
                let Some(fd) = fd else { unreachable!("a cold file has a direct descriptor") };
                let file_bytes = FileBytes { cached: len, direct: 0 };
                (UncachedRead { fd, at: buffer.at, len: small(len), offset }, file_bytes)
            }
        };
        absent.push(uncached);
        CacheLookup::Uncached { file_bytes }
    }

    /// Whether a descriptor without `O_DIRECT` would have to be opened to find nothing cached.
    fn needs_no_cache(&self, offset: u64, len: usize) -> bool {
        self.mode.direct
            && self.align != 0
            && !self.buffered.is_open()
            && !self.residency.is_worth_trying(self.own.raw(), offset, len)
    }

    /// Reads the cached part of the range, from its start. Returns its length.
    ///
    /// # Safety
    /// `at` is valid for writes of `len` bytes.
    unsafe fn read_cached(
        &self,
        fd: RawFd,
        at: *mut u8,
        len: usize,
        offset: u64,
    ) -> Result<usize, FileFault> {
        if !self.residency.is_worth_trying(fd, offset, len) {
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        let found = match unsafe { sys::pread_cached(fd, at, len, offset) }? {
            Cached::Bytes(bytes) => bytes,
            Cached::Nothing => 0,
            // A file system without this query keeps all its files in memory (tmpfs before Linux
            // 6.8), or can't tell: the caller's own mode decides. Where that is the page cache, and
            // it holds the bytes, a plain read does not wait either (EROFS, Linux 6.18).
            Cached::Unsupported => {
                self.residency.assume_warm();
                if self.mode.direct || residency::holds(fd, offset, len) != Some(true) {
                    return Ok(0);
                }
                // SAFETY: the caller's promise.
                return unsafe { sys::pread(fd, at, len, offset) };
            }
        };
        self.residency.record(found == len);
        Ok(found)
    }

    /// Reads by direct I/O as far as alignment allows; with slack that is the whole range. May end
    /// early, even before the end of the file; the caller continues.
    ///
    /// # Safety
    /// As [`OpenFile::read`].
    unsafe fn read_direct(
        &self,
        fd: RawFd,
        buffer: ReadBuffer,
        len: usize,
        offset: u64,
    ) -> Result<usize, FileFault> {
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
            // SAFETY: inside the buffer and its slack: `span` ends at most at the next aligned
            // address after it.
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
            // A read that ends inside a block ends at the end of the file.
            if more == 0 || !more.is_multiple_of(align) {
                break;
            }
        }
        Ok(done.saturating_sub(skip).min(len))
    }

    /// Reads one aligned range through a temporary buffer and copies the requested bytes: for a
    /// file without a descriptor without `O_DIRECT`, into memory that direct I/O can't use.
    ///
    /// # Safety
    /// `at` is valid for writes of `len` bytes.
    unsafe fn read_bounced(
        &self,
        at: *mut u8,
        len: usize,
        offset: u64,
    ) -> Result<usize, FileFault> {
        let align = self.align();
        let skip = self.skip(offset);
        let mut bounce = BounceBuffer::new((skip + len).next_multiple_of(align), align);
        let (into, room) = (bounce.as_mut_ptr(), bounce.len());
        // SAFETY: all of a buffer of our own.
        let count = unsafe { sys::pread(self.own.raw(), into, room, offset - skip as u64) }?;
        let bytes = count.saturating_sub(skip).min(len);
        // SAFETY: `bytes` are in the buffer after `skip`, and `at` has space for them; a new
        // allocation overlaps nothing.
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
