//! What each rank takes of its machine: `{rank}`, `{host}` and `{local_rank}` in names, the table
//! before a run, and what two ranks must not share.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use gpuio_host::Root;
use gpuio_merge::{rank_list, target_of};
use gpuio_record::facts::TargetStorage;
use gpuio_record::{JobPlan, Plan, TargetKind};
use gpuio_table::{Grid, figures, words};
use gpuio_units::format_cpu_list;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where this process stands; rank 0 of one where there are no others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// `None` without other ranks.
    pub(crate) rank: Option<u32>,
    pub(crate) local_rank: u32,
    pub(crate) host: String,
}

impl Place {
    /// Without other ranks.
    pub(crate) fn alone() -> Place {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Place { rank: None, local_rank: 0, host }
    }

    /// The text with `{rank}`, `{local_rank}` and `{host}` replaced.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{rank}", &self.rank.unwrap_or(0).to_string())
            .replace("{local_rank}", &self.local_rank.to_string())
            .replace("{host}", &self.host)
    }

    /// The same in bytes that may not be UTF-8: those of a job file.
    pub(crate) fn fill_bytes(&self, text: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(text) {
            Ok(text) => self.fill(&text).into_bytes(),
            // The parser reports where.
            Err(error) => error.into_bytes(),
        }
    }
}

/// What ranks may share, where that is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) gpu: bool,
    pub(crate) file: bool,
}

impl Share {
    /// From the values of `--share`.
    pub(crate) fn parse(values: &[String]) -> Result<Share, String> {
        let mut share = Share::default();
        for value in values {
            match value.as_str() {
                "gpu" => share.gpu = true,
                "file" => share.file = true,
                other => return Err(format!("--share {other}: ranks may share gpu or file")),
            }
        }
        Ok(share)
    }
}

/// What one rank will use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Placed {
    host: String,
    local_rank: u32,
    target: String,
    devices: Vec<String>,
    /// Index and name; the UUID, unless the GPU is one of software, which no process shares.
    gpus: Vec<(String, Option<String>)>,
    numa_nodes: Vec<u32>,
    cpus: Vec<u32>,
    files: Vec<Used>,
    /// The load, without what is this rank's own.
    load: Value,
}

/// A part of a file or device, by what is the same on all hosts that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Used {
    path: String,
    identity: String,
    group: u32,
    from: u64,
    to: u64,
    writes: bool,
}

impl Placed {
    pub(super) fn of(plan: &Plan, place: &Place, kernel: &str, cpus: Vec<u32>) -> Placed {
        let mut gpus = Vec::new();
        let mut numa_nodes = Vec::new();
        let mut placed_cpus = Vec::new();
        for job in &plan.jobs {
            for gpu in &job.gpus {
                let one = (format!("{} {}", gpu.index, gpu.name), hardware(gpu));
                if !gpus.contains(&one) {
                    gpus.push(one);
                }
            }
            numa_nodes.extend(job.workers.iter().filter_map(|worker| worker.numa_node));
            placed_cpus.extend(job.workers.iter().flat_map(|worker| worker.cpus.clone()));
        }
        if placed_cpus.is_empty() {
            placed_cpus = cpus;
        }
        for list in [&mut numa_nodes, &mut placed_cpus] {
            list.sort_unstable();
            list.dedup();
        }
        let (files, devices) = files(plan, kernel);
        Placed {
            host: place.host.clone(),
            local_rank: place.local_rank,
            target: plan.jobs.first().map(target_of).unwrap_or_default(),
            devices,
            gpus,
            numa_nodes,
            cpus: placed_cpus,
            files,
            load: load(plan),
        }
    }
}

fn hardware(gpu: &gpuio_record::Gpu) -> Option<String> {
    (!gpu.software).then(|| gpu.uuid.clone())
}

/// The load of a plan: what must be the same on all ranks.
fn load(plan: &Plan) -> Value {
    const OWN: [&str; 10] = [
        "directory",
        "targets",
        "workers",
        "gpus",
        "via",
        "notes",
        "direct_why",
        "direct_alignment_bytes",
        "align_bytes",
        "file_prefix",
    ];
    let job = |job: &JobPlan| {
        let mut value = serde_json::to_value(job).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            OWN.iter().for_each(|name| drop(fields.remove(*name)));
            for choice in ["engine", "path"] {
                let actual = match choice {
                    "path" => job.path.choice.actual.clone(),
                    _ => job.engine.actual.clone(),
                };
                fields.insert(choice.to_owned(), Value::String(actual));
            }
        }
        value
    };
    Value::Array(plan.jobs.iter().map(job).collect())
}

