//! Lines about jobs of special loads: with a steady state, a stonewall or flushes, files that were
//! read whole, recorded calls, parts of larger loads, and jobs that ran several times.

use gpuio_base::document::{Item, Layout, List, Section, unique};
use gpuio_base::safetensors::loader;
use gpuio_base::stat::Percentile;
use gpuio_base::units::{format_bytes, human_count, human_ns, human_rate, whole};
use gpuio_record::{
    DirectMode, EndedHow, JobPlan, JobResult, RangeKind, Record, RecordedCalls, ReplayPace,
    ReplayPlan, ReplayResult, Steady, SteadyFigure, SteadyPlan,
};

use super::feed::percentiles;
use super::{label, label_width, of_jobs};
use crate::number::{bytes, count, float, many, maybe_time, throughput, time};
use crate::standing;
use crate::workload::{self, jobs};

/// A line per job with a criterion.
pub(super) fn steady(record: &Record) -> Section {
    let lines = jobs(record).filter_map(|(plan, job)| {
        Some((plan.name.as_str(), steady_words(plan.steady.as_ref()?, job.steady.as_ref()?)))
    });
    of_jobs(record, "steady state:", lines)
}

fn steady_words(requested: &SteadyPlan, measured: &Steady) -> String {
    let head = match measured.attained_at_ns {
        Some(at) => format!("{} attained after {}", requested.requested, time(at)),
        None => format!("{} NOT attained", requested.requested),
    };
    let Some(mean) = measured.mean else {
        return format!("{head}; no window of {} was complete", time(requested.window_ns));
    };
    let amount = |value: f64| match requested.of {
        SteadyFigure::Iops => format!("{} IOPS", human_count(value)),
        SteadyFigure::Bandwidth => human_rate(value),
        SteadyFigure::Latency => human_ns(value),
    };
    let window = time(requested.window_ns);
    let seen = match measured.observed {
        None => "unknown".to_owned(),
        Some(seen) if requested.percent => format!("{seen:.3} %"),
        // The formats are for amounts, which have no sign.
        Some(seen) if seen < 0.0 => format!("-{}", amount(-seen)),
        Some(seen) => amount(seen),
    };
    let what = if requested.slope { "slope" } else { "largest deviation" };
    let each = if requested.slope { " a check" } else { "" };
    format!("{head}; last window of {window}: mean {}, {what} {seen}{each}", amount(mean))
}

/// A line per job that came to a stonewall: the rate until then, and the rate until all were done.
pub(super) fn stonewall(record: &Record) -> Section {
    let lines = jobs(record).filter_map(|(plan, job)| {
        let wall = job.stonewall?;
        let rate = job.read.bytes_per_s + job.write.bytes_per_s;
        let words = format!(
            "{} in {} until the stonewall; then each thread went on to {}, what the fastest had \
             begun by then: {} in {}",
            throughput(wall.bytes_per_s),
            time(wall.time_ns),
            bytes(wall.bytes_per_thread),
            throughput(rate),
            time(job.last_done_ns)
        );
        Some((plan.name.as_str(), words))
    });
    of_jobs(record, "stonewall and wear-out:", lines)
}

/// A line per job that was to flush: how many calls, and how long they took.
pub(super) fn flushes(record: &Record) -> Section {
    let item = |(plan, job): (&JobPlan, &JobResult)| {
        let (flush, done) = (plan.flush?, job.flushes.as_ref()?);
        let call = if flush.data_only { "fdatasync" } else { "fsync" };
        let mean = match done.ns.checked_div(done.calls) {
            None => String::new(),
            Some(one) if done.calls == 1 => format!(", {}", time(one)),
            Some(mean) => format!(", {} each on average", time(mean)),
        };
        let several = done.latency.as_ref().filter(|_| done.calls > 1);
        let tail = several.map_or_else(String::new, |all| {
            let at = percentiles(Some(all), &[Percentile::MEDIAN, Percentile::TAIL]);
            format!(", p50 / p99 {at}, at most {}", time(all.max_ns))
        });
        let text = format!(
            "{}: {} {} of {call}{mean}{tail}; in the measured time, outside latencies",
            plan.name,
            count(done.calls),
            if done.calls == 1 { "call" } else { "calls" }
        );
        Some(Item::new("flushes", text))
    };
    let mut section = Section::default();
    section.list(List::new(Layout::labels(0).wide(), jobs(record).filter_map(item)));
    section
}

