//! Fills the page cache, a piece at a time.
//!
//! The kernel is asked to read ahead ([`residency::read_ahead`]), and not to copy: 512 MiB took 32
//! to 97 ms of CPU time this way and 127 to 913 ms with reads of 1 MiB, at 0.9 to 1.4 GiB/s and 0.2
//! to 0.9 GiB/s (two runs of each; virtio disk, ext4, Linux 6.18, two busy CPUs). A few pieces are
//! requested ahead of the one that is waited for.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::rc::Rc;

use gpuio_host::residency;

use super::order::Order;
use crate::failure::Failure;

/// Pieces that are requested and not waited for.
const AHEAD: usize = 4;
/// Pieces between two looks at the memory that is available.
const LOOK: usize = 4;
/// The share of available memory that stays free for programs: an eighth.
const KEPT: u64 = 8;
/// A wait reads a byte at such distances: what the kernel did not read ahead, this has it read.
const TOUCH: u64 = 128 << 10;

/// The work that was done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filled {
    /// Bytes that were in the page cache before; absent where the kernel does not say.
    pub(super) cached: Option<u64>,
    /// Bytes that were read, or were there where that is not known.
    pub(super) read: u64,
    /// Bytes that were left out, and why.
    pub(super) left: Option<(u64, Left)>,
}

/// Why bytes were left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Left {
    /// They do not fit into the memory that is available, in bytes.
    Memory(u64),
    /// Something ended the work.
    Stopped(String),
}

/// A piece that was requested.
struct Sent<'a> {
    path: &'a Path,
    file: Rc<File>,
    at: u64,
    bytes: u64,
}

/// Reads what is missing. `available` gives the bytes of memory that files may fill, those that
/// were filled before included; `stop` says why the work is to end.
pub(super) fn fill(
    order: &Order,
    available: impl Fn() -> Option<u64>,
    stop: impl Fn() -> Option<String>,
) -> Result<Filled, Failure> {
    let mut filled = Filled { cached: Some(0), ..Filled::default() };
    let mut sent = VecDeque::new();
    let (mut placed, mut limit) = (0_u64, None);
    let mut open: Option<(usize, Rc<File>)> = None;
    let mut rest = order.bytes();
    for (nth, (number, range)) in order.pieces.iter().enumerate() {
        let bytes = range.end - range.start;
        if let Some(why) = stop() {
            filled.left = Some((rest, Left::Stopped(why)));
            break;
        }
        if nth % LOOK == 0 {
            limit = available();
        }
        // Pages that are there already are a part of the memory that is available, too.
        if let Some(limit) = limit.filter(|limit| placed + bytes > limit - limit / KEPT) {
            filled.left = Some((rest, Left::Memory(limit)));
            break;
        }
        let path = &order.files[*number];
        let file = match &open {
            Some((last, file)) if last == number => Rc::clone(file),
            _ => {
                let file = File::open(path)
                    .map_err(|error| Failure::Ran(format!("{}: {error}", path.display())))?;
                Rc::clone(&open.insert((*number, Rc::new(file))).1)
            }
        };
        let before = residency::residency(&file, range.start, bytes).cached_bytes;
        filled.cached = filled.cached.zip(before).map(|(all, before)| all + before);
        filled.read += bytes - before.unwrap_or(0);
        if before != Some(bytes) {
            residency::read_ahead(&file, range.start, bytes)
                .map_err(|error| Failure::Ran(error.to_string()))?;
            sent.push_back(Sent { path, file, at: range.start, bytes });
        }
        if sent.len() > AHEAD
            && let Some(first) = sent.pop_front()
        {
            finish(&first)?;
        }
        placed += bytes;
        rest -= bytes;
    }
    sent.iter().try_for_each(finish)?;
    Ok(filled)
}

/// Waits until a piece is in the page cache.
fn finish(sent: &Sent<'_>) -> Result<(), Failure> {
    let failed = |at: u64, error: std::io::Error| {
        Failure::Ran(format!("{}: offset {at}: {error}", sent.path.display()))
    };
    let read = |bytes: &mut [u8], at: u64| {
        sent.file.read_at(bytes, at).map(drop).map_err(|error| failed(at, error))
    };
    let end = sent.at + sent.bytes;
    let mut byte = [0_u8];
    let mut at = sent.at;
    while at < end {
        at = end.min(at + TOUCH);
        read(&mut byte, at - 1)?;
    }
    let found = residency::residency(&sent.file, sent.at, sent.bytes);
    if found.cached_bytes.is_none_or(|cached| cached == found.range_bytes) {
        return Ok(());
    }
    // A file system may read ahead less than it was asked for.
    let mut buffer = vec![0_u8; 128 << 10];
    let mut at = sent.at;
    while at < end {
        read(&mut buffer, at)?;
        at += buffer.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write as _;

    use super::*;
    use crate::verb::prefetch::order::PIECE;

    /// A file of these pieces and a little more that is not in the page cache, as an order.
    fn cold(pieces: u64) -> (tempfile::NamedTempFile, Order) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; usize::try_from(pieces * PIECE).unwrap() + 5000]).unwrap();
        residency::drop_cache(file.as_file()).unwrap();
        let order = Order::of(&[file.path().to_owned()]).unwrap();
        (file, order)
    }

    fn cached(file: &File) -> u64 {
        residency::residency(file, 0, u64::MAX).cached_bytes.unwrap()
    }

    #[test]
    fn what_is_missing_is_read_once() {
        let (file, order) = cold(2);
        let before = cached(file.as_file());
        let filled = fill(&order, || None, || None).unwrap();
        let whole = order.bytes();
        assert_eq!(whole, 2 * PIECE + 5000);
        assert_eq!(cached(file.as_file()), whole);
        assert_eq!(filled, Filled { cached: Some(before), read: whole - before, left: None });
        let again = fill(&order, || None, || None).unwrap();
        assert_eq!(again, Filled { cached: Some(whole), read: 0, left: None });
    }

    #[test]
    fn no_more_than_memory_allows_is_read() {
        let (file, order) = cold(3);
        let before = cached(file.as_file());
        // An eighth of it stays free.
        let memory = 2 * PIECE + PIECE / 2;
        let filled = fill(&order, || Some(memory), || None).unwrap();
        assert_eq!(filled.left, Some((PIECE + 5000, Left::Memory(memory))));
        assert!(before > 0 || cached(file.as_file()) == 2 * PIECE);
        let none = fill(&order, || Some(0), || None).unwrap();
        assert_eq!((none.read, none.left), (0, Some((order.bytes(), Left::Memory(0)))));
    }

    #[test]
    fn it_stops_between_two_pieces() {
        let (_file, order) = cold(2);
        let asked = Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            (asked.get() > 1).then(|| "a signal".to_owned())
        };
        let filled = fill(&order, || None, stop).unwrap();
        assert_eq!(filled.left, Some((PIECE + 5000, Left::Stopped("a signal".to_owned()))));
    }
}
