//! All counters of one moment, and what was read of a group at its moments.

use gpuio_base::stat::LiveTotals;
use gpuio_drivers::cufile::{Counting, Stats};
use gpuio_host::proc_io::{self, ProcessIoSample};
use gpuio_host::{Root, residency};
use gpuio_io::clock::Nanos;
use gpuio_record::{CacheReading, JobPlan, StorageReading, Watched, WatchedGroup};
use gpuio_watch::{Counters, Sample, Watcher};

use crate::evidence::OpenFile;
use crate::evidence::block_stack;
use crate::evidence::layout::Layout;
use crate::evidence::pcie_meter::Links;
use crate::evidence::processors::Processors;
use crate::evidence::reconcile::{Counted, InWindow};

/// Files looked at for page-cache residency, per job: a look costs a system call or a mapping.
const MOST_FILES: usize = 64;

/// The counters of one moment, each read once. Every consumer gets these values.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// `/proc/self/io`.
    pub(crate) process: Result<ProcessIoSample, String>,
    /// Block devices, interfaces, RDMA ports, NFS mounts, nvidia-fs.
    pub(crate) devices: Counters,
    /// The sample that was made of `devices`: the first or the last of the series.
    pub(crate) sample: Sample,
    /// cuFile's own counters.
    pub(crate) cufile: Result<Stats, String>,
    /// `/proc/stat` and `/proc/self/stat`.
    pub(crate) processors: Option<Processors>,
    /// Per job, the share of its files' bytes in the page cache.
    pub(crate) resident: Vec<Result<f64, String>>,
}

