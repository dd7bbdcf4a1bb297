//! Whether what timed writes leave can be read back and verified.
//!
//! `gpuio_base::pattern` has the rule for what a file must hold.

use std::collections::BTreeMap;

use gpuio_base::units::format_bytes;
use gpuio_record::{GuardNote, JobPlan, Order, VerifyMode};

use super::PlanError;

/// Memory for the maps of what was written, of one job at most.
const MAPS_MOST: u64 = 1 << 30;

/// Bytes of which each write of the job covers whole multiples, but for one that ends a file: a
/// power of two.
pub fn alignment(job: &JobPlan) -> u64 {
    let sizes = job.sizes().flat_map(|b| [b.min_bytes, b.max_bytes, b.step_bytes]);
    let by_chance = matches!(job.order, Order::Random { .. });
    let align = if by_chance { job.align_bytes } else { 0 };
    let places = job.workers.iter().flat_map(|worker| &worker.regions).flat_map(|region| {
        let end = region.end();
        let length = job.targets.get(region.target as usize).map_or(0, |one| one.length_bytes);
        let stride = region.stripe.map_or(0, |stripe| stripe.stride_bytes);
        [region.offset, stride, if end == length { 0 } else { end }]
    });
    let all = sizes.chain([align, job.skew_bytes]).chain(places).filter(|number| *number > 0);
    1 << all.map(u64::trailing_zeros).min().unwrap_or(0).min(20)
}

/// Why one job can't be verified.
pub(super) fn of_job(job: &JobPlan) -> Option<String> {
    let writes = job.read_percent < 100;
    if job.verify == VerifyMode::Inline && job.read_percent == 0 {
        return Some(
            "verify=inline checks each block that a read brings, and this job only writes: use \
             --verify, which reads back what the timed writes left"
                .into(),
        );
    }
    if job.verify != VerifyMode::Off && writes && job.engine.actual == "null" {
        return Some("engine null writes nothing, so there is nothing to verify".into());
    }
    let lengths = job.targets.iter().map(|target| target.length_bytes);
    let bytes = lengths.fold(0, u64::saturating_add);
    let maps = bytes / alignment(job) / 8;
    if job.reads_writes_back() && maps > MAPS_MOST {
        return Some(format!(
            "--verify keeps a map of what was written, which for writes on a grid of {} bytes \
             takes {maps} bytes of memory here: use blocks that are multiples of 512 bytes, or \
             --verify=rewrite",
            alignment(job)
        ));
    }
    None
}

/// Refuses jobs that can't be verified for what others do, or don't.
///
/// # Errors
/// Two jobs of one group use a file so that what it must hold is not known, or no job writes the
/// headers that one checks.
pub fn of_groups(jobs: &[JobPlan]) -> Result<(), PlanError> {
    if let Some((job, path)) = jobs.iter().find_map(|job| Some((job, without_headers(job, jobs)?)))
    {
        let what = format!(
            "{path} is not there, and new files have no headers, in fio neither: each block would \
             be bad. Write them first, by a job with rw=write, the same verify, and do_verify=0"
        );
        return Err(PlanError::Usage { at: Some(format!("job '{}'", job.name)), what });
    }
    if let Some((job, writer, path)) = jobs.iter().find_map(|job| other_length(job, jobs)) {
        let size = |job: &JobPlan| job.sizes().next().map_or(0, |size| size.max_bytes);
        let [read, written] = [job, writer].map(|job| format_bytes(size(job)));
        let what = format!(
            "job '{}' writes {path} with bs={written} and a header in each block, and this job \
             checks headers of bs={read}, which are not there; use bs={written} here",
            writer.name
        );
        return Err(PlanError::Usage { at: Some(format!("job '{}'", job.name)), what });
    }
    let mut files: BTreeMap<(u32, &str), Vec<&JobPlan>> = BTreeMap::new();
    let is_alone = |job: &JobPlan| jobs.iter().filter(|one| one.group == job.group).count() == 1;
    for job in jobs.iter().filter(|job| !is_alone(job)) {
        for target in &job.targets {
            files.entry((job.group, target.path.as_str())).or_default().push(job);
        }
    }
    for ((_, path), users) in files {
        for one in &users {
            let clash = users.iter().find(|other| one.name != other.name && clashes(one, other));
            if let Some(other) = clash {
                let what = format!(
                    "what {path} must hold is not known: job '{}' writes to it meanwhile, and not \
                     what '{}' verifies; verify both the same way, put a stonewall between them, \
                     or give them files of their own",
                    other.name, one.name
                );
                return Err(PlanError::Usage { at: Some(format!("job '{}'", one.name)), what });
            }
        }
    }
    Ok(())
}

/// A file that would be made for a job which checks fio's headers in it, and no job before writes.
fn without_headers<'a>(job: &'a JobPlan, jobs: &[JobPlan]) -> Option<&'a str> {
    let checks = job.fio_headers && job.verify != VerifyMode::Off && job.read_percent == 100;
    let writes =
        |one: &&JobPlan| one.fio_headers && one.group < job.group && one.read_percent < 100;
    let written = |path: &str| {
        jobs.iter().filter(writes).flat_map(|one| &one.targets).any(|target| target.path == path)
    };
    let made = job.targets.iter().filter(|target| checks && target.guard == GuardNote::Make);
    made.map(|target| target.path.as_str()).find(|path| !written(path))
}

/// A job that checks fio's headers, the last one before that writes some of the same bytes with
/// headers, if it does so in blocks of another length, and their file.
fn other_length<'a>(
    job: &'a JobPlan,
    jobs: &'a [JobPlan],
) -> Option<(&'a JobPlan, &'a JobPlan, &'a str)> {
    let checks = job.fio_headers && job.verify != VerifyMode::Off && job.read_percent == 100;
    let spans = |job: &'a JobPlan| {
        let regions = job.workers.iter().flat_map(|worker| &worker.regions);
        regions.filter_map(|region| {
            let target = job.targets.get(region.target as usize)?;
            Some((target.path.as_str(), region.offset..region.end()))
        })
    };
    let before = jobs.iter().filter(|one| one.group < job.group && one.read_percent < 100);
    spans(job).filter(|_| checks).find_map(|(path, read)| {
        let meets = |one: &&'a JobPlan| {
            spans(one).any(|(other, written)| {
                other == path && written.start < read.end && read.start < written.end
            })
        };
        let last = before.clone().filter(meets).max_by_key(|one| one.group)?;
        (last.fio_headers && last.blocks != job.blocks).then_some((job, last, path))
    })
}

/// Whether `one` verifies a file, and what `other` writes there at the same time is not what it
/// expects.
fn clashes(one: &JobPlan, other: &JobPlan) -> bool {
    let writes = |job: &JobPlan| job.read_percent < 100;
    if one.verify == VerifyMode::Off || !writes(other) {
        return false;
    }
    match (one.verify, other.verify) {
        // It is the writes of both that are read back; a read would meet either contents.
        (VerifyMode::Pass, VerifyMode::Pass) => !writes(one),
        // Those writes carry the pattern of their offset, over a file that holds it all along.
        (VerifyMode::Pass, VerifyMode::Inline) => writes(one),
        // A rewrite comes after all timed writes.
        (VerifyMode::Inline, VerifyMode::Inline) | (VerifyMode::Rewrite, _) => false,
        _ => true,
    }
}
