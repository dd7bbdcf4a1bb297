//! The files of a replay: as long as the recorded ones were, and with their holes.

use std::collections::BTreeMap;
use std::ops::Range;

use gpuio_base::catalog::Op;
use gpuio_base::trace::{Call, Trace};

/// The unit that ends of files are rounded up to, where a call reached past one: a direct read of
/// the last bytes needs whole blocks.
const TAIL: u64 = 4096;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayFile {
    pub bytes: u64,
    /// Its holes, in order and apart from each other. None where a step writes to it: what is
    /// written must lie somewhere, and reads of it find it in any order.
    pub holes: Vec<Range<u64>>,
    /// Whether a step writes to it.
    pub is_written: bool,
}

/// The calls that moved bytes, with the bytes that are moved again, and how many moved none.
pub(super) fn moved(trace: &Trace) -> (Vec<Call>, u64) {
    let with_bytes = |call: &Call| {
        let range = call.moved()?;
        let moved = range.end - range.start;
        let most = call.bytes.min(i64::MAX as u64 - range.start);
        let whole = moved.next_multiple_of(TAIL).min(most);
        let reached_end = moved < call.bytes && call.op == Op::Read;
        Some(Call { bytes: if reached_end { whole } else { moved }, ..*call })
    };
    let calls: Vec<Call> = trace.calls.iter().filter_map(with_bytes).collect();
    let left_out = (trace.calls.len() - calls.len()) as u64;
    (calls, left_out)
}

/// The files that calls name, which get the numbers that calls then have.
pub(super) fn used(trace: &Trace, calls: &mut [Call]) -> Vec<ReplayFile> {
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    for call in calls.iter() {
        numbers.entry(call.file).or_default();
    }
    for (new, number) in (0_u32..).zip(numbers.values_mut()) {
        *number = new;
    }
    let old = numbers.keys().filter_map(|old| trace.files.get(*old as usize));
    let mut files: Vec<ReplayFile> = old
        .map(|file| ReplayFile {
            // Only the used part of a device is made.
            bytes: if file.is_device { 0 } else { file.size },
            holes: file.holes.known().to_vec(),
            is_written: false,
        })
        .collect();
    for call in calls {
        call.file = numbers.get(&call.file).copied().unwrap_or_default();
        let Some(file) = files.get_mut(call.file as usize) else { continue };
        file.bytes = file.bytes.max(call.offset.saturating_add(call.bytes));
        file.is_written |= call.op == Op::Write;
    }
    for file in &mut files {
        if file.is_written {
            file.holes.clear();
        }
        let end = file.bytes;
        file.holes.retain_mut(|hole| {
            hole.end = hole.end.min(end);
            hole.start < hole.end
        });
    }
    files
}