/// A line per job that read whole files.
pub(super) fn ranges(record: &Record) -> Section {
    let lines = jobs(record)
        .filter_map(|(plan, job)| Some((plan.name.as_str(), ready(record, plan, job)?)));
    let mut section = of_jobs(record, "ready:", lines);
    if let Some(words) = beside_python(record) {
        section.list(List::of(2, [words]));
    }
    section
}

/// Where the loads of a model differ from the one that `gpuio.safetensors` makes.
fn beside_python(record: &Record) -> Option<String> {
    let loads: Vec<_> = record.plan.jobs.iter().filter(|plan| plan.ranges.is_some()).collect();
    let tensors = |plan: &&JobPlan| plan.ranges.filter(|of| of.kind == RangeKind::Tensors);
    let (plan, of) = loads.iter().find_map(|plan| Some((plan, tensors(plan)?)))?;
    let group = loader::GROUP_BYTES;
    let alike = |plan: &&JobPlan| {
        let blocks = plan.blocks.iter().all(|block| block.max_bytes == group);
        plan.path.choice.actual == "library" && blocks
    };
    let calls = format!(
        "{} calls at once for each GPU, each for a group of tensors, up to {}, or for one tensor",
        loader::CALLS,
        bytes(group)
    );
    let threads = format!("up to {} threads for each GPU", loader::THREADS);
    if loads.iter().all(alike) {
        return Some(format!(
            "gpuio.safetensors (Python) loads by the same core: {calls}; {threads}"
        ));
    }
    // No more than there is to read for each.
    let files = plan.targets.iter().map(|target| target.length_bytes.div_ceil(group)).sum::<u64>();
    let wanted = (loader::CALLS * plan.gpus.len().max(1)) as u64;
    let at_once = wanted.min(files).min(of.count).max(1);
    Some(format!(
        "gpuio.safetensors (Python) makes another load: {calls}; pieces of up to {}, with O_DIRECT \
         where the page cache lacks them; {threads}; nearest to it: --path library --bs {} \
         --threads {at_once}",
        bytes(loader::PIECE_BYTES.into()),
        format_bytes(group)
    ))
}

/// The same as a sentence per job.
pub(in crate::format) fn ranges_in_words(record: &Record) -> Vec<String> {
    let of_job = |(plan, job): (&JobPlan, &JobResult)| {
        Some(format!("{}: {}", plan.name, ready(record, plan, job)?))
    };
    jobs(record).filter_map(of_job).collect()
}

/// Which files were read whole, and after what time all of it was in memory.
fn ready(record: &Record, plan: &JobPlan, job: &JobResult) -> Option<String> {
    let ranges = plan.ranges?;
    let files = many(plan.targets.len() as u64, "file");
    let what = match ranges.kind {
        RangeKind::Files => format!("{files} whole"),
        RangeKind::Tensors => {
            let empty = match ranges.empty {
                0 => String::new(),
                empty => format!(" and {} without bytes", count(empty)),
            };
            format!("{} of {files}{empty}", many(ranges.count, "tensor"))
        }
    };
    let passes = match ranges.passes {
        1 => String::new(),
        passes => format!(", {passes} times"),
    };
    let whole = ranges.bytes.saturating_mul(ranges.passes);
    let is_ready = job.ended == EndedHow::Complete && job.read.bytes == whole;
    let end = match is_ready {
        true => {
            let standing = standing::aside(record, plan, job);
            format!("in memory after {}{standing}", time(job.last_done_ns))
        }
        false => format!("NOT READY: {} were read", bytes(job.read.bytes)),
    };
    // Pages that the page cache did not hold were read while the files were mapped.
    let before = workload::set_up_ns(plan, job).map_or_else(String::new, |set_up_ns| {
        format!(", and {} before to map the files", time(set_up_ns))
    });
    Some(format!(
        "{what}, {}{passes}, by {}: {end}{before}",
        bytes(ranges.bytes),
        many(u64::from(plan.threads), "thread")
    ))
}

