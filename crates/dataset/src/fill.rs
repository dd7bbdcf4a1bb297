//! Writes the pattern into a file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;

use gpuio_base::pattern::Key;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Progress;
use super::error::MakeError;

/// Bytes per write: large enough for any device's full rate, a multiple of every alignment.
pub(super) const BLOCK: u64 = 4 << 20;
/// More gain nothing: one thread makes 10 GB/s of pattern or thereabouts.
const MAX_THREADS: u64 = 4;
/// Covers the memory and offset alignment that O_DIRECT asks for anywhere.
const ALIGNMENT: u64 = 4096;

/// The bytes `start..end` of a file, to be written. No other byte is: they may be another owner's.
pub(super) struct Filling<'a> {
    pub(super) path: &'a Path,
    pub(super) file: &'a File,
    pub(super) key: Key,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) progress: &'a dyn Progress,
    pub(super) stop: &'a AtomicBool,
}

impl Filling<'_> {
    /// Writes all of it, with several threads where there are several blocks and the system gives
    /// them.
    pub(super) fn run(&self) -> Result<(), MakeError> {
        let first = self.start / BLOCK;
        let blocks = self.end.div_ceil(BLOCK).saturating_sub(first);
        let direct = reopen_direct(self.file);
        let next = AtomicU64::new(first);
        let failed = AtomicBool::new(false);
        let work = || {
            let result = self.work(direct.as_ref(), &next, &failed);
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            result
        };
        std::thread::scope(|scope| {
            let start = |_| Builder::new().name("gpuio-fill".to_owned()).spawn_scoped(scope, work);
            // This thread is one of them, and does it alone where there are no others.
            let more = (1..blocks.min(MAX_THREADS)).map_while(|nth| start(nth).ok());
            let threads: Vec<_> = more.collect();
            let mut result = work();
            for thread in threads {
                let one = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result = result.and(one);
            }
            result
        })
    }

    /// Takes blocks until none is left.
    fn work(
        &self,
        direct: Option<&File>,
        next: &AtomicU64,
        failed: &AtomicBool,
    ) -> Result<(), MakeError> {
        let mut memory = vec![0; usize_of(BLOCK + ALIGNMENT)];
        let aligned = memory.as_ptr().align_offset(usize_of(ALIGNMENT)).min(usize_of(ALIGNMENT));
        let memory = &mut memory[aligned..aligned + usize_of(BLOCK)];
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(MakeError::Stopped { path: self.path.to_owned() });
            }
            let block = next.fetch_add(1, Ordering::Relaxed).saturating_mul(BLOCK);
            if block >= self.end || failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let begin = block.max(self.start);
            let end = block.saturating_add(BLOCK).min(self.end);
            let bytes = &mut memory[..usize_of(end - begin)];
            gpuio_base::pattern::fill(bytes, self.key, begin);
            self.write(direct, bytes, begin)?;
            self.progress.add(end - begin);
        }
    }

    /// Writes one block, past the page cache as far as the kernel lets it.
    fn write(&self, direct: Option<&File>, bytes: &[u8], begin: u64) -> Result<(), MakeError> {
        let aligned = [bytes.len() as u64, begin].iter().all(|at| at.is_multiple_of(ALIGNMENT));
        let mut way = direct.filter(|_| aligned);
        let mut done = 0;
        while done < bytes.len() {
            let at = begin + done as u64;
            match way.unwrap_or(self.file).write_at(&bytes[done..], at) {
                Ok(0) => return Err(self.failed(at, io::ErrorKind::WriteZero.into())),
                Ok(wrote) => done += wrote,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // An alignment that this file wants and did not say, or the rest of a short write.
                Err(error) if way.is_some() && error.raw_os_error() == Some(EINVAL) => way = None,
                Err(error) => return Err(self.failed(at, error)),
            }
        }
        Ok(())
    }

    fn failed(&self, at: u64, source: io::Error) -> MakeError {
        MakeError::call("pwrite", self.path, Some(at), source, Some(self.end - at))
    }
}

const EINVAL: i32 = Errno::INVAL.raw_os_error();

/// The same file, to be written past the page cache; `None` where O_DIRECT does not work.
fn reopen_direct(file: &File) -> Option<File> {
    let flags = OFlags::DIRECT.bits().cast_signed();
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().write(true).custom_flags(flags).open(link).ok()
}

/// Sizes here are at most a block and an alignment.
fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
