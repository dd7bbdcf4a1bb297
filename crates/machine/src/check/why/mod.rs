//! "Is GDS on, and which way do the bytes go?": the answers for a mount and a GPU, and a process.
//!
//! GDS is on where NVIDIA's libcufile moves bytes between storage and GPU memory without a copy in
//! host memory: one of the modes `nvidia-fs`, `p2pdma` and `rdma` of a [`Verdict`]. Everything here
//! follows from verdicts; there are no rules of its own. An answer begins with the conclusion, then
//! has what each library does, each fact behind it, and what would change it.

mod overview;
mod process;
mod process_text;
mod text;

use crate::topo::Coherent;
use serde::Serialize;

use crate::check::verdict::{About, Answer, ModeVerdict, Need, Verdict};

pub use overview::{Overview, Row};
pub use process::{IoNow, LivePage, Moved, NvidiaFs, ProcessWhy, Seen, of_process};
pub use process_text::process_document;
pub use text::document;

/// Modes in which NVIDIA's libcufile moves bytes without a copy in host memory, best first.
const DIRECT: [&str; 3] = ["nvidia-fs", "p2pdma", "rdma"];

/// Path `initiated`, which has nothing to do with GDS.
const INITIATED: &str = "initiated";

/// The answer for one mount and one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    pub path: String,
    /// The mount that serves it.
    pub mount_point: String,
    /// Its file system.
    pub fs_type: String,
    /// Options of the mount and of its file system.
    pub mount_options: String,
    pub gpu: String,
    /// Its coherent link to the processor; `null` where none is known.
    pub coherent: Option<Coherent>,
    /// Whether GDS can be on, by the facts.
    pub gds: Answer,
    /// The conclusion in one or two sentences.
    pub conclusion: String,
    /// Which way the bytes go, with each library.
    pub ways: Vec<Way>,
    /// The storage below the mount, down to each drive or to the server.
    pub storage: Vec<String>,
    /// Each fact that decides, once.
    pub evidence: Vec<Evidence>,
    /// The changes that would make each direct mode work that does not.
    pub changes: Vec<Change>,
}

/// Which way bytes go with one library or program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Way {
    /// The library or program.
    pub with: &'static str,
    /// The mode; `null` where it can't move bytes, or where that is unknown.
    pub mode: Option<&'static str>,
    pub words: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub about: About,
    /// Whether it is as the modes need it.
    pub met: Answer,
    /// The finding; for an unknown, the reason.
    pub found: String,
    /// The modes that need it.
    pub modes: Vec<&'static str>,
}

/// The needs that a direct mode lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub mode: &'static str,
    /// The steps, in order; none for a mode that can't work here.
    pub steps: Vec<String>,
    /// Why nothing on this machine makes it work; `null` where something may.
    pub impossible: Option<String>,
}

/// The answer that follows from a verdict.
pub fn of(verdict: &Verdict) -> Why {
    let direct = direct_modes(verdict);
    let library = library(verdict);
    let gds = match direct.iter().find(|mode| mode.works == Answer::Yes) {
        Some(_) => library.map_or(Answer::Unknown, |(_, need)| need.met),
        None if direct.iter().any(|mode| mode.works == Answer::Unknown) => Answer::Unknown,
        None => Answer::No,
    };
    let absent = library.map(|(_, need)| need).filter(|need| need.met != Answer::Yes);
    Why {
        path: verdict.path.clone(),
        mount_point: verdict.mount_point.clone(),
        fs_type: verdict.fs_type.clone(),
        mount_options: verdict.mount_options.clone(),
        gpu: verdict.gpu.clone(),
        coherent: verdict.coherent.clone(),
        gds,
        conclusion: conclusion(verdict, gds, absent),
        ways: ways(verdict, absent),
        storage: verdict.storage.clone(),
        evidence: evidence(verdict),
        changes: changes(verdict),
    }
}

fn direct_modes(verdict: &Verdict) -> Vec<&ModeVerdict> {
    DIRECT.iter().filter_map(|name| find(verdict, name)).collect()
}

fn find<'v>(verdict: &'v Verdict, name: &str) -> Option<&'v ModeVerdict> {
    verdict.modes.iter().find(|mode| mode.mode == name)
}

fn needs(verdict: &Verdict) -> impl Iterator<Item = (&'static str, &Need)> {
    verdict.modes.iter().flat_map(|mode| mode.needs.iter().map(|need| (mode.mode, need)))
}

/// Whether NVIDIA's library is there, which its mode without needs of hardware names.
fn library(verdict: &Verdict) -> Option<(&'static str, &Need)> {
    needs(verdict).find(|(mode, need)| *mode == "compat" && need.about == About::Library)
}

fn first(mode: &ModeVerdict, met: Answer) -> Option<&Need> {
    mode.needs.iter().find(|need| need.met == met)
}

