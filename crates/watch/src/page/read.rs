//! The reader's side. Nothing in a page is trusted: it may be half-written, cut, or made by
//! somebody to harm the reader.

use std::fs::File;
use std::io::{self, Read as _};
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use gpuio_base::units::many;
use gpuio_host::Root;
use gpuio_host::process;
use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};

use crate::page::bucket::{Latencies, SIZES};
use crate::page::layout::{
    Cells, FIRST_GPU, HEADER_BYTES, MAGIC, MAX_WORKER_SLOTS, NO_GPU, NOT_COUNTED, OF_LIBRARY,
    SAVES, SHARED, SLOT_BYTES, Side, TEXT_BYTES, UNUSED, VERSION, header, page_bytes,
};
use crate::page::page_root::{LivePageError, LivePageRoot, is_regular, number};
use crate::page::snapshot::{Counts, Library, PathCounters, Saves, Snapshot};

/// The owner of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A process that runs.
    Runs,
    /// A process that ended without taking its page away: it was killed.
    Gone,
    /// A process of another PID namespace (a container): whether it runs can't be seen from here.
    Elsewhere,
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// Its owner.
    pub uid: u32,
    /// The process, by the file's name.
    pub pid: u32,
    /// Whether that process is there.
    pub owner: Owner,
    /// Whether this call removed it: its process is gone, and it was this user's.
    pub removed: bool,
    /// Its content, or what is wrong with it.
    pub page: Result<Snapshot, String>,
}

/// Pages, and what could not be looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Pages, by owner and number.
    pub found: Vec<Found>,
    /// Directories that were skipped, with the reason, and pages that were left out.
    pub notes: Vec<String>,
    /// How many directories and pages these are.
    pub unread: u64,
}

/// All pages that the caller may see: its own, for root everybody's. Pages of this user whose
/// process is gone are returned and removed.
pub fn list(pages: &LivePageRoot, root: &Root) -> Listing {
    look(pages, root, None)
}

/// The page of one process. There may be several of one number in several containers, or of
/// several users; what was killed is removed as by [`list`].
pub fn find(pages: &LivePageRoot, root: &Root, pid: u32) -> Listing {
    look(pages, root, Some(pid))
}

/// How much of one other user's pages is read: a user can publish any number of large ones, and
/// would stop the reader, which is root's.
struct Budget {
    pages: u32,
    /// Worker slots that are looked at.
    slots: u32,
    /// Those of them that are in use.
    used: u32,
    left_out: u64,
}

impl Budget {
    const OF_ANOTHER: Budget = Budget { pages: 512, slots: 1 << 16, used: 1 << 13, left_out: 0 };
    const OWN: Budget = Budget { pages: u32::MAX, slots: u32::MAX, used: u32::MAX, left_out: 0 };

    /// Whether there is as much left.
    fn take(left: &mut u32, wanted: u32) -> bool {
        let rest = left.checked_sub(wanted);
        *left = rest.unwrap_or(0);
        rest.is_some()
    }

    fn note(&self, uid: u32) -> Option<String> {
        let most = Budget::OF_ANOTHER;
        (self.left_out > 0).then(|| {
            format!(
                "user {uid} has {} more: left out, since of one user at most {} pages and {} slots \
                 in use are read",
                many(self.left_out, "page"),
                most.pages,
                most.used
            )
        })
    }
}

fn look(pages: &LivePageRoot, root: &Root, only: Option<u32>) -> Listing {
    let own = rustix::process::geteuid();
    let mut directories = pages.directories();
    directories.retain(|(uid, _)| own.is_root() || *uid == own.as_raw());
    let mut listing = Listing::default();
    for of_user in directories.chunk_by(|(one, _), (two, _)| one == two) {
        let Some(&(uid, _)) = of_user.first() else { continue };
        let mut budget = if uid == own.as_raw() { Budget::OWN } else { Budget::OF_ANOTHER };
        for (_, path) in of_user.iter().take(MOST_DIRECTORIES) {
            match LivePageRoot::open(path, uid) {
                Ok(None) => {}
                Ok(Some(directory)) => {
                    for pid in directory_names(path, only) {
                        let place = (&directory, path.as_path());
                        listing.found.extend(one(root, place, (uid, pid), &mut budget));
                    }
                }
                Err(error) => {
                    listing.notes.push(error.to_string());
                    listing.unread += 1;
                }
            }
        }
        listing.unread += budget.left_out;
        listing.notes.extend(budget.note(uid));
    }
    listing
}

