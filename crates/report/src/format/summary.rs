//! A screen for people: a row per path, what it means, and what to do next.

use std::fmt::Write as _;

use gpuio_base::stat::Percentile;
use gpuio_base::units::printable_lines;
use gpuio_record::{EndedHow, LeftOut, Record, Route, Side, Source, Towards};
use gpuio_table::{Column, Grid, words};

use super::text::{PARAGRAPH_WIDTH, SOFTWARE_GPU, header, warnings};
use crate::number::{NONE, iops, maybe_time, throughput};
use crate::verification::{self, Checked};
use crate::workload::{blocks_short, is_random, jobs, load_word, rw_of, sides};
use crate::wrap::paragraph;

/// Blocks up to this size of random loads are judged by I/Os per second, others by throughput.
const SMALL_BYTES: u64 = 64 << 10;
/// Warnings that are named; the others are counted.
const NAMED: usize = 3;

/// The record in about 25 lines, `width` columns wide: machine and storage; a row per path with a
/// column per load; what the storage delivers, which path to the GPU is the fastest, whether GDS is
/// active and why not; how much was verified; the first sentence of the most severe warnings; and
/// commands that go on from here. Everything else is in [`super::text`]. Ends in a line feed.
#[must_use]
pub fn render(record: &Record, width: u16) -> String {
    let record = &crate::printable::record(record);
    let wide = width.min(PARAGRAPH_WIDTH);
    let mut out = head(record, width, wide);
    out.push('\n');
    out.push_str(&table(record, width));
    out.push('\n');
    out.push_str(&conclusion(record, wide));
    out.push_str(&checked(record, wide));
    out.push_str(&warned(record, wide));
    printable_lines(&out).into_owned()
}

/// What, when and where.
fn head(record: &Record, width: u16, wide: u16) -> String {
    let tool = &record.tool;
    let at = header::to_the_second(&record.started_at);
    let first = format!("{} {}  {at}  ", tool.name, tool.version);
    let mut out = paragraph(&first, &header::host(&record.host), width);
    for storage in &record.storage {
        out.push_str(&paragraph("storage: ", &header::storage(storage), wide));
    }
    let mut gpus = header::gpus(record);
    if gpus.is_empty() {
        gpus.push("none in use; gpuio measures NVIDIA's GPUs".to_owned());
    }
    for gpu in gpus {
        out.push_str(&paragraph("GPU:     ", &gpu, wide));
    }
    if record.plan.software_gpu {
        let text = "no GPU was measured: the figures are those of host memory and CPU threads";
        out.push_str(&paragraph("SOFTWARE GPU: ", text, wide));
    }
    match record.ended {
        EndedHow::Complete => {}
        EndedHow::Interrupted => out.push_str("PARTIAL: interrupted before its end\n"),
        EndedHow::Failed => out.push_str("FAILED:  stopped by errors\n"),
        EndedHow::Unfinished => out.push_str("UNFINISHED: saved before the run ended\n"),
    }
    out
}

/// One direction of a job.
#[derive(Clone, Copy)]
struct Load<'a>(Side<'a>);

impl Load<'_> {
    /// Same load, whatever the path.
    fn kind(&self) -> (String, String) {
        (rw_of(self.0.plan, self.0.direction), blocks_short(&self.0.plan.blocks))
    }

    fn is_small(&self) -> bool {
        let largest = self.0.plan.blocks.iter().map(|block| block.max_bytes).max().unwrap_or(0);
        is_random(self.0.plan) && largest <= SMALL_BYTES
    }

    fn path(&self) -> &str {
        &self.0.plan.path.choice.actual
    }

    fn bytes_per_s(&self) -> f64 {
        self.0.figures().bytes_per_s
    }

    fn iops(&self) -> f64 {
        self.0.figures().iops
    }

    fn route(&self) -> Option<Route> {
        self.0.result.proof.as_ref().map(|proof| proof.verdict.route)
    }

    fn source(&self) -> Option<Source> {
        self.0.result.proof.as_ref().map(|proof| proof.verdict.source)
    }

    /// `2.31 GiB/s`, or `105 k IOPS` where blocks are small.
    fn rate(&self) -> String {
        match self.is_small() {
            true => format!("{} IOPS", iops(self.iops())),
            false => throughput(self.bytes_per_s()),
        }
    }

    /// `1M reads`, `4K random writes`.
    fn words(&self) -> String {
        let random = if is_random(self.0.plan) { "random " } else { "" };
        let mix = match self.0.plan.directions() {
            [_] => String::new(),
            _ => format!(" of {}", load_word(self.0.plan)),
        };
        format!("{} {random}{}s{mix}", blocks_short(&self.0.plan.blocks), self.0.direction.name())
    }
}

