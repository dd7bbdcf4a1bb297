//! From what evidence sources observed to a verdict. Pure: all its input is in its arguments,
//! and it claims nothing that they do not support.

mod library;
mod mapped;
mod share;

use gpuio_base::units::human_bytes;
use gpuio_io::path::{self, Backend};
use gpuio_record::{Assessment, Route, Source, Verdict};

use crate::evidence::group::Flow;
pub(crate) use share::{OtherJobs, Share, share};

/// The way of the bytes on a path, by its own construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    /// One leg, between the file and the requested host memory.
    User,
    /// Our own buffer in host memory, and copies between it and GPU memory.
    Ring,
    /// As `Ring`, with the memory of another GPU between the buffer and the requested GPU.
    Relay,
    /// The GPU reads and writes the page cache itself.
    Mapped,
    /// The code of a foreign library decides, or gpuio does not know the path.
    Foreign,
}

impl PathKind {
    /// The kind of the path of this name, from what it is in the table of paths.
    pub(crate) fn of(path: &str) -> PathKind {
        let Some(info) = path::find(path).map(|row| &row.info) else { return PathKind::Foreign };
        match info.backend {
            Backend::Engine if info.via_gpu => PathKind::Relay,
            Backend::Engine if !info.needs_gpu => PathKind::User,
            Backend::Engine | Backend::Library(_) | Backend::Rings => PathKind::Ring,
            Backend::Mapping => PathKind::Mapped,
            Backend::Cufile(_) => PathKind::Foreign,
        }
    }
}

/// The growth of the page cache for the job's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// It holds noticeably more of them than before.
    Grew {
        /// By how much.
        bytes: u64,
    },
    /// It does not.
    Still {
        /// Whether it held a noticeable part of them.
        resident: bool,
    },
}

/// The observation of an evidence source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Observed {
    /// Nothing conclusive.
    Nothing,
    /// Storage moved this share of the bytes.
    Storage(Share),
    Cache(Growth),
    /// Our own legs: whether all bytes passed host memory, and whether GPU copies were timed.
    Legs {
        host: bool,
        gpu: bool,
    },
    /// The path's own counters: whether the GPU read all bytes out of pages of the page cache that
    /// were mapped and pinned before the clock started, or wrote all into such pages, which the
    /// file still had at the end.
    FromMapping(bool),
    /// The path's own counters: this share of the bytes passed the memory of the GPU with this
    /// driver index, which is not the requested one.
    Relayed {
        gpu: u32,
        share: Share,
    },
    /// nvidia-fs moved this share of the bytes.
    NvidiaFs(Share),
    /// A library's report of the route that all bytes took.
    Library(LibraryRoute),
    /// Whether the GPU's own link carried the bytes: all of them at least, or next to none.
    Reached(bool),
}

/// The route that a library took, as it reports itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LibraryRoute {
    /// Through host memory.
    Host,
    /// Past host memory. It does not report whether another GPU's memory lay between.
    Past {
        /// Whether none could: there is one GPU, and its memory was registered.
        straight: bool,
    },
    /// Some through host memory and some past it.
    Both,
}

/// The request for one direction of a job, and facts that the verdict needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requested {
    pub(crate) kind: PathKind,
    pub(crate) direct: bool,
    /// Whether the path itself takes the page cache or `O_DIRECT` for each read, as gpuio's library
    /// core does.
    pub(crate) either: bool,
    /// Whether every descriptor has it and the engine honours it.
    pub(crate) direct_actual: bool,
    pub(crate) flow: Flow,
    /// Bytes that passed the file leg.
    pub(crate) bytes: u64,
    /// How many fewer a source counted that stands for all of them, which is within a tenth.
    pub(crate) shortfall: u64,
    pub(crate) holes: Holes,
    pub(crate) software_gpu: bool,
}

/// Bytes of the job's files that no device holds, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Holes {
    /// In holes and unwritten extents.
    pub(crate) absent: u64,
    /// The bytes of the range that they lie in.
    pub(crate) range: u64,
}

