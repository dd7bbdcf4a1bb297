//! `--accelerators auto`: the largest number of accelerators that keep their utilisation.

use std::process::ExitCode;

use gpuio_base::units::{human_rate, many};
use gpuio_job::spec::Spec;
use gpuio_record::{
    AcceleratorSearch, AcceleratorTry, EndedHow, FeedPlan, FeedResult, JobPlan, Record,
};
use gpuio_report::{FastEnough, fast_enough};

use crate::args::Workload;
use crate::failure::Failure;
use crate::fio_logs::Logs;
use crate::jobs;
use crate::journal::Journal;
use crate::outcome;
use crate::output::Sink;
use crate::terminal;
use crate::ui::Progress;

/// Tries beyond this say nothing of a machine.
const MOST: u32 = 4096;

/// The feed that a search can go by.
fn searched(jobs: &[JobPlan]) -> Result<&FeedPlan, Failure> {
    let [job] = jobs else {
        let what = "--accelerators auto searches with one job on one path; name one path, or give \
                    a number";
        return Err(Failure::Usage(what.to_owned()));
    };
    let Some(feed) = &job.feed else {
        let what = "--accelerators auto: the file has no training feed; leave it out";
        return Err(Failure::Usage(what.to_owned()));
    };
    if feed.compute_ns == 0 {
        let what = "--accelerators auto: nothing is computed, so that there is no utilisation to \
                    keep; leave out compute=none";
        return Err(Failure::Usage(what.to_owned()));
    }
    Ok(feed)
}

/// Runs the workload with more and more accelerators, and prints the record of the most that kept
/// their utilisation; of the fewest where none did.
pub(super) fn run(workload: &Workload) -> Result<ExitCode, Failure> {
    let base = super::scaled(workload)?;
    let first = super::session(workload, &base)?;
    let feed = searched(&first.plan.jobs)?;
    let each = feed.accelerators;
    let least = feed.least_utilisation_percent.unwrap_or_default();
    let mut first = Some(first);
    let sink = Sink::open(&workload.out, false)?;
    let mut best: Option<Record> = None;
    let mut unknown: Option<(u32, String)> = None;
    let mut tries: Vec<AcceleratorTry> = Vec::new();
    let found = search(each, |count| {
        // The plan of the fewest was made to learn of the job.
        let session = match first.take().filter(|_| count == each) {
            Some(session) => session,
            None => super::session(workload, &with(&base, count)?)?,
        };
        let progress = Progress::new(workload.out.quiet, workload.out.eta.as_deref());
        let record = session.run(&progress, &Journal::none(), &Logs::none())?;
        progress.clear();
        let answer = answer(&record);
        if !workload.out.quiet {
            message!("{}", line(count, &record, least, &answer));
        }
        let tried = tried(&record);
        tries.push(AcceleratorTry {
            accelerators: count,
            utilisation_percent: tried.and_then(|feed| feed.utilisation_percent),
            verdict: verdict(least, &answer),
            samples_per_s: tried.map_or(0.0, |feed| feed.samples_per_s),
            bytes_per_s: record.jobs.first().map_or(0.0, |job| job.read.bytes_per_s),
        });
        let holds = answer == FastEnough::Yes;
        if let FastEnough::Unknown(why) = answer {
            unknown = Some((count, why));
        }
        let whole = record.ended == EndedHow::Complete && record.error.is_none();
        let why = record.error.clone();
        if holds || best.is_none() {
            best = Some(record);
        }
        match whole {
            true => Ok(holds),
            false => Err(Failure::Ran(format!(
                "the search ended with the run of {count} accelerators{}",
                why.map_or_else(String::new, |why| format!(": {why}"))
            ))),
        }
    })?;
    let said = conclusion(found, each, least, unknown.as_ref());
    if !workload.out.quiet {
        message!("{said}");
    }
    let Some(mut record) = best else {
        return Err(Failure::Ran("no run was made".to_owned()));
    };
    if let Some(feed) = record.jobs.first_mut().and_then(|job| job.feed.as_mut()) {
        let answer = said.strip_prefix("result: ").unwrap_or(&said).to_owned();
        let least_utilisation_percent = least;
        feed.search = Some(AcceleratorSearch { least_utilisation_percent, answer, tries });
    }
    sink.write(&record, terminal::width())?;
    Ok(ExitCode::from(outcome::report(&record, &[])))
}

/// The workload with so many accelerators.
fn with(base: &Spec, accelerators: u32) -> Result<Spec, Failure> {
    let mut spec = base.clone();
    for job in &mut spec.jobs {
        jobs::set(job, "accelerators", &accelerators.to_string(), "--accelerators")?;
    }
    Ok(spec)
}

/// The answer that the record of a try prints: a search that went by the utilisation alone would
/// announce numbers that it rejects.
fn answer(record: &Record) -> FastEnough {
    let job = record.plan.jobs.first().zip(record.jobs.first());
    let answer = job.and_then(|(plan, job)| fast_enough(record, plan, job));
    answer.unwrap_or_else(|| FastEnough::Unknown("there is no result".to_owned()))
}

fn tried(record: &Record) -> Option<&FeedResult> {
    record.jobs.first().and_then(|job| job.feed.as_ref())
}