/// A user has one directory, and another one where that has been taken.
const MOST_DIRECTORIES: usize = 8;

/// Numbers of processes that have a file here. Other names are not ours.
fn directory_names(path: &Path, only: Option<u32>) -> Vec<u32> {
    if let Some(pid) = only {
        return vec![pid];
    }
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let pid = |entry: std::io::Result<std::fs::DirEntry>| number(entry.ok()?.file_name().to_str()?);
    let mut pids: Vec<u32> = entries.filter_map(pid).collect();
    pids.sort_unstable();
    pids
}

fn one(
    root: &Root,
    (directory, path): (&OwnedFd, &Path),
    (uid, pid): (u32, u32),
    budget: &mut Budget,
) -> Option<Found> {
    let name = pid.to_string();
    let path = path.join(&name);
    let there = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let page = match read_page(directory, &name, &path, (uid, budget)) {
        Err(Unread::LeftOut) => {
            budget.left_out += 1;
            return None;
        }
        Err(Unread::Wrong(why)) => Err(why),
        Ok(page) => Ok(page),
    };
    let page = page.and_then(|page| match (page.pid == pid, page.uid == uid) {
        (true, true) => Ok(page),
        _ => Err(format!("names process {} of user {} instead", page.pid, page.uid)),
    });
    let owner = owner(root, pid, page.as_ref().ok());
    let cleans = uid == rustix::process::geteuid().as_raw();
    // Between the two checks no other process can have created another file there: processes clean
    // before they make theirs, and only their owner may write here.
    let removed = cleans && owner == Owner::Gone && remove(directory, &name, &there);
    Some(Found { path, uid, pid, owner, removed, page })
}

/// Removes a file if it is still the same one.
fn remove(directory: &OwnedFd, name: &str, there: &Stat) -> bool {
    let now = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    now.is_ok_and(|now| now.st_ino == there.st_ino && now.st_mtime == there.st_mtime)
        && unlinkat(directory, name, AtFlags::empty()).is_ok()
}

/// Whether the process of a page runs. Where a page has no identity, its number decides; where
/// `/proc` has no answer, the process counts as running.
fn owner(root: &Root, pid: u32, page: Option<&Snapshot>) -> Owner {
    let here = process::namespace(root);
    if page.is_some_and(|page| page.namespace != here || here == 0) {
        return Owner::Elsewhere;
    }
    match (process::find(root, pid), process::own(root)) {
        (_, Ok(None) | Err(_)) | (Err(_), _) => Owner::Elsewhere,
        (Ok(None), _) => Owner::Gone,
        (Ok(Some(now)), _) => match page {
            None => Owner::Runs,
            Some(page) if page.start_ticks == now.start_ticks && page.boot == now.boot => {
                Owner::Runs
            }
            Some(_) => Owner::Gone,
        },
    }
}

/// Why there is no content of a page.
enum Unread {
    /// The budget is spent.
    LeftOut,
    Wrong(String),
}

