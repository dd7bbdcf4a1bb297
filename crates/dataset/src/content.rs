//! Whether bytes are ours, by what they are.
//!
//! Whatever gpuio writes is words of its generator: consecutive ones within each block, by any key
//! and from any offset on, since a timed write carries data that was made for another block, and a
//! random fill a key that is not recorded. The generator's mixing is a bijection, so a word tells
//! its position in the sequence, and two neighbours of another owner's are consecutive once in
//! 2^64. Ranges that were never written (holes, and zeros where the file was not yet full) have no
//! owner.
//!
//! Every byte is looked at, however long the file: one that a user changed would be lost otherwise.
//! That takes as long as reading it, so it is reported ([`Looks`]), ends at the first byte that is
//! not ours, and is not done again for a file that is as it was.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use gpuio_base::pattern::{GOLDEN, Key, check, unmix, word};
use gpuio_host::residency;
use gpuio_host::statx::Stamp;
use gpuio_host::target::ReopenError;
use rustix::fs::{OFlags, SeekFrom, seek};
use rustix::io::Errno;

use super::held::Held;

/// Covers the alignment that O_DIRECT asks for anywhere.
const ALIGNMENT: usize = 4096;

/// The result of a look at a file's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proof {
    /// The first byte of what is not ours; `None` where all that was looked at is.
    pub(super) foreign_at: Option<u64>,
    /// Whether anything is there, and none of it is ours.
    pub(super) blank: bool,
    /// Whether it holds the pattern of the key from end to end.
    pub(super) whole: bool,
}

impl Proof {
    /// Whether nothing in the file is another owner's.
    pub(super) fn is_ours(&self) -> bool {
        self.foreign_at.is_none() && !self.blank
    }
}

/// Files from here on take seconds to be looked at, which is reported.
const REPORTED_FROM: u64 = 256 << 20;
/// Clocks of inodes tick some hundred times a second: a file that changed this short a time ago may
/// change again and look the same.
const SETTLED: Duration = Duration::from_secs(1);

/// The common state of many looks at files: whom to notify of progress, whether to stop, and the
/// findings.
pub struct Looks<'a> {
    report: &'a dyn Fn(u64, u64),
    stop: &'a AtomicBool,
    now: &'a dyn Fn() -> SystemTime,
    known: RefCell<Vec<(Stamp, Key, bool, Proof)>>,
}

impl<'a> Looks<'a> {
    /// `tell` is called with bytes that were looked at of a long file, and its size; `stop` ends a
    /// look, and the file counts as another owner's then; `now` is the time of day.
    pub fn new(
        report: &'a dyn Fn(u64, u64),
        stop: &'a AtomicBool,
        now: &'a dyn Fn() -> SystemTime,
    ) -> Looks<'a> {
        Looks { report, stop, now, known: RefCell::default() }
    }

    /// Whether a change from now on would show in the times of this file.
    fn is_stable(&self, found: &Stamp) -> bool {
        let then = u64::try_from(found.ctime_ns).map_or(Duration::ZERO, Duration::from_nanos);
        let ago = (self.now)().duration_since(SystemTime::UNIX_EPOCH + then);
        ago.is_ok_and(|ago| ago >= SETTLED)
    }

    fn went_on(&self, done: u64, of: u64) -> io::Result<()> {
        if of >= REPORTED_FROM {
            (self.report)(done, of);
        }
        if self.stop.load(Ordering::Relaxed) { Err(Errno::INTR.into()) } else { Ok(()) }
    }

    fn known(&self, found: &Stamp, key: Key, zeros: bool) -> Option<Proof> {
        let known = self.known.borrow();
        let same = |(stamp, of, may, _): &&(Stamp, Key, bool, Proof)| {
            stamp.is_unchanged(found) && (*of, *may) == (key, zeros)
        };
        known.iter().find(same).map(|(.., proof)| *proof)
    }

    fn note(&self, found: Stamp, key: Key, zeros: bool, proof: Proof) {
        self.known.borrow_mut().push((found, key, zeros, proof));
    }
}

impl std::fmt::Debug for Looks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Looks").field("known", &self.known).finish_non_exhaustive()
    }
}

/// How much of a range of a file is looked at: so many windows at most, of so many bytes, spread
/// evenly from its first byte to its last. Ranges of up to their product are looked at whole.
#[derive(Debug, Clone, Copy)]
struct Look {
    windows: u64,
    bytes: u64,
}

/// For the question whether a file may be overwritten.
const WHOLE: Look = Look { windows: u64::MAX, bytes: 1 << 20 };
/// For the question which pattern a file holds, before all of it is verified anyway.
const GLANCE: Look = Look { windows: 64, bytes: 64 << 10 };

impl Look {
    fn windows(self, of: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        // Words must not be cut, nor pages, which O_DIRECT reads whole.
        let from = of.start / ALIGNMENT as u64 * ALIGNMENT as u64;
        let all = of.end.saturating_sub(from).div_ceil(self.bytes);
        let count = all.min(self.windows);
        (0..count).map(move |nth| {
            // Widened: windows of a large file times their count pass 64 bits.
            let spread = u128::from(nth) * u128::from(all - 1) / u128::from((count - 1).max(1));
            let at = if count == all { nth } else { u64::try_from(spread).unwrap_or(all - 1) };
            let begin = from + at * self.bytes;
            begin..of.end.min(begin + self.bytes)
        })
    }
}

