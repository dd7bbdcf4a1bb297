//! Which bytes of a file timed writes have reached: what a read-back may expect where.
//!
//! One map for each file of a group, shared by all threads and jobs that write to it. A bit stands
//! for one alignment of the file, and is set when a write that covers it has completed. Writes
//! carry the pattern of their own offset, so the order of those that overlap does not matter.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gpuio_record::JobPlan;

use gpuio_job::plan::read_back;

/// The state of a part of a file once the clock has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// A write that covers it has completed, and none that covers it failed.
    Written,
    /// No write has completed there, or one of those that did failed: what it holds is not known.
    Unknown,
}

/// The map of one file. Bits are only ever set. They are set with relaxed stores while the clock
/// runs and read by workers behind the gate, whose lock orders the two.
pub(super) struct ReachedMap {
    /// Bytes for each bit, a power of two.
    alignment: u64,
    completed: Box<[AtomicU64]>,
    /// Made when the first write fails.
    failed: OnceLock<Box<[AtomicU64]>>,
}

impl ReachedMap {
    fn new(length: u64, alignment: u64) -> ReachedMap {
        ReachedMap {
            alignment,
            completed: words(length.div_ceil(alignment)),
            failed: OnceLock::new(),
        }
    }

    /// A write of these bytes has completed.
    pub(super) fn completed(&self, offset: u64, length: u64) {
        self.set(&self.completed, offset, length);
    }

    /// A write of these bytes failed; how much of it reached the file is not known.
    pub(super) fn failed(&self, offset: u64, length: u64) {
        let bits = self.completed.len() as u64 * 64;
        self.set(self.failed.get_or_init(|| words(bits)), offset, length);
    }

    fn set(&self, map: &[AtomicU64], offset: u64, length: u64) {
        let mut at = offset / self.alignment;
        // A block that ends between two bits ends at the end of the file.
        let end = offset.saturating_add(length).div_ceil(self.alignment);
        while at < end {
            let upto = end.min((at / 64 + 1) * 64);
            let (first, count) = (at % 64, upto - at);
            let mask = if count == 64 { u64::MAX } else { ((1 << count) - 1) << first };
            if let Some(word) = word(map, at) {
                word.fetch_or(mask, Ordering::Relaxed);
            }
            at = upto;
        }
    }

    /// The state at `offset`, and how far that is so: the end of the run, at most `end`.
    pub(super) fn run(&self, offset: u64, end: u64) -> (Reached, u64) {
        let state = |bit: u64| {
            let has = |map: &[AtomicU64]| {
                word(map, bit)
                    .is_some_and(|word| word.load(Ordering::Relaxed) >> (bit % 64) & 1 == 1)
            };
            match has(&self.completed) && !self.failed.get().is_some_and(|map| has(map)) {
                true => Reached::Written,
                false => Reached::Unknown,
            }
        };
        let mut bit = offset / self.alignment;
        let first = state(bit);
        while bit * self.alignment < end && state(bit) == first {
            bit += 1;
        }
        (first, (bit * self.alignment).clamp(offset, end))
    }
}

fn words(bits: u64) -> Box<[AtomicU64]> {
    (0..bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()
}

fn word(map: &[AtomicU64], bit: u64) -> Option<&AtomicU64> {
    map.get(usize::try_from(bit / 64).ok()?)
}

/// The maps of each job's targets; none for jobs whose writes are not read back.
pub(super) fn of(jobs: &[JobPlan]) -> Vec<Vec<Arc<ReachedMap>>> {
    let real = |path: &str| Path::new(path).canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    let mut files: BTreeMap<PathBuf, (u64, u64)> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.reads_writes_back()) {
        let alignment = read_back::alignment(job);
        for target in &job.targets {
            let file = files.entry(real(&target.path)).or_insert((0, alignment));
            *file = (file.0.max(target.length_bytes), file.1.min(alignment));
        }
    }
    let maps: BTreeMap<PathBuf, Arc<ReachedMap>> = files
        .into_iter()
        .map(|(path, (length, alignment))| (path, Arc::new(ReachedMap::new(length, alignment))))
        .collect();
    let of_job = |job: &JobPlan| {
        let back = job.reads_writes_back();
        let targets = job.targets.iter().filter(|_| back);
        targets.filter_map(|target| maps.get(&real(&target.path)).cloned()).collect()
    };
    jobs.iter().map(of_job).collect()
}

