//! The work of a job: blocks of regions, the samples of a training feed, whole files, or the calls
//! of a program. Most of a plan follows from that.

use std::borrow::Cow;

use gpuio_base::catalog::PathInfo;
use gpuio_record::{
    BlockShare, DirectMode, FanOut, FeedPlan, Gpu, Order, RangesPlan, ReplayPlan, Stop,
};

use super::ranges::Ranged;
use super::regions::{Ground, Laid};
use super::{Facts, PlanError, defaults, fan_out, feed, habits, ranges, regions, replay};
use crate::spec::{JobSpec, LoadKind, ReplayRequest, not_of};

/// A kind of load with what it needs.
pub(super) enum Work<'a> {
    Blocks,
    Feed(Box<FeedPlan>),
    Ranges(Ranged),
    Replay(&'a ReplayRequest),
}

/// Direct or buffered with the reason, and what offsets are multiples of.
pub(super) type Opened = (DirectMode, Option<String>, u64);

impl<'a> Work<'a> {
    /// The work of a job. GPUs that it has no use for are left out.
    pub(super) fn of(
        job: &'a JobSpec,
        path: &PathInfo,
        gpus: &mut Vec<Gpu>,
    ) -> Result<Self, PlanError> {
        Ok(match (&job.replay, job.ranges) {
            (Some(replay), _) => Self::Replay(replay),
            _ if job.is_feed() => Self::Feed(Box::new(feed::resolve(job, path, gpus)?)),
            (None, Some(kind)) => Self::Ranges(ranges::of(job, kind)?),
            (None, None) => Self::Blocks,
        })
    }

    /// The job with the threads and blocks that follow from it.
    pub(super) fn shaped<'b>(
        &self,
        job: &'b JobSpec,
        path: &PathInfo,
    ) -> Result<Cow<'b, JobSpec>, PlanError> {
        Ok(match self {
            Self::Blocks | Self::Ranges(_) => Cow::Borrowed(job),
            Self::Feed(feed) => {
                Cow::Owned(JobSpec { threads: Some(feed::threads(feed)), ..job.clone() })
            }
            Self::Replay(replay) => Cow::Owned(replay::on_path(job, &replay.script, path)?),
        })
    }

    /// Order of the blocks, as far as there is a word for it; their sizes; and the largest of them.
    pub(super) fn blocks(&self, job: &JobSpec, order: Order) -> (Order, Vec<BlockShare>, u64) {
        let (blocks, order) = match self {
            Self::Feed(feed) => (feed::blocks(job, feed), feed::order(feed)),
            _ => (defaults::blocks(job, &order), order),
        };
        let largest = blocks.iter().map(|block| block.max_bytes).max().unwrap_or(0);
        (order, blocks, largest)
    }

    /// Threads by default.
    pub(super) fn threads(
        &self,
        job: &JobSpec,
        (gpus, fan_out): (&[Gpu], Option<FanOut>),
        block_max: u64,
        facts: &Facts<'_>,
    ) -> u32 {
        match self {
            Self::Ranges(ranged) => ranges::threads(job, ranged.plan.kind, gpus, block_max, facts),
            _ => fan_out::threads(fan_out, gpus),
        }
    }

    /// Files of all threads, where a directory has them.
    pub(super) fn files(&self, threads: u32) -> u32 {
        match self {
            Self::Blocks | Self::Ranges(_) => threads,
            Self::Feed(feed) => feed::files(feed),
            Self::Replay(replay) => replay::files(&replay.script),
        }
    }

    /// How files are opened, by what was chosen and by where the bytes lie in them.
    pub(super) fn opened(
        &mut self,
        job: &JobSpec,
        (threads, ground, block_max): (u32, &Ground, u64),
        chosen: Opened,
        facts: &Facts<'_>,
    ) -> Result<Opened, PlanError> {
        let (alignment, what) = match self {
            Self::Blocks => return Ok(chosen),
            Self::Feed(feed) => (feed::alignment(feed), "ranges of its columns lie".to_owned()),
            Self::Ranges(ranged) => {
                ranged.find(job, threads, ground, block_max, facts)?;
                (ranged.alignment, format!("its {} begin or end", ranged.plan.kind.word()))
            }
            Self::Replay(replay) => {
                (replay.script.alignment, "a recorded call begins or ends".to_owned())
            }
        };
        defaults::direct_if_aligned(job, chosen, (alignment, &what))
    }

    /// Which bytes each thread works on.
    pub(super) fn lay(
        &mut self,
        job: &JobSpec,
        (threads, ground, block_max): (u32, &mut Ground, u64),
        alignment: u64,
        facts: &Facts<'_>,
    ) -> Result<Laid, PlanError> {
        match self {
            Self::Blocks => regions::lay(job, threads, ground, block_max, alignment, facts),
            Self::Feed(feed) => Ok(feed::lay(feed, ground)),
            Self::Ranges(ranged) => Ok(ranged.lay(ground)),
            Self::Replay(replay) => Ok(replay::lay(&replay.script, threads, ground)),
        }
    }

    /// A remark on what was chosen.
    pub(super) fn note(&self) -> Option<String> {
        match self {
            Self::Ranges(ranged) => ranged.note.clone(),
            _ => None,
        }
    }

    /// When it ends.
    pub(super) fn stop(&self, job: &JobSpec, pass_bytes: u64) -> Result<Stop, PlanError> {
        match self {
            Self::Blocks => habits::counted(job, defaults::stop(job, pass_bytes)),
            // Its samples or ranges end it, or its calls do.
            Self::Feed(_) | Self::Ranges(_) => {
                Ok(Stop { runtime_ns: job.runtime_ns, ..Stop::default() })
            }
            Self::Replay(_) => Ok(Stop::default()),
        }
    }

    pub(super) fn plans(self) -> (Option<FeedPlan>, Option<RangesPlan>, Option<ReplayPlan>) {
        match self {
            Self::Blocks => (None, None, None),
            Self::Feed(feed) => (Some(*feed), None, None),
            Self::Ranges(ranged) => (None, Some(ranged.plan), None),
            Self::Replay(replay) => (None, None, Some(replay::plan(replay))),
        }
    }
}

/// Why a path of `all` can't run such a job.
pub(super) fn lacks(job: &JobSpec, path: &PathInfo) -> Option<String> {
    if job.is_feed() {
        return feed::lacks(job, path);
    }
    (job.replay.is_some() && path.fans_out)
        .then(|| "each thread of a replay ends in the memory of one GPU".to_owned())
}

/// Refuses keys that mean nothing in such a load, except `may_have`.
pub(super) fn refuse_others(
    job: &JobSpec,
    kind: LoadKind,
    may_have: Option<&str>,
    why: &str,
) -> Result<(), PlanError> {
    let other = |field: &&&str| not_of(field, kind) && may_have != Some(**field);
    let Some(field) = job.requested.keys().find(other) else { return Ok(()) };
    Err(PlanError::usage(job, field, format!("it has no effect here: {why}; leave it out")))
}

/// Refuses several sizes of blocks: `what` is cut into them.
pub(super) fn refuse_sizes(job: &JobSpec, what: &str) -> Result<(), PlanError> {
    match job.blocks.as_deref() {
        None => Ok(()),
        Some([one]) if one.min_bytes == one.max_bytes => Ok(()),
        Some(_) => {
            let what = format!("{what} are cut into blocks of one size; give one bs");
            Err(PlanError::usage(job, "blocks", what))
        }
    }
}
