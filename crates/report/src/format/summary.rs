//! A screen for people: a row per path, what it means, and what to do next.

use gpuio_base::document::{
    Cell, Columns, Document, Item, Layout, List, Part, Section, grouped, unique,
};
use gpuio_base::stat::Percentile;
use gpuio_record::{
    BlockShare, EndedHow, JobPlan, JobResult, LeftOut, Record, Route, Side, Source, Towards,
    Warning, WarningKind,
};

use super::text::{
    PARAGRAPH_WIDTH, SOFTWARE_GPU, Show, checkpoint, detail, feed, header, loads, proof, warnings,
};
use crate::number::{iops, many, throughput, time};
use crate::others::{self, Others};
use crate::standing::{self, Caveat};
use crate::verification::{self, Checked};
use crate::workload::{self, below_depth, blocks_short, is_random, jobs, load_word, rw_of, sides};

/// Blocks up to this size of random loads are judged by I/Os per second, others by throughput.
const SMALL_BYTES: u64 = 64 << 10;
/// Warnings that are named; the others are counted.
const NAMED: usize = 2;
/// Paths whose rows may be in two tables.
const MOST_TWICE: usize = 3;
/// Disturbed jobs that are named; more of them are counted.
const MOST_JOBS: usize = 2;
/// Loads of different threads and depths that are listed; more of them have their range.
const MOST_LOADS: usize = 3;

const DATA_FILES: &str = "Data files";

/// The line on files that stay after a run, and where; `found` is how many bytes lie in them.
pub fn data_files(record: &Record, found: u64) -> Option<String> {
    let kept = detail::kept(&crate::printable::record(record), Some(found));
    kept.map(|text| format!("{DATA_FILES}: {text}"))
}

/// The record in about 25 lines, `width` columns wide: machine and storage; a row per path with a
/// column per load; what the storage delivers, which path to the GPU is the fastest, whether GDS is
/// active and why not; how much was verified; which files stay; the first sentence of the most
/// severe warnings; and commands that go on from here. Everything else is in [`super::text`]. Ends
/// in a line feed.
pub fn render(record: &Record, width: u16, show: Show<'_>) -> String {
    let doubt = header::doubt(show.recheck);
    let record = &crate::printable::record(record);
    let mut last = Section::default();
    last.list(List::of(0, conclusion(record)));
    let checked = checked(record).into_iter().map(|text| Item::new("Verified", text));
    last.list(List::new(Layout::labels(0), checked));
    last.list(List::new(Layout::labels(0), astray(record)));
    warned(&mut last, record);
    let kept = detail::kept(record, None).into_iter().map(|text| Item::new(DATA_FILES, text));
    last.list(List::new(Layout::labels(0), kept));
    let mut page = Document::default();
    page.push(doubt);
    page.push(head(record)).push(table(record)).push(last);
    page.terminal_with(width, width.min(PARAGRAPH_WIDTH))
}

/// The program, the time and the host.
fn head(record: &Record) -> Section {
    let mut section = Section::default();
    let tool = &record.tool;
    let at = header::to_the_second(&record.started_at);
    let first =
        Item::new(format!("{} {}  {at}", tool.name, tool.version), header::host(&record.host));
    section.item(Layout { gap: 2, wide: true, ..Layout::default() }, first);
    let labels = Layout::labels(8);
    let storage = record.storage.iter().map(|one| Item::new("storage", header::storage(one)));
    section.list(List::new(labels, storage));
    section.list(List::new(labels, asked(record).into_iter().map(|load| Item::new("load", load))));
    let parts = workload::scaled_in_words(record).into_iter();
    section.list(List::new(labels, parts.map(|part| Item::new("part", part))));
    let mut gpus = header::gpus(record);
    if gpus.is_empty() {
        gpus.push("none in use; gpuio measures NVIDIA's GPUs".to_owned());
    }
    section.list(List::new(labels, gpus.into_iter().map(|gpu| Item::new("GPU", gpu))));
    if record.plan.software_gpu {
        let text = "no GPU was measured; figures are of host memory and CPU threads";
        section.item(labels, Item::new("SOFTWARE GPU", text));
    }
    let (label, text) = match record.ended {
        EndedHow::Complete => return section,
        EndedHow::Interrupted => ("PARTIAL", "interrupted before its end"),
        EndedHow::Failed => ("FAILED", "stopped by errors"),
        EndedHow::Unfinished => ("UNFINISHED", "saved before the run ended"),
    };
    section.item(labels, Item::new(label, text));
    section
}

