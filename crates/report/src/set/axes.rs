//! What rows differ in: the words that plots, tables and filters sort them by.

use gpuio_record::facts::{BlockFacts, TargetStorage};
use gpuio_record::{DirectMode, MemoryKind, TargetKind};

use super::Set;
use super::rows::Row;
use crate::expected;
use crate::number::float;
use crate::workload::{block_bounds, blocks_short, engine_got, rw};

/// One value: its words, and its number where it is one.
pub(super) type Place = (String, Option<f64>);

/// One thing that rows differ in.
pub(super) struct Axis {
    /// Short name, unique.
    pub(super) key: String,
    /// Name for people.
    pub(super) label: String,
    /// Whether a page offers it as a filter.
    pub(super) filter: bool,
    place: Source,
}

enum Source {
    Row(fn(&Row<'_>) -> Place),
    Sweep(String),
}

impl Axis {
    /// Where a row stands on it.
    pub(super) fn place(&self, row: &Row<'_>) -> Place {
        match &self.place {
            Source::Row(place) => place(row),
            Source::Sweep(key) => {
                let at = row.member.at.iter().find(|(name, _)| name == key);
                (at.map_or_else(|| "-".to_owned(), |(_, value)| value.clone()), None)
            }
        }
    }
}

type Known = (&'static str, &'static str, bool, fn(&Row<'_>) -> Place);

/// The axes that every record has. The first is the one by which colours are given.
const AXES: &[Known] = &[
    ("path", "path", true, |row| (row.plan.path.choice.got.clone(), None)),
    ("direction", "direction", true, |row| (row.direction.name().to_owned(), None)),
    ("block", "block size", true, |row| {
        let (_, max) = block_bounds(&row.plan.blocks);
        (blocks_short(&row.plan.blocks), Some(float(max)))
    }),
    ("threads", "threads", true, |row| {
        (row.plan.threads.to_string(), Some(f64::from(row.plan.threads)))
    }),
    ("depth", "depth per thread", true, |row| {
        (row.plan.depth.to_string(), Some(f64::from(row.plan.depth)))
    }),
    ("load", "load", true, |row| (rw(row.plan).to_owned(), None)),
    ("taken", "path taken", true, |row| {
        let proof = row.result.proof.as_ref();
        (proof.map_or_else(|| "not recorded".to_owned(), |p| p.verdict.words.clone()), None)
    }),
    ("engine", "engine", true, |row| (engine_got(row.plan, row.result), None)),
    ("opened", "opened", true, |row| {
        let word = match row.result.direct_got {
            DirectMode::Direct => "direct",
            DirectMode::Buffered => "buffered",
        };
        (word.to_owned(), None)
    }),
    ("memory", "memory", true, |row| (memory(row.plan.memory).to_owned(), None)),
    ("gpu", "GPU", true, |row| (gpus(row), None)),
    ("drive", "drive", true, |row| (drives(row), None)),
    ("bottleneck", "expected bottleneck", true, |row| {
        let name = row.expected().and_then(|one| expected::bottleneck(&one.expected));
        (name.unwrap_or("not known").to_owned(), None)
    }),
    ("job", "job", true, |row| (row.plan.name.clone(), None)),
    ("record", "record", true, |row| (row.member.name.clone(), None)),
];

/// Keys of a job file that say what an axis of ours says already.
const SAME: &[(&str, &str)] = &[("bs", "block"), ("rw", "load")];

/// The axes of a set: those of every record, then what its sweeps varied beyond them.
pub(super) fn axes(set: &Set) -> Vec<Axis> {
    let mut axes: Vec<Axis> = AXES
        .iter()
        .map(|(key, label, filter, place)| Axis {
            key: (*key).to_owned(),
            label: (*label).to_owned(),
            filter: *filter,
            place: Source::Row(*place),
        })
        .collect();
    for (key, _) in set.members.iter().flat_map(|member| &member.at) {
        let known = SAME.iter().any(|(theirs, _)| theirs == key);
        if known || axes.iter().any(|axis| axis.key == *key) {
            continue;
        }
        axes.push(Axis {
            key: key.clone(),
            label: key.clone(),
            filter: true,
            place: Source::Sweep(key.clone()),
        });
    }
    axes
}

/// The keys of the axes that sweeps of the set varied, in their order.
pub(super) fn varied(set: &Set) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for axis in set.sweeps.iter().flat_map(|sweep| &sweep.axes) {
        let same = SAME.iter().find(|(theirs, _)| *theirs == axis.key);
        let key = same.map_or(axis.key.as_str(), |(_, ours)| ours);
        if axis.values.len() > 1 && !keys.iter().any(|known| known == key) {
            keys.push(key.to_owned());
        }
    }
    keys
}

fn memory(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Device => "device",
        MemoryKind::Vmm => "vmm",
        MemoryKind::Pinned => "pinned",
        MemoryKind::Malloc => "malloc",
        MemoryKind::Mmap => "mmap",
        MemoryKind::Managed => "managed",
    }
}

/// The GPUs of a row: `GPU 0`, or several joined by `+`.
fn gpus(row: &Row<'_>) -> String {
    let names: Vec<String> = row.plan.gpus.iter().map(|gpu| format!("GPU {}", gpu.index)).collect();
    if names.is_empty() { "none".to_owned() } else { names.join("+") }
}

/// What holds the files of a row: kernel names of disks, or what is mounted where there is none.
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

/// The facts about the place of a target: of the device itself, or of the file's directory.
fn storage<'a>(row: &Row<'a>, path: &str, kind: TargetKind) -> Option<&'a TargetStorage> {
    let places = &row.record().storage;
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
