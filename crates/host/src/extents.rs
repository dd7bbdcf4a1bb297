//! Which bytes of a file no device holds: holes, and extents that are allocated and were never
//! written. A read of either is zeros made by the kernel.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// `FS_IOC_FIEMAP` (linux/fs.h, Linux 2.6.28): `_IOWR('f', 11, struct fiemap)`, whose size is that
/// of the header alone.
const FS_IOC_FIEMAP: Opcode = opcode::read_write::<Header>(b'f', 11);
/// Write the file's dirty pages back first: what is only in the page cache has no extent yet, and
/// pages over an unwritten extent are data.
const FLAG_SYNC: u32 = 1;
/// The last extent of the file.
const EXTENT_LAST: u32 = 0x1;
/// Allocated, and reads as zeros.
const EXTENT_UNWRITTEN: u32 = 0x800;
/// Extents per call: 28 KiB.
const AT_ONCE: usize = 512;

/// `struct fiemap` without its extents (Documentation/filesystems/fiemap.rst).
#[repr(C)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with space for extents.
#[repr(C)]
struct Fiemap {
    header: Header,
    extents: [Extent; AT_ONCE],
}

/// Bytes of a range of a file that no device holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extents {
    /// Bytes looked at: the range, cut at the file's end.
    pub range_bytes: u64,
    /// Bytes in holes; absent where the file system does not report it. Without FIEMAP they may
    /// include unwritten extents.
    pub hole_bytes: Option<u64>,
    /// Bytes in extents that were allocated and never written; absent where it does not report it.
    pub unwritten_bytes: Option<u64>,
    /// Why a figure is absent.
    pub reason: Option<String>,
}

impl Extents {
    /// Bytes that no device holds, as far as the file system reports.
    pub fn absent_bytes(&self) -> u64 {
        self.hole_bytes.unwrap_or(0).saturating_add(self.unwritten_bytes.unwrap_or(0))
    }
}

/// Looks at `length` bytes from `offset` of a regular file.
///
/// By `FS_IOC_FIEMAP`, which writes dirty pages of the file back first; where the file system lacks
/// it, by `SEEK_DATA` and `SEEK_HOLE` (lseek(2), Linux 3.1), which moves the position of the open
/// file: pass a descriptor whose position is not used.
pub fn extents(file: &File, offset: u64, length: u64) -> Extents {
    let size = match file.metadata() {
        Ok(found) if found.is_file() => found,
        Ok(_) => return unknown(length, "it is no regular file".to_owned()),
        Err(error) => return unknown(length, format!("fstat: {error}")),
    };
    let end = offset.saturating_add(length).min(size.len());
    let range_bytes = end.saturating_sub(offset);
    if range_bytes == 0 {
        return Extents { hole_bytes: Some(0), unwritten_bytes: Some(0), ..Extents::default() };
    }
    let why = match by_fiemap(file, offset, end) {
        Ok((holes, unwritten)) => {
            return Extents {
                range_bytes,
                hole_bytes: Some(holes),
                unwritten_bytes: Some(unwritten),
                reason: None,
            };
        }
        Err(error) => format!("the file system has no FIEMAP ({error})"),
    };
    match by_seek(file, offset, end) {
        // A file system without SEEK_HOLE reports that all is data (lseek(2)).
        Ok(0) if size.blocks().saturating_mul(512) < size.len() => {
            let what = "it uses less space than its size, and the holes are not reported";
            unknown(range_bytes, format!("{why}: {what}"))
        }
        Ok(holes) => Extents {
            range_bytes,
            hole_bytes: Some(holes),
            unwritten_bytes: None,
            reason: Some(format!("{why}: extents that were never written are not distinguished")),
        },
        Err(error) => unknown(range_bytes, format!("{why}, and SEEK_HOLE failed: {error}")),
    }
}

fn unknown(range_bytes: u64, reason: String) -> Extents {
    Extents { range_bytes, reason: Some(reason), ..Extents::default() }
}

/// Bytes in holes and in unwritten extents of `start..end`.
fn by_fiemap(file: &File, start: u64, end: u64) -> io::Result<(u64, u64)> {
    let mut map = Box::new(Fiemap {
        header: Header {
            start,
            length: end - start,
            flags: FLAG_SYNC,
            mapped_extents: 0,
            extent_count: 0,
            reserved: 0,
        },
        extents: [Extent::default(); AT_ONCE],
    });
    let (mut at, mut holes, mut unwritten) = (start, 0, 0);
    while at < end {
        map.header.start = at;
        map.header.length = end - at;
        map.header.extent_count = u32::try_from(AT_ONCE).unwrap_or(u32::MAX);
        fiemap(file, &mut map)?;
        let mapped = usize::try_from(map.header.mapped_extents).unwrap_or(usize::MAX);
        let found = map.extents.get(..mapped).unwrap_or_default();
        let mut last = found.is_empty();
        for extent in found {
            let begins = extent.logical.clamp(at, end);
            let ends = extent.logical.saturating_add(extent.length).clamp(at, end);
            holes += begins - at;
            if extent.flags & EXTENT_UNWRITTEN != 0 {
                unwritten += ends - begins;
            }
            // An extent of no length would be requested again forever.
            last |= extent.flags & EXTENT_LAST != 0 || extent.length == 0;
            at = ends;
        }
        if last {
            holes += end - at;
            break;
        }
    }
    Ok((holes, unwritten))
}

