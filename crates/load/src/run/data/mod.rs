//! The data set over a run: checked before anything, made before each group, finalized after it,
//! removed at the end unless kept.

mod checked;
mod error;
mod together;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gpuio_base::units::{format_bytes, many};
use gpuio_host::Root;
use gpuio_host::target::{Directory, Opened};
use gpuio_record::{GuardNote, JobPlan, JobResult, Plan, TargetKind, TargetPlan, VerifyMode};

use gpuio_dataset::held::{Budget, DirEntry, Held, Targets};
use gpuio_dataset::make::{self, Made, Task};
use gpuio_dataset::manifest::{self, Holds, Known, Lists};
use gpuio_dataset::ownership::{Permit, Verdict, Wanted, check_with};
use gpuio_dataset::scratch::{self, Coming, Owner};
use gpuio_dataset::{
    Identity, Looks, MakeError, Progress, Refusal, clean as remove, identity_of, space,
};
use gpuio_job::plan::{SCRATCH, STAGE, on_own_files};
use gpuio_job::workload::blocks;
use gpuio_job::workload::cover::{lays_itself, parts, reach};

use checked::CheckedTarget;
pub use error::DataSetError;
use together::Together;

use super::pattern_keys::salt;
use super::peers::Peers;
use super::written::{self, Use, clean, is_left_whole, writers};

/// The files of a run.
pub(super) struct DataSet<'a> {
    permit: &'a Permit,
    root: &'a Root,
    looks: &'a Looks<'a>,
    /// Files made by this run that are to go, and the directories made for them.
    made: Vec<Made>,
    directories: Vec<PathBuf>,
    /// Directories made for files that stay: they go where the run ends before it made one.
    kept: Vec<PathBuf>,
    /// The file that lists them, should this run be killed.
    owners: Vec<Owner>,
    /// The targets of the group in hand, held since they were checked or made.
    targets: Arc<Targets>,
    /// Block devices that this run writes, by `st_rdev`, each held with `O_EXCL` to the run's end:
    /// as long no one can mount them or build on them (open(2)).
    claims: Vec<(u64, OwnedFd)>,
    /// Our own files that the group in hand writes, and where each holds its pattern before the
    /// load.
    written: Vec<(Arc<Held>, Vec<Range<u64>>)>,
    /// Bytes of targets of any owner that hold their pattern because an earlier group wrote and
    /// verified them.
    verified: BTreeMap<Identity, Vec<Part>>,
    /// Holes of files that this run made with them; no job of a run writes to such a file.
    sparse: BTreeMap<Identity, Vec<Range<u64>>>,
    /// Other processes of the run, with which files may be used together.
    peers: Option<&'a dyn Peers>,
}

/// Bytes of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    bytes: Range<u64>,
    holds: Holds,
}

