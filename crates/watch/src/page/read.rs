//! The reader's side. Nothing in a page is trusted: it may be half-written, cut, or made by
//! somebody to harm the reader.

use std::fs::File;
use std::io::Read as _;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

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
    /// Directories that were skipped, with the reason.
    pub notes: Vec<String>,
}

/// All pages that the caller may see: its own, for root everybody's. Pages of this user whose
/// process is gone are returned and removed.
#[must_use]
pub fn list(pages: &LivePageRoot, root: &Root) -> Listing {
    look(pages, root, None)
}

/// The page of one process. There may be several of one number in several containers, or of
/// several users; what was killed is removed as by [`list`].
#[must_use]
pub fn find(pages: &LivePageRoot, root: &Root, pid: u32) -> Listing {
    look(pages, root, Some(pid))
}

fn look(pages: &LivePageRoot, root: &Root, only: Option<u32>) -> Listing {
    let own = rustix::process::geteuid();
    let users = if own.is_root() { pages.users() } else { vec![own.as_raw()] };
    let mut listing = Listing::default();
    for uid in users {
        match pages.open(uid) {
            Ok(None) => {}
            Ok(Some(directory)) => {
                let names = directory_names(&pages.directory(uid), only);
                for pid in names {
                    let cleans = uid == own.as_raw();
                    listing.found.extend(one(pages, root, &directory, (uid, pid), cleans));
                }
            }
            Err(error) => listing.notes.push(error.to_string()),
        }
    }
    listing
}

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
    pages: &LivePageRoot,
    root: &Root,
    directory: &OwnedFd,
    (uid, pid): (u32, u32),
    cleans: bool,
) -> Option<Found> {
    let name = pid.to_string();
    let path = pages.directory(uid).join(&name);
    let there = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let page = bytes(directory, &name, &path, uid).and_then(|bytes| parse(&bytes));
    let page = page.and_then(|page| match (page.pid == pid, page.uid == uid) {
        (true, true) => Ok(page),
        _ => Err(format!("names process {} of user {} instead", page.pid, page.uid)),
    });
    let owner = owner(root, pid, page.as_ref().ok());
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

/// The file's bytes, copied: a file that is cut meanwhile gives fewer bytes and no signal.
fn bytes(directory: &OwnedFd, name: &str, path: &Path, uid: u32) -> Result<Vec<u8>, String> {
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
    let most = page_bytes(MAX_WORKER_SLOTS) as u64;
    let mut bytes = Vec::new();
    File::from(file)
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("can't be read: {error}"))?;
    Ok(bytes)
}

/// Reads a page's bytes.
///
/// # Errors
/// The error in them, in words.
pub fn parse(bytes: &[u8]) -> Result<Snapshot, String> {
    let Some((head, worker_slots)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(format!("has {} bytes and is half-written or cut", bytes.len()));
    };
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
    if bytes.len() != page_bytes(count) {
        return Err(format!(
            "has {} bytes, not those of {count} worker slots: it is cut",
            bytes.len()
        ));
    }
    let mut paths: Vec<PathCounters> = Vec::new();
    let mut library: Option<Library> = None;
    let mut saves: Option<Saves> = None;
    for slot in worker_slots.chunks_exact(SLOT_BYTES) {
        let Some(found) = counters(slot)? else { continue };
        if found.path == OF_LIBRARY {
            library.get_or_insert_default().take(&found);
            continue;
        }
        if found.path == SAVES {
            saves = self::saves(slot, &found).or(saves);
            continue;
        }
        match paths.iter_mut().find(|known| known.same(&found)) {
            Some(known) => known.merge(&found),
            None => paths.push(found),
        }
    }
    Ok(Snapshot {
        pid: word(head, header::PID),
        uid: word(head, header::UID),
        start_ticks: long(head, header::START_TICKS),
        namespace: long(head, header::NAMESPACE),
        boot: text(head, header::BOOT, header::BOOT_BYTES),
        program: text(head, header::PROGRAM, header::PROGRAM_BYTES),
        release: text(head, header::RELEASE, header::RELEASE_BYTES),
        began_ns: long(head, header::BEGAN_REAL_NS),
        paths,
        library,
        saves,
    })
}

/// The saves in a slot; `None` while it is being changed.
fn saves(slot: &[u8], found: &PathCounters) -> Option<Saves> {
    let text_of = |side: usize| {
        let at = offset_of!(Cells, sides) + side * size_of::<Side>();
        text(slot, at + offset_of!(Side, latencies), TEXT_BYTES)
    };
    let is_whole = found.threads == long(slot, offset_of!(Cells, spare));
    is_whole.then(|| Saves::of(found, text_of(0), text_of(1)))
}

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
        path: text(slot, 8, 24),
        engine: text(slot, 32, 16),
        pci: text(slot, 48, 16),
        files: field(8),
        registered: Some(field(9)).filter(|count| *count != NOT_COUNTED),
        slots: field(10),
        in_flight: field(11),
        first_ns: field(12),
        last_ns: field(13),
        threads: field(14),
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
