//! Files that somebody names: read whole, and never more than a bound.
//!
//! A name can lead anywhere: to `/dev/zero`, which has no end, to a pipe without a writer,
//! to a terabyte. It is looked at before it is opened, and again by its descriptor (fstat(2))
//! before a byte is read, and opening does not wait (open(2), `O_NONBLOCK`).

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Most bytes of a job file, a table of figures or a configuration: people write these.
pub const MOST_WRITTEN: u64 = 16 << 20;
/// Most bytes of a record, a sweep or another tool's result. A record of 65,536 threads with a
/// point each second of an hour has less than half of that.
pub const MOST_RESULT: u64 = 512 << 20;
/// Most bytes of a capture; what one of it may hold is bounded besides.
pub const MOST_CAPTURE: u64 = 512 << 20;

/// `f_type` of pipes that have no name (linux/magic.h, PIPEFS_MAGIC).
const PIPEFS: u64 = 0x5049_5045;

/// The bytes of a regular file, or of a pipe without a name that this process was given (a shell's
/// `<(command)`, `/dev/stdin`): `most` at most.
///
/// # Errors
/// Those of open(2) and read(2); `InvalidInput` for what is neither, with the words for it;
/// `FileTooLarge`, which names the bound.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let facts = file.metadata()?;
    if facts.len() > most {
        return Err(too_large(most));
    }
    // The length is a hint: a pipe has none.
    let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).unwrap_or(0));
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(most));
    }
    Ok(bytes)
}

/// As [`read`], of a file that has to be UTF-8.
///
/// # Errors
/// Those of [`read`], and `InvalidData` with the position of the first byte that is not text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(ErrorKind::InvalidData, format!("byte {at} is no UTF-8 text"))
    })
}

fn too_large(most: u64) -> io::Error {
    let words = format!("it is longer than {} MiB, the most that is read", most >> 20);
    io::Error::new(ErrorKind::FileTooLarge, words)
}

/// A descriptor on something that has an end. A device is not opened: that may start something.
fn open(path: &Path) -> io::Result<File> {
    refuse_endless(std::fs::metadata(path)?.file_type())?;
    let wait = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(wait).open(path)?;
    let kind = file.metadata()?.file_type();
    refuse_endless(kind)?;
    if kind.is_fifo() && !has_no_name(&file)? {
        return Err(refused("a named pipe, which may have no end"));
    }
    let flags = rustix::fs::fcntl_getfl(file.as_fd())?;
    rustix::fs::fcntl_setfl(file.as_fd(), flags - OFlags::NONBLOCK)?;
    Ok(file)
}

fn refused(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("it is {what}; give a regular file"))
}

/// Refuses what is neither a file nor a pipe.
fn refuse_endless(kind: FileType) -> io::Result<()> {
    Err(refused(match kind {
        _ if kind.is_file() || kind.is_fifo() => return Ok(()),
        _ if kind.is_dir() => "a directory",
        _ if kind.is_char_device() => "a character device, which may have no end",
        _ if kind.is_block_device() => "a block device",
        _ => "no file",
    }))
}

fn has_no_name(file: &File) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(file.as_fd())?.f_type.cast_unsigned() == PIPEFS)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_what_has_an_end_is_read() {
        let directory = tempfile::tempdir().unwrap();
        // Opening it would fail with ENXIO: it is not opened.
        let socket = directory.path().join("socket");
        std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, words) in [
            (Path::new("/dev/zero"), "a character device"),
            (Path::new("/"), "a directory"),
            (&socket, "no file"),
        ] {
            let Err(error) = read(path, 1 << 20) else { panic!("{path:?}") };
            assert!(error.to_string().contains(words), "{path:?}: {error}");
        }
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        // Without a writer neither opening nor reading waits.
        let error = read(&fifo, 1 << 20).unwrap_err();
        assert!(error.to_string().contains("a named pipe"), "{error}");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert_eq!(read(&link, 1 << 20).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn the_bound_is_exact_and_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, vec![b'a'; 1 << 20]).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap().len(), 1 << 20);
        let error = read(&path, (1 << 20) - 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        // Sparse, and never read.
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read(&path, MOST_RESULT).unwrap_err();
        assert!(error.to_string().contains("512 MiB"), "{error}");
        // A kernel file reports a size of 0.
        assert!(!read(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
        std::fs::write(&path, b"ab\xff").unwrap();
        let error = read_text(&path, 1 << 20).unwrap_err();
        assert!(error.to_string().contains("byte 2"), "{error}");
    }

    #[test]
    fn a_pipe_of_the_shell_is_read_to_its_end() {
        use std::os::fd::AsRawFd as _;
        let (from, mut to) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", from.as_raw_fd());
        let writer = std::thread::spawn(move || {
            to.write_all(b"first ").unwrap();
            std::thread::yield_now();
            to.write_all(b"second").unwrap();
        });
        assert_eq!(read(Path::new(&path), 1 << 20).unwrap(), b"first second");
        writer.join().unwrap();
        let (from, mut to) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", from.as_raw_fd());
        let writer = std::thread::spawn(move || while to.write_all(&[0; 4096]).is_ok() {});
        let error = read(Path::new(&path), 1 << 16).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        drop(from);
        writer.join().unwrap();
    }
}
