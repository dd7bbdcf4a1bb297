//! Text for people.

mod beside;
mod cache;
mod ceilings;
pub(in crate::format) mod checkpoint;
pub(in crate::format) mod detail;
mod expected;
pub(in crate::format) mod feed;
mod gpus;
pub(crate) mod header;
pub(in crate::format) mod loads;
mod mapped;
mod mlperf;
pub(crate) mod proof;
mod table;
mod trouble;
mod verification;
pub(crate) mod warnings;
mod watched;

use gpuio_base::document::{Document, Item, Layout, List, Section, grouped, unique};
use gpuio_record::{JobPlan, Record};

use crate::workload::jobs;
use crate::{Recheck, printable, ranks};

/// Marks results that no hardware produced.
pub(crate) const SOFTWARE_GPU: &str = "software GPU";

/// Width limit of paragraphs: long lines read badly.
pub(super) const PARAGRAPH_WIDTH: u16 = 100;

/// The record for people, `width` columns wide (below 80 the tables may be wider).
///
/// `document` has the order of its sections. Reads only the record; ends in a line feed. No colours
/// and no control characters but the line feed.
pub fn render_text(record: &Record, width: u16) -> String {
    render_text_with(record, width, Show::default())
}

/// Parts of the text that are shown on demand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Show<'a> {
    /// Only what the user of a run needs first: answers, results, what stands against them. The
    /// rest is in the record.
    pub screen: bool,
    /// The evidence for every job and its readings.
    pub evidence: bool,
    /// A row for each rank, in the record of several.
    pub per_rank: bool,
    /// On top, that figures do not follow from the record's counts, where they don't: of a record
    /// that others may have changed.
    pub recheck: Option<&'a Recheck>,
}

/// As [`render_text`], with more on demand.
pub fn render_text_with(record: &Record, width: u16, show: Show<'_>) -> String {
    document(record, show).terminal_with(width, width.min(PARAGRAPH_WIDTH))
}

/// As [`render_text`], with the evidence for every job and its readings.
pub fn render_text_with_evidence(record: &Record, width: u16) -> String {
    render_text_with(record, width, Show { evidence: true, ..Show::default() })
}

/// The document that text, Markdown and HTML print.
pub(super) fn document(record: &Record, show: Show<'_>) -> Document {
    // Names come from users, devices and other people's files.
    let Show { screen, evidence, per_rank, recheck } = show;
    let doubt = header::doubt(recheck);
    let record = &printable::record(record);
    let mut page = Document::new(match &record.plan.name {
        Some(name) => name.clone(),
        None => format!("Run of {}", header::to_the_second(&record.started_at)),
    });
    page.push(doubt);
    page.push(header::section(record, screen));
    page.push(loads::parts(record));
    for part in answers(record) {
        page.push(part);
    }
    let [beside, ready, of_loads @ ..] = of_loads(record, screen);
    // When a model is in memory is the answer that its load is run for.
    page.push(ready);
    page.push(table::section(record));
    page.push(table::legend(record));
    for part in record.ranks.iter().flat_map(|all| ranks::sections(all, None, per_rank)) {
        page.push(part);
    }
    for part in [
        trouble::failures(record),
        verification::section(record),
        ceilings::section(record),
        loads::steady(record),
        loads::stonewall(record),
    ] {
        page.push(part);
    }
    if !screen {
        page.push(loads::flushes(record));
    }
    page.push(beside);
    for part in of_loads {
        page.push(part);
    }
    page.push(expected::section(record, evidence)).push(proof::section(record, evidence, screen));
    if !screen {
        page.push(detail::legs(record));
    }
    for part in [
        detail::in_flight(record),
        gpus::parts(record),
        gpus::intermediate(record),
        gpus::fanned_out(record),
    ] {
        page.push(part);
    }
    if screen {
        page.push(cache::section(record)).push(warnings::in_short(record));
        return page;
    }
    for part in [
        gpus::initiated(record),
        mapped::section(record),
        detail::workers(record),
        cache::section(record),
        watched::section(record),
        detail::outside_the_clock(record),
        warnings::section(record),
    ] {
        page.push(part);
    }
    page
}

/// The answers of loads that have a question, as the first lines of a text.
pub(crate) fn answers(record: &Record) -> impl Iterator<Item = Section> + use<> {
    let of_feeds = [feed::most(record), feed::answers(record), feed::levels(record)];
    of_feeds.into_iter().chain(checkpoint::answers(record))
}

/// The answers of all loads as the first words of a report; without those of training feeds, which
/// many records count together, if these are `counted`.
pub(crate) fn answers_in_words(record: &Record, counted: bool) -> Vec<String> {
    let of_feeds = if counted { Vec::new() } else { feed::answers_in_words(record) };
    let all = [
        feed::most_in_words(record),
        of_feeds,
        feed::levels_in_words(record),
        checkpoint::in_words(record),
        loads::ranges_in_words(record),
        loads::replays_in_words(record),
    ];
    let stopped = |words: String| if words.ends_with('.') { words } else { words + "." };
    all.into_iter().flatten().map(stopped).collect()
}

/// Lines of special loads, which texts and pages share: computations beside them, what they came
/// to, and MLPerf's rules; on a run's own screen the first of them.
pub(crate) fn of_loads(record: &Record, screen: bool) -> [Section; 8] {
    [
        beside::section(record),
        loads::ranges(record),
        loads::replay(record),
        if screen { Section::default() } else { loads::times(record) },
        feed::tries(record),
        feed::section(record, screen),
        feed::key_values(record, screen),
        mlperf::of_mlperf(record, screen),
    ]
}

/// Before a path in a narrow table and before a job: its figures are of the software GPU.
const SOFT: &str = "soft:";

/// A job's name as the label of its lines, which says so where it uses the software GPU.
fn label(plan: &JobPlan) -> String {
    format!("{}{}", if plan.uses_software_gpu() { SOFT } else { "" }, plan.name)
}

/// Characters of the longest label of a job.
fn label_width(record: &Record) -> usize {
    jobs(record).map(|(plan, _)| label(plan).chars().count()).max().unwrap_or(0)
}

/// Lines of jobs, each behind its job's label. Where each job has one, jobs share what is the same.
fn of_jobs<'r>(
    record: &Record,
    title: &str,
    lines: impl IntoIterator<Item = (&'r str, String)>,
) -> Section {
    let named = |job: &str| jobs(record).find(|(plan, _)| plan.name == job);
    let soft = |job: &str| named(job).is_some_and(|(plan, _)| plan.uses_software_gpu());
    let label = |job: &str| named(job).map_or_else(|| job.to_owned(), |(plan, _)| label(plan));
    let lines: Vec<(&str, String)> = lines.into_iter().collect();
    let one_each = unique(lines.iter().map(|(job, _)| job)).len() == lines.len();
    let lines: Vec<(String, String)> = match one_each {
        true => grouped(lines.into_iter().map(|(job, words)| ((words, soft(job)), label(job))))
            .into_iter()
            .map(|((words, _), jobs)| (jobs.join(", "), words))
            .collect(),
        false => lines.into_iter().map(|(job, words)| (label(job), words)).collect(),
    };
    let width = lines.iter().map(|(job, _)| job.chars().count()).max().unwrap_or(0);
    let item = |(job, words): (String, String)| Item::new(format!("{job:width$}  "), words);
    let mut section = Section::new("", title);
    let layout = Layout { indent: 2, wide: true, ..Layout::default() };
    section.list(List::new(layout, lines.into_iter().map(item)));
    section
}
