//! The directory of a sweep: `sweep.json`, a record per finished run, and the data that identifies
//! the sweep.
//!
//! A run is finished when its record has its final name, given by one rename. `sweep.json` is
//! replaced afterwards. A record that it does not list yet, because the process was killed between
//! the two steps, is added at the next start. So no run is lost, and none is repeated.
//!
//! The user may keep files there too. New files never replace existing ones, `sweep.json` is
//! replaced only while it is the file that this process read or wrote, and a killed run leaves no
//! named file, except on file systems without unnamed files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use gpuio_base::stat::Percentile;
use gpuio_base::units::{format_duration_ns, many};
use gpuio_dataset::leftover;
use gpuio_guard::outfile::{Directory, Draft};
use gpuio_host::{Root, input};
use gpuio_job::sweep::Axis;
use gpuio_record::{
    BUDGET, ContentDigest, Record, RunOf, SWEEP_FILE, SWEEP_VERSION, Sweep, SweepAxis, SweepPoint,
    Tool,
};
use gpuio_report::format::json;

use super::resolved::{ResolvedSweep, Search};
use super::runs::{Run, figures};
use crate::child::DATA;
use crate::failure::Failure;
use crate::journal::begins_as_record;
use crate::quick;
use crate::records;

/// The job file that all points share, as it was at the start.
pub(super) const JOB_FILE: &str = "base.ini";
/// The arguments that all points share, one per line.
const BASE: &str = "base.txt";
const LOCK: &str = ".lock";
/// Name of the record of the current run, if it must have a name.
const RUNNING: &str = "running";
/// Maximum size of `sweep.json`.
const MOST_BYTES: u64 = 256 << 20;

/// A sweep on disk, held by a lock.
pub(super) struct SweepDirectory {
    pub(super) path: PathBuf,
    pub(super) sweep: Sweep,
    /// The finished runs of each point.
    pub(super) runs: Vec<Vec<Run>>,
    search: bool,
    own_data: bool,
    directory: Directory,
    /// `sweep.json` as this process last read or wrote it.
    saved: Option<File>,
    _lock: File,
}

impl SweepDirectory {
    /// Opens or creates it.
    pub(super) fn open(resolved: &ResolvedSweep) -> Result<SweepDirectory, Failure> {
        let path = resolved.directory.clone();
        let name = path.display().to_string();
        let could = |what: &str, error: std::io::Error| {
            Failure::Usage(format!("-o {name}: {what}: {error}"))
        };
        std::fs::create_dir_all(&path).map_err(|error| could("the directory", error))?;
        let directory = Directory::open(&path).map_err(|error| could("the directory", error))?;
        let there = directory.read(OsStr::new(SWEEP_FILE), MOST_BYTES);
        let there = there.map_err(|error| could(SWEEP_FILE, error))?;
        if there.is_none()
            && is_foreign(&directory).map_err(|error| could("the directory", error))?
        {
            return Err(Failure::Usage(format!(
                "-o {name}: the directory has files but no {SWEEP_FILE}; name a new directory, or \
                 the directory of a sweep"
            )));
        }
        let lock = directory.lock(OsStr::new(LOCK)).map_err(|error| could(LOCK, error))?;
        let Some(lock) = lock else {
            return Err(Failure::Usage(format!(
                "-o {name}: another sweep is running in this directory; wait for it, or name \
                 another"
            )));
        };
        let (sweep, saved) = match there {
            Some((text, file)) => (read(&path, &text, resolved)?, Some(file)),
            None => (begin(&directory, resolved)?, None),
        };
        let mut directory = SweepDirectory {
            runs: vec![Vec::new(); sweep.points.len()],
            path,
            sweep,
            search: resolved.search.is_some(),
            own_data: resolved.own_data,
            directory,
            saved,
            _lock: lock,
        };
        directory.clear();
        directory.take_in(resolved)?;
        Ok(directory)
    }

