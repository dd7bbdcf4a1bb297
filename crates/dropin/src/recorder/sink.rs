//! The file of a trace.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gpuio_base::trace::TraceFile;
use gpuio_base::trace::write::{Frame, header};
use gpuio_guard::outfile::{Directory, Identity};
use gpuio_host::Root;
use rustix::time::{ClockId, clock_gettime};

use super::ring::Ring;

/// A frame ends when its records have so many bytes; the calls of one ring may be longer.
const FRAME: usize = 64 << 10;
/// Waiting bytes are written when they are this long, or this old.
const WAITING: usize = 256 << 10;
const AGE_NS: u64 = 100_000_000;
/// No more calls are taken out of the rings while so much waits for another try.
const WAITING_MOST: usize = 4 << 20;
/// Where descriptors begin that lie among the program's, if the limit has room there.
const FIRST: RawFd = 512;

pub(crate) struct Sink {
    path: PathBuf,
    /// The file that was made.
    identity: Identity,
    /// Whether this thread's descriptors lie among the program's.
    shares_table: bool,
    frame: Frame,
    /// Calls on their way from a ring into the frame.
    encoded: Vec<u8>,
    waiting: Vec<u8>,
    /// When it was written to last, by `CLOCK_MONOTONIC`.
    written_ns: u64,
    all_lost: u64,
}

impl Sink {
    /// Makes the file: under this name, or where something has it, with the process's number
    /// behind it. Never one that is there. Only its owner can read it.
    pub(crate) fn create(path: &Path, is_anonymous: bool, shares_table: bool) -> io::Result<Sink> {
        let path = std::path::absolute(path)?;
        let (path, file) = match create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut name = path.into_os_string();
                name.push(format!(".{}", std::process::id()));
                let path = PathBuf::from(name);
                let file = create_new(&path)?;
                (path, file)
            }
            created => (path, created?),
        };
        let identity = Identity::of(&file)?;
        drop(file);
        let mut frame = Frame::new();
        let comm = Root::live().word("proc/self/comm").ok().flatten().unwrap_or_default();
        let name = if is_anonymous { "" } else { comm.as_str() };
        let now = clock_gettime(ClockId::Realtime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        frame.program(name, seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0));
        let mut sink = Sink {
            path,
            identity,
            shares_table,
            frame,
            encoded: Vec::new(),
            waiting: header().to_vec(),
            written_ns: gpuio_watch::page::monotonic_ns(),
            all_lost: 0,
        };
        if let Err(error) = sink.flush() {
            // Otherwise an empty file has the name, and the next trace another.
            if let Ok((directory, name)) = Directory::of(&sink.path) {
                let _ = directory.remove(&name, identity);
            }
            return Err(error);
        }
        Ok(sink)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&mut self, number: u32, file: &TraceFile) {
        self.frame.file(number, file);
        self.end_long_frame();
    }

    /// Takes the calls of a thread out of its ring; whether there were any.
    pub(crate) fn calls(&mut self, ring: &Ring, head: u64) -> bool {
        self.encoded.clear();
        ring.take(head, &mut self.encoded);
        let found = !self.encoded.is_empty();
        if found {
            self.frame.calls(ring.number, &self.encoded);
            self.end_long_frame();
        }
        found
    }

    /// Says how many calls were lost until now.
    pub(crate) fn lost(&mut self, all: u64) {
        if all > self.all_lost {
            self.frame.lost(all - self.all_lost);
            self.all_lost = all;
        }
    }

    /// Whether there is room for more calls.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MOST
    }

    fn end_long_frame(&mut self) {
        if self.frame.len() >= FRAME {
            self.frame.take(&mut self.waiting);
        }
    }

    /// Writes what is waiting, where it is much or old. It goes on waiting where a lack may pass.
    pub(crate) fn flush_if_due(&mut self) -> io::Result<()> {
        let age_ns = gpuio_watch::page::monotonic_ns().saturating_sub(self.written_ns);
        if self.waiting.len() < WAITING && age_ns < AGE_NS {
            return Ok(());
        }
        match self.flush() {
            Err(error) if may_pass(&error) => Ok(()),
            done => done,
        }
    }

    /// Writes whole frames.
    fn flush(&mut self) -> io::Result<()> {
        self.frame.take(&mut self.waiting);
        self.written_ns = gpuio_watch::page::monotonic_ns();
        if self.waiting.is_empty() {
            return Ok(());
        }
        let file = OpenOptions::new()
            .append(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&self.path)?;
        let file = if self.shares_table { high(file)? } else { file };
        let fd = file.into_raw_fd();
        let written = self.append(fd);
        // A program that shares the table may have closed it, or put another file there.
        if self.is_ours(fd) { written.and(close(fd)) } else { written }
    }

    fn is_ours(&self, fd: RawFd) -> bool {
        // SAFETY: only its number is used, and the kernel says which file it is.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        Identity::of(fd).is_ok_and(|identity| identity == self.identity)
    }

    /// Appends what is waiting; what was written waits no longer.
    fn append(&mut self, fd: RawFd) -> io::Result<()> {
        while !self.waiting.is_empty() {
            if !self.is_ours(fd) {
                return Err(io::Error::other("another file has its name now"));
            }
            // SAFETY: the bytes are this value's, and the kernel takes any number.
            let written =
                unsafe { libc::write(fd, self.waiting.as_ptr().cast(), self.waiting.len()) };
            let written = usize::try_from(written).map_err(|_| io::Error::last_os_error())?;
            self.waiting.drain(..written);
        }
        Ok(())
    }

    /// Writes the rest and the mark of the end.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.frame.end();
        self.flush()
    }
}

/// Whether another try may succeed: the process or the system lacks descriptors or memory.
fn may_pass(error: &io::Error) -> bool {
    let passing = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EINTR, libc::EAGAIN];
    error.raw_os_error().is_some_and(|errno| passing.contains(&errno))
}

/// A number above those that the kernel gives out next, and that programs close in loops.
fn high(file: File) -> io::Result<File> {
    let high = rustix::io::fcntl_dupfd_cloexec(&file, FIRST)
        .or_else(|_| rustix::io::fcntl_dupfd_cloexec(&file, 3))?;
    Ok(high.into())
}

/// Closes a descriptor of ours. Servers and quotas refuse bytes only here: write(2) had taken them.
fn close(fd: RawFd) -> io::Result<()> {
    // SAFETY: opened by the caller, who has looked that it still is, and does not use it again.
    let closed = unsafe { libc::close(fd) };
    if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use gpuio_base::trace::{End, read};

    use super::*;

    #[test]
    fn a_trace_is_its_owners_and_whole_in_either_table() {
        for shares_table in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("trace");
            let mut sink = Sink::create(&path, false, shares_table).unwrap();
            sink.lost(3);
            sink.lost(5);
            sink.finish().unwrap();
            let trace = read(&std::fs::read(&path).unwrap()).unwrap();
            assert_eq!((trace.end, trace.lost), (End::Whole, 5));
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_file_that_took_the_name_gets_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let sink = Sink::create(&path, false, false).unwrap();
        std::fs::rename(&path, directory.path().join("moved")).unwrap();
        std::fs::write(&path, "theirs").unwrap();
        assert!(sink.finish().is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    }

    #[test]
    fn numbers_among_the_programs_are_high() {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let file = high(tempfile::tempfile().unwrap()).unwrap();
        let has_room = limit.current.is_none_or(|limit| limit > 1000);
        assert!(file.into_raw_fd() >= if has_room { FIRST } else { 3 });
    }
}