impl Holes {
    /// Whether nearly all bytes are such: storage need not have moved a twentieth.
    fn nearly_all(self) -> bool {
        self.absent > 0 && self.absent >= self.range - self.range / 20
    }

    fn words(self) -> String {
        let (absent, range) = (size(self.absent), size(self.range));
        format!("{absent} of {range} are holes, and reads of them come from no device")
    }
}

impl Requested {
    /// The bytes that storage moved where its counters stand for all: a tolerance is printed.
    fn nearly_all(&self) -> String {
        if self.shortfall == 0 {
            return "all bytes".to_owned();
        }
        let rest = u128::from(self.bytes.saturating_sub(self.shortfall));
        // Rounded down: at least so many, whichever job of a group the others are of.
        let permille = rest * 1000 / u128::from(self.bytes.max(1));
        format!("at least {}.{} % of the bytes", permille / 10, permille % 10)
    }

    /// Whether a buffered write rests on the count of a device alone, which is of all programs.
    fn is_of_all_programs(&self, who: &str) -> bool {
        self.flow == Flow::Write && !self.direct_actual && who == "block"
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectionVerdict {
    pub(crate) route: Route,
    pub(crate) source: Source,
    pub(crate) as_requested: bool,
    /// Its reason, without a full stop.
    pub(crate) because: String,
}

/// Whether what an evidence source observed is what the requested path would show.
pub(crate) fn assess(requested: &Requested, observed: Observed) -> Assessment {
    match observed {
        Observed::Nothing => Assessment::Inconclusive,
        Observed::Legs { host, gpu } => match requested.kind {
            PathKind::User if host && !gpu => Assessment::Supports,
            PathKind::Ring | PathKind::Relay if host && gpu => Assessment::Supports,
            PathKind::User | PathKind::Ring | PathKind::Relay | PathKind::Mapped => {
                Assessment::Contradicts
            }
            PathKind::Foreign => Assessment::Inconclusive,
        },
        Observed::FromMapping(all) if all && requested.kind == PathKind::Mapped => {
            Assessment::Supports
        }
        Observed::FromMapping(_) => Assessment::Contradicts,
        Observed::Relayed { .. } if requested.kind != PathKind::Relay => Assessment::Inconclusive,
        Observed::Relayed { share: Share::All, .. } => Assessment::Supports,
        Observed::Relayed { .. } => Assessment::Contradicts,
        Observed::Storage(share) => match (requested.direct, share) {
            (true, Share::All) | (false, Share::Part | Share::Little) => Assessment::Supports,
            (true, _) => Assessment::Contradicts,
            // The page cache fetches from storage what it does not hold.
            (false, Share::All) => Assessment::Inconclusive,
        },
        Observed::Cache(growth) => match (requested.direct, growth) {
            (true, Growth::Still { .. }) | (false, Growth::Grew { .. }) => Assessment::Supports,
            (true, Growth::Grew { .. }) => Assessment::Contradicts,
            (false, Growth::Still { resident }) if resident => Assessment::Supports,
            (false, Growth::Still { .. }) => Assessment::Inconclusive,
        },
        Observed::NvidiaFs(_) if requested.kind != PathKind::Foreign => Assessment::Inconclusive,
        Observed::NvidiaFs(Share::All) => Assessment::Supports,
        // cuFile moves bytes without nvidia-fs too (peer-to-peer DMA, CUDA 12.8): no bytes here
        // are no proof of a detour.
        Observed::NvidiaFs(_) => Assessment::Inconclusive,
        Observed::Library(_) if requested.kind != PathKind::Foreign => Assessment::Inconclusive,
        Observed::Library(LibraryRoute::Past { .. }) => Assessment::Supports,
        Observed::Library(LibraryRoute::Host | LibraryRoute::Both) => Assessment::Contradicts,
        Observed::Reached(_) if requested.kind == PathKind::User => Assessment::Inconclusive,
        Observed::Reached(true) => Assessment::Supports,
        Observed::Reached(false) => Assessment::Contradicts,
    }
}

/// The verdict on one direction of a job.
pub(crate) fn of_direction(
    requested: &Requested,
    all_observed: &[(&str, Observed)],
) -> DirectionVerdict {
    let (source, served) = source(requested, all_observed);
    if requested.kind == PathKind::Mapped {
        return mapped::verdict(requested, all_observed, &served);
    }
    let legs = all_observed.iter().find_map(|(_, observed)| match observed {
        Observed::Legs { host, gpu } => Some((*host, *gpu)),
        _ => None,
    });
    let missed = all_observed.iter().find(|(_, observed)| *observed == Observed::Reached(false));
    let unknown = |why: &str| (Route::Unknown, why.to_owned());
    let (route, because) = match (requested.kind, legs) {
        (_, None) => unknown("gpuio itself moved no bytes"),
        (_, Some((false, _))) => unknown("bytes completed that did not pass the file leg"),
        (PathKind::Ring | PathKind::Relay | PathKind::Foreign, _) if missed.is_some() => {
            unknown("evidence disagrees: bytes completed, and the GPU's link carried next to none")
        }
        (PathKind::Foreign, _) => library::route(all_observed, source, &served),
        (PathKind::User, Some((true, true)))
        | (PathKind::Ring | PathKind::Relay, Some((true, false))) => {
            unknown("the legs are not those of this path")
        }
        (PathKind::User, Some((true, false))) => (host_route(source), served),
        (PathKind::Ring, Some((true, true))) => {
            let gpu = memory(requested);
            (Route::BounceHost, format!("all bytes used a host buffer and {gpu}; {served}"))
        }
        (PathKind::Relay, Some((true, true))) => relay(requested, all_observed, &served),
        (PathKind::Mapped, _) => unknown("the legs are not those of this path"),
    };
    let source = if route == Route::Unknown { Source::Unknown } else { source };
    DirectionVerdict {
        route,
        source,
        as_requested: as_requested(requested, route, source),
        because,
    }
}

fn memory(requested: &Requested) -> &'static str {
    if requested.software_gpu { "the software GPU's memory" } else { "GPU memory" }
}

/// A path through another GPU: which one is by its own counters.
fn relay(
    requested: &Requested,
    all_observed: &[(&str, Observed)],
    served: &str,
) -> (Route, String) {
    let relayed = all_observed.iter().find_map(|(_, observed)| match observed {
        Observed::Relayed { gpu, share } => Some((*gpu, *share)),
        _ => None,
    });
    match relayed {
        Some((gpu, Share::All)) => {
            let to = memory(requested);
            let text = format!("all bytes used a host buffer, GPU {gpu} and {to}; {served}");
            (Route::BounceGpu { gpu }, text)
        }
        Some((gpu, _)) => (Route::Unknown, format!("only part of what completed passed GPU {gpu}")),
        None => (Route::Unknown, "which GPU lay between was not counted".to_owned()),
    }
}

/// Where bytes went that end in host memory.
fn host_route(source: Source) -> Route {
    match source {
        Source::Storage => Route::Direct,
        Source::StorageThroughPageCache | Source::PageCache | Source::Mixed | Source::Holes => {
            Route::HostMemory
        }
        Source::Unknown => Route::Unknown,
    }
}

fn as_requested(requested: &Requested, route: Route, source: Source) -> bool {
    let route_fits = match requested.kind {
        PathKind::User if requested.direct => route == Route::Direct,
        PathKind::User => route == Route::HostMemory,
        PathKind::Ring => route == Route::BounceHost,
        PathKind::Relay => matches!(route, Route::BounceGpu { .. }),
        PathKind::Mapped => route == Route::Mapped,
        PathKind::Foreign => route == Route::Direct,
    };
    let source_fits = match source {
        Source::Unknown | Source::Holes => false,
        _ if requested.either => true,
        Source::Storage => requested.direct,
        _ => !requested.direct,
    };
    route_fits && source_fits
}

/// The most bytes by which a source that observed all at storage counted fewer than it should.
/// `counts` are those of a source by its name: counted and expected.
pub(crate) fn shortfall(
    all_observed: &[(&str, Observed)],
    counts: impl Fn(&str) -> Option<(u64, u64)>,
) -> u64 {
    let all = all_observed.iter().filter(|(_, one)| *one == Observed::Storage(Share::All));
    let fewer =
        all.filter_map(|(name, _)| counts(name)).map(|(moved, of)| of.saturating_sub(moved));
    fewer.max().unwrap_or(0)
}

/// The source or sink of the bytes, and in words why.
fn source(requested: &Requested, all_observed: &[(&str, Observed)]) -> (Source, String) {
    let mut shares: Vec<(&str, Share)> = Vec::new();
    let mut cache = None;
    for (name, observed) in all_observed {
        match observed {
            Observed::Storage(share) => shares.push((name, *share)),
            Observed::Cache(growth) => cache = Some(*growth),
            _ => {}
        }
    }
    let Some(((first, share), others)) = shares.split_first() else {
        let text = "no source tells which part of these bytes storage moved";
        return (Source::Unknown, text.to_owned());
    };
    if let Some((other, theirs)) = others.iter().find(|(_, other)| other != share) {
        let text = format!(
            "evidence disagrees: {} by {first}, {} by {other}",
            words(*share),
            words(*theirs)
        );
        return (Source::Unknown, text);
    }
    let names: Vec<&str> = shares.iter().map(|(name, _)| *name).collect();
    by_share(requested, *share, cache, &names.join(" and "))
}

fn words(share: Share) -> &'static str {
    match share {
        Share::All => "nine tenths of the bytes or more at storage",
        Share::Part => "part of the bytes at storage",
        Share::Little => "next to none at storage",
    }
}

