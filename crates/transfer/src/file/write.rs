//! Writing a range from memory of the host.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;

use super::read::Got;
use super::{Inner, edges, sys};
use crate::bounce::Bounce;
use crate::fault::Failed;

impl Inner {
    /// Writes `len` bytes at `offset`, all of them or an error.
    ///
    /// A descriptor without `O_DIRECT` is written through the page cache, as its owner would. With
    /// it, blocks that are whole in the file and aligned in memory go past the cache; the edges go
    /// through it and to the device at once, so that no dirty page is left which a later direct
    /// write could lose its bytes to.
    ///
    /// # Safety
    ///
    /// `at` is valid for reads of `len` bytes.
    pub(crate) unsafe fn write(
        &self,
        at: *const u8,
        len: usize,
        offset: u64,
    ) -> Result<Got, Failed> {
        #[cfg(test)]
        self.panic_if_asked();
        if !self.mode.direct {
            let own = self.own.as_raw_fd();
            let fd = self.unless_appending(Some(self.buffered().unwrap_or(own)), len, offset)?;
            // SAFETY: the caller's promise.
            unsafe { all(fd, at, len, offset) }?;
            return Ok(Got { cached: len, direct: 0 });
        }
        let align = self.align();
        let skip = self.skip(offset);
        let head = ((align - skip) % align).min(len);
        let body = (len - head) / align * align;
        let congruent = (at.addr() + head).is_multiple_of(align);
        let mut got = Got::default();
        let direct = self.direct().filter(|fd| body > 0 && congruent && !self.appends(*fd));
        let Some(direct) = direct else {
            // SAFETY: the caller's promise.
            return unsafe { self.edge(at, len, offset) };
        };
        if head > 0 {
            // SAFETY: the first part of the caller's range.
            got.add(unsafe { self.edge(at, head, offset) }?);
        }
        let middle = at.wrapping_add(head);
        // SAFETY: the middle part of the caller's range.
        got.add(unsafe { self.blocks(direct, middle, body, offset + head as u64) }?);
        let done = head + body;
        if done < len {
            // SAFETY: the last part of the caller's range.
            let last =
                unsafe { self.edge(at.wrapping_add(done), len - done, offset + done as u64) };
            got.add(last?);
        }
        Ok(got)
    }

    /// Whole blocks, past the cache.
    ///
    /// # Safety
    ///
    /// As [`Inner::write`].
    unsafe fn blocks(
        &self,
        fd: RawFd,
        at: *const u8,
        len: usize,
        offset: u64,
    ) -> Result<Got, Failed> {
        let written = {
            let _shared = edges::shared(self.identity);
            // SAFETY: the caller's promise.
            unsafe { all(fd, at, len, offset) }
        };
        match written {
            Ok(()) => Ok(Got { cached: 0, direct: len }),
            Err(failed) if failed.errno == libc::EINVAL && self.buffered().is_some() => {
                self.direct_refused.store(true, Ordering::Relaxed);
                // SAFETY: the caller's promise.
                unsafe { self.edge(at, len, offset) }
            }
            Err(failed) => Err(failed),
        }
    }

    /// Bytes that do not fill blocks, or stand where direct I/O can't take them.
    ///
    /// # Safety
    ///
    /// As [`Inner::write`].
    unsafe fn edge(&self, at: *const u8, len: usize, offset: u64) -> Result<Got, Failed> {
        if len == 0 {
            return Ok(Got::default());
        }
        let _alone = edges::alone(self.identity);
        if let Some(fd) = self.buffered() {
            let fd = self.unless_appending(Some(fd), len, offset)?;
            // SAFETY: the caller's promise.
            unsafe { all(fd, at, len, offset) }?;
            edges::to_device(fd, offset, len)?;
            return Ok(Got { cached: len, direct: 0 });
        }
        self.unless_appending(None, len, offset)?;
        let mut done = 0;
        while done < len {
            let from = at.wrapping_add(done);
            // SAFETY: the rest of the caller's range.
            done += unsafe { self.rewrite(from, len - done, offset + done as u64) }?;
        }
        Ok(Got { cached: 0, direct: len })
    }

    /// Whether a write by this descriptor would land behind the end of the file, whatever its
    /// offset.
    fn appends(&self, fd: RawFd) -> bool {
        self.mode.append && fd == self.own.as_raw_fd()
    }

    /// The descriptor to write by, the caller's own where none is given; refused where that appends
    /// and the file could not be opened anew.
    fn unless_appending(
        &self,
        fd: Option<RawFd>,
        len: usize,
        offset: u64,
    ) -> Result<RawFd, Failed> {
        let fd = fd.unwrap_or(self.own.as_raw_fd());
        let (call, errno) = ("pwrite to a descriptor with O_APPEND", libc::EOPNOTSUPP);
        let refused = Failed { call, errno, offset, len: len as u64 };
        if self.appends(fd) { Err(refused) } else { Ok(fd) }
    }

    /// Reads blocks, puts the bytes into them and writes them back, keeping the file's length: for
    /// a file that has no descriptor without `O_DIRECT`. Answers how many bytes one turn took.
    ///
    /// # Safety
    ///
    /// As [`Inner::write`]; nobody else writes edges of the file meanwhile.
    unsafe fn rewrite(&self, at: *const u8, len: usize, offset: u64) -> Result<usize, Failed> {
        let own = self.own.as_raw_fd();
        let align = self.align();
        let skip = self.skip(offset);
        let from = offset - skip as u64;
        let mut blocks = Bounce::new((skip + len).next_multiple_of(align), align);
        let (start, room) = (blocks.as_mut_ptr(), blocks.len());
        let taken = len.min(room - skip);
        // SAFETY: all of a zeroed buffer of our own.
        let old = unsafe { sys::pread(own, start, room, from) }?;
        // SAFETY: `taken` bytes fit behind `skip`; a buffer that was just allocated overlaps
        // nobody's.
        unsafe { std::ptr::copy_nonoverlapping(at, start.wrapping_add(skip), taken) };
        let span = (skip + taken).next_multiple_of(align);
        // SAFETY: the first `span` bytes of the buffer, at most all.
        unsafe { all(own, start, span, from) }?;
        if self.regular && old < span {
            let end = from + old.max(skip + taken) as u64;
            rustix::fs::ftruncate(&self.own, end).map_err(|errno| Failed {
                call: "ftruncate",
                errno: errno.raw_os_error(),
                offset: end,
                len: 0,
            })?;
        }
        Ok(taken)
    }
}

impl Got {
    fn add(&mut self, other: Self) {
        self.cached += other.cached;
        self.direct += other.direct;
    }
}

/// Writes all of the bytes, going on where the kernel stopped short.
///
/// # Safety
///
/// As [`Inner::write`].
unsafe fn all(fd: RawFd, at: *const u8, len: usize, offset: u64) -> Result<(), Failed> {
    let mut done = 0;
    while done < len {
        let at = at.wrapping_add(done);
        // SAFETY: the rest of the caller's range.
        let more = unsafe { sys::pwrite(fd, at, len - done, offset + done as u64) }?;
        if more == 0 {
            let (offset, len) = (offset + done as u64, (len - done) as u64);
            return Err(Failed { call: "pwrite", errno: libc::EIO, offset, len });
        }
        done += more;
    }
    Ok(())
}
