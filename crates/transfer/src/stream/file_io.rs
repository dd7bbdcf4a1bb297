//! The file side of a transfer in a stream.

use super::chunks::PieceRange;
use super::op::{Method, StreamOp};
use crate::Op;
use crate::call::CallRequest;
use crate::device::small::SMALL;
use crate::fault::FileFault;
use crate::file::{FileBytes, ReadBuffer};
use crate::transferred::RouteBytes;

impl StreamOp {
    /// Moves a piece and records its result.
    pub(super) fn move_piece(&self, piece: PieceRange) {
        match self.method {
            Method::Kernel { .. } => {
                let (first, _) = self.buffer.half(self.half(piece.chunk), self.chunk_len);
                let skip = self.skip(piece.offset - piece.start);
                let in_chunk = piece.start - piece.chunk * self.chunk_len;
                let by = in_chunk + skip.unwrap_or(0);
                // Inside the half, so below its length.
                let at = first.wrapping_add(usize::try_from(by).unwrap_or(0));
                // SAFETY: the half has space for the chunk's bytes, and for a page before and
                // after; whoever has the piece is the only one to use its bytes, and the stream
                // does not until the chunk completes.
                let moved = unsafe { self.move_file_bytes(at, skip.is_some(), piece) };
                self.observe(piece, &moved);
                self.note(piece, moved, |route, bytes| route.by_kernel = bytes);
            }
            Method::Host => {
                let address = piece.address + piece.start;
                // Addresses have 64 bits.
                let at = usize::try_from(address).unwrap_or(0);
                let at = std::ptr::with_exposed_provenance_mut::<u8>(at);
                // SAFETY: the caller of the transfer promises that memory until the stream has
                // passed, and no other thread has this piece of it.
                let moved = unsafe { self.move_file_bytes(at, false, piece) };
                self.note(piece, moved, |route, bytes| route.by_host = bytes);
            }
            Method::BlockingCall(location) => {
                let (op, file) = (self.op, self.file.clone());
                let PieceRange { address, len, offset, .. } = piece;
                let request = CallRequest { op, file, location, address, len: len as u64, offset };
                match self.state.run(request) {
                    Ok(moved) => {
                        self.progress.ends(moved.bytes as u64);
                        self.progress.count(&moved.route);
                    }
                    Err(fault) => self.progress.fail(0, fault),
                }
            }
        }
    }

    /// Counts a read from the page cache, so that a file that is read again becomes mapped.
    fn observe(&self, piece: PieceRange, moved: &Result<FileBytes, FileFault>) {
        let (mapped, file, device) = (&self.state.mapped, &self.file.0, self.stream_device.device);
        if let (Op::Read, Ok(file_bytes)) = (self.op, moved)
            && (file_bytes.direct == 0 || file.is_in_memory())
        {
            let len = file_bytes.total() as u64;
            if piece.len as u64 <= SMALL {
                mapped.observe_small(file, device, piece.offset, len);
            } else {
                mapped.observe(file, device, piece.offset, (len, 1));
            }
        }
    }

    /// # Safety
    /// As [`crate::file::OpenFile::read`] and `write`.
    unsafe fn move_file_bytes(
        &self,
        at: *mut u8,
        slack: bool,
        piece: PieceRange,
    ) -> Result<FileBytes, FileFault> {
        let PieceRange { len, offset, large, .. } = piece;
        match self.op {
            // SAFETY: the caller's promise.
            Op::Read => unsafe { self.file.0.read(ReadBuffer { at, slack }, len, offset, large) },
            // SAFETY: the caller's promise.
            Op::Write => unsafe { self.file.0.write(at, len, offset) },
        }
    }

    fn note(
        &self,
        piece: PieceRange,
        moved: Result<FileBytes, FileFault>,
        memory: impl FnOnce(&mut RouteBytes, u64),
    ) {
        match moved {
            Ok(file_bytes) => {
                let mut route = RouteBytes::default();
                route.file(file_bytes);
                memory(&mut route, file_bytes.total() as u64);
                self.progress.count(&route);
                if file_bytes.total() < piece.len {
                    self.progress.ends(piece.start + file_bytes.total() as u64);
                }
            }
            Err(failed) => self.progress.fail(piece.start, self.file.0.fault(failed)),
        }
    }
}