/// All storage evidence sources agree on `share`: the page cache has to fit.
fn by_share(
    requested: &Requested,
    share: Share,
    cache: Option<Growth>,
    who: &str,
) -> (Source, String) {
    let read = requested.flow == Flow::Read;
    let moved = if read { "delivered" } else { "took" };
    let (all, short) = (requested.nearly_all(), requested.shortfall > 0);
    let (most, others) = match requested.is_of_all_programs(who) {
        true => ("at most ", ", which counts other programs too"),
        false => ("", ""),
    };
    match (share, cache) {
        // Holes were read, or storage would have delivered all.
        (Share::All, _) if read && short && requested.holes.absent > 0 => {
            let holes = requested.holes.words();
            (Source::Mixed, format!("storage {moved} {all} by {who}; {holes}"))
        }
        (Share::All, _) if !requested.direct_actual => {
            let text =
                format!("storage {moved} {all} by {who}{others}, and no O_DIRECT was in force");
            (Source::StorageThroughPageCache, text)
        }
        (Share::All, Some(Growth::Still { .. })) => {
            let text = format!("storage {moved} {all} by {who}, and the page cache did not grow");
            (Source::Storage, text)
        }
        (Share::All, Some(Growth::Grew { .. })) => {
            let text = format!("storage {moved} {all} by {who}, yet the page cache grew");
            (Source::Unknown, text)
        }
        (Share::All, None) => {
            let text = format!(
                "storage {moved} {all} by {who}, but the page cache could not be looked at"
            );
            (Source::Unknown, text)
        }
        (share, cache) if read && requested.holes.absent > 0 => {
            with_holes(requested, share, cache, who)
        }
        (Share::Part, Some(Growth::Still { resident: false })) => {
            let text = format!(
                "storage {moved} part of the bytes by {who}, and the page cache held next to \
                 nothing of the rest"
            );
            (Source::Unknown, text)
        }
        (Share::Part, _) => {
            let text = format!(
                "storage {moved} {most}part of the bytes by {who}{others}, the page cache the rest"
            );
            (Source::Mixed, text)
        }
        // More came in than a twentieth, the most that storage delivered: it came past these
        // evidence sources. Less is a first pass over a file that was then read again and again.
        (Share::Little, Some(Growth::Grew { bytes })) if read && bytes > requested.bytes / 20 => {
            let text =
                format!("the page cache grew, yet storage delivered next to nothing by {who}");
            (Source::Unknown, text)
        }
        (Share::Little, Some(Growth::Still { resident: false })) => {
            let text = format!(
                "storage {moved} next to nothing by {who}, nor had the page cache the bytes"
            );
            (Source::Unknown, text)
        }
        (Share::Little, _) => {
            let text = format!("storage {moved} less than 5 % by {who}, the page cache the rest");
            (Source::PageCache, text)
        }
    }
}

