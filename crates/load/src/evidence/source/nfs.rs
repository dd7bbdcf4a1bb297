//! Bytes that NFS servers delivered and took: `/proc/self/mountstats`.

use gpuio_host::nfs_ops::MountSample;
use gpuio_watch::Counters;

use super::{JobFlow, Observation, Source, size};
use crate::evidence::group::Flow;
use crate::evidence::layout::Kept;
use crate::evidence::verdict::Observed;

pub(super) const SOURCE: Source = Source {
    name: "nfs",
    source: "/proc/self/mountstats, bytes from and to the server, all processes together",
    observe,
};

fn count(mount: &MountSample, flow: Flow) -> u64 {
    if flow == Flow::Read { mount.read_bytes } else { mount.written_bytes }
}

/// Bytes from or to the servers of these mounts; `None` when one is gone, or was mounted anew.
fn moved(before: &Counters, after: &Counters, points: &[String], flow: Flow) -> Option<u64> {
    let of = |point: &String| {
        // A later mount covers an earlier one at the same mount point.
        let find = |one: &Counters| {
            let mounts = one.mounts.iter();
            mounts.rev().find(|mount| mount.mount_point == *point).map(|mount| count(mount, flow))
        };
        find(after)?.checked_sub(find(before)?)
    };
    points.iter().map(of).sum()
}

fn reading(counters: &Counters, points: &[String], flow: Flow) -> String {
    let of = |mount: &&MountSample| points.contains(&mount.mount_point);
    let mounts = counters.mounts.iter().filter(of);
    let bytes: u64 = mounts.map(|mount| count(mount, flow)).sum();
    format!("server {} {bytes}", flow.name())
}

fn observe(one: &JobFlow<'_>) -> Observation {
    let Kept::Nfs(points) = &one.layout().kept else {
        return Observation::none("the files are not on NFS");
    };
    let (before, after) = (&one.readings.before.devices, &one.readings.after.devices);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_mount_that_stayed() {
        let mount = |at: &str, read_bytes| MountSample {
            mount_point: at.to_owned(),
            read_bytes,
            ..MountSample::default()
        };
        let counters = |mounts| Counters { mounts, ..Counters::default() };
        let points = ["/a".to_owned(), "/b".to_owned()];
        let before = counters(vec![mount("/a", 900), mount("/a", 10), mount("/b", 5)]);
        let of = |after: Vec<MountSample>| moved(&before, &counters(after), &points, Flow::Read);
        let covered = vec![mount("/a", 990), mount("/a", 30), mount("/b", 6)];
        assert_eq!(of(covered), Some(21), "the later mount covers the earlier");
        assert_eq!(of(vec![mount("/a", 30)]), None, "one is gone");
        assert_eq!(of(vec![mount("/a", 9), mount("/b", 6)]), None, "mounted anew");
        assert_eq!(reading(&before, &points[1..], Flow::Read), "server read 5");
    }
}