/// One call of `FS_IOC_FIEMAP`.
fn fiemap(file: &File, map: &mut Fiemap) -> io::Result<()> {
    // SAFETY: the opcode is that of FIEMAP, and `Fiemap` has the layout of the kernel's struct
    // fiemap with `extent_count` extents behind it, which the caller set to the array's length: the
    // kernel writes the header and at most so many extents. All fields take any bit pattern.
    let call = unsafe { Updater::<'_, FS_IOC_FIEMAP, Fiemap>::new(map) };
    // SAFETY: the descriptor is open while `file` is borrowed, and the call touches nothing but
    // the memory that `call` borrows. A file system without it answers EOPNOTSUPP or ENOTTY.
    unsafe { ioctl(file, call) }?;
    Ok(())
}

/// Bytes of `start..end` that the file system reports as holes.
fn by_seek(file: &File, start: u64, end: u64) -> io::Result<u64> {
    let (mut at, mut holes) = (start, 0);
    while at < end {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.clamp(at, end),
            // No data from here on.
            Err(Errno::NXIO) => end,
            Err(errno) => return Err(errno.into()),
        };
        holes += data - at;
        if data == end {
            break;
        }
        let hole = seek(file, SeekFrom::Hole(data))?;
        // The loop must end too where the file is cut during it.
        at = hole.max(data + 1).min(end);
    }
    Ok(holes)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::unix::fs::FileExt;

    use rustix::fs::{FallocateFlags, fallocate};

    use super::*;

    const MIB: u64 = 1 << 20;

    /// On the file system of the build; `/tmp` is often tmpfs, which has no FIEMAP.
    fn file() -> (tempfile::TempDir, File) {
        let program = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = options.open(dir.path().join("f")).unwrap();
        (dir, file)
    }

    #[test]
    fn known_holes_are_found_to_the_byte() {
        let (_dir, file) = file();
        file.set_len(16 * MIB).unwrap();
        // Data in 0..4, 6..7 and 12..16 MiB: holes of 2 and 5 MiB.
        for range in [0..4, 6..7, 12..16] {
            let bytes = vec![7; usize::try_from((range.end - range.start) * MIB).unwrap()];
            file.write_all_at(&bytes, range.start * MIB).unwrap();
        }
        let whole = extents(&file, 0, 16 * MIB);
        assert_eq!((whole.range_bytes, whole.hole_bytes), (16 * MIB, Some(7 * MIB)), "{whole:?}");
        assert!(whole.unwritten_bytes.is_none_or(|bytes| bytes == 0), "{whole:?}");
        assert_eq!(by_seek(&file, 0, 16 * MIB).unwrap(), 7 * MIB, "two readers, one answer");
        // A part that begins and ends inside holes, and one past the end.
        let part = extents(&file, 5 * MIB, 5 * MIB);
        assert_eq!((part.range_bytes, part.hole_bytes), (5 * MIB, Some(4 * MIB)));
        let tail = extents(&file, 15 * MIB, 4 * MIB);
        assert_eq!((tail.range_bytes, tail.hole_bytes), (MIB, Some(0)));
        assert_eq!(extents(&file, 20 * MIB, MIB).absent_bytes(), 0);
    }

    #[test]
    fn a_file_of_many_extents_is_looked_at_to_its_end() {
        let (_dir, file) = file();
        let (pieces, step) = (3 * AT_ONCE as u64, 64 << 10);
        for nth in 0..pieces {
            file.write_all_at(&[1; 32 << 10], nth * step).unwrap();
        }
        let found = extents(&file, 0, pieces * step);
        assert_eq!(found.hole_bytes, Some((pieces - 1) * (32 << 10)), "{found:?}");
    }

    #[test]
    fn a_file_that_was_only_made_longer_is_one_hole() {
        let (_dir, file) = file();
        file.set_len(4 * MIB + 5).unwrap();
        let found = extents(&file, 0, u64::MAX);
        assert_eq!((found.range_bytes, found.absent_bytes()), (4 * MIB + 5, 4 * MIB + 5));
    }

    #[test]
    fn what_was_allocated_and_never_written_is_reported() {
        let (_dir, file) = file();
        if fallocate(&file, FallocateFlags::empty(), 0, 4 * MIB).is_err() {
            return;
        }
        file.write_all_at(&vec![7; usize::try_from(MIB).unwrap()], MIB).unwrap();
        let found = extents(&file, 0, 4 * MIB);
        match found.unwritten_bytes {
            Some(unwritten) => {
                assert_eq!((unwritten, found.hole_bytes), (3 * MIB, Some(0)), "{found:?}");
            }
            None => assert!(found.reason.unwrap().contains("FIEMAP")),
        }
    }

    #[test]
    fn no_file_has_no_holes_that_are_known() {
        let found = extents(&File::open("/dev/null").unwrap(), 0, 10);
        assert_eq!((found.hole_bytes, found.unwritten_bytes), (None, None));
        assert!(found.reason.unwrap().contains("no regular file"));
    }
}
