//! Reading a range into memory of the host.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use super::Inner;
use super::sys::{self, Cached};
use crate::bounce::Bounce;
use crate::fault::Failed;

/// Where the bytes shall stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    /// The first of them.
    pub(crate) at: *mut u8,
    /// True for a slot of ours: `at` is [`Inner::skip`] bytes behind an aligned address, and the
    /// memory around, from that address to the next aligned one behind the end, may be written.
    pub(crate) slack: bool,
}

/// What was read: bytes by the way that they came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) cached: usize,
    pub(crate) direct: usize,
}

/// A read that the page cache could not answer, for whoever does many at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Absent {
    pub(crate) fd: RawFd,
    pub(crate) at: *mut u8,
    pub(crate) len: u32,
    pub(crate) offset: u64,
}

/// What a look into the page cache gave.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tried {
    /// It is done.
    Read(Result<Got, Failed>),
    /// It is not there. If the read that was told of comes back whole, this is what was got.
    Absent { got: Got },
}

impl Got {
    pub(crate) fn bytes(&self) -> usize {
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
        spot: Spot,
        len: usize,
        offset: u64,
        large: bool,
    ) -> Result<Got, Failed> {
        #[cfg(test)]
        self.panic_if_asked();
        let mut got = Got::default();
        let buffered = self.reading();
        let direct =
            if self.reads_past(large) || buffered.is_none() { self.direct() } else { None };
        if let Some(direct) = direct {
            if let Some(buffered) = buffered {
                // SAFETY: the caller's promise.
                got.cached = unsafe { self.take_cached(buffered, spot.at, len, offset) }?;
            }
            if got.cached < len {
                let rest = spot.after(got.cached);
                let (left, at) = (len - got.cached, offset + got.cached as u64);
                // SAFETY: the rest of the caller's spot.
                got.direct = unsafe { self.past_cache(direct, rest, left, at) }?;
            }
        }
        while got.bytes() < len {
            let (done, at) = (got.bytes(), offset + got.bytes() as u64);
            let rest = spot.after(done);
            let more = if let Some(fd) = buffered {
                // SAFETY: the rest of the caller's spot.
                let more = unsafe { sys::pread(fd, rest.at, len - done, at) }?;
                got.cached += more;
                more
            } else {
                // SAFETY: the rest of the caller's spot.
                let more = unsafe { self.by_bounce(rest.at, len - done, at) }?;
                got.direct += more;
                more
            };
            if more == 0 {
                break;
            }
        }
        Ok(got)
    }

    /// As [`Inner::read`] for small pieces, but what would wait for the device is not read: it is
    /// added to `absent`, and [`Tried::Absent`] is the answer.
    ///
    /// # Safety
    ///
    /// As [`Inner::read`], with slack.
    pub(crate) unsafe fn read_or_tell(
        &self,
        spot: Spot,
        len: usize,
        offset: u64,
        absent: &mut Vec<Absent>,
    ) -> Tried {
        #[cfg(test)]
        self.panic_if_asked();
        let buffered = self.reading();
        let direct = if self.mode.direct { self.direct() } else { None };
        let (Some(fd), true) = (buffered, spot.slack) else {
            // SAFETY: the caller's promise.
            return Tried::Read(unsafe { self.read(spot, len, offset, false) });
        };
        // SAFETY: the caller's promise.
        match unsafe { self.take_cached(fd, spot.at, len, offset) } {
            Ok(found) if found == len => {
                return Tried::Read(Ok(Got { cached: found, direct: 0 }));
            }
            Ok(_) => {}
            Err(failed) => return Tried::Read(Err(failed)),
        }
        let all = Got { cached: 0, direct: len };
        let (told, got) = match direct {
            Some(fd) => {
                let skip = self.skip(offset);
                let span = (skip + len).next_multiple_of(self.align());
                let (at, offset) = (spot.at.wrapping_sub(skip), offset - skip as u64);
                (Absent { fd, at, len: small(span), offset }, all)
            }
            None => {
                let got = Got { cached: len, direct: 0 };
                (Absent { fd, at: spot.at, len: small(len), offset }, got)
            }
        };
        absent.push(told);
        Tried::Absent { got }
    }

    /// What the page cache holds of the range, from its start on.
    ///
    /// # Safety
    ///
    /// `at` is valid for writes of `len` bytes.
    unsafe fn take_cached(
        &self,
        fd: RawFd,
        at: *mut u8,
        len: usize,
        offset: u64,
    ) -> Result<usize, Failed> {
        if !self.warmth.hopes(fd, offset, len) {
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
        self.warmth.learn(found == len);
        Ok(found)
    }

    /// Reads by direct I/O as far as alignment lets it, which is all where there is slack. May end
    /// early, before the end of the file too: the caller goes on.
    ///
    /// # Safety
    ///
    /// As [`Inner::read`].
    unsafe fn past_cache(
        &self,
        fd: RawFd,
        spot: Spot,
        len: usize,
        offset: u64,
    ) -> Result<usize, Failed> {
        let align = self.align();
        let skip = self.skip(offset);
        if !spot.slack && (skip != 0 || !spot.at.addr().is_multiple_of(align)) {
            return Ok(0);
        }
        let span =
            if spot.slack { (skip + len).next_multiple_of(align) } else { len - len % align };
        let (start, from) = (spot.at.wrapping_sub(skip), offset - skip as u64);
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
    unsafe fn by_bounce(&self, at: *mut u8, len: usize, offset: u64) -> Result<usize, Failed> {
        use std::os::fd::AsRawFd;
        let align = self.align();
        let skip = self.skip(offset);
        let mut bounce = Bounce::new((skip + len).next_multiple_of(align), align);
        let (into, room) = (bounce.as_mut_ptr(), bounce.len());
        // SAFETY: all of a buffer of our own.
        let got = unsafe { sys::pread(self.own.as_raw_fd(), into, room, offset - skip as u64) }?;
        let bytes = got.saturating_sub(skip).min(len);
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

impl Spot {
    fn after(self, bytes: usize) -> Self {
        Self { at: self.at.wrapping_add(bytes), slack: self.slack }
    }
}
