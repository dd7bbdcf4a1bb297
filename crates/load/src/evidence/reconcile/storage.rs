//! Rules about storage: what jobs moved, what the process caused and what block devices counted.

use std::collections::BTreeMap;

use gpuio_record::facts::{BlockKind, IoLimit};
use gpuio_record::{
    DeviceTraffic, DirectMode, JobPlan, JobResult, NOISE_BYTES, Order, StorageReading, WarningKind,
};

use super::counted::Block;
use super::{FEW_BYTES, GroupContext, float, whole};
use crate::evidence::group::{FLOWS, Flow};
use crate::evidence::source::by_library_core;

/// Half of the requested queue is a finding. Between two I/Os of a slot lie the tool, the kernel
/// and, on GPU paths, a copy; a device that is the slowest of these has most of the slots.
const QUEUE_SHARE: f64 = 0.5;
/// A path that carried less than a twentieth of the busiest is idle: probes of its health are a
/// few blocks.
const IDLE: f64 = 20.0;

/// Reads that never reached storage.
///
/// The process's counter covers all jobs of the group, so it is held against all of their bytes.
/// Bytes in holes are not storage's to deliver. Less than half from storage is a finding: below
/// that, the rate is more memory's than storage's.
pub(super) fn page_cache(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let mut found = Vec::new();
    for (at, (job, result)) in group.jobs.iter().zip(group.results).enumerate() {
        let (bytes, _) = Flow::Read.of(result);
        if let Some(from_storage) = result.cache.process_read_bytes
            && job.engine.actual != "null"
            // Reads from a mapping are known, and reported, before any counter is read.
            && result.mapped.is_none()
            && bytes > 0
            && from_storage < at_devices(group) / 2
        {
            let kind = match job.direct {
                DirectMode::Direct => WarningKind::DirectButCached { bytes, from_storage },
                DirectMode::Buffered => {
                    let of_files = job.of_files();
                    WarningKind::PageCacheServedReads { bytes, from_storage, of_files }
                }
            };
            found.push((Some(at), kind));
        }
    }
    found
}

/// Bytes that the group's jobs read and that some device holds: a job's reads are taken to be
/// spread over its files.
fn at_devices(group: &GroupContext<'_>) -> u64 {
    let of_job = |result: &JobResult| {
        let (bytes, _) = Flow::Read.of(result);
        let share = result
            .cache
            .holes
            .as_ref()
            .map_or(0.0, |holes| float(holes.absent_bytes()) / float(holes.range_bytes.max(1)));
        whole(float(bytes) * (1.0 - share).max(0.0))
    };
    group.results.iter().map(of_job).sum()
}

/// Storage delivered more to the process than its jobs read.
///
/// A tenth over is no finding: each stream ends inside a window of read-ahead (`read_ahead_kb`,
/// doubled for sequential reads), and pages are read whole. The process's own counter is used,
/// since a device's contains what others read.
pub(super) fn read_ahead(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let bytes = group.bytes(Flow::Read);
    let through_cache = group
        .moving()
        .any(|(job, result)| result.passes_page_cache(job) && Flow::Read.of(result).0 > 0);
    let Some(from_storage) = group.caused(Flow::Read).filter(|_| through_cache) else {
        return Vec::new();
    };
    if bytes == 0 || from_storage <= bytes + (bytes / 10).max(NOISE_BYTES) {
        return Vec::new();
    }
    let sequential =
        group.moving().all(|(job, _)| job.order == Order::Sequential && job.follow.is_none());
    let at = (group.jobs.len() == 1).then_some(0);
    vec![(at, WarningKind::ReadAhead { bytes, from_storage, sequential })]
}