    /// Which run the next one of a point is.
    pub(super) fn run_of(&self, at: usize, resolved: &ResolvedSweep) -> RunOf {
        let rule = &resolved.rule;
        let is_fixed = rule.confidence.is_none() && resolved.search.is_none();
        let sweep = &self.sweep;
        RunOf {
            of: RunOf::sweep(&sweep.started_at),
            point: sweep.point(&sweep.points[at].at),
            run: u32::try_from(self.runs[at].len() + 1).unwrap_or(u32::MAX),
            runs: is_fixed.then_some(rule.min),
        }
    }

    /// File for the record of the current run: a file without a name.
    pub(super) fn draft(&self) -> Result<Draft, Failure> {
        let draft = self
            .directory
            .try_clone()
            .and_then(|directory| Draft::begin(directory, OsStr::new(RUNNING)));
        draft.map_err(|error| {
            Failure::Ran(format!("{}: the record can't be created: {error}", self.path.display()))
        })
    }

    /// Adds a finished run to the point.
    pub(super) fn keep(
        &mut self,
        at: usize,
        draft: Draft,
        record: &Record,
        error: Option<String>,
        resolved: &ResolvedSweep,
    ) -> Result<(), Failure> {
        let file = self.file(at, self.runs[at].len());
        let failed = |error: std::io::Error| {
            let hint = match error.kind() {
                ErrorKind::AlreadyExists => {
                    "; another file has this name and is not part of this \
                    sweep; move it away"
                }
                _ => "",
            };
            Failure::Ran(format!("{file}: the record can't be saved: {error}{hint}"))
        };
        draft.file().sync_all().map_err(failed)?;
        draft.give_name_as(OsStr::new(&file)).map_err(|unnamed| failed(unnamed.error))?;
        let digest = records::content_digest(&self.path.join(&file))?;
        self.count(at, (file, digest), record, error, resolved);
        self.save()
    }

    fn count(
        &mut self,
        at: usize,
        (file, digest): (String, Option<String>),
        record: &Record,
        error: Option<String>,
        resolved: &ResolvedSweep,
    ) {
        let limited = resolved.search.as_ref().map_or(Percentile::TAIL, |search| search.bound.at);
        self.runs[at].push(figures(record, limited));
        let values: Vec<f64> = self.runs[at].iter().map(|run| run.bytes_per_s).collect();
        let point = &mut self.sweep.points[at];
        point.content_sha256.extend(digest.map(|digest| (file.clone(), digest)));
        point.records.push(file);
        let verdict = |search: &Search| search.verdict(&self.runs[at]).word().to_owned();
        point.within_limit = resolved.search.as_ref().map(verdict);
        point.ended = error.or_else(|| resolved.rule.converged(&values));
    }

    /// Ends a point without a record.
    pub(super) fn end(&mut self, at: usize, why: String) -> Result<(), Failure> {
        self.sweep.points[at].ended = Some(why);
        self.save()
    }

    /// Records for every point with missing runs why they are not made now.
    pub(super) fn budget_is_spent(&mut self, resolved: &ResolvedSweep) -> Result<(), Failure> {
        let budget = resolved.budget.unwrap_or_default().as_nanos();
        let budget = format_duration_ns(u64::try_from(budget).unwrap_or(u64::MAX));
        for point in self.sweep.points.iter_mut().filter(|point| point.ended.is_none()) {
            let runs = many(point.records.len() as u64, "run");
            point.ended = Some(format!("{BUDGET} {budget} spent after {runs}"));
        }
        self.save()
    }

    /// Adds a point to a search, in order of load.
    pub(super) fn insert(&mut self, load: u64) -> Result<usize, Failure> {
        let of = |point: &SweepPoint| point.at.first().and_then(|at| at.parse::<u64>().ok());
        let at = self.sweep.points.partition_point(|point| of(point) < Some(load));
        let point = SweepPoint { at: vec![load.to_string()], ..SweepPoint::default() };
        self.sweep.points.insert(at, point);
        self.runs.insert(at, Vec::new());
        if let Some(axis) = self.sweep.axes.first_mut() {
            axis.values = self.sweep.points.iter().flat_map(|point| point.at.clone()).collect();
        }
        self.save()?;
        Ok(at)
    }