/// The direct mode that lacks least: one for this kind of file system before others, then by the
/// needs that nothing fixes, those that are not met, and those that are not known.
fn nearest(verdict: &Verdict) -> Option<&ModeVerdict> {
    let count = |mode: &ModeVerdict, of: &dyn Fn(&Need) -> bool| {
        mode.needs.iter().filter(|need| of(need)).count()
    };
    direct_modes(verdict).into_iter().min_by_key(|mode| {
        let other_kind = mode.needs.iter().any(is_of_another_kind);
        let unfixable = count(mode, &|need| need.met == Answer::No && need.fix.is_none());
        let unmet = count(mode, &|need| need.met == Answer::No);
        (other_kind, unfixable, unmet, count(mode, &|need| need.met == Answer::Unknown))
    })
}

/// That a mode is for other file systems than this one.
fn is_of_another_kind(need: &Need) -> bool {
    need.about == About::FileSystem && need.met == Answer::No && need.fix.is_none()
}

fn conclusion(verdict: &Verdict, gds: Answer, absent: Option<&Need>) -> String {
    let pair = verdict.pair();
    let direct = direct_modes(verdict);
    let works = direct.iter().find(|mode| mode.works == Answer::Yes);
    let decides = nearest(verdict).and_then(|mode| first(mode, gds)).map(|need| &need.found);
    match (gds, works, decides) {
        (Answer::Yes, Some(mode), _) => format!(
            "GDS can be on for {pair}: by the facts, NVIDIA's libcufile moves bytes without a copy \
             in host memory (mode {})",
            mode.mode
        ),
        (Answer::No, Some(mode), _) => format!(
            "GDS is off for {pair}: {}. The rest of what mode {} needs is there",
            absent.map_or("NVIDIA's libcufile is absent", |need| need.found.as_str()),
            mode.mode
        ),
        (_, Some(mode), _) => format!(
            "Whether GDS is on for {pair} is unknown: {}. The rest of what mode {} needs is there",
            absent.map_or("NVIDIA's libcufile was not looked for", |need| need.found.as_str()),
            mode.mode
        ),
        (Answer::Unknown, _, decides) => format!(
            "Whether GDS is on for {pair} is unknown: {}",
            decides.map_or("facts are missing", String::as_str)
        ),
        (_, _, decides) => {
            format!("GDS is off for {pair}: {}", decides.map_or("no mode works", String::as_str))
        }
    }
}

/// With NVIDIA's libcufile, with gpuio's, and in `gpuio bench`; and on its path `initiated`, which
/// has needs of its own.
fn ways(verdict: &Verdict, absent: Option<&Need>) -> Vec<Way> {
    let nvidia = nvidia(verdict, absent);
    let own = find(verdict, "gpuio");
    let works = own.map_or(Answer::Unknown, |mode| mode.works);
    let on = works == Answer::Yes;
    let lacks = own.and_then(|mode| first(mode, mode.works)).map_or("", |need| &need.found);
    let by_fs = find(verdict, "nvidia-fs").is_some_and(|mode| mode.works == Answer::Yes);
    let drop_in = match (on, by_fs && absent.is_none()) {
        (false, _) if works == Answer::Unknown => format!("unknown: {lacks}"),
        (false, _) => format!("no GPU memory can be reached: {lacks}"),
        (true, false) => "through page-locked host memory, with GPU copies while reads run; it \
                          needs no nvidia-fs (`gpuio exec`)"
            .to_owned(),
        (true, true) => "files open with O_DIRECT: passed on to NVIDIA's libcufile (nvidia-fs); \
                         others through page-locked host memory (`gpuio exec`)"
            .to_owned(),
    };
    let bench = match (on, !never(verdict)) {
        (true, true) => "paths host, staged, cached, gather, library and others through host \
                         memory; paths gds as NVIDIA's libcufile goes (`gpuio list`)"
            .to_owned(),
        (true, false) => "paths host, staged, cached, gather, library and others through host \
                          memory (`gpuio list`)"
            .to_owned(),
        (false, _) if works == Answer::Unknown => {
            format!("path host; whether the others work is unknown: {lacks}")
        }
        (false, _) => {
            format!("path host alone: {lacks} (to try the others: --gpu software)")
        }
    };
    let own_mode = on.then_some("gpuio");
    vec![
        nvidia,
        Way { with: "gpuio's libcufile", mode: own_mode, words: drop_in },
        Way { with: "gpuio bench", mode: own_mode.or(Some("host")), words: bench },
    ]
    .into_iter()
    .chain(find(verdict, INITIATED).map(initiated))
    .collect()
}

/// The path on which the GPU starts the I/O, with what decides that it does not work.
fn initiated(mode: &ModeVerdict) -> Way {
    let lacks = mode.needs.iter().filter(|need| need.met == mode.works);
    let lacks: Vec<String> = lacks
        .map(|need| match &need.fix {
            Some(fix) => format!("{} ({fix})", need.found),
            None => need.found.clone(),
        })
        .collect();
    let lacks = lacks.join("; ");
    let words = match mode.works {
        Answer::Yes => "the GPU starts the I/O itself, through io_uring and page-locked host \
                        memory"
            .to_owned(),
        Answer::No => format!("not here: {lacks}"),
        Answer::Unknown => format!("unknown: {lacks}"),
    };
    Way { with: "path initiated", mode: (mode.works == Answer::Yes).then_some(mode.mode), words }
}

