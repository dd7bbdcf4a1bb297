//! Opens the targets of a worker as the plan says, and reads back what the kernel made of it. It
//! opens what was checked: no name is looked up here.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use gpuio_base::pattern::{Key, file_key};
use gpuio_host::target::ReopenError;
use gpuio_io::engine::EngineFile;
use gpuio_record::{DirectMode, FadviseHint, JobPlan, Order};
use rustix::fs::{Advice, OFlags};
use rustix::io::Errno;

use super::RunError;
use super::pattern_keys::salt;
use gpuio_dataset::held::Targets;

/// The open targets of one worker, in the order of the job's targets that it uses.
#[derive(Debug, Clone)]
pub(super) struct Files {
    /// Index of the job's target behind each file.
    pub(super) targets: Vec<u32>,
    fds: Vec<Arc<OwnedFd>>,
    lengths: Vec<u64>,
    /// The key of the pattern that verification expects in each.
    keys: Vec<Key>,
    /// Where data is compared with the files, or headers are looked for in them.
    plain: Vec<Arc<Plain>>,
    writable: bool,
    /// Whether every descriptor really has O_DIRECT, read back from the kernel.
    pub(super) direct: bool,
}

/// A file of the user's own, open through the page cache, and what it was then.
#[derive(Debug)]
struct Plain {
    fd: OwnedFd,
    then: Option<Stamp>,
}

/// Length, and time of modification in seconds and nanoseconds.
type Stamp = (i64, i64, i64);

impl Plain {
    fn new(fd: OwnedFd) -> Plain {
        let then = stamp(&fd);
        Plain { fd, then }
    }

    fn has_changed(&self) -> bool {
        stamp(&self.fd) != self.then
    }
}

fn stamp(fd: &OwnedFd) -> Option<Stamp> {
    let found = rustix::fs::fstat(fd).ok()?;
    let nanoseconds = i64::try_from(found.st_mtime_nsec).ok()?;
    Some((found.st_size, found.st_mtime, nanoseconds))
}

impl Files {
    /// Opens the given targets of a job, of those that are held.
    pub(super) fn open(job: &JobPlan, targets: &[u32], held: &Targets) -> Result<Files, RunError> {
        let writable = job.read_percent < 100;
        let mut fds = Vec::with_capacity(targets.len());
        let mut lengths = Vec::with_capacity(targets.len());
        let mut keys = Vec::with_capacity(targets.len());
        let mut direct = true;
        let mut plain = Vec::new();
        for &target in targets {
            let plan = &job.targets[target as usize];
            let fd = open_one(job, &plan.path, writable, held)?;
            let flags = rustix::fs::fcntl_getfl(&fd).unwrap_or(OFlags::empty());
            direct &= flags.contains(OFlags::DIRECT);
            advise(job, &plan.path, &fd)?;
            fds.push(Arc::new(fd));
            if job.against_file || (job.fio_headers && !writable) {
                let fd = open_with(&plan.path, OFlags::RDONLY, " to compare", held)?;
                plain.push(Arc::new(Plain::new(fd)));
            }
            lengths.push(plan.length_bytes);
            let own = file_key(salt(job), plan.file_number);
            keys.push(held.key(&plan.path).unwrap_or(own));
        }
        Ok(Files { targets: targets.to_vec(), fds, lengths, keys, plain, writable, direct })
    }

    /// The key of the pattern that verification expects in the worker's file `index`.
    pub(super) fn expected(&self, index: u32) -> Key {
        self.keys[index as usize]
    }

