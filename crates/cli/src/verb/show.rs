//! `gpuio show`: a saved record, printed again.

use std::process::ExitCode;

use gpuio_base::units::many;
use gpuio_load::run::{Unrestated, unrestated};
use gpuio_record::{ContentDigest, Record};
use gpuio_report::Recheck;
use gpuio_report::set::{Member, Set};
use serde_json::{Value, json};

use crate::args::Show;
use crate::failure::Failure;
use crate::output::{self, Delivery};
use crate::terminal;
use crate::{formats, locale, records, unused};

pub(crate) fn run(show: &Show) -> Result<ExitCode, Failure> {
    let (requested, path) = (show.format.as_deref(), show.save.output.as_deref());
    let name = formats::of_file(requested, path, formats::RECORD_FILES)?;
    let row = output::find(name.unwrap_or("text"))?;
    locale::printed_as(row.name);
    unused::show(show, row)?;
    if show.check {
        return check(show, row.name == "json");
    }
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
        ..Default::default()
    };
    delivery.put(&(row.render)(&record, terminal::width(), parts))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks each record. Nothing holds where nothing is checked.
fn check(show: &Show, as_json: bool) -> Result<ExitCode, Failure> {
    let delivery = Delivery::open(&show.save)?;
    let set = records::read_each(&show.records)?;
    let found: Vec<Found<'_>> = set.members.iter().map(Found::of).collect();
    delivery.put(&if as_json { in_json(&set, &found) } else { in_words(&set, &found) })?;
    let none = set.unread.is_empty() && set.not_here().is_empty();
    let whole = found.iter().all(|one| one.recheck().wrong.is_empty()) && none;
    Ok(match (!found.is_empty() && whole, found.iter().any(|one| one.open.is_some())) {
        (false, _) => ExitCode::from(1),
        (true, true) => ExitCode::from(3),
        (true, false) => ExitCode::SUCCESS,
    })
}

/// The checks of one record.
struct Found<'a> {
    member: &'a Member,
    /// Why not all checks could be made.
    open: Option<String>,
}

impl<'a> Found<'a> {
    fn of(member: &'a Member) -> Found<'a> {
        let more = || "nothing checks the unknown fields".to_owned();
        let Recheck { unknown, unproved, .. } = &member.recheck;
        let open = unchecked(&member.record, unproved.as_deref());
        Found { member, open: open.or_else(|| (!unknown.is_empty()).then(more)) }
    }

    fn recheck(&self) -> &'a Recheck {
        &self.member.recheck
    }

    fn outcome(&self) -> String {
        let Recheck { compared, wrong, .. } = self.recheck();
        match (wrong.len(), &self.open) {
            (0, None) => format!("all {compared} checks hold"),
            (0, Some(why)) => format!("the {compared} checks that could be made hold; {why}"),
            (faults, _) => {
                let wrong = many(faults as u64, "check does|checks do");
                format!("of {compared} checks {wrong} not hold")
            }
        }
    }

    /// Its result, in a word for programs.
    fn result(&self) -> &'static str {
        match (self.recheck().wrong.is_empty(), &self.open) {
            (false, _) => WRONG,
            (true, Some(_)) => UNKNOWN,
            (true, None) => "holds",
        }
    }
}

/// Results of checks in JSON.
const WRONG: &str = "wrong";
const UNKNOWN: &str = "unknown";

fn row(record: Option<&str>, check: &str, result: &str, reason: &str) -> Value {
    json!({ "record": record, "check": check, "result": result, "reason": reason })
}

/// A row for each check that does not hold or could not be made, and for all of each record.
fn in_json(set: &Set, found: &[Found<'_>]) -> String {
    let of_record = |one: &Found<'_>| {
        let name = Some(one.member.name.as_str());
        let wrong = one.recheck().wrong.iter().map(|wrong| {
            let (check, reason) = wrong.split_once(": ").unwrap_or(("the record", wrong));
            row(name, check, WRONG, reason)
        });
        let unknown = one.recheck().unknown.iter();
        let unknown = unknown.map(|field| row(name, "unknown fields", UNKNOWN, field));
        let not = unchecked_parts(&one.member.record, one.recheck().unproved.as_deref());
        let not = not.into_iter().map(|(check, why)| row(name, check, UNKNOWN, &why));
        let all = [row(name, "all", one.result(), &one.outcome())];
        all.into_iter().chain(wrong).chain(unknown).chain(not).collect::<Vec<Value>>()
    };
    let files = set.unread.iter().map(|why| row(None, "the file", "unread", why));
    let lacks = set.not_here();
    let lacks = lacks.iter().map(|why| row(None, "the sweep", "missing", why));
    let points = set.left_out.iter().map(|why| row(None, "the point", "missing", why));
    let checks: Vec<Value> =
        found.iter().flat_map(of_record).chain(files).chain(lacks).chain(points).collect();
    let records = found.iter().map(|one| {
        json!({
            "record": one.member.name,
            "sha256": one.member.digest,
            "compared": one.recheck().compared,
            "wrong": one.recheck().wrong.len(),
            "result": one.result(),
        })
    });
    let page = json!({ "records": records.collect::<Vec<Value>>(), "checks": checks });
    format!("{page:#}\n")
}