/// Whether NVIDIA's libcufile can move nothing here.
fn never(verdict: &Verdict) -> bool {
    let is_off = |mode: &ModeVerdict| mode.works == Answer::No;
    find(verdict, "compat").is_some_and(is_off) && direct_modes(verdict).into_iter().all(is_off)
}

fn nvidia(verdict: &Verdict, absent: Option<&Need>) -> Way {
    let with = "NVIDIA's libcufile";
    let direct = direct_modes(verdict);
    let works = direct.iter().find(|mode| mode.works == Answer::Yes);
    let compat = find(verdict, "compat");
    let compat_works = compat.map_or(Answer::Unknown, |mode| mode.works);
    let reason = |mode: &ModeVerdict| {
        first(mode, mode.works).map_or_else(String::new, |need| need.found.clone())
    };
    if let Some(mode) = works.filter(|_| absent.is_none()) {
        let words = format!("files open with O_DIRECT: {}", mode.is);
        return Way { with, mode: Some(mode.mode), words };
    }
    let open = direct.iter().find(|mode| mode.works == Answer::Unknown);
    if let Some(library) = absent.filter(|need| need.met == Answer::No && !never(verdict)) {
        return Way { with, mode: None, words: format!("not at all: {}", library.found) };
    }
    match (open, compat_works) {
        _ if never(verdict) => {
            let why = compat.map(reason).unwrap_or_default();
            Way { with, mode: None, words: format!("not at all, calls fail: {why}") }
        }
        (None, Answer::Yes) => Way {
            with,
            mode: Some("compat"),
            words: "through host memory, by POSIX reads and copies (compatibility mode)".to_owned(),
        },
        (None, _) => {
            let why = compat.map(reason).unwrap_or_default();
            let words = format!("unknown; not direct, at most through host memory ({why})");
            Way { with, mode: None, words }
        }
        (Some(mode), _) => {
            let words = format!("unknown: mode {} may work ({})", mode.mode, reason(mode));
            Way { with, mode: None, words }
        }
    }
}

/// Direct modes for this kind of file system; all of them where there is none.
fn modes_of_this_kind(verdict: &Verdict) -> Vec<&ModeVerdict> {
    let all = direct_modes(verdict);
    let of_this: Vec<&ModeVerdict> =
        all.iter().copied().filter(|mode| !mode.needs.iter().any(is_of_another_kind)).collect();
    if of_this.is_empty() { all } else { of_this }
}

/// Every need of every mode once, in the order of [`About`]; what is not met before what is. Direct
/// modes for other kinds of file systems are left out, and path `initiated`, whose way has them.
fn evidence(verdict: &Verdict) -> Vec<Evidence> {
    let mut all: Vec<Evidence> = Vec::new();
    let shown = modes_of_this_kind(verdict);
    let left_out = |name: &str| {
        let is_shown = || shown.iter().any(|mode| mode.mode == name);
        name == INITIATED || DIRECT.contains(&name) && !is_shown()
    };
    for (mode, need) in needs(verdict).filter(|(mode, _)| !left_out(mode)) {
        match all.iter_mut().find(|one| (one.about, &one.found) == (need.about, &need.found)) {
            Some(known) if known.modes.contains(&mode) => {}
            Some(known) => known.modes.push(mode),
            None => all.push(Evidence {
                about: need.about,
                met: need.met,
                found: need.found.clone(),
                modes: vec![mode],
            }),
        }
    }
    let order = |met: Answer| match met {
        Answer::No => 0,
        Answer::Unknown => 1,
        Answer::Yes => 2,
    };
    all.sort_by_key(|one| (one.about, order(one.met)));
    all
}

/// The needs that each direct mode for this kind of file system lacks; none where one works.
fn changes(verdict: &Verdict) -> Vec<Change> {
    let modes = modes_of_this_kind(verdict);
    if let Some(works) = modes.iter().find(|mode| mode.works == Answer::Yes) {
        let library = library(verdict).filter(|(_, need)| need.met == Answer::No);
        let step = library.and_then(|(_, need)| need.fix.clone());
        let change = |step| Change { mode: works.mode, steps: vec![step], impossible: None };
        return step.map(change).into_iter().collect();
    }
    let off = modes.into_iter();
    let change = |mode: &ModeVerdict| {
        let lacking = mode.needs.iter().filter(|need| need.met != Answer::Yes);
        let blocks = |need: &&Need| need.met == Answer::No && need.fix.is_none();
        let impossible = lacking.clone().find(blocks).map(|need| need.found.clone());
        let mut steps: Vec<String> = Vec::new();
        for need in lacking.filter(|_| impossible.is_none()) {
            let step = match (need.met, &need.fix) {
                (Answer::Unknown, Some(fix)) => format!("find out or do: {fix}"),
                (Answer::Unknown, None) => format!("find out: {}", need.found),
                (_, Some(fix)) => fix.clone(),
                (_, None) => continue,
            };
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        Change { mode: mode.mode, steps, impossible }
    };
    off.map(change).collect()
}

#[cfg(test)]
mod tests;
