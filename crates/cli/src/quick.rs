//! `gpuio bench` without a load: how large its files are (and those of a short workload), and what
//! to do after it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gpuio_base::units::{ShellLine, human_bytes, human_ns, many, whole};
use gpuio_dataset::manifest::{FILE_NAME, lists_only};
use gpuio_guard::outfile::{Directory, Draft};
use gpuio_host::Root;
use gpuio_host::answers::answers;
use gpuio_job::plan::{QuickSize, TargetLookup, quick_spec};
use gpuio_job::spec::Spec;
use gpuio_load::live_targets::LiveTargets;
use gpuio_record::facts::HostFacts;
use gpuio_record::{JobPlan, Plan, Record, TargetPlan};
use gpuio_report::format::summary::{data_files as data_files_line, fastest_path};

use crate::args::Bench;
use crate::failure::Failure;
use crate::ranks::Joined;

const MIB: u64 = 1 << 20;
/// The least bytes of a file on which rates mean something.
const EACH_LEAST: u64 = 16 * MIB;
/// Bytes that are written to see how fast the storage takes them: at first, and at most where those
/// take less than [`PROBE_SECONDS`], in which the flush alone has no small part.
const PROBE_BYTES: [u64; 2] = [16 * MIB, 64 * MIB];
const PROBE_SECONDS: f64 = 0.2;
/// Such writes, as long as they take no longer than this together. The largest rate counts: a drive
/// that wakes, a file system that finds room, and other programs only make one smaller.
const PROBES: u32 = 4;
const PROBES_TAKE: Duration = Duration::from_secs(1);
/// The files of the data set are written once, and again before each of four jobs that write: all
/// of that takes about [`FILLS`] times as long.
const FILL_SECONDS: f64 = 2.0;
/// Bytes of all files at most.
const FILL_MOST: u64 = 1 << 30;
const FILLS: f64 = 5.0;

/// About how long the run takes here at most, by the times of its plan: verification may end before
/// its time, and files are as large as is written in [`FILL_SECONDS`] or smaller.
pub(crate) fn time(plan: &Plan) -> String {
    let sum = |of: fn(&JobPlan) -> Option<u64>| plan.jobs.iter().filter_map(of).sum::<u64>() as f64;
    let (clocks, checks) = (sum(|job| job.stop.runtime_ns), sum(|job| job.verify_ns));
    let files = FILLS * FILL_SECONDS * 1e9;
    format!(
        "this takes at most about {} here: {} of {} in all, {} of verification, the rest to write \
         the files{}",
        human_ns(clocks + checks + files),
        many(plan.jobs.len() as u64, "load"),
        human_ns(clocks),
        human_ns(checks),
        if plan.software_gpu { "; the software GPU may take longer" } else { "" }
    )
}

/// The jobs, on files that suit disk and memory and are written in seconds; ranks divide them, and
/// take the smallest of all ranks.
pub(crate) fn spec(bench: &Bench, joined: Option<&Joined>) -> Result<Spec, Failure> {
    let host = gpuio_host::collect(&Root::live());
    let (here, all_ranks) = joined.map_or((1, 1), Joined::numbers);
    let cpus = host.cpu.allowed.as_ref().map_or(1, Vec::len) / usize::try_from(here).unwrap_or(1);
    let threads = u32::try_from(cpus.clamp(1, 4)).unwrap_or(1);
    let directory = bench.work.written("directory").unwrap_or(".");
    let probe = (FILL_MOST, FILL_SECONDS, !bench.out.dry_run);
    let all = room(&host, directory, (here, all_ranks), probe)?.bytes;
    let each = each(all, u64::from(threads), free(directory) / all_ranks);
    let own = (threads, power(each));
    if own.1 < EACH_LEAST {
        let size = human_bytes(own.1 as f64);
        message!("note: {directory} has little space, so each file has {size}");
    }
    let (threads, size_bytes) = joined.map_or(Ok(own), |joined| joined.smallest(own))?;
    Ok(quick_spec(QuickSize { threads, size_bytes }))
}

/// Bytes of each thread's file: of those that suit, at least [`EACH_LEAST`], where all files
/// together take half of what is free.
fn each(suit: u64, threads: u64, free: u64) -> u64 {
    let fit = (free / 2 / threads).clamp(MIB, EACH_LEAST);
    (suit / threads).max(fit)
}

fn free(directory: &str) -> u64 {
    LiveTargets::default().look(directory).free_bytes.unwrap_or(4 << 30)
}

/// Room for a data set.
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// Bytes per second that the storage took in a probe, where that limits them.
    pub(crate) by_rate: Option<f64>,
    /// Where no probe was made, the rate below which one would limit them.
    pub(crate) unprobed: Option<f64>,
}

