//! The habits that fio's job files add to a job's load: pauses, flushes, counts, logs, and the
//! order of jobs.

use std::borrow::Cow;

use gpuio_base::units::many;
use gpuio_record::{BlockShare, BytesOf, FlushPlan, Follow, LogPlan, Order, Stop, ThinkPlan};

use super::PlanError;
use super::defaults::mix_and_order;
use super::regions::Ground;
use crate::spec::{
    FIO_NAMES, FeedRequest, JobSpec, OWN_NAME, OfWrites, Spec, formatted_name, named_format,
    take_writes,
};

pub(super) fn think(job: &JobSpec) -> Option<ThinkPlan> {
    let pause_ns = job.think_ns.filter(|time| *time > 0)?;
    let spin_ns = job.think_spin_ns.unwrap_or(0).min(pause_ns);
    Some(ThinkPlan { pause_ns, spin_ns, every_ios: job.think_ios.unwrap_or(1) })
}

/// A pause waits for all that is in flight, so that a depth above the I/Os between two pauses is
/// not reached.
pub(super) fn paused(job: &JobSpec) -> Option<String> {
    let (think, depth) = (think(job)?, job.depth?);
    (think.every_ios < u64::from(depth)).then(|| {
        format!(
            "depth: thinktime pauses after each {}, once all are back, so a thread has at most {} \
             in flight and not {depth}; thinktime_blocks={depth} lets it have them",
            many(think.every_ios, "I/O"),
            think.every_ios
        )
    })
}

/// The request with the values of its own direction, of lists that have reads and writes apart, and
/// with what fio's values mean.
pub(super) fn of_directions(spec: &Spec) -> Cow<'_, Spec> {
    let plain = |job: &JobSpec| {
        let by_order = job.blocks_by_order == Some(true) || job.blocks_unaligned == Some(true);
        lists(job).next().is_none() && !job.is_fio() && !by_order && job.filename_format.is_none()
    };
    if spec.jobs.iter().all(plain) {
        return Cow::Borrowed(spec);
    }
    let jobs = spec.jobs.iter().map(of_direction).collect();
    Cow::Owned(Spec { jobs, ..spec.clone() })
}

/// Fields that may have come from such a list.
fn lists(job: &JobSpec) -> impl Iterator<Item = &'static str> {
    job.requested.iter().filter(|(_, set)| set.value.contains(',')).map(|(field, _)| *field)
}

pub(super) fn of_direction(requested: &JobSpec) -> JobSpec {
    let mut job = requested.clone();
    let (reads, order) = mix_and_order(&job);
    let mut writing = requested.clone();
    lists(requested).for_each(|field| take_writes(&mut writing, field));
    let of_writes = OfWrites {
        blocks: writing.blocks,
        rate_bytes: writing.rate_bytes,
        rate_iops: writing.rate_iops,
    };
    let by_order = job.blocks_by_order == Some(true);
    if by_order && order != Order::Sequential {
        job.blocks.clone_from(&of_writes.blocks);
    }
    let of_reads = OfWrites {
        blocks: job.blocks.clone(),
        rate_bytes: job.rate_bytes,
        rate_iops: job.rate_iops,
    };
    let blocks = if by_order { of_reads.blocks.clone() } else { of_writes.blocks.clone() };
    let of_writes = OfWrites { blocks, ..of_writes };
    match reads {
        100 => {}
        0 => {
            let OfWrites { blocks, rate_bytes, rate_iops } = of_writes;
            (job.blocks, job.rate_bytes, job.rate_iops) = (blocks, rate_bytes, rate_iops);
        }
        _ => job.of_writes = (of_writes != of_reads).then(|| Box::new(of_writes)),
    }
    if job.blocks_unaligned == Some(true) {
        let of_writes = job.of_writes.as_mut().and_then(|writes| writes.blocks.as_mut());
        for share in job.blocks.iter_mut().chain(of_writes).flatten() {
            share.step_bytes = u64::from(share.min_bytes < share.max_bytes);
        }
    }
    if job.is_fio() {
        of_fio(&mut job);
    }
    named_files(&mut job);
    job
}

