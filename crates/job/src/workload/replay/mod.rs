//! A recorded program's calls as a script: who repeats which call, and what each waits for.
//!
//! [`Script::of`] takes a trace and gives lanes of steps over files. A lane is a thread of the
//! replay: it starts its steps in order. Calls of a recorded thread are one lane, with the entries
//! of its batches, which start together; so are calls of a CUDA stream, which run one after
//! another. Threads, or streams, that did not live at the same time share a lane.
//!
//! A step waits so that the order of the program is kept (`ReplayOrder::Observed`): every call that
//! had ended when the call was made has ended before its step starts. In the list of calls sorted
//! by their ends these are the first so many ([`Step::after`]), and each step has a place in that
//! order ([`Step::place`]). With `ReplayOrder::Threads` that holds of the calls of each lane alone.
//! Every step waits only for calls that began before it did, so that some step can always go on.
//!
//! Data flows from `gpuio_base::trace` through here to the plan (files, threads, sizes) and to the
//! workers (steps). It reads no clock, does no I/O and never waits. Pure.

mod files;
mod lanes;
#[cfg(test)]
mod tests;

use gpuio_base::catalog::Op;
use gpuio_base::stat::{Histogram, Percentile};
use gpuio_base::trace::{Call, End, Format, Trace};
use gpuio_base::units::many;
use gpuio_record::{RecordedCalls, RecordedLatency, ReplayOrder};

pub use files::ReplayFile;

/// The steps of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The files that steps use, by the numbers that steps have.
    pub files: Vec<ReplayFile>,
    /// The lanes; none is empty.
    pub lanes: Vec<Lane>,
    /// Calls in each order of ends: that of all lanes, or of each lane by itself.
    pub orders: Vec<u64>,
    /// Steps of all lanes.
    pub calls: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Steps that read.
    pub reads: u64,
    /// Calls of the trace that moved nothing, because they failed or lay behind the end of their
    /// file: they are left out.
    pub left_out: u64,
    /// Bytes of the longest step.
    pub longest: u64,
    /// The largest power of two that divides every offset and length; at most 2^32.
    pub alignment: u64,
    /// From the first call's beginning to the last end, nanoseconds; 0 where the trace has no
    /// durations.
    pub recorded_ns: u64,
    /// The recorded calls; absent where the trace has no durations.
    pub recorded_calls: Option<RecordedCalls>,
}

/// The steps of one thread of the replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// In the order in which they start.
    pub steps: Vec<Step>,
    /// The most of them that were under way at once.
    pub concurrent: u32,
    /// Which order of ends its steps belong to: an index of [`Script::orders`].
    pub order: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Read or write.
    pub op: Op,
    pub file: u32,
    /// First byte of the file.
    pub offset: u64,
    /// Bytes, at least 1.
    pub bytes: u64,
    /// So many of the earliest ends must be over before it starts.
    pub after: u64,
    /// Its own place in the order of ends, from 0.
    pub place: u64,
    pub pause: Pause,
}

/// The pause before a call, which is kept where the recorded pauses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    pub since: Since,
    /// How long it is, nanoseconds.
    pub ns: u64,
}

/// The event before a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    Start,
    /// The start of the lane's step before.
    Begin,
    /// The last end of a step of the lane: the pause is think time.
    End,
}

/// A trace that can't be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It has no call that moved bytes.
    #[error("the trace has no call that moved bytes{0}: there is nothing to replay")]
    Empty(String),
    /// Offsets and lengths together are past what a run can hold.
    #[error("the files of the trace are longer together than the largest file system")]
    TooLarge,
}