impl Snapshot {
    /// Reads the counters; `resident` was or will be read apart from them, since it takes longer.
    pub(crate) fn take(
        root: &Root,
        watcher: &mut Watcher,
        at: Nanos,
        cufile: Result<&Counting, String>,
        resident: Vec<Result<f64, String>>,
    ) -> Snapshot {
        let process = match proc_io::sample(root) {
            Ok(Some(sample)) => Ok(sample),
            Ok(None) => {
                Err("/proc/self/io is not there: a kernel without I/O accounting".to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        let sample = watcher.sample_at(at);
        let devices = watcher.counters();
        let cufile = cufile.and_then(|one| one.read().map_err(|absent| absent.to_string()));
        let processors = Processors::read(root);
        Snapshot { process, processors, devices, sample, cufile, resident }
    }
}

/// Shares of the jobs' bytes in the page cache.
pub(crate) fn resident(jobs: &[JobPlan], open: OpenFile<'_>) -> Vec<Result<f64, String>> {
    jobs.iter().map(|job| resident_of(job, open)).collect()
}

fn resident_of(job: &JobPlan, open: OpenFile<'_>) -> Result<f64, String> {
    let (mut cached, mut all) = (0.0, 0.0);
    for target in job.targets.iter().take(MOST_FILES) {
        let file = open(&target.path).map_err(|error| format!("{}: {error}", target.path))?;
        let reading = residency::residency(&file.into(), 0, target.length_bytes);
        let Some(fraction) = reading.fraction else {
            return Err(reading.reason.unwrap_or_else(|| "the kernel does not report it".into()));
        };
        cached += fraction * target.length_bytes as f64;
        all += target.length_bytes as f64;
    }
    if all > 0.0 { Ok(cached / all) } else { Err("there are no files to look at".into()) }
}

/// The readings of a group: before, after and during. Everything that is concluded about it is a
/// pure function of this, the plan and the results.
#[derive(Debug)]
pub struct Readings {
    pub(crate) layout: Layout,
    /// Before the first I/O.
    pub(crate) before: Snapshot,
    /// When the [window](super::window) began, where that was later.
    pub(crate) counts: Option<Begun>,
    pub(crate) after: Snapshot,
    /// The bytes on the PCIe links of the jobs' GPUs between the two.
    pub(crate) links: Result<Links, String>,
    /// The counts of devices between the two; nothing where they were not sampled.
    pub(crate) counted: Counted,
    /// The devices as the record keeps them.
    pub(crate) series: Option<GroupSeries>,
}

/// The counters when the window began while I/Os were under way, and what each job had moved.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) snapshot: Snapshot,
    pub(crate) moved: Vec<LiveTotals>,
}

/// A group's devices during the run.
#[derive(Debug)]
pub(crate) struct GroupSeries {
    pub(crate) interval_ns: u64,
    pub(crate) group: WatchedGroup,
    /// Samples taken, dropped ones included.
    pub(crate) count: u64,
    /// CPU time of the sampler's thread between start and end.
    pub(crate) cpu_ns: u64,
}

impl Readings {
    /// The readings of page cache and storage, one per job. Process and device figures are the
    /// whole group's: the kernel does not count by job.
    pub fn caches(&self) -> Vec<CacheReading> {
        let mut unknown = Vec::new();
        let process = match (&self.before.process, &self.after.process) {
            (Ok(before), Ok(after)) => Some(before.delta(after)),
            _ => {
                let why = "storage traffic of this process: /proc/self/io can't be read";
                unknown.push(why.to_owned());
                None
            }
        };
        let (storage, uncounted) = self.storage(&self.before);
        unknown.extend(uncounted);
        let moments = self.before.resident.iter().zip(&self.after.resident);
        let of_job =
            |(job, (before, after)): (&crate::evidence::layout::JobLayout, (&Result<_, _>, _))| {
                let after: &Result<f64, String> = after;
                let mut unknown = unknown.clone();
                unknown.extend(job.unknown.iter().cloned());
                if let Err(why) = after {
                    unknown.push(format!("page cache of the job's files: {why}"));
                }
                CacheReading {
                    holes: job.holes.clone(),
                    content: job.content,
                    resident_before: before.as_ref().ok().copied(),
                    resident_after: after.as_ref().ok().copied(),
                    process_read_bytes: process.map(|io| io.storage_read_bytes),
                    process_write_bytes: process.map(|io| io.storage_write_bytes),
                    storage: storage.clone(),
                    unknown,
                }
            };
        self.layout.jobs.iter().zip(moments).map(of_job).collect()
    }

    /// The block devices right under the files from a moment to the end; why some are absent.
    fn storage(&self, from: &Snapshot) -> (Vec<StorageReading>, Vec<String>) {
        let (mut storage, mut unknown) = (Vec::new(), Vec::new());
        for device in &self.layout.tops {
            let (before, after) = (&from.devices, &self.after.devices);
            if before.block(&device.name).is_none() {
                continue;
            }
            match block_stack::change(before, after, &device.name) {
                Some(moved) => storage.push(StorageReading {
                    device: device.name.clone(),
                    volatile_cache: device.volatile_cache,
                    reads: moved.reads,
                    read_bytes: moved.read_bytes,
                    writes: moved.writes,
                    write_bytes: moved.write_bytes,
                    flushes: moved.flushes,
                }),
                None => {
                    let name = &device.name;
                    unknown.push(format!("block layer counts of {name}: gone or reset"));
                }
            }
        }
        (storage, unknown)
    }

    /// The counts of storage in the window, where that began later than the first I/O.
    pub(crate) fn in_window(&self) -> Option<InWindow> {
        let Begun { snapshot, moved } = self.counts.as_ref()?;
        let process = match (&snapshot.process, &self.after.process) {
            (Ok(before), Ok(after)) => Some(before.delta(after)),
            _ => None,
        };
        Some(InWindow {
            moved_before: moved.clone(),
            process: process.map(|io| [io.storage_read_bytes, io.storage_write_bytes]),
            storage: self.storage(snapshot).0,
        })
    }

    /// Adds the group's devices to those of the run, where they were sampled.
    pub fn add_series(&self, watched: &mut Option<Watched>) {
        let Some(series) = &self.series else { return };
        let interval_ns = series.interval_ns;
        let nothing = || Watched { interval_ns, samples: 0, cpu_ns: None, groups: vec![] };
        let watched = watched.get_or_insert_with(nothing);
        watched.samples += series.count;
        watched.cpu_ns = Some(watched.cpu_ns.unwrap_or(0) + series.cpu_ns);
        watched.groups.push(series.group.clone());
    }
}