/// How many recorded calls were made, in which time, and in which they were recorded.
fn made_and_recorded(
    record: &Record,
    plan: &JobPlan,
    (of, done): (&ReplayPlan, &ReplayResult),
    job: &JobResult,
) -> String {
    let took = time(job.last_done_ns);
    let made = match done.calls == of.calls {
        true => format!("made all {} in {took}", many(of.calls, "call")),
        false => format!("MADE ONLY {} of {} in {took}", done.calls, many(of.calls, "call")),
    };
    let now = per_second((job.read.bytes + job.write.bytes, job.last_done_ns));
    // Calls of a thread that overlap take more than its time.
    let in_calls = [&job.read, &job.write].into_iter().filter_map(|side| side.latency.as_ref());
    let in_calls = in_calls.map(|one| one.total.mean_ns * float(one.total.count)).sum::<f64>();
    let in_calls = match whole(in_calls / f64::from(plan.threads.max(1))) {
        more if more > job.last_done_ns => String::new(),
        mean => format!("; {} of it in calls, the mean of its threads", time(mean)),
    };
    let own = match job.between_ios_ns / u64::from(plan.threads.max(1)) {
        0 => String::new(),
        own => format!("; {} of it gpuio made or checked data, the mean of its threads", time(own)),
    };
    let standing = standing::aside(record, plan, job);
    format!("{made} ({}{in_calls}{own}){standing}, {}", throughput(now), recorded_time(of))
}

/// The same as a sentence per job.
pub(in crate::format) fn replays_in_words(record: &Record) -> Vec<String> {
    let of_job = |(plan, job): (&JobPlan, &JobResult)| {
        let (of, done) = (plan.replay.as_ref()?, job.replay.as_ref()?);
        Some(format!("{}: {}", plan.name, made_and_recorded(record, plan, (of, done), job)))
    };
    jobs(record).filter_map(of_job).collect()
}

/// Lines per job that repeated recorded calls: what was repeated, what came of it, and what the
/// trace does not have.
pub(super) fn replay(record: &Record) -> Section {
    let width = label_width(record);
    let of_job = |(plan, job)| {
        let (plan, job): (&JobPlan, &JobResult) = (plan, job);
        let (of, done) = (plan.replay.as_ref()?, job.replay.as_ref()?);
        let whole = done.calls == of.calls;
        let made = made_and_recorded(record, plan, (of, done), job);
        let waited = format!("threads waited {} for one another", time(done.waited_ns));
        let mut lines = vec![format!("{made}; {waited}")];
        let why = plan.direct_why.as_ref().filter(|_| plan.direct == DirectMode::Buffered);
        lines.extend(why.map(|why| format!("through the page cache: {why}")));
        lines.extend(of.recorded_calls.iter().flat_map(|recorded| beside(of, recorded, job)));
        if of.pace == ReplayPace::Recorded && whole {
            let words =
                "with the recorded pauses, a rate says little of the path; compare latencies";
            lines.push(words.to_owned());
        }
        lines.extend(of.missing.as_ref().map(|missing| format!("the trace: {missing}")));
        let first = format!("{:width$}  ", label(plan));
        let below = lines.into_iter().map(|line| Item::new(" ".repeat(width + 2), line));
        Some([Item::new(first, workload::replay(of))].into_iter().chain(below).collect::<Vec<_>>())
    };
    let mut section = Section::new("", "replay:");
    let items = jobs(record).filter_map(of_job).flatten();
    section.list(List::new(Layout { indent: 2, wide: true, ..Layout::default() }, items));
    section
}

