//! The data set over a run: judged before anything, made before each group, settled after it,
//! removed at the end unless kept.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gpuio_host::Root;
use gpuio_record::{
    GuardNote, JobPlan, JobResult, Plan, TargetKind, TargetPlan, VerifyMode, VerifyOutcome,
};

use crate::dataset::judge::{Permit, Verdict, Wanted, judge};
use crate::dataset::make::{self, Made, Task};
use crate::dataset::manifest::{self, Holds, ManifestError};
use crate::dataset::{MakeError, Progress, Refusal, clean};

/// Why the data set is not as the plan needs it.
#[derive(Debug, thiserror::Error)]
pub enum DataSetError {
    /// Targets that may not be used as planned. Nothing was written.
    #[error("{}", lines(.0))]
    Refused(Vec<Refusal>),
    /// Making files failed; what was half made is gone.
    #[error(transparent)]
    Make(#[from] MakeError),
    /// The list of our files could not be kept.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Files of ours could not be removed.
    #[error("{}", lines(.0))]
    Clean(Vec<clean::CleanError>),
}

fn lines<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}

/// The files of a run.
pub(super) struct DataSet<'a> {
    permit: &'a Permit,
    root: &'a Root,
    /// Files made by this run that are to go, and the directories made for them.
    made: Vec<Made>,
    directories: Vec<PathBuf>,
    /// Our own files that the group in hand writes, and whether each holds its whole pattern
    /// before the load.
    written: Vec<(PathBuf, bool)>,
    /// Targets of any owner that hold their pattern because an earlier group wrote and verified
    /// all of it.
    verified: Vec<(String, Holds)>,
}

impl<'a> DataSet<'a> {
    /// Judges every target of every job and notes the verdicts in the plan.
    pub(super) fn guard(
        plan: &mut Plan,
        permit: &'a Permit,
        root: &'a Root,
    ) -> Result<DataSet<'a>, DataSetError> {
        judge_all(plan, permit, root)?;
        Ok(DataSet {
            permit,
            root,
            made: Vec::new(),
            directories: Vec::new(),
            written: Vec::new(),
            verified: Vec::new(),
        })
    }

    /// Makes what the group's jobs need and marks our files as in use.
    pub(super) fn prepare(
        &mut self,
        jobs: &[JobPlan],
        stop: &AtomicBool,
        making: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<(), DataSetError> {
        let mut tasks: Vec<Task> = Vec::new();
        let mut keeps = Vec::new();
        let mut refused = Vec::new();
        self.written.clear();
        // All are judged before any directory is made: then jobs that share a file that is not
        // there yet get the same path for it.
        let mut verdicts = Vec::new();
        for (job, target) in each(jobs) {
            let wanted = wanted(job, target);
            match judge(&wanted, self.permit, self.root) {
                Err(Refusal::NotVerifiable { .. }) if self.is_verified(job, target) => {}
                Err(refusal) => refused.push(refusal),
                Ok(verdict) => verdicts.push((job, wanted, verdict)),
            }
        }
        if !refused.is_empty() {
            return Err(DataSetError::Refused(refused));
        }
        for (job, wanted, verdict) in verdicts {
            self.make_parent(job, &verdict)?;
            if let Some(task) = Task::of(&wanted, &verdict) {
                add(&mut tasks, &mut keeps, task, job.keep);
            }
            self.note_write(&wanted, &verdict);
        }
        let bar = Bar { done: AtomicU64::new(0), of: bytes_to_fill(&tasks), making };
        let made = make::make(&tasks, &bar, stop)?;
        self.made.extend(made.into_iter().zip(keeps).filter(|(_, keep)| !keep).map(|(m, _)| m));
        let paths: Vec<&PathBuf> = self.written.iter().map(|(path, _)| path).collect();
        manifest::begin(&paths)?;
        Ok(())
    }

    fn is_verified(&self, job: &JobPlan, target: &TargetPlan) -> bool {
        let holds = Holds { salt: job.salt, file_number: target.file_number };
        self.verified.iter().any(|(path, held)| *path == target.path && *held == holds)
    }

    fn make_parent(&mut self, job: &JobPlan, verdict: &Verdict) -> Result<(), DataSetError> {
        let parent = verdict.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let wanted = job.directory.is_some() && verdict.note == GuardNote::Make;
        if let Some(parent) = parent.filter(|parent| wanted && !parent.exists())
            && make::make_directory(parent)?
            && !job.keep
        {
            self.directories.push(parent.to_owned());
        }
        Ok(())
    }

    fn note_write(&mut self, wanted: &Wanted, verdict: &Verdict) {
        let ours = matches!(verdict.note, GuardNote::Make | GuardNote::Ours | GuardNote::Remake);
        let file = verdict.kind == TargetKind::File;
        let known = self.written.iter().any(|(path, _)| *path == verdict.path);
        if wanted.writes && ours && file && !known {
            let before = verdict.holds_pattern || verdict.fill;
            self.written.push((verdict.path.clone(), before));
        }
    }

    /// Writes down what the files hold now that the group is over.
    pub(super) fn settle(
        &mut self,
        jobs: &[JobPlan],
        results: &[JobResult],
    ) -> Result<(), DataSetError> {
        let written = std::mem::take(&mut self.written);
        let settled: Vec<(PathBuf, Option<Holds>)> = written
            .iter()
            .map(|(path, before)| (path.clone(), holds(path, *before, jobs, results)))
            .collect();
        for (_, target) in each(jobs).filter(|(job, _)| job.read_percent < 100) {
            self.verified.retain(|(path, _)| *path != target.path);
            let path = Path::new(&target.path);
            let before = written.iter().any(|(known, before)| *before && is(known, path));
            if let Some(held) = holds(path, before, jobs, results)
                && std::fs::metadata(&target.path).is_ok_and(|m| m.len() >= target.length_bytes)
            {
                self.verified.push((target.path.clone(), held));
            }
        }
        Ok(manifest::settle(&settled)?)
    }

    /// Removes what this run made and should not keep.
    pub(super) fn finish(self) -> Result<(), DataSetError> {
        let errors = clean::clean(&self.made, &self.directories);
        if errors.is_empty() { Ok(()) } else { Err(DataSetError::Clean(errors)) }
    }
}