fn loads(record: &Record) -> Vec<Load<'_>> {
    sides(record).map(Load).collect()
}

/// A row per path: its loads side by side; a further row where one repeats.
fn table(record: &Record, width: u16) -> String {
    let all = loads(record);
    let mut kinds: Vec<Load<'_>> = Vec::new();
    let mut rows: Vec<Vec<Load<'_>>> = Vec::new();
    for load in all {
        if !kinds.iter().any(|known| known.kind() == load.kind()) {
            kinds.push(load);
        }
        let fits = |row: &&mut Vec<Load<'_>>| {
            row.iter().all(|other| other.path() == load.path() && other.kind() != load.kind())
        };
        match rows.iter_mut().find(fits) {
            Some(row) => row.push(load),
            None => rows.push(vec![load]),
        }
    }
    if rows.is_empty() {
        return "no job ran\n".to_owned();
    }
    let tails = Percentile::shown(&record.percentiles(), &[Percentile::TAIL]);
    let mut columns: Vec<Column> = vec![words("path")];
    for kind in &kinds {
        let (rw, size) = kind.kind();
        columns.push(Column { name: format!("{rw} {size}").into(), left: false });
        if kind.is_small() {
            let heads = tails.iter().map(|at| Column { name: at.label().into(), left: false });
            columns.extend(heads);
        }
    }
    columns.extend([words("path taken"), words("verified")]);
    let cells = |row: &Vec<Load<'_>>| {
        let mut cells = vec![row[0].path().to_owned()];
        for kind in &kinds {
            let load = row.iter().find(|load| load.kind() == kind.kind());
            cells.push(load.map_or_else(|| NONE.to_owned(), Load::rate));
            if kind.is_small() {
                let latency = load.and_then(|load| load.0.figures().latency.as_ref());
                let cell =
                    |at: &Percentile| maybe_time(latency.and_then(|all| all.total.percentile(*at)));
                cells.extend(tails.iter().map(cell));
            }
        }
        cells.push(alike(row, |load| {
            let proof = load.0.result.proof.as_ref();
            proof.map_or_else(|| NONE.to_owned(), |proof| proof.verdict.words.clone())
        }));
        cells.push(alike(row, |load| verification::word(load.0.result.verify.as_ref())));
        cells
    };
    let rows = rows.iter().map(cells).collect();
    Grid { columns, rows }.at_any_width(width)
}