/// Threads, I/Os in flight and bytes of the jobs, in one line.
fn asked(record: &Record) -> Option<String> {
    let loads = jobs(record).map(|(plan, _)| {
        let load = match plan.replay {
            Some(_) => load_word(plan),
            None => format!("{} {}", load_word(plan), blocks_short(&plan.blocks)),
        };
        ((plan.threads, plan.depth), load)
    });
    let loads = grouped(loads);
    let mut parts: Vec<String> = if loads.len() > MOST_LOADS {
        let (threads, depths): (Vec<u32>, Vec<u32>) =
            loads.iter().map(|((threads, depth), _)| (*threads, *depth)).unzip();
        vec![format!("{} threads x {} in flight (details)", span(&threads), span(&depths))]
    } else {
        let each = loads.into_iter().map(|((threads, depth), loads)| {
            let threads = many(u64::from(threads), "thread");
            format!("{threads} x {depth} in flight ({})", unique(loads).join(", "))
        });
        each.collect()
    };
    let means = jobs(record).filter_map(|(plan, job)| below_depth(plan, job));
    let means = unique(means);
    if !means.is_empty() {
        parts.push(format!("on average only {} in flight", means.join(", ")));
    }
    let sizes = jobs(record).filter(|(plan, _)| plan.has_size() && plan.size_bytes > 0);
    let sizes: Vec<String> = unique(sizes.map(|(plan, _)| plan.size_bytes))
        .into_iter()
        .map(crate::number::bytes)
        .collect();
    if let [size] = sizes.as_slice() {
        parts.push(format!("{size} of files a thread"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// `4`, or `1 to 384`.
fn span(numbers: &[u32]) -> String {
    match (numbers.iter().min(), numbers.iter().max()) {
        (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
        (least, _) => least.map(u32::to_string).unwrap_or_default(),
    }
}

/// One direction of a job.
#[derive(Clone, Copy)]
struct Load<'a>(Side<'a>);

impl Load<'_> {
    /// The block sizes of this direction.
    fn sizes(&self) -> &[BlockShare] {
        self.0.plan.sizes_of(self.0.direction == Towards::Write)
    }

    /// Same load, whatever the path.
    fn kind(&self) -> (String, String) {
        (rw_of(self.0.plan, self.0.direction), blocks_short(self.sizes()))
    }

    fn is_small(&self) -> bool {
        let largest = self.sizes().iter().map(|block| block.max_bytes).max().unwrap_or(0);
        is_random(self.0.plan) && largest <= SMALL_BYTES
    }

    fn path(&self) -> &str {
        &self.0.plan.path.choice.actual
    }

    fn bytes_per_s(&self) -> f64 {
        self.0.figures().bytes_per_s
    }

    /// The rate that a way to the GPU is judged by: with the time to map the files.
    fn way_bytes_per_s(&self) -> f64 {
        workload::rate_with_set_up(self.0.plan, self.0.result, self.bytes_per_s())
    }

    /// The same in words.
    fn way(&self) -> String {
        match workload::set_up_ns(self.0.plan, self.0.result) {
            Some(ns) => {
                let rate = throughput(self.way_bytes_per_s());
                format!("{rate} with the {} to map the files", time(ns))
            }
            None => self.rate(),
        }
    }

    fn iops(&self) -> f64 {
        self.0.figures().iops
    }

    fn route(&self) -> Option<Route> {
        self.0.result.proof.as_ref().map(|proof| proof.verdict.route)
    }

    /// Whether its bytes are known not to have gone as requested, so that it is no fastest way.
    fn is_misled(&self) -> bool {
        self.0.result.proof.as_ref().is_some_and(|proof| proof.is_as_requested() == Some(false))
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
        if self.0.plan.replay.is_some() {
            return rw_of(self.0.plan, self.0.direction);
        }
        let random = if is_random(self.0.plan) { "random " } else { "" };
        let mix = match self.0.plan.directions() {
            [_] => String::new(),
            _ => format!(" of {}", load_word(self.0.plan)),
        };
        format!("{} {random}{}s{mix}", blocks_short(self.sizes()), self.0.direction.name())
    }
}

fn all_loads(record: &Record) -> Vec<Load<'_>> {
    sides(record).map(Load).collect()
}

/// A row for each path: its loads side by side; a further row where one repeats.
fn rows_of<'a>(all: &[Load<'a>]) -> Vec<Vec<Load<'a>>> {
    let mut rows: Vec<Vec<Load<'_>>> = Vec::new();
    for load in all {
        let fits = |row: &&mut Vec<Load<'_>>| {
            row.iter().all(|other| other.path() == load.path() && other.kind() != load.kind())
        };
        match rows.iter_mut().find(fits) {
            Some(row) => row.push(*load),
            None => rows.push(vec![*load]),
        }
    }
    rows
}