/// Reads a file and says whether its bytes are ours. `key` is that of the pattern it should hold;
/// `zeros` says whether words of zeros may be what was never written.
pub(super) fn prove(
    held: &Held,
    key: Key,
    zeros: bool,
    looks: Option<&Looks<'_>>,
) -> Result<Proof, ReopenError> {
    let found = held.look()?;
    if let Some(proof) = looks.and_then(|looks| looks.known(&found, key, zeros)) {
        return Ok(proof);
    }
    let size = found.size;
    let finalized = looks.is_some_and(|looks| looks.is_stable(&found));
    let mut scan = Scan::new(key, zeros);
    let covered = read(held, 0..size, WHOLE, &mut |at, bytes| {
        scan.take(at, bytes, size);
        let goes_on = looks.map_or(Ok(()), |looks| looks.went_on(scan.at, size));
        goes_on.map(|()| scan.foreign_at.is_none())
    })?;
    scan.end(size);
    let blank = covered > 0 && scan.ours == 0 && scan.foreign_at.is_none();
    let whole = scan.foreign_at.is_none() && covered == size && scan.in_place == size;
    let proof = Proof { foreign_at: scan.foreign_at, blank, whole };
    if let Some(looks) = looks.filter(|_| finalized) {
        looks.note(found, key, zeros, proof);
    }
    Ok(proof)
}

/// The key whose pattern more than half of the words of this range are, each at its offset; `None`
/// where there is none. Data that repeats does so as in `known`, which needs no neighbour to be
/// recognised.
pub(super) fn find_key(
    held: &Held,
    known: Key,
    part: Range<u64>,
) -> Result<Option<Key>, ReopenError> {
    let repeats = known.repeats;
    let mut words = 0_u64;
    let mut counts: BTreeMap<Key, u64> = BTreeMap::new();
    let part = part.start..part.end.min(held.look()?.size);
    read(held, part, GLANCE, &mut |at, bytes| {
        let mut last = None;
        for (w, bytes) in (at / 8..).zip(bytes.as_chunks::<8>().0) {
            let found = u64::from_le_bytes(*bytes);
            let source = repeats.source(w);
            let seed = unmix(found).wrapping_sub(source.wrapping_mul(GOLDEN));
            let key = Key { seed, repeats };
            // That others repeat a word says nothing of the key that made it.
            if source != w && key != known {
                continue;
            }
            words += 1;
            if key == known || last == Some(key) {
                *counts.entry(key).or_default() += 1;
            }
            last = Some(key);
        }
        Ok(true)
    })?;
    let best = counts.into_iter().max_by_key(|(_, count)| *count);
    Ok(best.filter(|(_, count)| *count > words / 2).map(|(key, _)| key))
}

/// Takes the bytes from this offset on, and says whether more are wanted.
type Take<'a> = dyn FnMut(u64, &[u8]) -> io::Result<bool> + 'a;

/// Reads the written part of a range of a file in windows, in order, with O_DIRECT where possible,
/// until `take` returns false. Returns the bytes read.
fn read(held: &Held, of: Range<u64>, look: Look, take: &mut Take<'_>) -> Result<u64, ReopenError> {
    let (file, direct) = match held.file(OFlags::RDONLY | OFlags::DIRECT) {
        Ok(file) => (file, true),
        Err(_) => (held.file(OFlags::RDONLY)?, false),
    };
    let mut reader = Reader { held, file, direct, buffered: !direct };
    let room = usize::try_from(look.bytes).unwrap_or(usize::MAX).saturating_add(2 * ALIGNMENT);
    let mut memory = vec![0; room];
    let aligned = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
    let memory = &mut memory[aligned..];
    let mut covered = 0;
    'file: for window in look.windows(of) {
        let mut at = window.start;
        while let Some(data) = data_from(&reader.file, at, window.end) {
            let bytes = reader.fill(memory, &data)?;
            if bytes.is_empty() {
                break;
            }
            covered += bytes.len() as u64;
            if !take(data.start, bytes)? {
                break 'file;
            }
            at = data.end;
        }
    }
    if reader.buffered {
        // Pages that this look read must not make the load's reads faster.
        let _ = residency::drop_cache(&reader.file);
    }
    Ok(covered)
}

struct Reader<'a> {
    held: &'a Held,
    file: File,
    direct: bool,
    buffered: bool,
}

impl Reader<'_> {
    /// Reads this range; less where the file ends before it.
    fn fill<'m>(
        &mut self,
        memory: &'m mut [u8],
        range: &Range<u64>,
    ) -> Result<&'m [u8], ReopenError> {
        let wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut done = 0;
        while done < wanted {
            let end = if self.direct { wanted.next_multiple_of(ALIGNMENT) } else { wanted };
            match self.file.read_at(&mut memory[done..end], range.start + done as u64) {
                Ok(0) => break,
                Ok(actual) => done += actual,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // An alignment that this file wants, or the rest of a short read.
                Err(error) if self.direct && Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                    self.file = self.held.file(OFlags::RDONLY)?;
                    (self.direct, self.buffered) = (false, true);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(&memory[..done.min(wanted)])
    }
}

