//! The measured ceilings, and why some are missing.

use gpuio_record::{Ceiling, CeilingSource, Record};

use super::{PARAGRAPH_WIDTH, SOFTWARE_GPU};
use crate::ceilings::source;
use crate::number::{NONE, count, iops, throughput};
use crate::verification::Checked;
use crate::workload::jobs;
use crate::wrap::paragraph;
use gpuio_table::{Grid, figures, words};

/// A row per measured ceiling with its remarks, and a line for each that could not be measured.
pub(super) fn render(record: &Record, width: u16) -> String {
    if record.ceilings.is_empty() {
        return String::new();
    }
    let wide = width.min(PARAGRAPH_WIDTH);
    let mut out = String::from("ceilings, measured after the jobs:\n");
    let found: Vec<&Ceiling> =
        record.ceilings.iter().filter(|ceiling| ceiling.bytes_per_s.is_some()).collect();
    if !found.is_empty() {
        out.push_str(&grid(&found).at_any_width(width));
    }
    for ceiling in &found {
        if let Some(detail) = &ceiling.detail {
            out.push_str(&paragraph(&format!("  {}: ", ceiling.plan.name), detail, wide));
        }
    }
    out.push_str(&absent(record, wide));
    out.push_str(&restored(record, wide));
    out.push_str(&above(record, wide));
    out
}

fn grid(found: &[&Ceiling]) -> Grid {
    let row = |ceiling: &&Ceiling| {
        let plan = &ceiling.plan;
        let mark = if plan.software_gpu { format!(", {SOFTWARE_GPU}") } else { String::new() };
        vec![
            format!("{}{mark}", plan.name),
            plan.threads.map_or_else(|| NONE.to_owned(), |threads| threads.to_string()),
            ceiling.bytes_per_s.map_or_else(|| NONE.to_owned(), throughput),
            ceiling.iops.map_or_else(|| NONE.to_owned(), iops),
            source(&plan.source),
        ]
    };
    let columns = vec![
        words("ceiling"),
        figures("threads"),
        figures("throughput"),
        figures("IOPS"),
        words("from"),
    ];
    Grid { columns, rows: found.iter().map(row).collect() }
}

/// Ceilings without a figure, those with the same reason in one paragraph.
fn absent(record: &Record, width: u16) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for ceiling in &record.ceilings {
        let Some(why) = &ceiling.why else { continue };
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) => names.push(&ceiling.plan.name),
            None => reasons.push((why, vec![&ceiling.plan.name])),
        }
    }
    let line = |(why, names): (&str, Vec<&str>)| {
        paragraph("unknown: ", &format!("{}: {why}", names.join("; ")), width)
    };
    reasons.into_iter().map(line).collect()
}

/// Passes that restored a pattern and found wrong data, or did not finish.
fn restored(record: &Record, width: u16) -> String {
    let line = |ceiling: &Ceiling| {
        let found = ceiling.restored.as_ref()?;
        let checked: Checked = [found].into_iter().collect();
        let trouble = checked.trouble()?;
        let first = found.mismatches.first();
        let first = first.map(|one| format!("; first: {} at byte {}", one.path, count(one.offset)));
        let text = format!(
            "{}: the pass that restored the pattern: {trouble}{}",
            ceiling.plan.name,
            first.unwrap_or_default()
        );
        let label = if checked.is_bad() { "wrong data: " } else { "not verified: " };
        Some(paragraph(label, &text, width))
    };
    record.ceilings.iter().filter_map(line).collect()
}

/// Why a result can exceed its ceiling.
fn above(record: &Record, width: u16) -> String {
    let over = |of: &gpuio_record::OfCeiling| of.percent > 100.0;
    let any = jobs(record).any(|(plan, job)| {
        plan.directions().iter().any(|side| side.of(job).of_ceiling.as_ref().is_some_and(over))
    });
    if !any {
        return String::new();
    }
    let shared = record.ceilings.iter().any(|ceiling| {
        matches!(ceiling.plan.source, CeilingSource::Result { .. }) && ceiling.why.is_none()
    });
    let other = if shared { "or taken from another job" } else { "not during the job" };
    let text = format!(
        "the ceiling was measured at another time, {other}: caches, clock rates and other load \
         may have differed. Read a value above 100 % as: at the ceiling."
    );
    paragraph("above 100 %: ", &text, width)
}