/// The figures of each record that do not hold or could not be checked, and which checks there
/// are; the last line has the number of records.
fn in_words(set: &Set, found: &[Found<'_>]) -> String {
    let mut text = String::new();
    for one in found {
        text.extend(one.recheck().wrong.iter().map(|one| format!("wrong: {one}\n")));
        text.extend(one.recheck().unknown.iter().map(|one| format!("{one}\n")));
        text += &format!("{}: {}.\n", one.member.name, one.outcome());
        text.extend(one.member.digest.iter().map(|digest| format!("SHA-256 {digest}\n")));
    }
    let lacks = set.not_here();
    let others = lacks.iter().chain(&set.unread).chain(&set.left_out);
    text.extend(others.map(|why| format!("{why}\n")));
    let any = |content| set.members.iter().any(|member| member.record.content_sha256 == content);
    let (intact, none) = (any(ContentDigest::Intact), any(ContentDigest::NoDigest));
    text += if intact { "Checked: all content by its digest; " } else { "Checked: " };
    text += CHECKED;
    if set.members.iter().any(|member| member.record.ranks.is_some()) {
        text += CHECKED_OF_RANKS;
    }
    if none {
        text += "Without a digest a record that holds is consistent within itself, no more.\n";
    }
    if intact {
        text += "A record that holds is as gpuio wrote it, unless somebody computed its digest\n\
                 anew: compare the SHA-256 of the file with the published one (gpuio report).\n";
    }
    let hold = found.iter().filter(|one| one.recheck().wrong.is_empty()).count();
    let (all, unread) = (found.len(), set.unread.len());
    if all == 0 {
        text += "0 records checked.\n";
    } else if all + unread > 1 {
        let unread = match unread {
            0 => String::new(),
            files => format!("; {} can't be read", many(files as u64, "file")),
        };
        let whole = lacks.is_empty() && set.left_out.is_empty();
        let missing = if whole { "" } else { "; not all runs that were made are here" };
        let all = many(all as u64, "record");
        text += &format!("The figures of {hold} of {all} hold{unread}{missing}.\n");
    }
    text
}

const CHECKED: &str = "rates, latencies, percentiles, sums, CPU time,
verified bytes, ceilings, expected rates and feeds by the counts they follow from;
the path by its evidence and plan; names, the software GPU and the end of the run
wherever they stand; in records of this version also settings by the plan's text,
evidence by its readings, MLPerf's rules, and warnings that follow from these.
Not, beyond the digest: what stands in one place alone (the machine, counts, times
outside the clock, samples of devices, measured ceilings), other warnings,
percentiles of intervals beyond their sums.
";

const CHECKED_OF_RANKS: &str = "\
Merged ranks by those of each rank: latencies, sums, rates, times, slow ranks,
verdicts. Not: evidence, reasons of the path, warnings, settings, feeds,
replays, computations, clocks, starts, percentiles of a rank, counts of
storage.
";

/// The checks of a record that were not made, in words.
fn unchecked(record: &Record, unproved: Option<&str>) -> Option<String> {
    let all = unchecked_parts(record, unproved).into_iter().map(|(_, why)| why);
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The same, each with its name and the reason.
fn unchecked_parts(record: &Record, unproved: Option<&str>) -> Vec<(&'static str, String)> {
    let no_digest = unproved.map(|why| format!("whether it was changed is NOT known: {why}"));
    let no_digest = no_digest.map(|why| ("digest", why));
    no_digest.into_iter().chain(not_restated(record).map(|why| ("conclusions", why))).collect()
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