/// Values that fio takes otherwise: no runtime is 0, `O_DIRECT` means nothing to a mapping, and
/// jobs of one directory have files of their own.
fn of_fio(job: &mut JobSpec) {
    job.runtime_ns = job.runtime_ns.filter(|time| *time > 0);
    let ours = job.file_prefix.is_some() || job.layout.is_some() || job.read_shift.is_some();
    if !ours && job.feed == FeedRequest::default() {
        job.filename_format.get_or_insert_with(|| FIO_NAMES.to_owned());
    }
    if job.engine.as_deref() == Some("mmap") && job.direct == Some(true) {
        job.direct = Some(false);
        job.notes.push(
            "direct has no effect here: engine mmap goes through the page cache, as in fio"
                .to_owned(),
        );
    }
}

/// A format of names in which no thread's number stands says the files that all threads share.
fn named_files(job: &mut JobSpec) {
    if job.filenames.is_some() {
        if !std::mem::take(&mut job.more_directories).is_empty() {
            let first = job.directory.as_deref().unwrap_or_default();
            job.notes.push(format!(
                "files with names are in the first directory, {first}, as in fio; the others have \
                 no effect"
            ));
        }
        return;
    }
    if let Some(format) = &mut job.filename_format {
        // A plan may give the job another name.
        *format = named_format(format, &job.name);
    }
    let Some(format) = job.filename_format.take_if(|format| !format.contains("$jobnum")) else {
        within(job);
        return;
    };
    let files = job.files_per_thread.take().unwrap_or(1);
    let name = |file| formatted_name(&format, 0, file);
    let mut names: Vec<String> = (0..files).map(name).collect();
    names.dedup();
    job.filenames = Some(names);
    job.requested.remove("files_per_thread");
    if let Some(set) = job.requested.remove("filename_format") {
        job.requested.insert("filenames", set);
    }
}

/// Names of files that begin with '/' say the directory, as a section's in fio.
fn within(job: &mut JobSpec) {
    let Some(format) = &job.filename_format else { return };
    let fixed = format.split('$').next().unwrap_or(format);
    if let (true, None, Some(at)) = (fixed.starts_with('/'), &job.directory, fixed.rfind('/')) {
        job.directory = Some(format[..at.max(1)].to_owned());
        job.filename_format = Some(format[at + 1..].to_owned());
    }
}

/// Where an I/O begins that the order alone does not say.
pub(super) fn follow(job: &JobSpec) -> Result<Option<Follow>, PlanError> {
    let random = mix_and_order(job).1 != Order::Sequential;
    let share = job.random_percent.filter(|share| random && *share != (100, 100));
    match (job.rw_modifier, share) {
        (Some(_), Some(_)) => {
            let what = "I/Os in a row and a share of them by chance exclude each other; leave one \
                        out";
            Err(PlanError::usage(job, "random_percent", what))
        }
        (Some(number), None) if random => {
            let (ios, same) = (number.unsigned_abs(), job.run_same == Some(true));
            Ok(Some(Follow::Run { ios, same }))
        }
        (Some(bytes), None) => Ok(Some(Follow::Gap { bytes })),
        (None, share) => Ok(share.map(|(reads, writes)| Follow::Share { reads, writes })),
    }
}

/// fio takes the first of fsync and fdatasync that is due; here one count rules.
pub(super) fn flush(job: &JobSpec) -> Option<FlushPlan> {
    if mix_and_order(job).0 == 100 {
        return None;
    }
    let some = |count: Option<u64>| count.filter(|count| *count > 0);
    let (whole, data) = (some(job.fsync_ios), some(job.fdatasync_ios));
    let (at_end, at_close) = (job.end_fsync == Some(true), job.fsync_on_close == Some(true));
    let plan = FlushPlan {
        every_ios: whole.or(data),
        data_only: whole.is_none() && data.is_some(),
        at_end,
        at_close,
    };
    (plan.every_ios.is_some() || at_end || at_close).then_some(plan)
}

