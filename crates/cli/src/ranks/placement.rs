//! The place of each rank on its machine: `{rank}`, `{host}` and `{local_rank}` in names, the table
//! before a run, and the devices and files that two ranks must not share.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use gpuio_base::document::Columns;
use gpuio_base::units::format_cpu_list;
use gpuio_host::Root;
use gpuio_job::spec::RankPlace;
use gpuio_record::facts::{MountFacts, NicFacts, TargetStorage};
use gpuio_record::merge::{rank_list, target_of};
use gpuio_record::{JobPlan, Plan, Stripe, TargetKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where this process stands; rank 0 of one where there are no others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// `None` without other ranks.
    pub(crate) rank: Option<u32>,
    pub(crate) local_rank: u32,
    pub(crate) host: String,
    /// The facts about the others that a plan needs.
    pub(crate) among: Option<RankPlace>,
}

impl Place {
    /// Without other ranks.
    pub(crate) fn alone() -> Place {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Place { rank: None, local_rank: 0, host, among: None }
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

/// The rank with the same local number on the next host, by the host of each rank; why there is
/// none.
pub(super) fn on_next_host(hosts: &[&str], rank: u32) -> Result<u32, String> {
    let mut of_host: Vec<(&str, Vec<u32>)> = Vec::new();
    for (number, host) in (0..).zip(hosts) {
        match of_host.iter_mut().find(|(known, _)| known == host) {
            Some((_, ranks)) => ranks.push(number),
            None => of_host.push((host, vec![number])),
        }
    }
    if let [(host, _)] = of_host.as_slice() {
        return Err(format!(
            "all ranks run on host {host}, so there is no other node whose data could be read"
        ));
    }
    let count = |at: usize| of_host.get(at).map_or(0, |(_, ranks)| ranks.len());
    if let Some(odd) = (1..of_host.len()).find(|at| count(*at) != count(0)) {
        return Err(format!(
            "host {} has {} ranks and host {} has {}, so some would have no partner on the next \
             node",
            of_host[0].0,
            count(0),
            of_host[odd].0,
            count(odd)
        ));
    }
    let position = of_host
        .iter()
        .enumerate()
        .find_map(|(at, (_, ranks))| Some((at, ranks.iter().position(|one| *one == rank)?)));
    let (at, local) = position.ok_or("this rank has no host")?;
    Ok(of_host[(at + 1) % of_host.len()].1[local])
}

/// The devices that ranks may share, where that is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) gpu: bool,
    pub(crate) file: bool,
}

impl Share {
    pub(crate) const WORDS: [&str; 2] = ["gpu", "file"];

    /// From the values of `--share`.
    pub(crate) fn parse(values: &[String]) -> Result<Share, String> {
        let mut share = Share::default();
        for value in values {
            match value.as_str() {
                "gpu" => share.gpu = true,
                "file" => share.file = true,
                other => {
                    let words = Share::WORDS.join(" or ");
                    return Err(format!("--share {other}: ranks may share {words}"));
                }
            }
        }
        Ok(share)
    }
}

/// The devices that one rank will use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Placed {
    host: String,
    local_rank: u32,
    target: String,
    devices: Vec<String>,
    /// Network cards that lead to the servers of its files.
    nics: Vec<String>,
    /// Index and name; the UUID, unless the GPU is one of software, which no process shares.
    gpus: Vec<(String, Option<String>)>,
    numa_nodes: Vec<u32>,
    cpus: Vec<u32>,
    files: Vec<Used>,
    /// Locations that all ranks must share, as the plan names them.
    common: Vec<Common>,
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
    /// How its blocks lie apart; absent where it is one range.
    #[serde(default)]
    stripe: Option<Stripe>,
}

/// A file or directory that all ranks must share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Common {
    path: String,
    identity: String,
    /// Whether it lies on a block device of this host, and so on no other.
    local: bool,
}

