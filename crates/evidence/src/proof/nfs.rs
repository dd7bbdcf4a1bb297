//! Bytes that NFS servers delivered and took: `/proc/self/mountstats`.

use std::path::PathBuf;

use gpuio_host::Root;
use gpuio_host::nfs::{self, NfsSample};

use super::mounts::{self, Kept};
use super::verdict::{Flow, Observed};
use super::{EvidenceSource, EvidenceSourceEntry, Observation, Subject, size};

pub(super) const ENTRY: EvidenceSourceEntry = EvidenceSourceEntry {
    name: "nfs",
    source: "/proc/self/mountstats, bytes from and to the server, all processes together",
    first: |context| {
        let (root, jobs) = (context.root, context.jobs);
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

impl EvidenceSource for Nfs {
    fn again(&mut self, root: &Root) {
        self.after = read(root, &self.points);
    }

    fn observe(&self, subject: &Subject<'_>) -> Observation {
        let Some(points) = &self.points[subject.at] else {
            return Observation::none("the files are not on NFS");
        };
        let Some(moved) = self.moved(points, subject.flow) else {
            return Observation::none("the mount's counts are hidden, gone or reset");
        };
        let covers = |at: usize| {
            let other = self.points[at].as_ref();
            other.is_some_and(|other| other.iter().any(|point| points.contains(point)))
        };
        let (of, share) = subject.share(moved, covers);
        let why = format!(
            "the server moved {}, gpuio {}; what the server's own cache did is not seen",
            size(moved),
            size(of)
        );
        Observation {
            before: Some(Self::reading(&self.before, points, subject.flow)),
            after: Some(Self::reading(&self.after, points, subject.flow)),
            moved: Some(moved),
            of: Some(of),
            observed: share.map_or(Observed::Nothing, Observed::Storage),
            why,
        }
    }
}
