//! The resolved plan as a job file.

mod ceilings;
mod keys;
mod placement;
mod total;

use std::borrow::Cow;

use gpuio_base::units::{format_duration_ns, printable};
use gpuio_record::{Choice, JobPlan, Plan};

pub use total::limited_ns;

/// The plan as a job file in gpuio's dialect: run on the same machine with the same files, it
/// resolves to the same plan.
///
/// One section per job in order; `[global]` only has the run's name. Every setting is written out
/// exactly (sizes in the largest power of 1024 that divides them, durations likewise). Settings
/// that a job file cannot have follow as `#` comments: reasons for choices, GPUs, targets and how
/// they are used, the placement of every thread; and at the end the sums of files, bytes and time.
/// A name that no job file can hold (line feeds, outer blanks, a blank before `#` or `;`) is marked
/// by a comment above it. Ends in a line feed.
#[must_use]
pub fn plan_text(plan: &Plan) -> String {
    let mut out = String::new();
    let count = plan.jobs.len();
    let jobs = crate::number::many(count as u64, "job");
    let interval = format_duration_ns(plan.interval_ns);
    comment(&mut out, &format!("gpuio plan: {jobs}, a point every {interval}"));
    if plan.software_gpu {
        comment(&mut out, "software GPU: results of this plan do not describe hardware");
    }
    if let Some(name) = &plan.name {
        out.push_str("\n[global]\n");
        keys::text(&mut out, "name", name);
    }
    let mut group = plan.jobs.first().map_or(0, |job| job.group);
    for job in &plan.jobs {
        section(&mut out, plan, job, job.group != group);
        group = job.group;
    }
    ceilings::write(&mut out, &plan.ceilings);
    total::write(&mut out, plan);
    out
}

fn section(out: &mut String, plan: &Plan, job: &JobPlan, new_group: bool) {
    out.push('\n');
    let name = one_line(&job.name);
    if name != job.name || name.trim() != name || name.contains(']') || name == "global" {
        comment(
            out,
            &format!("the next line can't represent the job's name exactly: {:?}", job.name),
        );
    }
    out.push_str(&format!("[{name}]\n"));
    if new_group {
        keys::set(out, "stonewall", "1");
    }
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
    placement::write(out, job);
    for note in &job.notes {
        comment(out, &format!("note: {note}"));
    }
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