/// One word for the verifications of a row, and a mark where a load had none.
fn verified(row: &[Load<'_>]) -> String {
    let outcomes = || row.iter().map(|load| load.0.result.verify.as_ref());
    let is_whole = outcomes().all(|one| one.is_some()) || outcomes().flatten().count() == 0;
    let rest = if is_whole { "" } else { "; -" };
    verification::word(outcomes().flatten()) + rest
}

/// The rows, and what the mark behind some rates means.
fn table(record: &Record) -> Section {
    let mut section = Section::default();
    let all = all_loads(record);
    let rows = rows_of(&all);
    if rows.is_empty() {
        section.paragraph("no job ran");
        return section;
    }
    // Where all do not fit beside each other, writes have a table of their own, unless many paths
    // would be listed twice.
    let many_paths = rows.len() > MOST_TWICE;
    let part = |direction| match direction {
        _ if many_paths => Part::Both,
        Towards::Read => Part::First,
        Towards::Write => Part::Second,
    };
    let tails = Percentile::shown(&record.percentiles(), &[Percentile::TAIL]);
    // Rows of one path are told apart by their jobs.
    let paths: Vec<String> = rows.iter().map(|row| row[0].path().to_owned()).collect();
    let name = move |row: &Vec<Load<'_>>| {
        let path = row[0].path();
        let jobs = unique(row.iter().map(|load| load.0.plan.name.as_str()));
        let jobs = match jobs.as_slice() {
            [first, more @ ..] if more.len() > 1 => format!("{first} and {} more", more.len()),
            few => few.join(", "),
        };
        match paths.iter().filter(|other| *other == path).count() {
            1 => path.to_owned(),
            _ => format!("{path} ({jobs})"),
        }
    };
    let mut columns = Columns::<Vec<Load<'_>>>::new().words("path", name);
    for (kind, loads) in grouped(all.iter().map(|load| (load.kind(), load))) {
        let (rw, size) = kind.clone();
        let of_kind = kind.clone();
        let part = part(loads[0].0.direction);
        columns = columns
            .figures(format!("{rw} {size}"), move |row| {
                let load = of(row, &of_kind)?;
                Some(load.rate() + &standing::marks(record, load.0.plan, load.0.result))
            })
            .tight()
            .part(part);
        for at in tails.iter().filter(|_| loads[0].is_small()) {
            let of_kind = kind.clone();
            let tail = move |row: &Vec<Load<'_>>| {
                let latency = of(row, &of_kind)?.0.figures().latency.as_ref()?;
                latency.total.percentile(*at).map(Cell::time)
            };
            columns = columns.figures(at.label(), tail).tight().part(part);
        }
    }
    let table = columns
        .words("path taken", |row| {
            proof::cell_of_all(row.iter().map(|load| load.0.result.proof.as_ref()))
        })
        .short("taken")
        .part(part(Towards::Read))
        .words("verified", |row| verified(row))
        .short("verif.")
        .part(part(Towards::Read))
        .table("paths", rows);
    section.table(table);
    if let Some(marks) = standing::legend_line(&standing::marks_of_record(record)) {
        section.paragraph(marks);
    }
    section
}

/// The load of a row that is of this kind.
fn of<'l, 'a>(row: &'l [Load<'a>], kind: &(String, String)) -> Option<&'l Load<'a>> {
    row.iter().find(|load| load.kind() == *kind)
}