    /// Records what a search found; it is not known any more when a search goes on.
    pub(super) fn conclude(&mut self, answer: Option<String>) -> Result<(), Failure> {
        if self.sweep.answer == answer {
            return Ok(());
        }
        self.sweep.answer = answer;
        self.save()
    }

    /// Whether something failed for another reason than missing hardware or software.
    pub(super) fn any_failed(&self) -> bool {
        let bad = |why: &String| why.starts_with("failed") || why.starts_with("refused");
        self.sweep.points.iter().any(|point| point.ended.as_ref().is_some_and(bad))
    }

    /// Whether no point could run because this machine lacks something.
    pub(super) fn is_unavailable(&self) -> bool {
        let lacks = |why: &String| why.starts_with("not available here");
        let points = &self.sweep.points;
        self.is_empty()
            && !points.is_empty()
            && points.iter().all(|point| point.ended.as_ref().is_some_and(lacks))
    }

    /// Whether there is no result at all.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.iter().all(Vec::is_empty)
    }

    /// Removes the data files that this sweep created, and no others.
    pub(super) fn remove_data(&self) {
        if !self.own_data {
            return;
        }
        for line in leftover::remove_ours(&self.directory, OsStr::new(DATA), &Root::live()) {
            message!("note: {line}");
        }
    }

    /// Where the data files of the points lie now, and what removes them.
    pub(super) fn data_files(&self) -> Option<String> {
        let last = self.sweep.points.iter().filter_map(|point| point.records.last());
        let mut read = last.filter_map(|file| records::record(&self.path.join(file)).ok());
        let mut all = read.next()?;
        all.plan.jobs.extend(read.flat_map(|record| record.plan.jobs));
        quick::data_files(&all)
    }

    /// File name of a record: by the index of the point; in a search by its load, because the
    /// indices change there.
    fn file(&self, at: usize, run: usize) -> String {
        let number = match self.sweep.points[at].at.first() {
            Some(load) if self.search => load.clone(),
            _ => format!("{:04}", at + 1),
        };
        records::run_name(&number, run + 1)
    }

    /// Removes what an unfinished run left: drafts, on file systems without unnamed files.
    pub(super) fn clear(&self) {
        let own = |file: &File| begins_as_record(file) || begins_as_sweep(file);
        for name in [RUNNING, SWEEP_FILE, BASE, JOB_FILE].map(OsStr::new) {
            // A remaining draft does no harm.
            let _ = self.directory.clear_drafts(name, own);
        }
        if self.own_data {
            leftover::remove_empty(&self.directory, OsStr::new(DATA));
        }
    }

    /// Reads the records of all points, including those that `sweep.json` does not list yet, and
    /// decides again which points have converged.
    fn take_in(&mut self, resolved: &ResolvedSweep) -> Result<(), Failure> {
        for at in 0..self.sweep.points.len() {
            let named = std::mem::take(&mut self.sweep.points[at].records);
            let listed = std::mem::take(&mut self.sweep.points[at].content_sha256);
            // Missing hardware or software may be available now, and a budget was for one start.
            self.sweep.points[at].ended = None;
            for run in 0.. {
                let file = self.file(at, run);
                if !self.path.join(&file).is_file() {
                    if let Some(lost) = named.get(run) {
                        return Err(Failure::Usage(format!(
                            "{}: {SWEEP_FILE} lists {lost}, but the file is missing; restore it, \
                             or name another directory",
                            self.path.display()
                        )));
                    }
                    break;
                }
                let path = self.path.join(&file);
                let record = records::record(&path)?;
                let error = errors_of(&record);
                // That of a record that was put in place of another stays the other's.
                let digest = match named.get(run) {
                    Some(_) => listed.get(&file).cloned(),
                    None => records::content_digest(&path)?,
                };
                self.count(at, (file, digest), &record, error, resolved);
            }
        }
        self.save()
    }

    fn save(&mut self) -> Result<(), Failure> {
        let text = json::render_sweep(&self.sweep);
        let old = self.saved.as_ref();
        self.saved = Some(put(&self.directory, SWEEP_FILE, text.as_bytes(), old)?);
        Ok(())
    }
}

