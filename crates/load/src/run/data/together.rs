//! Files of a group that several processes (ranks) use together.
//!
//! A file of which all ranks have a part (`JobPlan::is_common`) is checked, created and listed by
//! rank 0 alone; the others follow (`gpuio_dataset::shared_file`), and all fill a share of it. A
//! rank that reads the files of another one (`reads_another_rank`) makes its own as ever, and opens
//! the other's once all have made theirs; it only reads them.
//!
//! Exchanges, in this order and only where the group has such jobs: `files` (what rank 0 made, and
//! what has to be filled), `found` (all see it), `named` (it is still the same), `filled`; `made`
//! before another rank's files are opened; after the group `done`. All of them are outside the
//! measured time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuio_base::pattern::{Key, Repeats};
use gpuio_dataset::held::{Budget, Held, Targets};
use gpuio_dataset::make::{Contents, Made, Task};
use gpuio_dataset::manifest::{self, Holds, Known, Lists};
use gpuio_dataset::ownership::{Permit, Wanted, check_with};
use gpuio_dataset::shared_file::{self, Fill, Part};
use gpuio_dataset::{Identity, Progress};
use gpuio_host::Root;
use gpuio_record::{GuardNote, JobPlan, TargetKind, TargetPlan};
use serde_json::{Value, json};

use super::checked::CheckedTarget;
use super::{DataSetError, wants};
use crate::run::pattern_keys::salt;
use crate::run::peers::Peers;

/// A client of NFS may see a new file so late; other file systems show it at once.
const LATE: Duration = Duration::from_secs(65);
const SOON: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// Whether a group of jobs needs the other processes to prepare and to end.
pub(super) fn is_needed(jobs: &[JobPlan]) -> bool {
    jobs.iter().any(|job| job.is_common() || job.reads_another_rank())
}

/// Whether another process checks and makes the files of this job.
pub(super) fn is_followed(job: &JobPlan) -> bool {
    job.is_common() && job.layout.as_ref().is_some_and(|layout| layout.rank > 0)
}

/// The files of which all processes have a part.
pub(super) fn identities(jobs: &[JobPlan], targets: &Targets) -> BTreeSet<Identity> {
    let jobs = jobs.iter().filter(|job| job.is_common());
    let held = jobs.flat_map(|job| &job.targets).filter_map(|target| targets.get(&target.path));
    held.map(|held| held.identity()).collect()
}

/// After the group: no process uses its files any more; whether what all wrote is clean.
pub(super) fn end(peers: &dyn Peers, jobs: &[JobPlan], clean: bool) -> Result<bool, String> {
    peers.all(&format!("done of group {}", group_of(jobs)), clean)
}

fn group_of(jobs: &[JobPlan]) -> u32 {
    jobs.first().map_or(0, |job| job.group)
}

fn failed(why: impl Into<String>) -> DataSetError {
    DataSetError::Together(why.into())
}

/// The tools for the making of files.
pub(super) struct Means<'a> {
    pub(super) progress: &'a dyn Progress,
    pub(super) stop: &'a AtomicBool,
    pub(super) budget: &'a Budget,
}

/// The files made, and the findings.
#[derive(Default)]
pub(super) struct Done {
    /// On rank 0, one for each task.
    pub(super) made: Vec<Made>,
    /// On the others: name, file, and the key of its pattern where that is not the job's own.
    pub(super) followed: Vec<(String, Arc<Held>, Option<Key>)>,
}

/// A file of which all processes have a part, as rank 0 describes it.
struct CommonFile {
    path: String,
    /// Whether it was listed under the word of this run: then it is ours, and may be written.
    listed: bool,
    /// Bytes that it has at least.
    least: u64,
    fills: Vec<Fill>,
    key: Option<Key>,
}

impl CommonFile {
    fn to_json(&self) -> Value {
        json!({
            "path": self.path,
            "listed": self.listed,
            "least": self.least,
            "fills": self.fills,
            "key": self.key.map(|key| [key.seed, key.repeats.bits()]),
        })
    }

    fn from_json(value: &Value) -> Option<CommonFile> {
        Some(CommonFile {
            path: value["path"].as_str()?.to_owned(),
            listed: value["listed"].as_bool()?,
            least: value["least"].as_u64()?,
            fills: serde_json::from_value(value["fills"].clone()).ok()?,
            key: key(&value["key"])?,
        })
    }
}