impl<'a> DataSet<'a> {
    /// Judges every target of every job and notes the verdicts in the plan.
    pub(super) fn guard(
        plan: &mut Plan,
        permit: &'a Permit,
        root: &'a Root,
        looks: &'a Looks<'a>,
    ) -> Result<DataSet<'a>, DataSetError> {
        check_all(plan, permit, root, looks)?;
        space::check_plan(&plan.jobs)?;
        Ok(DataSet {
            permit,
            root,
            looks,
            made: Vec::new(),
            directories: Vec::new(),
            kept: Vec::new(),
            owners: Vec::new(),
            targets: Arc::default(),
            claims: Vec::new(),
            written: Vec::new(),
            verified: BTreeMap::new(),
            sparse: BTreeMap::new(),
            peers: None,
        })
    }

    /// The same for a run of several processes.
    pub(super) fn with(mut self, peers: Option<&'a dyn Peers>) -> DataSet<'a> {
        self.peers = peers;
        self
    }

    /// Makes what the group's jobs need and marks our files as in use; bytes that were written.
    pub(super) fn prepare(
        &mut self,
        jobs: &[JobPlan],
        stop: &AtomicBool,
        making: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<u64, DataSetError> {
        self.written.clear();
        self.targets = Arc::default();
        let directories = jobs.iter().filter_map(|job| job.directory.as_deref());
        for staged in directories.filter(|directory| directory.starts_with(STAGE)) {
            make::make_own_directory(Path::new(staged))?;
            self.directories.push(staged.into());
        }
        let budget = Budget::beside(jobs.iter().map(descriptors).sum());
        // All are checked before any directory is made: then jobs that share a file that is not
        // there yet get the same path for it.
        let own: Vec<Cow<'_, JobPlan>> = jobs.iter().map(on_own_files).collect();
        let mut checked = self.check(own.iter().map(AsRef::as_ref), &budget)?;
        self.claim(&checked)?;
        let together = Together::of(jobs, self.peers, &checked)?;
        let mut tasks = Tasks::default();
        let mut known = BTreeMap::new();
        for CheckedTarget { job, wanted, verdict, .. } in &mut checked {
            self.make_parent(job, verdict)?;
            if let Some(task) = Task::of(wanted, verdict) {
                tasks.add(task, job.keep);
            }
        }
        for CheckedTarget { wanted, verdict, .. } in &checked {
            tasks.lengthen(&verdict.path, wanted.length);
        }
        let tasks = tasks.with_common_last(|path| together.is_common(path));
        let Tasks { tasks, keeps, single, .. } = tasks;
        let bar = Bar { done: AtomicU64::new(0), of: tasks.iter().map(Task::bytes).sum(), making };
        let new = tasks.iter().zip(&keeps).filter(|(task, _)| task.guard == GuardNote::Make);
        let coming = new.map(|(task, keep)| Coming { path: &task.path, keep: *keep });
        self.owners.extend(scratch::own(&coming.collect::<Vec<_>>(), &self.directories)?);
        let mut made = make::make(&tasks[..single], &bar, stop, &budget)?;
        let means = together::Means { progress: &bar, stop, budget: &budget };
        let done = together.make(&tasks[single..], &checked, &means).inspect_err(|_| {
            let gone = made.iter().zip(&keeps).filter(|(_, keep)| !**keep);
            self.made.extend(gone.map(|(made, _)| made.clone()));
        })?;
        made.extend(done.made);
        let sparse = tasks.iter().zip(&made).filter(|(task, _)| !task.holes.is_empty());
        self.sparse.extend(sparse.map(|(task, made)| (made.identity, task.holes.clone())));
        let both = tasks.iter().map(|task| &task.path).zip(&made);
        let new: BTreeMap<&PathBuf, &Arc<Held>> =
            both.map(|(path, made)| (path, &made.target)).collect();
        let mut targets = Targets::default();
        for (name, held, key) in done.followed {
            targets.hold(&name, &held);
            if let Some(key) = key {
                targets.expect(&name, key);
            }
        }
        for CheckedTarget { target, wanted, verdict, .. } in &checked {
            let Some(held) = verdict.target.as_ref().or(new.get(&verdict.path).copied()) else {
                continue;
            };
            targets.hold(&target.path, held);
            if let Some(key) = verdict.key {
                targets.expect(&target.path, key);
            }
            if wanted.writes && is_our_file(verdict) {
                self.note_write(&mut known, verdict, held);
            }
        }
        let gone = made.into_iter().zip(keeps).filter(|(_, keep)| !keep);
        self.made.extend(gone.map(|(made, _)| made));
        together.shift(self.permit, self.root, &mut targets, &means)?;
        self.targets = Arc::new(targets);
        let written: Vec<Arc<Held>> = self.written.iter().map(|(held, _)| held.clone()).collect();
        manifest::begin(&written)?;
        Ok(bar.done.into_inner())
    }

    /// Notes a file of ours that a job writes. Others may write it too: a file that is made anew
    /// for one is made from end to end.
    fn note_write(
        &mut self,
        known: &mut BTreeMap<Identity, usize>,
        verdict: &Verdict,
        held: &Arc<Held>,
    ) {
        let at = *known.entry(held.identity()).or_insert_with(|| {
            self.written.push((Arc::clone(held), Vec::new()));
            self.written.len() - 1
        });
        let anew = (verdict.fill && verdict.anew).then_some(0..u64::MAX);
        self.written[at].1.extend(verdict.parts.iter().cloned().chain(anew));
    }

    /// The targets of the group that was prepared.
    pub(super) fn targets(&self) -> Arc<Targets> {
        Arc::clone(&self.targets)
    }

    fn is_verified(&self, wanted: &Wanted, target: &TargetPlan) -> bool {
        let holds = Holds { salt: wanted.salt, file_number: wanted.file_number };
        let found = Opened::named(Path::new(&target.path)).ok();
        let found = found.map(|found| identity_of(&found.stamp()));
        let parts = found.and_then(|found| self.verified.get(&found));
        let parts = parts.map(Vec::as_slice).unwrap_or_default();
        let parts = parts.iter().filter(|part| part.holds == holds);
        reach(wanted.first, parts.map(|part| part.bytes.clone()).collect()) >= wanted.length
    }

    /// Whether this run made the target with these holes.
    fn has_its_holes(&self, wanted: &Wanted) -> bool {
        let found = Opened::named(&wanted.path).ok();
        let found = found.map(|found| identity_of(&found.stamp()));
        let holes = found.and_then(|found| self.sparse.get(&found));
        holes.is_some_and(|holes| *holes == wanted.holes)
    }

    /// Makes the directory of a file that is to be made, and those above it, where they are absent,
    /// and holds it.
    fn make_parent(&mut self, job: &JobPlan, verdict: &mut Verdict) -> Result<(), DataSetError> {
        if verdict.note != GuardNote::Make || job.directory.is_none() {
            return Ok(());
        }
        let (Some(parent), Some(name)) = (verdict.path.parent(), verdict.path.file_name()) else {
            return Ok(());
        };
        if verdict.dir_entry.is_some() {
            let known = self.directories.iter().any(|made| made == parent);
            if !job.keep && !known && is_empty_scratch(parent) {
                // A run that was killed before it had an owner left it.
                self.directories.push(parent.to_owned());
            }
            return Ok(());
        }
        let made = make::make_directories(parent)?;
        match job.keep {
            true => self.kept.extend(made),
            false => self.directories.extend(made),
        }
        let failed = |source| MakeError::call("open", parent, None, source, None);
        verdict.dir_entry = Some(new_dir_entry(parent, name).map_err(failed)?);
        Ok(())
    }

    /// Writes down what the files hold now that the group is over.
    pub(super) fn finalize(
        &mut self,
        jobs: &[JobPlan],
        results: &[JobResult],
        ran: bool,
    ) -> Result<(), DataSetError> {
        let length = |held: &Held| held.look().map_or(0, |found| found.size);
        let writers = writers(jobs, &self.targets);
        let common = together::identities(jobs, &self.targets);
        let is_clean = |which: &Identity| {
            writers.get(which).is_none_or(|(_, uses)| clean(uses, results).is_some())
        };
        let all_clean = match self.peers.filter(|_| together::is_needed(jobs)) {
            // The next run checks by its contents what the others may still write.
            Some(peers) if ran => {
                let clean = common.iter().all(is_clean);
                together::end(peers, jobs, clean).ok()
            }
            Some(_) => None,
            None => Some(true),
        };
        let clean = |which: &Identity, uses: &[Use<'_>]| {
            clean(uses, results).filter(|_| all_clean == Some(true) || !common.contains(which))
        };
        let mut finalized = Vec::new();
        let mut of_files = BTreeMap::new();
        for (held, before) in std::mem::take(&mut self.written) {
            if all_clean.is_none() && common.contains(&held.identity()) {
                continue;
            }
            let uses = writers.get(&held.identity()).map(|(_, uses)| uses.as_slice());
            let is_common = all_clean != Some(true) && common.contains(&held.identity());
            let uses = uses.filter(|_| !is_common).unwrap_or_default();
            let known = written::known(uses, results, before);
            of_files.extend(known.clone().map(|known| (held.identity(), known)));
            finalized.push((held, known));
        }
        for (which, (held, uses)) in &writers {
            self.verified.remove(which);
            let length = length(held);
            if let Some(holds) = clean(which, uses) {
                let wrote = uses.iter().map(|one| one.bytes.clone());
                let known = of_files.remove(which).into_iter().flat_map(|known: Known| known.parts);
                let parts = wrote.chain(known.map(|part| part.start..part.end.min(length)));
                let parts = parts.filter(|bytes| bytes.end <= length);
                let parts = parts.map(|bytes| Part { bytes, holds });
                self.verified.insert(*which, parts.collect());
            }
        }
        let kind = if ran { DataSetError::NotNoted } else { DataSetError::Manifest };
        manifest::finalize(&finalized).map_err(kind)
    }

    /// Removes what this run made and should not keep.
    pub(super) fn finish(mut self) -> Result<(), DataSetError> {
        let errors = self.remove();
        if errors.is_empty() { Ok(()) } else { Err(DataSetError::Clean(errors)) }
    }

    fn remove(&mut self) -> Vec<remove::CleanError> {
        let mut errors = remove::clean(&std::mem::take(&mut self.made), &[]);
        std::mem::take(&mut self.owners).into_iter().for_each(Owner::remove);
        errors.extend(remove::clean(&[], &std::mem::take(&mut self.directories)));
        errors.extend(remove::clean(&[], &std::mem::take(&mut self.kept)));
        errors
    }
}

/// Files that are to go are removed on every way out of a run, a panic included.
impl Drop for DataSet<'_> {
    fn drop(&mut self) {
        // Who could be told has gone.
        let _ = self.remove();
    }
}