    /// The bytes of the worker's file `index` from `offset` on, read by the CPU through the page
    /// cache.
    pub(super) fn read_plain(
        &self,
        job: &JobPlan,
        (index, offset): (u32, u64),
        into: &mut [u8],
    ) -> Result<(), RunError> {
        let at = index as usize;
        let failed = |what: String| RunError::Open {
            path: job.targets[self.targets[at] as usize].path.clone(),
            how: format!(" and read at offset {offset} what GPU memory is compared with"),
            what,
        };
        let mut done = 0;
        while done < into.len() {
            match rustix::io::pread(&self.plain[at].fd, &mut into[done..], offset + done as u64) {
                Ok(0) => return Err(failed("the file has become shorter".to_owned())),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno.to_string())),
            }
        }
        Ok(())
    }

    /// Fills `into` from the worker's file `index` through the page cache, where all is there.
    pub(super) fn read_header(&self, index: u32, offset: u64, into: &mut [u8]) -> Option<()> {
        let file = &self.plain.get(index as usize)?.fd;
        let count = rustix::io::pread(file, &mut *into, offset).ok()?;
        (count == into.len()).then_some(())
    }

    /// Whether the worker's file `index`, with which data is compared, was written since it was
    /// opened.
    pub(super) fn has_changed(&self, index: u32) -> bool {
        self.plain[index as usize].has_changed()
    }

    /// The files as an engine takes them. They stay open as long as `self`.
    pub(super) fn for_engine(&self) -> Vec<EngineFile> {
        let both = self.fds.iter().zip(&self.lengths);
        both.map(|(fd, &len)| EngineFile { fd: fd.as_raw_fd(), len, writable: self.writable })
            .collect()
    }

    /// Index of the worker's file that is the job's `target`.
    pub(super) fn index_of(&self, target: u32) -> Option<u32> {
        // Where all targets of the job are open, each is at its own number.
        if self.targets.get(target as usize) == Some(&target) {
            return Some(target);
        }
        let at = self.targets.iter().position(|&t| t == target)?;
        u32::try_from(at).ok()
    }

    /// Sends what the page cache holds of the files to storage and drops it, so that what is read
    /// next comes from there. Advice, where the kernel won't; the file whose data could not be
    /// written back, with the error.
    pub(super) fn drop_cache(&self, job: &JobPlan) -> Result<(), RunError> {
        for (fd, target) in self.fds.iter().zip(&self.targets) {
            let error = |what: String| RunError::Open {
                path: job.targets[*target as usize].path.clone(),
                how: " and write back what the load left in the page cache".to_owned(),
                what,
            };
            let file = fd.try_clone().map_err(|source| error(source.to_string()))?;
            let dropped = gpuio_host::residency::drop_cache(&file.into());
            dropped.map_err(|source| error(source.to_string()))?;
        }
        Ok(())
    }

    /// Sends what was written to the medium; `called` after each call.
    pub(super) fn flush(
        &self,
        job: &JobPlan,
        data_only: bool,
        mut called: impl FnMut(),
    ) -> Result<(), RunError> {
        for (fd, target) in self.fds.iter().zip(&self.targets) {
            let result = match data_only {
                true => rustix::fs::fdatasync(fd),
                false => rustix::fs::fsync(fd),
            };
            result.map_err(|errno| RunError::Open {
                path: job.targets[*target as usize].path.clone(),
                how: " and send what was written to the medium".to_owned(),
                what: errno.to_string(),
            })?;
            called();
        }
        Ok(())
    }

    pub(super) fn mode(&self) -> DirectMode {
        if self.direct { DirectMode::Direct } else { DirectMode::Buffered }
    }
}

fn open_one(
    job: &JobPlan,
    path: &str,
    writable: bool,
    held: &Targets,
) -> Result<OwnedFd, RunError> {
    let mut flags = if writable { OFlags::RDWR } else { OFlags::RDONLY };
    let mut how = String::from(if writable { " for writing" } else { " for reading" });
    if job.direct == DirectMode::Direct {
        flags |= OFlags::DIRECT;
        how.push_str(" with O_DIRECT");
    }
    if job.sync {
        flags |= OFlags::DSYNC;
        how.push_str(" with O_DSYNC");
    }
    open_with(path, flags, &how, held)
}

