//! O_DIRECT tried for real: write, read back and compare on a scratch file that leaves nothing.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use gpuio_host::statx;
use gpuio_record::facts::DirectAlignment;

/// What came of it.
#[derive(Debug)]
pub enum DirectTried {
    /// It works.
    Works {
        /// The smallest offset and length that worked, of 512 and 4096, in bytes.
        grain: usize,
        /// What the kernel says that it asks for (`STATX_DIOALIGN`, Linux 6.1), where it does.
        told: Option<DirectAlignment>,
    },
    /// The file system does not take it; the call that says so, and its words.
    Refused(String),
    /// The file could not be made, or bytes came back wrong; the call and its words.
    Failed(String),
}

const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// Tries it in `directory`, on an unnamed file (`O_TMPFILE`, open(2)) where the file system has
/// such, else on one of a new name (`O_EXCL`) that goes at once.
#[must_use]
pub fn try_direct(directory: &Path) -> DirectTried {
    let file = match scratch(directory) {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            return DirectTried::Refused(format!("open(O_DIRECT) says {error}"));
        }
        Err(error) => {
            return DirectTried::Failed(format!("open in {}: {error}", directory.display()));
        }
    };
    let mut room = vec![0_u8; 3 * PAGE];
    let Some(buffer) = aligned(&mut room) else {
        return DirectTried::Failed("no aligned memory".to_owned());
    };
    for (at, byte) in buffer.iter_mut().enumerate() {
        *byte = u8::try_from(at % 251).unwrap_or(0);
    }
    let wrote = buffer.to_vec();
    if let Err(error) = file.write_all_at(buffer, 0) {
        return match error.raw_os_error() {
            Some(libc::EINVAL) => {
                DirectTried::Refused(format!("pwrite with O_DIRECT says {error}"))
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
    let told = statx::open_file(&file).ok().and_then(|facts| facts.direct);
    DirectTried::Works { grain: if fine { SECTOR } else { PAGE }, told }
}

/// Two pages that begin on one.
fn aligned(room: &mut [u8]) -> Option<&mut [u8]> {
    let start = room.as_ptr().align_offset(PAGE);
    room.get_mut(start..start.checked_add(2 * PAGE)?)
}

fn scratch(directory: &Path) -> io::Result<File> {
    let open = |flags: i32, path: &Path| {
        let mut options = File::options();
        options.read(true).write(true).mode(0o600).custom_flags(libc::O_DIRECT | flags).open(path)
    };
    match open(libc::O_TMPFILE, directory) {
        // What file systems without unnamed files answer (open(2)): NFS, FUSE, FAT.
        Err(error)
            if [Some(libc::EOPNOTSUPP), Some(libc::EISDIR)].contains(&error.raw_os_error()) =>
        {
            let path = directory.join(format!(".gpuio-direct-{}", std::process::id()));
            let file = open(libc::O_CREAT | libc::O_EXCL, &path);
            if file.is_ok() {
                std::fs::remove_file(&path)?;
            }
            file
        }
        tried => tried,
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

    #[test]
    fn where_nothing_can_be_made_the_reason_is_told() {
        let tried = try_direct(Path::new("/nowhere"));
        let DirectTried::Failed(why) = tried else { panic!("{tried:?}") };
        assert!(why.contains("/nowhere"), "{why}");
    }
}
