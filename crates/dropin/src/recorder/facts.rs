//! The recorded facts of a file: never its content.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use gpuio_base::trace::{HOLES_MOST, Holes, TraceFile};
use rustix::fs::{AtFlags, FileType, SeekFrom, Stat, StatxFlags, fstat, major, minor, seek, statx};
use rustix::io::Errno;

use gpuio_transfer::apart;

/// Device, inode, and when the inode began, as far as the file system says that: numbers of inodes
/// are used again.
pub(crate) type Identity = (u64, u64, Option<(i64, u32)>);

/// A file and its facts; `None` if it can't be asked. Holes and sizes that can't be read are left
/// unknown, or at zero.
pub(crate) fn of(fd: BorrowedFd<'_>) -> Option<(Identity, TraceFile)> {
    let facts = fstat(fd).ok()?;
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let path = std::fs::read_link(&link).ok().map(|path| path.to_string_lossy().into_owned());
    let kind = FileType::from_raw_mode(facts.st_mode);
    let is_device = kind == FileType::BlockDevice;
    let device = if is_device { facts.st_rdev } else { facts.st_dev };
    // The program's own descriptor shares its offset with others, so seeking needs another.
    let (size, holes) = match kind {
        FileType::BlockDevice => {
            let size = apart_from_program(fd, &facts, |own| seek(own, SeekFrom::End(0)).ok());
            (size.unwrap_or(0), Holes::All(Vec::new()))
        }
        FileType::RegularFile if !is_dense(&facts) => {
            let size = size(&facts);
            let holes = apart_from_program(fd, &facts, move |own| Some(holes(own, size)));
            (size, holes.unwrap_or(Holes::Unknown))
        }
        _ => (size(&facts), Holes::All(Vec::new())),
    };
    let file = TraceFile { path, is_device, size, device: (major(device), minor(device)), holes };
    Some(((facts.st_dev, facts.st_ino, born(fd)), file))
}

fn size(facts: &Stat) -> u64 {
    u64::try_from(facts.st_size).unwrap_or(0)
}

fn born(fd: BorrowedFd<'_>) -> Option<(i64, u32)> {
    let facts = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let has = facts.stx_mask & StatxFlags::BTIME.bits() != 0;
    has.then_some((facts.stx_btime.tv_sec, facts.stx_btime.tv_nsec))
}

/// Opens the file once more and asks it, in a thread apart: to close a descriptor of it here would
/// drop the program's locks. A file of which the program holds a lease is not opened: that would
/// break it, with a signal that ends the program as a rule (fcntl(2), `F_SETLEASE`).
fn apart_from_program<T: Send + 'static>(
    fd: BorrowedFd<'_>,
    facts: &Stat,
    ask: impl FnOnce(&File) -> Option<T> + Send + 'static,
) -> Option<T> {
    let (number, identity) = (fd.as_raw_fd(), (facts.st_dev, facts.st_ino));
    // SAFETY: it takes a number and answers one.
    let lease = unsafe { libc::fcntl(number, libc::F_GETLEASE) };
    if lease == libc::F_RDLCK || lease == libc::F_WRLCK {
        return None;
    }
    apart::run("gpuio-record", move |caller| {
        let own = File::open(format!("/proc/self/task/{caller}/fd/{number}")).ok()?;
        let facts = fstat(own.as_fd()).ok()?;
        if (facts.st_dev, facts.st_ino) == identity { ask(&own) } else { None }
    })
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
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    /// 3 MiB, of which 64 KiB are data.
    fn sparse() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_at(&[1; 65536], 1 << 20).unwrap();
        file.as_file().set_len(3 << 20).unwrap();
        file
    }

    #[test]
    fn holes_and_size_without_moving_the_programs_offset() {
        let file = sparse();
        seek(&file, SeekFrom::Start(17)).unwrap();
        let (identity, facts) = of(file.as_fd()).unwrap();
        assert_eq!(seek(&file, SeekFrom::Current(0)).unwrap(), 17);
        assert_eq!((facts.size, identity), (3 << 20, of(file.as_fd()).unwrap().0));
        match facts.holes {
            // tmpfs and every common file system know theirs; others report none.
            Holes::All(all) if !all.is_empty() => {
                assert_eq!((all[0].start, all.last().unwrap().end), (0, 3 << 20));
            }
            other => assert_eq!(other, Holes::All(Vec::new())),
        }
    }

    #[test]
    fn the_programs_locks_stay() {
        // Closing it would drop the lock: it is the last to be dropped.
        let seen = sparse();
        let file = seen.reopen().unwrap();
        let exclusive = libc::c_short::try_from(libc::F_WRLCK).unwrap();
        let mut lock =
            libc::flock { l_type: exclusive, l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 };
        // SAFETY: a valid structure, here and below.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) }, 0);
        of(file.as_fd()).unwrap();
        // A lock of an open file description conflicts with the process's own, too.
        // SAFETY: as above.
        let asked =
            unsafe { libc::fcntl(seen.as_file().as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
        assert_eq!((asked, lock.l_type), (0, exclusive));
    }

    #[test]
    fn the_programs_lease_stays() {
        let seen = sparse();
        let number = seen.as_file().as_raw_fd();
        // SAFETY: numbers only, here and below. Without a signal it would be SIGIO that ends this.
        if unsafe { libc::fcntl(number, libc::F_SETLEASE, libc::F_WRLCK) } != 0 {
            println!("SKIPPED: F_SETLEASE: {}", std::io::Error::last_os_error());
            return;
        }
        assert_eq!(of(seen.as_file().as_fd()).unwrap().1.holes, Holes::Unknown);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::fcntl(number, libc::F_GETLEASE) }, libc::F_WRLCK);
    }

    /// Some file systems give the number of a removed file to the next one.
    #[test]
    fn a_new_file_of_an_old_number_is_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..64 {
            let file = File::create(&path).unwrap();
            let (identity, _) = of(file.as_fd()).unwrap();
            let inode = file.metadata().unwrap().ino();
            std::fs::remove_file(&path).unwrap();
            drop(file);
            if identity.2.is_some() {
                assert_eq!(seen.insert(identity, inode), None, "two files with one identity");
            }
        }
    }
}
