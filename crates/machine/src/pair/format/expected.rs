//! The expected rates of pairs.

use gpuio_base::document::{Columns, List, Look, Section};
use gpuio_base::units::{human_count, human_decimal_rate, human_ns};
use gpuio_record::Expected;

use super::text::alike;
use super::together;
use crate::pair::{By, Pair, Pairing};

/// The common text of pairs with the same figures.
#[derive(PartialEq)]
struct Figures {
    throughput: String,
    iops: String,
    by: &'static str,
    floor: String,
    limits: Vec<String>,
}

/// A line for each pair or for several that are alike, the total, and what limits them; nothing
/// where nothing was computed.
pub(super) fn section(pairing: &Pairing, section: &mut Section) {
    let Some(total) = &pairing.total else { return };
    let mut rows: Vec<(String, Option<Figures>)> = Vec::new();
    let mut limits: Vec<String> = Vec::new();
    for (found, names) in alike(&pairing.pairs, figures) {
        let who = together(&names);
        let lines = found.iter().flat_map(|one| &one.limits);
        limits.extend(lines.map(|line| format!("{who}: {line}")));
        rows.push((if names.len() > 1 { format!("{who}, each") } else { who }, found));
    }
    let (by, floor, none) = ("", String::new(), Vec::new());
    let (throughput, iops) = (throughput(total), iops(total));
    rows.push(("all".to_owned(), Some(Figures { throughput, iops, by, floor, limits: none })));
    let cell = |of: fn(&Figures) -> &str| {
        move |(_, one): &(String, Option<Figures>)| {
            one.as_ref().map_or_else(String::new, |one| of(one).to_owned())
        }
    };
    let table = Columns::<(String, Option<Figures>)>::new()
        .words("", |(who, _)| who.clone())
        .key("pairs")
        .words("throughput", cell(|one| &one.throughput))
        .words("IOPS", cell(|one| &one.iops))
        .words("basis", cell(|one| one.by))
        .words("latency at least", cell(|one| &one.floor));
    section.table(table.table("expected", rows).look(Look::Indented(2)));
    section.list(List::of(2, limits));
}

fn figures(pair: &Pair) -> Option<Figures> {
    let one = pair.expected.as_ref()?;
    let by = match one.by {
        By::Direct => "direct",
        By::HostMemory if pair.gpu.is_none() => "to host memory",
        By::HostMemory => "through host memory",
    };
    let floor = one.expected.latency_floor_ns.map_or("?".to_owned(), human_ns);
    let (throughput, iops) = (throughput(&one.expected), iops(&one.expected));
    Some(Figures { throughput, iops, by, floor, limits: limit(&one.expected) })
}

pub(crate) fn throughput(expected: &Expected) -> String {
    match (expected.bytes_per_s, expected.at_most) {
        (Some(rate), _) => human_decimal_rate(rate),
        (None, Some(most)) => format!("? (at most {})", human_decimal_rate(most)),
        (None, None) => "?".to_owned(),
    }
}

pub(crate) fn iops(expected: &Expected) -> String {
    expected.iops.map_or("?".to_owned(), human_count)
}

/// Its bottleneck, or the missing facts.
fn limit(expected: &Expected) -> Vec<String> {
    let bound = if expected.bytes_per_s.is_some() { "limited by" } else { "bounded by" };
    let bottleneck = expected.bottleneck.iter().map(|what| format!("{bound} {what}"));
    let unknown = expected.unknown.iter().map(|why| format!("unknown: {why}"));
    bottleneck.chain(unknown).collect()
}
