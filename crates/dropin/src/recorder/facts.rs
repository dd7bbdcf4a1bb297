//! The recorded facts of a file: never its content.

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};

use gpuio_base::trace::{HOLES_MOST, Holes, TraceFile};
use rustix::fs::{FileType, SeekFrom, Stat, fstat, major, minor, seek};
use rustix::io::Errno;

/// Device and inode of a file, and its facts. Facts that can't be read are left at zero or unknown.
pub(crate) fn of(fd: BorrowedFd<'_>) -> ((u64, u64), TraceFile) {
    let Ok(facts) = fstat(fd) else { return ((0, 0), TraceFile::default()) };
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let path = std::fs::read_link(&link).ok().map(|path| path.to_string_lossy().into_owned());
    let is_device = FileType::from_raw_mode(facts.st_mode) == FileType::BlockDevice;
    let device = if is_device { facts.st_rdev } else { facts.st_dev };
    // The program's own descriptor shares its offset with others: seeking needs another.
    let own = File::open(&link).ok();
    let size = match (&own, is_device) {
        (Some(own), true) => seek(own, SeekFrom::End(0)).unwrap_or(0),
        _ => u64::try_from(facts.st_size).unwrap_or(0),
    };
    let holes = match own {
        _ if is_device || is_dense(&facts) => Holes::All(Vec::new()),
        Some(own) => holes(&own, size),
        None => Holes::Unknown,
    };
    let file = TraceFile { path, is_device, size, device: (major(device), minor(device)), holes };
    ((facts.st_dev, facts.st_ino), file)
}

/// Whether so much is allocated that there can't be a hole of a block. (A file system that
/// compresses says less; then the kernel is asked.)
fn is_dense(facts: &Stat) -> bool {
    facts.st_blocks.saturating_mul(512) >= facts.st_size
}

/// The holes, by lseek(2).
fn holes(file: &File, size: u64) -> Holes {
    let mut all = Vec::new();
    let mut at = 0;
    while at < size {
        let Ok(start) = seek(file, SeekFrom::Hole(at)) else { return Holes::Unknown };
        if start >= size {
            break;
        }
        if all.len() == HOLES_MOST {
            return Holes::First(all);
        }
        let end = match seek(file, SeekFrom::Data(start)) {
            Ok(end) => end.min(size),
            // No data behind it.
            Err(Errno::NXIO) => size,
            Err(_) => return Holes::Unknown,
        };
        // A file that changes meanwhile.
        if end <= start {
            return Holes::Unknown;
        }
        all.push(start..end);
        at = end;
    }
    Holes::All(all)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn holes_and_size_without_moving_the_programs_offset() {
        let file = tempfile::tempfile().unwrap();
        file.write_at(&[1; 65536], 1 << 20).unwrap();
        file.set_len(3 << 20).unwrap();
        seek(&file, SeekFrom::Start(17)).unwrap();
        let (identity, facts) = of(file.as_fd());
        assert_eq!(seek(&file, SeekFrom::Current(0)).unwrap(), 17);
        assert_eq!((facts.size, identity), (3 << 20, of(file.as_fd()).0));
        match facts.holes {
            // tmpfs and every common file system know theirs; others report none.
            Holes::All(all) if !all.is_empty() => {
                assert_eq!((all[0].start, all.last().unwrap().end), (0, 3 << 20));
            }
            other => assert_eq!(other, Holes::All(Vec::new())),
        }
    }
}