/// The page in a file, copied piece by piece: a file that is cut meanwhile gives fewer bytes and no
/// signal. Slots that are not used are not copied.
fn read_page(
    directory: &OwnedFd,
    name: &str,
    path: &Path,
    (uid, budget): (u32, &mut Budget),
) -> Result<Snapshot, Unread> {
    if !Budget::take(&mut budget.pages, 1) {
        return Err(Unread::LeftOut);
    }
    let (file, length) = open_page(directory, name, path, uid).map_err(Unread::Wrong)?;
    let unread = |error: io::Error| Unread::Wrong(format!("can't be read: {error}"));
    let mut head = Vec::new();
    (&file).take(HEADER_BYTES as u64).read_to_end(&mut head).map_err(unread)?;
    let count = check_head(&head, length).map_err(Unread::Wrong)?;
    if !Budget::take(&mut budget.slots, count) {
        return Err(Unread::LeftOut);
    }
    let mut sum = Sum::default();
    let mut slot = vec![0; SLOT_BYTES];
    for nth in 0..count {
        let at = page_bytes(nth) as u64;
        let mut state = [0; 8];
        file.read_exact_at(&mut state, at).map_err(unread)?;
        if u64::from_le_bytes(state) == UNUSED {
            continue;
        }
        if !Budget::take(&mut budget.used, 1) {
            return Err(Unread::LeftOut);
        }
        file.read_exact_at(&mut slot, at)
            .and_then(|()| copy_saves(&mut slot, at, |into, at| file.read_exact_at(into, at)))
            .map_err(unread)?;
        sum.take(&slot).map_err(Unread::Wrong)?;
    }
    Ok(sum.snapshot(&head))
}

/// A page's file, and its length.
fn open_page(
    directory: &OwnedFd,
    name: &str,
    path: &Path,
    uid: u32,
) -> Result<(File, u64), String> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let text = |error: LivePageError| error.to_string();
    let file = openat(directory, name, flags, Mode::empty())
        .map_err(|errno| text(LivePageError::call("openat", path, errno)))?;
    let stat =
        fstat(file.as_fd()).map_err(|errno| text(LivePageError::call("fstat", path, errno)))?;
    if !is_regular(stat.st_mode) {
        return Err("is no regular file".to_owned());
    }
    if stat.st_uid != uid || stat.st_mode & 0o022 != 0 {
        return Err(format!("belongs to user {} or others may write it", stat.st_uid));
    }
    Ok((File::from(file), u64::try_from(stat.st_size).unwrap_or(0)))
}

/// The most copies of a slot that changes each time.
const COPIES: usize = 100;