/// Whether a directory without `sweep.json` holds anything other than the files of an interrupted
/// first start.
fn is_foreign(directory: &Directory) -> std::io::Result<bool> {
    let ours = [LOCK, BASE, JOB_FILE];
    let mut left: Vec<std::ffi::OsString> = Vec::new();
    for name in [SWEEP_FILE, BASE, JOB_FILE] {
        let killed = directory.abandoned_drafts(OsStr::new(name))?;
        left.extend(killed.into_iter().map(|killed| killed.name));
    }
    let names = directory.names()?;
    Ok(names.iter().any(|name| !left.contains(name) && !ours.iter().any(|own| name == own)))
}

fn begins_as_sweep(file: &File) -> bool {
    const BEGINNING: &[u8] = b"{\n  \"gpuio_sweep\":";
    let mut head = [0; BEGINNING.len()];
    file.read_at(&mut head, 0).is_ok_and(|_| head == *BEGINNING)
}

/// Writes a file completely and to disk, replacing the one that this process read or wrote before,
/// or under a new name.
fn put(
    directory: &Directory,
    name: &str,
    bytes: &[u8],
    old: Option<&File>,
) -> Result<File, Failure> {
    let failed = |error: std::io::Error| {
        let at = directory.path().join(name);
        let hint = match error.kind() {
            ErrorKind::AlreadyExists => {
                "; the file there is not part of this sweep and is \
                kept"
            }
            _ => "",
        };
        Failure::Ran(format!("{}: the file can't be saved: {error}{hint}", at.display()))
    };
    let draft = directory.try_clone().and_then(|at| Draft::begin(at, OsStr::new(name)));
    let draft = draft.map_err(failed)?;
    draft.fill(bytes).map_err(failed)?;
    draft.replace(old).map_err(|unnamed| failed(unnamed.error))
}

/// Creates one of the files that identify the sweep. An interrupted first start may have left an
/// identical file; a different one belongs to the user.
fn describe(directory: &Directory, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let same = directory.read(OsStr::new(name), MOST_BYTES);
    if same.is_ok_and(|there| there.is_some_and(|(there, _)| there == bytes)) {
        return Ok(());
    }
    let made = put(directory, name, bytes, None);
    made.map(drop).map_err(|failure| Failure::Usage(format!("{failure}; name a new directory")))
}

/// The properties that identify this sweep, one per line.
fn base(resolved: &ResolvedSweep) -> String {
    let mut lines: Vec<String> = resolved.base.clone();
    if let Ok(here) = std::env::current_dir() {
        lines.push(format!("in {}", here.display()));
    }
    if let Some(ranks) = resolved.ranks.filter(|_| !resolved.varies_ranks()) {
        lines.push(format!("on {ranks} ranks"));
    }
    if let Some(search) = &resolved.search {
        lines.push(format!("search {}", search.words));
    }
    lines.join("\n") + "\n"
}

fn begin(directory: &Directory, resolved: &ResolvedSweep) -> Result<Sweep, Failure> {
    describe(directory, BASE, base(resolved).as_bytes())?;
    if let Some(text) = &resolved.job_file {
        describe(directory, JOB_FILE, text)?;
    }
    let point = |at: &Vec<String>| SweepPoint { at: at.clone(), ..SweepPoint::default() };
    Ok(Sweep {
        gpuio_sweep: SWEEP_VERSION,
        content_sha256: ContentDigest::Intact,
        name: resolved.name.clone(),
        tool: Tool { name: "gpuio".into(), version: env!("CARGO_PKG_VERSION").into() },
        command: std::env::args_os().map(|word| word.display().to_string()).collect(),
        started_at: jiff::Timestamp::now().to_string(),
        seed: resolved.order_seed,
        cache: Some(resolved.cache.to_owned()),
        level: resolved.rule.looks().then(|| resolved.rule.level()),
        answer: None,
        search: resolved.search.as_ref().map(|search| search.words.clone()),
        axes: axes(resolved),
        points: resolved.points.iter().map(point).collect(),
    })
}