impl Placed {
    pub(super) fn nics(&self) -> &[String] {
        &self.nics
    }

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
        let Found { files, devices, mounts, common } = files(plan, kernel);
        Placed {
            host: place.host.clone(),
            local_rank: place.local_rank,
            target: plan.jobs.first().map(target_of).unwrap_or_default(),
            devices,
            nics: nics(&mounts),
            gpus,
            numa_nodes,
            cpus: placed_cpus,
            files,
            common,
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
            if let Some(Value::Object(layout)) = fields.get_mut("layout") {
                ["rank", "reads_rank"].iter().for_each(|name| drop(layout.remove(*name)));
            }
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

/// The network cards that lead to the servers of these mount points. The machine is read only where
/// there are some.
fn nics(mounts: &BTreeSet<String>) -> Vec<String> {
    if mounts.is_empty() {
        return Vec::new();
    }
    let machine = gpuio_host::machine::read(&Root::live());
    let of_mount = |point: &String| {
        let mounted = machine.mounts.iter().rev().find(|one| one.mount.mount_point == *point);
        mounted.map(|mounted| machine.cards_to(mounted)).unwrap_or_default()
    };
    let name = |nic: &NicFacts| {
        let interface = nic.interfaces.first().map(|one| one.name.clone());
        nic.rdma.first().map(|rdma| rdma.name.clone()).or(interface).or(nic.pci.clone())
    };
    let mut names: Vec<String> = mounts.iter().flat_map(of_mount).filter_map(name).collect();
    names.dedup();
    names
}

/// The storage of a machine that a plan uses.
#[derive(Default)]
struct Found {
    files: Vec<Used>,
    /// The devices behind them.
    devices: Vec<String>,
    mounts: BTreeSet<String>,
    /// The files that all ranks must share.
    common: Vec<Common>,
}

fn files(plan: &Plan, kernel: &str) -> Found {
    let Found { files: mut all, mut devices, mut mounts, mut common } = Found::default();
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
            if let Some(mount) = storage.mount.as_ref().filter(|m| is_shared(m)) {
                mounts.insert(mount.mount_point.clone());
            }
            let device = storage.device.as_ref().map(|device| device.name.clone());
            let source = storage.mount.as_ref().map(|mount| mount.source.clone());
            if let Some(one) = device.or(source)
                && !devices.contains(&one)
            {
                devices.push(one);
            }
            let identity = identity(path, target.kind, storage, kernel);
            if job.is_common() {
                let (path, identity) = (target.path.clone(), identity.clone());
                common.push(Common { path, identity, local: storage.device.is_some() });
            }
            let regions = job.workers.iter().flat_map(|worker| &worker.regions);
            let mine = || regions.clone().filter(|region| region.target == index);
            let Some(from) = mine().map(|region| region.offset).min() else { continue };
            let to = mine().map(gpuio_record::Region::end).max().unwrap_or(from);
            let writes = job.read_percent < 100;
            let path = target.path.clone();
            let threads = u64::from(job.threads);
            // The threads of a rank are neighbours: together they have one longer block of each.
            let stripe = mine()
                .find_map(|region| region.stripe)
                .map(|one| Stripe { block_bytes: one.block_bytes.saturating_mul(threads), ..one });
            all.push(Used { path, identity, group: job.group, from, to, writes, stripe });
        }
        if let (true, Some(directory)) = (job.reads_another_rank(), &job.directory) {
            // A name that nothing has yet takes the identity of its directory.
            let path = Path::new(directory).join(".gpuio-shared");
            let storage =
                gpuio_host::target_storage(&Root::live(), existing(&path), &mut Vec::new());
            let identity = identity(&path, TargetKind::File, &storage, kernel);
            let local = storage.device.is_some();
            common.push(Common { path: directory.clone(), identity, local });
        }
    }
    Found { files: all, devices, mounts, common }
}

fn is_shared(mount: &MountFacts) -> bool {
    SHARED.contains(&mount.fs_type.as_str())
}