/// File systems that several hosts mount, by their type (statfs(2), `/proc/filesystems`).
const SHARED: [&str; 16] = [
    "nfs",
    "nfs4",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "cifs",
    "smb3",
    "9p",
    "virtiofs",
    "wekafs",
    "fuse.glusterfs",
    "gfs2",
    "ocfs2",
    "orangefs",
    "pvfs2",
];

/// The parts of files that a plan uses, and the devices behind them.
fn files(plan: &Plan, kernel: &str) -> (Vec<Used>, Vec<String>) {
    let (mut all, mut devices) = (Vec::new(), Vec::new());
    let mut known: BTreeMap<String, TargetStorage> = BTreeMap::new();
    for job in &plan.jobs {
        for (index, target) in (0_u32..).zip(&job.targets) {
            let path = Path::new(&target.path);
            let place = match target.kind {
                TargetKind::BlockDevice => path,
                TargetKind::File => existing(path),
            };
            let storage = known.entry(place.display().to_string()).or_insert_with(|| {
                gpuio_host::target_storage(&Root::live(), place, &mut Vec::new())
            });
            let device = storage.device.as_ref().map(|device| device.name.clone());
            let source = storage.mount.as_ref().map(|mount| mount.source.clone());
            if let Some(one) = device.or(source)
                && !devices.contains(&one)
            {
                devices.push(one);
            }
            let identity = identity(path, target.kind, storage, kernel);
            let regions = job.workers.iter().flat_map(|worker| &worker.regions);
            let mine = || regions.clone().filter(|region| region.target == index);
            let Some(from) = mine().map(|region| region.offset).min() else { continue };
            let to = mine().map(|region| region.offset + region.length).max().unwrap_or(from);
            let writes = job.read_percent < 100;
            let path = target.path.clone();
            all.push(Used { path, identity, group: job.group, from, to, writes });
        }
    }
    (all, devices)
}

