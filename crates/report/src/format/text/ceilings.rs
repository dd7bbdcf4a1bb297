//! The measured ceilings, and why some are missing.

use gpuio_base::document::{Cell, Columns, Item, Layout, List, Section, grouped};
use gpuio_record::{Ceiling, CeilingSource, JobPlan, JobResult, OfCeiling, Record};

use super::SOFTWARE_GPU;
use crate::ceilings::source;
use crate::number::count;
use crate::verification::Checked;
use crate::workload::jobs;

/// A row per measured ceiling with its remarks, and a line for each that could not be measured.
pub(super) fn section(record: &Record) -> Section {
    let mut section = Section::new("", "ceilings, measured after the jobs:");
    let found: Vec<&Ceiling> =
        record.ceilings.iter().filter(|ceiling| ceiling.bytes_per_s.is_some()).collect();
    let table = Columns::<Ceiling>::new()
        .words("ceiling", |one| match one.plan.software_gpu {
            true => format!("{}, {SOFTWARE_GPU}", one.plan.name),
            false => one.plan.name.clone(),
        })
        .figures("threads", |one| one.plan.threads)
        .figures("throughput", |one| one.bytes_per_s.map(Cell::rate))
        .figures("IOPS", |one| one.iops.map(Cell::count))
        .words("from", |one| source(&one.plan.source))
        .table("ceilings", found.iter().copied());
    section.table(table);
    let remarks = found
        .iter()
        .filter_map(|one| Some(Item::new(one.plan.name.as_str(), one.detail.as_deref()?)));
    section.list(List::new(Layout { indent: 2, ..Layout::labels(0) }, remarks));
    let absent =
        record.ceilings.iter().filter_map(|one| Some((one.why.as_ref()?, &*one.plan.name)));
    // Those with the same reason together.
    let absent = grouped(absent)
        .into_iter()
        .map(|(why, names)| Item::new("unknown", format!("{}: {why}", names.join("; "))));
    let items = absent.chain(restored(record)).chain(above(record));
    section.list(List::new(Layout::labels(0), items));
    section
}

/// Passes that restored a pattern and found wrong data, or did not finish.
fn restored(record: &Record) -> impl Iterator<Item = Item> {
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
        let label = if checked.is_bad() { "wrong data" } else { "not verified" };
        Some(Item::new(label, text))
    };
    record.ceilings.iter().filter_map(line)
}

/// Why results can exceed their ceilings.
fn above(record: &Record) -> Option<Item> {
    let over = |of: &OfCeiling| of.percent > 100.0;
    let above = |(plan, job): &(&JobPlan, &JobResult)| {
        plan.directions().iter().any(|side| side.of(job).of_ceiling.as_ref().is_some_and(over))
    };
    if !jobs(record).any(|job| above(&job)) {
        return None;
    }
    let shared = record.ceilings.iter().any(|ceiling| {
        matches!(ceiling.plan.source, CeilingSource::Result { .. }) && ceiling.why.is_none()
    });
    let other = if shared { "or taken from another job" } else { "not during the job" };
    let text = format!(
        "the ceiling was measured at another time, {other}: caches, clock rates and other load \
         may have differed. Read a value above 100 % as: at the ceiling."
    );
    Some(Item::new("above 100 %", text))
}
