//! The evidence of ranks for the data paths of their jobs.

use crate::{JobResult, RankProof};

/// Proofs with readings that a merged record keeps at most. A verdict that no other rank has is
/// kept all the same.
pub const MOST_PROOFS: usize = 64;

/// For each verdict on a host, the proof of the first rank that came with it.
#[derive(Debug, Default)]
pub(crate) struct Proofs(Vec<RankProof>);

impl Proofs {
    pub(crate) fn add(&mut self, rank: u32, host: &str, jobs: &[JobResult]) {
        for job in jobs {
            let Some(proof) = &job.proof else { continue };
            let agrees = |known: &RankProof| {
                known.job == job.name
                    && known.proof.verdict == proof.verdict
                    && known.proof.as_requested == proof.as_requested
            };
            let here = |known: &&mut RankProof| known.host == host && agrees(known);
            if let Some(known) = self.0.iter_mut().find(here) {
                known.alike.push(rank);
            } else if self.0.len() < MOST_PROOFS || !self.0.iter().any(agrees) {
                let (job, host) = (job.name.clone(), host.to_owned());
                self.0.push(RankProof { job, host, rank, alike: Vec::new(), proof: proof.clone() });
            }
        }
    }

    /// All of them, by rank.
    pub(crate) fn finish(mut self) -> Vec<RankProof> {
        self.0.iter_mut().for_each(|one| one.alike.sort_unstable());
        self.0.sort_by_key(|one| one.rank);
        self.0
    }
}
