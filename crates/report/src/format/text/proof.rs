//! The actual data path, and its evidence.

use gpuio_base::document::{Cell, Item, Layout, List, Section, grouped, unique};
use gpuio_record::merge::rank_list;
use gpuio_record::{Assessment, Choice, Evidence, JobPlan, Proof, Record, Route, Source, Verdict};

use crate::number::{NONE, bytes};
use crate::workload::jobs;

/// The verdict as in the table of results.
pub(super) fn cell(proof: Option<&Proof>) -> Cell {
    let of = |proof: &Proof| Cell::from(proof.verdict.words.as_str()).short(short(&proof.verdict));
    proof.map(of).into()
}

/// The verdicts of several loads in one cell, each once.
pub(in crate::format) fn cell_of_all<'p>(proofs: impl Iterator<Item = Option<&'p Proof>>) -> Cell {
    let words = |proof: Option<&Proof>| match proof {
        Some(proof) => (proof.verdict.words.clone(), short(&proof.verdict)),
        None => (NONE.to_owned(), NONE.to_owned()),
    };
    let (all, short): (Vec<String>, Vec<String>) = unique(proofs.map(words)).into_iter().unzip();
    Cell::from(all.join("; ")).short(unique(short).join("; "))
}

fn short(verdict: &Verdict) -> String {
    let stop = match (verdict.route, verdict.source) {
        (Route::Direct, _) => return "direct".to_owned(),
        (Route::Unknown, _) => return "unknown".to_owned(),
        (Route::Mixed, _) => return "mixed".to_owned(),
        (Route::HostMemory, Source::PageCache) => return "cache".to_owned(),
        (Route::HostMemory, Source::StorageThroughPageCache) => return "via cache".to_owned(),
        (Route::HostMemory, Source::Holes) => return "holes".to_owned(),
        (Route::HostMemory, Source::Mixed) => return "mixed".to_owned(),
        (Route::HostMemory, Source::Storage | Source::Unknown) => return "unknown".to_owned(),
        (Route::Mapped, _) => return "cache, no copy".to_owned(),
        (Route::BounceHost, _) => "bounce".to_owned(),
        (Route::BounceGpu { gpu }, _) => format!("bounce:GPU{gpu}"),
    };
    match verdict.source {
        Source::Storage => stop,
        Source::StorageThroughPageCache => format!("{stop}:via"),
        Source::PageCache => format!("{stop}:cache"),
        Source::Holes => format!("{stop}:holes"),
        Source::Mixed => format!("{stop}:mixed"),
        Source::Unknown => format!("{stop}:?"),
    }
}

/// The finding about bytes that did not take the requested path, or may not have, and whether that
/// is known. Every text and page calls it an error where it is, else a warning. A path that nobody
/// named, one of all or the default, is a warning too.
pub(crate) fn finding(plan: &JobPlan, proof: &Proof) -> Option<(bool, String)> {
    let is_named = !["all", Choice::DEFAULT].contains(&plan.path.choice.requested.as_str());
    let (known, what) = match proof.is_as_requested() {
        Some(true) => return None,
        Some(false) if !is_named => (false, "The bytes took another way than this path's."),
        Some(false) => (true, "The bytes did not take the requested path."),
        None => (false, "The path of the bytes could not be proved."),
    };
    Some((known, format!("{what} {}", proof.sentence)))
}

/// The word for a finding.
pub(in crate::format) fn finding_label(known: bool) -> &'static str {
    if known { "error" } else { "warning" }
}

/// Sentence and evidence of each job whose actual path differs from the requested one; of `all`
/// jobs if requested. On the `screen` the sentence alone where nobody named the path.
pub(super) fn section(record: &Record, all: bool, screen: bool) -> Section {
    let mut section = Section::new("", "path taken, with evidence:");
    let mut in_short: Vec<(String, &str)> = Vec::new();
    for (plan, job) in jobs(record) {
        let Some(proof) = job.proof.as_ref().filter(|proof| all || !proof.as_requested) else {
            continue;
        };
        match finding(plan, proof).filter(|(known, _)| screen && !known) {
            Some((_, words)) => in_short.push((words, &plan.name)),
            None => {
                of_job(&mut section, (plan, proof), all, record.ranks.is_some());
                of_ranks(&mut section, record, &plan.name, all);
            }
        }
    }
    if section.is_empty() && !in_short.is_empty() {
        section.title = "path taken (with --details, its evidence):".into();
    }
    let items = grouped(in_short).into_iter();
    let items = items.map(|(words, jobs)| {
        Item::new(finding_label(false), format!("{}: {words}", jobs.join(", ")))
    });
    let layout = Layout { indent: 2, gap: 1, colon: true, ..Layout::default() };
    section.list(List::new(layout, items));
    section
}

