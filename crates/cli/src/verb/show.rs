//! `gpuio show`: a saved record, printed again.

use std::process::ExitCode;

use gpuio_report::Recheck;

use crate::args::Show;
use crate::failure::Failure;
use crate::output::{self, Delivery};
use crate::terminal;
use crate::{formats, locale, records, unused};

pub(crate) fn run(show: &Show) -> Result<ExitCode, Failure> {
    if show.check {
        return check(show);
    }
    let (requested, path) = (show.format.as_deref(), show.save.output.as_deref());
    let name = formats::of_file(requested, path, formats::RECORD_FILES)?;
    let row = output::find(name.unwrap_or("text"))?;
    locale::printed_as(row.name);
    unused::show(show, row)?;
    let delivery = Delivery::open(&show.save)?;
    let record = records::record(&show.record)?;
    if show.per_rank && record.ranks.is_none() {
        let what = "--per-rank: it has no effect here: the record is of one process; leave it out";
        return Err(Failure::Usage(what.to_owned()));
    }
    let parts =
        gpuio_report::format::text::Show { evidence: show.evidence, per_rank: show.per_rank };
    delivery.put(&(row.render)(&record, terminal::width(), parts))?;
    Ok(ExitCode::SUCCESS)
}

fn check(show: &Show) -> Result<ExitCode, Failure> {
    let name = show.record.display();
    let Recheck { compared, wrong } = gpuio_report::recheck(&records::record(&show.record)?);
    let mut text = String::new();
    for one in &wrong {
        text += &format!("wrong: {one}\n");
    }
    let outcome = match wrong.len() {
        0 => format!("all {compared} figures follow from the record's counts"),
        faults => format!("{faults} of {compared} figures do not follow from the record's counts"),
    };
    text += &format!("{name}: {outcome}.\n");
    text += "Checked: rates, latencies and their means, sums of threads, GPUs, jobs and\n\
             intervals, I/Os in flight, CPU time per MiB, bad blocks by the mismatches kept.\n\
             Not: the plan, the machine, evidence, warnings, the bytes that were verified,\n\
             percentiles of intervals beyond their sums; nor that the run took place.\n\
             Compare the file's digest (sha256sum) with the one that its author published.\n";
    output::put(&text)?;
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
