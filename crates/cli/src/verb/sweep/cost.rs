//! The time and the bytes of a sweep's runs, as far as they are known before the first of them.

use std::borrow::Cow;
use std::time::Duration;

use gpuio_io::CATALOG;
use gpuio_job::plan::unused::planned;
use gpuio_job::plan::whole_time_ns;
use gpuio_job::spec::JobSpec;
use gpuio_job::sweep::Axis;
use gpuio_load::live_targets::LiveTargets;
use gpuio_report::format::plan::{
    Files, at_example, clock_ns, example_of, verified, verified_words, written,
};

use super::effects;

/// Time and bytes of some runs, each once, and the files of all.
pub(super) struct Cost {
    /// Time of the clocks; nothing where a run has no limit of time.
    clocks_ns: Option<u64>,
    /// Bytes that are verified after the clocks, at most.
    verified: u64,
    /// Bytes of the files that the first runs write before their clocks.
    made: u64,
    runs: u64,
    /// Runs whose bytes only their machine decides.
    unknown: u64,
}

impl Cost {
    /// The cost of a run at each of these points. `job` also says where the files are.
    pub(super) fn of(job: &JobSpec, axes: &[Axis], points: &[Vec<String>]) -> Cost {
        let mut cost = Cost {
            clocks_ns: Some(0),
            verified: 0,
            made: 0,
            runs: points.len() as u64,
            unknown: 0,
        };
        let (there, mut files) = (LiveTargets::default(), Files::default());
        for job in points.iter().filter_map(|point| effects::at(job, axes, point)) {
            let plan = planned(&job, CATALOG, &there);
            // A load that may become steady ends then.
            let bounded = job.loops.is_none() && job.steady.is_none() && job.feed.files.is_none();
            let clock = match &plan {
                Some(plan) => plan.stop.runtime_ns.map(|_| clock_ns(plan)),
                None => Some(whole_time_ns(&job)),
            };
            let clock = clock.filter(|_| bounded);
            let sum = cost.clocks_ns.zip(clock);
            cost.clocks_ns = sum.map(|(sum, clock)| sum.saturating_add(clock));
            match plan {
                Some(plan) => {
                    cost.verified = cost.verified.saturating_add(verified(&plan));
                    files.add(&plan, |path| Cow::Owned(path.to_owned()));
                }
                None => cost.unknown += 1,
            }
        }
        Cost { made: files.made(), ..cost }
    }

    /// The time of so many times these runs, each with a pause, and of the files.
    pub(super) fn time(&self, times: u64, pause: Duration) -> Option<Duration> {
        let pauses = pause.as_nanos().saturating_mul(self.runs.into());
        let pauses = u64::try_from(pauses).unwrap_or(u64::MAX);
        let runs = self.clocks_ns?.saturating_add(example_of(self.verified)).saturating_add(pauses);
        let all = runs.saturating_mul(times).saturating_add(example_of(self.made));
        Some(Duration::from_nanos(all))
    }

    /// The parts of that time, and what is left out; `pauses` is whether runs have any.
    pub(super) fn words(&self, pauses: bool) -> String {
        let mut parts = Vec::new();
        if self.clocks_ns.is_some() {
            parts.push(if pauses { "clocks and pauses" } else { "the clocks" }.to_owned());
        }
        if self.made > 0 {
            parts.push(format!("before them {}, {}", written(self.made), at_example(self.made)));
        }
        if self.verified > 0 {
            let of = if self.runs == 1 { "a run" } else { "one run of each point" };
            let words = verified_words(self.verified);
            parts.push(format!("after those of {of} {words}, {}", at_example(self.verified)));
        }
        let mut left_out = vec!["the start of each run".to_owned(), "the page cache".to_owned()];
        if self.unknown > 0 {
            left_out.push(format!(
                "files and verification of {}, which depend on the machine",
                gpuio_base::units::many(self.unknown, "point")
            ));
        }
        let included = match parts.is_empty() {
            true => String::new(),
            false => format!(" Included: {}.", parts.join("; ")),
        };
        format!("{included} Not included: {}.", left_out.join(", "))
    }
}