/// The conclusions from the figures.
fn conclusion(record: &Record) -> Vec<String> {
    let all = all_loads(record);
    let mut lines: Vec<String> = too_short(record).into_iter().collect();
    let before = lines.len();
    lines.extend(feed::in_words(record));
    lines.extend(checkpoint::in_words(record));
    lines.extend(loads::replays_in_words(record));
    // One load that has its own question does not compare paths.
    if lines.len() == before {
        lines.extend(loads::ranges_in_words(record));
        lines.extend(storage(record, &all));
        lines.extend(fastest(record, &all));
    }
    lines.extend(disturbance(record));
    lines.extend(gds(record, &all));
    if all.iter().all(|load| load.0.plan.gpus.is_empty()) && !record.plan.left_out.is_empty() {
        let why = reasons(&record.plan.left_out);
        let first = why.first().map_or("", |(why, _)| *why);
        lines.push(format!("No path to a GPU ran: {}", clause(first)));
    } else {
        let uncovered = reasons(&record.plan.left_out);
        let others = uncovered.iter().filter(|(why, _)| !why.contains("runs only where"));
        let named: Vec<String> = others
            .filter(|(_, paths)| !paths.iter().any(|path| path.starts_with("gds")))
            .map(|(why, paths)| format!("{} ({})", paths.join(", "), clause(why)))
            .collect();
        if !named.is_empty() {
            lines.push(format!("Not run: {}.", named.join("; ")));
        }
    }
    lines
}

/// The rates of storage, from the loads whose bytes it moved; those that did too little for a rate
/// in a sentence about their I/Os alone.
fn storage(record: &Record, all: &[Load<'_>]) -> Vec<String> {
    let host: Vec<Load<'_>> = all.iter().filter(|load| load.path() == "host").copied().collect();
    if host.is_empty() {
        return Vec::new();
    }
    let why = |load: &Load<'_>| standing::unmeasured(record, load.0.plan, load.0.result);
    let moved: Vec<Load<'_>> = host.iter().filter(|load| why(load).is_none()).copied().collect();
    if moved.is_empty() {
        let why = unique(host.iter().filter_map(why)).join("; ");
        return vec![format!("The rate of your storage was not measured: {why}.")];
    }
    let is_short = |load: &Load<'_>| standing::too_short(record, load.0.plan);
    let (short, long): (Vec<Load<'_>>, Vec<Load<'_>>) =
        moved.into_iter().partition(|load| is_short(load).is_some());
    let few = short.iter().filter_map(|load| {
        Some(format!("{}: {} ({})", is_short(load)?, load.rate(), load.words()))
    });
    let few: Vec<String> = few.collect();
    let few = (!few.is_empty())
        .then(|| format!("{}; too short to say what your storage delivers.", few.join("; ")));
    delivered(record, &long).into_iter().chain(few).collect()
}

/// The rates of these loads, which are those of storage.
fn delivered(record: &Record, loads: &[Load<'_>]) -> Option<String> {
    let part = |direction: Towards| {
        let of = loads.iter().filter(|load| load.0.direction == direction);
        let rates = of.map(|load| {
            format!("{} ({}{})", load.rate(), load.words(), marked(record, loads, load))
        });
        let rates: Vec<String> = rates.collect();
        (!rates.is_empty()).then(|| rates.join(" and "))
    };
    let not = unique(loads.iter().flat_map(|load| caveats(record, load)).map(|one| one.words));
    let [delivers, takes] = match not.is_empty() && record.ended == EndedHow::Complete {
        true => ["delivers", "takes"],
        false => ["delivered to gpuio", "accepted from gpuio"],
    };
    let rates = match (part(Towards::Read), part(Towards::Write)) {
        (None, None) => return None,
        (Some(reads), None) => format!("{delivers} {reads}"),
        (None, Some(writes)) => format!("{takes} {writes}"),
        (Some(reads), Some(writes)) => format!("{delivers} {reads}, and {takes} {writes}"),
    };
    let not = if not.is_empty() { String::new() } else { format!(": {}", not.join("; ")) };
    Some(in_part(record, format!("Your storage {rates}{not}.")))
}

fn caveats(record: &Record, load: &Load<'_>) -> Vec<Caveat> {
    standing::caveats(record, load.0.plan, load.0.result)
}

/// The marks of a load that is too short or has caveats, where others of a sentence have not.
fn marked(record: &Record, all: &[Load<'_>], load: &Load<'_>) -> String {
    let is_short = |load: &Load<'_>| standing::is_too_short(record, load.0.plan);
    let short = is_short(load) && all.iter().any(|one| !is_short(one));
    let lack = |caveat: &Caveat| all.iter().any(|one| !caveats(record, one).contains(caveat));
    let own = caveats(record, load).into_iter().filter(lack).map(|caveat| caveat.mark);
    short.then_some("too short").into_iter().chain(own).map(|mark| format!(", {mark}")).collect()
}

/// The jobs that were too short, before the sentences about their figures.
fn too_short(record: &Record) -> Option<String> {
    let short = jobs(record).filter(|(plan, _)| standing::is_too_short(record, plan));
    let names: Vec<&str> = short.map(|(plan, _)| plan.name.as_str()).collect();
    let of = place(&names, jobs(record).count()).replacen("in ", "", 1);
    let of = if of.is_empty() { String::new() } else { format!(":{of}") };
    (!names.is_empty()).then(|| format!("Too short for a rate or percentiles{of}. [run_too_short]"))
}

/// The jobs of a sentence: ` in all 3 jobs`; empty of a record's only one.
fn place(names: &[&str], all: usize) -> String {
    match names.len() {
        1 if all == 1 => String::new(),
        of_all if of_all == all => format!(" in all {all} jobs"),
        few if few <= MOST_JOBS => format!(" in {}", names.join(" and ")),
        few => format!(" in {few} of {all} jobs"),
    }
}

/// That others disturbed jobs, once for all of them: which, and how much at worst.
fn disturbance(record: &Record) -> Option<String> {
    let of = |(plan, job)| {
        let (plan, job): (&JobPlan, &JobResult) = (plan, job);
        Some((plan.name.as_str(), others::of(record, plan, job)?))
    };
    let (names, found): (Vec<&str>, Vec<Others>) = jobs(record).filter_map(of).unzip();
    let words = others::worst(&found)?.words();
    let place = place(&names, jobs(record).count());
    let worst = if names.len() > 1 { "at worst, " } else { "" };
    Some(format!("Disturbed{place}: {worst}{words}."))
}

/// A sentence, about the part that ran where the run ended early.
fn in_part(record: &Record, sentence: String) -> String {
    match record.ended {
        EndedHow::Complete => sentence,
        _ => format!("In the part that ran: {sentence}"),
    }
}

/// The path that the summary names as the fastest way to a GPU, of its first kind of read.
pub fn fastest_path(record: &Record) -> Option<&str> {
    let first = best_reads(&all_loads(record)).into_iter().next()?;
    Some(&first.0.plan.path.choice.actual)
}

/// The fastest load to a GPU of each kind of read.
fn best_reads<'a>(all: &[Load<'a>]) -> Vec<Load<'a>> {
    let reads = || {
        let to_gpu = all.iter().filter(|load| !load.0.plan.gpus.is_empty());
        let to_gpu = to_gpu.filter(|load| !load.is_misled());
        to_gpu.filter(|load| load.0.direction == Towards::Read && load.0.result.failed == 0)
    };
    let kinds = unique(reads().map(Load::kind));
    let best = |kind: &(String, String)| {
        let same = reads().filter(|load| load.kind() == *kind);
        same.max_by(|a, b| a.way_bytes_per_s().total_cmp(&b.way_bytes_per_s())).copied()
    };
    kinds.iter().filter_map(best).collect()
}

