//! gdsio's result line, for the scripts that parse it.

use gpuio_base::document::grouped;
use gpuio_base::units::printable_short;
use gpuio_record::{EndedHow, JobPlan, JobResult, Record, TimeSpan, Towards};

use crate::Recheck;
use crate::number::{float, many};
use crate::others;
use crate::standing;
use crate::verification;
use crate::workload::{fixed_block, is_random, jobs, scaled_in_words};

const KIB: u64 = 1024;
const GIB: f64 = (1_u64 << 30) as f64;

pub type Job<'a> = (&'a JobPlan, &'a JobResult);

/// A line for each group of jobs that ran together, as gdsio prints one for all jobs of a
/// configuration file, then the lines of [`comments`].
///
/// Ends in a line feed. Without any job the text is empty.
pub fn render(record: &Record) -> String {
    render_with(record, None)
}

/// [`render`], and that the record is doubtful, `# doubt: …`, by what a recheck found.
pub fn render_with(record: &Record, recheck: Option<&Recheck>) -> String {
    let jobs: Vec<Job<'_>> = jobs(record).collect();
    if jobs.is_empty() {
        return String::new();
    }
    let all = lines(ranks(record), &jobs).into_iter().chain(comments(record));
    let doubt = recheck.and_then(Recheck::doubt);
    let all = all.chain(doubt.map(|doubt| format!("# doubt: {}", printable_short(&doubt))));
    all.map(|line| line + "\n").collect()
}

/// The line of each group of these jobs: gdsio has no jobs that run one after another, and one line
/// would be the mean of loads that differ, and count files twice.
pub fn lines(ranks: u32, jobs: &[Job<'_>]) -> Vec<String> {
    let groups = grouped(jobs.iter().map(|(plan, job)| (plan.group, (*plan, *job))));
    groups.into_iter().map(|(_, jobs)| line(ranks, &jobs)).collect()
}

/// How the comment on the software GPU begins.
pub const SOFTWARE: &str = "# software GPU:";

/// Everything that the lines can't say, each behind its word and a colon, so that a script that
/// looks for `IoType:` ignores it: `# software GPU: …`, that the run did not end as requested, that
/// its data was verified, that faults were injected, that it was too short or others are unknown,
/// time for data between I/Os, contents that storage may be faster with, its ranks, parts of larger
/// loads, paths, and others beside it. Without line feeds.
pub fn comments(record: &Record) -> Vec<String> {
    let mut all = Vec::new();
    if record.plan.software_gpu {
        let text = "this run used no hardware GPU; its line is not a GPU result";
        all.push(format!("{SOFTWARE} {text}"));
    }
    let failed: u64 = record.jobs.iter().map(|job| job.failed).sum();
    let failed = if failed > 0 { format!("; {} failed", many(failed, "I/O")) } else { "".into() };
    all.extend(match record.ended {
        EndedHow::Complete if failed.is_empty() => None,
        EndedHow::Complete => Some(format!("# failed: the run went on{failed}")),
        EndedHow::Failed => Some(format!("# failed: stopped by errors{failed}")),
        EndedHow::Interrupted => Some(format!("# interrupted: before its end{failed}")),
        EndedHow::Unfinished => {
            Some("# unfinished: the process ended before the run was complete".to_owned())
        }
    });
    let of_jobs = |word: &str, text: &dyn Fn(&JobPlan, &JobResult) -> Option<String>| {
        let line = |(plan, job): Job<'_>| {
            let text = format!("{}: {}", plan.name, text(plan, job)?);
            Some(format!("# {word}: {}", printable_short(&text)))
        };
        jobs(record).filter_map(line).collect::<Vec<_>>()
    };
    all.extend(of_jobs("wrong data", &|_, job| standing::wrong_data(job)));
    let right = |job: &JobResult| {
        let outcome = job.verify.as_ref().filter(|outcome| verification::is_right(outcome))?;
        Some(verification::right_words(outcome, "all right"))
    };
    all.extend(of_jobs("verified", &|_, job| right(job)));
    all.extend(of_jobs("faults injected", &|plan, _| plan.inject.clone()));
    // A line of gdsio has no percentiles, which may lack I/Os too.
    let too_short = |plan: &JobPlan| {
        Some(format!("{}, too little to judge a rate", standing::too_short(record, plan)?))
    };
    all.extend(of_jobs("too short", &|plan, _| too_short(plan)));
    all.extend(of_jobs("between I/Os", &|plan, _| standing::between_ios(record, plan)));
    all.extend(of_jobs("unknown", &|_, job| job.others_cpu_unknown.clone()));
    all.extend(of_jobs("content", &|plan, job| standing::content(plan, job)));
    all.extend(clients(record));
    all.extend(parts(record));
    all.extend(verdicts(record));
    all.extend(disturbances(record));
    all
}