/// The words of all loads of a row, each once.
fn alike(row: &[Load<'_>], words: impl Fn(&Load<'_>) -> String) -> String {
    let mut all: Vec<String> = Vec::new();
    for load in row {
        let word = words(load);
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all.join("; ")
}

/// What the figures say.
fn conclusion(record: &Record, width: u16) -> String {
    let all = loads(record);
    let mut out = String::new();
    let mut say = |text: String| out.push_str(&paragraph("", &text, width));
    if let Some(text) = storage(&all) {
        say(text);
    }
    if let Some(text) = fastest(record, &all) {
        say(text);
    }
    if let Some(text) = gds(record, &all) {
        say(text);
    }
    if all.iter().all(|load| load.0.plan.gpus.is_empty()) && !record.plan.left_out.is_empty() {
        let why = reasons(&record.plan.left_out);
        let first = why.first().map_or("", |(why, _)| *why);
        say(format!("No path to a GPU ran: {}", clause(first)));
    } else {
        let uncovered = reasons(&record.plan.left_out);
        let others = uncovered.iter().filter(|(why, _)| !why.contains("runs only where"));
        let named: Vec<String> = others
            .filter(|(_, paths)| !paths.iter().any(|path| path.starts_with("gds")))
            .map(|(why, paths)| format!("{} ({})", paths.join(", "), clause(why)))
            .collect();
        if !named.is_empty() {
            say(format!("Not run: {}.", named.join("; ")));
        }
    }
    out
}

/// What storage delivers and takes, of the loads whose bytes it moved.
fn storage(all: &[Load<'_>]) -> Option<String> {
    let host = || all.iter().filter(|load| load.path() == "host");
    host().next()?;
    let moved = |load: &&Load<'_>| {
        matches!(load.source(), Some(Source::Storage | Source::StorageThroughPageCache))
    };
    let part = |direction: Towards| {
        let rates: Vec<String> = host()
            .filter(moved)
            .filter(|load| load.0.direction == direction)
            .map(|load| format!("{} ({})", load.rate(), load.words()))
            .collect();
        (!rates.is_empty()).then(|| rates.join(" and "))
    };
    Some(match (part(Towards::Read), part(Towards::Write)) {
        (None, None) => "What your storage delivers was not measured: the page cache served the \
                         loads in host memory."
            .to_owned(),
        (Some(reads), None) => format!("Your storage delivers {reads}."),
        (None, Some(writes)) => format!("Your storage takes {writes}."),
        (Some(reads), Some(writes)) => {
            format!("Your storage delivers {reads}, and takes {writes}.")
        }
    })
}

/// The fastest path to a GPU for each kind of read, and where the bytes came from.
fn fastest(record: &Record, all: &[Load<'_>]) -> Option<String> {
    let reads = || {
        let to_gpu = all.iter().filter(|load| !load.0.plan.gpus.is_empty());
        to_gpu.filter(|load| load.0.direction == Towards::Read && load.0.result.failed == 0)
    };
    let mut kinds: Vec<(String, String)> = Vec::new();
    for load in reads() {
        if !kinds.contains(&load.kind()) {
            kinds.push(load.kind());
        }
    }
    let best = |kind: &(String, String)| {
        let same = reads().filter(|load| load.kind() == *kind);
        same.max_by(|a, b| a.bytes_per_s().total_cmp(&b.bytes_per_s())).copied()
    };
    let best: Vec<Load<'_>> = kinds.iter().filter_map(best).collect();
    let first = best.first()?;
    let gpu = match (record.plan.software_gpu, first.0.plan.gpus.as_slice()) {
        (true, _) => format!("the {SOFTWARE_GPU}"),
        (false, [one]) => format!("GPU {}", one.index),
        (false, many) => format!("{} GPUs", many.len()),
    };
    let part = |load: &Load<'_>| {
        format!("`{}` for {}: {}{}", load.path(), load.words(), load.rate(), from(load))
    };
    let parts: Vec<String> = best.iter().map(part).collect();
    Some(format!("The fastest way to {gpu} is {}.", parts.join(", and ")))
}

fn from(load: &Load<'_>) -> &'static str {
    match (load.route(), load.source()) {
        (Some(Route::Mapped), _) | (_, Some(Source::PageCache)) => " from the page cache",
        (_, Some(Source::Storage)) => " from storage",
        (_, Some(Source::StorageThroughPageCache)) => " from storage through the page cache",
        _ => "",
    }
}

/// Whether NVIDIA's library moved bytes directly, and why not.
fn gds(record: &Record, all: &[Load<'_>]) -> Option<String> {
    if record.plan.software_gpu {
        return None;
    }
    let mut ran = all.iter().filter(|load| load.0.plan.register_buffer.is_some()).peekable();
    if ran.peek().is_some() {
        let direct = |load: &Load<'_>| load.route() == Some(Route::Direct);
        let all_direct = ran.clone().all(direct);
        return Some(if all_direct {
            "GDS is active: the drive wrote into GPU memory directly.".to_owned()
        } else {
            let other = ran.find(|load| !direct(load));
            let proof = other.and_then(|load| load.0.result.proof.as_ref());
            let why = proof.map_or("no evidence was recorded", |proof| proof.sentence.as_str());
            format!("GDS is not active: {}", clause(why))
        });
    }
    let out = record.plan.left_out.iter().find(|out| out.path.starts_with("gds"))?;
    let on_gpu = all.iter().any(|load| !load.0.plan.gpus.is_empty());
    on_gpu.then(|| format!("GDS is not active: {}", clause(&out.why)))
}

/// Reasons for paths that were left out, each once.
fn reasons(left_out: &[LeftOut]) -> Vec<(&str, Vec<&str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for out in left_out {
        match reasons.iter_mut().find(|(why, _)| *why == out.why) {
            Some((_, paths)) => paths.push(&out.path),
            None => reasons.push((&out.why, vec![&out.path])),
        }
    }
    reasons
}

/// The first clause of a reason that has details behind it.
fn clause(text: &str) -> &str {
    let ends = [text.find("; "), text.find(". "), text.find(".\n")];
    let end = ends.into_iter().flatten().min().unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// How much of the data was verified.
fn checked(record: &Record, width: u16) -> String {
    let outcomes: Vec<_> = jobs(record).filter_map(|(_, job)| job.verify.as_ref()).collect();
    if outcomes.is_empty() {
        return String::new();
    }
    let text = outcomes.into_iter().collect::<Checked>().sentence();
    paragraph("Verified: ", &text, width)
}

/// The most severe warnings by their first sentence, and how many more there are.
fn warned(record: &Record, width: u16) -> String {
    let all = warnings::first_sentences(record);
    let mut out = String::new();
    for text in all.iter().take(NAMED) {
        out.push_str(&paragraph("warning: ", text, width));
    }
    if !all.is_empty() {
        out.push_str(warnings::EXPLAIN);
        out.push('\n');
    }
    let more = all.len().saturating_sub(NAMED);
    if more > 0 {
        let plural = if more == 1 { "" } else { "s" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{more} more warning{plural} in the details");
    }
    out
}
