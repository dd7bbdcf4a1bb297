//! Device activity during the jobs, as lines and tables of a report.
//!
//! A figure's key ends in its unit (`read_bytes_per_second`), so a new probe needs no change here:
//! without an entry in [`CHOSEN`], all of its figures are shown.

use gpuio_base::document::{Cell, Columns, Section, Table, Text, Tone, grouped, unique};
use gpuio_base::units::{format_duration_ns, human_ns};
use gpuio_record::metric::Unit;
use gpuio_record::{DeviceSeries, FigureSeries, Record, WatchedGroup};

use super::{Set, series};
use crate::number::{self, count, float, many, times};

/// The figures of a probe that get a column and a line, in this order. Others are only in the
/// record.
const CHOSEN: &[(&str, &[&str])] = &[
    (
        "block",
        &[
            "read_bytes_per_second",
            "written_bytes_per_second",
            "reads_per_second",
            "writes_per_second",
            "read_await_seconds",
            "write_await_seconds",
            "queue",
            "busy_percent",
        ],
    ),
    (
        "gpu",
        &[
            "pcie_received_bytes_per_second",
            "pcie_sent_bytes_per_second",
            "kernels_percent",
            "memory_percent",
            "memory_used_bytes",
            "bar1_used_bytes",
        ],
    ),
    ("interface", &["received_bytes_per_second", "sent_bytes_per_second", "errors", "dropped"]),
    (
        "rdma",
        &["received_bytes_per_second", "sent_bytes_per_second", "receive_errors", "send_discards"],
    ),
    (
        "nfs",
        &[
            "read_bytes_per_second",
            "written_bytes_per_second",
            "reads_per_second",
            "writes_per_second",
            "read_round_trip_seconds",
            "write_round_trip_seconds",
        ],
    ),
    (
        "nvidia_fs",
        &[
            "read_bytes_per_second",
            "written_bytes_per_second",
            "reads_per_second",
            "writes_per_second",
            "errors",
        ],
    ),
    ("cpu", &["user_percent", "system_percent", "interrupt_percent", "io_wait_percent"]),
    ("page_cache", &["cached_bytes", "dirty_bytes", "writeback_bytes"]),
    ("process", &["cpu_percent"]),
];

/// Marks a GPU by 1 if its PCIe rates are the driver's sample of the last 20 ms.
const SAMPLED: &str = "pcie_sampled";

/// Unit and factor by the end of a key; the longest end comes first.
const ENDS: &[(&str, Unit, f64)] = &[
    ("_bytes_per_second", Unit::BytesPerSecond, 1.0),
    ("_per_second", Unit::PerSecond, 1.0),
    ("_seconds", Unit::Nanoseconds, 1e9),
    ("_percent", Unit::Percent, 1.0),
    ("_bytes", Unit::Bytes, 1.0),
];

/// A figure of a device, as it is shown.
pub(super) struct Shown<'a> {
    pub(super) label: String,
    pub(super) unit: Unit,
    factor: f64,
    series: &'a FigureSeries,
}

impl Shown<'_> {
    /// Its values per interval, in its unit.
    pub(super) fn values(&self) -> impl Iterator<Item = Option<f64>> {
        self.series.values.iter().map(|value| value.map(|value| value * self.factor))
    }
}

/// A device's name in lists of several kinds.
pub(super) fn name(device: &DeviceSeries) -> String {
    match device.probe.as_str() {
        "cpu" => format!("CPUs, {}", device.device),
        _ => device.device.clone(),
    }
}

/// The displayed figures of a device, in order.
pub(super) fn shown(device: &DeviceSeries) -> Vec<Shown<'_>> {
    let find = |key: &&str| device.figures.iter().find(|figure| figure.key == **key);
    let chosen = CHOSEN.iter().find(|(probe, _)| *probe == device.probe);
    let figures: Vec<&FigureSeries> = match chosen {
        Some((_, keys)) => keys.iter().filter_map(find).collect(),
        None => device.figures.iter().collect(),
    };
    let sampled = device.figures.iter().any(|one| {
        one.key == SAMPLED && one.values.iter().chain([&one.whole]).flatten().any(|is| *is > 0.0)
    });
    figures.into_iter().map(|series| of_series(series, sampled)).collect()
}