/// Copies a slot of saves, which is `at` there in the page, again by `read` (bytes, and where they
/// are), until it is of one moment: a writer raises `threads` before a change, so that is read
/// after the slot, and `spare` after it, so that is read before. Where no copy is whole, both
/// differ in the last.
fn copy_saves(
    slot: &mut [u8],
    at: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let field = |offset: usize| at + offset as u64;
    let is_saves = text(slot, offset_of!(Cells, path), PATH_BYTES) == SAVES;
    for _ in 0..if is_saves { COPIES } else { 0 } {
        let (mut before, mut after) = ([0; 8], [0; 8]);
        read(&mut after, field(offset_of!(Cells, spare)))?;
        read(slot, at)?;
        read(&mut before, field(offset_of!(Cells, threads)))?;
        slot[offset_of!(Cells, spare)..][..8].copy_from_slice(&after);
        slot[offset_of!(Cells, threads)..][..8].copy_from_slice(&before);
        if before == after {
            break;
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// Reads a page's bytes.
///
/// # Errors
/// The error in them, in words.
pub fn parse(bytes: &[u8]) -> Result<Snapshot, String> {
    let (head, worker_slots) = bytes.split_at_checked(HEADER_BYTES).unwrap_or((bytes, &[]));
    check_head(head, bytes.len() as u64)?;
    let mut sum = Sum::default();
    worker_slots.chunks_exact(SLOT_BYTES).try_for_each(|slot| sum.take(slot))?;
    Ok(sum.snapshot(head))
}

/// The number of worker slots of a page of this length.
fn check_head(head: &[u8], length: u64) -> Result<u32, String> {
    if head.len() < HEADER_BYTES {
        return Err(format!("has {} bytes and is half-written or cut", head.len()));
    }
    if !head.starts_with(&MAGIC) {
        return Err("is no page of gpuio, or half-written".to_owned());
    }
    let version = word(head, header::VERSION);
    if version != VERSION {
        return Err(format!(
            "has layout {version}, of another version of gpuio, and this one reads {VERSION}: use \
             the gpuio of the version that the program runs with"
        ));
    }
    let sizes = (word(head, header::HEADER_BYTES), word(head, header::SLOT_BYTES));
    let count = word(head, header::WORKER_SLOTS);
    let known = sizes.0 as usize == HEADER_BYTES && sizes.1 as usize == SLOT_BYTES;
    if !known || !(1..=MAX_WORKER_SLOTS).contains(&count) || count < SHARED {
        return Err(format!(
            "names {count} worker slots of {} bytes, which is impossible",
            sizes.1
        ));
    }
    if length != page_bytes(count) as u64 {
        return Err(format!("has {length} bytes, not those of {count} worker slots: it is cut"));
    }
    Ok(count)
}

/// The most GPUs, paths and engines of one page together. A program has some ten; each has the
/// sums of all its latencies.
const MOST_PATHS: usize = 256;

/// The slots of a page that were read until now.
#[derive(Default)]
struct Sum {
    paths: Vec<PathCounters>,
    library: Option<Library>,
    saves: Option<Saves>,
}

impl Sum {
    fn take(&mut self, slot: &[u8]) -> Result<(), String> {
        let Some(found) = counters(slot)? else { return Ok(()) };
        if found.path == OF_LIBRARY {
            self.library.get_or_insert_default().take(&found);
        } else if found.path == SAVES {
            self.saves = saves(slot, &found).or(self.saves.take());
        } else if let Some(known) = self.paths.iter_mut().find(|known| known.same(&found)) {
            known.merge(&found);
        } else if self.paths.len() < MOST_PATHS {
            self.paths.push(found);
        } else {
            return Err(format!("has more than {MOST_PATHS} paths of GPUs, as no program has"));
        }
        Ok(())
    }

    fn snapshot(self, head: &[u8]) -> Snapshot {
        Snapshot {
            pid: word(head, header::PID),
            uid: word(head, header::UID),
            start_ticks: long(head, header::START_TICKS),
            namespace: long(head, header::NAMESPACE),
            boot: text(head, header::BOOT, header::BOOT_BYTES),
            program: text(head, header::PROGRAM, header::PROGRAM_BYTES),
            release: text(head, header::RELEASE, header::RELEASE_BYTES),
            began_ns: long(head, header::BEGAN_REAL_NS),
            paths: self.paths,
            library: self.library,
            saves: self.saves,
        }
    }
}

/// The saves in a slot; `None` while it is being changed.
fn saves(slot: &[u8], found: &PathCounters) -> Option<Saves> {
    let text_of = |side: usize| {
        let at = offset_of!(Cells, sides) + side * size_of::<Side>();
        text(slot, at + offset_of!(Side, latencies), TEXT_BYTES)
    };
    let is_whole = found.threads == found.again;
    is_whole.then(|| Saves::of(found, text_of(0), text_of(1)))
}

/// Bytes of a slot's path.
const PATH_BYTES: usize = 24;

/// A slot's key and counts; `None` when it was not used.
fn counters(slot: &[u8]) -> Result<Option<PathCounters>, String> {
    let field = |index: usize| long(slot, index * 8);
    let gpu = match field(0) {
        UNUSED => return Ok(None),
        NO_GPU => None,
        state => {
            let index = u32::try_from(state - FIRST_GPU);
            Some(index.map_err(|_| format!("names GPU {}, which can't be", state - FIRST_GPU))?)
        }
    };
    // Fields in the order of `layout::Cells`.
    let side = |at: usize| Counts {
        bytes: field(at),
        failed: field(at + 1),
        latency_ns: field(at + 2),
        unaligned: field(at + 3),
        sizes: std::array::from_fn(|class| field(at + 4 + class)),
        latencies: (0..Latencies::COUNT).map(|bucket| field(at + 4 + SIZES + bucket)).collect(),
    };
    Ok(Some(PathCounters {
        gpu,
        path: text(slot, offset_of!(Cells, path), PATH_BYTES),
        engine: text(slot, 32, 16),
        pci: text(slot, 48, 16),
        files: field(8),
        registered: Some(field(9)).filter(|count| *count != NOT_COUNTED),
        slots: field(10),
        in_flight: field(11),
        first_ns: field(12),
        last_ns: field(13),
        threads: field(14),
        again: field(15),
        read: side(16),
        write: side(16 + 4 + SIZES + Latencies::COUNT),
    }))
}

/// Four bytes; 0 beyond the end.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_le_bytes(*four))
}

/// Eight bytes; 0 beyond the end.
fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |all| u64::from_le_bytes(*all))
}

