//! A registered file: reads and writes of any offset and length, with O_DIRECT or not.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::OnceLock;

/// The registered descriptor, and one without O_DIRECT for I/O that its alignment does not allow.
pub(crate) struct Registered {
    /// The caller's number of it: one number is registered once.
    pub(crate) number: i32,
    file: File,
    buffered: OnceLock<Option<File>>,
}

impl Registered {
    /// Takes a descriptor of its own for the same open file.
    pub(crate) fn new(number: i32, fd: OwnedFd) -> Registered {
        Registered { number, file: File::from(fd), buffered: OnceLock::new() }
    }

    /// The same file through the page cache, opened on first use.
    fn buffered(&self) -> Option<&File> {
        let open = || {
            let name = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            let both =
                File::options().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(&name);
            both.or_else(|_| File::open(&name)).ok()
        };
        self.buffered.get_or_init(open).as_ref()
    }

    /// Does `io` with the file, and again through the page cache if O_DIRECT refused it.
    fn either(&self, io: impl Fn(&File) -> io::Result<usize>) -> io::Result<usize> {
        match io(&self.file) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => match self.buffered() {
                Some(buffered) => io(buffered),
                None => Err(error),
            },
            other => other,
        }
    }

    /// Fills `bytes` from `offset`, up to the end of the file.
    pub(crate) fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            let cell = std::cell::RefCell::new(&mut bytes[done..]);
            let at = offset + done as u64;
            match self.either(|file| file.read_at(&mut cell.borrow_mut(), at)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Writes all of `bytes`.
    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            match self.either(|file| file.write_at(&bytes[done..], at)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_only_at_the_end() {
        let mut plain = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut plain, &[7; 5000]).unwrap();
        let file = Registered::new(0, plain.reopen().unwrap().into());
        let mut bytes = [0; 4096];
        assert_eq!(file.read(&mut bytes, 1).unwrap(), 4096);
        assert_eq!(file.read(&mut bytes, 4095).unwrap(), 905);
        assert_eq!(file.read(&mut bytes, 5000).unwrap(), 0);
        assert_eq!(file.read(&mut bytes, 9000).unwrap(), 0);
    }

    #[test]
    fn any_offset_works_with_o_direct() {
        let plain = tempfile::NamedTempFile::new().unwrap();
        let mut options = File::options();
        let options = options.read(true).write(true).custom_flags(libc::O_DIRECT);
        // If the file system refuses O_DIRECT, there is nothing to test.
        let Ok(direct) = options.open(plain.path()) else { return };
        let file = Registered::new(0, direct.into());
        assert_eq!(file.write(&[9; 777], 13).unwrap(), 777);
        let mut bytes = [0; 100];
        assert_eq!(file.read(&mut bytes, 700).unwrap(), 90);
        assert!(bytes[..90].iter().all(|&byte| byte == 9));
    }
}