/// Bytes of a data set that suits disk and memory, among so many ranks of this host and of all, and
/// that the storage writes in some time, `most` at most; whether that is probed.
pub(crate) fn room(
    host: &HostFacts,
    directory: &str,
    (here, all_ranks): (u64, u64),
    (most, seconds, is_probed): (u64, f64, bool),
) -> Result<Room, Failure> {
    answers(Path::new(directory))?;
    // Ranks of all hosts may have one file system.
    let free = free(directory) / all_ranks;
    let memory = host.memory.usable_bytes.unwrap_or(4 << 30) / here;
    let most = power((free / 8).min(memory / 8).min(most));
    let has_room = free > 4 * PROBE_BYTES[1];
    let rate = if has_room && is_probed { write_rate(Path::new(directory)) } else { None };
    let (bytes, by_rate) = by_rate(most, rate, seconds);
    let unprobed = (has_room && !is_probed).then_some(most as f64 / seconds);
    Ok(Room { bytes, by_rate, unprobed })
}

/// Bytes that are written in some time, `most` at most, and the rate where that limits them.
fn by_rate(most: u64, rate: Option<f64>, seconds: f64) -> (u64, Option<f64>) {
    match rate.filter(|rate| whole(rate * seconds) < most) {
        Some(rate) => (power(whole(rate * seconds)), Some(rate)),
        None => (most, None),
    }
}

/// The power of two below: what is free and what a probe measures differ from run to run, and runs
/// on one machine are to have data of one size.
fn power(bytes: u64) -> u64 {
    1 << bytes.max(1).ilog2()
}

/// Bytes that the storage of the nearest existing directory takes in a second, by a file that
/// leaves nothing behind; nothing where none can be made.
fn write_rate(directory: &Path) -> Option<f64> {
    let path = std::path::absolute(directory).ok()?;
    let near = path.ancestors().find(|near| near.is_dir())?;
    let written = |size: u64| {
        let draft = Draft::begin(Directory::open(near).ok()?, OsStr::new("gpuio-probe")).ok()?;
        let bytes = vec![0x5a_u8; usize::try_from(size).ok()?];
        let began = Instant::now();
        draft.fill(&bytes).ok()?;
        Some(began.elapsed().as_secs_f64().max(1e-3))
    };
    largest_rate(written)
}

/// The largest of the rates of a few writes, by the seconds that so many bytes take.
fn largest_rate(written: impl Fn(u64) -> Option<f64>) -> Option<f64> {
    let ([few, many], mut largest, mut all) = (PROBE_BYTES, 0.0, 0.0);
    for _ in 0..PROBES {
        let size = if few as f64 > largest * PROBE_SECONDS { few } else { many };
        let seconds = written(size)?;
        largest = f64::max(largest, size as f64 / seconds);
        all += seconds;
        if all > PROBES_TAKE.as_secs_f64() {
            break;
        }
    }
    Some(largest)
}

/// Files that a command to paste names at most.
const FEW_FILES: usize = 8;

/// The command that removes the files that stay, where they are few.
fn removal(record: &Record) -> Option<String> {
    let files = record.plan.files_that_stay();
    let few = (1..=FEW_FILES).contains(&files.len());
    let mut paths: Vec<&Path> = files.iter().map(|file| Path::new(&file.path)).collect();
    let places: BTreeSet<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
    let lists = places.into_iter().flat_map(|place| {
        let here = paths.iter().filter(|path| path.parent() == Some(place));
        let names: Vec<&str> = here.filter_map(|path| path.file_name()?.to_str()).collect();
        lists_only(place, &names)
    });
    let lists: Vec<PathBuf> = lists.collect();
    paths.extend(lists.iter().map(PathBuf::as_path));
    few.then(|| ShellLine::new("rm").files(paths).to_string())
}

/// Where the data files of a run lie now, and what removes them.
pub(crate) fn data_files(record: &Record) -> Option<String> {
    let found = |target: &TargetPlan| std::fs::metadata(&target.path).ok().map(|it| it.len());
    data_files_found(record, found)
}

fn data_files_found(record: &Record, found: impl Fn(&TargetPlan) -> Option<u64>) -> Option<String> {
    let mut record = record.clone();
    for job in &mut record.plan.jobs {
        job.targets.retain(|target| found(target).is_some());
    }
    let record = &record;
    let bytes = record.plan.files_that_stay().into_iter().filter_map(found).sum();
    let line = data_files_line(record, bytes)?;
    Some(match removal(record) {
        Some(remove) => {
            format!("{line}.\nThe next run there uses them again. To remove them:\n  {remove}\n")
        }
        None => format!(
            "{line}.\nThe next run there uses them again; {FILE_NAME} there has the names of all \
             that gpuio made.\n"
        ),
    })
}

