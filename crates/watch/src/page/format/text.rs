//! Pages as text for people.

use gpuio_base::document::{Block, Cell, Columns, Document, List, Look, Table};
use gpuio_base::stat::Percentile;
use gpuio_base::units::{float, human_ns};

use super::{PERCENTILES, SOFTWARE_GPU, Shown, class_name, per_second};
use crate::page::bucket::SIZES;
use crate::page::layout::REGISTERED;
use crate::page::snapshot::{
    Counts, Library, LibraryCounts, LibraryGpu, LibraryState, PathCounters, Saves, Snapshot,
};

/// Shown where there is no value.
const NONE: &str = "-";

/// One page at this level: 1 totals, 2 also sizes, 3 also GPUs and paths.
pub fn page(shown: &Shown<'_>, level: u8) -> Document {
    let snapshot = shown.snapshot;
    let mut page = Document::new(format!("Process {}", snapshot.pid));
    let first = page.begin("", "");
    first.paragraph(format!(
        "process {} ({} {}) of {}, since {}: {}",
        snapshot.pid,
        snapshot.program,
        snapshot.release,
        shown.user,
        shown.since,
        shown.state()
    ));
    if let Some(command) = shown.command {
        first.paragraph(format!("command: {command}"));
    }
    if let Some(saves) = &snapshot.saves {
        first.paragraph(format!(
            "{}; saves under way: {}",
            saves.words(&saves.directory),
            saves.under_way
        ));
        first.push(Block::Table(of_saves(saves, shown.rate_now()).look(Look::Indented(0))));
        return page;
    }
    let total = snapshot.total();
    first.paragraph(format!(
        "threads {}, I/Os due or in flight {}, slots {}, files opened {}",
        total.threads,
        in_flight(shown, &total),
        total.slots,
        snapshot.files_opened().map_or("n/a".to_owned(), |files| files.to_string())
    ));
    if snapshot.paths.iter().any(PathCounters::is_software) {
        first.paragraph(SOFTWARE_GPU);
    }
    for (least, table) in [(1, totals(shown, &total)), (2, sizes(&total)), (3, paths(snapshot))] {
        if level >= least {
            page.begin("", "").push(Block::Table(table.look(Look::Indented(0))));
        }
    }
    if let Some(text) = too_few(shown, &total, level) {
        page.begin("", "").paragraph(format!("{NONE} {text}"));
    }
    if let Some(library) = snapshot.library.as_ref().filter(|_| level >= 3) {
        let (major, minor) = library.version;
        let section = page.begin("", "");
        if library.state == LibraryState::Read {
            section.paragraph(format!(
                "counts of cuFile {major}.{minor} itself (in pieces: large I/Os are several)"
            ));
            section.push(Block::Table(of_library(library).look(Look::Indented(0))));
        }
        section.list(List::of(0, library.why_absent().map(|why| format!("Not given: {why}."))));
        section.paragraph(format!("Not given by cuFileGetStats: {}.", Library::NOT_GIVEN));
    }
    page
}

/// I/Os due or in flight on average, by Little's law: threads report too rarely for a count of the
/// moment. They are of the last interval, or else from the first I/O on.
fn in_flight(shown: &Shown<'_>, total: &PathCounters) -> String {
    let (sides, seconds, of) = match shown.earlier {
        Some(earlier) => {
            let then = earlier.snapshot.total();
            let last = [total.read.since(&then.read), total.write.since(&then.write)];
            (last, Some(earlier.seconds), "the last interval")
        }
        None => ([total.read.clone(), total.write.clone()], total.seconds(), "all the time"),
    };
    let waited = sides.iter().map(|side| side.latency_ns).sum();
    match per_second(waited, seconds) {
        Some(ns) => format!("{} on average of {of}", near_slots(ns / 1e9, total.slots)),
        None => "n/a".to_owned(),
    }
}

/// A mean number of I/Os. One that ended within the time may have begun before it, and threads
/// report from time to time: a few per cent above the slots are none above them.
fn near_slots(ios: f64, slots: u64) -> String {
    let slots_most = float(slots);
    match ios > slots_most && ios < slots_most * 1.05 {
        true if ios >= slots_most + 0.05 => format!("about {slots}"),
        _ => format!("{ios:.1}"),
    }
}

/// Why percentiles of this level's tables are absent.
fn too_few(shown: &Shown<'_>, total: &PathCounters, level: u8) -> Option<String> {
    let last = shown.earlier.map(|earlier| {
        let then = earlier.snapshot.total();
        [total.read.since(&then.read), total.write.since(&then.write)]
    });
    let paths = shown.snapshot.paths.iter().filter(|_| level >= 3);
    let paths = paths.flat_map(|way| [&way.read, &way.write]);
    let sides = [&total.read, &total.write].into_iter().chain(paths).chain(last.iter().flatten());
    let sides: Vec<&Counts> = sides.filter(|side| side.ios() > 0).collect();
    let lacks = |at: &Percentile| sides.iter().any(|side| side.percentile_ns(*at).is_none());
    Percentile::too_few(PERCENTILES.iter().copied().filter(lacks))
}