/// Requests at the device of another size than the tool's I/Os.
///
/// Sizes are compared where the device's traffic is the tool's own, which within a tenth it is:
/// metadata and the ends of a run are less. A quarter of difference in mean size is a finding: the
/// last request of a file, or a chunk's end now and then, stays below. Through the page cache,
/// sequential reads are compared too, whose requests are those of read-ahead; what write-back
/// gathers is never the size of a write. Writes that flush a volatile cache are not compared: the
/// kernel counts each flush as a write of no bytes. Requests that may be others' are no parts of
/// our I/Os ([`may_be_others`]).
pub(super) fn requests(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let ([job], [result], [device]) = (group.jobs, group.results, group.storage()) else {
        return Vec::new();
    };
    if job.engine.actual == "null" || by_library_core(job) {
        return Vec::new();
    }
    let of = |flow: Flow| {
        let ((bytes, ios), (moved, requests)) = (flow.of(result), flow.at(device));
        let flushed = flow == Flow::Write && flushes(job) && device.volatile_cache != Some(false);
        if ios == 0 || requests == 0 || flushed || !comparable(job, result, flow) {
            return None;
        }
        // Others' requests say nothing about those of reads that the page cache served.
        let ours = if result.passes_page_cache(job) { group.caused(flow)? } else { bytes };
        let same_bytes = moved.abs_diff(ours) <= ours / 10 && ours >= bytes / 2;
        let (mean_io_bytes, mean_request_bytes) = (bytes / ios, moved / requests);
        let same = |request: u64| mean_io_bytes.abs_diff(request) <= mean_io_bytes / 4;
        let least = requests.saturating_sub(may_be_others(flow, device, ours)).max(1);
        // As large as they can be, they are whole I/Os: nothing shows that one was split.
        let whole = mean_request_bytes < mean_io_bytes && moved / least >= mean_io_bytes / 4 * 3;
        let alike = same(mean_request_bytes) || whole;
        let device = device.device.clone();
        (same_bytes && !alike).then_some((
            Some(0),
            WarningKind::SplitByBlockLayer {
                mean_io_bytes,
                mean_request_bytes,
                device,
                ahead: result.passes_page_cache(job),
            },
        ))
    };
    // Where both directions are cut, it is for one reason.
    FLOWS.into_iter().find_map(of).into_iter().collect()
}

/// Requests of a device that another process may have made: flushes, which are writes of no bytes,
/// all of them where they are not counted; and a page for each that moved bytes beyond ours.
fn may_be_others(flow: Flow, device: &StorageReading, ours: u64) -> u64 {
    let (moved, requests) = flow.at(device);
    let flushes = match flow {
        Flow::Read => 0,
        // A volume counts no flushes, and its requests of no bytes all the same.
        Flow::Write if moved / requests.max(1) < PAGE => requests,
        Flow::Write => device.flushes.unwrap_or(requests),
    };
    flushes.saturating_add(moved.saturating_sub(ours) / PAGE)
}

/// No limit of the block layer is lower (`queue/max_sectors_kb`).
const PAGE: u64 = 4096;

fn flushes(job: &JobPlan) -> bool {
    job.sync || job.flush.is_some()
}

fn comparable(job: &JobPlan, result: &JobResult, flow: Flow) -> bool {
    !result.passes_page_cache(job) || (flow == Flow::Read && job.order == Order::Sequential)
}

/// Bytes of the devices under the files, and gpuio's part.
///
/// A device counts for all processes, the process's counter for this one, read-ahead included.
/// Writes are counted only where all are O_DIRECT without sync: the kernel writes buffered pages
/// when it likes, and a journal writes small synchronous blocks several times.
pub(super) fn traffic(group: &GroupContext<'_>) -> Vec<DeviceTraffic> {
    let devices = group.storage_in_window();
    if devices.is_empty() || group.moving().next().is_none() {
        return Vec::new();
    }
    let names: Vec<&str> = devices.iter().map(|device| device.device.as_str()).collect();
    let of = |flow: Flow| {
        let device_bytes = devices.iter().map(|device| moved(group, device, flow)).sum();
        let (device, direction) = (names.join("+"), flow.name().to_owned());
        Some(DeviceTraffic { device, direction, ours_bytes: ours(group, flow)?, device_bytes })
    };
    FLOWS.into_iter().filter_map(of).collect()
}

