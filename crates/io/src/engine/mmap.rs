//! memcpy from and to a shared mapping of each file.
//!
//! Always through the page cache, O_DIRECT or not; read-ahead is left to the kernel (no
//! madvise(2)). A read past the end of the file is [`IoFault::EndOfFile`]; a write past it
//! allocates the file up to there first (fallocate(2)), so that a full disk is an errno.
//!
//! A file that shrinks, or a device that fails, under the copy is SIGBUS, which [`super::sigbus`]
//! turns into a fault: `EndOfFile` where the file is too short by then, else `EIO`. The page is
//! lost to this engine from then on. One thing can't be seen: a file cut inside a page gives
//! zeros for the rest of that page, without a signal (mmap(2)).

use super::psync::errno;
use super::sigbus::{self, Hit};
use super::{
    Done, Engine, EngineConfig, EngineError, EngineFile, Io, IoFault, Op, OpenedEngine, Push,
};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::RawFd;

const NAME: &str = "mmap";

pub(super) fn open(config: &EngineConfig) -> Result<OpenedEngine, EngineError> {
    sigbus::install().map_err(|err| {
        EngineError::new(NAME, "sigaction", &err, "choose another engine, such as psync")
    })?;
    let maps = config.files.iter().enumerate().map(|(index, file)| Map::new(index, file));
    let maps = maps.collect::<Result<Vec<Map>, EngineError>>()?;
    let steps_down = if config.direct {
        vec![
            "mmap: O_DIRECT has no effect on a mapping: I/O goes through the page cache".to_owned(),
        ]
    } else {
        Vec::new()
    };
    let actual = "mmap (memcpy, page cache)".to_owned();
    Ok(OpenedEngine { engine: Box::new(Mmap { maps }), actual, steps_down, helpers: Vec::new() })
}

struct Mmap {
    maps: Vec<Map>,
}