/// The actual data path of each job, as a comment line `# path: JOB: SENTENCE`, without a line
/// feed: gdsio's own XferType is the requested mode. Records without verdicts give none.
pub fn verdicts(record: &Record) -> Vec<String> {
    let line = |(plan, job): (&JobPlan, &JobResult)| {
        let proof = job.proof.as_ref()?;
        // A name can hold a line feed, and the rest must not look like a result.
        let text = format!("{}: {}", plan.name, proof.sentence);
        Some(format!("# path: {}", printable_short(&text)))
    };
    jobs(record).filter_map(line).collect()
}

/// The shares of others in the work of the drive and of the processors during each job, as a
/// comment line `# disturbed: JOB: …`, without a line feed; none where no warning says so.
pub fn disturbances(record: &Record) -> Vec<String> {
    let line = |(plan, job): (&JobPlan, &JobResult)| {
        let text = format!("{}: {}", plan.name, others::of(record, plan, job)?.words());
        Some(format!("# disturbed: {}", printable_short(&text)))
    };
    jobs(record).filter_map(line).collect()
}

fn parts(record: &Record) -> Vec<String> {
    let words = scaled_in_words(record).into_iter();
    words.map(|text| format!("# part: {}", printable_short(&text))).collect()
}

/// How many ranks on which hosts the line is of, and the rates of their jobs while all of them ran,
/// as a comment line `# ranks: …` without a line feed. Records of one process give none.
pub fn clients(record: &Record) -> Option<String> {
    let all = record.ranks.as_ref()?;
    let hosts = match &all.hosts[..] {
        [one] => format!("host {}", one.name),
        many => format!("{} hosts", many.len()),
    };
    let mut text = format!("{} on {hosts}", all.ranks);
    for job in all.groups.iter().flat_map(|group| &group.jobs) {
        let rate = job.while_all.map_or_else(
            || "no time in which all ran".to_owned(),
            |rate| {
                let bound = 100.0 * float(rate.bytes_bound) / float(rate.bytes.max(1));
                let (rate, bound) = (rate.bytes_per_s / GIB, bound.ceil());
                format!("{rate:.6} GiB/sec ±{bound}% while all ran")
            },
        );
        text.push_str(&format!("; {}: {rate}", job.job));
    }
    Some(format!("# ranks: {}", printable_short(&text)))
}

/// How many ranks the results of a record are of; 1 for one process.
pub fn ranks(record: &Record) -> u32 {
    record.ranks.as_ref().map_or(1, |all| all.ranks)
}

/// A line for each job, for gdsio's `-J`: `Job: NAME `, then the fields of [`line()`]. No output of
/// gdsio's own `-J` is public, so this form is gpuio's; the prefix keeps scripts that look for a
/// line beginning with `IoType:` from counting jobs twice.
pub fn per_job(record: &Record) -> Vec<String> {
    jobs(record)
        .map(|job| format!("Job: {} {}", printable_short(&job.0.name), line(ranks(record), &[job])))
        .collect()
}