/// How long the recorded calls took. Their rate is over the whole time as that of now is; the
/// program's pauses are in it, and named.
fn recorded_time(of: &ReplayPlan) -> String {
    let Some(whole) = of.recorded_ns else { return "the trace has no durations".to_owned() };
    let in_calls = of.recorded_calls.map_or_else(String::new, |calls| {
        format!(", pauses included; {} of it in calls", time(calls.in_calls_ns))
    });
    let rate = per_second((of.read_bytes + of.written_bytes, whole));
    format!("recorded in {} ({}{in_calls})", time(whole), throughput(rate))
}

/// Recorded latencies beside those of now, a line per direction, and where the bytes were.
fn beside(of: &ReplayPlan, recorded: &RecordedCalls, job: &JobResult) -> Vec<String> {
    let cut = match job.read.ios + job.write.ios > of.calls {
        true => ", of parts of calls",
        false => "",
    };
    let sides = [("reads", recorded.read, &job.read), ("writes", recorded.write, &job.write)];
    let latencies = sides.into_iter().filter_map(|(name, then, now)| {
        let (then, now) = (then?, now.latency.as_ref().map(|now| &now.total));
        let now = percentiles(now, &Percentile::SHORT);
        let then = format!("{} / {}", time(then.p50_ns), maybe_time(then.p99_ns));
        Some(format!("{name} p50 / p99: recorded {then}, now {now}{cut}"))
    });
    let place = match (of.read_bytes + of.written_bytes).saturating_sub(recorded.gpu_bytes) {
        0 => "all of GPU memory".to_owned(),
        _ if recorded.gpu_bytes == 0 => "all of host memory".to_owned(),
        host => format!("{} of host, {} of GPU memory", bytes(host), bytes(recorded.gpu_bytes)),
    };
    let place =
        format!("recorded bytes: {place}; the trace does not say if the page cache had them");
    latencies.chain([place]).collect()
}

fn per_second((bytes, ns): (u64, u64)) -> f64 {
    if ns == 0 { 0.0 } else { bytes as f64 / (ns as f64 / 1e9) }
}

/// A line per job that is a part of a larger load.
pub(super) fn parts(record: &Record) -> Section {
    of_jobs(record, "part of a larger load:", workload::scaled(record))
}

/// A line per job that ran several times: how long each took, flushes included.
pub(super) fn times(record: &Record) -> Section {
    let names = jobs(record).filter_map(|(plan, _)| Some(plan.repeat.as_ref()?.of.as_str()));
    let lines = unique(names).into_iter().filter_map(|of| {
        let is_one = |plan: &JobPlan| plan.repeat.as_ref().is_some_and(|one| one.of == of);
        let all: Vec<(&JobPlan, &JobResult)> =
            jobs(record).filter(|(plan, _)| is_one(plan)).collect();
        let wanted = all.first()?.0.repeat.as_ref()?.times;
        // One that was cut short took no time of its own.
        let whole = all.iter().map(|(_, job)| *job);
        let whole: Vec<_> = whole.filter(|job| job.ended == EndedHow::Complete).collect();
        Some((of, times_words(&whole, wanted)))
    });
    of_jobs(record, "repeated jobs:", lines)
}

fn times_words(all: &[&JobResult], wanted: u32) -> String {
    let count = all.len() as u64;
    if count == 0 {
        return format!("none of {wanted} was complete");
    }
    let took = || all.iter().map(|job| job.last_done_ns);
    let whole: u64 = took().sum();
    let bytes: u64 = all.iter().map(|job| job.read.bytes + job.write.bytes).sum();
    let mean = whole.checked_div(count).unwrap_or(0);
    let rate = if whole > 0 { float(bytes) * 1e9 / float(whole) } else { 0.0 };
    let cut = match count < u64::from(wanted) {
        true => format!(" of {wanted}"),
        false => String::new(),
    };
    let times = match (took().min(), took().max()) {
        (Some(least), Some(most)) if count > 1 => {
            format!("{} on average ({} to {})", time(mean), time(least), time(most))
        }
        _ => time(mean),
    };
    format!("{count}{cut} times: {times}, {}", throughput(rate))
}
