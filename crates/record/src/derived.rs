//! Parts of a result that follow from the plan and other parts: made by them at the end of a run,
//! and held against them when a record is checked.

use gpuio_base::catalog::MemoryKind;

use crate::ceiling::{Ceiling, CeilingKind, OfCeiling, Towards};
use crate::plan::{JobPlan, VerifyMode};
use crate::verification::{VerifyOutcome, VerifySubject};
use crate::{DirectMode, JobResult, Source};

impl OfCeiling {
    /// A result of a job beside the lowest ceiling that bounds it, by bytes per second: blocks of
    /// the ceilings differ in size, so that their I/Os can't be compared. The first of equal ones.
    ///
    /// That of a drive bounds nothing of what the page cache served in spite of `O_DIRECT`.
    pub fn lowest(ceilings: &[Ceiling], job: &JobResult, direction: Towards) -> Option<OfCeiling> {
        let side = match direction {
            Towards::Read => &job.read,
            Towards::Write => &job.write,
        };
        let source = job.proof.as_ref().map(|proof| proof.verdict.source);
        let is_cached =
            job.direct_actual == DirectMode::Direct && source == Some(Source::PageCache);
        let bounds = |ceiling: &&Ceiling| {
            let plan = &ceiling.plan;
            let of_drive = matches!(plan.kind, CeilingKind::Storage | CeilingKind::PcieNvme);
            plan.jobs.contains(&job.name)
                && plan.direction.is_none_or(|bound| bound == direction)
                && !(is_cached && of_drive)
        };
        let known = ceilings.iter().filter(bounds).filter_map(|ceiling| {
            let rate = ceiling.bytes_per_s.filter(|rate| rate.is_finite() && *rate > 0.0)?;
            Some((ceiling, rate))
        });
        let (ceiling, rate) =
            known.min_by(|(_, a), (_, b)| a.total_cmp(b)).filter(|_| side.ios > 0)?;
        Some(OfCeiling {
            ceiling: ceiling.plan.name.clone(),
            kind: ceiling.plan.kind,
            percent: side.bytes_per_s / rate * 100.0,
        })
    }
}

impl VerifySubject {
    /// That of a job.
    pub fn of(job: &JobPlan) -> VerifySubject {
        let writes = job.read_percent < 100;
        match job.verify {
            VerifyMode::Rewrite => VerifySubject::Rewritten,
            _ if let Some(replay) = &job.replay => match replay.written_bytes {
                0 => VerifySubject::Reads,
                _ => VerifySubject::ReadsAndWrites,
            },
            VerifyMode::Pass if writes => VerifySubject::TimedWrites,
            VerifyMode::Inline if writes => VerifySubject::TimedReads,
            _ => VerifySubject::Reads,
        }
    }
}

impl VerifyOutcome {
    /// Where blocks of a job are checked, in words.
    pub fn place(job: &JobPlan) -> &'static str {
        // The plan has GPU memory on paths with a GPU only.
        use MemoryKind::{Device, Managed, Vmm};
        let on_gpu = matches!(job.memory, Device | Vmm | Managed);
        let software = job.gpus.iter().any(|gpu| gpu.software);
        match (on_gpu, software, job.against_file) {
            (true, false, false) => "GPU memory, by a kernel",
            (true, true, false) => "software GPU memory, by the kernel's software twin",
            (false, _, false) => "host memory, by the CPU",
            (true, false, true) => "GPU memory, by copying back and comparing with the file",
            (true, true, true) => {
                "software GPU memory, by copying back and comparing with the file"
            }
            (false, _, true) => "host memory, by comparing with the file",
        }
    }
}