/// A key as `to_json` writes it; `None` for anything else.
fn key(value: &Value) -> Option<Option<Key>> {
    if value.is_null() {
        return Some(None);
    }
    let (seed, repeats) = (value[0].as_u64()?, Repeats::from_bits(value[1].as_u64()?)?);
    Some(Some(Key { seed, repeats }))
}

/// The common files, as rank 0 has listed them under the word of this run.
struct Listed<'a> {
    tasks: &'a [Task],
    made: &'a [Made],
    /// Those that need nothing, and will be written.
    written: &'a [Arc<Held>],
    checked: &'a [CheckedTarget<'a>],
}

impl Listed<'_> {
    /// The contents of each file once all have filled their share.
    fn hold(&self) -> Vec<(Arc<Held>, Option<Known>)> {
        let of_tasks = self.tasks.iter().zip(self.made).map(|(task, made)| {
            let all = task.contents == Contents::Pattern && task.other.is_empty();
            let holds = Holds { salt: task.salt, file_number: task.file_number };
            (Arc::clone(&made.target), all.then(|| Known::whole(holds)))
        });
        let as_before = self.written.iter().map(|held| {
            let same = |one: &&CheckedTarget<'_>| {
                one.verdict.target.as_ref().is_some_and(|it| it.identity() == held.identity())
            };
            let known = |one: &CheckedTarget<'_>| {
                let Wanted { salt, file_number, .. } = one.wanted;
                Known { holds: Holds { salt, file_number }, parts: one.verdict.parts.clone() }
            };
            (Arc::clone(held), self.checked.iter().find(same).map(known))
        });
        of_tasks.chain(as_before).collect()
    }
}

/// The files of a group that several processes use; nothing where there are none.
pub(super) struct Together<'a> {
    peers: Option<&'a dyn Peers>,
    jobs: &'a [JobPlan],
    rank: u32,
    ranks: u32,
    /// Rank 0's names of the common files, links followed.
    real: BTreeSet<PathBuf>,
}

impl<'a> Together<'a> {
    /// Looks whether rank 0, which checked the common files, may share them.
    pub(super) fn of(
        jobs: &'a [JobPlan],
        peers: Option<&'a dyn Peers>,
        checked: &[CheckedTarget<'_>],
    ) -> Result<Together<'a>, DataSetError> {
        let peers = peers.filter(|_| is_needed(jobs));
        let layout = jobs.iter().find_map(|job| job.layout.as_ref());
        let (rank, ranks) = layout.map_or((0, 1), |layout| (layout.rank, layout.ranks));
        let mut real = BTreeSet::new();
        for one in checked.iter().filter(|one| peers.is_some() && one.job.is_common()) {
            let ours = one.verdict.note != GuardNote::ForeignOverwrite;
            if one.wanted.writes && (!ours || one.verdict.kind != TargetKind::File) {
                return Err(failed(format!(
                    "{}: several ranks write one file only if gpuio made it; name a new file, or \
                     give each rank its own",
                    one.target.path
                )));
            }
            real.insert(one.verdict.path.clone());
        }
        Ok(Together { peers, jobs, rank, ranks, real })
    }

    pub(super) fn is_common(&self, path: &Path) -> bool {
        self.real.contains(path)
    }

    /// The common files, each once, with a job that uses them.
    fn common(&self) -> Vec<(&'a JobPlan, usize)> {
        let mut known = BTreeSet::new();
        let of = |job: &'a JobPlan| (0..job.targets.len()).map(move |at| (job, at));
        let all = self.jobs.iter().filter(|job| job.is_common()).flat_map(of);
        all.filter(|(job, at)| known.insert(&job.targets[*at].path)).collect()
    }

    fn words(&self, what: &str) -> String {
        format!("{what} of group {}", group_of(self.jobs))
    }