impl Script {
    /// The script of a trace.
    ///
    /// # Errors
    /// Nothing to repeat, or sizes past any file system.
    pub fn of(trace: &Trace, order: ReplayOrder) -> Result<Script, ScriptError> {
        let (mut calls, left_out) = files::moved(trace);
        if calls.is_empty() {
            let why = match left_out {
                0 => String::new(),
                many => format!(", and {many} that moved none"),
            };
            return Err(ScriptError::Empty(why));
        }
        let files = files::used(trace, &mut calls);
        let all = files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.bytes));
        let all = all.filter(|all| *all <= i64::MAX as u64);
        let moved = calls.iter().try_fold(0_u64, |sum, call| sum.checked_add(call.bytes));
        let (Some(_), Some(_)) = (all, moved) else { return Err(ScriptError::TooLarge) };
        let bytes = |op: Op| calls.iter().filter(|call| call.op == op).map(|call| call.bytes).sum();
        let edges = calls.iter().flat_map(|call| [call.offset, call.bytes]);
        let zeros = edges.filter(|edge| *edge > 0).map(u64::trailing_zeros).min().unwrap_or(0);
        let begin = calls.iter().map(|call| call.begin_ns).min().unwrap_or(0);
        let end = calls.iter().map(|call| call.end_ns()).max().unwrap_or(0);
        let has_ends = matches!(trace.format, Format::Gpuio(_));
        let (lanes, orders) = lanes::of(&calls, order, has_ends);
        Ok(Script {
            lanes,
            orders,
            calls: calls.len() as u64,
            read_bytes: bytes(Op::Read),
            written_bytes: bytes(Op::Write),
            reads: calls.iter().filter(|call| call.op == Op::Read).count() as u64,
            left_out,
            longest: calls.iter().map(|call| call.bytes).max().unwrap_or(0),
            alignment: 1 << zeros.min(32),
            recorded_ns: if has_ends { end.saturating_sub(begin) } else { 0 },
            recorded_calls: has_ends.then(|| recorded(&calls)),
            files,
        })
    }

    /// The most steps of one lane that were under way at once.
    pub fn concurrent(&self) -> u32 {
        self.lanes.iter().map(|lane| lane.concurrent).max().unwrap_or(1)
    }

    pub fn hole_bytes(&self) -> u64 {
        self.files.iter().flat_map(|file| &file.holes).map(|hole| hole.end - hole.start).sum()
    }

    /// Whether every step reads what follows the step before it in its lane and file.
    pub fn is_sequential(&self) -> bool {
        self.lanes.iter().all(|lane| {
            lane.steps.windows(2).all(|two| match two {
                [a, b] => a.file != b.file || a.offset + a.bytes == b.offset,
                _ => true,
            })
        })
    }
}

/// The times of calls, and where their bytes were.
fn recorded(calls: &[Call]) -> RecordedCalls {
    let mut spans: Vec<(u64, u64)> =
        calls.iter().map(|call| (call.begin_ns, call.end_ns())).collect();
    spans.sort_unstable();
    let (mut in_calls_ns, mut latest) = (0, 0);
    for (begin, end) in spans {
        in_calls_ns += end.saturating_sub(begin.max(latest));
        latest = latest.max(end);
    }
    let latency = |op: Op| {
        let mut all = Histogram::default();
        let of_op = calls.iter().filter(|call| call.op == op);
        of_op.for_each(|call| all.record(call.duration_ns));
        let found = all.summary()?;
        let p50_ns = found.percentile(Percentile::MEDIAN)?;
        Some(RecordedLatency { p50_ns, p99_ns: found.percentile(Percentile::TAIL) })
    };
    let on_gpus = calls.iter().filter(|call| call.gpu.is_some());
    RecordedCalls {
        in_calls_ns,
        read: latency(Op::Read),
        write: latency(Op::Write),
        gpu_bytes: on_gpus.map(|call| call.bytes).sum(),
    }
}

/// The missing parts of a trace, in words; nothing where it is whole.
pub fn missing(trace: &Trace) -> Option<String> {
    let end = match trace.end {
        End::Whole => None,
        End::Open => Some(
            "the trace has no end marker: the program was killed or is still running, so the last \
             calls may be missing"
                .to_owned(),
        ),
        End::Cut(byte) => Some(format!(
            "it is cut at byte {byte}: the disk was full or the program was killed, and later \
             calls are missing"
        )),
        End::Damaged(byte, why) => {
            Some(format!("it is damaged at byte {byte} ({why}): later calls are missing"))
        }
    };
    let lost = (trace.lost > 0).then(|| {
        let calls = many(trace.lost, "call was|calls were");
        format!("{calls} not recorded, for reasons given as the program ended")
    });
    let senseless = (trace.senseless > 0).then(|| {
        let calls = many(
            trace.senseless,
            "call of no known file or time is|\
            calls of no known file or time are",
        );
        format!("{calls} left out")
    });
    let mut both: Vec<String> = end.into_iter().chain(lost).chain(senseless).collect();
    let other = trace.other;
    if other.syncs + other.trims > 0 {
        both.push(format!(
            "{} sync and {} trim actions are not replayed",
            other.syncs, other.trims
        ));
    }
    (!both.is_empty()).then(|| both.join("; "))
}
