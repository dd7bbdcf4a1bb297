//! The answer for a running process: from what it has mapped and open, from its live page if it has
//! one, from counters, and from the verdict on each mount of its files.

use gpuio_base::units::{human_bytes, many};
use gpuio_record::facts::{Fact, LibraryMaker, MappedLibrary, OpenFile, ProcessIo, ProcessUse};
use serde::Serialize;

use super::Why;
use crate::check::verdict::Answer;

/// How the program's name on a live page begins if gpuio's libcufile wrote it.
pub(super) const CUFILE_PAGE: &str = "cuFile: ";

/// All that was read of a process.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its mapped libraries and open files.
    pub process: ProcessUse,
    /// Its live page; unknown where it has none that may be read.
    pub page: Fact<LivePage>,
    /// The bytes that it moved while it was watched.
    pub io_now: Fact<IoNow>,
    pub nvidia_fs: NvidiaFs,
    /// The verdict on each mount of its files, with a GPU whose node it has open.
    pub mounts: Vec<Why>,
    /// Mounts without a verdict, each with the reason.
    pub unjudged: Vec<String>,
}

/// A live page: who wrote it, and what was moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LivePage {
    /// Program that wrote it.
    pub program: String,
    pub release: String,
    /// By GPU, path and engine.
    pub moved: Vec<Moved>,
}

/// Bytes of one GPU, path and engine.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Moved {
    /// The GPU; `null` for host memory.
    pub gpu: Option<u32>,
    /// Whether it is gpuio's software GPU.
    pub software: bool,
    /// Path, as the page names it.
    pub path: String,
    /// Engine, as the page names it.
    pub engine: String,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Requests that completed.
    pub requests: u64,
    /// The sizes that most of them had: from so many bytes to below so many (`null`: no end).
    pub most_from_bytes: u64,
    pub most_below_bytes: Option<u64>,
    /// How many were in flight, on average from the start of the first to the end of the last.
    pub mean_in_flight: Option<f64>,
}

/// The bytes that a process moved while it was watched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IoNow {
    /// How long it was watched.
    pub seconds: f64,
    pub moved: ProcessIo,
}

/// Counters of nvidia-fs, of all processes together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NvidiaFs {
    NotLoaded,
    /// It is loaded, and does not count (`rw_stats_enabled`), or its counters can't be read.
    Unknown(String),
    /// Bytes that it moved while the process was watched.
    Moved {
        /// From storage to GPUs, in whole MiB.
        read_bytes: u64,
        /// From GPUs to storage, in whole MiB.
        written_bytes: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessWhy {
    pub pid: u32,
    /// Its command line; `null` where it hides it.
    pub command: Option<String>,
    /// Whether GDS is on for it: whether bytes go between storage and GPU memory without a copy in
    /// host memory.
    pub gds: Answer,
    /// The conclusion in one or two sentences.
    pub conclusion: String,
    pub page: Fact<LivePage>,
    /// Its mapped libraries and open files.
    pub process: ProcessUse,
    /// The bytes that it moved while it was watched.
    pub io_now: Fact<IoNow>,
    pub nvidia_fs: NvidiaFs,
    /// The verdict on each mount of its files.
    pub mounts: Vec<Why>,
    /// Mounts without a verdict, each with the reason.
    pub unjudged: Vec<String>,
}

impl ProcessWhy {
    /// Whether anything was found that answers the question: not where all of it may not be read.
    pub fn is_answered(&self) -> bool {
        self.page.known().is_some() || self.process.libraries.known().is_some()
    }
}

/// The answer that follows from what was read.
pub fn of_process(seen: Seen) -> ProcessWhy {
    let (gds, conclusion) = conclude(&seen);
    let Seen { process, page, io_now, nvidia_fs, mounts, unjudged } = seen;
    let (pid, command) = (process.pid, process.command.clone());
    ProcessWhy { pid, command, gds, conclusion, page, process, io_now, nvidia_fs, mounts, unjudged }
}

/// Whether a library is a libcufile.
pub(super) fn is_cufile(library: &MappedLibrary) -> bool {
    let name = library.path.rsplit('/').next().unwrap_or_default();
    name.starts_with("libcufile.so")
}

/// Libcufiles by maker.
fn cufiles(seen: &Seen, maker: LibraryMaker) -> bool {
    let libraries = seen.process.libraries.known();
    let is = |one: &&MappedLibrary| is_cufile(one) && one.made_by.known() == Some(&maker);
    libraries.is_some_and(|all| all.iter().any(|one| is(&one)))
}

fn conclude(seen: &Seen) -> (Answer, String) {
    if let Fact::Known(page) = &seen.page
        && page.moved.iter().any(|moved| moved.bytes() > 0)
    {
        return by_page(seen, page);
    }
    let libraries = match &seen.process.libraries {
        Fact::Known(libraries) => libraries,
        Fact::Unknown(why) => return (Answer::Unknown, format!("Unknown: {why}")),
    };
    let unclear = libraries.iter().filter(|one| is_cufile(one)).find_map(|one| one.made_by.why());
    match (cufiles(seen, LibraryMaker::Gpuio), cufiles(seen, LibraryMaker::Other)) {
        (true, _) => (Answer::Unknown, by_ours_without_bytes(seen)),
        (false, true) => by_nvidia(seen),
        (false, false) => match unclear {
            Some(why) => (
                Answer::Unknown,
                format!(
                    "Unknown: it has a libcufile mapped, and whose it is can't be read ({why})"
                ),
            ),
            None => without_library(seen),
        },
    }
}

fn by_ours_without_bytes(seen: &Seen) -> String {
    let why = match &seen.page {
        Fact::Known(_) => "its live page counts no bytes yet",
        Fact::Unknown(why) => why,
    };
    format!("Unknown so far: it has gpuio's libcufile mapped, and {why}")
}

/// Whether it has gpuio's own library mapped.
fn has_libgpuio(seen: &Seen) -> bool {
    let is = |one: &MappedLibrary| {
        let name = one.path.rsplit('/').next().unwrap_or_default();
        name.starts_with("libgpuio.so")
    };
    seen.process.libraries.known().is_some_and(|all| all.iter().any(is))
}

/// The nodes of nvidia-fs that it has open.
fn nvidia_fs_nodes(seen: &Seen) -> Fact<usize> {
    match &seen.process.devices {
        Fact::Known(all) => {
            Fact::Known(all.iter().filter(|node| node.starts_with("/dev/nvidia-fs")).count())
        }
        Fact::Unknown(why) => Fact::unknown(why.clone()),
    }
}

/// A process that has no libcufile: nothing moves its bytes between storage and GPU directly.
fn without_library(seen: &Seen) -> (Answer, String) {
    match nvidia_fs_nodes(seen) {
        Fact::Known(0) => {
            let uses = match has_libgpuio(seen) {
                true => {
                    "It has gpuio's own library (libgpuio.so.0) mapped, as Python's gpuio has: \
                     that moves bytes through page-locked host memory. Its calls have no live page \
                     and no trace, so what it moved is not known here"
                }
                false => {
                    "It has no libcufile mapped and no node of nvidia-fs open: it moves bytes \
                     between files and GPUs, if any, through host memory by itself"
                }
            };
            (Answer::No, format!("GDS is off. {uses}"))
        }
        Fact::Known(_) => (
            Answer::Unknown,
            "Unknown: it has nodes of nvidia-fs open and no libcufile mapped, so the library may \
             be linked into the program"
                .to_owned(),
        ),
        Fact::Unknown(why) => (Answer::Unknown, format!("Unknown: {why}")),
    }
}

/// How a path of a live page moves bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Through {
    /// To host memory; no GPU.
    Host,
    /// Through host memory, or from the page cache.
    HostMemory,
    /// By NVIDIA's library, which decides.
    Nvidia,
}