/// The commands that go on from here.
pub(crate) fn next(record: &Record, saved: Option<&Path>, columns: u16) -> String {
    let mut lines: Vec<(String, &str)> = Vec::new();
    if let Some(path) = saved {
        let show = ShellLine::new("gpuio show").file(path);
        lines.push((show.to_string(), "every table and warning"));
    }
    let on_gpu = record.plan.jobs.iter().any(|job| !job.gpus.is_empty());
    if on_gpu && !record.plan.software_gpu {
        lines.push(("gpuio why".to_owned(), "is GDS on, and what would change that"));
    }
    let path = fastest_path(record).unwrap_or("host");
    let gpu = match (on_gpu && path != "host", record.plan.software_gpu) {
        (true, true) => " --gpu software",
        (true, false) => " --gpu 0",
        (false, _) => "",
    };
    lines.push((
        format!("gpuio bench --path {path}{gpu} --bs 1M --runtime 30 --directory DIR"),
        "one load, for longer",
    ));
    if !on_gpu {
        lines.push(("gpuio bench --gpu software".to_owned(), "the GPU paths without a GPU"));
    }
    lines.extend(removal(record).map(|remove| (remove, "the data files, which stay")));
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let whole = lines.iter().map(|(_, what)| width + what.chars().count() + 6).max();
    let beside = whole.is_some_and(|whole| whole <= usize::from(columns));
    let mut out = String::from("Next:\n");
    for (line, what) in lines {
        // Writing to a String cannot fail.
        let _ = match beside {
            true => writeln!(out, "  {line:width$}  # {what}"),
            false => writeln!(out, "  # {what}\n  {line}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn data_has_one_size_though_the_probe_differs() {
        let of = |rate: f64| by_rate(1 << 30, Some(rate), 2.0);
        assert_eq!(of(280e6), (512 << 20, Some(280e6)));
        assert_eq!(of(500e6).0, 512 << 20);
        assert_eq!(of(600e6), (1 << 30, None), "the storage is no limit");
        assert_eq!((power(3 << 30), power(1 << 30), power(0)), (2 << 30, 1 << 30, 1));
    }

    #[test]
    fn one_slow_write_is_not_the_rate_of_the_storage() {
        let of = |seconds: &[f64]| {
            let (nth, took) = (Cell::new(0), Cell::new(0));
            let rate = largest_rate(|size| {
                let at = nth.replace(nth.get() + 1);
                took.set(took.get() + size / MIB);
                seconds.get(at).copied()
            });
            (rate.map(|rate| (rate / MIB as f64).round()), took.get())
        };
        assert_eq!(of(&[0.5, 0.016, 0.064, 0.1]), (Some(1000.0), 16 + 16 + 64 + 64));
        assert_eq!(of(&[0.016, 0.032, 0.1, 0.064]), (Some(2000.0), 16 + 3 * 64));
        assert_eq!(of(&[1.5]), (Some(11.0), 16), "it has taken its time");
        assert_eq!(of(&[0.1]).0, None, "a write failed");
    }

    #[test]
    fn files_that_stay_have_a_command_that_removes_them() {
        let text = include_str!("../../report/tests/report/compare/fixtures/host.json");
        let mut record: Record = serde_json::from_str(text).unwrap();
        for job in &mut record.plan.jobs {
            job.targets.truncate(1);
            job.targets[0].path = "d/it's".to_owned();
            job.targets[0].guard = gpuio_record::GuardNote::Make;
        }
        let mut shown = |keep| {
            record.plan.jobs.iter_mut().for_each(|job| job.keep = keep);
            next(&record, None, 120)
        };
        assert!(shown(true).contains(r"  rm 'd/it'\''s' "), "{}", shown(true));
        assert!(!shown(false).contains("rm "), "{}", shown(false));
        // Runs with other outputs say the same once.
        let found = |record: &Record| data_files_found(record, |_| Some(3 * MIB));
        assert_eq!(found(&record), None, "nothing is kept");
        record.plan.jobs.iter_mut().for_each(|job| job.keep = true);
        assert_eq!(data_files(&record), None, "nothing is there");
        let said = found(&record).unwrap();
        assert!(said.starts_with("Data files: 1 file with 3.00 MiB"), "{said}");
        assert!(said.contains(" stays in d.\n") && said.ends_with("  rm 'd/it'\\''s'\n"), "{said}");
        let target = record.plan.jobs[0].targets[0].clone();
        record.plan.jobs[0].targets =
            (0..9).map(|nth| TargetPlan { path: format!("d/{nth}"), ..target.clone() }).collect();
        let said = found(&record).unwrap();
        assert!(!said.contains("rm ") && said.contains(".gpuio-files.json"), "{said}");
    }

    #[test]
    fn files_shrink_where_the_usual_ones_do_not_fit() {
        let room = |free: u64| each((free / 8).min(1 << 30), 2, free);
        assert_eq!(room(4 << 30), 256 * MIB);
        assert_eq!(room(100 * MIB), EACH_LEAST);
        assert_eq!(room(28 * MIB), 7 * MIB, "29 MiB do not hold two files of 16 MiB");
        assert_eq!(room(0), MIB, "the run itself says that there is no space");
    }
}
