//! What the kernel counted around a group: page cache, the process's storage traffic, devices.

use std::path::Path;

use gpuio_host::{Root, block, extents, proc_io, residency};
use gpuio_record::facts::DeviceNumber;
use gpuio_record::{CacheReading, HolesReading, JobPlan, StorageReading, TargetKind};

use crate::OpenFile;

/// Files looked at for page-cache residency, per job: a look costs a system call or a mapping.
const LOOKED_AT: usize = 64;

/// Readings before the group, to be compared with those after it.
#[derive(Debug)]
pub struct Before {
    resident: Vec<Result<f64, String>>,
    holes: Vec<(Option<HolesReading>, Vec<String>)>,
    process: Option<proc_io::ProcessIoSample>,
    devices: Vec<Device>,
}

/// A block device under the jobs' targets, with a first sample.
#[derive(Debug)]
struct Device {
    number: DeviceNumber,
    name: String,
    volatile_cache: Option<bool>,
    first: block::BlockSample,
}

impl Before {
    /// Reads before the clock starts.
    pub fn take(jobs: &[JobPlan], open: OpenFile<'_>) -> Before {
        let root = Root::live();
        Before {
            // Dirty pages are written back for this one: it comes before the counters.
            holes: jobs.iter().map(|job| holes(job, open)).collect(),
            resident: jobs.iter().map(|job| resident(job, open)).collect(),
            devices: devices(&root, jobs),
            process: proc_io::sample(&root).ok().flatten(),
        }
    }
}

/// Reads again and takes the differences, one answer per job. Process and device figures are the
/// whole group's: the kernel does not count by job.
pub fn caches(jobs: &[JobPlan], open: OpenFile<'_>, before: Before) -> Vec<CacheReading> {
    let root = Root::live();
    let mut unknown = Vec::new();
    let process = match (&before.process, proc_io::sample(&root)) {
        (Some(first), Ok(Some(later))) => Some(first.delta(&later)),
        _ => {
            unknown.push("storage traffic of this process: /proc/self/io can't be read".to_owned());
            None
        }
    };
    let mut storage = Vec::new();
    for device in &before.devices {
        let name = &device.name;
        let later = block::sample(&root, device.number).ok().flatten();
        match later.and_then(|later| device.first.delta(&later)) {
            Some(moved) => storage.push(StorageReading {
                device: name.clone(),
                volatile_cache: device.volatile_cache,
                reads: moved.reads,
                read_bytes: moved.read_bytes,
                writes: moved.writes,
                write_bytes: moved.write_bytes,
            }),
            None => unknown.push(format!("block layer counts of {name}: gone or reset")),
        }
    }
    let of_job = |((job, first), (holes, silent)): ((&JobPlan, _), (_, Vec<String>))| {
        let after = resident(job, open);
        let mut unknown = unknown.clone();
        unknown.extend(silent);
        if let Err(why) = &after {
            unknown.push(format!("page cache of the job's files: {why}"));
        }
        CacheReading {
            holes,
            resident_before: Result::ok(first),
            resident_after: after.ok(),
            process_read_bytes: process.map(|io| io.storage_read_bytes),
            process_write_bytes: process.map(|io| io.storage_write_bytes),
            storage: storage.clone(),
            unknown,
        }
    };
    jobs.iter().zip(before.resident).zip(before.holes).map(of_job).collect()
}

/// Which bytes that a job uses no device holds, and why that is not known, each reason once and
/// only where the job reads. Block devices have no holes that could be requested.
fn holes(job: &JobPlan, open: OpenFile<'_>) -> (Option<HolesReading>, Vec<String>) {
    let mut silent = Vec::new();
    if job.engine.actual == "null" {
        return (None, silent);
    }
    let mut sum = HolesReading { hole_bytes: Some(0), unwritten_bytes: Some(0), range_bytes: 0 };
    let mut files = 0;
    for (at, target) in (0_u32..).zip(&job.targets) {
        if target.kind != TargetKind::File {
            continue;
        }
        let regions = job.workers.iter().flat_map(|worker| &worker.regions);
        let first = regions.filter(|one| one.target == at).map(|one| one.offset).min();
        let first = first.unwrap_or(target.length_bytes);
        let length = target.length_bytes.saturating_sub(first);
        let found = match open(&target.path) {
            Ok(file) => extents::extents(&file.into(), first, length),
            Err(error) => {
                extents::Extents { reason: Some(error.to_string()), ..Default::default() }
            }
        };
        files += 1;
        let add = |sum: Option<u64>, more: Option<u64>| Some(sum?.saturating_add(more?));
        sum.range_bytes += found.range_bytes;
        sum.hole_bytes = add(sum.hole_bytes, found.hole_bytes);
        sum.unwritten_bytes = add(sum.unwritten_bytes, found.unwritten_bytes);
        if let Some(why) = found.reason.filter(|_| job.read_percent > 0) {
            let why = format!("holes in the job's files: {why}");
            if !silent.contains(&why) {
                silent.push(why);
            }
        }
    }
    ((files > 0).then_some(sum), silent)
}

/// Share of a job's bytes in the page cache.
#[expect(clippy::cast_precision_loss, reason = "a share of bytes")]
fn resident(job: &JobPlan, open: OpenFile<'_>) -> Result<f64, String> {
    let (mut cached, mut all) = (0.0, 0.0);
    for target in job.targets.iter().take(LOOKED_AT) {
        let file = open(&target.path);
        let file = file.map_err(|error| format!("{}: {error}", target.path))?;
        let reading = residency::residency(&file.into(), 0, target.length_bytes);
        let Some(fraction) = reading.fraction else {
            return Err(reading.reason.unwrap_or_else(|| "the kernel does not say".into()));
        };
        cached += fraction * target.length_bytes as f64;
        all += target.length_bytes as f64;
    }
    if all > 0.0 { Ok(cached / all) } else { Err("there are no files to look at".into()) }
}

/// Block devices under the jobs' targets, each once, with a first sample.
fn devices(root: &Root, jobs: &[JobPlan]) -> Vec<Device> {
    let mut found: Vec<Device> = Vec::new();
    let mut seen_directories = Vec::new();
    for target in jobs.iter().flat_map(|job| &job.targets) {
        let path = Path::new(&target.path);
        // Files of one directory lie on one device: look once for each directory.
        let place = match target.kind {
            TargetKind::BlockDevice => path.to_path_buf(),
            TargetKind::File => path.parent().unwrap_or(path).to_path_buf(),
        };
        if seen_directories.contains(&place) {
            continue;
        }
        seen_directories.push(place);
        let storage = gpuio_host::target_storage(root, path, &mut Vec::new());
        let Some(device) = storage.device else { continue };
        if found.iter().any(|known| known.number == device.device) {
            continue;
        }
        if let Ok(Some(first)) = block::sample(root, device.device) {
            let volatile_cache = device.volatile_cache();
            found.push(Device { number: device.device, name: device.name, volatile_cache, first });
        }
    }
    found
}