impl Moved {
    fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }

    fn through(&self) -> Through {
        match self.path.as_str() {
            "host" => Through::Host,
            "nvidia" => Through::Nvidia,
            path if path == "gds" || path.starts_with("gds-") => Through::Nvidia,
            _ => Through::HostMemory,
        }
    }

    /// The sizes of its requests, and how many were in flight.
    pub(super) fn requests(&self) -> String {
        let mean = size(self.bytes() / self.requests.max(1));
        let most = match self.most_below_bytes {
            Some(below) => format!("from {} to below {}", size(self.most_from_bytes), size(below)),
            None => format!("of {} and more", size(self.most_from_bytes)),
        };
        let depth = match self.mean_in_flight {
            Some(mean) => format!("{mean:.1} in flight on average, pauses included"),
            None => "how many are in flight is unknown".to_owned(),
        };
        format!(
            "{}: {} of {mean} on average, most {most}; {depth}",
            self.place(),
            many(self.requests, "request")
        )
    }

    fn place(&self) -> String {
        match (self.gpu, self.software) {
            (None, _) => "host".to_owned(),
            (Some(gpu), false) => format!("GPU {gpu}"),
            (Some(gpu), true) => format!("software GPU {gpu}"),
        }
    }

    pub(super) fn words(&self) -> String {
        let by = match (self.path.as_str(), self.engine.as_str()) {
            ("kernel", _) => "through host memory, by a GPU kernel".to_owned(),
            ("copy", _) => "through host memory, by the copy engine".to_owned(),
            ("nvidia", _) => "passed to NVIDIA's libcufile".to_owned(),
            ("host", _) => "in host memory, no GPU".to_owned(),
            (path, "") => format!("by path {path}"),
            (path, engine) => format!("by path {path}, engine {engine}"),
        };
        let from = match self.engine.as_str() {
            "cached" => " (file side: page cache)",
            "mapped" if self.path == "kernel" => " (file side: page cache, read by the GPU)",
            "direct" => " (file side: storage)",
            _ => "",
        };
        format!(
            "{}: {} read, {} written {by}{from}",
            self.place(),
            size(self.read_bytes),
            size(self.written_bytes)
        )
    }
}

pub(super) fn size(bytes: u64) -> String {
    human_bytes(bytes as f64)
}