/// Bytes of the save that is written, or was last, and of all saves of the process.
fn of_saves(saves: &Saves, rate: Option<f64>) -> Table {
    let rows = [
        ("this save", Some(saves.bytes), saves.staged, saves.written),
        ("all saves", None, saves.all_staged, saves.all_written),
    ];
    Columns::<(&str, Option<u64>, u64, u64)>::new()
        .words("", |(name, ..)| *name)
        .key("of")
        .figures("bytes", |(_, bytes, ..)| bytes.map(Cell::bytes))
        .figures("staged", |(.., staged, _)| Cell::bytes(*staged))
        .figures("written", |(.., written)| Cell::bytes(*written))
        .figures("written now", move |(_, bytes, ..)| {
            // Saves that are under way together share the rate.
            rate.filter(|_| bytes.is_none() || saves.under_way == 1).map(Cell::rate)
        })
        .table("saves", rows)
}

/// The counts that NVIDIA's library has of itself.
fn of_library(library: &Library) -> Table {
    let rows = library.gpus.iter().flat_map(|gpu| {
        [("read", &gpu.read), ("write", &gpu.write)].map(|(name, side)| (gpu, name, side))
    });
    Columns::<(&LibraryGpu, &str, &LibraryCounts)>::new()
        .words("GPU", |(gpu, ..)| gpu.gpu)
        .words("", |(_, name, _)| *name)
        .key("direction")
        .figures("pieces", |(.., side)| side.all)
        .figures("nvidia-fs", |(.., side)| side.nvidia_fs)
        .figures("p2p", |(.., side)| side.p2p)
        .figures("POSIX", |(.., side)| side.posix)
        .figures("by another GPU", |(.., side)| side.routed)
        .figures("unaligned", |(.., side)| side.unaligned)
        .figures("failed", |(.., side)| side.failed)
        .figures("buffers registered", |(gpu, ..)| gpu.registered)
        .figures("failed to", |(gpu, ..)| gpu.register_failed)
        .figures("freed", |(gpu, ..)| gpu.freed)
        .figures("registered now", |(gpu, ..)| Cell::bytes(gpu.registered_bytes))
        .table("library", rows)
}

/// Counts, and the time that they took in seconds.
type Side = (Counts, Option<f64>);

fn totals(shown: &Shown<'_>, total: &PathCounters) -> Table {
    let seconds = total.seconds();
    let mut sides: Vec<(String, Side)> = vec![
        ("read".to_owned(), (total.read.clone(), seconds)),
        ("write".to_owned(), (total.write.clone(), seconds)),
    ];
    if let Some(earlier) = shown.earlier {
        let (then, took) = (earlier.snapshot.total(), earlier.seconds);
        let last = |name: &str| format!("{name}, last {}", human_ns(took * 1e9));
        sides.push((last("read"), (total.read.since(&then.read), Some(took))));
        sides.push((last("write"), (total.write.since(&then.write), Some(took))));
    }
    type Row = (String, Box<dyn Fn(&Side) -> Cell>);
    let row = |name: &str, cell: fn(&Side) -> Cell| -> Row { (name.to_owned(), Box::new(cell)) };
    let mut rows = vec![
        row("I/Os", |(side, _)| side.ios().into()),
        row("bytes", |(side, _)| Cell::bytes(side.bytes)),
        row("throughput", |(side, took)| {
            per_second(side.bytes, *took).filter(|_| side.ios() > 0).map(Cell::rate).into()
        }),
        row("IOPS", |(side, took)| {
            per_second(side.ios(), *took).filter(|_| side.ios() > 0).map(Cell::count).into()
        }),
        row("latency, mean", |(side, _)| {
            side.mean_ns().map(|ns| Cell::shown(human_ns(ns), ns)).into()
        }),
    ];
    rows.extend(PERCENTILES.iter().map(|at| -> Row {
        (at.label(), Box::new(move |(side, _)| percentile(side, *at).into()))
    }));
    rows.push(row("unaligned", |(side, _)| side.unaligned.into()));
    rows.push(row("failed", |(side, _)| side.failed.into()));
    let columns = Columns::<Row>::new().words("", |(name, _)| name.clone()).key("counter");
    let columns = sides
        .into_iter()
        .fold(columns, |columns, (name, side)| columns.figures(name, move |(_, cell)| cell(&side)));
    columns.table("totals", rows)
}