/// The bytes that this process caused; `None` where they are not known.
fn ours(group: &GroupContext<'_>, flow: Flow) -> Option<u64> {
    // Bytes that the page cache served reached no device.
    let direct = group.bytes_in_window(flow, |job, result| !result.passes_page_cache(job));
    let caused = group.caused_in_window(flow);
    match flow {
        // Without the counter, read-ahead of ours could not be distinguished from others' reads.
        Flow::Read if caused.is_none() && !group.all_direct() => None,
        Flow::Write if !group.all_direct() || group.moving().any(|(job, _)| job.sync) => None,
        _ => Some(direct.max(caused.unwrap_or(0))),
    }
}

/// The bytes that the device counted; for a partition, those of its whole disk: others next to it
/// share it.
fn moved(group: &GroupContext<'_>, device: &StorageReading, flow: Flow) -> u64 {
    let (own, _) = flow.at(device);
    let partition = group.counted.block(&device.device);
    let disk = partition
        .filter(|one| one.kind == Some(BlockKind::Partition))
        .and_then(|one| group.counted.block(one.made_of.first()?));
    disk.map_or(own, |disk| match flow {
        Flow::Read => own.max(whole(disk.read_bytes)),
        Flow::Write => own.max(whole(disk.written_bytes)),
    })
}

/// Members of an array that took unequal parts.
///
/// A member below half of the mean is a finding: chunks spread evenly over all but the last stripe,
/// and what chance leaves with the least traffic that is checked is far less.
pub(super) fn array(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let arrays = group.counted.block.iter().filter(|device| is_array(device));
    arrays.filter_map(|array| Some((None, unequal(group, array)?))).collect()
}

fn is_array(device: &Block) -> bool {
    let mapped = device.kind == Some(BlockKind::DeviceMapper);
    let array = device.kind == Some(BlockKind::Md);
    let ways = device.level.as_deref() == Some("mpath");
    (mapped || array) && !ways && device.made_of.len() > 1
}

fn unequal(group: &GroupContext<'_>, array: &Block) -> Option<WarningKind> {
    let member = |name: &String| group.counted.block(name);
    // One that could not be counted leaves the mean open.
    let members: Vec<&Block> = array.made_of.iter().map(member).collect::<Option<_>>()?;
    let busiest = members.iter().max_by(|a, b| a.bytes().total_cmp(&b.bytes()))?;
    let least = members.iter().min_by(|a, b| a.bytes().total_cmp(&b.bytes()))?;
    let count = u32::try_from(members.len()).ok()?;
    let mean = members.iter().map(|one| one.bytes()).sum::<f64>() / f64::from(count);
    (mean * f64::from(count) >= FEW_BYTES && least.bytes() < mean / 2.0).then(|| {
        WarningKind::ArrayPartUsed {
            array: array.name.clone(),
            level: array.level.clone(),
            members: count,
            busiest: busiest.name.clone(),
            busiest_bytes: whole(busiest.bytes()),
            least: least.name.clone(),
            least_bytes: whole(least.bytes()),
        }
    })
}

/// Paths to one device of which some were idle: NVMe's own multipath, and device-mapper's.
pub(super) fn paths(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let mut ways: BTreeMap<String, Vec<&Block>> = BTreeMap::new();
    for device in &group.counted.block {
        if let Some(head) = device.way_to() {
            ways.entry(head).or_default().push(device);
        }
        if device.level.as_deref() == Some("mpath") {
            let below = device.made_of.iter().filter_map(|name| group.counted.block(name));
            ways.entry(device.name.clone()).or_default().extend(below);
        }
    }
    ways.iter().filter_map(|(device, ways)| Some((None, idle(group, device, ways)?))).collect()
}

fn idle(group: &GroupContext<'_>, device: &str, ways: &[&Block]) -> Option<WarningKind> {
    let busiest = ways.iter().max_by(|a, b| a.bytes().total_cmp(&b.bytes()))?;
    if busiest.bytes() < FEW_BYTES {
        return None;
    }
    let idle = ways.iter().filter(|way| way.bytes() < busiest.bytes() / IDLE);
    let idle: Vec<String> = idle.map(|way| way.name.clone()).collect();
    (!idle.is_empty()).then(|| WarningKind::PathIdle {
        device: device.to_owned(),
        idle,
        busiest: busiest.name.clone(),
        busiest_bytes: whole(busiest.bytes()),
        policy: group.counted.block(device).and_then(|head| head.policy.clone()),
    })
}