/// Tells the kernel of the accesses that follow, where that was requested.
fn advise(job: &JobPlan, path: &str, fd: &OwnedFd) -> Result<(), RunError> {
    let random = matches!(job.order, Order::Random { .. });
    let advice = match job.fadvise_hint {
        None => return Ok(()),
        Some(FadviseHint::Random) => Advice::Random,
        Some(FadviseHint::Sequential) => Advice::Sequential,
        Some(FadviseHint::Noreuse) => Advice::NoReuse,
        Some(FadviseHint::Load) if random => Advice::Random,
        Some(FadviseHint::Load) => Advice::Sequential,
    };
    rustix::fs::fadvise(fd, 0, None, advice).map_err(|errno| RunError::Open {
        path: path.to_owned(),
        how: " and tell the kernel how it is accessed (posix_fadvise; fadvise_hint)".to_owned(),
        what: errno.to_string(),
    })
}

fn open_with(path: &str, flags: OFlags, how: &str, held: &Targets) -> Result<OwnedFd, RunError> {
    held.open(path, flags).map_err(|error| {
        let errno = match &error {
            ReopenError::Call(source) => Errno::from_io_error(source),
            ReopenError::Replaced => None,
        };
        let hint = match errno {
            Some(Errno::INVAL) if flags.contains(OFlags::DIRECT) => {
                "; the file system takes no O_DIRECT: use --buffered"
            }
            Some(Errno::MFILE) => "; raise the limit on open files (ulimit -n) or lower --threads",
            Some(Errno::NFILE) => "; the system's file table is full (fs.file-max)",
            Some(Errno::ACCESS) => "; this user may not",
            Some(Errno::PERM) => "; this user may not, or the file is immutable (lsattr)",
            Some(Errno::NOENT) => "; it existed a moment ago: another process removed it",
            Some(Errno::BUSY) => "; it is in use",
            _ => "",
        };
        let what = match errno {
            Some(errno) => format!("{errno}{hint}"),
            None => error.to_string(),
        };
        RunError::Open { path: path.to_owned(), how: how.to_owned(), what }
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::io::Write;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// The first read of a file begins to read ahead, unless the kernel knows that what follows is
    /// elsewhere.
    #[test]
    fn the_kernel_is_told_of_the_accesses_that_follow() {
        use gpuio_host::residency::{drop_cache, residency};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let read = |lines: &str| {
            let job = gpuio_testkit::jobs::job(&format!("direct=0\n{lines}"));
            let file = File::open(&path).unwrap();
            drop_cache(&file).unwrap();
            let cached = || residency(&file, 0, 1 << 20).cached_bytes;
            let before = cached();
            advise(&job, "data", &file.try_clone().unwrap().into()).unwrap();
            rustix::io::pread(&file, &mut [0; 4096], 0).unwrap();
            (before == Some(0)).then(cached).flatten()
        };
        let Some(ahead) = read("rw=randread").filter(|bytes| *bytes > 4096) else {
            return println!("SKIPPED: nothing is read ahead here");
        };
        for lines in ["rw=read\nfadvise_hint=random", "rw=randread\nfadvise_hint=1"] {
            assert_eq!(read(lines), Some(4096), "{lines}");
        }
        for lines in ["rw=randread\nfadvise_hint=0", "rw=randread\nfadvise_hint=sequential"] {
            assert!(read(lines) >= Some(ahead), "{lines}");
        }
    }

    #[test]
    fn a_file_that_was_written_since_it_was_opened_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model");
        std::fs::write(&path, "abc").unwrap();
        let plain = || Plain::new(File::open(&path).unwrap().into());
        let before = plain();
        std::fs::rename(&path, dir.path().join("other")).unwrap();
        std::fs::rename(dir.path().join("other"), &path).unwrap();
        assert!(!before.has_changed(), "its bytes are what they were");
        let mut writer = File::options().append(true).open(&path).unwrap();
        writer.write_all(b"d").unwrap();
        assert!(before.has_changed());
        let longer = plain();
        let times = FileTimes::new().set_modified(SystemTime::now() + Duration::from_secs(9));
        writer.set_times(times).unwrap();
        assert!(longer.has_changed(), "of the same length");
    }
}
