//! The storage below the jobs' files: read once, before the counters, and no counter itself.

use std::path::{Path, PathBuf};

use gpuio_drivers::cufile::Abilities;
use gpuio_host::{Root, extents};
use gpuio_io::path::CufileDriver;
use gpuio_record::facts::{BlockFacts, IoLimit, TargetStorage};
use gpuio_record::{ContentReading, HolesReading, JobPlan, TargetKind};

use crate::evidence::block_stack::{self, Device, Stack};
use crate::evidence::content;
use crate::evidence::net_devices::{self, NetDevice};
use crate::evidence::{OpenFile, by_foreign_library};

/// One entry per GPU of the machine, whether or not CUDA may use it.
const GPUS: &str = "proc/driver/nvidia/gpus";

/// The storage below the files of a group.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Per job, in plan order.
    pub(crate) jobs: Vec<JobLayout>,
    /// Block devices that file systems or jobs sit on, each once.
    pub(crate) tops: Vec<Device>,
    /// Whether the machine has one GPU only.
    pub(crate) lone_gpu: bool,
    /// Whether the kernel has nvidia-fs loaded; `None` where it does not report that.
    pub(crate) nvidia_fs: Option<bool>,
    /// The abilities that cuFile reports, for groups that use it. They do not change while the
    /// library is open.
    pub(crate) cufile: Option<Abilities>,
    /// The limits of this process's control group on these devices.
    pub(crate) limits: Vec<IoLimit>,
    /// All devices with counters, as (probe of `gpuio-watch`, name).
    pub(crate) devices: Vec<(&'static str, String)>,
}

/// The storage below the files of one job.
#[derive(Debug)]
pub(crate) struct JobLayout {
    pub(crate) kept: Kept,
    /// The block devices; a reason where some file has none.
    pub(crate) stack: Result<Stack, String>,
    /// Where bytes to and from an NFS server pass; a reason where its files are on no NFS server
    /// that can be located.
    pub(crate) net_devices: Result<Vec<NetDevice>, String>,
    /// Bytes that no device holds.
    pub(crate) holes: Option<HolesReading>,
    /// The content of the files that it reads.
    pub(crate) content: Option<ContentReading>,
    /// Why those are not known.
    pub(crate) unknown: Vec<String>,
}

/// The medium of a job's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Block devices, all of them.
    Devices,
    /// NFS, all of them, on these mounts.
    Nfs(Vec<String>),
    /// Host memory (tmpfs, ramfs), all of them.
    Memory(String),
    /// Something else, or a mixture; named as a file system.
    Elsewhere(String),
}

impl Layout {
    /// Looks at the machine. Writes dirty pages of the jobs' files back to find their holes, so it
    /// comes before every counter.
    pub(crate) fn read(
        root: &Root,
        jobs: &[JobPlan],
        open: OpenFile<'_>,
        cufile: Option<&CufileDriver>,
    ) -> Layout {
        let mut layout = Layout {
            lone_gpu: root.list(GPUS).is_ok_and(|gpus| gpus.len() == 1),
            nvidia_fs: module(root),
            ..Layout::default()
        };
        if jobs.iter().any(by_foreign_library) {
            layout.cufile = cufile.and_then(|driver| driver.abilities());
        }
        // A limit that can't be read is unknown, and no warning.
        let limits = gpuio_host::cgroup::io_limits(root).ok().flatten().unwrap_or_default().limits;
        for job in jobs {
            let storages = storages(root, job);
            let (holes, mut unknown) = holes(job, open);
            let content = content::sampled(job, open).unwrap_or_else(|why| {
                unknown.push(format!("content of the job's files: {why}"));
                None
            });
            let of_job = JobLayout {
                kept: kept(&storages),
                stack: block_stack::stack(&storages),
                net_devices: net_devices::devices(root, &storages),
                holes,
                content,
                unknown,
            };
            layout.add(&of_job, &storages);
            let below = |limit: &&IoLimit| {
                let mut devices = storages.iter().filter_map(|storage| storage.device.as_ref());
                devices.any(|device| is_part(device, &limit.device))
            };
            for limit in limits.iter().filter(below) {
                if !layout.limits.contains(limit) {
                    layout.limits.push(limit.clone());
                }
            }
            layout.jobs.push(of_job);
        }
        layout
    }

