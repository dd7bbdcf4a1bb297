//! Reads whose bytes are mapped: see "Mapped files" in the module above.

use gpuio_gpu::{DevPtr, Piece, pieces};

use super::op::StreamOp;
use crate::Op;
use crate::mapped::MappedRange;
use crate::transferred::Transferred;

impl StreamOp {
    /// The bytes of a chunk that the stream has reached, if all of them are mapped (up to the end
    /// of the file) and the chunk's list has space for their pieces.
    pub(super) fn find_mapped(&self, chunk: u64) -> Option<MappedRange> {
        if self.op == Op::Write || !self.uses_kernel() {
            return None;
        }
        let (start, len) = self.wanted(chunk);
        let offset = self.resolve().offset + start;
        let len = usize::try_from(len).ok()?;
        let device = self.stream_device.device;
        let range = self.state.mapped.find(&self.file.0, device, offset, len)?;
        // At a boundary of extents a piece more may begin.
        let fits = self.mapped_pieces(start, &range).count() <= self.launch(chunk).0 as usize;
        fits.then_some(range)
    }

    /// Has the stream copy a chunk out of the mapping, and records its bytes. The range stays
    /// registered until the stream has passed the operation.
    pub(super) fn copy_mapped(&self, chunk: u64, range: MappedRange) {
        let (start, len) = self.wanted(chunk);
        self.write_list(chunk, self.mapped_pieces(start, &range));
        if (range.len as u64) < len {
            self.progress.ends(start + range.len as u64);
        }
        self.progress.count(&Transferred::mapped(range.len, true).route);
        let end = (self.buffer.released(), self.buffer.value(self.chunks));
        self.state.mapped.keep_until(range, self.stream_device.device, end);
    }

    /// The first byte of a chunk, from the start of the operation, and its bytes.
    fn wanted(&self, chunk: u64) -> (u64, u64) {
        let start = chunk * self.chunk_len;
        (start, self.resolve().len.saturating_sub(start).min(self.chunk_len))
    }

    /// The kernel's pieces of a range that begins `start` bytes after the operation.
    fn mapped_pieces(&self, start: u64, range: &MappedRange) -> impl Iterator<Item = Piece> {
        let to = DevPtr(self.resolve().address + start);
        range.parts().flat_map(move |part| {
            let to = to.byte_add(part.before as u64);
            pieces(part.device_ptr, to, part.len as u64, self.kernel_piece_len)
        })
    }
}