/// The next bytes from `at` on that were written, up to `end`; a file system without `SEEK_DATA`
/// (lseek(2)) says that all were.
fn data_from(file: &File, at: u64, end: u64) -> Option<Range<u64>> {
    if at >= end {
        return None;
    }
    let begin = match seek(file, SeekFrom::Data(at)) {
        Ok(begin) => begin,
        Err(Errno::NXIO) => return None,
        Err(_) => return Some(at..end),
    };
    let hole = seek(file, SeekFrom::Hole(begin)).unwrap_or(end);
    // Data begin and end with blocks of the file system; words must not be cut all the same.
    let begin = begin / ALIGNMENT as u64 * ALIGNMENT as u64;
    let begin = begin.max(at);
    (begin < end)
        .then(|| begin..hole.next_multiple_of(8).clamp(begin, end))
        .filter(|r| !r.is_empty())
}

/// Goes over words in the order of the file.
struct Scan {
    key: Key,
    zeros: bool,
    /// The byte after the last that was looked at.
    at: u64,
    /// The first word of the chunk that is being looked at, which others may repeat.
    head: Option<u64>,
    last: Option<Last>,
    ours: u64,
    /// Bytes that are the pattern of `key` at its offset.
    in_place: u64,
    foreign_at: Option<u64>,
}

/// The word before.
#[derive(Clone, Copy)]
struct Last {
    /// The number that the generator mixed to make it.
    counter: u64,
    /// Whether a neighbour or its offset proves it.
    proven: bool,
}

impl Scan {
    fn new(key: Key, zeros: bool) -> Scan {
        Scan { key, zeros, at: 0, head: None, last: None, ours: 0, in_place: 0, foreign_at: None }
    }

    fn foreign(&mut self, at: u64) {
        self.foreign_at.get_or_insert(at);
    }

    /// Looks at the bytes from `at` on, a multiple of 8.
    fn take(&mut self, at: u64, bytes: &[u8], size: u64) {
        if at != self.at {
            // A hole lies before.
            self.close(self.at);
            self.head = None;
        }
        if check(bytes, self.key, at).is_none() {
            self.close(at);
            self.in_place += bytes.len() as u64;
            self.ours += bytes.len().div_ceil(8) as u64;
            self.last = None;
            let end = (at + bytes.len() as u64).div_ceil(8);
            let source = self.key.repeats.source(end.saturating_sub(1));
            self.head = Some(word(self.key, source));
        } else {
            let (words, tail) = bytes.as_chunks::<8>();
            for (nth, found) in (0_u64..).zip(words) {
                self.word(at / 8 + nth, u64::from_le_bytes(*found));
            }
            if !tail.is_empty() && at + bytes.len() as u64 == size {
                self.tail(at / 8 + words.len() as u64, tail);
            }
        }
        self.at = at + bytes.len() as u64;
    }

    fn word(&mut self, w: u64, found: u64) {
        if self.key.repeats.source(w) == w {
            if self.key.repeats.begins(w) {
                self.head = Some(found);
            }
        } else if found != 0 && self.head == Some(found) {
            // Whether that word is ours was found where it stands.
            self.close(w * 8);
            self.ours += 1;
            self.in_place += if found == word(self.key, w) { 8 } else { 0 };
            return;
        }
        let counter = unmix(found);
        let follows = self.last.is_some_and(|last| counter == last.counter.wrapping_add(GOLDEN));
        let in_place = found == word(self.key, w);
        if follows || in_place {
            if !follows {
                self.close(w * 8);
            }
            self.ours += 1;
            self.in_place += if in_place { 8 } else { 0 };
            self.last = Some(Last { counter, proven: true });
            return;
        }
        self.close(w * 8);
        self.last =
            if found == 0 && self.zeros { None } else { Some(Last { counter, proven: false }) };
    }

    /// The last bytes of a file, less than a word.
    fn tail(&mut self, w: u64, tail: &[u8]) {
        let begins = |word: u64| word.to_le_bytes().starts_with(tail);
        if begins(word(self.key, w)) {
            self.in_place += tail.len() as u64;
            self.ours += 1;
        } else if !(self.last.is_some_and(|last| begins(word(last.counter, 1)))
            || self.zeros && tail.iter().all(|byte| *byte == 0))
        {
            self.foreign(w * 8);
        }
    }

    /// No neighbour after the last word proves it; it stood before `at`.
    fn close(&mut self, at: u64) {
        if let Some(last) = self.last.take()
            && !last.proven
        {
            self.foreign(at.saturating_sub(8));
        }
    }

    /// The end of the file, or of what is looked at of it.
    fn end(&mut self, size: u64) {
        self.close(if self.at == size { size - size % 8 } else { self.at });
    }
}
