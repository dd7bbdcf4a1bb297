//! Traffic of others on the devices under the files.

use gpuio_record::facts::BlockKind;
use gpuio_record::{StorageReading, WarningKind};

use super::{FLOWS, Flow, GroupContext, NOISE_BYTES, whole};

/// A device counts for everybody, the process's counter for this process, read-ahead included. A
/// tenth of what this process moved in both directions, or a few MiB, is what metadata, logs and
/// the moments between two readings make, and too little to slow it down. Writes are checked only
/// where all are O_DIRECT without sync: the kernel writes buffered pages when it likes, and a
/// journal writes small synchronous blocks several times.
pub(super) fn find(seen: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let devices = seen.storage();
    if devices.is_empty() || seen.moving().next().is_none() {
        return Vec::new();
    }
    let both: u64 = FLOWS.into_iter().filter_map(|flow| ours(seen, flow)).sum();
    let of = |flow: Flow| {
        let ours_bytes = ours(seen, flow)?;
        let device_bytes = devices.iter().map(|device| moved(seen, device, flow)).sum();
        if device_bytes <= ours_bytes + (both / 10).max(NOISE_BYTES) {
            return None;
        }
        let names: Vec<&str> = devices.iter().map(|device| device.device.as_str()).collect();
        let (device, direction) = (names.join("+"), flow.name().to_owned());
        Some((None, WarningKind::OtherTraffic { device, direction, ours_bytes, device_bytes }))
    };
    FLOWS.into_iter().filter_map(of).collect()
}

/// What this process is behind; `None` where that can't be said.
fn ours(seen: &GroupContext<'_>, flow: Flow) -> Option<u64> {
    let bytes = seen.bytes(flow);
    let caused = seen.caused(flow);
    match flow {
        // Without the counter, read-ahead of ours could not be distinguished from others' reads.
        Flow::Read if caused.is_none() && !seen.all_direct() => None,
        Flow::Write if !seen.all_direct() || seen.moving().any(|(job, _)| job.sync) => None,
        _ => Some(bytes.max(caused.unwrap_or(0))),
    }
}

/// What the device counted; of a partition, what its whole disk did: others next to it share it.
fn moved(seen: &GroupContext<'_>, device: &StorageReading, flow: Flow) -> u64 {
    let (own, _) = flow.at(device);
    let partition = seen.counted.block(&device.device);
    let disk = partition
        .filter(|one| one.kind == Some(BlockKind::Partition))
        .and_then(|one| seen.counted.block(one.made_of.first()?));
    disk.map_or(own, |disk| match flow {
        Flow::Read => own.max(whole(disk.read_bytes)),
        Flow::Write => own.max(whole(disk.written_bytes)),
    })
}