    fn add(&mut self, of_job: &JobLayout, storages: &[TargetStorage]) {
        for device in storages.iter().filter_map(|storage| storage.device.as_ref()) {
            block_stack::add(&mut self.tops, device);
            let mut all = Vec::new();
            block_stack::add_all(&mut all, device);
            self.devices.extend(all.into_iter().map(|device| ("block", device.name)));
        }
        if let Kept::Nfs(points) = &of_job.kept {
            self.devices.extend(points.iter().map(|point| ("nfs", point.clone())));
        }
        self.devices.extend(of_job.net_devices.iter().flatten().map(NetDevice::probe_and_name));
    }
}

/// Whether the device of this name is this one, its disk or one that it is made of.
fn is_part(device: &BlockFacts, name: &str) -> bool {
    device.name == name
        || device.disk.as_deref() == Some(name)
        || device.members.iter().any(|member| is_part(member, name))
}

fn module(root: &Root) -> Option<bool> {
    let modules = root.read("proc/modules").ok()??;
    let named = |line: &str| line.split(' ').next() == Some("nvidia_fs");
    Some(modules.body.lines().any(named))
}

/// Storage below each directory or device of a job, each once.
fn storages(root: &Root, job: &JobPlan) -> Vec<TargetStorage> {
    let mut known: Vec<PathBuf> = Vec::new();
    let mut found = Vec::new();
    for target in &job.targets {
        let path = Path::new(&target.path);
        // Files of one directory lie on one device, unless they are links: the link is followed.
        let location = match (target.kind, path.is_symlink()) {
            (TargetKind::File, false) => path.parent().unwrap_or(path).to_path_buf(),
            _ => path.to_path_buf(),
        };
        if !known.contains(&location) {
            found.push(gpuio_host::target_storage(root, path, &mut Vec::new()));
            known.push(location);
        }
    }
    found
}

fn kept(storages: &[TargetStorage]) -> Kept {
    let kind = |storage: &TargetStorage| {
        let mount = storage.mount.as_ref();
        mount.map_or("an unknown file system", |mount| mount.fs_type.as_str()).to_owned()
    };
    let all =
        |fits: &dyn Fn(&TargetStorage) -> bool| !storages.is_empty() && storages.iter().all(fits);
    if all(&|storage| storage.device.is_some()) {
        return Kept::Devices;
    }
    if all(&|storage| matches!(kind(storage).as_str(), "nfs" | "nfs4")) {
        let mount = |storage: &TargetStorage| Some(storage.mount.as_ref()?.mount_point.clone());
        let mut points: Vec<String> = storages.iter().filter_map(mount).collect();
        points.sort();
        points.dedup();
        return Kept::Nfs(points);
    }
    let first = storages.iter().find(|storage| storage.device.is_none());
    let name = first.map_or_else(|| "an unknown file system".to_owned(), kind);
    if all(&|storage| matches!(kind(storage).as_str(), "tmpfs" | "ramfs")) {
        return Kept::Memory(name);
    }
    Kept::Elsewhere(name)
}

/// Which bytes that a job uses no device holds, and why that is not known, each reason once and
/// only where the job reads. Block devices have no holes that could be requested.
fn holes(job: &JobPlan, open: OpenFile<'_>) -> (Option<HolesReading>, Vec<String>) {
    let mut unknown = Vec::new();
    if job.engine.actual == "null" {
        return (None, unknown);
    }
    let mut sum = HolesReading { hole_bytes: Some(0), unwritten_bytes: Some(0), range_bytes: 0 };
    let mut files = 0;
    for (at, target) in (0_u32..).zip(&job.targets) {
        if target.kind != TargetKind::File {
            continue;
        }
        let used = content::used(job, at, target);
        let found = match open(&target.path) {
            Ok(file) => extents::extents(&file.into(), used.start, used.end - used.start),
            Err(error) => extents::Extents { reason: Some(error), ..Default::default() },
        };
        files += 1;
        let add = |sum: Option<u64>, more: Option<u64>| Some(sum?.saturating_add(more?));
        sum.range_bytes += found.range_bytes;
        sum.hole_bytes = add(sum.hole_bytes, found.hole_bytes);
        sum.unwritten_bytes = add(sum.unwritten_bytes, found.unwritten_bytes);
        if let Some(why) = found.reason.filter(|_| job.read_percent > 0) {
            let why = format!("holes in the job's files: {why}");
            if !unknown.contains(&why) {
                unknown.push(why);
            }
        }
    }
    ((files > 0).then_some(sum), unknown)
}