fn of_series(series: &FigureSeries, sampled: bool) -> Shown<'_> {
    let known = ENDS.iter().find_map(|(end, unit, factor)| {
        let stem = series.key.strip_suffix(end)?;
        Some((stem, *unit, *factor))
    });
    let (stem, unit, factor) = known.unwrap_or((&series.key, Unit::Count, 1.0));
    let mut label = stem.replace('_', " ").replace("pcie", "PCIe").replace("bar1", "BAR1");
    if sampled && stem.starts_with("pcie_") {
        label.push_str(" (last 20 ms)");
    }
    Shown { label, unit, factor, series }
}

/// The group that a job ran in.
pub(super) fn group(record: &Record, group: u32) -> Option<&WatchedGroup> {
    record.watched.as_ref()?.groups.iter().find(|known| known.group == group)
}

/// Whether some figure of a device is known and all are 0.
fn idle(shown: &[Shown<'_>]) -> bool {
    let mut known = shown.iter().filter_map(|one| one.series.whole).peekable();
    known.peek().is_some() && known.all(|value| value == 0.0)
}

/// A device over a whole group.
struct Whole<'a> {
    during: String,
    device: &'a str,
    shown: Vec<Shown<'a>>,
}

/// How often devices were sampled, and a table for each kind of them with at most so many rows, in
/// the order in which kinds come.
pub(super) fn section(set: &Set, most: usize) -> Section {
    let mut section = Section::new("devices", "Devices").fold(false);
    let Some(sampler) = sampler(set) else { return section };
    section.paragraph(Text::from(sampler + " ").and(Tone::Quiet, MEANING));
    let several = set.members.len() > 1;
    let mut all: Vec<(&str, Whole<'_>)> = Vec::new();
    for member in &set.members {
        let groups = member.record.watched.iter().flat_map(|watched| &watched.groups);
        for group in groups {
            let jobs = jobs(&member.record, group.group);
            let during = if several { format!("{} · {jobs}", member.name) } else { jobs };
            all.extend(group.devices.iter().map(|device| {
                let (during, shown) = (during.clone(), shown(device));
                (device.probe.as_str(), Whole { during, device: &device.device, shown })
            }));
        }
    }
    for (kind, devices) in grouped(all) {
        let all = devices.len();
        let busy: Vec<Whole<'_>> = devices.into_iter().filter(|one| !idle(&one.shown)).collect();
        let idle = all - busy.len();
        let title = title(kind);
        section.paragraph(format!("{title}:"));
        let mut table = table(title, &busy);
        let more = table.cut(most);
        section.table(table);
        for (count, one, many) in [
            (more, "One more is in the records.", "more are in the records."),
            (idle, "One idle device is not shown.", "rows of idle devices are not shown."),
        ] {
            match count {
                0 => {}
                1 => drop(section.paragraph(one)),
                rows => drop(section.paragraph(format!("{} {many}", number::count(rows as u64)))),
            }
        }
    }
    section
}

/// A column for each figure that some of the devices have.
fn table(title: String, devices: &[Whole<'_>]) -> Table {
    let heads = unique(devices.iter().flat_map(|one| one.shown.iter().map(head)));
    let columns = Columns::<Whole<'_>>::new()
        .words("during", |one| one.during.clone())
        .words("device", |one| one.device.to_owned());
    let columns = heads.into_iter().fold(columns, |columns, known| {
        columns.figures(known.clone(), move |one| {
            let found = one.shown.iter().find(|one| head(one) == known)?;
            let value = found.series.whole? * found.factor;
            Some(Cell::shown(found.unit.print(value), value))
        })
    });
    columns.table(title, devices)
}

/// The names of a group's jobs; of many, the first and their number.
fn jobs(record: &Record, group: u32) -> String {
    let of_group = record.plan.jobs.iter().filter(|job| job.group == group);
    let names: Vec<&str> = of_group.map(|job| job.name.as_str()).collect();
    match names.as_slice() {
        [] => format!("group {group}"),
        [first, rest @ ..] if rest.len() > 3 => format!("{first} and {} more", rest.len()),
        few => few.join(", "),
    }
}

/// A label with its unit, if the cells do not show it.
fn head(one: &Shown<'_>) -> String {
    match one.unit {
        Unit::Percent => format!("{} %", one.label),
        Unit::PerSecond => format!("{} /s", one.label),
        _ => one.label.clone(),
    }
}

/// How often devices were sampled, and the cost; `None` if they were not.
fn sampler(set: &Set) -> Option<String> {
    let all: Vec<_> =
        set.members.iter().filter_map(|member| member.record.watched.as_ref()).collect();
    let first = all.first()?;
    let every = match all.iter().any(|one| one.interval_ns != first.interval_ns) {
        true => "at several intervals".to_owned(),
        false => format!("every {}", format_duration_ns(first.interval_ns)),
    };
    let samples = times(all.iter().map(|one| one.samples).sum());
    let known: Vec<_> = all.iter().filter_map(|one| Some((one, one.cpu_ns?))).collect();
    let cost = match known.as_slice() {
        [] => "its CPU time is unknown".to_owned(),
        known => {
            let cpu: u64 = known.iter().map(|(_, cpu)| cpu).sum();
            let groups = known.iter().flat_map(|(one, _)| &one.groups);
            let time: u64 = groups.map(WatchedGroup::length_ns).sum();
            let share = if time > 0 { float(cpu) / float(time) * 100.0 } else { 0.0 };
            format!(
                "sampling took {} of CPU time in {}, {share:.2} % of one CPU",
                human_ns(float(cpu)),
                human_ns(float(time))
            )
        }
    };
    let rest = all.len() - known.len();
    let rest = match (rest, known.is_empty()) {
        (0, _) | (_, true) => String::new(),
        _ => {
            let records = many(rest as u64, "record has|records have");
            format!(" ({records} no figure for it)")
        }
    };
    Some(format!("Devices were sampled {every}, {samples}; {cost}{rest}."))
}

/// The meaning of the tables over whole groups.
const MEANING: &str = "Figures cover a whole group of jobs including the ramp, and all \
    programs that used the device during that time. GPU activity, memory and page cache are the \
    last value. A dash means unknown.";

/// Why some device series are not drawn; `None` if all are.
pub(super) fn absent(set: &Set) -> Option<String> {
    let watched = set.members.iter().flat_map(|member| &member.record.watched);
    let values: usize = watched.flat_map(|one| &one.groups).map(series::values).sum();
    if values > series::MOST_VALUES {
        return Some(format!(
            "Device series of all jobs: of {} values, the page holds those of the first jobs, at \
             most {}; the records have all.",
            count(values as u64),
            count(series::MOST_VALUES as u64)
        ));
    }
    let without = set.members.iter().filter(|member| member.record.watched.is_none()).count();
    let all = set.members.len();
    match without {
        0 => None,
        _ if without == all => {
            Some("Device series: the devices of these runs were not sampled.".to_owned())
        }
        _ => Some(format!(
            "Device series: none in {without} of {all} records; the first is {}.",
            set.members
                .iter()
                .find(|member| member.record.watched.is_none())
                .map_or("", |member| member.name.as_str())
        )),
    }
}

fn title(kind: &str) -> String {
    match kind {
        "block" => "Block devices".to_owned(),
        "gpu" => "GPUs".to_owned(),
        "interface" => "Network interfaces".to_owned(),
        "rdma" => "RDMA ports".to_owned(),
        "nfs" => "NFS mounts".to_owned(),
        "cpu" => "Processors".to_owned(),
        "page_cache" => "Page cache".to_owned(),
        other => other.replace('_', "-"),
    }
}
