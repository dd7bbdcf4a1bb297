//! Text for people.

mod beside;
mod cache;
mod ceilings;
mod detail;
mod expected;
mod feed;
mod flushes;
mod gpus;
pub(crate) mod header;
mod mapped;
mod proof;
mod ranges;
mod ranks;
mod repeat;
mod replay;
mod steady;
mod stonewall;
mod table;
mod trouble;
mod verification;
pub(crate) mod warnings;
mod watched;

use gpuio_base::units::printable_lines;
use gpuio_record::Record;

use crate::printable;

/// Marks results that no hardware produced.
pub(crate) const SOFTWARE_GPU: &str = "software GPU";

/// Width limit of paragraphs: long lines read badly.
pub(super) const PARAGRAPH_WIDTH: u16 = 100;

/// The record for people, `width` columns wide (below 80 the tables may be wider).
///
/// Order: what ran, when and where; whether the run is complete; one table with a row per job and
/// direction, a total per group of several jobs and a row per path that can't run here (latencies
/// in a table of their own if one does not fit), and its legend; several ranks; failures and
/// verification; ceilings, if requested; steady state and flushes, if requested; rates at a
/// stonewall; what a job and a GPU computation cost each other; files that were read whole, parts
/// of larger loads, jobs that ran several times, training feeds; expected performance, if known;
/// evidence of jobs whose actual path differs from the requested one; the legs of paths that have
/// more than one, the bytes of each GPU and through an intermediate GPU, what was mapped for a GPU
/// to read by itself, when workers finished; page cache and storage;
/// device activity during the run; times that are not measured; warnings, the most severe first.
/// Reads only the record; ends in a line feed. No colours and no control characters but the line
/// feed.
#[must_use]
pub fn render_text(record: &Record, width: u16) -> String {
    render(record, width, Show::default())
}

/// What text shows on demand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Show {
    /// The evidence for every job and its readings.
    pub evidence: bool,
    /// A row for each rank, in the record of several.
    pub per_rank: bool,
}

/// As [`render_text`], with more on demand.
#[must_use]
pub fn render_text_with(record: &Record, width: u16, show: Show) -> String {
    render(record, width, show)
}

/// As [`render_text`], with the evidence for every job and its readings.
#[must_use]
pub fn render_text_with_evidence(record: &Record, width: u16) -> String {
    render(record, width, Show { evidence: true, per_rank: false })
}

fn render(record: &Record, width: u16, show: Show) -> String {
    let Show { evidence, per_rank } = show;
    // Names come from users, devices and other people's files.
    let record = &printable::record(record);
    let mut out = header::render(record, width);
    out.push('\n');
    out.push_str(&table::render(record, width));
    for part in [
        table::legend(record, width),
        ranks::render(record, width, per_rank),
        trouble::failures(record, width),
        verification::render(record, width),
        ceilings::render(record, width),
        steady::render(record, width),
        stonewall::render(record, width),
        flushes::render(record),
        beside::render(record, width),
        ranges::render(record, width),
        replay::render(record, width),
        repeat::parts(record, width),
        repeat::times(record, width),
        feed::render(record, width),
        expected::render(record, width, evidence),
        proof::render(record, width, evidence),
        detail::legs(record, width),
        gpus::parts(record, width),
        gpus::intermediate(record, width),
        gpus::fanned_out(record, width),
        mapped::render(record, width),
        detail::workers(record, width),
        cache::render(record, width),
        watched::render(record, width),
        detail::outside_the_clock(record, width),
        warnings::render(record, width),
    ] {
        if !part.is_empty() {
            out.push('\n');
            out.push_str(&part);
        }
    }
    printable_lines(&out).into_owned()
}