/// The counts of a live page decide, before anything predicted.
fn by_page(seen: &Seen, page: &LivePage) -> (Answer, String) {
    let sum = |through: Through| -> u64 {
        let of = page.moved.iter().filter(|moved| moved.through() == through);
        of.fold(0, |sum, moved| sum.saturating_add(moved.bytes()))
    };
    let (host, bounced, nvidia) =
        (sum(Through::Host), sum(Through::HostMemory), sum(Through::Nvidia));
    let who = match page.program.starts_with(CUFILE_PAGE) {
        true => "gpuio's libcufile",
        false => "gpuio",
    };
    if nvidia == 0 && bounced == 0 {
        let words = format!(
            "GDS is off. {who} moved {} to and from host memory, none to a GPU",
            size(host)
        );
        return (Answer::No, words);
    }
    if nvidia == 0 {
        let words = format!(
            "GDS is off. {who} moved {} between files and GPU memory, all of it through host \
             memory",
            size(bounced)
        );
        return (Answer::No, words);
    }
    let all = size(nvidia.saturating_add(bounced));
    let (gds, way) = judged(seen);
    let words = format!(
        "{} of {all} went by NVIDIA's libcufile, which decides their way. {way}",
        size(nvidia)
    );
    (gds, words)
}

/// A process that has NVIDIA's library mapped. That library does not publish its calls, nor which
/// way one went; what can be seen from outside may exclude the direct ways. An open node of
/// nvidia-fs shows that its driver was opened (cuFileDriverOpen).
fn by_nvidia(seen: &Seen) -> (Answer, String) {
    let (gds, way) = judged(seen);
    let uses = match nvidia_fs_nodes(seen) {
        Fact::Known(1..) => "It uses NVIDIA's libcufile",
        _ => "NVIDIA's libcufile is mapped (PyTorch links it); whether it is called is not known",
    };
    (gds, format!("{uses}. {way}"))
}

/// The answer from nodes, files and verdicts for calls of NVIDIA's library.
fn judged(seen: &Seen) -> (Answer, String) {
    let nodes = match nvidia_fs_nodes(seen) {
        Fact::Known(nodes) => nodes,
        Fact::Unknown(why) => return (Answer::Unknown, format!("The way is unknown: {why}")),
    };
    let files = seen.process.files.known().map(Vec::as_slice).unwrap_or_default();
    if files.is_empty() {
        let words = "The way is unknown: it has no file on storage open now; look again while it \
                     reads or writes";
        return (Answer::Unknown, words.to_owned());
    }
    let possible: Vec<&Why> = seen.mounts.iter().filter(|why| why.gds != Answer::No).collect();
    if possible.is_empty() && seen.unjudged.is_empty() && !seen.mounts.is_empty() {
        let reasons: Vec<&str> = seen.mounts.iter().map(|why| why.conclusion.as_str()).collect();
        let words = format!(
            "GDS is off: no direct way exists for its files, so its calls pass host memory \
             (compatibility mode). {}",
            reasons.first().copied().unwrap_or_default()
        );
        return (Answer::No, words);
    }
    let needs_node =
        possible.iter().all(|why| why.ways.first().and_then(|way| way.mode) == Some("nvidia-fs"));
    if nodes == 0 && needs_node && !possible.is_empty() && seen.unjudged.is_empty() {
        let words = "GDS is off: the only direct way is nvidia-fs, and the process has no node of \
                     it open (/dev/nvidia-fs*)";
        return (Answer::No, words.to_owned());
    }
    open(seen, &possible, files, nodes)
}

/// A direct way exists or may exist.
fn open(seen: &Seen, possible: &[&Why], files: &[OpenFile], nodes: usize) -> (Answer, String) {
    if !files.iter().any(|file| file.direct) {
        let words = "Unknown: none of its files is open with O_DIRECT, and no document says that \
                     NVIDIA's library takes a direct way for others";
        return (Answer::Unknown, words.to_owned());
    }
    let moved = match &seen.nvidia_fs {
        NvidiaFs::Moved { read_bytes, written_bytes } => read_bytes.saturating_add(*written_bytes),
        _ => 0,
    };
    // The kernel counts bios in the process that submits them, which for nvidia-fs is the caller.
    let own = seen.io_now.known().map_or(0, |now| {
        now.moved.storage_read_bytes.saturating_add(now.moved.storage_write_bytes)
    });
    if nodes > 0 && moved > 0 && own > 0 && !possible.is_empty() {
        let words = format!(
            "GDS is on, by all that can be seen: it has nvidia-fs open, and while it was watched \
             nvidia-fs moved {} (for all processes together) and storage {} for this one",
            size(moved),
            size(own)
        );
        return (Answer::Yes, words);
    }
    let sure = possible.iter().find(|why| why.gds == Answer::Yes);
    let words = match sure {
        Some(why) => format!(
            "GDS can be on: {}. Whether its calls went that way is not counted for each process",
            why.conclusion
        ),
        None => "The way is unknown: a direct way may exist".to_owned(),
    };
    (Answer::Unknown, words)
}