/// The axes as in `sweep.json`.
pub(super) fn axes(resolved: &ResolvedSweep) -> Vec<SweepAxis> {
    let axis = |axis: &Axis| SweepAxis { key: axis.key.clone(), values: axis.values.clone() };
    resolved.axes.iter().map(axis).collect()
}

/// The arguments of a load in one line. The order of flags that set different keys says nothing,
/// and was another one in earlier versions.
fn spoken(base: &[u8]) -> String {
    let text = String::from_utf8_lossy(base);
    let mut words = text.lines();
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    while let Some(word) = words.next() {
        match word {
            "--set" => keys.extend(words.next()),
            other => others.push(other),
        }
    }
    // Stable: of one key the later value counts.
    keys.sort_by_key(|pair| pair.split('=').next());
    let keys = keys.into_iter().flat_map(|pair| ["--set", pair]);
    keys.chain(others).collect::<Vec<_>>().join(" ")
}

/// Reads the existing sweep, if it is the requested one.
fn read(path: &Path, found: &[u8], resolved: &ResolvedSweep) -> Result<Sweep, Failure> {
    let name = path.join(SWEEP_FILE).display().to_string();
    let text = |file: &str| input::read(&path.join(file), input::MOST_RESULT).unwrap_or_default();
    let sweep = json::parse_sweep(&String::from_utf8_lossy(found))
        .map_err(|error| Failure::Usage(format!("{name}: this is not a gpuio sweep: {error}")))?;
    let mut other: Vec<String> = Vec::new();
    let mut differ = |what: &str, there: String, now: String| {
        if there != now {
            other.push(format!("  {what}: {there} in the directory, {now} requested"));
        }
    };
    let number = |number: u32| number.to_string();
    differ("version", number(sweep.gpuio_sweep), number(SWEEP_VERSION));
    differ("seed of the order", sweep.seed.to_string(), resolved.order_seed.to_string());
    let words = |axes: &[SweepAxis]| {
        let word = |axis: &SweepAxis| match resolved.search {
            Some(_) => axis.key.clone(),
            None => format!("{}={}", axis.key, axis.values.join(",")),
        };
        axes.iter().map(word).collect::<Vec<_>>().join(" ")
    };
    differ("axes", words(&sweep.axes), words(&axes(resolved)));
    if resolved.search.is_none() {
        let there: Vec<&Vec<String>> = sweep.points.iter().map(|point| &point.at).collect();
        let same = there.iter().copied().eq(&resolved.points);
        let now = if same { "the same" } else { "others" };
        let all = |count: usize| many(count as u64, "point");
        differ("points", all(there.len()), all(resolved.points.len()));
        differ("points", "the same".to_owned(), now.to_owned());
    }
    differ("load", spoken(&text(BASE)), spoken(base(resolved).as_bytes()));
    if text(JOB_FILE) != resolved.job_file.clone().unwrap_or_default() {
        other.push(format!(
            "  job file: it was changed after the sweep started; the copy at the \
            start is {JOB_FILE} in the directory"
        ));
    }
    if other.is_empty() {
        return Ok(sweep);
    }
    Err(Failure::Usage(format!(
        "{name}: this directory holds another sweep, which can't be resumed with these settings. \
         Name another directory with -o, or repeat the command that started it:\n{}",
        other.join("\n")
    )))
}

/// The errors of a completed run, which end its point.
pub(super) fn errors_of(record: &Record) -> Option<String> {
    let troubles = crate::outcome::troubles(record);
    let (_, first) = troubles.first()?;
    Some(format!("failed: {first}; gpuio show RECORD has the details"))
}