/// Judges every target of every job and notes the verdicts in the plan. Writes nothing.
///
/// # Errors
/// All refusals at once.
pub fn judge_all(plan: &mut Plan, permit: &Permit, root: &Root) -> Result<(), DataSetError> {
    let mut refused: Vec<Refusal> = Vec::new();
    for at in 0..plan.jobs.len() {
        let (before, rest) = plan.jobs.split_at_mut(at);
        let Some(job) = rest.first_mut() else { break };
        let wants: Vec<Wanted> = job.targets.iter().map(|target| wanted(job, target)).collect();
        let group = job.group;
        for (target, wanted) in job.targets.iter_mut().zip(wants) {
            match judge(&wanted, permit, root) {
                Ok(verdict) => {
                    target.guard = verdict.note;
                    target.kind = verdict.kind;
                }
                Err(refusal) => match once_written(&refusal, before, group, target) {
                    Some(note) => target.guard = note,
                    None => refused.push(refusal),
                },
            }
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(DataSetError::Refused(refused)) }
}

/// What a read's target will be where the refusal is only that it is not written yet, and a job
/// of an earlier group writes it. It is judged again, for good, before its own group runs.
fn once_written(
    refusal: &Refusal,
    before: &[JobPlan],
    group: u32,
    target: &TargetPlan,
) -> Option<GuardNote> {
    let writes = |job: &&JobPlan| job.group < group && job.read_percent < 100;
    let mut writers = before.iter().filter(writes).flat_map(|job| {
        let of_job = job.targets.iter().map(move |other| (job, other));
        of_job.filter(|(_, other)| other.path == target.path)
    });
    let longest = writers.clone().map(|(_, other)| other.length_bytes).max()?;
    match refusal {
        _ if longest < target.length_bytes => None,
        Refusal::NeverWritten { .. } => Some(GuardNote::Make),
        Refusal::TooShort { .. } | Refusal::OtherData { .. } => Some(GuardNote::Ours),
        Refusal::NotVerifiable { .. } => writers
            .any(|(job, _)| job.verify == VerifyMode::Pass)
            .then_some(GuardNote::ForeignReadOnly),
        _ => None,
    }
}

/// Adds a task; where jobs of a group share a file, it is made to suit them all.
fn add(tasks: &mut Vec<Task>, keeps: &mut Vec<bool>, task: Task, keep: bool) {
    match tasks.iter().position(|other| other.path == task.path) {
        Some(at) => {
            let same = &mut tasks[at];
            same.length = same.length.max(task.length);
            if task.contents == make::Contents::Pattern {
                same.contents = make::Contents::Pattern;
            }
            keeps[at] |= keep;
        }
        None => {
            tasks.push(task);
            keeps.push(keep);
        }
    }
}

fn each(jobs: &[JobPlan]) -> impl Iterator<Item = (&JobPlan, &TargetPlan)> {
    jobs.iter().flat_map(|job| job.targets.iter().map(move |target| (job, target)))
}

fn wanted(job: &JobPlan, target: &TargetPlan) -> Wanted {
    let reads = job.read_percent > 0;
    let verified = job.verify != VerifyMode::Off;
    Wanted {
        path: PathBuf::from(&target.path),
        length: target.length_bytes,
        writes: job.read_percent < 100,
        // A mapping can't reach past the end of a file, so its file must be there whole. And a
        // verified write of a part leaves a file that can be verified only if the rest of it
        // holds the pattern as well.
        reads: reads || job.engine.got == "mmap" || (verified && !whole(job, target)),
        needs_pattern: reads && verified,
        in_directory: job.directory.is_some(),
        salt: job.salt,
        file_number: target.file_number,
    }
}

fn bytes_to_fill(tasks: &[Task]) -> u64 {
    let fills = |task: &&Task| task.contents == make::Contents::Pattern;
    tasks.iter().filter(fills).map(|task| task.length).sum()
}

/// Whether two paths name one file.
fn is(real: &Path, path: &Path) -> bool {
    path == real || path.canonicalize().is_ok_and(|found| found == real)
}

/// Whether a written file holds its pattern again: every job that wrote to it wrote its part anew
/// in a verification pass that found nothing wrong, and that part is all of it or the rest held
/// the pattern `before`.
fn holds(path: &Path, before: bool, jobs: &[JobPlan], results: &[JobResult]) -> Option<Holds> {
    let mut found = None;
    for (job, target) in each(jobs) {
        if !is(path, Path::new(&target.path)) || job.read_percent == 100 {
            continue;
        }
        let result = results.iter().find(|result| result.name == job.name)?;
        let outcome = result.verify.as_ref()?;
        let all = before || whole(job, target);
        if job.verify != VerifyMode::Pass || !clean_pass(outcome) || !all {
            return None;
        }
        found = Some(Holds { salt: job.salt, file_number: target.file_number });
    }
    found
}

fn clean_pass(outcome: &VerifyOutcome) -> bool {
    outcome.complete && outcome.bad_blocks == 0 && outcome.failed == 0
}

/// Whether the job's regions cover the target from its first byte to its last.
fn whole(job: &JobPlan, target: &TargetPlan) -> bool {
    let at = job.targets.iter().position(|other| other.path == target.path);
    let Some(at) = at.and_then(|at| u32::try_from(at).ok()) else { return false };
    let regions = job.workers.iter().flat_map(|worker| &worker.regions);
    let mut spans: Vec<(u64, u64)> = regions
        .filter(|region| region.target == at)
        .map(|region| (region.offset, region.offset + region.length))
        .collect();
    spans.sort_unstable();
    let reached = spans
        .iter()
        .try_fold(0, |reached: u64, &(from, to)| (from <= reached).then(|| reached.max(to)));
    reached == Some(target.length_bytes)
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
