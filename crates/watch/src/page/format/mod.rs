//! Pages as text, JSON, OpenMetrics, and gds_stats' sections: pure functions.

pub mod gds_stats;
pub mod json;
pub mod openmetrics;
pub mod text;

use gpuio_base::stat::Percentile;

use crate::page::read::Owner;
use crate::page::snapshot::{Counts, Snapshot};

/// Those that are shown: a page's buckets are too coarse for higher ones.
const PERCENTILES: &[Percentile] = Percentile::ALL.split_at(4).0;

/// A page and the system's facts on its process.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The page's content.
    pub snapshot: &'a Snapshot,
    /// Whether the process is there.
    pub owner: &'a Owner,
    /// Name of its owner, or the number where there is no name.
    pub user: &'a str,
    /// Its command line, where it can be read.
    pub command: Option<&'a str>,
    /// When the page was made, as people read it.
    pub since: &'a str,
    /// An earlier look at the same page.
    pub earlier: Option<Earlier<'a>>,
}

/// An earlier look, from which rates are taken.
#[derive(Debug, Clone, Copy)]
pub struct Earlier<'a> {
    /// The page's content then.
    pub snapshot: &'a Snapshot,
    /// Time between the two looks, seconds.
    pub seconds: f64,
}

impl Shown<'_> {
    /// In one word.
    pub(crate) fn state(&self) -> &'static str {
        match self.owner {
            Owner::Runs => "running",
            Owner::Gone => "killed",
            Owner::Elsewhere => "in another container",
        }
    }

    /// Bytes per second between the two looks, both directions; of saves those that were written.
    pub(crate) fn rate_now(&self) -> Option<f64> {
        let earlier = self.earlier.filter(|earlier| earlier.seconds > 0.0)?;
        if let Some(saves) = &self.snapshot.saves {
            let then = earlier.snapshot.saves.as_ref()?.all_written;
            return per_second(saves.all_written.saturating_sub(then), Some(earlier.seconds));
        }
        let (now, then) = (self.snapshot.total(), earlier.snapshot.total());
        let moved = |now: &Counts, then: &Counts| now.bytes.saturating_sub(then.bytes);
        let bytes = moved(&now.read, &then.read).saturating_add(moved(&now.write, &then.write));
        per_second(bytes, Some(earlier.seconds))
    }
}

/// A rate; none without a time.
pub(crate) fn per_second(count: u64, seconds: Option<f64>) -> Option<f64> {
    let count = count as f64;
    seconds.filter(|seconds| *seconds > 0.0).map(|seconds| count / seconds)
}

/// Said with the figures of a process on it.
const SOFTWARE_GPU: &str =
    "the GPU is gpuio's software GPU, which is host memory: no rate here is a GPU's";

/// Names of the size classes, in KiB as gds_stats writes them.
pub(crate) fn class_name(class: usize) -> String {
    match class {
        0 => "0-4(KiB)".to_owned(),
        15 => "65536-...(KiB)".to_owned(),
        _ => format!("{}-{}(KiB)", 2 << class, 4 << class),
    }
}
