//! Bytes that NFS servers delivered and took: `/proc/self/mountstats`.

use std::path::PathBuf;

use gpuio_host::Root;
use gpuio_host::nfs::{self, NfsSample};

use super::mounts::{self, Kept};
use super::verdict::{Flow, Saw};
use super::{Case, Row, Testimony, Witness, size};

pub(super) const ROW: Row = Row {
    name: "nfs",
    source: "/proc/self/mountstats, bytes from and to the server, all processes together",
    first: |scene| {
        let (root, jobs) = (scene.root, scene.jobs);
        let points: Vec<Option<Vec<PathBuf>>> = jobs
            .iter()
            .map(|job| match mounts::kept(root, job) {
                Kept::Nfs(points) => Some(points),
                _ => None,
            })
            .collect();
        let before = read(root, &points);
        Box::new(Nfs { points, before, after: Vec::new() })
    },
};

struct Nfs {
    /// Per job, the NFS mounts of its files; `None` when they are not all on NFS.
    points: Vec<Option<Vec<PathBuf>>>,
    before: Vec<NfsSample>,
    after: Vec<NfsSample>,
}

fn read(root: &Root, points: &[Option<Vec<PathBuf>>]) -> Vec<NfsSample> {
    let mut all: Vec<&PathBuf> = points.iter().flatten().flatten().collect();
    all.sort();
    all.dedup();
    all.into_iter().filter_map(|point| nfs::sample(root, point).ok().flatten()).collect()
}

impl Nfs {
    fn moved(&self, points: &[PathBuf], flow: Flow) -> Option<u64> {
        let of = |point: &PathBuf| {
            let find = |samples: &[NfsSample]| {
                samples.iter().find(|sample| sample.mount_point == *point).cloned()
            };
            let (read, written) = find(&self.before)?.delta(&find(&self.after)?)?;
            Some(if flow == Flow::Read { read } else { written })
        };
        points.iter().map(of).sum()
    }

    fn reading(samples: &[NfsSample], points: &[PathBuf], flow: Flow) -> String {
        let of = |sample: &&NfsSample| points.contains(&sample.mount_point);
        let count = |sample: &NfsSample| match flow {
            Flow::Read => sample.server_read_bytes,
            Flow::Write => sample.server_write_bytes,
        };
        let bytes: u64 = samples.iter().filter(of).map(count).sum();
        format!("server {} {bytes}", flow.name())
    }
}

impl Witness for Nfs {
    fn again(&mut self, root: &Root) {
        self.after = read(root, &self.points);
    }

    fn testify(&self, case: &Case<'_>) -> Testimony {
        let Some(points) = &self.points[case.at] else {
            return Testimony::none("the files are not on NFS");
        };
        let Some(moved) = self.moved(points, case.flow) else {
            return Testimony::none("the mount's counts are hidden, gone or reset");
        };
        let covers = |at: usize| {
            let other = self.points[at].as_ref();
            other.is_some_and(|other| other.iter().any(|point| points.contains(point)))
        };
        let (of, share) = case.share(moved, covers);
        let why = format!(
            "the server moved {}, gpuio {}; what the server's own cache did is not seen",
            size(moved),
            size(of)
        );
        Testimony {
            before: Some(Self::reading(&self.before, points, case.flow)),
            after: Some(Self::reading(&self.after, points, case.flow)),
            moved: Some(moved),
            of: Some(of),
            saw: share.map_or(Saw::Nothing, Saw::Storage),
            why,
        }
    }
}