/// The fastest path to a GPU for each kind of read, and where the bytes came from.
fn fastest(record: &Record, all: &[Load<'_>]) -> Option<String> {
    let best = best_reads(all);
    let first = best.first()?;
    let gpu = match (record.plan.software_gpu, first.0.plan.gpus.as_slice()) {
        (true, _) => format!("the {SOFTWARE_GPU}"),
        (false, [one]) => format!("GPU {}", one.index),
        (false, many) => format!("{} GPUs", many.len()),
    };
    // A path from one place is named once.
    let ways = grouped(best.iter().map(|load| ((load.path(), from(load)), load)));
    let part = |((path, from), loads): ((&str, &str), Vec<&Load<'_>>)| {
        let mark = |load: &Load<'_>| match marked(record, &best, load) {
            mark if mark.is_empty() => mark,
            mark => format!(" ({})", mark.trim_start_matches(", ")),
        };
        let each = loads.iter().map(|load| match loads.len() {
            1 => format!("{}: {}{from}{}", load.words(), load.way(), mark(load)),
            _ => format!("{} ({}{})", load.words(), load.way(), marked(record, &best, load)),
        });
        let each = each.collect::<Vec<_>>().join(" and ");
        let from = if loads.len() > 1 && !from.is_empty() { format!(",{from}") } else { "".into() };
        format!("`{path}` for {each}{from}")
    };
    let parts: Vec<String> = ways.into_iter().map(part).collect();
    let to_gpu = all.iter().filter(|load| !load.0.plan.gpus.is_empty());
    let only = unique(to_gpu.map(Load::path)).len() == 1;
    let way = if only { "The only way that ran" } else { "The fastest way" };
    let mut sentence = format!("{way} to {gpu} is {}.", parts.join(", and "));
    let short = best.iter().find_map(|load| standing::too_short(record, load.0.plan));
    sentence.extend(short.map(|few| format!(" Too short to judge a rate: {few}.")));
    // The table has the rate of such a path without that time.
    let is_behind = |load: &&Load<'_>| {
        let first = best.iter().find(|first| first.kind() == load.kind());
        first.is_some_and(|first| load.way_bytes_per_s() < first.way_bytes_per_s())
            && workload::set_up_ns(load.0.plan, load.0.result).is_some()
    };
    let behind = all.iter().filter(is_behind);
    let behind: Vec<String> =
        behind.map(|load| format!("`{}`: {}", load.path(), load.way())).collect();
    if !behind.is_empty() {
        sentence.push_str(&format!(" {}.", behind.join("; ")));
    }
    Some(in_part(record, sentence))
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
    grouped(left_out.iter().map(|out| (out.why.as_str(), out.path.as_str())))
}

