//! Blocks whose intact headers say that they were written with another length: not checked, and not
//! wrong.

use gpuio_io::path::Mismatch;
use gpuio_io::path::fio_headers::{HEADER, length_by};
use gpuio_record::{JobPlan, WrittenAs};

use crate::run::task::Tools;
use gpuio_job::workload::sequence::Block;

/// Blocks without a header before which one is looked for, as long as no length is known.
const SEARCHES_MOST: u32 = 64;

#[derive(Debug, Clone, Default)]
pub(super) struct OtherLength {
    blocks: u64,
    searches: u32,
    first: Option<First>,
}

#[derive(Debug, Clone, Copy)]
struct First {
    written: u64,
    read: u64,
    target: u32,
    offset: u64,
}

impl OtherLength {
    /// Whether a block of a job that only reads has an intact header of another length, or lies
    /// within a longer block that has one; it is then counted.
    pub(super) fn explains(&mut self, tools: &Tools, block: &Block, bad: &Mismatch) -> bool {
        if bad.bad_words > 0 || bad.checksum_of.is_some() {
            return false;
        }
        let own = (bad.offset == block.offset + 4).then_some(bad.found);
        let Some(written) = own.or_else(|| self.around(tools, block)) else { return false };
        self.blocks += 1;
        let target = tools.files.targets[block.file as usize];
        let read = u64::from(block.len);
        self.first.get_or_insert(First { written, read, target, offset: block.offset });
        true
    }

    /// The length of a longer block around this one: a known length, or a power of two of blocks.
    fn around(&mut self, tools: &Tools, block: &Block) -> Option<u64> {
        let known = self.first.map(|first| first.written).into_iter();
        let search = self.searches < SEARCHES_MOST;
        self.searches += u32::from(search);
        let own = u64::from(block.len);
        let powers = (1..15).map(|power| own << power).take_while(|_| search);
        known.chain(powers).filter(|length| *length > own).find_map(|length| {
            let start = block.offset - block.offset % length;
            let mut header = [0; HEADER];
            let read = start < block.offset
                && tools.files.read_header(block.file, start, &mut header).is_some();
            let written = length_by(&header, start).filter(|_| read)?;
            (start + written > block.offset).then_some(written)
        })
    }

    pub(super) fn merge(&mut self, other: OtherLength) {
        self.blocks += other.blocks;
        self.first = self.first.or(other.first);
    }

    pub(super) fn into_record(self, job: &JobPlan) -> Option<WrittenAs> {
        let first = self.first?;
        Some(WrittenAs {
            blocks: self.blocks,
            block_bytes: first.written,
            read_bytes: first.read,
            path: job.targets[first.target as usize].path.clone(),
            offset: first.offset,
        })
    }
}
