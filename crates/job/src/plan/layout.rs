//! How the data of all threads, and of all ranks, lie in files.

use std::borrow::Cow;

use gpuio_base::units::many;
use gpuio_record::{JobPlan, LayoutKind, LayoutPlan, Order, TargetPlan};

use super::{PlanError, regions};
use crate::spec::{JobSpec, ReadShift};

/// The layout that was requested; `None` where each thread has its own file or region, and each
/// rank reads its own.
pub(super) fn resolve(
    requested: &JobSpec,
    read_percent: u8,
) -> Result<Option<LayoutPlan>, PlanError> {
    let wrong = |field: &str, what: &str| Err(PlanError::usage(requested, field, what));
    let kind = requested.layout.unwrap_or(LayoutKind::FilePerThread);
    let named = requested.filenames.is_some();
    if named && requested.layout == Some(LayoutKind::FilePerThread) {
        return wrong(
            "layout",
            "the files are named, so no thread has one of its own; use layout=segmented or \
             strided, or a directory",
        );
    }
    let (rank, ranks) = requested.rank.as_ref().map_or((0, 1), |place| (place.rank, place.ranks));
    let reads_rank = if read_percent == 100 { shifted(requested)? } else { None };
    if kind == LayoutKind::FilePerThread && reads_rank.is_none() {
        return Ok(None);
    }
    if named && kind == LayoutKind::FilePerThread {
        return wrong(
            "read_shift",
            "no rank has a part of its own of files that are named; add layout=segmented or \
             strided, or use a directory",
        );
    }
    if ranks > 1 && requested.directory.is_none() && !named {
        let field = if kind.is_shared() { "layout" } else { "read_shift" };
        return wrong(
            field,
            "ranks have scratch of their own; name a location that all of them see, with \
             --directory or --filename",
        );
    }
    let read_shift =
        requested.read_shift.filter(|_| reads_rank.is_some()).map(|shift| match shift {
            ReadShift::Ranks(by) => by.to_string(),
            ReadShift::Node => "node".to_owned(),
        });
    Ok(Some(LayoutPlan { kind, ranks, rank, read_shift, reads_rank }))
}

/// The rank whose data this one reads, if that is another. One process alone has no other rank: the
/// key is then without effect.
fn shifted(requested: &JobSpec) -> Result<Option<u32>, PlanError> {
    let (Some(shift), Some(place)) = (requested.read_shift, &requested.rank) else {
        return Ok(None);
    };
    let wrong = |what: String| Err(PlanError::usage(requested, "read_shift", what));
    match shift {
        _ if place.ranks < 2 => Ok(None),
        ReadShift::Ranks(by) if by % place.ranks == 0 => wrong(format!(
            "{by} ranks further on is the same rank, since there are {}; it would read its own \
             data",
            place.ranks
        )),
        ReadShift::Ranks(by) => Ok(Some((place.rank + by % place.ranks) % place.ranks)),
        ReadShift::Node => match &place.on_next_host {
            Ok(rank) => Ok(Some(*rank)),
            Err(why) => wrong(format!("{why}; use read_shift=rank, or leave it out")),
        },
    }
}

/// The needs of strided blocks: all of one length, whole ones only, each where its turn puts it.
pub(super) fn strided(requested: &JobSpec, plan: &JobPlan) -> Result<(), PlanError> {
    let Some(block) = block_of(plan) else { return Ok(()) };
    let wrong = |field: &str, what: String| Err(PlanError::usage(requested, field, what));
    if plan.sizes().any(|one| (one.min_bytes, one.max_bytes) != (block, block)) {
        let what = "layout=strided needs blocks of one size; give one bs, or use layout=segmented";
        return wrong("blocks", what.to_owned());
    }
    if !plan.size_bytes.is_multiple_of(block) {
        let count = plan.size_bytes / block;
        let what = format!(
            "layout=strided needs whole blocks, and {} bytes are not a multiple of {block}; use \
             --size={} ({}) or {}",
            plan.size_bytes,
            count * block,
            many(count, "block"),
            (count + 1) * block
        );
        return wrong("size", what);
    }
    let random = matches!(plan.order, Order::Random { .. });
    if plan.skew_bytes > 0 || random && !plan.align_bytes.is_multiple_of(block) {
        let field = if plan.skew_bytes > 0 { "unaligned" } else { "align" };
        let what = "layout=strided puts each block where its turn is; leave it out, or use \
                    layout=segmented";
        return wrong(field, what.to_owned());
    }
    Ok(())
}

/// The length of a strided job's blocks.
fn block_of(plan: &JobPlan) -> Option<u64> {
    let strided = plan.layout.as_ref().is_some_and(|layout| layout.kind == LayoutKind::Strided);
    strided.then(|| plan.sizes().map(|block| block.max_bytes).max().unwrap_or(0))
}

/// The same job on the files that this rank makes, where it reads those of another.
pub fn on_own_files(job: &JobPlan) -> Cow<'_, JobPlan> {
    let (Some(layout), Some(directory)) = (&job.layout, &job.directory) else {
        return Cow::Borrowed(job);
    };
    if layout.reads_rank.is_none() || layout.kind.is_shared() {
        return Cow::Borrowed(job);
    }
    let mut own = job.clone();
    let first = layout.rank.saturating_mul(job.threads);
    let numbers = first..first.saturating_add(job.threads);
    let paths = regions::files_of(directory, &job.file_prefix, numbers);
    let both = job.targets.iter().zip(paths);
    own.targets = both
        .map(|(target, path)| TargetPlan {
            file_number: regions::file_number(&path),
            path,
            ..target.clone()
        })
        .collect();
    Cow::Owned(own)
}