impl Engine for Mmap {
    #[inline]
    fn push(&mut self, io: Io) -> Push {
        let result = match self.maps.get_mut(io.file as usize) {
            Some(map) => map.transfer(&io),
            None => Err(IoFault::Errno(libc::EBADF)),
        };
        Push::Done(Done { io, result })
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn reap(&mut self, _done: &mut Vec<Done>, _at_least: usize) -> Result<(), EngineError> {
        Ok(())
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn synchronous(&self) -> bool {
        true
    }
}

/// One file, mapped from its start.
struct Map {
    base: *mut u8,
    /// Bytes mapped; 0 means that there is no mapping.
    len: usize,
    /// The file's size when last looked at: no system call for an I/O inside it.
    size: u64,
    fd: RawFd,
    writable: bool,
    page: usize,
    /// Offsets of the pages that the handler replaced.
    lost: BTreeSet<usize>,
}

impl Map {
    fn new(index: usize, file: &EngineFile) -> Result<Map, EngineError> {
        let fail = |call, err: &io::Error| {
            let hint = format!(
                "file {index} of the worker can't be mapped for {} bytes: mmap needs a regular \
                 file, open for reading (and for writing if there are writes); psync, libaio and \
                 io_uring take any",
                file.len
            );
            EngineError::new(NAME, call, err, hint)
        };
        let size =
            size(file.fd).map_err(|errno| fail("fstat", &io::Error::from_raw_os_error(errno)))?;
        let len = usize::try_from(file.len)
            .map_err(|_| fail("mmap", &io::Error::from_raw_os_error(libc::EOVERFLOW)))?;
        let mut map = Map {
            base: std::ptr::null_mut(),
            len: 0,
            size,
            fd: file.fd,
            writable: file.writable,
            page: rustix::param::page_size(),
            lost: BTreeSet::new(),
        };
        if len == 0 {
            return Ok(map);
        }
        let access = libc::PROT_READ | if file.writable { libc::PROT_WRITE } else { 0 };
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping at an address of the kernel's choice touches no other.
        let base = unsafe { libc::mmap(null, len, access, libc::MAP_SHARED, file.fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(fail("mmap", &io::Error::last_os_error()));
        }
        (map.base, map.len) = (base.cast(), len);
        Ok(map)
    }

    #[inline]
    fn transfer(&mut self, io: &Io) -> Result<u32, IoFault> {
        let len = io.span.len();
        let end = match io.offset.checked_add(u64::from(len)) {
            Some(end) if end <= self.len as u64 => end,
            _ => return Err(IoFault::Errno(libc::EINVAL)),
        };
        let copied = if end <= self.size { len } else { self.reach(io, end)? };
        // The end is inside the mapping, so the offset fits an address.
        #[expect(clippy::cast_possible_truncation, reason = "below self.len, a usize")]
        let offset = io.offset as usize;
        if !self.lost.is_empty() && self.touches_lost(offset, copied as usize) {
            return Err(IoFault::Errno(libc::EIO));
        }
        self.copy(io, offset, copied as usize)?;
        if copied == len { Ok(len) } else { Err(IoFault::EndOfFile(copied)) }
    }

    /// For an I/O that ends past the known size: the bytes of it that are in the file. A write
    /// makes the file long enough first.
    #[cold]
    fn reach(&mut self, io: &Io, end: u64) -> Result<u32, IoFault> {
        self.size = size(self.fd).map_err(IoFault::Errno)?;
        if io.op == Op::Write && self.writable && self.size < end {
            let (offset, len) = (io.offset.cast_signed(), i64::from(io.span.len()));
            // Never makes a file shorter, whatever another thread does: ftruncate(2) might.
            // SAFETY: integers only.
            if unsafe { libc::fallocate64(self.fd, 0, offset, len) } != 0 {
                return Err(IoFault::Errno(errno()));
            }
            self.size = end;
        }
        let inside = self.size.saturating_sub(io.offset).min(u64::from(io.span.len()));
        #[expect(clippy::cast_possible_truncation, reason = "at most the span's length")]
        Ok(inside as u32)
    }

    fn touches_lost(&self, offset: usize, len: usize) -> bool {
        let first = offset & !(self.page - 1);
        self.lost.range(first..offset + len).next().is_some()
    }

    fn copy(&mut self, io: &Io, offset: usize, len: usize) -> Result<(), IoFault> {
        if len == 0 {
            return Ok(());
        }
        let mapping =
            (self.base as usize, (self.base as usize + self.len).next_multiple_of(self.page));
        // SAFETY: offset + len is at most the mapping's length.
        let here = unsafe { self.base.add(offset) };
        let outcome = match io.op {
            // SAFETY: the span is ours until the I/O is back and no part of a private mapping
            // of ours; the guard names our mapping, which only this thread uses.
            Op::Read => unsafe { sigbus::copy(here, io.span.as_ptr(), len, mapping) },
            Op::Write if !self.writable => return Err(IoFault::Errno(libc::EBADF)),
            // SAFETY: as above, and the mapping is writable.
            Op::Write => unsafe { sigbus::copy(io.span.as_ptr(), here, len, mapping) },
        };
        outcome.map_err(|hit| self.lose(io, hit))
    }

    /// Remembers the replaced pages and says what the I/O came to.
    #[cold]
    fn lose(&mut self, io: &Io, hit: Hit) -> IoFault {
        let offset = |address: usize| (address - self.base as usize) & !(self.page - 1);
        let pages = (offset(hit.first)..=offset(hit.last)).step_by(self.page);
        self.lost.extend(pages);
        match size(self.fd) {
            Ok(now) => self.size = now,
            Err(errno) => return IoFault::Errno(errno),
        }
        let inside = self.size.saturating_sub(io.offset);
        match u32::try_from(inside) {
            Ok(inside) if inside < io.span.len() => IoFault::EndOfFile(inside),
            _ => IoFault::Errno(libc::EIO),
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: mapped in `new`, and no I/O is running: this is the thread that runs them.
            unsafe { libc::munmap(self.base.cast(), self.len) };
        }
    }
}

/// The size of a file or a block device in bytes, or errno.
fn size(fd: RawFd) -> Result<u64, i32> {
    // SAFETY: a stat is numbers; all zero is a value of it.
    let mut stat: libc::stat64 = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is writable; a bad descriptor is an errno.
    if unsafe { libc::fstat64(fd, &raw mut stat) } != 0 {
        return Err(errno());
    }
    let mut size = stat.st_size;
    if stat.st_mode & libc::S_IFMT == libc::S_IFBLK {
        // stat(2) has no size of a device. Nothing here uses the position in the file.
        // SAFETY: no memory is passed; a bad descriptor is an errno.
        size = unsafe { libc::lseek64(fd, 0, libc::SEEK_END) };
        if size < 0 {
            return Err(errno());
        }
    }
    u64::try_from(size).map_err(|_| libc::EIO)
}
