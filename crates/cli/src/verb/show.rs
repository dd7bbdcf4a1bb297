//! `gpuio show`: a saved record, printed again.

use std::process::ExitCode;

use gpuio_base::units::many;
use gpuio_load::run::{Unrestated, unrestated};
use gpuio_record::{ContentDigest, Record};
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
    let recheck = records::recheck(&record);
    if let Some(doubt) = recheck.doubt()
        && !row.tells_doubt
    {
        message!("warning: {doubt}");
    }
    let parts = gpuio_report::format::text::Show {
        evidence: show.evidence,
        per_rank: show.per_rank,
        recheck: Some(&recheck),
    };
    delivery.put(&(row.render)(&record, terminal::width(), parts))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks each record; the last line has their number. Nothing holds where nothing is checked.
fn check(show: &Show) -> Result<ExitCode, Failure> {
    let set = records::read_each(&show.records)?;
    let mut text = String::new();
    let mut left_open = false;
    for Member { name, recheck, digest, record, .. } in &set.members {
        let Recheck { compared, wrong, unknown, unproved } = recheck;
        text.extend(wrong.iter().map(|one| format!("wrong: {one}\n")));
        text.extend(unknown.iter().map(|one| format!("{one}\n")));
        let more = || "nothing checks the unknown fields".to_owned();
        let open =
            unchecked(record, unproved.as_deref()).or_else(|| (!unknown.is_empty()).then(more));
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
    let any = |content| set.members.iter().any(|member| member.record.content_sha256 == content);
    let (intact, none) = (any(ContentDigest::Intact), any(ContentDigest::NoDigest));
    text += if intact { "Checked: all content by its digest; " } else { "Checked: " };
    text += "rates, latencies, percentiles, sums, CPU time,\n\
             verified bytes, ceilings, expected rates and feeds by the counts they follow from;\n\
             the path by its evidence and plan; names, the software GPU and the end of the run\n\
             wherever they stand; in records of this version also settings by the plan's text,\n\
             evidence by its readings, MLPerf's rules, and warnings that follow from these.\n\
             Not, beyond the digest: what stands in one place alone (the machine, counts, times\n\
             outside the clock, samples of devices, measured ceilings), other warnings,\n\
             percentiles of intervals beyond their sums.\n";
    if set.members.iter().any(|member| member.record.ranks.is_some()) {
        text += "Merged ranks by those of each rank: latencies, sums, rates, times, slow ranks,\n\
                 verdicts. Not: evidence, reasons of the path, warnings, settings, feeds,\n\
                 replays, computations, clocks, starts, percentiles of a rank, counts of\n\
                 storage.\n";
    }
    if none {
        text += "Without a digest a record that holds is consistent within itself, no more.\n";
    }
    if intact {
        text += "A record that holds is as gpuio wrote it, unless somebody computed its digest\n\
                 anew: compare the SHA-256 of the file with the published one (gpuio report).\n";
    }
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

/// The checks of a record that were not made, with the reason.
fn unchecked(record: &Record, unproved: Option<&str>) -> Option<String> {
    let no_digest = unproved.map(|why| format!("whether it was changed is NOT known: {why}"));
    let all: Vec<String> = no_digest.into_iter().chain(not_restated(record)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Why conclusions of a record were not made again, of one where that can't be done.
fn not_restated(record: &Record) -> Option<String> {
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
