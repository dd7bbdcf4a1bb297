//! Files that several processes make and use together, each with a part.
//!
//! The first process checks a file, creates it where it is absent, gives it its length and lists
//! it as in use by a random word ([`begin`]). The others are sent that word; each of them finds the
//! file under its own name for it and sees the word in the list beside it ([`follow`]). That proves
//! that both mean the same file, also where hosts number devices and inodes differently or keep
//! other times. Then the first looks once more that the name still stands for the file that it
//! checked ([`is_still_named`]), all fill their share ([`fill`]), and the first lists what the file
//! holds.
//!
//! It must not hold messages between processes.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gpuio_base::pattern::{Salt, other_salt};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::directory::{directory_of, existing};
use super::error::MakeError;
use super::fill::{BLOCK, Filling};
use super::held::{Budget, Held};
use super::look;
use super::make::{self, Contents, Made, Task};
use super::manifest::{self, Lists, Take};
use super::ownership::Wanted;
use super::ranges::without;
use super::{Progress, clean, space};
use gpuio_record::GuardNote;

/// Bytes that must be written before the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    pub bytes: Range<u64>,
    /// Whether they get `other_salt`'s contents and not the pattern.
    pub other: bool,
}

/// A word that no other process can know before it is written down.
pub fn word() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

/// Creates the files of these tasks that are absent, gives all of them their length, and lists them
/// and `written`, which are there already, as in use by the run of this word.
///
/// # Errors
/// [`MakeError`]. Files that this call created are removed then.
pub fn begin(
    tasks: &[Task],
    written: &[Arc<Held>],
    run: &str,
    budget: &Budget,
) -> Result<Vec<Made>, MakeError> {
    space::check(tasks)?;
    let mut made = Vec::with_capacity(tasks.len());
    let result = begin_all(tasks, written, run, budget, &mut made);
    if result.is_err() {
        remove(&made);
    }
    result.map(|()| made)
}

fn begin_all(
    tasks: &[Task],
    written: &[Arc<Held>],
    run: &str,
    budget: &Budget,
    made: &mut Vec<Made>,
) -> Result<(), MakeError> {
    for task in tasks {
        let created = task.guard == GuardNote::Make;
        let target = if created { make::create(task, budget)? } else { make::checked(task)? };
        let (path, identity) = (target.path().to_owned(), target.identity());
        made.push(Made { path, identity, target, created });
    }
    let how = |task: &Task| match task.guard {
        GuardNote::Make => Take::New(task.holds()),
        _ => Take::Again,
    };
    let of_tasks = tasks.iter().zip(&*made).map(|(task, made)| (&*made.target, how(task)));
    let others = written.iter().map(|held| (&**held, Take::Again));
    manifest::take(&of_tasks.chain(others).collect::<Vec<_>>(), Some(run))?;
    for (task, made) in tasks.iter().zip(&*made) {
        give_length(task, &made.target)?;
    }
    Ok(())
}

/// Removes the files that were created, where the others can't take part.
pub fn remove(made: &[Made]) {
    // A file that can't be removed is named by the next run's check.
    let _ = clean::clean(made, &[]);
}

fn give_length(task: &Task, target: &Held) -> Result<(), MakeError> {
    if task.contents == Contents::Nothing {
        return Ok(());
    }
    let opened = target.file(OFlags::RDWR);
    let file = opened.map_err(|error| MakeError::reopen(&task.path, error))?;
    let kept = task.kept.min(task.length);
    let fail = |call, source| MakeError::call(call, &task.path, None, source, None);
    if task.anew && kept == 0 {
        file.set_len(0).map_err(|source| fail("ftruncate", source))?;
    }
    make::allocate(task, &file, &(kept..task.length))?;
    file.sync_all().map_err(|source| fail("fsync", source))
}

/// The ranges to write into the file of a task.
pub fn fills(task: &Task) -> Vec<Fill> {
    if task.contents == Contents::Nothing {
        return Vec::new();
    }
    let all = task.kept.min(task.length)..task.length;
    let pattern = without(&all, &task.other).into_iter();
    let pattern = pattern.map(|bytes| Fill { bytes, other: false });
    let other = task.other.iter().cloned().map(|bytes| Fill { bytes, other: true });
    pattern.chain(other).collect()
}

/// The file that a process fills a part of.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The ranges that all must write.
    pub fills: &'a [Fill],
    pub salt: Salt,
    /// The file's number in the pattern.
    pub file_number: u64,
    /// This process among those that fill it, and how many they are.
    pub share: (u32, u32),
}

