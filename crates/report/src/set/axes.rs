//! The properties in which rows differ: plots, tables and filters sort rows by them.

use std::collections::BTreeMap;

use gpuio_base::units::{format_bytes, format_duration_ns};
use gpuio_record::facts::{BlockFacts, TargetStorage};
use gpuio_record::{
    DirectMode, Distribution, FeedPlan, JobPlan, Order, RanksResult, TargetKind, VerifyMode,
};

use super::rows::Row;
use super::{Set, chosen, knee};
use crate::compare::job::block_words;
use crate::compare::keys;
use crate::expected;
use crate::format::text::header;
use crate::number::float;
use crate::workload::{actual_engine, block_bounds, load_word, paced, sizes_short};

/// One value: its text, and its number if it is one.
pub(super) type Place = (String, Option<f64>);

/// The meaning of a difference on an axis for a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Another load or machine: not combined in a figure unless the figure shows the axis.
    Load,
    /// A consequence of the load, or the job: one value at each mark of a figure.
    CameAlong,
    /// A name: repeats of a load differ in it.
    Name,
}

/// One property in which rows differ.
pub(super) struct Axis {
    /// Short name, unique.
    pub(super) key: String,
    /// Name for people.
    pub(super) label: String,
    /// Whether a page offers it as a filter.
    pub(super) filter: bool,
    /// The meaning of a difference on it.
    pub(super) role: Role,
    place: Source,
}

