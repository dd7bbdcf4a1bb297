//! What pairs should reach.

use gpuio_base::units::{human_count, human_decimal_rate, human_ns};
use gpuio_record::Expected;
use gpuio_table::indented_columns;

use super::text::alike;
use super::together;
use crate::pair::{By, Pairing};

/// A line for each pair or for several that are alike, the total, and what limits them; empty
/// where nothing was computed.
pub(super) fn text(pairing: &Pairing) -> String {
    let Some(total) = &pairing.total else { return String::new() };
    let groups = alike(&pairing.pairs, |pair| {
        let Some(one) = &pair.expected else { return String::new() };
        let by = match one.by {
            By::Direct => "direct",
            By::HostMemory if pair.gpu.is_none() => "to host memory",
            By::HostMemory => "through host memory",
        };
        let floor = one.expected.latency_floor_ns.map_or("?".to_owned(), human_ns);
        format!("{}\t{by}\t{floor}\n{}", rates(&one.expected), limit(&one.expected).join("\n"))
    });
    let heading = ["", "throughput", "IOPS", "basis", "latency at least"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mut limits: Vec<String> = Vec::new();
    for (text, names) in groups {
        let who = together(&names);
        let each = if names.len() > 1 { format!("{who}, each") } else { who.clone() };
        let mut lines = text.lines();
        let cells = lines.next().unwrap_or_default().split('\t').map(str::to_owned);
        rows.push(std::iter::once(each).chain(cells).collect());
        limits.extend(lines.map(|line| format!("  {who}: {line}\n")));
    }
    let mut last = vec!["all".to_owned()];
    last.extend(rates(total).split('\t').map(str::to_owned));
    rows.push(last);
    indented_columns(&rows) + &limits.concat()
}

/// Throughput and IOPS as two cells.
fn rates(expected: &Expected) -> String {
    let iops = expected.iops.map_or("?".to_owned(), human_count);
    match (expected.bytes_per_s, expected.at_most) {
        (Some(rate), _) => format!("{}\t{iops}", human_decimal_rate(rate)),
        (None, Some(most)) => format!("? (at most {})\t{iops}", human_decimal_rate(most)),
        (None, None) => format!("?\t{iops}"),
    }
}

/// What limits it, or what is not known.
fn limit(expected: &Expected) -> Vec<String> {
    let bound = if expected.bytes_per_s.is_some() { "limited by" } else { "bounded by" };
    let bottleneck = expected.bottleneck.iter().map(|what| format!("{bound} {what}"));
    let unknown = expected.unknown.iter().map(|why| format!("unknown: {why}"));
    bottleneck.chain(unknown).collect()
}