/// Whether a try kept the utilisation.
fn verdict(least: f64, answer: &FastEnough) -> String {
    match answer {
        FastEnough::Yes => format!("{least} % kept"),
        FastEnough::No(_) => format!("{least} % not kept"),
        FastEnough::Unknown(why) => format!("whether {least} % are kept is unknown: {why}"),
    }
}

/// One try in a line.
fn line(count: u32, record: &Record, least: f64, answer: &FastEnough) -> String {
    let rate = record.jobs.first().map_or(0.0, |job| job.read.bytes_per_s);
    let Some(feed) = tried(record) else { return format!("accelerators {count}: no result") };
    let percent = feed.utilisation_percent.map(|percent| format!("{percent:.1} %"));
    format!(
        "accelerators {count}: utilisation {} ({}), {:.1} samples/s, {}",
        percent.as_deref().unwrap_or("-"),
        verdict(least, answer),
        feed.samples_per_s,
        human_rate(rate)
    )
}

/// The result of the search, in words. A number whose utilisation is unknown, with the reason, was
/// not shown to fall below it.
fn conclusion(
    found: Option<(u32, Option<u32>)>,
    each: u32,
    least: f64,
    unknown: Option<&(u32, String)>,
) -> String {
    let why = |count: u32| unknown.filter(|(of, _)| *of == count).map(|(_, why)| why);
    match found {
        None => match why(each) {
            Some(why) => format!(
                "result: whether {} {least} % is unknown: {why}; what follows is of that run",
                many(u64::from(each), "accelerator keeps|accelerators keep")
            ),
            None => format!(
                "result: not even {} kept {least} %; what follows is of that run",
                many(u64::from(each), "accelerator")
            ),
        },
        Some((most, Some(next))) => {
            let next = match why(next) {
                Some(why) => format!("of {next} it is unknown: {why}"),
                None => format!("{next} did not"),
            };
            format!(
                "result: the most accelerators that kept {least} % are {most}, and {next}; what \
                 follows is of the run with {most}"
            )
        }
        Some((most, None)) => format!(
            "result: {most} accelerators kept {least} %, and more were not tried; what follows is \
             of the run with {most}"
        ),
    }
}

/// The largest multiple of `each` that holds, with the next that was tried and does not; nothing
/// where `each` itself does not. First the number doubles, then the gap is halved.
fn search<E>(
    each: u32,
    mut holds: impl FnMut(u32) -> Result<bool, E>,
) -> Result<Option<(u32, Option<u32>)>, E> {
    let mut good: u32 = 0;
    let mut bad: Option<u32> = None;
    while bad.is_none() {
        let next = if good == 0 { 1 } else { good * 2 };
        if next.saturating_mul(each) > MOST {
            return Ok((good > 0).then_some((good * each, None)));
        }
        match holds(next * each)? {
            true => good = next,
            false => bad = Some(next),
        }
    }
    let mut bad = bad.unwrap_or(good + 1);
    while good > 0 && bad - good > 1 {
        let middle = good.midpoint(bad);
        match holds(middle * each)? {
            true => good = middle,
            false => bad = middle,
        }
    }
    Ok((good > 0).then_some((good * each, Some(bad * each))))
}

#[cfg(test)]
mod tests {
    use super::{conclusion, search};

    #[test]
    fn what_is_unknown_is_not_said_to_have_failed() {
        let unknown = (1, "its epochs have two steps".to_owned());
        let said = conclusion(None, 1, 90.0, Some(&unknown));
        assert!(said.contains("unknown: its epochs have two steps"), "{said}");
        assert!(conclusion(None, 1, 90.0, None).contains("not even 1"));
        let said = conclusion(Some((4, Some(8))), 1, 90.0, Some(&(8, "two steps".to_owned())));
        assert!(said.contains("are 4, and of 8 it is unknown: two steps"), "{said}");
        assert!(conclusion(Some((4, Some(8))), 1, 90.0, Some(&unknown)).contains("8 did not"));
    }

    /// The result of a search where up to `limit` accelerators hold, and the tries.
    fn found(each: u32, limit: u32) -> (Option<(u32, Option<u32>)>, Vec<u32>) {
        let mut tries = Vec::new();
        let found = search::<()>(each, |count| {
            tries.push(count);
            Ok(count <= limit)
        });
        (found.unwrap(), tries)
    }

    #[test]
    fn the_largest_number_is_found_and_none_is_tried_twice() {
        assert_eq!(found(1, 0), (None, vec![1]));
        assert_eq!(found(1, 1), (Some((1, Some(2))), vec![1, 2]));
        assert_eq!(found(1, 11), (Some((11, Some(12))), vec![1, 2, 4, 8, 16, 12, 10, 11]));
        assert_eq!(found(4, 13), (Some((12, Some(16))), vec![4, 8, 16, 12]));
        for limit in 1..200 {
            let (most, tries) = found(1, limit);
            assert_eq!(most, Some((limit, Some(limit + 1))));
            let distinct: std::collections::BTreeSet<_> = tries.iter().collect();
            assert_eq!(distinct.len(), tries.len());
        }
    }

    #[test]
    fn a_machine_that_holds_all_ends_the_search() {
        let (most, tries) = found(1, u32::MAX);
        assert_eq!((most, tries.len()), (Some((4096, None)), 13));
        assert_eq!(search(1, |_| Err::<bool, _>("broken")), Err("broken"));
    }
}
