//! Writes a range of a file from host memory.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use super::kept::Descriptor;
use super::read::FileBytes;
use super::{OpenFile, edges, sys};
use crate::bounce::BounceBuffer;
use crate::fault::FileFault;

impl OpenFile {
    /// Writes `len` bytes at `offset`: all of them, or an error.
    ///
    /// Without `O_DIRECT` the bytes go through the page cache, as the descriptor's owner would
    /// write them. With it, blocks that are whole in the file and aligned in memory are written
    /// directly. The edges go through the cache and are flushed at once, so that no dirty page is
    /// left that could overwrite a later direct write.
    ///
    /// # Safety
    /// `at` is valid for reads of `len` bytes.
    pub(crate) unsafe fn write(
        &self,
        at: *const u8,
        len: usize,
        offset: u64,
    ) -> Result<FileBytes, FileFault> {
        #[cfg(test)]
        self.panic_if_requested();
        self.check(true, offset, len)?;
        if !self.mode.direct {
            let buffered = self.buffered(true);
            let fd = buffered.as_ref().map_or(self.own.raw(), Descriptor::raw);
            let fd = self.unless_appending(fd, len, offset)?;
            // SAFETY: the caller's promise.
            unsafe { all(fd, at, len, offset) }?;
            return Ok(FileBytes { cached: len, direct: 0 });
        }
        let align = self.align();
        let skip = self.skip(offset);
        let head = ((align - skip) % align).min(len);
        let body = (len - head) / align * align;
        let congruent = (at.addr() + head).is_multiple_of(align);
        let mut file_bytes = FileBytes::default();
        let direct = if body > 0 && congruent { self.direct(true) } else { None };
        let direct = direct.filter(|fd| !self.appends(fd.raw()));
        let Some(direct) = direct else {
            // SAFETY: the caller's promise.
            return unsafe { self.edge(at, len, offset) };
        };
        if head > 0 {
            // SAFETY: the first part of the caller's range.
            file_bytes.add(unsafe { self.edge(at, head, offset) }?);
        }
        let middle = at.wrapping_add(head);
        // SAFETY: the middle part of the caller's range.
        file_bytes.add(unsafe { self.blocks(direct.raw(), middle, body, offset + head as u64) }?);
        let done = head + body;
        if done < len {
            // SAFETY: the last part of the caller's range.
            let last =
                unsafe { self.edge(at.wrapping_add(done), len - done, offset + done as u64) };
            file_bytes.add(last?);
        }
        Ok(file_bytes)
    }

    /// Writes whole blocks directly.
    ///
    /// # Safety
    /// As [`OpenFile::write`].
    unsafe fn blocks(
        &self,
        fd: RawFd,
        at: *const u8,
        len: usize,
        offset: u64,
    ) -> Result<FileBytes, FileFault> {
        let written = {
            let _shared = edges::shared(self.identity);
            // SAFETY: the caller's promise.
            unsafe { all(fd, at, len, offset) }
        };
        match written {
            Ok(()) => Ok(FileBytes { cached: 0, direct: len }),
            Err(failed) if failed.errno == libc::EINVAL && self.buffered(true).is_some() => {
                self.direct_refused.store(true, Ordering::Relaxed);
                // SAFETY: the caller's promise.
                unsafe { self.edge(at, len, offset) }
            }
            Err(failed) => Err(failed),
        }
    }

    /// Writes bytes that do not fill blocks, or whose memory direct I/O can't use.
    ///
    /// # Safety
    /// As [`OpenFile::write`].
    unsafe fn edge(&self, at: *const u8, len: usize, offset: u64) -> Result<FileBytes, FileFault> {
        if len == 0 {
            return Ok(FileBytes::default());
        }
        let _exclusive = edges::exclusive(self.identity);
        if let Some(buffered) = self.buffered(true) {
            let fd = self.unless_appending(buffered.raw(), len, offset)?;
            // SAFETY: the caller's promise.
            unsafe { all(fd, at, len, offset) }?;
            edges::flush_range(fd, offset, len)?;
            return Ok(FileBytes { cached: len, direct: 0 });
        }
        self.unless_appending(self.own.raw(), len, offset)?;
        let mut done = 0;
        while done < len {
            let from = at.wrapping_add(done);
            // SAFETY: the rest of the caller's range.
            done += unsafe { self.rewrite(from, len - done, offset + done as u64) }?;
        }
        Ok(FileBytes { cached: 0, direct: len })
    }

    /// Whether a write by this descriptor would append to the file, whatever its offset.
    fn appends(&self, fd: RawFd) -> bool {
        self.mode.append && fd == self.own.raw()
    }

    /// The descriptor to write by. An error if it appends and the file could not be reopened.
    fn unless_appending(&self, fd: RawFd, len: usize, offset: u64) -> Result<RawFd, FileFault> {
        let (call, errno) = ("pwrite to a descriptor with O_APPEND", libc::EOPNOTSUPP);
        let refused = FileFault { call, errno, offset, len: len as u64 };
        if self.appends(fd) { Err(refused) } else { Ok(fd) }
    }

    /// Reads blocks, changes the bytes in them and writes them back, keeping the file's length: for
    /// a file without a descriptor without `O_DIRECT`. Returns how many bytes one pass took.
    ///
    /// # Safety
    /// As [`OpenFile::write`]; nothing else writes edges of the file during the call.
    unsafe fn rewrite(&self, at: *const u8, len: usize, offset: u64) -> Result<usize, FileFault> {
        let own = self.own.raw();
        let align = self.align();
        let skip = self.skip(offset);
        let from = offset - skip as u64;
        let mut blocks = BounceBuffer::new((skip + len).next_multiple_of(align), align);
        let (start, room) = (blocks.as_mut_ptr(), blocks.len());
        let taken = len.min(room - skip);
        // SAFETY: all of a zeroed buffer of our own.
        let old = unsafe { sys::pread(own, start, room, from) }?;
        // SAFETY: `taken` bytes fit after `skip`; a new allocation overlaps nothing.
        unsafe { std::ptr::copy_nonoverlapping(at, start.wrapping_add(skip), taken) };
        let span = (skip + taken).next_multiple_of(align);
        // SAFETY: the first `span` bytes of the buffer, at most all.
        unsafe { all(own, start, span, from) }?;
        if self.regular && old < span {
            let end = from + old.max(skip + taken) as u64;
            rustix::fs::ftruncate(&self.own, end).map_err(|errno| FileFault {
                call: "ftruncate",
                errno: errno.raw_os_error(),
                offset: end,
                len: 0,
            })?;
        }
        Ok(taken)
    }
}

impl FileBytes {
    fn add(&mut self, other: Self) {
        self.cached += other.cached;
        self.direct += other.direct;
    }
}

/// Writes all bytes, continuing after short writes.
///
/// # Safety
/// As [`OpenFile::write`].
unsafe fn all(fd: RawFd, at: *const u8, len: usize, offset: u64) -> Result<(), FileFault> {
    let mut done = 0;
    while done < len {
        let at = at.wrapping_add(done);
        // SAFETY: the rest of the caller's range.
        let more = unsafe { sys::pwrite(fd, at, len - done, offset + done as u64) }?;
        if more == 0 {
            let (offset, len) = (offset + done as u64, (len - done) as u64);
            return Err(FileFault { call: "pwrite", errno: libc::EIO, offset, len });
        }
        done += more;
    }
    Ok(())
}