/// Limits of this process's control group: I/Os wait for them before the queue of the device, so no
/// counter shows them.
pub(super) fn limits(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let limits = group.limits().cloned();
    limits.map(|limit| (None, WarningKind::CgroupLimitsIo { limit })).collect()
}

/// A queue at the device, in I/Os of the jobs, that is shorter than what was requested.
///
/// Checked where the device alone should hold the load back: one device, O_DIRECT, no rate, nothing
/// between I/Os, and all jobs at work all of the time.
pub(super) fn depth(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let [device] = group.storage() else { return Vec::new() };
    // Where most of the bytes are not counted there (older kernels count NVMe's multipath at its
    // ways only), its queue is not the whole queue either.
    let ours = group.bytes(Flow::Read) + group.bytes(Flow::Write);
    if device.read_bytes + device.write_bytes < ours / 10 * 9 {
        return Vec::new();
    }
    let whole_time = float(group.results.iter().map(|job| job.last_done_ns).min().unwrap_or(0));
    if whole_time / 1e9 < group.counted.seconds * 0.9 || !group.moving().all(plain) {
        return Vec::new();
    }
    let requested: f64 = group.moving().map(wanted).sum();
    let requested = whole(requested.round());
    let queue = group.counted.block(&device.device).and_then(|block| block.queue);
    match queue.map(|queue| queue * ios_per_request(group, device)) {
        Some(observed) if requested > 1 && observed < float(requested) * QUEUE_SHARE => {
            let limit = group.limits().next().map(IoLimit::words);
            let device = device.device.clone();
            vec![(None, WarningKind::DepthNotReached { device, requested, observed, limit })]
        }
        _ => Vec::new(),
    }
}

/// I/Os of the jobs in one request of the device: more than 1 where the block layer merged them,
/// less where it split them. 1 where nothing was counted.
fn ios_per_request(group: &GroupContext<'_>, device: &StorageReading) -> f64 {
    let add = |all: (u64, u64), one: (u64, u64)| (all.0 + one.0, all.1 + one.1);
    let of_jobs = |flow: Flow| group.moving().map(|(_, result)| flow.of(result)).fold((0, 0), add);
    let (bytes, ios) = FLOWS.into_iter().map(of_jobs).fold((0, 0), add);
    let (moved, requests) = FLOWS.into_iter().map(|flow| flow.at(device)).fold((0, 0), add);
    if bytes == 0 || ios == 0 || moved == 0 || requests == 0 {
        return 1.0;
    }
    (float(moved) / float(requests)) / (float(bytes) / float(ios))
}

fn plain((job, result): (&JobPlan, &JobResult)) -> bool {
    let at_once = job.latest_first_io_ns() == 0 && job.inject.is_none();
    at_once && job.is_unhindered() && !result.passes_page_cache(job) && !by_library_core(job)
}

/// I/Os that a job can have at storage at once, on average: readers of a feed that are as far ahead
/// as they may be want none.
fn wanted((job, result): (&JobPlan, &JobResult)) -> f64 {
    let readers_ns = float(result.last_done_ns) * f64::from(job.threads);
    let rested_ns = result.feed.as_ref().map_or(0, |feed| feed.rested_ns);
    let rested = (float(rested_ns) / readers_ns.max(1.0)).min(1.0);
    float(at_once(job)) * (1.0 - rested)
}

/// I/Os that a job can have at storage at once.
fn at_once(job: &JobPlan) -> u64 {
    let path = gpuio_io::path::find(&job.path.choice.actual);
    let engine = gpuio_io::engine::find(&job.engine.actual);
    let many = match path {
        Some(path) if !path.info.uses_engine() => path.info.overlaps(),
        _ => engine.is_some_and(|row| row.info.asynchronous),
    };
    u64::from(job.threads) * if many { u64::from(job.depth) } else { 1 }
}