/// Reads of a file with holes, of which storage delivered less than nine tenths.
fn with_holes(
    requested: &Requested,
    share: Share,
    cache: Option<Growth>,
    who: &str,
) -> (Source, String) {
    let (holes, delivered) = (requested.holes.words(), words(share));
    let resident = !matches!(cache, None | Some(Growth::Still { resident: false }));
    if share != Share::Part && requested.holes.nearly_all() {
        return (Source::Holes, format!("{delivered} by {who}: {holes}"));
    }
    let rest = if resident { "; the page cache had some of the rest" } else { "" };
    let source = match share {
        // Bytes outside holes came from somewhere: from storage here, from the cache there.
        Share::Part => Source::Mixed,
        _ if resident => Source::Mixed,
        _ => Source::Unknown,
    };
    (source, format!("{delivered} by {who}; {holes}{rest}"))
}

/// One verdict on all directions of a job, whether it is the requested path, and its sentence.
/// `shared` says that the counters cover other jobs of the group too.
pub(crate) fn together(
    verdicts: Vec<(Flow, DirectionVerdict)>,
    shared: bool,
) -> (Verdict, bool, String) {
    let (mut route, mut source) = (Route::Unknown, Source::Unknown);
    for (nth, (_, one)) in verdicts.iter().enumerate() {
        (route, source) =
            if nth == 0 { (one.route, one.source) } else { join((route, source), one) };
    }
    let as_requested = !verdicts.is_empty() && verdicts.iter().all(|(_, one)| one.as_requested);
    let goes = |flow| verdicts.iter().any(|(one, _)| *one == flow);
    let verdict = Verdict::new(route, source, goes(Flow::Read), goes(Flow::Write));
    let reasons: Vec<String> = verdicts
        .iter()
        .map(|(flow, one)| match verdicts.len() {
            1 => one.because.clone(),
            _ => format!("{}s: {}", flow.name(), one.because),
        })
        .collect();
    let scope = if shared { " (counters cover all jobs of the group)" } else { "" };
    let sentence = format!("{}: {}{scope}.", verdict.words, reasons.join("; "));
    (verdict, as_requested, sentence)
}

/// The route of both directions, where one can be named.
fn join((route, source): (Route, Source), other: &DirectionVerdict) -> (Route, Source) {
    let host = |route| matches!(route, Route::Direct | Route::HostMemory);
    let route = if route == other.route {
        route
    } else if host(route) && host(other.route) {
        Route::HostMemory
    } else if route == Route::Unknown || other.route == Route::Unknown {
        Route::Unknown
    } else {
        Route::Mixed
    };
    let source = if route == Route::Unknown {
        Source::Unknown
    } else if source == other.source {
        source
    } else if source == Source::Unknown || other.source == Source::Unknown {
        Source::Unknown
    } else {
        Source::Mixed
    };
    (route, source)
}

pub(crate) fn size(bytes: u64) -> String {
    human_bytes(bytes as f64)
}

#[cfg(test)]
mod tests;
