//! How much of a file is in the page cache, and asking the kernel to drop or to fill it.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::ptr;

use gpuio_record::facts::{DeviceNumber, Residency, ResidencyMethod};
use rustix::fs::{Advice, fadvise, fdatasync};
use rustix::param::page_size;

use crate::{HostError, Root, block, statx};

/// `cachestat(2)`: the same number on every architecture that follows the common table, which
/// is all that gpuio runs on.
const SYS_CACHESTAT: libc::c_long = 451;

/// Bytes of one request to read ahead. For one the kernel reads no more than the larger of the
/// device's read-ahead, 128 KiB by default, and its largest request (`mm/readahead.c`,
/// `force_page_cache_ra`).
const REQUEST_BYTES: u64 = 128 << 10;

/// Most bytes mapped at once for `mincore(2)`: 256 Ki pages of 4 KiB, whose answer is 256 KiB.
const WINDOW_BYTES: u64 = 1 << 30;

/// `struct cachestat_range` of Linux 6.5.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of Linux 6.5; every field counts pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// How much of `length_bytes` from `offset_bytes` of a regular file or block device is in the
/// page cache now. The range is cut at the end of the file or device.
///
/// `cachestat(2)` is tried first (Linux 6.5); where it is missing, `mincore(2)` over a mapping
/// that is never touched. Both report correctly only to a process that owns the file or may write
/// it; another gets `reason` instead of a number.
pub fn residency(file: &File, offset_bytes: u64, length_bytes: u64) -> Residency {
    let length = match cut(file, offset_bytes, length_bytes) {
        Ok(length) => length,
        Err(error) => return unknown(length_bytes, format!("its size is not known: {error}")),
    };
    if length == 0 {
        return known(0, 0, None, ResidencyMethod::Cachestat);
    }
    let first = match cachestat(file.as_fd(), offset_bytes, length) {
        Ok(found) => {
            let dirty = to_bytes(found.dirty.saturating_add(found.writeback), length);
            let cached = to_bytes(found.cached, length);
            return known(length, cached, Some(dirty), ResidencyMethod::Cachestat);
        }
        Err(error) => error,
    };
    match by_mincore(file, offset_bytes, length) {
        Ok(cached) => known(length, cached, None, ResidencyMethod::Mincore),
        Err(second) => {
            unknown(length, format!("cachestat failed ({first}) and so did mincore ({second})"))
        }
    }
}

/// Writes back what is dirty and requests that the kernel drops the file's clean pages
/// (`fdatasync(2)`, `posix_fadvise(2)` with `POSIX_FADV_DONTNEED`). Advice only: pages that are
/// mapped or locked stay, so check with [`residency`].
///
/// # Errors
/// [`HostError::Call`] when the data cannot be written back, which means that it may be lost.
pub fn drop_cache(file: &File) -> Result<(), HostError> {
    let fail = |call, errno: rustix::io::Errno, advice| HostError::Call {
        call,
        path: statx::path_of(file),
        source: errno.into(),
        advice,
    };
    fdatasync(file).map_err(|errno| {
        fail("fdatasync", errno, "the data may not be on storage; see the kernel log")
    })?;
    fadvise(file, 0, None::<NonZeroU64>, Advice::DontNeed).map_err(|errno| {
        fail("posix_fadvise", errno, "the page cache stays; use direct I/O to go around it")
    })
}

/// Requests that the kernel reads a range into the page cache (`posix_fadvise(2)` with
/// `POSIX_FADV_WILLNEED`), and returns before it has. Advice only: check with [`residency`].
///
/// # Errors
/// [`HostError::Call`] where the file can't be read ahead, such as a pipe.
pub fn read_ahead(file: &File, offset: u64, length: u64) -> Result<(), HostError> {
    let end = offset.saturating_add(length);
    let mut at = offset;
    while at < end {
        let bytes = REQUEST_BYTES.min(end - at);
        let sent = fadvise(file, at, NonZeroU64::new(bytes), Advice::WillNeed);
        sent.map_err(|errno| HostError::Call {
            call: "posix_fadvise",
            path: statx::path_of(file),
            source: errno.into(),
            advice: "it is not read ahead; name regular files",
        })?;
        at += bytes;
    }
    Ok(())
}

fn known(range: u64, cached: u64, dirty: Option<u64>, method: ResidencyMethod) -> Residency {
    let fraction = if range == 0 { 0.0 } else { cached as f64 / range as f64 };
    Residency {
        range_bytes: range,
        fraction: Some(fraction),
        cached_bytes: Some(cached),
        dirty_bytes: dirty,
        method: Some(method),
        reason: None,
    }
}

