//! Traces: the I/Os that a program made, as a file.
//!
//! - [`Trace`]: what a trace says, whatever its format.
//! - [`mod@write`]: gpuio's format, as `libcufile.so.0` writes it while a program runs.
//! - [`mod@read`]: gpuio's format and fio's block traces, by their first bytes.
//!
//! docs/replay.md has the format byte by byte. A trace has names, sizes, times and no content of
//! any file. A writer appends whole frames, each with a checksum, so that what was written before
//! the program was killed can be read; so can what lies before a damaged frame.
//!
//! It neither does an I/O nor reads a clock, and does not make a load from a trace
//! (`gpuio_job::workload::replay`). Pure: bytes come in and go out.

mod fio;
pub mod read;
#[cfg(test)]
mod tests;
mod varint;
pub mod write;

use std::ops::Range;

pub use crate::catalog::Op;
pub use read::{TraceError, read};

/// Version of gpuio's format that is written and read.
pub const VERSION: u16 = 2;
/// The first bytes of gpuio's format.
pub const MAGIC: [u8; 8] = *b"GPUIOTRC";
/// Most holes that are recorded of a file.
pub const HOLES_MOST: usize = 1024;
/// Most files: their numbers are indices of a table.
pub const FILES_MOST: u32 = 1 << 24;

/// The calls of a program on its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Where it comes from.
    pub format: Format,
    /// The program, by its short name (comm); absent in anonymous traces and in fio's.
    pub program: Option<String>,
    /// When recording began, nanoseconds since 1970; 0 where unknown.
    pub began_unix_ns: u64,
    /// The files, by the numbers that calls have.
    pub files: Vec<TraceFile>,
    /// The calls in the order in which the trace has them; that of their beginning is
    /// [`Call::begin_ns`].
    pub calls: Vec<Call>,
    /// Calls that were made and could not be recorded.
    pub lost: u64,
    /// Calls of no known file, or of times past any run: they are left out.
    pub senseless: u64,
    pub end: End,
    /// Actions of a fio trace that are no reads and writes of data.
    pub other: OtherActions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// gpuio's, in this version.
    Gpuio(u16),
    /// fio's `write_iolog`, in this version: one sequence of I/Os, without durations.
    Fio(u8),
}

/// How a trace ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The program ended, or the file has no mark of an end (fio's).
    Whole,
    /// Without its mark: the program was killed or still runs. Calls before that are here.
    Open,
    /// In the middle of the frame that begins at this byte, which is left out.
    Cut(u64),
    /// The bytes from this one on are no records, for this reason: they are left out.
    Damaged(u64, &'static str),
}

/// Actions that move no data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OtherActions {
    /// `sync` and `datasync`.
    pub syncs: u64,
    /// `trim`.
    pub trims: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceFile {
    /// Its path when it was registered; absent in anonymous traces.
    pub path: Option<String>,
    /// Whether it is a block device.
    pub is_device: bool,
    /// Its size when it was first registered, in bytes; 0 in fio's traces.
    pub size: u64,
    /// Major and minor number of the device that it lies on.
    pub device: (u32, u32),
    /// Its holes when it was first registered.
    pub holes: Holes,
}

/// Ranges of a file without data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Holes {
    #[default]
    Unknown,
    /// All of them, in order.
    All(Vec<Range<u64>>),
    /// The first [`HOLES_MOST`]; there are more.
    First(Vec<Range<u64>>),
}

impl Holes {
    pub fn known(&self) -> &[Range<u64>] {
        match self {
            Holes::Unknown => &[],
            Holes::All(all) | Holes::First(all) => all,
        }
    }
}

/// One read or write. Times are nanoseconds since recording began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Read or write.
    pub op: Op,
    pub file: u32,
    /// First byte of the file, as requested: of a negative one its two's complement.
    pub offset: u64,
    /// Bytes that were requested: any number, if the call was refused.
    pub bytes: u64,
    /// Bytes that were moved, or a negative error.
    pub result: i64,
    /// When the program made the call: for an entry of a batch its submission, in a stream the
    /// moment it was enqueued.
    pub begin_ns: u64,
    /// Until the program could know its end: until it returned, until the event of the entry was
    /// fetched, until the stream had passed it. 0 in fio's traces.
    pub duration_ns: u64,
    /// The thread that made it: a number from 0 in order of first calls.
    pub thread: u32,
    pub within: Within,
    /// The GPU whose memory it used, by the CUDA driver's number; absent for host memory.
    pub gpu: Option<u32>,
}

/// The thread, batch or stream that a call is ordered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// Its thread: it blocked.
    Thread,
    /// A batch of this number, beside its other entries.
    Batch(u32),
    /// The CUDA stream of this number: after what was enqueued before it.
    Stream(u32),
}

impl Call {
    /// A read of nothing, to fill memory with.
    pub const NONE: Call = Call {
        op: Op::Read,
        file: 0,
        offset: 0,
        bytes: 0,
        result: 0,
        begin_ns: 0,
        duration_ns: 0,
        thread: 0,
        within: Within::Thread,
        gpu: None,
    };

    /// The bytes of the file that it moved: at most those requested. `None` where there are none,
    /// or they lie past the end of any file.
    pub fn moved(&self) -> Option<Range<u64>> {
        let bytes = u64::try_from(self.result).ok()?.min(self.bytes);
        let end = self.offset.checked_add(bytes).filter(|end| *end <= i64::MAX as u64)?;
        (bytes > 0).then_some(self.offset..end)
    }

    /// When it was over, nanoseconds since recording began.
    pub fn end_ns(&self) -> u64 {
        self.begin_ns.saturating_add(self.duration_ns)
    }
}