    /// Makes the files of `tasks` together with the other processes; on rank 0 `tasks` are those
    /// of the common files, on others there are none.
    pub(super) fn make(
        &self,
        tasks: &[Task],
        checked: &[CheckedTarget<'_>],
        means: &Means<'_>,
    ) -> Result<Done, DataSetError> {
        let Some(peers) = self.peers else { return Ok(Done::default()) };
        let common = self.common();
        if common.is_empty() {
            return Ok(Done::default());
        }
        if self.rank > 0 {
            return self.follow(peers, &common, means);
        }
        let run = shared_file::word();
        let written = self.written(tasks, checked);
        let made =
            shared_file::begin(tasks, &written, &run, means.budget).map_err(DataSetError::from)?;
        let files = self.describe(&common, tasks, checked);
        let listed = Listed { tasks, made: &made, written: &written, checked };
        let outcome = self.lead(peers, (&run, &files), &listed, means);
        if outcome.is_err() {
            shared_file::remove(&made);
        }
        outcome.map(|()| Done { made, followed: Vec::new() })
    }

    /// Common files that are there as they must be, and will be written.
    fn written(&self, tasks: &[Task], checked: &[CheckedTarget<'_>]) -> Vec<Arc<Held>> {
        let mut known = BTreeSet::new();
        let of = |one: &&CheckedTarget<'_>| {
            let path = &one.verdict.path;
            let made = tasks.iter().any(|task| task.path == *path);
            one.wanted.writes && self.is_common(path) && !made
        };
        let all = checked.iter().filter(of).filter(|one| known.insert(&one.verdict.path));
        all.filter_map(|one| one.verdict.target.clone()).collect()
    }

    /// The facts about the common files that the others must know.
    fn describe(
        &self,
        common: &[(&JobPlan, usize)],
        tasks: &[Task],
        checked: &[CheckedTarget<'_>],
    ) -> Vec<CommonFile> {
        let of = |(job, at): &(&JobPlan, usize)| {
            let target = &job.targets[*at];
            let mine = |one: &&CheckedTarget<'_>| one.target.path == target.path;
            let verdict = checked.iter().find(mine).map(|one| &one.verdict);
            let task = verdict.and_then(|one| tasks.iter().find(|task| task.path == one.path));
            let writes = checked.iter().filter(mine).any(|one| one.wanted.writes);
            let least = match task {
                Some(task) if task.contents == Contents::Nothing => 0,
                Some(task) => task.length,
                None => target.length_bytes,
            };
            CommonFile {
                path: target.path.clone(),
                listed: task.is_some() || writes,
                least,
                fills: task.map(shared_file::fills).unwrap_or_default(),
                key: verdict.and_then(|verdict| verdict.key),
            }
        };
        common.iter().map(of).collect()
    }

    /// Rank 0's part once the files are listed.
    fn lead(
        &self,
        peers: &dyn Peers,
        (run, files): (&str, &[CommonFile]),
        listed: &Listed<'_>,
        means: &Means<'_>,
    ) -> Result<(), DataSetError> {
        let all: Vec<Value> = files.iter().map(CommonFile::to_json).collect();
        let message = json!({ "run": run, "files": all }).to_string().into_bytes();
        peers.first_says(&self.words("files"), message).map_err(failed)?;
        peers.all(&self.words("found"), true).map_err(failed)?;
        let made = listed.made.iter().map(|made| &made.target);
        if let Some(gone) =
            made.chain(listed.written).find(|held| !shared_file::is_still_named(held))
        {
            return Err(failed(format!(
                "{}: another file took its name meanwhile; run again",
                gone.path().display()
            )));
        }
        peers.first_says(&self.words("named"), Vec::new()).map_err(failed)?;
        for (task, made) in listed.tasks.iter().zip(listed.made) {
            let fills = shared_file::fills(task);
            let (salt, file_number) = (task.salt, task.file_number);
            let part = Part { fills: &fills, salt, file_number, share: (self.rank, self.ranks) };
            shared_file::fill(&made.target, part, means.progress, means.stop)?;
        }
        peers.all(&self.words("filled"), true).map_err(failed)?;
        Ok(manifest::finalize(&listed.hold())?)
    }

    /// The part of all ranks but 0.
    fn follow(
        &self,
        peers: &dyn Peers,
        common: &[(&JobPlan, usize)],
        means: &Means<'_>,
    ) -> Result<Done, DataSetError> {
        let said = peers.first_says(&self.words("files"), Vec::new()).map_err(failed)?;
        let unread = || failed("a message of rank 0 about its files can't be read");
        let said: Value = serde_json::from_slice(&said).map_err(|_| unread())?;
        let run = said["run"].as_str().ok_or_else(unread)?;
        let files = said["files"].as_array().into_iter().flatten();
        let files: Option<Vec<CommonFile>> = files.map(CommonFile::from_json).collect();
        let files = files.filter(|files| files.len() == common.len()).ok_or_else(unread)?;
        let mut followed = Vec::with_capacity(files.len());
        for ((job, at), file) in common.iter().zip(&files) {
            let target = &job.targets[*at];
            let wanted = wants(job).nth(*at).ok_or_else(unread)?;
            let word = file.listed.then_some(run);
            let held = patiently(&target.path, means, || {
                shared_file::follow(&wanted, word, file.least)
            })
            .map_err(|why| {
                failed(format!(
                    "{}: this rank does not see what rank 0 has at {}: {why}; name a location on \
                     a file system that all ranks share",
                    target.path, file.path
                ))
            })?;
            followed.push((target.path.clone(), means.budget.hold(held), file.key));
        }
        peers.all(&self.words("found"), true).map_err(failed)?;
        peers.first_says(&self.words("named"), Vec::new()).map_err(failed)?;
        for (((job, at), file), (_, held, _)) in common.iter().zip(&files).zip(&followed) {
            let target = &job.targets[*at];
            let (salt, file_number) = (salt(job), target.file_number);
            let share = (self.rank, self.ranks);
            let part = Part { fills: &file.fills, salt, file_number, share };
            shared_file::fill(held, part, means.progress, means.stop)?;
        }
        peers.all(&self.words("filled"), true).map_err(failed)?;
        Ok(Done { made: Vec::new(), followed })
    }

    /// Opens the files that another rank made, once all have made theirs, for reading only.
    pub(super) fn shift(
        &self,
        permit: &Permit,
        root: &Root,
        targets: &mut Targets,
        means: &Means<'_>,
    ) -> Result<(), DataSetError> {
        let Some(peers) = self.peers else { return Ok(()) };
        let shifted = |job: &&JobPlan| job.reads_another_rank() && !job.is_common();
        if !self.jobs.iter().any(|job| shifted(&job)) {
            return Ok(());
        }
        peers.all(&self.words("made"), true).map_err(failed)?;
        let permit = Permit { make_missing: false, make_named: false, ..permit.clone() };
        for job in self.jobs.iter().filter(shifted) {
            let whose = job.layout.as_ref().and_then(|layout| layout.reads_rank).unwrap_or(0);
            for (target, mut wanted) in job.targets.iter().zip(wants(job)) {
                wanted.laid_out = false;
                let verdict = patiently(&target.path, means, || {
                    let checked = check_with(&mut Lists::default(), &wanted, &permit, root);
                    checked.map_err(|_| not_there(target))
                });
                let verdict = verdict.map_err(|why| {
                    failed(format!(
                        "{}: this rank does not see what rank {whose} made: {why}; give all ranks \
                         one directory, on a file system that they share",
                        target.path
                    ))
                })?;
                let Some(held) = verdict.target else { continue };
                targets.hold(&target.path, &held);
                if let Some(key) = verdict.key {
                    targets.expect(&target.path, key);
                }
            }
        }
        Ok(())
    }
}

/// The error in a file that another rank made.
fn not_there(target: &TargetPlan) -> String {
    match std::fs::metadata(&target.path) {
        Err(error) => error.to_string(),
        Ok(found) if found.len() < target.length_bytes => {
            format!("it has {} bytes, {} are needed", found.len(), target.length_bytes)
        }
        Ok(_) => "it does not hold the data that verification needs".to_owned(),
    }
}

/// Looks again as long as a client of the file system may be late.
fn patiently<T>(
    path: &str,
    means: &Means<'_>,
    look: impl Fn() -> Result<T, String>,
) -> Result<T, String> {
    let began = Instant::now();
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(why) => {
                let late = shared_file::may_be_late(Path::new(path));
                let limit = if late { LATE } else { SOON };
                if began.elapsed() > limit || means.stop.load(Ordering::Relaxed) {
                    return Err(why);
                }
                // It waits; it does not hang.
                means.progress.add(0);
                std::thread::sleep(PAUSE);
            }
        }
    }
}