pub(super) fn logs(job: &JobSpec) -> Option<LogPlan> {
    let named = |log: &Option<String>| match log.as_deref() {
        Some(OWN_NAME) => Some(job.name.clone()),
        other => other.map(str::to_owned),
    };
    let (bw, lat, iops) = (named(&job.bw_log), named(&job.lat_log), named(&job.iops_log));
    let any = bw.is_some() || lat.is_some() || iops.is_some();
    let (line_ns, offset) = (job.log_ns.filter(|time| *time > 0), job.log_offset == Some(true));
    let joined = job.per_job_logs == Some(false);
    any.then_some(LogPlan { bw, lat, iops, line_ns, offset, joined })
}

/// fio takes a block of each file in turn, unless it is told otherwise.
pub(super) fn files_in_turn(job: &JobSpec, ground: &Ground) -> bool {
    let several = ground.files_of_a_thread() > 1;
    let in_order = mix_and_order(job).1 == Order::Sequential;
    several && in_order && job.files_in_turn.unwrap_or(job.is_fio())
}

/// A number of I/Os as bytes, beside which other bounds stay.
pub(super) fn counted(job: &JobSpec, stop: Stop) -> Result<Stop, PlanError> {
    let Some(ios) = job.number_ios else { return Ok(stop) };
    let blocks = super::defaults::blocks(job, &mix_and_order(job).1);
    let [block] = blocks.as_slice() else { return Err(sizes(job)) };
    if block.min_bytes != block.max_bytes || !super::defaults::write_blocks(job).is_empty() {
        return Err(sizes(job));
    }
    let bytes = ios.saturating_mul(block.max_bytes);
    // fio's count does not make a job longer than its size. Ours is the bound, where no other was
    // requested.
    let most = if job.is_fio() || job.io_size.is_some() || job.loops.is_some() {
        stop.bytes_per_thread.unwrap_or(u64::MAX)
    } else {
        u64::MAX
    };
    let runtime_ns = stop.runtime_ns.filter(|_| job.runtime_ns.is_some());
    Ok(Stop { runtime_ns, bytes_per_thread: Some(bytes.min(most)), wear_out: false })
}

/// The key that the bytes of the end follow from. A count that is more than fio's size does not end
/// the job.
pub(super) fn bytes_of(job: &JobSpec, stop: Stop, blocks: &[BlockShare]) -> Option<BytesOf> {
    let bytes = stop.bytes_per_thread?;
    let counted = |ios: u64| blocks.iter().any(|one| ios.saturating_mul(one.max_bytes) == bytes);
    Some(if job.full_threads.is_some() && job.scale.is_some_and(|scale| scale < 1.0) {
        BytesOf::Scale
    } else if job.number_ios.is_some_and(counted) {
        BytesOf::NumberIos
    } else if job.io_size.is_some() {
        BytesOf::IoSize
    } else if job.loops.is_some() {
        BytesOf::Loops
    } else {
        BytesOf::Size
    })
}

fn sizes(job: &JobSpec) -> PlanError {
    let what = "I/Os of several sizes are not counted but measured in bytes; use io_size=, or one \
                block size";
    PlanError::usage(job, "number_ios", what)
}

/// Whether a job begins a new group, because it waits for a job of the current one. All of a group
/// end before the next begins.
pub(super) fn waits(jobs: &[JobSpec], at: usize, group_began_at: usize) -> Result<bool, PlanError> {
    let job = &jobs[at];
    let Some(name) = &job.wait_for else { return Ok(false) };
    let named = |job: &JobSpec| job.name == *name;
    let Some(found) = jobs[..at].iter().rposition(named) else {
        let what = format!("there is no job '{name}' above it to wait for; name one of them");
        return Err(PlanError::usage(job, "wait_for", what));
    };
    if found < group_began_at {
        return Ok(false);
    }
    if let Some(other) = jobs[group_began_at..at].iter().find(|job| !named(job)) {
        let what = format!(
            "job '{}' runs at the same time as '{name}', and would be waited for too; use \
             stonewall for all of them, or put '{name}' into a group of its own",
            other.name
        );
        return Err(PlanError::usage(job, "wait_for", what));
    }
    Ok(true)
}