/// Writes this process's share; bytes that were written. All of it is on storage (fsync(2)) when
/// this returns, and nothing of it is left in the page cache as far as the kernel takes advice.
///
/// # Errors
/// [`MakeError`].
pub fn fill(
    held: &Held,
    part: Part<'_>,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<u64, MakeError> {
    let path = held.path();
    let pieces: Vec<Fill> = part.fills.iter().filter_map(|one| share(one, part.share)).collect();
    if pieces.is_empty() {
        return Ok(0);
    }
    let file = held.file(OFlags::RDWR).map_err(|error| MakeError::reopen(path, error))?;
    let mut bytes = 0;
    for Fill { bytes: piece, other } in pieces {
        let salt = if other { other_salt(part.salt) } else { part.salt };
        let key = gpuio_base::pattern::file_key(salt, part.file_number);
        let Range { start, end } = piece;
        Filling { path, file: &file, key, start, end, progress, stop }.run()?;
        bytes += end - start;
    }
    let fail = |source| MakeError::call("fsync", path, None, source, None);
    file.sync_all().map_err(fail)?;
    let _ = gpuio_host::residency::drop_cache(&file);
    Ok(bytes)
}

/// The part of some bytes that one of several processes writes: contiguous, cut where direct I/O
/// can be.
fn share(fill: &Fill, (nth, of): (u32, u32)) -> Option<Fill> {
    const LEAST: u64 = 4096;
    let Range { start, end } = fill.bytes;
    let of = of.max(1);
    let each = (end - start) / u64::from(of);
    let grid = if each >= BLOCK { BLOCK } else { LEAST };
    let cut = |nth: u32| match nth {
        0 => start,
        nth if nth >= of => end,
        // Widened: a length times a number of processes passes 64 bits.
        nth => {
            let far = u128::from(end - start) * u128::from(nth) / u128::from(of);
            let at = start + u64::try_from(far).unwrap_or(end - start);
            (at / grid * grid).clamp(start, end)
        }
    };
    let bytes = cut(nth)..cut(nth + 1);
    (!bytes.is_empty()).then_some(Fill { bytes, other: fill.other })
}

/// The file that the first process listed, as this one finds it; why it is not there. `run` is the
/// word of [`begin`]; without it the file is only read, and its name and length decide.
///
/// # Errors
/// The fault of the file, in words.
pub fn follow(wanted: &Wanted, run: Option<&str>, least: u64) -> Result<Held, String> {
    let (opened, dir_entry) = look::open(&mut Lists::default(), wanted);
    let held = Held::new(opened.map_err(|error| error.to_string())?, dir_entry);
    let found = held.stamp();
    if run.is_some() && !found.kind.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if let Some(run) = run {
        let dir_entry = held.dir_entry().ok_or("its directory can't be opened")?;
        let listed = manifest::is_in_use_by(run, dir_entry, &found);
        if !listed.map_err(|error| error.to_string())? {
            return Err(
                "it is another file: the list of gpuio's files beside it is not the one that rank \
                 0 has just written"
                    .to_owned(),
            );
        }
    }
    if found.kind.is_file() && found.size < least {
        return Err(format!("it has {} bytes, {least} are needed", found.size));
    }
    Ok(held)
}

/// Whether the name of a file that was listed still stands for it.
pub fn is_still_named(held: &Held) -> bool {
    let Ok(found) = held.look() else { return false };
    let named = held.dir_entry().map(|dir_entry| dir_entry.stamp());
    named.is_some_and(|named| named.is_ok_and(|named| named.is_same_file(&found)))
}

/// Whether the file system of a path is NFS, whose clients may see a new name a minute late
/// (nfs(5), `acdirmax`).
pub fn may_be_late(path: &Path) -> bool {
    const NFS_SUPER_MAGIC: i64 = 0x6969;
    let directory = existing(directory_of(path));
    rustix::fs::statfs(&directory).is_ok_and(|found| found.f_type == NFS_SUPER_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_all_bytes_once() {
        for (bytes, of) in [(0..1 << 20, 4), (8192..100_003, 7), (5..4000, 3), (0..1 << 40, 252)] {
            let fill = Fill { bytes: bytes.clone(), other: true };
            let shares: Vec<Range<u64>> =
                (0..of).filter_map(|nth| share(&fill, (nth, of))).map(|one| one.bytes).collect();
            assert_eq!(shares[0].start, bytes.start);
            assert_eq!(shares[shares.len() - 1].end, bytes.end);
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start), "{shares:?}");
            assert!(shares.windows(2).all(|pair| pair[0].end % 4096 == 0), "{shares:?}");
        }
        let even = Fill { bytes: 0..1 << 20, other: false };
        for nth in 0..4 {
            let quarter = u64::from(nth) << 18;
            let bytes = share(&even, (nth, 4)).map(|one| one.bytes);
            assert_eq!(bytes, Some(quarter..quarter + (1 << 18)));
        }
    }
}