/// Blocks of one kind within spans of files, in order, none longer than `most`.
pub(super) struct Runs<'a> {
    kind: Reached,
    most: u64,
    current: Option<Span<'a>>,
    rest: Box<dyn Iterator<Item = Span<'a>> + 'a>,
}

/// The map of a span's file, the file's number with the worker, and the span.
type Span<'a> = (&'a ReachedMap, u32, Range<u64>);

impl<'a> Runs<'a> {
    /// The runs of these spans, which do not overlap.
    pub(super) fn new(
        kind: Reached,
        most: u64,
        spans: impl Iterator<Item = Span<'a>> + 'a,
    ) -> Runs<'a> {
        Runs { kind, most, current: None, rest: Box::new(spans) }
    }
}

impl Iterator for Runs<'_> {
    type Item = (u32, u64, u32);

    /// File, offset and length of the next block.
    fn next(&mut self) -> Option<(u32, u64, u32)> {
        loop {
            if self.current.as_ref().is_none_or(|(.., span)| span.is_empty()) {
                self.current = Some(self.rest.next()?);
            }
            let (map, file, span) = self.current.as_mut()?;
            if span.is_empty() {
                continue;
            }
            let (kind, end) = map.run(span.start, span.end.min(span.start + self.most));
            let (offset, length) = (span.start, end - span.start);
            span.start = end;
            if kind == self.kind {
                return Some((*file, offset, u32::try_from(length).unwrap_or(u32::MAX)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn all(map: &ReachedMap, kind: Reached, span: Range<u64>, most: u64) -> Vec<(u32, u64, u32)> {
        Runs::new(kind, most, std::iter::once((map, 0, span))).collect()
    }

    #[test]
    fn what_completed_is_known_and_the_rest_is_not() {
        let map = ReachedMap::new(1000 * KIB + 3, 4 * KIB);
        assert_eq!(map.run(0, 1000 * KIB), (Reached::Unknown, 1000 * KIB));
        map.completed(8 * KIB, 4 * KIB);
        map.completed(12 * KIB, 16 * KIB);
        // Across many words, and over a tail that is no whole alignment.
        map.completed(300 * KIB, 700 * KIB + 3);
        assert_eq!(map.run(0, 1000 * KIB), (Reached::Unknown, 8 * KIB));
        assert_eq!(map.run(8 * KIB, 1000 * KIB), (Reached::Written, 28 * KIB));
        assert_eq!(map.run(300 * KIB, 1000 * KIB + 3), (Reached::Written, 1000 * KIB + 3));
        let written = all(&map, Reached::Written, 0..1000 * KIB + 3, 512 * KIB);
        let kib = 1024_u32;
        assert_eq!(
            written,
            [(0, 8 * KIB, 20 * kib), (0, 300 * KIB, 512 * kib), (0, 812 * KIB, 188 * kib + 3),]
        );
        let rest = all(&map, Reached::Unknown, 0..1000 * KIB + 3, 1 << 20);
        assert_eq!(rest, [(0, 0, 8 * kib), (0, 28 * KIB, 272 * kib)]);
    }

    #[test]
    fn where_a_write_failed_nothing_is_known() {
        let map = ReachedMap::new(64 * KIB, 4 * KIB);
        map.completed(0, 64 * KIB);
        map.failed(8 * KIB, 8 * KIB);
        map.completed(8 * KIB, 4 * KIB);
        let rest = all(&map, Reached::Unknown, 0..64 * KIB, 1 << 20);
        assert_eq!(rest, [(0, 8 * KIB, 8192)], "whichever of the two was last");
    }
}