/// Text up to its first zero. A byte that a terminal could take for a command becomes a question
/// mark.
fn text(bytes: &[u8], at: usize, most: usize) -> String {
    let field = bytes.get(at..at + most).unwrap_or_default();
    let field = field.split(|byte| *byte == 0).next().unwrap_or_default();
    let plain = |&byte: &u8| if (b' '..=b'~').contains(&byte) { char::from(byte) } else { '?' };
    field.iter().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with a slot of saves, whose every figure is the same number.
    struct Writer {
        page: Vec<u8>,
        step: usize,
        /// Steps that it still takes.
        left: usize,
    }

    impl Writer {
        fn new(left: usize) -> Writer {
            let mut page = vec![0; page_bytes(SHARED)];
            page[..8].copy_from_slice(&MAGIC);
            let sizes = [HEADER_BYTES, SLOT_BYTES].map(|bytes| u32::try_from(bytes).unwrap());
            let words = [VERSION, sizes[0], sizes[1], SHARED];
            for (at, word) in (8..).step_by(4).zip(words) {
                page[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            page[HEADER_BYTES] = 1;
            page[HEADER_BYTES + offset_of!(Cells, path)..][..SAVES.len()]
                .copy_from_slice(SAVES.as_bytes());
            Writer { page, step: 0, left }
        }

        /// The next store of a save, in the order of `Page.show` in `_checkpoint_drain.py`.
        fn store(&mut self) {
            let side = |nth: usize| offset_of!(Cells, sides) + nth * size_of::<Side>();
            let text = side(0) + offset_of!(Side, latencies);
            let fields = [
                offset_of!(Cells, threads),
                side(0),
                text,
                side(1),
                side(0) + offset_of!(Side, sizes),
                offset_of!(Cells, spare),
            ];
            let number = (self.step / fields.len()) as u64 % 10 + u64::from(b'0');
            let field = HEADER_BYTES + fields[self.step % fields.len()];
            self.page[field..field + 8].copy_from_slice(&number.to_le_bytes());
            self.step += 1;
        }

        fn read(&mut self, into: &mut [u8], at: u64) -> io::Result<()> {
            let from = usize::try_from(at).unwrap();
            let middle = into.len() / 2;
            for part in [0..middle, middle..into.len()] {
                into[part.clone()].copy_from_slice(&self.page[from..][part]);
                for _ in 0..4.min(self.left) {
                    self.left -= 1;
                    self.store();
                }
            }
            Ok(())
        }
    }

    /// The writer goes on in the middle of each copy, and rests after some saves.
    #[test]
    fn saves_are_of_one_moment() {
        for saves in 0..20 {
            let mut writer = Writer::new(saves * 6);
            (0..6).for_each(|_| writer.store());
            let mut page = writer.page.clone();
            let slot = &mut page[HEADER_BYTES..][..SLOT_BYTES];
            copy_saves(slot, HEADER_BYTES as u64, |into, at| writer.read(into, at)).unwrap();
            let saves = parse(&page).unwrap().saves.expect("whole, once the writer rests");
            let number = saves.all_staged;
            let text = saves.directory.bytes().map(u64::from).collect::<Vec<_>>();
            assert_eq!((saves.all_written, saves.bytes, text), (number, number, vec![number]));
        }
    }

    #[test]
    fn saves_that_never_rest_are_none() {
        let mut writer = Writer::new(usize::MAX);
        let mut page = writer.page.clone();
        let mut reads = 0;
        let slot = &mut page[HEADER_BYTES..][..SLOT_BYTES];
        copy_saves(slot, HEADER_BYTES as u64, |into, at| {
            reads += 1;
            writer.read(into, at)
        })
        .unwrap();
        assert_eq!((parse(&page).unwrap().saves, reads), (None, 3 * COPIES));
    }
}
