//! Files that the GPU reads or writes in the page cache by itself: mapped and registered before a
//! group's clock starts, once for all workers of a job, and unregistered when these are gone.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::available_parallelism;

use gpuio_dataset::held::Targets;
use gpuio_gpu::{Context, FilePages, MapError, MappedFile};
use gpuio_host::residency;
use gpuio_io::clock::Clock;
use gpuio_io::path::{self, PathError};
use gpuio_job::plan::mapped_parts;
use gpuio_record::{BreakEven, CpuScope, DirectMode, EndedHow, JobPlan, JobResult, MappedResult};

use gpuio_base::units::float;
use rustix::fs::OFlags;

use super::RunError;
use super::rusage::Usage;

/// Share of the files that the page cache held before, below which the cost contains too much of
/// storage to say anything of registering.
const WARM: f64 = 0.99;

/// Threads that allocate a file's pages at once: on tmpfs 1, 4 and 16 of them made 1.9, 5.3 and
/// 4.6 GiB/s (16 processors, Linux 6.18).
const ALLOCATORS: usize = 4;

/// The mapped files of one job.
pub(super) struct Mappings {
    /// With the index of the target that each is of.
    files: Vec<(u32, Arc<MappedFile>)>,
    result: MappedResult,
}

impl Mappings {
    /// Maps and registers what the job reads or writes of each of its targets; nothing on other
    /// paths. Reads from storage what the page cache does not hold, and for writes allocates pages.
    ///
    /// # Errors
    /// A file can't be opened, mapped, read, filled with pages or registered: which, at which
    /// call, and why; or `goes_on` was false.
    pub(super) fn open(
        job: &JobPlan,
        held: &Targets,
        contexts: &BTreeMap<u32, Context>,
        clock: &Clock,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Mappings>, RunError> {
        let name = &job.path.choice.actual;
        let Some(row) = path::find(name).filter(|row| row.info.uses_mapping()) else {
            return Ok(None);
        };
        let failed = |what: String| RunError::Path {
            job: job.name.clone(),
            thread: 0,
            source: Box::new(PathError::Setup { path: row.info.name, what }),
        };
        let context = job.gpus.first().and_then(|gpu| contexts.get(&gpu.index));
        let context = context.ok_or_else(|| failed("it has no GPU".to_owned()))?;
        let portable = job.gpus.iter().any(|gpu| gpu.index != context.device());
        let writes = job.read_percent < 100;
        let (flags, used): (_, fn() -> Usage) = match writes {
            false => (OFlags::RDONLY, Usage::of_thread),
            // Several threads allocate.
            true => (OFlags::RDWR, Usage::of_process),
        };
        let began = used();
        let mut all = Mappings { files: Vec::new(), result: MappedResult::default() };
        let mut resident = Some(0.0);
        for (target, part) in mapped_parts(job) {
            let path = &job.targets[target as usize].path;
            let opened = held.open(path, flags | OFlags::CLOEXEC).map(File::from);
            let file = opened.map_err(|error| failed(format!("{path}: open: {error}")))?;
            resident = resident.zip(held_bytes(&file, &part)).map(|(sum, more)| sum + more);
            let refused = |error: MapError| failed(refused(path, &error, writes));
            if writes {
                lengthen(&file, part.end).map_err(|error| failed(format!("{path}: {error}")))?;
            }
            let begun = clock.now();
            let (pages, filled) = if writes {
                let pages = FilePages::map_writable(context, file.as_fd(), part.clone());
                let pages = pages.map_err(&refused)?;
                let threads = available_parallelism().map_or(1, |all| all.get().min(ALLOCATORS));
                let filled = pages.allocate(file.as_fd(), threads, goes_on);
                (pages, filled)
            } else {
                let pages = FilePages::map(file.as_fd(), part.clone()).map_err(&refused)?;
                let filled = pages.read_in(goes_on);
                (pages, filled)
            };
            if !filled.map_err(&refused)? {
                return Err(RunError::Stopped { path: path.clone() });
            }
            let there = clock.now();
            let mapped =
                pages.register(context, portable).map_err(|error| refused(error.into()))?;
            all.result.map_ns += there - begun;
            all.result.register_ns += clock.now() - there;
            all.add(target, &part, mapped);
        }
        let result = &mut all.result;
        result.resident_before = resident.map(|held| held / float(result.mapped_bytes.max(1)));
        result.cpu_ns = began.until(&used()).busy_ns();
        Ok(Some(all))
    }

    fn add(&mut self, target: u32, part: &Range<u64>, mapped: MappedFile) {
        let result = &mut self.result;
        result.files += 1;
        result.mapped_bytes += part.end - part.start;
        result.pinned_bytes += mapped.pinned_bytes();
        self.files.push((target, Arc::new(mapped)));
    }

    /// Those of a worker's targets, in their order.
    pub(super) fn of(&self, targets: &[u32]) -> Vec<Arc<MappedFile>> {
        let one = |target: &u32| self.files.iter().find(|(of, _)| of == target);
        targets.iter().filter_map(one).map(|(_, file)| Arc::clone(file)).collect()
    }

    /// Unregisters all, which no worker uses any more, and returns what it all cost; of what was
    /// written, how many bytes the files may have lost.
    pub(super) fn close(self, clock: &Clock) -> MappedResult {
        let Mappings { files, mut result } = self;
        let written = || files.iter().map(|(_, file)| file).filter(|file| file.is_writable());
        let table = path::page_table().ok();
        let lost = written().map(|file| file.lost_bytes(table.as_ref()?, file.part()).ok());
        result.lost_bytes = lost.sum::<Option<u64>>().filter(|_| written().next().is_some());
        let (began, used) = (clock.now(), Usage::of_thread());
        let mut all = true;
        for (_, file) in files {
            // One that a worker still holds is given back by it, later than can be measured here.
            let closed = Arc::try_unwrap(file).map(MappedFile::close);
            all &= matches!(closed, Ok(Ok(())));
            if let Ok(Err(error)) = closed {
                result.unregister_failed.get_or_insert(error.to_string());
            }
        }
        result.unregister_ns = all.then(|| clock.now() - began);
        result.cpu_ns += used.until(&Usage::of_thread()).busy_ns();
        result
    }
}

/// Makes a file that the job is to write as long as what is mapped of it.
fn lengthen(file: &File, end: u64) -> Result<(), String> {
    let facts = file.metadata().map_err(|error| format!("fstat: {error}"))?;
    if !facts.is_file() || facts.len() >= end {
        return Ok(());
    }
    file.set_len(end).map_err(|error| format!("ftruncate to {end} bytes: {error}"))
}

/// Why a file could not be mapped, and what to do.
fn refused(path: &str, error: &MapError, writes: bool) -> String {
    let advice = match error {
        MapError::Short { .. } => "name a longer file, or lower --size",
        MapError::Allocate { .. } => {
            "the file system is full (df), or the process may have no more memory; lower --size, \
             or make room"
        }
        MapError::Call { errno: libc::EFAULT, .. } => {
            "the file became shorter, or storage could not be read"
        }
        MapError::Call { .. } | MapError::Range(_) => {
            "the file system does not map this file; use --path cached or gather"
        }
        MapError::Gpu(_) if writes => {
            "the kernel pins pages for a GPU to write on file systems in memory only, not on ext4, \
             XFS or Btrfs; use a file on tmpfs (/dev/shm), or --path cached"
        }
        MapError::Gpu(_) => {
            "the driver pins the pages of the page cache for long, which not every file system or \
             limit allows; use --path cached or gather"
        }
    };
    format!("{path}: {error}: {advice}")
}

/// Bytes of a part of a file that the page cache holds, where that can be queried.
fn held_bytes(file: &File, part: &Range<u64>) -> Option<f64> {
    let length = part.end - part.start;
    residency::residency(file, part.start, length).cached_bytes.map(float)
}

/// Says of each job that mapped its files after how many reads or writes of each byte that has
/// paid, against the fastest job of the run that moved the same by another path through the page
/// cache.
pub(super) fn break_even(plans: &[JobPlan], results: &mut [JobResult]) {
    let found: Vec<Option<Result<BreakEven, String>>> =
        (0..results.len()).map(|at| of_job(plans, results, at)).collect();
    for (result, found) in results.iter_mut().zip(found) {
        let (Some(mapped), Some(found)) = (&mut result.mapped, found) else { continue };
        match found {
            Ok(even) => mapped.break_even = Some(even),
            Err(why) => mapped.break_even_unknown = Some(why),
        }
    }
}

/// Nothing where the job maps no file.
fn of_job(
    plans: &[JobPlan],
    results: &[JobResult],
    at: usize,
) -> Option<Result<BreakEven, String>> {
    let result = &results[at];
    let mapped = result.mapped.as_ref()?;
    let plan = plans.iter().find(|plan| plan.name == result.name)?;
    let both = |other: &&JobResult| {
        plans.iter().any(|one| one.name == other.name && is_twin(plan, one, plans))
    };
    let twins = results.iter().filter(both).filter(|other| is_whole(other));
    let rate = |job: &JobResult| job.read.bytes_per_s + job.write.bytes_per_s;
    let fastest = twins.max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let reads = plan.read_percent == 100;
    Some(match (fastest, mapped.unregister_ns, mapped.resident_before) {
        _ if !is_whole(result) => Err("the job did not run to its end".to_owned()),
        (None, ..) => Err("no other path of this run moved the same blocks of the same files \
                           through the page cache; --path mapped,cached does"
            .to_owned()),
        (_, None, _) => Err("the time to unregister is not known".to_owned()),
        (.., None) if reads => {
            Err("how much of the files the page cache held before is not known, so \
                           that the cost may contain reads from storage"
                .to_owned())
        }
        (.., Some(before)) if reads && before < WARM => Err(format!(
            "the page cache held {:.1} % of the files before, so that the cost contains reads from \
             storage; use pre_read",
            before * 100.0
        )),
        (Some(other), Some(after), _) => Ok(even(mapped, after, result, other)),
    })
}

/// Whether a job moves what the mapped one does, as it does, by another path to GPU memory through
/// the page cache; neither with another job beside it.
fn is_twin(mapped: &JobPlan, other: &JobPlan, plans: &[JobPlan]) -> bool {
    let alone = |job: &JobPlan| plans.iter().filter(|one| one.group == job.group).count() == 1;
    let paths = |job: &JobPlan| -> Vec<String> {
        job.targets.iter().map(|target| target.path.clone()).collect()
    };
    let shape = |job: &JobPlan| {
        (job.blocks.clone(), job.order.clone(), job.threads, job.size_bytes, job.offset_bytes)
    };
    let same = shape(mapped) == shape(other)
        && paths(mapped) == paths(other)
        && mapped.gpus == other.gpus
        && mapped.memory == other.memory;
    let another = mapped.path.choice.actual != other.path.choice.actual
        && other.read_percent == mapped.read_percent
        && other.direct == DirectMode::Buffered
        && other.engine.actual != "null"
        && other.inject.is_none();
    another && same && [mapped, other].into_iter().all(|job| alone(job) && job.is_unhindered())
}

fn is_whole(result: &JobResult) -> bool {
    result.ended == EndedHow::Complete && result.failed == 0 && moved(result) > 0
}

fn moved(result: &JobResult) -> u64 {
    result.read.bytes + result.write.bytes
}

fn even(mapped: &MappedResult, after_ns: u64, own: &JobResult, other: &JobResult) -> BreakEven {
    let each = |cost_ns: u64| float(cost_ns) / float(mapped.mapped_bytes.max(1));
    let reads = |cost: f64, own: f64, other: f64| (other > own).then(|| cost / (other - own));
    let time = |job: &JobResult| float(job.last_done_ns) / float(moved(job));
    // Only where it is known in whole: nanoseconds of CPU time for each byte.
    let cpu = |job: &JobResult| {
        let known = job.cpu.scope != CpuScope::Threads;
        job.cpu.us_per_mib.filter(|_| known).map(|cost| cost * 1e3 / f64::from(1 << 20))
    };
    let cost_ns = mapped.map_ns + mapped.register_ns + after_ns;
    let both = cpu(own).zip(cpu(other));
    BreakEven {
        against: other.name.clone(),
        reads_by_time: reads(each(cost_ns), time(own), time(other)),
        reads_by_cpu: both.and_then(|(own, other)| reads(each(mapped.cpu_ns), own, other)),
    }
}

#[cfg(test)]
mod tests;