/// The nearest directory above that is there.
fn existing(path: &Path) -> &Path {
    let above = path.ancestors().skip(1).find(|above| above.is_dir());
    above.filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Tells whether two ranks mean the same file: on a file system of several hosts its server's name
/// for it; else the kernel it belongs to with the inode of the directory.
fn identity(path: &Path, kind: TargetKind, storage: &TargetStorage, kernel: &str) -> String {
    let base = existing(path);
    let rest = path.strip_prefix(base).unwrap_or(path).display();
    if let Some(mount) = storage.mount.as_ref().filter(|m| is_shared(m)) {
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
    common_locations(all)?;
    shared_files(all, share)
}

/// Refuses locations that are surely not the same: on block devices, but different ones. Whether a
/// network file system is the same is found out when the files are made: hosts may mount it by
/// different names.
fn common_locations(all: &[Placed]) -> Result<(), String> {
    let Some(first) = all.first() else { return Ok(()) };
    for (rank, one) in all.iter().enumerate().skip(1) {
        let both = first.common.iter().zip(&one.common);
        let differs = |(a, b): &(&Common, &Common)| a.local && b.local && a.identity != b.identity;
        if let Some((theirs, own)) = both.into_iter().find(differs) {
            return Err(format!(
                "all ranks must share {}, and rank {rank} (host {}) has another one than rank 0 \
                 (host {}, {}); name a location on a file system that all ranks share",
                own.path, one.host, first.host, theirs.path
            ));
        }
    }
    Ok(())
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

/// Whether the blocks of two parts that begin among each other alternate: both have the same
/// stride, and the blocks of neither reach those of the other.
fn is_apart(a: &Used, b: &Used) -> bool {
    let (Some(one), Some(other)) = (a.stripe, b.stripe) else { return false };
    let (stride, between) = (one.stride_bytes, a.from.abs_diff(b.from));
    if one != other || stride == 0 {
        return false;
    }
    let turn = between % stride;
    turn >= one.block_bytes && stride - turn >= one.block_bytes
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
                && !is_apart(file, known)
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

pub(super) fn table(all: &[Placed], width: u16) -> String {
    let by_network = all.iter().any(|one| !one.nics.is_empty());
    let some = |text: String| (!text.is_empty()).then_some(text);
    Columns::<(usize, &Placed)>::new()
        .figures("rank", |(rank, _)| *rank)
        .words("host", |(_, one)| one.host.clone())
        .figures("local", |(_, one)| one.local_rank)
        .words("GPU", move |(_, one)| {
            let names: Vec<&str> = one.gpus.iter().map(|(name, _)| name.as_str()).collect();
            some(names.join(", "))
        })
        .words("NUMA", move |(_, one)| some(format_cpu_list(&one.numa_nodes)))
        .words("CPUs", move |(_, one)| some(format_cpu_list(&one.cpus)))
        .words("files", move |(_, one)| some(one.target.clone()))
        .words("device", move |(_, one)| some(one.devices.join(", ")))
        .when(by_network, |columns| columns.words("NIC", move |(_, one)| some(one.nics.join(", "))))
        .table("ranks", all.iter().enumerate())
        .terminal(width)
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
            stripe: None,
        };
        Placed {
            host: "h".to_owned(),
            local_rank: 0,
            target: String::new(),
            devices: Vec::new(),
            nics: Vec::new(),
            gpus: gpu
                .map(|uuid| ("0 H100".to_owned(), Some(uuid.to_owned())))
                .into_iter()
                .collect(),
            numa_nodes: Vec::new(),
            cpus: Vec::new(),
            files: files.iter().map(file).collect(),
            common: Vec::new(),
            load: serde_json::json!([{ "name": "job", "threads": 1 }]),
        }
    }

    #[test]
    fn the_table_has_network_cards_where_files_are_behind_some() {
        let alone = table(&[placed(None, &[])], 200);
        assert!(!alone.contains("NIC"), "{alone}");
        let mut remote = placed(None, &[]);
        remote.nics = vec!["mlx5_0".to_owned()];
        let both = table(&[remote, placed(None, &[])], 200);
        assert!(both.contains("NIC") && both.contains("mlx5_0"), "{both}");
    }

    const NOTHING: Share = Share { gpu: false, file: false };

    #[test]
    fn the_partner_of_a_rank_is_on_the_next_host() {
        let next = |hosts: &[&str], rank| on_next_host(hosts, rank);
        let blocks = ["a", "a", "b", "b", "c", "c"];
        let partners: Vec<_> = (0..6).map(|rank| next(&blocks, rank).unwrap()).collect();
        assert_eq!(partners, [2, 3, 4, 5, 0, 1]);
        let in_turn = ["a", "b", "a", "b"];
        let partners: Vec<_> = (0..4).map(|rank| next(&in_turn, rank).unwrap()).collect();
        assert_eq!(partners, [1, 0, 3, 2]);
        assert!(next(&["a", "a"], 0).unwrap_err().contains("all ranks run on host a"));
        let uneven = next(&["a", "a", "b"], 2).unwrap_err();
        assert!(uneven.contains("host a has 2 ranks and host b has 1"), "{uneven}");
    }

    #[test]
    fn strided_parts_are_apart_where_their_blocks_are() {
        let part = |from: u64, block_bytes: u64, stride_bytes: u64| Used {
            path: String::new(),
            identity: String::new(),
            group: 0,
            from,
            to: from + 10 * stride_bytes,
            writes: true,
            stripe: Some(Stripe { block_bytes, stride_bytes }),
        };
        let first = part(0, 100, 400);
        assert!([100, 200, 300].iter().all(|at| is_apart(&first, &part(*at, 100, 400))));
        assert!([0, 50, 350, 400].iter().all(|at| !is_apart(&first, &part(*at, 100, 400))));
        assert!(!is_apart(&first, &part(200, 100, 300)));
        assert!(!is_apart(&first, &Used { stripe: None, ..part(200, 100, 400) }));
        // Each rank of a job has its turn; two of them may not have the same.
        let placed = |files: Vec<Used>| Placed { files, ..placed(None, &[]) };
        let four = |at: [u64; 4]| at.map(|at| placed(vec![part(at, 100, 400)]));
        agree(&four([0, 100, 200, 300]), NOTHING).unwrap();
        assert!(agree(&four([0, 100, 250, 300]), NOTHING).is_err());
    }

    #[test]
    fn ranks_with_different_disks_have_no_file_in_common() {
        let at = |identity: &str, local| Placed {
            common: vec![Common {
                path: "/d/one".to_owned(),
                identity: identity.to_owned(),
                local,
            }],
            ..placed(None, &[])
        };
        agree(&[at("a", true), at("a", true)], NOTHING).unwrap();
        agree(&[at("server:/a", false), at("server2:/a", false)], NOTHING).unwrap();
        let why = agree(&[at("a", true), at("b", true)], NOTHING).unwrap_err();
        assert!(why.contains("all ranks must share /d/one, and rank 1"), "{why}");
    }

    #[test]
    fn names_are_filled_in() {
        let place = Place { rank: Some(7), local_rank: 1, host: "n3".to_owned(), among: None };
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