/// Whether it is the directory that data sets go to when none is named, and holds nothing.
fn is_empty_scratch(directory: &Path) -> bool {
    let is_scratch = |name: &str| {
        let rank = name.strip_prefix(SCRATCH).map(|rest| rest.strip_prefix('-').unwrap_or(rest));
        rank.is_some_and(|rank| rank.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let named = directory.file_name().and_then(OsStr::to_str).is_some_and(is_scratch);
    named && std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

fn is_our_file(verdict: &Verdict) -> bool {
    let ours = matches!(verdict.note, GuardNote::Make | GuardNote::Ours | GuardNote::Remake);
    ours && verdict.kind == TargetKind::File
}

/// A name in a directory that was just made: no link is followed to it.
fn new_dir_entry(directory: &Path, name: &OsStr) -> std::io::Result<DirEntry> {
    let above = Directory::open(directory.parent().unwrap_or(Path::new("")))?;
    let last = directory.file_name().unwrap_or(OsStr::new("."));
    Ok(DirEntry::new(above.below(Path::new(last))?, name))
}

/// Descriptors of targets that a job's workers open.
fn descriptors(job: &JobPlan) -> u64 {
    job.workers.iter().map(|worker| super::worker::own_targets(worker).len() as u64).sum()
}

/// Judges every target of every job and notes the verdicts in the plan. Writes nothing.
///
/// # Errors
/// All refusals at once.
pub fn check_all(
    plan: &mut Plan,
    permit: &Permit,
    root: &Root,
    looks: &Looks<'_>,
) -> Result<(), DataSetError> {
    let mut refused: Vec<Refusal> = Vec::new();
    let mut lists = Lists::with(Some(looks), Vec::new());
    for at in 0..plan.jobs.len() {
        let (before, rest) = plan.jobs.split_at_mut(at);
        let Some(job) = rest.first_mut() else { break };
        if together::is_followed(job) {
            continue;
        }
        let own = on_own_files(job);
        let earlier = earlier_writers(before, job.group);
        let mut notes: Vec<Option<(GuardNote, Option<TargetKind>)>> =
            Vec::with_capacity(job.targets.len());
        let mut cut = Vec::new();
        for (target, wanted) in own.targets.iter().zip(wants(&own)) {
            let writers = earlier.get(target.path.as_str()).map_or(&[][..], Vec::as_slice);
            let seen = check_with(&mut lists, &wanted, permit, root);
            let seen = seen.and_then(|verdict| match spoilt(writers, &wanted) {
                true => Err(Refusal::WrittenUnverified { path: wanted.path.clone() }),
                false => Ok(verdict),
            });
            notes.push(match seen {
                Ok(verdict) => {
                    cut.extend(Cut::of(&verdict));
                    Some((verdict.note, Some(verdict.kind)))
                }
                Err(refusal) => match once_written(&refusal, writers, &wanted, target) {
                    Some(note) => Some((note, None)),
                    None => {
                        refused.push(refusal);
                        None
                    }
                },
            });
        }
        let cut = cut_in_words(&cut).filter(|text| !job.notes.contains(text));
        job.notes.extend(cut);
        let noted = job.targets.iter_mut().zip(notes);
        for (target, (guard, kind)) in noted.filter_map(|(target, note)| Some((target, note?))) {
            target.guard = guard;
            target.kind = kind.unwrap_or(target.kind);
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(DataSetError::Refused(refused)) }
}

/// A file of ours that someone cut and that is filled again before the load.
struct Cut {
    path: PathBuf,
    size: u64,
    listed: u64,
}

impl Cut {
    fn of(verdict: &Verdict) -> Option<Cut> {
        let listed = verdict.cut_from.filter(|_| verdict.fill)?;
        Some(Cut { path: verdict.path.clone(), size: verdict.size_bytes?, listed })
    }
}

/// The first of these files with both lengths, and how many more there are.
fn cut_in_words(cut: &[Cut]) -> Option<String> {
    let (Cut { path, size, listed }, more) = cut.split_first()?;
    let others = match more.len() {
        0 => String::new(),
        more => format!(" (and {})", many(more as u64, "more file")),
    };
    Some(format!(
        "{} had {} when a run of gpuio's left it and has {} now{others}: someone cut it, and what \
         is missing is written again before the load",
        path.display(),
        format_bytes(*listed),
        format_bytes(*size)
    ))
}

/// A job of an earlier group, its target, and the bytes of it that the job uses.
type Writer<'a> = (&'a JobPlan, &'a TargetPlan, Range<u64>);

/// Those that write to each file, in their order.
fn earlier_writers(before: &[JobPlan], group: u32) -> BTreeMap<&str, Vec<Writer<'_>>> {
    let mut all: BTreeMap<&str, Vec<Writer<'_>>> = BTreeMap::new();
    for job in before.iter().filter(|job| job.group < group && job.read_percent < 100) {
        for (target, part) in job.targets.iter().zip(parts(job)) {
            all.entry(&target.path).or_default().push((job, target, part));
        }
    }
    all
}

/// Whether the last of these writers leave the pattern in all bytes that a read verifies.
fn leave_pattern(writers: &[Writer<'_>], wanted: &Wanted) -> bool {
    let after = writers.iter().rposition(|(job, ..)| !is_left_whole(job)).map_or(0, |at| at + 1);
    let verified = writers[after..].iter().map(|(.., part)| part.clone());
    reach(wanted.first, verified.collect()) >= wanted.length
}

/// Whether a job that verifies what it reads comes after one that leaves other bytes there.
fn spoilt(writers: &[Writer<'_>], wanted: &Wanted) -> bool {
    wanted.is_checked_as_it_lies()
        && writers.iter().any(|(job, ..)| !is_left_whole(job))
        && !leave_pattern(writers, wanted)
}

/// The later state of a read's target, where it is refused only because it is not written yet and a
/// job of an earlier group writes it. It is checked again, for good, before its own group runs.
fn once_written(
    refusal: &Refusal,
    writers: &[Writer<'_>],
    wanted: &Wanted,
    target: &TargetPlan,
) -> Option<GuardNote> {
    let longest = writers.iter().map(|(_, other, _)| other.length_bytes).max()?;
    if longest < target.length_bytes || spoilt(writers, wanted) {
        return None;
    }
    match refusal {
        Refusal::NeverWritten { .. } => Some(GuardNote::Make),
        Refusal::TooShort { .. } | Refusal::OtherData { .. } => Some(GuardNote::Ours),
        Refusal::NotVerifiable { .. } => {
            leave_pattern(writers, wanted).then_some(GuardNote::ForeignReadOnly)
        }
        _ => None,
    }
}

/// The files to make for a group; where its jobs share a file, it is made to suit them all.
#[derive(Default)]
struct Tasks {
    tasks: Vec<Task>,
    /// Whether each file is to stay.
    keeps: Vec<bool>,
    at: BTreeMap<PathBuf, usize>,
    /// How many this process makes alone; they come first.
    single: usize,
}

impl Tasks {
    fn add(&mut self, task: Task, keep: bool) {
        match self.at.get(&task.path) {
            Some(&at) => {
                self.tasks[at].join(task);
                self.keeps[at] |= keep;
            }
            None => {
                self.at.insert(task.path.clone(), self.tasks.len());
                self.tasks.push(task);
                self.keeps.push(keep);
            }
        }
    }

    /// Those of files that several processes make behind all others.
    fn with_common_last(self, is_common: impl Fn(&Path) -> bool) -> Tasks {
        let both = self.tasks.into_iter().zip(self.keeps);
        let (common, alone): (Vec<_>, Vec<_>) = both.partition(|(task, _)| is_common(&task.path));
        let single = alone.len();
        let (tasks, keeps) = alone.into_iter().chain(common).unzip();
        Tasks { tasks, keeps, at: BTreeMap::new(), single }
    }

    /// A file that is made anew for one job must be long enough for the others too.
    fn lengthen(&mut self, path: &Path, length: u64) {
        if let Some(&at) = self.at.get(path) {
            self.tasks[at].length = self.tasks[at].length.max(length);
        }
    }
}

/// The needs of a job for each of its targets.
fn wants(job: &JobPlan) -> impl Iterator<Item = Wanted> {
    let (lays_itself, unit) = (lays_itself(job), blocks::unit(job));
    let both = job.targets.iter().zip(parts(job));
    both.map(move |(target, part)| wanted(job, (lays_itself, unit), target, &part))
}

fn wanted(
    job: &JobPlan,
    (lays_itself, unit): (bool, u64),
    target: &TargetPlan,
    part: &Range<u64>,
) -> Wanted {
    // A replay's writes are read once more afterwards, beside what it did not write.
    let reads = job.read_percent > 0 || job.replay.is_some();
    let writes = job.read_percent < 100;
    // Blocks with fio's headers say themselves what they should hold.
    let verified = job.verify != VerifyMode::Off && !job.fio_headers && !job.against_file;
    let back = job.reads_writes_back() && !job.fio_headers;
    Wanted {
        path: PathBuf::from(&target.path),
        first: part.start,
        length: target.length_bytes,
        as_planned: job.ranges.is_some(),
        writes,
        // A mapping can't reach past the end of a file, so its file must be there whole.
        reads: reads || job.engine.actual == "mmap",
        needs_pattern: reads && verified && !back,
        // The rest of it below one unit is never written.
        other: back.then(|| part.start..part.end - (part.end - part.start) % unit),
        laid_out: job.engine.actual != "null" && !lays_itself,
        // A verified write of a part leaves a file that can be verified only if the rest of it
        // holds the pattern as well.
        rest: writes && verified && *part != (0..target.length_bytes),
        directory: job.directory_of(&target.path).map(PathBuf::from),
        salt: salt(job),
        file_number: target.file_number,
        holes: target.holes.clone(),
    }
}

struct Bar<'a> {
    done: AtomicU64,
    of: u64,
    making: &'a (dyn Fn(u64, u64) + Sync),
}

impl Progress for Bar<'_> {
    fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.making)(done, self.of);
    }
}

#[cfg(test)]
mod tests;