/// The evidence of a record without any.
const NO_READINGS: &str = "no readings are in this record";
/// The same of a job of several ranks, whose readings are those of single processes.
const OF_RANKS: &str = "each rank judged by its own readings";

/// Heading of the bytes that a source counted, and of those that it should have counted.
const COUNTED: &str = "counted of expected";

fn of_job(section: &mut Section, (plan, proof): (&JobPlan, &Proof), readings: bool, ranks: bool) {
    let at = |indent: usize| Layout { indent, gap: 2, wide: readings, ..Layout::default() };
    let (label, sentence) = match finding(plan, proof) {
        Some((known, text)) => (finding_label(known), text),
        None => ("", proof.sentence.clone()),
    };
    let layout = Layout { gap: 1, colon: !label.is_empty(), ..at(2) };
    section.item(layout, Item::new(label, format!("{}: {sentence}", plan.name)));
    let facts = [("requested", &proof.requested), ("actual", &proof.actual)];
    let facts = facts.map(|(what, text)| Item::new(what, text.as_str()));
    section.list(List::new(Layout { column: 9, ..at(4) }, facts));
    if proof.evidence.is_empty() {
        section.item(at(4), Item::new("", if ranks { OF_RANKS } else { NO_READINGS }));
    }
    evidence_of(section, proof, readings);
}

/// The evidence of each host of several, and of each verdict there.
fn of_ranks(section: &mut Section, record: &Record, job: &str, all: bool) {
    let kept = record.ranks.iter().flat_map(|ranks| &ranks.evidence);
    let own = kept.filter(|one| one.job == job && (all || !one.proof.as_requested));
    for one in own {
        let ranks: Vec<u32> = [one.rank].iter().chain(&one.alike).copied().collect();
        let readings = match one.alike.is_empty() {
            true => String::new(),
            false => format!(" (readings of rank {})", one.rank),
        };
        let text =
            format!("{} on {}{readings}: {}", rank_list(&ranks), one.host, one.proof.sentence);
        section.item(
            Layout { indent: 4, gap: 2, wide: all, ..Layout::default() },
            Item::new("", text),
        );
        evidence_of(section, &one.proof, all);
    }
}

fn evidence_of(section: &mut Section, proof: &Proof, readings: bool) {
    if proof.evidence.is_empty() {
        return;
    }
    // Sources that have nothing to do with the job share a line.
    let is_idle = |item: &&Evidence| {
        let figures = item.observed_bytes.or(item.expected_bytes);
        let texts = item.before.as_ref().or(item.after.as_ref());
        item.assessment == Assessment::Inconclusive && figures.is_none() && texts.is_none()
    };
    let (idle, used): (Vec<&Evidence>, Vec<&Evidence>) = proof.evidence.iter().partition(is_idle);
    let idle = grouped(idle.into_iter().map(|item| (item.why.as_str(), item.name.as_str())));
    let idle = { idle.into_iter() }
        .map(|(why, names)| format!("{} ({why})", unique(names).join(", ")))
        .collect::<Vec<_>>()
        .join("; ");
    let longest =
        |length: fn(&Evidence) -> usize| used.iter().map(|item| length(item)).max().unwrap_or(0);
    let name = longest(|item| item.name.chars().count()).max("source".len());
    let moved = longest(|item| amounts(item).chars().count()).max(COUNTED.len());
    let line = |who: &str, flow: &str, result: &str, amount: &str| {
        format!("{who:name$}  {flow:5}  {result:12}  {amount:>moved$}")
    };
    let heading = Item::new(line("source", "I/O", "result", COUNTED), "reason");
    let evidence = used.iter().map(|item| {
        let assessment = match item.assessment {
            Assessment::Supports => "supports",
            Assessment::Contradicts => "contradicts",
            Assessment::Inconclusive => "inconclusive",
        };
        let mut text = item.why.clone();
        if readings && let (Some(before), Some(after)) = (&item.before, &item.after) {
            text.push_str(&format!("; {before} before, {after} after ({})", item.source));
        }
        Item::new(line(&item.name, &item.direction, assessment, &amounts(item)), text)
    });
    let layout = Layout { indent: 4, gap: 2, wide: readings, ..Layout::default() };
    let idle = (!idle.is_empty()).then(|| Item::new("without a reading", idle));
    let heading = (!used.is_empty()).then_some(heading);
    section.list(List::new(layout, heading.into_iter().chain(evidence).chain(idle)));
}

fn amounts(item: &Evidence) -> String {
    let amount = |figure: Option<u64>| figure.map_or_else(|| NONE.to_owned(), bytes);
    match (item.observed_bytes, item.expected_bytes) {
        (None, None) => NONE.to_owned(),
        (moved, of) => format!("{} of {}", amount(moved), amount(of)),
    }
}
