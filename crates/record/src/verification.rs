//! The findings of a verification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::injected::InjectedFaults;
use crate::io_failure::IoFailure;

/// The findings of the verification.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyOutcome {
    /// The data that was checked.
    #[serde(default)]
    pub subject: VerifySubject,
    /// Blocks left in memory by the timed load itself that were checked.
    pub timed_blocks: u64,
    /// Bytes of those.
    pub timed_bytes: u64,
    /// Blocks checked by the pass after the clock.
    pub pass_blocks: u64,
    /// Bytes of those.
    pub pass_bytes: u64,
    /// Bytes that no timed write had reached, and that were given their pattern afterwards, so that
    /// the file can be verified by later runs. They were not read back.
    #[serde(default)]
    pub filled_bytes: u64,
    /// Bytes that timed writes put where others had put the same before, ramp included: a later
    /// write that was lost leaves the bytes of the earlier one, and is not seen. Absent where there
    /// were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated_bytes: Option<u64>,
    /// Bytes of which those of the pass are a random sample, because the time for it was limited
    /// and ended; absent where all were checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_of_bytes: Option<u64>,
    /// Where blocks were checked: `GPU memory, by a kernel` or `host memory, by the CPU`.
    pub checked_in: String,
    /// Blocks with at least one wrong word, each as often as it was read.
    pub bad_blocks: u64,
    /// Different blocks, by file and offset, among these; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_places: Option<u64>,
    /// Whether there may be more of them: more than are kept, or the same ones in several ranks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bad_places_at_least: bool,
    /// Blocks that were written with another length than they were read with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_as: Option<WrittenAs>,
    /// Wrong 8-byte words in all.
    pub bad_words: u64,
    /// The first mismatches, at most 16.
    pub mismatches: Vec<VerifyMismatch>,
    /// I/Os of the pass that failed.
    pub failed: u64,
    /// The first of each kind of these, per file or device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<IoFailure>,
    /// Faults that `inject` made in I/Os of the pass.
    #[serde(default, skip_serializing_if = "InjectedFaults::is_none")]
    pub injected: InjectedFaults,
    /// Whether it ran to its end (an interrupt cuts it short).
    pub complete: bool,
}

/// The data that a verification checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifySubject {
    /// Not recorded: the record is older than this field.
    #[default]
    #[serde(alias = "unsaid")]
    Unspecified,
    /// The data of reads: those of the timed load and, after the clock, the data set read again.
    Reads,
    /// The data of recorded calls: those of timed reads and, after the clock, the files, with what
    /// was written to them.
    ReadsAndWrites,
    /// The data of timed reads; the job's writes were not read back.
    TimedReads,
    /// The data of timed writes, read back after the clock.
    TimedWrites,
    /// Data that was written anew after the clock; the timed writes were not verified.
    Rewritten,
}

impl VerifyOutcome {
    /// Mismatches that are kept: the first ones.
    pub const KEPT: usize = 16;

    /// Whether it ran to its end and found nothing wrong.
    pub fn is_fine(&self) -> bool {
        self.bad_blocks == 0 && self.written_as.is_none() && self.failed == 0 && self.complete
    }

    /// Different wrong blocks, and whether there may be more of them.
    pub fn different_bad(&self) -> (u64, bool) {
        let known = self.bad_places.map(|places| (places, self.bad_places_at_least));
        known.unwrap_or_else(|| (self.bad_blocks.min(1), self.bad_blocks > 1))
    }
}

/// Blocks read with `verify=crc32c` whose headers are intact and say another length: they were
/// written with another `bs`, and were not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenAs {
    /// Such blocks, each as often as it was read.
    pub blocks: u64,
    /// The length that the first header says, in bytes.
    pub block_bytes: u64,
    /// The length that blocks were read with.
    pub read_bytes: u64,
    /// File or device of the first one.
    pub path: String,
    /// Its byte offset.
    pub offset: u64,
}

/// One wrong block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyMismatch {
    /// File or device.
    pub path: String,
    /// Byte offset of the first wrong word.
    pub offset: u64,
    /// The word that belongs there, as hexadecimal.
    pub expected: String,
    /// The word found.
    pub found: String,
    /// Wrong words in the block; 0 where a checksum or a header of it is wrong, by which that is
    /// not known.
    pub bad_words: u64,
    /// Length of the block, in bytes, whose data has another checksum than its header says:
    /// `offset` is then the block's, `expected` the checksum in the header, `found` that of the
    /// data. Which bytes are wrong is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum_of_bytes: Option<u32>,
    /// `file` or `gpu`, or `unknown`.
    pub leg: String,
    /// The GPU, by the driver's index, if the block is wrong in its memory alone, which the bytes
    /// reached by way of another GPU (path `fan-out`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<u32>,
    /// Where in the file (of the same job) the found word belongs, when it belongs anywhere; where
    /// an intact header of fio's says so, the offset of the block that stands here.
    pub found_belongs_at: Option<String>,
}
