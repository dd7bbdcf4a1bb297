//! O_DIRECT tried for real: write, read back and compare on a scratch file that leaves nothing.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use gpuio_guard::outfile::{Directory, Draft};
use gpuio_host::statx;
use gpuio_record::facts::DirectAlignment;

#[derive(Debug)]
pub enum DirectTried {
    Works {
        /// The smallest offset and length that worked, of 512 and 4096, in bytes.
        alignment: usize,
        /// The alignment that the kernel reports (`STATX_DIOALIGN`, Linux 6.1), where it does.
        reported: Option<DirectAlignment>,
    },
    /// The file system does not take it; the call that says so, and its words.
    Refused(String),
    /// The file could not be made, or bytes came back wrong; the call and its words.
    Failed(String),
}

const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// Tries it in `directory`, on an unnamed file (`O_TMPFILE`, open(2)) where the file system has
/// such, else on a draft of a random name, which goes at the end.
pub fn try_direct(directory: &Path) -> DirectTried {
    let name = OsStr::new("gpuio-direct");
    let begun = Directory::open(directory).and_then(|place| {
        // Drafts of killed runs; a file of that name with other bytes is kept.
        let _ = place.clear_drafts(name, holds_our_bytes);
        Draft::begin(place, name)
    });
    match begun {
        Ok(draft) => try_on(&draft),
        Err(error) => DirectTried::Failed(format!("open in {}: {error}", directory.display())),
    }
}

fn try_on(draft: &Draft) -> DirectTried {
    let file = match open_direct(draft.file()) {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            return DirectTried::Refused(format!("open(O_DIRECT) failed: {error}"));
        }
        Err(error) => return DirectTried::Failed(format!("open with O_DIRECT: {error}")),
    };
    let mut room = vec![0_u8; 3 * PAGE];
    let Some(buffer) = aligned(&mut room) else {
        return DirectTried::Failed("no aligned memory".to_owned());
    };
    buffer.iter_mut().zip(our_bytes()).for_each(|(byte, ours)| *byte = ours);
    let wrote = buffer.to_vec();
    if let Err(error) = file.write_all_at(buffer, 0) {
        return match error.raw_os_error() {
            Some(libc::EINVAL) => {
                DirectTried::Refused(format!("pwrite with O_DIRECT failed: {error}"))
            }
            _ => DirectTried::Failed(format!("pwrite with O_DIRECT: {error}")),
        };
    }
    buffer.fill(0);
    match file.read_exact_at(buffer, 0) {
        Err(error) => return DirectTried::Failed(format!("pread with O_DIRECT: {error}")),
        Ok(()) if *buffer != wrote[..] => {
            return DirectTried::Failed("pread brought other bytes than pwrite took".to_owned());
        }
        Ok(()) => {}
    }
    let fine = file.read_exact_at(&mut buffer[..SECTOR], SECTOR as u64).is_ok();
    let reported = statx::open_file(&file).ok().and_then(|facts| facts.direct);
    DirectTried::Works { alignment: if fine { SECTOR } else { PAGE }, reported }
}

/// The bytes to write, without an end.
fn our_bytes() -> impl Iterator<Item = u8> {
    (0..251).cycle()
}

/// Whether a file holds the beginning of what is written, and nothing else.
fn holds_our_bytes(file: &File) -> bool {
    let mut bytes = vec![0; 2 * PAGE + 1];
    let read = file.read_at(&mut bytes, 0).unwrap_or(bytes.len());
    read <= 2 * PAGE && bytes[..read].iter().zip(our_bytes()).all(|(byte, ours)| *byte == ours)
}

/// Two pages that begin on one.
fn aligned(room: &mut [u8]) -> Option<&mut [u8]> {
    let start = room.as_ptr().align_offset(PAGE);
    room.get_mut(start..start.checked_add(2 * PAGE)?)
}

/// Opened anew, since a file system that refuses O_DIRECT leaves behind what it made (open(2)).
/// Without `/proc` the flag is set on the file that is open (fcntl(2)).
fn open_direct(file: &File) -> io::Result<File> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut options = File::options();
    match options.read(true).write(true).custom_flags(libc::O_DIRECT).open(link) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let flags = rustix::fs::fcntl_getfl(file)? | rustix::fs::OFlags::DIRECT;
            rustix::fs::fcntl_setfl(file, flags)?;
            file.try_clone()
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_this_machine_answers_and_is_left_empty() {
        let dir = tempfile::tempdir().unwrap();
        let tried = try_direct(dir.path());
        assert!(!matches!(tried, DirectTried::Failed(_)), "{tried:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    /// As on NFS, FUSE and FAT. A user's file that took the draft's name at the same time stays.
    #[test]
    fn a_draft_with_a_name_answers_the_same_and_removes_itself_alone() {
        let dir = tempfile::tempdir().unwrap();
        let begin = || {
            let place = Directory::open(dir.path()).unwrap();
            Draft::begin_named(place, OsStr::new("gpuio-direct")).unwrap()
        };
        let draft = begin();
        let (named, unnamed) = (try_on(&draft), try_direct(dir.path()));
        assert_eq!(format!("{named:?}"), format!("{unnamed:?}"));
        drop(draft);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let draft = begin();
        let name = dir.path().join(draft.name().unwrap());
        std::fs::write(dir.path().join("mine"), "precious").unwrap();
        std::fs::rename(dir.path().join("mine"), &name).unwrap();
        drop(draft);
        let left = dir.path().join(".gpuio-direct.0123456789abcdef.draft");
        std::fs::write(left, our_bytes().take(PAGE).collect::<Vec<u8>>()).unwrap();
        assert!(matches!(
            try_direct(dir.path()),
            DirectTried::Works { .. } | DirectTried::Refused(_)
        ));
        assert_eq!(std::fs::read(&name).unwrap(), b"precious");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a killed run's is gone");
    }

    #[test]
    fn where_nothing_can_be_made_the_reason_is_reported() {
        let tried = try_direct(Path::new("/nowhere"));
        let DirectTried::Failed(why) = tried else { panic!("{tried:?}") };
        assert!(why.contains("/nowhere"), "{why}");
    }
}