/// The nearest directory above that is there.
fn existing(path: &Path) -> &Path {
    let above = path.ancestors().skip(1).find(|above| above.is_dir());
    above.filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What tells whether two ranks mean the same file: on a file system of several hosts its server's
/// name for it; else the kernel it belongs to with the inode of the directory.
fn identity(path: &Path, kind: TargetKind, storage: &TargetStorage, kernel: &str) -> String {
    let base = existing(path);
    let rest = path.strip_prefix(base).unwrap_or(path).display();
    if let Some(mount) = storage.mount.as_ref().filter(|m| SHARED.contains(&m.fs_type.as_str())) {
        let absolute = base.canonicalize().unwrap_or_else(|_| base.to_owned());
        let below = absolute.strip_prefix(&mount.mount_point).unwrap_or(&absolute).display();
        return format!("{} {} {below}/{rest}", mount.fs_type, mount.source);
    }
    // One kernel may serve several containers, which see the same inode by different names.
    let boot = kernel.split(' ').next().unwrap_or_default();
    match (kind, std::fs::metadata(path), std::fs::metadata(base)) {
        (TargetKind::BlockDevice, Ok(found), _) if found.file_type().is_block_device() => {
            format!("{boot} device {}", found.rdev())
        }
        (_, Ok(found), _) => format!("{boot} {} {}", found.dev(), found.ino()),
        (_, _, Ok(above)) => format!("{boot} {} {} {rest}", above.dev(), above.ino()),
        _ => format!("{boot} {}", path.display()),
    }
}

/// Whether all ranks may run their plans together.
pub(super) fn agree(all: &[Placed], share: Share) -> Result<(), String> {
    let Some(first) = all.first() else { return Ok(()) };
    for (rank, one) in all.iter().enumerate().skip(1) {
        if let Some(what) = difference(&first.load, &one.load) {
            return Err(format!(
                "rank {rank} (host {}) has another plan than rank 0 (host {}): {what}; name it \
                 with a flag or key, so that it is the same on all hosts",
                one.host, first.host
            ));
        }
    }
    if !share.gpu {
        shared_gpu(all)?;
    }
    shared_files(all, share)
}

/// The first setting of a job that differs.
fn difference(first: &Value, other: &Value) -> Option<String> {
    let (Value::Array(first), Value::Array(other)) = (first, other) else { return None };
    if first.len() != other.len() {
        let name = |job: &Value| job.get("name").and_then(Value::as_str).map(str::to_owned);
        let names = |of: &[Value]| of.iter().filter_map(name).collect::<Vec<_>>();
        let (a, b) = (names(first), names(other));
        let only = |these: &[String], those: &[String]| {
            let only: Vec<&str> =
                these.iter().filter(|name| !those.contains(name)).map(String::as_str).collect();
            if only.is_empty() { "none".to_owned() } else { only.join(", ") }
        };
        return Some(format!(
            "{} jobs instead of {} (only there: {}; only on rank 0: {})",
            b.len(),
            a.len(),
            only(&b, &a),
            only(&a, &b)
        ));
    }
    for (a, b) in first.iter().zip(other) {
        let (Value::Object(a), Value::Object(b)) = (a, b) else { continue };
        let name = a.get("name").and_then(Value::as_str).unwrap_or_default();
        let keys = a.keys().chain(b.keys());
        if let Some(key) = keys.into_iter().find(|key| a.get(*key) != b.get(*key)) {
            let text = |of: Option<&Value>| of.map_or("nothing".to_owned(), Value::to_string);
            let (a, b) = (text(a.get(key)), text(b.get(key)));
            return Some(format!("job '{name}': {key} is {b} instead of {a}"));
        }
    }
    None
}

fn shared_gpu(all: &[Placed]) -> Result<(), String> {
    let mut taken: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for (rank, one) in all.iter().enumerate() {
        for (name, uuid) in &one.gpus {
            let Some(uuid) = uuid else { continue };
            if let Some((other, _)) = taken.insert(uuid, (rank, name)) {
                return Err(format!(
                    "ranks {other} and {rank} would both use GPU {name} of host {}; use --gpu \
                     local or --gpu {{local_rank}} for a GPU each, or --share gpu if that is meant",
                    one.host
                ));
            }
        }
    }
    Ok(())
}

/// Two ranks may not write the same bytes, nor one read what another writes at the same time.
fn shared_files(all: &[Placed], share: Share) -> Result<(), String> {
    let mut users: BTreeMap<(&str, u32), Vec<(usize, &Used)>> = BTreeMap::new();
    for (rank, one) in all.iter().enumerate() {
        for file in &one.files {
            users.entry((&file.identity, file.group)).or_default().push((rank, file));
        }
    }
    for of_file in users.values_mut() {
        // In order of their begin, only the one that reaches furthest can overlap the next.
        of_file.sort_by_key(|(_, file)| file.from);
        let mut furthest: Option<(usize, &Used)> = None;
        for (rank, file) in of_file.iter().copied() {
            if let Some((other, known)) = furthest
                && other != rank
                && file.from < known.to
            {
                let writes = file.writes || known.writes;
                if writes || !share.file {
                    return Err(words_of(other.min(rank), other.max(rank), file, writes));
                }
            }
            if furthest.is_none_or(|(_, known)| file.to > known.to) {
                furthest = Some((rank, file));
            }
        }
    }
    Ok(())
}

fn words_of(a: usize, b: usize, file: &Used, writes: bool) -> String {
    let path = &file.path;
    let fix = "use --directory for files of each rank, or {rank} in the name";
    match writes {
        true => {
            format!("ranks {a} and {b} would both use the same bytes of {path}, and write; {fix}")
        }
        false => format!(
            "ranks {a} and {b} would read the same bytes of {path}, from each other's cache; \
             {fix}, or --share file if that is meant"
        ),
    }
}

/// The table of all ranks.
pub(super) fn table(all: &[Placed], width: u16) -> String {
    let columns = vec![
        figures("rank"),
        words("host"),
        figures("local"),
        words("GPU"),
        words("NUMA"),
        words("CPUs"),
        words("files"),
        words("device"),
    ];
    let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let row = |(rank, one): (usize, &Placed)| {
        let gpus: Vec<&str> = one.gpus.iter().map(|(name, _)| name.as_str()).collect();
        vec![
            rank.to_string(),
            one.host.clone(),
            one.local_rank.to_string(),
            dash(gpus.join(", ")),
            dash(format_cpu_list(&one.numa_nodes)),
            dash(format_cpu_list(&one.cpus)),
            dash(one.target.clone()),
            dash(one.devices.join(", ")),
        ]
    };
    Grid { columns, rows: all.iter().enumerate().map(row).collect() }.at_any_width(width)
}

/// Ranks in words, for messages.
pub(super) fn named(ranks: &[u32]) -> String {
    rank_list(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(gpu: Option<&str>, files: &[(&str, u64, u64, bool)]) -> Placed {
        let file = |(identity, from, to, writes): &(&str, u64, u64, bool)| Used {
            path: format!("/{identity}"),
            identity: (*identity).to_owned(),
            group: 0,
            from: *from,
            to: *to,
            writes: *writes,
        };
        Placed {
            host: "h".to_owned(),
            local_rank: 0,
            target: String::new(),
            devices: Vec::new(),
            gpus: gpu
                .map(|uuid| ("0 H100".to_owned(), Some(uuid.to_owned())))
                .into_iter()
                .collect(),
            numa_nodes: Vec::new(),
            cpus: Vec::new(),
            files: files.iter().map(file).collect(),
            load: serde_json::json!([{ "name": "job", "threads": 1 }]),
        }
    }

    const NOTHING: Share = Share { gpu: false, file: false };

    #[test]
    fn names_are_filled_in() {
        let place = Place { rank: Some(7), local_rank: 1, host: "n3".to_owned() };
        assert_eq!(place.fill("/mnt/ib{local_rank}/{host}/r{rank}{x}"), "/mnt/ib1/n3/r7{x}");
        assert_eq!(Place { rank: None, ..place }.fill("{rank}"), "0");
    }

    #[test]
    fn one_gpu_for_two_ranks_is_refused_unless_it_is_meant() {
        let all =
            [placed(Some("GPU-a"), &[]), placed(Some("GPU-b"), &[]), placed(Some("GPU-a"), &[])];
        let why = agree(&all, NOTHING).unwrap_err();
        assert!(why.starts_with("ranks 0 and 2 would both use GPU 0 H100"), "{why}");
        assert_eq!(agree(&all, Share { gpu: true, file: false }), Ok(()));
        assert_eq!(agree(&all[..2], NOTHING), Ok(()));
    }

    #[test]
    fn the_same_bytes_for_two_ranks_are_refused() {
        let write = placed(None, &[("a", 0, 10, true)]);
        let why = agree(&[write.clone(), write.clone()], Share { gpu: false, file: true });
        assert!(why.unwrap_err().contains("and write"), "no flag permits it");
        let beyond = placed(None, &[("a", 10, 20, true)]);
        assert_eq!(agree(&[write.clone(), beyond], NOTHING), Ok(()), "each its own part");
        let read = placed(None, &[("a", 0, 10, false)]);
        assert!(agree(&[write, read.clone()], NOTHING).is_err());
        assert!(agree(&[read.clone(), read.clone()], NOTHING).is_err());
        assert_eq!(agree(&[read.clone(), read], Share { gpu: false, file: true }), Ok(()));
        // A long part that begins before two short ones.
        let long = placed(None, &[("a", 0, 100, true)]);
        let short = placed(None, &[("a", 1, 2, true)]);
        let last = placed(None, &[("a", 50, 60, true)]);
        let why = agree(&[long, placed(None, &[]), last, short], NOTHING).unwrap_err();
        assert!(why.starts_with("ranks 0 and 3"), "{why}");
    }

    #[test]
    fn another_load_is_named() {
        let mut other = placed(None, &[]);
        other.load = serde_json::json!([{ "name": "job", "threads": 2 }]);
        let why = agree(&[placed(None, &[]), other], NOTHING).unwrap_err();
        assert!(
            why.contains("rank 1 (host h)") && why.contains("threads is 2 instead of 1"),
            "{why}"
        );
    }
}