fn unknown(range_bytes: u64, reason: String) -> Residency {
    Residency { range_bytes, reason: Some(reason), ..Residency::default() }
}

/// Pages as bytes; the last page of a range may stick out of it.
fn to_bytes(pages: u64, length: u64) -> u64 {
    pages.saturating_mul(page_size() as u64).min(length)
}

/// The length of the range up to the end of the file or device.
fn cut(file: &File, offset: u64, length: u64) -> io::Result<u64> {
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    let size = if kind.is_file() {
        metadata.size()
    } else if kind.is_block_device() {
        device_bytes(metadata.rdev())?
    } else {
        // The kernel answers 0 for a pipe, as it has no pages: true, and misleading.
        let text = "neither a regular file nor a block device";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    Ok(length.min(size.saturating_sub(offset)))
}

/// The size of a device by sysfs, as seeking to its end would move the caller's position.
fn device_bytes(raw: u64) -> io::Result<u64> {
    let device = DeviceNumber { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) };
    let root = Root::live();
    block::block_dir(&root, device)
        .and_then(|dir| dir.size_bytes(&root, &mut Vec::new()))
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "sysfs does not give its size"))
}

fn cachestat(fd: BorrowedFd<'_>, offset: u64, length: u64) -> io::Result<Cachestat> {
    let range = CachestatRange { offset, length };
    let mut found = Cachestat::default();
    // SAFETY: cachestat(fd, range, stat, flags) reads one cachestat_range and writes one
    // cachestat; both structs have the kernel's layout and outlive the call. The descriptor is
    // open as long as it is borrowed. A kernel without the call changes nothing.
    let rc = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            fd.as_raw_fd(),
            ptr::from_ref(&range),
            ptr::from_mut(&mut found),
            0u32,
        )
    };
    if rc == 0 { Ok(found) } else { Err(io::Error::last_os_error()) }
}

/// Pages of a file's range that are in the page cache, by one `cachestat(2)`, which touches
/// nothing. `None` before Linux 6.5, and if the caller may not know.
pub fn cached_pages(fd: BorrowedFd<'_>, offset: u64, length: u64) -> Option<u64> {
    cachestat(fd, offset, length).ok().map(|found| found.cached)
}

/// Bytes of the range in the page cache, by `mincore(2)`, a window at a time.
pub(crate) fn by_mincore(file: &File, offset: u64, length: u64) -> io::Result<u64> {
    if !may_call_mincore(file)? {
        // Since Linux 5.2 the kernel reports to others that every page is resident.
        let text = "the kernel reports it only to the file's owner and to users who may write it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let page = page_size() as u64;
    let end = offset.saturating_add(length);
    let mut at = offset - offset % page;
    let mut pages = 0u64;
    while at < end {
        let window = WINDOW_BYTES.min(end - at);
        pages += resident_pages(file, at, window)?;
        at += window;
    }
    Ok(to_bytes(pages, length))
}

fn may_call_mincore(file: &File) -> io::Result<bool> {
    let owner = file.metadata()?.uid();
    let me = rustix::process::geteuid();
    if me.is_root() || me.as_raw() == owner {
        return Ok(true);
    }
    Ok(rustix::fs::access(statx::path_of(file), rustix::fs::Access::WRITE_OK).is_ok())
}

/// Resident pages among those that cover `length` bytes from `offset`, a multiple of the page
/// size.
fn resident_pages(file: &File, offset: u64, length: u64) -> io::Result<u64> {
    let too_big = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let bytes = usize::try_from(length).map_err(too_big)?;
    let start = libc::off_t::try_from(offset).map_err(too_big)?;
    // Reserved before the mapping exists, so that nothing can fail between map and unmap.
    let mut answer = vec![0u8; bytes.div_ceil(page_size())];
    // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing; with
    // PROT_NONE nothing can read it, so a file that shrinks during the call cannot raise SIGBUS.
    let map = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_NONE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            start,
        )
    };
    if map == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping covers `bytes` from a page boundary, and `answer` holds one byte for
    // each of its pages, which is what mincore(2) writes.
    let rc = unsafe { libc::mincore(map, bytes, answer.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: `map` and `bytes` are those of the mapping made above, to which no reference
    // exists; it is unmapped once, here.
    unsafe { libc::munmap(map, bytes) };
    if rc != 0 {
        return Err(error);
    }
    Ok(answer.iter().filter(|byte| **byte & 1 == 1).count() as u64)
}

#[cfg(test)]
mod tests;