/// The first clause of a reason that has details behind it.
fn clause(text: &str) -> &str {
    let ends = [text.find("; "), text.find(". "), text.find(".\n")];
    let end = ends.into_iter().flatten().min().unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// How much of the data was verified.
fn checked(record: &Record) -> Option<String> {
    let outcomes: Vec<_> = jobs(record).filter_map(|(_, job)| job.verify.as_ref()).collect();
    (!outcomes.is_empty()).then(|| outcomes.into_iter().collect::<Checked>().sentence())
}

/// The findings about paths that were not taken, and those about paths that are not proved: the
/// first of each, and how many jobs and verdicts there are.
fn astray(record: &Record) -> impl Iterator<Item = Item> {
    let found = jobs(record).filter_map(|(plan, job)| {
        let (known, text) = proof::finding(plan, job.proof.as_ref()?)?;
        Some((known, (text, plan.name.as_str())))
    });
    grouped(found).into_iter().map(|(known, found)| {
        let (text, first) = &found[0];
        let jobs = match found.len() {
            1 => (*first).to_owned(),
            jobs => format!("{jobs} jobs, first {first}"),
        };
        let more = unique(found.iter().map(|(text, _)| text)).len() as u64 - 1;
        let more = match more {
            0 => String::new(),
            more => format!(" {}.", many(more, "more verdict")),
        };
        // The details have the counts behind it.
        let text = clause_of_finding(text);
        Item::new(proof::finding_label(known), format!("{jobs}: {text}.{more}"))
    })
}

/// A finding without the counts behind it: `The bytes did not take the requested path. unknown: …`
/// up to the first semicolon.
fn clause_of_finding(text: &str) -> &str {
    text.split("; ").next().unwrap_or(text).trim_end_matches('.')
}

/// Whether the lines above say what a warning says: the software GPU, that a job was too short,
/// what others took, and bytes of the page cache where a finding is about them.
fn is_said(record: &Record, warning: &Warning) -> bool {
    let own = |name: &str| warning.job.as_ref().is_none_or(|job| *job == name);
    let any = |said: &dyn Fn(&JobPlan, &JobResult) -> bool| {
        jobs(record).any(|(plan, job)| own(&plan.name) && said(plan, job))
    };
    match warning.kind {
        WarningKind::SoftwareGpu | WarningKind::RunTooShort { .. } => true,
        WarningKind::OtherCpuTime { .. } | WarningKind::OtherTraffic { .. } => {
            any(&|plan, job| others::of(record, plan, job).is_some())
        }
        WarningKind::DirectButCached { .. } => any(&|plan, job| {
            let proof = job.proof.as_ref();
            proof.is_some_and(|one| {
                one.verdict.source == Source::PageCache && proof::finding(plan, one).is_some()
            })
        }),
        _ => false,
    }
}

/// The most severe warnings by their first sentence, and how many more there are.
fn warned(section: &mut Section, record: &Record) {
    let all = warnings::first_sentences(record, |one| !is_said(record, one));
    let more = all.len().saturating_sub(NAMED);
    let named = all.iter().take(NAMED).map(|text| Item::new("warning", text.as_str()));
    section.list(List::new(Layout::labels(0), named));
    let more = if more > 0 { format!("; {more} more in the details") } else { String::new() };
    if !all.is_empty() {
        section.paragraph(format!("{}{more}", warnings::EXPLAIN));
    }
}
