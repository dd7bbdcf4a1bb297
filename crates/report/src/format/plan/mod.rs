//! The resolved plan as a job file.

mod ceilings;
mod keys;
mod placement;
mod total;

use std::borrow::Cow;

use gpuio_base::units::{format_duration_ns, printable};
use gpuio_record::{Choice, JobPlan, Plan};

pub use total::{
    Files, at_example, clock_ns, duration, example_ns, example_of, limited_ns, verified,
    verified_words, written,
};

/// Jobs from which on lines that all of them have are written once.
const FOLD_FROM: usize = 5;

/// The plan as a job file in gpuio's dialect: run on the same machine with the same files, it
/// resolves to the same plan.
///
/// One section per job in order; `[global]` has the run's name, and of five jobs and
/// more what all of them have alike. Every setting is written out
/// exactly (sizes in the largest power of 1024 that divides them, durations likewise). Settings
/// that a job file cannot have follow as `#` comments: reasons for choices, GPUs, targets and how
/// they are used, the placement of every thread; and at the end the sums of files, bytes and time.
/// A name that no job file can hold (line feeds, outer blanks, a blank before `#` or `;`) is marked
/// by a comment above it. Ends in a line feed.
pub fn plan_text(plan: &Plan) -> String {
    let mut out = String::new();
    let count = plan.jobs.len();
    let jobs = crate::number::many(count as u64, "job");
    let interval = format_duration_ns(plan.interval_ns);
    comment(&mut out, &format!("gpuio plan: {jobs}, a point every {interval}"));
    if plan.software_gpu {
        comment(&mut out, "software GPU: results of this plan do not describe hardware");
    }
    let is_long = plan.jobs.len() >= FOLD_FROM;
    let bodies: Vec<String> = plan.jobs.iter().map(|job| body(plan, job, is_long)).collect();
    let shared = if is_long { shared(&bodies) } else { Vec::new() };
    if plan.name.is_some() || !shared.is_empty() {
        out.push_str("\n[global]\n");
    }
    if let Some(name) = &plan.name {
        keys::text(&mut out, "name", name);
    }
    shared.iter().for_each(|line| out.push_str(&format!("{line}\n")));
    let mut group = plan.jobs.first().map_or(0, |job| job.group);
    for (job, body) in plan.jobs.iter().zip(&bodies) {
        head(&mut out, job, job.group != group);
        let own = body.lines().filter(|line| !shared.contains(line));
        own.for_each(|line| out.push_str(&format!("{line}\n")));
        group = job.group;
    }
    ceilings::write(&mut out, &plan.ceilings);
    total::write(&mut out, plan);
    out
}

/// The lines that each of the jobs has once, in the order of the first.
fn shared(bodies: &[String]) -> Vec<&str> {
    let once = |line: &str| {
        let is_once = |body: &String| body.lines().filter(|other| *other == line).count() == 1;
        bodies.iter().all(is_once)
    };
    let first = bodies.first().map_or("", String::as_str);
    first.lines().filter(|line| once(line)).collect()
}

fn head(out: &mut String, job: &JobPlan, new_group: bool) {
    out.push('\n');
    let name = one_line(&job.name);
    if name != job.name || name.trim() != name || name.contains(']') || name == "global" {
        comment(
            out,
            &format!(
                "the next line can't represent the job's name exactly: '{}'",
                job.name.escape_debug()
            ),
        );
    }
    out.push_str(&format!("[{name}]\n"));
    if new_group {
        keys::set(out, "stonewall", "1");
    }
}

/// The settings of a job, and its comments; of one of many jobs with fewer lines of files and
/// threads.
fn body(plan: &Plan, job: &JobPlan, is_one_of_many: bool) -> String {
    let mut text = String::new();
    let out = &mut text;
    keys::write(out, job);
    // Only cuFile paths can register buffers, or leave that out.
    if job.register_buffer.is_some() {
        keys::cufile(out, &plan.cufile);
    }
    let path = &job.path;
    chosen(out, "path", &path.choice);
    let actual = &path.choice.actual;
    match path.gdsio {
        Some(number) => {
            comment(out, &format!("path {actual}: gdsio's -x {number} ({})", path.gdsio_name));
        }
        None => comment(out, &format!("path {actual}: no gdsio equivalent")),
    }
    chosen(out, "engine", &job.engine);
    if let Some(why) = &job.direct_why {
        let mode = keys::direct_word(job.direct);
        comment(out, &format!("{mode}: {why}"));
    }
    placement::write(out, job, is_one_of_many);
    for note in &job.notes {
        comment(out, &format!("note: {note}"));
    }
    text
}

/// The reason, if there is one, and the requested value if it differs.
fn chosen(out: &mut String, what: &str, choice: &Choice) {
    let Choice { requested, actual, why } = choice;
    let requested =
        if requested == actual { String::new() } else { format!(" (requested: {requested})") };
    match why {
        Some(why) => comment(out, &format!("{what} {actual}{requested}: {why}")),
        None if !requested.is_empty() => comment(out, &format!("{what} {actual}{requested}")),
        None => {}
    }
}

/// A `#` line. A line feed in the text would end the comment and begin a setting.
fn comment(out: &mut String, text: &str) {
    out.push_str("# ");
    out.push_str(&one_line(text));
    out.push('\n');
}

fn one_line(text: &str) -> Cow<'_, str> {
    printable(text)
}
