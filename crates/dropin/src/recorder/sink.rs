//! The file of a trace.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use gpuio_base::trace::TraceFile;
use gpuio_base::trace::write::{Frame, header};
use gpuio_host::Root;
use rustix::time::{ClockId, clock_gettime};

use super::ring::Ring;

/// A frame ends when its records have so many bytes; the calls of one ring may be longer.
const FRAME: usize = 64 << 10;
/// Waiting bytes are written when they are this long, or this old.
const WAITING: usize = 256 << 10;
const AGE_NS: u64 = 100_000_000;

pub(crate) struct Sink {
    path: PathBuf,
    /// Device and inode of the file that was made.
    identity: (u64, u64),
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
    /// behind it. Never one that is there.
    pub(crate) fn create(path: &Path, is_anonymous: bool) -> io::Result<Sink> {
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
        let facts = file.metadata()?;
        let mut frame = Frame::new();
        let comm = Root::live().word("proc/self/comm").ok().flatten().unwrap_or_default();
        let name = if is_anonymous { "" } else { comm.as_str() };
        let now = clock_gettime(ClockId::Realtime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        frame.program(name, seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0));
        let mut sink = Sink {
            path,
            identity: (facts.dev(), facts.ino()),
            frame,
            encoded: Vec::new(),
            waiting: header().to_vec(),
            written_ns: gpuio_watch::page::monotonic_ns(),
            all_lost: 0,
        };
        sink.flush()?;
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

    pub(crate) fn lost(&mut self, count: u64) {
        if count > 0 {
            self.frame.lost(count);
            self.all_lost = self.all_lost.saturating_add(count);
        }
    }

    /// Calls that were lost until now.
    pub(crate) fn all_lost(&self) -> u64 {
        self.all_lost
    }

    fn end_long_frame(&mut self) {
        if self.frame.len() >= FRAME {
            self.frame.take(&mut self.waiting);
        }
    }

    /// Writes what is waiting, where it is much or old.
    pub(crate) fn flush_if_due(&mut self) -> io::Result<()> {
        let age_ns = gpuio_watch::page::monotonic_ns().saturating_sub(self.written_ns);
        let due = self.waiting.len() >= WAITING || age_ns >= AGE_NS;
        if due { self.flush() } else { Ok(()) }
    }

    /// Writes whole frames.
    fn flush(&mut self) -> io::Result<()> {
        self.frame.take(&mut self.waiting);
        self.written_ns = gpuio_watch::page::monotonic_ns();
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut file = OpenOptions::new()
            .append(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&self.path)?;
        let facts = file.metadata()?;
        if (facts.dev(), facts.ino()) != self.identity {
            return Err(io::Error::other("another file has its name now"));
        }
        file.write_all(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    /// Writes the rest and the mark of the end.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.frame.end();
        self.flush()
    }
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}