enum Source {
    Row(fn(&Row<'_>) -> Place),
    Sweep(String),
}

impl Axis {
    pub(super) fn place(&self, row: &Row<'_>) -> Place {
        match &self.place {
            Source::Row(place) => place(row),
            Source::Sweep(key) => {
                let at = row.member.at.iter().find(|(name, _)| name == key);
                let number = at.and_then(|(key, value)| knee::number(key, value));
                (at.map_or_else(|| "-".to_owned(), |(_, value)| value.clone()), number)
            }
        }
    }
}

/// An axis with the value of every row.
pub(super) struct Column {
    pub(super) key: String,
    pub(super) label: String,
    pub(super) filter: bool,
    pub(super) role: Role,
    /// The texts of the values: sorted by number if all have one, else in the order of rows, values
    /// with a number first.
    pub(super) words: Vec<String>,
    /// The numbers of the values, if all have one.
    pub(super) numbers: Option<Vec<f64>>,
    /// For each row the index of its value.
    pub(super) of: Vec<usize>,
}

pub(super) fn columns(set: &Set, rows: &[Row<'_>]) -> Vec<Column> {
    axes(set).into_iter().map(|axis| column(axis, rows)).collect()
}

fn column(axis: Axis, rows: &[Row<'_>]) -> Column {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut places: Vec<Place> = Vec::new();
    let mut of = Vec::with_capacity(rows.len());
    for row in rows {
        let (words, number) = axis.place(row);
        let at = *known.entry(words.clone()).or_insert_with(|| {
            places.push((words, number));
            places.len() - 1
        });
        of.push(at);
    }
    let by_number = |at: usize| places[at].1.unwrap_or(f64::INFINITY);
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| by_number(*a).total_cmp(&by_number(*b)));
    let mut rank = vec![0; places.len()];
    order.iter().enumerate().for_each(|(nth, place)| rank[*place] = nth);
    Column {
        words: order.iter().map(|at| places[*at].0.clone()).collect(),
        numbers: order.iter().map(|at| places[*at].1).collect(),
        of: of.into_iter().map(|at| rank[at]).collect(),
        key: axis.key,
        label: axis.label,
        filter: axis.filter,
        role: axis.role,
    }
}

type Known = (&'static str, &'static str, bool, Role, fn(&Row<'_>) -> Place);

/// The value of a depth that was not set: its number came from the path and the block size.
const OURS: &str = "automatic";

fn depth(row: &Row<'_>) -> Place {
    match chosen::depth_is_ours(row) {
        true => (OURS.to_owned(), None),
        false => (row.plan.depth.to_string(), Some(f64::from(row.plan.depth))),
    }
}

/// Axes of sets with records of several ranks.
const RANKS: &str = "ranks";
const HOSTS: &str = "hosts";
const SETTINGS: &str = "settings";
const JOB: &str = "job";

/// Axes whose values follow from others that a figure shows or fixes, or only name them.
const SAID_BY_OTHERS: [&str; 3] = [HOSTS, SETTINGS, JOB];

impl Column {
    /// Whether marks that a figure joins by a line have to be alike in it.
    pub(super) fn parts_lines(&self) -> bool {
        self.role == Role::CameAlong && !SAID_BY_OTHERS.contains(&self.key.as_str())
    }
}

/// A number of ranks or hosts; one process has one of each.
fn of_ranks(row: &Row<'_>, number: fn(&RanksResult) -> usize) -> Place {
    let number = row.record.ranks.as_ref().map_or(1, number);
    (number.to_string(), Some(float(number as u64)))
}

/// The axes of every record. The first chooses the colours. Axes of the load come before those that
/// follow from it, so that figures fix them first. Keys of job files that are in none are named in
/// a test where the keys are (`distinguished` in `job`).
const AXES: &[Known] = &[
    ("path", "path", true, Role::Load, |row| (row.plan.path.choice.actual.clone(), None)),
    ("direction", "direction", true, Role::Load, |row| (row.direction.name().to_owned(), None)),
    ("load", "load", true, Role::Load, |row| (load_word(row.plan), None)),
    ("block", "block size", true, Role::Load, |row| {
        // Several sizes have no place among single ones.
        let (min, max) = block_bounds(row.plan.sizes());
        (sizes_short(row.plan), (min == max).then(|| float(max)))
    }),
    ("threads", "threads", true, Role::Load, |row| {
        (row.plan.threads.to_string(), Some(f64::from(row.plan.threads)))
    }),
    ("depth", "depth per thread", true, Role::Load, depth),
    (RANKS, "ranks", true, Role::Load, |row| of_ranks(row, |all| all.ranks as usize)),
    (HOSTS, "hosts", true, Role::CameAlong, |row| of_ranks(row, |all| all.hosts.len())),
    (SETTINGS, "other settings", true, Role::Load, |row| match settings(row).as_slice() {
        [] => ("none".to_owned(), None),
        words => (words.join(", "), None),
    }),
    ("machine", "machine", true, Role::Load, |row| (header::host(&row.record.host), None)),
    ("opened", "opened", true, Role::CameAlong, |row| {
        let word = match row.result.direct_actual {
            DirectMode::Direct => "direct",
            DirectMode::Buffered => "buffered",
        };
        (word.to_owned(), None)
    }),
    ("taken", "path taken", true, Role::CameAlong, |row| {
        let proof = row.result.proof.as_ref();
        (proof.map_or_else(|| "unknown".to_owned(), |p| p.verdict.words.clone()), None)
    }),
    ("engine", "engine", true, Role::CameAlong, |row| (actual_engine(row.plan, row.result), None)),
    ("memory", "memory", true, Role::CameAlong, |row| (row.plan.memory.name().to_owned(), None)),
    ("gpu", "GPU", true, Role::CameAlong, |row| (gpus(row), None)),
    ("drive", "drive", true, Role::CameAlong, |row| (drives(row), None)),
    ("cufile", "cuFile settings", true, Role::CameAlong, |row| (cufile(row), None)),
    ("bottleneck", "expected bottleneck", true, Role::Name, |row| {
        let name = row.expected().and_then(|one| expected::bottleneck(&one.expected));
        (name.unwrap_or("unknown").to_owned(), None)
    }),
    (JOB, "job", true, Role::CameAlong, |row| (row.plan.name.clone(), None)),
    ("record", "record", true, Role::Name, |row| (row.member.name.clone(), None)),
];

/// Job-file keys that another axis covers.
const SAME: &[(&str, &str)] = &[("bs", "block"), ("rw", "load")];

/// The axes of a set: those of every record, then what its sweeps varied beyond them.
pub(super) fn axes(set: &Set) -> Vec<Axis> {
    let keys = || set.members.iter().flat_map(|member| &member.at).map(|(key, _)| key);
    let role = |key: &str, role: Role| match role {
        // A varied key is part of the load; settings that follow from it are not.
        Role::CameAlong if keys().any(|one| one == key) => Role::Load,
        Role::Load if key == SETTINGS && keys().next().is_some() => Role::CameAlong,
        role => role,
    };
    let any_ranks = set.members.iter().any(|member| member.record.ranks.is_some());
    let of_set = AXES.iter().filter(|axis| any_ranks || ![RANKS, HOSTS].contains(&axis.0));
    let of_all = of_set.map(|(key, label, filter, of, place)| Axis {
        key: (*key).to_owned(),
        label: (*label).to_owned(),
        filter: *filter,
        role: role(key, *of),
        place: Source::Row(*place),
    });
    let mut axes: Vec<Axis> = of_all.collect();
    for key in keys() {
        let known = SAME.iter().any(|(theirs, _)| theirs == key);
        if known || axes.iter().any(|axis| axis.key == *key) {
            continue;
        }
        axes.push(Axis {
            key: key.clone(),
            label: key.clone(),
            filter: true,
            role: Role::Load,
            place: Source::Sweep(key.clone()),
        });
    }
    axes
}

/// The key of our axis for what a job file names so.
pub(super) fn own_key(name: &str) -> &str {
    SAME.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours)
}

/// The keys of the axes that sweeps of the set varied, in their order.
pub(super) fn varied(set: &Set) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for axis in set.sweeps.iter().flat_map(|sweep| &sweep.axes) {
        let key = own_key(&axis.key);
        if axis.values.len() > 1 && !keys.iter().any(|known| known == key) {
            keys.push(key.to_owned());
        }
    }
    keys
}

/// Other settings that make the load different, each briefly.
pub(super) fn settings(row: &Row<'_>) -> Vec<String> {
    let plan = row.plan;
    let size = || format!("{} per thread", format_bytes(plan.size_bytes));
    // A feed's follows from files, samples and readers, which have words of their own.
    let has_size = is_part(plan) && plan.feed.is_none();
    let mut words: Vec<String> = has_size.then(size).into_iter().collect();
    words.extend(
        (plan.offset_bytes > 0).then(|| format!("from {}", format_bytes(plan.offset_bytes))),
    );
    let mut when = |yes: bool, word: &str| {
        if yes {
            words.push(word.to_owned());
        }
    };
    when(plan.sync, "sync");
    let layout = plan.layout.as_ref().map(|layout| layout.kind.word());
    when(plan.shared_files, layout.unwrap_or("shared files"));
    let shift = plan.layout.as_ref().and_then(|layout| layout.read_shift.as_ref());
    when(shift.is_some(), &format!("read shift {}", shift.map_or("", String::as_str)));
    when(plan.shared_fd, "shared descriptors");
    when(plan.verify == VerifyMode::Inline, "verified inline");
    when(plan.refill, "refilled");
    let repeats = plan.compressible.map(|it| format!("{} % compressible", it.percent));
    when(repeats.is_some(), repeats.as_deref().unwrap_or_default());
    let beside = plan.beside.map(|beside| format!("beside {}", beside.key()));
    when(beside.is_some(), beside.as_deref().unwrap_or_default());
    plan.feed.iter().flat_map(FeedPlan::words).for_each(|word| when(true, &word));
    let part = plan.part.as_ref().map(|part| part.words(plan));
    when(part.is_some(), part.as_deref().unwrap_or_default());
    when(plan.pre_read, "read in before");
    when(plan.invalidate, "dropped from the page cache before");
    when(plan.skew_bytes > 0, "unaligned");
    when(plan.chain, "a chain");
    words.extend(paced(plan));
    const SAID: [&str; 4] = ["layout", "read_shift", "shared_fd", "shared_files"];
    let more = keys::of(plan).into_iter().filter(|(key, _)| !SAID.contains(key));
    words.extend(more.map(|(key, value)| format!("{key} {}", value.unwrap_or_default())));
    words.extend(spread(&plan.order));
    words.extend(plan.follow.map(|follow| follow.words()));
    words.extend(plan.inject.as_ref().map(|faults| format!("faults {faults}")));
    words.extend(plan.via.as_ref().map(|via| format!("by GPU {}", via.gpu.index)));
    let set = |key: &str| plan.defaulted.as_ref().is_some_and(|keys| keys.iter().all(|k| k != key));
    if plan.streams > 0 && set("streams") {
        words.push(format!("streams {}", plan.streams));
    }
    if let Some(batch) = plan.gather_batch.filter(|_| set("gather_batch")) {
        words.push(format!("batches of {batch}"));
    }
    if let Some(rings) = plan.rings.filter(|_| set("rings")) {
        words.push(format!("rings {rings}"));
    }
    let blocks = [&plan.blocks, &plan.write_blocks].into_iter().filter(|blocks| blocks.len() > 1);
    words.extend(blocks.filter_map(|blocks| block_words(blocks)));
    words.extend((plan.ramp_ns > 0).then(|| format!("ramp {}", format_duration_ns(plan.ramp_ns))));
    words
}

/// Whether the size of a thread's region says which bytes a job uses. It follows
/// from length and number of threads of named files that are used whole.
fn is_part(plan: &JobPlan) -> bool {
    if plan.directory.is_some() {
        return true;
    }
    let regions = if plan.shared_files { 1 } else { u64::from(plan.threads) };
    let (_, block) = block_bounds(plan.sizes());
    let used = plan.size_bytes.saturating_add(block).saturating_mul(regions);
    let all: u64 = plan.targets.iter().map(|target| target.length_bytes).sum();
    plan.has_size() && plan.size_bytes > 0 && used.saturating_add(plan.offset_bytes) < all
}

/// The settings that all rows have.
pub(super) fn shared_settings(rows: &[Row<'_>]) -> Vec<String> {
    let mut all = rows.iter().map(settings);
    let first = all.next().unwrap_or_default();
    all.fold(first, |mut shared, own| {
        shared.retain(|word| own.contains(word));
        shared
    })
}

/// A load's words with the settings that they lack and that not all of a report have.
pub(super) fn with_settings(words: String, row: &Row<'_>, shared: &[String]) -> String {
    let own = settings(row).into_iter().filter(|word| !shared.contains(word));
    let lacking: Vec<String> = own.filter(|word| !words.contains(word.as_str())).collect();
    [words].into_iter().chain(lacking).collect::<Vec<_>>().join(", ")
}

/// The requested cuFile settings, on paths that use it.
fn cufile(row: &Row<'_>) -> String {
    // Only these paths have buffers to register.
    let Some(registered) = row.plan.register_buffer else { return "none".to_owned() };
    let requested = row.record.plan.cufile.iter().map(|(key, value)| format!("{key}={value}"));
    let mut words: Vec<String> = requested.collect();
    if !registered {
        words.push("buffers not registered".to_owned());
    }
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// The distribution of random offsets, if not uniform over all blocks.
fn spread(order: &Order) -> Option<String> {
    let Order::Random { distribution, coverage } = order else { return None };
    match distribution {
        Distribution::Uniform if *coverage => None,
        Distribution::Uniform => Some("offsets may repeat".to_owned()),
        other => Some(other.key().replace(':', " ")),
    }
}

/// The GPUs of a row: `GPU 0`, or several joined by `+`.
fn gpus(row: &Row<'_>) -> String {
    let name = |gpu: &gpuio_record::Gpu| match gpu.software {
        true => format!("software GPU {}", gpu.index),
        false => format!("GPU {}", gpu.index),
    };
    let names: Vec<String> = row.plan.gpus.iter().map(name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join("+") }
}

/// The storage of a row's files: kernel names of disks, or the mounted source if there is none.
fn drives(row: &Row<'_>) -> String {
    let mut names: Vec<String> = Vec::new();
    for target in &row.plan.targets {
        let name = match storage(row, &target.path, target.kind) {
            Some(place) => holder(place),
            None => "unknown".to_owned(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { "none".to_owned() } else { names.join("+") }
}

/// The facts about a target's location: of the device itself, or of the file's directory.
fn storage<'a>(row: &Row<'a>, path: &str, kind: TargetKind) -> Option<&'a TargetStorage> {
    let places = &row.record.storage;
    let place = match (kind, path.rsplit_once('/')) {
        (TargetKind::BlockDevice, _) => path,
        (TargetKind::File, Some(("", _))) => "/",
        (TargetKind::File, Some((parent, _))) => parent,
        (TargetKind::File, None) => ".",
    };
    places.iter().find(|known| known.path == place)
}

fn holder(place: &TargetStorage) -> String {
    match (&place.device, &place.mount) {
        (Some(block), _) => disk(block),
        (None, Some(mount)) => mount.source.clone(),
        (None, None) => "unknown".to_owned(),
    }
}

fn disk(block: &BlockFacts) -> String {
    block.disk.clone().unwrap_or_else(|| block.name.clone())
}
