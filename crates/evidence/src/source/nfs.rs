//! Bytes that NFS servers delivered and took: `/proc/self/mountstats`.

use gpuio_host::nfs_ops::MountSample;

use super::{JobFlow, Observation, Source, size};
use crate::group::Flow;
use crate::layout::Kept;
use crate::snapshot::Snapshot;
use crate::verdict::Observed;

pub(super) const SOURCE: Source = Source {
    name: "nfs",
    source: "/proc/self/mountstats, bytes from and to the server, all processes together",
    observe,
};

fn count(mount: &MountSample, flow: Flow) -> u64 {
    if flow == Flow::Read { mount.read_bytes } else { mount.written_bytes }
}

/// Bytes from or to the servers of these mounts; `None` when one is gone, or was mounted anew.
fn moved(before: &Snapshot, after: &Snapshot, points: &[String], flow: Flow) -> Option<u64> {
    let of = |point: &String| {
        // A later mount covers an earlier one at the same mount point.
        let find = |one: &Snapshot| {
            let mounts = one.devices.mounts.iter();
            mounts.rev().find(|mount| mount.mount_point == *point).map(|mount| count(mount, flow))
        };
        find(after)?.checked_sub(find(before)?)
    };
    points.iter().map(of).sum()
}

fn reading(snapshot: &Snapshot, points: &[String], flow: Flow) -> String {
    let of = |mount: &&MountSample| points.contains(&mount.mount_point);
    let mounts = snapshot.devices.mounts.iter().filter(of);
    let bytes: u64 = mounts.map(|mount| count(mount, flow)).sum();
    format!("server {} {bytes}", flow.name())
}

fn observe(one: &JobFlow<'_>) -> Observation {
    let Kept::Nfs(points) = &one.layout().kept else {
        return Observation::none("the files are not on NFS");
    };
    let (before, after) = (&one.readings.before, &one.readings.after);
    let Some(moved) = moved(before, after, points, one.flow) else {
        return Observation::none("the mount's counts are hidden, gone or reset");
    };
    let covers = |at: usize| {
        let other = &one.readings.layout.jobs[at].kept;
        matches!(other, Kept::Nfs(other) if other.iter().any(|point| points.contains(point)))
    };
    let (of, share) = one.share(moved, covers);
    let why = format!(
        "the server moved {}, gpuio {}; what the server's own cache did is not seen",
        size(moved),
        size(of)
    );
    Observation {
        before: Some(reading(before, points, one.flow)),
        after: Some(reading(after, points, one.flow)),
        moved: Some(moved),
        of: Some(of),
        observed: share.map_or(Observed::Nothing, Observed::Storage),
        why,
    }
}