/// gdsio's line (as of CUDA 11.7 to 12.8) over jobs that ran together, without a line feed.
///
/// * `IoType` is `READ`, `WRITE`, `RANDREAD` or `RANDWRITE`; `RW` or `RANDRW` (gpuio's words) when
///   both directions occur. It is one of the `RAND` words when any job is random.
/// * `XferType` is gdsio's name of the path, `MIXED` when jobs differ.
/// * `Threads` is the sum over jobs, and over the ranks of a run on several. `IoDepth` appears for
///   gdsio's batch types only: the depth, the largest when jobs differ.
/// * `DataSetSize` is KiB moved, then the sum over threads of the size each works on.
/// * `IOSize` is the block size in KiB, rounded down; where block sizes vary, within a job or
///   between jobs, the mean I/O rounded to the nearest KiB.
/// * `Avg_Latency` is the mean of total latency (from when it was due until it was complete) over
///   all I/Os.
/// * `total_time` is from the first begin of the jobs to their last end (the longest job's, where
///   they began together). `Throughput` is bytes moved over it.
///
/// Fractions have six decimals and are made from unrounded values.
pub fn line(ranks: u32, jobs: &[Job<'_>]) -> String {
    // Every rank has the threads of the plan.
    let of = |plan: &JobPlan| u64::from(plan.threads).saturating_mul(u64::from(ranks));
    let threads = sum(jobs, |plan, _| of(plan));
    let bytes: u64 = sum(jobs, |_, job| job.read.bytes + job.write.bytes);
    let ops: u64 = sum(jobs, |_, job| job.read.ios + job.write.ios);
    let size = sum(jobs, |plan, _| of(plan).saturating_mul(plan.size_bytes));
    let seconds = float(total_time_ns(jobs)) / 1e9;
    let throughput = if seconds > 0.0 { float(bytes) / GIB / seconds } else { 0.0 };
    format!(
        "IoType: {} XferType: {} Threads: {threads} {}DataSetSize: {}/{}(KiB) IOSize: {}(KiB) \
         Throughput: {throughput:.6} GiB/sec, Avg_Latency: {:.6} usecs ops: {ops} \
         total_time {seconds:.6} secs",
        io_type(jobs),
        printable_short(xfer_type(jobs)),
        io_depth(jobs),
        bytes / KIB,
        size / KIB,
        io_size_kib(jobs, bytes, ops),
        mean_latency_us(jobs),
    )
}

fn sum(jobs: &[Job<'_>], figure: impl Fn(&JobPlan, &JobResult) -> u64) -> u64 {
    jobs.iter().fold(0, |sum: u64, (plan, job)| sum.saturating_add(figure(plan, job)))
}

fn io_type(jobs: &[Job<'_>]) -> &'static str {
    let does = |direction| jobs.iter().any(|(plan, _)| plan.directions().contains(&direction));
    let random = jobs.iter().any(|(plan, _)| is_random(plan));
    match (does(Towards::Read), does(Towards::Write), random) {
        (true, true, false) => "RW",
        (true, true, true) => "RANDRW",
        (false, true, false) => "WRITE",
        (false, true, true) => "RANDWRITE",
        (_, false, false) => "READ",
        (_, false, true) => "RANDREAD",
    }
}

fn xfer_type<'a>(jobs: &[Job<'a>]) -> &'a str {
    let mut names = jobs.iter().map(|(plan, _)| plan.path.gdsio_name.as_str());
    let first = names.next().unwrap_or("MIXED");
    if names.all(|name| name == first) { first } else { "MIXED" }
}

/// gdsio's types 6 (GPU_BATCH) and 7 (GPU_BATCH_STREAM) carry the field.
fn io_depth(jobs: &[Job<'_>]) -> String {
    let batch = |(plan, _): &&Job<'_>| matches!(plan.path.gdsio, Some(6 | 7));
    match jobs.iter().filter(batch).map(|(plan, _)| plan.depth).max() {
        Some(depth) => format!("IoDepth: {depth} "),
        None => String::new(),
    }
}

fn io_size_kib(jobs: &[Job<'_>], bytes: u64, ops: u64) -> u64 {
    let mut sizes = jobs.iter().map(|(plan, _)| fixed_block(&plan.blocks));
    let first = sizes.next().flatten();
    match first {
        Some(size) if sizes.all(|other| other == first) => size / KIB,
        _ if ops == 0 => 0,
        _ => (bytes / ops).saturating_add(KIB / 2) / KIB,
    }
}

fn mean_latency_us(jobs: &[Job<'_>]) -> f64 {
    let mut ios = 0.0;
    let mut ns = 0.0;
    for (_, job) in jobs {
        for latency in [&job.read, &job.write].into_iter().filter_map(|side| side.latency.as_ref())
        {
            let count = float(latency.total.count);
            ios += count;
            ns += latency.total.mean_ns * count;
        }
    }
    if ios > 0.0 { ns / ios / 1e3 } else { 0.0 }
}

/// From the first begin to the last end. Records of before begin and end were kept have the longest
/// job's time.
fn total_time_ns(jobs: &[Job<'_>]) -> u64 {
    let spans = jobs
        .iter()
        .map(|(_, job)| job.measured.unwrap_or(TimeSpan { begin_ns: 0, end_ns: job.last_done_ns }));
    let all = spans.reduce(|all, span| TimeSpan {
        begin_ns: all.begin_ns.min(span.begin_ns),
        end_ns: all.end_ns.max(span.end_ns),
    });
    all.map_or(0, |all| all.length_ns())
}
