//! `gpuio show`: a saved record, printed again.

use std::process::ExitCode;

use gpuio_base::units::many;
use gpuio_load::run::{Unrestated, unrestated};
use gpuio_record::Record;
use gpuio_report::Recheck;
use gpuio_report::set::Member;

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
    let [record] = show.records.as_slice() else {
        let what = "one record is shown; gpuio report shows several, and --check checks them";
        return Err(Failure::Usage(what.to_owned()));
    };
    let record = records::record(record)?;
    if show.per_rank && record.ranks.is_none() {
        let what = "--per-rank: it has no effect here: the record is of one process; leave it out";
        return Err(Failure::Usage(what.to_owned()));
    }
    let parts = gpuio_report::format::text::Show {
        evidence: show.evidence,
        per_rank: show.per_rank,
        recheck: Some(&records::recheck(&record)),
    };
    delivery.put(&(row.render)(&record, terminal::width(), parts))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks each record; the last line has their number. Nothing holds where nothing is checked.
fn check(show: &Show) -> Result<ExitCode, Failure> {
    let set = records::read_all(&show.records)?;
    let mut text = String::new();
    let mut left_open = false;
    for Member { name, recheck, digest, record, .. } in &set.members {
        let Recheck { compared, wrong, unknown } = recheck;
        text.extend(wrong.iter().map(|one| format!("wrong: {one}\n")));
        text.extend(unknown.iter().map(|one| format!("{one}\n")));
        let more = || "nothing checks the unknown fields".to_owned();
        let open = unchecked(record).or_else(|| (!unknown.is_empty()).then(more));
        left_open |= open.is_some();
        let outcome = match (wrong.len(), &open) {
            (0, None) => format!("all {compared} checks hold"),
            (0, Some(why)) => format!("the {compared} checks that could be made hold; {why}"),
            (faults, _) => {
                let wrong = many(faults as u64, "check does|checks do");
                format!("of {compared} checks {wrong} not hold")
            }
        };
        text += &format!("{name}: {outcome}.\n");
        text.extend(digest.iter().map(|digest| format!("SHA-256 {digest}\n")));
    }
    text.extend(set.unread.iter().chain(&set.left_out).map(|why| format!("{why}\n")));
    text += "Checked: rates, latencies and their means, percentiles and extremes, sums of\n\
             threads, GPUs, jobs and intervals, I/Os in flight, CPU time per MiB, bytes by I/Os\n\
             and block sizes, bad blocks by the mismatches kept, verified bytes by those moved,\n\
             what was verified and where by the plan, the path taken by its route, its source,\n\
             the plan and counts of storage, counts of devices by their rates, what devices,\n\
             GPUs and processors are called wherever they stand, per cent of ceilings and of\n\
             expected rates, feeds, their epochs and computations by their parts, the mark of\n\
             the software GPU, how the run ended; in records of this version also the plan's\n\
             settings by its text, evidence by its readings, its reasons and sentence by\n\
             these, MLPerf's rules by plan and counts, warnings that follow from plan, result\n\
             and counts of storage.\n\
             Not: what the record has in one place alone (the machine, names, counts), times\n\
             outside the clock, samples of devices, what ceilings were measured, other\n\
             warnings, percentiles of intervals beyond their sums.\n";
    if set.members.iter().any(|member| member.record.ranks.is_some()) {
        text += "Checked of merged ranks: latencies, sums, rates and times by those of each rank,\n\
                 of hosts and of the times in which ranks ran, slow ranks, verdicts.\n\
                 Not of these: evidence, reasons of the path, warnings, the plan's\n\
                 settings, feeds, replays and computations, how far clocks and starts were\n\
                 apart, bytes of a part of the time beyond their bounds, percentiles of a rank,\n\
                 counts of storage.\n";
    }
    text += "A record that holds is consistent within itself; that does not prove where it\n\
             came from. Compare the digest with the published one: gpuio report writes it.\n";
    let hold = set.members.iter().filter(|member| member.recheck.wrong.is_empty()).count();
    let (all, unread) = (set.members.len(), set.unread.len());
    if all == 0 {
        text += "0 records checked.\n";
    } else if all + unread > 1 {
        let unread = match unread {
            0 => String::new(),
            files => format!("; {} can't be read", many(files as u64, "file")),
        };
        text += &format!("The figures of {hold} of {} hold{unread}.\n", many(all as u64, "record"));
    }
    output::put(&text)?;
    Ok(match (all > 0 && hold == all && unread == 0, left_open) {
        (false, _) => ExitCode::from(1),
        (true, true) => ExitCode::from(3),
        (true, false) => ExitCode::SUCCESS,
    })
}

/// Why conclusions of a record were not made again, of one where that can't be done.
fn unchecked(record: &Record) -> Option<String> {
    const OPEN: &str = "settings, evidence and its reasons, MLPerf's rules and warnings were NOT \
                        checked";
    Some(match unrestated(record)? {
        Unrestated::Version => format!(
            "it names gpuio {}, this one is {}, so {OPEN}: check it with that version",
            record.tool.version,
            env!("CARGO_PKG_VERSION")
        ),
        Unrestated::Units => format!("in these units {OPEN}: leave out --units"),
    })
}