fn sizes(total: &PathCounters) -> Table {
    let (read, write) = (&total.read.sizes, &total.write.sizes);
    Columns::<usize>::new()
        .words("size", |class| class_name(*class))
        .figures("reads", |class| read[*class])
        .figures("writes", |class| write[*class])
        .table("sizes", (0..SIZES).filter(|class| read[*class] > 0 || write[*class] > 0))
}

fn paths(snapshot: &Snapshot) -> Table {
    let rows = snapshot.paths.iter().flat_map(|counters| {
        let sides = [("read", &counters.read), ("write", &counters.write)];
        let counts = |(_, side): &(&str, &Counts)| side.ios() > 0 || side.failed > 0;
        sides.into_iter().filter(counts).map(move |(name, side)| (counters, name, side))
    });
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let columns = Columns::<(&PathCounters, &str, &Counts)>::new()
        .words("GPU", |(way, ..)| gpu_shown(way))
        .words("PCI", move |(way, ..)| some(&way.pci))
        .words("path", |(way, ..)| path_shown(&way.path).to_owned())
        .words("engine", |(way, ..)| engine_shown(&way.engine).to_owned())
        .words("", |(_, name, _)| *name)
        .key("direction")
        .figures("I/Os", |(.., side)| side.ios())
        .figures("bytes", |(.., side)| Cell::bytes(side.bytes))
        .figures("throughput", |(way, _, side)| {
            per_second(side.bytes, way.seconds()).map(Cell::rate)
        });
    let columns = Percentile::SHORT.into_iter().fold(columns, |columns, at| {
        columns.figures(at.label(), move |(.., side)| percentile(side, at))
    });
    columns
        .figures("unaligned", |(.., side)| side.unaligned)
        .figures("failed", |(.., side)| side.failed)
        .figures("threads", |(way, ..)| way.threads)
        .figures("slots", |(way, ..)| way.slots)
        .figures("registered", |(way, ..)| {
            snapshot.registered_on(way.gpu).map_or("n/a".into(), Cell::from)
        })
        .table("paths", rows)
}

/// A path as people read it: who moved the bytes, for a program on gpuio's libcufile.
fn path_shown(path: &str) -> &str {
    match path {
        "kernel" => "GPU kernel",
        "copy" => "copy engine",
        other => other,
    }
}

/// An engine as people read it: where the bytes came from, for a program on gpuio's libcufile.
fn engine_shown(engine: &str) -> &str {
    match engine {
        "" => NONE,
        "cached" => "page cache",
        "mapped" => "page cache, mapped",
        "direct" => "storage",
        other => other,
    }
}

fn gpu_shown(counters: &PathCounters) -> Option<String> {
    let kind = if counters.is_software() { "software " } else { "" };
    counters.gpu.map(|gpu| format!("{kind}{gpu}"))
}

/// All processes, one line each.
pub fn list(all: &[Shown<'_>]) -> Document {
    let some = |words: Vec<String>| (!words.is_empty()).then(|| words.join(","));
    let gpus = move |shown: &Shown<'_>| {
        let gpus = shown.snapshot.gpus();
        some(gpus.iter().filter_map(gpu_shown).collect())
    };
    let paths = move |shown: &Shown<'_>| {
        let ways = shown.snapshot.paths.iter().filter(|one| one.path != REGISTERED);
        some(gpuio_base::document::unique(ways.map(|one| path_shown(&one.path).to_owned())))
    };
    let table = Columns::<Shown<'_>>::new()
        .words("PID", |shown| shown.snapshot.pid)
        .words("user", |shown| shown.user.to_owned())
        .words("program", |shown| shown.snapshot.program.clone())
        .words("since", |shown| shown.since.to_owned())
        .words("GPUs", gpus)
        .words("path", paths)
        .words("now", |shown| shown.rate_now().map(Cell::rate))
        .key("throughput")
        .words("state", |shown| shown.state())
        .words("command", |shown| {
            shown.command.map(|all| Cell::shown(all.chars().take(60).collect::<String>(), all))
        })
        .table("processes", all);
    let mut page = Document::new("Processes");
    page.begin("", "").push(Block::Table(table.look(Look::Indented(0))));
    page
}

fn percentile(side: &Counts, at: Percentile) -> Option<Cell> {
    side.percentile_ns(at).map(Cell::time)
}

#[cfg(test)]
mod tests {
    use super::near_slots;

    #[test]
    fn no_more_are_in_flight_than_there_are_slots() {
        assert_eq!(near_slots(7.96, 8), "8.0");
        assert_eq!(near_slots(8.04, 8), "8.0");
        assert_eq!(near_slots(8.1, 8), "about 8");
        // Those of a paced load are due and not in flight.
        assert_eq!(near_slots(40.0, 8), "40.0");
    }
}
